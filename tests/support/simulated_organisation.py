"""What the client would answer about a simulated organisation, taken from the ledger: no service, no waiting."""

from __future__ import annotations

import tempfile
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pandas as pd
from pandas import DataFrame

from gamelens.analysis.health import HealthQuery, questions, watches
from gamelens.simulator import Ledger, Scenario, load_scenario, play_columns
from gamelens.wire.filters import parse_filter

ENDS_ON = date(2026, 11, 20)


def drawn(scenario: Scenario) -> Ledger:
    """Everything that happens in *scenario*, which ends with the day before `ENDS_ON`."""
    ledger = Ledger()
    with tempfile.TemporaryDirectory() as folder:
        play_columns(scenario, Path(folder), ends_on=ENDS_ON, ledger=ledger)
    return ledger


def day_of(scenario: Scenario, day: int) -> pd.Timestamp:
    """Day *day* of *scenario*, its first being 0."""
    return pd.Timestamp(ENDS_ON - timedelta(days=scenario.days - day), tz="UTC")


def answers(name: str, *, seed: int, players: int | None = None) -> tuple[Scenario, list[DataFrame]]:
    """The answers to all questions of a board about the scenario *name*."""
    scenario = load_scenario(name, seed=seed, players=players)
    return scenario, all_answers(drawn(scenario), scenario)


def all_answers(ledger: Ledger, scenario: Scenario) -> list[DataFrame]:
    """The answers to all questions of a board."""
    return [answer(ledger, scenario, question) for question in questions(watches())]


def answer(ledger: Ledger, scenario: Scenario, question: HealthQuery) -> DataFrame:
    """The frame of one question over all days, receipt included."""
    start = ENDS_ON - timedelta(days=scenario.days)
    dimensions = ["game_id" if it == "game" else it for it in question.by]
    where = parse_filter(dict(question.where)) if question.where else None
    frame = None
    for metric in question.metric:
        since = question.since_days_ago if metric == "retention_retro" else None
        by = [it for it in dimensions if it != "game_id" or metric != "retention_retro"]
        rows = ledger.metric(
            metric,
            interval=f"{start}/{ENDS_ON}",
            by=by,
            where=where,
            games=question.games,
            since_days_ago=since,
        )
        made = DataFrame(rows)
        frame = made if frame is None else frame.merge(made, on=["timestamp", *dimensions], how="outer")
    assert frame is not None
    frame["timestamp"] = pd.to_datetime(frame["timestamp"], utc=True).astype("datetime64[us, UTC]")
    if "game" in question.by:
        frame["game"] = frame["game_id"]
    frame.attrs["gamelens"] = _receipt(question, start)
    return frame


def _receipt(question: HealthQuery, start: date) -> dict[str, Any]:
    asked = {"metric": list(question.metric), "every": "day", "interval": f"{start}T00:00Z/{ENDS_ON}T00:00Z"}
    return {"asked": asked, "as_of": f"{ENDS_ON}T09:00:00+00:00", "requests": 1}
