"""Lifetime value: the money that a new player brings, measured first, projected after.

The measured part is the money of install days at each age, divided by their installs. The tail is retention, on the
curve that `project_retention` chooses, times the money of a returning player. That money decays with age, purchases in
another way than ads, and older install days lend their late ages.

Bands are about the expected value of a player like these. They cover the spread between players and between days, as
far as install days show it, and the projection; they do not cover changes of the game. Few payers bring most of the
money of many games: their bands are wide.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
import pandas as pd
from pandas import DataFrame

from gamelens.analysis.claims.findings import Finding, reads
from gamelens.analysis.claims.leaders import leader
from gamelens.analysis.over_days import day_numbers
from gamelens.analysis.retention.money_by_age import Band, CohortMoney, Floats, fit_decay, with_tails
from gamelens.analysis.retention.projection import project_retention
from gamelens.analysis.retention.retention_rates import cohort_sizes
from gamelens.analysis.tidy_frames import column_of, with_ids, with_receipts_of
from gamelens.analysis.tidy_frames.columns import Column
from gamelens.analysis.tidy_frames.frame_requirements import RETENTION, FrameRequirements, requires
from gamelens.analysis.tidy_frames.returned_columns import KEYS, between, named, returns
from gamelens.errors import BadQuery

_DAY: Final = pd.Timedelta(days=1)
_COLUMNS: Final = {
    "model": "category",
    "age": "Int64",
    "days_played": "float64",
    "ltv": "float64",
    "low": "float64",
    "high": "float64",
    "largest_day": "float64",
    "installs": "Int64",
    "is_projected": "bool",
}


@requires(
    frame=RETENTION,
    money=FrameRequirements(
        metrics=("revenue", "ilrd_revenue", "user_unique"), every=("day",), splits=("installed_on",), is_split_by=True
    ),
)
@returns(
    KEYS,
    "model age",
    Column("days_played", "number", about="per new player up to that age, on the curve"),
    between("ltv", "NA if there is no money, or fewer than 7 install days", low="low", high="high"),
    named(
        "largest_day",
        about="by which the install day that brought most exceeds its part of the measured money",
        na="unless that makes the interval rough",
    ),
    named("installs", about="who have reached the age"),
    "is_projected",
    has_own_receipt=True,
)
def ltv(
    frame: DataFrame,
    money: DataFrame,
    by: str | None = None,
    *,
    to: int = 90,
    model: str | None = None,
    confidence: float = 0.95,
    draws: int = 1000,
    seed: int = 0,
) -> DataFrame:
    """Return the money that a new player brings up to each age, measured, then projected.

        over, ages = "last 28 complete days", [1, 2, 3, 5, 7, 14]
        cohorts = lens.retention(ages, by="game", over=over)
        money = lens.query(["revenue", "ilrd_revenue", "user_unique"], by=["game", "installed_on"], over=over)
        retention.ltv(cohorts, money, by="game", to=30)

    Ages that a week of install days has reached are measured: the money of their players at that age / their installs.
    Later ages are retention on the chosen curve times the money of a returning player, whose decay with age is fitted
    to purchases and to ads, over all install days in *money*.

    Args:
        frame: a frame of `retention()`. Its install days are measured.
        money: revenue, ilrd_revenue or both, and user_unique, by installed_on (and *by*) at day granularity, of the
            same days. Install days before the first of *frame* help to project.
        by: the column that makes the groups.
        to: the last age in days.
        model: another curve than `compare_curves` chooses.
        confidence: level of the band.
        draws: number of curves drawn for the band of the projection.
        seed: of the random numbers; the same seed gives the same band.

    Without a curve projected ages have NA. Claims: "lifetime value", of the last age.

    Raises:
        BadQuery: as `project_retention`, *to* is below 1, or *money* is another frame.
    """
    if not isinstance(money, DataFrame):
        rule = "is not a frame: query revenue, ilrd_revenue and user_unique by installed_on"
        raise BadQuery("money", type(money).__name__, rule)
    if to < 1:
        raise BadQuery("to", to, "must be 1 or more: it is the last age in days")
    if model == "all":
        raise BadQuery("model", model, "is not one curve")
    ages = range(1, to + 1)
    ahead = project_retention(frame, by, ages=ages, model=model, confidence=confidence, draws=draws, seed=seed)
    keys, sizes = with_ids(frame, by), cohort_sizes(frame, by)
    shared = [name for name in keys if name == by or name in money]
    cells, days = _cells(money, shared), (money["timestamp"].min(), money["timestamp"].max())
    blocks = [DataFrame({**{name: ahead[name][:0] for name in keys}, **{name: [] for name in _COLUMNS}})]
    for key, curve in _groups(ahead, keys):
        of_group = _rows_of(cells, {name: key[name] for name in shared})
        cohorts = _cohorts(_rows_of(sizes, key), of_group, days, to=to)
        block = _value_frame(cohorts, of_group, curve, confidence=confidence)
        blocks.append(block.assign(**key, model=curve["model"].iloc[0]))
    types = {name: ahead[name].dtype for name in keys} | _COLUMNS | {"model": ahead["model"].dtype}
    result = pd.concat(blocks[1:] or blocks, ignore_index=True)[[*types]].astype(types)
    return with_receipts_of(result, frame, money)


def _cells(money: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Return players and dollars by *keys*, install day (`installed`) and age.

    There is one column of dollars for purchases and one for ads.

    Raises:
        BadQuery: *money* lacks a column, or its rows are not of days.
    """
    names = [str(name) for name in money.columns]
    for name in ["installed_on", *keys]:
        if name not in money:
            raise BadQuery("money", names, f"has no {name}: query it by {name}")
    columns = dict.fromkeys(filter(None, (_money_column(money, metric) for metric in ("revenue", "ilrd_revenue"))))
    if not columns:
        raise BadQuery("money", names, "holds neither revenue nor ilrd_revenue: query them too")
    days = money["timestamp"].drop_duplicates().sort_values()
    if days.diff().min() > _DAY:
        raise BadQuery("money", f"one row in {days.diff().min().days} days", 'is not daily: query it with every="day"')
    installed = pd.to_datetime(money["installed_on"].astype("object"), utc=True).astype("datetime64[us, UTC]")
    cells = money[[*keys]].assign(
        installed=installed,
        age=(money["timestamp"] - installed) // _DAY,
        players=money[column_of(money, "user_unique", "user_unique")].astype("float64").fillna(0.0),
        **{f"money_{place}": money[name].astype("float64").fillna(0.0) for place, name in enumerate(columns)},
    )
    return cells[cells["age"] >= 0].astype({"age": "int64"})


