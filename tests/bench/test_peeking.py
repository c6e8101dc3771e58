"""Error of experiments without an effect that are read every morning for 60 days.

Run by `make bench`; RUNS in the environment sets how many experiments are drawn. Both arms are one population. A run
errs if an interval excludes 0 on any of its days: the always-valid one may in 5 % of the runs; that for a single look
does in a quarter or more, which shows that the days are looked at. Money is looked at from the seventh day on, the
first with an interval.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

from gamelens.analysis import experiments

RUNS = int(os.environ.get("RUNS", "120"))
DAYS = 60
PLAYERS = 200
"""Players of a day, in both arms."""
ARMS = ("ctrl", "new")

Numbers = NDArray[Any]
Looks = Iterator[tuple[int, str, Numbers]]


def returned(players: Numbers, rng: np.random.Generator) -> Looks:
    """Yield for each morning the players who came back, fewer of later install days."""
    share = 0.125 * np.linspace(1.3, 0.7, DAYS)[:, None]
    successes = rng.binomial(players.astype(int), share).astype("float64")
    for day in range(1, DAYS + 1):
        yield day, "successes", successes


def converted(players: Numbers, rng: np.random.Generator) -> Looks:
    """Yield for each morning the players who have paid until then: older install days have had more time."""
    paid = np.zeros_like(players)
    for day in range(1, DAYS + 1):
        age = day - 1 - np.arange(DAYS)
        chance = np.where(age >= 0, 0.02 * 0.93 ** np.maximum(age, 0), 0.0)[:, None]
        paid = paid + rng.binomial((players - paid).astype(int), chance)
        yield day, "successes", paid


def spent(players: Numbers, rng: np.random.Generator) -> Looks:
    """Yield for each morning the log-normal amounts of the 5 % of players who pay."""
    payers = rng.binomial(players.astype(int), 0.05)
    owner = np.repeat(np.arange(payers.size), payers.ravel())
    money = np.bincount(owner, weights=rng.lognormal(1, 1, len(owner)), minlength=payers.size).reshape(payers.shape)
    for day in range(7, DAYS + 1):
        yield day, "money", money


@pytest.mark.parametrize(
    ("outcome", "last_share"),
    [(returned, 0.5), (returned, 0.9), (converted, 0.5), (spent, 0.5)],
    ids=["retention", "retention on a ramp", "conversion that grows", "money"],
)
def test_a_look_each_morning_keeps_the_error(
    outcome: Callable[[Numbers, np.random.Generator], Looks], last_share: float
) -> None:
    """At most 5 % of the always-valid intervals exclude 0 on any of 60 days."""
    rng = np.random.default_rng(11)
    of_new = rng.binomial(PLAYERS, np.linspace(1 - last_share, last_share, DAYS), size=(RUNS, DAYS))
    players = np.stack([PLAYERS - of_new, of_new], axis=2).astype("float64")
    index = pd.MultiIndex.from_product([range(RUNS), range(DAYS), ARMS], names=["ab_id", "day", "ab_variant_id"])
    frame = index.to_frame(index=False).assign(players=players.ravel())
    frame["timestamp"] = pd.Timestamp("2026-09-01", tz="UTC") + pd.to_timedelta(frame["day"], unit="D")
    has_erred, has_erred_once = np.zeros(RUNS, dtype=bool), np.zeros(RUNS, dtype=bool)
    for day, name, amount in outcome(players, rng):
        seen = frame.assign(**{name: amount.ravel()})[frame["day"] < day].drop(columns="day")
        compared = experiments.compare(seen.astype({"ab_id": "str"}))
        assert len(compared) == RUNS
        has_erred |= ((compared["always_low"] > 0) | (compared["always_high"] < 0)).to_numpy()
        has_erred_once |= ((compared["low"] > 0) | (compared["high"] < 0)).to_numpy()
    shares = f"{has_erred.mean():.1%} of always-valid intervals err, {has_erred_once.mean():.1%} of the others"
    print(f"\nlooked at daily, {shares}")
    assert has_erred.mean() <= 0.05
    assert has_erred_once.mean() > 0.2
