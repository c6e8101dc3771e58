"""A retention frame that several modules of this folder analyse, and the files of outside tables."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pandas import DataFrame

from support.tidy_frames import tidy_frame


@pytest.fixture
def cohorts() -> DataFrame:
    """Two games on two install days; age 2 of the second day is not yet observed."""
    frame = tidy_frame(
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


@pytest.fixture
def file(tmp_path: Path) -> Callable[..., Path]:
    """Return a function that writes a text to a file and returns its path."""

    def write(text: str, name: str = "table.csv") -> Path:
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path

    return write
