"""A retention frame as cohorts by age, one triangle for each group: what has not come yet is not in it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas import DataFrame, Series

from gamelens.analysis.tidy_frames import with_ids
from gamelens.errors import BadQuery

Floats = NDArray[np.float64]
Key = tuple[Any, ...]

_COLUMNS: Final = frozenset({"timestamp", "age", "retention", "installs", "returned"})


@dataclass(frozen=True, eq=False, slots=True)
class CohortTriangle:
    """Cohorts by age: *installs* and *returned* have shape (cohorts, ages), both 0 where the day has not come."""

    ages: NDArray[np.int64]
    installs: Floats
    returned: Floats

    def known(self) -> tuple[Floats, Floats]:
        """Installs that reached each age, and those of them who came back."""
        return self.installs.sum(axis=0), self.returned.sum(axis=0)

    def shares(self) -> Floats:
        """Share of all installs that came back at each age; NaN where none has reached it."""
        reached, returned = self.known()
        return returned / np.where(reached > 0, reached, np.nan)

    def until(self, ages: int) -> CohortTriangle:
        """The first so many ages."""
        return CohortTriangle(self.ages[:ages], self.installs[:, :ages], self.returned[:, :ages])

    def since(self, ages: int) -> CohortTriangle:
        """All but the first so many ages."""
        return CohortTriangle(self.ages[ages:], self.installs[:, ages:], self.returned[:, ages:])


def cohorts_of(frame: DataFrame, by: str | None) -> Iterator[tuple[Key, CohortTriangle]]:
    """The triangle of each group, the groups that have none yet included.

    Raises:
        BadQuery: not a frame of `retention()`.
    """
    if not _COLUMNS.issubset(frame.columns):
        raise BadQuery("frame", [str(name) for name in frame.columns], "is not a frame of retention()")
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
    """The blocks below each other, with the values they belong to in front; as *like* where there are none."""
    made = pd.concat([block for _, block in blocks] or [like], ignore_index=True)
    for place, name in enumerate(with_ids(frame, by)):
        values = [key[place] for key, block in blocks for _ in range(len(block))]
        made.insert(place, name, Series(values, dtype=frame[name].dtype))
    return made


def _triangle(rows: DataFrame) -> CohortTriangle:
    """The cohorts in *rows*, where the day has come; splits of a cohort are added up."""
    known = rows[rows["retention"].notna() & (rows["installs"] > 0) & (rows["age"] > 0)]
    sums = known.groupby(["timestamp", "age"], observed=True)[["installs", "returned"]].sum().astype("float64")
    installs, returned = (sums[name].unstack("age").fillna(0.0).sort_index(axis=1) for name in sums)
    return CohortTriangle(installs.columns.to_numpy(dtype="int64"), installs.to_numpy(), returned.to_numpy())
