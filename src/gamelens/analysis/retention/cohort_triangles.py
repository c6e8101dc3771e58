"""Cohort triangles: installs and returning players by cohort and age, for each group.

A cell exists only where the cohort has reached the age.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas import DataFrame, Series

from gamelens.analysis.over_days import day_numbers
from gamelens.analysis.tidy_frames import with_ids

Floats = NDArray[np.float64]
Key = tuple[Any, ...]


@dataclass(frozen=True, eq=False, slots=True)
class CohortTriangle:
    """Cohorts by age.

    Attributes:
        ages: ages in days, ascending.
        installs: players of each cohort, shape (cohorts, ages); 0 where the age is not reached.
        returned: players who returned, same shape; 0 where the age is not reached.
        days: install day of each cohort, in days since 1970-01-01; empty if they were not given.
    """

    ages: NDArray[np.int64]
    installs: Floats
    returned: Floats
    days: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, dtype="int64"))

    def totals_by_age(self) -> tuple[Floats, Floats]:
        """Return the installs that reached each age, and the players who returned."""
        return self.installs.sum(axis=0), self.returned.sum(axis=0)

    def shares(self) -> Floats:
        """Return the share of installs that returned at each age, NaN if none has reached it."""
        reached, returned = self.totals_by_age()
        return returned / np.where(reached > 0, reached, np.nan)

    def until(self, ages: int) -> CohortTriangle:
        """Return the triangle of the first *ages* ages."""
        return CohortTriangle(self.ages[:ages], self.installs[:, :ages], self.returned[:, :ages], self.days)

    def since(self, ages: int) -> CohortTriangle:
        """Return the triangle without its first *ages* ages."""
        return CohortTriangle(self.ages[ages:], self.installs[:, ages:], self.returned[:, ages:], self.days)


def cohorts_of(frame: DataFrame, by: str | Sequence[str] | None) -> Iterator[tuple[Key, CohortTriangle]]:
    """Yield the key and the triangle of each group, groups without any cell included."""
    keys = with_ids(frame, by)
    if not keys:
        if len(frame):
            yield (), _triangle(frame)
        return
    for key, rows in frame.groupby(keys, observed=True, dropna=False):
        yield (key if isinstance(key, tuple) else (key,)), _triangle(rows)


def concat_groups(
    frame: DataFrame, by: str | None, blocks: Sequence[tuple[Key, DataFrame]], *, like: DataFrame
) -> DataFrame:
    """Return the blocks one below the other, with their group keys as first columns.

    Without blocks the result has the columns of *like*.
    """
    result = pd.concat([block for _, block in blocks] or [like], ignore_index=True)
    for place, name in enumerate(with_ids(frame, by)):
        values = [key[place] for key, block in blocks for _ in range(len(block))]
        result.insert(place, name, Series(values, dtype=frame[name].dtype))
    return result


def _triangle(rows: DataFrame) -> CohortTriangle:
    """Build the triangle of *rows*, with the splits of a cohort added up."""
    cells = rows[rows["retention"].notna() & (rows["installs"] > 0) & (rows["age"] > 0)]
    sums = cells.groupby(["timestamp", "age"], observed=True)[["installs", "returned"]].sum().astype("float64")
    installs, returned = (sums[name].unstack("age").fillna(0.0).sort_index(axis=1) for name in sums)
    return CohortTriangle(
        installs.columns.to_numpy(dtype="int64"), installs.to_numpy(), returned.to_numpy(), day_numbers(installs.index)
    )
