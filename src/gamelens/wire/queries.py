"""What is asked of the metrics service, as frozen values (Wire 2.5, Query body; Wire 2.6, Query kinds).

A query that exists has a shape the service accepts; whether its metric and dimensions exist is the catalog's to say
(`gamelens.catalog.check`). `decode_query` reads a request body, `encode_query` writes one.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Any

import msgspec

from gamelens.errors import BadQuery
from gamelens.wire.filters import Filter, WireFilter, parse_filter, wire_filter
from gamelens.wire.intervals import GRANULARITIES, Granularity, Interval, MalformedInterval, WireInterval
from gamelens.wire.limits import DEFAULT_LIMIT, MAX_DAYS, MAX_LIMIT

KINDS = ("group", "split", "timeseries")

Limit = Annotated[int, msgspec.Meta(ge=1, le=MAX_LIMIT)]


class Group(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="type", tag="group"):
    """Top *limit* values of one dimension in each bucket."""

    dimension: str
    limit: Limit = DEFAULT_LIMIT

    def __post_init__(self) -> None:
        _check_limit(self.limit)


class Split(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="type", tag="split"):
    """Every pair of values of two dimensions in each bucket."""

    dimensions: tuple[str, str]

    def __post_init__(self) -> None:
        if self.dimensions[0] == self.dimensions[1]:
            raise BadQuery("query.dimensions", list(self.dimensions), "must name two different dimensions")


class Timeseries(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="type", tag="timeseries"):
    """One number for each bucket."""


Query = Group | Split | Timeseries


class MetricQuery(msgspec.Struct, frozen=True, kw_only=True):
    """One request for one metric.

    *query* set and *game* not: the plain kind. Both: the game kind. *split_by* instead of *query*: the by-game kind.
    *games* and *studios* narrow; None leaves all of the organisation in.

    Raises:
        BadQuery: names the field, as the body calls it, its value and what is allowed.
    """

    interval: Interval
    granularity: Granularity = "day"
    query: Query | None = None
    split_by: str | None = None
    game: str | None = None
    since_days_ago: int | None = None
    filter: Filter | None = None
    games: tuple[str, ...] | None = None
    studios: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        if not self.interval:
            raise MalformedInterval(str(self.interval))
        if self.granularity not in GRANULARITIES:
            raise BadQuery("granularity", self.granularity, "is not a granularity", GRANULARITIES)
        if self.granularity == "day" and self.interval.length > timedelta(days=MAX_DAYS):
            raise BadQuery("interval", str(self.interval), f"must be at most {MAX_DAYS} days at day granularity")
        if (self.query is None) == (self.split_by is None):
            raise BadQuery("query", None, "must be there, or split_by in its place, and never both")
        if self.split_by is not None and self.game is not None:
            raise BadQuery("game", self.game, "must not stand beside split_by")
        if self.since_days_ago is not None and self.since_days_ago < 1:
            raise BadQuery("since_days_ago", self.since_days_ago, "must be 1 or more")

    @property
    def dimensions(self) -> tuple[str, ...]:
        """The dimensions the rows carry, in order; a by-game row carries game_id besides."""
        match self.query:
            case Group(dimension=dimension):
                return (dimension,)
            case Split(dimensions=dimensions):
                return dimensions
            case Timeseries():
                return ()
        return (self.split_by or "",)


class QueryBody(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A query as it travels (Wire 2.5, Query body); null is as good as leaving a field out."""

    interval: WireInterval
    granularity: Granularity | None = None
    query: Query | None = None
    split_by: str | None = None
    game: str | None = None
    since_days_ago: Annotated[int, msgspec.Meta(ge=1)] | None = None
    filter: WireFilter | None = None
    games: tuple[str, ...] | None = None
    studios: tuple[str, ...] | None = None


def encode_query(query: MetricQuery) -> bytes:
    """The request body; fields that say nothing are left out."""
    body = QueryBody(
        interval=str(query.interval),
        granularity=query.granularity,
        query=query.query,
        split_by=query.split_by,
        game=query.game,
        since_days_ago=query.since_days_ago,
        filter=wire_filter(query.filter) if query.filter is not None else None,
        games=query.games,
        studios=query.studios,
    )
    return msgspec.json.encode(body)


def decode_query(body: dict[str, Any], *, granularity: Granularity | None = None) -> MetricQuery:
    """Read a request body that is already a JSON object; *granularity* is what it means when it names none.

    Raises:
        BadQuery: a field is unknown, missing, of the wrong type or not allowed.
        MalformedInterval: the interval is a string and yet no interval.
    """
    fields = QueryBody.__struct_fields__
    for name, value in body.items():
        if name not in fields:
            raise BadQuery(name, value, "is not a field of a metric query", sorted(fields), name=name)
    interval = body.get("interval")
    if not isinstance(interval, str):
        raise BadQuery("interval", interval, "must be a string, an ISO 8601 interval")
    raw_filter = body.get("filter")
    return MetricQuery(
        interval=Interval.parse(interval),
        granularity=_string(body, "granularity", default=granularity),  # type: ignore[arg-type]
        query=_decode_kind(body["query"]) if body.get("query") is not None else None,
        split_by=_string(body, "split_by") if body.get("split_by") is not None else None,
        game=_string(body, "game") if body.get("game") is not None else None,
        since_days_ago=_whole(body, "since_days_ago"),
        filter=parse_filter(raw_filter) if raw_filter is not None else None,
        games=_strings(body, "games"),
        studios=_strings(body, "studios"),
    )


def _decode_kind(value: object) -> Query:
    if not isinstance(value, dict):
        raise BadQuery("query", value, "must be an object with a type")
    kind = value.get("type")
    if kind not in KINDS:
        raise BadQuery("query.type", kind, "is not a query type", KINDS)
    allowed = {"type", "limit"} | {"group": {"dimension"}, "split": {"dimensions"}}.get(kind, set())
    for name, given in value.items():
        if name not in allowed:
            raise BadQuery(f"query.{name}", given, f"is not a field of a {kind} query", sorted(allowed), name=name)
    limit = _whole(value, "limit", path="query.")
    if limit is not None:
        _check_limit(limit)
    if kind == "timeseries":
        return Timeseries()
    if kind == "group":
        return Group(_string(value, "dimension", path="query."), DEFAULT_LIMIT if limit is None else limit)
    pair = _strings(value, "dimensions", path="query.")
    if pair is None or len(pair) != 2:
        raise BadQuery("query.dimensions", value.get("dimensions"), "must be a list of two dimensions")
    return Split((pair[0], pair[1]))


def _check_limit(limit: int) -> None:
    if not 1 <= limit <= MAX_LIMIT:
        raise BadQuery("query.limit", limit, f"must be 1 to {MAX_LIMIT}")


def _string(body: dict[str, Any], name: str, *, path: str = "", default: str | None = None) -> str:
    value = body.get(name, default)
    if not isinstance(value, str):
        raise BadQuery(path + name, value, "must be a string" if name in body else "is missing and must be a string")
    return value


def _strings(body: dict[str, Any], name: str, *, path: str = "") -> tuple[str, ...] | None:
    value = body.get(name)
    if value is None:
        return None
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise BadQuery(path + name, value, "must be a list of strings")
    return tuple(value)


def _whole(body: dict[str, Any], name: str, *, path: str = "") -> int | None:
    value = body.get(name)
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool):
        raise BadQuery(path + name, value, "must be a whole number")
    return value
