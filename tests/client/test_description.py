"""Definitions of metrics, aliases and dimensions, as values that print."""

from __future__ import annotations

import pytest

from gamelens.catalog import ALIASES, DIMENSIONS, METRICS, find_metric
from gamelens.client.query.description import describe
from gamelens.client.sync_client import Client
from gamelens.errors import BadQuery


def test_a_ratio_shows_what_it_is_made_of(lens: Client) -> None:
    """`lens.describe` has definition, unit, additivity and fields, and prints them."""
    described = lens.describe("arpu")
    assert (described.kind, described.definition, described.unit) == (
        "metric",
        "revenue / active users",
        "USD per player",
    )
    assert described.additivity == "over games, not over buckets or other dimensions"
    assert [(field.name, field.dtype) for field in described.fields] == [
        ("arpu", "float64"),
        ("user_unique", "Int64"),
        ("total_revenue_cents", "Int64"),
    ]
    assert repr(described).splitlines() == [
        "arpu (metric): revenue / active users",
        "  unit: USD per player",
        "  adds up: over games, not over buckets or other dimensions",
        "  arpu                 USD per player  float64  total_revenue_cents / user_unique x 0.01",
        "  user_unique          players         Int64    from the service",
        "  total_revenue_cents  US cents        Int64    from the service",
    ]


def test_an_alias_shows_its_sources(lens: Client) -> None:
    """Each part of an alias has the metric it comes from, and its bucket where it has one of its own."""
    described = lens.describe("arpdau")
    assert described.kind == "alias"
    assert {field.name: field.source for field in described.fields} == {
        "arpdau": "(iap_revenue + ad_revenue) / player_days",
        "iap_revenue": "revenue",
        "ad_revenue": "ilrd_revenue",
        "player_days": "sum of user_unique by day",
    }
    assert "counted by month" in str(lens.describe("mau"))


def test_a_dimension_has_a_definition_and_no_fields(lens: Client) -> None:
    """A dimension says whose property it is; `game` and `studio` are dimensions too."""
    assert "null in all others" in str(lens.describe("ilrd_network_name"))
    assert [lens.describe(name).kind for name in ("country_code", "game", "studio")] == ["dimension"] * 3
    assert lens.describe("game").fields == ()


def test_no_request_is_sent(lens: Client, script: object) -> None:
    """The catalog answers."""
    lens.describe("dau")
    assert script.paths == []  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", [*METRICS, *ALIASES, *DIMENSIONS])
def test_everything_in_the_catalog_can_be_described(name: str) -> None:
    """Every name has a definition; a metric has a unit and all its fields."""
    described = describe(name)
    assert described.definition
    metric = find_metric(name)
    if metric is not None and described.kind != "dimension":
        assert described.unit
        assert {field.name for field in described.fields} == {*metric.columns.values()}


def test_html_is_escaped() -> None:
    """A notebook shows a table; quotation marks of a definition stay text."""
    html = describe("is_paying")._repr_html_()
    assert "&quot;true&quot; from the first purchase on" in html
    assert "<td>player_days</td>" in describe("arpdau")._repr_html_()


def test_an_unknown_name_suggests_the_nearest(lens: Client) -> None:
    """Metrics, aliases and dimensions are suggested."""
    for typed, meant in (("arpdua", "arpdau"), ("contry_code", "country_code"), ("iap_revenue", "revenue")):
        with pytest.raises(BadQuery) as unknown:
            lens.describe(typed)
        assert unknown.value.did_you_mean == meant
