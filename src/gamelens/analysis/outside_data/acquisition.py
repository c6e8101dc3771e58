"""Acquisition: the cost of players, and the time until they have paid it back.

Ad spend is external, so the functions read frames of `gl.join`: new_users by publisher and country with the spend
beside them. The null publisher is that of players without ad spend.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pandas as pd
from msgspec.structs import replace
from pandas import DataFrame

from gamelens.analysis.tidy_frames import column_of, ratio, sum_over, with_ids, with_receipts_of
from gamelens.analysis.tidy_frames.frame_requirements import ANY, FrameRequirements, requires, result_of
from gamelens.errors import BadQuery

By = str | Sequence[str] | None

FEWEST_DAYS: Final = 10
"""Days that a correlation needs."""
_FIELLER: Final = 1.06  # Fieller, Hartley and Pearson 1957: the variance of Fisher's z of a rank correlation


@requires(frame=replace(ANY, every=("day",)))
def in_dollars(frame: DataFrame, amount: str, rate: str, *, to: str = "spend") -> DataFrame:
    """Return the frame with column *amount* times the day's *rate* as *to* (float64, USD).

    A day without a rate, such as a weekend, has that of the day before it; days before the first rate have the first.

    Raises:
        BadQuery: a column is missing, or there are amounts and no rate at all.
    """
    for name in (amount, rate):
        if name not in frame:
            raise BadQuery("frame", name, "is not a column of the frame", [*map(str, frame.columns)])
    by_day = frame.groupby("timestamp")[rate].first().sort_index().astype("float64").ffill().bfill()
    if by_day.isna().any() and frame[amount].notna().any():
        raise BadQuery(rate, None, "has no rate on any day of the frame: join rates of its days")
    dollars = frame[amount].astype("float64") * frame["timestamp"].map(by_day).astype("float64")
    return with_receipts_of(frame.assign(**{to: dollars}), frame)


@requires(frame=FrameRequirements(metrics=("new_users",)))
def cost_per_install(frame: DataFrame, by: By = None, *, spend: str = "spend") -> DataFrame:
    """Return the cost of an install for each value of *by*, largest spend first.

    The frame holds new_users and, beside them, *spend* in US dollars, null for installs without ad spend.

    Columns: *by*, installs (Int64), paid_installs (Int64, of rows with spend), spend (float64, USD, NA where there is
    none), cpi (float64, USD: spend / paid_installs), blended_cpi (float64, USD: spend / installs).

    Raises:
        BadQuery: a column is missing.
    """
    count = column_of(frame, "new_users", "new_users")
    if spend not in frame:
        raise BadQuery("spend", spend, "is not a column of the frame: join ad spend first", [*map(str, frame.columns)])
    is_paid = frame[spend].notna()
    parts = frame[with_ids(frame, by)].assign(
        installs=frame[count], paid_installs=frame[count].where(is_paid, 0).astype("Int64"), spend=frame[spend]
    )
    result = sum_over(parts.assign(known=is_paid.astype("Int64")), by, ["installs", "paid_installs", "spend", "known"])
    result["spend"] = result["spend"].astype("float64").where(result["known"] > 0)
    result["cpi"] = ratio(result["spend"], result["paid_installs"])
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
    by: str = "install_publisher",
    *,
    ages: Sequence[int] = (0, 1, 3, 7, 14, 28),
    reaching: int = 0,
) -> DataFrame:
    """Return the revenue of paid installs at each age, beside their cost (ROAS by cohort).

    A cohort counts at an age only if it has reached it, so later ages rest on fewer cohorts and the curve may fall. Up
    to the age *reaching* it does not, because younger cohorts are left out at every age.

    Args:
        spend: timestamp (the install day), *by* and spend (USD).
        money: revenue and ilrd_revenue, or one of them, by installed_on and *by* at day granularity, from the first
            install day to the last day available.
        by: the column that makes the groups.
        ages: days since install.
        reaching: the age that every cohort counted must have reached.

    Columns: *by* (category, values with spend), age (Int64, days since install), spend, money (float64, USD, of the
    cohorts that reached the age), roas (float64, 1 is paid back), cohorts (Int64, install days).

    Raises:
        BadQuery: *money* has neither metric, or no installed_on.
    """
    cost = spend.assign(spend=spend["spend"].astype("float64"))
    cost = cost[cost["spend"] > 0].groupby(["timestamp", by], observed=True)["spend"].sum().reset_index()
    earned = _earned(money, by)
    last_day = money["timestamp"].max() if len(money) else pd.NaT
    rows = [_at_age(cost, earned, by, age, last_day - pd.Timedelta(days=max(age, reaching))) for age in sorted(ages)]
    result = pd.concat([row for row in rows if len(row)] or rows[:1], ignore_index=True)
    result["roas"] = ratio(result["money"], result["spend"])
    columns = [by, "age", "spend", "money", "roas", "cohorts"]
    types = {by: "category", "age": "Int64", "cohorts": "Int64", "spend": "float64", "money": "float64"}
    result = result[columns].astype(types).sort_values([by, "age"], ignore_index=True)
    return with_receipts_of(result, spend, money)


@requires(roas=result_of("outside_data.return_on_spend(spend, money)", "age", "spend", "money", "roas"))
def payback_ages(roas: DataFrame, by: str = "install_publisher") -> DataFrame:
    """Return the last age of each value of *by*, and the first that earned back its spend.

    Columns: *by* (category), age (Int64), spend, money, roas (float64), days_to_pay_back (Int64, NA where not yet).
    Best first.
    """
    last = roas.sort_values("age").groupby(by, observed=True).tail(1)
    first = roas[roas["roas"] >= 1].groupby(by, observed=True)["age"].min()
    days = last[by].astype("object").map({name: age for name, age in first.items() if pd.notna(age)})
    result = last.drop(columns="cohorts").assign(days_to_pay_back=days.astype("Int64"))
    return with_receipts_of(result.sort_values("roas", ascending=False, ignore_index=True), roas)


@requires(frame=replace(ANY, every=("day",)))
def rank_correlation(frame: DataFrame, value: str, rank: str, by: str | None = None) -> DataFrame:
    """Return how closely a store rank follows *value*, day by day (Spearman's correlation).

    It is -1 if a higher value always means a better rank.

    Columns: *by*, days (Int64, with both numbers), correlation, low, high (float64, -1 to 1, a rough 95 % interval that
    takes days for independent; NA with fewer than `FEWEST_DAYS`).
    """
    known = frame[frame[value].notna() & frame[rank].notna()]
    groups = known.groupby(with_ids(known, by), observed=True) if by else [((), known)]
    rows = [_correlated(rows, value, rank) | dict(zip(with_ids(known, by), keys, strict=True)) for keys, rows in groups]
    columns = [*with_ids(known, by), "days", "correlation", "low", "high"]
    numbers = dict.fromkeys(("correlation", "low", "high"), "float64")
    types = {"days": "Int64"} | numbers | dict.fromkeys(with_ids(known, by), "category")
    return with_receipts_of(DataFrame(rows, columns=columns).astype(types), frame)


def _earned(money: DataFrame, by: str) -> DataFrame:
    """Return revenue by install day, *by* and age.

    Raises:
        BadQuery: *money* has neither metric, or no installed_on.
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
    parts = DataFrame({"installed": installed.astype("datetime64[us, UTC]"), by: money[by].astype("object")})
    parts["age"] = (money["timestamp"] - parts["installed"]).dt.days
    parts["money"] = money[[*dict.fromkeys(columns)]].astype("float64").sum(axis=1)
    return parts


def _at_age(cost: DataFrame, earned: DataFrame, by: str, age: int, latest: Any) -> DataFrame:
    """Return spend and revenue at *age* of the cohorts up to the install day *latest*."""
    reached: DataFrame = cost[cost["timestamp"] <= latest]
    until_age = earned[(earned["age"] >= 0) & (earned["age"] <= age)].rename(columns={"installed": "timestamp"})
    sums = until_age.groupby(["timestamp", by])["money"].sum().reset_index()
    both = reached.astype({by: "object"}).merge(sums, on=["timestamp", by], how="left").fillna({"money": 0.0})
    by_group = both.groupby(by).agg(spend=("spend", "sum"), money=("money", "sum"), cohorts=("timestamp", "nunique"))
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
