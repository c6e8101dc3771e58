"""The events that an analysis of a lake reads: its time range, zone and games, and the frame of its statement."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final
from zoneinfo import ZoneInfo, available_timezones

import msgspec
import pandas as pd

from gamelens.analysis.tidy_frames import with_receipt
from gamelens.client.tables.time_ranges import TimeRange, clip_to_available, resolve_range
from gamelens.errors import BadQuery
from gamelens.raw_events.lake_client import QUERY_S, LakeClient
from gamelens.receipts import QueryRecord, Receipt, package_version
from gamelens.wire.intervals import Interval

if TYPE_CHECKING:
    from pandas import DataFrame

NameSequence = str | Sequence[str]

IN_SCOPE: Final = "ts >= $start AND ts < $end AND list_contains($games, game_id)"
"""SQL condition of the events of a scope, with its parameters."""
_MOST_ROWS: Final = 5_000_000


class EventScope(msgspec.Struct, frozen=True, kw_only=True):
    """The events of *games* in *interval*, and the receipt of what is answered from them."""

    interval: Interval
    games: tuple[str, ...]
    receipt: Receipt


def scope_of(
    lake: LakeClient, over: TimeRange, *, games: NameSequence | None = None, zone: str = "UTC", by: Sequence[str] = ()
) -> EventScope:
    """Return the events of *over*, which has the midnights of *zone*.

    Raises:
        BadQuery: *over* is not a time range; a game or the zone is unknown.
        NotYetAvailable: a part of it is not in the lake, unless the lake was opened with when_unavailable="clip".
    """
    if zone not in available_timezones():
        raise BadQuery("zone", zone, "is not a time zone, such as America/Sao_Paulo", sorted(available_timezones()))
    available = lake.available()
    asked = resolve_in_zone(over, available, ZoneInfo(zone))
    interval = clip_to_available(asked, available, lake.when_unavailable)
    known = lake.sql("SELECT game_id FROM games ORDER BY game_id")["game_id"].tolist()
    chosen = known if games is None else names_of(games)
    for game in chosen:
        if game not in known:
            raise BadQuery("games", game, "is not a game of the organisation", known)
    record = QueryRecord(
        by=tuple(by), over=str(over), interval=str(asked), games=None if games is None else tuple(chosen)
    )
    receipt = Receipt(
        asked=record,
        asked_at=datetime.now(UTC).isoformat(timespec="seconds"),
        as_of=available.end.isoformat(),
        available=str(available),
        clipped=None if interval == asked else str(interval),
        provenance=lake.provenance,
        dated_by_arrival=lake.dated_by_arrival,
        version=package_version(),
    )
    return EventScope(interval=interval, games=tuple(chosen), receipt=receipt)


def check_purchases(lake: LakeClient, interval: Interval, games: Sequence[str]) -> None:
    """Check that purchases of *games* in *interval* are known.

    Raises:
        BadQuery: events of these days came as Event Data, which has none.
    """
    lake.query("revenue", over=interval, every="all", games=list(games), when_unavailable="clip")


def names_of(names: NameSequence) -> list[str]:
    """Return one name or several as a list."""
    return [names] if isinstance(names, str) else [str(name) for name in names]


def answer(
    lake: LakeClient, statement: str, scope: EventScope, parameters: Mapping[str, Any] | None = None
) -> DataFrame:
    """Return the rows of *statement*, which reads the events of *scope*, with its receipt.

    Texts are categories, whole numbers Int64, and times UTC.
    """
    start, end = (moment.astimezone(UTC).replace(tzinfo=None) for moment in (scope.interval.start, scope.interval.end))
    given = {"start": start, "end": end, "games": list(scope.games), **(parameters or {})}
    frame = lake.sql(statement, given, seconds=QUERY_S, rows=_MOST_ROWS)
    for name, column in frame.items():
        if pd.api.types.is_datetime64_any_dtype(column):
            frame[name] = column.astype("datetime64[us]").dt.tz_localize("UTC")
        elif pd.api.types.is_integer_dtype(column):
            frame[name] = column.astype("Int64")
        elif pd.api.types.is_float_dtype(column):
            frame[name] = column.astype("float64")
        else:
            frame[name] = column.astype("category")
    return with_receipt(frame, scope.receipt)


def resolve_in_zone(over: TimeRange, available: Interval, zone: ZoneInfo) -> Interval:
    """Return the interval of *over*, read by the clock of *zone*: a complete day has ended there."""
    start, end = (moment.astimezone(zone).replace(tzinfo=UTC) for moment in (available.start, available.end))
    there = resolve_range(over, Interval(start, end))
    start, end = (moment.astimezone(UTC).replace(tzinfo=zone) for moment in (there.start, there.end))
    return Interval(start.astimezone(UTC), end.astimezone(UTC))
