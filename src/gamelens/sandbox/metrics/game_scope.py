"""Which games an answer is made of: the organisation's own, narrowed by what the request names, and no others.

The tables of an organisation may hold more games than it has now: of one that was taken out of the configuration, the
events stay. So what is left out is decided by the tables themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from gamelens.errors import BadQuery
from gamelens.sandbox.engines.engine import Engine
from gamelens.sandbox.metrics.sql_planner import compile_dimension_values
from gamelens.sandbox.storage.lake import Snapshot
from gamelens.sandbox.tenants import Organisation
from gamelens.wire.intervals import Interval

_EVER: Final = Interval(datetime.min, datetime.max)
_ALL_OF_THEM: Final = 2**31 - 1


def games_in_scope(
    organisation: Organisation,
    *,
    games: Sequence[str] | None = None,
    studios: Sequence[str] | None = None,
    game: str | None = None,
) -> list[str]:
    """Ids of the organisation's games that are left; another organisation's id is as unknown as any other.

    Raises:
        BadQuery: an id is unknown.
    """
    known_games = [it.id for it in organisation.games]
    known_studios = [it.id for it in organisation.studios]
    for field, asked, known in (
        ("game", None if game is None else (game,), known_games),
        ("games", games, known_games),
        ("studios", studios, known_studios),
    ):
        for value in asked or ():
            if value not in known:
                raise BadQuery(
                    field,
                    value,
                    "is not one of the organisation's: GET /metrics/v1/" + field.rstrip("s") + "s lists them",
                )
    return [
        it.id
        for studio in organisation.studios
        for it in studio.games
        if (studios is None or studio.id in studios) and (games is None or it.id in games)
        if (game is None or it.id == game) and it.environment == "sandbox"
    ]


class GameScope:
    """Which games the tables of each organisation hold, looked up by *reader* once for each version of them."""

    def __init__(self, reader: Engine) -> None:
        self._reader = reader
        self._known: dict[str, tuple[Snapshot, frozenset[str]]] = {}

    def condition(self, organisation: Organisation, games: Sequence[str], snapshot: Snapshot) -> Sequence[str] | None:
        """What a plan must be told so that it reads *games* alone; None where *snapshot* holds no others.

        A condition that every row meets would still be looked at for every row. Blocks while it looks.
        """
        return None if self._held(organisation.name, snapshot) <= frozenset(games) else games

    def _held(self, organisation: str, snapshot: Snapshot) -> frozenset[str]:
        of, held = self._known.get(organisation, (None, frozenset[str]()))
        if of is not snapshot:
            plan = compile_dimension_values("game_id", _EVER, games=None, limit=_ALL_OF_THEM)
            held = frozenset(row["value"] for row in self._reader.rows(plan, snapshot))
            self._known[organisation] = snapshot, held
        return held
