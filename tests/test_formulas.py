"""Formulas of own metrics: what is one, what it is worth, and the unit that follows."""

from __future__ import annotations

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gamelens.formulas import MOST_LETTERS, Formula, divide_numbers, names_in, parse_formula, unit_of

UNITS = {"ads": "ads", "payers": "players", "players": "players", "usd": "USD", "days": "active player-days"}
NUMBERS = st.one_of(st.integers(0, 1000).map(str), st.floats(0, 1000).map(lambda number: f"{number:.4f}"))
EXPRESSIONS = st.recursive(
    st.one_of(NUMBERS, st.sampled_from("abcd")),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from("+-*/"), inner).map(lambda it: f"({it[0]} {it[1]} {it[2]})"),
        st.tuples(inner, st.sampled_from("+-*/"), inner).map(" ".join),
        inner.map("-{}".format),
    ),
    max_leaves=12,
)
VALUES = st.fixed_dictionaries({name: st.integers(0, 5).map(float) for name in "abcd"})


def worth(text: str, values: dict[str, float]) -> float:
    """Return the value of *text*, NaN where it divides by 0."""
    return float(Formula(parse_formula(text)).value(values, divide_numbers))


@given(EXPRESSIONS, VALUES)
def test_a_formula_is_worth_what_python_computes(text: str, values: dict[str, float]) -> None:
    """Precedence, parentheses and signs are those of Python; anything divided by 0 is NaN."""
    try:
        expected = eval(text, {"__builtins__": {}}, values)  # written by the strategy above
    except ZeroDivisionError:
        expected = math.nan
    try:
        found = worth(text, values)
    except ValueError:  # it divides by a number that is 0
        found = math.nan
    assert found == pytest.approx(expected, nan_ok=True)


@given(EXPRESSIONS, VALUES)
def test_numerator_and_denominator_have_the_same_ratio(text: str, values: dict[str, float]) -> None:
    """The parts by which rows are weighed make the value again, wherever there is one."""
    try:
        formula = Formula(parse_formula(text))
    except ValueError:
        return
    parts, value = formula.fraction(values), formula.value(values, divide_numbers)
    if parts is not None and not math.isnan(value):
        assert divide_numbers(*parts) == pytest.approx(value, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("", "is not a formula"),
        ("ads /", "is not a formula"),
        ("ads players", "is not a formula"),
        ("ads # players", "is not a formula"),
        ("ads\0", "is not a formula"),
        ("(" * 249 + "a" + ")" * 249, "is not a formula"),
        ("ads ** 2", "and has ads ** 2"),
        ("ads // 2", "and has ads // 2"),
        ("ads % 2", "and has ads % 2"),
        ("max(ads, 1)", "and has max(ads, 1)"),
        ("__import__('os')", "and has __import__"),
        ("ads.real", "and has ads.real"),
        ("ads[0]", "and has ads[0]"),
        ("ads if 1 else 2", "and has ads if 1 else 2"),
        ("ads < 1", "and has ads < 1"),
        ("ads and payers", "and has ads and payers"),
        ("~ads", "and has ~ads"),
        ("lambda: ads", "and has lambda: ads"),
        ("(ads := 1)", "and has ads := 1"),
        ("'ads'", "and has 'ads'"),
        ("True * ads", "and has True"),
        ("2j * ads", "and has 2j"),
        ("1e999 * ads", "a number that is too large"),
        ("ads / 0", "divides by zero in ads / 0"),
        ("ads / (2 - 1 - 1)", "divides by zero in ads / (2 - 1 - 1)"),
        ("ads / -0.0", "divides by zero"),
        ("+".join("a" * 201), "more than 200 names, numbers and signs"),
        ("a" * (MOST_LETTERS + 1), "has 501 letters, and may have 500"),
    ],
)
def test_anything_else_is_refused(text: str, rule: str) -> None:
    """Python that is no formula is parsed and never run: the error quotes the wrong part."""
    with pytest.raises(ValueError, match=re.escape(rule)):
        parse_formula(text)


def test_names_are_those_of_the_formula() -> None:
    """Each once, in their order."""
    assert names_in(parse_formula("(b + a) / (b * 2 - c)")) == ("b", "a", "c")


@pytest.mark.parametrize(
    ("text", "unit"),
    [
        ("ads", "ads"),
        ("ads / payers", "ads per player"),
        ("payers / players", "share"),
        ("1 - payers / players", "share"),
        ("1000 * usd / ads", "USD per 1,000 ads"),
        ("0.7 * usd / players", "USD per player"),
        ("100 * 10 * usd / players", "USD per 1,000 players"),
        ("0.7 * usd + usd", "USD"),
        ("usd / days", "USD per active player-day"),
        ("usd / players / ads", "USD per player per ad"),
        ("usd / (usd / ads)", "ads"),
        ("usd / players * payers", "USD"),
        ("ads / (payers + 1)", "ads per player"),
        ("-usd", "USD"),
    ],
)
def test_the_unit_follows(text: str, unit: str) -> None:
    """By the rules of dimensions: units cancel, sums have one unit, and numbers have none."""
    assert unit_of(parse_formula(text), UNITS) == unit


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("usd + players", "adds numbers of different units"),
        ("usd - usd / players", "adds numbers of different units"),
        ("usd * players", "USD x players"),
        ("1 / players", "a number / players"),
        ("100 * payers / players", "a share"),
        ("usd / players / ads / days", "USD / "),
    ],
)
def test_a_unit_that_does_not_follow_is_not_guessed(text: str, why: str) -> None:
    """Nothing is assumed of it."""
    with pytest.raises(ValueError, match=why):
        unit_of(parse_formula(text), UNITS)
