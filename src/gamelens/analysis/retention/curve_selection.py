"""Choice of a retention curve: each is fitted, and tested on ages it was not fitted to.

Reads the frame of `Client.retention`. A group with too few cells to fit raises no error: its rows give the reason.
Numbers in brackets are the formulas of the page "Retention curves" (`docs/pages/explanation/method-curves.md`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import pandas as pd
from pandas import DataFrame, Series

from gamelens.analysis.claims.findings import Clause, Finding, reads
from gamelens.analysis.retention.cohort_triangles import CohortTriangle, cohorts_of, concat_groups
from gamelens.analysis.retention.constants import CLEAR_DIFFERENCE, CLEAR_MISFIT, TEMPER, TEST_DIVISOR
from gamelens.analysis.retention.day_variation import chance_and_days, day_variance
from gamelens.analysis.retention.retention_curves import (
    BG_BB,
    CURVES,
    AveragedCurve,
    FittedCurve,
    Floats,
    RetentionCurve,
    fit,
    lack_of_fit,
    misfit,
)
from gamelens.analysis.tidy_frames.columns import Column
from gamelens.analysis.tidy_frames.frame_requirements import RETENTION, requires
from gamelens.analysis.tidy_frames.returned_columns import KEYS, named, returns

CLEARLY_BETTER: Final = "clearly_better"
"""The reason for another curve than BG/BB."""

MODELS: Final = [curve.name for curve in CURVES]


@dataclass(frozen=True, eq=False, slots=True)
class CurveTrial:
    """A curve fitted to some cohorts, and its prediction of the latest ages.

    The prediction comes from a fit to the earlier ages.

    Attributes:
        curve: the family of curves.
        fitted: the fit to all ages, or None if the curve cannot be fitted.
        reason: why it cannot be fitted, "too_few_ages" or "all_alike", else "".
        misfit: binomial deviance of all counts.
        held_out: number of latest ages that were predicted.
        held_out_misfit: deviance of the held-out counts.
        held_out_error: players predicted wrongly / players who returned.
        lack_of_fit: chi-squared distance of all counts, chance and differing days taken into account.
        degrees: ages beyond the parameters, the degrees of freedom of *lack_of_fit*.
        weight: probability of the family among the fitted ones.
    """

    curve: RetentionCurve
    fitted: FittedCurve | None = None
    reason: str = ""
    misfit: float = np.nan
    lack_of_fit: float = np.nan
    degrees: int = 0
    weight: float = np.nan
    held_out: int = 0
    held_out_misfit: float = np.nan
    held_out_error: float = np.nan

    @property
    def fit_p_value(self) -> float:
        """Probability that counts of this family lie as far from it, (6), NaN if it was not fitted."""
        from scipy.special import chdtrc

        return float(chdtrc(self.degrees, self.lack_of_fit)) if self.fitted else np.nan


@requires(frame=RETENTION)
@returns(
    KEYS,
    "model",
    Column("parameters", "count"),
    Column("ages", "count", about="ages reached"),
    Column("ages_needed", "count"),
    Column("misfit", "number", about="binomial deviance, 0 through every point"),
    Column("aic", "number", "AIC"),
    Column("held_out", "count", about="ages predicted"),
    "held_out_misfit",
    named("held_out_error", about="players predicted wrongly / players who returned"),
    "is_chosen",
    Column(
        "why",
        "text",
        about='the reason for the choice, such as "best" or "clearly_better", or why the curve cannot be fitted, '
        '"too_few_ages" or "all_alike"; "" for the others',
    ),
    named("fit_p_value", about="how often counts of this curve would lie as far from it by chance and differing days"),
    named("weight", about="probability among the fitted curves, the share of each in the band of `project_retention`"),
)
def compare_curves(frame: DataFrame, by: str | None = None) -> DataFrame:
    """Return the fit of every curve for each value of *by*, and the curve that is chosen.

        cohorts = lens.retention([1, 2, 3, 5, 7, 14, 21], over="last 28 complete days")
        retention.compare_curves(cohorts)

    BG/BB is chosen unless another curve, fitted to the earlier ages only, predicts the latest third of the ages clearly
    better, and fits all ages better as well (*weight*): then that one. With fewer ages than BG/BB needs, the shifted
    beta-geometric is chosen.

    A curve that was not fitted has NA. Claims: "retention curve".

    Raises:
        BadQuery: *frame* is not a frame of `retention()`.
    """
    blocks = [(key, _comparison_frame(trials_of(cohorts), cohorts)) for key, cohorts in cohorts_of(frame, by)]
    return concat_groups(frame, by, blocks, like=_comparison_frame((), None))


@reads("retention.compare_curves")
def _read_choice(comparison: DataFrame) -> Iterator[Finding]:
    """Say which curve is taken and why; of several groups, how often each."""
    chosen = comparison[comparison["is_chosen"]]
    if len(chosen) > 1:
        counts = chosen["model"].astype(str).value_counts()
        parts = [Clause("for_groups", {"model": model, "count": int(count)}) for model, count in counts.items()]
        numbers: dict[str, Any] = {"groups": len(chosen), "choices": parts}
        yield Finding(kind="retention curve", case="several", judged="model", numbers=numbers)
        return
    rows = comparison.to_dict("records")
    simplest = rows[-1] if rows else {}
    if chosen.empty:
        numbers = {name: simplest.get(name) for name in ("ages_needed", "ages")}
        yield Finding(kind="retention curve", case=simplest.get("why", "nobody"), numbers=numbers)
        return
    row, p_value = chosen.iloc[0], float(comparison["fit_p_value"].max())
    tested = [curve for curve in rows if curve["held_out_error"] >= 0]
    is_rejected = row["fit_p_value"] < CLEAR_MISFIT <= p_value
    fitting = [str(curve["model"]) for curve in rows if curve["fit_p_value"] >= CLEAR_MISFIT]
    is_clear = row["why"] == CLEARLY_BETTER
    yield Finding(
        kind="retention curve",
        case=row["why"],
        subject={"model": str(row["model"])},
        direction="unknown" if pd.isna(row["held_out"]) else "higher" if is_clear else "no clear difference",
        size=float(row["held_out_misfit"]),
        unit="deviance",
        judged="model",
        numbers={
            "first": BG_BB.name,
            "ages_needed": rows[0]["ages_needed"],
            **{name: row[name] for name in ("ages", "held_out")},
            "misfits": [
                Clause("misfit", {key: curve[key] for key in ("model", "held_out_misfit")}) for curve in tested
            ],
            "fit_p_value": p_value if p_value < CLEAR_MISFIT else None,
            "rejected": row["fit_p_value"] if is_rejected else None,
            "fitting": fitting if is_rejected else [],
        },
    )


def trials_of(cohorts: CohortTriangle) -> list[CurveTrial]:
    """Return the trial of every curve on *cohorts*."""
    variance = day_variance(cohorts).prudent()
    held_out = max(1, len(cohorts.ages) // TEST_DIVISOR)
    return _weighed([_trial(curve, cohorts, variance, held_out) for curve in CURVES], cohorts, variance)


def best_trial(trials: Sequence[CurveTrial]) -> tuple[CurveTrial | None, str]:
    """Return the chosen trial and the reason, a case of the words on curves, or None if no curve can be fitted: (9)."""
    fitted = [trial for trial in trials if trial.fitted]
    if not fitted:
        return None, ""
    first = fitted[0]
    if first.curve is not BG_BB:
        return first, "simpler"
    tested = [trial for trial in fitted if trial.held_out]
    if first not in tested:
        return first, "untested"
    likely = [trial for trial in tested if trial is first or trial.weight > first.weight]
    best = min(likely, key=lambda trial: trial.held_out_misfit)
    if best is first:
        return first, "best" if len(likely) == len(tested) else "best_of_likely"
    if best.held_out_misfit < first.held_out_misfit - CLEAR_DIFFERENCE:
        return best, CLEARLY_BETTER
    return first, "none_clearly_better"


def averaged(trials: Sequence[CurveTrial], chosen: CurveTrial) -> CurveTrial:
    """Return *chosen* with draws of all fitted families, each as often as it weighs."""
    if chosen.fitted is None:
        return chosen
    rivals = tuple(trial.fitted for trial in trials if trial.fitted)
    weights = tuple(trial.weight for trial in trials if trial.fitted)
    fitted = chosen.fitted
    return replace(chosen, fitted=AveragedCurve(fitted.curve, fitted.point, fitted.covariance, rivals, weights))


def _weighed(trials: Sequence[CurveTrial], cohorts: CohortTriangle, variance: Floats) -> list[CurveTrial]:
    """Return the trials with lack of fit and weight, their parameters less certain for it.

    These are Akaike's weights for overdispersed counts (Burnham and Anderson 2002): the lack of fit relative to the
    best family's, and 2 for each parameter. They are tempered, because a family that is nearer at the ages counted
    is not as much nearer beyond them.
    """
    nearest = min((trial for trial in trials if trial.fitted), key=lambda trial: trial.misfit, default=None)
    if nearest is None or nearest.fitted is None:
        return list(trials)
    noise = chance_and_days(cohorts, nearest.fitted.shares(cohorts.ages), variance)  # (ages, ages)
    parameters = np.array([len(trial.curve.centre) for trial in trials], dtype="float64")  # (families,) as the next
    degrees = np.array([len(cohorts.ages) - len(trial.curve.centre) for trial in trials])
    lacks = np.array([lack_of_fit(trial.fitted, cohorts, noise=noise) if trial.fitted else np.inf for trial in trials])
    dispersion = max(1.0, float((lacks / np.maximum(degrees, 1)).min()))  # (7)
    criteria = lacks / dispersion + 2 * parameters
    weights = np.exp(TEMPER * (criteria.min() - criteria) / 2)  # (8)
    weights /= weights.sum()
    return [
        replace(
            trial,
            fitted=replace(trial.fitted, covariance=trial.fitted.covariance * dispersion),
            lack_of_fit=lack,
            degrees=int(degree),
            weight=weight,
        )
        if trial.fitted
        else trial
        for trial, lack, degree, weight in zip(trials, lacks.tolist(), degrees, weights.tolist(), strict=True)
    ]


def _trial(curve: RetentionCurve, cohorts: CohortTriangle, variance: Floats, held_out: int) -> CurveTrial:
    """Fit *curve* to *cohorts*, (5), and test it on the last *held_out* ages."""
    reason = _reason_not_fitted(curve, cohorts)
    if reason:
        return CurveTrial(curve, reason=reason)
    fitted = fit(curve, cohorts, variance=variance)
    early = cohorts.until(len(cohorts.ages) - held_out)
    if _reason_not_fitted(curve, early):
        return CurveTrial(curve, fitted, misfit=misfit(fitted, cohorts))
    predicted, latest = fit(curve, early), cohorts.since(len(early.ages))
    reached, returned = latest.totals_by_age()
    error = float(np.abs(predicted.shares(latest.ages) * reached - returned).sum())
    return CurveTrial(
        curve,
        fitted,
        misfit=misfit(fitted, cohorts),
        held_out=held_out,
        held_out_misfit=misfit(predicted, latest),
        held_out_error=error / returned.sum() if returned.sum() else np.nan,
    )


def _reason_not_fitted(curve: RetentionCurve, cohorts: CohortTriangle) -> str:
    """Return why *curve* cannot be fitted to *cohorts*, a case of the words on curves, or "" if it can."""
    if len(cohorts.ages) < curve.fewest_ages:
        return "too_few_ages"
    has_both = cohorts.returned.any() and (cohorts.returned < cohorts.installs).any()
    return "" if has_both else "all_alike"


def _comparison_frame(trials: Sequence[CurveTrial], cohorts: CohortTriangle | None) -> DataFrame:
    """Build the rows of `compare_curves` for one group."""
    chosen, why = best_trial(trials)
    held_out = [trial.held_out or pd.NA for trial in trials]
    sizes = [len(trial.curve.centre) for trial in trials]
    fits = np.array([trial.misfit for trial in trials], dtype="float64")
    return DataFrame(
        {
            "model": pd.Categorical([trial.curve.name for trial in trials], categories=MODELS),
            "parameters": pd.array(sizes, dtype="Int64"),
            "ages": pd.array([len(cohorts.ages) if cohorts else 0] * len(trials), dtype="Int64"),
            "ages_needed": pd.array([trial.curve.fewest_ages for trial in trials], dtype="Int64"),
            "misfit": fits,
            "aic": fits + 2 * np.array(sizes, dtype="float64"),
            "held_out": pd.array(held_out, dtype="Int64"),
            "held_out_misfit": np.array([trial.held_out_misfit for trial in trials], dtype="float64"),
            "held_out_error": np.array([trial.held_out_error for trial in trials], dtype="float64"),
            "is_chosen": np.array([trial is chosen for trial in trials], dtype=bool),
            "why": Series([why if trial is chosen else trial.reason for trial in trials], dtype="str"),
            "fit_p_value": np.array([trial.fit_p_value for trial in trials], dtype="float64"),
            "weight": np.array([trial.weight for trial in trials], dtype="float64"),
        }
    )
