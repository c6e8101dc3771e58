"""A scenario: a whole population as a frozen value, read from a TOML file.

Studios and games are matched to the receiving organisation by position: the first game of the first studio is sent to
the first game there. A `Scenario` that exists can be played. Invalid values are refused when it is made, with the key,
the value, the allowed values and, for a file, its name.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, ClassVar, Literal

import msgspec

from gamelens.simulator.scenarios.causes import Cause, causes_of
from gamelens.simulator.scenarios.game_profile import CountryProfile, GameProfile
from gamelens.simulator.scenarios.timeline import Campaign, Holiday, Incident, ScenarioExperiment
from gamelens.simulator.scenarios.toml_tables import read_scenario_file
from gamelens.simulator.scenarios.validation import (
    Days,
    InvalidScenarioValue,
    Positive,
    ScenarioTable,
    Share,
    Within,
    check_one_of,
    check_positive,
    check_shares,
)

DeviceClock = Literal["exact", "minutes", "zone", "past", "future"]
"""Setting of a device's clock.

In this order: right, minutes off, in a wrong time zone, years behind, in the next century.
"""


class DeliveryProfile(ScenarioTable, frozen=True, kw_only=True):
    """The sending of events by devices: online play every 20 s, offline play hours later.

    Without *batch_s*, requests hold the events of many devices in the order sent. That takes a fiftieth of the
    requests, so that two cores can ingest a million events in 20 seconds.
    """

    at: ClassVar[str] = "delivery."

    batch_s: Annotated[int, Within(1, 3600)] | None = None
    offline_delay_h: Positive = 6.0
    offline_sigma: Annotated[float, Within(0, 5)] = 1.2
    offline_cap_h: Positive = 168.0
    lost_answers: Share = 0.0
    crashes: Share = 0.0
    old_sdk: Share = 0.0
    uncorrected: Share = 0.0
    clocks: Annotated[dict[DeviceClock, float], check_shares] = msgspec.field(default_factory=lambda: {"exact": 1.0})


class DirtProfile(ScenarioTable, frozen=True, kw_only=True):
    """Defects added to the events of the players. `events.defects` is the catalogue."""

    at: ClassVar[str] = "dirt."

    malformed: Share = 0.0
    odd: Share = 0.0
    duplicates: Share = 0.0
    broken_bodies: Share = 0.0
    bad_requests: Share = 0.0
    bots: Share = 0.0


class StudioProfile(ScenarioTable, frozen=True, kw_only=True):
    """One studio and its games."""

    name: str
    games: tuple[GameProfile, ...] = msgspec.field(name="game")


class Scenario(ScenarioTable, frozen=True, kw_only=True):
    """A whole population. The keys are described in the README of the room (Writing a scenario).

    Without *delivery* and *dirt* every event is sent once, in time and without defects.
    """

    name: str
    seed: Annotated[int, Within(0, 2**63 - 1)]
    days: Days
    players: Annotated[int, Within(1, 10**9)]
    weekdays: tuple[float, float, float, float, float, float, float]
    countries: tuple[CountryProfile, ...] = msgspec.field(name="country")
    studios: tuple[StudioProfile, ...] = msgspec.field(name="studio")
    about: str = ""
    trend: Annotated[float, Within(-0.9, 9)] = 0.0
    install_days: Days | None = None
    campaigns: tuple[Campaign, ...] = msgspec.field(name="campaign", default=())
    experiments: tuple[ScenarioExperiment, ...] = msgspec.field(name="experiment", default=())
    incidents: tuple[Incident, ...] = msgspec.field(name="incident", default=())
    holidays: tuple[Holiday, ...] = msgspec.field(name="holiday", default=())
    payday: Positive = 1.0
    delivery: DeliveryProfile | None = None
    dirt: DirtProfile | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        for weight in self.weekdays:
            check_positive("weekdays", weight)
        if not self.games:
            raise InvalidScenarioValue("studio", (), "must have at least one game")
        titles = [game.title for game in self.games]
        if duplicates := {title for title in titles if titles.count(title) > 1}:
            raise InvalidScenarioValue(
                "studio", sorted(duplicates), "are duplicate titles: campaigns and incidents name games by title"
            )
        for number, studio in enumerate(self.studios):
            for place, game in enumerate(studio.games):
                self._check_game(f"studio.{number}.game.{place}", game)
        self._check_timeline()

    @property
    def games(self) -> tuple[GameProfile, ...]:
        """Every game, studio by studio: the order in which game ids are assigned."""
        return tuple(game for studio in self.studios for game in studio.games)

    @property
    def titles(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """The name of each studio with the titles of its games, as a receiving sandbox needs them."""
        return tuple((studio.name, tuple(game.title for game in studio.games)) for studio in self.studios)

    @property
    def is_clean(self) -> bool:
        """Whether every event is sent once, in time and without defects."""
        return self.delivery is None and self.dirt is None

    @property
    def causes(self) -> tuple[Cause, ...]:
        """What this scenario plants on top of ordinary days, in the order of its file: kind, where, when and size."""
        return tuple(causes_of(self.campaigns, self.experiments, self.incidents, self.holidays, builds=self._released))

    @property
    def _released(self) -> dict[tuple[str, str], int]:
        """The day of each build, by the title of its game and its name."""
        return {(game.title, build.name): build.day for game in self.games for build in game.builds}

    def players_by_game(self) -> list[int]:
        """Return the number of players of each game, rounded so that they add up to *players*.

        Games with the largest remainders are rounded up.
        """
        total = sum(game.share for game in self.games)
        exact = [self.players * game.share / total for game in self.games]
        counts = [int(count) for count in exact]
        by_remainder = sorted(range(len(exact)), key=lambda i: (counts[i] - exact[i], i))
        for i in by_remainder[: self.players - sum(counts)]:
            counts[i] += 1
        return counts

    def country(self, code: str) -> CountryProfile:
        """Return the country with this *code*."""
        return next(country for country in self.countries if country.code == code)

    def campaigns_of(self, game: GameProfile) -> list[Campaign]:
        """Return the campaigns of *game*."""
        return [campaign for campaign in self.campaigns if campaign.game == game.title]

    def experiments_of(self, game: GameProfile) -> list[ScenarioExperiment]:
        """Return the experiments of *game*."""
        return [experiment for experiment in self.experiments if experiment.game == game.title]

    def incidents_of(self, game: GameProfile) -> list[Incident]:
        """Return the incidents of *game*."""
        return [incident for incident in self.incidents if incident.game == game.title]

    def _check_game(self, key: str, game: GameProfile) -> None:
        countries = {country.code: country for country in self.countries}
        for code in game.countries:
            if code not in countries:
                raise InvalidScenarioValue(
                    f"{key}.countries.{code}", code, "is not a country of the scenario", countries
                )
            for place, item in enumerate(game.purchases.items):
                if (currency := countries[code].currency) not in item.price:
                    at = f"{key}.purchases.item.{place}.price"
                    raise InvalidScenarioValue(at, sorted(item.price), f"lacks {currency}, used in {code}")

    def _check_timeline(self) -> None:
        games = {game.title: game for game in self.games}
        for table in ("campaign", "experiment", "incident"):
            for number, entry in enumerate(getattr(self, f"{table}s")):
                check_one_of(f"{table}.{number}.game", entry.game, games)
                game = games[entry.game]
                allowed = {
                    "build": [build.name for build in game.builds],
                    "network": [network.name for network in game.ads.networks],
                    "country": game.countries,
                    "countries": game.countries,
                    "platform": game.platforms,
                    "platforms": game.platforms,
                }
                for field, names in allowed.items():
                    named = getattr(entry, field, None) or ()
                    for name in (named,) if isinstance(named, str) else named:
                        check_one_of(f"{table}.{number}.{field}", name, names)
                if level := getattr(entry, "level", None):
                    Within(1, game.progression.levels)(f"{table}.{number}.level", level)
        codes = [country.code for country in self.countries]
        for number, holiday in enumerate(self.holidays):
            for code in holiday.countries:
                check_one_of(f"holiday.{number}.countries", code, codes)
        # A player is in at most one experiment, so experiments that run at the same time share the players of a game.
        for game in self.games:
            experiments = self.experiments_of(game)
            for day in {experiment.day for experiment in experiments}:
                running = [experiment for experiment in experiments if experiment.day <= day < experiment.until]
                if (total := sum(experiment.share for experiment in running)) > 1 + 1e-9:
                    rule = f"is the sum of the shares of {[experiment.id for experiment in running]}: must be 1 or less"
                    raise InvalidScenarioValue("experiment", round(total, 6), rule)


def load_scenario(
    name_or_path: str | Path, *, players: int | None = None, days: int | None = None, seed: int | None = None
) -> Scenario:
    """Read a scenario and override its *players*, *days* or *seed*.

    Args:
        name_or_path: name of a shipped scenario, or path of a .toml file. A file may say `extends = "demo"` and hold
            only the top-level keys that differ. A game may be `like` another.
        players: number of players instead of the scenario's.
        days: length instead of the scenario's.
        seed: seed instead of the scenario's.

    Raises:
        BadQuery: there is no such scenario, the file is not TOML, or a value is not allowed.
    """
    scenario = read_scenario_file(name_or_path).decode(Scenario)
    overrides = {"players": players, "days": days, "seed": seed}
    changed = {key: value for key, value in overrides.items() if value is not None}
    return msgspec.structs.replace(scenario, **changed) if changed else scenario
