"""Filter expressions typed in a terminal, and the filters they stand for."""

import ast
import json
from collections.abc import Callable
from typing import Any

import pytest

from gamelens.client.query.filter_expressions import parse_expression
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
    ("text", "meant"),
    [
        ("platform = ios", 'platform == "ios"'),
        ("platform == ios", 'platform == "ios"'),
        ("platform = 'ios'", 'platform == "ios"'),
        ('game_id = "a or b"', 'game_id == "a or b"'),
        ("build == 2", 'build == "2"'),
        ("country_code == null", "country_code is null"),
    ],
)
@pytest.mark.parametrize("quoted", [repr, json.dumps])
def test_a_short_comparison_has_its_correction(text: str, meant: str, quoted: Callable[[str], str]) -> None:
    """The error has the comparison that is meant, and the call that works."""
    with pytest.raises(BadQuery) as refused:
        parse_expression(text)
    assert refused.value.did_you_mean == meant
    parse_expression(meant)
    if quoted(text)[1:-1] == text:  # without escapes
        valid = ast.parse(refused.value.amended(f"query('dau', where={quoted(text)})"), mode="eval").body
        assert isinstance(valid, ast.Call)
        assert ast.literal_eval(valid.keywords[0].value) == meant


@pytest.mark.parametrize("text", ["platform", "platform = ios or android", "platform = ios and build = 2", "a in []"])
def test_what_is_not_one_comparison_has_no_correction(text: str) -> None:
    """Nothing is guessed."""
    with pytest.raises(BadQuery) as refused:
        parse_expression(text)
    assert refused.value.did_you_mean is None
