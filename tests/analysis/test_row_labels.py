"""Rows whose name names nothing that money was paid to: carried forward, adjusted, subtotals that are no sum."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import gamelens as gl
from gamelens.analysis import outside_data
from gamelens.errors import BadQuery

WriteFile = Callable[..., Path]


def _costs(file: WriteFile, header: str, label: str) -> Path:
    rows = [f"2026-10-0{day};{name};{day + 10}" for day in (1, 2, 3) for name in ("Meta", "Moloco", "Google Ads")]
    return file("\n".join([f"Date;{header};Cost (USD)", *rows, f"2026-10-03;{label};7.5", ""]), "costs.csv")


@pytest.mark.shown_by(6)
@pytest.mark.parametrize("header", ["Network", "Campaign", "Position"])
@pytest.mark.parametrize(
    "label",
    [
        "Carried forward", "Übertrag September", "Manual adjustment", "Saldo anterior", "Report à nouveau", "前月繰越",
        "调整", "이월", "Корректировка", "FX difference", "Subtotal Meta", "Gesamt ohne Meta", "MTD", "Previous month",
        "Agency fee", "Rounding", "合计(不含税)",
    ],
)  # fmt: skip
def test_a_row_that_names_nothing_is_asked_about(file: WriteFile, header: str, label: str) -> None:
    """And both answers work."""
    path = _costs(file, header, label)
    with pytest.raises(BadQuery) as refused:
        outside_data.in_dollars(path)
    assert label in str(refused.value)
    assert outside_data.in_dollars(path, leave_out={header: [label]})["spend"].sum() == 108
    assert outside_data.in_dollars(path, leave_out={header: []}, totals="keep")["spend"].sum() == 115.5


@pytest.mark.parametrize("label", ["Total War", "Other", "Summer Sale", "Target", "Max", "Balance Board", "Transport"])
def test_names_with_such_words_count(file: WriteFile, label: str) -> None:
    """Nobody is asked about a campaign."""
    assert outside_data.in_dollars(_costs(file, "Campaign", label))["spend"].sum() == 115.5


def test_calendars_and_names_are_not_asked_about(file: WriteFile) -> None:
    """There is nothing to add up."""
    table = gl.read_table(file("Date;Event;Note\n2026-10-01;Adjustment;a\n2026-10-02;Sale;b\n", "events.csv"))
    assert all(column.problem is None for column in table.columns)
