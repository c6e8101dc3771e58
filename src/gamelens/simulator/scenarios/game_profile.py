"""The scenario tables of a game, its players, ads, currency and items, as values that check themselves.

The keys are described in the README of the room (Writing a scenario).

Shares are weights and need not add up to 1. Ad prices are per 1,000 impressions, in the currency the vendor reports.
Prices of items are in hundredths of a unit.
"""

from __future__ import annotations

import re
from typing import Annotated, ClassVar, Final, Literal, get_args

import msgspec

from gamelens.errors import BadQuery
from gamelens.simulator.retention_model.bgbb import BgbbModel
from gamelens.simulator.retention_model.bgbb_fit import DEFAULT_CONCENTRATION, fit_retention
from gamelens.simulator.scenarios.timeline import Paid
from gamelens.simulator.scenarios.validation import (
    Characters,
    InvalidScenarioValue,
    Name,
    Positive,
    ScenarioTable,
    Share,
    Within,
    check_shares,
)
from gamelens.wire.currencies import USD_PER_UNIT

AdVendor = Literal["max", "ironsource", "admob"]
AdFormat = Literal["rewarded_video", "interstitial", "banner"]
AD_FORMATS: Final[tuple[AdFormat, ...]] = get_args(AdFormat)
TIERS: Final = 3


class CountryProfile(ScenarioTable, frozen=True, kw_only=True):
    """One country of a scenario."""

    at: ClassVar[str] = "country."

    code: str
    tier: Annotated[int, Within(1, TIERS)]
    currency: str
    utc_offset_h: Annotated[float, Within(-12, 14)]
    ios_odds: Positive = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not re.fullmatch(r"[A-Z]{2}", self.code):
            raise InvalidScenarioValue("country.code", self.code, "must be two upper-case letters")
        if self.currency not in USD_PER_UNIT:
            raise InvalidScenarioValue("country.currency", self.currency, "has no exchange rate", USD_PER_UNIT)


class RetentionTargets(ScenarioTable, frozen=True, kw_only=True):
    """The retention of a game, from which its BG/BB population is fitted."""

    at: ClassVar[str] = "retention."

    d1: float
    d7: float
    d28: float
    d1_and_d7: float | None = None
    habit: Positive | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.d28 < self.d7 < self.d1 < 1:
            raise InvalidScenarioValue("retention", (self.d1, self.d7, self.d28), "must fall: 0 < d28 < d7 < d1 < 1")
        if self.habit is not None and self.d1_and_d7 is not None:
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

    at: ClassVar[str] = "sessions."

    per_day: Annotated[float, Within(1, 50)]
    dispersion: Positive
    median_length_s: Positive
    length_sigma: Annotated[float, Within(0, 3)]
    rounds: Annotated[float, Within(1, 50)]
    player_sigma: Annotated[float, Within(0, 3)] = 0.0
    keen: Annotated[float, Within(0, 2)] = 0.0
    weekend: Annotated[float, Within(0.5, 2)] = 1.0


class ProgressionProfile(ScenarioTable, frozen=True, kw_only=True):
    """The levels of a game and the probability of completing a round."""

    at: ClassVar[str] = "progression."

    levels: Annotated[int, Within(1, 999)]
    easy: Share
    hard: Share
    hardens_after: Annotated[int, Within(1, 10**6)]
    quits: Share = 0.05


