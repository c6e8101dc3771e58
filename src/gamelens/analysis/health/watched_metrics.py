"""Watched metrics of the health board, and the queries that they need.

A query by game and one more dimension costs as many requests as one by game alone, so where the segment behind a number
matters (the network of an impression, the country of an install) each of its values is watched too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal

import msgspec

from gamelens.catalog import METRICS, Quotient, metric_named
from gamelens.errors import BadQuery, suggests_names

MeasureKind = Literal["count", "money", "share", "rate", "number"]
"""Scale of a series: square roots for counts and rates, ratios for money and numbers."""


@suggests_names
class HealthQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Arguments of `Client.query` without a time range.

    Attributes:
        metric: metrics.
        by: dimensions.
        since_days_ago: age of the cohorts, for retention.
        games: ids of games, or None for all.
        where: value of a dimension, or None for no filter.
    """

    metric: tuple[str, ...]
    by: tuple[str, ...] = ("game",)
    since_days_ago: int | None = None
    games: tuple[str, ...] | None = None
    where: dict[str, str] | None = None

    @property
    def arguments(self) -> dict[str, Any]:
        """Keyword arguments by name, without those that are None."""
        given: dict[str, Any] = {
            "metric": list(self.metric),
            "by": list(self.by),
            "since_days_ago": self.since_days_ago,
        }
        if any(METRICS[name].recipe == "money" for name in self.metric):
            given["fields"] = "all"  # purchases and impressions are counted besides the money
        given |= {"games": self.games and list(self.games), "where": self.where}
        return {name: value for name, value in given.items() if value is not None}


@suggests_names
class WatchedMetric(msgspec.Struct, frozen=True, kw_only=True):
    """One number that the board follows in every game.

    Attributes:
        key: its name on the command line.
        name: its display name.
        metric: the metric of the service.
        field: the field of the metric.
        kind: the scale it is judged on.
        over: a dimension whose values are judged beside the whole game.
        is_mix: the series are the shares of the values of *over* in the game's sum.
        since_days_ago: age of the cohorts, for retention.
        where: value of a dimension that the metric is queried for, as pairs.
        per: the metric that the number is divided by, without *where*.
        is_of_both: the denominator is the sum of both numbers.
        is_worse_higher: a rise is the worse direction.
        part: field that is the numerator of any other share.
        whole: field that is its denominator.
        drills: dimensions that are queried once a row is flagged.
    """

    key: str
    name: str
    metric: str
    field: str
    kind: MeasureKind
    over: str | None = None
    is_mix: bool = False
    since_days_ago: int | None = None
    where: tuple[tuple[str, str], ...] = ()
    per: str | None = None
    is_of_both: bool = False
    is_worse_higher: bool = False
    part: str = ""
    whole: str = ""
    drills: tuple[str, ...] = ("country_code", "platform", "build")

    @property
    def metrics(self) -> tuple[str, ...]:
        """Metrics of the service that it needs: retention needs the installs too."""
        return ("new_users", self.metric) if self.metric == "retention_retro" else (self.metric,)

    def queries(self, *, by: tuple[str, ...], **more: Any) -> tuple[HealthQuery, ...]:
        """Return the queries by *by* that answer it: for the metric, and for its denominator if it has one."""
        where = dict(self.where) or None
        query = HealthQuery(metric=self.metrics, by=by, where=where, since_days_ago=self.since_days_ago, **more)
        return (query,) if self.per is None else (query, HealthQuery(metric=(self.per,), by=by, **more))


_BUILD: Final = "build"
_COUNTRY: Final = "country_code"
_NETWORK: Final = "ilrd_network_name"

WATCHED: Final[dict[str, WatchedMetric]] = {
    watch.key: watch
    for watch in (
        WatchedMetric(
            key="user_unique", name="Active players", metric="user_unique", field="user_unique", kind="count"
        ),
        WatchedMetric(
            key="session_unique", name="Sessions", metric="session_unique", field="session_unique", kind="count"
        ),
        WatchedMetric(key="new_users", name="New players", metric="new_users", field="new_users", kind="count"),
        WatchedMetric(
            key="retention_d1",
            name="Day 1 retention",
            metric="retention_retro",
            field="retention",
            kind="share",
            over=_COUNTRY,
            since_days_ago=1,
            drills=("build", "platform"),
        ),
        WatchedMetric(key="revenue", name="Purchase revenue", metric="revenue", field="sum", kind="money"),
        WatchedMetric(key="purchases", name="Purchases", metric="revenue", field="event_count", kind="count"),
        WatchedMetric(
            key="ad_impressions_count",
            name="Ads shown",
            metric="ad_impressions_count",
            field="ad_impressions_count",
            kind="count",
        ),
        WatchedMetric(
            key="ilrd_revenue",
            name="Ad revenue",
            metric="ilrd_revenue",
            field="sum",
            kind="money",
            drills=(_NETWORK, _COUNTRY, "platform"),
        ),
        WatchedMetric(
            key="network_share",
            name="Share of ads by network",
            metric="ilrd_revenue",
            field="event_count",
            kind="share",
            over=_NETWORK,
            is_mix=True,
            drills=("platform", _COUNTRY),
        ),
        WatchedMetric(
            key="session_length",
            name="Session length",
            metric="session_length",
            field="session_length",
            kind="number",
        ),
        WatchedMetric(
            key="failed_shows",
            name="Failed ad shows",
            metric="event_count",
            field="event_count",
            kind="share",
            where=(("ad_action", "failed_show"),),
            per="ad_impressions_count",
            is_of_both=True,
            is_worse_higher=True,
            drills=(),
        ),
        WatchedMetric(
            key="errors",
            name="Errors per session",
            metric="event_count",
            field="event_count",
            kind="rate",
            over=_BUILD,
            where=(("category", "error"),),
            per="session_unique",
            is_worse_higher=True,
            drills=(),
        ),
        WatchedMetric(
            key="critical_errors",
            name="Critical errors per session",
            metric="event_count",
            field="event_count",
            kind="rate",
            over=_BUILD,
            where=(("severity", "critical"),),
            per="session_unique",
            is_worse_higher=True,
            drills=(),
        ),
    )
}
"""Watched metrics of a board by default, by key."""


