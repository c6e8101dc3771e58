"""Filters as JSON and as Python expressions (Wire 2.7, Filters)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gamelens.errors import BadQuery
from gamelens.wire.dimensions import DIMENSIONS
from gamelens.wire.filters import (
    And,
    Filter,
    Match,
    Not,
    Or,
    dim,
    dimensions_in,
    flat_filter,
    nullable_in,
    parse_filter,
    wire_filter,
    with_values_of,
)
from gamelens.wire.limits import FILTER_OBJECTS

NAMES = st.sampled_from(["platform", "country_code", "game_id", "build"])
VALUES = st.text(max_size=5)
FILTERS = st.recursive(
    st.dictionaries(NAMES, VALUES | st.lists(VALUES, min_size=1, max_size=3), min_size=1, max_size=1),
    lambda inner: st.one_of(
        st.fixed_dictionaries({"and": st.lists(inner, min_size=1, max_size=3)}),
        st.fixed_dictionaries({"or": st.lists(inner, min_size=1, max_size=3)}),
        st.fixed_dictionaries({"not": inner}),
    ),
    max_leaves=8,
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | VALUES,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(NAMES | st.sampled_from(["and", "or", "not"]), inner, max_size=2)
    ),
    max_leaves=8,
)


def nested(depth: int) -> dict[str, Any]:
    """Return a filter of *depth* nested objects."""
    node: dict[str, Any] = {"platform": "ios"}
    for level in range(depth - 1):
        node = {"not": node} if level % 2 else {"and": [node]}
    return node


@given(wire=FILTERS)
def test_a_filter_means_the_same_after_a_round_trip(wire: dict[str, Any]) -> None:
    """A filter that is written as JSON and read again is the same filter (Wire 2.7, Filters)."""
    node = parse_filter(wire)
    assert parse_filter(wire_filter(node)) == node


@given(wire=JSON)
def test_any_json_is_a_filter_or_is_refused_with_its_field(wire: Any) -> None:
    """Any JSON is a filter or raises `BadQuery` with a field inside `filter`.

    Wire 2.7, Filters.
    """
    field = "filter"
    try:
        parse_filter(wire)
    except BadQuery as error:
        field = error.field
    assert field.startswith("filter")


def test_sixteen_objects_may_be_nested() -> None:
    """A filter may nest 16 objects, of which the comparison is the innermost.

    Wire 2.7, Filters.
    """
    assert list(dimensions_in(parse_filter(nested(16)))) == ["platform"]


REFUSED: dict[str, tuple[Callable[[], object], type[Exception], str]] = {
    "17 nested objects": (lambda: parse_filter(nested(17)), BadQuery, "deeper than 16"),
    "a truth value": (lambda: bool(dim.platform == "ios"), TypeError, r"&, \| and ~"),
    "Python's and": (lambda: (dim.platform == "ios") and (dim.build == "1"), TypeError, r"&, \| and ~"),
    "no parentheses": (lambda: dim.platform == "ios" & dim.build == "2", TypeError, "in parentheses"),  # type: ignore[comparison-overlap]
    "one text for isin": (lambda: dim.platform.isin("ios"), BadQuery, "is one value"),
    "None": (lambda: dim.platform == None, BadQuery, r"write dim\.platform\.is_null\(\)"),  # noqa: E711
    "a number": (lambda: dim.platform == 7, BadQuery, "string"),
    "True": (lambda: dim.platform == True, BadQuery, "string"),  # noqa: E712
    "no value": (lambda: dim.platform == [], BadQuery, "string"),
    "a list of numbers": (lambda: dim.platform == [1], BadQuery, "string"),
}


@pytest.mark.parametrize(("compare", "error", "words"), REFUSED.values(), ids=REFUSED)
def test_what_would_be_another_filter_is_refused(
    compare: Callable[[], object], error: type[Exception], words: str
) -> None:
    """Values are strings, `&`, `|` and `~` combine, and 16 objects nest at most (Wire 2.7, Filters)."""
    with pytest.raises(error, match=words):
        compare()


def filter_of(objects: int) -> dict[str, Any]:
    """Return a filter of so many *objects*."""
    return {"or": [{"not": {"platform": "ios"}}, *[{"build": str(number)} for number in range(objects - 3)]]}


def test_a_filter_has_at_most_five_hundred_objects() -> None:
    """A filter may have 500 objects, and the error for 501 says how to need fewer.

    Wire 2.7, Filters.
    """
    assert len(list(dimensions_in(parse_filter(filter_of(500))))) == 498
    with pytest.raises(BadQuery, match="at most 500 objects: put several values of a dimension into one list"):
        parse_filter(filter_of(501))


def test_a_list_of_values_is_no_more_than_one_object() -> None:
    """A comparison with 30,000 values counts as one object (Wire 2.7, Filters)."""
    values = [str(number) for number in range(30_000)]
    assert parse_filter({"not": {"country_code": values}}) == Not(Match("country_code", tuple(values)))


@pytest.mark.parametrize(
    ("wire", "field"),
    [
        ({}, "filter"),
        ([], "filter"),
        ("platform", "filter"),
        (False, "filter"),
        ({"platform": "ios", "build": "1"}, "filter"),
        ({"and": [], "or": []}, "filter"),
        ({"and": []}, "filter"),
        ({"or": {"platform": "ios"}}, "filter"),
        ({"and": "ios"}, "filter"),
        ({"not": [{"platform": "ios"}]}, "filter"),
        ({"not": None}, "filter"),
        ({"and": [{"platform": "ios"}, 7]}, "filter"),
        ({"platform": []}, "filter.platform"),
        ({"platform": None}, "filter.platform"),
        ({"platform": 7}, "filter.platform"),
        ({"platform": True}, "filter.platform"),
        ({"platform": ["ios", None]}, "filter.platform"),
        ({"platform": {"eq": "ios"}}, "filter.platform"),
        ({"or": [{"build": [1]}]}, "filter.build"),
    ],
)
def test_anything_else_is_refused_with_its_field(wire: Any, field: str) -> None:
    """An object has one key, lists are not empty, and values are strings (Wire 2.7, Filters)."""
    with pytest.raises(BadQuery) as raised:
        parse_filter(wire)
    assert raised.value.field == field


def test_operators_make_the_filter_they_look_like() -> None:
    """`==`, `!=`, `isin`, `&`, `|` and `~` build the filter objects of the wire.

    Wire 2.7, Filters.
    """
    combined = (dim.platform == "ios") & ~dim.country_code.isin(["US", "NA"]) | (dim.build != "2")
    ios, countries, build = Match("platform", ("ios",)), Match("country_code", ("US", "NA")), Match("build", ("2",))
    assert combined == Or((And((ios, Not(countries))), Not(build)))


def test_dimensions_come_in_the_order_of_the_filter() -> None:
    """Dimensions of a filter are listed in its order, with repetitions."""
    wire = {"and": [{"build": "1"}, {"not": {"or": [{"game_id": "7"}, {"build": "2"}]}}]}
    assert list(dimensions_in(parse_filter(wire))) == ["build", "game_id", "build"]


def test_a_dimension_s_name_may_be_in_a_variable() -> None:
    """`dim["platform"]` is the same dimension as `dim.platform`."""
    assert (dim["platform"] == "ios") == (dim.platform == "ios")


def test_null_is_a_comparison_of_its_own() -> None:
    """`is_null()` is written with None, which only our own filters may have: the service takes strings."""
    where = ~dim.country_code.is_null() & (dim.platform == "ios")
    wire = {"and": [{"not": {"country_code": None}}, {"platform": "ios"}]}
    assert wire_filter(where) == wire
    assert parse_filter(wire, with_nulls=True) == where
    assert list(dimensions_in(where)) == ["country_code", "platform"]
    with pytest.raises(BadQuery):
        parse_filter(wire)


def test_null_is_sent_as_the_negation_of_all_values() -> None:
    """No value selects null, so it is what has none of them; its negation needs no `not`."""
    where = dim.country_code.is_null() | ~dim.country_code.is_null() & ~(dim.platform.is_null() | (dim.build == "2"))
    sent = with_values_of(where, {"country_code": ["DE", "US"], "platform": []})
    assert nullable_in(where) == ("country_code", "platform")
    assert nullable_in(sent) == ()
    assert wire_filter(sent) == {
        "or": [
            {"not": {"country_code": ["DE", "US"]}},
            {
                "and": [
                    {"country_code": ["DE", "US"]},
                    {"not": {"or": [{"not": {"platform": ""}}, {"build": "2"}]}},
                ]
            },
        ]
    }


def test_dir_lists_the_dimensions() -> None:
    """Completion of `dim.` and `dim["` shows the dimensions of the service; any other name works as well."""
    assert dir(dim) == sorted(DIMENSIONS)
    assert dim._ipython_key_completions_() == list(DIMENSIONS)
    assert wire_filter(dim.brand_new == "x") == {"brand_new": "x"}


# Flat filters

IOS, US, DE, OLD = {"platform": "ios"}, {"country_code": "US"}, {"country_code": "DE"}, {"build": "1"}
EVENTS = st.fixed_dictionaries({}, optional=dict.fromkeys(["platform", "country_code", "game_id", "build"], VALUES))


def flattened(node: Filter) -> dict[str, Any]:
    """Return the object in which a filter is sent."""
    return wire_filter(flat_filter(node))


@pytest.mark.parametrize(
    ("node", "wire"),
    [
        (
            (dim.platform == "ios") & (dim.country_code == "US") & (dim.build == "1"),
            {"and": [IOS, US, OLD]},
        ),
        (
            (dim.platform == "ios") & ((dim.country_code == "US") & (dim.build == "1")),
            {"and": [IOS, US, OLD]},
        ),
        ((dim.platform == "ios") | (dim.country_code == "US") | (dim.build == "1"), {"or": [IOS, US, OLD]}),
        (dim.country_code.isin(["US", "DE"]), {"or": [US, DE]}),
        ((dim.platform == "ios") | dim.country_code.isin(["US", "DE"]), {"or": [IOS, US, DE]}),
        (
            (dim.platform == "ios") & dim.country_code.isin(["US", "DE"]),
            {"and": [IOS, {"country_code": ["US", "DE"]}]},
        ),
        (
            (dim.platform == "ios") & ((dim.country_code == "US") | (dim.country_code == "DE")),
            {"and": [IOS, {"country_code": ["US", "DE"]}]},
        ),
        (dim.platform.isin(["ios"]), IOS),
        (dim.platform.isin(["ios", "ios"]), IOS),
        ((dim.platform == "ios") & (dim.platform == "ios"), IOS),
        (And((Or((Match("platform", ("ios",)),)),)), IOS),
        (~~(dim.platform == "ios"), IOS),
        (~((dim.platform == "ios") | (dim.build == "1")), {"and": [{"not": IOS}, {"not": OLD}]}),
        ((dim.platform == "ios") | ~((dim.build == "1") & (dim.country_code == "US")),
         {"or": [IOS, {"not": OLD}, {"not": US}]}),
        ((dim.country_code != "US") & (dim.country_code != "DE"), {"not": {"country_code": ["US", "DE"]}}),
    ],
)  # fmt: skip
def test_a_filter_is_sent_with_no_more_nesting_than_it_needs(node: Filter, wire: dict[str, Any]) -> None:
    """What says the same in a flat list is sent as one (Wire 2.7, Filters)."""
    assert flattened(node) == wire


def is_selected(wire: dict[str, Any], event: dict[str, str]) -> bool:
    """Return whether a filter object selects *event*, read from the rules alone."""
    ((key, value),) = wire.items()
    if key == "and":
        return all(is_selected(member, event) for member in value)
    if key == "or":
        return any(is_selected(member, event) for member in value)
    if key == "not":
        return not is_selected(value, event)
    return event.get(key) in (value if isinstance(value, list) else [value])


def is_flat(wire: dict[str, Any], parent: str = "") -> bool:
    """Return whether no list has one member or the kind of its parent, and `not` holds a comparison."""
    ((key, value),) = wire.items()
    if key in ("and", "or"):
        return key != parent and parent != "not" and len(value) > 1 and all(is_flat(member, key) for member in value)
    return parent != "not" and is_flat(value, "not") if key == "not" else True


@given(wire=FILTERS, event=EVENTS)
def test_a_flat_filter_selects_the_same_events(wire: dict[str, Any], event: dict[str, str]) -> None:
    """Flattening changes neither the selected events nor those without a value (Wire 2.7, Filters)."""
    assert is_selected(flattened(parse_filter(wire)), event) == is_selected(wire, event)


@given(wire=FILTERS)
def test_a_flat_filter_stays_as_it_is(wire: dict[str, Any]) -> None:
    """A flat filter has no list in a list of its kind, and flattening it again changes nothing."""
    flat = flattened(parse_filter(wire))
    assert is_flat(flat)
    assert flattened(parse_filter(flat)) == flat


def test_many_comparisons_joined_by_an_operator_are_one_list() -> None:
    """A chain of `&` of any length is one `and`, which is read again whatever its length."""
    node = dim.build != "0"
    for number in range(1, 100):
        node &= dim[f"custom_{number}"] != "0"
    assert len(parse_filter(wire_filter(node)).members) == 100  # type: ignore[attr-defined]


def test_more_values_than_a_filter_has_objects_stay_a_list() -> None:
    """Values that would make more than 500 alternatives are sent as one list (Wire 2.7, Filters)."""
    values = [str(number) for number in range(FILTER_OBJECTS)]
    assert flattened(dim.build.isin(values)) == {"build": values}
    assert flattened(dim.build.isin(values[1:])) == {"or": [{"build": value} for value in values[1:]]}
