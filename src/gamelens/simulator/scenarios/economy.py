"""The tables of a scenario file about what is sold and what is earned: a game's currency, its items, who buys."""

from __future__ import annotations

import re

import msgspec

from gamelens.simulator.scenarios.timeline import ScenarioTable
from gamelens.simulator.scenarios.validation import InvalidScenarioValue, check_positive, check_within
from gamelens.wire.currencies import USD_PER_UNIT


def _type_and_id(key: str, value: str) -> None:
    if not re.fullmatch(r"[A-Za-z0-9_]{1,64}:[A-Za-z0-9_]{1,64}", value):
        raise InvalidScenarioValue(key, value, "must be type:id, letters, digits and underscores")


class Economy(ScenarioTable, frozen=True, kw_only=True):
    """A currency of the game: everybody starts with some, earns and buys more, and never spends what he has not got.

    A completed round pays with chance *reward_share*, *reward* on average. With chance *spends* a player goes to the
    shop after a round and buys as many as he can pay of what costs *price*.
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
    """Something to buy: `type:id`, its price by currency in hundredths, and how much of the game's currency it holds.

    *weight* makes it more or less popular than its price alone would.
    """

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
    """*payers* of all players ever buy, *per_payer* times on average, less with age: by e in *fade_days*.

    What they buy follows a log-normal in the price, *median_price* (USD) and *price_sigma*, read off at the prices
    there are. Payers differ: the median of each is the game's times a log-normal of *payer_sigma*.
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
