"""Filters as one types them in a terminal mean what the service's own objects mean."""

import pytest

from gamelens.cli.filter_expressions import parse_expression
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
        ('{"or": [{"platform": "ios"}, {"build": ["1", "2"]}]}', {"or": [{"platform": "ios"}, {"build": ["1", "2"]}]}),
    ],
)
def test_an_expression_means_what_the_object_means(text: str, wire: dict) -> None:
    """Public facts 3.4."""
    assert wire_filter(parse_expression(text)) == wire


@pytest.mark.parametrize(
    "text", ["", "platform", "platform = 'ios'", "platform > 'ios'", "build == 2", "f('x')", "a in []"]
)
def test_what_means_nothing_is_refused_with_an_example(text: str) -> None:
    """contract, Commands: one clear line."""
    with pytest.raises(BadQuery, match="platform =="):
        parse_expression(text)
