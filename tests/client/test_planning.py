"""Which requests answer a question (Metrics, Query object and Query type exceptions)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, product
from math import prod
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conftest import examples
from gamelens.client.query.arguments import as_filter, as_names
from gamelens.client.query.planner import FanOutValues, MetricPlan, fan_out_dimensions, plan_requests, typical_values
from gamelens.client.query.query_spec import GAME_ID, STUDIO_ID, QuerySpec
from gamelens.errors import BadQuery, NotAdditive
from gamelens.wire.filters import And, Filter, Match, Not, Or, dim
from gamelens.wire.intervals import Interval
from gamelens.wire.queries import Group, MetricQuery, Split, Timeseries, decode_query

WEEK = Interval.parse("2026-11-01/P1W")
QUARTER = Interval.parse("2026-08-22/P90D")
PAIR = ("platform", "country_code")
TRIPLE = (*PAIR, "build")
LISTS = FanOutValues(
    games=("1001", "1002"),
    studios=("s1", "s2"),
    values={
        "platform": ("android", "ios"),
        "country_code": ("DE", "FR", "US"),
        "build": ("1.0",),
        "category": ("ads", "business", "user", "error"),
    },
)


def planned(
    *metrics: str,
    over: Interval = WEEK,
    max_days: int | None = None,
    lists: FanOutValues = LISTS,
    passed: Sequence[str] = (),
    **question: Any,
) -> list[MetricPlan]:
    return plan_requests(QuerySpec(metrics=metrics, **question), over, max_days=max_days, unknown=passed, values=lists)


def part(*metrics: str, **question: Any) -> MetricPlan:
    return planned(*metrics, **question)[0]


def query(*metrics: str, **question: Any) -> MetricQuery:
    """The one request there is."""
    (template,) = part(*metrics, **question).templates
    return template.query


def since(metric: str) -> dict[str, Any]:
    """What retention cannot be asked without."""
    return {"since_days_ago": 7} if metric == "retention_retro" else {}


# The kind of query


def test_no_dimension_is_a_timeseries() -> None:
    """Metrics, Query object."""
    assert query("revenue").query == Timeseries()


def test_one_dimension_is_a_group_of_all_values() -> None:
    """Metrics, Query object; public-facts 3.3: limit 1 to 30000, default 100."""
    assert query("revenue", by=("platform",)).query == Group("platform", 30_000)


def test_two_dimensions_are_a_split() -> None:
    assert query("revenue", by=PAIR).query == Split(PAIR)


def test_the_game_is_asked_by_its_id() -> None:
    assert query("revenue", by=("game",)).query == Group("game_id", 30_000)


def test_three_dimensions_are_a_split_for_each_value_of_the_shortest() -> None:
    """Metrics, Query object: a split has two dimensions."""
    templates = part("revenue", by=TRIPLE).templates
    assert [(it.query.query, it.fixed) for it in templates] == [
        (Split(PAIR), (("build", "1.0"),)),
        (Split(PAIR), (("build", None),)),
    ]


def test_four_dimensions_are_a_split_for_each_pair_of_values() -> None:
    templates = part("revenue", by=(*TRIPLE, "category")).templates
    assert [it.fixed for it in templates] == [
        (("platform", platform), ("build", build)) for platform in ("android", "ios", None) for build in ("1.0", None)
    ]
    assert {it.query.query for it in templates} == {Split(("country_code", "category"))}


def test_a_per_game_metric_is_asked_by_game() -> None:
    """Metrics, Query type exceptions 3."""
    asked = query("conversion", by=("platform",))
    assert (asked.split_by, asked.query, asked.game) == ("platform", None, None)


@pytest.mark.parametrize("by", [(), ("game",)])
def test_a_per_game_metric_without_another_dimension_is_split_by_the_game(by: tuple[str, ...]) -> None:
    """Metrics, Query type exceptions 3."""
    assert query("conversion", by=by).split_by == "game_id"


def test_a_per_game_metric_carries_the_game_beside_the_dimension() -> None:
    assert part("conversion", by=("platform",)).dimensions == ("platform", "game_id")


def test_the_game_keeps_its_place_where_it_was_asked_for() -> None:
    assert part("conversion", by=("game", "platform")).dimensions == ("game_id", "platform")


def test_a_per_game_metric_by_two_dimensions_is_asked_for_each_game_where_they_are_fewer() -> None:
    """Metrics, Query type exceptions 2."""
    templates = part("conversion", by=PAIR).templates
    assert [(it.query.game, it.query.query, it.fixed) for it in templates] == [
        ("1001", Split(PAIR), (("game_id", "1001"),)),
        ("1002", Split(PAIR), (("game_id", "1002"),)),
    ]


def test_a_per_game_metric_by_two_dimensions_is_asked_by_game_where_values_are_fewer() -> None:
    """Metrics, Query type exceptions 3."""
    templates = part("conversion", by=("build", "country_code"), lists=many_games(5)).templates
    assert [(it.query.split_by, it.query.game, it.fixed) for it in templates] == [
        ("country_code", None, (("build", "1.0"),)),
        ("country_code", None, (("build", None),)),
    ]


def many_games(number: int) -> FanOutValues:
    return msgspec.structs.replace(LISTS, games=tuple(map(str, range(number))))


def test_retention_has_no_game_kind() -> None:
    """Metrics, Result shapes 5."""
    templates = part("retention_retro", by=PAIR, since_days_ago=1).templates
    assert {(it.query.split_by, it.query.game) for it in templates} == {("country_code", None)}


def test_metrics_asked_with_a_per_game_metric_come_by_game_too() -> None:
    revenue = planned("conversion", "revenue", by=("platform",))[1]
    assert revenue.templates[0].query.query == Split(("platform", "game_id"))


def test_since_days_ago_goes_to_the_metric_that_takes_it() -> None:
    users, returning = planned("user_unique", "returning_users", since_days_ago=7)
    assert [it.templates[0].query.since_days_ago for it in (users, returning)] == [None, 7]


def test_since_days_ago_that_nobody_takes_is_refused() -> None:
    with pytest.raises(BadQuery, match="since_days_ago"):
        part("revenue", since_days_ago=7)


# What a question may be


@pytest.mark.parametrize(
    ("question", "rule"),
    [
        ({"metrics": ()}, "at least one metric"),
        ({"metrics": ("revenue", "revenue")}, "none twice"),
        ({"by": ("game", "game_id")}, "must not name a dimension twice"),
        ({"by": ("platform", "platform")}, "must not name a dimension twice"),
        ({"every": "hour"}, "every = 'hour' is not allowed"),
        ({"top": 5}, "needs a dimension in by"),
        ({"by": PAIR, "top": 0}, "1 to 30000"),
        ({"by": PAIR, "top": 30_001}, "1 to 30000"),
        ({"by": PAIR, "top": "3"}, "a whole number"),
        ({"by": PAIR, "top": 3.0}, "a whole number"),
        ({"by": PAIR, "top": True}, "a whole number"),
        ({"metrics": ("retention_retro",), "since_days_ago": "7"}, "a whole number of days"),
        ({"metrics": ("retention_retro",), "since_days_ago": 0}, "1 or more"),
        ({"by": PAIR, "other": True}, "needs top"),
        ({"by": PAIR, "top": 3, "check": True}, "needs all values"),
    ],
)
def test_a_question_that_contradicts_itself_is_refused(question: dict[str, Any], rule: str) -> None:
    with pytest.raises(BadQuery, match=rule):
        QuerySpec(**({"metrics": ("revenue",)} | question))


def test_an_unknown_dimension_is_refused_with_the_nearest() -> None:
    with pytest.raises(BadQuery) as bad:
        part("revenue", by=("platfrom",))
    assert bad.value.did_you_mean == "platform"


@pytest.mark.parametrize("question", [{"by": ("brand_new",)}, {"where": dim.brand_new == "x"}])
def test_a_dimension_the_service_knows_is_passed_on(question: dict[str, Any]) -> None:
    assert part("revenue", passed=["brand_new"], **question).templates
    with pytest.raises(BadQuery):
        part("revenue", **question)


@pytest.mark.parametrize("name", ["sum", "event_count", "timestamp"])
def test_a_dimension_called_like_a_field_is_refused(name: str) -> None:
    """A row is a JSON object: it has one place for each name."""
    with pytest.raises(BadQuery, match="also the name of a field of revenue"):
        part("revenue", by=(name,), passed=[name])


def test_one_name_is_a_name_and_not_its_letters() -> None:
    given = (None, "ios", ["a", "b"], iter(("a",)))
    assert [as_names("by", it) for it in given] == [(), ("ios",), ("a", "b"), ("a",)]


@pytest.mark.parametrize("given", [1001, [1001], ["1001", None]])
def test_a_name_that_is_no_text_is_refused(given: Any) -> None:
    """An id that was read as a number must not be taken for a game nobody knows."""
    with pytest.raises(BadQuery, match=r"games = .* must be text"):
        as_names("games", given)


@pytest.mark.parametrize("where", ["platform == 'ios'", True, [dim.platform == "ios"], dim.platform])
def test_a_where_that_is_no_filter_is_refused(where: Any) -> None:
    with pytest.raises(BadQuery, match=r"where = .* must be an expression such as dim.platform"):
        as_filter(where)


@pytest.mark.parametrize("where", [dim.platform == "ios", {"platform": "ios"}])
def test_a_filter_may_be_the_services_own_object(where: Any) -> None:
    """Metrics, Query request body: filter."""
    assert as_filter(where) == Match("platform", ("ios",))


# Top, and what is put together after


def test_top_is_the_limit_of_a_single_request() -> None:
    made = part("revenue", by=("platform",), top=20)
    assert (made.templates[0].query.query, made.limit, made.top) == (Group("platform", 20), 20, 20)


def test_top_of_each_piece_of_time_is_asked_of_the_service() -> None:
    made = part("revenue", by=("platform",), top=20, over=QUARTER)
    assert (made.templates[0].query.query, made.adds_up) == (Group("platform", 20), False)


def test_the_largest_of_a_cut_bucket_are_found_among_all() -> None:
    """The top of a whole is not among the tops of its parts."""
    made = part("revenue", over=QUARTER, every="all", max_days=31, by=("platform",), top=3)
    assert (made.templates[0].query.query, made.limit, made.top) == (Group("platform", 30_000), 30_000, 3)


def test_the_largest_of_a_fan_out_are_found_among_all() -> None:
    made = part("revenue", by=("studio", "platform"), top=3)
    assert {it.query.query for it in made.templates} == {Group("platform", 30_000)}
    assert made.top == 3


@pytest.mark.parametrize("question", [{"by": PAIR}, {"by": TRIPLE}])
def test_top_of_a_split_is_taken_after(question: dict[str, Any]) -> None:
    made = part("revenue", top=5, **question)
    assert ({it.query.query for it in made.templates}, made.limit, made.top) == ({Split(PAIR)}, None, 5)


def test_top_of_a_by_game_answer_is_taken_after() -> None:
    made = part("conversion", by=("platform",), top=5)
    assert (made.templates[0].query.split_by, made.limit, made.top) == ("platform", None, 5)


def test_other_and_check_need_the_total_of_the_same_question() -> None:
    where = dim.platform == "ios"
    for more in ({"top": 3, "other": True}, {"check": True}):
        made = part("revenue", by=TRIPLE, where=where, games=("1001",), **more)
        assert made.total is not None
        (template,) = made.total.templates
        assert (template.query.query, template.query.filter, template.query.games) == (Timeseries(), where, ("1001",))
        assert (made.total.dimensions, made.total.top, made.total.total) == ((), None, None)


def test_there_is_no_total_where_nobody_needs_one() -> None:
    assert part("revenue", by=PAIR, top=3).total is None


@pytest.mark.parametrize("more", [{"top": 3, "other": True}, {"check": True}])
@pytest.mark.parametrize(
    ("metric", "by"),
    [
        ("user_unique", ("platform",)),
        ("user_unique", ("game", "platform")),
        ("session_length", ("game",)),
        ("conversion", ("game",)),
        ("retention_retro", ("game",)),
    ],
)
def test_rows_that_do_not_make_up_a_total_have_none(metric: str, by: tuple[str, ...], more: dict[str, Any]) -> None:
    with pytest.raises(NotAdditive, match=f"{metric} cannot be added up"):
        part(metric, by=by, **since(metric), **more)


@pytest.mark.parametrize("by", [("game",), ("studio",), ("game", "studio")])
def test_players_make_up_a_total_over_games_and_studios(by: tuple[str, ...]) -> None:
    """design/metrics, Words: the same device in two games is two players."""
    assert part("user_unique", by=by, check=True).total is not None


# Pieces of time


def test_ninety_days_are_three_requests() -> None:
    """public-facts 3.3: at most 31 days at day granularity."""
    made = part("user_unique", over=QUARTER)
    assert [len(run) for run in made.runs(made.slices)] == [31, 31, 28]


def test_all_is_one_request_however_long() -> None:
    made = part("user_unique", over=QUARTER, every="all")
    assert (len(made.runs(made.slices)), made.adds_up) == (1, False)


@pytest.mark.parametrize("metric", ["user_unique", "arpu", "session_length", "brand_new"])
def test_what_cannot_be_added_over_pieces_is_refused_with_the_way_out(metric: str) -> None:
    with pytest.raises(NotAdditive, match=rf'{metric} cannot be added up over pieces. Use query\("{metric}"'):
        part(metric, over=QUARTER, every="all", max_days=31)


def test_a_week_that_is_cut_is_refused_as_well() -> None:
    with pytest.raises(NotAdditive):
        part("user_unique", over=QUARTER, every="week", max_days=3)


def test_money_over_pieces_is_added_up() -> None:
    made = part("revenue", over=QUARTER, every="all", max_days=31)
    assert (made.adds_up, len(made.runs(made.slices))) == (True, 3)


# Studios


def test_studios_are_fanned_out() -> None:
    templates = part("revenue", by=("studio", "platform")).templates
    assert [(it.query.studios, it.fixed, it.carried) for it in templates] == [
        (("s1",), (("studio_id", "s1"),), ("platform",)),
        (("s2",), (("studio_id", "s2"),), ("platform",)),
    ]


@pytest.mark.parametrize(("metric", "by"), [("revenue", ("studio", "game", "platform")), ("conversion", ("studio",))])
def test_the_studio_follows_from_the_game_where_that_is_there(metric: str, by: tuple[str, ...]) -> None:
    made = part(metric, by=by)
    assert (len(made.templates), made.labels, made.dimensions[0]) == (1, ("studio_id",), "studio_id")
    assert STUDIO_ID not in made.templates[0].carried


def test_a_fan_out_over_nothing_asks_nothing() -> None:
    assert part("revenue", by=("studio",), lists=FanOutValues()).templates == ()


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
def test_lists_are_needed_only_for_a_fan_out(metrics: Any, by: Any, needed: tuple[str, ...]) -> None:
    assert fan_out_dimensions(QuerySpec(metrics=metrics, by=by)) == needed


def test_a_dimension_has_placeholders_for_an_estimate() -> None:
    assert (len(typical_values("platform")), len(typical_values("brand_new"))) == (4, 20)
    assert len(set(typical_values("country_code"))) == 150


dimensions = st.lists(st.sampled_from(["game", "studio", *TRIPLE, "category"]), max_size=5, unique=True).map(tuple)
metrics = st.sampled_from(["revenue", "conversion", "retention_retro"])
short = st.lists(st.sampled_from("abcd"), max_size=4, unique=True).map(tuple)


@st.composite
def some_lists(draw: st.DrawFn) -> FanOutValues:
    return FanOutValues(
        games=draw(st.lists(st.sampled_from("1234567"), min_size=1, unique=True).map(tuple)),
        studios=draw(st.lists(st.sampled_from(("s1", "s2", "s3")), min_size=1, unique=True).map(tuple)),
        values={name: draw(short) for name in (*TRIPLE, "category")},
    )


def ways(metric: str, by: Sequence[str], lists: FanOutValues) -> Iterator[int]:
    """How many requests each way takes to choose what one request carries (Metrics, Query type exceptions)."""
    columns = {{"game": GAME_ID, "studio": STUDIO_ID}.get(name, name) for name in by}
    columns |= set() if metric == "revenue" else {GAME_ID}
    fanned = {STUDIO_ID} & columns if GAME_ID not in columns else set()
    columns -= {STUDIO_ID}
    kinds = [(2, set(), set())] if metric == "revenue" else [(1, {GAME_ID}, set())]  # how many, what comes with them
    kinds += [(2, set(), {GAME_ID})] if metric == "conversion" else []
    for most, with_them, for_each in kinds:
        free = columns - with_them - for_each
        for number in range(most + 1):
            for carried in combinations(free, number):
                rest = {*fanned, *for_each, *(free - set(carried))}
                yield prod(sizes_of(lists)[name] for name in rest)


def sizes_of(lists: FanOutValues) -> dict[str, int]:
    return {
        GAME_ID: len(lists.games),
        STUDIO_ID: len(lists.studios),
        **{name: len(values) + 1 for name, values in lists.values.items()},
    }


@given(metrics, dimensions, some_lists())
@settings(deadline=None, max_examples=examples(300))
def test_a_fan_out_takes_as_few_requests_as_possible(metric: str, by: tuple[str, ...], lists: FanOutValues) -> None:
    assert len(part(metric, by=by, lists=lists, **since(metric)).templates) == min(ways(metric, by, lists))


def selects(node: Filter | None, event: dict[str, str | None]) -> bool:
    """public-facts 3.4: null matches no equality, negation is plain."""
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


def answers(asked: MetricQuery, event: dict[str, str | None]) -> bool:
    narrowed = [(asked.games, GAME_ID), (asked.studios, STUDIO_ID), ((asked.game,) if asked.game else None, GAME_ID)]
    return selects(asked.filter, event) and all(ids is None or event[name] in ids for ids, name in narrowed)


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
def test_every_event_is_asked_for_once_in_its_own_group(
    metric: str, by: tuple[str, ...], lists: FanOutValues, where: Filter | None, data: st.DataObject
) -> None:
    """Null is a group of its own (design/metrics, Dimensions); the caller's filter and games hold in each request."""
    games = data.draw(st.none() | st.lists(st.sampled_from(lists.games), min_size=1).map(tuple))
    inside = lists if games is None else msgspec.structs.replace(lists, games=tuple(set(games)))
    made = part(metric, by=by, lists=inside, where=where, games=games, **since(metric))
    event = {name: data.draw(st.sampled_from((*values, None))) for name, values in lists.values.items()}
    event |= {
        GAME_ID: data.draw(st.sampled_from(lists.games)),
        STUDIO_ID: data.draw(st.sampled_from(lists.studios)),
    }
    is_wanted = selects(where, event) and (games is None or event[GAME_ID] in games)
    mine = [template for template in made.templates if answers(template.query, event)]
    assert len(mine) == is_wanted
    for template in mine:
        assert all(event[name] == value for name, value in template.fixed)
    for template in made.templates:
        own = {*template.carried, *(name for name, _ in template.fixed)}
        assert own | set(made.labels) == set(made.dimensions)


