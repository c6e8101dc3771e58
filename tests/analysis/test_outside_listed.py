"""Cells that list measures as JSON become columns, by their names and never as one number."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import gamelens as gl
from gamelens.analysis import outside_data
from support.tidy_frames import tidy_frame

ROWS: list[tuple[str, list[dict[str, str]], list[dict[str, str]]]] = [
    (
        "2026-11-01",
        [{"action_type": "link_click", "value": "66"}, {"action_type": "mobile_app_install", "value": "12"}],
        [{"action_type": "omni_purchase", "value": "36.5"}],
    ),
    ("2026-11-02", [{"action_type": "mobile_app_install", "value": "8"}], []),
    ("2026-11-03", [], []),
]


@pytest.mark.parametrize("form", ["json", "python", "arrow"])
def test_actions_of_an_interface_are_columns(form: str) -> None:
    """As JSON, as Python writes lists, and as lists of structs; an entry that is missing is none."""
    ways: dict[str, Callable[[Any], Any]] = {"json": json.dumps, "python": str, "arrow": lambda part: part}
    write = ways[form]
    table = pa.table(
        {
            "date_start": [day for day, _, _ in ROWS],
            "spend": [10.0, 20.0, 5.0],
            "account_currency": ["USD"] * 3,
            "actions": [write(actions) for _, actions, _ in ROWS],
            "action_values": [write(values) for _, _, values in ROWS],
        }
    )
    read = gl.read_table(table)
    assert read.in_words()["actions: mobile_app_install"] == "count"
    assert read.in_words()["action_values: omni_purchase"] == "income, USD"
    assert read.column("actions: mobile_app_install").values.tolist() == [12, 8, 0]
    assert read.column("action_values: omni_purchase").values.sum() == 36.5
    assert outside_data.in_dollars(read)["spend"].sum() == 35
    frame = tidy_frame("new_users", timestamp=["2026-11-01", "2026-11-02"], new_users=[5, 6])
    assert gl.join(frame, read, columns=["actions: link_click"]).frame["actions: link_click"].tolist() == [66, 0]
    assert any("actions lists measures, which are columns here" in note for note in read.notes)


def test_other_json_stays_text() -> None:
    """Texts within, or no names beside the values; the numbers of an object are of nobody knows what."""
    cells = ['{"level": 3, "coins": 50}', '{"level": 4}']
    texts = ['[{"id": "a", "label": "b"}]', '[{"id": "c", "label": "d"}]']
    table = gl.read_table(pa.table({"Day": ["2026-11-01", "2026-11-02"], "state": cells, "tags": texts}))
    assert table.in_words() == {
        "Day": "day", "state": "text", "tags": "text", "state: level": "number", "state: coins": "number",
    }  # fmt: skip
