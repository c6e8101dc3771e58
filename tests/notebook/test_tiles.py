"""Tiles of key numbers: what each shows, how many stand side by side, and the course of a number as a picture."""

from __future__ import annotations

import math
import re

import msgspec
from pandas import DataFrame

from gamelens.analysis.claims import KeyNumber
from gamelens.notebook import key_numbers
from gamelens.notebook.sparklines import sparkline

MONEY = KeyNumber.compared("Ad revenue", 125.0, 100.0, "money")


def tiles_of(*numbers: KeyNumber) -> str:
    """Return the tiles of *numbers* without their style sheet."""
    return re.sub("<style>.*?</style>", "", key_numbers(DataFrame(), numbers).html(), flags=re.DOTALL)


def test_a_tile_has_what_the_table_has() -> None:
    """Name, value, interval, change, what it is from and target, each escaped."""
    compared = KeyNumber("D1 of <b>", 0.4, "share", 0.385, 0.415, change=0.05, change_low=-0.01, change_high=0.11)
    rate = msgspec.structs.replace(compared, against="<i>", target=0.45)
    shown, change = tiles_of(rate), "+5% (-1% to +11%) vs &#60;i&#62;"
    for text in ("D1 of &#60;b&#62;", "40.0%", "likely 38.5% to 41.5%", change, "Target 45.0%"):
        assert text in shown
    row = f"| D1 of &#60;b&#62; | 40.0% | 38.5% to 41.5% | {change} | 45.0% |"
    assert row in key_numbers(DataFrame(), [rate]).data


def test_only_a_clear_change_has_a_colour() -> None:
    """One whose interval excludes no change; a counted change was not judged."""

    def kind_of(change: float, low: float, high: float) -> str:
        number = KeyNumber("DAU", 10, "count", change=change, change_low=low, change_high=high)
        return str(re.findall('<dd class="(up|down|usual)">', tiles_of(number))[0])

    assert [kind_of(0.1, 0.02, 0.2), kind_of(-0.1, -0.2, -0.02), kind_of(0.1, -0.02, 0.2)] == ["up", "down", "usual"]
    one_of_ten = KeyNumber("ARPU", 1, "money", change=0.4, change_low=0.04, change_high=1.0, p_adjusted=0.25)
    assert '<dd class="usual">' in tiles_of(one_of_ten)
    assert '<dd class="usual">+25.0% vs before</dd>' in tiles_of(MONEY)


def test_tiles_after_the_fifth_fold() -> None:
    six = tiles_of(*[MONEY] * 6)
    shown, folded = six.split("<details>")
    assert (shown.count("<dt>"), folded.count("<dt>")) == (5, 1)
    assert "1 more number<" in folded
    assert "--across:5" in shown
    assert "<details>" not in tiles_of(*[MONEY] * 5)
    assert "--across:4" in tiles_of(MONEY, MONEY)  # a tile is a quarter of the page at most


def test_the_course_of_a_number_has_a_text_alternative() -> None:
    """Its buckets, its first and last value and its extremes, in the unit of the number."""
    number = KeyNumber("Revenue", 30.0, "money").over_time([10.0, None, 5.0, 40.0, 30.0], every="week")
    assert math.isnan(number.history[1])
    assert (
        'aria-label="Revenue, 5 weeks: from &#36;10.00 to &#36;30.00, lowest &#36;5.00, highest &#36;40.00"'
        in tiles_of(number)
    )


def test_fewer_than_three_values_have_no_course() -> None:
    assert sparkline([1.0, math.nan, 2.0], "") == ""
    assert "<svg" not in tiles_of(KeyNumber("DAU", 2, "count").over_time([1.0, 2.0]))


def test_a_sparkline_is_interrupted_where_a_value_is_missing() -> None:
    """The lowest value is at the bottom, the highest on top, and the last known one has a point."""
    (path,) = re.findall(r'd="([^"]+)"', sparkline([0.0, 1.0, math.nan, 1.0, 0.0, math.nan], "course"))
    assert path == "M3.0,23.0L26.6,3.0M73.8,3.0L97.4,23.0"
    assert 'cx="97.4" cy="23.0"' in sparkline([0.0, 1.0, math.nan, 1.0, 0.0, math.nan], "course")


def test_a_constant_is_a_line_in_the_middle() -> None:
    assert 'd="M3.0,13.0L62.0,13.0L121.0,13.0"' in sparkline([7.0, 7.0, 7.0], "course")


def test_no_numbers_are_no_tiles() -> None:
    assert "<dl" not in tiles_of()
    assert key_numbers(DataFrame(), []).data.strip() == ""
