"""Every metric of the client against the ledger of the simulation."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from gamelens.wire.filters import dim
from gamelens.wire.intervals import Interval
from support.alias_truth import EVERY, FIELDS, alias_rows
from support.ledger_comparison import PER_GAME, PLAIN, assert_equals_ledger
from support.simulated_journey import Journey


@pytest.mark.shown_by(2)
@pytest.mark.parametrize("metric", PLAIN)
def test_plain_metrics_by_day(journey: Journey, metric: str) -> None:
    """Plain metrics by day equal the ledger as a split; as timeseries and group they do in `test_dirty_scenario`.

    Wire 2.9, Answer shapes.
    """
    by = ["game_id", "platform"]
    frame = journey.client.query(metric, by=by, over="last 20 complete days")
    interval = _interval(frame)
    assert_equals_ledger(frame, journey.ledger.metric(metric, interval=interval, by=by), metric, by)


@pytest.mark.shown_by(5)
@pytest.mark.parametrize("metric", PLAIN)
@pytest.mark.parametrize("every", ["week", "month", "all"])
def test_plain_metrics_in_larger_buckets(journey: Journey, metric: str, every: Any) -> None:
    """Plain metrics by week, by month and as a whole equal the ledger.

    Wire 2.8, Intervals and buckets.
    """
    frame = journey.client.query(metric, by="is_paying", over="last 40 complete days", every=every)
    expected = journey.ledger.metric(metric, interval=_interval(frame), granularity=every, by=["is_paying"])
    assert_equals_ledger(frame, expected, metric, ["is_paying"])


@pytest.mark.shown_by(2)
@pytest.mark.parametrize("metric", PER_GAME)
@pytest.mark.parametrize("by", [["platform", "game_id"], ["platform"], ["country_code", "build"], []])
def test_per_game_metrics(journey: Journey, metric: str, by: list[str]) -> None:
    """Metrics per game equal the ledger, with the game and of all games (Wire 4.14, Adding up)."""
    frame = journey.client.query(metric, by=by, over="last 20 complete days")
    assert_equals_ledger(frame, journey.ledger.metric(metric, interval=_interval(frame), by=by), metric, by)


@pytest.mark.parametrize("dimension", ["first_build", "installed_on", "ad_type", "ilrd_network_name", "build"])
def test_every_level_of_dimension(journey: Journey, dimension: str) -> None:
    """Dimensions of players, events, ads and impressions equal the ledger.

    Wire 4.10, Dimensions.
    """
    frame = journey.client.query("event_count", by=dimension, over="last 7 complete days")
    assert_equals_ledger(
        frame,
        journey.ledger.metric("event_count", interval=_interval(frame), by=[dimension]),
        "event_count",
        [dimension],
    )


@pytest.mark.shown_by(2)
@pytest.mark.parametrize(
    ("metric", "by"),
    [
        ("event_count", ["ad_sdk_name", "ad_action"]),
        ("ad_impressions_count", ["ad_sdk_name", "ad_type"]),
        ("ad_impressions_per_session", ["country_code", "platform"]),
        ("ilrd_id_unique", ["ilrd_network_name", "ilrd_adunit_format"]),
        ("ilrd_revenue", ["ilrd_network_name", "country_code"]),
    ],
    ids=lambda names: names if isinstance(names, str) else "-".join(names),
)
def test_ad_metrics_by_their_dimensions(journey: Journey, metric: str, by: list[str]) -> None:
    """Requests, impressions and revenue of ads by network equal the ledger.

    Wire 4.11, Metrics.
    """
    frame = journey.client.query(metric, by=by, over="last 20 complete days", every="all")
    assert_equals_ledger(
        frame, journey.ledger.metric(metric, interval=_interval(frame), granularity="all", by=by), metric, by
    )


@pytest.mark.shown_by(3)
@pytest.mark.parametrize("name", FIELDS)
@pytest.mark.parametrize("by", [[], ["country_code"], ["game_id", "platform"]], ids=["timeseries", "group", "split"])
def test_aliases(journey: Journey, name: str, by: list[str]) -> None:
    """Aliases equal the ledger, whose metrics are combined by formulas of their own."""
    frame = journey.client.query(name, by=by, over="last 40 complete days")
    interval = _interval(frame)
    rows = alias_rows(
        name,
        by,
        EVERY.get(name, "day"),
        interval,
        lambda metric, every: journey.ledger.metric(metric, interval=interval, granularity=every, by=by),
    )
    assert_equals_ledger(frame, rows, name, by)


def test_nested_filters(journey: Journey) -> None:
    """A filter of and, or, not and lists selects the events of the ledger's filter.

    Wire 2.7, Filters.
    """
    where = (dim.platform == "ios") & ~dim.country_code.isin(["US", "IN"]) | (dim.is_paying == "true")
    frame = journey.client.query("user_unique", over="last 7 complete days", where=where)
    assert_equals_ledger(
        frame, journey.ledger.metric("user_unique", interval=_interval(frame), where=where), "user_unique", []
    )


def test_intervals_longer_than_the_service_accepts(journey: Journey) -> None:
    """40 days by day, more than one request may have, equal the ledger.

    Wire 2.8, Intervals and buckets.
    """
    frame = journey.client.query("revenue", by="game_id", over="last 40 complete days")
    assert frame.attrs["gamelens"]["requests"] >= 2
    expected = journey.ledger.metric("revenue", interval=_interval(frame), by=["game_id"])
    assert_equals_ledger(frame, expected, "revenue", ["game_id"])


@pytest.mark.filterwarnings("ignore:retention_retro has no row where nobody came back")
@pytest.mark.parametrize("days", [1, 7])
def test_retention_by_game(journey: Journey, days: int) -> None:
    """Retention after 1 and 7 days by platform and game equals the ledger.

    Wire 4.12, Retention.
    """
    frame = journey.client.query(
        "retention_retro", by=["platform", "game_id"], over="last 20 complete days", since_days_ago=days
    )
    expected = journey.ledger.metric("retention_retro", interval=_interval(frame), by=["platform"], since_days_ago=days)
    assert_equals_ledger(frame, expected, "retention_retro", ["platform", "game_id"])


def test_retention_of_cohorts(journey: Journey) -> None:
    """Retention over all games is weighted by installs, and NA before its day.

    Wire 4.12, Retention.
    """
    frame = journey.client.retention([1, 7], over="last 20 complete days")
    expected = _expected_cohorts(journey, frame)
    for row in frame.to_dict("records"):
        installs, returned = expected[row["timestamp"], row["age"]]
        assert row["installs"] == installs
        if pd.isna(row["retention"]):
            assert row["timestamp"] + pd.Timedelta(days=row["age"]) >= pd.Timestamp(_available(frame).end).floor("D")
        else:
            assert row["returned"] == returned
            assert row["retention"] == pytest.approx(returned / installs, rel=1e-9)


def _expected_cohorts(journey: Journey, frame: pd.DataFrame) -> dict[tuple[Any, int], tuple[int, int]]:
    """Return installs and returned players of each install day, from the ledger."""
    interval = _interval(frame)
    installs = journey.ledger.metric("new_users", interval=interval, by=["game_id"])
    cohorts_by_day = {}
    for age in (1, 7):
        shifted = Interval(interval.start + pd.Timedelta(days=age), interval.end + pd.Timedelta(days=age))
        shares = {
            (row["timestamp"], row["game_id"]): row["retention"]
            for row in journey.ledger.metric("retention_retro", interval=shifted, by=["game_id"], since_days_ago=age)
        }
        for day in {row["timestamp"] for row in installs}:
            cohorts = [(row["game_id"], row["new_users"]) for row in installs if row["timestamp"] == day]
            returned = [n * shares.get((day + pd.Timedelta(days=age), game), 0.0) for game, n in cohorts]
            cohorts_by_day[pd.Timestamp(day), age] = sum(n for _, n in cohorts), round(sum(returned))
    return cohorts_by_day


def _interval(frame: pd.DataFrame) -> Interval:
    return Interval.parse(frame.attrs["gamelens"]["asked"]["interval"])


def _available(frame: pd.DataFrame) -> Interval:
    return Interval.parse(frame.attrs["gamelens"]["available"])
