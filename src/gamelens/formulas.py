"""Formulas of own metrics: numbers and names with + - * / and parentheses. They are parsed, and never run as Python."""

from __future__ import annotations

import ast
import math
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, Final, Literal

import msgspec

from gamelens.errors import suggests_names

MOST_LETTERS: Final = 500
"""Letters of a formula at most."""
MOST_STEPS: Final = 200
"""Names, numbers and signs of an expression at most, once the own metrics that it names are written out."""
_MOST_PER: Final = 2  # units behind "per"
_PER_NUMBERS: Final = (10, 100, 1_000, 10_000, 100_000, 1_000_000)  # behind "per", as in "per 1,000 impressions"
_MOST_NUMBER: Final = 1e300
_SIGNS: Final[dict[type[ast.operator], Sign]] = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}

Sign = Literal["+", "-", "*", "/"]
Divide = Callable[[Any, Any], Any]
"""Divides numbers or columns; the result is NaN where the second is 0."""


@suggests_names
class MetricFormula(msgspec.Struct, frozen=True, kw_only=True):
    """An own metric as it was defined.

    Attributes:
        name: its name.
        formula: the expression as it was typed.
        unit: the unit of its values; empty where it follows from the formula.
        title: its name for people; empty is the name in words.
    """

    name: str = ""
    formula: str = ""
    unit: str = ""
    title: str = ""


@suggests_names
class Constant(msgspec.Struct, frozen=True):
    """A number in an expression."""

    value: float


@suggests_names
class Variable(msgspec.Struct, frozen=True):
    """A name in an expression: a metric, or a field of a row."""

    name: str


@suggests_names
class Operation(msgspec.Struct, frozen=True):
    """A sum, difference, product or quotient of two expressions."""

    sign: Sign
    left: Expression
    right: Expression


Expression = Constant | Variable | Operation


@suggests_names
class Formula(msgspec.Struct, frozen=True):
    """A value that is computed from other fields of the same row, as *expression* says."""

    expression: Expression

    @property
    def names(self) -> tuple[str, ...]:
        """The fields that it is made of, in their order."""
        return names_in(self.expression)

    def value(self, values: Mapping[str, Any], divide: Divide) -> Any:
        """Return the value for the *values* of the fields. It is NaN where anything is divided by 0."""
        return _value(self.expression, values, divide)

    def fraction(self, values: Mapping[str, Any]) -> tuple[Any, Any] | None:
        """Return numerator and denominator, or None if the expression divides by no field."""
        if not _divides_by_field(self.expression):
            return None
        return _fraction(self.expression, values)


def parse_formula(text: str) -> Expression:
    """Return the expression that *text* is.

    Raises:
        ValueError: what *text* breaks, as the end of a sentence about it.
    """
    if len(text) > MOST_LETTERS:
        raise ValueError(f"has {len(text):,} letters, and may have {MOST_LETTERS}")
    not_one = "is not a formula such as ad_impressions_count / paying_users"
    if "#" in text:  # a comment, which would show a reader what does not count
        raise ValueError(not_one)
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise ValueError(not_one) from None
    if sum(isinstance(node, ast.expr) for node in ast.walk(tree)) > MOST_STEPS:
        raise ValueError(f"has more than {MOST_STEPS} names, numbers and signs: divide it into several own metrics")
    return _expression(tree, text.strip())


def names_in(expression: Expression) -> tuple[str, ...]:
    """Return the names in *expression*, each once, in their order."""
    match expression:
        case Variable(name=name):
            return (name,)
        case Operation(left=left, right=right):
            return tuple(dict.fromkeys([*names_in(left), *names_in(right)]))
    return ()


def steps_in(expression: Expression) -> int:
    """Return the number of names, numbers and signs in *expression*."""
    if isinstance(expression, Operation):
        return 1 + steps_in(expression.left) + steps_in(expression.right)
    return 1


def written_out(expression: Expression, of_name: Mapping[str, Expression]) -> Expression:
    """Return *expression* with an expression in place of each name."""
    match expression:
        case Variable(name=name):
            return of_name[name]
        case Operation(sign=sign, left=left, right=right):
            return Operation(sign, written_out(left, of_name), written_out(right, of_name))
    return expression


