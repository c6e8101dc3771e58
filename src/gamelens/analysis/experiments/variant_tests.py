"""What an experiment changed, and how sure we can be.

A player's variant travels on every event of the player, the install event included, so `new_users`, `retention` and
whatever else is asked by `ab_variant_id` (where `ab_id` is the experiment) are those of the arm.

Everything that is a share is compared as *shares*: a frame with a row for each variant of each measure and the columns
measure (category), ab_variant_id (category), players, successes (Int64); `retention_shares` and `conversion_shares` make it. Several
experiments may stand in one frame, told apart by ab_id. Money per player is compared by `spending`, and how many
players it takes says `power`.

What the intervals do not cover: who looks every morning finds "something" far more often than who looks once, at the
end; and of twenty measures one is found by chance, which p_adjusted takes into account for those of one frame (Holm).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import pandas as pd
from pandas import DataFrame, Series

from gamelens.analysis.experiments.control_comparison import (
    EXPERIMENT,
    MEASURE,
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
"""Below this chance the split of the players is broken, and no result can be trusted."""
_DRAWS: Final = 100_000


def arms(installs: DataFrame) -> DataFrame:
    """The arms of every experiment, from new_users by ab_id and ab_variant_id; players of no experiment left out.

    Columns: ab_id, ab_variant_id (category), players (Int64). Largest experiment first, its arms by name.
    """
    count = column_of(installs, "new_users", "new_users")
    known = installs[installs[EXPERIMENT].notna() & installs[VARIANT].notna()]
    made = sum_over(known, [EXPERIMENT, VARIANT], [count]).rename(columns={count: "players"})
    size = made.groupby(EXPERIMENT, observed=True)["players"].transform("sum")
    made = made.assign(size=size).sort_values(["size", EXPERIMENT, VARIANT], ascending=[False, True, True])
    return with_receipts_of(made.drop(columns="size").reset_index(drop=True), installs)


def sample_ratio(arms: DataFrame, expected: Mapping[str, float] | None = None) -> DataFrame:
    """Whether the players were split as intended: Pearson's chi-square against the *expected* weights of the variants.

    Without *expected* the arms of an experiment should be equally large; with it, the frame must hold one experiment,
    and a variant that nobody is in gets a row too. A split that is off (is_suspect) means that players got lost on the
    way to one arm: those who are there differ, and not only in number.

    Columns: ab_id (category, if there), ab_variant_id (category), players (Int64), share, expected_share (float64, 0
    to 1), expected_players (float64), p_value (float64, of the whole experiment; NA of a single arm), is_suspect
    (boolean).

    Raises:
        BadQuery: *expected* lacks a variant or has a weight below 0, or the frame holds several experiments.
    """
    frame = arms if expected is None else _with_all(arms, expected)
    made = [_split(rows, expected or {}) for rows in groups(frame, [EXPERIMENT])]
    columns = ("share", "expected_share", "expected_players", "p_value")
    nothing = frame.assign(**dict.fromkeys(columns, Series(dtype="float64")))
    checked = pd.concat(made, ignore_index=True) if made else nothing
    checked["is_suspect"] = (checked["p_value"] < SUSPECT).astype("boolean")
    return with_receipts_of(checked, arms)


def retention_shares(frame: DataFrame) -> DataFrame:
    """The shares of a retention frame by ab_variant_id: one measure for each age, such as `D7 retention`.

    Columns: those of the module's docstring. A cohort counts at an age only when that day has come for it.
    """
    curve = average_curve(frame[frame[VARIANT].notna()], VARIANT).sort_values(["age", VARIANT])
    names = [f"D{age} retention" for age in curve["age"]]
    return with_receipts_of(_shares(names, curve[VARIANT], curve["installs"], curve["returned"]), frame)


def conversion_shares(installs: DataFrame, converting: DataFrame) -> DataFrame:
    """The shares of new players who have paid, from new_users and converting_users by ab_variant_id.

    Both must be of the same players: ask for converting_users where installed_on is one of the install days. Players
    who came late have had less time to pay, alike in every arm.

    Columns: those of the module's docstring; the measure is `conversion`.
    """
    came = column_of(installs, "new_users", "new_users")
    paid = column_of(converting, "converting_users", "converting_users")
    players, payers = _by_variant(installs, came), _by_variant(converting, paid)
    players = players[players > 0].sort_index()
    payers = payers.reindex(players.index).fillna(0)
    names = ["conversion"] * len(players)
    return with_receipts_of(_shares(names, players.index, players.array, payers.array), installs, converting)


def differences(shares: DataFrame, *, control: str | None = None, confidence: float = 0.95) -> DataFrame:
    """Every variant against the *control* (by default `control_of`), measure by measure.

    The interval is Newcombe's, made of both Wilson intervals, which keeps its promise with few players and with shares
    near 0; the p-value is that of the score test. The two may disagree right at the edge.

    Columns: ab_id (category, if there), measure, ab_variant_id (category), unit ("share"), players, control_players
    (Int64), value, control_value, difference, low, high (float64, shares), relative (float64, of the control's value,
    NA where that is 0), p_value, p_adjusted (float64, 0 to 1).

    Raises:
        BadQuery: nobody is in *control*.
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


