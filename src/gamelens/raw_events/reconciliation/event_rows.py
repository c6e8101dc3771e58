"""The events that two answers count, as arrays: one SELECT, and nothing else is read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final, Literal

import msgspec
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from gamelens.catalog import METRICS
from gamelens.sandbox.storage.atoms import ATOMS
from gamelens.wire.dimensions import DIMENSIONS, EVENT_COLUMNS, EVENT_DIMENSIONS
from gamelens.wire.intervals import Interval

if TYPE_CHECKING:
    from gamelens.raw_events.lake_client import LakeClient

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]
Floats = NDArray[np.float64]

EVENT_SPLITS: Final = tuple(
    name for name in EVENT_DIMENSIONS if name in ("game_id", "category") or DIMENSIONS[name].only
)
"""Dimensions that are the event's own. Others usually stay the same for a player."""
MARGIN: Final = timedelta(days=1)
"""Time around the buckets from which a change of rules can bring events."""
QUARTER_S: Final = 900
"""Seconds to which times are rounded down: every zone is a multiple of them ahead of UTC."""
NO_TIME: Final = -(1 << 62)
"""The quarter of an unknown time."""
BOT_EVENTS: Final = 500
"""Events of a UTC day from which a player's activity may be implausible."""
BOT_MEDIANS: Final = 50
"""Times the median of a player's day from which it is."""
BOT_HOURS: Final = 22
"""Hours of a UTC day with events from which it is: nobody sleeps so little."""
AHEAD_S: Final = 60
"""Seconds by which an event may lie ahead of its arrival without a wrong clock."""
BEHIND_S: Final = 3600
"""Seconds from which a clock is behind, if three sessions or more agree to a quarter of an hour."""

_MOST_ROWS: Final = 20_000_000
_PLAYER: Final = "CASE WHEN user_id IS NOT NULL THEN ROW(game_id, user_id) END"
_REPEATED: Final = (
    *(name for name in EVENT_COLUMNS if name not in ("seq", "day", "event_uuid", "arrived_at", "ilrd_id")),
    "CASE WHEN starts_with(ilrd_id, 'i') THEN ilrd_id END",  # the vendor's; the other ids are the event's own
)
"""Columns in which an event is equal to the one that it repeats."""


class CountedMetric(msgspec.Struct, frozen=True, kw_only=True):
    """A metric as it is counted from events."""

    name: str  # name of the metric, and of its column in a frame
    # values are added, different keys counted, or players by their first event
    kind: Literal["sum", "distinct", "first"]
    counts: str  # SQL of whether an event counts
    value: str = "1"  # SQL of what it adds
    key: str = _PLAYER  # SQL of what is counted once


def _counted(name: str) -> CountedMetric:
    """Return the metric called *name* as its recipe says, over rows of events."""
    metric = METRICS[name]
    atoms = [ATOMS[atom] for atom in metric.made_of]
    first, last = (atom.event.sql.format(player=_PLAYER) for atom in (atoms[0], atoms[-1]) if atom.event)
    if name == "new_users":  # the atom looks the install up, and another rule may date it by another event
        return CountedMetric(name=name, kind="first", counts="user_id IS NOT NULL")
    if metric.recipe == "distinct":
        return CountedMetric(name=name, kind="distinct", counts=f"({first}) IS NOT NULL", key=first)
    value = f"{last} / {atoms[-1].per_usd}" if metric.recipe == "money" else last
    return CountedMetric(name=name, kind="sum", counts=f"({first}) <> 0", value=value)


COUNTED_METRICS: Final = {
    name: _counted(name)
    for name in (
        *("event_count", "ad_impressions_count", "revenue", "ilrd_revenue"),
        *("user_unique", "paying_users", "session_unique", "new_users"),
    )
}
"""The metrics that events can be recounted for, by name."""


@dataclass(frozen=True, eq=False, slots=True)
class EventRows:
    """Events as arrays, with one place for all events that every rule treats alike."""

    player: Ints  # code of the player
    key: Ints  # code of what a distinct count counts
    is_named: Flags  # whether the events have a player
    # quarters of an hour since 1970, by each clock; `NO_TIME` where it is unknown
    client: Ints
    corrected: Ints
    arrival: Ints
    split: Ints  # code of the dimension's value, a place in `splits`
    counts: Flags  # whether the events count for the metric
    is_repeated: Flags  # whether another event without `event_uuid` is just like them
    cut: Ints  # number of the moments that they arrived after
    is_bot: Flags  # whether their player's activity is implausible
    value: Floats  # what they add to the metric
    events: Ints  # how many they are
    first_us: Ints  # time of the first of them, epoch microseconds
    last_us: Ints
    splits: list[str | None]  # values of the dimension, None among them
    has_arrivals: bool  # whether the time of arrival of some event is known


