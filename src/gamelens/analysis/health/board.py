"""Board of all series: the days that need attention, what each row says, and the rows as JSON values.

A day is judged by the days before it alone, so a board stays the same until the service restates a day or a person
accepts a level. A day stands out if it differs beyond chance on the whole board (false discoveries, q) and by a tenth
or more, and it opens an incident: the series stays flagged, against the baseline from before, until it returns. A game
that sends nothing is one finding, not one for each of its metrics. Restated days raise no alarm, and days that are not
settled need a larger change.

Sentences are plain text. Titles, networks and countries come from outside: code that writes a sentence to Markdown, a
terminal or a figure escapes it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from typing import Any, Final

import pandas as pd
from msgspec.structs import replace
from pandas import DataFrame, Series

from gamelens.analysis.claims.findings import Clause, Direction, Finding, direction_of, reads
from gamelens.analysis.claims.templates import sentences_of
from gamelens.analysis.health.constants import FEW_COUNTED, LEAST_CHANGE
from gamelens.analysis.health.daily_series import IDENTITY
from gamelens.analysis.health.scoring import DAILY, SCORE_COLUMNS, SHORT
from gamelens.analysis.tidy_frames import UNKNOWN
from gamelens.analysis.tidy_frames.columns import Column
from gamelens.analysis.tidy_frames.frame_requirements import requires, result_of
from gamelens.analysis.tidy_frames.returned_columns import KEYS, named, returns

BoardRow = Mapping[Any, Any]
UNITS: Final = {"money": "USD", "count": "count", "share": "share"}
"""Units of numbers, as templates know them, by kind of series. Rates and other numbers have none."""
_DAY: Final = pd.Timedelta(days=1)
_NUMBERS: Final = ("expected", "low", "high", "change", "change_low", "change_high", "z", "p", "q")
_SCORES: Final = result_of("health.score_days(daily)", "timestamp", *IDENTITY, *_NUMBERS, "severity")


BOARD_COLUMNS: Final = (
    *SCORE_COLUMNS,
    Column("sentence", "text", about="the text of its claim: escape it before it becomes HTML or Markdown"),
)


@requires(scores=_SCORES)
@returns(*BOARD_COLUMNS)
def board(scores: DataFrame, *, days: int = 1) -> DataFrame:
    """Return the last *days* days of every series, worst first, each with a sentence.

        queries = health.board_queries(health.watches(["user_unique", "revenue"]))
        answers = [lens.query(**query.arguments, over="last 28 complete days") for query in queries]
        health.board(health.score_days(health.daily(answers)), days=3)

    The stable ones: game_id, game, metric, dimension, segment, timestamp, value, expected, low, high, change,
    change_low, change_high, z, p, q, severity, since, sentence. Claims: "number", one a row; alarms have a direction.
    """
    bare = _bare(scores)
    last = bare[bare["timestamp"] > bare["timestamp"].max() - days * _DAY] if len(bare) else bare
    return _with_sentences(last)


@reads("health.board", row_by_row=True)
def _read_board(board: DataFrame) -> Iterator[Finding]:
    """Say of each number how far it is from the usual one."""
    yield from map(row_finding, board.to_dict("records"))


@requires(scores=_SCORES)
@returns(
    *BOARD_COLUMNS, Column("is_open", "flag", about="its incident is still open on the last day of *scores*", na=SHORT)
)
def flagged(scores: DataFrame) -> DataFrame:
    """Return all flagged days, newest first, each with a sentence.

        sessions = lens.query("session_unique", by="game", over="last 28 complete days")
        health.flagged(health.score_days(health.daily([sessions]), most_q=0.2))

    Claims: "incidents", of all rows.
    """
    bare = _bare(scores)
    result = _with_sentences(bare[bare["is_flagged"]])
    result = result.sort_values("timestamp", ascending=False, kind="stable", ignore_index=True)
    newest = result.groupby([*IDENTITY, "since"], observed=True, dropna=False)["timestamp"].transform("max")
    return result.assign(is_open=newest == bare["timestamp"].max())


@reads("health.flagged")
def _read_incidents(flags: DataFrame) -> Iterator[Finding]:
    """Say how many incidents there were, and how many are open."""
    found = flags.drop_duplicates([*IDENTITY, "since"])
    still_open = int(found["is_open"].sum())
    yield Finding(
        kind="incidents",
        case=("some_open" if still_open else "all_over") if len(found) else "nothing",
        size=float(len(found)),
        unit="incidents",
        judged="counted",
        numbers={"still_open": still_open, "newest": found["since"].max() if len(found) else None},
    )


@requires(daily=DAILY)
@returns(KEYS, named("last_day", about="the last with a value"), Column("silent_days", "count"))
def silent_games(daily: DataFrame) -> DataFrame:
    """Games that sent something before and nothing on the last day, whatever the metric.

    For example:

        purchases = lens.query("revenue", by="game", over="last 14 complete days")
        health.silent_games(health.daily([purchases], health.watches("revenue")))
    """
    whole = daily[daily["dimension"].isna() & (daily["kind"] != "share")]
    active = whole[whole["value"] > 0].groupby(["game_id", "game"], observed=True)["timestamp"].max()
    silent = (daily["timestamp"].max() - active).dt.days.astype("Int64")
    result = DataFrame({"last_day": active, "silent_days": silent}).reset_index()
    return result[result["silent_days"] > 0].reset_index(drop=True)


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


def _with_sentences(rows: DataFrame) -> DataFrame:
    """Return *rows*, worst first, with their sentence."""
    size = rows["z"].abs().fillna(-1.0)
    order = DataFrame({"severity": rows["severity"].cat.codes, "day": rows["timestamp"], "size": size})
    order = order.sort_values(["severity", "day", "size"], ascending=False, kind="stable")
    result = rows.loc[order.index].reset_index(drop=True)
    result["sentence"] = Series(sentences_of([*_read_board(result)]), dtype="str")
    return result


def _bare(scores: DataFrame) -> DataFrame:
    """Return *scores* without its receipt, which pandas would copy with every column read."""
    bare = scores.copy(deep=False)
    bare.attrs = {}
    return bare


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
    """Return the direction of an alarm, by its interval, or by the usual band where nothing was expected."""
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
    if _most_counted(row) < FEW_COUNTED:
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
