"""Games, studios and filters as an analyst writes them, made into what the service takes.

The service takes ids, and compares with values only. A title, or a comparison with null, needs a list of the service.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from gamelens.client.connection.event_loop import gather
from gamelens.client.connection.metrics_api import MetricsApi
from gamelens.client.connection.transport import RequestStats
from gamelens.errors import BadQuery
from gamelens.wire.filters import Filter, nullable_in, with_values_of
from gamelens.wire.intervals import Interval

_ONE: Final = {"games": "game", "studios": "studio"}

Titles = Mapping[str, Iterable[str]]
"""The texts that stand for each id.

They are its title, also with studio and id, as frames show a title that several have.
"""


def has_titles(names: Sequence[str] | None) -> bool:
    """Return whether one of *names* may be a title: digits alone are an id."""
    return any(not name.isdecimal() for name in names or ())


def ids_of(field: str, names: Sequence[str], titles: Titles) -> tuple[str, ...] | None:
    """Return the ids that *names*, the argument *field*, stand for.

    The result is None if one of them is neither an id nor a title. An id stands for itself, whatever the titles are.

    Raises:
        BadQuery: several have the title; the error has their ids.
    """
    by_title = defaultdict(list)
    for identity, texts in titles.items():
        for text in dict.fromkeys(texts):
            by_title[text].append(identity)
    found: list[str] = []
    for name in names:
        matches = [name] if name in titles or name.isdecimal() else by_title[name]
        if len(matches) > 1:
            raise BadQuery(field, name, f"is the title of {len(matches)} {field}: pass the id of one", matches)
        if not matches:
            return None
        found += matches
    return tuple(dict.fromkeys(found))


class NameLookup:
    """The ids and filters of one query, found in the lists of the service.

    Args:
        service: has the lists.
        available: the available interval; a game or studio with data in it is found.
        tally: counts the requests.
    """

    def __init__(self, service: MetricsApi, available: Interval, tally: RequestStats | None = None) -> None:
        self._service = service
        self._available = available
        self._tally = tally

    async def studios(self, names: Sequence[str] | None) -> tuple[str, ...] | None:
        """Return the ids of the studios called *names*, which are ids or names.

        Raises:
            BadQuery: two studios have the name, or none has.
        """
        return await self._ids("studios", names, None)

    async def games(self, names: Sequence[str] | None, studios: Sequence[str] | None) -> tuple[str, ...] | None:
        """Return the ids of the games called *names*, ids or titles, within the ids *studios*.

        Raises:
            BadQuery: two games have the title, or none has.
        """
        return await self._ids("games", names, studios)

    async def filter(
        self,
        where: Filter | None,
        interval: Interval,
        *,
        studios: Sequence[str] | None = None,
        games: Sequence[str] | None = None,
    ) -> Filter | None:
        """Return *where* as the service takes it: no value in *interval* in place of null."""
        if where is None or not (names := nullable_in(where)):
            return where
        lists = await gather(
            self._service.dimension_values(name, interval, studios=studios or (), games=games or (), tally=self._tally)
            for name in names
        )
        return with_values_of(where, dict(zip(names, lists, strict=True)))

    async def _ids(
        self, field: str, names: Sequence[str] | None, studios: Sequence[str] | None
    ) -> tuple[str, ...] | None:
        if names is None or not has_titles(names):
            return None if names is None else tuple(names)
        titles = await (self._game_titles(studios) if field == "games" else self._studio_names())
        if (ids := ids_of(field, names, titles)) is not None:
            return ids
        unknown = next(name for name in names if ids_of(field, [name], titles) is None)
        rule = f"is neither the id nor the title of a {_ONE[field]} with data in {self._available}"
        raise BadQuery(field, unknown, rule, sorted({next(iter(texts)) for texts in titles.values()}))

    async def _game_titles(self, studios: Sequence[str] | None) -> Titles:
        games = await self._service.games(self._available, studios, self._tally)
        shown = {game.id: f"{game.title} ({game.studio or game.studio_id}" for game in games}
        return {game.id: (game.title, f"{shown[game.id]})", f"{shown[game.id]}, {game.id})") for game in games}

    async def _studio_names(self) -> Titles:
        studios = await self._service.studios(self._available, self._tally)
        return {studio.id: (studio.name, f"{studio.name} ({studio.id})") for studio in studios}
