"""The catalog: metrics, their fields and kinds, and dimensions."""

from __future__ import annotations

from typing import Any

import pytest

from gamelens.catalog import ALIASES, DIMENSIONS, METRICS, CohortShare, Quotient, check_query, find_metric, metric_named
from gamelens.errors import BadQuery
from gamelens.sandbox.storage.atoms import ATOMS
from gamelens.wire.queries import decode_query

FIELDS = {
    "ad_impressions_count": "ad_impressions_count",
    "ad_impressions_per_session": "ad_impressions_count ad_impressions_per_session session_unique",
    "arppu": "arppu paying_users total_revenue",
    "arpu": "arpu user_unique total_revenue",
    "conversion": "conversion paying_users user_unique",
    "conversion_ft": "conversion_ft converting_users user_unique",
    "converting_users": "converting_users",
    "event_count": "event_count",
    "ilrd_id_unique": "ilrd_id_unique",
    "ilrd_revenue": "event_count mean sum sum_cents",
    "installs_ratio": "installs_ratio new_users user_unique",
    "new_users": "new_users",
    "paying_users": "paying_users",
    "retention_retro": "retention",
    "returning_users": "returning_users",
    "revenue": "event_count mean sum sum_cents",
    "session_length": "session_length session_unique total_session_length",
    "session_unique": "session_unique",
    "user_unique": "user_unique",
}
"""Row fields of each metric (Wire 4.11, Metrics)."""
PER_GAME = ("returning_users", "installs_ratio", "conversion", "conversion_ft")
PLAIN = [name for name in FIELDS if name not in (*PER_GAME, "retention_retro")]
WEEK = {"interval": "2026-11-01/P7D", "granularity": "day"}
SERIES = WEEK | {"query": {"type": "timeseries"}}
BY_GAME = WEEK | {"split_by": "platform"}


def refused(metric: str, body: dict[str, Any]) -> str | None:
    """Return the field that `check_query` refuses, or None."""
    try:
        check_query(METRICS[metric], decode_query(body))
    except BadQuery as error:
        return error.field
    return None


def test_the_metrics_are_these_and_no_more() -> None:
    """The catalog has the metrics of the service, no more and no less (Wire 4.11, Metrics)."""
    assert METRICS.keys() == FIELDS.keys()


@pytest.mark.parametrize("name", FIELDS)
def test_a_metric_has_its_row_fields(name: str) -> None:
    """The rows of a metric have these fields and no others (Wire 4.11, Metrics)."""
    assert [field.name for field in METRICS[name].fields] == FIELDS[name].split()


@pytest.mark.parametrize("name", FIELDS)
def test_a_metric_sorts_by_a_field_of_its_own(name: str) -> None:
    """A metric sorts by its own field, or `sum` for revenue (Wire 2.10, Row order)."""
    expected = {"revenue": "sum", "ilrd_revenue": "sum", "retention_retro": "retention"}.get(name, name)
    assert METRICS[name].sorts_by == expected


@pytest.mark.parametrize("name", METRICS)
def test_a_metric_is_made_of_atoms_or_of_counting_metrics(name: str) -> None:
    """What a recipe names exists, so that a misspelt row fails here and not in a query."""
    metric = METRICS[name]
    if metric.recipe in ("sum", "distinct", "money"):
        assert {*metric.made_of} <= ATOMS.keys()
    else:
        assert {METRICS[each].recipe for each in metric.made_of} <= {"sum", "distinct"}


def test_dimensions_come_in_the_order_of_the_service() -> None:
    """Dimensions are listed in the order of the service (Wire 4.10, Dimensions)."""
    assert " ".join(DIMENSIONS) == (
        "game_id build first_build category country_code platform installed_on is_paying is_converting ad_sdk_name "
        "ad_type ad_action ilrd_sdk_vendor ilrd_adunit_name ilrd_network_name ilrd_adunit_format install_publisher "
        "ab_id ab_variant_id severity"
    )


def test_an_unknown_metric_is_refused_with_the_nearest() -> None:
    """An unknown metric is refused with the nearest name (Wire 2.12, Refusals)."""
    with pytest.raises(BadQuery) as unknown:
        metric_named("user_uniques")
    assert unknown.value.did_you_mean == "user_unique"


@pytest.mark.parametrize("name", PLAIN)
def test_a_plain_metric_takes_a_query(name: str) -> None:
    """A plain metric takes a `query`, no `game` and no `split_by` (Wire 2.6, Query kinds)."""
    assert refused(name, SERIES) is None
    assert refused(name, SERIES | {"game": "1"}) == "game"
    assert refused(name, BY_GAME) == "split_by"
    assert refused(name, SERIES | {"since_days_ago": 1}) == "since_days_ago"


