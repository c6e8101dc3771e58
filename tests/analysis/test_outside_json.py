"""JSON as interfaces and databases write it: flat objects are rows, nested ones have code to make columns."""

from __future__ import annotations

import gzip
import json
import re
import zipfile
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import gamelens as gl
from gamelens.analysis import outside_data
from gamelens.errors import BadQuery

FLAT: list[dict[str, Any]] = [
    {"date": "2026-11-01", "network": "Meta", "cost_usd": 10.5, "installs": 3, "fresh": True},
    {"date": "2026-11-02", "network": "Moloco", "cost_usd": 20, "installs": 4, "fresh": False, "note": "late"},
    {"date": "2026-11-03", "network": "", "cost_usd": None, "installs": 5, "fresh": True, "tags": []},
]
NESTED: list[dict[str, Any]] = [
    {"campaign": {"id": "1", "name": "MH | US"}, "segments": {"date": day}, "metrics": {"costMicros": "2500000"}}
    for day in ("2026-11-01", "2026-11-02")
]


def _lines(rows: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def _written(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    if name.endswith(".gz"):
        path.write_bytes(gzip.compress(text.encode()))
    elif name.endswith(".zip"):
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("rows.json", text)
    else:
        path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.shown_by(3)
@pytest.mark.parametrize("name", ["a.jsonl", "a.ndjson", "a.json", "a.txt", "a.csv", "a.txt.gz", "a.json.gz", "a.zip"])
@pytest.mark.parametrize("form", ["lines", "array", "indented"])
def test_flat_objects_are_rows(tmp_path: Path, name: str, form: str) -> None:
    """Whatever the name of the file says, also with keys that only some rows have."""
    text = _lines(FLAT) if form == "lines" else json.dumps(FLAT, indent=2 if form == "indented" else None)
    table = gl.read_table(_written(tmp_path, name, text))
    roles = {column.name: column.role for column in table.columns}
    assert [roles[key] for key in ("date", "network", "cost_usd", "installs")] == ["day", "network", "amount", "count"]
    assert outside_data.in_dollars(table)["spend"].sum() == 30.5
    assert table.rows.tolist() == [1, 2, 3]


@pytest.mark.shown_by(2)
@pytest.mark.parametrize("name", ["a.jsonl", "a.csv", "a.txt.gz", "a.zip"])
@pytest.mark.parametrize(
    "text",
    [
        _lines(NESTED),
        json.dumps(NESTED),
        json.dumps({"results": NESTED, "fieldMask": "x"}),
        json.dumps([{"results": NESTED[:1], "id": "a"}, {"results": NESTED[1:], "id": "b"}], indent=1),
    ],
)
def test_the_code_that_a_refusal_of_nested_objects_names_works(tmp_path: Path, name: str, text: str) -> None:
    """Its frame has a column for each inner key, and a format of a vendor reads it."""
    path = _written(tmp_path, name, text)
    with pytest.raises(BadQuery, match="is JSON whose objects hold others") as refused:
        gl.read_table(path)
    step = re.fullmatch(r".*: import ([\w, ]+) and pass (.+)", refused.value.rule)
    assert step is not None
    modules = {module: __import__(module) for module in step[1].split(", ")}
    table = eval(step[2].removesuffix(")") + ', currency="USD")', {"pd": pd, "gl": gl, **modules})
    assert table.starts.dt.day.tolist() == [1, 2]
    assert table.column("metrics.costMicros").values.tolist() == [2.5, 2.5]


@pytest.mark.parametrize(
    "whole",
    [
        [["date", "cost_usd"], ["2026-11-01", 1], ["2026-11-02", 2]],
        {"date": ["2026-11-01", "2026-11-02"], "cost_usd": [1, 2]},
        {"rows": [{"date": "2026-11-01", "cost_usd": 1}, {"date": "2026-11-02", "cost_usd": 2}], "report": "spend"},
    ],
)
def test_the_code_for_lists_and_columns_works(tmp_path: Path, whole: Any) -> None:
    path = _written(tmp_path, "a.json", json.dumps(whole))
    with pytest.raises(BadQuery) as refused:
        gl.read_table(path)
    step = re.fullmatch(r".*import ([\w, ]+) and pass (.+)", refused.value.rule)
    assert step is not None
    table = eval(step[2], {"pd": pd, "gl": gl, **{module: __import__(module) for module in step[1].split(", ")}})
    assert outside_data.in_dollars(table)["spend"].sum() == 3


def test_a_frame_from_elsewhere_becomes_a_table_as_the_refusal_says() -> None:
    """`in_dollars` takes frames of queries, which have a timestamp, and tables."""
    frame = pd.json_normalize(
        [{"when": "2026-11-01", "paid": {"usd": 2.5}}, {"when": "2026-11-02", "paid": {"usd": 3}}]
    )
    with pytest.raises(BadQuery, match=r"pass gl\.read_table\(frame\)"):
        outside_data.in_dollars(frame, amount="paid.usd")
    table = gl.read_table(frame, currency="USD")
    assert outside_data.in_dollars(table, amount="paid.usd")["spend"].sum() == 5.5


def test_a_damaged_line_is_named(tmp_path: Path) -> None:
    path = _written(tmp_path, "a.jsonl", _lines(FLAT) + '{"date": "2026-11\n')
    with pytest.raises(BadQuery, match="line 4 is none"):
        gl.read_table(path)


@pytest.mark.parametrize("text", ["[Day],[Cost (USD)]\n2026-11-01,1\n2026-11-02,2\n2026-11-03,4\n"])
def test_a_header_in_brackets_is_no_json(tmp_path: Path, text: str) -> None:
    assert len(gl.read_table(_written(tmp_path, "a.csv", text)).rows) == 3


@pytest.mark.parametrize("header", ['Spend "net"', "Spend \\ net", "Cost 'a' \"b\""])
def test_a_step_spells_a_header_with_quotation_marks(tmp_path: Path, header: str) -> None:
    """The argument that a refusal names is valid Python."""
    frame = pd.DataFrame({"Date": ["2026-11-01", "2026-11-02"], header: [1.0, 2.0], "Budget Revenue": [3.0, 4.0]})
    with pytest.raises(BadQuery) as refused:
        raise BadQuery(header, "x", f'is no cost: roles={{"{header}": "cost"}} if it is')
    (roles,) = re.findall(r"roles=(\{.*?\}) if", str(refused.value))
    assert gl.read_table(frame, roles=eval(roles)).column(header).concept == "cost"


def _opened(path: Path) -> Any:
    """Return the table that the code of the refusal opens."""
    with pytest.raises(BadQuery, match="is JSON whose objects hold others") as refused:
        gl.read_table(path)
    step = re.fullmatch(r".*: import ([\w, ]+) and pass (.+)", refused.value.rule)
    assert step is not None
    return eval(step[2], {"pd": pd, "gl": gl, **{module: __import__(module) for module in step[1].split(", ")}})


def test_what_stands_above_lists_of_rows_is_kept(tmp_path: Path) -> None:
    """The day, the unit and the platform of rows, as mediation has them; a number of all of them is said."""
    reports = [
        {"date": f"2026-11-0{day}", "adUnits": unit, "platform": "Android", "total": 5.0, "data": rows}
        for day in (1, 2)
        for unit in ("Banner", "Interstitial")
        for rows in [[{"country": code, "revenue": day + 0.5} for code in ("US", "DE")]]
    ]
    path = _written(tmp_path, "report.json", json.dumps(reports))
    with pytest.raises(BadQuery, match=r"nor has what stands once for several rows, 'total'\)"):
        gl.read_table(path)
    table = _opened(path)
    assert len(table.rows) == 8
    assert [table.column(name).role for name in ("date", "platform", "country")] == ["day", "platform", "country"]
    assert table.frame["revenue"].sum() == 16


def test_rows_deep_within_one_object_are_found(tmp_path: Path) -> None:
    """With the texts beside them, such as the currency, also where an inner key has the same name."""
    rows = [{"start_date": f"2026-11-0{day}", "source": "Meta", "adn_cost": 10.0, "status": "on"} for day in (1, 2)]
    answer = {"status": "done", "code": 200, "value": {"metadata": {"currency": "EUR"}, "results": rows}}
    table = _opened(_written(tmp_path, "report.json", json.dumps(answer)))
    assert table.frame["adn_cost"].sum() == 20
    assert table.frame["value.metadata.currency"].unique().tolist() == ["EUR"]
    assert table.frame["outer status"].unique().tolist() == ["done"]
    assert table.column("adn_cost").currency == "EUR"


def _levels(*, is_text: bool) -> dict[str, Any]:
    """Return a report whose levels each have their sums, with the currency in an object beside them."""

    def number(value: float) -> Any:
        return str(value) if is_text else value

    def days(most: int) -> list[dict[str, Any]]:
        return [{"date": f"2026-11-0{day}", "spend": number(most / day), "clicks": number(day)} for day in (1, 2)]

    campaigns = [
        {
            "name": name,
            "info": {"id": most},
            "spend": number(3 * most),
            "platforms": [
                {"os": os, "spend": number(1.5 * part), "series": days(part)}
                for os, part in (("iOS", most - 7), ("Android", most + 7))
            ],
        }
        for name, most in (("A", 50), ("B", 90))
    ]
    report = {"currency": "PLN", "timezone": "Europe/Warsaw", "page": {"size": 2}}
    return {"report": report, "summary": {"spend": number(420)}, "campaigns": campaigns}


@pytest.mark.parametrize("is_text", [False, True])
def test_code_for_levels_with_their_sums_runs(tmp_path: Path, *, is_text: bool) -> None:
    """What stands beside the list of rows is a column, and the sums of the levels above are left out."""
    table = _opened(_written(tmp_path, "report.json", json.dumps(_levels(is_text=is_text))))
    assert len(table.rows) == 8
    assert table.column("spend").currency == "PLN"
    assert table.column("spend").values.sum() == 420
    assert table.frame.groupby("platforms.os", observed=True)["spend"].sum().tolist() == [231, 189]


def test_names_that_the_code_cannot_reach_are_left_out_of_it(tmp_path: Path) -> None:
    """An object within a level between lists has no column; the code runs without it, and says what it leaves."""
    rows = [
        {
            "team": {"lead": "x"},
            "unit": "u",
            "parts": [{"who": {"name": "Meta"}, "days": [{"day": "2026-11-01", "cost": 1}]}],
        }
    ]
    path = _written(tmp_path, "deep.json", json.dumps({"rows": rows, "day": "2026-11-30", "warnings": []}))
    with pytest.raises(BadQuery, match=r"'rows\.team\.lead'"):
        gl.read_table(path)
    table = _opened(path)
    assert table.frame["parts.who.name"].tolist() == ["Meta"]
    assert table.frame["unit"].tolist() == ["u"]
    assert (table.frame["day"].dt.day.tolist(), table.frame["outer day"].dt.day.tolist()) == ([1], [30])


def _part(factor: int) -> list[dict[str, Any]]:
    return [{"country": code, "spend": factor * 1.5, "installs": factor} for code in ("US", "DE")]


@pytest.mark.parametrize(
    ("whole", "names", "spend"),
    [
        ({"code": 0, "Data": {"2026-11-01": _part(1), "2026-11-02": _part(2)}, "Total": {"spend": 9}}, ["day"], 9),
        ({"currency": "EUR", "20261101": _part(1), "20261102": _part(2), "total": {"spend": 9.5}}, ["day"], 9),
        ({"meta": {"currency": "EUR"}, "report": {"Meta": _part(1), "Google Ads": _part(2)}}, ["network"], 9),
        (
            {"data": {"2026-11-01": {"US": {"spend": 1}, "DE": {"spend": 3}}, "2026-11-02": {"US": {"spend": 1}}}},
            ["day", "country"],
            5,
        ),
        (
            {"US": {"2026-11-01": {"spend": 1}, "2026-11-02": {"spend": 2}}, "DE": {"2026-11-01": {"spend": 5}}},
            ["country", "day"],
            8,
        ),
        ({"2026-11-01": {"spend": 1, "day": "Sun"}, "2026-11-02": {"spend": 2, "day": "Mon"}}, ["day"], 3),
        ({"result": {"2026-11-01": [{"spend": 1, "network": "Meta"}]}}, ["day"], 1),
        ({"paid": [{"spend": 7}], "organic": [{"installs": 1}], "page": {"size": 2}}, [], 7),
    ],
)
def test_keys_of_objects_are_names_and_days(
    tmp_path: Path, whole: dict[str, Any], names: list[str], spend: float
) -> None:
    """The code of the refusal makes them columns; a total beside the days is in no row."""
    table = _opened(_written(tmp_path, "report.json", json.dumps(whole)))
    assert table.frame["spend"].sum() == spend
    assert {*names} <= {column.role for column in table.columns}
    assert (table.column("spend").currency == "EUR") == ("EUR" in json.dumps(whole))


def _campaigns() -> dict[str, Any]:
    """Return an answer with lists of plain values beside lists of rows, and amounts with their currency."""

    def money(amount: float) -> dict[str, Any]:
        return {"value": amount, "currencyCode": "CHF"}

    items = [
        {
            "setup": {"title": f"Tale {at}", "markets": markets, "bid": money(2), "tags": ["new", "test"]},
            "sums": {"spend": money(7 * at), "views": 9},
            "series": [{"day": f"2026-07-0{day}", "spend": money(at * day), "views": 3 * day} for day in (1, 2)],
        }
        for at, markets in ((1, ["AT"]), (2, ["CH"]), (3, ["PL"]))
    ]
    whole = {"sums": {"spend": money(18), "views": 27}, "places": ["feed", "story"], "unit": ["hour"]}
    return {"answer": {"items": items, "whole": whole}, "paging": {"next": None, "left": 0, "size": 3}}


def test_lists_of_plain_values_are_columns(tmp_path: Path) -> None:
    """One value is this value, several are a text."""
    table = _opened(_written(tmp_path, "report.json", json.dumps(_campaigns())))
    frame = table.frame
    assert table.column("setup.markets").role == "country"
    assert frame.groupby("setup.markets", observed=True)["spend.value"].sum().to_dict() == {"AT": 3, "CH": 6, "PL": 9}
    assert frame["setup.tags"].unique().tolist() == ["new, test"]
    assert frame["answer.whole.places"].unique().tolist() == ["feed, story"]
    assert table.column("spend.value").currency == "CHF"


def test_refusal_names_all_that_its_code_drops(tmp_path: Path) -> None:
    """An object that is dropped as a whole once; currencies of its amounts with it."""
    path = _written(tmp_path, "report.json", json.dumps(_campaigns()))
    dropped = "'answer.whole.sums', 'paging', 'answer.items.setup.bid', 'answer.items.sums'"
    with pytest.raises(BadQuery, match=re.escape(f"(nor has what stands once for several rows, {dropped})")) as refused:
        gl.read_table(path)
    assert "'currencyCode'" not in refused.value.rule


def test_refusal_names_what_stands_beside_the_first_of_several_lists(tmp_path: Path) -> None:
    whole = {"days": [{"day": "2026-07-01", "cost": 3}], "games": [{"title": "Tale"}], "currency": "CHF", "cost": 3}
    with pytest.raises(BadQuery, match=r"nor has what stands once for several rows, 'currency', 'cost'\)"):
        gl.read_table(_written(tmp_path, "report.json", json.dumps(whole)))


def test_currency_of_totals_is_kept_where_rows_name_none(tmp_path: Path) -> None:
    whole = {"rows": [{"day": "2026-07-01", "spend": 3}], "totals": {"spend": 3, "currency": "CHF"}}
    table = _opened(_written(tmp_path, "report.json", json.dumps(whole)))
    assert table.frame["totals.currency"].tolist() == ["CHF"]


@pytest.mark.parametrize("form", ["lines", "array", "frame"])
def test_rows_with_lists_of_plain_values_are_flat(tmp_path: Path, form: str) -> None:
    rows = [
        {"day": "2026-07-01", "geo": ["AT"], "cost_usd": [3.5], "tags": ["a", "b"]},
        {"day": "2026-07-02", "geo": ["CH"], "cost_usd": [4], "tags": []},
    ]
    text = _lines(rows) if form == "lines" else json.dumps(rows)
    table = gl.read_table(pd.DataFrame(rows) if form == "frame" else _written(tmp_path, "rows.json", text))
    assert table.column("geo").role == "country"
    assert table.frame["geo"].tolist() == ["AT", "CH"]
    assert table.frame["cost_usd"].tolist() == [3.5, 4]
    assert table.frame["tags"].isna().tolist() == [False, True]


def test_lists_of_one_object_are_still_its_columns(tmp_path: Path) -> None:
    table = _opened(
        _written(tmp_path, "columns.json", json.dumps({"day": ["2026-07-01", "2026-07-02"], "cost": [3, 4]}))
    )
    assert table.frame["cost"].tolist() == [3, 4]
