"""Retention frames with the dtypes the client promises, from counts or from a formula."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas import DataFrame

Ages = Sequence[int] | NDArray[np.int_]

FIRST_DAY = pd.Timestamp("2026-11-01", tz="UTC")


def frame_of(
    installs: Sequence[int], returned: NDArray[Any], ages: Ages, *, until: int | None = None, game: str = "Tile"
) -> DataFrame:
    """Return one row for each cohort and age, of counts with shape (cohorts, ages).

    Days from *until* on are not yet observed.
    """
    day, age = (places.ravel() for places in np.indices(np.shape(returned)))
    at = np.asarray(ages)[age]
    has_come = np.full(len(at), True) if until is None else day + at < until
    players_back, size = np.asarray(returned, dtype="float64").ravel(), np.asarray(installs, dtype="float64")[day]
    frame = DataFrame(
        {
            "timestamp": (FIRST_DAY + pd.to_timedelta(day, unit="D")).astype("datetime64[us, UTC]"),
            "age": pd.array(at, dtype="Int64"),
            "game": pd.Categorical([game] * len(at)),
            "retention": np.where(has_come, players_back / size, np.nan),
            "installs": pd.array(size.astype(int), dtype="Int64"),
            "returned": pd.array(np.where(has_come, players_back, np.nan).round(), dtype="Int64"),
        }
    )
    frame.attrs["gamelens"] = {"asked": {"metric": "retention"}, "requests": 3}
    return frame


def expected_frame(
    retention: Callable[[int], float], ages: Ages, *, cohorts: int = 10, installs: int = 1_000_000
) -> DataFrame:
    """Return cohorts in which as many players return as the formula expects, rounded."""
    shares = [retention(int(age)) for age in ages]
    return frame_of([installs] * cohorts, np.round(np.outer([installs] * cohorts, shares)), ages)
