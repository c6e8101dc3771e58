"""The games that a query may read, and what Event Data of theirs cannot answer.

An organisation sees its own games, narrowed by the request (Wire 2.13, Scope). Event Data has no purchases and no
session ends: a metric of these would be zero there, and a sum over other days too low. Our choice: a query is refused
if a game in its scope has events that came as Event Data and arrived on a day of its interval (Wire 5.7, Event Data).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from gamelens.catalog import Metric
from gamelens.errors import BadQuery
from gamelens.sandbox.metrics.metric_sql import METRIC_SQL
from gamelens.sandbox.state.tenants import Organisation
from gamelens.sandbox.storage.atoms import ATOMS
from gamelens.wire.dimensions import DIMENSIONS, OfPlayer
from gamelens.wire.filters import dimensions_in
from gamelens.wire.intervals import Interval
from gamelens.wire.queries import MetricQuery

_LACKING: Final = {"business": "purchases", "session_end": "session ends"}
"""Events that Event Data lacks, by category."""


def games_in_scope(
    organisation: Organisation,
    *,
    games: Sequence[str] | None = None,
    studios: Sequence[str] | None = None,
    game: str | None = None,
) -> list[str]:
    """Return the ids of the sandbox games of *organisation* that a request selects.

    An id of another organisation is refused exactly as an unknown one is (Wire 2.13, Scope).

    Args:
        organisation: the organisation of the API key.
        games: ids to narrow to. None leaves all.
        studios: ids of studios to narrow to. None leaves all.
        game: the one game of a per-game query.

    Raises:
        BadQuery: an id is unknown.
    """
    game_ids = [candidate.id for candidate in organisation.games]
    studio_ids = [studio.id for studio in organisation.studios]
    for field, requested, allowed in (
        ("game", None if game is None else (game,), game_ids),
        ("games", games, game_ids),
        ("studios", studios, studio_ids),
    ):
        for value in requested or ():
            if value not in allowed:
                raise BadQuery(
                    field,
                    value,
                    "is not one of the organisation's: GET /metrics/v1/" + field.rstrip("s") + "s lists them",
                )
    return [
        candidate.id
        for studio in organisation.studios
        for candidate in studio.games
        if (studios is None or studio.id in studios) and (games is None or candidate.id in games)
        if (game is None or candidate.id == game) and candidate.environment == "sandbox"
    ]


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
    atoms = (ATOMS[name] for name in METRIC_SQL[metric.name].atoms)
    needs = [("metric", metric.name, _LACKING[atom.of]) for atom in atoms if atom.of in _LACKING]
    named = (*query.dimensions, *(dimensions_in(query.filter) if query.filter is not None else ()))
    for name in named:
        if DIMENSIONS[name].source == OfPlayer("purchase"):
            needs.append(("dimension", name, _LACKING["business"]))
    for field, value, lacking in needs:
        for game in games:
            days = [each for each in event_data.get(game, ()) if each & query.interval]
            if days:
                span = Interval(min(each.start for each in days), max(each.end for each in days))
                rule = (
                    f"is not known of game {game}: its events that arrived in {span} are Event Data, which has no "
                    f"{lacking}. Ask for other games or other days, or import Raw Data of these days into another lake"
                )
                raise BadQuery(field, value, rule)