def read_event_rows(
    lake: LakeClient, metric: CountedMetric, by: str | None, interval: Interval, cuts: Sequence[datetime]
) -> EventRows:
    """Return the events that can count in *interval* under any rule.

    *cuts* are moments at which the other answer may have been made, earliest first.

    Raises:
        BadQuery: they are more than 20 million rows.
        Refused: it takes too much time or memory.
    """
    moments = {f"cut{number}": moment for number, moment in enumerate(cuts)}
    moments |= {"start": interval.start - MARGIN, "end": interval.end + MARGIN}
    is_whole = by is None or by in EVENT_SPLITS
    installed = "SEMI JOIN new_players USING (game_id, user_id)" if metric.kind == "first" else ""
    arrived = " + ".join(f"CAST(coalesce(arrived_at >= $cut{number}, FALSE) AS INT)" for number in range(len(cuts)))
    # Without players there are far fewer rows.
    player = "0" if is_whole and metric.kind == "sum" else f"hash({_PLAYER})"
    quarter_us, gap = QUARTER_S * 10**6, "epoch_us(arrived_at) - epoch_us(ts)"
    statement = f"""
        WITH new_players AS (
            SELECT game_id, user_id FROM players WHERE installed_at >= $start AND installed_at < $end
        ), near AS (
            FROM lake_events {installed}
            WHERE (ts >= $start AND ts < $end) OR (arrived_at >= $start AND arrived_at < $end)
        ), repeated AS (
            SELECT seq, TRUE AS is_repeated FROM near WHERE event_uuid IS NULL
            QUALIFY row_number() OVER (PARTITION BY {", ".join(_REPEATED)} ORDER BY seq) > 1
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
                AND max(gap) - min(gap) <= {quarter_us})
        ), judged AS (
            SELECT *, coalesce({metric.counts}, FALSE) AS counts
            FROM near LEFT JOIN rates USING (currency) LEFT JOIN repeated USING (seq)
            LEFT JOIN bots USING (game_id, user_id) LEFT JOIN clocks USING (game_id, user_id)
        )
        SELECT {player} AS player, hash({metric.key}) AS key, user_id IS NOT NULL AS is_named,
            {f'"{by}"' if by else "NULL::VARCHAR"} AS split, counts,
            epoch_us(ts) // {quarter_us} AS client,
            (epoch_us(ts) + coalesce(skew, 0)) // {quarter_us} AS corrected,
            coalesce(epoch_us(arrived_at) // {quarter_us}, {NO_TIME}) AS arrival,
            coalesce(is_repeated, FALSE) AS is_repeated, coalesce(is_bot, FALSE) AS is_bot, {arrived or 0} AS cut,
            coalesce(sum(CASE WHEN counts THEN {metric.value} END), 0) AS value,
            count(*) AS events, min(epoch_us(ts)) AS first_us, max(epoch_us(ts)) AS last_us
        FROM judged WHERE counts{"" if is_whole else " OR is_named"}
        GROUP BY ALL"""  # noqa: S608
    parameters = {name: moment.replace(tzinfo=None) for name, moment in moments.items()}
    frame = lake.sql(statement, parameters, seconds=600.0, rows=_MOST_ROWS)
    split, values = pd.factorize(frame["split"], use_na_sentinel=False)
    flags = ("is_named", "counts", "is_repeated", "is_bot")
    numbers = ("client", "corrected", "arrival", "cut", "events", "first_us", "last_us")
    return EventRows(
        player=pd.factorize(frame["player"])[0].astype(np.int64),
        key=pd.factorize(frame["key"])[0].astype(np.int64),
        **{name: frame[name].to_numpy(dtype=np.bool_) for name in flags},
        **{name: frame[name].to_numpy(dtype=np.int64) for name in numbers},
        split=split.astype(np.int64),
        value=frame["value"].to_numpy(dtype=np.float64),
        splits=[None if pd.isna(value) else str(value) for value in values],
        has_arrivals=bool((frame["arrival"] != NO_TIME).any()),
    )