@pytest.mark.parametrize("name", PER_GAME)
def test_a_per_game_metric_takes_one_game_or_a_split(name: str) -> None:
    """A per-game metric takes `query` with `game`, or `split_by` (Wire 2.6, Query kinds)."""
    assert refused(name, SERIES) == "query"
    assert refused(name, SERIES | {"game": "1"}) is None
    assert refused(name, BY_GAME) is None


@pytest.mark.parametrize("name", PER_GAME)
def test_since_days_ago_is_for_returning_users(name: str) -> None:
    """Of these four only `returning_users` takes `since_days_ago` (Wire 2.6, Query kinds)."""
    allowed = name == "returning_users"
    assert refused(name, BY_GAME | {"since_days_ago": 1}) == (None if allowed else "since_days_ago")


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({}, None),
        ({"since_days_ago": None}, "since_days_ago"),
        ({"granularity": "week"}, "granularity"),
        ({"split_by": None, "query": {"type": "timeseries"}}, "query"),
        ({"split_by": None, "query": {"type": "timeseries"}, "game": "1"}, "game"),
        ({"split_by": "ad_type"}, "split_by"),
        ({"split_by": "ilrd_network_name"}, "split_by"),
        ({"filter": {"not": {"ad_action": "show"}}}, "filter"),
        ({"filter": {"or": [{"platform": "ios"}, {"ilrd_sdk_vendor": "max"}]}}, "filter"),
        ({"filter": {"installed_on": "2026-11-01"}}, None),
    ],
)
def test_retention_takes_a_split_by_game_and_days(change: dict[str, Any], field: str | None) -> None:
    """`retention_retro` takes `split_by`, `since_days_ago` and days (Wire 2.6, Query kinds).

    Dimensions of ads are refused as split and in filters.
    """
    body = BY_GAME | {"since_days_ago": 1} | change
    assert refused("retention_retro", {name: value for name, value in body.items() if value is not None}) == field


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"query": {"type": "group", "dimension": "country"}}, "query.dimension"),
        ({"query": {"type": "split", "dimensions": ["platform", "country"]}}, "query.dimension"),
        ({"filter": {"and": [{"country": "US"}]}}, "filter"),
    ],
)
def test_an_unknown_dimension_is_refused_where_it_stands(change: dict[str, Any], field: str) -> None:
    """An unknown dimension is refused with its place and nearest name (Wire 2.12, Refusals)."""
    with pytest.raises(BadQuery) as unknown:
        check_query(METRICS["event_count"], decode_query(SERIES | change))
    assert (unknown.value.field, unknown.value.value) == (field, "country")
    assert unknown.value.did_you_mean == "country_code"


def test_the_names_that_analysts_use_are_aliases() -> None:
    """None is a metric of the service, and a row that is added is found by its name."""
    cohorts = {"d1_retention", "d30_retention", "d7_retention"}
    assert {"ad_revenue", "arpdau", *cohorts, "dap", "dau", "ecpm", "mau", "stickiness", "wau"} <= ALIASES.keys()
    assert ALIASES.keys().isdisjoint(METRICS)
    assert all(find_metric(name) is alias for name, alias in ALIASES.items())


@pytest.mark.parametrize("name", ALIASES)
def test_every_field_of_an_alias_has_a_source(name: str) -> None:
    """A field is a quotient of fields of the alias, or read from a field of a metric of the same kind."""
    alias = ALIASES[name]
    summed = [field.name for field in alias.fields if field.combines == "sum"]
    assert list(alias.ingredients) == summed
    for field in alias.fields:
        if isinstance(field.combines, Quotient):
            assert {*field.combines.names} <= {*summed}
        else:
            part = alias.ingredients[field.name]
            if isinstance(alias, CohortShare) and part.metric == "retention_retro":  # times the installs of the day
                continue
            (source,) = [one for one in METRICS[part.metric].fields if one.name == part.field]
            assert (source.combines, source.kind == field.kind or part.is_mean) == ("sum", True)


def test_fields_of_aliases_mean_the_same_everywhere() -> None:
    """A column of two aliases is one column of a frame, and none is called as a field of the service."""
    wire = {field.name for metric in METRICS.values() for field in metric.fields}
    seen: dict[str, object] = {}
    for alias in ALIASES.values():
        for field in alias.fields:
            meaning = (field, alias.ingredients.get(field.name), alias.every if field.name == "mau" else None)
            assert seen.setdefault(field.name, meaning) == meaning
    assert wire.isdisjoint(seen)


def test_an_alias_adds_up_no_further_than_its_sources() -> None:
    """Only sums of what adds up everywhere do; player-days add up over time, daily players do not."""
    for alias in ALIASES.values():
        if alias.adds == "everywhere":
            assert {METRICS[name].adds for name, _ in alias.needs} == {"everywhere"}
    assert {name: ALIASES[name].adds for name in ("arpdau", "dau", "stickiness")} == {
        "arpdau": "over time and games",
        "dau": "over games",
        "stickiness": "over games",
    }
