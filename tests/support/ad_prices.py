"""Impressions and revenue of networks whose prices are known, as a frame of ilrd_revenue."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import Final

import numpy as np
import pandas as pd
from pandas import DataFrame

_SPREAD: Final = 0.9  # variance of the payment for one impression, as a multiple of its squared mean


def priced_impressions(
    prices: Mapping[str, float],
    *,
    seed: int,
    days: int = 28,
    impressions: float = 20,
    drift: float = 0.05,
    memory: float = 0.0,
    only_in: Mapping[str, int] | None = None,
) -> DataFrame:
    """Return a day of each game, country, format and network in a row.

    Every network pays *prices* times the price of the cell, which differs by a factor of 72 between cells, and a
    factor of its own each day (log-normal, standard deviation *drift*, autocorrelation *memory*). Single impressions
    differ too (Gamma). A network in *only_in* is in that game alone.
    """
    rng = np.random.default_rng(seed)
    cells = [(*cell, name) for cell in product(range(3), range(6), range(2)) for name in prices]
    cells = [cell for cell in cells if (only_in or {}).get(cell[-1], cell[0]) == cell[0] and rng.random() > 0.1]
    market = np.exp(0.2 * rng.normal(size=days))
    factors = {name: price * np.exp(drift * _walk(rng, days, memory) - drift**2 / 2) for name, price in prices.items()}
    usual = np.array([0.002 * (1 + game) * (1 + country) * (1 + 3 * format_) for game, country, format_, _ in cells])
    counts = rng.poisson(impressions * rng.uniform(0.1, 2, (len(cells), 1)), (len(cells), days))
    paid = rng.gamma(np.maximum(counts, 1e-9) / _SPREAD, _SPREAD) * (counts > 0)  # the sum of skewed payments
    money = paid * usual[:, None] * market * np.array([factors[cell[-1]] for cell in cells])
    texts = [
        np.repeat([f"{letter}{cell[place]}" for cell in cells], days)
        for place, letter in enumerate(("G", "C", "F", ""))
    ]
    frame = DataFrame(dict(zip(("game", "country_code", "format", "network"), texts, strict=True))).astype("category")
    frame.insert(0, "timestamp", np.tile(pd.date_range("2026-10-01", periods=days, unit="us"), len(cells)))
    frame["timestamp"] = frame["timestamp"].dt.tz_localize("UTC")
    return frame.assign(ilrd_revenue_event_count=pd.array(counts.ravel(), dtype="Int64"), ilrd_revenue=money.ravel())


def _walk(rng: np.random.Generator, days: int, memory: float) -> np.typing.NDArray[np.float64]:
    """Return standard normal values whose successive ones have the correlation *memory*."""
    steps = rng.normal(size=days)
    for day in range(1, days):
        steps[day] = memory * steps[day - 1] + np.sqrt(1 - memory**2) * steps[day]
    return steps
