"""What an impression earned and who filled it, read from each vendor's own payload (public-facts 2.6)."""

from __future__ import annotations

from decimal import ROUND_HALF_EVEN, Decimal
from typing import Any, Final, NamedTuple

import msgspec

from gamelens.wire.currencies import USD_PER_UNIT

NANO: Final = 10**9
MICRO: Final = 10**6
_MOST_NANOS: Final = 2**62


class Impression(NamedTuple):
    """One impression in the lake's terms; *nanos* are billionths of one unit of *currency*."""

    id: str | None
    network: str | None
    unit: str | None
    format: str | None
    nanos: int
    currency: str


class _Revenue(msgspec.Struct, frozen=True):
    """Where a vendor writes what was earned: the field, how many of it make one unit, whether a currency is named."""

    field: str
    per_unit: int = 1
    names_currency: bool = True


_REVENUE: Final = {
    "max": _Revenue("revenue", names_currency=False),
    "ironsource": _Revenue("revenue", names_currency=False),
    "admob": _Revenue("revenue", per_unit=MICRO),
    "mopub": _Revenue("publisher_revenue"),
    "topon": _Revenue("publisher_revenue"),
    "hyperbid": _Revenue("publisher_revenue"),
    "fyber": _Revenue("netPayout"),
}


def read_impression(vendor: str, data: dict[str, Any]) -> Impression:
    """The impression in *data*; a payload that names no usable revenue earned 0."""
    nanos, currency = _earned(_REVENUE.get(vendor), data)
    return Impression(
        id=_first(data, "id", "auction_id", "impressionId"),
        network=_first(data, "network_name", "ad_network", "demandSource", "network_class_name"),
        unit=_first(data, "adunit_name", "adunit_id", "instance_name"),
        format=_first(data, "adunit_format", "ad_unit", "placementType"),
        nanos=nanos,
        currency=currency,
    )


def _earned(revenue: _Revenue | None, data: dict[str, Any]) -> tuple[int, str]:
    amount = data.get(revenue.field) if revenue else None
    currency = data.get("currency") if revenue and revenue.names_currency else None
    currency = "USD" if currency is None else currency
    if not isinstance(amount, int | float) or isinstance(amount, bool):
        return 0, "USD"
    if not isinstance(currency, str) or currency not in USD_PER_UNIT:
        return 0, "USD"
    # The shortest decimal that reads back as this float is what the client wrote.
    nanos = int(
        (Decimal(repr(amount)) * NANO / (revenue.per_unit if revenue else 1)).to_integral_value(ROUND_HALF_EVEN)
    )
    return (nanos, currency) if 0 <= nanos <= _MOST_NANOS else (0, "USD")


def _first(data: dict[str, Any], *names: str) -> str | None:
    return next((value for name in names if isinstance(value := data.get(name), str)), None)
