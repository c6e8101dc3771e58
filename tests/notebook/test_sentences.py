"""Conclusions of a page: sentences of several results in one list."""

from __future__ import annotations

from pandas import DataFrame

from gamelens.notebook import conclusions


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
