"""Acquisition: the cost of players, and the time until they have paid it back.

Ad spend is external, so the functions read frames of `gl.join`: new_users by publisher and country with the spend
beside them. The null publisher is that of players without ad spend.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import pandas as pd
from msgspec.structs import replace
from pandas import DataFrame, Series

from gamelens.analysis.outside_data.value_columns import CURRENCY
from gamelens.analysis.tidy_frames import column_of, ratio, sum_over, with_ids, with_receipts_of
from gamelens.analysis.tidy_frames.frame_requirements import ANY, FrameRequirements, requires, result_of
from gamelens.errors import BadQuery

By = str | Sequence[str] | None

FEWEST_DAYS: Final = 10
"""Days that a correlation, or the spread between days, needs."""
FEWEST_COHORTS: Final = 5
"""Cohorts that the interval of a return needs."""
_FIELLER: Final = 1.06  # Fieller, Hartley and Pearson 1957: the variance of Fisher's z of a rank correlation


@requires(frame=replace(ANY, every=("day",)))
def in_dollars(
    frame: DataFrame, amount: str, rate: str | Mapping[str, str], *, to: str = "spend", currency: str | None = None
) -> DataFrame:
    """Return the frame with column *amount* in US dollars as *to* (float64, USD).

    Each amount is multiplied by the rate of its own row and currency. A row without a rate, such as one of a weekend,
    has that of the last day before it in the same currency; days before the first rate have the first.

    Args:
        frame: the amounts, by timestamp.
        amount: the column of amounts.
        rate: the column of rates in US dollars for one unit, or the columns by currency: `{"EUR": "usd_per_eur"}`. US
            dollars need none.
        to: the name of the new column.
        currency: the column with the currency of each amount (ISO 4217). By default the one that `gl.join` added beside
            the amounts, if it is there. Without any, all amounts are in the currency of *rate*.

    Raises:
        BadQuery: a column is missing, amounts have no rate, or one rate is given for several currencies.
    """
    if not isinstance(rate, str | Mapping):
        rule = 'must be a column of rates, or the columns by currency: {"EUR": "usd_per_eur"}'
        raise BadQuery("rate", rate, rule)
    rates = {"": rate} if isinstance(rate, str) else dict(rate)
    if currency is None and amount + CURRENCY in frame:
        currency = amount + CURRENCY
    for name in (amount, "timestamp", *rates.values(), *([currency] if currency else [])):
        if name not in frame:
            raise BadQuery("frame", name, "is not a column of the frame", [*map(str, frame.columns)])
    amounts = frame[amount].astype("float64")
    codes = Series("", index=frame.index, dtype="object") if currency is None else frame[currency].astype("object")
    codes = codes.where(codes.notna() | amounts.isna(), "")
    factors = Series(np.nan, index=frame.index).mask(codes == "USD", 1.0)
    foreign = [str(code) for code in codes[amounts.notna() & (codes != "USD")].unique()]
    for code in foreign:
        rows = codes == code
        column = rates.get(code, rates.get(""))
        if column is None:
            raise BadQuery("rate", code, "has no column of rates: name one for each currency", [*rates])
        factors = factors.mask(rows, _daily_rates(frame[rows], column))
    if isinstance(rate, str) and len(foreign) > 1 and (frame.groupby("timestamp")[rate].nunique() <= 1).all():
        rule = f"has one rate a day for {', '.join(foreign)}: join the rates by currency too, or name a column for each"
        raise BadQuery("rate", rate, rule)
    result = frame.assign(**{to: amounts * factors})
    if to + CURRENCY in result:
        result[to + CURRENCY] = Series("USD", index=frame.index).where(amounts.notna()).astype("category")
    return with_receipts_of(result, frame)


@requires(frame=FrameRequirements(metrics=("new_users",)))
def cost_per_install(frame: DataFrame, by: By = None, *, spend: str = "spend") -> DataFrame:
    """Return the cost of an install for each value of *by*, largest spend first.

    The frame holds new_users and, beside them, *spend* in US dollars, null for installs without ad spend. The spend is
    known; the interval is that of the installs it bought, a count, widened if days differ by more than chance.

    Columns: *by*, installs (Int64), paid_installs (Int64, of rows with spend), spend (float64, USD, NA where there is
    none), cpi (float64, USD: spend / paid_installs), low, high (float64, USD, the 95 % interval of cpi; high is NA
    without installs), blended_cpi (float64, USD: spend / installs).

    Raises:
        BadQuery: a column is missing, or the spend is not in US dollars.
    """
    count = column_of(frame, "new_users", "new_users")
    _check_columns("frame", frame, [spend], "join ad spend first")
    _check_columns("by", frame, with_ids(frame, by), "query new_users by it")
    _check_dollars(frame, spend)
    is_paid = frame[spend].notna()
    parts = frame[with_ids(frame, by)].assign(
        installs=frame[count], paid_installs=frame[count].where(is_paid, 0).astype("Int64"), spend=frame[spend]
    )
    parts = parts.assign(known=is_paid.astype("Int64"), day=frame.get("timestamp", 0))
    result = sum_over(parts, by, ["installs", "paid_installs", "spend", "known"])
    result["spend"] = result["spend"].astype("float64").where(result["known"] > 0)
    result["cpi"] = ratio(result["spend"], result["paid_installs"])
    result[["low", "high"]] = _install_cost_bounds(result, parts[is_paid], with_ids(frame, by))
    result["blended_cpi"] = ratio(result["spend"], result["installs"])
    result = result.drop(columns="known").sort_values("spend", ascending=False, na_position="last", ignore_index=True)
    return with_receipts_of(result, frame)


@requires(
    since=("money", "spend"),
    spend=FrameRequirements(every=("day",), is_split_by=True),
    money=FrameRequirements(
        metrics=("revenue", "ilrd_revenue"), every=("day",), splits=("installed_on",), is_split_by=True
    ),
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

    Columns: *by* (category, values with spend), age (Int64, days since install), spend, money (float64, USD, of the
    cohorts that reached the age), roas (float64, 1 is paid back), low, high (float64, its 95 % interval, NA with fewer
    than `FEWEST_COHORTS` cohorts or without money), cohorts (Int64, install days).

    Raises:
        BadQuery: a column is missing, *money* has neither metric, or the spend is not in US dollars.
    """
    keys = with_ids(spend, by)
    _check_columns("spend", spend, ["timestamp", "spend"], "join ad spend to installs by day first")
    _check_dollars(spend, "spend")
    query = f"query revenue and ilrd_revenue by installed_on and {' and '.join(keys)}"
    _check_columns("money", money, ["timestamp", "installed_on", *keys], query)
    cost = spend.assign(spend=spend["spend"].astype("float64"), **_as_keys(spend, keys))
    cost = cost[cost["spend"] > 0].groupby(["timestamp", *keys], dropna=False)["spend"].sum().reset_index()
    earned = _earned(money, keys)
    last_day = money["timestamp"].max() if len(money) else pd.NaT
    rows = [_at_age(cost, earned, keys, age, last_day - pd.Timedelta(days=max(age, reaching))) for age in sorted(ages)]
    result = pd.concat([row for row in rows if len(row)] or rows[:1], ignore_index=True)
    result["roas"] = ratio(result["money"], result["spend"])
    half = _ratio_half_width(result)
    result["low"], result["high"] = result["roas"] * np.exp(-half), result["roas"] * np.exp(half)
    columns = [*keys, "age", "spend", "money", "roas", "low", "high", "cohorts"]
    types = dict.fromkeys(keys, "category") | {"age": "Int64", "cohorts": "Int64", "spend": "float64"}
    result = result[columns].astype({**types, "money": "float64"}).sort_values([*keys, "age"], ignore_index=True)
    return with_receipts_of(result, spend, money)


