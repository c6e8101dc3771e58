"""What the library answers is what happened: every number against the ledger, counts exactly, floats to 1e-9."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from gamelens.catalog import METRICS
from gamelens.wire.filters import dim
from gamelens.wire.intervals import Interval
from journey.conftest import Journey

PLAIN = [name for name, metric in METRICS.items() if metric.kinds == "plain"]
PER_GAME = [name for name, metric in METRICS.items() if metric.kinds == "per game"]


def _key(row: dict[str, Any], dimensions: list[str]) -> tuple[Any, ...]:
    return (pd.Timestamp(row["timestamp"]), *(None if pd.isna(row[name]) else row[name] for name in dimensions))


def assert_true(frame: pd.DataFrame, truth: list[dict[str, Any]], metric: str, dimensions: list[str]) -> None:
    answered = {_key(row, dimensions): row for row in frame.to_dict("records")}
    expected = {_key(row, dimensions): row for row in truth}
    assert answered.keys() == expected.keys()
    assert expected
    for key, row in expected.items():
        for field in METRICS[metric].fields:
            answer, true = answered[key][field.name], row[field.name]
            if true is None:
                assert pd.isna(answer), (key, field.name)
            else:
                assert answer == (true if field.kind == "count" else pytest.approx(true, rel=1e-9)), (key, field.name)


@pytest.mark.parametrize("metric", PLAIN)
@pytest.mark.parametrize("by", [[], ["country_code"], ["game_id", "platform"]], ids=["timeseries", "group", "split"])
def test_plain_metrics_by_day(journey: Journey, metric: str, by: list[str]) -> None:
    """Metrics, Result shapes 1 to 3."""
    frame = journey.client.query(metric, by=by, over="last 20 complete days")
    interval = _asked(frame)
    assert_true(frame, journey.ledger.metric(metric, interval=interval, by=by), metric, by)


@pytest.mark.parametrize("metric", PLAIN)
@pytest.mark.parametrize("every", ["week", "month", "all"])
def test_plain_metrics_in_larger_buckets(journey: Journey, metric: str, every: Any) -> None:
    """Metrics, Query request body: granularity."""
    frame = journey.client.query(metric, by="is_paying", over="last 40 complete days", every=every)
    truth = journey.ledger.metric(metric, interval=_asked(frame), granularity=every, by=["is_paying"])
    assert_true(frame, truth, metric, ["is_paying"])


@pytest.mark.parametrize("metric", PER_GAME)
def test_per_game_metrics_by_game(journey: Journey, metric: str) -> None:
    """Metrics, Query type exceptions 3."""
    frame = journey.client.query(metric, by="platform", over="last 20 complete days")
    by = ["platform", "game_id"]
    assert_true(frame, journey.ledger.metric(metric, interval=_asked(frame), by=by), metric, by)


@pytest.mark.parametrize("dimension", ["first_build", "installed_on", "ad_type", "ilrd_network_name", "build"])
def test_every_level_of_dimension(journey: Journey, dimension: str) -> None:
    """Metrics, Dimension."""
    frame = journey.client.query("event_count", by=dimension, over="last 7 complete days")
    assert_true(
        frame, journey.ledger.metric("event_count", interval=_asked(frame), by=[dimension]), "event_count", [dimension]
    )


@pytest.mark.parametrize(
    ("metric", "by"),
    [
        ("event_count", ["ad_sdk_name", "ad_action"]),
        ("ad_impressions_count", ["ad_sdk_name", "ad_type"]),
        ("ad_impressions_per_session", ["country_code", "platform"]),
        ("ilrd_id_unique", ["ilrd_network_name", "ilrd_adunit_format"]),
        ("ilrd_revenue", ["ilrd_network_name", "country_code"]),
    ],
    ids=lambda told: told if isinstance(told, str) else "-".join(told),
)
def test_the_ad_waterfall(journey: Journey, metric: str, by: list[str]) -> None:
    """Who was asked, who showed, and what he paid for it: Metrics, Ad examples of use."""
    frame = journey.client.query(metric, by=by, over="last 20 complete days", every="all")
    assert_true(frame, journey.ledger.metric(metric, interval=_asked(frame), granularity="all", by=by), metric, by)


def test_filters(journey: Journey) -> None:
    """Metrics, Query request body: filter; public facts 3.4."""
    where = (dim.platform == "ios") & ~dim.country_code.isin(["US", "IN"]) | (dim.is_paying == "true")
    frame = journey.client.query("user_unique", over="last 7 complete days", where=where)
    assert_true(frame, journey.ledger.metric("user_unique", interval=_asked(frame), where=where), "user_unique", [])


def test_intervals_longer_than_the_service_accepts(journey: Journey) -> None:
    """Public facts 3.3: at most 31 days at day granularity."""
    frame = journey.client.query("revenue", by="game_id", over="last 40 complete days")
    assert frame.attrs["gamelens"]["requests"] >= 2
    truth = journey.ledger.metric("revenue", interval=_asked(frame), by=["game_id"])
    assert_true(frame, truth, "revenue", ["game_id"])


@pytest.mark.parametrize("days", [1, 7])
def test_retention_by_game(journey: Journey, days: int) -> None:
    """Metrics, Result shapes 5."""
    frame = journey.client.query("retention_retro", by="platform", over="last 20 complete days", since_days_ago=days)
    truth = journey.ledger.metric("retention_retro", interval=_asked(frame), by=["platform"], since_days_ago=days)
    assert_true(frame, truth, "retention_retro", ["platform", "game_id"])


def test_retention_of_cohorts_is_the_ledgers_own(journey: Journey) -> None:
    """analyst-api, retention: games pooled, weighted by installs; NA where the day has not come."""
    frame = journey.client.retention([1, 7], over="last 20 complete days")
    truth = _cohorts(journey, frame)
    for row in frame.to_dict("records"):
        installs, returned = truth[row["timestamp"], row["age"]]
        assert row["installs"] == installs
        if pd.isna(row["retention"]):
            assert row["timestamp"] + pd.Timedelta(days=row["age"]) >= pd.Timestamp(_available(frame).end).floor("D")
        else:
            assert row["returned"] == returned
            assert row["retention"] == pytest.approx(returned / installs, rel=1e-9)


def _cohorts(journey: Journey, frame: pd.DataFrame) -> dict[tuple[Any, int], tuple[int, int]]:
    """Installs and returns of each install day, from the ledger's retention and new users of each game."""
    span = _asked(frame)
    installs = journey.ledger.metric("new_users", interval=span, by=["game_id"])
    found = {}
    for age in (1, 7):
        shifted = Interval(span.start + pd.Timedelta(days=age), span.end + pd.Timedelta(days=age))
        shares = {
            (row["timestamp"], row["game_id"]): row["retention"]
            for row in journey.ledger.metric("retention_retro", interval=shifted, by=["game_id"], since_days_ago=age)
        }
        for day in {row["timestamp"] for row in installs}:
            cohorts = [(row["game_id"], row["new_users"]) for row in installs if row["timestamp"] == day]
            back = [n * shares.get((day + pd.Timedelta(days=age), game), 0.0) for game, n in cohorts]
            found[pd.Timestamp(day), age] = sum(n for _, n in cohorts), round(sum(back))
    return found


def _asked(frame: pd.DataFrame) -> Interval:
    return Interval.parse(frame.attrs["gamelens"]["asked"]["interval"])


def _available(frame: pd.DataFrame) -> Interval:
    return Interval.parse(frame.attrs["gamelens"]["available"])