def _money_column(money: DataFrame, metric: str) -> str | None:
    """Return the column that holds the dollars of *metric*, or None if it was not queried."""
    try:
        return column_of(money, metric, "sum")
    except BadQuery:
        return None


def _groups(ahead: DataFrame, keys: Sequence[str]) -> Iterator[tuple[dict[str, Any], DataFrame]]:
    """Yield the values of *keys* of each group, and its rows."""
    if not keys:
        yield from [({}, ahead)] if len(ahead) else []
        return
    for values, rows in ahead.groupby(list(keys), observed=True, dropna=False, sort=False):
        yield dict(zip(keys, values, strict=True)), rows


def _rows_of(frame: DataFrame, key: Mapping[str, Any]) -> DataFrame:
    """Return the rows with the values of *key*, null included."""
    for name, value in key.items():
        frame = frame[frame[name].isna() if pd.isna(value) else frame[name] == value]
    return frame


def _cohorts(sizes: DataFrame, cells: DataFrame, days: tuple[Any, Any], *, to: int) -> CohortMoney:
    """Return the install days of *sizes* whose money is known from age 0, up to age *to*."""
    first, last = days
    known = sizes[(sizes["timestamp"] >= first) & (sizes["timestamp"] <= last) & (sizes["installs"] > 0)]
    installed = pd.DatetimeIndex(known["timestamp"])
    inside = cells[(cells["age"] <= to) & cells["installed"].isin(installed)]
    dollars = np.zeros((len(installed), to + 1))
    np.add.at(
        dollars,
        (installed.get_indexer(pd.Index(inside["installed"])), inside["age"]),
        inside.filter(like="money_").sum(axis=1),
    )
    is_reached = np.arange(to + 1) <= ((last - installed) // _DAY).to_numpy()[:, None]
    return CohortMoney(day_numbers(installed), known["installs"].to_numpy(dtype="float64"), dollars, is_reached)


def _value_frame(cohorts: CohortMoney, cells: DataFrame, curve: DataFrame, *, confidence: float) -> DataFrame:
    """Build the rows of `ltv` for one group."""
    shares = {name: curve[name].to_numpy(dtype="float64") for name in ("retention", "low", "high")}
    measured = cohorts.measured_ages()
    by_day, excess = cohorts.value(confidence)
    total = with_tails(by_day, _tails(cells, shares, measured, confidence))
    largest_day = np.append(excess, np.full(len(total.value) - measured, excess[-1] if measured else 0.0))
    installs = cohorts.reached_installs()
    is_projected = np.arange(len(installs)) >= measured
    return DataFrame(
        {
            "age": np.arange(len(installs)),
            "days_played": np.cumsum(np.append(1.0, shares["retention"])),
            "ltv": total.value,
            "low": total.low,
            "high": total.high,
            "largest_day": np.where(largest_day > 0, largest_day, np.nan),
            "installs": np.where(is_projected, 0, installs),
            "is_projected": is_projected,
        }
    )


def _tails(cells: DataFrame, shares: Mapping[str, Floats], measured: int, confidence: float) -> list[Band]:
    """Return the dollars per new player beyond the *measured* ages, as bands to add up.

    The first is 0, with the uncertainty of retention. The others are purchases and ads, each with the uncertainty of
    its decay.
    """
    ahead = np.arange(max(measured, 1), len(shares["retention"]) + 1)
    returning = cells[(cells["age"] >= 1) & (cells["players"] > 0)]
    players, ages = returning["players"].to_numpy(), returning["age"].to_numpy()
    cohort = pd.factorize(returning["installed"])[0]
    decays = [
        fit_decay(returning[name].to_numpy(), players, ages, cohort) for name in cells if str(name).startswith("money_")
    ]
    fitted = [decay for decay in decays if decay is not None]
    retention, low, high = (values[ahead - 1] for values in shares.values())
    by_age = np.sum([decay.by_age(ahead) for decay in fitted], axis=0) if fitted else np.zeros(len(ahead))
    of_retention = Band(0 * retention, np.cumsum((low - retention) * by_age), np.cumsum((high - retention) * by_age))
    return [of_retention, *(decay.tail(retention, ahead, confidence) for decay in fitted)]


@reads("retention.ltv")
def _read_values(values: DataFrame, by: str | None) -> Iterator[Finding]:
    """Say whose new players bring most by the last age; bands that overlap may still differ."""
    last = values["age"].max()
    rows = values[(values["age"] == last) & values["ltv"].notna()].sort_values("ltv", ascending=False, kind="stable")
    numbers: dict[str, Any] = {"age": last, "measured": None, "measured_age": None}
    if len(rows) and (worth := float(rows["ltv"].iloc[0])) > 0:
        numbers["largest_day"] = rows["largest_day"].iloc[0]
        key = {by: rows[by].iloc[0]} if by else {}
        if len(until := _rows_of(values[~values["is_projected"]], key)):
            numbers |= {"measured": until["ltv"].iloc[-1] / worth, "measured_age": until["age"].iloc[-1]}
    yield leader(rows, by, "ltv", kind="lifetime value", unit="USD", numbers=numbers)
