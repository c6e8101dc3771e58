"""Bands of statsforecast around the last day of each series in a Parquet file: run by the peers' own interpreter.

python bands.py SERIES.parquet BANDS.parquet: reads unique_id, ds, y; writes, for each model and level, the band of the
day after each series.
"""

from __future__ import annotations

import sys

import pandas as pd
from statsforecast import StatsForecast
from statsforecast.models import MSTL, AutoETS

MODELS = {"AutoETS": AutoETS(season_length=7), "MSTL": MSTL(season_length=7)}
LEVELS = [99, 99.9, 99.99]

series, target = pd.read_parquet(sys.argv[1]), sys.argv[2]
made = []
for name, model in MODELS.items():
    bands = StatsForecast(models=[model], freq="D", n_jobs=1).forecast(df=series, h=1, level=LEVELS)
    for level in LEVELS:
        band = bands[["unique_id", f"{name}-lo-{level}", f"{name}-hi-{level}"]]
        band.columns = ["unique_id", "low", "high"]
        made.append(band.assign(model=name, level=level))
pd.concat(made).to_parquet(target)
