"""The headline of a health board: what stands out, since when, and which level moved where no day does."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any, Final

import pandas as pd
from pandas import DataFrame

from gamelens.analysis.claims.findings import Clause, Finding, direction_of, reads
from gamelens.analysis.health.board import subject
from gamelens.analysis.tidy_frames import with_receipts_of
from gamelens.analysis.tidy_frames.columns import Column
from gamelens.analysis.tidy_frames.frame_requirements import ANY, requires, result_of
from gamelens.analysis.tidy_frames.returned_columns import between, declared_columns, named, returns, row_of
from gamelens.data_age import DataAge, duration_text
from gamelens.receipts import Receipt

_CHANGE: Final = ("change", "change_low", "change_high")
_NONE: Final = "where there is none"
_AGE: Final = (
    Column("data_end", "day", about="the end of the available interval", na=_NONE),
    Column("data_age", "span", about="how long before the question", na=_NONE),
    Column("is_stale", "flag", na=_NONE),
)
_HEADLINE: Final = (
    *(Column(name, "count", about="rows of the board") for name in ("judged", "unknown")),
    Column("games", "count"),
    *(Column(name, "count", about="rows of the board") for name in ("critical", "warning", "info")),
    *(Column(name, "day", about="of the alarms, else of what was judged") for name in ("first_day", "last_day")),
    Column("since", "day", about="the first day of the oldest alarm that is open", na=_NONE),
    between(named("change", about="of the worst alarm", na=_NONE)),
    Column("silent", "texts", about="the titles of games that sent nothing"),
    Column("weeks", "count", na=_NONE),
    Column("levels_moved", "count", na=_NONE),
    Column("level", "text", about="the one that moved most", na=_NONE),
    between(named("level_change", na=_NONE), low="level_low", high="level_high"),
    *_AGE,
)
_BOARD: Final = result_of(
    "health.board(scores)", "timestamp", "game_id", "game", "severity", "is_flagged", "is_silent", "since", *_CHANGE
)
_LEVELS: Final = result_of("health.levels(daily)", "game", "metric", "weeks", "change", "low", "high", "is_moved")


@requires(board=_BOARD, levels=_LEVELS)
@returns(*_HEADLINE, has_own_receipt=True)
def headline(board: DataFrame, levels: DataFrame | None = None, *, stale_after: timedelta | None = None) -> DataFrame:
    """Return what stands out on a board in one row, beside the *levels* that moved, if they are given.

        daily = health.daily([lens.query("user_unique", by="game", over="last 35 complete days")])
        health.headline(health.board(health.score_days(daily)), health.levels(daily))

    Data are stale if they were older than *stale_after* when they were asked for, by default if the day before was not
    complete.

    NA where there is none. Claims: "health" and "silent games".
    """
    known = board[board["severity"] != "unknown"]
    alarms = board[board["is_flagged"].astype(bool)]
    named = alarms if len(alarms) else known
    row: dict[str, Any] = {
        "judged": len(known),
        "unknown": len(board) - len(known),
        "games": board["game_id"].nunique(),
    }
    row |= {severity: int((board["severity"] == severity).sum()) for severity in ("critical", "warning", "info")}
    row |= {"first_day": named["timestamp"].min(), "last_day": named["timestamp"].max(), "since": alarms["since"].min()}
    if len(alarms):
        row |= {name: alarms[name].iloc[0] for name in _CHANGE}
    row["silent"] = board.loc[board["is_silent"].fillna(False).astype(bool), "game"].astype(str).unique().tolist()
    moved = [] if levels is None else levels[levels["is_moved"].astype(bool)].to_dict("records")
    if levels is not None and len(levels):
        row |= {"weeks": moved[0]["weeks"] if moved else levels["weeks"].max(), "levels_moved": len(moved)}
    if moved:
        row |= {"level": subject(moved[0])} | {f"level_{name}": moved[0][name] for name in ("change", "low", "high")}
    row |= _age_columns(DataAge.of(Receipt.of(board.attrs)), stale_after)
    return with_receipts_of(row_of(row, _HEADLINE), board)


@reads("health.headline")
def _read_headline(headline: DataFrame) -> Iterator[Finding]:
    """Say how many alarms there are, and which games are silent."""
    row = headline.iloc[0].to_dict()
    alarms = row["critical"] + row["warning"]
    case = "too_early" if row["unknown"] else "no_data"
    early = Finding(kind="health", case=case, unit="alarms", numbers=_age_of(row))
    yield _headline_of(row, alarms) if row["judged"] else early
    silent = row["silent"]
    yield Finding(
        kind="silent games",
        case="silent" if silent else "none" if row["games"] else "nothing",
        subject={"game": silent[0]} if len(silent) == 1 else {},
        direction="lower" if silent else "no clear difference" if row["games"] else "unknown",
        size=float(len(silent)),
        unit="games",
        judged="counted" if row["games"] else None,
        numbers={"names": silent},
    )


def _headline_of(row: dict[Any, Any], alarms: int) -> Finding:
    moved = row["levels_moved"]
    is_moved = pd.notna(moved) and moved > 0
    is_one_day = row["first_day"] == row["last_day"]
    since = row["since"] if alarms and row["since"] < row["first_day"] else None
    return Finding(
        kind="health",
        case="alarms" if alarms else "calm_but_levels" if is_moved else "calm",
        direction=direction_of(row["change_low"], row["change_high"]) if alarms else "no clear difference",
        size=float(alarms),
        unit="alarms",
        judged="days" if is_moved else "counted",
        numbers={
            "found": [Clause(name) for name in ("critical", "warning") if row[name]],
            **{
                name: row[name] for name in ("critical", "warning", "judged", "games", "weeks", "level", "level_change")
            },
            "info": row["info"] or None,
            "unknown": row["unknown"] or None,
            "day": row["last_day"] if is_one_day else None,
            "first_day": None if is_one_day else row["first_day"],
            "last_day": None if is_one_day else row["last_day"],
            "since" if alarms == 1 else "oldest": since,
            "slow": None if pd.isna(row["weeks"]) else [Clause("level_moved" if is_moved else "levels_same")],
            **_age_of(row),
            "more_levels": moved - 1 if is_moved and moved > 1 else None,
            "level_change_low": row["level_low"],
            "level_change_high": row["level_high"],
        },
    )


@requires(frame=ANY)
@returns(
    *_AGE,
    named("last_day", about="the last day of *frame*"),
    Column("newest_day", "day", about="the last with a row"),
    Column("is_quiet", "flag", about="the two differ", na="where it is not known"),
)
def data_age(frame: DataFrame, *, stale_after: timedelta | None = None) -> DataFrame:
    """Return in one row how old the data of an answer by day are, and whether something was sent on its last day.

        health.data_age(lens.query("event_count", by="game", over="last 7 complete days"))

    Data are stale if they were older than *stale_after* when they were asked for, by default if the day before was not
    complete.

    NA where it is not known, as without a receipt. Claims: "data age".
    """
    receipt = Receipt.of(frame.attrs)
    row = _age_columns(DataAge.of(receipt), stale_after)
    row["newest_day"] = frame["timestamp"].max() if len(frame) else None
    if receipt.interval is not None:
        row["last_day"] = pd.Timestamp(receipt.interval.end - timedelta(microseconds=1)).floor("D")
        row["is_quiet"] = row["newest_day"] != row["last_day"]
    return row_of(row, declared_columns(data_age).columns)


@reads("health.data_age")
def _read_data_age(age: DataFrame) -> Iterator[Finding]:
    """Say how old the data are, and since when nothing was sent."""
    row = age.iloc[0].to_dict()
    is_known, is_quiet = pd.notna(row["data_age"]), pd.notna(row["is_quiet"]) and row["is_quiet"]
    yield Finding(
        kind="data age",
        case=("stale" if row["is_stale"] else "fresh") if is_known else "unknown",
        unit="days",
        numbers={
            **(_age_words(row) if is_known else {}),
            "quiet": [Clause("quiet" if pd.notna(row["newest_day"]) else "empty")] if is_quiet else None,
            "newest_day": row["newest_day"],
            "last_day": row["last_day"],
        },
    )


def _age_columns(age: DataAge, stale_after: timedelta | None) -> dict[str, Any]:
    return {"data_end": age.ends, "data_age": age.lag, "is_stale": age.is_stale(stale_after)}


def _age_of(row: dict[Any, Any]) -> dict[str, Any]:
    """Return what the headline says of stale data."""
    return {"stale": [Clause("stale")], **_age_words(row)} if row["is_stale"] else {"stale": None}


def _age_words(row: dict[Any, Any]) -> dict[str, str]:
    """Return the end and the age of data as text."""
    ends: datetime = row["data_end"]
    return {"data_end": f"{ends.day} {ends:%b %Y %H:%M} UTC", "data_age": duration_text(row["data_age"])}
