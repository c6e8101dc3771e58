"""The direction that an interval carries, its p-value, and what the claims of a page support together."""

from __future__ import annotations

import math

import pytest
from msgspec.structs import replace
from pandas import DataFrame

from gamelens.analysis.claims import direction_of
from gamelens.analysis.claims.claims_frame import doubtful
from gamelens.analysis.claims.findings import Finding


@pytest.mark.parametrize(
    ("low", "high", "direction"),
    [
        (0.1, 0.2, "higher"),
        (-0.2, -0.1, "lower"),
        (-0.1, 0.2, "no clear difference"),
        (0.0, 0.2, "no clear difference"),
        (math.nan, 0.2, "unknown"),
        (0.1, math.nan, "unknown"),
    ],
)
def test_the_direction_is_that_of_the_whole_interval(low: float, high: float, direction: str) -> None:
    """A direction is claimed only if both bounds lie on one side of the neutral value."""
    assert direction_of(low, high) == direction


def test_a_ratio_is_neutral_at_one() -> None:
    """An interval of ratios is compared with 1."""
    assert direction_of(1.1, 1.3, neutral=1.0) == "higher"
    assert direction_of(0.9, 1.3, neutral=1.0) == "no clear difference"


def claims(*rows: tuple[str, str, float]) -> DataFrame:
    """Return a frame of claims with kind, direction and p-value."""
    return DataFrame(rows, columns=["kind", "direction", "p_value"])


def test_what_one_result_shows_could_be_chance_beside_nineteen_that_show_nothing() -> None:
    """Of 20 comparisons one has p below 0.05 by chance: alone it is sure, beside the others it needs 0.05 / 20."""
    nothing = [claims(("price", "no clear difference", 0.05 + each / 20)) for each in range(1, 20)]
    for p_value, is_doubtful in ((0.04, True), (0.003, True), (0.002, False)):
        found = claims(("price", "lower", p_value))
        assert doubtful([found]) == [[False]]
        assert doubtful([found, *nothing])[0] == [is_doubtful]


def test_results_that_say_much_leave_room_for_each_other() -> None:
    """With R of m families selected, each claim needs 0.05 R / m; other claims of a selected family need it too."""
    results = [
        claims(("ecpm", "higher", 0.0001), ("ecpm", "lower", 0.03)),
        claims(("fill", "higher", 0.02)),
        claims(("price", "no clear difference", 0.4), ("drift", "no clear difference", 0.6)),
    ]
    assert doubtful(results) == [[False, True], [False], [False, False]]  # 0.05 * 2 / 4


def test_what_is_counted_stays() -> None:
    assert doubtful([claims(("ad revenue", "higher", math.nan)), claims(("price", "lower", 0.9))]) == [[False], [True]]
    assert doubtful([]) == []


@pytest.mark.parametrize(
    ("unit", "size", "low", "high", "p_value"),
    [
        ("share", 0.1, 0.0, 0.2, 0.05),
        ("ratio", 2.0, 1.0, 4.0, 0.05),
        ("change", 1.0, 0.0, 3.0, 0.05),
        ("change", -0.5, -0.75, 0.0, 0.05),
        ("share", 0.2, 0.1, 0.3, 0.0000885),  # twice as far as 1.96 standard errors
        ("share", 0.0, -0.1, 0.1, 1.0),
        ("share", 0.1, 0.1, 0.1, 0.0),
        ("share", 0.1, math.nan, math.nan, math.nan),
    ],
)
def test_the_p_value_is_that_of_the_interval(unit: str, size: float, low: float, high: float, p_value: float) -> None:
    """An interval that ends at no difference has p = 0.05, on the scale of ratios where it is one."""
    finding = Finding(kind="k", case="c", direction="higher", size=size, low=low, high=high, unit=unit, judged="days")
    assert finding.p_value == pytest.approx(p_value, abs=1e-5, nan_ok=True)
    assert math.isnan(replace(finding, judged="counted").p_value)
    assert math.isnan(replace(finding, direction="unknown").p_value)
