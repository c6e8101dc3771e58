"""Each step that a refusal of an outside table proposes leads on: to a number, or to the next step."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import gamelens as gl
from gamelens.analysis import outside_data
from gamelens.errors import BadQuery
from gamelens.wire.currencies import USD_PER_UNIT
from support.tidy_frames import tidy_frame

WriteFile = Callable[..., Path]

DAYS = [f"2026-11-{day:02}" for day in range(1, 5)]
FILLED = {
    "currency": "EUR",
    "network": "Meta Ads",
    "names": "Meta Ads",
    "on": "Who",
    "roles": "Units",
    "columns": "Units",
}
"""What an analyst knows where a sentence has three dots."""
ELSEWHERE = ("query money over", "query all its days", "pass one file for each", "write 2026-11-01")
"""What no argument of reading changes: the query of the frame, or the file."""
MOST = 5  # steps until there is a number
STEP = re.compile(
    r"\b(amount|columns|cumulative|currency|day_first|decimal|how|leave_out|missing|names|network|on|rate|repeats|roles|text"
    r"|totals|year)=(?=[\w\[{\"'])"
)


def steps_of(message: str) -> Iterator[tuple[str, Any]]:
    """Yield the arguments that a sentence names with a value."""
    for match in STEP.finditer(message):
        rest = message[match.end() :]
        for end in range(1, len(rest) + 1):
            if rest[:end].isdigit() and rest[end : end + 1].isdigit():
                continue
            try:
                value = ast.literal_eval(rest[:end])
            except (SyntaxError, ValueError):
                continue
            yield match[1], filled(match[1], value)
            break


def filled(name: str, value: Any) -> Any:
    """Return *value* with what an analyst knows in the place of three dots."""
    if name == "rate" and isinstance(value, dict):
        return {code: float(USD_PER_UNIT[code]) for code in value}
    if value in ("...", ...):
        return FILLED[name]
    if isinstance(value, list):
        return [filled(name, part) for part in value]
    return {key: filled(name, part) for key, part in value.items()} if isinstance(value, dict) else value


def together(arguments: dict[str, Any], name: str, value: Any) -> dict[str, Any]:
    """Return *arguments* with one more."""
    known = arguments.get(name)
    if isinstance(known, dict) and isinstance(value, dict):
        value = known | value
    if isinstance(known, list) and isinstance(value, list):
        value = [*known, *value]
    return arguments | {name: value}


def follow(use: Callable[..., Any], arguments: dict[str, Any], seen: tuple[str, ...] = ()) -> None:
    """Take every step of every refusal, until there is a number."""
    try:
        use(**arguments)
    except BadQuery as error:
        message = str(error)
        assert message not in seen, f"after {arguments} still: {message}"
        steps = [*steps_of(message)]
        if not steps and any(step in message for step in ELSEWHERE):
            return
        assert steps, f"after {arguments} no step: {message}"
        assert len(seen) < MOST, f"after {arguments} no end: {message}"
        for name, value in steps:
            follow(use, together(arguments, name, value), (*seen, message))


CASES = {
    "no currency": "Date,Network,Cost\n2026-11-01,Meta,10.5\n2026-11-02,Meta,11\n",
    "a dollar sign": "Date,Network,Cost\n2026-11-01,Meta,$10.5\n2026-11-02,Meta,$11\n",
    "an unknown sign": "Date,Network,Cost (บาท)\n2026-11-01,Meta,10.5\n2026-11-02,Meta,11\n",
    "signs of some rows": "Date,Network,Cost\n2026-11-01,Meta,$10\n2026-11-02,Meta,€11\n",
    "two currencies": "Date,Network,Cost (EUR),Currency\n2026-11-01,Meta,10.5,USD\n2026-11-02,Meta,11,USD\n",
    "a foreign currency": "Date,Network,Cost (MXN)\n2026-11-01,Meta,10.5\n2026-11-02,Meta,11\n",
    "two costs": "Date,Network,Cost (USD),Spend (USD)\n2026-11-01,Meta,10.5,9\n2026-11-02,Meta,11,8\n",
    "no cost": "Date,Network,K7\n2026-11-01,Meta,10.5\n2026-11-02,Meta,11\n",
    "a running total": "Date,Network,Cumulative cost (USD)\n2026-11-01,Meta,10.5\n2026-11-02,Meta,11\n",
    "a running total that falls": (
        "Date,Network,Spend to date (USD)\n2026-11-01,Meta,10.5\n"
        "2026-11-02,Meta,11\n2026-11-03,Meta,10\n2026-11-05,Meta,12\n"
    ),
    "days or months": "Date,Network,Cost (USD)\n01/11/2026,Meta,10.5\n02/11/2026,Meta,11\n",
    "days without a year": "Date,Network,Cost (USD)\n01.11.,Meta,10.5\n02.11.,Meta,11\n",
    "days or months of a year": "Date,Network,Cost (USD)\nNov 26,Meta,10.5\nNov 27,Meta,11\n",
    "two days": "Install date,Event date,Network,Cost (USD)\n2026-11-01,2026-11-01,Meta,5\n2026-11-02,2026-11-03,M,6\n",
    "weeks or days": "Date,Network,Cost (USD)\n2026-10-26,Meta,10.5\n2026-11-02,Meta,11\n",
    "thousands": "Date;Network;Cost (USD)\n2026-11-01;Meta;1.234\n2026-11-02;Meta;2.345\n",
    "no number": "Date,Network,Cost (USD)\n2026-11-01,Meta,10.5\n2026-11-02,Meta,soon\n2026-11-03,Meta,4\n",
    "an error": "Date,Network,Cost (USD)\n2026-11-01,Meta,10.5\n2026-11-02,Meta,#REF!\n2026-11-03,Meta,4\n",
    "no day": "Date,Network,Cost (USD)\n2026-11-01,Meta,10.5\n2026-11-02,Meta,11\nWszystkiego,,21\n",
    "twice": "Date,Network,Cost (USD)\n" + 2 * "2026-11-01,Meta,10.5\n2026-11-02,Meta,11\n",
    "levels": "Level,Date,Network,Cost (USD)\nCampaign,2026-11-01,Meta,10.5\nAd,2026-11-01,Meta,9\n",
    "a forecast": "Type,Date,Network,Cost (USD)\nActual,2026-11-01,Meta,10.5\nPlan,2026-11-01,Meta,9\n",
    "midnight elsewhere": "Time,Network,Cost (USD)\n2026-11-01T00:00-08:00,Meta,5\n2026-11-02T00:00-08:00,Meta,6\n",
    "start and end elsewhere": (
        "Start Time,End Time,Network,Cost (USD)\n2026-11-01T00:00:00-08:00,2026-11-02T00:00:00-08:00,Meta,5\n"
        "2026-11-02T00:00:00-08:00,2026-11-03T00:00:00-08:00,Meta,6\n"
    ),
    "days of which nothing is known": (
        "Start,Ändrung,Network,Cost (USD)\n2026-11-01,2026-12-20,Meta,1\n2026-11-02,2026-11-01,Meta,1\n"
    ),
    "days that are columns": "Network,2026-11-01,2026-11-02\nMeta,10,11\n",
    "an unknown name": "Date,Network,Cost (USD)\n2026-11-01,foo_int,10.5\n2026-11-02,foo_int,11\n",
    "nobody": "Date,Who,Cost (USD)\n2026-11-01,Meta,10.5\n2026-11-02,Meta,11\n",
    "cents of yen": "Date,Network,Cost in cents (JPY)\n2026-11-01,Meta,1050\n2026-11-02,Meta,1100\n",
    "Snapchat": (
        "Start Time,End Time,Campaign Name,Spend,Swipe Ups\n"
        "2026-11-01T00:00:00.000-07:00,2026-11-02T00:00:00.000-08:00,a,$12.5,50\n"
        "2026-11-02T00:00:00.000-08:00,2026-11-03T00:00:00.000-08:00,a,$14.4,60\n"
    ),
}


@pytest.mark.shown_by(3)
@pytest.mark.parametrize("name", CASES)
def test_each_step_of_a_refusal_of_costs_leads_on(file: WriteFile, name: str) -> None:
    """To dollars, or to the return on them."""
    path = file(CASES[name], "costs.csv")
    money = tidy_frame(
        "revenue", timestamp=DAYS, installed_on=DAYS, install_publisher=["Meta Ads"] * 4, revenue=[1.0] * 4
    )
    money.attrs["gamelens"]["asked"] |= {"every": "day", "interval": "2026-11-01T00:00Z/2026-11-05T00:00Z"}
    follow(lambda **given: outside_data.roas(path, money, **given, ages=[0]), {})
    follow(lambda **given: outside_data.in_dollars(path, **given), {})


COLUMNS = {
    "Rank": "2,7\n3,5\n2,9\n1,4",
    "ARPU": "2.5,7\n3.5,5\n2.25,9\n1.5,4",
    "Unit price (USD)": "2.5,7\n3.5,5\n2.25,9\n1.5,4",
    "K7": "2.5,7\n3.5,5\n2.25,9\n1.5,4",
    "Note": "a,7\nb,5\nc,9\nd,4",
    "Reach": "20,7\n30,5\n20,9\n10,4",
    "Share": "20%,7\n< 1%,5\n20%,9\n10%,4",
    "Holiday name": "a,7\nb,5\nc,9\nd,4",
}


@pytest.mark.shown_by(2)
@pytest.mark.parametrize("name", COLUMNS)
def test_each_step_of_a_refusal_of_a_column_leads_on(file: WriteFile, name: str) -> None:
    """Several rows of a day become one, or the column is left out."""
    rows = [f"{DAYS[place // 2]},{row}" for place, row in enumerate(COLUMNS[name].split("\n"))]
    path = file("\n".join([f"Date,{name},Units", *rows, ""]))
    frame = tidy_frame("new_users", timestamp=DAYS, new_users=[5] * 4)
    follow(lambda **given: gl.join(frame, path, **({"columns": [name]} | given)), {})


def test_a_refusal_says_how_many_cells_are_at_fault(file: WriteFile) -> None:
    """One step is enough for all of them."""
    rows = [
        "2026-11-01,Meta,10.5",
        "2026-11-02,Meta,soon",
        "2026-11-03,Meta,late",
        "2026-11-04,Meta,4",
        "2026-11-05,M,6",
    ]
    path = file("\n".join(["Date,Network,Cost (USD)", *rows, ""]))
    with pytest.raises(
        BadQuery, match=r"'soon' in row 3 is not a number, one of 2 such cells: missing=\['soon', 'late'\]"
    ):
        outside_data.in_dollars(path)
    assert outside_data.in_dollars(path, missing=["soon", "late"])["spend"].sum() == 20.5
    rows = [row.replace("2026-11-03", "Pause").replace("2026-11-02", "Holiday") for row in rows]
    path = file("\n".join(["Date,Network,Cost (USD)", *rows, ""]))
    with pytest.raises(
        BadQuery, match=r"one of 2 such cells: leave_out=\{'Date': \['Holiday', 'Pause'\]\} leaves the rows out"
    ):
        outside_data.in_dollars(path, missing=["soon", "late"])
    assert len(outside_data.in_dollars(path, missing=["soon", "late"], leave_out={"Date": ["Holiday", "Pause"]})) == 3


@pytest.mark.shown_by(2)
@pytest.mark.parametrize("is_workbook", [False, True])
@pytest.mark.parametrize(
    ("left", "right"),
    [
        (
            ["Date,Network,Cost (USD)", "2026-11-01,Meta,10", "2026-11-02,Meta,11"],
            ["Date,Network,Cost (USD)", "2026-11-01,X,5"],
        ),
        (["Date,Network,Cost (USD)", *(f"{day},Meta,7" for day in DAYS)], ["Land,Installs", "DE,5", "US,6"]),
        (["Date,Cost (USD)", "2026-11-01,5", "2026-11-02,6"], ["Country,Installs", "DE,5", "US,7"]),
        (["Land,Installs", "DE,5"], ["Datum,Kosten (USD)", *(f"{day},7" for day in DAYS)]),
    ],
)
def test_two_tables_side_by_side_are_refused(
    file: WriteFile,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    left: list[str],
    right: list[str],
    *,
    is_workbook: bool,
) -> None:
    """The code that the sentence quotes opens each of them."""
    width = [side[0].count(",") for side in (left, right)]
    count = max(len(left), len(right))
    sides = [[*side, *["," * width[n]] * (count - len(side))] for n, side in enumerate((left, right))]
    rows = [f"{first},,{second}" for first, second in zip(*sides, strict=True)]
    path = file("\n".join([*rows, ""]), "beside.csv")
    if is_workbook:
        path = tmp_path / "beside.xlsx"
        cells = [[None if cell == "" else cell for cell in row.split(",")] for row in rows]
        pd.DataFrame(cells).to_excel(path, header=False, index=False)
    monkeypatch.chdir(path.parent)
    for frame, side in zip(frames_that_the_refusal_opens(path), (left, right), strict=True):
        table = gl.read_table(frame)
        assert [name.removesuffix(".1") for name in table.grid.columns] == side[0].split(",")
        assert len(table.rows) == len(side) - 1


def frames_that_the_refusal_opens(path: Path, **reading: Any) -> list[pd.DataFrame]:
    """Return the frames that the quoted code makes as it is written."""
    with pytest.raises(BadQuery, match="has two tables side by side") as refused:
        gl.read_table(path, **reading)
    code = str(refused.value).partition("pass a frame of one of them, ")[2].removesuffix(".")
    return [eval(part, {"pd": pd}) for part in code.split(" or ")]


@pytest.mark.parametrize("above", ["Report;;;;\n\n", "\n\nMeta;;;Moloco;\n", ""])
def test_a_title_above_two_tables_is_no_header_of_the_frame(
    file: WriteFile, monkeypatch: pytest.MonkeyPatch, above: str
) -> None:
    """Nor are blank lines, an amount with thousands is no fraction, and NA is Namibia."""
    rows = ["Land;Kosten (USD);;Land;Kosten (USD)", "NA;1.234;;DE;5", "DE;2.345,5;;NA;2.000", "", ";;;US;3,5", ""]
    path = file(above + "\n".join(rows))
    monkeypatch.chdir(path.parent)
    found = [outside_data.in_dollars(gl.read_table(frame)) for frame in frames_that_the_refusal_opens(path)]
    assert [frame["spend"].tolist() for frame in found] == [[1234, 2345.5], [5, 2000, 3.5]]
    assert [frame.iloc[:, 0].tolist() for frame in found] == [["NA", "DE"], ["DE", "NA", "US"]]


def test_the_frame_of_two_tables_is_of_the_sheet_that_was_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A title and blank columns stand before the second table."""
    monkeypatch.chdir(tmp_path)
    path, head = tmp_path / "two.xlsx", ["Date", "Cost (USD)", None, None, "Date", "Cost (USD)"]
    none = [None] * 5
    rows = [["Report", *none], head, ["2026-11-01", 5, *none[:2], "2026-11-01", 7], [*none[:4], "2026-11-02", 9]]
    with pd.ExcelWriter(path) as book:
        pd.DataFrame([["Date", "Cost (USD)"], ["2026-11-01", 1]]).to_excel(
            book, sheet_name="A", header=False, index=False
        )
        pd.DataFrame(rows).to_excel(book, sheet_name="B", header=False, index=False)
    frames = frames_that_the_refusal_opens(path, sheet="B")
    assert [outside_data.in_dollars(gl.read_table(frame))["spend"].tolist() for frame in frames] == [[5], [7, 9]]


