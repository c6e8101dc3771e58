"""Refusal of what Event Data cannot answer: it has no purchases and no session ends.

A metric of these would be zero there, and a sum over other days too low. Our choice: a query is refused if a game in
its scope has events that came as Event Data and arrived on a day of its interval (Wire 5.7, Event Data).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from gamelens.catalog import Metric
from gamelens.errors import BadQuery
from gamelens.sandbox.metrics.metric_sql import METRIC_SQL
from gamelens.sandbox.storage.atoms import ATOMS
from gamelens.wire.dimensions import DIMENSIONS, OfPlayer
from gamelens.wire.filters import dimensions_in
from gamelens.wire.intervals import Interval
from gamelens.wire.queries import MetricQuery

_LACKING: Final = {"business": "purchases", "session_end": "session ends"}
"""Events that Event Data lacks, by category."""


def check_event_data(
    metric: Metric, query: MetricQuery, games: Iterable[str], event_data: Mapping[str, Sequence[Interval]]
) -> None:
    """Refuse *query* if it needs what Event Data lacks.

    Args:
        metric: the metric.
        query: the query.
        games: ids of the games in its scope.
        event_data: days of arrival of the events that came as Event Data, by game (`Lake.event_data`).

    Raises:
        BadQuery: it does; names the first such game and its days.
    """
    for field, value, lacking in _needs(metric, query):
        for game in games:
            days = [each for each in event_data.get(game, ()) if each & query.interval]
            if days:
                span = Interval(min(each.start for each in days), max(each.end for each in days))
                rule = (
                    f"is not known of game {game}: its events that arrived in {span} are Event Data, which has no "
                    f"{lacking}. Ask for other games or other days, or import Raw Data of these days into another lake"
                )
                raise BadQuery(field, value, rule)


def _needs(metric: Metric, query: MetricQuery) -> Iterable[tuple[str, str, str]]:
    """Yield each field and value of *query* that needs what Event Data lacks, and what."""
    for name in METRIC_SQL[metric.name].atoms:
        if (category := ATOMS[name].of) in _LACKING:
            yield "metric", metric.name, _LACKING[category]
    for name in (*query.dimensions, *(dimensions_in(query.filter) if query.filter is not None else ())):
        if DIMENSIONS[name].source == OfPlayer("purchase"):
            yield "dimension", name, _LACKING["business"]
