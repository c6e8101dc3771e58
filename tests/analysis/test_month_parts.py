"""Halves and thirds of months: a part is never read as the whole month, nor as one day."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import gamelens as gl
from gamelens.analysis.files.date_parsing import NotTimes, read_times
from gamelens.errors import BadQuery

WriteFile = Callable[..., Path]

HALVES = [
    ("1.-15. Oktober 2026", "16.-31. Oktober 2026"),
    ("2026-10 (1H)", "2026-10 (2H)"),
    ("2026-10 H1", "2026-10 H2"),
    ("2026-10 (1/2)", "2026-10 (2/2)"),
    ("2026-10 (01-15)", "2026-10 (16-31)"),
    ("H1 Oct 2026", "H2 Oct 2026"),
    ("1H Oct 2026", "2H Oct 2026"),
    ("Oct 2026 1–15", "Oct 2026 16–31"),
    ("first half of October 2026", "second half of October 2026"),
    ("1. Hälfte Oktober 2026", "2. Hälfte Oktober 2026"),
    ("1ª quincena de octubre 2026", "2ª quincena de octubre 2026"),
    ("1-я половина октября 2026", "2-я половина октября 2026"),
    ("2026年10月上半", "2026年10月下半"),
    ("2026年10月前半", "2026年10月後半"),
    ("2026년 10월 상반기", "2026년 10월 하반기"),
    ("2026.10 (상)", "2026.10 (하)"),
]


@pytest.mark.shown_by(2)
@pytest.mark.parametrize("cells", HALVES)
def test_halves_of_a_month_are_periods(file: WriteFile, cells: tuple[str, str]) -> None:
    """Both have their true ends."""
    table = gl.read_table(file("Period;Cost (USD)\n" + "".join(f"{text};100\n" for text in cells), "costs.csv"))
    assert [f"{day:%m-%d}" for day in table.starts] == ["10-01", "10-16"]
    assert [f"{day:%m-%d}" for day in table.ends] == ["10-16", "11-01"]


def test_parts_stand_beside_whole_months_and_take_a_year() -> None:
    """A third of a month ends where it does; a month beside a half is all of it."""
    read = read_times(["2026年2月下旬", "2026年3月"], field="day")
    assert [str(end)[:10] for end in read.until] == ["2026-03-01", "2026-04-01"]  # type: ignore[union-attr]


def test_a_half_without_a_year_asks_for_it(file: WriteFile) -> None:
    """And the argument works."""
    path = file("Period;Cost (USD)\nOct (1H);100\nOct (2H);50\n", "costs.csv")
    assert "names no year" in str(gl.read_table(path).periods.problem)
    assert [f"{day:%Y-%m-%d}" for day in gl.read_table(path, year=2026).starts] == ["2026-10-01", "2026-10-16"]


@pytest.mark.parametrize(
    "text",
    ["2026-10 (I)", "2026-10a", "Mid Oct 2026", "2026年10月中", "2026-10-14 (1H)", "2026-02 (1-30)", "2026-10-14 (P)"],
)
def test_what_a_date_does_not_explain_is_no_date(text: str) -> None:
    """A letter or a word beside a month is not left out."""
    with pytest.raises(NotTimes):
        read_times([text], field="day")


def test_words_in_brackets_that_tell_two_rows_apart_are_asked_about() -> None:
    """Weekdays and holidays there say nothing more."""
    with pytest.raises(BadQuery, match=r"nothing says what is in brackets: leave_out="):
        read_times(["2026-10-14 (prov)", "2026-10-14 (fin)"], field="day")
    read = read_times(["2026年10月12日(月・祝)", "2026年10月13日（火）"], field="day")
    assert [str(day)[:10] for day in read.at] == ["2026-10-12", "2026-10-13"]
