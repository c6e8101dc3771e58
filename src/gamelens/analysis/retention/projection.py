"""Projection of retention to ages not yet reached, and the value of a player by then.

Reads the frame of `Client.retention`. Bands cover the uncertainty of the observed players and days if the curve is the
right one; they do not cover changes of the game. They are reliable only if ages of a week and more have been reached,
the later the better. For simulated games like published ones (`tests/bench`, ages 1 to 14) a band of 95 % holds D30 and
D90 nine times in ten or more often. A game whose players play on one day in five and stay for months lies at the edge
of the curves' prior: there it is three times in four.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd
from msgspec.structs import replace
from numpy.typing import NDArray
from pandas import DataFrame

from gamelens.analysis.retention.cohort_triangles import cohorts_of, concat_groups
from gamelens.analysis.retention.curve_selection import MODELS, CurveTrial, best_trial, trials_of
from gamelens.analysis.tidy_frames import with_ids, with_receipts_of
from gamelens.analysis.tidy_frames.frame_requirements import ANY, RETENTION, requires
from gamelens.errors import BadQuery

Floats = NDArray[np.float64]


@requires(frame=RETENTION)
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

    The band is parametric: *draws* curves around the fitted one, as uncertain as its players and days leave it, drawn
    with *seed*.

    Args:
        frame: a frame of `retention()`.
        by: the column that makes the groups.
        ages: ages in days.
        model: another curve than `compare_curves` chooses, or "all" for every one.
        confidence: level of the band.
        draws: number of curves drawn.
        seed: of the random numbers; the same seed gives the same band.

    Columns: *by* (category), model (category), age (Int64, days), retention, low, high (float64, 0 to 1), is_projected
    (bool: no install day has reached the age), is_chosen (bool). A group without a fitted curve has NA.

    Raises:
        BadQuery: *frame* is not a frame of `retention()`, *model* is unknown, an age is below 1, *confidence* is not a
            share, or *draws* is below 1.
    """
    _check(model, confidence, ages, draws)
    at = np.array(sorted({*ages}), dtype="int64")
    blocks = []
    for key, cohorts in cohorts_of(frame, by):
        for trial, is_chosen in _selected_trials(trials_of(cohorts), model):
            lines = _band_frame(trial, at, confidence=confidence, draws=_drawn_shares(trial, at, draws, seed))
            is_projected = at > cohorts.ages.max(initial=0)
            blocks.append((key, lines.assign(is_projected=is_projected, is_chosen=is_chosen)))
    empty = _band_frame(None, at[:0], confidence=confidence, draws=None).assign(is_projected=False, is_chosen=False)
    return with_receipts_of(concat_groups(frame, by, blocks, like=empty), frame)


@requires(frame=RETENTION, worth=replace(ANY, metrics=("revenue", "ilrd_revenue", "user_unique"), is_split_by=True))
def ltv(
    frame: DataFrame,
    worth: float | DataFrame,
    by: str | None = None,
    *,
    to: int = 90,
    model: str | None = None,
    confidence: float = 0.95,
    draws: int = 1000,
    seed: int = 0,
) -> DataFrame:
    """Return the revenue of a new player up to each age: days played times ARPDAU.

    The install day counts as one day. *worth* is the ARPDAU, one number or the frame of `revenue.arpdau` by timestamp
    (and *by*); the days of a frame add their own uncertainty to the band, because they are resampled with their players
    for each curve drawn. A day played is assumed to be worth the same at any age, so late ages are overstated if
    players pay on their first days.

    Columns: *by* (category), model (category), age (Int64, 0 to *to*), days_played (float64, per new player, up to that
    age), ltv, low, high (float64, USD per new player), is_projected (bool). A group without a curve or revenue has NA.

    Raises:
        BadQuery: as `project_retention`, or *worth* is neither.
    """
    _check(model, confidence, [to], draws)
    if model == "all":
        raise BadQuery("model", model, "is not one curve", MODELS)
    at, blocks = np.arange(1, to + 1), []
    for key, cohorts in cohorts_of(frame, by):
        rng = np.random.default_rng([seed, 1])
        paid, drawn_paid = _drawn_arpdau(worth, with_ids(frame, by), key, draws=draws, rng=rng)
        for trial, _ in _selected_trials(trials_of(cohorts), model):
            played, drawn_days = _days_played(trial, at, draws=draws, seed=seed)
            lines = _value_frame(trial, played, paid, drawn_days * drawn_paid[:, None], confidence=confidence)
            blocks.append((key, lines.assign(is_projected=(lines["age"] > cohorts.ages.max(initial=0)).astype(bool))))
    empty = _value_frame(None, np.empty(0), np.nan, np.empty((1, 0)), confidence=confidence).assign(is_projected=False)
    sources = [worth] if isinstance(worth, DataFrame) else []
    return with_receipts_of(concat_groups(frame, by, blocks, like=empty), frame, *sources)