def unit_of(expression: Expression, units: Mapping[str, str]) -> str:
    """Return the unit that follows from the *units* of the names in *expression*: "ads per player", "share", "USD".

    Raises:
        ValueError: none follows; the text says why, as the end of a sentence about the formula.
    """
    dimension = _units_of(expression, units)
    above, below, factor = [*dimension.above.elements()], [*dimension.below.elements()], dimension.factor
    if not above and not below and factor == 1:
        return "share"
    if len(above) != 1 or len(below) > _MOST_PER:
        words = " x ".join(above) or ("a share" if not below else "a number")
        per = "".join(f" / {unit}" for unit in below)
        raise ValueError(f"has no unit that follows from its metrics ({words}{per})")
    if len(below) == 1 and factor in _PER_NUMBERS:
        return f"{above[0]} per {int(factor):,} {below[0]}"
    return " per ".join([above[0], *(unit.removesuffix("s") for unit in below)])


def divide_numbers(above: float, below: float) -> float:
    """Return *above* / *below*, NaN where *below* is 0."""
    return above / below if below else math.nan


class _UnitPowers(msgspec.Struct, frozen=True):
    """The units above and below the line, and the product of the numbers beside them."""

    above: Counter[str] = Counter()
    below: Counter[str] = Counter()
    factor: float = 1.0

    @property
    def is_number(self) -> bool:
        """Whether it belongs to a plain number or a share."""
        return not self.above and not self.below

    def times(self, other: _UnitPowers, *, factor: float) -> _UnitPowers:
        """Return the dimension of the product with *other*."""
        above, below = self.above + other.above, self.below + other.below
        return _UnitPowers(above - below, below - above, factor)


def _units_of(expression: Expression, units: Mapping[str, str]) -> _UnitPowers:
    match expression:
        case Constant(value=value):
            return _UnitPowers(factor=value)
        case Variable(name=name):
            return _UnitPowers(Counter([units[name]]))
    left, right = _units_of(expression.left, units), _units_of(expression.right, units)
    if expression.sign == "*":
        return left.times(right, factor=left.factor * right.factor)
    if expression.sign == "/":
        inverse = _UnitPowers(right.below, right.above, right.factor)
        return left.times(inverse, factor=divide_numbers(left.factor, right.factor))
    if isinstance(expression.right, Constant) or isinstance(expression.left, Constant):  # a number has the other's unit
        named = left if isinstance(expression.right, Constant) else right
        return _UnitPowers(named.above, named.below) if named.is_number else named
    if (left.above, left.below) != (right.above, right.below):
        raise ValueError("adds numbers of different units")
    return left if left.factor == right.factor else _UnitPowers(left.above, left.below)


def _expression(node: ast.expr, text: str) -> Expression:
    match node:
        case ast.Name(id=name):
            return Variable(name)
        case ast.Constant(value=value) if isinstance(value, (int, float)) and not isinstance(value, bool):
            if not abs(value) < _MOST_NUMBER:
                raise ValueError("has a number that is too large")
            return Constant(float(value))
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant() as operand):
            number = _expression(operand, text)
            return Constant(-number.value) if isinstance(number, Constant) else number
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return Operation("*", Constant(-1.0), _expression(operand, text))
        case ast.BinOp(left=left, op=operator, right=right) if type(operator) in _SIGNS:
            above, below = _expression(left, text), _expression(right, text)
            is_by_number = isinstance(operator, ast.Div) and not names_in(below)
            if is_by_number and not _value(below, {}, divide_numbers):
                raise ValueError(f"divides by zero in {ast.get_source_segment(text, node) or text}")
            return Operation(_SIGNS[type(operator)], above, below)
    part = ast.get_source_segment(text, node) or text
    raise ValueError(f"may have metrics, numbers, parentheses and + - * / only, and has {part}")


def _value(expression: Expression, values: Mapping[str, Any], divide: Divide) -> Any:
    match expression:
        case Constant(value=value):
            return value
        case Variable(name=name):
            return values[name]
    left, right = (_value(side, values, divide) for side in (expression.left, expression.right))
    match expression.sign:
        case "+":
            return left + right
        case "-":
            return left - right
        case "*":
            return left * right
    return divide(left, right)


def _fraction(expression: Expression, values: Mapping[str, Any]) -> tuple[Any, Any]:
    match expression:
        case Constant(value=value):
            return value, 1.0
        case Variable(name=name):
            return values[name], 1.0
    (above, below), (right_above, right_below) = (
        _fraction(side, values) for side in (expression.left, expression.right)
    )
    match expression.sign:
        case "*":
            return above * right_above, below * right_below
        case "/":
            return above * right_below, below * right_above
        case "+":
            return above * right_below + right_above * below, below * right_below
    return above * right_below - right_above * below, below * right_below


def _divides_by_field(expression: Expression) -> bool:
    if not isinstance(expression, Operation):
        return False
    is_divided = expression.sign == "/" and bool(names_in(expression.right))
    return is_divided or _divides_by_field(expression.left) or _divides_by_field(expression.right)
