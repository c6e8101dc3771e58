"""Claims of a health board: its headline, and one for each alarm."""

from __future__ import annotations

import math
from typing import Any, Final

import pandas as pd
from pandas import DataFrame

from gamelens._text import counted, format_number
from gamelens.analysis.claims import Claim, Direction
from gamelens.analysis.health.daily_series import IDENTITY
from gamelens.analysis.health.health_text import subject
from gamelens.analysis.tidy_frames import UNKNOWN
from gamelens.analysis.tidy_frames.frame_requirements import requires, result_of

_NORMAL_95: Final = 1.96
_MOVED: Final = ("game_id", "game", "watch", "timestamp", "of_segment", "dimension", "segment", "verdict", "says")
_BOARD: Final = result_of("health.board(scores)", "timestamp", "game", "severity", "is_flagged")


@requires(board=_BOARD, levels=result_of("health.levels(daily)", *IDENTITY, "weeks", "change", "is_moved"))
def headline(board: DataFrame, levels: DataFrame | None = None) -> Claim:
    """Return the board in one sentence, and which of the *levels* moved, of the frame of `levels`, if it is given.

    Its days are those of the findings that it counts, and the first day of the oldest one that is open.
    """
    judged = board[board["severity"] != "unknown"]
    if not len(judged):
        text = "Not enough history yet to say what is usual: two weeks for shares, three for everything else."
        return Claim(kind="health", direction="unknown", text=text)
    alarms = board[board["is_flagged"].astype(bool)]
    counts = alarms["severity"].astype(str).value_counts()
    found = " and ".join(f"{counts[name]} {name}" for name in ("critical", "warning") if name in counts)
    games = board["game_id"].nunique()
    unknown = len(board) - len(judged)
    more = f"; {unknown} more have not enough history" if unknown else ""
    about = f"{len(judged)} numbers of {games} game{'' if games == 1 else 's'} judged{more}.{_levels_text(levels)}"
    if not len(alarms):
        is_calm = levels is None or not levels["is_moved"].any()
        start = "Nothing stands out" if is_calm else "No day stands out"
        text = f"{start} {_days_text(judged)}: {about}"
        return Claim(kind="health", direction="no clear difference", size=0.0, unit="alarms", text=text)
    oldest = alarms["since"].min()
    open_since = f", open since {oldest:%Y-%m-%d}" if oldest < alarms["timestamp"].min() else ""
    open_since = open_since if len(alarms) == 1 else open_since.replace("open", "the oldest open")
    return Claim(
        kind="health",
        direction=_direction(alarms.iloc[0]),
        size=float(len(alarms)),
        unit="alarms",
        text=f"{found} {_days_text(alarms)}{open_since}: {about}",
    )


@requires(board=_BOARD)
def alarm_claims(board: DataFrame) -> list[Claim]:
    """Return a claim for each flagged row of a board, the worst first.

    Its size is the relative change, with the interval that the row's own noise gives. Its subject has the game, and the
    segment by its dimension.
    """
    return [_alarm_claim(row) for _, row in board[board["is_flagged"].astype(bool)].iterrows()]


@requires(scores=result_of("health.score_days(daily)", "game_id", *IDENTITY, "timestamp"))
def coverage_claim(scores: DataFrame) -> Claim:
    """Return how much is watched: games, series and days of history. All of it is counted."""
    if not len(scores):
        return Claim(kind="health coverage", direction="unknown", unit="series", text="There is nothing to judge yet.")
    games, days = scores["game_id"].nunique(), scores["timestamp"].nunique()
    series = len(scores[IDENTITY].drop_duplicates())
    last = scores["timestamp"].max()
    text = f"{counted(games, 'game')}, {series:,} series, {counted(days, 'day')} of history; judged is {last:%Y-%m-%d}."
    return Claim(kind="health coverage", direction="unknown", size=float(series), unit="series", text=text)


@requires(board=result_of("health.board(scores)", "game", "is_silent"))
def silence_claim(board: DataFrame) -> Claim:
    """Return which games sent nothing on the last day, of `board`. Games are counted."""
    kind, unit = "silent games", "games"
    if not len(board):
        return Claim(kind=kind, direction="unknown", unit=unit, text="There is no day to judge yet.")
    silent = [*dict.fromkeys(board.loc[board["is_silent"].fillna(False).astype(bool), "game"].astype(str))]
    if not silent:
        text = "Every game with players sent data on the last day."
        return Claim(kind=kind, direction="no clear difference", size=0.0, unit=unit, text=text)
    text = f"Silent now: {', '.join(silent)}."
    subject = {"game": silent[0]} if len(silent) == 1 else {}
    return Claim(kind=kind, subject=subject, direction="lower", size=float(len(silent)), unit=unit, text=text)


