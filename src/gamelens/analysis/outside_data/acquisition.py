"""Acquisition: the cost of players, what they are worth, and the time until they have paid it back.

Ad spend is external, so the functions read frames of `gl.join`: new_users by publisher and country with the spend
beside them. Players without ad spend have the null publisher.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace as replaced
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd
from msgspec import UNSET
from msgspec.structs import replace as structs_replace
from pandas import DataFrame, Series
from pandas.api.types import is_numeric_dtype

from gamelens._text import counted
from gamelens.analysis.claims.findings import Finding, direction_of, reads
from gamelens.analysis.claims.leaders import leader
from gamelens.analysis.files.currency_names import currencies_in
from gamelens.analysis.outside_data.by_role import is_of_ranks
from gamelens.analysis.outside_data.header_months import check_month
from gamelens.analysis.outside_data.join import CURRENCY, join
from gamelens.analysis.outside_data.join_keys import NOBODY, PUBLISHER, On, pairs_of, unknown_names
from gamelens.analysis.outside_data.match_report import COUNTS_PART, Joined, MatchReport
from gamelens.analysis.outside_data.outside_table import (
    KNOWN_UNTIL,
    MODIFIERS,
    OutsideColumn,
    OutsideTable,
    check_wholes,
    currency_doubts,
    doubts_about,
    money_roles,
    no_days,
    words_of,
)
from gamelens.analysis.outside_data.rate_formulas import ColumnQuotient, Weight
from gamelens.analysis.outside_data.rates import (
    DailyRates,
    Rate,
    check_rate,
    dollars_by_column,
    dollars_of,
    is_rates_file,
)
from gamelens.analysis.outside_data.read_table import read_table
from gamelens.analysis.outside_data.roles import MEASURED, header_meanings, is_no_money
from gamelens.analysis.outside_data.row_periods import period_of, period_texts, periods_within, step_of_days
from gamelens.analysis.outside_data.rows.debits_and_credits import ledger_sides
from gamelens.analysis.outside_data.rows.running_totals import running_total
from gamelens.analysis.outside_data.rows.tax_bases import other_basis
from gamelens.analysis.outside_data.time_buckets import buckets_of, uncovered_buckets
from gamelens.analysis.outside_data.words.header_words import folded_header
from gamelens.analysis.outside_data.words.money_units import NO_DECIMALS
from gamelens.analysis.outside_data.words.tax_words import bare_words
from gamelens.analysis.outside_data.words.topics import topic_pattern
from gamelens.analysis.outside_data.words.total_words import TOTAL_AT_ONE_END
from gamelens.analysis.over_days import FEWEST_DAYS, day_numbers, over_days
from gamelens.analysis.tidy_frames import (
    column_of,
    dimension_columns,
    display_values,
    ratio,
    with_ids,
    with_receipt,
    with_receipts_of,
)
from gamelens.analysis.tidy_frames.columns import Column, name_of
from gamelens.analysis.tidy_frames.frame_columns import series_names, sum_over
from gamelens.analysis.tidy_frames.frame_periods import visible_period
from gamelens.analysis.tidy_frames.frame_requirements import ANY, FrameRequirements, requires, result_of
from gamelens.analysis.tidy_frames.query_text import interval_text
from gamelens.analysis.tidy_frames.returned_columns import KEYS, between, named, returns
from gamelens.catalog import TITLES
from gamelens.errors import BadQuery, emit_warning
from gamelens.receipts import RECEIPT, Receipt
from gamelens.wire.currencies import USD_PER_UNIT
from gamelens.wire.intervals import Interval

By = str | Sequence[str] | None

_DAY: Final = pd.Timedelta(days=1)
_PAYBACK: Final = ("days_to_pay_back", "is_paid_back")
_OF_PAYBACK: Final = ("age", "spend", "money", "days_to_pay_back", "largest_day")
_NETWORK: Final = ', or who is paid in every row, network="..."'
_MOST_NAMES: Final = 3  # in a warning
_BESIDE_AMOUNTS: Final = frozenset({"charge"})
"""Concepts of amounts that stand beside others: taxes and fees."""
_MOST_STEPS: Final = 3  # columns that a refusal names
_WIDEST: Final = 1_000.0  # times the lower bound: a higher one says nothing of a value
_SMALL: Final = 100  # integers up to it are also ranks, values of conversions and kinds
_COSTS_OF_ONE: Final = frozenset({"cpi", "cpa", "cpc"})
_CODE: Final = re.compile(
    r"\b(?:beleg\w*|konto|gegenkonto|account|voucher|invoice|rechnung\w*|compte|cuenta|conta|ids?|codes?|index|type|kind|rank|position|version|status|level|key|number|nr|no|year)\b"
)
_FIELLER: Final = 1.06  # Fieller, Hartley and Pearson 1957: the variance of Fisher's z of a rank correlation


_RETURNS: Final = (
    named("spend", about="of the cohorts that reached the age"),
    named("money", about="of the cohorts that reached the age", na="where it is not known"),
    between(
        named("roas", about="1 is paid back", na="where the money is not known"),
        "95%, NA with fewer than 7 cohorts or without money",
        low="low",
        high="high",
    ),
)


@requires(frame=structs_replace(ANY, every=("day",)))
def in_dollars(
    frame: Any,
    amount: str | None = None,
    rate: Rate = None,
    *,
    to: str = "spend",
    currency: str | Mapping[str, str] | None = None,
    **reading: Any,
) -> DataFrame:
    """Return the frame with column *amount* in US dollars as *to* (float64, USD).

        outside_data.in_dollars("ad_spend.csv", rate="exchange_rates.csv")

    Each amount is multiplied by the rate of its row and currency. A row without a rate, such as one of a weekend, takes
    the rate of the last day before it in the same currency. In a column of rates, days before the first rate take it.

    Args:
        frame: the amounts, by timestamp; or an outside table or its path: all its columns are returned, with the
            first day of each row, if it has days, as timestamp.
        amount: the column of amounts. Of an outside table by default its only cost, or its only amount.
        rate: US dollars for one unit: a number, a column of rates, a table of rates by day or its path
            (`"eurofxref-hist.csv"`), or numbers and columns by currency: `{"EUR": "usd_per_eur"}`. US dollars need
            none; None is for amounts that are all in US dollars.
        to: the name of the new column.
        currency: the column with the currency of each amount (ISO 4217), by column if they differ. By default the one
            that `gl.join` added beside the amounts, if it is there. Without any, all amounts are in the currency of
            *rate*, or in US dollars.
        reading: how an outside table is read, as in `gl.read_table`.

    Raises:
        BadQuery: a column is missing, amounts have no rate, a rate is upside down, or one is given for several
            currencies.
    """
    if not isinstance(frame, DataFrame):
        return _with_dollars_of_rows(read_table(frame, currency=currency, **reading), amount, rate, to)
    if amount is None:
        raise BadQuery("amount", UNSET, "must name the column of amounts", [*map(str, frame.columns)])
    if isinstance(currency, Mapping):
        currency = currency.get(amount)
    if currency is None and amount + CURRENCY in frame:
        currency = amount + CURRENCY
    is_file = is_rates_file(rate, [*map(str, frame.columns)])
    rates = dict(rate) if isinstance(rate, Mapping) else {"": rate}
    columns = [] if is_file else [named for named in rates.values() if isinstance(named, str)]
    for number in () if is_file or rate is None else rates.values():
        if not isinstance(number, str):
            check_rate("", number)
    for name in (amount, "timestamp", *columns, *([currency] if currency else [])):
        if name not in frame:
            other = ": pass gl.read_table(frame) if it is a table from elsewhere" if name == "timestamp" else ""
            raise BadQuery("frame", name, f"is not a column of the frame{other}", [*map(str, frame.columns)])
    if not is_numeric_dtype(frame[amount]) and frame[amount].notna().any():
        rule = f"is not a column of numbers: it holds {str(frame[amount].dropna().iloc[0])!r}"
        raise BadQuery("amount", amount, rule)
    amounts = frame[amount].astype("float64")
    codes = Series("", index=frame.index, dtype="object") if currency is None else frame[currency].astype("object")
    codes = codes.where(codes.notna() | amounts.isna(), "")
    is_bare = ((codes == "") & amounts.notna() & (amounts != 0)).any()
    if rate is None and is_bare and (currency is not None or _joined(frame, amount)[1] not in ("", "USD")):
        raise _no_currency(amount)
    is_foreign = bool((codes.notna() & (codes != "USD") & amounts.notna()).any())
    named = None if rate is None or not is_foreign else DailyRates(rate) if is_file else rates
    factors = _factors(frame, codes.where(amounts.notna()), named)
    result = frame.assign(**{to: amounts * factors})
    if to + CURRENCY in result:
        result[to + CURRENCY] = Series("USD", index=frame.index).where(amounts.notna()).astype("category")
    return with_receipts_of(result, frame)


def _with_dollars_of_rows(table: OutsideTable, amount: str | None, rate: Rate, to: str) -> DataFrame:
    """Return all columns of a table with the amounts of its rows in US dollars, and warn of what counts in doubt."""
    table, column = cost_column(table, amount)
    check_wholes(table)
    dollars = dollars_of(table, column, rate)
    if table.periods.problem is not None:
        raise table.periods.problem
    starts = {} if table.period is None else {"timestamp": table.starts}
    for doubt in doubts_about(table, column):
        emit_warning(doubt)
    return table.unquestioned_frame.assign(**starts, **{to: dollars})


def _factors(frame: DataFrame, codes: Series[Any], rates: DailyRates | Mapping[str, Any] | None) -> Series[Any]:
    """Return US dollars for one unit of the currency of each row, null for a row without an amount.

    *rates* are numbers and columns by currency, "" for any.

    Raises:
        BadQuery: a currency has no rate, or one rate is given for several.
    """
    factors = Series(np.nan, index=frame.index).mask(codes == "USD", 1.0)
    foreign = [str(code) for code in codes[codes.notna() & (codes != "USD")].unique()]
    for code in foreign:
        rows = codes == code
        if isinstance(rates, DailyRates):
            factors = factors.mask(rows, rates.of_days(code, frame["timestamp"]))
            continue
        given_rate = (1.0 if code == "" else None) if rates is None else rates.get(code, rates.get(""))
        if given_rate is None:
            usual = f', such as {{"{code}": {float(USD_PER_UNIT[code]):.4g}}}' if code in USD_PER_UNIT else ""
            rule = f"has no rate: pass a number, a column or a file of rates for each currency{usual}"
            raise BadQuery("rate", code, rule, [*filter(None, rates or ())])
        if isinstance(given_rate, str):
            factors = factors.mask(rows, dollars_by_column(given_rate, _daily_rates(frame[rows], given_rate), code))
            continue
        factors = factors.mask(rows, check_rate(code, given_rate))
    one = rates.get("") if isinstance(rates, Mapping) else None
    is_shared = one is not None and (not isinstance(one, str) or (frame.groupby("timestamp")[one].nunique() <= 1).all())
    if len(foreign) > 1 and is_shared:
        rule = f"has one rate a day for {', '.join(foreign)}: join rates by currency, or name one for each currency"
        raise BadQuery("rate", one, rule)
    return factors


@requires(frame=FrameRequirements(metrics=("new_users",)))
@returns(
    KEYS,
    "installs paid_installs",
    named("spend", na="where there is none"),
    between("cpi", "95%, NA with fewer than 7 days or 10 installs", low="low", high="high"),
    "blended_cpi",
    has_own_receipt=True,
)
def cost_per_install(
    frame: DataFrame,
    by: By = None,
    *,
    spend: Any = "spend",
    amount: str | None = None,
    on: On | None = None,
    rate: Rate = None,
    **reading: Any,
) -> DataFrame:
    """Return the cost of an install for each value of *by*, largest spend first.

        installs = lens.query("new_users", by=["install_publisher", "country_code"], over="last 28 complete days")
        outside_data.cost_per_install(installs, by="country_code", spend="ad_spend.csv", rate="exchange_rates.csv")

    The frame holds new_users and, beside them, *spend* in US dollars, null for installs without ad spend. The spend is
    known; the interval is about the installs that a day's spend buys, from the differences between days.

    Args:
        frame: new_users, by the columns of *by*.
        by: the columns that make the groups, also "timestamp" for each day.
        spend: the column of *frame* with the spend; or an outside table with costs, or its path, which is joined to
            the installs by the days and names that both have.
        amount: the column of costs of an outside table. By default its only one.
        on: as in `gl.join`, for an outside table.
        rate: as in `in_dollars`, for an outside table.
        reading: how an outside table is read, as in `gl.read_table`. Its costs of days that *frame* does not cover are
            left out.

    Claims: "install cost" without *by*, "install cost by" with one.

    Raises:
        BadQuery: a column is missing; the spend is not in US dollars; or an outside table has no column of *by*, no
            days where the frame has them, or days that are a part of a week or month of the frame, or of its only
            bucket.
    """
    if not isinstance(spend, str) or (spend not in frame and Path(spend).suffix):
        frame, spend = _beside_costs(frame, by, spend, amount, on, rate, reading), "spend"
    count = column_of(frame, "new_users", "new_users")
    _check_columns("frame", frame, [spend], "join ad spend first, or pass the file as spend=")
    _check_columns("by", frame, with_ids(frame, by), "query new_users by it")
    _check_dollars(frame, spend)
    is_paid = frame[spend].notna()
    parts = frame[[name for name in dict.fromkeys(("timestamp", *with_ids(frame, by))) if name in frame]].assign(
        installs=frame[count], paid_installs=frame[count].where(is_paid, 0).astype("Int64"), spend=frame[spend]
    )
    parts = parts.assign(known=is_paid.astype("Int64"))
    result = sum_over(parts, by, ["installs", "paid_installs", "spend", "known"])
    result["spend"] = result["spend"].astype("float64").where(result["known"] > 0)
    result["cpi"] = ratio(result["spend"], result["paid_installs"])
    result[["low", "high"]] = _install_cost_bounds(result, parts[is_paid], with_ids(frame, by))
    result["blended_cpi"] = ratio(result["spend"], result["installs"])
    result = result.drop(columns="known").sort_values("spend", ascending=False, na_position="last", ignore_index=True)
    return with_receipts_of(result, frame)


@reads("outside_data.cost_per_install")
def _read_cost(result: DataFrame, by: str | list[str] | None) -> Iterator[Finding]:
    """Say what a bought install costs, or for which value of *by* it costs most."""
    paid = result[result["cpi"].notna()].sort_values("cpi", ascending=False, kind="stable")
    if by == "timestamp":
        paid = paid.assign(timestamp=paid["timestamp"].dt.strftime("%Y-%m-%d"))
    if isinstance(by, str):
        numbers: dict[str, Any] = {}
        if len(paid) > 2:  # the least is not named twice
            numbers = {"least": display_values(paid[by]).iloc[-1], "least_value": float(paid["cpi"].iloc[-1])}
        yield leader(paid, by, "cpi", kind="install cost by", unit="USD", numbers=numbers, judged="days")
    elif by is None:
        size, low, high, blended = result[["cpi", "low", "high", "blended_cpi"]].iloc[0].tolist()
        is_known = not math.isnan(size)
        yield Finding(
            kind="install cost",
            case="level" if is_known else "nothing",
            size=size,
            low=low,
            high=high,
            unit="USD",
            judged="days" if is_known else None,
            numbers={"blended": blended},
        )


@requires(
    since=("money", "spend"),
    spend=FrameRequirements(every=("day",), is_split_by=True),
    money=FrameRequirements(
        metrics=("revenue", "ilrd_revenue"), every=("day",), splits=("installed_on",), is_split_by=True
    ),
)
@returns(
    KEYS,
    "age",
    *_RETURNS,
    named(
        "largest_day",
        about="by which the install day that brought most exceeds its part of the money",
        na="unless that makes the interval rough",
    ),
    "cohorts",
    has_own_receipt=True,
)
def return_on_spend(
    spend: DataFrame,
    money: DataFrame,
    by: str | Sequence[str] = "install_publisher",
    *,
    ages: Sequence[int] = (0, 1, 3, 7, 14, 28),
    reaching: int = 0,
) -> DataFrame:
    """Return the revenue of paid installs at each age, beside their cost (ROAS by cohort).

        over, by = "last 28 complete days", "install_publisher"
        bought = gl.join(lens.query("new_users", by=by, over=over), "ad_spend.csv").frame
        money = lens.query(["revenue", "ilrd_revenue"], by=["installed_on", by], over=over)
        outside_data.return_on_spend(outside_data.in_dollars(bought, "Spend", "exchange_rates.csv"), money, ages=[0, 7])

    A cohort counts at an age only if it has reached it, so later ages rest on fewer cohorts and the curve may fall. Up
    to the age *reaching* it does not, because younger cohorts are left out at every age. The interval comes from the
    differences between cohorts, because no player is in the data; a few payers make it wide.

    Args:
        spend: timestamp (the install day), *by* and spend (USD).
        money: revenue and ilrd_revenue, or one of them, by installed_on and *by* at day granularity, from the first
            install day to the last day available.
        by: the columns that make the groups, such as `["install_publisher", "country_code"]`.
        ages: days since install.
        reaching: the age that every cohort counted must have reached.

    Values of *by* are those with spend.

    Raises:
        BadQuery: a column is missing, *money* has neither metric, or the spend is not in US dollars.
    """
    _check_groups(by, "the cohorts are of install days, which are added up")
    keys = with_ids(spend, by)
    _check_columns("spend", spend, ["timestamp", "spend"], "join ad spend to installs by day first")
    _check_dollars(spend, "spend")
    query = f"query revenue and ilrd_revenue by installed_on and {' and '.join(keys)}"
    _check_columns("money", money, ["timestamp", "installed_on", *keys], query)
    return with_receipts_of(_returns(spend, money, keys, ages, reaching), spend, money)


def _returns(
    spend: DataFrame,
    money: DataFrame,
    keys: list[str],
    ages: Sequence[int],
    reaching: int,
    periods: DataFrame | None = None,
) -> DataFrame:
    """Return the columns of `return_on_spend`.

    With *periods*, their start and end (exclusive), a cohort is all players installed in one of them.
    """
    cost = spend.assign(spend=spend["spend"].astype("float64"), **_as_keys(spend, keys))
    cost = cost.groupby(["timestamp", *keys], dropna=False)["spend"].sum(min_count=1).reset_index()  # credits included
    cost = cost[cost["spend"].notna() & (cost.groupby(keys, dropna=False)["spend"].transform("sum") > 0)]
    earned = _earned(money, keys)
    cost["last"] = cost["timestamp"]
    if periods is not None:
        earned["installed"] = period_of(earned["installed"], periods)
        earned = earned[earned["installed"].notna()]
        cost["last"] = cost["timestamp"].map(dict(zip(periods["start"], periods["end"], strict=True))) - _DAY
    last_day = money["timestamp"].max() if len(money) else pd.NaT
    rows = [_at_age(cost, earned, keys, age, last_day - pd.Timedelta(days=max(age, reaching))) for age in sorted(ages)]
    result = pd.concat([row for row in rows if len(row)] or rows[:1], ignore_index=True)
    result["roas"] = ratio(result["money"], result["spend"].where(result["spend"] > 0))
    result["low"], result["high"] = result["roas"] * result["low"], result["roas"] * result["high"]
    columns = [*keys, "age", "spend", "money", "roas", "low", "high", "largest_day", "cohorts"]
    types = dict.fromkeys(keys, "category") | {"age": "Int64", "cohorts": "Int64", "spend": "float64"}
    return result[columns].astype({**types, "money": "float64"}).sort_values([*keys, "age"], ignore_index=True)


@requires(roas=result_of("outside_data.return_on_spend(spend, money)", "age", "spend", "money", "roas"))
@returns(
    KEYS,
    "age",
    *_RETURNS,
    named("largest_day", na="unless that makes the interval rough"),
    Column("days_to_pay_back", "count", about="the first age with a roas of 1", na="where not yet"),
    named("is_paid_back", about="whether the interval lies above or below 1", na="where it holds 1 or is unknown"),
)
def payback_ages(roas: DataFrame, by: str | Sequence[str] = "install_publisher") -> DataFrame:
    """Return the last age of each value of *by*, and the first that earned back its spend.

        split = ["installed_on", "install_publisher"]
        money = lens.query(["revenue", "ilrd_revenue"], by=split, over="last 28 complete days")
        back, report = outside_data.roas("ad_spend.csv", money, rate="exchange_rates.csv")
        outside_data.payback_ages(back)

    Best first. Claims: "payback", one a row.
    """
    keys = with_ids(roas, by)
    last = roas.sort_values("age").groupby(keys, observed=True, dropna=False).tail(1)
    first = roas[roas["roas"] >= 1].groupby(keys, observed=True, dropna=False)["age"].min()
    paid_back = first.rename("days_to_pay_back").astype("Int64").reset_index().astype(dict.fromkeys(keys, "object"))
    result = (
        last.drop(columns=["cohorts", *_PAYBACK], errors="ignore")
        .astype(dict.fromkeys(keys, "object"))
        .merge(paid_back, on=keys, how="left")
    )
    is_clear = (result["low"] >= 1) | (result["high"] < 1)
    result["is_paid_back"] = (result["low"] >= 1).astype("boolean").where(is_clear)
    return result.sort_values("roas", ascending=False, ignore_index=True)


@reads("outside_data.payback_ages", row_by_row=True)
def _read_payback(paid: DataFrame, by: str | list[str]) -> Iterator[Finding]:
    """Say how much of its cost each value of *by* has brought back, and whether it has paid for itself."""
    names = [by] if isinstance(by, str) else by
    for name, row in zip(series_names(paid, names), paid.to_dict("records"), strict=True):
        direction = direction_of(row["low"], row["high"], neutral=1.0)
        yield Finding(
            kind="payback",
            case=direction.replace(" ", "_"),
            subject={key: str(row[key]) for key in names if not pd.isna(row[key])},
            direction=direction,
            size=row["roas"],
            low=row["low"],
            high=row["high"],
            unit="share",
            neutral=1.0,
            judged="days",
            numbers={"name": name, **{key: row[key] for key in _OF_PAYBACK}},
        )


@requires(
    values=result_of("retention.ltv(ret, money, by=...)", "age", "ltv", "is_projected"),
    cost=result_of("outside_data.cost_per_install(costs, by=...)", "cpi", "blended_cpi"),
    installs=FrameRequirements(metrics=("new_users",)),
)
@returns(
    KEYS,
    "spend cpi",
    named("age", about="the horizon"),
    between(named("ltv", about="by that age")),
    between(
        named("ltv_to_cpi", about="1 is paid back"),
        "95%, NA where it is wider than a factor of a thousand",
        low="low",
        high="high",
    ),
    Column(
        "days_to_pay_back",
        "count",
        about="the first age at which ltv reaches cpi",
        na="unless the interval lies above 1",
    ),
    named("is_projected", about="that age is beyond the measured ones", na="unless the interval lies above 1"),
    Column(
        "pays_back", "flag", about="whether the interval lies above or below 1", na="where it holds 1 or is unknown"
    ),
    has_own_receipt=True,
)
def ltv_against_cpi(
    values: DataFrame,
    cost: Any,
    by: str = "install_publisher",
    *,
    installs: DataFrame | None = None,
    amount: str | None = None,
    on: On | None = None,
    rate: Rate = None,
    **reading: Any,
) -> DataFrame:
    """Return what a new player brings against what an install costs, for each value of *by* with a cost.

        over, by = "last 28 complete days", "install_publisher"
        cohorts, installs = lens.retention([1, 3, 7, 14], by=by, over=over), lens.query("new_users", by=by, over=over)
        money = lens.query(["revenue", "user_unique"], by=["installed_on", by], over=over)
        outside_data.ltv_against_cpi(retention.ltv(cohorts, money, by=by), "ad_spend.csv", installs=installs, rate=1.16)

    The interval takes the value of a player and the cost of an install as independent of each other.

    Args:
        values: of `retention.ltv` by *by*, of the bought players. Its last age is the horizon.
        cost: of `cost_per_install` by *by*; or an outside table with costs, or its path, which it is computed from.
        by: the column that makes the groups.
        installs: new_users by *by*, for an outside table.
        amount: as in `cost_per_install`, for an outside table.
        on: as in `gl.join`, for an outside table.
        rate: as in `in_dollars`, for an outside table.
        reading: how an outside table is read, as in `gl.read_table`.

    Largest spend first. Claims: "payback ahead", one a row.

    Raises:
        BadQuery: a column is missing, such as *by*, or the installs that an outside table needs.
    """
    _check_groups(by, "the value of a player is of all install days")
    _check_columns("values", values, [by], "split retention.ltv by it")
    if not isinstance(cost, DataFrame):
        if installs is None:
            rule = f"are needed for an outside table: query new_users by {by}"
            raise BadQuery("installs", UNSET, rule)
        cost = cost_per_install(installs, by, spend=cost, amount=amount, on=on, rate=rate, **reading)
    _check_columns("cost", cost, [by], "split cost_per_install by it")
    priced = cost.loc[cost["cpi"] > 0, [by, "spend", "cpi", "low", "high"]].astype({by: "object"})
    ages = values.astype({by: "object"}).merge(
        priced.rename(columns={"low": "cpi_low", "high": "cpi_high"}), on=by, how="inner"
    )
    horizon = ages["age"].max()
    result = ages[ages["age"] == horizon].rename(columns={"low": "ltv_low", "high": "ltv_high"})
    result["ltv_to_cpi"] = ratio(result["ltv"], result["cpi"])
    for side, worth, price in (("low", "ltv_low", "cpi_high"), ("high", "ltv_high", "cpi_low")):
        known = result[worth].where(result[worth] > 0)
        half = np.hypot(np.log(known / result["ltv"]), np.log(result[price] / result["cpi"]))
        result[side] = result["ltv_to_cpi"] * np.exp(half if side == "high" else -half)
    result[["low", "high"]] = result[["low", "high"]].where(result["high"] < _WIDEST * result["low"])
    first = ages[ages["ltv"] >= ages["cpi"]].sort_values("age").drop_duplicates(by)
    days = first[[by, "age", "is_projected"]].rename(columns={"age": "days_to_pay_back"})
    result = result.drop(columns="is_projected").merge(days, on=by, how="left")
    result["pays_back"] = (result["low"] >= 1).astype("boolean").where((result["low"] >= 1) | (result["high"] < 1))
    unsure = ~result["pays_back"].fillna(False)
    result[days.columns[1:]] = result[days.columns[1:]].mask(unsure)
    columns = [by, "spend", "cpi", "age", "ltv", "ltv_low", "ltv_high", "ltv_to_cpi", "low", "high"]
    result = result[[*columns, "days_to_pay_back", "is_projected", "pays_back"]]
    return with_receipts_of(result.sort_values("spend", ascending=False, ignore_index=True), values, cost)


@reads("outside_data.ltv_against_cpi", row_by_row=True)
def _read_payback_ahead(worth: DataFrame, by: str) -> Iterator[Finding]:
    """Say whether a player of each value of *by* brings more than an install costs by the horizon."""
    for name, row in zip(display_values(worth[by]), worth.to_dict("records"), strict=True):
        direction = direction_of(row["low"], row["high"], neutral=1.0)
        yield Finding(
            kind="payback ahead",
            case=direction.replace(" ", "_"),
            subject={by: name},
            direction=direction,
            size=row["ltv_to_cpi"],
            low=row["low"],
            high=row["high"],
            unit="share",
            judged="days" if not math.isnan(row["low"]) else None,
            numbers={
                "name": name,
                "by": by,
                "days": row["days_to_pay_back"],
                **{key: row[key] for key in ("age", "cpi", "ltv")},
            },
        )


@requires(
    money=FrameRequirements(
        metrics=("revenue", "ilrd_revenue"), every=("day",), splits=("installed_on",), columns=("timestamp",)
    )
)
def roas(
    cost: Any,
    money: DataFrame,
    *,
    on: Mapping[str, str] | None = None,
    amount: str | None = None,
    rate: Rate = None,
    currency: str | Mapping[str, str] | None = None,
    fold: bool = True,
    ages: Sequence[int] = (0, 1, 3, 7, 14, 28),
    reaching: int = 0,
    **reading: Any,
) -> Joined:
    """Return the return on ad spend by group and age from a file of costs, and the report of its join.

        split = ["installed_on", "install_publisher"]
        money = lens.query(["revenue", "ilrd_revenue"], by=split, over="last 28 complete days")
        outside_data.roas("google_ads.csv", money, rate="exchange_rates.csv").frame

    Costs of days that *money* does not cover are left out, which the report counts. Rows of one key are added up. Where
    a row of the file stands for several days, a cohort is all players of these days, and it counts at an age when all
    have reached it. A name that *money* does not have keeps its spend, with an unknown return: the report says how to
    name it. If none of the names is there, the file is refused.

    Args:
        cost: the file or table of costs, as `gl.join` takes it.
        money: as in `return_on_spend`: revenue and ilrd_revenue by installed_on and the columns that make the groups.
        on: the column of *cost* for each column that makes the groups, `{"install_publisher": "Campaign name"}`; for
            `timestamp`, the install day, too, if it is not clear. By default what the roles of the file say.
        amount: the column of costs. By default the only one.
        rate: US dollars for one unit, or by currency, `{"EUR": 1.08}`, or a table of rates by day or its path. US
            dollars need none.
        currency: the currency of the amounts, or the column that has it, if the file does not tell; by column if
            they differ.
        fold: whether names match in any spelling.
        ages: days since install.
        reaching: the age that every cohort counted must have reached.
        reading: how the file is read, as in `gl.read_table`.

    Columns of the frame: as in `return_on_spend`, then days_to_pay_back and is_paid_back (see `payback_ages`).

    Raises:
        BadQuery: a column is missing, an amount has no known currency or no rate, or *money* covers no day with costs.
    """
    table, column = _spent(read_table(cost, currency=currency, **reading), amount)
    if table.period is None:
        raise no_days(table, "a return on spend")
    _check_columns("money", money, ["installed_on"], "query revenue and ilrd_revenue by it and installed_on")
    receipt = Receipt.of(money.attrs)
    days = receipt.interval or visible_period(money, "day")
    cohorts = money.assign(timestamp=_install_days(money))
    cohorts = with_receipts_of(cohorts[_is_within(cohorts["timestamp"], days)], money)
    splits = [name for name in dimension_columns(cohorts) if name != "installed_on"]
    candidates = with_receipts_of(cohorts[["timestamp", *splits]], money)
    groups_on = {name: right for name, right in (on or {}).items() if name != "timestamp"}
    pairs = pairs_of(groups_on or None, candidates, table)
    pairs |= {"timestamp": on["timestamp"]} if on and "timestamp" in on else {}
    keys = [name for name in pairs if name != "timestamp"]
    if not keys:
        groups = "install_publisher" if "install_publisher" in money else next(iter(splits), "install_publisher")
        raise BadQuery(
            "on",
            UNSET,
            f'needs a group that both have: on={{"{groups}": "..."}}{_NETWORK if groups == PUBLISHER else ""}',
            [column.name for column in table.columns],
        )
    used = Series(True, index=column.values.index)
    if days is not None:
        used = (table.starts < days.end) & (table.ends >= days.start)
    table, dollars = _with_dollars(table, column, rate, used)
    is_converted = bool((dollars.notna() | column.values.isna()).all())
    cohorts = candidates[["timestamp", *keys]].drop_duplicates()
    periods = periods_within(table, days, frame="money")
    if periods is not None:
        cohorts["timestamp"] = period_of(cohorts["timestamp"], periods)
        cohorts = cohorts.dropna(subset="timestamp").drop_duplicates()
        cohorts.attrs = {RECEIPT: structs_replace(receipt, periods=period_texts(periods)).to_json()}
    else:
        cohorts = with_receipts_of(cohorts, money)
    frame, report = join(cohorts, table, on=pairs, how="outer", columns=[column.name], fold=fold)
    _check_names(report, table, cohorts)
    if PUBLISHER in keys:  # costs without a publisher do not belong to organic players
        is_nobody = frame[PUBLISHER].isna() & (np.arange(len(frame)) >= len(cohorts))
        frame[PUBLISHER] = frame[PUBLISHER].astype("object").mask(is_nobody, NOBODY)
    is_inside = _is_within(frame["timestamp"], days)
    spend = frame[is_inside].assign(spend=frame.loc[is_inside, column.name])
    outside = frame.loc[~is_inside, column.name].dropna()
    if len(outside) and spend["spend"].isna().all():
        raise _other_days("cost", report.source, frame.loc[outside.index, "timestamp"], "money")
    result = _returns(spend, money, keys, ages, reaching, periods)
    result = _without_unnamed(result, keys, report)
    paid = payback_ages(with_receipts_of(result, money), keys)[[*keys, *_PAYBACK]]
    objects = dict.fromkeys(keys, "object")
    both = (
        result.astype(objects).merge(paid.astype(objects), on=keys, how="left").astype(dict.fromkeys(keys, "category"))
    )
    day = pairs.get("timestamp") or "days"
    missing = report.only_right[_is_within(report.only_right[day], days)]
    notes = [*report.warnings]
    if left_out := len(report.only_right) - len(missing):
        words = f"{counted(left_out, 'row')} of {report.source} on days that money does not cover left out"
        notes.append(f"{words}, with {outside.sum():,.2f} US dollars of {column.name}" if is_converted else words)
    told = dataclasses.replace(report, only_right=missing, warnings=tuple(notes))
    return Joined(with_receipts_of(both, spend, money), told)


def _spent(table: OutsideTable, amount: str | None) -> tuple[OutsideTable, OutsideColumn]:
    """Return the table and its column of costs, as `cost_column`, for what was spent on players.

    Raises:
        BadQuery: there is none, or several, or *amount* is income.
    """
    table, column = cost_column(table, amount, is_spent=True)
    if column.concept == "income":
        rule = f'is income ({column.evidence[0]}), not what was spent: roles={{"{column.name}": "cost"}} if it was'
        costs = [cost.name for cost in table.of_role("amount") if cost.concept != "income"]
        raise BadQuery("amount", column.name, rule, costs)
    spent = float(column.values.astype("float64").sum()) if column.problem is None else 0.0
    if spent < 0:
        rule = f"adds up to {spent:,.2f}, and what was spent is above 0: "
        rule += f'roles={{"{column.name}": {{"role": "cost", "scale": -1}}}} turns the sign of all rows'
        raise BadQuery("amount", column.name, rule)
    return table, column


def cost_column(
    table: OutsideTable, amount: str | None, *, is_spent: bool = False
) -> tuple[OutsideTable, OutsideColumn]:
    """Return the table and its column of costs: *amount*, or the only one. Income is none if it must be *is_spent*.

    Raises:
        BadQuery: there is none, or several.
    """
    if amount is not None:
        return _named_amount(table, amount)
    amounts = table.of_role("amount")
    found = [cost for cost in amounts if cost.concept == "cost"]
    are_sales = sold(table)
    if not are_sales and not any(income.concept in ("income", "billed") for income in amounts):
        found = found or [sum_ for sum_ in amounts if sum_.concept in ("", "money")]  # Amount, or a column of $5
    if len(found) == 1:
        if (other := other_basis(found[0], table.columns)) is not None:
            names = [found[0].name, other.name]
            rule = f'is needed: {table.source} has costs with and without tax: say which with amount="{names[0]}" or '
            raise BadQuery("amount", UNSET, f'{rule}amount="{names[1]}"', names)
        return table, found[0]
    totals = [total for total in table.of_role("cumulative") if total.concept in ("cost", "cumulative")]
    if totals and not found:
        raise running_total(totals[0])
    prices = [price for price in table.of_role("price") if isinstance(price.weight, Weight) and not found]
    are_ranks = is_of_ranks(table)
    may_be = [
        column
        for column in found or table.columns
        if _may_be_money(column)
        and not (are_ranks and column.role == "number")
        and not _is_bare_number(table, column)
        and not (amounts and column.role == "price")
    ]
    may_be.sort(key=lambda column: column.role == "number" and column.currencies is None)
    names = [column.name for column in may_be if column not in prices]
    are_costs = [column.name for column in may_be if column.name in names and column.concept not in _BESIDE_AMOUNTS]
    names = are_costs or names
    if prices and not names:
        raise _price_of_one(table, prices[0])
    if not amounts and (product := _price_by_rate(table)) is not None:
        raise product
    others, text = "; ".join(f"{column.name}: {words_of(column)}" for column in amounts), "..."
    if not amounts:
        first = {column: next(header_meanings(column.name), None) for column in table.of_role("text")}
        called = [column for column, meant in first.items() if meant and meant.concept == "cost"]
        others = "; ".join(f"{column.name} holds {column.values.dropna().iloc[0]!r}" for column in called[:2])
        text = called[0].name if called else text
    earned = [column.name for column in may_be if is_spent and column.concept == "income" and column.name in names]
    if earned and (names := [name for name in names if name not in earned]) == []:
        rule = f"has no column of costs ({others}): pass a table with costs, or roles="
        raise BadQuery("amount", UNSET, f'is needed: {table.source} {rule}{{"{earned[0]}": "cost"}} if that was spent')
    step = " or ".join(f'amount="{name}"' for name in names[:_MOST_STEPS]) or f'roles={{"{text}": "cost"}}'
    is_none = step == 'roles={"...": "cost"}'
    begins = "none may be money either: pass a table with costs, or name one of its columns" if is_none else "name it"
    rule = f"has no column of costs{f' ({others})' if others else ''}: {begins} with {step}"
    if are_sales:
        rule = f"looks like sales by {' and '.join(are_sales[:2])}, with no column of costs: "
        rule += f"if an amount was spent, name it with {step}"
    if found:
        kind = "costs" if found[0].concept == "cost" else "amounts"
        rule = f"has several {kind}: say which with {step}"
    raise BadQuery("amount", UNSET, f"is needed: {table.source} {rule}", names)


def sold(table: OutsideTable) -> list[str]:
    """Return the columns that only a list of sales has, [] if it is none: buyers and orders, or two of its charges."""
    headers = {column.name: folded_header(column.name) for column in table.columns}
    sure, likely = map(topic_pattern, ("sale", "sale_or_bill"))
    found = [name for name, header in headers.items() if sure.search(header)]
    others = [name for name, header in headers.items() if name not in found and likely.search(header)]
    return [*found, *others] if found and len(found) + len(others) > 1 else []


def _named_amount(table: OutsideTable, amount: str) -> tuple[OutsideTable, OutsideColumn]:
    """Return the table and the column *amount*, which is an amount by its role or because it is asked for as one.

    Raises:
        BadQuery: it is something else.
    """
    named = table.column(amount, "amount")
    if named.role == "cumulative":
        raise running_total(named)
    if isinstance(named.weight, ColumnQuotient):
        rule = f"is {named.weight}, no amount of its own"
        raise BadQuery("amount", amount, rule, [column.name for column in table.of_role("amount")])
    if named.role == "price" and isinstance(named.weight, Weight):
        raise _price_of_one(table, named)
    if named.role == "exchange_rate":
        raise BadQuery("amount", amount, "is an exchange rate, no amount: pass the table as rate=")
    is_measured = named.role == "count" and named.concept == MEASURED and named.evidence[0].where != "the argument"
    if is_measured or named.role in ("rate", "rank", "distinct", "stock"):
        rule = f"is a {named.role}, no amount: {money_roles(named, table.columns).removesuffix(', ')}"
        raise BadQuery("amount", amount, rule, [column.name for column in table.of_role("amount")])
    if named.problem is not None:
        raise named.problem
    amounts = [column.name for column in table.of_role("amount")]
    if named.role == "count" or _is_bare_number(table, named) or (named.role == "price" and amounts):
        said = "number without a currency, which others have" if named.role == "number" else named.role
        rule = f"is a {said}, no amount: {money_roles(named, table.columns).removesuffix(', ')}"
        raise BadQuery("amount", amount, rule, amounts)
    if named.role != "amount":
        table = read_table(table, roles={amount: "cost"})
    return table, table.column(amount)


def _may_be_money(column: OutsideColumn) -> bool:
    """Return whether a column is money, or has numbers that may be: no codes, and no small integers such as ranks."""
    if column.role != "number":
        return column.role in ("amount", "price")
    known = column.values.dropna().to_numpy(dtype="float64")
    are_small = bool((known == np.floor(known)).all() and (np.abs(known) <= _SMALL).all())
    is_told = not are_small or column.name == "value"  # the cells of a table whose headers are days
    return is_told and _CODE.search(folded_header(column.name)) is None and not is_no_money(column.name)


def _is_bare_number(table: OutsideTable, column: OutsideColumn) -> bool:
    """Return whether nothing says what a column of whole numbers counts, beside amounts in a currency with cents.

    The net, gross or total amount, one with a currency and a side of a ledger are known by their headers.
    """
    if column.role != "number" or column.currencies is not None or currencies_in(column.name, is_header=True):
        return False
    amounts = [other.currencies for other in table.of_role("amount", "price") if other.currencies is not None]
    has_cents = bool({code for codes in amounts for code in codes.dropna().unique()} - NO_DECIMALS)
    known = column.values.dropna().to_numpy(dtype="float64")
    if not has_cents or bool((known != np.floor(known)).any()):
        return False
    sides = {name for pair in ledger_sides(table.columns) for name in pair}
    is_told = {*folded_header(column.name).split()} & bare_words() or TOTAL_AT_ONE_END.fullmatch(column.name)
    return column.name not in sides and not is_told


def _price_by_rate(table: OutsideTable) -> BadQuery | None:
    """Return the exception for a bill of units and what one of them costs, such as a CPI, which has no amount."""
    rates = [column for column in table.of_role("rate") if column.concept in _COSTS_OF_ONE]
    rates = [column for column in rates if not isinstance(column.weight, ColumnQuotient)]
    counts = [column.name for column in table.of_role("count", "number")]
    if len(rates) != 1 or not counts:
        return None
    rate = rates[0].name
    units = counts[0] if len(counts) == 1 else "..."
    codes = [evidence.quote for evidence in rates[0].evidence if evidence.where == "the column of codes"]
    rule = f"has no column of costs; {rate} is what one costs: frame = gl.read_table(...).frame; "
    rule += f'frame["cost"] = frame["{rate}"] * frame["{units}"], and pass gl.read_table(frame)'
    rule += f', currency="{codes[0]}"' if codes else ""
    return BadQuery("amount", UNSET, f"is needed: {table.source} {rule}", counts)


def _price_of_one(table: OutsideTable, price: OutsideColumn) -> BadQuery:
    """Return the exception for the price of one unit where amounts of rows are needed."""
    units = price.weight.column if isinstance(price.weight, Weight) else ""
    codes = [evidence.quote for evidence in price.evidence if evidence.where == "the column of codes"]
    currency = f', currency="{codes[0]}"' if codes else ""
    rule = f"is the price of one of {units} in {table.source}, no amount: multiply it, "
    rule += "frame = gl.read_table(...).frame; "
    rule += f'frame["product"] = frame["{price.name}"] * frame["{units}"], and pass gl.read_table(frame), '
    rule += f'amount="product"{currency}'
    return BadQuery("amount", price.name, rule, [column.name for column in table.of_role("amount")])


def _beside_costs(
    frame: DataFrame, by: By, cost: Any, amount: str | None, on: On | None, rate: Rate, reading: Mapping[str, Any]
) -> DataFrame:
    """Return the new players of *frame* with the costs of an outside table beside them as spend, in US dollars.

    Costs of other days are left out. Players are added up over all that the table does not tell apart, so that each of
    its costs stands in one row.

    Raises:
        BadQuery: all costs are of other days or none, no name of theirs is in the frame, or *by* does not split them.
    """
    table, column = _spent(read_table(cost, **reading), amount)
    has_one_bucket = "timestamp" not in frame or frame["timestamp"].nunique() <= 1
    check_month(table, column, Receipt.of(frame.attrs).interval if has_one_bucket else None)
    if column.concept in MODIFIERS:
        emit_warning(f"{column.name} is a {column.concept} amount by its header, and may not be what was spent")
    pairs = pairs_of(on, frame, table)
    _check_split(frame, by, table, pairs)
    told_apart = [name for name in dict.fromkeys(("timestamp", *pairs)) if name in frame]
    frame = with_receipts_of(sum_over(frame, told_apart, [column_of(frame, "new_users", "new_users")]), frame)
    days = Receipt.of(frame.attrs).interval or visible_period(frame, "day") if "timestamp" in frame else None
    used = None if days is None else (table.starts < days.end) & (table.ends >= days.start) | table.starts.isna()
    table, dollars = _with_dollars(table, column, rate, used)
    joined, report = join(frame, table, on=pairs, how="outer", columns=[column.name])
    _check_names(report, table, frame)
    for note in report.warnings:  # which has the notes of the table
        if KNOWN_UNTIL in note or note.startswith(COUNTS_PART):
            emit_warning(note)
    brought = report.renamed.get(column.name, column.name)
    is_new = Series(np.arange(len(joined)) >= len(frame), index=joined.index)
    dayless: list[str] = []
    if days is not None and "timestamp" not in pairs:  # costs of the only bucket of the frame, also of other names
        joined.loc[is_new, "timestamp"] = frame["timestamp"].min()
    elif days is not None:
        is_outside = is_new & ~_is_within(joined["timestamp"], days) & ~joined["timestamp"].isin(frame["timestamp"])
        has_none = (table.starts.isna() & dollars.notna()).to_numpy()
        if has_none.any() and pairs["timestamp"] == table.periods.column:
            are_left_out = bool((is_new & joined["timestamp"].isna()).any())  # or in the only bucket of the frame
            said = f"{dollars[has_none].sum():,.2f} of {dollars.sum():,.2f} USD "
            said += "are left out" if are_left_out else "count"
            dayless = [f"{said}: {table.grid.rows_text(has_none)} without a day"]
            emit_warning(dayless[0])
        if is_outside.any() and joined.loc[~is_outside, brought].isna().all():
            raise _other_days("spend", report.source, joined.loc[is_outside, "timestamp"], "the frame")
        joined = with_receipts_of(joined[~is_outside], joined)
    result = joined.drop(columns=["spend"] if brought != "spend" and "spend" in joined else [])
    result = result.rename(columns={brought: "spend"}).drop(columns=brought + CURRENCY)
    receipt = Receipt.of(joined.attrs)
    warnings = [*report.warnings, *dayless, *_warn_of_unplaced_costs(result, by, report)]
    return with_receipt(result, structs_replace(receipt, warnings=(*receipt.warnings, *warnings)))


def _warn_of_unplaced_costs(frame: DataFrame, by: By, report: MatchReport) -> list[str]:
    """Emit and return a warning where costs are of names that the frame does not have, and are added to other costs.

    The cost counts and the installs do not. Rows of a name in *by* stand by themselves, without installs.
    """
    groups = [by] if isinstance(by, str) else by or ()
    is_unknown = {
        column: frame[column].astype("object").isin(names).to_numpy() for column, names in report.unknown.items()
    }
    stands_alone = np.zeros(len(frame), dtype=bool)
    for column in groups:
        stands_alone |= is_unknown.pop(column, stands_alone)
    warnings, counted_rows = [], stands_alone
    for column, is_of_column in is_unknown.items():
        is_unplaced = is_of_column & ~counted_rows
        counted_rows = counted_rows | is_of_column
        if not (cost := frame["spend"][is_unplaced].sum()):
            continue
        names = frame[column][is_unplaced].astype("str").unique()
        listed = ", ".join(map(repr, names[:_MOST_NAMES])) + (", ..." if len(names) > _MOST_NAMES else "")
        warnings.append(
            f"{cost:,.2f} of {frame['spend'].sum():,.2f} USD in {report.source} are of {listed}, which {column} does "
            "not have: the cost counts, and its installs do not. Say with names={...} what they mean"
        )
        emit_warning(warnings[-1])
    return warnings


def _check_split(frame: DataFrame, by: By, table: OutsideTable, pairs: Mapping[str, str]) -> None:
    """Raise `BadQuery` where the costs of *table* cannot be told apart as the rows of *frame* and *by* are."""
    titles = TITLES | {title: identity for identity, title in TITLES.items()}
    for name in [by] if isinstance(by, str) else by or ():
        if name in frame and not {name, titles.get(name)} & {*pairs, "timestamp"}:
            rule = f"is not told apart in {table.source}: leave it out of by, or name its column, on={{{name!r}: ...}}"
            rule += _NETWORK if name == PUBLISHER else ""
            raise BadQuery("by", name, rule, [column.name for column in table.columns])
    if "timestamp" in frame and frame["timestamp"].nunique() > 1 and "timestamp" not in pairs:
        if table.periods.problem is not None:
            raise table.periods.problem
        rule = "has no column of days, so that a cost would stand beside each of them: "
        rule += f"{step}, " if (step := step_of_days(table.grid)) else ""
        rule += 'name it with roles={"...": "day"}, or query new_users with every="all" over the days of the file'
        raise BadQuery("spend", table.source, rule, [column.name for column in table.columns])
    receipt, days = Receipt.of(frame.attrs), table.interval
    if "timestamp" in pairs and pairs["timestamp"] == table.periods.column:  # whole rows, which the queries below keep
        buckets_of(frame, Series(frame["timestamp"]), table, table.periods, table.periods.column)
    whole = receipt.interval if receipt.asked.every == "all" else None
    if days is not None and whole is not None and days & whole != whole and (days & whole).length:
        rule = f"has costs of {interval_text(days)}, and new_users are of {interval_text(whole)}: "
        raise BadQuery("spend", table.source, rule + f'query new_users over="{interval_text(days & whole)}"')
    if "timestamp" not in pairs or days is None or receipt.interval is None:
        return
    for span in uncovered_buckets(frame, frame["timestamp"], table.periods):
        every = receipt.asked.every
        rule = f"has costs of {interval_text(days)}, and new_users are of {interval_text(span)} in one {every}: "
        step = f'query new_users over="{interval_text(days & receipt.interval)}", every="{every}"'
        raise BadQuery("spend", table.source, rule + step)


def _other_days(field: str, source: str, days: Series[Any], frame: str) -> BadQuery:
    first, last = (f"{day:%Y-%m-%d}" for day in days.agg(["min", "max"]))
    rule = f"has costs from {first} to {last} only, days that {frame} does not cover: query {frame} over them"
    return BadQuery(field, source, rule)


def _with_dollars(
    table: OutsideTable, column: OutsideColumn, rate: Rate, used: Series[Any] | None
) -> tuple[OutsideTable, Series[Any]]:
    """Return the table with a column in US dollars, and these."""
    for doubt in currency_doubts(table, column):
        emit_warning(doubt)
    values = dollars_of(table, column, rate, used=used)
    currencies = Series("USD", index=values.index, dtype="str").where(values.notna())
    dollars = replaced(column, values=values, currencies=currencies, money_problem=None)
    return replaced(table, columns=tuple(dollars if other is column else other for other in table.columns)), values


def _check_names(report: MatchReport, table: OutsideTable, frame: DataFrame) -> None:
    """Raise `BadQuery` if no name of the outside table is one of the frame."""
    if len(report.only_left) < report.rows:
        return
    for name, texts in report.unknown.items():
        known, right = frame[name].dropna().unique(), report.on[name]
        if not {*map(str, known)} & {*map(str, report.only_right[right].dropna().unique())}:
            raise unknown_names(table, right, name, texts, known)


def _without_unnamed(result: DataFrame, keys: Sequence[str], report: MatchReport) -> DataFrame:
    """Return the returns on spend, unknown where the frame does not have the name or nobody knows the publisher."""
    mask = Series(False, index=result.index)
    for name in keys:
        mask |= result[name].astype("object").isin([*report.unknown.get(name, ()), NOBODY])
    numbers = ["money", "roas", "low", "high"]
    result[numbers] = result[numbers].mask(mask)
    nobody = [name for name in keys if NOBODY in result[name].cat.categories]
    return result.assign(**{name: result[name].cat.remove_categories([NOBODY]) for name in nobody})


@requires(frame=structs_replace(ANY, every=("day",)))
@returns(
    KEYS,
    named("days", about="with both numbers"),
    between(
        Column("correlation", "number", about="-1 to 1", na="with fewer than 7 days"),
        "a rough 95%, from the differences between days, `over_days`",
        low="low",
        high="high",
    ),
)
def rank_correlation(frame: DataFrame, value: str, rank: str, by: str | None = None) -> DataFrame:
    """Return how closely a store rank follows *value*, day by day (Spearman's correlation).

        installs = lens.query("new_users", by=["game", "country_code"], over="last 28 complete days")
        shop = {"timestamp": "Date", "game": "App", "country_code": "Country"}
        ranked = gl.join(installs, "store_rank.csv", on=shop, how="inner", missing=["200+"]).frame
        outside_data.rank_correlation(ranked, "new_users", "Rank", by="game")

    It is -1 if a higher value always means a better rank.

    Claims: "store rank", one a row.
    """
    _check_groups(by, "each day would be a group of its own")
    _check_columns("frame", frame, [value, rank], "join store ranks to installs first")
    known = frame[frame[value].notna() & frame[rank].notna()]
    groups = known.groupby(with_ids(known, by), observed=True) if by else [((), known)]
    rows = [_correlated(rows, value, rank) | dict(zip(with_ids(known, by), keys, strict=True)) for keys, rows in groups]
    return DataFrame(rows, columns=[*with_ids(known, by), "days", "correlation", "low", "high"])


@reads("outside_data.rank_correlation", row_by_row=True)
def _read_rank(follows: DataFrame, value: str, by: str | None) -> Iterator[Finding]:
    """Say of each value of *by* whether its store rank follows the number."""
    names = display_values(follows[by]) if by else [""] * len(follows)
    for name, row in zip(names, follows.to_dict("records"), strict=True):
        direction = direction_of(row["low"], row["high"])
        yield Finding(
            kind="store rank",
            case=direction.replace(" ", "_"),
            subject={by: name} if by else {},
            direction=direction,
            size=row["correlation"],
            low=row["low"],
            high=row["high"],
            unit="number",
            judged="days" if direction != "unknown" else None,
            numbers={"of": name_of(value), "name": name, "days": row["days"]},
        )


def _check_columns(field: str, frame: DataFrame, names: Sequence[str], query: str) -> None:
    """Raise `BadQuery` with *query* as the next step if a column of *names* is missing."""
    for name in names:
        if name not in frame:
            raise BadQuery(field, name, f"is not a column of the frame: {query}", [*map(str, frame.columns)])


def _check_groups(by: By, why: str) -> None:
    """Raise `BadQuery` if days are to make the groups of an analysis that compares days within each group."""
    names = [by] if isinstance(by, str) else [*(by or ())]
    if "timestamp" in names:
        others = [name for name in names if name != "timestamp"]
        step = f"pass by={others!r}" if others else 'name a column such as "country_code"'
        raise BadQuery("by", by, f"has the day, and {why}: {step}")


def _check_dollars(frame: DataFrame, spend: str) -> None:
    """Raise `BadQuery` if the column beside *spend* says another currency than the US dollar."""
    kind, unit = _joined(frame, spend)
    if kind not in ("", "money"):
        rule = f'is a {kind} and no money by what its file says: pass roles={{"{spend}": "cost"}} to gl.join if it is'
        raise BadQuery("spend", spend, rule)
    if unit in ("unknown", "several") or (unit and unit != "USD" and spend + CURRENCY not in frame):
        raise _no_currency(spend) if unit == "unknown" else _not_dollars(spend, unit)
    if spend + CURRENCY in frame:
        others = {str(code) for code in frame[spend + CURRENCY].dropna().unique()} - {"USD"}
        if others:
            raise _not_dollars(spend, ", ".join(sorted(others)))
        if (frame[spend + CURRENCY].isna() & frame[spend].notna() & (frame[spend] != 0)).any():
            raise _no_currency(spend)


def _joined(frame: DataFrame, name: str) -> tuple[str, str]:
    """Return the kind and the unit of a column as the record of the join that brought it has them, "" without one."""
    joined = [record.columns[name] for record in Receipt.of(frame.attrs).joined if name in record.columns]
    return (joined[-1].kind, joined[-1].unit) if joined else ("", "")


def _not_dollars(amount: str, unit: str) -> BadQuery:
    return BadQuery(amount, unit, "is not in US dollars: convert it with outside_data.in_dollars first")


def _no_currency(amount: str) -> BadQuery:
    rule = 'is money in a currency that its file does not name: pass currency="..." with its code to gl.join'
    return BadQuery(amount, UNSET, rule)


def _daily_rates(frame: DataFrame, rate: str) -> Series[Any]:
    """Return the rate of each row: its own, or the nearest of its day or before.

    Raises:
        BadQuery: no day has a rate.
    """
    given_rate = frame[rate].astype("float64")
    by_day = given_rate.groupby(frame["timestamp"]).first().sort_index().ffill().bfill()
    if by_day.isna().any():
        raise BadQuery(rate, None, "has no rate on any day of the frame: join rates of its days")
    return given_rate.fillna(frame["timestamp"].map(by_day).astype("float64"))


def _install_cost_bounds(result: DataFrame, paid: DataFrame, keys: list[str]) -> DataFrame:
    """Return the bounds of the cost of an install, from the bounds of the installs that a day's spend buys."""
    bounds = DataFrame({"low": np.nan, "high": np.nan}, index=result.index)
    if "timestamp" not in paid or paid.empty:
        return bounds
    installs, spend = (_by_day(paid, keys, name) for name in ("paid_installs", "spend"))
    estimates = over_days(installs, spend, day_numbers(spend.columns), counted="events", is_balanced=False)
    groups = paid[keys].drop_duplicates().reset_index(drop=True) if keys else DataFrame(index=[0])
    half = groups.assign(half=estimates.half_width())
    of_row = result[keys].merge(half, on=keys, how="left")["half"] if keys else half["half"]
    bounds["low"], bounds["high"] = (result["cpi"] * np.exp(sign * of_row.to_numpy()) for sign in (-1, 1))
    return bounds


def _install_days(money: DataFrame) -> Series[Any]:
    return pd.to_datetime(money["installed_on"].astype("object"), utc=True).astype("datetime64[us, UTC]")


def _is_within(days: Series[Any], interval: Interval | None) -> Series[Any]:
    return Series(True, index=days.index) if interval is None else days.between(interval.start, interval.end, "left")


def _as_keys(frame: DataFrame, keys: Sequence[str]) -> dict[str, Series[Any]]:
    """Return columns of dimensions as objects, null as None, so that the columns of two frames meet."""
    texts = {name: frame[name].astype("object") for name in keys}
    return {name: column.where(column.notna(), None) for name, column in texts.items()}


def _earned(money: DataFrame, keys: list[str]) -> DataFrame:
    """Return revenue by install day, *keys* and age.

    Raises:
        BadQuery: *money* has neither metric.
    """
    columns = []
    for metric in ("revenue", "ilrd_revenue"):
        try:
            columns.append(column_of(money, metric, "sum"))
        except BadQuery:  # the query had only one of the two
            continue
    if not columns:
        raise BadQuery("money", [*map(str, money.columns)], "holds neither revenue nor ilrd_revenue")
    parts = DataFrame({"installed": _install_days(money), **_as_keys(money, keys)})
    parts["age"] = (money["timestamp"] - parts["installed"]).dt.days
    parts["money"] = money[[*dict.fromkeys(columns)]].astype("float64").sum(axis=1)
    return parts


def _at_age(cost: DataFrame, earned: DataFrame, keys: list[str], age: int, latest: Any) -> DataFrame:
    """Return spend and revenue at *age* of the cohorts up to the install day *latest*.

    *low* and *high* are the bounds of their ratio as multiples of it, from the differences between cohorts.
    """
    reached: DataFrame = cost[cost["last"] <= latest]
    until_age = earned[(earned["age"] >= 0) & (earned["age"] <= age)].rename(columns={"installed": "timestamp"})
    sums = until_age.groupby(["timestamp", *keys], dropna=False)["money"].sum().reset_index()
    both = reached.astype(dict.fromkeys(keys, "object")).merge(
        sums.astype(dict.fromkeys(keys, "object")), on=["timestamp", *keys], how="left"
    )
    both = both.fillna({"money": 0.0})
    by_group = both.groupby(keys, dropna=False, sort=False).agg(
        spend=("spend", "sum"), money=("money", "sum"), cohorts=("timestamp", "nunique")
    )
    money, spend = (_by_day(both, keys, name) for name in ("money", "spend"))
    estimates = over_days(money, spend, day_numbers(money.columns), is_balanced=False)
    low, high = (bound / estimates.value for bound in estimates.bounds())
    largest_day = np.where(estimates.excess > 0, estimates.excess, np.nan)
    return by_group.assign(low=low, high=high, largest_day=largest_day).reset_index().assign(age=age)


def _by_day(rows: DataFrame, keys: list[str], name: str) -> DataFrame:
    """Return the sums of *name* with a row for each group of *keys*, in their order, and a column for each day."""
    group = rows.groupby(keys, dropna=False, sort=False).ngroup() if keys else Series(0, index=rows.index)
    table = rows.assign(group=group, value=rows[name].astype("float64"))
    return table.pivot_table(index="group", columns="timestamp", values="value", aggfunc="sum", fill_value=0.0)


def _correlated(rows: DataFrame, value: str, rank: str) -> dict[str, Any]:
    """Return the row of `rank_correlation` for one group."""
    days = len(rows)
    first, second = (rows[name].astype("float64").rank() for name in (value, rank))
    if days < FEWEST_DAYS or min(first.nunique(), second.nunique()) < 2:
        return {"days": days} | dict.fromkeys(("correlation", "low", "high"), float("nan"))
    scores = [((ranks - ranks.mean()) / ranks.std(ddof=0)).to_numpy() for ranks in (first, second)]
    correlation = float((scores[0] * scores[1]).mean())
    inner = float(np.clip(correlation, -0.9999999, 0.9999999))
    influence = scores[0] * scores[1] - inner * (scores[0] ** 2 + scores[1] ** 2) / 2
    found = over_days(1 + influence / 10, np.ones(days), day_numbers(rows["timestamp"]), is_balanced=False)
    by_days = 10 * float(found.half_width()[0]) / (1 - inner**2)
    half = max(by_days, 1.96 * math.sqrt(_FIELLER / (days - 3)))
    low, high = (math.tanh(math.atanh(inner) + sign * half) for sign in (-1, 1))
    return {"days": days, "correlation": correlation, "low": low, "high": high}