@pytest.mark.parametrize(
    "rows",
    [
        ["Date,Network,Cost (USD),,Clicks,Installs", "2026-11-01,Meta,10,,5,1", "2026-11-02,Meta,11,,6,2"],
        [
            "Date,Network,Cost (USD),,Clicks,Note",
            "2026-11-01,Meta,10,,,",
            "2026-11-02,Meta,11,,6,x",
            "2026-11-03,M,1,,,",
        ],
        [
            "Date,Network,Cost (USD),,Clicks,Installs",
            "2026-11-01,Meta,10,,5,1",
            "2026-11-02,Meta,11,,6,2",
            "Total,,21,,,",
        ],
    ],
)
def test_an_empty_column_within_a_table_is_none(file: WriteFile, rows: list[str]) -> None:
    table = gl.read_table(file("\n".join([*rows, ""])))
    assert table.column("Cost (USD)").values.sum() >= 21
    assert table.column("Clicks").role == "count"


@pytest.mark.parametrize(("name", "step"), [("costs.html", "pd.read_html"), ("costs.ods", "pandas or polars")])
def test_a_file_of_another_kind_can_be_passed_as_a_frame(tmp_path: Path, name: str, step: str) -> None:
    (tmp_path / name).write_text('[{"Date": "2026-11-01", "Cost (USD)": 5}, {"Date": "2026-11-02", "Cost (USD)": 6}]')
    with pytest.raises(BadQuery, match=f"is not a file that can be read: pass a frame that {step} makes of it"):
        gl.read_table(tmp_path / name)


