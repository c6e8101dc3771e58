"""Tests of an experiment: its split of players, its differences and their uncertainty.

A player's variant is on every event of the player, the install event included, so `new_users`, `retention` and every
other metric by `ab_variant_id` (where `ab_id` is the experiment) are those of the arm.

Shares are compared as a *shares frame*: a row for each variant of each measure, with the columns measure (category),
ab_variant_id (category), players, successes (Int64). `retention_shares` and `conversion_shares` build it. One frame may
hold several experiments, distinguished by ab_id. `revenue_per_player` compares money, `power_analysis` gives the
players that an experiment needs.

The intervals do not cover repeated looks: a test that is read every morning finds a false effect far more often than
one read once, at the end. Nor do they cover many measures: of twenty, one is found by chance, which p_adjusted corrects
within one frame (Holm).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import pandas as pd
from msgspec.structs import replace
from pandas import DataFrame, Series

from gamelens.analysis.experiments.control_comparison import (
    EXPERIMENT,
    MEASURE,
    SHARES,
    VARIANT,
    concat_comparisons,
    control_of,
    differences_frame,
    groups,
    pair_with_control,
)
from gamelens.analysis.retention.retention_rates import average_curve, wilson
from gamelens.analysis.significance import two_sided
from gamelens.analysis.tidy_frames import column_of, ratio, sum_over, with_receipts_of
from gamelens.analysis.tidy_frames.frame_requirements import RETENTION, FrameRequirements, requires, result_of
from gamelens.errors import BadQuery

__all__ = [
    "arms",
    "probability_best",
    "control_of",
    "conversion_shares",
    "differences",
    "retention_shares",
    "sample_ratio",
    "concat_comparisons",
]

SUSPECT: Final = 0.001
"""P-value of the split below which no result of the experiment can be trusted."""
_DRAWS: Final = 100_000
_INSTALLS: Final = FrameRequirements(metrics=("new_users",), splits=(VARIANT,))
_ARMS: Final = result_of("experiments.arms(installs)", VARIANT, "players")


@requires(installs=replace(_INSTALLS, splits=(EXPERIMENT, VARIANT)))
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


@requires(arms=_ARMS)
def sample_ratio(arms: DataFrame, expected: Mapping[str, float] | None = None) -> DataFrame:
    """Compare the split of players with the *expected* weights (Pearson's chi-square).

    Without *expected* the arms of an experiment should be equally large; with it, the frame must hold one experiment,
    and a variant without players gets a row too. A suspect split means that players were lost on the way to one arm, so
    the players left differ in more than number, and no result of the experiment can be trusted.

    Columns: ab_id (category, if there), ab_variant_id (category), players (Int64), share, expected_share (float64, 0
    to 1), expected_players (float64), p_value (float64, of the whole experiment; NA of a single arm), is_suspect
    (boolean).

    Raises:
        BadQuery: *expected* lacks a variant or has a weight below 0, or the frame holds several experiments.
    """
    frame = arms if expected is None else _with_absent_arms(arms, expected)
    checks = [_chi_square(rows, expected or {}) for rows in groups(frame, [EXPERIMENT])]
    columns = ("share", "expected_share", "expected_players", "p_value")
    empty = frame.assign(**dict.fromkeys(columns, Series(dtype="float64")))
    checked = pd.concat(checks, ignore_index=True) if checks else empty
    checked["is_suspect"] = (checked["p_value"] < SUSPECT).astype("boolean")
    return with_receipts_of(checked, arms)


@requires(frame=replace(RETENTION, splits=(VARIANT,)))
def retention_shares(frame: DataFrame) -> DataFrame:
    """Return the shares frame of a retention frame by ab_variant_id.

    It has one measure for each age, such as `D7 retention`. A cohort counts at an age only if it has reached it.

    Columns: those of a shares frame (see the module).
    """
    curve = average_curve(frame[frame[VARIANT].notna()], VARIANT).sort_values(["age", VARIANT])
    names = [f"D{age} retention" for age in curve["age"]]
    return with_receipts_of(_shares_frame(names, curve[VARIANT], curve["installs"], curve["returned"]), frame)


@requires(
    since=("converting", "installs"), installs=_INSTALLS, converting=replace(_INSTALLS, metrics=("converting_users",))
)
def conversion_shares(installs: DataFrame, converting: DataFrame) -> DataFrame:
    """Return the shares of new players who have paid, as a shares frame.

    *installs* is new_users and *converting* is converting_users by ab_variant_id. Both must be of the same players:
    query converting_users where installed_on is one of the install days. Later installs have had less time to pay, in
    every arm alike.

    Columns: those of a shares frame (see the module); the measure is `conversion`.
    """
    new_users = column_of(installs, "new_users", "new_users")
    converting_users = column_of(converting, "converting_users", "converting_users")
    players, payers = _by_variant(installs, new_users), _by_variant(converting, converting_users)
    players = players[players > 0].sort_index()
    payers = payers.reindex(players.index).fillna(0)
    names = ["conversion"] * len(players)
    return with_receipts_of(_shares_frame(names, players.index, players.array, payers.array), installs, converting)


@requires(shares=SHARES)
def differences(shares: DataFrame, *, control: str | None = None, confidence: float = 0.95) -> DataFrame:
    """Return the difference between each variant and the *control*, measure by measure.

    The default control is `control_of`. The interval is Newcombe's, combined from both Wilson intervals, which holds
    its level with few players and with shares near 0; the p-value is that of the score test. Near the limit the two may
    disagree.

    Columns: ab_id (category, if there), measure, ab_variant_id (category), unit ("share"), players, control_players
    (Int64), value, control_value, difference, low, high (float64, shares), relative (float64, of the control's value,
    NA where that is 0), p_value, p_adjusted (float64, 0 to 1).

    Raises:
        BadQuery: *control* has no players.
    """
    pairs = pair_with_control(shares, control, ["players", "successes"])
    n, base_n = (pairs[name].astype("float64") for name in ("players", "control_players"))
    value, base = ratio(pairs["successes"], n), ratio(pairs["control_successes"], base_n)
    low, high = wilson(pairs["successes"], n, confidence=confidence)
    base_low, base_high = wilson(pairs["control_successes"], base_n, confidence=confidence)
    pooled = ratio(pairs["successes"] + pairs["control_successes"], n + base_n)
    error = np.sqrt(pooled * (1 - pooled) * (1 / n + 1 / base_n))
    z = ((value - base) / error.where(error > 0)).fillna(0.0).where((value - base).notna())
    return differences_frame(
        pairs,
        shares,
        unit="share",
        value=value,
        control_value=base,
        low=value - base - np.sqrt((value - low) ** 2 + (base_high - base) ** 2),
        high=value - base + np.sqrt((high - value) ** 2 + (base - base_low) ** 2),
        p_value=Series(two_sided(z.to_numpy("float64", na_value=np.nan)), index=z.index),
    )


@requires(shares=SHARES)
def probability_best(
    shares: DataFrame, *, seed: int = 0, draws: int = _DRAWS, prior: tuple[float, float] = (1.0, 1.0)
) -> DataFrame:
    """Return the probability of each variant to be the best of its measure.

    Every share has a Beta *prior* (flat by default), so its posterior is Beta(prior + successes, prior + failures).
    *draws* samples of it are drawn with *seed*: the same frame gives the same result, exact to about 0.5 / sqrt(draws).

    Columns: ab_id (category, if there), measure, ab_variant_id (category), players (Int64), value (float64), low, high
    (float64, the middle 95 % of the posterior), chance_best (float64, 0 to 1), expected_loss (float64, the share lost
    on average by choosing this variant although another is better).
    """
    rng, results = np.random.default_rng(seed), []
    for rows in groups(shares, [EXPERIMENT, MEASURE]):
        successes = rows["successes"].to_numpy(dtype="float64")[:, None]
        failures = rows["players"].to_numpy(dtype="float64")[:, None] - successes
        posterior = rng.beta(prior[0] + successes, prior[1] + failures, size=(len(rows), draws))
        low, high = np.quantile(posterior, [0.025, 0.975], axis=1)
        is_best = np.bincount(posterior.argmax(axis=0), minlength=len(rows)) / draws
        loss = (posterior.max(axis=0) - posterior).mean(axis=1)
        value = ratio(rows["successes"], rows["players"])
        results.append(rows.assign(value=value, low=low, high=high, chance_best=is_best, expected_loss=loss))
    columns = ("value", "low", "high", "chance_best", "expected_loss")
    empty = shares.assign(**dict.fromkeys(columns, Series(dtype="float64")))
    result = pd.concat(results, ignore_index=True) if results else empty
    return with_receipts_of(result.drop(columns="successes"), shares)


def _by_variant(frame: DataFrame, count: str) -> Series[Any]:
    result = sum_over(frame[frame[VARIANT].notna()], VARIANT, [count]).astype({VARIANT: "object"})
    return result.set_index(VARIANT)[count]


def _shares_frame(measures: Sequence[str], variants: Any, players: Any, successes: Any) -> DataFrame:
    """Build a shares frame."""
    return DataFrame(
        {
            MEASURE: Series(measures, dtype=pd.CategoricalDtype([*dict.fromkeys(measures)])),
            VARIANT: pd.Categorical(variants),
            "players": pd.array(players, dtype="Int64"),
            "successes": pd.array(successes, dtype="Int64"),
        }
    )


def _with_absent_arms(arms: DataFrame, expected: Mapping[str, float]) -> DataFrame:
    """Return the arms, with a row for each expected variant that has no players.

    Raises:
        BadQuery: the frame holds several experiments, *expected* lacks a variant or has a weight below 0.
    """
    if EXPERIMENT in arms and arms[EXPERIMENT].nunique() > 1:
        experiments = sorted(map(str, arms[EXPERIMENT].unique()))
        raise BadQuery("arms", experiments, "are several experiments: with expected= check one at a time")
    present = [str(name) for name in arms[VARIANT]]
    if missing := [name for name in present if name not in expected]:
        raise BadQuery("expected", missing[0], "is a variant without an expected weight", present)
    if negative := [name for name, weight in expected.items() if weight < 0]:
        raise BadQuery("expected", expected[negative[0]], "must be 0 or more")
    absent = [name for name in expected if name not in present]
    absent_arms = DataFrame({VARIANT: absent, "players": pd.array([0] * len(absent), dtype="Int64")})
    if EXPERIMENT in arms and len(arms):
        absent_arms[EXPERIMENT] = arms[EXPERIMENT].iloc[0]
    all_arms = pd.concat([arms.astype({VARIANT: "object"}), absent_arms], ignore_index=True) if absent else arms
    return all_arms.astype({name: "category" for name in (EXPERIMENT, VARIANT) if name in arms})


def _chi_square(rows: DataFrame, expected: Mapping[str, float]) -> DataFrame:
    """Return the arms of one experiment with expected shares and the p-value of their split."""
    from scipy import stats

    players = rows["players"].astype("float64")
    weights = Series([expected.get(str(name), 0.0 if expected else 1.0) for name in rows[VARIANT]], index=rows.index)
    expected_share = ratio(weights, Series(weights.sum(), index=rows.index))
    target = expected_share * players.sum()
    distance = (
        float((((players - target) ** 2)[target > 0] / target[target > 0]).sum()) if target.sum() else float("nan")
    )
    distance = float("inf") if (players[target == 0] > 0).any() else distance
    degrees = int((target > 0).sum()) - 1 + int((players[target == 0] > 0).any())
    p = float(stats.chi2.sf(distance, degrees)) if degrees > 0 else float("nan")
    share = ratio(players, Series(players.sum(), index=rows.index))
    return rows.assign(share=share, expected_share=expected_share, expected_players=target, p_value=p)
