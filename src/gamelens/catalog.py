"""The catalog: every metric with its fields and rules, and every dimension.

The README of the sandbox room says what else a new metric or dimension takes.
"""

from __future__ import annotations

from typing import Final, Literal

import msgspec

from gamelens.errors import BadQuery
from gamelens.wire.filters import dimensions_in
from gamelens.wire.queries import MetricQuery

Kinds = Literal["plain", "per game", "retention"]
Adds = Literal["everywhere", "over games", "never"]


class Quotient(msgspec.Struct, frozen=True):
    """A ratio of two fields of the same row: *part* / *whole*, times *worth*."""

    part: str
    whole: str
    worth: float = 1.0


class Field(msgspec.Struct, frozen=True):
    """One field of a metric's rows.

    Attributes:
        name: name on the wire and of the column.
        kind: `count` is an integer, `number` a float.
        unit: unit, for people.
        combines: rule by which rows are added up: a sum, a quotient of other fields, or None if they cannot be.
    """

    name: str
    kind: Literal["count", "number"]
    unit: str
    combines: Literal["sum"] | Quotient | None = "sum"


class Metric(msgspec.Struct, frozen=True, kw_only=True):
    """One metric.

    Attributes:
        name: name on the wire.
        meaning: definition in a few words.
        fields: fields of its rows, without the dimensions.
        sorts_by: field that orders the rows of an answer.
        kinds: forms of query it takes: plain, per game (one game or by game), or retention (Wire 2.6, Query kinds).
        adds: what its values may be summed over: everywhere is buckets and dimensions (Wire 4.14, Adding up).
        takes_since_days_ago: whether a query may have `since_days_ago`.
    """

    name: str
    meaning: str
    fields: tuple[Field, ...]
    sorts_by: str
    kinds: Kinds = "plain"
    adds: Adds = "everywhere"
    takes_since_days_ago: bool = False


def _count(name: str, unit: str) -> Field:
    return Field(name, "count", unit)


def _number(name: str, unit: str, combines: Literal["sum"] | Quotient | None = "sum") -> Field:
    return Field(name, "number", unit, combines)


_USERS: Final = _count("user_unique", "players")
_SESSIONS: Final = _count("session_unique", "sessions")
_PAYERS: Final = _count("paying_users", "players")
_TOTAL_CENTS: Final = _count("total_revenue", "US cents")
_MONEY: Final = (
    _count("event_count", "events"),
    _number("mean", "USD", Quotient("sum", "event_count")),
    _number("sum", "USD"),
    _number("sum_cents", "US cents"),
)
METRICS: Final[dict[str, Metric]] = {
    metric.name: metric
    for metric in (
        Metric(
            name="ad_impressions_count",
            meaning="ads shown",
            fields=(_count("ad_impressions_count", "ads"),),
            sorts_by="ad_impressions_count",
        ),
        Metric(
            name="ad_impressions_per_session",
            meaning="ads shown / sessions",
            fields=(
                _count("ad_impressions_count", "ads"),
                _number(
                    "ad_impressions_per_session", "ads per session", Quotient("ad_impressions_count", "session_unique")
                ),
                _SESSIONS,
            ),
            sorts_by="ad_impressions_per_session",
            adds="over games",
        ),
        Metric(
            name="arppu",
            meaning="revenue / paying users",
            fields=(
                _number("arppu", "USD per payer", Quotient("total_revenue", "paying_users", 0.01)),
                _PAYERS,
                _TOTAL_CENTS,
            ),
            sorts_by="arppu",
            adds="over games",
        ),
        Metric(
            name="arpu",
            meaning="revenue / active users",
            fields=(
                _number("arpu", "USD per player", Quotient("total_revenue", "user_unique", 0.01)),
                _USERS,
                _TOTAL_CENTS,
            ),
            sorts_by="arpu",
            adds="over games",
        ),
        Metric(
            name="conversion",
            meaning="paying users / active users",
            fields=(_number("conversion", "share", Quotient("paying_users", "user_unique")), _PAYERS, _USERS),
            sorts_by="conversion",
            kinds="per game",
            adds="over games",
        ),
        Metric(
            name="conversion_ft",
            meaning="converting users / active users",
            fields=(
                _number("conversion_ft", "share", Quotient("converting_users", "user_unique")),
                _count("converting_users", "players"),
                _USERS,
            ),
            sorts_by="conversion_ft",
            kinds="per game",
            adds="over games",
        ),
        Metric(
            name="converting_users",
            meaning="players whose first purchase falls in the bucket",
            fields=(_count("converting_users", "players"),),
            sorts_by="converting_users",
        ),
        Metric(
            name="event_count",
            meaning="events of any category",
            fields=(_count("event_count", "events"),),
            sorts_by="event_count",
        ),
        Metric(
            name="ilrd_id_unique",
            meaning="distinct ad impressions",
            fields=(_count("ilrd_id_unique", "impressions"),),
            sorts_by="ilrd_id_unique",
            adds="over games",
        ),
        Metric(name="ilrd_revenue", meaning="ad impression revenue", fields=_MONEY, sorts_by="sum"),
        Metric(
            name="installs_ratio",
            meaning="new users / active users",
            fields=(
                _number("installs_ratio", "share", Quotient("new_users", "user_unique")),
                _count("new_users", "players"),
                _USERS,
            ),
            sorts_by="installs_ratio",
            kinds="per game",
            adds="over games",
        ),
        Metric(
            name="new_users",
            meaning="players whose install falls in the bucket",
            fields=(_count("new_users", "players"),),
            sorts_by="new_users",
        ),
        Metric(
            name="paying_users",
            meaning="distinct players with a purchase",
            fields=(_PAYERS,),
            sorts_by="paying_users",
            adds="over games",
        ),
        Metric(
            name="retention_retro",
            meaning="of the players installed N days before a day, the share active on it",
            fields=(_number("retention", "share", None),),
            sorts_by="retention",
            kinds="retention",
            adds="never",
            takes_since_days_ago=True,
        ),
        Metric(
            name="returning_users",
            meaning="distinct players active on a day after their install day",
            fields=(_count("returning_users", "players"),),
            sorts_by="returning_users",
            kinds="per game",
            adds="over games",
            takes_since_days_ago=True,
        ),
        Metric(name="revenue", meaning="purchases", fields=_MONEY, sorts_by="sum"),
        Metric(
            name="session_length",
            meaning="mean length of the sessions that ended",
            fields=(_number("session_length", "seconds", None), _SESSIONS, _count("total_session_length", "seconds")),
            sorts_by="session_length",
            adds="over games",
        ),
        Metric(
            name="session_unique",
            meaning="distinct sessions with an event",
            fields=(_SESSIONS,),
            sorts_by="session_unique",
            adds="over games",
        ),
        Metric(
            name="user_unique",
            meaning="distinct players with an event",
            fields=(_USERS,),
            sorts_by="user_unique",
            adds="over games",
        ),
    )
}