@pytest.mark.parametrize(
    ("keys", "named"),
    [
        ({"country_code": ["DE", "US"] * 2}, "country_code"),
        ({"timestamp": DAYS, "platform": ["ios", "android"] * 2}, "platform"),
        ({"app_version": ["1", "2"] * 2}, "app_version"),
    ],
)
def test_the_pair_that_a_join_asks_for_has_a_column_of_the_frame(
    tmp_path: Path, keys: dict[str, list[str]], named: str
) -> None:
    path = tmp_path / "other.csv"
    path.write_text("thing,Spend (USD)\nx,1\ny,2\n", encoding="utf-8")
    frame = tidy_frame("new_users", **keys, new_users=[1, 2, 3, 4])
    with pytest.raises(BadQuery, match=rf'name a pair with on=\{{"{named}": "\.\.\."\}}'):
        gl.join(frame, path)


ITALIAN = ["1.795,74", "1.250", "12", "737,01"]
ENGLISH = ["2,642.54", "1,027.35", "30"]


@pytest.mark.shown_by(2)
@pytest.mark.parametrize("decimal", [None, ".", ","])
@pytest.mark.parametrize(("first", "second"), [(ITALIAN, ENGLISH), (ENGLISH, ITALIAN)])
def test_two_decimal_marks_are_refused_with_the_row_where_they_change(
    file: WriteFile, decimal: str | None, first: list[str], second: list[str]
) -> None:
    """No argument reads both, so none is named; the step that is named works."""
    head, parts = "Giorno;Costo (EUR)\n", [first, second]
    lines = [[f"2026-10-{10 * n + k + 10};{text}\n" for k, text in enumerate(part)] for n, part in enumerate(parts)]
    path = file(head + "".join(lines[0] + lines[1]))
    with pytest.raises(BadQuery, match="have two decimal marks, the second from row") as refused:
        outside_data.in_dollars(path, rate=1.0, decimal=decimal)
    assert f"from row {len(first) + 2} on" in str(refused.value)
    assert f"have two decimal marks, the second from row {len(first) + 2} on: no decimal= reads both" in str(
        refused.value
    )
    spent = [outside_data.in_dollars(file(head + "".join(part)), rate=1.0)["spend"].sum() for part in lines]
    assert spent == [pytest.approx(3794.75 if part is ITALIAN else 3699.89) for part in parts]


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        (["1.795,74", "2,642.54", "3.500,10"], "from row 3 on, mixed: no decimal= reads both; write one mark in all"),
        (["1.795,74", "1,250", "2,642.54"], "from a row after row 2 on, at the latest from row 4"),
        (["1.250", "2.500", "1,250"], "the second from row 4 on"),
    ],
)
def test_two_decimal_marks_are_refused_however_they_are_mixed(file: WriteFile, texts: list[str], words: str) -> None:
    """Also where each number could have either, and other columns have one."""
    rows = [f"2026-11-0{day};{text};0.25" for day, text in enumerate(texts, start=1)]
    with pytest.raises(BadQuery, match=re.escape(words)):
        outside_data.in_dollars(file("\n".join(["Day;Cost (USD);CTR", *rows, ""])))


