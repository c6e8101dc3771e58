"""SQL of the revenue, network and identity of an impression, read from each vendor's payload.

Wire 3.6, Impression payloads; Wire 4.6, Impression.
"""

from __future__ import annotations

from typing import Final

import msgspec

from gamelens.wire.currencies import USD_PER_UNIT
from gamelens.wire.dimensions import DIMENSIONS, Payload

NANO: Final = 10**9
MICRO: Final = 10**6
_MOST_NANOS: Final = 2**62


class _Revenue(msgspec.Struct, frozen=True):
    """The place of the revenue in a vendor's payload.

    Attributes:
        field: name of the field.
        per_unit: amount of the field that makes one unit of the currency.
        names_currency: whether the payload names a currency; otherwise it is US dollars.
    """

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
_IDS: Final = ("id", "auction_id", "impressionId")
_NAMES: Final = {it.name: it.source.fields for it in DIMENSIONS.values() if isinstance(it.source, Payload)}


def payload_sql(event: str) -> str:
    """Return the SQL of the payload's fields to read, each as JSON, and null for other events."""
    read = [*_IDS, *(name for names in _NAMES.values() for name in names)]
    read += [*(revenue.field for revenue in _REVENUE.values()), "currency"]
    shape = ", ".join(f'"{name}": "JSON"' for name in dict.fromkeys(read))
    return f"CASE WHEN {event}.category = 'impression' THEN from_json({event}.impression_data, '{{{shape}}}') END"


def earned_sql(vendor: str, payload: str) -> str:
    """Return the SQL of the revenue in *payload* in nano-units.

    Null if its *vendor* names none.
    """
    whens: dict[int, str] = {}
    for name, revenue in _REVENUE.items():
        whens[revenue.per_unit] = whens.get(revenue.per_unit, "") + f"WHEN '{name}' THEN {payload}.{revenue.field} "
    nanos = [_nanos_sql(f"CASE {vendor} {fields}END", per_unit=per_unit) for per_unit, fields in whens.items()]
    return f"CASE WHEN {payload} IS NOT NULL THEN coalesce({', '.join(nanos)}) END"


def impression_sql(vendor: str, payload: str, earned: str, fallback_id: str) -> dict[str, str]:
    """Return the SQL of the columns of an impression that its payload tells.

    Args:
        vendor: SQL of the mediation SDK.
        payload: SQL of the fields that `payload_sql` reads.
        earned: SQL of the revenue that `earned_sql` reads.
        fallback_id: SQL of the identity where the vendor gives none. Prefixes keep both kinds of id apart.
    """
    currency = _currency_sql(vendor, payload)
    usable = f"{earned} BETWEEN 0 AND {_MOST_NANOS} AND {currency} IS NOT NULL"
    return {
        **{column: _first_sql(payload, names) for column, names in _NAMES.items()},
        "ilrd_id": f"coalesce('i' || {_first_sql(payload, _IDS)}, {fallback_id})",
        "money": f"CASE WHEN {usable} THEN CAST({earned} AS BIGINT) ELSE 0 END",
        "currency": f"CASE WHEN {usable} THEN {currency} ELSE 'USD' END",
    }


def _currency_sql(vendor: str, payload: str) -> str:
    """Return the SQL of the currency, null if it is not one of the table."""
    fixed = ", ".join(f"'{name}'" for name, revenue in _REVENUE.items() if not revenue.names_currency)
    currencies = ", ".join(f"'{code}'" for code in USD_PER_UNIT)
    currency = f"{payload}.currency"
    text = (
        f"CASE WHEN {currency} IS NULL OR {currency} = 'null' THEN 'USD' ELSE {_first_sql(payload, ('currency',))} END"
    )
    return f"(CASE WHEN {vendor} IN ({fixed}) THEN 'USD' WHEN ({text}) IN ({currencies}) THEN {text} END)"


def _nanos_sql(number: str, *, per_unit: int) -> str:
    """Return the SQL of *number*, JSON text, in nano-units, rounded half to even.

    Null where it is not a number or far too large. A decimal of 38 digits holds every amount up to the limit with all
    the digits that a float can have, so nothing is rounded twice.
    """
    places = len(str(NANO // per_unit)) - 1
    # Cast by way of text, because DuckDB casts the JSON string "1" to a number.
    exact = f"TRY_CAST(CAST({number} AS VARCHAR) AS DECIMAL(38, {places + 19}))"
    near = f"CAST({exact} AS DECIMAL(38, {places}))"  # half away from zero
    nanos = f"CAST(replace(CAST({near} AS VARCHAR), '.', '') AS HUGEINT)"
    is_tie = f"abs(CAST({near} AS DECIMAL(38, {places + 19})) - {exact}) = 0.{'0' * places}5"
    return f"CASE WHEN {is_tie} AND {nanos} % 2 = 1 THEN {nanos} - 1 ELSE {nanos} END"


def _first_sql(payload: str, names: tuple[str, ...]) -> str:
    """Return the SQL of the first of *names* that holds a string."""
    texts = [f"CASE WHEN starts_with({payload}.{name}, '\"') THEN {payload}.{name} ->> '$' END" for name in names]
    return f"coalesce({', '.join(texts)})"
