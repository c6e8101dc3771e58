"""Filter expressions typed in a terminal, and the filters they stand for."""

from typing import Any

import pytest

from gamelens.client.plans.filter_expressions import parse_expression
from gamelens.errors import BadQuery
from gamelens.wire.filters import wire_filter


@pytest.mark.parametrize(
    ("text", "wire"),
    [
        ('platform == "ios"', {"platform": "ios"}),
        ("platform != 'ios'", {"not": {"platform": "ios"}}),
        ('country_code in ["US", "NA"]', {"country_code": ["US", "NA"]}),
        ('country_code not in ("US", "NA")', {"not": {"country_code": ["US", "NA"]}}),
        ('platform == "ios" and build == "2"', {"and": [{"platform": "ios"}, {"build": "2"}]}),
        ('not (platform == "ios" or build == "2")', {"not": {"or": [{"platform": "ios"}, {"build": "2"}]}}),
        ("country_code is null", {"country_code": None}),
        ("country_code is None", {"country_code": None}),
        ("country_code is NULL", {"country_code": None}),
        ("country_code is not null", {"not": {"country_code": None}}),
        ('platform == "ios" and build is null', {"and": [{"platform": "ios"}, {"build": None}]}),
        ('{"country_code": None}', {"country_code": None}),
        ('{"or": [{"platform": "ios"}, {"build": ["1", "2"]}]}', {"or": [{"platform": "ios"}, {"build": ["1", "2"]}]}),
    ],
)
def test_an_expression_means_what_the_object_means(text: str, wire: dict[str, Any]) -> None:
    """An expression, or a JSON object, becomes the filter of the same meaning.

    Wire 2.7, Filters.
    """
    assert wire_filter(parse_expression(text)) == wire


@pytest.mark.parametrize(
    "text",
    [
        "",
        "platform",
        "platform = 'ios'",
        "platform > 'ios'",
        "build == 2",
        "f('x')",
        "a in []",
        "a is 'x'",
        "a == null",
    ],
)
def test_an_unreadable_expression_is_refused_with_an_example(text: str) -> None:
    """Any other text raises `BadQuery` with an example of a filter."""
    with pytest.raises(BadQuery, match="platform =="):
        parse_expression(text)


@pytest.mark.parametrize("text", ["platform = ios", "platform == ios", "platform = 'ios'"])
def test_a_short_comparison_has_its_correction(text: str) -> None:
    """The error says how the comparison is written."""
    with pytest.raises(BadQuery, match='Did you mean `platform == "ios"`'):
        parse_expression(text)
