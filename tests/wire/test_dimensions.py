"""Dimensions: their rows say whose values they are, and which columns of events they make."""

from __future__ import annotations

import pytest

from gamelens.wire.dimensions import (
    DIMENSIONS,
    EVENT_COLUMNS,
    EVENT_DIMENSIONS,
    OfPlayer,
    dimensions_in_table,
    dimensions_of_category,
)


@pytest.mark.parametrize(
    ("name", "level", "only"),
    [
        ("platform", "event", None),
        ("severity", "event", "error"),
        ("first_build", "player", None),
        ("is_paying", "player", None),
        ("ad_type", "ad", "ads"),
        ("ilrd_sdk_vendor", "ilrd", "impression"),
        ("ilrd_network_name", "ilrd", "impression"),
    ],
)
def test_the_source_says_whose_value_it_is(name: str, level: str, only: str | None) -> None:
    """An event's, its player's, or that of events of one category (Wire 4.10, Dimensions)."""
    assert (DIMENSIONS[name].level, DIMENSIONS[name].only) == (level, only)


def test_a_dimension_is_a_column_of_events_or_follows_from_a_player() -> None:
    """A column that is not stored cannot be kept in another table, nor come from an export."""
    for name, dimension in DIMENSIONS.items():
        is_column = not isinstance(dimension.source, OfPlayer)
        assert (name in EVENT_DIMENSIONS, name in EVENT_COLUMNS) == (is_column, is_column)
        assert is_column or (not dimension.tables and dimension.event_data is None)


def test_smaller_tables_have_dimensions_that_larger_ones_have() -> None:
    """A query of small sums can take the cube instead, and returns have the dimensions of memberships."""
    assert {*dimensions_in_table("slim")} < {*dimensions_in_table("cube")} < {*EVENT_DIMENSIONS}
    assert {*dimensions_in_table("return")} < {*dimensions_in_table("member")}
    assert dimensions_of_category("ads") == ("ad_sdk_name", "ad_type", "ad_action")
