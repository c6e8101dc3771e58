"""A line that says up to which day the last month is known: whoever divides by all its players is told."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import gamelens as gl
from gamelens.analysis import outside_data
from support.tidy_frames import tidy_frame

WriteFile = Callable[..., Path]

_LINES = (
    "Amounts in EUR. November actuals through 22 November",
    "Alle Beträge in EUR, Stand: 22.11.2026",
    "EUR - data as of 2026-11-22",
    "Bedragen in EUR, november werkelijk t/m 22 november",
    "Montants en EUR, novembre réel jusqu'au 22 novembre",
    "Importes en EUR; noviembre hasta el 22/11",
    "* novembro: dados até 22/11 (EUR)",
    "EUR, MTD Nov 22",
    "Exported on 22 Nov 2026, EUR",
    "2026-11-22 まで (EUR)",
)


def _text(line: str, *, is_below: bool = False, last: str = "7") -> str:
    rows = ["Month;Network;Cost (EUR)", "2026-10;Meta;20", f"2026-11;Meta;{last}"]
    return "\n".join([*rows, "", line, ""] if is_below else [line, "", *rows, ""])


@pytest.mark.parametrize("is_below", [False, True])
@pytest.mark.parametrize("line", _LINES)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_the_last_month_is_said_to_be_short(file: WriteFile, line: str, *, is_below: bool) -> None:
    table = gl.read_table(file(_text(line, is_below=is_below)))
    told = [note for note in table.notes if "known only until 2026-11-22" in note]
    assert len(told) == 1
    assert 'query over="2026-10-01/2026-11-23"' in told[0]


def test_costs_and_joins_warn_and_the_query_of_the_sentence_works(file: WriteFile) -> None:
    path = file(_text(_LINES[0]))
    frame = tidy_frame("new_users", timestamp=["2026-10-01", "2026-11-01"], new_users=[100, 70])
    interval = "2026-10-01T00:00Z/2026-11-23T00:00Z"
    frame.attrs["gamelens"]["asked"] |= {"every": "month", "interval": interval}
    with pytest.warns(UserWarning, match="known only until 2026-11-22"):
        cost = outside_data.cost_per_install(frame, by="timestamp", spend=path, rate=1.0)
    assert cost.sort_values("timestamp")["cpi"].tolist() == [0.2, 0.1]
    with pytest.warns(UserWarning, match="known only until 2026-11-22"):
        outside_data.in_dollars(path, rate=1.0)
    assert any("known only until" in warning for warning in gl.join(frame, path).report.warnings)


@pytest.mark.parametrize(
    "line",
    [
        "Invoice due until 22 November 2026",
        "Stand: 01.12.2026",
        "Stand: 30.11.2026",
        "as of 2026-10-15",
        "Version 22 November",
        "Budget per country, 22 networks",
        "November",
    ],
)
def test_other_days_say_nothing(file: WriteFile, line: str) -> None:
    assert not any("known only" in note for note in gl.read_table(file(_text(line))).notes)


def test_a_month_without_numbers_is_not_the_last(file: WriteFile) -> None:
    table = gl.read_table(file(_text("as of 2026-11-22, EUR", last="")))
    assert not any("known only" in note for note in table.notes)
