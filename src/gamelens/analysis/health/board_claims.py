"""Claims of a health board: its headline, and one for each alarm."""

from __future__ import annotations

import math
from typing import Any, Final

import pandas as pd
from pandas import DataFrame

from gamelens.analysis.claims import Claim, Direction
from gamelens.analysis.tidy_frames.frame_requirements import requires, result_of

_NORMAL_95: Final = 1.96
_BOARD: Final = result_of("health.board(scores)", "timestamp", "game", "severity", "is_flagged")


@requires(board=_BOARD)
def headline(board: DataFrame) -> Claim:
    """Return the board in one sentence.

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
    about = f"{len(judged)} numbers of {games} game{'' if games == 1 else 's'} judged{more}."
    if not len(alarms):
        text = f"Nothing stands out {_days_text(judged)}: {about}"
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
