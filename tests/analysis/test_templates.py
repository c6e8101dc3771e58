"""Claims as rows and sentences: templates, numbers, names from outside, words of one's own, and what is refused."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from gamelens.analysis import claims, decomposition
from gamelens.analysis.claims import templates
from gamelens.analysis.claims.findings import Clause, Finding, findings_of
from gamelens.analysis.claims.templates import fields_of, parsed, sentences_of, spoken, words
from gamelens.errors import BadQuery
from support.tidy_frames import tidy_frame

NETWORK = "ilrd_network_name"
_PARTS = {"part": "{name} of {days}", "amount": "{money:amount}", "share": "{share:share}"}


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a function that puts one finding with these numbers into a template."""

    def say(template: str, **numbers: Any) -> str:
        own = {name: numbers.pop(name) for name in ("size", "low", "high", "unit") if name in numbers}
        kinds: templates.Words = {"kind": {"case": template, **_PARTS}, "common": {}, "plurals": {}}
        monkeypatch.setattr(templates, "words", lambda: kinds)
        return sentences_of([Finding(kind="kind", case="case", numbers=numbers, **own)])[0]

    return say


@pytest.mark.parametrize(
    ("template", "numbers", "text"),
    [
        ("{size:share}", {"size": 0.123}, "12.3%"),
        ("{size:share_interval}", {"size": 0.344, "low": 0.334, "high": 0.353}, "34.4% (33.4% to 35.3%)"),
        ("{size:points_range}", {"size": 0.004, "low": -0.018, "high": 0.026}, "-1.8 to +2.6 pp"),
        ("{size:points_range}", {"size": -0.1, "low": -0.22, "high": -0.002}, "-22 to -0.2 pp"),
        ("{size:more}", {"size": 1.21}, "21% more"),
        ("{size:more} ({size:more_range})", {"size": 0.6, "low": 0.5, "high": 0.7}, "40% less (30% to 50%)"),
        ("{size:ratio_range}", {"size": 1.04, "low": 0.93, "high": 1.15}, "-7% to +15%"),
        ("{size:value}", {"size": 1234.5, "unit": "USD"}, "$1,234"),
        ("{size:value}", {"size": 0.00456, "unit": "USD"}, "$0.0046"),
        ("{size:difference}", {"size": -1.5, "unit": "USD"}, "-$1.50"),
        ("{size:value}", {"size": 0.25, "unit": "share"}, "25.0%"),
        ("{size:number_interval}", {"size": 3.21, "low": 3.0, "high": math.inf}, "3.21 (3.00 to unbounded)"),
        ("{days|day|days}", {"days": 1}, "1 day"),
        ("{days|day|days}", {"days": 1_200}, "1,200 days"),
        ("{others:count} {by:many_others}", {"others": 1, "by": "network"}, "1 network"),
        ("{others:count} {by:many_others}", {"others": 2, "by": "network"}, "2 networks"),
        ("{when:day}", {"when": pd.Timestamp("2026-11-02", tz="UTC")}, "2 Nov 2026"),
        ("p {p:p}", {"p": 0.0000001}, "p less than 0.001"),
        ("{name:start} is {name}", {"name": "conversion"}, "Conversion is conversion"),
        ("So[, since {since:day}].", {"since": None}, "So."),
        ("So[, since {since:day}].", {"since": pd.Timestamp("2026-11-02", tz="UTC")}, "So, since 2 Nov 2026."),
        ("{names}", {"names": ["A", "B", "C"]}, "A, B and C"),
        ("{names}", {"names": [*"ABCDEF"]}, "A, B, C and 3 others"),
        ("{size}", {"size": math.nan}, "n/a"),
    ],
)
def test_a_template_is_filled(said: Any, template: str, numbers: dict[str, Any], text: str) -> None:
    """Numbers get the decimal places that their interval or size needs, units and words their form."""
    assert said(template, **numbers) == text


