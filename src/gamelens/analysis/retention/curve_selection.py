"""Which curve to believe: each one fitted, and tried on days it has not seen.

Reads the frame of `Client.retention`. A group with too little to fit is not refused with its neighbours: its rows name
the rule it breaks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pandas as pd
from pandas import DataFrame, Series

from gamelens.analysis.retention.cohort_triangles import CohortTriangle, cohorts_of, concat_groups
from gamelens.analysis.retention.day_variation import day_variance
from gamelens.analysis.retention.retention_curves import BG_BB, CURVES, FittedCurve, RetentionCurve, fit, misfit
from gamelens.analysis.tidy_frames import with_receipts_of

CLEARLY: Final = 4.0
"""A curve is clearly better than another when its misfit of the held-out ages is lower by this (7 times likelier)."""

MODELS: Final = [curve.name for curve in CURVES]
_HELD_OUT_SHARE: Final = 3


@dataclass(frozen=True, eq=False, slots=True)
class CurveTrial:
    """A curve on some cohorts: fitted to all ages, and how well the latest are foretold by the earlier ones."""

    curve: RetentionCurve
    fitted: FittedCurve | None = None
    refused: str = ""
    misfit: float = np.nan
    held_out: int = 0
    held_out_misfit: float = np.nan
    held_out_error: float = np.nan


def compare_curves(frame: DataFrame, by: str | None = None) -> DataFrame:
    """Every curve for each value of *by*, how well it fits, and which one is taken.

    BG/BB is taken, unless another foretells the latest third of the ages clearly better when it sees the earlier ones
    only: then that one. Where fewer ages have come than BG/BB needs, the shifted beta-geometric is.

    Columns: *by* (category), model (category), parameters, ages (Int64, ages that have come), misfit (float64, binomial
    deviance, 0 through every point), aic (float64), held_out (Int64, ages foretold), held_out_misfit (float64),
    held_out_error (float64, players foretold wrongly / players who came), is_chosen (bool), why (str: why it is taken,
    or the rule by which it cannot be fitted; empty otherwise). A curve that was not fitted has NA.

    Raises:
        BadQuery: not a frame of `retention()`.
    """
    blocks = [(key, _compared(trials_of(cohorts), cohorts)) for key, cohorts in cohorts_of(frame, by)]
    return with_receipts_of(concat_groups(frame, by, blocks, like=_compared((), None)), frame)


def verdict(comparison: DataFrame) -> str:
    """In one sentence, which curve `compare_curves` takes and why; where several groups were compared, how often which."""
    chosen = comparison[comparison["is_chosen"]]
    if not len(chosen):
        rules = comparison["why"].tolist()
        return (
            f"No curve can be fitted: even the simplest {rules[-1]}." if rules else "There are no new players to fit."
        )
    if len(chosen) == 1:
        return f"The {chosen['model'].iloc[0]} curve is taken: {chosen['why'].iloc[0]}."
    counts = chosen["model"].astype(str).value_counts()
    parts = [f"the {model} curve for {count}" for model, count in counts.items()]
    return f"Of {len(chosen)} groups that can be fitted, we take {' and '.join(parts)}, whichever foretells better."


def trials_of(cohorts: CohortTriangle) -> list[CurveTrial]:
    """Every curve tried on *cohorts*."""
    variance = day_variance(cohorts)
    held_out = max(1, len(cohorts.ages) // _HELD_OUT_SHARE)
    return [_trial(curve, cohorts, variance, held_out) for curve in CURVES]


def best_trial(trials: Sequence[CurveTrial]) -> tuple[CurveTrial | None, str]:
    """The trial that is taken, and why."""
    fitted = [trial for trial in trials if trial.fitted]
    if not fitted:
        return None, ""
    first = fitted[0]
    if first.curve is not BG_BB:
        return first, f"{BG_BB.name} {trials[0].refused}, and this is the nearest to it with a parameter less"
    judged = [trial for trial in fitted if trial.held_out]
    if first not in judged:
        return first, "too few ages have come to hold any out and try it on them"
    best = min(judged, key=lambda trial: trial.held_out_misfit)
    ages = f"the latest {first.held_out} age{'' if first.held_out == 1 else 's'}"
    if best is first:
        return first, f"it foretells {ages} best, {_off(judged)}"
    if best.held_out_misfit < first.held_out_misfit - CLEARLY:
        return best, f"it foretells {ages} clearly better than {BG_BB.name}, {_off(judged)}"
    return first, f"no other curve foretells {ages} clearly better, {_off(judged)}"


def _trial(curve: RetentionCurve, cohorts: CohortTriangle, variance: float, held_out: int) -> CurveTrial:
    refused = _refusal(curve, cohorts)
    if refused:
        return CurveTrial(curve, refused=refused)
    fitted = fit(curve, cohorts, variance=variance)
    seen = cohorts.until(len(cohorts.ages) - held_out)
    if _refusal(curve, seen):
        return CurveTrial(curve, fitted, misfit=misfit(fitted, cohorts))
    foretold, latest = fit(curve, seen), cohorts.since(len(seen.ages))
    reached, returned = latest.known()
    wrong = float(np.abs(foretold.shares(latest.ages) * reached - returned).sum())
    return CurveTrial(
        curve,
        fitted,
        misfit=misfit(fitted, cohorts),
        held_out=held_out,
        held_out_misfit=misfit(foretold, latest),
        held_out_error=wrong / returned.sum() if returned.sum() else np.nan,
    )


def _refusal(curve: RetentionCurve, cohorts: CohortTriangle) -> str:
    """The rule by which *curve* cannot be fitted to *cohorts*; empty where it can."""
    if len(cohorts.ages) < curve.fewest_ages:
        return f"needs {curve.fewest_ages} ages that install days have reached, there are {len(cohorts.ages)}"
    has_both = cohorts.returned.any() and (cohorts.returned < cohorts.installs).any()
    return "" if has_both else "needs players who came back and players who did not"


def _off(judged: Sequence[CurveTrial]) -> str:
    parts = [f"{trial.curve.name} {trial.held_out_error:.1%}" for trial in judged if trial.held_out_error >= 0]
    return f"off by: {', '.join(parts)}" if parts else "where nobody came back"


def _compared(trials: Sequence[CurveTrial], cohorts: CohortTriangle | None) -> DataFrame:
    chosen, why = best_trial(trials)
    held = [trial.held_out or pd.NA for trial in trials]
    sizes = [len(trial.curve.centre) for trial in trials]
    fits = np.array([trial.misfit for trial in trials], dtype="float64")
    return DataFrame(
        {
            "model": pd.Categorical([trial.curve.name for trial in trials], categories=MODELS),
            "parameters": pd.array(sizes, dtype="Int64"),
            "ages": pd.array([len(cohorts.ages) if cohorts else 0] * len(trials), dtype="Int64"),
            "misfit": fits,
            "aic": fits + 2 * np.array(sizes, dtype="float64"),
            "held_out": pd.array(held, dtype="Int64"),
            "held_out_misfit": np.array([trial.held_out_misfit for trial in trials], dtype="float64"),
            "held_out_error": np.array([trial.held_out_error for trial in trials], dtype="float64"),
            "is_chosen": np.array([trial is chosen for trial in trials], dtype=bool),
            "why": Series([why if trial is chosen else trial.refused for trial in trials], dtype="str"),
        }
    )
