"""Conclusions of a page: sentences of several results in one list."""

from __future__ import annotations

from pandas import DataFrame

from gamelens.analysis.claims import KeyNumber
from gamelens.notebook import conclusions, key_numbers


def said_by(text: str, p_value: float, direction: str = "higher") -> DataFrame:
    """Return one claim, as `lens.claims()` has it."""
    row = {"kind": "price", "direction": direction, "p_value": p_value, "how_judged": "by days", "text": text}
    return DataFrame([row])


def test_what_could_be_chance_among_so_many_comes_last_and_says_so() -> None:
    nothing = said_by("Nothing moved.", 0.5, "no clear difference")
    page = conclusions(said_by("Unity pays more.", 0.04), said_by("AdMob pays more.", 0.001), nothing, nothing).data
    assert page.splitlines() == [
        "- AdMob pays more.",
        "- Nothing moved.",
        "",
        "Less certain: among so many comparisons on one page, these could be chance.",
        "",
        "- Unity pays more.",
    ]


def test_a_page_without_doubts_is_one_list() -> None:
    assert conclusions(said_by("Unity pays more.", 0.04), "A star.").data == "- Unity pays more.\n- A star."


def test_key_numbers_with_intervals_share_their_places() -> None:
    """Retention of two ages is written alike, and a name begins with a capital unless it is eCPM's."""
    numbers = [KeyNumber("d1 retention", 0.377, "share", 0.346, 0.41), KeyNumber("eCPM", 5.19, "money")]
    numbers.append(KeyNumber("d7 retention", 0.084, "share", 0.054, 0.127))
    text = key_numbers(DataFrame(), numbers).data
    assert "| 8.4% | 5.4% to 12.7% |" in text
    assert ("| D1 retention |" in text, "| eCPM |" in text) == (True, True)
