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

from gamelens.client.query.arguments import GAME_ID, STUDIO_ID, QuerySpec, as_filter, as_names
from gamelens.client.query.planner import MetricPlan, Values, fan_out_dimensions, plan_requests, typical_values
from gamelens.errors import BadQuery, NotAdditive
from gamelens.wire.filters import And, Filter, Match, Not, Or, dim
from gamelens.wire.intervals import Interval
from gamelens.wire.queries import Group, MetricQuery, Split, Timeseries, decode_query
from support.hypothesis_profiles import examples

WEEK = Interval.parse("2026-11-01/P1W")
QUARTER = Interval.parse("2026-08-22/P90D")
PAIR = ("platform", "country_code")
TRIPLE = (*PAIR, "build")
LISTS: Values = {
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
    lists: Values = LISTS,
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


# The kind of query


def test_no_dimension_is_a_timeseries() -> None:
    """A query without dimensions is a timeseries (Wire 2.6, Query kinds)."""
    assert only_query("revenue").query == Timeseries()


def test_one_dimension_is_a_group_of_all_values() -> None:
    """One dimension is a group with the largest limit, 30,000 (Wire 2.6, Query kinds)."""
    assert only_query("revenue", by=("platform",)).query == Group("platform", 30_000)


def test_two_dimensions_are_a_split() -> None:
    """Two dimensions are a split (Wire 2.6, Query kinds)."""
    assert only_query("revenue", by=PAIR).query == Split(PAIR)


def test_game_is_an_alias_of_game_id() -> None:
    """The dimension `game` is requested as `game_id`."""
    assert only_query("revenue", by=("game",)).query == Group("game_id", 30_000)


def test_three_dimensions_are_a_split_for_each_value_of_one() -> None:
    """A split has two dimensions: the one with the fewest values is fanned out, null included."""
    templates = metric_plan("revenue", by=TRIPLE).templates
    assert [(template.query.query, template.fixed) for template in templates] == [
        (Split(PAIR), (("build", "1.0"),)),
        (Split(PAIR), (("build", None),)),
    ]


def test_four_dimensions_are_a_split_for_each_pair_of_values() -> None:
    """Four dimensions are a split for each pair of values of the two shortest lists."""
    templates = metric_plan("revenue", by=(*TRIPLE, "category")).templates
    assert [template.fixed for template in templates] == [
        (("platform", platform), ("build", build)) for platform in ("android", "ios", None) for build in ("1.0", None)
    ]
    assert {template.query.query for template in templates} == {Split(("country_code", "category"))}


def test_a_per_game_metric_is_requested_by_game() -> None:
    """A metric per game by one dimension is a by-game query (Wire 2.6, Query kinds)."""
    request = only_query("conversion", by=("platform",))
    assert (request.split_by, request.query, request.game) == ("platform", None, None)


@pytest.mark.parametrize("by", [(), ("game",)])
def test_a_per_game_metric_without_another_dimension_is_split_by_the_game(by: tuple[str, ...]) -> None:
    """A metric per game without another dimension is split by game_id (Wire 2.6, Query kinds)."""
    assert only_query("conversion", by=by).split_by == "game_id"


def test_the_games_of_a_per_game_metric_are_pooled_unless_the_query_names_the_game() -> None:
    """The answer has rows for each game, and the frame the columns of the query (Wire 4.14, Adding up)."""
    pooled, by_game = metric_plan("conversion", by=("platform",)), metric_plan("conversion", by=("platform", "game"))
    assert (pooled.dimensions, pooled.templates[0].carried, pooled.pools_games) == (
        ("platform",),
        ("platform", "game_id"),
        True,
    )
    assert (by_game.dimensions, by_game.pools_games) == (("platform", "game_id"), False)


@pytest.mark.parametrize("by", [(), ("platform",), ("studio",), PAIR])
def test_retention_without_its_game_is_refused_with_the_queries_to_use(by: tuple[str, ...]) -> None:
    """A share of retention has no parts to pool games with (Wire 4.14, Adding up)."""
    with pytest.raises(NotAdditive) as raised:
        metric_plan("retention_retro", by=by, since_days_ago=7)
    assert f'query("retention_retro", by={[*by, "game"]})' in raised.value.use
    assert f"retention(7{f', by={[*by]}' if by else ''})" in raised.value.use


def test_the_game_keeps_its_place_among_the_dimensions() -> None:
    """If `by` names the game, its column stands where `by` has it."""
    assert metric_plan("conversion", by=("game", "platform")).dimensions == ("game_id", "platform")


def test_a_per_game_metric_by_two_dimensions_is_requested_for_each_of_few_games() -> None:
    """A per-game query may split by two dimensions, once per game (Wire 2.6, Query kinds)."""
    templates = metric_plan("conversion", by=PAIR).templates
    assert [(template.query.game, template.query.query, template.fixed) for template in templates] == [
        ("1001", Split(PAIR), (("game_id", "1001"),)),
        ("1002", Split(PAIR), (("game_id", "1002"),)),
    ]


def test_a_per_game_metric_by_two_dimensions_is_requested_for_each_of_few_values() -> None:
    """With fewer values than games a by-game query is sent for each value."""
    templates = metric_plan("conversion", by=("build", "country_code"), lists=many_games(5)).templates
    assert [(template.query.split_by, template.query.game, template.fixed) for template in templates] == [
        ("country_code", None, (("build", "1.0"),)),
        ("country_code", None, (("build", None),)),
    ]


def many_games(number: int) -> Values:
    """Return lists with *number* games."""
    return {**LISTS, GAME_ID: tuple(map(str, range(number)))}


def test_retention_is_never_requested_for_a_single_game() -> None:
    """`retention_retro` has only the by-game kind (Wire 2.6, Query kinds)."""
    templates = metric_plan("retention_retro", by=(*PAIR, "game"), since_days_ago=1).templates
    assert {(template.query.split_by, template.query.game) for template in templates} == {("country_code", None)}


def test_metrics_queried_with_a_per_game_metric_are_requested_as_without_it() -> None:
    """Beside a metric per game the other metrics are not split by game."""
    revenue = planned("conversion", "revenue", by=("platform",))[1]
    assert revenue.templates[0].query.query == Group("platform", 30_000)


def test_since_days_ago_goes_to_the_metric_that_takes_it() -> None:
    """`since_days_ago` is sent only with the metrics that take it."""
    users, returning = planned("user_unique", "returning_users", since_days_ago=7)
    assert [planned_metric.templates[0].query.since_days_ago for planned_metric in (users, returning)] == [None, 7]


def test_since_days_ago_is_refused_if_no_metric_takes_it() -> None:
    """`since_days_ago` for a metric that does not take it is a `BadQuery`."""
    with pytest.raises(BadQuery, match="since_days_ago"):
        metric_plan("revenue", since_days_ago=7)


# Valid queries


@pytest.mark.parametrize(
    ("arguments", "rule"),
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
def test_a_query_that_contradicts_itself_is_refused(arguments: dict[str, Any], rule: str) -> None:
    """A query checks its arguments when it is made and names the broken rule."""
    with pytest.raises(BadQuery, match=rule):
        QuerySpec(**({"metrics": ("revenue",)} | arguments))


def test_an_unknown_dimension_is_refused_with_the_nearest() -> None:
    """An unknown dimension is a `BadQuery` with the nearest known name."""
    with pytest.raises(BadQuery) as bad:
        metric_plan("revenue", by=("platfrom",))
    assert bad.value.did_you_mean == "platform"


@pytest.mark.parametrize("arguments", [{"by": ("brand_new",)}, {"where": dim.brand_new == "x"}])
def test_a_dimension_the_service_knows_is_passed_on(arguments: dict[str, Any]) -> None:
    """A dimension that only the service knows is allowed in `by` and `where`."""
    assert metric_plan("revenue", passed=["brand_new"], **arguments).templates
    with pytest.raises(BadQuery):
        metric_plan("revenue", **arguments)


@pytest.mark.parametrize("name", ["sum", "event_count", "timestamp"])
def test_a_dimension_called_like_a_field_is_refused(name: str) -> None:
    """A row is a JSON object, which has one value for each name."""
    with pytest.raises(BadQuery, match="also a field of revenue"):
        metric_plan("revenue", by=(name,), passed=[name])


def test_a_single_name_is_not_split_into_letters() -> None:
    """None, a name, a list and an iterator of names all become a tuple of names."""
    given = (None, "ios", ["a", "b"], iter(("a",)))
    assert [as_names("by", value) for value in given] == [(), ("ios",), ("a", "b"), ("a",)]


@pytest.mark.parametrize("given", [1001, [1001], ["1001", None]])
def test_a_name_that_is_no_text_is_refused(given: object) -> None:
    """An id read as a number is a `BadQuery` and is never converted."""
    with pytest.raises(BadQuery, match=r"games = .* must be one or more strings"):
        as_names("games", given)  # type: ignore[arg-type]


@pytest.mark.parametrize("where", [True, [dim.platform == "ios"], dim.platform])
def test_a_where_that_is_no_filter_is_refused(where: object) -> None:
    """A `where` that is neither an expression nor an object is a `BadQuery` with an example."""
    with pytest.raises(BadQuery, match=r"where = .* must be an expression such as dim.platform"):
        as_filter(where)  # type: ignore[arg-type]


@pytest.mark.parametrize("where", [dim.platform == "ios", {"platform": "ios"}])
def test_a_filter_may_be_the_services_own_object(where: Filter | dict[str, Any]) -> None:
    """`where` takes an expression or the service's JSON (Wire 2.7, Filters)."""
    assert as_filter(where) == Match("platform", ("ios",))


# Top, other and check


def test_top_is_the_limit_of_a_single_request() -> None:
    """`top` is the limit of a group if one request answers (Wire 2.6, Query kinds)."""
    result = metric_plan("revenue", by=("platform",), top=20)
    assert (result.templates[0].query.query, result.limit, result.top) == (Group("platform", 20), 20, 20)


def test_top_is_the_limit_of_each_piece_with_whole_buckets() -> None:
    """Pieces of whole buckets are each requested with the limit."""
    result = metric_plan("revenue", by=("platform",), top=20, over=QUARTER)
    assert (result.templates[0].query.query, result.adds_up) == (Group("platform", 20), False)


def test_top_of_a_cut_bucket_needs_all_values() -> None:
    """The largest values of a whole bucket need not be among the largest of its pieces."""
    result = metric_plan("revenue", over=QUARTER, every="all", max_days=31, by=("platform",), top=3)
    assert (result.templates[0].query.query, result.limit, result.top) == (Group("platform", 30_000), 30_000, 3)


def test_top_of_a_fan_out_needs_all_values() -> None:
    """The requests of a fan-out have the largest limit, `top` is applied afterwards."""
    result = metric_plan("revenue", by=("studio", "platform"), top=3)
    assert {template.query.query for template in result.templates} == {Group("platform", 30_000)}
    assert result.top == 3


@pytest.mark.parametrize("arguments", [{"by": PAIR}, {"by": TRIPLE}])
def test_top_of_a_split_is_applied_afterwards(arguments: dict[str, Any]) -> None:
    """A split has no limit, so `top` is applied to its rows (Wire 2.6, Query kinds)."""
    result = metric_plan("revenue", top=5, **arguments)
    assert ({template.query.query for template in result.templates}, result.limit, result.top) == (
        {Split(PAIR)},
        None,
        5,
    )


def test_top_of_a_by_game_answer_is_applied_afterwards() -> None:
    """A by-game query has no limit, so `top` is applied to its rows (Wire 2.6, Query kinds)."""
    result = metric_plan("conversion", by=("platform",), top=5)
    assert (result.templates[0].query.split_by, result.limit, result.top) == ("platform", None, 5)


def test_other_and_check_need_the_total_of_the_same_query() -> None:
    """The total is a timeseries with the filter and the games of the query."""
    where = dim.platform == "ios"
    for more in ({"top": 3, "other": True}, {"check": True}):
        result = metric_plan("revenue", by=TRIPLE, where=where, games=("1001",), **more)
        assert result.total is not None
        (template,) = result.total.templates
        assert (template.query.query, template.query.filter, template.query.games) == (Timeseries(), where, ("1001",))
        assert (result.total.dimensions, result.total.top, result.total.total) == ((), None, None)


def test_a_plan_without_other_or_check_has_no_total() -> None:
    """Without `other` or `check` no total is requested."""
    assert metric_plan("revenue", by=PAIR, top=3).total is None


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
def test_other_and_check_are_refused_for_rows_that_do_not_add_up(
    metric: str, by: tuple[str, ...], more: dict[str, Any]
) -> None:
    """A metric that does not add up over `by` is `NotAdditive` (Wire 4.14, Adding up)."""
    with pytest.raises(NotAdditive, match=f"{metric} cannot be added up"):
        metric_plan(metric, by=by, **required_arguments(metric), **more)


@pytest.mark.parametrize("by", [("game",), ("studio",), ("game", "studio")])
def test_players_make_up_a_total_over_games_and_studios(by: tuple[str, ...]) -> None:
    """A device in two games is two players, so players add up over games (Wire 4.2, Player)."""
    assert metric_plan("user_unique", by=by, check=True).total is not None


# Pieces of time


def test_ninety_days_are_three_requests() -> None:
    """A request has at most 31 days (Wire 2.8, Intervals and buckets)."""
    result = metric_plan("user_unique", over=QUARTER)
    assert [len(run) for run in result.runs(result.slices)] == [31, 31, 28]


def test_all_is_one_request_however_long() -> None:
    """Granularity `all` is one request however long (Wire 2.8, Intervals and buckets)."""
    result = metric_plan("user_unique", over=QUARTER, every="all")
    assert (len(result.runs(result.slices)), result.adds_up) == (1, False)


@pytest.mark.parametrize("metric", ["user_unique", "arpu", "session_length", "brand_new"])
def test_what_cannot_be_added_over_pieces_is_refused_with_the_way_out(metric: str) -> None:
    """A metric that does not add up over pieces is `NotAdditive` with the query to use."""
    with pytest.raises(NotAdditive, match=rf'{metric} cannot be added up over pieces. Use query\("{metric}"'):
        metric_plan(metric, over=QUARTER, every="all", max_days=31)


def test_a_cut_week_is_refused_for_unique_players() -> None:
    """Unique players of a week cannot be computed from pieces of three days."""
    with pytest.raises(NotAdditive):
        metric_plan("user_unique", over=QUARTER, every="week", max_days=3)


def test_money_over_pieces_is_added_up() -> None:
    """Pieces of a revenue query are added up to one bucket."""
    result = metric_plan("revenue", over=QUARTER, every="all", max_days=31)
    assert (result.adds_up, len(result.runs(result.slices))) == (True, 3)


# Studios


def test_studios_are_fanned_out() -> None:
    """The service has no studio dimension: a request is sent for each studio."""
    templates = metric_plan("revenue", by=("studio", "platform")).templates
    assert [(template.query.studios, template.fixed, template.carried) for template in templates] == [
        (("s1",), (("studio_id", "s1"),), ("platform",)),
        (("s2",), (("studio_id", "s2"),), ("platform",)),
    ]


@pytest.mark.parametrize(("metric", "by"), [("revenue", ("studio", "game", "platform")), ("conversion", ("studio",))])
def test_the_studio_is_looked_up_if_the_game_is_known(metric: str, by: tuple[str, ...]) -> None:
    """With the game among the columns the studio is looked up and not fanned out."""
    result = metric_plan(metric, by=by)
    assert (len(result.templates), result.labels, result.dimensions[0]) == (1, ("studio_id",), "studio_id")
    assert STUDIO_ID not in result.templates[0].carried


def test_a_fan_out_over_no_values_has_no_requests() -> None:
    """A fan-out over an empty list has no requests."""
    assert metric_plan("revenue", by=("studio",), lists={}).templates == ()


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
def some_lists(draw: st.DrawFn) -> Values:
    """Draw lists of games, studios and values."""
    return {
        GAME_ID: draw(st.lists(st.sampled_from("1234567"), min_size=1, unique=True).map(tuple)),
        STUDIO_ID: draw(st.lists(st.sampled_from(("s1", "s2", "s3")), min_size=1, unique=True).map(tuple)),
        **{name: draw(short) for name in (*TRIPLE, "category")},
    }


def request_counts(metric: str, by: Sequence[str], lists: Values) -> Iterator[int]:
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


def sizes_of(lists: Values) -> dict[str, int]:
    """Return the number of values of each dimension, null included."""
    return {name: len(values) + (name not in (GAME_ID, STUDIO_ID)) for name, values in lists.items()}


def with_its_game(metric: str, by: tuple[str, ...]) -> tuple[str, ...]:
    """Return *by* with the game, if *metric* cannot be queried without."""
    return (*by, "game") if metric == "retention_retro" and "game" not in by else by


@given(metrics, dimensions, some_lists())
@settings(deadline=None, max_examples=examples(300))
def test_a_fan_out_takes_as_few_requests_as_possible(metric: str, by: tuple[str, ...], lists: Values) -> None:
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
    metric: str, by: tuple[str, ...], lists: Values, where: Filter | None, data: st.DataObject
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


@pytest.mark.parametrize("by", [(), ("game",), ("studio", "platform"), TRIPLE, ("studio", "game", *TRIPLE)])
def test_games_are_never_null(by: tuple[str, ...]) -> None:
    """No request is sent for a null game or studio."""
    constants = [constant for template in metric_plan("conversion", by=by).templates for constant in template.fixed]
    assert all(value is not None for name, value in constants if name in (GAME_ID, STUDIO_ID))


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