def watches(keys: Iterable[str] | None = None) -> tuple[WatchedMetric, ...]:
    """Return the watched metrics called *keys*, all of `WATCHED` by default.

        health.watches(["user_unique", "ilrd_revenue"])

    A key is one of `WATCHED`, or any metric of the service. One alone may be text.

    Raises:
        BadQuery: there is no such metric, or its days cannot be compared.
    """
    names = [keys] if isinstance(keys, str) else keys
    return tuple(WATCHED.values() if names is None else map(_watched_metric, dict.fromkeys(names)))


def board_queries(watched: Iterable[WatchedMetric]) -> tuple[HealthQuery, ...]:
    """Return the fewest queries whose answers hold all *watched* metrics.

        health.board_queries(health.watches(["user_unique", "ilrd_revenue", "errors"]))

    A metric that adds up over all dimensions is not queried by game alone if another one needs its split.
    """
    wanted = [
        query
        for watch in watched
        for query in watch.queries(by=("game",) if watch.over is None else ("game", watch.over))
    ]
    split = {(metric, _where_key(query)) for query in wanted if len(query.by) > 1 for metric in query.metric}
    merged: dict[tuple[Any, ...], dict[str, None]] = {}
    since: dict[tuple[Any, ...], int | None] = {}
    for query in wanted:
        key = (query.by, _where_key(query))
        for metric in query.metric:
            adds_up = METRICS[metric].adds == "everywhere"
            if len(query.by) == 1 and adds_up and (metric, key[1]) in split:
                continue
            merged.setdefault(key, {})[metric] = None
            since[key] = query.since_days_ago or since.get(key)
    return tuple(
        HealthQuery(metric=tuple(names), by=by, since_days_ago=since[by, where], where=dict(where) or None)
        for (by, where), names in merged.items()
    )


def _where_key(query: HealthQuery) -> tuple[tuple[str, str], ...]:
    return tuple((query.where or {}).items())


def drill_queries(row: Mapping[Any, Any]) -> dict[str, HealthQuery]:
    """Return the queries that explain a flagged *row* of a board, by dimension.

        players = lens.query("user_unique", by="game", over="last 28 complete days")
        worst = health.board(health.score_days(health.daily([players]))).iloc[0]
        health.drill_queries(worst)

    Each answer is for `segments`. A share by network needs all networks, because they make up the whole. A silent game
    needs none.
    """
    watch = _watched_metric(row["watch"])
    if row["is_silent"]:
        return {}
    arguments: dict[str, Any] = {"metric": watch.metrics, "games": (str(row["game_id"]),)}
    arguments["since_days_ago"] = watch.since_days_ago
    if watch.is_mix:
        return {dimension: HealthQuery(by=(dimension, str(watch.over)), **arguments) for dimension in watch.drills}
    if watch.over is None or watch.kind != "share":
        per_game = any(METRICS[metric].kinds != "plain" for metric in watch.metrics)
        return {
            dimension: HealthQuery(by=("game", dimension) if per_game else (dimension,), **arguments)
            for dimension in watch.drills
        }
    is_segment = isinstance(row["dimension"], str)
    if is_segment and not isinstance(row["segment"], str):
        return {}  # no filter selects nulls
    where = {str(row["dimension"]): str(row["segment"])} if is_segment else None
    drills = watch.drills if is_segment else (str(watch.over), *watch.drills)
    return {dimension: HealthQuery(by=("game", dimension), where=where, **arguments) for dimension in drills}


def _watched_metric(key: str) -> WatchedMetric:
    """Return the watched metric called *key*.

    Raises:
        BadQuery: there is no such metric, or its days cannot be compared.
    """
    if key in WATCHED:
        return WATCHED[key]
    if key not in METRICS:
        raise BadQuery("metrics", key, "is neither a watched number nor a metric", [*WATCHED, *METRICS])
    metric = metric_named(key)
    if metric.kinds == "retention":
        raise BadQuery("metrics", key, "is watched as retention_d1", WATCHED)
    field = next(candidate for candidate in metric.fields if candidate.name == metric.sorts_by)
    result, name = field.combines, metric.meaning.capitalize()
    if isinstance(result, Quotient) and field.unit == "share":
        parts = (result.part, result.whole)
        return WatchedMetric(
            key=key, name=name, metric=key, field=field.name, kind="share", part=parts[0], whole=parts[1]
        )
    kind: MeasureKind = "count" if field.kind == "count" else "number"
    return WatchedMetric(key=key, name=name, metric=key, field=field.name, kind=kind)
