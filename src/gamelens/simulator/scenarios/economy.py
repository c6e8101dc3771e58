"""The scenario tables about the game currency, the items on sale and the payers."""

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
    """The game currency: its initial balance, its rewards and its price list.

    Players never spend more than they have.

    Attributes:
        currency: its name in resource events.
        start: balance of a new player.
        reward: mean reward of a completed round that pays one.
        reward_share: share of completed rounds that pay a reward.
        price: price of the one thing on sale.
        spends: share of rounds after which a player buys as many as the balance allows.
        source: `type:id` of a reward in resource events.
        sink: `type:id` of a purchase in resource events.
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
    """An item sold for real money.

    Attributes:
        id: `type:id`, as business events carry it.
        price: price by currency, in hundredths. Every currency of a country of the game must be there, and USD.
        weight: popularity relative to what the price alone would give.
        grants: units of the game currency that come with it.
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
    """The payers of a game: how many there are, how often they buy, and at which prices.

    A payer chooses among the items by a log-normal density of the price, whose median is the payer's own.

    Attributes:
        payers: share of all players who ever buy.
        per_payer: mean number of purchases of a payer (geometric).
        fade_days: days after install in which the chance of a purchase falls by a factor of e.
        median_price: median price in USD over all payers.
        price_sigma: standard deviation of the logarithm of the price, for one payer.
        payer_sigma: standard deviation of the logarithm of the payers' own medians.
        items: the items on sale.
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
