"""What a board watches, and which questions it needs answered; analysis never asks them itself.

A question by game and one more dimension costs as many requests as one by game alone, so where it matters who is behind
a number (the network of an impression, the country of an install) every value of it is watched as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal

import msgspec

from gamelens.catalog import METRICS, Quotient, metric_named
from gamelens.errors import BadQuery

Kind = Literal["count", "money", "share", "number"]
"""How a series is judged: counts by square roots, money and other numbers by ratios, shares of a whole as such."""


class HealthQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Arguments of `Client.query`, all but when."""

    metric: tuple[str, ...]
    by: tuple[str, ...] = ("game",)
    since_days_ago: int | None = None
    games: tuple[str, ...] | None = None
    where: dict[str, str] | None = None

    @property
    def arguments(self) -> dict[str, Any]:
        """Those that say something, by name."""
        given: dict[str, Any] = {
            "metric": list(self.metric),
            "by": list(self.by),
            "since_days_ago": self.since_days_ago,
        }
        given |= {"games": self.games and list(self.games), "where": self.where}
        return {name: value for name, value in given.items() if value is not None}


class WatchedMetric(msgspec.Struct, frozen=True, kw_only=True):
    """One number watched in every game.

    *key* is what it is called on the command line, *name* what people read. It is the *field* of *metric*; with *over*
    a row for every value of that dimension is judged besides the game's. *is_mix* says that the series are the shares
    which the values have of the game's sum. A share that is neither is *part* of *whole*, both fields. *drills* are
    the dimensions asked for once it is flagged.
    """

    key: str
    name: str
    metric: str
    field: str
    kind: Kind
    over: str | None = None
    is_mix: bool = False
    since_days_ago: int | None = None
    part: str = ""
    whole: str = ""
    drills: tuple[str, ...] = ("country_code", "platform", "build")

    @property
    def asks(self) -> tuple[str, ...]:
        """The metrics of the service it is made of: a share that came back needs to know of how many."""
        return ("new_users", self.metric) if self.metric == "retention_retro" else (self.metric,)


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
    )
}
"""What a board watches unless told otherwise."""


def watches(keys: Iterable[str] | None = None) -> tuple[WatchedMetric, ...]:
    """Those called *keys*: of `WATCHED`, or any metric of the service; all of `WATCHED` when None.

    Raises:
        BadQuery: no such metric, or one whose days cannot be compared.
    """
    return tuple(WATCHED.values() if keys is None else map(_watch_of, dict.fromkeys(keys)))


def questions(watched: Iterable[WatchedMetric]) -> tuple[HealthQuery, ...]:
    """The fewest questions whose answers hold everything *watched*, one for each way to split."""
    watched = tuple(watched)
    splits: dict[str, str] = {}
    for watch in watched:
        if watch.over is not None:
            splits |= dict.fromkeys(watch.asks, watch.over)
    asked: dict[str | None, dict[str, None]] = {}
    since: dict[str | None, int | None] = {}
    for watch in watched:
        for metric in watch.asks:
            over = splits.get(metric)
            asked.setdefault(over, {})[metric] = None
            since[over] = watch.since_days_ago or since.get(over)
    return tuple(
        HealthQuery(metric=tuple(metrics), by=("game",) if over is None else ("game", over), since_days_ago=since[over])
        for over, metrics in asked.items()
    )


def drill_questions(row: Mapping[Any, Any]) -> dict[str, HealthQuery]:
    """What to ask about one flagged *row* of a board, by the dimension it is asked by; nothing of a silent game.

    Each answer is for `segments`. Of a share by network all networks are asked for, since the whole is theirs.
    """
    watch = _watch_of(row["watch"])
    if row["is_silent"]:
        return {}
    asks: dict[str, Any] = {"metric": watch.asks, "games": (str(row["game_id"]),)}
    asks["since_days_ago"] = watch.since_days_ago
    if watch.is_mix:
        return {it: HealthQuery(by=(it, str(watch.over)), **asks) for it in watch.drills}
    if watch.over is None or watch.kind != "share":
        per_game = any(METRICS[metric].kinds != "plain" for metric in watch.asks)
        return {it: HealthQuery(by=("game", it) if per_game else (it,), **asks) for it in watch.drills}
    is_segment = isinstance(row["dimension"], str)
    if is_segment and not isinstance(row["segment"], str):
        return {}  # no filter selects what has no value
    where = {str(row["dimension"]): str(row["segment"])} if is_segment else None
    drills = watch.drills if is_segment else (str(watch.over), *watch.drills)
    return {it: HealthQuery(by=("game", it), where=where, **asks) for it in drills}


def _watch_of(key: str) -> WatchedMetric:
    if key in WATCHED:
        return WATCHED[key]
    if key not in METRICS:
        raise BadQuery("metrics", key, "is nothing that is watched, nor a metric", [*WATCHED, *METRICS])
    metric = metric_named(key)
    if metric.kinds == "retention":
        raise BadQuery("metrics", key, "is watched as retention_d1", WATCHED)
    field = next(it for it in metric.fields if it.name == metric.sorts_by)
    made, name = field.combines, metric.meaning.capitalize()
    if isinstance(made, Quotient) and field.unit == "share":
        parts = (made.part, made.whole)
        return WatchedMetric(
            key=key, name=name, metric=key, field=field.name, kind="share", part=parts[0], whole=parts[1]
        )
    kind: Kind = "count" if field.kind == "count" else "number"
    return WatchedMetric(key=key, name=name, metric=key, field=field.name, kind=kind)
