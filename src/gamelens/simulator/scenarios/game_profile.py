"""The scenario tables of a game, its players and its ads, as self-checking values.

Shares are weights and need not add up to 1. Ad prices are per 1,000 impressions, in the currency the vendor reports.
Prices of items are in hundredths of a unit.
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
    """One country of a scenario.

    Attributes:
        code: ISO 3166 alpha-2 code.
        tier: 1 to 3; tier 1 pays most for ads.
        currency: ISO 4217 code of what players pay in.
        utc_offset_h: offset of the local time from UTC, in hours.
        ios_odds: factor on the odds that a player there is on iOS.
    """

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
    """The retention of a game, from which its BG/BB population is fitted.

    Attributes:
        d1: share of players who play 1 day after install.
        d7: share of players who play 7 days after install.
        d28: share of players who play 28 days after install.
        d1_and_d7: share of players who play on both day 1 and day 7.
        habit: alpha + beta of the probability to play on a day, an alternative to *d1_and_d7*. A small one makes
            players differ more.
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
        """Return the BG/BB population with this retention."""
        return fit_retention(self.d1, self.d7, self.d28, self.d1_and_d7, habit=self.habit or DEFAULT_CONCENTRATION)


class SessionProfile(ScenarioTable, frozen=True, kw_only=True):
    """The sessions of an active day, their length and the rounds in them.

    Attributes:
        per_day: mean number of sessions of an active day, at least 1 (1 + negative binomial).
        dispersion: dispersion parameter of the negative binomial; a small one spreads more.
        median_length_s: median length in seconds (log-normal).
        length_sigma: standard deviation of the logarithm of the length, between sessions of one player.
        rounds: mean rounds of a session of mean length; longer sessions hold more.
        player_sigma: standard deviation of the logarithm of the length, between players.
        keen: power by which the length rises with a player's probability to play on a day.
        weekend: factor on *per_day* on Saturdays and Sundays of the country.
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
    """The levels of a game and the probability of completing a round.

    Attributes:
        levels: number of levels.
        easy: probability of completing the first round.
        hard: probability from round *hardens_after* on, reached linearly.
        hardens_after: number of rounds until then.
        quits: share of rounds that are neither completed nor failed.
    """

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
    """One ad unit of a game.

    Attributes:
        share: weight among the ad breaks.
        unit: the name the vendor reports.
        placements: places in the game where it shows, equally likely.
    """

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
    """An ad network that fills ads.

    Its probability of filling a request follows from these values: `ad_waterfall` asks the best-paid network first.

    Attributes:
        name: the name of the network.
        share: weight among the ads shown.
        ecpm: price of 1,000 impressions by format, for tiers 1 to 3.
        reports_as: the name in impression_data if it differs (AdMob: the class of the adapter).
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
        """The name in `ads` events: at most 32 lower-case letters and digits."""
        return re.sub("[^a-z0-9]", "", self.name.lower())[:32]

    @property
    def reported_name(self) -> str:
        """The name in impression_data."""
        return self.reports_as or self.name


class AdProfile(ScenarioTable, frozen=True, kw_only=True):
    """The ads of one game.

    Attributes:
        vendor: the mediation SDK.
        vendor_version: its version, one to four numbers with dots.
        per_round: probability of an ad break after a round.
        fill: share of ad breaks in which an ad is shown.
        click: share of shown ads that are clicked.
        reward: share of rewarded videos that pay the reward.
        unnamed: share of impressions for which the vendor does not report the network.
        formats: ad unit of each format in use.
        networks: the networks that fill ads.
        currency: currency the vendor reports in: USD, or for AdMob that of the account.
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
    """A build and the day of its release, counted from the first day of the scenario (0)."""

    day: int
    name: str

    def __post_init__(self) -> None:
        if not 1 <= len(self.name) <= 32:
            raise InvalidScenarioValue("build.name", self.name, "must be 1 to 32 characters")


class GameProfile(ScenarioTable, frozen=True, kw_only=True):
    """One game: its share of the players, their behaviour and its monetisation.

    Attributes:
        title: unique title, by which campaigns, experiments and incidents refer to the game.
        genre: free text.
        share: weight among the scenario's players.
        platforms: weight of each platform.
        countries: weight of each country.
        retention: D1, D7 and D28.
        sessions: sessions per day and their length.
        progression: levels and difficulty.
        ads: ad breaks, formats and networks.
        purchases: payers and items.
        economy: the game currency.
        paid: the bought share of ordinary installs.
        builds: releases, the first on day 0.
    """

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
