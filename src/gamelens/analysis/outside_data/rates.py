"""US dollars for amounts in other currencies, at the rates of their days."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from numbers import Real
from typing import Any, Final

import numpy as np
import pandas as pd
from msgspec import UNSET
from pandas import DataFrame, Series
from pandas.api.types import is_numeric_dtype

from gamelens.analysis.files.currency_names import currencies_in, currencies_of, is_currency
from gamelens.analysis.files.date_parsing import read_times
from gamelens.analysis.outside_data.bank_rates.quoted_rates import (
    Quote,
    are_quotes,
    dollars_by_quotes,
    quote_in,
    quotes_of_series,
    vendor_named,
)
from gamelens.analysis.outside_data.bank_rates.rates_by_row import (
    columns_of_rates,
    pair_columns,
    prices_of_one,
    quotes_of_pairs,
)
from gamelens.analysis.outside_data.outside_table import OutsideColumn, OutsideTable, money_roles
from gamelens.analysis.outside_data.rate_formulas import ColumnQuotient, Weight
from gamelens.analysis.outside_data.roles import Evidence, Vendor, is_exchange
from gamelens.analysis.outside_data.table_reading import understood
from gamelens.errors import BadQuery
from gamelens.wire.currencies import RATES_AS_OF, USD_PER_UNIT

Rate = Any
"""US dollars for one unit: a number, or numbers by currency, or a table of rates or its path."""

_OLDEST: Final = pd.Timedelta(days=10)  # between rates, the longest time without any: holidays around a weekend
_NEAR: Final = 0.12  # of the logarithm of a rate: what differs so much from the usual may be upside down
_FAR: Final = math.log(4)
_SAME: Final = math.log(1.8)  # between rates of one table as they are and as they usually are
_JUMP: Final = math.log(8)  # from one day to the next, more than any crash
_ROUNDED: Final = 1e-3
_DAY: Final = pd.Timedelta(days=1)


def check_rate(code: str, rate: Any) -> float:
    """Return a rate in US dollars for one unit of *code*, any currency if it is empty.

    Raises:
        BadQuery: it is not a number above 0, or it is upside down.
    """
    if not isinstance(rate, Real) or isinstance(rate, bool) or not 0 < float(rate) < math.inf:
        rule = (
            'must be a number above 0, a column of rates, a file of rates, or these by currency: {"EUR": "usd_per_eur"}'
        )
        raise BadQuery("rate", rate, rule)
    usual = float(USD_PER_UNIT.get(code, 0))
    if usual and _is_upside_down(float(rate), usual):
        rule = f"dollars for one {code}, and {usual:.4g} is usual (gamelens' own table, {RATES_AS_OF}): "
        rule += f"it is {code} for one dollar, pass 1 / {float(rate):.10g}, {1 / float(rate):.6g}"
        raise BadQuery("rate", rate, f"is {rule}")
    return float(rate)


def _is_upside_down(rate: float, usual: float) -> bool:
    from_usual, from_inverse = abs(math.log(rate / usual)), abs(math.log(rate * usual))
    return (from_inverse < _NEAR < from_usual) or from_usual - from_inverse > _FAR


def is_rates_file(rate: Any, columns: Iterable[str]) -> bool:
    """Return whether *rate* is a table of rates, or the path of one, and none of *columns*, such as EUR/USD."""
    if isinstance(rate, str) and rate in columns:
        return False
    is_path = isinstance(rate, os.PathLike) or (isinstance(rate, str) and ("." in rate or "/" in rate))
    return is_path or isinstance(rate, (OutsideTable, DataFrame)) or hasattr(rate, "__arrow_c_stream__")


class DailyRates:
    """Rates of a table: US dollars for one unit of each currency, by day."""

    def __init__(self, rate: Any) -> None:
        table = rate if isinstance(rate, OutsideTable) else _table_of_rates(rate)
        self.source = table.source
        self._rates = _rates_of(table)

    def of_days(self, code: str, days: Series[Any]) -> Series[Any]:
        """Return the rate of each day, or of the last day before it that has one.

        Raises:
            BadQuery: the table does not have the currency, or no rate within ten days before a day.
        """
        if code not in self._rates:
            raise BadQuery("rate", code, f"is no currency of {self.source}", [*self._rates])
        known = self._rates[code].dropna()
        wanted = DataFrame({"day": days.dt.floor("D")}).reset_index(drop=True)
        wanted["row"] = range(len(wanted))
        ordered = wanted.dropna().sort_values("day")
        found = pd.merge_asof(ordered, known.rename("rate").reset_index(), on="day", tolerance=_OLDEST)
        if found["rate"].isna().any():
            missing = found["day"][found["rate"].isna()]
            rule = f"has no rate of {code} on or up to 10 days before {missing.iloc[0]:%Y-%m-%d}"
            span = f"{known.index.min():%Y-%m-%d} to {known.index.max():%Y-%m-%d}" if len(known) else "none"
            raise BadQuery("rate", self.source, f"{rule} (its rates: {span}): pass a file that covers the days")
        by_row = found.set_index("row")["rate"].reindex(range(len(wanted)))
        return by_row.set_axis(days.index)


def _table_of_rates(rate: Any) -> OutsideTable:
    """Return a table of rates, also of a file that is no UTF-8: its codes and numbers are the same in all encodings."""
    try:
        return understood(rate, {})
    except BadQuery as refused:
        likely = re.findall(r'"(\w+)" reads', refused.rule)
        if not likely:
            raise
        return understood(rate, {"encoding": likely[0]})


def _rates_of(table: OutsideTable) -> DataFrame:
    """Return US dollars for one unit: a row for each day, a column for each currency.

    Raises:
        BadQuery: the table has no days, or nothing tells what its rates mean.
    """
    vendor = vendor_named(table.vendor)
    home = str(vendor.table.get("rates_in", "")) if vendor else ""
    day = _day_above(table) if table.period is None and home else None
    if day is None and table.period is None and table.periods.problem is None:
        _ask_for_days(table, home)
    if day is None and (table.periods.problem is not None or table.period is None):
        rule = 'has no column of days: name it with gl.read_table(..., roles={"...": "day"})'
        raise table.periods.problem or BadQuery("rate", table.source, rule, [column.name for column in table.columns])
    days = table.starts.dt.floor("D").rename("day") if day is None else table.starts.fillna(day).rename("day")
    numbers = [
        column
        for column in table.columns
        if column.role in ("exchange_rate", "number", "rate") and column.problem is None
    ]
    unread = [column.problem for column in table.of_role("exchange_rate") if column.problem is not None]
    if unread and not numbers:
        raise unread[0]
    codes = table.of_role("currency")
    found: dict[str, Series[Any]] = {}
    plain = [number for number in numbers if is_currency(number.name.strip())]
    pairs = [(column, pair) for column in numbers if (pair := is_exchange(column.name))]
    quoted = _quoted(numbers, plain, pairs, days, vendor)
    texts = table.of_role("text")
    series = next((column for column in texts if are_quotes([*map(str, column.values.dropna().unique())])), None)
    if series is not None and len(numbers) == 1:
        others = {column.name: column.values for column in texts if column is not series}
        quoted = quotes_of_series(series.values, numbers[0].values.astype("float64"), days, others, table.source, home)
    if quoted:
        found = dollars_by_quotes(quoted, table.source)
    elif codes and numbers:
        found = _rates_by_code(table, codes, numbers, days, home)
    elif table.rates_of:
        found = _rates_of_base(
            {number.name.strip(): _by_day(number, days) for number in numbers}, table.rates_of, table
        )
    else:
        found |= dict(_by_pair(column.name, pair, _by_day(column, days)) for column, pair in pairs)
        named = {number.name.strip(): _by_day(number, days) for number in plain}
        found |= _rates_of_named(named, table) if named else {}
    if not found:
        rule = "has no rates that can be told: call its columns usd_per_eur, eur_per_usd or EUR/USD, "
        for column in numbers[:1]:
            called = {column.name: "usd_per_eur"}
            rule += f"rate=gl.read_table({table.source!r}).frame.rename(columns={called!r}), "
        rule += "or have one column of currencies and one of rates"
        raise BadQuery("rate", table.source, rule, [column.name for column in table.columns])
    by_day = DataFrame(found).rename_axis("day").sort_index()
    _check_jumps(by_day, table.source)
    if table.period in ("day", "time", None):
        return by_day
    ends = table.ends.groupby(days).max()  # the rate of a month holds on each of its days
    of_day = {day: start for start in by_day.index for day in pd.date_range(start, ends[start] - _DAY, freq="D")}
    return by_day.loc[[*of_day.values()]].set_axis(pd.DatetimeIndex([*of_day], name="day")).sort_index()


def _check_jumps(by_day: DataFrame, source: str) -> None:
    """Raise `BadQuery` if a rate becomes many times as high or low from one day to the next: it is of other units."""
    for code, rates in by_day.items():
        known = rates[rates > 0].dropna()
        times = np.abs(np.log(known.to_numpy()[1:] / known.to_numpy()[:-1]))
        if len(times) and times.max() > _JUMP:
            place = int(times.argmax())
            before, since = known.index[place], known.index[place + 1]
            rule = f"has {known.iloc[place]:.6g} dollars for one {code} on {before:%Y-%m-%d} and "
            rule += f"{known.iloc[place + 1]:.6g} on {since:%Y-%m-%d}, as if of other units since then: "
            rule += f"write all rates of {code} for the same number of units"
            raise BadQuery("rate", source, rule)


def _ask_for_days(table: OutsideTable, home: str) -> None:
    """Raise `BadQuery` for a table that has one rate of each currency and no days, with the rates as an argument.

    Nothing is raised where its rates cannot be told.
    """
    numbers = [column for column in table.columns if column.role in ("exchange_rate", "number", "rate")]
    codes = table.of_role("currency")
    days = Series(pd.Timestamp("2026-01-01", tz="UTC"), index=range(len(table.rows)))
    try:
        if codes and numbers:
            found = _rates_by_code(table, codes, numbers, days, home)
        else:
            pairs = [(column, pair) for column in numbers if (pair := is_exchange(column.name))]
            found = dict(_by_pair(column.name, pair, _by_day(column, days)) for column, pair in pairs)
    except BadQuery:
        return
    rates = {code: float(f"{rate.iloc[0]:.6g}") for code, rate in found.items() if len(rate) and code != "USD"}
    if rates:
        rule = f"has no days, and one rate of each currency: rate={rates!r} takes them, dollars for one, for all days"
        raise BadQuery("rate", table.source, rule)


def _quoted(
    numbers: list[OutsideColumn],
    plain: list[OutsideColumn],
    pairs: list[tuple[OutsideColumn, tuple[str, str]]],
    days: Series[Any],
    vendor: Vendor | None,
) -> list[tuple[str, Quote, Series[Any]]]:
    """Return the columns that quote a rate with it, and their prices by day.

    USD alone, one of *plain*, is one beside 100 JPY, and so is EUR/NOK, one of *pairs*, beside USD/NOK.
    """
    quoted = [
        (column.name, quote, _by_day(column, days))
        for column in numbers
        if (quote := quote_in(column.name, vendor)) is not None
    ]
    if any(not quote.price_in for _, quote, _ in quoted):
        quoted += [(number.name, Quote(number.name.strip(), "", 1), _by_day(number, days)) for number in plain]
    if quoted or all("USD" in pair for _, pair in pairs):
        return quoted
    for column, pair in pairs:
        rates = _by_day(column, days)
        usual = float(USD_PER_UNIT[pair[0]]) / float(USD_PER_UNIT[pair[1]])
        first, second = reversed(pair) if _is_upside_down(float(rates.median()), usual) else pair
        quoted.append((column.name, Quote(first, second, 1), rates))
    return quoted


def _by_day(column: OutsideColumn, days: Series[Any]) -> Series[Any]:
    return column.values.astype("float64").groupby(days).last()


def _by_pair(name: str, pair: tuple[str, str], rates: Series[Any]) -> tuple[str, Series[Any]]:
    """Return the rates of a column such as usd_per_eur or EUR/USD, which people write in both orders.

    Raises:
        BadQuery: neither currency is the dollar, or its rates are upside down.
    """
    if "USD" not in pair:
        raise BadQuery("rate", name, "compares two currencies, neither of them US dollars")
    code = pair[0] if pair[1] == "USD" else pair[1]
    usual, middle = float(USD_PER_UNIT[code]), float(rates.median())
    if "per" in name.casefold():
        if pair[0] != "USD":  # EUR per dollar
            return code, 1 / rates
        check_rate(code, middle)
        return code, rates
    return code, 1 / rates if _is_upside_down(middle, usual) else rates


def _rates_by_code(
    table: OutsideTable, codes: list[OutsideColumn], numbers: list[OutsideColumn], days: Series[Any], home: str
) -> dict[str, Series[Any]]:
    """Return the rates of a table with a column of currencies and one of rates, in a bank's *home* currency.

    Raises:
        BadQuery: several columns may be the rates, or nothing tells their direction.
    """
    pair = pair_columns(codes)
    surest = columns_of_rates(table, numbers, pair[0] if pair else codes[0])
    if not surest:
        raise BadQuery("rate", table.source, "has no column of rates", [column.name for column in table.columns])
    if len(surest) > 1:
        rule = f'has several columns that may be rates: say which with roles={{"{surest[0].name}": "exchange_rate"}}'
        raise BadQuery("rate", table.source, rule, [number.name for number in surest])
    if pair is not None:
        return dollars_by_quotes(quotes_of_pairs(table, pair, surest[0], days), table.source)
    base = codes[0] if len(codes) > 1 and codes[0].values.nunique() == 1 else None
    texts = codes[0 if base is None else 1].values.astype("object")
    prices = prices_of_one(table, surest[0])
    frame = DataFrame({"day": days, "code": texts, "rate": prices}).dropna()
    wide = frame.groupby(["day", "code"])["rate"].last().unstack()
    named = {next(iter(currencies_of(str(text).strip()))): wide[text] for text in wide}
    if home:
        quoted = [(code, Quote(code, home, 1), rates) for code, rates in named.items()]
        return dollars_by_quotes(quoted, table.source)
    stated = currencies_in(surest[0].name.casefold().rpartition("per ")[2], is_header=True)
    if " per " in surest[0].name.casefold() and len(stated) == 1:  # units per £1
        return _rates_of_base(named, min(stated), table)
    if base is not None and base.currency is None and str(base.values.iloc[0]) != "USD":
        return _rates_of_base(named, str(base.values.iloc[0]).strip(), table)
    return _rates_of_named(named, table)


def _rates_of_base(named: Mapping[str, Series[Any]], base: str, table: OutsideTable) -> dict[str, Series[Any]]:
    """Return rates from a table that has units of each currency for one of *base*."""
    if "USD" not in named and base != "USD":
        raise BadQuery("rate", table.source, f"has rates for one {base}, and none of US dollars")
    dollars = named["USD"] if base != "USD" else next(iter(named.values())) * 0 + 1
    return {base: dollars} | {code: dollars / units for code, units in named.items() if code not in ("USD", base)}


def _rates_of_named(named: Mapping[str, Series[Any]], table: OutsideTable) -> dict[str, Series[Any]]:
    """Return rates of columns called by a currency: dollars for one, or units for one dollar or euro, as is usual.

    Raises:
        BadQuery: none of these is near the usual rates.
    """
    middles = {code: float(rates.median()) for code, rates in named.items() if rates.notna().any() and code != "USD"}
    if not middles:
        return {}
    usual = {code: math.log(float(USD_PER_UNIT[code])) for code in middles}
    ways = {"dollars": (1, 0.0), "per dollar": (-1, 0.0), "per euro": (-1, math.log(float(USD_PER_UNIT["EUR"])))}
    if "EUR" in middles:
        del ways["per euro"]
    if "USD" in named and abs(math.log(float(named["USD"].median()))) > _ROUNDED:  # not for one dollar
        ways = {way: how for way, how in ways.items() if way == "per euro"}
    far = {
        way: max(abs(math.log(middle) - sign * usual[code] - shift) for code, middle in middles.items())
        for way, (sign, shift) in ways.items()
    }
    best, *others = [*sorted(far, key=far.__getitem__), ""]
    euro_apart = {"per dollar", "per euro"}  # which a column of dollars tells apart
    is_far = not best or far[best] > (_FAR if len(ways) > 1 else _SAME)
    if is_far or any(far[other] - far[best] < _NEAR for other in others if other and {best, other} != euro_apart):
        if found := _rates_in_another(named):
            return found
        raise BadQuery("rate", table.source, "has rates that are far from the usual ones: call the columns usd_per_eur")
    if best == "dollars":
        return dict(named)
    if best == "per dollar":
        return {code: 1 / rates for code, rates in named.items() if code != "USD"}
    return _rates_of_base(named, "EUR", table)


def _rates_in_another(named: Mapping[str, Series[Any]]) -> dict[str, Series[Any]]:
    """Return rates of columns with prices in one other currency, or units for one of it; none if that cannot be told.

    One of the columns is of dollars.
    """
    usual = {code: float(USD_PER_UNIT[code]) for code, rates in named.items() if rates.notna().any()}
    if "USD" not in usual or len(usual) == 1:
        return {}
    logs = {code: math.log(float(named[code].median())) for code in usual}
    spreads = {
        sign: max(spread) - min(spread)
        for sign in (-1, 1)
        for spread in [[logs[code] + sign * math.log(usual[code]) for code in usual]]
    }
    near, far = sorted(spreads, key=spreads.__getitem__)
    if spreads[near] > _SAME or spreads[far] < max(3 * spreads[near], 2 * _NEAR):
        return {}
    dollars = named["USD"]
    others = {code: rates for code, rates in named.items() if code != "USD"}
    return {code: rates / dollars if near == -1 else dollars / rates for code, rates in others.items()}


def _day_above(table: OutsideTable) -> pd.Timestamp | None:
    """Return the day of all rates of a table that a line above it names."""
    for line in table.grid.above:
        try:
            read = read_times([line.partition("#")[0].strip(" \"'")], field=table.source)
        except BadQuery:
            continue
        if read.precision == "day" and read.until is None:
            return pd.Timestamp(read.at[0]).tz_localize("UTC")
    return None


def dollars_of(
    table: OutsideTable, column: OutsideColumn, rate: Rate, *, used: Series[bool] | None = None
) -> Series[Any]:
    """Return the amounts of a column in US dollars, each row at the rate of its currency and days.

    Rows that are not *used* (by default all are) may be of days without a rate, and are null then.

    Raises:
        BadQuery: its currency is not known, or has no rate.
    """
    if column.problem is not None:
        raise column.problem
    is_number = isinstance(rate, Real) and not isinstance(rate, bool)
    codes = Series("", index=column.values.index, dtype="object")
    if column.currencies is not None:
        codes = column.currencies.astype("object").where(column.currencies.notna(), "")
    if column.money_problem is not None and (not is_number or column.currencies is not None):
        raise column.money_problem
    amounts = column.values.astype("float64")
    factors = Series(1.0, index=amounts.index).where(codes == "USD")
    foreign = [str(code) for code in codes[amounts.notna() & (codes != "USD")].unique()]
    if is_number and len(foreign) > 1:
        raise BadQuery(
            "rate", rate, f'is one rate for {", ".join(foreign)}: name one for each currency, {{"{foreign[0]}": ...}}'
        )
    is_file = is_rates_file(rate, [other.name for other in table.columns])
    daily = DailyRates(rate) if foreign and is_file else None
    of_dollars = rate.get("USD") if isinstance(rate, Mapping) else None
    if isinstance(of_dollars, Real) and of_dollars != 1:
        raise BadQuery("rate", of_dollars, "is of USD, which need none: amounts in US dollars stay as they are")
    for code in foreign:
        rows = (codes == code) & amounts.notna()
        if daily is not None:
            if code == "":
                raise column.money_problem or BadQuery(column.name, UNSET, "names no currency: pass currency=")
            factors = factors.mask(rows, _mean_rates(daily, code, table, rows, rows if used is None else rows & used))
            continue
        given_rate = rate.get(code) if isinstance(rate, Mapping) else rate
        if given_rate is None:
            step = f'rate={{"{code}": ...}} with US dollars for one {code}, or a file of rates'
            raise BadQuery("rate", code, f"has no rate: {step}")
        if isinstance(given_rate, str):
            factors = factors.mask(rows, _rates_of_rows(table.column(given_rate, "rate"), code, rows))
            continue
        factors = factors.mask(rows, check_rate(code, given_rate))
    return amounts * factors


def _rates_of_rows(column: OutsideColumn, code: str, rows: Series[Any]) -> Series[Any]:
    """Return the rates of a column of the same table.

    Raises:
        BadQuery: a row has none, or one that is upside down.
    """
    if not is_numeric_dtype(column.values):
        raise BadQuery("rate", column.name, "is not a column of numbers")
    values = column.values.astype("float64")
    if values[rows].isna().any():
        raise BadQuery("rate", column.name, f"has no rate in {int(values[rows].isna().sum())} rows of {code}")
    return dollars_by_column(column.name, values[rows], code).reindex(values.index)


def dollars_by_column(name: str, rates: Series[Any], code: str) -> Series[Any]:
    """Return US dollars for one unit of *code*, any currency if it is empty, by the rates of a column.

    Its name may say of what they are: usd_per_eur, EUR/USD.

    Raises:
        BadQuery: the name has another currency, or a rate is upside down.
    """
    pair = is_exchange(name)
    named = {*(pair or currencies_in(name, is_header=True))}
    if (pair and "USD" not in named) or (code and len(named) <= 2 and not named <= {"USD", code}):
        wanted = f"US dollars for one {code or 'unit'}"
        rule = f"is of {' and '.join(sorted(named))} by its name, and not {wanted}: pass a column, a number or a file"
        raise BadQuery("rate", name, f"{rule} of these, or rename the column if its name is wrong")
    if pair and rates.notna().any():
        _, rates = _by_pair(name, pair, rates)
    for number in rates.dropna().unique().tolist():
        check_rate(code, number)
    return rates


def _mean_rates(daily: DailyRates, code: str, table: OutsideTable, rows: Series[Any], used: Series[Any]) -> Series[Any]:
    """Return the rate of the day of each row, of several days their mean; null where none is known and none is used."""
    if table.period is None:
        raise table.periods.problem or BadQuery(
            "rate", daily.source, f"has rates by day, and {table.source} has no days"
        )
    starts, ends = table.starts.dt.floor("D"), table.ends
    periods = DataFrame({"start": starts, "end": ends})[rows]
    needed = {*periods[used[rows]].itertuples(index=False, name=None)}
    rates = {}
    for start, end in periods.drop_duplicates().itertuples(index=False, name=None):
        days = Series(pd.date_range(start, max(end - _DAY, start), freq="D"))
        try:
            rates[start, end] = float(daily.of_days(code, days).mean())
        except BadQuery:
            if (start, end) in needed:
                raise
    found = [rates.get(pair, np.nan) for pair in zip(starts, ends, strict=True)]
    return Series(found, index=rows.index, dtype="float64")


def table_in_dollars(table: OutsideTable, rate: Rate) -> OutsideTable:
    """Return a table with its amounts, prices and rates of money in US dollars.

    Raises:
        BadQuery: no column can be converted.
    """
    if not any(column.is_money for column in table.columns):
        numbers = [column.name for column in table.of_role("number")]
        step = f'roles={{"{numbers[0] if numbers else "..."}": "cost"}} or "income" if one is'
        raise BadQuery("rate", UNSET, f"converts nothing: no column of {table.source} is money, {step}", numbers)
    columns, refused = [], []
    for column in table.columns:
        if column.is_money and column.problem is None:
            try:
                values = dollars_of(table, column, rate)
            except BadQuery as error:
                refused.append(error)
                columns.append(replace(column, money_problem=error))
                continue
            codes = Series("USD", index=values.index, dtype="str").where(values.notna())
            evidence = (*column.evidence, Evidence("USD", "the argument", "rate"))
            column = replace(column, values=values, currencies=codes, evidence=evidence, money_problem=None)
        columns.append(column)
    if refused and len(refused) == sum(column.is_money for column in table.columns):
        raise refused[0]
    columns, notes = _with_whole_quotients(table, columns)
    return replace(table, columns=tuple(columns), notes=(*table.notes, *notes))


def _with_whole_quotients(table: OutsideTable, converted: list[OutsideColumn]) -> tuple[list[OutsideColumn], list[str]]:
    """Return the *converted* columns of a table, and notes on rates that have one side changed by a rate of exchange.

    Such a quotient is not made anew of two units. It stays as the file has it, weighted by its denominator, and is
    refused where the file has it in several currencies.
    """
    before = {column.name: column for column in table.columns}
    now = {column.name: column for column in converted}
    changed = {name: _codes(before[name]) for name in now if now[name].values is not before[name].values}
    changed = {name: codes for name, codes in changed.items() if codes != {"USD"}}
    columns, notes = [], []
    for column in converted:
        quotient = column.weight
        if not isinstance(quotient, ColumnQuotient):
            columns.append(column)
            continue
        above, below = quotient.numerator, quotient.denominator
        is_of_money = above in changed and column.name in changed  # 1.20 euros an install
        if (above in changed) == (below in changed) or is_of_money:
            columns.append(column)
            continue
        one, other = (above, below) if above in changed else (below, above)
        problem = now[other].money_problem
        step = f"{other} {problem.rule}" if problem else money_roles(now[other], converted).removesuffix(", ")
        if len(changed[one]) > 1:
            codes = " and ".join(sorted(changed[one]))
            rule = f"is {quotient} with {one} in {codes}, and {other} is not what rate= converts: {step}"
            columns.append(replace(column, problem=BadQuery(column.name, UNSET, rule)))
            continue
        notes.append(f"{column.name} stays {quotient} as the file has it, as rate= does not convert {other}: {step}")
        columns.append(replace(column, weight=Weight(below)))
    return columns, notes


def _codes(column: OutsideColumn) -> set[str]:
    """Return the currencies of the rows of a column, none where nothing states them."""
    return set() if column.currencies is None else {*map(str, column.currencies.dropna().unique())}
