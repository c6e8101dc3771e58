"""Players and successes of the variants of an experiment, as `differences` takes them."""

from __future__ import annotations

import numpy as np
import pandas as pd
from pandas import DataFrame


def shares(arms: dict[str, tuple[int, int]], *, measure: str = "conversion") -> DataFrame:
    """Return successes and players of each variant."""
    frame = DataFrame(
        {
            "measure": pd.Categorical([measure] * len(arms)),
            "ab_variant_id": pd.Categorical(list(arms)),
            "players": pd.array([players for _, players in arms.values()], dtype="Int64"),
            "successes": pd.array([successes for successes, _ in arms.values()], dtype="Int64"),
        }
    )
    frame.attrs["gamelens"] = {"asked": {"metric": "retention"}, "requests": 1}
    return frame


def many(players: int, control: np.ndarray, treated: np.ndarray) -> DataFrame:
    """Return one experiment for each pair of successes."""
    runs = len(control)
    return DataFrame(
        {
            "ab_id": pd.Categorical(np.tile(np.arange(runs), 2).astype(str)),
            "measure": pd.Categorical(["D1"] * 2 * runs),
            "ab_variant_id": pd.Categorical(["ctrl"] * runs + ["new"] * runs),
            "players": pd.array([players] * 2 * runs, dtype="Int64"),
            "successes": pd.array([*control.tolist(), *treated.tolist()], dtype="Int64"),
        }
    )
