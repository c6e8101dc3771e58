"""Filters as text: `platform == "ios" and country_code in ["US", "NA"]`.

The text is parsed with `ast` and never executed. Only comparisons of a dimension with text, `is null`, `is not null`,
`and`, `or` and `not` are allowed. The filter object of the service is accepted as well: `{"platform": "ios"}`.
"""

from __future__ import annotations

import ast
import re
from typing import Final

from gamelens.errors import BadQuery
from gamelens.wire.filters import And, Filter, IsNull, Match, Not, Or, parse_filter

_SHORT: Final = re.compile(r"""\s*([A-Za-z]\w*)\s*==?\s*(?:(["'])([^"'\\]+)\2|([\w.-]+))\s*""")


def parse_expression(text: str) -> Filter:
    """Return the filter that *text* describes.

    Raises:
        BadQuery: *text* is not a filter; quotes the part that is wrong.
    """
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise _invalid_part(text, text) from None
    return _filter(tree, text)


def _filter(node: ast.expr, text: str) -> Filter:
    match node:
        case ast.Dict():
            return parse_filter(_literal(node, text), with_nulls=True)
        case ast.BoolOp(op=ast.And(), values=members):
            return And(tuple(_filter(member, text) for member in members))
        case ast.BoolOp(op=ast.Or(), values=members):
            return Or(tuple(_filter(member, text) for member in members))
        case ast.UnaryOp(op=ast.Not(), operand=member):
            return Not(_filter(member, text))
        case ast.Compare(left=ast.Name(id=dimension), ops=[ast.Is()], comparators=[value]) if _is_null(value):
            return IsNull(dimension)
        case ast.Compare(left=ast.Name(id=dimension), ops=[ast.IsNot()], comparators=[value]) if _is_null(value):
            return Not(IsNull(dimension))
        case ast.Compare(left=ast.Name(id=dimension), ops=[operator], comparators=[value]):
            return _comparison(dimension, operator, _literal(value, text), text)
    raise _invalid_part(ast.get_source_segment(text.strip(), node) or text, text)


def _comparison(dimension: str, operator: ast.cmpop, value: object, text: str) -> Filter:
    if isinstance(operator, ast.Eq | ast.NotEq) and isinstance(value, str):
        match_filter = Match(dimension, (value,))
    elif isinstance(operator, ast.In | ast.NotIn) and isinstance(value, list | tuple | set) and value:
        match_filter = Match(dimension, tuple(str(item) for item in value))
    else:
        raise _invalid_part(text, text)
    return Not(match_filter) if isinstance(operator, ast.NotEq | ast.NotIn) else match_filter


def _is_null(node: ast.expr) -> bool:
    """Return whether *node* is `null` or `None`, in any case."""
    return (isinstance(node, ast.Name) and node.id.lower() == "null") or (
        isinstance(node, ast.Constant) and node.value is None
    )


def _literal(node: ast.expr, text: str) -> object:
    try:
        return ast.literal_eval(node)
    except ValueError:
        raise _invalid_part(ast.get_source_segment(text.strip(), node) or text, text) from None


def _invalid_part(part: str, text: str) -> BadQuery:
    """Return the error for *part*, with the comparison that the whole *text* is short for."""
    rule = 'must compare dimensions with text, such as platform == "ios" and country_code in ["US", "NA"]'
    return BadQuery("where", part, rule, name=text, meant=_meant(text))


def _meant(text: str) -> str | None:
    """Return the comparison that *text* is short for, such as `platform = ios`, or None."""
    short = _SHORT.fullmatch(text)
    if short is None:
        return None
    dimension, _, quoted, word = short.groups()
    return f"{dimension} is null" if word and word.lower() in ("null", "none") else f'{dimension} == "{quoted or word}"'
