"""The inference over days: its ratios, its rules, and numbers of an implementation written apart from it."""

import numpy as np
import pytest

from gamelens.analysis.over_days import over_days, over_parts_of_week

_MONTH = 20006 + np.arange(28)
_COUNTS = np.array(
    [
        [100.0, 104, 98, 120, 131, 129, 101],
        [97.0, 103, 108, 125, 136, 128, 110],
        [105.0, 109, 112, 126, 140, 133, 112],
        [108.0, 103, 115, 127, 138, 130, 109],
    ]
).ravel()
_SIZES = np.full(28, 1000.0)


def test_interval_and_p_value_are_those_of_another_implementation() -> None:
    level, change = over_days(_COUNTS, _SIZES, _MONTH), over_days(_COUNTS, _SIZES, _MONTH, later=_MONTH >= 20020)
    assert [level.value[0], *np.ravel(level.bounds())] == pytest.approx([0.116321429, 0.111484152, 0.121368594])
    found = [change.value[0], *np.ravel(change.bounds()), change.p_value()[0]]
    assert found == pytest.approx([1.048427673, 1.020115623, 1.077525489, 0.009759489])


def test_whole_weeks_have_the_ratio_of_the_plain_sums() -> None:
    sizes = _SIZES + 10.0 * np.arange(28)
    assert over_days(_COUNTS, sizes, _MONTH).value[0] == pytest.approx(_COUNTS.sum() / sizes.sum())


def test_days_beyond_whole_weeks_do_not_move_a_balanced_ratio() -> None:
    weekly = np.array([1.0, 1.0, 1.0, 1.0, 2.0, 3.0, 1.0])[(_MONTH % 7)]
    whole, longer = (over_days(weekly[:days], _SIZES[:days], _MONTH[:days]) for days in (21, 26))
    assert longer.value == pytest.approx(whole.value)
    plain = over_days(weekly[:26], _SIZES[:26], _MONTH[:26], is_balanced=False)
    assert plain.value[0] == pytest.approx(weekly[:26].sum() / 26_000)
    assert plain.value != pytest.approx(whole.value)


def test_units_and_the_order_of_groups_change_nothing() -> None:
    both = np.stack([_COUNTS, _COUNTS[::-1] ** 2])
    sizes = np.stack([_SIZES, _SIZES])
    first = over_days(both, sizes, _MONTH)
    other = over_days(both[::-1] * 1e6, sizes, _MONTH)
    assert other.half_width()[::-1] == pytest.approx(first.half_width())


@pytest.mark.parametrize("confidence", [0.8, 0.95, 0.999])
def test_an_interval_ends_where_the_p_value_is_its_level(confidence: float) -> None:
    later = _MONTH >= 20020
    half = over_days(_COUNTS, _SIZES, _MONTH, later=later).half_width(confidence)[0]
    shifted = _COUNTS * np.where(later, np.exp(half) / over_days(_COUNTS, _SIZES, _MONTH, later=later).value[0], 1.0)
    assert over_days(shifted, _SIZES, _MONTH, later=later).p_value()[0] == pytest.approx(1 - confidence, rel=1e-3)


@pytest.mark.parametrize(
    ("counts", "days", "reason"),
    [
        (_COUNTS[:6], _MONTH[:6], "6 days, but an interval needs 7"),
        (_COUNTS[:8], np.delete(_MONTH[:9], 1), ""),
        (_COUNTS[:10], np.delete(_MONTH[:12], [2, 9]), "no Saturday among the days"),
        (np.zeros(28), _MONTH, "nothing happened on these days"),
        (np.eye(1, 28, 3)[0] * 9, _MONTH, "9 events, but an interval needs 10"),
    ],
)
def test_what_cannot_be_known_says_why(counts: np.ndarray, days: np.ndarray, reason: str) -> None:
    found = over_days(counts, np.full(len(days), 1000.0), days, counted="shares")
    assert found.reasons == [reason]
    assert np.isnan(found.p_value()[0]) == bool(reason)
    assert np.isnan(found.half_width()[0]) == bool(reason)


def test_a_series_that_does_not_move_has_no_p_value_of_zero() -> None:
    still = over_days(np.repeat([1.0, 1.2], 14), np.ones(28), _MONTH, later=_MONTH >= 20020)
    assert still.reasons == ["no day differs from another"]
    assert np.isnan(still.p_value()[0])


def test_days_closer_together_than_chance_do_not_narrow_counts() -> None:
    counts = np.where(np.arange(28) % 2, 100.0, 101.0)
    half = over_days(counts, _SIZES, _MONTH, counted="shares").half_width()[0]
    assert half >= 1.959 * np.sqrt(1 / counts.sum() - 1 / 28_000)
    assert over_days(counts, _SIZES, _MONTH).half_width()[0] < half / 5


