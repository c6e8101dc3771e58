"""Labels and sentences: escaped names, short numbers, units."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest
from pandas import DataFrame

from gamelens.analysis.claims import KeyNumber
from gamelens.analysis.tidy_frames.columns import column_named
from gamelens.notebook import conclusions, key_numbers
from gamelens.notebook.escaping import escape
from gamelens.notebook.labels import bucket_heading, row_label, shorten
from gamelens.receipt_text import period_text
from gamelens.wire.intervals import Interval


@pytest.mark.parametrize("mark", list("<>&\"'`*_[]|\\$~#{}"))
def test_nothing_that_is_markup_survives(mark: str) -> None:
    """Every character that HTML, Markdown, TeX or plotly reads as markup is escaped."""
    assert escape(f"a{mark}b") == f"a&#{ord(mark)};b"


def test_plain_names_stay_as_they_are() -> None:
    """Letters, digits, spaces and common punctuation are not escaped."""
    assert escape("Tile Saga 2 (DE) – Ünïcode, 3.5%") == "Tile Saga 2 (DE) – Ünïcode, 3.5%"


def test_addresses_do_not_become_links() -> None:
    """The colon of a URL is escaped, so that no renderer makes a link of it."""
    assert escape("https://evil.example") == "https&#58;//evil.example"


def test_a_name_stays_on_its_line() -> None:
    """Line ends and control characters of a name become spaces."""
    assert escape("a\n\n# b\x00c") == "a &#35; b c"


def test_units_come_from_the_catalog() -> None:
    """The unit of a column comes from the catalog, also for prefixed columns."""
    assert column_named("revenue", ["revenue"]).unit == "USD"
    assert column_named("ilrd_revenue", ["revenue", "ilrd_revenue"]).kind == "money"
    assert column_named("conversion", ["conversion"]).kind == "share"


def test_long_names_lose_their_middle() -> None:
    """A long name is shortened in its middle to 36 characters."""
    short = shorten("com.google.ads.mediation.applovin.AppLovinMediationAdapter")
    assert short == "com.googl…n.AppLovinMediationAdapter"
    assert len(short) == 36


def test_a_sentence_escapes_names() -> None:
    """HTML, Markdown and dollar signs, between which MathJax would read a formula, are escaped in a sentence."""
    said = conclusions("<b>*x*</b> grew from $1 to $2").data
    assert said.startswith("- &#60;b&#62;&#42;x&#42;&#60;/b&#62; grew")
    assert "$" not in said


def test_key_numbers_are_a_table_below_the_period() -> None:
    """Value, interval and change of each number are cells, and names and amounts are escaped."""
    counted = KeyNumber.compared("Ad revenue", 125.0, 100.0, "money")
    rate = KeyNumber("D1 of <b>", 0.4, "share", low=0.385, high=0.415)
    lines = str(key_numbers(DataFrame(), [counted, rate]).data).strip().splitlines()
    assert lines[0] == "| Number | Value | 95% interval | Change |"
    assert lines[2] == "| Ad revenue | <span>&#36;</span>125.00 |  | +25.0% vs before |"
    assert lines[3] == "| D1 of &#60;b&#62; | 40.0% | 38.5% to 41.5% |  |"


def test_an_interval_needs_both_bounds() -> None:
    """One bound alone would read as a number."""
    text = str(key_numbers(DataFrame(), [KeyNumber("D1", 0.4, "share", low=0.385)]).data)
    assert "38.5" not in text
    assert "95% interval" not in text


def test_a_period_has_both_of_its_days() -> None:
    """An interval ends before its end, and so does the period that is named."""
    assert period_text(Interval.parse("2026-10-25/2026-11-22")) == "25 Oct 2026 to 21 Nov 2026, 28 days"
    assert period_text(Interval.parse("2026-10-25/2026-10-26")) == "25 Oct 2026"


@pytest.mark.parametrize(
    ("value", "before", "kind", "is_known"),
    [
        (3.0, 5e-17, "money", False),
        (3.0, 0.004, "money", False),
        (3.0, 0.01, "money", True),
        (900, 9, "count", False),
        (900, 10, "count", True),
    ],
)
def test_a_change_from_nearly_nothing_is_unknown(value: float, before: float, kind: Any, is_known: bool) -> None:
    """From less than half a cent, and from fewer than ten."""
    assert pd.notna(KeyNumber.compared("Number", value, before, kind).change) == is_known


def test_a_column_that_no_number_fills_is_left_out() -> None:
    """Counted numbers that are compared with nothing have a value alone, and a change from 0 is unknown."""
    text = str(key_numbers(DataFrame(), [KeyNumber.compared("Alarms", 3, 0, "count")]).data)
    assert text.strip().splitlines()[0] == "| Number | Value |"


@pytest.mark.parametrize(
    ("every", "heading"), [("day", "Day"), ("week", "Week of"), ("month", "Month"), ("all", "Period from")]
)
def test_the_heading_of_timestamps_is_that_of_their_bucket(every: str, heading: str) -> None:
    """A month is not printed under "Day"."""
    assert bucket_heading(every) == heading


def test_a_long_name_beside_a_row_has_two_lines() -> None:
    """No part of a measure's name is cut where two lines hold it."""
    name = "D7 retention, starter_price: half_price for new players"
    assert row_label(name).replace("<br>", " ") == escape(name)
    assert row_label(name).count("<br>") == 1
    assert row_label("<b>") == escape("<b>")
