"""The scenario tables of paid installs, campaigns, experiments and incidents.

Days are counted from the first day of the scenario (0). Entries after its end have no effect. Each entry names its game
by title.
"""

from __future__ import annotations

import math

import msgspec

from gamelens.simulator.scenarios.validation import (
    InvalidScenarioValue,
    check_positive,
    check_shares,
    check_text,
    check_within,
)


class ScenarioTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A table of a scenario file, which refuses unknown keys."""


class Paid(ScenarioTable, frozen=True, kw_only=True):
    """The bought share of ordinary installs, and the weight of each publisher in it.

    Events of these players carry `install_publisher`.
    """

    share: float
    publishers: dict[str, float]

    def __post_init__(self) -> None:
        check_within("paid.share", self.share, 0, 1)
        check_shares("paid.publishers", self.publishers)
        for name in self.publishers:
            check_text("paid.publishers", name)


class Campaign(ScenarioTable, frozen=True, kw_only=True):
    """Bought installs on top of the ordinary ones for some days."""

    game: str
    publisher: str
    day: int
    days: int
    size: float
    name: str = ""
    countries: tuple[str, ...] = ()
    platforms: tuple[str, ...] = ()
    stay: float = 1.0

    def __post_init__(self) -> None:
        check_text("campaign.publisher", self.publisher)
        check_within("campaign.stay", self.stay, 0, 1)
        _check_days("campaign", self.day, self.days)
        check_positive("campaign.size", self.size)


class ScenarioVariant(ScenarioTable, frozen=True, kw_only=True):
    """A variant of an experiment, with its effects as steps on the logit scale."""

    id: str
    share: float = 1.0
    play: float = 0.0
    drop_out: float = 0.0
    spend: float = 0.0

    def __post_init__(self) -> None:
        check_text("experiment.variant.id", self.id)
        check_positive("experiment.variant.share", self.share)
        for name in ("play", "drop_out", "spend"):
            # Larger steps would lose digits in the integrals of the closed form. 4 already turns 50 % into 98 %.
            check_within(f"experiment.variant.{name}", getattr(self, name), -4, 4)


class ScenarioExperiment(ScenarioTable, frozen=True, kw_only=True):
    """An A/B test of a game: players are assigned on the install day and keep their variant."""

    id: str
    game: str
    variants: tuple[ScenarioVariant, ...] = msgspec.field(name="variant")
    share: float = 1.0
    day: int = 0
    days: int | None = None

    def __post_init__(self) -> None:
        check_text("experiment.id", self.id)
        check_within("experiment.share", self.share, 0, 1)
        _check_days("experiment", self.day, self.days)
        ids = [variant.id for variant in self.variants]
        if len(ids) < 2 or len(set(ids)) < len(ids):
            raise InvalidScenarioValue("experiment.variant", ids, "must be two or more with different ids")

    @property
    def until(self) -> float:
        """The first day on which no player is assigned any more."""
        return math.inf if self.days is None else self.day + self.days


class NetworkOutage(ScenarioTable, frozen=True, kw_only=True, tag_field="kind", tag="network_outage"):
    """An ad network that fills nothing for some days.

    It is still asked. The networks asked after it fill a part of its ads.
    """

    game: str
    network: str
    day: int
    days: int
    platform: str | None = None

    def __post_init__(self) -> None:
        _check_days("incident", self.day, self.days)


class PriceChange(ScenarioTable, frozen=True, kw_only=True, tag_field="kind", tag="price_change"):
    """An ad network that pays more or less for some days.

    The networks are asked in the same order as before.
    """

    game: str
    network: str
    factor: float
    day: int
    days: int
    country: str | None = None

    def __post_init__(self) -> None:
        check_positive("incident.factor", self.factor)
        _check_days("incident", self.day, self.days)


class BadBuild(ScenarioTable, frozen=True, kw_only=True, tag_field="kind", tag="bad_build"):
    """A build that makes new players of one country or platform drop out at once.

    Every D-n of these players is *stay* times its usual value.
    """

    game: str
    build: str
    country: str | None = None
    platform: str | None = None
    stay: float = 0.5

    def __post_init__(self) -> None:
        check_within("incident.stay", self.stay, 0, 1)


class GameSilence(ScenarioTable, frozen=True, kw_only=True, tag_field="kind", tag="silence"):
    """A game that is down for some days: no installs, no sessions, no events."""

    game: str
    day: int
    days: int

    def __post_init__(self) -> None:
        _check_days("incident", self.day, self.days)


Incident = NetworkOutage | PriceChange | BadBuild | GameSilence


def _check_days(table: str, day: int, days: int | None) -> None:
    check_within(f"{table}.day", day, 0, 3660)
    if days is not None:
        check_within(f"{table}.days", days, 1, 3660)