def test_an_empty_day_is_left_out_of_its_group_alone() -> None:
    counts, sizes = np.stack([_COUNTS, _COUNTS]), np.stack([_SIZES, _SIZES])
    sizes[0, 5] = 0
    kept = np.delete(np.arange(28), 5)
    both = over_days(counts, sizes, _MONTH, is_pooled=False)
    assert both.value[0] == pytest.approx(over_days(_COUNTS[kept], _SIZES[kept], _MONTH[kept]).value[0])
    assert both.half_width()[1] == pytest.approx(over_days(_COUNTS, _SIZES, _MONTH).half_width()[0])


def test_fewer_than_fourteen_days_a_side_need_more_evidence() -> None:
    days, sizes = _MONTH[:14], _SIZES[:14]
    week = over_days(_COUNTS[:14] * np.repeat([1.0, 1.3], 7), sizes, days, later=np.arange(14) >= 7)
    assert week.severity == [5.0]
    assert over_days(_COUNTS, _SIZES, _MONTH, later=np.arange(28) >= 14).severity == [1.0]


def test_two_sides_on_the_same_days_are_independent_series() -> None:
    rng = np.random.default_rng(3)
    days, later = np.tile(_MONTH, 2), np.repeat([False, True], 28)
    found = over_days(rng.normal(100, 10, 56), np.ones(56), days, later=later)
    assert found.half_width()[0] == pytest.approx(1.96 * 0.1 * np.sqrt(2 / 28), rel=0.6)


@pytest.mark.wide
def test_a_month_of_days_that_resemble_each_other_is_covered() -> None:
    rng, inside = np.random.default_rng(11), 0
    for _ in range(60):
        noise = rng.standard_normal(28)
        for at in range(1, 28):
            noise[at] = 0.8 * noise[at - 1] + 0.6 * noise[at]
        low, high = over_days(np.exp(0.1 * noise), np.ones(28), _MONTH).bounds()
        inside += bool(low[0] <= 1 <= high[0])
    assert inside >= 52  # 95 % of 60 are 57; independent days would hold 30


def payments(alpha: float, a_day: float, rng: np.random.Generator) -> np.ndarray:
    """Return the money of 28 days whose payments are drawn from a Pareto distribution of at least one dollar."""
    return np.array([(rng.pareto(alpha, number) + 1).sum() for number in rng.poisson(a_day, 28)])


@pytest.mark.wide
def test_a_few_large_payments_raise_the_upper_bound() -> None:
    """Two Pareto payments a day (1.6), whose mean few samples reach: 92 % of 100 intervals hold it, most are rough."""
    rng = np.random.default_rng(11)
    found = [over_days(payments(1.6, 2.0, rng), np.ones(28), np.arange(20_000, 20_028)) for _ in range(100)]
    held = [low <= 2.0 * 1.6 / 0.6 <= high for low, high in (each.bounds() for each in found)]
    assert np.mean(held) >= 0.92
    assert np.mean([each.excess[0] > 0 for each in found]) > 0.6


def test_days_that_differ_as_days_do_are_not_rough() -> None:
    """Neither a weekday pattern nor growing traffic makes one day stand out of its part."""
    days = np.arange(20_000, 20_028)
    players = np.linspace(100, 1_000, 28) * np.where(days % 7 < 2, 1.5, 1.0)
    found = over_days(players * np.random.default_rng(2).normal(1, 0.2, 28), players, days)
    assert found.excess[0] == 0
    assert found.bounds()[1][0] == pytest.approx(found.value[0] * np.exp(found.half_width()[0]))


def test_a_part_of_the_week_is_named_with_the_interval_of_its_p_value() -> None:
    """Of changes of all days, of weekends and of nothing the interval excludes 1 exactly where p is below 5 %."""
    days = 20000 + np.arange(56)
    later, is_weekend = days >= 20028, np.isin(days % 7, [2, 3])
    rng = np.random.default_rng(6)
    lifts = np.array([[1.05, 1.0], [1.0, 1.15], [1.0, 1.0]])[np.arange(240) % 3]
    rates = np.where(later, lifts[:, :1] * np.where(is_weekend, lifts[:, 1:], 1.0), 1.0)
    numerator = 1000 * rates * np.exp(rng.normal(0, 0.1, rates.shape))
    found = over_parts_of_week(numerator, np.full(rates.shape, 1000.0), days, later=later)
    low, high = found.bounds()
    excludes = (low > 1) | (high < 1)
    assert {"all days", "weekends"} <= {part for part, clear in zip(found.part, excludes, strict=True) if clear}
    assert ((found.p_value < 0.05) == excludes).all()
