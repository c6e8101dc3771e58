"""Ends at midnight among ends with hours, and weeks and months that the days of a report cut short."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest
from pandas import DataFrame

import gamelens as gl
from gamelens.analysis import outside_data
from gamelens.errors import BadQuery
from support.tidy_frames import tidy_frame

WriteFile = Callable[..., Path]

_OCTOBER = "2026-10-01T00:00Z/2026-11-01T00:00Z"


def _installs(every: str, starts: list[str], interval: str = _OCTOBER) -> DataFrame:
    frame = tidy_frame("new_users", timestamp=starts, new_users=[10_000] * len(starts))
    frame.attrs["gamelens"]["asked"] |= {"every": every, "interval": interval}
    return frame


def _text(lines: list[str]) -> str:
    return "\n".join([*lines, ""])


@pytest.mark.parametrize("written", ["{} 00:00:00", "{} 00:00:00 +0000", "{}T00:00:00Z", "{} 00:00"])
@pytest.mark.parametrize("every", ["month", "all"])
def test_an_end_at_midnight_among_hours_is_of_the_day_before(file: WriteFile, written: str, every: str) -> None:
    first, end = written.format("2026-10-01"), written.format("2026-11-01")
    hours = written.replace("00:00", "15:30", 1)
    rows = [("db-1", first, end, 40), ("db-2", first, hours.format("2026-10-12"), 20)]
    rows += [("db-3", hours.format("2026-10-16"), end, 10)]
    path = file(_text(["Resource,Usage start,Usage end,Cost (USD)", *(",".join(map(str, row)) for row in rows)]))
    table = gl.read_table(path)
    assert [str(day)[:10] for day in table.ends] == ["2026-11-01", "2026-10-13", "2026-11-01"]
    asked = _installs(every, ["2026-10-01"])
    assert outside_data.cost_per_install(asked, spend=path)["spend"].tolist() == [70.0]


def test_an_end_without_hours_among_hours_is_a_whole_day(file: WriteFile) -> None:
    path = file(_text(["Item,Start,End,Cost (USD)", "a,2026-10-01,2026-10-03,4", "b,2026-10-02,2026-10-05 15:30,5"]))
    assert [str(day)[:10] for day in gl.read_table(path).ends] == ["2026-10-04", "2026-10-06"]


_RANGES = (
    "Report Time: 10/8/2026 - 11/14/2026",
    "Zeitraum: 08.10.2026 – 14.11.2026",
    "Date range,2026-10-08 to 2026-11-14",
    "Período: 08/10/2026 a 14/11/2026",
    "8 Oct 2026 - 14 Nov 2026",
)


def _weeks(line: str, first: int = 4) -> str:
    """Return costs of weeks from Sunday, 4 October to 14 November 2026."""
    days = [f"2026-10-{day:02}" for day in range(first, 32, 7)] + ["2026-11-01", "2026-11-08"]
    return _text(
        [line, "", "Week,Network,Cost (USD)", *(f"{day},Moloco,{place + 10}" for place, day in enumerate(days))]
    )


@pytest.mark.parametrize("line", _RANGES)
def test_a_first_week_is_of_the_days_of_the_report_alone(file: WriteFile, line: str) -> None:
    table = gl.read_table(file(_weeks(line)))
    assert table.period == "week from Sunday"
    assert str(table.starts.min())[:10] == "2026-10-08"
    assert any("one week has only 2026-10-08 to 2026-10-10" in note for note in table.notes)
    days = [f"2026-10-{day:02}" for day in range(1, 32)] + [f"2026-11-{day:02}" for day in range(1, 15)]
    frame = _installs("day", days, "2026-10-01T00:00Z/2026-11-15T00:00Z")
    cost = outside_data.cost_per_install(gl.in_periods(frame, table), by="timestamp", spend=table)
    by_week = cost.sort_values("timestamp")
    assert by_week["installs"].tolist()[0:2] == [30_000, 70_000]
    assert any(
        "one week has only" in warning for warning in gl.join(gl.in_periods(frame, table), table).report.warnings
    )


@pytest.mark.parametrize("every", ["month", "all"])
def test_a_frame_of_the_days_of_the_report_has_all_its_costs(file: WriteFile, every: str) -> None:
    path = file(_weeks(_RANGES[0]))
    starts = ["2026-10-01", "2026-11-01"] if every == "month" else ["2026-10-08"]
    frame = _installs(every, starts, "2026-10-08T00:00Z/2026-11-15T00:00Z")
    cost = outside_data.cost_per_install(frame, by="timestamp", spend=path).sort_values("timestamp")
    assert cost["spend"].tolist() == ([10.0 + 11 + 12 + 13, 14.0 + 15] if every == "month" else [75.0])


def test_a_last_week_is_cut_too(file: WriteFile) -> None:
    table = gl.read_table(file(_weeks("Report Time: 10/4/2026 - 11/10/2026")))
    assert (str(table.starts.min())[:10], str(table.ends.max())[:10]) == ("2026-10-04", "2026-11-11")


def test_a_month_is_cut(file: WriteFile) -> None:
    path = file("Period: 2026-09-15 - 2026-11-20\n\nMonth;Cost (USD)\n2026-09;5\n2026-10;9\n2026-11;7\n")
    table = gl.read_table(path)
    assert [str(day)[:10] for day in table.starts] == ["2026-09-15", "2026-10-01", "2026-11-01"]
    assert [str(day)[:10] for day in table.ends] == ["2026-10-01", "2026-11-01", "2026-11-21"]


def test_the_name_of_a_file_cuts_too(file: WriteFile) -> None:
    table = gl.read_table(file(_weeks("Weekly"), name="weekly_2026-10-08_2026-11-14.csv"))
    assert str(table.starts.min())[:10] == "2026-10-08"


@pytest.mark.parametrize(
    "line",
    [
        "Compared with: 9/1/2026 - 9/30/2026",
        "Report Time: 10/1/2026 - 11/30/2026",
        "Report Time: 10/8/2026 - 10/31/2026",
        "October 2026",
        "Q4 2026",
    ],
)
def test_other_days_cut_nothing(file: WriteFile, line: str) -> None:
    table = gl.read_table(file(_weeks(line)))
    assert (str(table.starts.min())[:10], str(table.ends.max())[:10]) == ("2026-10-04", "2026-11-15")


def test_a_frame_keeps_the_weeks_of_its_column(file: WriteFile) -> None:
    table = gl.read_table(file(_weeks(_RANGES[0])))
    assert str(table.frame["Week"].min())[:10] == "2026-10-04"
    assert outside_data.in_dollars(table)["timestamp"].min().strftime("%Y-%m-%d") == "2026-10-08"


_WHOLE_WEEKS = _text(
    [
        "Semana,Red,Gasto (EUR)",
        *(
            f"{day},Moloco,{place + 100}.5"
            for place, day in enumerate(["2026-10-05", "2026-10-12", "2026-10-19", "2026-10-26"])
        ),
    ]
)


def _followed(frame: DataFrame, path: Path) -> tuple[str, str]:
    """Return the interval and the buckets that the refusal of a cost asks for."""
    with pytest.raises(BadQuery) as refused:
        outside_data.cost_per_install(frame, spend=path, rate=1.1)
    over = re.search(r'over="([\d-]+/[\d-]+)"', refused.value.rule)
    every = re.search(r'every="(\w+)"', refused.value.rule)
    return over[1] if over else "", every[1] if every else ""


def test_the_query_of_a_refusal_has_whole_weeks(file: WriteFile) -> None:
    """Followed once, it is not refused again."""
    path = file(_WHOLE_WEEKS)
    assert _followed(_installs("all", ["2026-10-01"]), path) == ("2026-10-05/2026-11-02", "")
    again = _installs("all", ["2026-10-05"], "2026-10-05T00:00Z/2026-11-02T00:00Z")
    assert outside_data.cost_per_install(again, spend=path, rate=1.0)["spend"].tolist() == [408.0]


def test_weeks_beside_months_ask_for_weeks_first(file: WriteFile) -> None:
    assert _followed(_installs("month", ["2026-10-01"]), file(_WHOLE_WEEKS)) == ("", "week")


def test_one_period_beside_weeks_asks_for_one_bucket_first(file: WriteFile) -> None:
    path = file("Début,Fin,Pays,Dépenses (EUR)\n2026-10-02,2026-10-30,FR,5.5\n2026-10-02,2026-10-30,BE,7.5\n")
    weeks = _installs("week", ["2026-09-28", "2026-10-05", "2026-10-12", "2026-10-19", "2026-10-26"])
    assert _followed(weeks, path) == ("2026-10-02/2026-10-31", "all")


@pytest.mark.parametrize(
    ("every", "rows", "starts", "interval", "whole"),
    [
        (
            "week",
            _WHOLE_WEEKS,
            ["2026-10-05", "2026-10-12", "2026-10-19", "2026-10-26"],
            "2026-10-05T00:00Z/2026-11-01T00:00Z",
            "2026-10-05/2026-11-02",
        ),
        (
            "month",
            "Miesiąc,Kraj,Koszt (EUR)\n2026-09,PL,5\n2026-10,PL,9\n",
            ["2026-09-01", "2026-10-01"],
            "2026-09-04T00:00Z/2026-11-01T00:00Z",
            "2026-09-01/2026-11-01",
        ),
    ],
)
def test_a_bucket_that_the_frame_cuts_is_warned_of_beside_costs(
    file: WriteFile, every: str, rows: str, starts: list[str], interval: str, whole: str
) -> None:
    frame = _installs(every, starts, interval)
    with pytest.warns(UserWarning, match=rf'counts only part of the {every} of .*: query over="{whole}"'):
        outside_data.cost_per_install(frame, spend=file(rows), rate=1.1)
    days = "/".join(f"{day}T00:00Z" for day in whole.split("/"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        outside_data.cost_per_install(_installs(every, starts, days), spend=file(rows), rate=1.1)
