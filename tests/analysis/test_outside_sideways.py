"""Tables that lie on their side, ranges of days as people write them, and units of counts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import gamelens as gl
from gamelens.analysis import outside_data
from gamelens.analysis.files.date_parsing import read_times
from gamelens.errors import BadQuery
from support.tidy_frames import tidy_frame


def written(path: Path, *lines: str, encoding: str = "utf-8") -> Path:
    """Write lines and return *path*."""
    path.write_text("\n".join([*lines, ""]), encoding=encoding)
    return path


@pytest.mark.parametrize(
    "text",
    [
        "Oct 5–11, 2026",
        "5-11 Oct 2026",
        "5.-11. Oktober 2026",
        "5.–11.10.2026",
        "05.10.–11.10.2026",
        "10/5-10/11/2026",
        "Oct 5 - Oct 11, 2026",
        "5 de octubre al 11 de octubre de 2026",
        "2026年10月5日～11日",
        "2026年10月5日～10月11日",
        "2026. 10. 5 ~ 10. 11",
        "2026/10/05-10/11",
        "KW 41 (05.10.2026–11.10.2026)",
        "Week of Oct 5, 2026",
        "W/C 5 Oct 2026",
        "Woche vom 05.10.2026",
    ],
)
def test_a_week_is_read_in_any_form(text: str) -> None:
    """Also where the order of day and month is told only by the length of a range."""
    read = read_times([text], field="week", day_first=True if text.startswith("Woche") else None)
    assert read.precision == "period"
    assert read.until is not None
    assert (str(read.at[0])[:10], str(read.until[0])[:10]) == ("2026-10-05", "2026-10-12")


@pytest.mark.parametrize("week", ["Oct 5–11", "5.–11.10.", "5-11 Oct", "10/5-10/11", "10月5日～11日", "Week of Oct 5"])
def test_a_week_without_a_year_takes_that_of_the_title(tmp_path: Path, week: str) -> None:
    later = {"Oct 5–11": "Oct 26–Nov 1", "10/5-10/11": "10/26-11/1"}.get(
        week, week.replace("5", "12").replace("11", "18")
    )
    path = written(tmp_path / "weeks.csv", "Costs 2026", "", "Week;Cost (USD)", f"{week};10", f"{later};20")
    table = gl.read_table(path)
    assert (table.periods.problem, table.starts[0].date().isoformat(), table.ends[0].date().isoformat()) == (
        None,
        "2026-10-05",
        "2026-10-12",
    )


def test_ends_before_it_begins_is_no_range(tmp_path: Path) -> None:
    with pytest.raises(BadQuery, match="ends before it begins"):
        read_times(["Oct 11–5, 2026"], field="week")


@pytest.mark.shown_by(2)
@pytest.mark.parametrize("mark", ["o/w ", "  ", "- ", "davon ", "в т.ч. ", "其中:"])
def test_measures_in_rows_become_columns(tmp_path: Path, mark: str) -> None:
    """A sum beside its parts counts once, and thousands hold for counts as for money."""
    path = written(
        tmp_path / "deck.csv",
        "Weekly review 2026,,,",
        ",Oct 5–11,Oct 12–18,WoW",
        "Spend ($k),3.5,4.5,+29%",
        f"{mark}Meta,1.5,2.5,",
        f"{mark}Google,2.0,2.0,",
        "Installs (k),3.0,4.0,",
        f"{mark}Meta,1.0,2.0,",
        f"{mark}Google,2.0,2.0,",
        "CPI ($),1.17,1.13,",
    )
    table = gl.read_table(path, currency="USD")
    assert table.column("Spend ($k)").values.tolist() == [1500, 2000, 2500, 2000]
    assert table.column("Installs (k)").values.tolist() == [1000, 2000, 2000, 2000]
    assert table.column("name").values.tolist() == ["Meta", "Google"] * 2
    assert table.period == "week from Monday"
    assert "column_1 names measures, which are columns here: Spend ($k), Installs (k), CPI ($)" in table.notes
    assert any(note.startswith("row 3 of deck.csv") and "adds up others" in note for note in table.notes)


def test_rows_of_one_measure_stay_rows(tmp_path: Path) -> None:
    path = written(tmp_path / "wide.csv", "Network,2026-11-01,2026-11-02", "Meta,1,2", "Moloco,3,4")
    table = gl.read_table(path, roles={"value": "cost"}, currency="USD")
    assert outside_data.in_dollars(table)["spend"].sum() == 10


@pytest.mark.parametrize(
    ("header", "scale"),
    [
        ("Installs (k)", 1e3),
        ("Installs, in thousands", 1e3),
        ("安装(万)", 1e4),
        ("Impressions (mn)", 1e6),
        ("Installs", 1),
    ],
)
def test_counts_have_the_unit_of_their_header(tmp_path: Path, header: str, scale: float) -> None:
    path = written(tmp_path / "counts.csv", f'Day,"{header}"', "2026-11-01,2.5" if scale > 1 else "2026-11-01,2")
    assert gl.read_table(path).column(header).values.tolist() == [2.5 * scale if scale > 1 else 2]


def test_marks_of_direction_are_no_part_of_a_number_or_name(tmp_path: Path) -> None:
    """A quotation mark within a cell is a letter; one that opens a cell and stays open is named with its line."""
    rows = ['3.11.2026,ישראל,"\u200f1,051.60 ₪"', '13.11.2026,\u200eישראל\u200f,"\u200f-10.60 ₪"', 'סה"כ,,"‏1,041.00 ₪"']
    table = gl.read_table(written(tmp_path / "he.csv", "תאריך,מדינה,הוצאה", *rows))
    assert table.column("הוצאה").values.tolist() == [1051.6, -10.6]
    assert table.column("הוצאה").currency == "ILS"
    assert table.column("מדינה").values.nunique() == 1
    open_ = written(
        tmp_path / "open.csv", "Day,Name,Cost (USD)", '2026-11-01,"a, b",1', '2026-11-02,"c,2', '2026-11-03,d,"3"'
    )
    with pytest.raises(BadQuery, match=r"quotation mark in line \d .* that is never closed: close it there"):
        gl.read_table(written(open_, "Day,Name,Cost (USD)", '2026-11-01,"a, b",1', '2026-11-02,"c,2'))


def test_a_rate_counts_rows_without_installs(tmp_path: Path) -> None:
    """A cost that bought nothing is part of the cost of an install."""
    rows = ["18-24,10,5,2", "25-34,7,,", "35-44,12,4,3", "45-54,9,3,3", "55+,8,8,1"]
    path = written(
        tmp_path / "meta.csv", "Day,Age,Cost (USD),Installs,Cost per install", *(f"2026-11-01,{row}" for row in rows)
    )
    frame = tidy_frame("new_users", timestamp=["2026-11-01"], new_users=[20])
    joined = gl.join(frame, path, columns=["Cost per install"]).frame
    assert joined["Cost per install"].tolist() == [46 / 20]


def test_days_of_a_title_join_costs(tmp_path: Path) -> None:
    """Without a column of days the whole table is of the days above it."""
    path = written(
        tmp_path / "asa.csv", "Date range: 2026-10-12 to 2026-10-18", "", "Storefront,Spend (USD)", "GB,30", "IE,8"
    )
    frame = tidy_frame("new_users", country_code=["GB", "IE"], new_users=[10, 4])
    found = outside_data.cost_per_install(frame, "country_code", spend=path)
    assert dict(zip(found["country_code"], found["cpi"], strict=True)) == {"GB": 3.0, "IE": 2.0}


def test_income_is_not_what_was_spent(tmp_path: Path) -> None:
    """Nor is an exchange rate an amount; one of several amounts is not chosen beside income."""
    path = written(tmp_path / "earned.csv", "Country,Proceeds (USD)", "GB,30", "IE,8")
    frame = tidy_frame("new_users", country_code=["GB", "IE"], new_users=[10, 4])
    with pytest.raises(BadQuery, match=r'is income .*, not what was spent: roles=\{"Proceeds \(USD\)": "cost"\}'):
        outside_data.cost_per_install(frame, "country_code", spend=path, amount="Proceeds (USD)")
    told = outside_data.cost_per_install(frame, "country_code", spend=path, roles={"Proceeds (USD)": "cost"})
    assert told["spend"].sum() == 38
    assert outside_data.in_dollars(path, "Proceeds (USD)")["spend"].sum() == 38
    rates = written(tmp_path / "rates.csv", "Date,USD/EUR", "2026-11-01,1.1", "2026-11-02,1.2")
    with pytest.raises(BadQuery, match="is an exchange rate, no amount: pass the table as rate="):
        outside_data.in_dollars(rates, "USD/EUR")
    both = written(tmp_path / "both.csv", "Country,Adjustment amount (USD),Proceeds (USD)", "GB,-1,30", "IE,0,8")
    with pytest.raises(BadQuery, match="has no column of costs"):
        outside_data.in_dollars(both)
    assert np.isclose(outside_data.in_dollars(both, "Proceeds (USD)")["spend"].sum(), 38)


@pytest.mark.parametrize(
    ("cell", "currency"),
    [
        ("1200,50 грн", "UAH"),
        ("1.200,50 đ", "VND"),
        ("1,200.50 บาท", "THB"),
        ("1,200.50 ש''ח", None),
        ("KSh 1,200.50", "KES"),
    ],
)
def test_words_of_currencies_stand_beside_numbers(tmp_path: Path, cell: str, currency: str | None) -> None:
    cell = cell.replace("''", '""')
    path = written(tmp_path / "words.csv", "Day;Cost", f'2026-11-01;"{cell}"', f'2026-11-02;"{cell}"')
    column = gl.read_table(path).column("Cost")
    assert (column.currency, column.values.tolist()) == (currency or "ILS", [1200.5, 1200.5])


@pytest.mark.parametrize("suffix", ["csv", "xlsx"])
def test_two_rows_of_headers_are_one(tmp_path: Path, suffix: str) -> None:
    """A name above several columns tells equal ones apart, also with a third row of units; a title is none."""
    rows: list[list[Any]] = [
        ["Costs 2026", "", "", "", "", "", ""],
        ["", "Meta", "", "", "Google", "", ""],
        ["Day", "Plan", "Spend", "Installs", "Plan", "Spend", "Installs"],
        ["", "(USD)", "(USD)", "(k)", "(USD)", "(USD)", "(k)"],
        ["2026-11-01", 10, 11, 2, 20, 21, 3],
        ["2026-11-02", 10, 12, 2, 20, 22, 3],
    ]
    path = tmp_path / f"two.{suffix}"
    if suffix == "csv":
        path.write_text("\n".join(",".join(map(str, row)) for row in rows) + "\n")
    else:
        pd.DataFrame(rows).replace("", None).to_excel(path, header=False, index=False)
    table = gl.read_table(path)
    assert [column.name for column in table.columns] == [
        "Day",
        *(f"{network} {of}" for network in ("Meta", "Google") for of in ("Plan (USD)", "Spend (USD)", "Installs (k)")),
    ]
    assert outside_data.in_dollars(path, "Google Spend (USD)")["spend"].sum() == 43
    assert table.column("Meta Installs (k)").values.tolist() == [2000, 2000]


def test_merged_names_beside_months_as_headers_are_filled(tmp_path: Path) -> None:
    """So totals of a region are found; Sep-26 beside Oct-26 and Nov-26 is a month; a title says that it is a plan."""
    lines = [
        "User acquisition budget,,,,", "", "Region,Network,Sep-26,Oct-26,Nov-26", "NA,Google,90,151,162",
        ",Meta,120,95,172", ",Moloco,5,6,7", "NA total,,215,252,341", "EMEA,Google,52,88,72", ",Meta,69,77,97",
        ",Unity,1,2,3", "EMEA total,,122,167,172", "Net change,,337,419,513",
    ]  # fmt: skip
    path = tmp_path / "plan.csv"
    path.write_text("\n".join([*lines, ""]), encoding="utf-8")
    value = "User acquisition budget"
    table = gl.read_table(path, roles={value: "cost"}, currency="USD")
    assert (table.period, len(table.rows), table.column(value).values.sum()) == ("month", 18, 1269)
    assert table.frame.groupby("Region")[value].sum().to_dict() == {"NA": 808, "EMEA": 461}
    assert any("amounts may be planned and not spent" in note for note in table.notes)
