"""Numbers and days in the digits of other scripts: right, with names as they are written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import gamelens as gl
from gamelens.analysis import outside_data
from gamelens.analysis.files.decimal_digits import ascii_digits
from gamelens.analysis.files.number_parsing import written_numbers

WriteFile = Callable[..., Path]

ZEROS = {"Arabic": "٠", "Persian": "۰", "Devanagari": "०", "full width": "０", "Bengali": "০"}


def in_script(text: str, zero: str) -> str:
    """Return *text* with its digits in the script that has this 0."""
    return text.translate({ord("0") + digit: chr(ord(zero) + digit) for digit in range(10)})


@pytest.mark.parametrize("zero", ZEROS.values(), ids=ZEROS)
def test_numbers_and_days_in_any_decimal_digits(file: WriteFile, zero: str) -> None:
    """A name with a digit stays as it is written."""
    rows = [f"{day:02}/11/2026,Level 3,{1000 + day}.5,{20 * day}" for day in (1, 2, 13)]
    table = gl.read_table(file(in_script("\n".join(["Date,Campaign,Cost (USD),Installs", *rows, ""]), zero)))
    assert [f"{day:%d}" for day in table.starts] == ["01", "02", "13"]
    assert table.column("Cost (USD)").values.tolist() == [1001.5, 1002.5, 1013.5]
    assert table.column("Installs").values.tolist() == [20, 40, 260]
    assert table.column("Campaign").values.tolist() == [f"Level {in_script('3', zero)}"] * 3


def test_an_arabic_report_is_read(file: WriteFile) -> None:
    """Its marks are decimal and of thousands in every file; a total stands at the end, the currency in the header."""
    lines = [
        "تقرير – نوفمبر ٢٠٢٦",
        "التاريخ;الشبكة;المبلغ المنفق (ريال سعودي);عدد التثبيتات",
        "٠١/١١/٢٠٢٦;سناب شات;١٬٢٠٠٫٥٠٠;١٬٥٣٠",
        "٠٢/١١/٢٠٢٦;سناب شات;٩٠٫١٢٥;٢٠",
        "١٣/١١/٢٠٢٦;سناب شات;٧٫٠٠٠;٣",
        "المجموع;;١٬٢٩٧٫٦٢٥;١٬٥٥٣",
    ]
    table = gl.read_table(file("\n".join([*lines, ""])))
    cost, installs = table.of_role("amount")[0], table.of_role("count")[0]
    assert (cost.currency, cost.values.tolist()) == ("SAR", [1200.5, 90.125, 7.0])
    assert installs.values.tolist() == [1530, 20, 3]
    assert outside_data.in_dollars(table, rate=0.25)["spend"].sum() == 1297.625 / 4


@pytest.mark.parametrize(
    ("text", "value", "unit"),
    [
        ("١٬٢٣٤٫٥٠ ر.س.\u200f", 1234.5, "ر.س."),
        ("\u200f-١٢٫٥ د.إ", -12.5, "د.إ"),
        ("1٬234٫5", 1234.5, ""),
        ("١٢٪", 0.12, ""),
        ("(१,२३४.५)", -1234.5, ""),
        ("￥１，２３４．５", 1234.5, "¥"),
        ("۱۲٫۳۴۵", 12.345, ""),
    ],
)
def test_a_number_with_its_marks(text: str, value: float, unit: str) -> None:
    """The decimal mark of a file never changes an Arabic one."""
    numbers = written_numbers([text])
    assert [numbers.values(mark)[0] for mark in numbers.fitting] == [value] * len(numbers.fitting) != []
    assert numbers.units[0] == unit


def test_days_without_a_year_take_it_from_a_line_in_other_digits(file: WriteFile) -> None:
    """Of both, the digits are those of the script."""
    table = gl.read_table(file("تقرير ٢٠٢٦\nDate,Cost (USD)\n٢٥.١١.,١٫٥\n٢٦.١١.,٢٫٥\n٢٧.١١.,٣٫٥\n"))
    assert f"{table.starts[0]:%Y-%m-%d}" == "2026-11-25"


@pytest.mark.parametrize(
    ("lines", "quoted", "step"),
    [
        (["٤٦٢٩٦", "2026-11-02", "2026-11-03"], "٤٦٢٩٦", {"missing": ["٤٦٢٩٦"]}),
        (["٠١/١١/٢٠٢٦", "٠٢/١١/٢٠٢٦", "٠٣/١١/٢٠٢٦"], "٠١/١١/٢٠٢٦", {"day_first": True}),
    ],
)
def test_a_refused_day_is_quoted_as_it_is_written(
    file: WriteFile, lines: list[str], quoted: str, step: dict[str, Any]
) -> None:
    """So the step that names it finds it."""
    path = file("\n".join(["Date,Cost (USD)", *(f"{line},5" for line in lines), ""]))
    problem = gl.read_table(path).periods.problem
    assert problem is not None
    assert problem.value == quoted
    if "missing" in step:
        assert f"missing={step['missing']!r} reads it as empty" in str(problem)
    assert gl.read_table(path, **step).period == "day"


def test_wide_marks_are_marks_beside_any_digits() -> None:
    """Reports of Korea and Japan have wide signs of currencies before plain digits; other letters stay."""
    assert ascii_digits(["，１", "a"]) == [",1", "a"]
    assert ascii_digits(["￦1,663", "매체"]) == ["₩1,663", "매체"]


@pytest.mark.parametrize(
    ("cell", "currency", "value"), [("￦1,663,224", "KRW", 1663224), ("￡12.50", "GBP", 12.5), ("US＄3.5", "USD", 3.5)]
)
def test_wide_signs_of_currencies(file: WriteFile, cell: str, currency: str, value: float) -> None:
    """In a cell and in a header."""
    column = gl.read_table(file(f'Date,Spend\n2026-11-01,"{cell}"\n2026-11-02,"{cell}"\n')).column("Spend")
    assert (column.currency, column.values.tolist()) == (currency, [value] * 2)
    sign = cell.rstrip("0123456789.,")
    header = f"Spend ({sign})"
    assert gl.read_table(file(f"Date,{header}\n2026-11-01,1.5\n2026-11-02,2\n")).column(header).currency == currency
