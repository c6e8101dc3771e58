"""The board in words: a sentence for every row, and the whole as JSON.

Sentences are plain text. Titles, networks and countries come from outside: whatever writes a sentence to Markdown, a
terminal or a figure escapes it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pandas as pd
from pandas import DataFrame

from gamelens._text import NumberKind, format_number
from gamelens.analysis.tidy_frames import UNKNOWN

Row = Mapping[Any, Any]


def row_sentence(row: Row) -> str:
    """What one row of a board says."""
    if row["severity"] == "unknown":
        return f"{subject(row)}: not enough history to judge {row['timestamp']:%Y-%m-%d}"
    if row["is_silent"]:
        about = f" (usually about {format_number(row['expected'], row['kind'])} {str(row['metric']).lower()})"
        return f"{row['game']}: silent on {row['timestamp']:%Y-%m-%d}{_since(row)}, nothing came{about}"
    return f"{subject(row)} {_size(row)} {_when(row)} ({_numbers(row)}){_reserve(row)}"


def subject(row: Row) -> str:
    """Game, metric and segment: `Tile: Share of ads by network, AdMob`."""
    segment = "" if pd.isna(row.get("dimension")) else f", {UNKNOWN if pd.isna(row['segment']) else row['segment']}"
    return f"{row['game']}: {row['metric']}{segment}"


def moved_sentence(moved: DataFrame, verdict: str, kind: NumberKind) -> str:
    """What the segments of one dimension say, as half a sentence; empty where they say nothing."""
    if len(moved) < 2:
        return ""
    what, top = dimension_words(str(moved["dimension"].iloc[0])), moved.iloc[0]
    rest = moved.iloc[1]
    way = "fell" if top["contribution"] < 0 else "rose"
    match verdict:
        case "one segment":
            numbers = " instead of ".join(format_number(top[name], kind) for name in ("value", "expected"))
            new = f", new on {top['first_day']:%Y-%m-%d}," if pd.notna(top["first_day"]) else ""
            return f"{what} {_name(top)}{new} makes up {min(top['share_of_change'], 1):.0%} of it ({numbers})"
        case "all alike":
            return f"by {what}, all of them {way}"
        case "the mix":
            return f"by {what}, none of them moved as much as their mix did"
        case "opposite":
            return f"by {what}, each of them moved the other way: their mix changed"
        case "against each other":
            return f"by {what}, what {_name(top)} {'lost' if way == 'fell' else 'won'} went {_way_of(way, rest)}"
    return ""


def dimension_words(dimension: str) -> str:
    """A dimension as people call it."""
    words = {"country_code": "country", "ilrd_network_name": "network", "ad_type": "ad format"}
    return words.get(dimension, dimension.replace("_", " "))


def as_json(board: DataFrame) -> list[dict[str, Any]]:
    """The rows of a board as plain JSON values: days as dates, NA as null."""
    columns = ["game_id", "game", "watch", "metric", "dimension", "segment", "timestamp", "since", "window_days"]
    columns += ["value", "expected", "low", "high", "change", "z", "p", "q", "severity", "is_settled", "is_restated"]
    rows = board[[*columns, "sentence"]].copy()
    for name in ("timestamp", "since"):
        rows[name] = rows[name].dt.strftime("%Y-%m-%d")
    text = rows.to_json(orient="records", double_precision=12)
    found: list[dict[str, Any]] = json.loads(text)
    return found


def _name(row: Any) -> str:
    return UNKNOWN if pd.isna(row["segment"]) else str(row["segment"])


def _way_of(way: str, other: Any) -> str:
    return f"to {_name(other)}" if way == "fell" else f"missing at {_name(other)}"


def _size(row: Row) -> str:
    if pd.isna(row["change"]):
        return "as usual" if row["value"] == row["expected"] else "far above usual"
    way = "above" if row["value"] > row["expected"] else "below"
    return f"{abs(row['change']):.0%} {way}"


def _when(row: Row) -> str:
    day = row["timestamp"]
    usual: str = "" if pd.isna(row["change"]) else " usual" if row["kind"] == "share" else f" a usual {day:%A}"
    if row["window_days"] > 1:
        return f"{usual} in the {row['window_days']:.0f} days to {day:%Y-%m-%d}{_since(row)}".strip()
    return f"{usual} on {day:%Y-%m-%d}{_since(row)}".strip()


def _since(row: Row) -> str:
    since = row.get("since")
    if since is None or pd.isna(since) or since == row["timestamp"]:
        return ""
    return f", since {'about ' if row['window_days'] > 1 else ''}{since:%Y-%m-%d}"


def _numbers(row: Row) -> str:
    value, expected = (format_number(row[name], row["kind"]) for name in ("value", "expected"))
    return f"{value} instead of about {expected}"


def _reserve(row: Row) -> str:
    if row["is_restated"]:
        return "; the service has restated this day"
    return "" if row["is_settled"] else "; the day may still move"
