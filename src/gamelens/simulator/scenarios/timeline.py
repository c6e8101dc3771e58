"""The scenario tables of paid installs, campaigns, experiments, incidents and holidays.

Days are counted from the first day of the scenario (0). Entries after its end have no effect. All but holidays, which
are days of every game, name their game by title.
"""

from __future__ import annotations

import math
from typing import Annotated, ClassVar

import msgspec

from gamelens.simulator.scenarios.validation import (
    Characters,
    Day,
    Days,
    InvalidScenarioValue,
    Name,
    Positive,
    ScenarioTable,
    Share,
    Within,
    check_shares,
)

EffectStep = Annotated[float, Within(-4, 4)]
"""A step on the logit scale.

Larger ones would lose digits in the integrals of the closed form. 4 already turns 50% into 98%.
"""


class Paid(ScenarioTable, frozen=True, kw_only=True):
    """The bought share of ordinary installs, and the weight of each publisher in it.

    Events of these players carry `install_publisher`.
    """

    at: ClassVar[str] = "paid."

    share: Share
    publishers: Annotated[dict[str, float], check_shares]

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in self.publishers:
            Characters(64)("paid.publishers", name)


class Campaign(ScenarioTable, frozen=True, kw_only=True):
    """Bought installs on top of the ordinary ones for some days."""

    at: ClassVar[str] = "campaign."

    game: str
    publisher: Name
    day: Day
    days: Days
    size: Positive
    name: str = ""
    countries: tuple[str, ...] = ()
    platforms: tuple[str, ...] = ()
    stay: Share = 1.0
    spend: Annotated[float, Within(-20, 20)] = 0.0
    cost: Positive = 1.0


class ScenarioVariant(ScenarioTable, frozen=True, kw_only=True):
    """A variant of an experiment: its effects as steps on the logit scale, and its prices as multiples of the usual."""

    at: ClassVar[str] = "experiment.variant."

    id: Name
    share: Positive = 1.0
    play: EffectStep = 0.0
    drop_out: EffectStep = 0.0
    spend: EffectStep = 0.0
    price: Positive = 1.0


class ScenarioExperiment(ScenarioTable, frozen=True, kw_only=True):
    """An A/B test of a game: players are assigned on the install day and keep their variant."""

    at: ClassVar[str] = "experiment."

    id: Name
    game: str
    variants: tuple[ScenarioVariant, ...] = msgspec.field(name="variant")
    share: Share = 1.0
    day: Day = 0
    days: Days | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        ids = [variant.id for variant in self.variants]
        if len(ids) < 2 or len(set(ids)) < len(ids):
            raise InvalidScenarioValue("experiment.variant", ids, "must have two or more distinct ids")

    @property
    def until(self) -> float:
        """The first day on which no player is assigned any more."""
        return math.inf if self.days is None else self.day + self.days


class NetworkOutage(ScenarioTable, frozen=True, kw_only=True, tag_field="kind", tag="network_outage"):
    """An ad network that fills nothing for some days.

    It is still asked. The networks asked after it fill a part of its ads.
    """

    at: ClassVar[str] = "incident."

    game: str
    network: str
    day: Day
    days: Days
    platform: str | None = None


class PriceChange(ScenarioTable, frozen=True, kw_only=True, tag_field="kind", tag="price_change"):
    """An ad network that pays more or less for some days.

    The networks are asked in the same order as before.
    """

    at: ClassVar[str] = "incident."

    game: str
    network: str
    factor: Positive
    day: Day
    days: Days
    country: str | None = None


class BadBuild(ScenarioTable, frozen=True, kw_only=True, tag_field="kind", tag="bad_build"):
    """A build that makes new players of one country or platform drop out at once.

    Every D-n of these players is *stay* times its usual value.
    """

    at: ClassVar[str] = "incident."

    game: str
    build: str
    country: str | None = None
    platform: str | None = None
    stay: Share = 0.5


class GameSilence(ScenarioTable, frozen=True, kw_only=True, tag_field="kind", tag="silence"):
    """A game that is down for some days: no installs, no sessions, no events."""

    at: ClassVar[str] = "incident."

    game: str
    day: Day
    days: Days


class LostSessions(ScenarioTable, frozen=True, kw_only=True, tag_field="kind", tag="lost_sessions"):
    """A broken SDK: of the sessions on one platform, *share* send nothing for some days.

    They were played all the same, so players come back as before, but nobody hears of them.
    """

    at: ClassVar[str] = "incident."

    game: str
    share: Share
    day: Day
    days: Days
    platform: str | None = None


class HardLevel(ScenarioTable, frozen=True, kw_only=True, tag_field="kind", tag="hard_level"):
    """A level that became too hard: its rounds are completed *complete* times as often as before.

    After each round of it that is not completed, *quits* of the players leave for good.
    """

    at: ClassVar[str] = "incident."

    game: str
    level: Annotated[int, Within(1, 100_000)]
    complete: Share
    quits: Share
    day: Day
    days: Days | None = None


class Holiday(ScenarioTable, frozen=True, kw_only=True):
    """A day off in some countries: more of the players there play, in every game.

    *play* is a step on the logit scale of the chance that a player who has not dropped out plays on the day.
    """

    at: ClassVar[str] = "holiday."

    name: Name
    day: Day
    countries: tuple[str, ...]
    play: EffectStep


Incident = NetworkOutage | PriceChange | BadBuild | GameSilence | LostSessions | HardLevel