@pytest.mark.parametrize("by", [(), ("game",), ("studio", "platform"), TRIPLE, ("studio", "game", *TRIPLE)])
def test_games_are_never_null(by: tuple[str, ...]) -> None:
    constants = [constant for it in part("conversion", by=by).templates for constant in it.fixed]
    assert all(value is not None for name, value in constants if name in (GAME_ID, STUDIO_ID))


# One text for one question


def text(**question: Any) -> str:
    return part("revenue", **question).templates[0].text


def test_the_text_is_the_same_however_games_are_ordered() -> None:
    assert text(games=("2", "1"), studios=("b", "a")) == text(games=("1", "2", "1"), studios=("a", "b"))


def test_the_text_does_not_hold_the_interval() -> None:
    assert text() == text(over=QUARTER)
    assert "2026" not in text()


def test_the_text_is_the_same_with_and_without_a_cap() -> None:
    assert text(over=QUARTER) == text(over=QUARTER, max_days=7)


def test_different_questions_have_different_texts() -> None:
    others = product([None, dim.platform == "ios"], [(), ("platform",), PAIR], ["day", "week"], [None, ("1",)])
    texts = [text(where=where, by=by, every=every, games=games) for where, by, every, games in others]
    assert len(set(texts)) == len(texts)


def test_a_template_is_a_query_over_any_interval() -> None:
    template = part("conversion", by=PAIR, where=dim.build == "1", over=QUARTER).templates[0]
    asked = template.over(WEEK)
    body = msgspec.json.decode(template.text) | {"interval": str(WEEK)}
    assert (asked.interval, decode_query(body)) == (WEEK, asked)
