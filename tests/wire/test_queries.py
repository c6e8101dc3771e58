"""Bodies of metric queries, and the field that every refusal names (Wire 2.5, Query body)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gamelens.errors import BadQuery
from gamelens.wire.intervals import MalformedInterval
from gamelens.wire.queries import Group, MetricQuery, Split, Timeseries, decode_query, encode_query

BODY = {"interval": "2026-11-01/P7D", "granularity": "day", "query": {"type": "timeseries"}}
GROUP = {"type": "group", "dimension": "platform"}
REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"interval": None}, "interval"),
    ({"interval": 7}, "interval"),
    ({"interval": ["2026-11-01/P7D"]}, "interval"),
    ({"interval": "2026-11-01/P32D"}, "interval"),
    ({"interval": "2026-11-01T00:00/2026-12-02T00:00:01"}, "interval"),
    ({"granularity": None}, "granularity"),
    ({"granularity": "hour"}, "granularity"),
    ({"granularity": 1}, "granularity"),
    ({"granularity": "Day"}, "granularity"),
    ({"query": None}, "query"),
    ({"query": "group"}, "query"),
    ({"query": []}, "query"),
    ({"query": {}}, "query.type"),
    ({"query": {"type": "top"}}, "query.type"),
    ({"query": {"type": ["group"]}}, "query.type"),
    ({"query": {"type": "group"}}, "query.dimension"),
    ({"query": GROUP | {"dimension": ["platform"]}}, "query.dimension"),
    ({"query": GROUP | {"dimensions": ["platform"]}}, "query.dimensions"),
    ({"query": GROUP | {"limit": 0}}, "query.limit"),
    ({"query": GROUP | {"limit": 30_001}}, "query.limit"),
    ({"query": GROUP | {"limit": -1}}, "query.limit"),
    ({"query": GROUP | {"limit": "5"}}, "query.limit"),
    ({"query": GROUP | {"limit": 5.0}}, "query.limit"),
    ({"query": GROUP | {"limit": True}}, "query.limit"),
    ({"query": {"type": "timeseries", "limit": 30_001}}, "query.limit"),
    ({"query": {"type": "timeseries", "dimension": "platform"}}, "query.dimension"),
    ({"query": {"type": "split"}}, "query.dimensions"),
    ({"query": {"type": "split", "dimensions": ["platform"]}}, "query.dimensions"),
    ({"query": {"type": "split", "dimensions": ["platform", "build", "game_id"]}}, "query.dimensions"),
    ({"query": {"type": "split", "dimensions": ["platform", "platform"]}}, "query.dimensions"),
    ({"query": {"type": "split", "dimensions": ["platform", 7]}}, "query.dimensions"),
    ({"query": {"type": "split", "dimensions": "platform"}}, "query.dimensions"),
    ({"query": {"type": "split", "dimensions": ["platform", "build"], "limit": 0}}, "query.limit"),
    ({"split_by": "platform"}, "query"),
    ({"query": None, "split_by": "platform", "game": "1"}, "game"),
    ({"query": None, "split_by": 7}, "split_by"),
    ({"game": 7}, "game"),
    ({"since_days_ago": 0}, "since_days_ago"),
    ({"since_days_ago": -3}, "since_days_ago"),
    ({"since_days_ago": "7"}, "since_days_ago"),
    ({"since_days_ago": 1.5}, "since_days_ago"),
    ({"since_days_ago": True}, "since_days_ago"),
    ({"filter": {}}, "filter"),
    ({"filter": {"platform": 1}}, "filter.platform"),
    ({"games": "1001"}, "games"),
    ({"games": [1001]}, "games"),
    ({"studios": {"id": "s1"}}, "studios"),
    ({"limit": 5}, "limit"),
    ({"dimensions": ["platform"]}, "dimensions"),
    ({"": 1}, ""),
]


@pytest.mark.parametrize(("change", "field"), REFUSED, ids=[json.dumps(change) for change, _ in REFUSED])
def test_a_refusal_names_its_field(change: dict[str, Any], field: str) -> None:
    """A body that breaks a rule raises `BadQuery` with the path of the field.

    Wire 2.12, Refusals.
    """
    with pytest.raises(BadQuery) as raised:
        decode_query({name: value for name, value in (BODY | change).items() if value is not None})
    assert raised.value.field == field
    assert not isinstance(raised.value, MalformedInterval)


@pytest.mark.parametrize("interval", ["", "P7D", "2026-11-01/P0D", "2026-11-02/2026-11-01", "2026-11-01/2026-11-01"])
def test_an_unreadable_interval_is_malformed(interval: str) -> None:
    """A text that is not an interval, or an empty one, raises `MalformedInterval`.

    Wire 2.8, Intervals and buckets.
    """
    with pytest.raises(MalformedInterval):
        decode_query(BODY | {"interval": interval})


@pytest.mark.parametrize(
    ("change", "nearest"),
    [
        ({"granularity": "days"}, "day"),
        ({"query": {"type": "timeserie"}}, "timeseries"),
        ({"filters": {"platform": "ios"}}, "filter"),
        ({"query": GROUP | {"limits": 1}}, "limit"),
    ],
)
def test_a_misspelt_name_gets_a_suggestion(change: dict[str, Any], nearest: str) -> None:
    """An unknown name comes with the nearest allowed one and the allowed names.

    Wire 2.12, Refusals.
    """
    with pytest.raises(BadQuery) as raised:
        decode_query(BODY | change)
    assert raised.value.did_you_mean == nearest
    assert raised.value.allowed


def test_thirty_one_days_are_not_too_many() -> None:
    """A query by day may cover 31 days (Wire 2.8, Intervals and buckets)."""
    assert decode_query(BODY | {"interval": "2026-10-01/P31D"}).interval.length.days == 31


@pytest.mark.parametrize("granularity", ["week", "month", "all"])
def test_only_days_have_a_longest_interval(granularity: str) -> None:
    """A query by week, by month or as a whole may cover any interval.

    Wire 2.8, Intervals and buckets.
    """
    assert decode_query(BODY | {"interval": "2020-01-01/P5Y", "granularity": granularity})


def test_a_null_filter_is_no_filter() -> None:
    """A null `filter` is the same as none (Wire 2.7, Filters)."""
    assert decode_query(BODY | {"filter": None}).filter is None


def test_a_limit_does_not_change_a_split() -> None:
    """A split query accepts a limit in its range and ignores it (Wire 2.5, Query body)."""
    split = {"type": "split", "dimensions": ["platform", "build"]}
    assert decode_query(BODY | {"query": split | {"limit": 5}}) == decode_query(BODY | {"query": split})


@pytest.mark.parametrize("granularity", [{}, {"granularity": None}])
def test_an_absent_granularity_is_the_default_of_the_metric(granularity: dict[str, Any]) -> None:
    """A body with no granularity, or with null, takes the default of its metric (Wire 2.5, Query body)."""
    body = {"interval": "2026-11-01/P7D", "split_by": "platform", "since_days_ago": 1} | granularity
    assert decode_query(body, granularity="day").granularity == "day"


NAMES = st.sampled_from(["platform", "build", "game_id"])
KINDS = st.one_of(
    st.builds(Group, NAMES, st.integers(1, 30_000)),
    st.lists(NAMES, min_size=2, max_size=2, unique=True).map(lambda pair: Split((pair[0], pair[1]))),
    st.just(Timeseries()),
)
IDS = st.none() | st.lists(st.text(max_size=3), max_size=2).map(tuple)


@given(kind=KINDS, game=st.none() | st.just("1"), games=IDS, studios=IDS, since=st.none() | st.integers(1))
def test_a_query_reads_back_as_it_is_written(
    kind: Group | Split | Timeseries,
    game: str | None,
    games: tuple[str, ...] | None,
    studios: tuple[str, ...] | None,
    since: int | None,
) -> None:
    """Any query that is written as JSON and read again is the same query.

    Wire 2.5, Query body.
    """
    query = MetricQuery(
        interval=decode_query(BODY).interval,
        query=kind,
        game=game,
        games=games,
        studios=studios,
        since_days_ago=since,
    )
    assert decode_query(json.loads(encode_query(query))) == query


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=4), inner, max_size=2),
    max_leaves=4,
)


@given(change=st.dictionaries(st.sampled_from([*MetricQuery.__struct_fields__, "x"]), JSON, max_size=3))
def test_any_body_is_a_query_or_is_refused(change: dict[str, Any]) -> None:
    """Any body is a query or raises `BadQuery` with a field that was changed.

    Wire 2.12, Refusals.
    """
    field = "query"  # of a body that is accepted, or of split_by beside query
    try:
        decode_query(BODY | change)
    except BadQuery as error:
        field = error.field
    assert field.split(".")[0] in {*change, "query"}


def test_the_largest_limit_is_taken() -> None:
    """1 to 30,000, both included."""
    for limit in (1, 30_000):
        assert decode_query(BODY | {"query": GROUP | {"limit": limit}}).query == Group("platform", limit)