class AdUnit(ScenarioTable, frozen=True, kw_only=True):
    """One ad unit of a game."""

    at: ClassVar[str] = "ads.formats."

    share: Positive
    unit: str
    placements: tuple[str, ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.placements:
            raise InvalidScenarioValue("ads.formats.placements", (), "must name at least one placement")
        for name in (self.unit, *self.placements):
            Characters(64)("ads.formats.unit or placements", name)


class Network(ScenarioTable, frozen=True, kw_only=True):
    """An ad network that fills ads.

    Its probability of filling a request follows from these values: `ad_waterfall` asks the best-paid network first.
    """

    at: ClassVar[str] = "ads.network."

    name: Name
    share: Positive
    ecpm: dict[AdFormat, tuple[float, float, float]]
    reports_as: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not re.search("[A-Za-z0-9]", self.name):
            raise InvalidScenarioValue("ads.network.name", self.name, "must contain a letter or a digit")
        for format_, tiers in self.ecpm.items():
            for price in tiers:
                Within(0, 1000)(f"ads.network.ecpm.{format_}", price)

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

    at: ClassVar[str] = "ads."

    vendor: AdVendor
    vendor_version: str
    per_round: Share
    fill: Share
    click: Share
    reward: Share
    unnamed: Share
    formats: dict[AdFormat, AdUnit]
    networks: tuple[Network, ...] = msgspec.field(name="network")
    currency: str = "USD"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.formats or not self.networks:
            raise InvalidScenarioValue("ads.formats or ads.network", (), "must have at least one")
        if not re.fullmatch(r"[0-9]{1,5}(\.[0-9]{1,5}){0,3}", self.vendor_version):
            raise InvalidScenarioValue(
                "ads.vendor_version", self.vendor_version, "must be 1 to 4 numbers joined by dots"
            )
        if self.currency not in USD_PER_UNIT or (self.currency != "USD" and self.vendor != "admob"):
            allowed = USD_PER_UNIT if self.vendor == "admob" else ("USD",)
            rule = f"is not a currency that {self.vendor} reports"
            raise InvalidScenarioValue("ads.currency", self.currency, rule, allowed)
        for network in self.networks:
            if missing := set(self.formats) - set(network.ecpm):
                raise InvalidScenarioValue("ads.network", network.name, f"has no ecpm for {sorted(missing)}")


def _type_and_id(key: str, value: str) -> None:
    if not re.fullmatch(r"[A-Za-z0-9_]{1,64}:[A-Za-z0-9_]{1,64}", value):
        raise InvalidScenarioValue(key, value, "must be type:id (letters, digits and underscores)")


_TypeAndId = Annotated[str, _type_and_id]
_Amount = Annotated[int, Within(1, 10**6)]


class Economy(ScenarioTable, frozen=True, kw_only=True):
    """The game currency: its initial balance, its rewards and its price list.

    Players never spend more than they have.
    """

    at: ClassVar[str] = "economy."

    currency: str = "Coins"
    start: _Amount = 50
    reward: _Amount = 60
    reward_share: Share = 0.3
    price: _Amount = 90
    spends: Share = 0.12
    source: _TypeAndId = "Reward:level_complete"
    sink: _TypeAndId = "Booster:hammer"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not re.fullmatch("[A-Za-z]{1,64}", self.currency):
            raise InvalidScenarioValue("economy.currency", self.currency, "must be letters")


class Item(ScenarioTable, frozen=True, kw_only=True):
    """An item sold for real money."""

    at: ClassVar[str] = "purchases.item."

    id: _TypeAndId
    price: dict[str, int]
    weight: Positive = 1.0
    grants: Annotated[int, Within(0, 10**9)] = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        for currency, hundredths in self.price.items():
            if currency not in USD_PER_UNIT:
                raise InvalidScenarioValue("purchases.item.price", currency, "has no exchange rate", USD_PER_UNIT)
            Within(1, 10**12)(f"purchases.item.price.{currency}", hundredths)
        if "USD" not in self.price:
            raise InvalidScenarioValue("purchases.item.price", sorted(self.price), "lacks USD, which weights the items")


class Purchases(ScenarioTable, frozen=True, kw_only=True):
    """The payers of a game: how many there are, how often they buy, and at which prices.

    A payer chooses among the items by a log-normal density of the price, whose median is the payer's own.
    """

    at: ClassVar[str] = "purchases."

    payers: Share
    per_payer: Annotated[float, Within(1, 1000)]
    fade_days: Positive
    median_price: Positive
    price_sigma: Positive
    payer_sigma: Annotated[float, Within(0, 3)] = 0.5
    items: tuple[Item, ...] = msgspec.field(name="item")

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.items:
            raise InvalidScenarioValue("purchases.item", (), "must have at least one item")


class Build(ScenarioTable, frozen=True, kw_only=True):
    """A build and the day of its release, counted from the first day of the scenario (0)."""

    at: ClassVar[str] = "build."

    day: int
    name: Annotated[str, Characters(32)]


class GameProfile(ScenarioTable, frozen=True, kw_only=True):
    """One game: its share of the players, their behaviour and its monetisation."""

    at: ClassVar[str] = "game."

    title: str
    genre: str
    share: Positive
    platforms: Annotated[dict[Literal["android", "ios"], float], check_shares]
    countries: Annotated[dict[str, float], check_shares]
    retention: RetentionTargets
    sessions: SessionProfile
    progression: ProgressionProfile
    ads: AdProfile
    purchases: Purchases
    economy: Economy = Economy()
    paid: Paid | None = None
    builds: tuple[Build, ...] = msgspec.field(name="build")

    def __post_init__(self) -> None:
        super().__post_init__()
        days = [build.day for build in self.builds]
        if not days or days[0] != 0 or days != sorted(set(days)):
            raise InvalidScenarioValue("game.build", days, "must start at 0 and ascend: every session needs a build")
