"""Metric queries as frozen values, and their request bodies.

A query that exists has a shape that the service accepts; `gamelens.catalog.check_query` says whether its metric takes
it. `decode_query` reads a request body, `encode_query` writes one. Wire 2.5, Query body; Wire 2.6, Query kinds.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import timedelta
from typing import Annotated, Any

import msgspec

from gamelens.errors import BadQuery
from gamelens.wire.filters import Filter, WireFilter, parse_filter, wire_filter
from gamelens.wire.intervals import (
    GRANULARITIES,
    Granularity,
    Interval,
    MalformedInterval,
    WireInterval,
    start_and_duration,
)
from gamelens.wire.limits import DEFAULT_LIMIT, MAX_DAYS, MAX_LIMIT

KINDS = ("group", "split", "timeseries")

Limit = Annotated[int, msgspec.Meta(ge=1, le=MAX_LIMIT)]


class Group(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="type", tag="group"):
    """The top *limit* values of one dimension in each bucket."""

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

    A plain query has *query* and no *game*, one for one game has both, and a by-game query has *split_by* in place of
    *query* (Wire 2.6, Query kinds).

    Raises:
        BadQuery: a field is not allowed; names it as the body does, its value and what is allowed.
    """

    interval: Interval
    granularity: Granularity = "day"
    query: Query | None = None
    split_by: str | None = None  # the dimension of a by-game query
    game: str | None = None  # id of the one game
    since_days_ago: int | None = None  # age in days, for metrics that take it
    filter: Filter | None = None
    games: tuple[str, ...] | None = None  # ids to narrow to; None leaves all of the organisation
    studios: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        if not self.interval:
            raise MalformedInterval(str(self.interval))
        if self.granularity not in GRANULARITIES:
            raise BadQuery("granularity", self.granularity, "is not a granularity", GRANULARITIES)
        if self.granularity == "day" and self.interval.length > timedelta(days=MAX_DAYS):
            raise BadQuery("interval", str(self.interval), f"must be at most {MAX_DAYS} days at day granularity")
        if self.query is None and self.split_by is None:
            raise BadQuery("query", msgspec.UNSET, "is missing: send it, or split_by instead")
        if self.query is not None and self.split_by is not None:
            rule = "cannot be combined with split_by: send only one"
            raise BadQuery("query", msgspec.to_builtins(self.query), rule)
        if self.split_by is not None and self.game is not None:
            raise BadQuery("game", self.game, "cannot be combined with split_by")
        if self.since_days_ago is not None and self.since_days_ago < 1:
            raise BadQuery("since_days_ago", self.since_days_ago, "must be 1 or more")

    @property
    def dimensions(self) -> tuple[str, ...]:
        """The dimensions of the rows, in order, without the `game_id` of by-game rows."""
        match self.query:
            case Group(dimension=dimension):
                return (dimension,)
            case Split(dimensions=dimensions):
                return dimensions
            case Timeseries():
                return ()
        return (self.split_by or "",)


class QueryBody(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """The request body of a query, in which null means absent (Wire 2.5, Query body)."""

    interval: WireInterval
    granularity: Granularity | None = None
    query: Query | None = None
    split_by: str | None = None
    game: str | None = None
    since_days_ago: Annotated[int, msgspec.Meta(ge=1)] | None = None
    filter: WireFilter | None = None
    games: tuple[str, ...] | None = None
    studios: tuple[str, ...] | None = None


def encode_query(query: MetricQuery, *, granularity: Granularity | None = None) -> bytes:
    """Return the request body of *query*, without fields that are None.

    *granularity* is the default of a metric that is shown without one (`retention_retro`), and left out too.
    """
    body = QueryBody(
        interval=start_and_duration(query.interval),
        granularity=query.granularity if query.granularity != granularity else None,
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
    """Read a request body that is already decoded from JSON.

    *granularity* is the default of a body without one; None makes it required.

    Raises:
        BadQuery: a field is unknown, missing, of the wrong type or not allowed.
        MalformedInterval: the interval is a string, but no interval.
    """
    body = _present_fields(body, QueryBody.__struct_fields__, owner="a metric query")
    return MetricQuery(
        interval=Interval.parse(_string(body, "interval", must_be="a string, an ISO 8601 interval")),
        granularity=_string({"granularity": granularity} | body, "granularity", allowed=GRANULARITIES),  # type: ignore[arg-type]
        query=_decode_kind(body["query"]) if "query" in body else None,
        split_by=_string(body, "split_by") if "split_by" in body else None,
        game=_string(body, "game") if "game" in body else None,
        since_days_ago=_integer(body, "since_days_ago"),
        filter=parse_filter(body["filter"]) if "filter" in body else None,
        games=_strings(body, "games"),
        studios=_strings(body, "studios"),
    )


def _decode_kind(value: object) -> Query:
    if not isinstance(value, dict):
        raise BadQuery("query", value, "must be an object with a type")
    kind = value.get("type")
    if kind is None:
        raise BadQuery("query.type", msgspec.UNSET, "is missing", KINDS)
    if kind not in KINDS:
        raise BadQuery("query.type", kind, "must be a query type", KINDS)
    fields = {"type", "limit"} | {"group": {"dimension"}, "split": {"dimensions"}}.get(kind, set())
    value = _present_fields(value, fields, owner=f"a {kind} query", path="query.")
    limit = _integer(value, "limit", path="query.")
    if limit is not None:
        _check_limit(limit)
    if kind == "timeseries":
        return Timeseries()
    if kind == "group":
        return Group(_string(value, "dimension", path="query."), DEFAULT_LIMIT if limit is None else limit)
    dimensions = _strings(value, "dimensions", path="query.")
    if dimensions is None or len(dimensions) != 2:
        raise BadQuery("query.dimensions", value.get("dimensions", msgspec.UNSET), "must be a list of two dimensions")
    return Split((dimensions[0], dimensions[1]))


def _check_limit(limit: int) -> None:
    if not 1 <= limit <= MAX_LIMIT:
        raise BadQuery("query.limit", limit, f"must be 1 to {MAX_LIMIT}")


def _present_fields(body: dict[str, Any], fields: Collection[str], *, owner: str, path: str = "") -> dict[str, Any]:
    """Return *body* without its nulls, which mean absent.

    Fields other than *fields* are refused.
    """
    for name, value in body.items():
        if name not in fields:
            raise BadQuery(path + name, value, f"is not a field of {owner}", sorted(fields), name=name)
    return {name: value for name, value in body.items() if value is not None}


def _string(
    body: dict[str, Any], name: str, *, path: str = "", must_be: str = "a string", allowed: Iterable[str] = ()
) -> str:
    value = body.get(name)
    if value is None:
        raise BadQuery(path + name, msgspec.UNSET, f"is missing: send {must_be}", allowed)
    if not isinstance(value, str):
        raise BadQuery(path + name, value, f"must be {must_be}", allowed)
    return value


def _strings(body: dict[str, Any], name: str, *, path: str = "") -> tuple[str, ...] | None:
    value = body.get(name)
    if value is None:
        return None
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise BadQuery(path + name, value, "must be a list of strings")
    return tuple(value)


def _integer(body: dict[str, Any], name: str, *, path: str = "") -> int | None:
    value = body.get(name)
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool):
        raise BadQuery(path + name, value, "must be a whole number")
    return value
