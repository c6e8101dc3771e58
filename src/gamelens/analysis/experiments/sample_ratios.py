"""The sizes of arms, the newest of them, and whether its players were split as intended."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import pandas as pd
from pandas import DataFrame, Series

from gamelens.analysis.experiments.arm_outcomes import EXPERIMENT, VARIANT, groups
from gamelens.analysis.tidy_frames import column_of, ratio, sum_over, with_ids, with_receipts_of
from gamelens.analysis.tidy_frames.frame_requirements import ANY, FrameRequirements, requires
from gamelens.errors import BadQuery

SUSPECT: Final = 0.001
"""P-value of the split below which no result of the experiment can be trusted."""
_DAY: Final = "datetime64[us, UTC]"
_FEWEST: Final = 5.0
"""Expected players that the smallest arm needs on a day.

Days with fewer are tested together with the next.
"""


@requires(installs=FrameRequirements(metrics=("new_users",), splits=(EXPERIMENT, VARIANT)))
def arms(installs: DataFrame) -> DataFrame:
    """Return the arms of every experiment, from new_users by ab_id and ab_variant_id.

    Players of no experiment are left out. Largest experiment first, its arms by name.

    Columns: ab_id, ab_variant_id (category), players (Int64).
    """
    count = column_of(installs, "new_users", "new_users")
    known = installs[installs[EXPERIMENT].notna() & installs[VARIANT].notna()]
    result = sum_over(known, [EXPERIMENT, VARIANT], [count]).rename(columns={count: "players"})
    size = result.groupby(EXPERIMENT, observed=True)["players"].transform("sum")
    result = result.assign(size=size).sort_values(["size", EXPERIMENT, VARIANT], ascending=[False, True, True])
    return with_receipts_of(result.drop(columns="size").reset_index(drop=True), installs)


@requires(frame=ANY)
def newest_arms(frame: DataFrame, arm: str, by: str | None = None, *, most: int = 2) -> DataFrame:
    """Return the rows of the arms of each value of *by* that began last, *most* of them.

    Such as the newest builds. An arm begins on its first install day with players. Players of no arm are left out.
    *frame* is one of `Client.retention`, or has timestamp, the arm and players.

    Raises:
        BadQuery: a column is missing.
    """
    keys = with_ids(frame, by)
    for name in (arm, "timestamp"):
        if name not in frame:
            raise BadQuery("frame", name, "is not a column of the frame", [*map(str, frame.columns)])
    size = next((name for name in ("installs", "players") if name in frame), None)
    has_players = frame[arm].notna() & (frame[size] > 0 if size else True)
    began = frame[has_players].groupby([*keys, arm], observed=True, dropna=False, sort=False)["timestamp"].min()
    order = began.reset_index().sort_values("timestamp", kind="stable")
    newest = order.groupby(keys, observed=True, dropna=False).tail(most) if keys else order.tail(most)
    rows = frame.merge(newest[[*keys, arm]], on=[*keys, arm], how="inner")
    return with_receipts_of(rows.astype(dict.fromkeys([*keys, arm], "category")), frame)


@requires(installs=ANY, expected=ANY)
def sample_ratio(installs: DataFrame, expected: Mapping[str, float] | DataFrame | None = None) -> DataFrame:
    """Compare the split of players with the *expected* weights, in total and day by day.

    The tests are Pearson's. *installs* is new_users by day and variant, or the frame of `arms`, which has no days.
    Without *expected* the arms should be equally large. A planned ramp is a frame of weight by timestamp and
    ab_variant_id. With *expected* there must be one experiment, and a variant without players gets a row too. A suspect
    split means that players were lost on the way to one arm, so the players left differ in more than number, and no
    result can be trusted.

    Columns: ab_id (category, if there), ab_variant_id (category), players (Int64), share, expected_share (float64, 0
    to 1), expected_players (float64), p_value (float64, of the whole experiment; NA of a single arm), p_days (float64,
    of all its days), worst_day (datetime64[us, UTC]), p_worst_day (float64, corrected for the number of days),
    is_suspect (boolean, one of p_value, p_days, p_worst_day is below 0.001).

    Raises:
        BadQuery: *expected* lacks a variant or a day, or has a weight below 0; or there are several experiments.
    """
    if expected is not None and EXPERIMENT in installs and installs[EXPERIMENT].dropna().nunique() > 1:
        several = sorted(map(str, installs[EXPERIMENT].dropna().unique()))
        raise BadQuery("arms", several, "are several experiments: with expected= check one at a time")
    sizes = _with_targets(_sizes(installs), expected)
    checks = [_checked(rows) for rows in groups(sizes, [EXPERIMENT])]
    names = [name for name in (EXPERIMENT, VARIANT) if name in sizes]
    numbers = ["share", "expected_share", "expected_players", "p_value", "p_days"]
    columns = [*names, "players", *numbers, "worst_day", "p_worst_day"]
    result = pd.concat(checks, ignore_index=True) if checks else DataFrame(columns=columns)
    types: dict[str, Any] = dict.fromkeys(names, "category") | dict.fromkeys([*numbers, "p_worst_day"], "float64")
    result = result[columns].astype(types | {"players": "Int64", "worst_day": _DAY})
    is_suspect = (result[["p_value", "p_days", "p_worst_day"]] < SUSPECT).any(axis=1)
    return with_receipts_of(result.assign(is_suspect=is_suspect.astype("boolean")), installs)


def _sizes(installs: DataFrame) -> DataFrame:
    """Return the players by experiment, day and variant, as one day without timestamps."""
    count = "players" if "players" in installs else column_of(installs, "new_users", "new_users")
    names = [name for name in (EXPERIMENT, VARIANT) if name in installs]
    known = installs[installs[names].notna().all(axis=1)].astype(dict.fromkeys(names, "object"))
    known = known if "timestamp" in known else known.assign(timestamp=Series(pd.NaT, index=known.index, dtype=_DAY))
    sizes = known.groupby([*names, "timestamp"], dropna=False, sort=False)[count].sum().reset_index()
    return sizes.rename(columns={count: "players"}).astype({"players": "float64"})


def _with_targets(sizes: DataFrame, expected: Mapping[str, float] | DataFrame | None) -> DataFrame:
    """Return a row for each experiment, day and variant, with its expected players as target.

    Raises:
        BadQuery: *expected* lacks a variant or a day, or has a weight below 0.
    """
    weights = _weights(expected)
    blocks = []
    for rows in groups(sizes, [EXPERIMENT]):
        names = [*dict.fromkeys([*rows[VARIANT], *(weights[VARIANT] if weights is not None else [])])]
        grid = pd.MultiIndex.from_product([rows["timestamp"].unique(), names], names=["timestamp", VARIANT])
        block = grid.to_frame(index=False).merge(rows[["timestamp", VARIANT, "players"]], how="left")
        block = block.fillna({"players": 0.0}).assign(weight=1.0)
        if weights is not None:
            keys = [name for name in ("timestamp", VARIANT) if name in weights]
            block = block.drop(columns="weight").merge(weights, on=keys, how="left")
        if (lacking := block["weight"].isna()).any():
            name = str(block.loc[lacking, VARIANT].iloc[0])
            raise BadQuery("expected", name, "is a variant without an expected weight on a day that has players", names)
        if (block["weight"] < 0).any():
            raise BadQuery("expected", float(block["weight"].min()), "must be 0 or more")
        by_day = block.groupby("timestamp", dropna=False, sort=False)
        block["target"] = block["weight"] / by_day["weight"].transform("sum") * by_day["players"].transform("sum")
        blocks.append(block.assign(**{EXPERIMENT: rows[EXPERIMENT].iloc[0]} if EXPERIMENT in rows else {}))
    return pd.concat(blocks, ignore_index=True) if blocks else sizes.assign(target=Series(dtype="float64"))


def _weights(expected: Mapping[str, float] | DataFrame | None) -> DataFrame | None:
    """Return the expected weights as a frame of ab_variant_id, weight and any timestamp."""
    if expected is None or isinstance(expected, DataFrame):
        return None if expected is None else expected.astype({VARIANT: "object"})
    return DataFrame({VARIANT: [*expected], "weight": [*map(float, expected.values())]})


def _checked(rows: DataFrame) -> DataFrame:
    """Return the arms of one experiment with the tests of their split."""
    names = [name for name in (EXPERIMENT, VARIANT) if name in rows]
    result = rows.groupby(names, sort=False)[["players", "target"]].sum().reset_index()
    total = _chi_squares(*(DataFrame([result[name].to_numpy()]) for name in ("players", "target")))
    whole = Series(result["players"].sum(), index=result.index)
    p_days, worst_day, p_worst_day = _over_days(rows[rows["timestamp"].notna()])
    return result.assign(
        share=ratio(result["players"], whole),
        expected_share=ratio(result["target"], whole),
        expected_players=result["target"],
        p_value=total["p"].iloc[0],
        p_days=p_days,
        worst_day=Series(worst_day, index=result.index, dtype=_DAY),
        p_worst_day=p_worst_day,
    )


def _joined_days(players: DataFrame, target: DataFrame) -> tuple[DataFrame, DataFrame]:
    """Return both tables, with days joined until the smallest arm expects enough players."""
    least = target.where(target > 0).min(axis=1).fillna(0.0)
    block = (least.cumsum() // _FEWEST).clip(upper=least.sum() // _FEWEST - 1).clip(lower=0)
    first_day = Series(block.index, index=block.index).groupby(block).transform("min")
    return players.groupby(first_day).sum(), target.groupby(first_day).sum()


def _chi_squares(players: DataFrame, target: DataFrame) -> DataFrame:
    """Return chi-square, degrees of freedom and p-value of each row."""
    from scipy import stats

    is_possible = target > 0
    distance = ((players - target) ** 2 / target.where(is_possible)).sum(axis=1)
    is_impossible = ((players > 0) & ~is_possible).any(axis=1)
    degrees = is_possible.sum(axis=1) - 1 + is_impossible
    distance = distance.mask(is_impossible, np.inf)
    p = stats.chi2.sf(distance.to_numpy("float64"), degrees.where(degrees > 0).to_numpy("float64"))
    return DataFrame({"distance": distance, "degrees": degrees, "p": p})


def _over_days(rows: DataFrame) -> tuple[float, Any, float]:
    """Return the p-value of all days together, the worst day and its corrected p-value."""
    from scipy import stats

    tables = [rows.pivot(index="timestamp", columns=VARIANT, values=name) for name in ("players", "target")]
    by_day = _chi_squares(*_joined_days(*tables)) if len(rows) else DataFrame({"degrees": []})
    tested = by_day[by_day["degrees"] > 0]
    if tested.empty:
        return float("nan"), pd.NaT, float("nan")
    p_days = float(stats.chi2.sf(tested["distance"].sum(), tested["degrees"].sum()))
    return p_days, tested["p"].idxmin(), min(1.0, float(tested["p"].min()) * len(tested))
