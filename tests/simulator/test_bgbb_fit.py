"""Retention targets fitted by a BG/BB population, and the nearest feasible targets."""

from __future__ import annotations

import re

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from gamelens.errors import BadQuery
from gamelens.simulator import BgbbModel, fit_retention, nearest_feasible
from support.hypothesis_profiles import examples

SHAPES = st.floats(0.3, 8)
SHARES = st.lists(st.floats(0.002, 0.95), min_size=3, max_size=3, unique=True).map(lambda shares: sorted(shares)[::-1])


def retention_targets(activity: BgbbModel) -> list[float]:
    """Return D1, D7, D28 and the share active on both day 1 and day 7."""
    return [*(activity.retention(day) for day in (1, 7, 28)), activity.retention_both(1, 7)]


@settings(deadline=None)
@given(SHAPES, SHAPES, SHAPES, SHAPES)
def test_fit_finds_a_population_with_the_targets_of_any_population(
    alpha: float, beta: float, gamma: float, delta: float
) -> None:
    """The targets of any BG/BB population are feasible, and the fit meets them to 1e-6."""
    targets = retention_targets(BgbbModel(alpha, beta, gamma, delta))
    assert retention_targets(fit_retention(*targets)) == pytest.approx(targets, rel=1e-6)


@pytest.mark.wide
@settings(deadline=None)
@given(SHAPES, SHAPES, SHAPES, SHAPES)
def test_fit_finds_the_population_itself_from_four_targets(
    alpha: float, beta: float, gamma: float, delta: float
) -> None:
    """Four targets determine all four parameters."""
    fitted = fit_retention(*retention_targets(BgbbModel(alpha, beta, gamma, delta)))
    assert (fitted.alpha, fitted.beta) == pytest.approx((alpha, beta), rel=1e-3)
    assert (fitted.gamma, fitted.delta) == pytest.approx((gamma, delta), rel=1e-3)


def test_joint_retention_fits_the_habit() -> None:
    """Joint retention of Cookie Cats is met: 79 % of the players of day 7 played on day 1."""
    fitted = fit_retention(0.4452, 0.1861, 0.08, 0.1462)
    assert retention_targets(fitted) == pytest.approx([0.4452, 0.1861, 0.08, 0.1462])
    assert (fitted.alpha + 1) / (fitted.alpha + fitted.beta + 1) == pytest.approx(0.1462 / 0.1861)


@pytest.mark.wide
@settings(deadline=None, max_examples=examples(30))
@given(SHARES, st.floats(0.01, 0.99))
def test_the_nearest_targets_have_a_population(targets: list[float], share: float) -> None:
    """The nearest feasible targets keep D1 and can be fitted, with joint retention too."""
    d1, d7, d28 = targets
    near = nearest_feasible(d1, d7, d28)
    assert near[0] == pytest.approx(d1)
    assert retention_targets(fit_retention(*near))[:3] == pytest.approx(list(near), rel=1e-6)
    near = nearest_feasible(d1, d7, d28, share * d7)
    assert retention_targets(fit_retention(*near)) == pytest.approx(list(near), rel=1e-6)


@settings(deadline=None, max_examples=examples(30))
@given(SHARES)
def test_a_refusal_names_targets_that_fit_accepts(targets: list[float]) -> None:
    """The targets that the error of an infeasible fit names can themselves be fitted."""
    try:
        fit_retention(*targets)
    except BadQuery as error:
        named = [float(value) for value in re.findall(r"d\d+ = ([0-9.e-]+[0-9])", str(error))]
        assert retention_targets(fit_retention(*named))[:3] == pytest.approx(named, rel=1e-6)
    else:
        assume(False)


@pytest.mark.parametrize(
    ("targets", "nearest"),
    [
        # All who have not dropped out play, and D7 cannot fall below D1 to the seventh.
        ((0.9, 0.2, 0.19), "d1 = 0.9, d7 = 0.5"),
        # D28 is too high: no player would drop out after day 7.
        ((0.37, 0.125, 0.12), "d1 = 0.37, d7 = 0.17"),
        # D28 is too low: players who are all alike still drop out slower.
        ((0.3, 0.1, 0.001), "d1 = 0.3, d7 = 0.08"),
        # More play on both days than on day 7.
        ((0.37, 0.125, 0.04, 0.13), "d28 = 0.04, d1_and_d7 = 0.12"),
        # Fewer play on both days than if day 1 said nothing about day 7.
        ((0.37, 0.125, 0.04, 0.02), "d28 = 0.04, d1_and_d7 = 0.07"),
    ],
)
def test_infeasible_targets_are_refused_with_the_nearest_feasible_ones(
    targets: tuple[float, ...], nearest: str
) -> None:
    """Each kind of infeasible target raises `BadQuery` with the nearest feasible numbers."""
    with pytest.raises(BadQuery, match=re.escape(nearest)):
        fit_retention(*targets)


@pytest.mark.parametrize("targets", [(0.0, 0.1, 0.01), (1.0, 0.5, 0.2), (0.3, 0.1, -0.1), (0.3, 0.3, 0.1)])
def test_targets_outside_0_to_1_or_not_falling_are_refused(targets: tuple[float, ...]) -> None:
    """Targets outside 0 to 1, or that do not fall, raise `BadQuery` naming retention."""
    with pytest.raises(BadQuery, match="retention"):
        fit_retention(*targets)


def test_nearest_to_a_feasible_target_is_itself() -> None:
    """Feasible targets are returned unchanged."""
    assert nearest_feasible(0.37, 0.125, 0.04, 0.09) == pytest.approx((0.37, 0.125, 0.04, 0.09))
