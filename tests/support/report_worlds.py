"""What a report is asked about: the demo's games, and what is left of one of them where something is missing.

Each world is a sandbox in process, made when it is first asked for, and the lake of that sandbox. Its numbers are added
up here from the events as they were sent.
"""

from __future__ import annotations

import gc
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import msgspec

from gamelens.client.sync_client import Client
from gamelens.simulator import load_scenario, play
from gamelens.wire.currencies import USD_PER_UNIT
from support.game_events import NOW
from support.notebook_pages import Page, run_notebook
from support.sandbox_stage import Stage
from support.watched_service import Request, Response, Watch, quick

Event = dict[str, Any]

TODAY: Final = NOW.date()
"""The day under way, without events: the last complete day is the one before."""
SCENARIO: Final = load_scenario("small", players=160, days=60)
GAMES: Final = dict(zip(("1001", "1002", "2001"), (game.title for game in SCENARIO.games), strict=True))
_ONE: Final = "1001"
_BARE: Final = {"country_code", "install_publisher", "build", "ab_id", "ab_variant_id", "connection_type"}
_DAY: Final = timedelta(days=1)

Cut = Callable[[list[Event]], Iterable[Event]]
CUTS: Final[dict[str, Cut]] = {
    "demo": lambda events: events,
    "one day": lambda events: (event for event in _of_one(events) if day_of(event) == TODAY - _DAY),
    "no ads": lambda events: (event for event in _of_one(events) if event["category"] not in ("ads", "impression")),
    "no purchases": lambda events: (event for event in _of_one(events) if event["category"] != "business"),
    "no countries": lambda events: ({**event, "country_code": None} for event in _of_one(events)),
    "bare": lambda events: (
        {name: None if name in _BARE else value for name, value in event.items()}
        for event in _of_one(events)
        if event["category"] in ("user", "session_end")
    ),
    "week-old": lambda events: _of_late_players(_of_one(events)),
    "empty": lambda _: (),
}
"""The events of each world, by what it is or lacks."""


class World:
    """The events of one organisation, a client that queries them, and what they add up to.

    Its sandbox has that organisation alone.

    Attributes:
        name: a key of `CUTS`.
        titles: those of its games, by id.
        events: as they were sent, each with its `game_id`.
    """

    def __init__(self, name: str, titles: dict[str, str], events: Sequence[Event], folder: Path) -> None:
        self.name, self.titles, self.events = name, titles, events
        self._days = [day_of(event).toordinal() for event in events]
        self._state = folder / name / "state"
        self._state.parent.mkdir()
        self._stage = Stage(self._state, tenants=_organisation(name, titles))
        _submit(self._stage, events)
        self._stage.process()
        self._answers: dict[Request, Response] = {}
        self._pages: dict[str, Page] = {}

    def lens(self, *, days_later: int = 0) -> Client:
        """Return a client like that of a notebook, on the clock of the sandbox or *days_later*.

        What was answered once is not asked of the sandbox again.
        """
        answers = Watch(self._stage.metrics_app, self._answers)
        return quick(answers, key=_key(self.name), when="clip", now=(NOW + days_later * _DAY).timestamp)

    def page(self, notebook: str, parameters: Mapping[str, Any]) -> Page:
        """Return the page of *notebook*, which is run once for each choice of parameters."""
        asked = f"{notebook} {sorted(parameters.items())}"
        if asked not in self._pages:
            self._pages[asked] = run_notebook(notebook, parameters, self.lens())
        return self._pages[asked]

    def lake(self) -> Path:
        """Return the state directory of its sandbox, whose lake has the events of this world alone."""
        return self._state

    def close(self) -> None:
        """Close the sandbox."""
        self._stage.sandbox.close()

    def covered(self, days: int) -> range:
        """Return the days of the last *days* complete ones that the world has, as numbers of `date.toordinal`."""
        begins = min(self._days, default=TODAY.toordinal())
        return range(max(begins, TODAY.toordinal() - days), TODAY.toordinal())

    def before(self, days: range) -> range | None:
        """Return as many days right before *days*, None where the world does not have them all."""
        earlier = range(days.start - len(days), days.start)
        return earlier if days and earlier.start >= self.covered(10**4).start else None

    def of(self, days: range, *, games: Sequence[str] | None = None, category: str | None = None) -> list[Event]:
        """Return the events of *days*, of some games or of one category."""
        return [
            event
            for event, day in zip(self.events, self._days, strict=True)
            if day in days and (games is None or event["game_id"] in games) and category in (None, event["category"])
        ]

    def ad_revenue(self, days: range, **which: Any) -> float:
        """Return what the impressions of *days* earned, in dollars (Wire 3.6, Impression payloads)."""
        return sum(_earned(event) for event in self.of(days, category="impression", **which))

    def purchases(self, days: range, **which: Any) -> float:
        """Return what the purchases of *days* brought, in dollars."""
        bought = self.of(days, category="business", **which)
        return sum(float(event["amount"]) / 100 * float(USD_PER_UNIT[event["currency"]]) for event in bought)

    def installs(self, days: range, *, games: Sequence[str] | None = None) -> dict[tuple[str, str], int]:
        """Return the install day of each player who is new in *days*."""
        first: dict[tuple[str, str], int] = {}
        for event, day in zip(self.events, self._days, strict=True):
            player = event["game_id"], event["user_id"]
            first[player] = min(day, first.get(player, day))
        return {player: day for player, day in first.items() if day in days and (not games or player[0] in games)}

    @cached_property
    def active(self) -> Counter[tuple[int, str]]:
        """The players who sent an event on each day, by day and game."""
        players = {(day, it["game_id"], it["user_id"]) for it, day in zip(self.events, self._days, strict=True)}
        return Counter((day, game) for day, game, _ in players)

    def retention(self, days: range, age: int, *, games: Sequence[str] | None = None) -> float | None:
        """Return the share of the players installed in *days* who were back *age* days later, once that day is over.

        None if it is over for nobody.
        """
        active = {(event["game_id"], event["user_id"], day) for event, day in zip(self.events, self._days, strict=True)}
        new = {player: day for player, day in self.installs(days, games=games).items() if day + age < TODAY.toordinal()}
        return sum((*player, day + age) in active for player, day in new.items()) / len(new) if new else None


