"""Numbers in outside tables: a column is read as a whole, an ambiguous one is refused."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gamelens.analysis.files.number_parsing import WrittenNumbers, decimal_mark, written_numbers
from gamelens.errors import BadQuery


def read(
    *texts: str, decimal: str | None = None, separator: str | None = None, whole: bool = False, beside: str = ""
) -> tuple[WrittenNumbers, list[float], list[str]]:
    """Return the numbers of a column of *texts*, their values, and what was assumed.

    *whole* says that they are whole, and *beside* is a number in another column of the file.
    """
    columns = {"spend": written_numbers(texts)} | ({"beside": written_numbers([beside])} if beside else {})
    marks, problems, notes = decimal_mark(columns, {"spend": whole, "beside": False}, separator, decimal)
    if "spend" in problems:
        raise problems["spend"]
    return columns["spend"], columns["spend"].values(marks["spend"]).tolist(), notes


def values(*texts: str, decimal: str | None = None, separator: str | None = None, **how: object) -> list[float]:
    """Return the numbers of a column, and fail if one of them is none."""
    numbers, found, _ = read(*texts, decimal=decimal, separator=separator, **how)  # type: ignore[arg-type]
    assert numbers.other is None
    return found


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["$1,234.50"], [1234.5]),
        (["1.234,50 €"], [1234.5]),
        (["(12.00)"], [-12.0]),
        (["($12.00)"], [-12.0]),
        (["12%"], [0.12]),
        (["12,5 %"], [0.125]),
        (["-$5", "$-5", "- $5", "5.00-"], [-5.0, -5.0, -5.0, -5.0]),
        (["−5.5"], [-5.5]),
        (["EUR 5", "5 EUR", "5 €"], [5.0, 5.0, 5.0]),
        (["$5 USD"], [5.0]),
        (["A$1,234.50"], [1234.5]),
        (["1 234,50", "1\u202f234,50", "1\u00a0234,50"], [1234.5] * 3),
        (["1'234.50"], [1234.5]),
        (["1,23,456.50"], [123456.5]),
        (["1,234,567", "1,234"], [1234567, 1234]),
        (["1,5", "1,234"], [1.5, 1.234]),
        (["0,123", "1,234"], [0.123, 1.234]),
        (["1.5", "1.234"], [1.5, 1.234]),
        (["1.5e-3", "2"], [0.0015, 2.0]),
        ([" 7 ", "8"], [7, 8]),
        ([".5", "1.25"], [0.5, 1.25]),
    ],
)
def test_a_column_is_read(texts: list[str], expected: list[float]) -> None:
    """Each notation of amounts, percentages and separators is read to its value."""
    assert values(*texts) == expected


@pytest.mark.parametrize("text", ["--", " - ", "N/A", "n/a", "null", "None", "(not set)", "—", " ", "k. A."])
def test_texts_for_no_value_are_missing(text: str) -> None:
    """As reports write them where there is nothing."""
    numbers, found, _ = read("$5", text)
    assert (numbers.is_empty.tolist(), np.isnan(found).tolist()) == ([False, True], [False, True])


@pytest.mark.parametrize("text", ["1,234", "$1,234", "1.234", "1.234 €", "12,345"])
def test_three_digits_behind_the_only_mark_are_refused(text: str) -> None:
    """Three digits after the only mark may be thousands or decimals, so they are refused."""
    with pytest.raises(BadQuery, match="pass decimal="):
        read(text)


def test_the_message_names_both_readings() -> None:
    """The message of an ambiguous number shows both values and the option for each."""
    with pytest.raises(BadQuery, match=re.escape("is 1234 (decimal='.') or 1.234 (decimal=',')")):
        read("1,234")


@pytest.mark.parametrize(("decimal", "value"), [(".", 1234.0), (",", 1.234)])
def test_decimal_settles_an_ambiguous_number(decimal: str, value: float) -> None:
    """With `decimal` 1,234 is read as 1234 or as 1.234 instead of being refused."""
    assert values("1,234", decimal=decimal) == [value]


def test_the_mark_belongs_to_the_file() -> None:
    """Another column that fits one mark decides, and so does a column of whole numbers."""
    assert values("1,234", beside="0.57%") == [1234]
    assert values("1,234", beside="0,57%") == [1.234]
    assert values("1,234", whole=True) == [1234]
    assert values("1.234", whole=True) == [1234]


def test_a_number_that_contradicts_decimal_is_refused() -> None:
    """A number that cannot be written with the stated decimal mark is refused."""
    with pytest.raises(BadQuery, match=r"is not a number with decimal=','"):
        read("1,234.50", decimal=",")


def test_thousands_are_grouped_where_smaller_numbers_have_no_mark() -> None:
    """A mark that only numbers above 999 have separates thousands, and a note says so."""
    _, found, notes = read("1,234", "987", "12,500")
    assert found == [1234, 987, 12500]
    assert "1,234 is read as 1234" in notes[0]


@pytest.mark.parametrize("texts", [("1,234", "1234"), ("1,234", "0"), ("1,234", "1.234")])
def test_no_evidence_is_refused(texts: tuple[str, str]) -> None:
    """Values that decide nothing about the mark leave the column ambiguous."""
    with pytest.raises(BadQuery, match="decimal="):
        read(*texts)


def test_semicolons_speak_for_decimal_commas() -> None:
    """In a file with semicolons a comma may be decimal, so the column is refused."""
    with pytest.raises(BadQuery, match="decimal="):
        read("1,234", "987", separator=";")


def test_a_point_in_a_file_of_commas_is_decimal() -> None:
    """In a file separated by commas a point is decimal, and a note says so."""
    _, found, notes = read("1.234", "2.345", separator=",")
    assert found == [1.234, 2.345]
    assert "1.234 is read as 1.234" in notes[0]


def test_two_ways_to_write_numbers_are_refused() -> None:
    """Numbers with different decimal marks in one column are refused."""
    with pytest.raises(BadQuery, match="do not agree on the decimal mark"):
        read("1,234.50", "1.234,50")


def test_a_number_keeps_its_unit() -> None:
    """Codes and symbols stand beside each number, whatever they mean."""
    assert read("$5", "7 €", "9", "US$8", "kr 3", "$5 USD")[0].units.tolist() == ["$", "€", "", "US$", "kr", "$ USD"]


@pytest.mark.parametrize("text", ["a", "TOP 10", "ABC 5", "1-2", "< 10%", "200+", "1.2.3", "5 € $", "$5%"])
def test_other_texts_are_no_numbers(text: str) -> None:
    """Words, ranges, versions, and numbers with two symbols or a symbol and a percentage."""
    assert written_numbers(["1.5", text]).other == text


@pytest.mark.parametrize("texts", [("007", "12"), ("12345678901234567891",)])
def test_names_of_digits_are_told(texts: tuple[str, ...]) -> None:
    """Leading zeros, and too many digits for a number."""
    assert written_numbers(texts).are_names
    assert not written_numbers(["0.5", "0", "1000000000000000000000"]).are_names


def test_decimal_places_are_counted() -> None:
    """Those of a percentage as of a share."""
    assert [written_numbers(texts).places(".") for texts in (["1", "2.25"], ["0.5%"], ["7"])] == [2, 3, 0]


def test_nothing_is_no_number() -> None:
    """A column without values has none."""
    assert written_numbers([]).other is None


FLOATS = st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=20)


@settings(deadline=None)
@given(FLOATS)
def test_what_python_writes_is_read_to_the_last_bit(numbers: list[float]) -> None:
    """The repr of any finite float is read back exactly."""
    assert values(*map(repr, numbers), decimal=".") == numbers


CENTS = st.lists(st.integers(-(10**12), 10**12), min_size=1, max_size=20)


@settings(deadline=None)
@given(CENTS, st.sampled_from([(",", "."), (".", ","), (" ", ","), ("'", "."), ("", "."), ("", ",")]), st.booleans())
def test_money_survives_any_notation(cents: list[int], marks: tuple[str, str], is_money: bool) -> None:
    """Amounts are read back from every combination of marks, with or without a sign."""
    group, point = marks

    def written(value: int) -> str:
        """Return *value*, in cents, in the notation under test."""
        whole = f"{abs(value) // 100:,}".replace(",", group)
        return f"{'-' if value < 0 else ''}{'$' if is_money else ''}{whole}{point}{abs(value) % 100:02}"

    assert values(*map(written, cents)) == [value / 100 for value in cents]


WHOLES = st.lists(st.integers(0, 10**9), min_size=1, max_size=10)


@settings(deadline=None)
@given(WHOLES, st.sampled_from(",.' "))
def test_grouped_numbers_are_right_or_refused(wholes: list[int], group: str) -> None:
    """Grouped numbers are read right or refused, never silently wrong by a thousand."""
    texts = [f"{value:,}".replace(",", group) for value in wholes]
    try:
        found = values(*texts)
    except BadQuery:
        assert values(*texts, decimal="," if group == "." else ".") == wholes  # as the message says
    else:
        assert found == wholes


@settings(deadline=None)
@given(st.lists(st.text(alphabet="0123456789.,-+()% $€eE'A", max_size=12), min_size=1, max_size=6, unique=True))
def test_any_text_is_read_or_refused(texts: list[str]) -> None:
    """Any text is a number, no value or another text, and no row is lost."""
    numbers = written_numbers(texts)
    assert len(numbers.values(".")) == len(texts)
    assert not (numbers.is_number & numbers.is_empty).any()
