"""Periods of a fiscal year are months where the file says in which month it begins; else that is asked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import gamelens as gl
from gamelens.errors import BadQuery
from support.outside_files import written
from support.tidy_frames import tidy_frame

ROWS = ("FY27-P02,DE,120.5", "FY27-P03,DE,99.25", "FY27-P03,FR,10", "FY27-P04,FR,31")
MAY = ["2026-11-01", "2026-12-01", "2026-12-01", "2027-01-01"]


def months_of(path: Path, **reading: Any) -> list[str]:
    table = gl.read_table(path, **reading)
    assert table.period == "month"
    return [str(day) for day in table.starts.dt.strftime("%Y-%m-%d")]


@pytest.mark.parametrize(
    "line",
    [
        "FY27 = 1 October 2026 - 30 September 2027",
        "FY2027: Oct 2026 to Sep 2027",
        "Fiscal year starts 1 October; P01 = October 2026",
        "GJ27 = Oktober 2026 bis September 2027 (P4 = Januar 2027)",
        "FY26 = 2025年10月1日～2026年9月30日",
        "The fiscal year begins on 1 October 2026",
    ],
)
def test_a_line_says_in_which_month_the_year_begins(tmp_path: Path, line: str) -> None:
    """That line is no period of all rows."""
    path = written(tmp_path / "royalties.tsv", line, "", "Fiscal period\tCountry\tRoyalties (EUR)", *map(tabbed, ROWS))
    assert months_of(path) == MAY
    frame = tidy_frame("new_users", timestamp=["2026-11-01", "2026-12-01"], new_users=[5, 6])
    frame.attrs["gamelens"]["asked"] |= {"every": "month", "interval": "2026-11-01T00:00Z/2027-01-01T00:00Z"}
    joined = gl.join(frame, path, roles={"Royalties (EUR)": "income"}, columns=["Royalties (EUR)"]).frame
    assert joined["Royalties (EUR)"].tolist() == [120.5, 109.25]


def tabbed(row: str) -> str:
    return row.replace(",", "\t")


@pytest.mark.parametrize(
    ("above", "step"),
    [((), '"first": "2027-01"'), (("The financial year begins on 1 October", ""), '"first": "2026-10"')],
)
def test_the_first_month_is_asked_for(tmp_path: Path, above: tuple[str, ...], step: str) -> None:
    path = written(tmp_path / "royalties.csv", *above, "Period,Country,Cost (EUR)", *ROWS)
    table = gl.read_table(path)
    assert table.period is None
    assert step in str(table.periods.problem)
    assert months_of(path, roles={"Period": {"role": "month", "first": "2026-10"}}) == MAY


def test_codes_without_a_year_are_periods_below_such_a_header_alone(tmp_path: Path) -> None:
    rows = ("P02,DE,1.5", "P03,DE,9.25")
    stated = written(tmp_path / "a.csv", "P01 = Oct 2026", "", "Fiscal period,Country,Cost (EUR)", *rows)
    assert months_of(stated) == MAY[:2]
    codes = written(tmp_path / "b.csv", "P01 = Oct 2026", "", "Placement,Country,Cost (EUR)", *rows)
    assert gl.read_table(codes).period is None


def test_quarters_of_a_fiscal_year_begin_with_it(tmp_path: Path) -> None:
    path = written(tmp_path / "q.csv", "FY26 = Apr 2026 - Mar 2027", "", "Quarter,Cost (EUR)", "FY26 Q3,7", "FY27 Q1,8")
    table = gl.read_table(path)
    assert table.starts.dt.strftime("%Y-%m").tolist() == ["2026-10", "2027-04"]
    assert table.ends.dt.strftime("%Y-%m").tolist() == ["2027-01", "2027-07"]


def test_thirteen_periods_are_no_months(tmp_path: Path) -> None:
    path = written(tmp_path / "p13.csv", "P01 = Oct 2026", "", "Period,Cost (EUR)", "FY27 P12,7", "FY27 P13,8")
    with pytest.raises(BadQuery, match="thirteenth period of a fiscal year"):
        raise gl.read_table(path).periods.problem  # type: ignore[misc]


def test_the_line_that_has_the_days_of_all_rows_is_named(tmp_path: Path) -> None:
    path = written(tmp_path / "bill.csv", "Settlement period: October 2026", "", "Country,Cost (EUR)", "DE,7", "FR,8")
    assert "All rows are of these days by a line beside the table ('Settlement period: October 2026')" in repr(
        gl.read_table(path)
    )


@pytest.mark.parametrize(
    "line",
    ["FY26 report from 1 October 2026 to 31 October 2026", "Period 7: 1 Oct 2026 - 31 Oct 2026"],
)
def test_a_line_with_the_period_of_the_table_stays_its_days(tmp_path: Path, line: str) -> None:
    path = written(tmp_path / "bill.tsv", line, "", "Country\tCost (EUR)", "DE\t7", "FR\t8")
    assert gl.read_table(path).starts.dt.strftime("%Y-%m-%d").tolist() == ["2026-10-01"] * 2


@pytest.mark.parametrize("line", ["FY26 = Apr 2026 - Mar 2027", "Fiscal year starts 1 April 2026", "P01 = April 2026"])
def test_a_definition_is_no_period_of_a_table_without_days(tmp_path: Path, line: str) -> None:
    path = written(tmp_path / "bill.tsv", line, "", "Country\tCost (EUR)", "DE\t7", "FR\t8")
    assert gl.read_table(path).period is None
