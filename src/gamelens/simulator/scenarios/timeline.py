"""What happens to a population on certain days: campaigns that bring players, experiments, incidents.

Days are days of the scenario, 0 is the first; what lies behind its end does not take place. Each names the title of
the game it happens to.
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
    """A table of the scenario file; unknown keys are refused."""


class Paid(ScenarioTable, frozen=True, kw_only=True):
    """The *share* of ordinary installs that is bought, and from whom: their events carry `install_publisher`."""

    share: float
    publishers: dict[str, float]

    def __post_init__(self) -> None:
        check_within("paid.share", self.share, 0, 1)
        check_shares("paid.publishers", self.publishers)
        for name in self.publishers:
            check_text("paid.publishers", name)


class Campaign(ScenarioTable, frozen=True, kw_only=True):
    """A pulse of bought installs for *days* from *day* on, each day *size* times an ordinary day of the game.

    *countries* and *platforms* are where it runs; empty is everywhere the game is.
    """

    game: str
    publisher: str
    day: int
    days: int
    size: float
    name: str = ""
    countries: tuple[str, ...] = ()
    platforms: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_text("campaign.publisher", self.publisher)
        _check_days("campaign", self.day, self.days)
        check_positive("campaign.size", self.size)


class ScenarioVariant(ScenarioTable, frozen=True, kw_only=True):
    """An arm of an experiment: steps on the logit scale of the chance to play on a day, to drop out, ever to pay."""

    id: str
    share: float = 1.0
    play: float = 0.0
    drop_out: float = 0.0
    spend: float = 0.0

    def __post_init__(self) -> None:
        check_text("experiment.variant.id", self.id)
        check_positive("experiment.variant.share", self.share)
        for name in ("play", "drop_out", "spend"):
            # Beyond it the integrals behind the closed form would lose digits; it is already 98 % for 50 %.
            check_within(f"experiment.variant.{name}", getattr(self, name), -4, 4)


class ScenarioExperiment(ScenarioTable, frozen=True, kw_only=True):
    """*share* of those who install from *day* on, for *days* days, are put into one of the variants, and stay in it."""

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
        """The first day on which nobody is put into it any more."""
        return math.inf if self.days is None else self.day + self.days


class NetworkOutage(ScenarioTable, frozen=True, kw_only=True, tag_field="kind", tag="network_outage"):
    """An ad network fills nothing for *days* from *day* on, on one *platform* or, without one, on all.

    It is asked all the same; those asked after it fill some of what it does not.
    """

    game: str
    network: str
    day: int
    days: int
    platform: str | None = None

    def __post_init__(self) -> None:
        _check_days("incident", self.day, self.days)


class BadBuild(ScenarioTable, frozen=True, kw_only=True, tag_field="kind", tag="bad_build"):
    """Of those in *country* who install with *build* only the share *stay* is not driven off at once.

    So every D-n of these players is *stay* times what it would be.
    """

    game: str
    build: str
    country: str
    stay: float = 0.5

    def __post_init__(self) -> None:
        check_within("incident.stay", self.stay, 0, 1)


class GameSilence(ScenarioTable, frozen=True, kw_only=True, tag_field="kind", tag="silence"):
    """The game is down for *days* from *day* on: nobody installs it, nobody plays."""

    game: str
    day: int
    days: int

    def __post_init__(self) -> None:
        _check_days("incident", self.day, self.days)


Incident = NetworkOutage | BadBuild | GameSilence


def _check_days(table: str, day: int, days: int | None) -> None:
    check_within(f"{table}.day", day, 0, 3660)
    if days is not None:
        check_within(f"{table}.days", days, 1, 3660)