def metric_named(name: str) -> Metric:
    """Return the metric called *name*.

    Raises:
        BadQuery: no metric has this name; the error names the nearest.
    """
    if name not in METRICS:
        raise BadQuery("metric", name, "is not a metric", sorted(METRICS))
    return METRICS[name]


def check_query(metric: Metric, query: MetricQuery) -> None:
    """Check that *metric* takes *query*, whose shape is valid (Wire 2.6, Query kinds).

    Raises:
        BadQuery: a dimension is unknown, the metric does not take this kind of query, or a field does not apply.
    """
    _check_kind(metric, query)
    named = [("query.dimension" if query.query is not None else "split_by", name) for name in query.dimensions]
    named += [("filter", name) for name in dimensions_in(query.filter)] if query.filter is not None else []
    for field, name in named:
        if name not in DIMENSIONS:
            raise BadQuery(field, name, "is not a dimension", DIMENSIONS)
        if metric.kinds == "retention" and DIMENSIONS[name].level in ("ad", "ilrd"):
            raise BadQuery(field, name, f"does not apply to {metric.name}, whose players have no such value")


def _check_kind(metric: Metric, query: MetricQuery) -> None:
    if metric.kinds == "plain":
        for field in ("game", "split_by"):
            if getattr(query, field) is not None:
                raise BadQuery(field, getattr(query, field), f"does not apply to {metric.name}: send a query instead")
    elif query.query is not None and query.game is None:
        use = "split_by" if metric.kinds == "retention" else "game beside it, or split_by in its place"
        raise BadQuery(
            "query",
            msgspec.to_builtins(query.query),
            f"is not enough for {metric.name}, which exists per game: send {use}",
        )
    if metric.kinds == "retention":
        _check_retention(metric, query)
    if query.since_days_ago is not None and not metric.takes_since_days_ago:
        raise BadQuery("since_days_ago", query.since_days_ago, f"does not apply to {metric.name}")


def _check_retention(metric: Metric, query: MetricQuery) -> None:
    if query.game is not None:
        raise BadQuery("game", query.game, f"does not apply to {metric.name}: send split_by")
    if query.since_days_ago is None:
        raise BadQuery("since_days_ago", msgspec.UNSET, f"is missing: {metric.name} needs it")
    if query.granularity != "day":
        raise BadQuery("granularity", query.granularity, f"must be day for {metric.name}", ["day"])


class Dimension(msgspec.Struct, frozen=True):
    """One dimension.

    Attributes:
        name: name on the wire.
        level: owner of the value: the event, its player, or only `ads` (ad) or `impression` (ilrd) events.
        meaning: definition in a few words.
        typical: usual number of values, for estimates.
    """

    name: str
    level: Literal["event", "player", "ad", "ilrd"]
    meaning: str
    typical: int


DIMENSIONS: Final[dict[str, Dimension]] = {
    dimension.name: dimension
    for dimension in (
        Dimension("game_id", "event", "id of the game", 10),
        Dimension("build", "event", "build that sent the event", 20),
        Dimension("first_build", "player", "build of the install event", 20),
        Dimension("category", "event", "category of the event", 10),
        Dimension("country_code", "event", "two letters; decided for each event", 150),
        Dimension("platform", "event", "platform that sent the event", 4),
        Dimension("installed_on", "player", "install day, YYYY-MM-DD", 365),
        Dimension("is_paying", "player", '"true" from the first purchase on, else "false"', 2),
        Dimension("is_converting", "player", '"true" on the day of the first purchase, else "false"', 2),
        Dimension("ad_sdk_name", "ad", "ad SDK that showed the ad", 5),
        Dimension("ad_type", "ad", "format of the ad", 6),
        Dimension("ad_action", "ad", "what happened to the ad", 5),
        Dimension("ilrd_sdk_vendor", "ilrd", "mediation SDK that reported the impression", 4),
        Dimension("ilrd_adunit_name", "ilrd", "ad unit of the impression", 20),
        Dimension("ilrd_network_name", "ilrd", "network that filled the impression; may be null", 15),
        Dimension("ilrd_adunit_format", "ilrd", "format of the impression", 6),
        Dimension("install_publisher", "event", "publisher that brought the install", 20),
        Dimension("ab_id", "event", "experiment", 5),
        Dimension("ab_variant_id", "event", "variant of the experiment", 10),
        Dimension("severity", "event", "severity of an error event", 5),
    )
}
