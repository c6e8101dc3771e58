"""Days that name no year: by a line beside the table, a month above them, an argument, or asked about."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import gamelens as gl
from gamelens.analysis import outside_data
from gamelens.analysis.files.days_without_year import NoYear, dates_of
from gamelens.errors import BadQuery

WriteFile = Callable[..., Path]


def table_of(file: WriteFile, days: list[str], *above: str, header: str = "Date") -> Path:
    """Return a file with 1, 2, 3, ... dollars on *days*, below the lines *above*."""
    rows = [f"{day};Meta;{place}" for place, day in enumerate(days, 1)]
    return file("\n".join([*(f"{line};;" for line in above), f"{header};Network;Cost (USD)", *rows, ""]), "costs.csv")


def days(path: Path, **reading: Any) -> list[str]:
    """Return the days of the rows."""
    return [f"{day:%Y-%m-%d}" for day in outside_data.in_dollars(path, **reading)["timestamp"]]


WRITTEN = [
    (["01.11.", "02.11."], "Datum", ["2026-11-01", "2026-11-02"]),
    (["31.10.", "01.11."], "Tag", ["2026-10-31", "2026-11-01"]),
    (["Mo, 02.11.", "Di, 03.11."], "Datum", ["2026-11-02", "2026-11-03"]),
    (["10/31", "11/1"], "Date", ["2026-10-31", "2026-11-01"]),
    (["31-10", "1-11"], "Fecha", ["2026-10-31", "2026-11-01"]),
    (["Sep 5", "Sep 27"], "Date", ["2026-09-05", "2026-09-27"]),
    (["26. Okt", "1. Nov"], "Datum", ["2026-10-26", "2026-11-01"]),
    (["26 sept.", "27 sept."], "Jour", ["2026-09-26", "2026-09-27"]),
    (["Sat, Oct 31", "Sun, Nov 1"], "Date", ["2026-10-31", "2026-11-01"]),
    (["October 30th", "October 31st"], "Day", ["2026-10-30", "2026-10-31"]),
    (["11月1日", "11月2日"], "日付", ["2026-11-01", "2026-11-02"]),
    (["11월 1일", "11월 2일"], "날짜", ["2026-11-01", "2026-11-02"]),
    (["1 ноября", "2 ноября"], "Дата", ["2026-11-01", "2026-11-02"]),
]


@pytest.mark.shown_by(2)
@pytest.mark.parametrize(("cells", "header", "meant"), WRITTEN)
def test_days_without_a_year_take_the_one_that_is_stated(
    file: WriteFile, cells: list[str], header: str, meant: list[str]
) -> None:
    """By the title, which is said; without one it is asked for, and the argument works."""
    path = table_of(file, cells, header=header)
    with pytest.raises(BadQuery, match=r"names no year.*year=2026 reads it as of 2026"):
        outside_data.in_dollars(path)
    assert days(path, year=2026) == meant
    for line in ("Kostenbericht 2026 (in USD)", "Campaign costs, Q4 2026"):
        titled = table_of(file, cells, line, header=header)
        assert days(titled) == meant
        assert f"{header}: {cells[0]} is read as {meant[0]}, by {line!r}" in str(gl.read_table(titled))


@pytest.mark.parametrize(
    "line",
    [
        "Exported 2027-01-03", "Stand: 3. Januar 2027", "Generated Jan 3, 2027", "FY 2027", "© 2027 Vendor Inc.",
        "Account: 2031", "Kundennummer 2027", "Geschäftsjahr 2026/27",
    ],
)  # fmt: skip
def test_a_line_about_something_else_states_no_year(file: WriteFile, line: str) -> None:
    """When a file was written, a financial year, a number of an account."""
    with pytest.raises(BadQuery, match="names no year"):
        outside_data.in_dollars(table_of(file, ["12/30", "12/31"], line))


@pytest.mark.parametrize(
    ("lines", "meant"),
    [
        (["Period: 2026-12-30 - 2027-01-02"], ["2026-12-30", "2026-12-31", "2027-01-01"]),
        (["Report 2026", "30.12.2026 – 31.01.2027"], None),
        (["Dezember 2026"], None),
        (["Costs 2026"], None),
    ],
)
def test_a_range_tells_days_of_two_years(file: WriteFile, lines: list[str], meant: list[str] | None) -> None:
    """One year cannot hold New Year's Eve and the day behind it."""
    path = table_of(file, ["Dec 30", "Dec 31", "Jan 1"], *lines)
    if meant:
        assert days(path) == meant
        return
    with pytest.raises(BadQuery, match=r"'(Dec 30|Jan 1)' is (not of one year|beside Dec 31)"):
        outside_data.in_dollars(path)


