"""The events that two answers count, as arrays: one SELECT, and nothing else is read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from gamelens.raw_events.reconciliation.counted_metrics import EVENT_SPLITS, CountedMetric
from gamelens.raw_events.reconciliation.counting_rules import margin
from gamelens.wire.dimensions import EVENT_COLUMNS
from gamelens.wire.intervals import Interval

if TYPE_CHECKING:
    from gamelens.raw_events.lake_client import LakeClient

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]
Floats = NDArray[np.float64]

QUARTER_S: Final = 900
"""Seconds to which times are rounded down: no zone is off by less."""
NO_TIME: Final = -(1 << 62)
"""The quarter of an unknown time."""
_QUARTER_US: Final = QUARTER_S * 1_000_000
_MOST_ROWS: Final = 20_000_000
_SECONDS: Final = 600.0
_MEMORY: Final = "4GB"
_VENDOR_ID: Final = "CASE WHEN starts_with(ilrd_id, 'i') THEN ilrd_id END"  # the other ids are the event's own
_CONTENT: Final = (
    *(name for name in EVENT_COLUMNS if name not in ("seq", "day", "event_uuid", "arrived_at", "ilrd_id")),
    _VENDOR_ID,
)
"""What two events have in common if one repeats the other."""

BOT_EVENTS: Final = 500
"""Events of a UTC day from which a player's activity may be implausible."""
BOT_MEDIANS: Final = 50
"""Times the median of a player's day from which it is."""
BOT_HOURS: Final = 22
"""Hours of a UTC day with events from which it is."""
AHEAD_S: Final = 60
"""Seconds by which an event may lie ahead of its arrival without a wrong clock."""
BEHIND_S: Final = 3600
"""Seconds from which a clock is behind, if three sessions or more agree to `AGREE_S`."""
AGREE_S: Final = 900


@dataclass(frozen=True, eq=False, slots=True)
class EventRows:
    """Events in rows: one row for all events that every rule treats alike.

    Attributes:
        player, key: codes of players, and of what a distinct count counts.
        is_named: whether the events have a player.
        client, corrected, arrival: quarters of an hour since 1970, by each clock; `NO_TIME` where it is unknown.
        split: code of the dimension's value, a place in `splits`.
        counts: whether the events count for the metric.
        is_repeated: whether another event without `event_uuid` is just like them.
        cut: number of the moments that they arrived after.
        is_bot: whether their player's activity is implausible.
        value: what they add to the metric.
        events: how many they are.
        first_us, last_us: time of the first and the last of them, epoch microseconds.
        splits: values of the dimension, None among them.
        last_arrival: the last time of arrival, None if none is known.
    """

    player: Ints
    key: Ints
    is_named: Flags
    client: Ints
    corrected: Ints
    arrival: Ints
    split: Ints
    counts: Flags
    is_repeated: Flags
    cut: Ints
    is_bot: Flags
    value: Floats
    events: Ints
    first_us: Ints
    last_us: Ints
    splits: list[str | None]
    last_arrival: datetime | None


def read_event_rows(
    lake: LakeClient, metric: CountedMetric, by: str | None, interval: Interval, cuts: Sequence[datetime]
) -> EventRows:
    """Return the events that can count in *interval* under any rule.

    Args:
        lake: the lake.
        metric: the metric.
        by: dimension that splits it.
        interval: the buckets that are compared.
        cuts: moments at which the other answer may have been made, earliest first.

    Raises:
        BadQuery: they are more than 20 million rows.
        Refused: it takes too much time or memory.
    """
    wide = Interval(interval.start - margin(), interval.end + margin())
    moments = {f"cut{number}": _plain(moment) for number, moment in enumerate(cuts)}
    parameters = {"start": _plain(wide.start), "end": _plain(wide.end), **moments}
    statement = rows_sql(metric, by, list(moments))
    frame = lake.sql(statement, parameters, seconds=_SECONDS, memory=_MEMORY, rows=_MOST_ROWS)
    split, values = pd.factorize(frame["split"], use_na_sentinel=False)
    names = [None if pd.isna(value) else str(value) for value in values]
    arrival = frame["arrival"].fillna(NO_TIME).to_numpy(dtype=np.int64)
    known = arrival[arrival != NO_TIME]

    def column(name: str, kind: Any) -> NDArray[Any]:
        return frame[name].to_numpy(dtype=kind)

    return EventRows(
        player=pd.factorize(frame["player"])[0].astype(np.int64),
        key=pd.factorize(frame["key"])[0].astype(np.int64),
        **{name: column(name, np.bool_) for name in ("is_named", "counts", "is_repeated", "is_bot")},
        **{name: column(name, np.int64) for name in ("client", "corrected", "cut", "events", "first_us", "last_us")},
        arrival=arrival,
        split=split.astype(np.int64),
        value=column("value", np.float64),
        splits=names,
        last_arrival=_moment(known.max()) if len(known) else None,
    )


