"""Answers of the client about a simulated organisation, computed from its ledger."""

from __future__ import annotations

import tempfile
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pandas as pd
from pandas import DataFrame

from gamelens.analysis.health import HealthQuery, board_queries, watches
from gamelens.simulator import Ledger, Scenario, load_scenario, play_columns
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


def answers(name: str, *, seed: int, players: int | None = None) -> tuple[Scenario, list[DataFrame]]:
    """Return the scenario *name* and the answers to all queries of a board about it."""
    scenario = load_scenario(name, seed=seed, players=players)
    return scenario, all_answers(drawn(scenario), scenario)


def all_answers(ledger: Ledger, scenario: Scenario) -> list[DataFrame]:
    """Return the answers to all queries of a board."""
    return [answer(ledger, scenario, query) for query in board_queries(watches())]


def answer(ledger: Ledger, scenario: Scenario, query: HealthQuery) -> DataFrame:
    """Return the frame that answers *query* over all days, with its receipt."""
    start = ENDS_ON - timedelta(days=scenario.days)
    dimensions = ["game_id" if name == "game" else name for name in query.by]
    where = parse_filter(dict(query.where)) if query.where else None
    frame = None
    for metric in query.metric:
        since = query.since_days_ago if metric == "retention_retro" else None
        by = [name for name in dimensions if name != "game_id" or metric != "retention_retro"]
        rows = ledger.metric(
            metric,
            interval=f"{start}/{ENDS_ON}",
            by=by,
            where=where,
            games=query.games,
            since_days_ago=since,
        )
        part = DataFrame(rows)
        frame = part if frame is None else frame.merge(part, on=["timestamp", *dimensions], how="outer")
    assert frame is not None
    frame["timestamp"] = pd.to_datetime(frame["timestamp"], utc=True).astype("datetime64[us, UTC]")
    if "game" in query.by:
        frame["game"] = frame["game_id"]
    frame.attrs["gamelens"] = _receipt(query, start)
    return frame


def _receipt(query: HealthQuery, start: date) -> dict[str, Any]:
    asked = {"metric": list(query.metric), "every": "day", "interval": f"{start}T00:00Z/{ENDS_ON}T00:00Z"}
    return {"asked": asked, "as_of": f"{ENDS_ON}T09:00:00+00:00", "requests": 1}
