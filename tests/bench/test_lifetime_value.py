"""Coverage and error of lifetime value against the ledger, its players living on to D180.

Run by `make bench`. Players of `calm` and `midcore` in full size install for 60 days and live on for 180 days more. The
analysis sees 28 days: the first, on which the game is new, or the last, to which older install days lend their late
ages. The truth is the expected value of a new player: what the ledgers of all seeds together say of those install days.
The ledger of one seed is another number, as a rule a tenth off, because few payers bring most of the money. SEEDS in
the environment sets how many ledgers are drawn.
"""

from __future__ import annotations

import os

import numpy as np
import pytest

from gamelens.analysis import retention
from support.cohort_ledgers import CohortLedger, cohort_ledgers

SEEDS = int(os.environ.get("SEEDS", "200"))
RETENTION_AGES = [1, 2, 3, 4, 5, 6, 7, 14, 21, 28]
AGES = [7, 30, 90]
WINDOWS = {"first 28 days": (0, 28), "last 28 days": (32, 60)}


@pytest.fixture(scope="module", params=["calm", "midcore"])
def ledgers(request: pytest.FixtureRequest) -> dict[str, list[CohortLedger]]:
    """The ledgers of all seeds, by game."""
    played = [cohort_ledgers(request.param, seed=seed) for seed in range(SEEDS)]
    return {game: [sums[game] for sums in played] for game in played[0]}


def values_of(ledgers: list[CohortLedger], first: int, until: int) -> np.ndarray:
    """Return value, low and high at `AGES` as the analyst of each seed sees them, shape (seeds, ages, 3)."""
    values = []
    for seed, ledger in enumerate(ledgers):
        frame, money = ledger.retention_frame(RETENTION_AGES, first, until), ledger.money_frame(first, until)
        value = retention.ltv(frame, money, draws=200, seed=seed).set_index("age")
        values.append(value.loc[AGES, ["ltv", "low", "high"]].to_numpy())
    return np.array(values)


def test_bands_of_lifetime_value_hold_the_truth(ledgers: dict[str, list[CohortLedger]]) -> None:
    """Bands of D7, D30 and D90 hold the truth in 93 to 99 %, and D90 is off by less than 15 % (median)."""
    held, errors = [], []
    for window, (first, until) in WINDOWS.items():
        for game, of_game in ledgers.items():
            brought = np.array([ledger.value_by_age(first, until, max(AGES))[AGES] for ledger in of_game])
            truth, (value, low, high) = brought.mean(axis=0), np.moveaxis(values_of(of_game, first, until), 2, 0)
            held.append((low <= truth) & (truth <= high))
            errors.append(np.abs(value / truth - 1))
            own = np.abs(value / brought - 1)
            print(f"\n{game}, {window}, {len(of_game)} seeds: D7, D30, D90 held {_shares(held[-1].mean(axis=0))}")
            print(f"  median error {_shares(np.median(errors[-1], axis=0))}", end="; ")
            print(f"of what the same players went on to bring {_shares(np.median(own, axis=0))}")
    coverage, error = np.mean(held, axis=(0, 1)), np.median(errors, axis=(0, 1))
    print(f"all: held {_shares(coverage)}, median error {_shares(error)}")
    assert ((coverage >= 0.93) & (coverage <= 0.99)).all()
    assert error[-1] < 0.15


def _shares(values: np.ndarray) -> str:
    return ", ".join(f"{value:.1%}" for value in values)
