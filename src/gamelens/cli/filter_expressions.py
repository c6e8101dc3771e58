"""A filter as one types it in a terminal: `platform == "ios" and country_code in ["US", "NA"]`.

Read with Python's own parser and never run; only comparisons of a dimension with text, and, or and not mean anything.
The service's own filter object is understood too: `{"platform": "ios"}`.
"""

from __future__ import annotations

import ast

from gamelens.errors import BadQuery
from gamelens.wire.filters import And, Filter, Match, Not, Or, parse_filter


def parse_expression(text: str) -> Filter:
    """The filter that *text* means.

    Raises:
        BadQuery: it means none; quotes the part that does not.
    """
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise _refused(text) from None
    return _filter(tree, text)


def _filter(node: ast.expr, text: str) -> Filter:
    match node:
        case ast.Dict():
            return parse_filter(_literal(node, text))
        case ast.BoolOp(op=ast.And(), values=members):
            return And(tuple(_filter(member, text) for member in members))
        case ast.BoolOp(op=ast.Or(), values=members):
            return Or(tuple(_filter(member, text) for member in members))
        case ast.UnaryOp(op=ast.Not(), operand=member):
            return Not(_filter(member, text))
        case ast.Compare(left=ast.Name(id=dimension), ops=[operator], comparators=[value]):
            return _comparison(dimension, operator, _literal(value, text), text)
    raise _refused(ast.get_source_segment(text.strip(), node) or text)


def _comparison(dimension: str, operator: ast.cmpop, value: object, text: str) -> Filter:
    if isinstance(operator, ast.Eq | ast.NotEq) and isinstance(value, str):
        found = Match(dimension, (value,))
    elif isinstance(operator, ast.In | ast.NotIn) and isinstance(value, list | tuple | set) and value:
        found = Match(dimension, tuple(str(item) for item in value))
    else:
        raise _refused(text)
    return Not(found) if isinstance(operator, ast.NotEq | ast.NotIn) else found


def _literal(node: ast.expr, text: str) -> object:
    try:
        return ast.literal_eval(node)
    except ValueError:
        raise _refused(ast.get_source_segment(text.strip(), node) or text) from None


def _refused(part: str) -> BadQuery:
    return BadQuery(
        "where", part, 'must compare dimensions with text, such as platform == "ios" and country_code in ["US", "NA"]'
    )
