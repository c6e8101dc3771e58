"""The events that an analysis reads: its time range, zone and games, and the frame of its statement."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo, available_timezones

import msgspec
import pandas as pd

from gamelens.analysis.tidy_frames import with_receipt
from gamelens.client.tables.time_ranges import TimeRange, clip_to_available, resolve_range
from gamelens.errors import BadQuery
from gamelens.raw_events.event_source import EventSource
from gamelens.receipts import QueryRecord, Receipt, package_version
from gamelens.wire.intervals import Interval

if TYPE_CHECKING:
    from pandas import DataFrame

NameSequence = str | Sequence[str]


class EventScope(msgspec.Struct, frozen=True, kw_only=True):
    """The events of *games* in *interval*, and the receipt of what is answered from them."""

    interval: Interval
    games: tuple[str, ...]
    receipt: Receipt


def scope_of(
    events: EventSource,
    over: TimeRange,
    *,
    games: NameSequence | None = None,
    zone: str = "UTC",
    by: Sequence[str] = (),
) -> EventScope:
    """Return the events of *over*, which has the midnights of *zone*.

    Raises:
        BadQuery: *over* is not a time range; a game or the zone is unknown.
        NotYetAvailable: a part of it is not there, unless the source was opened with when_unavailable="clip".
    """
    if zone not in available_timezones():
        raise BadQuery("zone", zone, "is not a time zone, such as America/Sao_Paulo", sorted(available_timezones()))
    available = events.available()
    asked = resolve_in_zone(over, available, ZoneInfo(zone))
    interval = clip_to_available(asked, available, events.when_unavailable)
    known = events.event_games()
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
        provenance=events.provenance,
        dated_by_arrival=events.dated_by_arrival,
        warnings=events.event_warnings,
        version=package_version(),
    )
    return EventScope(interval=interval, games=tuple(chosen), receipt=receipt)


def require_columns(events: EventSource, *names: str) -> None:
    """Check that the events have columns that an analysis needs.

    Raises:
        BadQuery: one is absent.
    """
    known = events.event_columns()
    for name in names:
        if name not in known:
            rule = "is a column that this analysis needs and the table does not have: name it by open_events(columns=)"
            raise BadQuery("columns", name, rule, name="")


def in_order(events: EventSource) -> str:
    """Return the columns that order events, as SQL.

    Raises:
        BadQuery: nothing orders events of the same second.
    """
    if not events.event_order:
        rule = "or event_uuid must order the events of one second: name one of them by open_events(columns=)"
        raise BadQuery("columns", "arrival", rule, name="")
    return ", ".join(("ts", *events.event_order))


def names_of(names: NameSequence) -> list[str]:
    """Return one name or several as a list."""
    return [names] if isinstance(names, str) else [str(name) for name in names]


def midnight(moment: datetime) -> datetime:
    """Return the start of the UTC day of *moment*."""
    return moment.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)


def answer(
    events: EventSource,
    statement: str,
    scope: EventScope,
    parameters: Mapping[str, Any] | None = None,
    *,
    since: datetime | None = None,
    until: datetime | None = None,
) -> DataFrame:
    """Return the rows of *statement*, with the receipt of *scope*.

    It reads events of $games between $start and $end. With *since* it reads none before, nor any at or after *until*,
    which is the end of the scope by default. Texts are categories, whole numbers Int64, and times UTC.
    """
    games = {f"game{number}": game for number, game in enumerate(scope.games)}
    given = {"start": scope.interval.start, "end": scope.interval.end, **games, **(parameters or {})}
    values = {
        name: value.astimezone(UTC).replace(tzinfo=None) if isinstance(value, datetime) else value
        for name, value in given.items()
    }
    listed = ", ".join(f"${name}" for name in games) or "NULL"
    statement = statement.replace("game_id IN ($games)", f"game_id IN ({listed})")
    reads = None if since is None else Interval(since, until or scope.interval.end)
    billed = events.bytes_billed
    frame = events.run(statement, values, reads).to_pandas()
    for name, column in frame.items():
        if pd.api.types.is_datetime64_any_dtype(column):
            frame[name] = column.astype("datetime64[us]").dt.tz_localize("UTC")
        elif pd.api.types.is_integer_dtype(column):
            frame[name] = column.astype("Int64")
        elif pd.api.types.is_float_dtype(column):
            frame[name] = column.astype("float64")
        else:
            frame[name] = column.astype("category")
    return with_receipt(frame, msgspec.structs.replace(scope.receipt, bytes_billed=events.bytes_billed - billed))


def resolve_in_zone(over: TimeRange, available: Interval, zone: ZoneInfo) -> Interval:
    """Return the interval of *over*, read by the clock of *zone*: a complete day has ended there."""
    start, end = (moment.astimezone(zone).replace(tzinfo=UTC) for moment in (available.start, available.end))
    there = resolve_range(over, Interval(start, end))
    start, end = (moment.astimezone(UTC).replace(tzinfo=zone) for moment in (there.start, there.end))
    return Interval(start.astimezone(UTC), end.astimezone(UTC))
