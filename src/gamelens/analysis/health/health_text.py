"""What each row of a health board says, and the board as JSON values.

Sentences are plain text. Titles, networks and countries come from outside: code that writes a sentence to Markdown, a
terminal or a figure escapes it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, Final

import pandas as pd
from msgspec.structs import replace
from pandas import DataFrame

from gamelens.analysis.claims.findings import Clause, Direction, Finding, direction_of
from gamelens.analysis.claims.templates import sentences_of
from gamelens.analysis.health.severity import LEAST_CHANGE
from gamelens.analysis.tidy_frames import UNKNOWN
from gamelens.analysis.tidy_frames.frame_requirements import requires, result_of

BoardRow = Mapping[Any, Any]
_FEW: Final = 30.0
UNITS: Final = {"money": "USD", "count": "count", "share": "share"}
"""Units of numbers, as templates know them, by kind of series. Rates and other numbers have none."""


def row_finding(row: BoardRow) -> Finding:
    """Return what one row of a board says: how far the number is from the usual one. Alarms alone have a direction."""
    day, window = row["timestamp"], int(row["window_days"])
    since: Any = None if row["since"] == day else row["since"]
    on = "share_day" if row["kind"] == "share" else "day"
    return Finding(
        kind="number",
        case=_case(row),
        subject={"game": str(row["game"])} | _segment_of(row),
        direction=_direction(row),
        size=row["change"],
        low=math.nan if pd.isna(row["change"]) else row["change_low"],
        high=math.nan if pd.isna(row["change"]) else row["change_high"],
        unit="change",
        judged=None if pd.isna(row["expected"]) else "usual days",
        is_shown=bool(row["is_flagged"]),
        numbers={
            "metric": row["metric"],
            "counted": str(row["metric"]).lower(),
            "segment": _segment_of(row).get(str(row["dimension"])),
            "measure": subject(row),
            "measured_in": UNITS.get(row["kind"], ""),
            **{name: row[name] for name in ("value", "expected", "severity", "note")},
            **({on: day, "weekday": f"{day:%A}"} if window == 1 else {"last_day": day, "window_days": window}),
            "since" if window == 1 else "since_about": since,
            "why": [Clause(reason)] if (reason := _ok_case(row)) else None,
            "usual_low": row["low"],
            "usual_high": row["high"],
            "caveat": [Clause("restated" if row["is_restated"] else "unsettled")] * _may_move(row),
        },
    )


def subject(row: BoardRow) -> str:
    """Return game, metric and segment of a row: `Tile: Share of ads by network, AdMob`.

    For example:

        players = lens.query("user_unique", by="game", over="last 28 complete days")
        board = health.board(health.score_days(health.daily([players])))
        [health.subject(row) for row in board.to_dict("records")]
    """
    return ", ".join([f"{row['game']}: {row['metric']}", *_segment_of(row).values()])


def ok_reason(row: BoardRow) -> str:
    """Return why a row is ok although its number is far from the usual one, or an empty text.

    For example:

        watched, purchases = health.watches("revenue"), lens.query("revenue", by="game", over="last 28 complete days")
        board = health.board(health.score_days(health.daily([purchases], watched)))
        {row["game"]: health.ok_reason(row) for row in board.to_dict("records")}
    """
    return sentences_of([replace(row_finding(row), case=case)])[0] if (case := _ok_case(row)) else ""


def dimension_words(dimension: str) -> str:
    """Return the display name of a dimension.

    For example:

        health.dimension_words("ilrd_network_name")
    """
    words = {"country_code": "country", "ilrd_network_name": "network", "ad_type": "ad format"}
    return words.get(dimension, dimension.replace("_", " "))


@requires(board=result_of("health.board(scores)", "timestamp", "severity", "sentence"))
def as_json(board: DataFrame) -> list[dict[str, Any]]:
    """Return the rows of a board as plain JSON values: days as dates, NA as null.

    For example:

        sessions = lens.query("session_unique", by="game", over="last 28 complete days")
        health.as_json(health.board(health.score_days(health.daily([sessions]))))
    """
    columns = ["game_id", "game", "watch", "metric", "dimension", "segment", "timestamp", "since", "window_days"]
    columns += ["value", "expected", "low", "high", "change", "z", "p", "q", "severity", "is_settled", "is_restated"]
    rows = board[[*columns, "open_days", "note", "sentence"]].copy()
    for name in ("timestamp", "since"):
        rows[name] = rows[name].dt.strftime("%Y-%m-%d")
    text = rows.to_json(orient="records", double_precision=12)
    records: list[dict[str, Any]] = json.loads(text)
    return records


def _segment_of(row: BoardRow) -> dict[str, str]:
    """Return the segment of a row by its dimension, empty for a whole game."""
    dimension = row.get("dimension")
    if dimension is None or pd.isna(dimension):
        return {}
    return {str(dimension): UNKNOWN if pd.isna(row["segment"]) else str(row["segment"])}


def _case(row: BoardRow) -> str:
    if row["is_silent"]:
        return "silent"
    if pd.isna(row["value"]):
        return "no_number"
    if pd.isna(row["expected"]):
        return "too_early"
    if row["value"] == row["expected"]:
        return "as_usual"
    return "far_above" if row["expected"] == 0 else "above" if row["value"] > row["expected"] else "below"


def _direction(row: BoardRow) -> Direction:
    """Return the direction of an alarm: that of its interval, or of the usual band where nothing was expected."""
    if pd.isna(row["expected"]) or pd.isna(row["value"]):
        return "unknown"
    if not row["is_flagged"]:
        return "no clear difference"
    if pd.isna(row["change_low"]):
        return direction_of(row["value"] - row["high"], row["value"] - row["low"])
    return direction_of(row["change_low"], row["change_high"])


def _ok_case(row: BoardRow) -> str:
    """Return the case of why a row is ok although its number is far from the usual one, or an empty text."""
    is_far: bool = abs(row["value"] - row["expected"]) >= LEAST_CHANGE * row["expected"]
    if row["severity"] != "ok" or row["value"] == row["expected"] or not is_far:
        return ""
    if _most_counted(row) < _FEW:
        return "too_few"
    return "within_usual" if row["low"] <= row["value"] <= row["high"] else "by_chance"


def _most_counted(row: BoardRow) -> float:
    """Return the larger of what was counted and what was expected, infinite for money."""
    match row["kind"]:
        case "count":
            return float(max(row["value"], row["expected"]))
        case "share":
            return float(max(row["value"], row["expected"]) * row["whole"])
    return math.inf


def _may_move(row: BoardRow) -> bool:
    return bool(row["is_restated"]) or not row["is_settled"]
