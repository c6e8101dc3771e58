"""Numbers in outside tables: a column is read as a whole, an ambiguous one is refused."""

from __future__ import annotations

import re

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gamelens.analysis.files.number_parsing import ParsedNumbers, read_amounts
from gamelens.errors import BadQuery


def read(*texts: str | None, decimal: str | None = None, separator: str | None = None) -> ParsedNumbers | str | None:
    """Read a column of *texts*."""
    return read_amounts(pd.Series(list(texts), dtype="str"), field="spend", decimal=decimal, separator=separator)


def outcome(*texts: str) -> ParsedNumbers | str | BadQuery | None:
    """Return what `read` returns, or the error it raises."""
    try:
        return read(*texts)
    except BadQuery as error:
        return error


def amounts(*texts: str | None, decimal: str | None = None, separator: str | None = None) -> ParsedNumbers:
    """Return the numbers of a column, and fail if it has none."""
    result = read(*texts, decimal=decimal, separator=separator)
    assert isinstance(result, ParsedNumbers), result
    return result


@pytest.mark.parametrize(
    ("texts", "values"),
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
def test_a_column_is_read(texts: list[str], values: list[float]) -> None:
    """Each notation of amounts, percentages and separators is read to its value."""
    assert amounts(*texts).numbers.tolist() == values


def test_whole_numbers_are_counts() -> None:
    """Whole numbers without a currency are Int64."""
    assert amounts("1", "2").numbers.dtype == "Int64"
    assert amounts("1,234,567", "12").numbers.dtype == "Int64"


def test_money_is_a_float_even_when_whole() -> None:
    """Amounts with a currency are float64, even if all are whole."""
    assert amounts("$5", "$6").numbers.dtype == "float64"


def test_empty_cells_are_missing() -> None:
    """Empty and blank cells are NA."""
    assert amounts("$5", None, " ").numbers.isna().tolist() == [False, True, True]


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
    assert amounts("1,234", decimal=decimal).numbers.tolist() == [value]


def test_a_number_that_contradicts_decimal_is_refused() -> None:
    """A number that cannot be written with the stated decimal mark is refused."""
    with pytest.raises(BadQuery, match=r"is not a number with decimal=','"):
        read("1,234.50", decimal=",")


def test_thousands_are_grouped_where_smaller_numbers_have_no_mark() -> None:
    """A mark that only numbers above 999 have separates thousands, and a note says so."""
    result = amounts("1,234", "987", "12,500")
    assert result.numbers.tolist() == [1234, 987, 12500]
    assert "1,234 is read as 1234" in (result.note or "")


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
    result = amounts("1.234", "2.345", separator=",")
    assert result.numbers.tolist() == [1.234, 2.345]
    assert "1.234 is read as 1.234" in (result.note or "")


def test_two_ways_to_write_numbers_are_refused() -> None:
    """Numbers with different decimal marks in one column are refused."""
    with pytest.raises(BadQuery, match="do not agree on the decimal mark"):
        read("1,234.50", "1.234,50")


def test_a_number_keeps_its_currency() -> None:
    """Each number of a column of two currencies has its own, and a note says that they do not add up."""
    result = amounts("$5", "7 €", None)
    assert result.currency is not None
    assert result.currency.tolist()[:2] == ["USD", "EUR"]
    assert "is in EUR, USD: convert it" in (result.note or "")


def test_all_numbers_are_in_the_only_currency() -> None:
    """Empty cells too, and a column without a currency has none."""
    result = amounts("£5", "7", None)
    assert result.currency is not None
    assert result.currency.tolist() == ["GBP"] * 3
    assert amounts("5", "7").currency is None


def test_a_bare_number_among_several_currencies_is_refused() -> None:
    """It may be any of them."""
    with pytest.raises(BadQuery, match="others are in EUR, USD: write the currency of each"):
        read("$5", "7 €", "9")


def test_a_bare_number_among_money_is_said() -> None:
    """A number without a currency among amounts of money gets a note."""
    assert "names no currency" in (amounts("$5", "0").note or "")


def test_percentages_and_numbers_do_not_mix() -> None:
    """A column of percentages and plain numbers is refused."""
    with pytest.raises(BadQuery, match="mixes percentages"):
        read("12%", "0.5")


@pytest.mark.parametrize(
    "texts",
    [("007", "12"), ("a", "b"), ("12345678901234567891",), ("TOP 10",), ("1-2",), ("#N/A",), ("1.2.3", "1.2.4")],
)
def test_names_are_no_numbers(texts: tuple[str, ...]) -> None:
    """Leading zeros, words, too many digits and versions are not read as numbers."""
    assert not isinstance(read(*texts), ParsedNumbers)


def test_the_text_that_keeps_a_column_from_being_numbers_is_named() -> None:
    """If most cells are numbers, the first text among them is returned."""
    assert read("1.5", "n/a", "2") == "n/a"


def test_nothing_is_no_number() -> None:
    """A column without values is not a column of numbers."""
    assert read(None, "") is None


FLOATS = st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=20)


@settings(deadline=None)
@given(FLOATS)
def test_what_python_writes_is_read_to_the_last_bit(values: list[float]) -> None:
    """The repr of any finite float is read back exactly."""
    texts = [repr(value) for value in values]
    result = amounts(*texts, decimal=".")
    assert [float(value) for value in result.numbers] == values


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

    assert amounts(*map(written, cents)).numbers.tolist() == [value / 100 for value in cents]


WHOLES = st.lists(st.integers(0, 10**9), min_size=1, max_size=10)


@settings(deadline=None)
@given(WHOLES, st.sampled_from(",.' "))
def test_grouped_numbers_are_right_or_refused(wholes: list[int], group: str) -> None:
    """Grouped numbers are read right or refused, never silently wrong by a thousand."""
    texts = [f"{value:,}".replace(",", group) for value in wholes]
    result = outcome(*texts)
    if isinstance(result, ParsedNumbers):
        assert result.numbers.tolist() == wholes
    else:
        assert isinstance(result, BadQuery)
        assert "decimal=" in str(result)


@settings(deadline=None)
@given(st.lists(st.text(alphabet="0123456789.,-+()% $€eE'A", max_size=12), min_size=1, max_size=6))
def test_any_text_is_read_or_refused(texts: list[str]) -> None:
    """Any text is read, left as text or raises `BadQuery`, and no row is lost."""
    result = outcome(*texts)
    assert result is None or isinstance(result, (str, BadQuery)) or len(result.numbers) == len(texts)
