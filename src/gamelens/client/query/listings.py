"""The lists of a service that a query needs before it can be planned: names, ids of titles, values of a fan-out.

A query requests those that are not remembered. A plan requests none: it counts them, and guesses what they hold.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final, Literal

from gamelens.catalog import TITLES
from gamelens.client.connection.metrics_api import (
    GameListing,
    MetricsApi,
    game_listings,
    games_key,
    studios_key,
    unknown_name_error,
    values_key,
)
from gamelens.client.connection.transport import RequestStats
from gamelens.client.query.arguments import GAME_ID, STUDIO_ID, QuerySpec
from gamelens.client.query.planner import typical_values
from gamelens.errors import BadQuery
from gamelens.wire.intervals import Interval
from gamelens.wire.limits import DEFAULT_LIMIT
from gamelens.wire.results import Studio

TextsById = Mapping[str, Iterable[str]]
"""The texts that stand for each id: its title, also with studio and id, as frames show a title that several have."""

_ONE: Final = {"games": "game", "studios": "studio"}


class Listings:
    """The lists of *service*.

    Args:
        service: has them.
        tally: counts the requests for lists that are not remembered; None to request nothing.

    Attributes:
        warnings: what the service said beside the lists, and names that only the service knows.
        missing: keys of the lists that would be requested, where nothing is.
    """

    def __init__(self, service: MetricsApi, tally: RequestStats | None) -> None:
        self._service = service
        self._tally = tally
        self.warnings: list[str] = []
        self.missing: set[object] = set()
        self._guessed_values: dict[str, None] = {}
        self._guessed_studios: dict[str, None] = {}

    @property
    def guessed(self) -> tuple[str, ...]:
        """The dimensions whose number of values was guessed; studios where they decide how many lists it takes."""
        return tuple(self._guessed_values | self._guessed_studios)

    async def unknown_names(
        self, field: Literal["metric", "by", "where"], names: Collection[str], known: Collection[str]
    ) -> list[str]:
        """Return the *names*, the argument *field*, that are not in *known* but that the service lists.

        Raises:
            BadQuery: the service does not list a name either, or it takes a request to know.
        """
        if self._tally is not None:
            return await self._service.unknown_names(field, names, known)
        for name in names:
            if name not in known:
                rule = "is not known here, so it cannot be planned; query() asks the service"
                raise unknown_name_error(field, name, rule, {*known, *TITLES.values()} if field == "by" else known)
        return []

    async def studios(self, interval: Interval) -> list[Studio] | None:
        """Return the studios that sent data in *interval*, or None if nothing is requested and they are not known."""
        if self._tally is not None:
            return await self._service.studios(interval, self._tally)
        studios: list[Studio] | None = self._known(studios_key(interval))
        return studios

    async def games(self, interval: Interval, studios: Collection[str] | None = None) -> list[GameListing] | None:
        """Return the games that sent data in *interval*, or None if nothing is requested and a list is not known."""
        if self._tally is not None:
            return await self._service.games(interval, studios, self._tally)
        listed = self._known(studios_key(interval))
        if studios is None and listed is None:
            self._guessed_studios[STUDIO_ID] = None
            studios = ("…",)
        ids = [studio.id for studio in listed] if studios is None else studios
        games = {studio: self._known(games_key(studio, interval)) for studio in dict.fromkeys(ids)}
        return None if listed is None or None in games.values() else game_listings(listed, games)

    async def ids(
        self,
        field: Literal["games", "studios"],
        names: Sequence[str] | None,
        available: Interval,
        studios: Sequence[str] | None = None,
    ) -> tuple[str, ...] | None:
        """Return the ids that *names*, the argument *field*, stand for: ids or titles, of games within *studios*.

        A game or studio with data in the *available* interval is found. Names stay as they are where nothing is
        requested and a list is not known.

        Raises:
            BadQuery: several have the title, or none has.
        """
        if names is None or not has_titles(names):
            return None if names is None else tuple(names)
        texts: TextsById
        if field == "games":
            games = await self.games(available, studios)
            shown = {game.id: f"{game.title} ({game.studio or game.studio_id}" for game in games or ()}
            texts = {
                game.id: (game.title, f"{shown[game.id]})", f"{shown[game.id]}, {game.id})") for game in games or ()
            }
            is_known = games is not None
        else:
            listed = await self.studios(available)
            texts = {studio.id: (studio.name, f"{studio.name} ({studio.id})") for studio in listed or ()}
            is_known = listed is not None
        if not is_known:
            return tuple(names)
        if (found := ids_of(field, names, texts)) is not None:
            return found
        unknown = next(name for name in names if ids_of(field, [name], texts) is None)
        rule = f"is neither the id nor the title of a {_ONE[field]} with data in {available}"
        raise BadQuery(field, unknown, rule, sorted({next(iter(titles)) for titles in texts.values()}))

    async def values(
        self, dimension: str, spec: QuerySpec, interval: Interval, *, warns: bool = True
    ) -> tuple[str, ...]:
        """Return the distinct values of *dimension* in *interval*, within the games and studios of *spec*.

        Where nothing is requested and they are not known, they are as many as usual.
        """
        games, studios = spec.games, spec.studios
        ids: list[str] | None
        if dimension == GAME_ID:
            found = await self.games(interval, studios)
            ids = None if found is None else [game.id for game in found if games is None or game.id in games]
        elif dimension == STUDIO_ID:
            listed = await self.studios(interval)
            ids = None if listed is None else [one.id for one in listed if studios is None or one.id in studios]
        else:
            ids = await self._dimension_values(dimension, interval, studios or (), games or ())
            if warns and ids is not None and len(ids) == DEFAULT_LIMIT:
                self.warnings.append(default_limit_warning(f"the list of {dimension}"))
        if ids is not None:
            return tuple(dict.fromkeys(ids))
        self._guessed_values[dimension] = None
        guess = {GAME_ID: games, STUDIO_ID: studios or ("…",)}.get(dimension)
        return guess or typical_values(dimension)

    def count_list(self, dimension: str, values: Collection[str], interval: Interval) -> None:
        """Count the list that checks *values* of a filter as missing, unless a remembered one holds them."""
        if self._service.needs_list(dimension, values):
            self._known(values_key(dimension, interval))

    async def _dimension_values(
        self, dimension: str, interval: Interval, studios: Collection[str], games: Collection[str]
    ) -> list[str] | None:
        if self._tally is None:
            listed = self._known(values_key(dimension, interval, studios, games))
            return None if listed is None else listed.whole()
        return await self._service.dimension_values(
            dimension, interval, studios=studios, games=games, tally=self._tally, notes=self.warnings
        )

    def _known(self, key: object) -> Any:
        """Return the remembered list with this key, or None, which counts it as missing."""
        answer = self._service.remembered(key)
        if answer is None:
            self.missing.add(key)
        return answer


def has_titles(names: Sequence[str] | None) -> bool:
    """Return whether one of *names* may be a title: digits alone are an id."""
    return any(not name.isdecimal() for name in names or ())


def ids_of(field: str, names: Sequence[str], texts: TextsById) -> tuple[str, ...] | None:
    """Return the ids that *names*, the argument *field*, stand for.

    The result is None if one of them is neither an id nor a title. An id stands for itself, whatever the texts are.

    Raises:
        BadQuery: several have the title; the error has their ids.
    """
    by_title = defaultdict(list)
    for identity, titles in texts.items():
        for text in dict.fromkeys(titles):
            by_title[text].append(identity)
    found: list[str] = []
    for name in names:
        matches = [name] if name in texts or name.isdecimal() else by_title[name]
        if len(matches) > 1:
            raise BadQuery(field, name, f"is the title of {len(matches)} {field}: pass the id of one", matches)
        if not matches:
            return None
        found += matches
    return tuple(dict.fromkeys(found))


def default_limit_warning(list_name: str) -> str:
    """Return the warning of a list that has as many values as the service gives by default."""
    return (
        f"{list_name} came with exactly {DEFAULT_LIMIT} values, the default limit of the service: it may have left out "
        "others although all were requested; check=True compares with the total"
    )
