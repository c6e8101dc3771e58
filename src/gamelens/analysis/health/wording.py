"""The board in words: a sentence for every row, and the whole as Markdown or JSON.

Sentences are plain text. Titles, networks and countries come from outside: in Markdown they are escaped here, on a
terminal and in a figure by those who write to it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

import pandas as pd
from pandas import DataFrame

from gamelens.analysis.frames import UNKNOWN

Row = Mapping[Any, Any]

_MARKUP: Final = re.compile(r"[!-$&'()*+<>\[-`{-~|]|:(?=/)")
_BREAKS: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\s\u202a-\u202e\u2066-\u2069]+")


def sentence_of(row: Row) -> str:
    """What one row of a board says."""
    if row["severity"] == "unknown":
        return f"{subject(row)}: not enough history to judge {row['timestamp']:%Y-%m-%d}"
    if row["is_silent"]:
        about = f" (usually about {readable(row['expected'], row['kind'])} {str(row['metric']).lower()})"
        return f"{row['game']}: silent on {row['timestamp']:%Y-%m-%d}{_since(row)}, nothing came{about}"
    return f"{subject(row)} {_size(row)} {_when(row)} ({_numbers(row)}){_reserve(row)}"


def subject(row: Row) -> str:
    """Game, metric and segment: `Tile: Share of ads by network, AdMob`."""
    segment = "" if pd.isna(row.get("dimension")) else f", {UNKNOWN if pd.isna(row['segment']) else row['segment']}"
    return f"{row['game']}: {row['metric']}{segment}"


def readable(value: float, kind: str) -> str:
    """A number as people read it, with the sign of its unit."""
    if pd.isna(value):
        return "n/a"
    if kind == "share":
        return f"{value:.1%}"
    text = f"{value:,.0f}" if abs(value) >= 100 else f"{value:,.3g}"
    return f"${text}" if kind == "money" else text


def markdown_text(text: object) -> str:
    """*text* on one line with whatever Markdown or HTML would read made an entity."""
    return _MARKUP.sub(lambda found: f"&#{ord(found[0])};", _BREAKS.sub(" ", str(text)))


def markdown_table(header: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    """A table of Markdown; every cell is escaped."""
    header = list(header)
    lines = [header, ["---"] * len(header), *([markdown_text(cell) for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


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


def _size(row: Row) -> str:
    if pd.isna(row["change"]):
        return "as usual" if row["value"] == row["expected"] else "far above usual"
    way = "above" if row["value"] > row["expected"] else "below"
    return f"{abs(row['change']):.0%} {way}"


def _when(row: Row) -> str:
    day = row["timestamp"]
    usual = "" if pd.isna(row["change"]) else " usual" if row["kind"] == "share" else f" a usual {day:%A}"
    if row["window_days"] > 1:
        return f"{usual} in the {row['window_days']:.0f} days to {day:%Y-%m-%d}{_since(row)}".strip()
    return f"{usual} on {day:%Y-%m-%d}{_since(row)}".strip()


def _since(row: Row) -> str:
    since = row.get("since")
    if since is None or pd.isna(since) or since == row["timestamp"]:
        return ""
    return f", since {'about ' if row['window_days'] > 1 else ''}{since:%Y-%m-%d}"


def _numbers(row: Row) -> str:
    value, expected = (readable(row[name], row["kind"]) for name in ("value", "expected"))
    return f"{value} instead of about {expected}"


def _reserve(row: Row) -> str:
    if row["is_restated"]:
        return "; the service has restated this day"
    return "" if row["is_settled"] else "; the day may still move"
