"""The scenario tables of a game, its players, ads, currency and items, as values that check themselves.

The keys are described in the README of the room (Writing a scenario).

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
    """One country of a scenario."""

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
    """The retention of a game, from which its BG/BB population is fitted."""

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
    """The sessions of an active day, their length and the rounds in them."""

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
    """The levels of a game and the probability of completing a round."""

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
    """One ad unit of a game."""

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
    """The ads of one game."""

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


def _type_and_id(key: str, value: str) -> None:
    if not re.fullmatch(r"[A-Za-z0-9_]{1,64}:[A-Za-z0-9_]{1,64}", value):
        raise InvalidScenarioValue(key, value, "must be type:id, letters, digits and underscores")


class Economy(ScenarioTable, frozen=True, kw_only=True):
    """The game currency: its initial balance, its rewards and its price list.

    Players never spend more than they have.
    """

    currency: str = "Coins"
    start: int = 50
    reward: int = 60
    reward_share: float = 0.3
    price: int = 90
    spends: float = 0.12
    source: str = "Reward:level_complete"
    sink: str = "Booster:hammer"

    def __post_init__(self) -> None:
        if not re.fullmatch("[A-Za-z]{1,64}", self.currency):
            raise InvalidScenarioValue("economy.currency", self.currency, "must be letters")
        for name in ("source", "sink"):
            _type_and_id(f"economy.{name}", getattr(self, name))
        for name in ("start", "reward", "price"):
            check_within(f"economy.{name}", getattr(self, name), 1, 10**6)
        for name in ("reward_share", "spends"):
            check_within(f"economy.{name}", getattr(self, name), 0, 1)


class Item(ScenarioTable, frozen=True, kw_only=True):
    """An item sold for real money."""

    id: str
    price: dict[str, int]
    weight: float = 1.0
    grants: int = 0

    def __post_init__(self) -> None:
        check_positive("purchases.item.weight", self.weight)
        check_within("purchases.item.grants", self.grants, 0, 10**9)
        _type_and_id("purchases.item.id", self.id)
        for currency, hundredths in self.price.items():
            if currency not in USD_PER_UNIT:
                raise InvalidScenarioValue(
                    "purchases.item.price", currency, "is not a currency with a rate", USD_PER_UNIT
                )
            check_within(f"purchases.item.price.{currency}", hundredths, 1, 10**12)
        if "USD" not in self.price:
            raise InvalidScenarioValue(
                "purchases.item.price", sorted(self.price), "lacks USD, by which items are weighed"
            )


class Purchases(ScenarioTable, frozen=True, kw_only=True):
    """The payers of a game: how many there are, how often they buy, and at which prices.

    A payer chooses among the items by a log-normal density of the price, whose median is the payer's own.
    """

    payers: float
    per_payer: float
    fade_days: float
    median_price: float
    price_sigma: float
    payer_sigma: float = 0.5
    items: tuple[Item, ...] = msgspec.field(name="item")

    def __post_init__(self) -> None:
        check_within("purchases.payers", self.payers, 0, 1)
        check_within("purchases.per_payer", self.per_payer, 1, 1000)
        for name in ("fade_days", "median_price", "price_sigma"):
            check_positive(f"purchases.{name}", getattr(self, name))
        check_within("purchases.payer_sigma", self.payer_sigma, 0, 3)
        if not self.items:
            raise InvalidScenarioValue("purchases.item", (), "must hold at least one item")


class Build(ScenarioTable, frozen=True, kw_only=True):
    """A build and the day of its release, counted from the first day of the scenario (0)."""

    day: int
    name: str

    def __post_init__(self) -> None:
        if not 1 <= len(self.name) <= 32:
            raise InvalidScenarioValue("build.name", self.name, "must be 1 to 32 characters")


class GameProfile(ScenarioTable, frozen=True, kw_only=True):
    """One game: its share of the players, their behaviour and its monetisation."""

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