def probability_best(
    shares: DataFrame, *, seed: int = 0, draws: int = _DRAWS, prior: tuple[float, float] = (1.0, 1.0)
) -> DataFrame:
    """How likely each variant is the best of its measure, given a Beta *prior* on every share (flat by default).

    The posterior of a share is Beta(prior + successes, prior + failures); *draws* of it are made with *seed*, so that
    the same frame gives the same answer, true to about 0.5 / sqrt(draws).

    Columns: ab_id (category, if there), measure, ab_variant_id (category), players (Int64), value (float64), low, high
    (float64, the middle 95 % of the posterior), chance_best (float64, 0 to 1), expected_loss (float64, the share given
    up on average by whoever chooses it though another is better).
    """
    rng, made = np.random.default_rng(seed), []
    for rows in groups(shares, [EXPERIMENT, MEASURE]):
        won = rows["successes"].to_numpy(dtype="float64")[:, None]
        lost = rows["players"].to_numpy(dtype="float64")[:, None] - won
        drawn = rng.beta(prior[0] + won, prior[1] + lost, size=(len(rows), draws))
        low, high = np.quantile(drawn, [0.025, 0.975], axis=1)
        is_best = np.bincount(drawn.argmax(axis=0), minlength=len(rows)) / draws
        loss = (drawn.max(axis=0) - drawn).mean(axis=1)
        value = ratio(rows["successes"], rows["players"])
        made.append(rows.assign(value=value, low=low, high=high, chance_best=is_best, expected_loss=loss))
    columns = ("value", "low", "high", "chance_best", "expected_loss")
    nothing = shares.assign(**dict.fromkeys(columns, Series(dtype="float64")))
    judged = pd.concat(made, ignore_index=True) if made else nothing
    return with_receipts_of(judged.drop(columns="successes"), shares)


def _by_variant(frame: DataFrame, count: str) -> Series[Any]:
    made = sum_over(frame[frame[VARIANT].notna()], VARIANT, [count]).astype({VARIANT: "object"})
    return made.set_index(VARIANT)[count]


def _shares(measures: Sequence[str], variants: Any, players: Any, successes: Any) -> DataFrame:
    """The frame that the module's docstring promises."""
    return DataFrame(
        {
            MEASURE: Series(measures, dtype=pd.CategoricalDtype([*dict.fromkeys(measures)])),
            VARIANT: pd.Categorical(variants),
            "players": pd.array(players, dtype="Int64"),
            "successes": pd.array(successes, dtype="Int64"),
        }
    )


def _with_all(arms: DataFrame, expected: Mapping[str, float]) -> DataFrame:
    """The arms, those that nobody is in too."""
    if EXPERIMENT in arms and arms[EXPERIMENT].nunique() > 1:
        found = sorted(map(str, arms[EXPERIMENT].unique()))
        raise BadQuery("arms", found, "are several experiments: with expected= check one at a time")
    there = [str(name) for name in arms[VARIANT]]
    if lost := [name for name in there if name not in expected]:
        raise BadQuery("expected", lost[0], "is a variant without an expected weight", there)
    if below := [name for name, weight in expected.items() if weight < 0]:
        raise BadQuery("expected", expected[below[0]], "must be 0 or more")
    absent = [name for name in expected if name not in there]
    more = DataFrame({VARIANT: absent, "players": pd.array([0] * len(absent), dtype="Int64")})
    if EXPERIMENT in arms and len(arms):
        more[EXPERIMENT] = arms[EXPERIMENT].iloc[0]
    every = pd.concat([arms.astype({VARIANT: "object"}), more], ignore_index=True) if absent else arms
    return every.astype({name: "category" for name in (EXPERIMENT, VARIANT) if name in arms})


def _split(rows: DataFrame, expected: Mapping[str, float]) -> DataFrame:
    from scipy import stats

    players = rows["players"].astype("float64")
    weights = Series([expected.get(str(name), 0.0 if expected else 1.0) for name in rows[VARIANT]], index=rows.index)
    meant = ratio(weights, Series(weights.sum(), index=rows.index))
    due = meant * players.sum()
    distance = float((((players - due) ** 2)[due > 0] / due[due > 0]).sum()) if due.sum() else float("nan")
    distance = float("inf") if (players[due == 0] > 0).any() else distance
    degrees = int((due > 0).sum()) - 1 + int((players[due == 0] > 0).any())
    p = float(stats.chi2.sf(distance, degrees)) if degrees > 0 else float("nan")
    share = ratio(players, Series(players.sum(), index=rows.index))
    return rows.assign(share=share, expected_share=meant, expected_players=due, p_value=p)
