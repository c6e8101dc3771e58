"""The games that an answer may use: the organisation's own, narrowed by the request.

The tables of an organisation may hold more games than its configuration: events of a game that was removed stay in the
lake. The tables themselves therefore decide whether a query needs a filter by game. Wire 2.13, Scope.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from gamelens.errors import BadQuery
from gamelens.sandbox.engines.engine import Engine
from gamelens.sandbox.metrics.sql_planner import compile_dimension_values
from gamelens.sandbox.state.tenants import Organisation
from gamelens.sandbox.storage.lake import Snapshot
from gamelens.sandbox.storage.manifest import LakeUnavailable
from gamelens.wire.intervals import Interval

_ALL_TIME: Final = Interval(datetime.min, datetime.max)
_NO_LIMIT: Final = 2**31 - 1


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


class GameScope:
    """The games in each organisation's tables, read through *reader* once per snapshot."""

    def __init__(self, reader: Engine) -> None:
        self._reader = reader
        self._games_by_name: dict[str, tuple[Snapshot, frozenset[str]]] = {}

    def games_filter(
        self, organisation: Organisation, games: Sequence[str], snapshot: Snapshot
    ) -> Sequence[str] | None:
        """Return the games to filter by, or None if the tables hold no others.

        A condition that every row meets would still be evaluated for every row. Blocks on the first use of a snapshot.
        """
        try:
            return None if self._games_in_tables(organisation.name, snapshot) <= frozenset(games) else games
        except LakeUnavailable:  # the query may read other files, which are whole
            return games

    def _games_in_tables(self, organisation: str, snapshot: Snapshot) -> frozenset[str]:
        cached_for, games = self._games_by_name.get(organisation, (None, frozenset[str]()))
        if cached_for is not snapshot:
            query = compile_dimension_values("game_id", _ALL_TIME, games=None, limit=_NO_LIMIT)
            games = frozenset(row["value"] for row in self._reader.rows(query, snapshot))
            self._games_by_name[organisation] = snapshot, games
        return games