@pytest.mark.parametrize("day", ["2026-11-31", "01.11.", "soon"])
def test_a_refusal_is_of_a_public_class(file: WriteFile, day: str) -> None:
    """A traceback names the class that the help does."""
    path = file(f"Day,Cost (USD)\n{day},5\n{day},6\n")
    with pytest.raises(BadQuery) as refused:
        gl.join(tidy_frame("dau", timestamp=["2026-11-01"], dau=[5]), gl.read_table(path, roles={"Day": "day"}))
    assert type(refused.value) is BadQuery


@pytest.mark.parametrize(
    ("header", "numbers", "is_offered"),
    [
        ("fidelity-type", [1, 1, 0], False),
        ("Slot", [1, 2, 63], False),
        ("campaign_code", [5501, 5502, 5503], False),
        ("postback sequence index", [0, 1, 2000], False),
        ("Meta", [310, 250, 70], True),
        ("Meta", [3.5, 2.25, 7], True),
    ],
)
def test_only_what_may_be_money_is_offered_as_an_amount(
    file: WriteFile, header: str, numbers: list[float], *, is_offered: bool
) -> None:
    """Codes and small integers are none; the step that is named works."""
    rows = [f"2026-11-0{day},{number}" for day, number in enumerate(numbers, start=1)]
    path = file("\n".join([f"Day,{header}", *rows, ""]))
    with pytest.raises(BadQuery, match="amount is needed") as refused:
        outside_data.in_dollars(path, currency="USD")
    if is_offered:
        assert f'name it with amount="{header}"' in str(refused.value)
        assert outside_data.in_dollars(path, amount=header, currency="USD")["spend"].sum() == sum(numbers)
    else:
        assert "has no column of costs: none may be money either: pass a table with costs" in str(refused.value)
        assert refused.value.allowed == ()
        roles = {header: "cost"}
        assert outside_data.in_dollars(path, roles=roles, currency="USD")["spend"].sum() == sum(numbers)