class Worlds(dict[str, World]):
    """The worlds that were asked for, by name, in folders below *folder*."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __missing__(self, name: str) -> World:
        number, cut = [*CUTS].index(name) + 1, CUTS[name]
        ids = {game: f"{number}{game}" for game in GAMES}
        cleaned = ({key: value for key, value in event.items() if value is not None} for event in cut(self._played))
        events = [event | {"game_id": ids[event["game_id"]]} for event in cleaned]
        world = self[name] = World(name, {ids[game]: title for game, title in GAMES.items()}, events, self._folder)
        gc.freeze()  # a million values of events, which each collection would visit; no cycle holds them
        return world

    @cached_property
    def _played(self) -> list[Event]:
        """The events of the demo's games."""
        return [
            {**event, "game_id": batch.game_id}
            for batch in play(SCENARIO, ends_on=TODAY, game_ids=[*GAMES])
            for event in msgspec.json.decode(batch.body)
        ]


def open_worlds(folder: Path) -> Iterator[Worlds]:
    """Yield the worlds by name, each of a sandbox below *folder*, and close those that were asked for."""
    worlds = Worlds(folder)
    yield worlds
    for world in worlds.values():
        world.close()


def day_of(event: Event) -> date:
    """Return the UTC day of *event*."""
    return datetime.fromtimestamp(event["client_ts"], UTC).date()


def _earned(event: Event) -> float:
    paid, is_micro = event["impression_data"], event["ad_network_name"] == "admob"
    return float(paid["revenue"]) * (1e-6 if is_micro else 1) * float(USD_PER_UNIT[paid.get("currency", "USD")])


def _of_one(events: list[Event]) -> Iterator[Event]:
    return (event for event in events if event["game_id"] == _ONE)


def _of_late_players(events: Iterable[Event]) -> Iterator[Event]:
    """Yield the events of the players who came in the last complete week."""
    by_player = defaultdict(list)
    for event in events:
        by_player[event["user_id"]].append(event)
    for own in by_player.values():
        if min(map(day_of, own)) >= TODAY - 7 * _DAY:
            yield from own


def _submit(stage: Stage, events: Iterable[Event]) -> None:
    by_game = defaultdict(list)
    for event in events:
        by_game[event["game_id"]].append({name: value for name, value in event.items() if name != "game_id"})
    for game, own in by_game.items():
        for start in range(0, len(own), 2000):
            assert stage.submit(own[start : start + 2000], game_id=game).status_code == 200


def _key(name: str) -> str:
    return f"key-of-{name.replace(' ', '-')}"


def _organisation(name: str, games: dict[str, str]) -> str:
    """Return the table of an organisation in the configuration of a sandbox."""
    tables = [f'[[organisation]]\nname = "{name}"\napi_key = "{_key(name)}"', "[[organisation.studio]]"]
    tables += [f'[[organisation.studio.game]]\nid = "{game}"\ntitle = "{title}"' for game, title in games.items()]
    return "\n".join(tables) + "\n"
