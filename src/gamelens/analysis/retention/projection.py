"""Projection of retention to ages not yet reached.

Reads the frame of `Client.retention`. Bands cover the uncertainty of the observed players and days, and the doubt which
family of curves is right; they do not cover changes of the game. They are reliable only if ages of a week and more have
been reached, the later the better. For simulated games like published ones, and for games whose retention is a power
law or a stretched exponential (`tests/bench`, ages 1 to 14), a band of 95% holds D30 and D90 nine times in ten or more
often.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas import DataFrame

from gamelens.analysis.claims.findings import Finding, reads
from gamelens.analysis.claims.leaders import leader
from gamelens.analysis.retention.cohort_triangles import cohorts_of, concat_groups
from gamelens.analysis.retention.constants import CLEAR_MISFIT
from gamelens.analysis.retention.curve_selection import (
    MODELS,
    CurveTrial,
    averaged,
    best_trial,
    trials_of,
)
from gamelens.analysis.tidy_frames.frame_requirements import RETENTION, requires
from gamelens.analysis.tidy_frames.returned_columns import KEYS, between, named, returns
from gamelens.errors import BadQuery

Floats = NDArray[np.float64]


@requires(frame=RETENTION)
@returns(
    KEYS,
    "model age",
    between("retention", "of the mean of install days, and of the choice of the curve", low="low", high="high"),
    named("is_projected", about="no install day has reached the age"),
    "is_chosen",
    named(
        "fit_p_value",
        about="of the family that fits best; below 0.01 none fits, and the bands are wider by as much as the "
        "counts lie farther off than chance and days put them",
    ),
)
def project_retention(
    frame: DataFrame,
    by: str | None = None,
    *,
    ages: Sequence[int] = range(1, 91),
    model: str | None = None,
    confidence: float = 0.95,
    draws: int = 1000,
    seed: int = 0,
) -> DataFrame:
    """Return retention at *ages*, reached or not, on the chosen curve, with a band.

        cohorts = lens.retention([1, 2, 3, 5, 7, 14, 21], by="game", over="last 28 complete days")
        retention.project_retention(cohorts, by="game", ages=[30, 90])

    The line is the chosen curve. Its band comes from *draws* curves of all families that `compare_curves` weighs,
    drawn with *seed*, each as uncertain as its players, its days and its lack of fit leave it. So it covers the doubt
    about the family, which is the larger part once the ages counted are few. A curve that *model* names has the band of
    its family alone.

    Args:
        frame: a frame of `retention()`.
        by: the column that makes the groups.
        ages: ages in days.
        model: another curve than `compare_curves` chooses, or "all" for every one.
        confidence: level of the band.
        draws: number of curves drawn.
        seed: of the random numbers; the same seed gives the same band.

    A group without a fitted curve has NA. Claims: "retention ahead", of the last age.

    Raises:
        BadQuery: *frame* is not a frame of `retention()`, *model* is unknown, an age is below 1, *confidence* is not a
            share, or *draws* is below 1.
    """
    _check(model, confidence, ages, draws)
    at = np.array(sorted({*ages}), dtype="int64")
    blocks = []
    for key, cohorts in cohorts_of(frame, by):
        trials = trials_of(cohorts)
        best_fit = max((trial.fit_p_value for trial in trials if trial.fitted), default=np.nan)
        for trial, is_chosen in _selected_trials(trials, model):
            lines = _band_frame(trial, at, confidence=confidence, draws=_drawn_shares(trial, at, draws, seed))
            is_projected = at > cohorts.ages.max(initial=0)
            blocks.append((key, lines.assign(is_projected=is_projected, is_chosen=is_chosen, fit_p_value=best_fit)))
    empty = _band_frame(None, at[:0], confidence=confidence, draws=None)
    empty = empty.assign(is_projected=False, is_chosen=False, fit_p_value=0.0)
    return concat_groups(frame, by, blocks, like=empty)


@reads("retention.project_retention")
def _read_ahead(ahead: DataFrame, by: str | None) -> Iterator[Finding]:
    """Say which value of *by* keeps most players until the last age; bands that overlap may still differ."""
    last = ahead["age"].max()
    rows = ahead[(ahead["age"] == last) & ahead["retention"].notna() & ahead["is_chosen"]]
    doubt = float(rows["fit_p_value"].min()) if len(rows) else math.nan
    numbers = {"age": last, "misfit": doubt if doubt < CLEAR_MISFIT else None}
    yield leader(rows, by, "retention", kind="retention ahead", unit="share", numbers=numbers)


def _selected_trials(trials: Sequence[CurveTrial], model: str | None) -> Iterator[tuple[CurveTrial | None, bool]]:
    """Yield the trials to show, each with whether it is the chosen one.

    The trial is None where no curve can be fitted.
    """
    chosen, _ = best_trial(trials)
    if model is None or not any(trial.fitted for trial in trials):
        yield (averaged(trials, chosen) if chosen else None), chosen is not None
        return
    for trial in trials:
        if trial.curve.name == model or (model == "all" and trial.fitted):
            is_averaged = model == "all" and trial is chosen
            yield (averaged(trials, trial) if is_averaged else trial if trial.fitted else None), trial is chosen


def _drawn_shares(trial: CurveTrial | None, ages: NDArray[np.int64], draws: int, seed: int) -> Floats | None:
    """Draw curves around the fitted one, shape (draws, ages), or return None without a fit."""
    if trial is None or trial.fitted is None:
        return None
    return trial.fitted.draws(ages, count=draws, rng=np.random.default_rng(seed))


def _band_frame(
    trial: CurveTrial | None, ages: NDArray[np.int64], *, confidence: float, draws: Floats | None
) -> DataFrame:
    """Build the rows of `project_retention` for one trial."""
    missing = np.full(len(ages), np.nan)
    shares = trial.fitted.shares(ages) if trial and trial.fitted else missing
    low, high = _quantiles(draws, confidence) if draws is not None else (missing, missing)
    lines = {"retention": shares, "low": np.minimum(low, shares), "high": np.maximum(high, shares)}
    return _curve_frame(trial, ages, lines)


def _curve_frame(trial: CurveTrial | None, ages: NDArray[np.int64], lines: dict[str, Floats]) -> DataFrame:
    """Return columns by age with the model's name in front."""
    model = pd.Categorical([trial.curve.name if trial else None] * len(ages), categories=MODELS)
    return DataFrame({"model": model, "age": pd.array(ages, dtype="Int64"), **lines})


def _quantiles(draws: Floats, confidence: float) -> tuple[Floats, Floats]:
    low, high = np.quantile(draws, [(1 - confidence) / 2, (1 + confidence) / 2], axis=0)
    return low, high


def _check(model: str | None, confidence: float, ages: Sequence[int], draws: int) -> None:
    """Raise `BadQuery` if an argument is out of range."""
    if model not in (None, "all", *MODELS):
        raise BadQuery("model", model, "is not a curve", [*MODELS, "all"])
    if not 0 < confidence < 1:
        raise BadQuery("confidence", confidence, "must lie between 0 and 1")
    if any(age < 1 for age in ages):
        raise BadQuery("ages", min(ages), "must be 1 or more: retention on the install day is 100% by definition")
    if draws < 1:
        raise BadQuery("draws", draws, "must be 1 or more; a useful band takes hundreds")
