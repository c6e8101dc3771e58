"""The days of all rows of a table without a column of days: of a line beside it, a file's name, or an argument."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from pathlib import Path

import pandas as pd
import pytest

import gamelens as gl
from gamelens.analysis import outside_data
from gamelens.analysis.outside_data.outside_table import OutsideTable
from gamelens.errors import BadQuery
from support.tidy_frames import tidy_frame

WriteFile = Callable[..., Path]

ROWS = "Network;Cost (EUR)\nMeta;12\nMoloco;15\n"


def days_of(table: OutsideTable) -> tuple[str, str] | None:
    """Return the first and the last day of the rows."""
    if table.interval is None:
        return None
    return f"{table.starts.min():%Y-%m-%d}", f"{table.ends.max() - pd.Timedelta(days=1):%Y-%m-%d}"


@pytest.mark.shown_by(4)
@pytest.mark.parametrize(
    "line",
    [
        "Settlement Period,2026-10-01 ~ 2026-10-31",
        "Settlement Period: 01.10.2026 - 31.10.2026",
        "※集計期間：2026年10月1日～2026年10月31日",
        "Période du 01/10/2026 au 31/10/2026",
        "Reporting period 2026/10/01-2026/10/31 (UTC)",
        "Report for Oct 1 - Oct 31, 2026",
        "Settlement month: 2026-10",
        "Ad costs October 2026",
        "Kosten Oktober 2026",
    ],
)
def test_a_line_beside_the_table_has_the_days_of_its_rows(file: WriteFile, line: str) -> None:
    """Other days beside it, such as that of the payment, are no days of the rows."""
    table = gl.read_table(file(f"Seller;Pinewood\n{line}\nPayment date;2026-11-25\nIssued;2026-11-05\n\n{ROWS}"))
    assert days_of(table) == ("2026-10-01", "2026-10-31")


@pytest.mark.parametrize(
    "line",
    ["Issued 2026-11-05", "Exported November 2026", "Invoice 2026-11", "Paid from 2026-11-05, due 2026-11-25"],
)
def test_other_days_beside_a_table_are_no_period(file: WriteFile, line: str) -> None:
    """A bill is printed and paid later than the days that it is of."""
    assert gl.read_table(file(f"{line}\n\n{ROWS}")).period is None


@pytest.mark.shown_by(4)
@pytest.mark.parametrize(
    ("name", "days"),
    [
        ("Revenue_Oct-2026_INR.csv", "2026-10"),
        ("Settlement_202610.csv", "2026-10"),
        ("costs 10.2026.csv", "2026-10"),
        ("a_november_2026.csv", "2026-11"),
        ("report_oct2026.csv", "2026-10"),
        ("x_20261101_20261114.csv", "2026-11-01/2026-11-14"),
        ("x_2026-11-14.csv", "2026-11-14"),
        ("FY2026_plan.csv", ""),
        ("export_1234567.csv", ""),
        ("v2.10.2026.1.csv", ""),
    ],
)
def test_the_name_of_a_file_names_days_that_an_argument_takes(file: WriteFile, name: str, days: str) -> None:
    """Amounts may have been exported in that month, so that it is said and not taken."""
    path = file(ROWS, name)
    steps = [note for note in gl.read_table(path).notes if "says its days: " in note]
    assert [note.partition("says its days: ")[2].partition(" ")[0] for note in steps] == [f'days="{days}"'] * bool(days)
    if days:
        first, _, last = days.partition("/")
        table = gl.read_table(path, days=days)
        assert f"{table.starts[0]:%Y-%m-%d}".startswith(first)
        assert not last or f"{table.ends[0]:%Y-%m-%d}" == "2026-11-15"


@pytest.mark.parametrize(
    ("days", "rule"),
    [
        ("October", "is no day, month or period"),
        ("2026-10-31/2026-10-01", "its first day comes first"),
        ("2026-10-01/2026-10-05/2026-10-09", "is no period"),
    ],
)
def test_days_that_are_no_period_are_refused(file: WriteFile, days: str, rule: str) -> None:
    with pytest.raises(BadQuery, match=rule):
        gl.read_table(file(ROWS), days=days)


def test_days_of_a_table_that_has_them_are_refused(file: WriteFile) -> None:
    path = file("Day;Cost (EUR)\n2026-10-01;12\n2026-10-02;15\n")
    with pytest.raises(BadQuery, match="is of tables without days, and Day has them"):
        gl.read_table(path, days="2026-10")
    assert gl.read_table(path, days="2026-10", roles={"Day": "text"}).period == "period"


@pytest.mark.parametrize(
    ("days", "last"), [("Q4 2026", "2026-12-31"), ("2026-W45", "2026-11-08"), ("2026-10-05", "2026-10-05")]
)
def test_days_may_be_a_quarter_a_week_or_one_day(file: WriteFile, days: str, last: str) -> None:
    table = gl.read_table(file(ROWS), days=days)
    assert f"{table.ends[0] - pd.Timedelta(days=1):%Y-%m-%d}" == last


def test_a_single_first_of_a_month_in_a_file_of_the_month_is_asked_about(file: WriteFile) -> None:
    """A list of stores has the month as its first day; a file of one day has that day in its name."""
    text = "Rank,App,Date,Revenue (USD)\n1,A,2026-10-01,500\n2,B,2026-10-01,300\n"
    problem = gl.read_table(file(text, "Top_Apps_2026-10.csv")).periods.problem
    assert problem is not None
    assert 'may be days or months (2026-10-01): say so with roles={"Date": "day"} or roles={"Date": "month"}' in str(
        problem
    )
    assert gl.read_table(file(text, "Top_Apps_2026-10-01.csv")).period == "day"
    assert gl.read_table(file(text, "Top_Apps_2026-10.csv"), roles={"Date": "month"}).period == "month"


def test_a_join_says_that_a_table_has_no_days(file: WriteFile) -> None:
    """Its amounts stand beside whatever days the frame has, also one month alone."""
    frame = tidy_frame("new_users", timestamp=[date(2026, 11, 1)], new_users=[4]).assign(install_publisher="Meta")
    warned = gl.join(frame, file(ROWS, "costs.csv")).report.warnings
    assert [note for note in warned if "costs.csv has no days: its numbers stand beside the days of the frame" in note]
    assert not [
        note for note in gl.join(frame, file("Network;Owner\nMeta;Ada\n")).report.warnings if "has no days" in note
    ]
    october = file(ROWS, "costs_2026-10.csv")
    assert [note for note in gl.join(frame, october).report.warnings if 'days="2026-10"' in note]
    with pytest.raises(BadQuery):
        outside_data.cost_per_install(frame, spend=october, days="2026-10", rate=1.1)