def test_clauses_are_templates_too(said: Any) -> None:
    """A list of clauses is joined like names, each in its own template, which may name the fields of the finding."""
    parts = [Clause("part", {"name": name}) for name in ("volume", "price")]
    assert said("It was {parts}.", parts=parts, days=3) == "It was volume of 3.00 and price of 3.00."


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        ((60.0, 40.0), "It rose: $60.00 and $40.00."),
        ((60.0, -0.004), "It rose: $60.00."),
        ((4e-17, -0.004), "It rose."),
        ((6000.0, 4000.0, 0.3), "It rose: $6,000 and $4,000."),
        ((math.nan, 40.0), "It rose: n/a and $40.00."),
    ],
)
def test_a_part_of_nothing_is_left_out(said: Any, parts: tuple[float, ...], text: str) -> None:
    """Money below half a cent, and what its decimal places would show as 0; without any part what introduces them."""
    clauses = [Clause("amount", {"money": money}, part="money") for money in parts]
    assert said("It rose[: {parts}].", parts=clauses, money=max(parts)) == text


def test_a_share_that_is_shown_as_0_is_no_part(said: Any) -> None:
    """A cause of a hundredth of a thousandth beside one of nearly all."""
    clauses = [Clause("share", {"share": share}, part="share") for share in (0.9999, 0.0001)]
    assert said("Causes: {parts}.", parts=clauses, share=0.9999) == "Causes: 100.0%."


@pytest.mark.parametrize("name", ["{size}", "[, since {since}]", "{", "a]b", "\\1 {0}"])
def test_a_name_from_outside_is_no_template(said: Any, name: str) -> None:
    """A name in the form of a template stays as it is."""
    assert said("{name} rose.", name=name) == f"{name} rose."


def test_a_long_name_is_shortened_and_escaped() -> None:
    """Only names are escaped, after they were cut."""
    finding = Finding(kind="price", case="unknown", numbers={"name": "*" * 100})
    (text,) = sentences_of([finding], escape=lambda name: name.replace("*", "x"))
    assert re.match(r"x{59}… has too few days", text)


def test_numbers_of_one_field_share_their_decimal_places() -> None:
    """The usual interval decides, for all rows of one unit."""
    rows = [
        Finding(
            kind="price",
            case="lower",
            size=0.6,
            low=0.6 - half,
            high=0.6 + half,
            unit="ratio",
            numbers={"name": name, "effect": -1.0},
        )
        for name, half in (("A", 0.2), ("B", 0.002), ("C", 0.3))
    ]
    assert [text.split(" for ")[0] for text in sentences_of(rows)] == [f"{name} pays 40% less" for name in "ABC"]


def test_of_many_claims_the_clear_ones_are_said() -> None:
    """A line counts the others; of few all are said; without a clear one a sentence says so."""

    def price(name: str, direction: Any) -> Finding:
        case = direction.replace(" ", "_")
        numbers = {"name": name, "effect": -1.0}
        return Finding(kind="price", case=case, direction=direction, size=0.6, unit="ratio", numbers=numbers)

    same = [price(name, "no clear difference") for name in "BCDE"]
    assert spoken([price("A", "lower"), *same]) == [
        "A pays 40% less for the same impressions (n/a to n/a), -$1.00 of the change.",
        "4 other prices show no change beyond day-to-day variation, like for like.",
    ]
    assert spoken(same) == ["No price shows a change beyond day-to-day variation, like for like."]
    assert spoken([price(name, "unknown") for name in "BCDE"]) == [words()["price"]["none_known"]]
    assert len(spoken(same[:2])) == 2


@pytest.mark.parametrize("template", ["{size", "size}", "[a", "a]", "{size:}", "[[a]", "{a b}", "{a|b}"])
def test_a_template_without_its_partners_is_refused(template: str) -> None:
    """A brace or bracket an unmatched brace raises `BadQuery`."""
    with pytest.raises(BadQuery, match="an unmatched brace"):
        parsed(template)


def templates_of_ours() -> Iterator[tuple[str, str, str]]:
    """Yield kind, case and text of each template of `words.toml`."""
    for kind, table in words().items():
        yield from ((kind, case, text) for case, text in table.items() if not case.startswith("step_of_"))


@pytest.mark.parametrize(("kind", "case", "text"), [*templates_of_ours()])
def test_a_template_of_ours_is_plain(kind: str, case: str, text: str) -> None:
    """It can be parsed, has no number that is not a field, and says each field in a known form."""
    between = re.sub(r"\{[^}]*\}", "", text)
    assert not re.search(r"\d(?![a-z])", between.replace("95 %", "")), (kind, case)
    assert [field.name for field in fields_of(parsed(text))] == re.findall(r"\{(\w+)", text)


