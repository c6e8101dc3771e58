"""Players and successes of the arms of an experiment, as `experiments.compare` takes them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from pandas import DataFrame

FIRST_DAY = pd.Timestamp("2026-11-01", tz="UTC")


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


def ramp(*, split: tuple[float, float] = (0.1, 0.9), treated: float = 0.0) -> DataFrame:
    """Return D1 retention of 20 days on which the new arm's share moves along *split* and retention from 62 to 8 %.

    *treated* is added to the retention of the new arm; without it both arms are equal on every day.
    """
    days, players, rows = 20, 1000, []
    shares_of_new, rates = np.linspace(*split, days), np.linspace(0.62, 0.08, days)
    for day, (share, retention) in enumerate(zip(shares_of_new, rates, strict=True)):
        for name, part, rate in (("ctrl", 1 - share, retention), ("new", share, retention + treated)):
            installs = round(players * part)
            rows.append((FIRST_DAY + pd.Timedelta(days=day), name, 1, installs, round(installs * rate)))
    return retention_of(rows, arm="ab_variant_id")


def retention_of(rows: Sequence[tuple[pd.Timestamp, str, int, int, int]], *, arm: str) -> DataFrame:
    """Return a retention frame of days, arms, ages, installs and returned players."""
    frame = DataFrame(rows, columns=["timestamp", arm, "age", "installs", "returned"])
    frame["retention"] = frame["returned"] / frame["installs"]
    frame.attrs["gamelens"] = {"asked": {"metric": "retention"}, "requests": 1}
    return frame.astype({arm: "category", "age": "Int64", "installs": "Int64", "returned": "Int64"})
