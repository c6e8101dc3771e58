"""A week or month of a frame of which an outside table has only some days is no week or month of costs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pandas import DataFrame

import gamelens as gl
from gamelens.analysis import outside_data
from gamelens.errors import BadQuery
from support.tidy_frames import tidy_frame

WriteFile = Callable[..., Path]

OCTOBER = "2026-10-01T00:00Z/2026-11-01T00:00Z"


def _installs(every: str, starts: list[str], interval: str = OCTOBER) -> DataFrame:
    frame = tidy_frame("new_users", timestamp=starts, new_users=[10_000] * len(starts))
    frame.attrs["gamelens"]["asked"] |= {"every": every, "interval": interval}
    return frame


def _spend(first: int, last: int, step: int = 1, month: int = 10) -> str:
    rows = [f"2026-{month}-{day:02},10" for day in range(first, last + 1, step)]
    return "\n".join(["Date,Cost (USD)", *rows, ""])


@pytest.mark.shown_by(2)
@pytest.mark.parametrize(("every", "start"), [("month", "2026-10-01"), ("all", "2026-10-01")])
@pytest.mark.parametrize(("first", "last"), [(18, 31), (1, 30), (2, 31)])
def test_costs_of_a_part_of_the_month_are_not_divided_by_all_its_installs(
    file: WriteFile, every: str, start: str, first: int, last: int
) -> None:
    """The sentence names the query whose days the file has; after it, the cost is that of these installs."""
    path = file(_spend(first, last))
    over = f"2026-10-{first:02}/{f'2026-10-{last + 1}' if last < 31 else '2026-11-01'}"
    with pytest.raises(BadQuery, match=f'query new_users over="{over}"'):
        outside_data.cost_per_install(_installs(every, [start]), spend=path)
    left, right = over.split("/")
    asked = _installs(every, [start], f"{left}T00:00Z/{right}T00:00Z")
    assert outside_data.cost_per_install(asked, spend=path)["spend"].tolist() == [10.0 * (last - first + 1)]


@pytest.mark.shown_by(2)
@pytest.mark.parametrize(
    ("every", "starts", "text"),
    [
        ("month", ["2026-10-01"], _spend(1, 31)),
        ("week", ["2026-10-05", "2026-10-12"], _spend(1, 31)),
        ("month", ["2026-10-01"], "Month,Cost (USD)\n2026-09,1\n2026-10,2\n2026-11,3\n"),
        ("week", ["2026-10-05"], "Week,Cost (USD)\n2026-W40,1\n2026-W41,2\n2026-W42,3\n"),
        ("month", ["2026-10-01"], "Invoice date,Cost (USD)\n2026-10-03,5\n2026-10-29,9\n2026-11-20,2\n"),
    ],
)
def test_costs_of_whole_buckets_and_payments_count(file: WriteFile, every: str, starts: list[str], text: str) -> None:
    """A list of payments has no days of its own between the first and the last."""
    assert outside_data.cost_per_install(_installs(every, starts), spend=file(text))["spend"].notna().all()


def test_a_part_of_a_week_is_refused(file: WriteFile) -> None:
    installs = _installs("week", ["2026-10-05", "2026-10-12"], "2026-10-05T00:00Z/2026-10-19T00:00Z")
    with pytest.raises(BadQuery, match=r'of 2026-10-12/2026-10-19 in one week: query new_users over="2026-10-05/'):
        outside_data.cost_per_install(installs, spend=file(_spend(1, 14)))


@pytest.mark.parametrize(("every", "words"), [("month", "in one month"), ("all", "together")])
def test_a_join_says_that_a_bucket_is_covered_in_part(file: WriteFile, every: str, words: str) -> None:
    report: Any = gl.join(_installs(every, ["2026-10-01"]), file(_spend(18, 31))).report
    said = f"table.csv has rows of 2026-10-18/2026-11-01 only, and the frame has 2026-10-01/2026-11-01 {words}"
    assert said in report.warnings
    whole = gl.join(_installs(every, ["2026-10-01"]), file(_spend(1, 31))).report
    assert not any("only, and the frame has" in warning for warning in whole.warnings)


def test_holidays_are_no_part_of_a_month(file: WriteFile) -> None:
    """Texts have no amounts that a month could lack."""
    path = file("Date,Holiday\n2026-10-12,Columbus Day\n2026-10-13,Day after\n")
    report = gl.join(_installs("month", ["2026-10-01"]), path, how={"Holiday": "join"}).report
    assert not any("only, and the frame has" in warning for warning in report.warnings)
