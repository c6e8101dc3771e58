"""Sentences, Markdown and JSON of a board; names from outside stay names."""

from __future__ import annotations

import json

import pandas as pd
import pytest

from gamelens.analysis import health

HOSTILE = [
    "<img src=x onerror=alert(1)>",
    "a | b\n# c",
    "[x](http://evil.example)",
    "*bold* _it_ `code` $x$",
    "\x1b[31mred\u202e",
]
WEEK = [100, 101, 99, 102, 98, 150, 160]


@pytest.mark.parametrize("name", HOSTILE)
def test_markdown_of_a_name_is_text_on_one_line(name: str):
    text = health.markdown_text(name)
    assert not set("<>[]|*_`$\n\x1b\u202e") & set(text)


def test_a_list_item_begins_no_other_list():
    assert health.markdown_text("- x").startswith("&#45;")
    assert health.markdown_text("1. x").startswith("1&#46;")


def test_a_table_has_one_line_for_each_row():
    table = health.markdown_table(["game"], [[name] for name in HOSTILE])
    assert len(table.splitlines()) == 2 + len(HOSTILE)
    assert all(line.count("|") == 2 for line in table.splitlines())


def test_json_holds_days_and_nulls(tidy):
    days = pd.date_range("2026-10-05", periods=35, freq="D").strftime("%Y-%m-%d").tolist()
    frame = tidy(timestamp=days, game_id=["1"] * 35, game=[HOSTILE[0]] * 35, user_unique=[*WEEK * 4, *WEEK[:6], 10])
    board = health.board(health.judged(health.measured(frame, {"user_unique": "Players"})))
    (row,) = json.loads(json.dumps(health.as_json(board)))
    assert row["game"] == HOSTILE[0]
    assert (row["timestamp"], row["since"], row["segment"]) == ("2026-11-08", "2026-11-08", None)
    assert row["severity"] == "critical"
    assert row["change"] == pytest.approx(-0.94, abs=0.01)


def test_money_has_its_sign_and_a_share_its_percent():
    assert health.readable(1234.5, "money") == "$1,234"
    assert health.readable(0.1234, "share") == "12.3%"
    assert health.readable(float("nan"), "count") == "n/a"
