"""What a game and its players are like: the tables of a scenario file, as frozen values that check themselves.

Shares are weights: they need not add up to 1. Money for ads is what 1,000 impressions pay, in the vendor's currency;
prices are in hundredths of a unit.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final, Literal, get_args

import msgspec

from gamelens.errors import BadQuery
from gamelens.simulator.retention_model.bgbb import BgbbModel
from gamelens.simulator.retention_model.bgbb_fit import DEFAULT_CONCENTRATION, fit_retention
from gamelens.simulator.scenarios.economy import Economy, Purchases
from gamelens.simulator.scenarios.timeline import Paid, ScenarioTable
from gamelens.simulator.scenarios.validation import (
    InvalidScenarioValue,
    check_positive,
    check_shares,
    check_text,
    check_within,
)
from gamelens.wire.currencies import USD_PER_UNIT

Vendor = Literal["max", "ironsource", "admob"]
AdFormat = Literal["rewarded_video", "interstitial", "banner"]
AD_FORMATS: Final[tuple[AdFormat, ...]] = get_args(AdFormat)
TIERS: Final = 3


class CountryProfile(ScenarioTable, frozen=True, kw_only=True):
    """One country; *ios_odds* multiplies the odds that a player there is on iOS. Tier 1 pays most for ads."""

    code: str
    tier: int
    currency: str
    utc_offset_h: float
    ios_odds: float = 1.0

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[A-Z]{2}", self.code):
            raise InvalidScenarioValue("country.code", self.code, "must be two upper-case letters")
        if not 1 <= self.tier <= TIERS:
            raise InvalidScenarioValue("country.tier", self.tier, f"must be 1 to {TIERS}")
        if self.currency not in USD_PER_UNIT:
            raise InvalidScenarioValue("country.currency", self.currency, "is not a currency with a rate", USD_PER_UNIT)
        check_within("country.utc_offset_h", self.utc_offset_h, -12, 14)
        check_positive("country.ios_odds", self.ios_odds)


class RetentionTargets(ScenarioTable, frozen=True, kw_only=True):
    """Share of players active 1, 7 and 28 days after install, and *d1_and_d7* of those active on both days.

    In its place *habit* (alpha + beta) may be given: small makes players differ.
    """

    d1: float
    d7: float
    d28: float
    d1_and_d7: float | None = None
    habit: float | None = None

    def __post_init__(self) -> None:
        if not 0 < self.d28 < self.d7 < self.d1 < 1:
            raise InvalidScenarioValue("retention", (self.d1, self.d7, self.d28), "must fall: 0 < d28 < d7 < d1 < 1")
        if self.habit is not None:
            check_positive("retention.habit", self.habit)
            if self.d1_and_d7 is not None:
                raise InvalidScenarioValue("retention.habit", self.habit, "follows from d1_and_d7: give one of them")
        try:
            self.activity()
        except BadQuery as error:
            raise InvalidScenarioValue(error.field, error.value, error.rule) from None

    def activity(self) -> BgbbModel:
        """The BG/BB population that comes back like this."""
        return fit_retention(self.d1, self.d7, self.d28, self.d1_and_d7, habit=self.habit or DEFAULT_CONCENTRATION)


class SessionProfile(ScenarioTable, frozen=True, kw_only=True):
    """Sessions of an active day: 1 + negative binomial; lengths are log-normal; longer ones hold more rounds.

    Lengths differ by *length_sigma* from one session of a player to the next, and by *player_sigma* between players;
    they rise by the power *keen* with the chance of a player to play on a day.
    On Saturdays and Sundays of the country a day holds *weekend* times as many.
    """

    per_day: float
    dispersion: float
    median_length_s: float
    length_sigma: float
    rounds: float
    player_sigma: float = 0.0
    keen: float = 0.0
    weekend: float = 1.0

    def __post_init__(self) -> None:
        check_within("sessions.per_day", self.per_day, 1, 50)
        check_within("sessions.rounds", self.rounds, 1, 50)
        check_within("sessions.keen", self.keen, 0, 2)
        check_within("sessions.weekend", self.weekend, 0.5, 2)
        for name in ("dispersion", "median_length_s"):
            check_positive(f"sessions.{name}", getattr(self, name))
        for name in ("length_sigma", "player_sigma"):
            check_within(f"sessions.{name}", getattr(self, name), 0, 3)


class ProgressionProfile(ScenarioTable, frozen=True, kw_only=True):
    """Chance to complete a round, from *easy* to *hard* over the first *hardens_after* rounds; *quits* have no end."""

    levels: int
    easy: float
    hard: float
    hardens_after: int
    quits: float = 0.05

    def __post_init__(self) -> None:
        check_within("progression.levels", self.levels, 1, 999)
        check_within("progression.hardens_after", self.hardens_after, 1, 10**6)
        for name in ("easy", "hard", "quits"):
            check_within(f"progression.{name}", getattr(self, name), 0, 1)


class AdUnit(ScenarioTable, frozen=True, kw_only=True):
    """One ad unit: its *share* of the ad breaks, the name the vendor reports, where in the game it shows."""

    share: float
    unit: str
    placements: tuple[str, ...]

    def __post_init__(self) -> None:
        check_positive("ads.formats.share", self.share)
        if not self.placements:
            raise InvalidScenarioValue("ads.formats.placements", (), "must name at least one placement")
        for name in (self.unit, *self.placements):
            check_text("ads.formats.unit or placements", name)


class Network(ScenarioTable, frozen=True, kw_only=True):
    """A network that fills ads: its *share* of what is shown and what it pays for 1,000, by format, for tiers 1 to 3.

    How often it fills when it is asked follows from that (`waterfall`): the best paid one is asked first.
    *reports_as* is the name in impression_data where the vendor uses another (AdMob: the adapter's class).
    """

    name: str
    share: float
    ecpm: dict[AdFormat, tuple[float, float, float]]
    reports_as: str = ""

    def __post_init__(self) -> None:
        check_text("ads.network.name", self.name)
        if not re.search("[A-Za-z0-9]", self.name):
            raise InvalidScenarioValue("ads.network.name", self.name, "must hold a letter or a digit")
        check_positive("ads.network.share", self.share)
        for format_, tiers in self.ecpm.items():
            for price in tiers:
                check_within(f"ads.network.ecpm.{format_}", price, 0, 1000)

    @property
    def sdk_name(self) -> str:
        """The name `ads` events carry: lower case, nothing but letters and digits, at most 32 (public-facts 2.5)."""
        return re.sub("[^a-z0-9]", "", self.name.lower())[:32]

    @property
    def reported_name(self) -> str:
        """The name impression_data carries."""
        return self.reports_as or self.name


class AdProfile(ScenarioTable, frozen=True, kw_only=True):
    """The ads of one game: an ad break follows a round with chance *per_round*, and one in *fill* shows an ad.

    *unnamed* is the share of impressions whose network the vendor does not tell. *currency* is the one the vendor
    reports in: USD, except AdMob, which uses the account's.
    """

    vendor: Vendor
    vendor_version: str
    per_round: float
    fill: float
    click: float
    reward: float
    unnamed: float
    formats: dict[AdFormat, AdUnit]
    networks: tuple[Network, ...] = msgspec.field(name="network")
    currency: str = "USD"

    def __post_init__(self) -> None:
        for name in ("per_round", "fill", "click", "reward", "unnamed"):
            check_within(f"ads.{name}", getattr(self, name), 0, 1)
        if not self.formats or not self.networks:
            raise InvalidScenarioValue("ads.formats or ads.network", (), "must hold at least one")
        if not re.fullmatch(r"[0-9]{1,5}(\.[0-9]{1,5}){0,3}", self.vendor_version):
            raise InvalidScenarioValue(
                "ads.vendor_version", self.vendor_version, "must be one to four numbers with dots"
            )
        if self.currency not in USD_PER_UNIT or (self.currency != "USD" and self.vendor != "admob"):
            raise InvalidScenarioValue(
                "ads.currency", self.currency, f"is not what {self.vendor} reports in", _ad_currencies(self)
            )
        for network in self.networks:
            if missing := set(self.formats) - set(network.ecpm):
                raise InvalidScenarioValue("ads.network", network.name, f"has an ecpm that lacks {sorted(missing)}")


class Build(ScenarioTable, frozen=True, kw_only=True):
    """A build and the day of the scenario (0 is the first) it is released on."""

    day: int
    name: str

    def __post_init__(self) -> None:
        if not 1 <= len(self.name) <= 32:
            raise InvalidScenarioValue("build.name", self.name, "must be 1 to 32 characters")


class GameProfile(ScenarioTable, frozen=True, kw_only=True):
    """One game: its *share* of the scenario's players, who they are and what they do."""

    title: str
    genre: str
    share: float
    platforms: dict[Literal["android", "ios"], float]
    countries: dict[str, float]
    retention: RetentionTargets
    sessions: SessionProfile
    progression: ProgressionProfile
    ads: AdProfile
    purchases: Purchases
    economy: Economy = Economy()
    paid: Paid | None = None
    builds: tuple[Build, ...] = msgspec.field(name="build")

    def __post_init__(self) -> None:
        check_positive("game.share", self.share)
        for name in ("platforms", "countries"):
            check_shares(f"game.{name}", getattr(self, name))
        days = [build.day for build in self.builds]
        if not days or days[0] != 0 or days != sorted(set(days)):
            raise InvalidScenarioValue("game.build", days, "must start at 0 and ascend: every session needs a build")


def _ad_currencies(ads: AdProfile) -> Iterable[str]:
    return USD_PER_UNIT if ads.vendor == "admob" else ("USD",)
