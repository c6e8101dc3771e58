"""Answers of the client about a simulated organisation, computed from its ledger."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from datetime import date, timedelta
from pathlib import Path

import pandas as pd
from pandas import DataFrame

from gamelens.analysis.health import HealthQuery
from gamelens.catalog import METRICS
from gamelens.simulator import Ledger, Scenario, play_columns
from gamelens.wire.filters import parse_filter

ENDS_ON = date(2026, 11, 20)


def drawn(scenario: Scenario) -> Ledger:
    """Return the ledger of *scenario*, which ends with the day before `ENDS_ON`."""
    ledger = Ledger()
    with tempfile.TemporaryDirectory() as folder:
        play_columns(scenario, Path(folder), ends_on=ENDS_ON, ledger=ledger)
    return ledger


def day_of(scenario: Scenario, day: int) -> pd.Timestamp:
    """Return the timestamp of day number *day* of *scenario*, counted from 0."""
    return pd.Timestamp(ENDS_ON - timedelta(days=scenario.days - day), tz="UTC")


def answer(ledger: Ledger, scenario: Scenario, query: HealthQuery) -> DataFrame:
    """Return the frame that answers *query* over all days, with its receipt."""
    start = ENDS_ON - timedelta(days=scenario.days)
    where = parse_filter(dict(query.where)) if query.where else None

    def rows_of(metric: str) -> DataFrame:
        """Return the rows of one metric."""
        is_retention = metric == "retention_retro"
        dimensions = ["game_id" if name == "game" else name for name in query.by]
        rows = ledger.metric(
            metric,
            interval=f"{start}/{ENDS_ON}",
            by=[name for name in dimensions if name != "game_id" or not is_retention],
            where=where,
            games=query.games,
            since_days_ago=query.since_days_ago if is_retention else None,
        )
        frame, columns = DataFrame(rows), METRICS[metric].columns
        kept = ["timestamp", *dimensions, *(name for name in columns if name not in ("mean", "sum_cents"))]
        return frame[kept].rename(columns=columns)

    return merged_answer(scenario, query, rows_of)


def merged_answer(scenario: Scenario, query: HealthQuery, rows_of: Callable[[str], DataFrame]) -> DataFrame:
    """Return the frame that answers *query*, from the rows of each of its metrics."""
    keys = ["timestamp", *("game_id" if name == "game" else name for name in query.by)]
    parts = {metric: rows_of(metric) for metric in query.metric}
    frame = None
    for part in parts.values():
        frame = part if frame is None else frame.merge(part, on=keys, how="outer")
    assert frame is not None
    frame["timestamp"] = pd.to_datetime(frame["timestamp"], utc=True).astype("datetime64[us, UTC]")
    if "game" in query.by:
        frame["game"] = frame["game_id"]
    start = ENDS_ON - timedelta(days=scenario.days)
    asked = {"metric": list(query.metric), "by": list(query.by), "every": "day", "where": query.where}
    asked["interval"] = f"{start}T00:00Z/{ENDS_ON}T00:00Z"
    frame.attrs["gamelens"] = {"asked": asked, "as_of": f"{ENDS_ON}T09:00:00+00:00", "requests": 1}
    return frame
