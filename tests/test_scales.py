"""Numbers of a column have the same decimal places, as many as its intervals or its usual number need."""

from __future__ import annotations

import math

import pandas as pd
import pytest

from gamelens._scales import NumberKind, Scale, format_number


@pytest.mark.parametrize(
    ("value", "kind", "text"),
    [
        (1234.5, "money", "$1,234"),
        (42_960, "money", "$42,960"),
        (212.111, "money", "$212.11"),
        (0.0042, "money", "$0.0042"),
        (-3.5, "money", "-$3.50"),
        (0.1234, "share", "12.3%"),
        (0.0004, "share", "0.04%"),
        (0.05, "change", "+5.0%"),
        (-0.0214, "points", "-2.1 pp"),
        (1_234_567, "count", "1,234,567"),
        (3.0, "number", "3"),
        (2.5, "number", "2.50"),
        (0.0, "money", "$0.00"),
        (float("nan"), "money", "n/a"),
        (float("inf"), "share", "n/a"),
        (pd.NA, "count", "n/a"),
        (pd.NaT, "count", "n/a"),
        (None, "change", "n/a"),
    ],
)
def test_a_number_that_stands_alone_is_readable(value: object, kind: NumberKind, text: str) -> None:
    assert format_number(value, kind) == text


def test_a_change_can_be_rounded_to_whole_percents() -> None:
    assert format_number(-0.126, "change", places=0) == "-13%"
    assert format_number(-0.004, "change", places=0) == "0%"


def test_the_numbers_of_a_column_have_the_same_places() -> None:
    """They are those of its usual number, not of each number by itself."""
    scale = Scale.of("money", [0.00456, 0.20, 0.31])
    assert [scale.text(value) for value in (0.00456, 0.20, 0.31)] == ["$0.00", "$0.20", "$0.31"]
    whole = Scale.of("money", [1200.5, 43_000, 212.11])
    assert [whole.text(value) for value in (1200.5, 43_000, 212.11)] == ["$1,200", "$43,000", "$212"]


@pytest.mark.parametrize(
    ("half", "places"),
    [(0.012, 1), (0.0356, 0), (0.0353, 1), (0.4, 0), (0.0012, 2)],
)
def test_an_interval_decides_the_places_of_a_share(half: float, places: int) -> None:
    """Its half-width has one digit above 3.55 steps, two below."""
    assert Scale.of("share", [0.5], [half]).places == places


def test_money_has_whole_dollars_or_cents() -> None:
    """Half a dollar is no step for money."""
    assert Scale.of("money", [5.0], [0.5]).places == 2
    assert Scale.of("money", [500.0], [50.0]).places == 0


def test_an_interval_has_the_places_of_its_number() -> None:
    scale = Scale.of("points", [-0.029], [0.0165])
    assert (scale.text(-0.029), scale.interval(-0.045, -0.012)) == ("-2.9 pp", "-4.5 to -1.2 pp")
    assert scale.interval(math.nan, 0.1) == "n/a"


def test_a_bound_that_is_not_0_is_not_rounded_to_0() -> None:
    assert Scale("points", 0).interval(-0.22, -0.002) == "-22 to -0.2 pp"
    assert Scale("points", 0).interval(-0.22, 0.0) == "-22 to 0 pp"


def test_a_sign_can_be_asked_for() -> None:
    assert Scale("money", 2).text(52.514, is_signed=True) == "+$52.51"


@pytest.mark.parametrize(
    ("kind", "largest", "written"),
    [
        ("share", 0.5, ",.0%"),
        ("share", 0.03, ",.1%"),
        ("money", 43_000, "$,.0f"),
        ("money", 0.9, "$,.2f"),
        ("money", 0.003, "$,.4f"),
        ("count", 3, ",.0f"),
        ("number", 1.2, ",.1f"),
    ],
)
def test_an_axis_has_the_places_of_its_ticks(kind: NumberKind, largest: float, written: str) -> None:
    """Six ticks that are 1, 2 or 5 times a power of ten apart; half a dollar is $0.50."""
    assert Scale.of_axis(kind, largest).d3 == written


def test_a_spreadsheet_shows_the_same_number() -> None:
    assert Scale("money", 2).excel == "[$$-409]#,##0.00"
    assert Scale("share", 1).excel == "0.0%"
    assert Scale("count", 0).excel == "#,##0"


def test_an_amount_that_is_not_0_is_not_said_to_be_0() -> None:
    """A wide interval takes digits, but not the last one of an amount or a share."""
    assert Scale.of("money", [0.31], [36.0]).text(0.31) == "$0.31"
    assert Scale.of("share", [0.004], [0.05]).text(0.004) == "0.4%"