def rows_sql(metric: CountedMetric, by: str | None, cuts: Sequence[str]) -> str:
    """Return the SELECT of the rows, with the parameters `start`, `end` and *cuts*."""
    is_whole = by is None or by in EVENT_SPLITS
    installed = "SEMI JOIN new_players USING (game_id, user_id)" if metric.kind == "first" else ""
    arrived = " + ".join(f"CAST(coalesce(arrived_at >= ${name}, FALSE) AS INT)" for name in cuts) or "0"
    # Without players there are far fewer rows.
    player = "0" if is_whole and metric.kind == "sum" else "hash(game_id, user_id)"
    key = metric.key if metric.kind == "distinct" else player
    gap = "epoch_us(arrived_at) - epoch_us(ts)"
    return f"""
        WITH new_players AS (
            SELECT game_id, user_id FROM players WHERE installed_at >= $start AND installed_at < $end
        ), near AS (
            FROM lake_events {installed}
            WHERE (ts >= $start AND ts < $end) OR (arrived_at >= $start AND arrived_at < $end)
        ), repeated AS (
            SELECT seq, TRUE AS is_repeated FROM near WHERE event_uuid IS NULL
            QUALIFY row_number() OVER (PARTITION BY {", ".join(_CONTENT)} ORDER BY seq) > 1
        ), player_days AS (
            SELECT game_id, user_id, day, count(*) AS n, count(DISTINCT date_trunc('hour', ts)) AS hours
            FROM near WHERE user_id IS NOT NULL GROUP BY ALL
        ), bots AS (
            SELECT DISTINCT game_id, user_id, TRUE AS is_bot FROM player_days
            WHERE hours >= {BOT_HOURS}
                OR (n >= {BOT_EVENTS} AND n > {BOT_MEDIANS} * (SELECT median(n) FROM player_days))
        ), gaps AS (
            SELECT game_id, user_id, session_id, min({gap}) AS gap
            FROM near WHERE user_id IS NOT NULL AND arrived_at IS NOT NULL GROUP BY ALL
        ), clocks AS (
            SELECT game_id, user_id, min(gap) AS skew FROM gaps GROUP BY ALL
            HAVING min(gap) < {-AHEAD_S * 10**6} OR (count(*) >= 3 AND min(gap) > {BEHIND_S * 10**6}
                AND max(gap) - min(gap) <= {AGREE_S * 10**6})
        ), judged AS (
            SELECT *, coalesce({metric.counts}, FALSE) AS counts
            FROM near LEFT JOIN rates USING (currency) LEFT JOIN repeated USING (seq)
            LEFT JOIN bots USING (game_id, user_id) LEFT JOIN clocks USING (game_id, user_id)
        )
        SELECT {player} AS player, {key} AS key, user_id IS NOT NULL AS is_named,
            {f'"{by}"' if by else "NULL::VARCHAR"} AS split, counts,
            epoch_us(ts) // {_QUARTER_US} AS client,
            (epoch_us(ts) + coalesce(skew, 0)) // {_QUARTER_US} AS corrected,
            epoch_us(arrived_at) // {_QUARTER_US} AS arrival,
            coalesce(is_repeated, FALSE) AS is_repeated, coalesce(is_bot, FALSE) AS is_bot, {arrived} AS cut,
            coalesce(sum(CASE WHEN counts THEN {metric.value} END), 0) AS value,
            count(*) AS events, min(epoch_us(ts)) AS first_us, max(epoch_us(ts)) AS last_us
        FROM judged WHERE counts{"" if is_whole else " OR is_named"}
        GROUP BY ALL"""  # noqa: S608


def _plain(moment: datetime) -> datetime:
    return moment.replace(tzinfo=None)


def _moment(quarter: int) -> datetime:
    return pd.Timestamp(int(quarter) * QUARTER_S, unit="s", tz="UTC").to_pydatetime()
