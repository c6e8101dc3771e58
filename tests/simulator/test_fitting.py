"""Retention targets turned into populations, and the nearest that can be where there are none."""

from __future__ import annotations

import re

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from conftest import examples
from gamelens.errors import BadQuery
from gamelens.simulator import BgbbModel, fit_retention, nearest_feasible

SHAPES = st.floats(0.3, 8)
SHARES = st.lists(st.floats(0.002, 0.95), min_size=3, max_size=3, unique=True).map(lambda some: sorted(some)[::-1])


def told(activity: BgbbModel) -> list[float]:
    return [*(activity.retention(day) for day in (1, 7, 28)), activity.retention_both(1, 7)]


@settings(deadline=None)
@given(SHAPES, SHAPES, SHAPES, SHAPES)
def test_fit_finds_a_population_with_the_targets_of_any_population(alpha, beta, gamma, delta) -> None:
    targets = told(BgbbModel(alpha, beta, gamma, delta))
    assert told(fit_retention(*targets)) == pytest.approx(targets, rel=1e-6)


@settings(deadline=None)
@given(SHAPES, SHAPES, SHAPES, SHAPES)
def test_fit_finds_the_population_itself_from_four_targets(alpha, beta, gamma, delta) -> None:
    found = fit_retention(*told(BgbbModel(alpha, beta, gamma, delta)))
    assert (found.alpha, found.beta) == pytest.approx((alpha, beta), rel=1e-3)
    assert (found.gamma, found.delta) == pytest.approx((gamma, delta), rel=1e-3)


def test_joint_retention_fits_the_habit() -> None:
    """Cookie Cats: 79 % of those who play on day 7 played on day 1."""
    found = fit_retention(0.4452, 0.1861, 0.08, 0.1462)
    assert told(found) == pytest.approx([0.4452, 0.1861, 0.08, 0.1462])
    assert (found.alpha + 1) / (found.alpha + found.beta + 1) == pytest.approx(0.1462 / 0.1861)


@settings(deadline=None, max_examples=examples(30))
@given(SHARES, st.floats(0.01, 0.99))
def test_the_nearest_targets_have_a_population(targets, share) -> None:
    near = nearest_feasible(*targets)
    assert near[0] == pytest.approx(targets[0])
    assert told(fit_retention(*near))[:3] == pytest.approx(list(near), rel=1e-6)
    near = nearest_feasible(*targets, share * targets[1])
    assert told(fit_retention(*near)) == pytest.approx(list(near), rel=1e-6)


@settings(deadline=None, max_examples=examples(30))
@given(SHARES)
def test_what_is_refused_is_refused_with_targets_that_are_taken(targets) -> None:
    try:
        fit_retention(*targets)
    except BadQuery as error:
        named = [float(value) for value in re.findall(r"d\d+ = ([0-9.e-]+[0-9])", str(error))]
        assert told(fit_retention(*named))[:3] == pytest.approx(named, rel=1e-6)
    else:
        assume(False)


@pytest.mark.parametrize(
    ("targets", "nearest"),
    [
        # Everybody who is there plays, and D7 cannot fall below D1 to the seventh.
        ((0.9, 0.2, 0.19), "d1 = 0.9, d7 = 0.5"),
        # D28 is too high: nobody would leave after day 7.
        ((0.37, 0.125, 0.12), "d1 = 0.37, d7 = 0.17"),
        # D28 is too low: people who are all alike still leave slower.
        ((0.3, 0.1, 0.001), "d1 = 0.3, d7 = 0.08"),
        # More play on both days than on day 7.
        ((0.37, 0.125, 0.04, 0.13), "d28 = 0.04, d1_and_d7 = 0.12"),
        # Fewer play on both days than if day 1 said nothing about day 7.
        ((0.37, 0.125, 0.04, 0.02), "d28 = 0.04, d1_and_d7 = 0.07"),
    ],
)
def test_infeasible_targets_are_refused_with_the_nearest_feasible_ones(targets, nearest) -> None:
    with pytest.raises(BadQuery, match=re.escape(nearest)):
        fit_retention(*targets)


@pytest.mark.parametrize("targets", [(0.0, 0.1, 0.01), (1.0, 0.5, 0.2), (0.3, 0.1, -0.1), (0.3, 0.3, 0.1)])
def test_shares_that_are_none_are_refused(targets) -> None:
    with pytest.raises(BadQuery, match="retention"):
        fit_retention(*targets)


def test_nearest_to_a_feasible_target_is_itself() -> None:
    assert nearest_feasible(0.37, 0.125, 0.04, 0.09) == pytest.approx((0.37, 0.125, 0.04, 0.09))
