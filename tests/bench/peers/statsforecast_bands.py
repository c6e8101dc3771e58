"""Program that forecasts the day after each series of a Parquet file with statsforecast.

    python statsforecast_bands.py SERIES.parquet BANDS.parquet

Reads unique_id, ds and y. Writes the band of each model, level and series. It runs in an interpreter of its own, as
statsforecast needs an older pandas.
"""

from __future__ import annotations

import sys

import pandas as pd
from statsforecast import StatsForecast  # type: ignore[import-not-found]
from statsforecast.models import MSTL, AutoETS  # type: ignore[import-not-found]

MODELS = {"AutoETS": AutoETS(season_length=7), "MSTL": MSTL(season_length=7)}
LEVELS = [99, 99.9, 99.99]

series, target = pd.read_parquet(sys.argv[1]), sys.argv[2]
tables = []
for name, model in MODELS.items():
    bands = StatsForecast(models=[model], freq="D", n_jobs=1).forecast(df=series, h=1, level=LEVELS)
    for level in LEVELS:
        band = bands[["unique_id", f"{name}-lo-{level}", f"{name}-hi-{level}"]]
        band.columns = ["unique_id", "low", "high"]
        tables.append(band.assign(model=name, level=level))
pd.concat(tables).to_parquet(target)