@pytest.fixture
def own_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Return a function that makes *text* the file of words of one's own."""

    def lay(text: str) -> None:
        path = tmp_path / "words.toml"
        path.write_text(text)
        monkeypatch.setenv(templates.WORDS_FILE, str(path))
        words.cache_clear()

    yield lay
    words.cache_clear()


def test_words_of_ones_own_are_laid_over_ours(own_words: Any) -> None:
    """A case in another language is used, all others stay."""
    own_words('[price]\nunknown = "{name}: zu wenige Tage."')
    rows = [Finding(kind="price", case=case, numbers={"name": "A"}) for case in ("unknown", "none")]
    assert sentences_of(rows)[0] == "A: zu wenige Tage."
    assert sentences_of(rows)[1].startswith("No price")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[prices]\nlower = 'x'", "is not a kind of claim"),
        ("price = 3", "must be a table"),
        ("[price]\nfell = 'x'", "not a case of price"),
        ("[price]\nlower = 3", "must be text"),
        ("[price]\nlower = '{nam}'", "not a field of price, lower"),
        ("[price]\nlower = '{name:big}'", "unknown form, big"),
        ("[price]\nlower = '{name'", "an unmatched brace"),
        ("[price", "cannot be read as TOML"),
    ],
)
def test_words_that_name_what_ours_do_not_are_refused(own_words: Any, text: str, message: str) -> None:
    """Kind, case, field, form and file are judged when they are read."""
    own_words(text)
    with pytest.raises(BadQuery, match=re.escape(message)):
        words()


def test_a_missing_file_of_words_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The message names the variable and the path."""
    monkeypatch.setenv(templates.WORDS_FILE, str(tmp_path / "none.toml"))
    words.cache_clear()
    with pytest.raises(BadQuery, match=r"GAMELENS_WORDS.*none\.toml"):
        words()
    monkeypatch.undo()
    words.cache_clear()


def revenue_of(money: float, day: str) -> pd.DataFrame:
    """Return ad revenue of two networks on one day."""
    return tidy_frame(
        "ilrd_revenue",
        timestamp=[day] * 2,
        ilrd_network_name=["A", "B"],
        ilrd_revenue_event_count=[100, 100],
        ilrd_revenue=[money, money],
    )


@pytest.fixture
def parts() -> pd.DataFrame:
    """Return the parts of a change from $10 to $15."""
    return decomposition.decompose(revenue_of(5.0, "2026-11-01"), revenue_of(7.5, "2026-11-02"), by=NETWORK)


def test_a_claim_has_the_numbers_of_its_sentence(parts: pd.DataFrame) -> None:
    """The frame has a row for each sentence, with all that the sentence names, and the receipt of the result."""
    frame = claims.of(parts)
    (row,) = frame.to_dict("records")
    assert (row["kind"], row["case"], row["direction"], row["size"]) == ("ad revenue change", "rose", "higher", 0.5)
    assert (row["before"], row["after"], row["price"]) == (10.0, 15.0, 5.0)
    assert row["how_judged"] == words()["judged"]["counted"]
    assert row["text"] == "Ad revenue rose by 50.0%, from $10.00 to $15.00: higher prices brought $5.00."
    assert frame.attrs["gamelens"] == parts.attrs["gamelens"]


def test_what_is_no_whole_result_has_no_claims(parts: pd.DataFrame) -> None:
    """A frame of no analysis, one with rows or columns taken out, and claims themselves are refused."""
    with pytest.raises(BadQuery, match="not the result of an analysis"):
        claims.of(revenue_of(1.0, "2026-11-01"))
    with pytest.raises(BadQuery, match="1 of 2 rows"):
        claims.of(parts[:1])
    with pytest.raises(BadQuery, match=r"price.*are missing from the result of decomposition\.decompose"):
        claims.of(parts.drop(columns="price"))
    with pytest.raises(BadQuery, match="not the result of an analysis"):
        claims.of(claims.of(parts))
    with pytest.raises(BadQuery, match=r"decomposition\.total_change.* is a result without claims"):
        findings_of(decomposition.total_change(parts))
