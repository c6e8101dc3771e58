"""Coverage of the interval of revenue per player, with many payers and with few.

Run by `make bench`. Both arms are one population, of which a small share spends log-normal amounts, so the true
difference is 0. Revenue of games is skewed: with few payers the interval misses the truth more often than its level
says, and the test prints how often.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from pandas import DataFrame

from gamelens.analysis import experiments

RUNS = 300
DAYS = 40
ARMS = ("ctrl", "new")


def cohorts(money: np.ndarray, players: int) -> DataFrame:
    """Return the frame of one run from *money* by day and arm."""
    stamps = pd.date_range("2026-10-01", periods=DAYS, tz="UTC")
    frame = DataFrame({"timestamp": stamps.repeat(len(ARMS)), "ab_variant_id": list(ARMS) * DAYS, "players": players})
    return frame.assign(money=money.ravel()).astype({"ab_variant_id": "category", "players": "Int64"})


@pytest.mark.parametrize(("players", "payers", "least"), [(100, 0.05, 0.92), (100, 0.02, 0.92), (20, 0.02, 0.9)])
def test_the_interval_holds_the_true_difference(players: int, payers: float, least: float) -> None:
    """Intervals of 95 % hold the true difference in *least* to 98 % of the runs."""
    rng = np.random.default_rng(9)
    paid = rng.binomial(players, payers, size=(RUNS, DAYS, len(ARMS)))
    owner = np.repeat(np.arange(paid.size), paid.ravel())
    spent = np.bincount(owner, weights=rng.lognormal(1, 1, len(owner)), minlength=paid.size).reshape(paid.shape)
    rows = [experiments.compare(cohorts(run, players)).iloc[0] for run in spent]
    covered = float(np.mean([row["low"] < 0 < row["high"] for row in rows]))
    print(f"\n{players} players a day and arm, {payers:.0%} pay: {covered:.1%} of {RUNS} intervals hold the truth")
    assert least <= covered <= 0.98
