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


def test_a_first_screen_has_three_sentences_with_links_and_folds_the_others() -> None:
    """What is clear comes first, what could be chance among so many never, and a line counts the others."""
    clear = [said_by(f"{name} pays more.", 0.0001) for name in ("A", "B")]
    usual = [said_by(f"{name} pays as before.", 0.5, "no clear difference") for name in ("C", "D")]
    page = conclusions({"Prices of all": [*usual, *clear], "More": said_by("E pays more.", 0.049)}).data
    shown, folded = page.split("<details>")
    assert shown.splitlines()[:3] == [
        "- A pays more. [Prices of all](#Prices-of-all)",
        "- B pays more. [Prices of all](#Prices-of-all)",
        "- C pays as before. [Prices of all](#Prices-of-all)",
    ]
    assert "<summary>2 more sentences, 1 on what is usual or unclear</summary>" in folded
    assert folded.index("- D pays as before.") < folded.index("Less certain") < folded.index("- E pays more.")


def test_a_long_sentence_of_a_first_screen_ends_with_its_first_clauses() -> None:
    """Of those that fit into 25 words; a sentence without such a clause folds."""
    long = f"Revenue rose from $1 to $2: {'more ' * 25}players. It was a good week."
    endless = f"{'More ' * 30}players."
    assert conclusions({"Money": [long, endless]}).data.splitlines()[0] == (
        "- Revenue rose from <span>&#36;</span>1 to <span>&#36;</span>2. [Money](#Money)"
    )
    assert conclusions({"Money": [endless]}).data.splitlines()[-3] == f"- {endless}"


def test_a_clause_within_brackets_closes_them() -> None:
    """A sentence that is cut within brackets ends in theirs, and a bracket of a name stays as it is."""
    text = f"Sessions fell since Friday (10 instead of about 20; {'very ' * 20}usual days)."
    assert conclusions({"": [text]}).data.splitlines()[0] == "- Sessions fell since Friday (10 instead of about 20)."
    longer = f"Sessions fell {'very ' * 12}much (10 instead {'of ' * 15}20)."
    assert conclusions({"": [longer]}).data.splitlines()[0] == f"- Sessions fell {'very ' * 12}much."
    named = f"Tile (2 fell since Friday; {'very ' * 25}much."
    assert conclusions({"": [named]}).data.splitlines()[0] == "- Tile (2 fell since Friday."


def test_an_entity_ends_no_clause() -> None:
    """A name with the signs of an HTML tag is written with entities, which end in semicolons."""
    text = f"The price of <b> x> fell {'very ' * 25}much."
    assert conclusions({"": [text]}).data.count("&#62;") == 2


def test_where_nothing_is_clear_a_section_has_one_sentence() -> None:
    usual = [said_by(f"{name} pays as before.", 0.5, "no clear difference") for name in ("A", "B", "C")]
    shown = conclusions({"Price": usual[:2], "Clicks": usual[2]}).data.partition("<details>")[0]
    assert shown.split("\n")[:3] == ["- A pays as before. [Price](#Price)", "- C pays as before. [Clicks](#Clicks)", ""]


def test_a_section_in_which_nothing_is_clear_comes_before_what_is_unclear_beside_something_clear() -> None:
    """A line on the other comparisons of a section takes no place from the next section."""
    clear = said_by("A pays more.", 0.0001)
    price, ads = (said_by(text, 0.5, "no clear difference") for text in ("The others pay alike.", "As before."))
    page = conclusions({"Price": [clear, price], "Clicks": ["More clicks."], "Ads": ads}).data
    assert page.partition("<details>")[0].splitlines()[:3] == [
        "- A pays more. [Price](#Price)",
        "- More clicks. [Clicks](#Clicks)",
        "- As before. [Ads](#Ads)",
    ]


def test_a_result_without_a_heading_folds() -> None:
    shown, folded = conclusions({"Price": said_by("A pays more.", 0.001)}, "The data are old.").data.split("<details>")
    assert ("data are old" in shown, "data are old" in folded) == (False, True)
