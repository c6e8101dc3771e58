"""Numbers of the last 7 or 28 days in each row overlap where rows are nearer to each other: they do not add up."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pandas import DataFrame

import gamelens as gl
from gamelens.analysis import outside_data
from gamelens.analysis.outside_data.rolling_windows import window_of
from gamelens.errors import BadQuery
from support.tidy_frames import tidy_frame

WriteFile = Callable[..., Path]

_LAST_DAY = 30


def _october(every: str) -> DataFrame:
    frame = tidy_frame("new_users", timestamp=["2026-10-01"], new_users=[10_000])
    frame.attrs["gamelens"]["asked"] |= {"every": every, "interval": "2026-10-01T00:00Z/2026-11-01T00:00Z"}
    return frame


def _by_day(*headers: str, day: str = "Day", network: str = "Network") -> str:
    """Return a table of two networks and 30 days whose columns after the first two are *headers*."""
    lines = [";".join([day, network, *headers])]
    for place in range(1, _LAST_DAY + 1):
        for name, cost in (("Moloco", 100.0), ("Unity", 50.0)):
            numbers = [f"{cost * (window_of(header) or 1) + _noise(place):.2f}" for header in headers]
            lines.append(";".join([f"2026-10-{place:02}", name, *numbers]))
    return "\n".join([*lines, ""])


def _noise(place: int) -> int:
    return place * 7 % 11


def _steps(error: object) -> dict[str, Any]:
    """Return the arguments of the first step of a question."""
    step = str(error).partition(" takes ")[0]
    found = re.findall(r"(leave_out|roles)=(\{.*?\}(?= with |$))", step)
    return {name: ast.literal_eval(text) for name, text in found}


_HEADERS = (
    "Spend L7D (EUR)",
    "spend_last_7_days_eur",
    "Cost EUR, trailing 7 days",
    "7-day rolling spend (EUR)",
    "Ausgaben der letzten 7 Tage (EUR)",
    "Dépenses 7 derniers jours (EUR)",
    "Coste últimos 7 días (EUR)",
    "Расход за последние 7 дней (EUR)",
    "近7日消費 (EUR)",
    "최근 7일 비용 (EUR)",
    "Cost past 1 week (EUR)",
)


@pytest.mark.shown_by(4)
@pytest.mark.parametrize("every", ["day", "month", "all"])
@pytest.mark.parametrize("header", _HEADERS)
def test_they_are_not_added_up(file: WriteFile, header: str, every: str) -> None:
    path = file(_by_day(header))
    with pytest.raises(BadQuery, match="overlap"):
        outside_data.in_dollars(path, header, rate=1.0)
    with pytest.raises(BadQuery, match="overlap"):
        outside_data.cost_per_install(_october(every), spend=path, amount=header, rate=1.0)
    with pytest.raises(BadQuery, match="overlap"):
        gl.join(_october(every), path, columns=[header])


@pytest.mark.shown_by(3)
@pytest.mark.parametrize("header", _HEADERS)
def test_the_step_takes_the_windows_that_do_not_overlap(file: WriteFile, header: str) -> None:
    path = file(_by_day(header))
    with pytest.raises(BadQuery) as error:
        outside_data.in_dollars(path, header, rate=1.0)
    table = gl.read_table(path, **_steps(error.value))
    assert table.period == "week from Saturday"
    assert (str(table.starts.min())[:10], str(table.ends.max())[:10]) == ("2026-09-26", "2026-10-31")
    expected = sum(2 * _noise(day) + 7 * 150.0 for day in (2, 9, 16, 23, 30))
    assert outside_data.in_dollars(table, header, rate=1.0)["spend"].sum() == pytest.approx(expected)
    again = gl.read_table(table.frame)
    assert (str(again.starts.min())[:10], str(again.ends.max())[:10]) == ("2026-09-26", "2026-10-31")


def test_of_two_windows_the_step_takes_one(file: WriteFile) -> None:
    path = file(_by_day("Cost L7D (USD)", "Cost L28D (USD)", "Installs L7D"))
    with pytest.raises(BadQuery) as error:
        outside_data.in_dollars(path, "Cost L28D (USD)")
    steps = _steps(error.value)
    assert [*steps["roles"]] == ["Cost L7D (USD)", "Installs L7D"]
    table = gl.read_table(path, **steps)
    assert (str(table.starts.max())[:10], str(table.ends.max())[:10]) == ("2026-10-03", "2026-10-31")


def test_a_column_of_the_days_themselves_counts(file: WriteFile) -> None:
    path = file(_by_day("Cost (USD)", "Cost L28D (USD)"))
    joined = gl.join(_october("month"), path, columns=["Cost (USD)"]).frame
    assert joined["Cost (USD)"].tolist() == [150.0 * _LAST_DAY + 2 * sum(map(_noise, range(1, _LAST_DAY + 1)))]
    assert "Cost L28D (USD)" not in gl.join(_october("month"), path).frame


def test_all_rows_count_if_they_are_said_to(file: WriteFile) -> None:
    table = gl.read_table(file(_by_day("Cost L28D (USD)")), leave_out={"Day": []})
    assert len(outside_data.in_dollars(table)) == 2 * _LAST_DAY


@pytest.mark.parametrize("has_days", [True, False])
def test_a_column_of_windows_asks_for_one(file: WriteFile, *, has_days: bool) -> None:
    lines = ["Day;" * has_days + "Network;Window;Cost (USD)"]
    for day in range(1, 4 if has_days else 2):
        for window, cost in (("Last 7 days", 70 + day), ("Last 30 days", 300 + day)):
            lines.append(f"2026-10-{day:02};" * has_days + f"Moloco;{window};{cost}")
    path = file("\n".join([*lines, ""]))
    with pytest.raises(BadQuery, match="overlap") as error:
        outside_data.in_dollars(path)
    assert _steps(error.value) == {"leave_out": {"Window": ["Last 30 days"]}}
    if has_days:
        with pytest.raises(BadQuery, match="7 days in each row"):
            outside_data.in_dollars(path, leave_out={"Window": ["Last 30 days"]})
    else:
        assert outside_data.in_dollars(path, leave_out={"Window": ["Last 30 days"]})["spend"].tolist() == [71.0]


@pytest.mark.parametrize("text", ["Rolling 28 days, by network\n\n", ""])
def test_the_header_of_the_days_or_a_line_says_it_of_all(file: WriteFile, text: str) -> None:
    day = "Day" if text else "Trailing 28 days ending"
    with pytest.raises(BadQuery, match="overlap"):
        outside_data.in_dollars(file(text + _by_day("Cost (USD)", day=day)))


def test_a_window_that_stands_alone_is_a_period(file: WriteFile) -> None:
    path = file("Date;Network;Cost last 30 days (USD)\n2026-10-31;Moloco;300\n2026-10-31;Unity;90\n")
    table = gl.read_table(path)
    assert (str(table.starts.min())[:10], str(table.ends.max())[:10]) == ("2026-10-02", "2026-11-01")


@pytest.mark.parametrize(
    "header",
    ["Revenue 7d", "D7 revenue", "ROAS D28", "Spend", "Level 7 cost", "L7 Cost", "7-day click cost", "Mobile cost 7d"],
)
def test_ages_of_cohorts_are_no_windows(header: str) -> None:
    assert window_of(header) is None


@pytest.mark.parametrize(
    ("header", "days"), [("L4W cost", 28), ("TTM revenue", 365), ("Last 3 months", 90), ("Spend (rolling 30d)", 30)]
)
def test_the_days_of_windows(header: str, days: int) -> None:
    assert window_of(header) == days


def _summed(*headers: str, cohort: float = 0.0) -> str:
    """Return costs of 40 days whose columns after the first two are sums of the last 7 and 28 days, plus *cohort*."""
    daily = [100.0 + _noise(place) + place % 5 for place in range(80)]
    lines = [";".join(["Day", "Network", *headers])]
    for place in range(40, 80):
        sums = [sum(daily[place - days + 1 : place + 1]) + cohort * place for days in (7, 28)]
        day = f"2026-09-{place - 39:02}" if place < 70 else f"2026-10-{place - 69:02}"
        lines.append(";".join([day, "Moloco", *(f"{total:.2f}" for total in sums)]))
    return "\n".join([*lines, ""])


@pytest.mark.parametrize("headers", [("Spend 7d (EUR)", "Spend 28d (EUR)"), ("EUR cost 7 days", "EUR cost 28 days")])
def test_cells_prove_windows_that_headers_do_not_name(file: WriteFile, headers: tuple[str, str]) -> None:
    path = file(_summed(*headers))
    for header in headers:
        with pytest.raises(BadQuery, match="by its cells") as error:
            outside_data.in_dollars(path, header, rate=1.0)
    code = str(error.value).partition("columns=")[2].partition(");")[0]
    renamed = gl.read_table(path).unquestioned_frame.rename(columns=ast.literal_eval(code))
    table = gl.read_table(renamed)
    assert all("overlap" in str(column.problem) for column in table.of_role("amount"))
    assert len(outside_data.in_dollars(path, headers[1], rate=1.0, leave_out={"Day": []})) == 40


def test_sums_of_cohorts_prove_nothing(file: WriteFile) -> None:
    table = gl.read_table(file(_summed("Cost 7d (EUR)", "Cost 28d (EUR)", cohort=1.0)))
    assert not any("overlap" in str(column.problem) for column in table.columns)