@requires(board=_BOARD)
def severity_claim(board: DataFrame) -> Claim:
    """Return how many rows of a board have each severity. Size is the number of alarms."""
    counts = board["severity"].astype(str).value_counts()
    critical, warning, info = (int(counts.get(name, 0)) for name in ("critical", "warning", "info"))
    text = f"Critical: {critical:,}; warning: {warning:,}; to know about: {info:,}."
    size = float(critical + warning)
    direction: Direction = "unknown" if not len(board) or not size else _direction(board.iloc[0])
    return Claim(kind="severities", direction=direction, size=size, unit="alarms", text=text)


@requires(flags=result_of("health.flagged(scores)", *IDENTITY, "timestamp", "since"))
def incidents_claim(flags: DataFrame, last_day: pd.Timestamp | None) -> Claim:
    """Return how many incidents there were, and how many are open on *last_day*.

    *flags* is the frame of `flagged`. Incidents are counted.
    """
    found = flags.drop_duplicates([*IDENTITY, "since"])
    if not len(found):
        return Claim(kind="incidents", direction="unknown", size=0.0, unit="incidents", text="No day stood out.")
    still_open = int((found["timestamp"] == last_day).sum())
    newest = found["since"].max()
    text = f"{counted(len(found), 'incident')} in all this time, {still_open or 'none'} still open; "
    text += f"the newest began on {newest:%Y-%m-%d}."
    return Claim(kind="incidents", direction="unknown", size=float(len(found)), unit="incidents", text=text)


@requires(moved=result_of("notebook.check_health(lens).moved", *_MOVED))
def segment_claims(moved: DataFrame) -> list[Claim]:
    """Return what each split shows of an alarm.

    *moved* has the segments that a health report has queried. kind "segments of" the metric; the subject is the game,
    and the segment if one of them explains the change; size is its share of the change. Changes are counted, so there
    is not an interval: whether a segment moved beyond chance is judged before it is named.
    """
    rows = moved[moved["says"] != ""]
    keys = ["game_id", "watch", "timestamp", "of_segment", "dimension"]
    return [_segment_claim(row) for row in rows.drop_duplicates(keys).to_dict("records")]


def _levels_text(levels: DataFrame | None) -> str:
    """Return what became of the levels over the last weeks, or an empty text where none can be compared."""
    if levels is None or not len(levels):
        return ""
    moved = levels[levels["is_moved"].astype(bool)]
    if not len(moved):
        return f" No level moved clearly against {counted(int(levels['weeks'].max()), 'week')} before."
    row = moved.iloc[0].to_dict()
    change, weeks = format_number(row["change"], "change", places=0), counted(int(row["weeks"]), "week")
    more = f", and {counted(len(moved) - 1, 'more level')}" if len(moved) > 1 else ""
    return f" {subject(row)} moved slowly, {change} in {weeks}{more}."


def _segment_claim(row: dict[Any, Any]) -> Claim:
    subject = {"game": str(row["game"])}
    if row["verdict"] == "one segment":
        subject[str(row["dimension"])] = UNKNOWN if pd.isna(row["segment"]) else str(row["segment"])
    direction: Direction = "lower" if row["contribution"] < 0 else "higher"
    return Claim(
        kind=f"segments of {row['watch']}",
        subject=subject,
        direction=direction,
        size=float(row["share_of_change"]),
        unit="share",
        text=str(row["says"]),
    )


def _alarm_claim(row: Any) -> Claim:
    subject = {"game": str(row["game"])}
    if pd.notna(row["dimension"]) and pd.notna(row["segment"]):
        subject[str(row["dimension"])] = str(row["segment"])
    change, z = float(row["change"]), float(row["z"])
    reach = abs(change) * _NORMAL_95 / abs(z) if z and math.isfinite(z) else math.nan
    return Claim(
        kind=f"health of {row['watch']}",
        subject=subject,
        direction=_direction(row),
        size=change,
        low=change - reach,
        high=change + reach,
        unit="ratio",
        text=str(row["sentence"]),
    )


def _direction(row: Any) -> Direction:
    return "lower" if row["value"] < row["expected"] else "higher"


def _days_text(rows: DataFrame) -> str:
    """Return the days of *rows*: `on 2026-11-19` or `from 2026-11-13 to 2026-11-19`."""
    first, last = rows["timestamp"].min(), rows["timestamp"].max()
    return f"on {last:%Y-%m-%d}" if first == last else f"from {first:%Y-%m-%d} to {last:%Y-%m-%d}"
