"""Names are made safe, numbers readable."""

from __future__ import annotations

import pandas as pd
import pytest

from gamelens.notebook import say
from gamelens.notebook.labels import escape, shorten, tick_format, unit_of


@pytest.mark.parametrize("mark", list("<>&\"'`*_[]|\\$~#{}"))
def test_nothing_that_is_markup_survives(mark) -> None:
    """architecture, Decisions: one HTML-escaping function."""
    assert escape(f"a{mark}b") == f"a&#{ord(mark)};b"


def test_plain_names_stay_as_they_are() -> None:
    assert escape("Tile Saga 2 (DE) – Ünïcode, 3.5%") == "Tile Saga 2 (DE) – Ünïcode, 3.5%"


def test_addresses_do_not_become_links() -> None:
    assert escape("https://evil.example") == "https&#58;//evil.example"


def test_a_name_stays_on_its_line() -> None:
    assert escape("a\n\n# b\x00c") == "a &#35; b c"


def test_axes_of_thousands_are_short() -> None:
    assert tick_format("money", 25_000) == "$~s"


def test_units_come_from_the_catalog() -> None:
    assert unit_of("sum", ["revenue"]).words == "USD"
    assert unit_of("ilrd_revenue_sum", ["revenue", "ilrd_revenue"]).kind == "money"
    assert unit_of("conversion", ["conversion"]).kind == "share"


def test_long_names_lose_their_middle() -> None:
    short = shorten("com.google.ads.mediation.applovin.AppLovinMediationAdapter")
    assert short == "com.googl…n.AppLovinMediationAdapter"
    assert len(short) == 36


def test_a_sentence_escapes_names() -> None:
    assert say("{game} grew", game="<b>*x*</b>").data == "&#60;b&#62;&#42;x&#42;&#60;/b&#62; grew"


def test_a_sentence_says_unknown_for_null() -> None:
    assert say("{network}", network=float("nan")).data == say("{network}", network=None).data == "(unknown)"


def test_two_amounts_in_a_sentence_are_no_formula() -> None:
    """MathJax reads what stands between two dollar signs."""
    assert "$" not in say("{a:money} and {b:money}", a=1, b=2).data


def test_a_sentence_writes_numbers_as_people_read_them() -> None:
    told = say("{a:share} {b:count} {c:change} {d:day}", a=0.5, b=1200, c=-0.1, d=pd.Timestamp("2026-11-01"))
    assert told.data == "50.0% 1,200 -10.0% 1 Nov 2026"
