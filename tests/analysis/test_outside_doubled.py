"""Rows that would count twice, or that would be lost, by a word that is also an ordinary name."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

import gamelens as gl
from gamelens.analysis import outside_data
from gamelens.errors import BadQuery

WriteFile = Callable[..., Path]

DAYS = [f"2026-11-{day:02}" for day in range(1, 8)]
COSTS = [31, 57, 23, 94, 46, 78, 65]


@pytest.mark.shown_by(2)
@pytest.mark.parametrize("word", ["media", "Media", "average", "mean", "Sum", "Total", "Summe"])
def test_a_word_that_is_also_a_name_counts_where_its_numbers_are_no_totals(file: WriteFile, word: str) -> None:
    """Media is what a cost is for, and a mean in Spanish; that it counts is said."""
    rows = [f"{day},Meta,{kind},{cost}" for day, cost in zip(DAYS, COSTS, strict=True) for kind in (word, "fee")]
    rows = [row.replace("fee,", "fee,1") for row in rows]
    table = gl.read_table(file("\n".join(["Date,Network,cost_type,Cost (USD)", *rows, ""])))
    assert table.column("Cost (USD)").values.sum() == 2 * sum(COSTS) + 100 * len(DAYS)
    assert f"with {word!r} in cost_type count, as no sums or means of others" in str(table)


@pytest.mark.parametrize(("word", "of_day"), [("Total", 30), ("Sum", 30), ("average", 10), ("media", 10)])
def test_a_word_of_totals_or_means_is_one_where_its_numbers_are(file: WriteFile, word: str, of_day: int) -> None:
    rows = [
        f"{day},Meta,{kind},{n * cost}"
        for n, day in enumerate(DAYS, 1)
        for kind, cost in (("a", 5), ("b", 8), ("c", 17), (word, of_day))
    ]
    table = gl.read_table(file("\n".join(["Date,Network,cost_type,Cost (USD)", *rows, ""])))
    assert table.column("Cost (USD)").values.sum() == 30 * sum(range(1, 8))


def test_a_word_that_may_be_a_total_is_asked_about(file: WriteFile) -> None:
    """Once, with a number that is no sum: both steps of the sentence are right."""
    rows = [f"{day},Meta,agency,{cost}" for day, cost in zip(DAYS, COSTS, strict=True)]
    path = file("\n".join(["Date,Network,cost_type,Cost (USD)", *rows, "2026-11-07,Meta,media,11", ""]))
    with pytest.raises(BadQuery, match=r"row 9 of table.csv with 'media' in cost_type may add up others") as refused:
        outside_data.in_dollars(path)
    assert "totals=['media']" in str(refused.value)
    assert outside_data.in_dollars(path, totals=["media"])["spend"].sum() == sum(COSTS)
    assert outside_data.in_dollars(path, totals="keep")["spend"].sum() == sum(COSTS) + 11


def test_a_footer_of_averages_is_left_out(file: WriteFile) -> None:
    """It has no day and no name but that word."""
    rows = [f"{day},Meta,{cost}" for day, cost in zip(DAYS, COSTS, strict=True)]
    for footer in ("Average,,56", ",Average,56", ",media,50"):
        path = file("\n".join(["Date,Network,Cost (USD)", *rows, footer, ""]))
        assert outside_data.in_dollars(path)["spend"].sum() == sum(COSTS)


@pytest.mark.shown_by(2)
@pytest.mark.parametrize("indent", ["", "   "])
@pytest.mark.parametrize("is_below", [False, True])
def test_names_above_their_parts_in_one_column_are_left_out(file: WriteFile, indent: str, *, is_below: bool) -> None:
    """A compact pivot table: of one number, of several, and of days that are columns."""
    parts = {"Meta Ads": (194.23, 879.76, 825.05), "Unity Ads": (205.21, 66.23), "Moloco": (168.28, 672.11, 448.54)}
    total = round(sum(map(sum, parts.values())), 2)
    header, lands = "Row Labels,Cost (USD)", ("US", "DE", "JP")
    blocks = [
        [f"{name},{sum(costs):.2f}", *(f"{indent}{land},{cost}" for land, cost in zip(lands, costs, strict=False))]
        for name, costs in parts.items()
    ]
    lines = [line for block in blocks for line in (block[::-1] if is_below else block)]
    for rows, more in ((lines, []), ([header.replace("Row Labels,", "x,"), *lines][1:], [f"Grand Total,{total}"])):
        table = gl.read_table(file("\n".join([header, *rows, *more, ""])))
        assert table.column("Cost (USD)").values.sum() == pytest.approx(total)
        assert "as in a pivot table" in str(table)
        assert table.column("network").values.tolist() == [name for name, costs in parts.items() for _ in costs]
    wide = [f"{line},{float(line.split(',')[1]) * 2:.2f}" for line in lines]
    table = gl.read_table(file("\n".join(["Cost (USD),2026-11-01,2026-11-02", *wide, ""])))
    assert table.of_role("amount")[0].values.sum() == pytest.approx(3 * total)


def test_levels_of_names_in_one_column_are_left_out(file: WriteFile) -> None:
    """Networks above countries above campaigns."""
    rows = ["Meta,60", "US,45", "a,30", "b,15", "DE,15", "c,11", "d,4", "Moloco,71", "US,31", "a,11", "b,20", "DE,40"]
    path = file("\n".join(["Row Labels,Cost (USD)", *rows, "a,33", "b,7", ""]))
    assert gl.read_table(path).column("Cost (USD)").values.sum() == 131


def test_rows_that_are_sums_of_others_by_chance_count(file: WriteFile) -> None:
    rows = [f"{name},{cost}" for name, cost in zip("abcdefgh", (30, 10, 20, 17, 5, 9, 6, 22), strict=True)]
    assert gl.read_table(file("\n".join(["Name,Cost (USD)", *rows, ""]))).column("Cost (USD)").values.sum() == 119


@pytest.mark.shown_by(2)
@pytest.mark.parametrize(
    ("kinds", "stay"),
    [
        (["Actual", "Budget", "Forecast"], "Actual"),
        (["Ist", "Soll", "Prognose"], "Ist"),
        (["Budget", "Forecast", "Spent"], "Spent"),
        (["Actual", "Estimate", "Stretch"], "Actual"),
    ],
)
def test_all_kinds_that_were_not_spent_are_named_at_once(file: WriteFile, kinds: list[str], stay: str) -> None:
    rows = [f"{day},Meta,{kind},{cost + len(kind)}" for day, cost in zip(DAYS, COSTS, strict=True) for kind in kinds]
    path = file("\n".join(["Date,Network,Scenario,Cost (USD)", *rows, ""]))
    others = [kind for kind in kinds if kind != stay]
    with pytest.raises(BadQuery, match=r"counts rows of .* which may be no money spent or earned") as refused:
        outside_data.in_dollars(path)
    assert f"leave_out={ {'Scenario': others}!r} leaves them out" in str(refused.value)
    left = outside_data.in_dollars(path, leave_out={"Scenario": others})
    assert left["spend"].sum() == sum(COSTS) + len(stay) * len(DAYS)
    assert len(outside_data.in_dollars(path, leave_out={"Scenario": []})) == len(DAYS) * len(kinds)


@pytest.mark.parametrize("is_sorted", [False, True])
def test_exports_that_overlap_with_other_numbers_are_refused(file: WriteFile, *, is_sorted: bool) -> None:
    """A day that was restated since is there twice, with nothing to tell its rows apart."""
    costs = list(zip(DAYS, COSTS, strict=True))
    early = [f"{day},{name},{cost}" for day, cost in costs[:5] for name in ("Meta", "Moloco")]
    late = [f"{day},{name},{cost + (day < DAYS[5])}" for day, cost in costs[3:] for name in ("Meta", "Moloco")]
    rows = sorted([*early, *late], key=lambda row: row.split(",")[:2]) if is_sorted else [*early, *late]
    path = file("\n".join(["Date,Network,Cost (USD)", *rows, ""]))
    with pytest.raises(BadQuery, match=r'would count twice: rows .*exports that overlap.*repeats="last"'):
        outside_data.in_dollars(path)
    once, again = 2 * sum(COSTS), 2 * sum(COSTS[3:5])
    for repeats, total in (("skip", once), ("last", once + 4), ("keep", once + again + 4)):
        assert outside_data.in_dollars(path, repeats=repeats)["spend"].sum() == total


def test_names_that_are_there_twice_on_every_day_count(file: WriteFile) -> None:
    """Two campaigns of one name, or events."""
    rows = [f"{day},{name},{cost + n}" for day, cost in zip(DAYS, COSTS, strict=True) for n, name in enumerate("aab")]
    table = gl.read_table(file("\n".join(["Date,Campaign,Cost (USD)", *rows, ""])))
    assert table.column("Cost (USD)").problem is None


def test_merged_cells_are_no_rows_that_are_there_twice(file: WriteFile) -> None:
    """An empty name is that above it."""
    rows = [
        f"{name * (day == DAYS[0])},{day},{cost + n}"
        for n, name in enumerate("abc")
        for day, cost in zip(DAYS, COSTS, strict=True)
    ]
    table = gl.read_table(file("\n".join(["Campaign,Date,Cost (USD)", *rows, ""])))
    assert table.column("Cost (USD)").problem is None
    assert table.column("Campaign").values.nunique() == 3


@pytest.mark.shown_by(2)
@pytest.mark.parametrize(
    "header", ["Exported at", "snapshot_date", "Extracted on", "Abrufdatum", "取得日時", "Pulled at"]
)
def test_exports_of_the_same_days_on_two_dates_are_asked_about(tmp_path: Path, header: str) -> None:
    """The latest of each day and name counts, whatever the order of rows; days of one export alone are no question."""
    rows = ["2026-10-06,2026-10-01,A,11", "2026-10-06,2026-10-02,A,20", "2026-10-06,2026-10-03,A,30"]
    rows += ["2026-10-05,2026-10-01,A,10", "2026-10-05,2026-10-02,A,20", "2026-10-05,2026-09-30,A,5"]
    path = tmp_path / "exports.csv"
    path.write_text("\n".join([f"{header},Date,Network,Cost (USD)", *rows, ""]), encoding="utf-8")
    with pytest.raises(BadQuery, match=f"names and days of rows of another {header}") as refused:
        outside_data.in_dollars(path)
    for repeats, total in (("last", 66), ("skip", 65), ("keep", 96)):
        assert f'repeats="{repeats}"' in str(refused.value)
        assert outside_data.in_dollars(path, repeats=repeats)["spend"].sum() == total
    path.write_text("\n".join([f"{header},Date,Network,Cost (USD)", *rows[:3], rows[5], ""]), encoding="utf-8")
    assert outside_data.in_dollars(path)["spend"].sum() == 66


@pytest.mark.shown_by(2)
@pytest.mark.parametrize("version", ["revision", "Rev.", "Version", "版本", "posted_at", "Updated on", "Last modified"])
@pytest.mark.parametrize("day", ["report_date", "Date"])
def test_rows_that_a_later_version_supersedes_are_asked_about(tmp_path: Path, version: str, day: str) -> None:
    """The latest of each day and name counts; the date of a report is the day of its rows, a comment no name."""
    is_time = version in ("posted_at", "Updated on", "Last modified")
    first, second = ("2026-11-10", "2026-11-16") if is_time else ("1", "2")
    rows = [f"2026-11-0{n},A,{first},{10 * n}," for n in range(1, 7)]
    rows += [f"2026-11-03,A,{second},25,supersedes the first", f"2026-11-05,A,{second},44,adjusted"]
    path = tmp_path / "billing.csv"
    path.write_text("\n".join([f"{day},Campaign,{version},Cost (USD),note", *rows, ""]), encoding="utf-8")
    with pytest.raises(BadQuery, match=f"names and days of rows of another {version}"):
        outside_data.in_dollars(path)
    for repeats, total in (("last", 199), ("skip", 210), ("keep", 279)):
        assert outside_data.in_dollars(path, repeats=repeats)["spend"].sum() == total


@pytest.mark.parametrize("header", ["App version", "Posts", "OS Version Code"])
def test_numbers_of_programs_and_counts_are_no_versions_of_rows(tmp_path: Path, header: str) -> None:
    rows = [f"2026-11-0{day},A,{number},{10 * day + number}" for day in (1, 2, 3) for number in (1, 2)]
    path = tmp_path / "builds.csv"
    path.write_text("\n".join([f"Date,Campaign,{header},Cost (USD)", *rows, ""]), encoding="utf-8")
    problem = gl.read_table(path).column("Cost (USD)").problem
    assert problem is None or "another" not in str(problem)


@pytest.mark.parametrize("header", ["Download Type", "Load", "Report type"])
def test_names_that_are_no_times_are_no_exports(tmp_path: Path, header: str) -> None:
    rows = [f"{kind},2026-10-0{day},A,{day}" for kind in ("first", "again") for day in (1, 2, 3)]
    path = tmp_path / "types.csv"
    path.write_text("\n".join([f"{header},Date,Network,Installs", *rows, ""]), encoding="utf-8")
    problem = gl.read_table(path).column("Installs").problem
    assert problem is None or "another" not in str(problem)


INVOICES = [
    (1, "RE-2026-101", "2026-11-02", "Meta", 120.5, "paid"),
    (2, "RE-2026-102", "2026-11-03", "Moloco", 80.0, "paid"),
    (3, "RE-2026-103", "2026-11-04", "Meta", 61.25, "cancelled"),
    (4, "RE-2026-104", "2026-11-05", "Unity", 44.0, "paid"),
    (5, "RE-2026-105", "2026-11-06", "Liftoff", 39.9, "paid"),
    (6, "RE-2026-102", "2026-11-03", "Moloco", 80.0, "paid"),
    (7, "RE-2026-106", "2026-11-07", "Adjust", 15.0, "paid"),
]


@pytest.mark.parametrize("number", ["No.", "Lfd. Nr.", "Sıra", "#", "Lp.", "Zeile"])
@pytest.mark.parametrize("below", ["", ",,,Total,299.40,\n"])
def test_an_invoice_that_is_there_twice_is_asked_about(file: WriteFile, number: str, below: str) -> None:
    """The numbers of the rows say nothing of them, also where one of them is left out or a total has none."""
    rows = "\n".join(",".join(map(str, row)) for row in INVOICES)
    path = file(f"{number},Invoice,Date,Supplier,Net (EUR),Status\n{rows}\n{below}", "invoices.csv")
    decided: dict[str, Any] = {"leave_out": {"Status": ["cancelled"]}, "rate": {"EUR": 1.0}, "amount": "Net (EUR)"}
    with pytest.raises(BadQuery, match=r"row 7 of invoices.csv repeats an earlier row, with its Invoice: repeats="):
        outside_data.in_dollars(path, **decided)
    assert outside_data.in_dollars(path, repeats="skip", **decided)["spend"].sum() == pytest.approx(299.4)
    with pytest.warns(UserWarning, match=r"is 299\.4, its rows add up to 379\.4") if below else nullcontext():
        assert outside_data.in_dollars(path, repeats="keep", **decided)["spend"].sum() == pytest.approx(379.4)


PROFIT = """
2026-07,{earned},IAP,900,990
2026-07,{earned},Ads,340,310
2026-07,Total {earned},,1240,1300
2026-07,{spent},UA,520,500
2026-07,{spent},Art,36,31
2026-07,Total {spent},,556,531
2026-07,EBITDA,,684,769
2026-08,{earned},IAP,910,950
2026-08,{earned},Ads,350,330
2026-08,Total {earned},,1260,1280
2026-08,{spent},UA,530,560
2026-08,{spent},Art,40,44
2026-08,Total {spent},,570,604
2026-08,EBITDA,,690,676
,YTD Total {earned},,2500,2580
"""


@pytest.mark.parametrize(
    ("earned", "spent"),
    [
        ("Revenue", "Operating cost"),
        ("Umsatz", "Kosten"),
        ("Einnahmen", "Ausgaben"),
        ("Доходы", "Расходы"),
        ("Gelir", "Gider"),
    ],
)
def test_income_beside_costs_is_asked_about(file: WriteFile, earned: str, spent: str) -> None:
    """Each step of the question leads to one of them, without what is neither."""
    path = file("Month,Category,Line,Budget (EUR),Actual (EUR)" + PROFIT.format(earned=earned, spent=spent))
    given: dict[str, Any] = {"amount": "Actual (EUR)", "rate": {"EUR": 1.0}}
    with pytest.raises(BadQuery, match=f"holds {earned} beside {spent}, by Category") as refused:
        outside_data.in_dollars(path, **given)
    for kept, expected in ((spent, 1135), (earned, 2580)):
        step = re.search(rf"leave_out=(\{{[^}}]*\}}) leaves {kept} alone", str(refused.value))
        assert step is not None
        left = outside_data.in_dollars(path, leave_out=ast.literal_eval(step[1]), **given)
        assert left["spend"].sum() == expected


def test_parts_of_numbers_that_nothing_names_are_left_out(file: WriteFile) -> None:
    """A plan with a month in each column, whose subtotals are sums of the rows above."""
    rows = ["Meta,US,10,20", "Meta,DE,5,7", "Subtotaal Meta,,15,27", "Unity,US,4,9", "Unity,DE,3,2"]
    path = file("\n".join(["Kanaal,Land,Okt 2026,Nov 2026", *rows, "Subtotaal Unity,,7,11", "Totaal,,22,38", ""]))
    table = gl.read_table(path)
    assert table.columns[-1].role == "number"
    assert table.frame[table.columns[-1].name].sum() == 60


def test_revisions_of_records_with_numbers_of_their_own(tmp_path: Path) -> None:
    """The number of a record tells no rows apart, nor does what it supersedes."""
    rows = [f"r{n},2026-11-{n:02},0044,ES,1,,{cost},2026-11-10" for n, cost in enumerate(COSTS, 1)]
    rows += ["r9,2026-11-03,0044,ES,2,r3,20,2026-11-16", "r10,2026-11-05,0044,ES,2,r5,40,2026-11-16"]
    path = tmp_path / "feed.csv"
    head = "record_id,date,campaign_id,geo,revision,supersedes,spend_eur,updated_at"
    path.write_text("\n".join([head, *rows, ""]), encoding="utf-8")
    with pytest.raises(BadQuery, match="names and days of rows of another revision"):
        outside_data.in_dollars(path, rate={"EUR": 1.0})
    for repeats, total in (("last", sum(COSTS) - 9), ("skip", sum(COSTS)), ("keep", sum(COSTS) + 60)):
        assert outside_data.in_dollars(path, rate={"EUR": 1.0}, repeats=repeats)["spend"].sum() == total