def _selected_trials(trials: Sequence[CurveTrial], model: str | None) -> Iterator[tuple[CurveTrial | None, bool]]:
    """Yield the trials to show, each with whether it is the chosen one.

    The trial is None where no curve can be fitted.
    """
    chosen, _ = best_trial(trials)
    if model is None or not any(trial.fitted for trial in trials):
        yield chosen, chosen is not None
        return
    for trial in trials:
        if trial.curve.name == model or (model == "all" and trial.fitted):
            yield (trial if trial.fitted else None), trial is chosen


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


def _value_frame(
    trial: CurveTrial | None, played: Floats, paid: float, draws: Floats, *, confidence: float
) -> DataFrame:
    """Build the rows of `ltv` for one trial."""
    ltv, (low, high) = played * paid, _quantiles(draws, confidence)
    lines = {"days_played": played, "ltv": ltv, "low": np.minimum(low, ltv), "high": np.maximum(high, ltv)}
    return _curve_frame(trial, np.arange(len(played)), lines)


def _curve_frame(trial: CurveTrial | None, ages: NDArray[np.int64], lines: dict[str, Floats]) -> DataFrame:
    """Return columns by age with the model's name in front."""
    model = pd.Categorical([trial.curve.name if trial else None] * len(ages), categories=MODELS)
    return DataFrame({"model": model, "age": pd.array(ages, dtype="Int64"), **lines})


def _days_played(trial: CurveTrial | None, ages: NDArray[np.int64], *, draws: int, seed: int) -> tuple[Floats, Floats]:
    """Return the days played up to each age from 0 on, of the fitted and of drawn curves."""
    if trial is None or trial.fitted is None:
        return np.full(len(ages) + 1, np.nan), np.full((draws, len(ages) + 1), np.nan)
    shares = np.vstack(
        [trial.fitted.shares(ages), trial.fitted.draws(ages, count=draws, rng=np.random.default_rng(seed))]
    )
    played = np.cumsum(np.hstack([np.ones((len(shares), 1)), shares]), axis=1)
    return played[0], played[1:]


def _drawn_arpdau(
    worth: float | DataFrame, keys: Sequence[str], key: Sequence[Any], *, draws: int, rng: np.random.Generator
) -> tuple[float, Floats]:
    """Return the ARPDAU of a group, and *draws* values of it from resampled days.

    Raises:
        BadQuery: *worth* is neither a number nor a frame of `revenue.arpdau`.
    """
    if isinstance(worth, Real):
        return float(worth), np.full(draws, float(worth))
    if not isinstance(worth, DataFrame) or not {"player_days", "arpdau"}.issubset(worth.columns):
        raise BadQuery("worth", type(worth).__name__, "must be a number or a frame of revenue.arpdau")
    rows = worth[worth["arpdau"].notna()]
    for name, value in zip(keys, key, strict=True):
        if name in rows:
            rows = rows[rows[name].isna() if pd.isna(value) else rows[name] == value]
    players = rows["player_days"].to_numpy(dtype="float64")
    money = rows["arpdau"].to_numpy(dtype="float64") * players
    if not players.sum():
        return np.nan, np.full(draws, np.nan)
    days = rng.integers(0, len(rows), (draws, len(rows)))
    return float(money.sum() / players.sum()), money[days].sum(axis=1) / players[days].sum(axis=1)


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
        raise BadQuery("ages", min(ages), "must be 1 or more: on the install day everybody plays")
    if draws < 1:
        raise BadQuery("draws", draws, "must be 1 or more; a band worth looking at takes hundreds")