def test_a_month_with_two_digits_of_a_year_is_asked_about(file: WriteFile) -> None:
    """Both readings are named with what says them, and each works."""
    path = table_of(file, ["Sep 26", "Okt 26"])
    with pytest.raises(BadQuery, match="may be day 26 of month 9, or month 9 of 2026") as refused:
        outside_data.in_dollars(path)
    for step in ("year=2026 reads days of that year", 'roles={"Date": "month"} reads months'):
        assert step in str(refused.value)
    assert days(path, year=2026) == ["2026-09-26", "2026-10-26"]
    assert days(path, roles={"Date": "month"}) == ["2026-09-01", "2026-10-01"]
    assert gl.read_table(path, roles={"Date": "month"}).period == "month"
    with pytest.raises(BadQuery, match="may be day 26"):
        outside_data.in_dollars(table_of(file, ["Sep 26", "Okt 26"], "Report 2026"))


@pytest.mark.parametrize(
    ("cells", "header", "lines", "meant"),
    [
        (["Sep 25", "Sep 26"], "Date", ["Report for September 2026"], ["2026-09-25", "2026-09-26"]),
        (["Sep 26", "Okt 26"], "Monat", [], ["2026-09-01", "2026-10-01"]),
        (["Sep '26", "Oct '26"], "Date", [], ["2026-09-01", "2026-10-01"]),
        (["Sep 38", "Oct 38"], "Date", [], ["2038-09-01", "2038-10-01"]),
        (["September", "Oktober"], "Monat", ["Kosten 2026"], ["2026-09-01", "2026-10-01"]),
    ],
)
def test_evidence_tells_days_from_months(
    file: WriteFile, cells: list[str], header: str, lines: list[str], meant: list[str]
) -> None:
    assert days(table_of(file, cells, *lines, header=header)) == meant


@pytest.mark.parametrize(
    ("months", "cells"),
    [
        (("September 2026", "Oktober 2026"), ("Sep 26", "Sep 27", "Okt 1")),
        (("2026-09", "2026-10"), ("26.09.", "27.09.", "01.10.")),
        (("Sep 2026", "Oct 2026"), ("26", "27", "1")),
    ],
)
def test_a_month_above_its_days_has_their_year(
    file: WriteFile, months: tuple[str, str], cells: tuple[str, ...]
) -> None:
    rows = [f"{months[0]},,", f"{cells[0]},Meta,10", f"{cells[1]},Meta,11", f"{months[1]},,", f"{cells[2]},Meta,12"]
    path = file("\n".join(["Date,Network,Cost (USD)", *rows, ""]))
    assert days(path) == ["2026-09-26", "2026-09-27", "2026-10-01"]
    assert "rows 2, 5 of table.csv have only a month or the sums of its days, left out" in str(gl.read_table(path))


@pytest.mark.parametrize(("number", "is_read"), [("21", True), ("21.00", True), ("35", False)])
def test_a_month_with_the_sum_of_its_days_is_left_out(file: WriteFile, number: str, *, is_read: bool) -> None:
    """With any other number it is not clear what that is."""
    rows = [f"September 2026,,{number}", "Sep 26,Meta,10", "Sep 27,Meta,11"]
    path = file("\n".join(["Date,Network,Cost (USD)", *rows, ""]))
    if is_read:
        assert days(path) == ["2026-09-26", "2026-09-27"]
        return
    with pytest.raises(BadQuery, match="is no day, as its header says: write 2026-11-01"):
        outside_data.in_dollars(path)


def test_a_total_below_months_is_still_one(file: WriteFile) -> None:
    rows = ["Oktober 2026;;21", "Okt 26;Meta;10", "Okt 27;Meta;11", "November 2026;;9", "Nov 1;Meta;9", "Summe;;30"]
    path = file("\n".join(["Datum;Netzwerk;Kosten (USD)", *rows, ""]))
    assert outside_data.in_dollars(path)["spend"].tolist() == [10, 11, 9]