@requires(roas=result_of("outside_data.return_on_spend(spend, money)", "age", "spend", "money", "roas"))
def payback_ages(roas: DataFrame, by: str | Sequence[str] = "install_publisher") -> DataFrame:
    """Return the last age of each value of *by*, and the first that earned back its spend.

    Columns: *by* (category), age (Int64), spend, money, roas, low, high (float64), days_to_pay_back (Int64, NA where
    not yet). Best first.
    """
    keys = with_ids(roas, by)
    last = roas.sort_values("age").groupby(keys, observed=True, dropna=False).tail(1)
    first = roas[roas["roas"] >= 1].groupby(keys, observed=True, dropna=False)["age"].min()
    paid_back = first.rename("days_to_pay_back").astype("Int64").reset_index().astype(dict.fromkeys(keys, "object"))
    result = last.drop(columns="cohorts").astype(dict.fromkeys(keys, "object")).merge(paid_back, on=keys, how="left")
    result = result.astype(dict.fromkeys(keys, "category") | {"days_to_pay_back": "Int64"})
    return with_receipts_of(result.sort_values("roas", ascending=False, ignore_index=True), roas)


@requires(frame=replace(ANY, every=("day",)))
def rank_correlation(frame: DataFrame, value: str, rank: str, by: str | None = None) -> DataFrame:
    """Return how closely a store rank follows *value*, day by day (Spearman's correlation).

    It is -1 if a higher value always means a better rank.

    Columns: *by*, days (Int64, with both numbers), correlation, low, high (float64, -1 to 1, a rough 95 % interval that
    takes days for independent; NA with fewer than `FEWEST_DAYS`).
    """
    _check_columns("frame", frame, [value, rank], "join store ranks to installs first")
    known = frame[frame[value].notna() & frame[rank].notna()]
    groups = known.groupby(with_ids(known, by), observed=True) if by else [((), known)]
    rows = [_correlated(rows, value, rank) | dict(zip(with_ids(known, by), keys, strict=True)) for keys, rows in groups]
    columns = [*with_ids(known, by), "days", "correlation", "low", "high"]
    numbers = dict.fromkeys(("correlation", "low", "high"), "float64")
    types = {"days": "Int64"} | numbers | dict.fromkeys(with_ids(known, by), "category")
    return with_receipts_of(DataFrame(rows, columns=columns).astype(types), frame)


