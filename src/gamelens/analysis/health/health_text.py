"""Text of the health board: a sentence for every row, and the board as JSON values.

Sentences are plain text. Titles, networks and countries come from outside: code that writes a sentence to Markdown, a
terminal or a figure escapes it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, Final

import pandas as pd
from pandas import DataFrame

from gamelens._text import NumberKind, format_number
from gamelens.analysis.health.severity import LEAST_CHANGE
from gamelens.analysis.tidy_frames import UNKNOWN
from gamelens.analysis.tidy_frames.frame_requirements import requires, result_of

Row = Mapping[Any, Any]
_FEW: Final = 30.0


def row_sentence(row: Row) -> str:
    """Return one row of a board as a sentence."""
    if row["severity"] == "unknown":
        return f"{subject(row)}: not enough history to judge {row['timestamp']:%Y-%m-%d}"
    if row["is_silent"]:
        about = f" (usually about {format_number(row['expected'], row['kind'])} {str(row['metric']).lower()})"
        return f"{row['game']}: silent on {row['timestamp']:%Y-%m-%d}{_since_text(row)}, nothing came{about}"
    why = f": {reason}" if (reason := ok_reason(row)) else ""
    about = subject(row) if pd.isna(row.get("dimension")) else f"{subject(row)},"
    return f"{about} {_change_text(row)} {_day_text(row)} ({_value_text(row)}){why}{_caveat(row)}"


def subject(row: Row) -> str:
    """Return game, metric and segment of a row: `Tile: Share of ads by network, AdMob`."""
    segment = "" if pd.isna(row.get("dimension")) else f", {UNKNOWN if pd.isna(row['segment']) else row['segment']}"
    return f"{row['game']}: {row['metric']}{segment}"


def ok_reason(row: Row) -> str:
    """Return why a row is ok although its number is far from the usual one, or an empty text."""
    is_far: bool = pd.isna(row["change"]) or abs(row["change"]) >= LEAST_CHANGE
    if row["severity"] != "ok" or row["value"] == row["expected"] or not is_far:
        return ""
    if _most_counted(row) < _FEW:
        return "too few to tell"
    low, high = row["low"], row["high"]
    if pd.isna(low) or pd.isna(high) or not low <= row["value"] <= high:
        return "of so many numbers, chance brings one that far off"
    return f"{format_number(low, row['kind'])} to {format_number(high, row['kind'])} is usual"


@requires(rows=result_of("health.segments(frame, watch, by, day=...)", "dimension", "segment", "contribution"))
def moved_sentence(rows: DataFrame, verdict: str, kind: NumberKind) -> str:
    """Return the verdict on the segments of one dimension as half a sentence.

    Empty if the verdict is unclear.
    """
    if len(rows) < 2:
        return ""
    dimension, top = dimension_words(str(rows["dimension"].iloc[0])), rows.iloc[0]
    rest = rows.iloc[1]
    direction = "fell" if top["contribution"] < 0 else "rose"
    match verdict:
        case "one segment":
            numbers = " instead of ".join(format_number(top[name], kind) for name in ("value", "expected"))
            new = f", new on {top['first_day']:%Y-%m-%d}," if pd.notna(top["first_day"]) else ""
            share = min(top["share_of_change"], 1)
            return f"{dimension} {_segment_name(top)}{new} makes up {share:.0%} of it ({numbers})"
        case "all alike":
            return f"by {dimension}, all of them {direction}"
        case "the mix":
            return f"by {dimension}, none of them moved as much as their mix did"
        case "opposite":
            return f"by {dimension}, each of them moved the other way: their mix changed"
        case "against each other":
            change = "lost" if direction == "fell" else "won"
            return f"by {dimension}, what {_segment_name(top)} {change} went {_destination(direction, rest)}"
    return ""


def dimension_words(dimension: str) -> str:
    """Return the display name of a dimension."""
    words = {"country_code": "country", "ilrd_network_name": "network", "ad_type": "ad format"}
    return words.get(dimension, dimension.replace("_", " "))


@requires(board=result_of("health.board(scores)", "timestamp", "severity", "sentence"))
def as_json(board: DataFrame) -> list[dict[str, Any]]:
    """Return the rows of a board as plain JSON values: days as dates, NA as null."""
    columns = ["game_id", "game", "watch", "metric", "dimension", "segment", "timestamp", "since", "window_days"]
    columns += ["value", "expected", "low", "high", "change", "z", "p", "q", "severity", "is_settled", "is_restated"]
    rows = board[[*columns, "open_days", "note", "sentence"]].copy()
    for name in ("timestamp", "since"):
        rows[name] = rows[name].dt.strftime("%Y-%m-%d")
    text = rows.to_json(orient="records", double_precision=12)
    records: list[dict[str, Any]] = json.loads(text)
    return records


def _segment_name(row: Any) -> str:
    return UNKNOWN if pd.isna(row["segment"]) else str(row["segment"])


def _destination(direction: str, other: Any) -> str:
    return f"to {_segment_name(other)}" if direction == "fell" else f"missing at {_segment_name(other)}"


def _change_text(row: Row) -> str:
    if pd.isna(row["change"]):
        return "as usual" if row["value"] == row["expected"] else "far above usual"
    direction = "above" if row["value"] > row["expected"] else "below"
    return f"{abs(row['change']):.0%} {direction}"


def _day_text(row: Row) -> str:
    day = row["timestamp"]
    usual: str = "" if pd.isna(row["change"]) else " usual" if row["kind"] == "share" else f" a usual {day:%A}"
    if row["window_days"] > 1:
        return f"{usual} in the {row['window_days']:.0f} days to {day:%Y-%m-%d}{_since_text(row)}".strip()
    return f"{usual} on {day:%Y-%m-%d}{_since_text(row)}".strip()


def _since_text(row: Row) -> str:
    since = row.get("since")
    if since is None or pd.isna(since) or since == row["timestamp"]:
        return ""
    return f", open since {'about ' if row['window_days'] > 1 else ''}{since:%Y-%m-%d}"


def _value_text(row: Row) -> str:
    value, expected = (format_number(row[name], row["kind"]) for name in ("value", "expected"))
    return f"{value} instead of about {expected}"


def _most_counted(row: Row) -> float:
    """Return the larger of what was counted and what was expected, infinite for money."""
    match row["kind"]:
        case "count":
            return float(max(row["value"], row["expected"]))
        case "share":
            return float(max(row["value"], row["expected"]) * row["whole"])
    return math.inf


def _caveat(row: Row) -> str:
    note = f"; {row['note']}" if row.get("note") else ""
    if row["is_restated"]:
        return f"; the service has restated this day{note}"
    return note if row["is_settled"] else f"; the day may still move{note}"
