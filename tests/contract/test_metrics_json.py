"""Queries and answers of the metrics service as JSON written by hand."""

import json
from typing import Any

import pytest

from gamelens.wire.filters import parse_filter, wire_filter
from gamelens.wire.intervals import Interval
from gamelens.wire.queries import Group, MetricQuery, Split, Timeseries, decode_query, encode_query
from gamelens.wire.results import Rows, decode_answer, encode_answer
from support.game_events import event
from support.sandbox_stage import Stage

WEEK = Interval.parse("2025-07-01/P1W")
GROUP = b"""{"result": [{"result": [{"country_code": "KR", "ad_impressions_count": 59984},
    {"country_code": null, "ad_impressions_count": 16536}], "timestamp": "2025-07-01T00:00:00.000Z"},
    {"result": [], "timestamp": "2025-07-02T00:00:00.000Z"}]}"""
SPLIT = b"""{"result": [{"event": {"country_code": "KR", "platform": "ios", "new_users": 3},
    "timestamp": "2025-07-01T00:00:00.000Z", "version": "v1"}]}"""
SERIES = b"""{"result": [{"result": {"arppu": 4.16, "paying_users": 1, "total_revenue": 416},
    "timestamp": "2025-07-01T00:00:00.000Z"}]}"""
BY_GAME = b"""{"result": [{"result": {"platform": "ios", "game_id": "7", "retention": 0.25},
    "timestamp": "2025-07-01T00:00:00.000Z"}]}"""
SHAPES = {
    "group": (MetricQuery(interval=WEEK, query=Group("country_code")), GROUP),
    "split": (MetricQuery(interval=WEEK, query=Split(("country_code", "platform"))), SPLIT),
    "timeseries": (MetricQuery(interval=WEEK, query=Timeseries()), SERIES),
    "by game": (MetricQuery(interval=WEEK, split_by="platform", since_days_ago=1), BY_GAME),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_result_shapes_survive_a_round_trip(shape: str) -> None:
    """Each answer shape that is decoded and encoded again is the same JSON.

    Wire 2.9, Answer shapes.
    """
    query, body = SHAPES[shape]
    assert json.loads(encode_answer(query, decode_answer(query, body))) == json.loads(body)


def test_group_answers_keep_empty_buckets() -> None:
    """A group answer has an entry for a bucket without rows (Wire 2.9, Answer shapes)."""
    query, body = SHAPES["group"]
    assert [len(bucket.rows) for bucket in decode_answer(query, body)] == [2, 0]


def test_a_group_query_keeps_its_json() -> None:
    """A body that is decoded and encoded again is the same JSON (Wire 2.5, Query body)."""
    body = {
        "interval": "2025-07-01/P7D",
        "granularity": "day",
        "query": {"type": "group", "dimension": "ad_action", "limit": 10},
        "filter": {"and": [{"category": "ads"}, {"platform": ["ios", "android"]}]},
        "games": ["7"],
    }
    assert json.loads(encode_query(decode_query(body))) == body


def test_a_by_game_query_has_no_query_object() -> None:
    """A by-game query is written without a `query` object (Wire 2.6, Query kinds)."""
    body = {"interval": "2025-07-01/P1W", "granularity": "week", "split_by": "platform"}
    assert "query" not in json.loads(encode_query(decode_query(body)))


@pytest.mark.parametrize(
    "wire",
    [
        {"platform": "ios"},
        {"country_code": ["US", "NA"]},
        {"and": [{"platform": "ios"}, {"or": [{"build": "1"}, {"not": {"game_id": "7"}}]}]},
    ],
)
def test_filters_survive_a_round_trip(wire: dict[str, Any]) -> None:
    """A filter that is parsed and written again is the same JSON (Wire 2.7, Filters)."""
    assert wire_filter(parse_filter(wire)) == wire


def test_interval_is_one_json_string(stage: Stage) -> None:
    """The available interval is one JSON string, start/end in UTC.

    Wire 2.4, Available interval.
    """
    stage.submit([event()])
    stage.process()
    assert stage.get("interval").content == b'"2026-11-20T00:00:00Z/2026-11-20T10:00:00Z"'


def test_dimension_values_name_the_dimension(stage: Stage) -> None:
    """A list of values is an object with the dimension and its sorted values.

    Wire 2.11, Lists.
    """
    stage.submit([event(), event(platform="android")])
    stage.process()
    answer = stage.get("dimensions/platform", interval="2026-11-20/P1D")
    assert answer.json() == {"dimension": "platform", "values": ["android", "ios"]}


def test_studios_and_games_are_those_that_sent_data(stage: Stage) -> None:
    """Studios and games are listed if they have events in the interval (Wire 2.11, Lists)."""
    stage.submit([event()])
    stage.process()
    assert stage.get("studios", interval="2026-11-20/P1D").json() == [{"id": "s1", "name": "North"}]
    assert stage.get("games", interval="2026-11-20/P1D", studios="s1,s2").json() == [
        {"id": "1001", "title": "Tile Saga"}
    ]


def test_rows_of_one_bucket_of_a_split_are_gathered() -> None:
    """Rows of a split answer with one timestamp decode to one bucket.

    Wire 2.9, Answer shapes.
    """
    query, _ = SHAPES["split"]
    stamp = WEEK.start
    buckets = [Rows(stamp, [{"platform": "ios"}, {"platform": "android"}])]
    assert decode_answer(query, encode_answer(query, buckets)) == buckets