def test_only_the_first_day_has_its_year(file: WriteFile) -> None:
    """Days half a year from it are of another year, and are asked about."""
    assert days(table_of(file, ["Sep 26, 2026", "Sep 27", "Sep 28"])) == ["2026-09-26", "2026-09-27", "2026-09-28"]
    with pytest.raises(BadQuery, match="is no day, as its header says"):
        outside_data.in_dollars(table_of(file, ["31. Dez. 2026", "1. Jan."]))


def test_weeks_take_the_year_too(file: WriteFile) -> None:
    path = table_of(file, ["KW 44", "KW 45"], header="Woche")
    with pytest.raises(BadQuery, match=r"'KW 44' names no year.*year=2026"):
        outside_data.in_dollars(path)
    assert days(path, year=2026) == ["2026-10-26", "2026-11-02"]
    assert days(table_of(file, ["Week 44", "Week 45"], "Spend 2026", header="Week")) == ["2026-10-26", "2026-11-02"]
    with pytest.raises(BadQuery, match="is of another year than the others"):
        outside_data.in_dollars(table_of(file, ["W52", "W53", "W1"], header="Week"), year=2026)


def test_a_range_tells_days_from_months(file: WriteFile) -> None:
    """As in the other order they would lie outside it."""
    path = table_of(file, ["01/11", "02/11"], "Period: 01/11/2026 to 30/11/2026")
    assert days(path) == ["2026-11-01", "2026-11-02"]


@pytest.mark.parametrize("line", ["Kosten November 2026 (EUR)", "Spend 2026 in EUR", "Coste 2026 [EUR]"])
def test_a_title_has_the_year_and_the_currency(file: WriteFile, line: str) -> None:
    path = file(f"{line};;\nDatum;Netzwerk;Betrag\n01.11.;Meta;10,5\n02.11.;Meta;11\n")
    table = gl.read_table(path)
    assert table.column("Betrag").currency == "EUR"
    assert str(table.starts.iloc[0])[:10] == "2026-11-01"


def test_days_that_are_columns_take_the_year(file: WriteFile) -> None:
    path = file("Network,Nov 1,Nov 2,Nov 3\nMeta,10,11,12\n")
    assert gl.read_table(path, year=2026).starts.dt.day.tolist() == [1, 2, 3]


def test_fractions_are_no_days(file: WriteFile) -> None:
    """Only a header that says so, or an argument, makes days of 1/2."""
    table = gl.read_table(file("Report 2026,\nTest,Cost (USD)\n1/2,5\n2/3,6\n"))
    assert table.column("Test").role == "text"


@pytest.mark.parametrize(
    ("reading", "rule"),
    [
        ({"year": 26}, "is no year from 2015 to 2040"),
        ({"year": 2025}, "is no day of 2025"),
        ({}, "names no year"),
    ],
)
def test_a_year_must_have_the_days(file: WriteFile, reading: dict[str, Any], rule: str) -> None:
    with pytest.raises(BadQuery, match=rule):
        outside_data.in_dollars(table_of(file, ["29.02.", "01.03."]), **reading)


def test_days_and_months_may_be_swapped(file: WriteFile) -> None:
    path = table_of(file, ["1/11", "2/11"])
    with pytest.raises(BadQuery, match=r"'1/11' is day 1 of month 11, or day 11 of month 1.*day_first=True"):
        outside_data.in_dollars(path, year=2026)
    assert days(path, year=2026, day_first=True) == ["2026-11-01", "2026-11-02"]


@pytest.mark.parametrize("texts", [["Sep 26", "soon"], ["1.5", "77.2"], ["Sep 99"], ["a/b"], [""], ["2026-11-01"]])
def test_what_is_no_day_stays(texts: list[str]) -> None:
    assert dates_of(texts, field="Date", year=2026) is None


def test_a_range_must_hold_each_day_once() -> None:
    with pytest.raises(NoYear):
        dates_of(["Sep 5"], field="Date")


def test_all_in_capitals_is_no_currency_of_a_title(file: WriteFile) -> None:
    path = file("Spend 2026 (ALL);;\nDatum;Netzwerk;Betrag\n01.11.;Meta;10,5\n02.11.;Meta;11\n")
    assert gl.read_table(path).column("Betrag").currency is None
