"""Numbers as people write them: decided by the whole column, and refused where that leaves two readings."""

from __future__ import annotations

import re

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gamelens.analysis.files.number_parsing import ParsedNumbers, read_amounts
from gamelens.errors import BadQuery


def read(*texts: str | None, decimal: str | None = None, separator: str | None = None):
    return read_amounts(pd.Series(list(texts), dtype="str"), field="spend", decimal=decimal, separator=separator)


def outcome(*texts: str):
    """What is read, or the refusal."""
    try:
        return read(*texts)
    except BadQuery as refusal:
        return refusal


def numbers(*texts: str | None, **how: str):
    found = read(*texts, **how)
    assert isinstance(found, ParsedNumbers), found
    return found.numbers.tolist()


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
    assert numbers(*texts) == values


def test_whole_numbers_are_counts() -> None:
    assert read("1", "2").numbers.dtype == "Int64"
    assert read("1,234,567", "12").numbers.dtype == "Int64"


def test_money_is_a_float_even_when_whole() -> None:
    assert read("$5", "$6").numbers.dtype == "float64"


def test_empty_cells_are_missing() -> None:
    assert read("$5", None, " ").numbers.isna().tolist() == [False, True, True]


@pytest.mark.parametrize("text", ["1,234", "$1,234", "1.234", "1.234 €", "12,345"])
def test_three_digits_behind_the_only_mark_are_refused(text: str) -> None:
    with pytest.raises(BadQuery, match="say decimal="):
        read(text)


def test_the_message_names_both_readings() -> None:
    with pytest.raises(BadQuery, match=re.escape("is 1234 (decimal='.') or 1.234 (decimal=',')")):
        read("1,234")


@pytest.mark.parametrize(("decimal", "value"), [(".", 1234.0), (",", 1.234)])
def test_decimal_settles_it(decimal: str, value: float) -> None:
    assert numbers("1,234", decimal=decimal) == [value]


def test_what_decimal_cannot_be_is_refused() -> None:
    with pytest.raises(BadQuery, match=r"is no number with decimal=','"):
        read("1,234.50", decimal=",")


def test_thousands_are_grouped_where_smaller_numbers_have_no_mark_and_the_report_hears_of_it() -> None:
    found = read("1,234", "987", "12,500")
    assert found.numbers.tolist() == [1234, 987, 12500]
    assert "1,234 is read as 1234" in found.note


@pytest.mark.parametrize("texts", [("1,234", "1234"), ("1,234", "0"), ("1,234", "1.234")])
def test_no_evidence_is_refused(texts: tuple[str, str]) -> None:
    with pytest.raises(BadQuery, match="decimal="):
        read(*texts)


def test_semicolons_speak_for_decimal_commas() -> None:
    with pytest.raises(BadQuery, match="decimal="):
        read("1,234", "987", separator=";")


def test_a_point_in_a_file_of_commas_is_decimal_and_the_report_hears_of_it() -> None:
    found = read("1.234", "2.345", separator=",")
    assert (found.numbers.tolist(), "1.234 is read as 1.234" in found.note) == ([1.234, 2.345], True)


def test_two_ways_to_write_numbers_are_refused() -> None:
    with pytest.raises(BadQuery, match="do not agree on the decimal mark"):
        read("1,234.50", "1.234,50")


def test_currencies_do_not_mix() -> None:
    with pytest.raises(BadQuery, match=r"are in \$, EUR: convert"):
        read("$5", "5 €")


def test_a_bare_number_among_money_is_said() -> None:
    assert "names no currency" in read("$5", "0").note


def test_percentages_and_numbers_do_not_mix() -> None:
    with pytest.raises(BadQuery, match="mixes percentages"):
        read("12%", "0.5")


@pytest.mark.parametrize(
    "texts",
    [("007", "12"), ("a", "b"), ("12345678901234567891",), ("TOP 10",), ("1-2",), ("#N/A",), ("1.2.3", "1.2.4")],
)
def test_names_are_no_numbers(texts: tuple[str, ...]) -> None:
    assert not isinstance(read(*texts), ParsedNumbers)


def test_the_text_that_keeps_a_column_from_being_numbers_is_named() -> None:
    assert read("1.5", "n/a", "2") == "n/a"


def test_nothing_is_no_number() -> None:
    assert read(None, "") is None


FLOATS = st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=20)


@settings(deadline=None)
@given(FLOATS)
def test_what_python_writes_is_read_to_the_last_bit(values: list[float]) -> None:
    texts = [repr(value) for value in values]
    found = read(*texts, decimal=".")
    assert [float(value) for value in found.numbers] == values


CENTS = st.lists(st.integers(-(10**12), 10**12), min_size=1, max_size=20)


@settings(deadline=None)
@given(CENTS, st.sampled_from([(",", "."), (".", ","), (" ", ","), ("'", "."), ("", "."), ("", ",")]), st.booleans())
def test_money_survives_any_notation(cents: list[int], marks: tuple[str, str], is_money: bool) -> None:
    group, point = marks

    def written(value: int) -> str:
        whole = f"{abs(value) // 100:,}".replace(",", group)
        return f"{'-' if value < 0 else ''}{'$' if is_money else ''}{whole}{point}{abs(value) % 100:02}"

    assert numbers(*map(written, cents)) == [value / 100 for value in cents]


WHOLES = st.lists(st.integers(0, 10**9), min_size=1, max_size=10)


@settings(deadline=None)
@given(WHOLES, st.sampled_from(",.' "))
def test_grouped_numbers_are_right_or_refused(wholes: list[int], group: str) -> None:
    """Off by a thousand, and in silence, is the one thing that never happens."""
    texts = [f"{value:,}".replace(",", group) for value in wholes]
    found = outcome(*texts)
    assert "decimal=" in str(found) if isinstance(found, BadQuery) else found.numbers.tolist() == wholes


@settings(deadline=None)
@given(st.lists(st.text(alphabet="0123456789.,-+()% $€eE'A", max_size=12), min_size=1, max_size=6))
def test_any_text_is_read_or_refused(texts: list[str]) -> None:
    found = outcome(*texts)
    assert found is None or isinstance(found, (str, BadQuery)) or len(found.numbers) == len(texts)
