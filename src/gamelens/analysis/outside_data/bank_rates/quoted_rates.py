"""Rates as central banks quote them: 100JPY in zlotys, FXUSDCAD, INR / 100 JPY, DEXUSEU.

Such a table has prices of several units of many currencies in one, which is seldom the dollar, rows that name the
currencies, and columns called by codes of the bank. A format of `vendors.toml` says in which currency the prices are
(`rates_in`), and how its headers are read (`quotes`, with the groups *of*, *in* and *units*). `codes` has the codes
that the bank alone uses.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pandas import DataFrame, Series

from gamelens.analysis.files.currency_names import is_currency
from gamelens.analysis.files.table_reader import Grid
from gamelens.analysis.outside_data.roles import Vendor, vendors
from gamelens.errors import BadQuery
from gamelens.wire.currencies import USD_PER_UNIT

_NO_CODES: Final = {"YEN": "JPY", "EURO": "EUR", "STG": "GBP", "RMB": "CNY"}
_UNIT_AND_CODE: Final = re.compile(
    r"(?P<units>1|10|100|1000|10000)[ _]?(?P<of>[A-Z]{3})|(?P<last>[A-Z]{3})[ _]?\(?(?P<many>100*|1)\)?"
)
_BOTH_CODES: Final = re.compile(r"FX(?P<of>[A-Z]{3})(?P<in>[A-Z]{3})")
_IN_PER: Final = re.compile(r"(?P<in>[A-Z]{3}) ?(?:/|per) ?(?P<units>100*) ?(?P<of>[A-Z]{3,4})")
_UNITS: Final = re.compile(
    r"(?i)množství|mnozstvi|amount|quantity|units?|nominal|номинал|единиц\w*|liczba jednostek|przelicznik|egység|birim"
    r"|enhet(?:er)?|einheit(?:en)?|cantidad|unités?|unidades?|jedinica|multiplicator|multiplier|单位|単位"
)
_POWER: Final = re.compile(r"10{0,4}")
MOST_SERIES: Final = 80  # currencies in the rows of a bank
_NEAR: Final = 0.5  # of a usual rate, which one of as many units is
_FEWEST: Final = 2  # currencies of a table of rates


class Quote(NamedTuple):
    """What a header says: the *price_in* one currency of *units* of another; "" where the bank alone knows in which."""

    currency: str
    price_in: str
    units: int


def quote_in(header: str, vendor: Vendor | None = None) -> Quote | None:
    """Return the rate that a header quotes, None for any other header."""
    text = " ".join(header.split())
    if vendor is not None and "rates_in" in vendor.table:
        codes, home = vendor.table.get("codes", {}), vendor.table["rates_in"]
        for pattern in vendor.table.get("quotes", ()):
            if match := re.fullmatch(pattern, text):
                said = match.groupdict()
                currency, price_in = (
                    codes.get(said.get(part) or home, said.get(part) or home) for part in ("of", "in")
                )
                return _checked(currency, price_in, said.get("units"))
    for pattern in (_BOTH_CODES, _IN_PER, _UNIT_AND_CODE):
        if match := pattern.fullmatch(text):
            said = match.groupdict()
            units = said.get("units") or said.get("many")
            return _checked(said["of"] or said.get("last") or "", said.get("in") or "", units)
    return None


def _checked(currency: str, price_in: str, units: str | None) -> Quote | None:
    currency, price_in = (_NO_CODES.get(code, code) for code in (currency, price_in))
    is_known = is_currency(currency) and (not price_in or is_currency(price_in)) and currency != price_in
    return Quote(currency, price_in, int(units or 1)) if is_known else None


def quoted_headers(headers: Sequence[str], vendor: Vendor | None = None) -> list[str]:
    """Return the headers of rates, none where they are all of one currency: 1 USD and 10 USD are prices."""
    quotes = {header: quote for header in headers if (quote := quote_in(header, vendor)) is not None}
    is_of_bank = vendor is not None and "rates_in" in vendor.table
    return [*quotes] if is_of_bank or len({quote.currency for quote in quotes.values()}) >= _FEWEST else []


def vendor_named(name: str | None) -> Vendor | None:
    """Return the format of that name."""
    return next((vendor for vendor in vendors() if vendor.name == name), None)


def units_column(names: Iterable[str]) -> str | None:
    """Return the column that says of how many units a rate is."""
    return next((name for name in names if _UNITS.fullmatch(name.strip())), None)


def without_names_of_currencies(grid: Grid, vendor: Vendor | None) -> Grid:
    """Return a table of quoted rates without the rows that have no day, but names, codes or units of the currencies.

    Headers that stand again among the rows hold for the rows below them: a bank quotes 1 TRY until October, and 100 TRY
    from November on. What they call otherwise is a column of its own.
    """
    quoted = quoted_headers(grid.columns, vendor)
    if not quoted or not grid.is_text(grid.columns[0]) or grid.columns[0] in quoted:
        return grid
    texts, codes = grid.texts(grid.columns[0])
    has_digit = np.append(np.asarray(pc.match_substring_regex(texts, r"\d"), dtype=bool), False)
    is_day = has_digit[codes]
    if is_day.all() or not is_day.any():
        return grid
    headers = {name: [name] * len(grid.rows) for name in quoted}
    changed = []
    for row in np.flatnonzero(~is_day).tolist():
        called = _headers_again(grid, row, {name: of_rows[row] for name, of_rows in headers.items()}, vendor)
        if called and is_day[row:].any():
            changed.append(int(grid.rows[row]))
        for name, header in called.items():
            headers[name][row:] = [header] * (len(grid.rows) - row)
    words = "names currencies or units, and is" if (~is_day).sum() == 1 else "name currencies or units, and are"
    notes = [f"{grid.rows_text(~is_day)} {words} left out"]
    if changed:
        grid = _with_columns_of_headers(grid, headers)
        listed = ", ".join(map(str, changed))
        notes.append(f"the units of {'row' if len(changed) == 1 else 'rows'} {listed} hold for the rates below")
    return grid.filtered(is_day, *notes)


def _headers_again(grid: Grid, row: int, quoted: Mapping[str, str], vendor: Vendor | None) -> dict[str, str]:
    """Return what a row calls *quoted* columns, with the headers they have above it, where that is something else."""
    first = str(grid.cells.column(grid.columns[0])[row].as_py() or "").strip()
    found = {}
    for name, header in quoted.items():
        text = str(grid.cells.column(name)[row].as_py() or "").strip()
        quote = quote_in(header, vendor)
        if quote is not None and text and _UNITS.fullmatch(first) and _POWER.fullmatch(text):
            text = f"{text} {quote.currency}"
        if quote_in(text, vendor) not in (None, quote):
            found[name] = text
    return found


def _with_columns_of_headers(grid: Grid, headers: Mapping[str, Sequence[str]]) -> Grid:
    """Return *grid* with a column for each of the *headers* that its columns have in any row."""
    cells = grid.cells.drop_columns([*headers])
    for header in dict.fromkeys(header for of_rows in headers.values() for header in of_rows):
        values: list[Any] = [None] * len(grid.rows)
        for name, of_rows in headers.items():
            if header in of_rows:
                column = grid.cells.column(name).to_pylist()
                values = [
                    column[row] if called == header else value
                    for row, (called, value) in enumerate(zip(of_rows, values, strict=True))
                ]
        texts = [None if value is None else str(value) for value in values]
        cells = cells.append_column(header, pa.array(texts, pa.string()).dictionary_encode())
    return replace(grid, cells=cells, formats={})


def with_units_in_headers(grid: Grid) -> Grid:
    """Return a table of rates whose first row has the units of its columns with these in the headers: JPY, 100 JPY."""
    names = [name for name in grid.columns[1:] if is_currency(name.strip())]
    if len(names) < _FEWEST or not all(map(grid.is_text, (grid.columns[0], *names))):
        return grid
    cells = {name: grid.cells.column(name)[0].as_py() for name in (grid.columns[0], *names)} if len(grid.rows) else {}
    units = [str(cells.get(name) or "").strip() for name in names]
    if not _UNITS.fullmatch(str(cells.get(grid.columns[0]) or "").strip()) or not all(map(_POWER.fullmatch, units)):
        return grid
    said = dict(zip(names, units, strict=True))
    renamed = [f"{said[name]} {name.strip()}" if name in said else name for name in grid.columns]
    mask = np.arange(len(grid.rows)) > 0
    kept = grid.filtered(mask, f"{grid.rows_text(~mask)} has the units of the rates, which their names have now")
    return replace(kept, cells=kept.cells.rename_columns(renamed), formats={})


def are_quotes(texts: Sequence[str]) -> bool:
    """Return whether *texts* each name a currency and its units, as rows of a bank do: 1 USD, 100 JPY, JPY100."""
    if not 1 < len(texts) <= MOST_SERIES:
        return False
    found = [_UNIT_AND_CODE.fullmatch(" ".join(text.split())) for text in texts]
    return all(found) and len({quote.currency for text in texts if (quote := quote_in(text)) is not None}) == len(texts)


def quotes_of_series(
    series: Series[Any],
    prices: Series[Any],
    days: Series[Any],
    others: Mapping[str, Series[Any]],
    source: str,
    home: str,
) -> list[tuple[str, Quote, Series[Any]]]:
    """Return what each text of a column of *series* quotes, such as 100 JPY, and its prices by day.

    Raises:
        BadQuery: a day has several rows of one, which *others* tell apart.
    """
    texts = series.astype("object")
    if DataFrame({"text": texts, "day": days})[prices.notna()].duplicated().any():
        kinds = next((name for name, other in others.items() if 1 < other.nunique() <= MOST_SERIES), None)
        step = "pass a table with one row for each"
        if kinds is not None:
            step = f"leave_out={ {kinds: [str(text) for text in others[kinds].dropna().unique()[1:]]}!r} leaves one"
        raise BadQuery("rate", source, f"has several rates of {texts.iloc[0]} on one day: {step}")
    found = []
    for text in texts.dropna().unique():
        quote = quote_in(str(text))
        if quote is not None and quote.currency != home:
            rates = prices[texts == text].groupby(days[texts == text]).last()
            found.append((str(text), quote._replace(price_in=home), rates))
    return found


def dollars_by_quotes(quoted: Sequence[tuple[str, Quote, Series[Any]]], source: str) -> dict[str, Series[Any]]:
    """Return US dollars for one unit of each currency, by columns, what each quotes, and their prices by day.

    Raises:
        BadQuery: two columns have rates of one pair, nothing has the dollar, or a rate is far from the usual one.
    """
    pairs: dict[tuple[str, str], tuple[str, Series[Any]]] = {}
    for name, quote, values in quoted:
        price, pair = values / quote.units, (quote.currency, quote.price_in)
        other, known_price = pairs.setdefault(pair, (name, price))
        if other != name and not (price.reindex(known_price.index).notna() & known_price.notna()).any():
            pairs[pair] = other, known_price.combine_first(price)  # of other units since then
        elif other != name:
            rule = f"has two columns of rates of {quote.currency}, {other} and {name}: "
            raise BadQuery("rate", source, f'{rule}gl.read_table("{source}", roles={{"{name}": "text"}}) leaves one')
    prices = [(*pair, price) for pair, (_, price) in pairs.items()]
    known: dict[str, Series[Any]] = {"USD": Series(dtype="float64")}
    for _ in range(2):  # the home currency by its dollar first, then all others by the home currency
        for currency, price_in, price in prices:
            if price_in in known and currency not in known:
                known[currency] = price if price_in == "USD" else price * known[price_in]
            elif currency in known and price_in not in known:
                known[price_in] = 1 / price if currency == "USD" else known[currency] / price
    if len(known) == 1:
        home = next((price_in for _, price_in, _ in prices if price_in), "one currency")
        raise BadQuery("rate", source, f"has rates in {home}, and none of US dollars: pass a file that has both")
    found = {code: rates for code, rates in known.items() if code not in ("USD", "")}
    for code, rates in found.items():
        usual = float(USD_PER_UNIT.get(code, 0))
        if usual and rates.notna().any() and not 0.25 < float(rates.median()) / usual < 4:
            rule = (
                f"has rates of {code} that are far from the usual one, {float(rates.median()):.6g} dollars for one and"
            )
            raise BadQuery(
                "rate", source, f"{rule} not {usual:.4g}: {_step(code, float(rates.median()) / usual, quoted)}"
            )
    return found


def _step(code: str, factor: float, quoted: Sequence[tuple[str, Quote, Series[Any]]]) -> str:
    """Return what to do with rates of *code* that are *factor* times the usual: they may be of several units."""
    names = [name for name, quote, _ in quoted if quote.currency == code]
    units = next((units for units in (10, 100, 1000) if _NEAR < factor / units < 1 / _NEAR), None)
    if not names or units is None:
        return f"call the columns usd_per_{code.lower()}"
    stated = {names[0]: {"role": "exchange_rate", "scale": 1 / units}}
    return f"if they are of {units} {code}, roles={stated!r} of gl.read_table says so"
