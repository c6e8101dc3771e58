"""Retention frames with the dtypes the client promises, from counts: typed by hand, expected, or drawn."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd
from pandas import DataFrame

FIRST_DAY = pd.Timestamp("2026-11-01", tz="UTC")


def frame_of(
    installs: Sequence[int], returned: np.ndarray, ages: Sequence[int], *, until: int | None = None, game: str = "Tile"
) -> DataFrame:
    """One row for each cohort and age; *returned* has shape (cohorts, ages), days from *until* on have not come."""
    day, age = (places.ravel() for places in np.indices(np.shape(returned)))
    at = np.asarray(ages)[age]
    has_come = np.full(len(at), True) if until is None else day + at < until
    back, size = np.asarray(returned, dtype="float64").ravel(), np.asarray(installs, dtype="float64")[day]
    frame = DataFrame(
        {
            "timestamp": (FIRST_DAY + pd.to_timedelta(day, unit="D")).astype("datetime64[us, UTC]"),
            "age": pd.array(at, dtype="Int64"),
            "game": pd.Categorical([game] * len(at)),
            "retention": np.where(has_come, back / size, np.nan),
            "installs": pd.array(size.astype(int), dtype="Int64"),
            "returned": pd.array(np.where(has_come, back, np.nan).round(), dtype="Int64"),
        }
    )
    frame.attrs["gamelens"] = {"asked": {"metric": "retention"}, "requests": 3}
    return frame


def expected_frame(
    retention: Callable[[int], float], ages: Sequence[int], *, cohorts: int = 10, installs: int = 1_000_000
) -> DataFrame:
    """As many come back as the formula says, to a player."""
    shares = [retention(age) for age in ages]
    return frame_of([installs] * cohorts, np.round(np.outer([installs] * cohorts, shares)), ages)