def _check_columns(field: str, frame: DataFrame, names: Sequence[str], query: str) -> None:
    """Raise `BadQuery` with *query* as the next step if a column of *names* is missing."""
    for name in names:
        if name not in frame:
            raise BadQuery(field, name, f"is not a column of the frame: {query}", [*map(str, frame.columns)])


def _check_dollars(frame: DataFrame, spend: str) -> None:
    """Raise `BadQuery` if the column beside *spend* says another currency than the US dollar."""
    if spend + CURRENCY in frame:
        others = {str(code) for code in frame[spend + CURRENCY].dropna().unique()} - {"USD"}
        if others:
            raise BadQuery(spend, sorted(others), "is not in US dollars: convert it with outside_data.in_dollars first")


def _daily_rates(frame: DataFrame, rate: str) -> Series[Any]:
    """Return the rate of each row: its own, or the nearest of its day or before.

    Raises:
        BadQuery: no day has a rate.
    """
    own = frame[rate].astype("float64")
    by_day = own.groupby(frame["timestamp"]).first().sort_index().ffill().bfill()
    if by_day.isna().any():
        raise BadQuery(rate, None, "has no rate on any day of the frame: join rates of its days")
    return own.fillna(frame["timestamp"].map(by_day).astype("float64"))


def _install_cost_bounds(result: DataFrame, paid: DataFrame, keys: list[str]) -> DataFrame:
    """Return the bounds of the cost of an install, from those of the count of installs.

    They are those of a Poisson count (Garwood 1936). A count that differs between days by *spread* times its mean is
    worth as much as a *spread*-th of it.
    """
    from scipy.special import stdtrit
    from statsmodels.stats.rates import confint_poisson

    groups = keys or ["all"]
    days = paid.assign(all=0).groupby([*groups, "day"], observed=True, dropna=False)[["paid_installs", "spend"]].sum()
    days = days[days["spend"] > 0].astype("float64")
    by_group = days.groupby(groups, dropna=False)
    sums = by_group.transform("sum")
    expected = days["spend"] * sums["paid_installs"] / sums["spend"]
    days["misfit"] = (days["paid_installs"] - expected) ** 2 / expected.where(expected > 0)
    number = by_group.size()
    spread = (by_group["misfit"].sum() / (number - 1)).where(number >= FEWEST_DAYS, 1.0)
    estimated = (stdtrit(number - 1, 0.975) / stdtrit(np.inf, 0.975)) ** 2  # the spread itself is known from few days
    spread = spread.where(spread <= 1, spread * estimated).clip(lower=1.0).rename("spread")
    of_row = result.assign(all=0).merge(spread, left_on=groups, right_index=True, how="left")["spread"]
    wide = of_row.fillna(1.0).to_numpy(dtype="float64")
    count = result["paid_installs"].to_numpy(dtype="float64") / wide
    with np.errstate(divide="ignore", invalid="ignore"):
        fewest, most = (wide * bound for bound in confint_poisson(count, 1, method="exact-c"))
        cost = result["spend"].to_numpy(dtype="float64")
        return DataFrame({"low": cost / most, "high": np.where(count > 0, cost / fewest, np.nan)}, index=result.index)


