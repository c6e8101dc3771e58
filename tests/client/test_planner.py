"""The planner: which requests answer a query, and which queries it refuses."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, product
from math import prod
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gamelens.client.query.arguments import GAME_ID, STUDIO_ID, QuerySpec, as_names
from gamelens.client.query.planner import FanOut, MetricPlan, fan_out_dimensions, plan_requests, typical_values
from gamelens.errors import BadQuery
from gamelens.wire.filters import And, Filter, Match, Not, Or, dim
from gamelens.wire.intervals import Interval
from gamelens.wire.queries import Group, MetricQuery, Query, Split, Timeseries, decode_query
from support.hypothesis_profiles import examples

WEEK = Interval.parse("2026-11-01/P1W")
QUARTER = Interval.parse("2026-08-22/P90D")
PAIR = ("platform", "country_code")
TRIPLE = (*PAIR, "build")
LISTS: FanOut = {
    GAME_ID: ("1001", "1002"),
    STUDIO_ID: ("s1", "s2"),
    "platform": ("android", "ios"),
    "country_code": ("DE", "FR", "US"),
    "build": ("1.0",),
    "category": ("ads", "business", "user", "error"),
}


def planned(
    *metrics: str,
    over: Interval = WEEK,
    max_days: int | None = None,
    lists: FanOut = LISTS,
    passed: Sequence[str] = (),
    **arguments: Any,
) -> list[MetricPlan]:
    """Return the plans of the metrics, one for each."""
    return plan_requests(QuerySpec(metrics=metrics, **arguments), over, max_days=max_days, unknown=passed, values=lists)


def metric_plan(*metrics: str, **arguments: Any) -> MetricPlan:
    """Return the plan of the first metric."""
    return planned(*metrics, **arguments)[0]


def only_query(*metrics: str, **arguments: Any) -> MetricQuery:
    """Return the only request of a plan."""
    (template,) = metric_plan(*metrics, **arguments).templates
    return template.query


def required_arguments(metric: str) -> dict[str, Any]:
    """Return the arguments that *metric* cannot be queried without."""
    return {"since_days_ago": 7} if metric == "retention_retro" else {}


# The requests


def many_games(number: int) -> FanOut:
    """Return lists with *number* games."""
    return {**LISTS, GAME_ID: tuple(map(str, range(number)))}


def fixed(*values: tuple[str, str | None]) -> tuple[tuple[str, str | None], ...]:
    """Return the values that a request is narrowed to."""
    return values


ALL, IN_TWENTY = Group("platform", 30_000), Group("platform", 20)
STUDIO_1, STUDIO_2 = fixed(("studio_id", "s1")), fixed(("studio_id", "s2"))
GAME_1, GAME_2 = fixed(("game_id", "1001")), fixed(("game_id", "1002"))
BUILD, NO_BUILD = fixed(("build", "1.0")), fixed(("build", None))
CUT: dict[str, Any] = {"over": QUARTER, "every": "all", "max_days": 31}
REQUESTS: list[tuple[str, dict[str, Any], list[tuple[Query | str, tuple[tuple[str, str | None], ...]]]]] = [
    # no dimension is a timeseries, one a group of all values, two are a split (Wire 2.6, Query kinds)
    ("revenue", {}, [(Timeseries(), ())]),
    ("revenue", {"by": ("platform",)}, [(ALL, ())]),
    ("revenue", {"by": ("game",)}, [(Group("game_id", 30_000), ())]),
    ("revenue", {"by": PAIR}, [(Split(PAIR), ())]),
    # more are a split for each value, null included, of the dimensions that have the fewest
    ("revenue", {"by": TRIPLE}, [(Split(PAIR), BUILD), (Split(PAIR), NO_BUILD)]),
    (
        "revenue",
        {"by": (*TRIPLE, "category")},
        [
            (Split(("country_code", "category")), fixed(("platform", platform), ("build", build)))
            for platform in ("android", "ios", None)
            for build in ("1.0", None)
        ],
    ),
    # the service has no studios: a request for each, unless they follow from the game
    ("revenue", {"by": ("studio", "platform")}, [(ALL, STUDIO_1), (ALL, STUDIO_2)]),
    ("revenue", {"by": ("studio", "game", "platform")}, [(Split(("game_id", "platform")), ())]),
    ("conversion", {"by": ("studio",)}, [("game_id", ())]),
    # a metric per game is requested by game and one dimension, or for each game, whichever takes fewer requests
    ("conversion", {}, [("game_id", ())]),
    ("conversion", {"by": ("game",)}, [("game_id", ())]),
    ("conversion", {"by": ("platform",)}, [("platform", ())]),
    ("conversion", {"by": PAIR}, [(Split(PAIR), GAME_1), (Split(PAIR), GAME_2)]),
    (
        "conversion",
        {"by": ("build", "country_code"), "lists": many_games(5)},
        [("country_code", BUILD), ("country_code", NO_BUILD)],
    ),
    # retention never for one game
    (
        "retention_retro",
        {"by": (*PAIR, "game"), "since_days_ago": 1},
        [("country_code", fixed(("platform", platform))) for platform in ("android", "ios", None)],
    ),
    # the service chooses the largest values only where one request has all that are compared
    ("revenue", {"by": ("platform",), "top": 20}, [(IN_TWENTY, ())]),
    ("revenue", {"by": ("platform",), "top": 20, "over": QUARTER}, [(IN_TWENTY, ())]),
    ("revenue", {"by": ("platform",), "top": 20, **CUT}, [(ALL, ())]),
    ("revenue", {"by": ("studio", "platform"), "top": 20}, [(ALL, STUDIO_1), (ALL, STUDIO_2)]),
    (
        "revenue",
        {"by": ("studio", "platform"), "top": 20, "top_of": "platform"},
        [(IN_TWENTY, STUDIO_1), (IN_TWENTY, STUDIO_2)],
    ),
    ("revenue", {"by": ("studio", "game"), "top": 20, "top_of": "game"}, [(Group("game_id", 30_000), ())]),
    ("revenue", {"by": PAIR, "top": 20}, [(Split(PAIR), ())]),
    ("conversion", {"by": ("platform",), "top": 20}, [("platform", ())]),
]


@pytest.mark.parametrize(("metric", "arguments", "requests"), REQUESTS, ids=str)
def test_a_query_takes_these_requests(
    metric: str, arguments: dict[str, Any], requests: list[tuple[Query | str, tuple[tuple[str, str | None], ...]]]
) -> None:
    """The kind of each, or the dimension of a query by game, and the values that it is narrowed to."""
    templates = metric_plan(metric, **arguments).templates
    assert [(it.query.query or it.query.split_by, it.fixed) for it in templates] == requests
    for template in templates:
        narrowed = dict(template.fixed)
        game, studio = narrowed.get(GAME_ID), narrowed.get(STUDIO_ID)
        assert (template.query.game, template.query.studios) == (game, (studio,) if studio else None)


def test_metrics_queried_with_a_per_game_metric_are_requested_as_without_it() -> None:
    """Beside a metric per game the other metrics are not split by game."""
    revenue = planned("conversion", "revenue", by=("platform",))[1]
    assert revenue.templates[0].query.query == ALL


@pytest.mark.parametrize("arguments", [{"by": ("brand_new",)}, {"where": dim.brand_new == "x"}])
def test_a_dimension_the_service_knows_is_passed_on(arguments: dict[str, Any]) -> None:
    """A dimension that only the service knows is allowed in `by` and `where`."""
    assert metric_plan("revenue", passed=["brand_new"], **arguments).templates
    with pytest.raises(BadQuery):
        metric_plan("revenue", **arguments)


def test_a_single_name_is_not_split_into_letters() -> None:
    """None, a name, a list and an iterator of names all become a tuple of names."""
    given = (None, "ios", ["a", "b"], iter(("a",)))
    assert [as_names("by", value) for value in given] == [(), ("ios",), ("a", "b"), ("a",)]


# The lists of a fan-out


@pytest.mark.parametrize(
    ("metrics", "by", "needed"),
    [
        (("revenue",), PAIR, ()),
        (("revenue",), TRIPLE, TRIPLE),
        (("revenue",), ("game", *PAIR), ("game_id", *PAIR)),
        (("revenue",), ("studio", *PAIR), ("studio_id",)),
        (("revenue",), ("studio", "game", *PAIR), ("game_id", *PAIR)),
        (("conversion",), ("platform",), ()),
        (("conversion",), PAIR, (*PAIR, "game_id")),
        (("revenue", "conversion"), PAIR, (*PAIR, "game_id")),
        (("conversion",), ("studio", "platform"), ()),
    ],
)
def test_lists_are_needed_only_for_a_fan_out(
    metrics: tuple[str, ...], by: tuple[str, ...], needed: tuple[str, ...]
) -> None:
    """Only dimensions that may be fanned out need their lists of values."""
    assert fan_out_dimensions(QuerySpec(metrics=metrics, by=by)) == needed


def test_a_dimension_has_placeholders_for_an_estimate() -> None:
    """Dimensions have placeholder values, as many as are typical or 20."""
    assert (len(typical_values("platform")), len(typical_values("brand_new"))) == (4, 20)
    assert len(set(typical_values("country_code"))) == 150


dimensions = st.lists(st.sampled_from(["game", "studio", *TRIPLE, "category"]), max_size=5, unique=True).map(tuple)
metrics = st.sampled_from(["revenue", "conversion", "retention_retro"])
short = st.lists(st.sampled_from("abcd"), max_size=4, unique=True).map(tuple)


@st.composite
def some_lists(draw: st.DrawFn) -> FanOut:
    """Draw lists of games, studios and values."""
    return {
        GAME_ID: draw(st.lists(st.sampled_from("1234567"), min_size=1, unique=True).map(tuple)),
        STUDIO_ID: draw(st.lists(st.sampled_from(("s1", "s2", "s3")), min_size=1, unique=True).map(tuple)),
        **{name: draw(short) for name in (*TRIPLE, "category")},
    }


def request_counts(metric: str, by: Sequence[str], lists: FanOut) -> Iterator[int]:
    """Yield how many requests each allowed choice takes (Wire 2.6, Query kinds)."""
    columns = {{"game": GAME_ID, "studio": STUDIO_ID}.get(name, name) for name in by}
    columns |= set() if metric == "revenue" else {GAME_ID}
    fanned = {STUDIO_ID} & columns if GAME_ID not in columns else set()
    columns -= {STUDIO_ID}
    # How many dimensions one request carries, which columns it returns besides, and what it is repeated for.
    kinds: list[tuple[int, set[str], set[str]]]
    kinds = [(2, set(), set())] if metric == "revenue" else [(1, {GAME_ID}, set())]
    kinds += [(2, set(), {GAME_ID})] if metric == "conversion" else []
    for most, with_them, for_each in kinds:
        free = columns - with_them - for_each
        for number in range(most + 1):
            for carried in combinations(free, number):
                repeated = {*fanned, *for_each, *(free - set(carried))}
                yield prod(sizes_of(lists)[name] for name in repeated)


def sizes_of(lists: FanOut) -> dict[str, int]:
    """Return the number of values of each dimension, null included."""
    return {name: len(values) + (name not in (GAME_ID, STUDIO_ID)) for name, values in lists.items()}


def with_its_game(metric: str, by: tuple[str, ...]) -> tuple[str, ...]:
    """Return *by* with the game, if *metric* cannot be queried without."""
    return (*by, "game") if metric == "retention_retro" and "game" not in by else by


@given(metrics, dimensions, some_lists())
@settings(deadline=None, max_examples=examples(300))
def test_a_fan_out_takes_as_few_requests_as_possible(metric: str, by: tuple[str, ...], lists: FanOut) -> None:
    """No allowed choice of carried dimensions takes fewer requests than the plan."""
    by = with_its_game(metric, by)
    assert len(metric_plan(metric, by=by, lists=lists, **required_arguments(metric)).templates) == min(
        request_counts(metric, by, lists)
    )


def selects(node: Filter | None, event: dict[str, str | None]) -> bool:
    """Return whether a filter matches *event* (Wire 2.7, Filters)."""
    match node:
        case None:
            return True
        case Match(dimension, values):
            return event[dimension] in values
        case And(members):
            return all(selects(member, event) for member in members)
        case Or(members):
            return any(selects(member, event) for member in members)
        case Not(member):
            return not selects(member, event)
    raise AssertionError(node)


def answers(request: MetricQuery, event: dict[str, str | None]) -> bool:
    """Return whether a request counts *event*."""
    narrowed = [
        (request.games, GAME_ID),
        (request.studios, STUDIO_ID),
        ((request.game,) if request.game else None, GAME_ID),
    ]
    return selects(request.filter, event) and all(ids is None or event[name] in ids for ids, name in narrowed)


matches = st.builds(Match, st.sampled_from(TRIPLE), st.lists(st.sampled_from("abcd"), min_size=1).map(tuple))
filters = st.recursive(
    matches,
    lambda inner: (
        st.builds(Not, inner)
        | st.lists(inner, min_size=1, max_size=3).map(lambda members: And(tuple(members)))
        | st.lists(inner, min_size=1, max_size=3).map(lambda members: Or(tuple(members)))
    ),
    max_leaves=5,
)


@given(metrics, dimensions, some_lists(), st.none() | filters, st.data())
@settings(deadline=None, max_examples=examples(300))
def test_every_event_is_counted_by_exactly_one_request(
    metric: str, by: tuple[str, ...], lists: FanOut, where: Filter | None, data: st.DataObject
) -> None:
    """Each wanted event is counted once, null is a group of its own (Wire 4.10, Dimensions)."""
    by = with_its_game(metric, by)
    games = data.draw(st.none() | st.lists(st.sampled_from(lists[GAME_ID]), min_size=1).map(tuple))
    inside = lists if games is None else {**lists, GAME_ID: tuple(set(games))}
    result = metric_plan(metric, by=by, lists=inside, where=where, games=games, **required_arguments(metric))
    event = {name: data.draw(st.sampled_from((*values, None))) for name, values in lists.items()}
    event |= {
        GAME_ID: data.draw(st.sampled_from(lists[GAME_ID])),
        STUDIO_ID: data.draw(st.sampled_from(lists[STUDIO_ID])),
    }
    is_wanted = selects(where, event) and (games is None or event[GAME_ID] in games)
    matching = [template for template in result.templates if answers(template.query, event)]
    assert len(matching) == is_wanted
    for template in matching:
        assert all(event[name] == value for name, value in template.fixed)
    for template in result.templates:
        columns = {*template.carried, *(name for name, _ in template.fixed)}
        assert columns | set(result.labels) == {*result.dimensions, *([GAME_ID] if result.pools_games else [])}


# Texts that identify queries


def query_text(**arguments: Any) -> str:
    """Return the text that identifies a request in the cache."""
    return metric_plan("revenue", **arguments).templates[0].text


def test_the_text_is_the_same_however_games_are_ordered() -> None:
    """The text does not depend on the order of games and studios."""
    assert query_text(games=("2", "1"), studios=("b", "a")) == query_text(games=("1", "2", "1"), studios=("a", "b"))


def test_the_text_does_not_hold_the_interval() -> None:
    """The text holds no interval, since rows are cached by bucket."""
    assert query_text() == query_text(over=QUARTER)
    assert "2026" not in query_text()


def test_the_text_does_not_depend_on_max_days() -> None:
    """The text does not depend on `max_days`."""
    assert query_text(over=QUARTER) == query_text(over=QUARTER, max_days=7)


def test_different_queries_have_different_texts() -> None:
    """Filter, dimensions, granularity and games each change the text."""
    others = product([None, dim.platform == "ios"], [(), ("platform",), PAIR], ["day", "week"], [None, ("1",)])
    texts = [query_text(where=where, by=by, every=every, games=games) for where, by, every, games in others]
    assert len(set(texts)) == len(texts)


def test_a_template_is_a_query_over_any_interval() -> None:
    """The text and an interval are the JSON body of the request (Wire 2.5, Query body)."""
    template = metric_plan("conversion", by=PAIR, where=dim.build == "1", over=QUARTER).templates[0]
    request = template.over(WEEK)
    body = msgspec.json.decode(template.text) | {"interval": str(WEEK)}
    assert (request.interval, decode_query(body)) == (WEEK, request)
