"""Frames with the dtypes the client promises."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest
from pandas import DataFrame

Tidy = Callable[..., DataFrame]


@pytest.fixture
def tidy() -> Tidy:
    """A tidy frame from columns: day strings become timestamps, texts categories, whole numbers Int64."""

    def make(metric: str | list[str] | None = None, **columns: list[Any]) -> DataFrame:
        frame = DataFrame(columns)
        for name in frame.columns:
            values = [value for value in columns[name] if value is not None]
            if name == "timestamp":
                frame[name] = pd.to_datetime(frame[name], utc=True).astype("datetime64[us, UTC]")
            elif all(isinstance(value, str) for value in values):
                frame[name] = pd.Categorical(columns[name])
            elif all(isinstance(value, int) for value in values):
                frame[name] = pd.array(columns[name], dtype="Int64")
            else:
                frame[name] = frame[name].astype("float64")
        if metric is not None:
            frame.attrs["gamelens"] = {"asked": {"metric": metric}, "requests": 1}
        return frame

    return make


@pytest.fixture
def cohorts(tidy: Tidy) -> DataFrame:
    """Two games, two install days; on the second day, age 2 has not come."""
    frame = tidy(
        "retention",
        timestamp=["2026-11-01"] * 4 + ["2026-11-02"] * 4,
        age=[1, 1, 2, 2] * 2,
        game_id=["1", "2"] * 4,
        game=["Tile", "Farm"] * 4,
        retention=[0.5, 0.25, 0.2, 0.0, 0.4, 1.0, None, None],
        installs=[10, 4, 10, 4, 20, 1, 20, 1],
        returned=[5, 1, 2, 0, 8, 1, None, None],
    )
    return frame.astype({"retention": "float64", "returned": "Int64"})