def _ratio_half_width(result: DataFrame) -> Any:
    """Return half of the 95 % interval of the logarithm of money / spend.

    It comes from the differences between cohorts.
    """
    from scipy.special import stdtrit

    cohorts = result["cohorts"].to_numpy(dtype="float64")
    misfit, money = (result[name].to_numpy(dtype="float64") for name in ("misfit", "money"))
    with np.errstate(divide="ignore", invalid="ignore"):
        half = stdtrit(cohorts - 1, 0.975) * np.sqrt(misfit * cohorts / (cohorts - 1)) / money
    return np.where((cohorts >= FEWEST_COHORTS) & (money > 0), half, np.nan)


def _as_keys(frame: DataFrame, keys: Sequence[str]) -> dict[str, Series[Any]]:
    """Return columns of dimensions as objects, null as None, so that those of two frames meet."""
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
    installed = pd.to_datetime(money["installed_on"].astype("object"), utc=True)
    parts = DataFrame({"installed": installed.astype("datetime64[us, UTC]"), **_as_keys(money, keys)})
    parts["age"] = (money["timestamp"] - parts["installed"]).dt.days
    parts["money"] = money[[*dict.fromkeys(columns)]].astype("float64").sum(axis=1)
    return parts


def _at_age(cost: DataFrame, earned: DataFrame, keys: list[str], age: int, latest: Any) -> DataFrame:
    """Return spend and revenue at *age* of the cohorts up to the install day *latest*.

    *misfit* is the sum of the squared differences of a cohort's money from that of its spend at the common ratio.
    """
    reached: DataFrame = cost[cost["timestamp"] <= latest]
    until_age = earned[(earned["age"] >= 0) & (earned["age"] <= age)].rename(columns={"installed": "timestamp"})
    sums = until_age.groupby(["timestamp", *keys], dropna=False)["money"].sum().reset_index()
    both = reached.astype(dict.fromkeys(keys, "object")).merge(
        sums.astype(dict.fromkeys(keys, "object")), on=["timestamp", *keys], how="left"
    )
    both = both.fillna({"money": 0.0})
    whole = both.groupby(keys, dropna=False)[["spend", "money"]].transform("sum")
    both["misfit"] = (both["money"] - both["spend"] * whole["money"] / whole["spend"]) ** 2
    by_group = both.groupby(keys, dropna=False).agg(
        spend=("spend", "sum"), money=("money", "sum"), misfit=("misfit", "sum"), cohorts=("timestamp", "nunique")
    )
    return by_group.reset_index().assign(age=age)


def _correlated(rows: DataFrame, value: str, rank: str) -> dict[str, Any]:
    """Return the row of `rank_correlation` for one group."""
    days = len(rows)
    first, second = (rows[name].astype("float64").rank() for name in (value, rank))
    is_enough = days >= FEWEST_DAYS and first.nunique() > 1 and second.nunique() > 1
    correlation = float(first.corr(second)) if is_enough else float("nan")
    inner = float(np.clip(correlation, -0.9999999, 0.9999999))
    half = 1.96 * np.sqrt(_FIELLER / (days - 3)) if is_enough else float("nan")
    low, high = (float(np.tanh(np.arctanh(inner) + sign * half)) for sign in (-1, 1))
    return {"days": days, "correlation": correlation, "low": low, "high": high}
