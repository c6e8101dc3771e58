"""Rounded numbers with a word behind them: read with their magnitude, or asked about, never a thousand times off."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import gamelens as gl
from gamelens.analysis import outside_data
from gamelens.analysis.files.number_parsing import written_numbers
from gamelens.errors import BadQuery
from support.tidy_frames import tidy_frame

WriteFile = Callable[..., Path]

DAYS = [f"2026-11-{day:02}" for day in range(1, 6)]


def costs(file: WriteFile, cells: list[str], header: str = "Cost") -> Path:
    """Return a file with a cost on each day."""
    rows = [f"{day}\tMeta Ads\t{cell}" for day, cell in zip(DAYS, cells, strict=False)]
    return file("\n".join([f"Date\tNetwork\t{header}", *rows, ""]), "costs.tsv")


READ = [
    (["$5.2K", "$812", "$1.5M"], "USD", [5_200, 812, 1_500_000]),
    (["1,2 Mio. €", "3 Tsd. €", "950 €"], "EUR", [1_200_000, 3_000, 950]),
    (["€ 1,2 mln", "€ 3,4 mln"], "EUR", [1_200_000, 3_400_000]),
    (["5 TEUR", "6,5 TEUR"], "EUR", [5_000, 6_500]),
    (["1,5 M€", "2,25 M€"], "EUR", [1_500_000, 2_250_000]),
    (["R$ 5 mil", "R$ 1,2 mi"], "BRL", [5_000, 1_200_000]),
    (["₹1.2 Cr", "₹5 lakh"], "INR", [12_000_000, 500_000]),
    (["1,2 млн ₽", "300 тыс. ₽"], "RUB", [1_200_000, 300_000]),
    (["4 mln zł", "300 tys. zł"], "PLN", [4_000_000, 300_000]),
    (["Rp 1,2 jt", "Rp 300 rb"], "IDR", [1_200_000, 300_000]),
    (["2 bin TL", "3,5 Mn TL"], "TRY", [2_000, 3_500_000]),
    (["12万円", "3.5億円"], "JPY", [120_000, 350_000_000]),
    (["120만 원", "3.5억 원"], "KRW", [1_200_000, 350_000_000]),
    (["$340k", "$1.2m"], "USD", [340_000, 1_200_000]),
    (["(1.2K)", "-3K", "0"], "USD", [-1_200, -3_000, 0]),
    (["5 kr", "7 kr."], "SEK", [5, 7]),
    (["5 Kč", "6 Kč"], "CZK", [5, 6]),
]


@pytest.mark.shown_by(2)
@pytest.mark.parametrize(("cells", "currency", "values"), READ)
def test_rounded_amounts_have_their_magnitude(
    file: WriteFile, cells: list[str], currency: str, values: list[float]
) -> None:
    """That they are rounded is said; a currency that begins like such a word is none."""
    table = gl.read_table(costs(file, cells), currency=currency)
    assert table.column("Cost").values.tolist() == values
    assert ("Cost is rounded" in str(table)) == (max(map(abs, values)) > 900)


@pytest.mark.shown_by(2)
@pytest.mark.parametrize(
    ("cells", "word", "numbers"),
    [
        (["$5 mil", "$7 mil"], "mil", [1_000, 1_000_000]),
        (["$1.2m", "$3.4m"], "m", [1_000, 1_000_000]),
        (["$1.5MM", "$2MM"], "MM", [1_000_000, 1_000_000_000]),
        (["$1.5B", "$2B"], "B", [1_000_000_000, 1_000]),
        (["$5 Cr", "$7 Cr."], "Cr", [10_000_000, 1]),
        (["$5 M", "$7 MM"], "M", [1_000, 1_000_000]),
    ],
)
def test_a_word_of_several_magnitudes_is_asked_about(
    file: WriteFile, cells: list[str], word: str, numbers: list[int]
) -> None:
    """Each answer that the sentence names works."""
    path = costs(file, cells)
    with pytest.raises(BadQuery, match=f"ends in {word}, which is of several magnitudes") as refused:
        outside_data.in_dollars(path, currency="USD")
    first = float(cells[0].strip("$ ").removesuffix(word))
    for number in numbers:
        step = {word: number} | ({"MM": 10**6} if word == "M" else {})
        assert f'magnitudes={{"{word}": {number}}}' in str(refused.value)
        assert outside_data.in_dollars(path, currency="USD", magnitudes=step)["spend"].iloc[0] == first * number


def test_counts_are_whole_and_rates_are_not_made_of_them(file: WriteFile) -> None:
    rows = ["2026-11-01,1.2M,5.2K", "2026-11-02,900K,3.1K", "2026-11-03,2M,812"]
    table = gl.read_table(file("\n".join(["Date,Impressions,Clicks", *rows, ""])))
    assert table.column("Impressions").values.tolist() == [1_200_000, 900_000, 2_000_000]
    assert str(table.column("Clicks").values.dtype) == "Int64"


def test_a_total_of_rounded_rows_is_left_out(file: WriteFile) -> None:
    """Without a word, and not the sum to the last digit."""
    rows = [f"{day},{name},{cost}" for day in DAYS for name, cost in (("a", "$5.2K"), ("b", "$10.4K"), ("", "$15.7K"))]
    table = gl.read_table(file("\n".join(["Date,Campaign,Cost", *rows, ""])), currency="USD")
    assert table.column("Cost").values.sum() == pytest.approx(78_000)


def test_the_report_of_a_join_says_that_costs_are_rounded(file: WriteFile) -> None:
    money = tidy_frame(
        "revenue", timestamp=DAYS, installed_on=DAYS, install_publisher=["Meta Ads"] * 5, revenue=[500.0] * 5
    )
    money.attrs["gamelens"]["asked"] |= {"every": "day", "interval": "2026-11-01T00:00Z/2026-11-06T00:00Z"}
    result = outside_data.roas(costs(file, ["5.2K"] * 5), money, ages=[0], currency="USD")
    assert result.frame["spend"].tolist() == [26_000]
    assert any("Cost is rounded: '5.2K' is read as 5,200" in warning for warning in result.report.warnings)


def test_a_header_in_thousands_beside_such_words_is_asked_about(file: WriteFile) -> None:
    path = costs(file, ["5.2K", "6.1K"], "Cost (USD, thousands)")
    with pytest.raises(BadQuery, match=r'"scale": 1') as refused:
        outside_data.in_dollars(path)
    assert "is in thousands by its header" in str(refused.value)
    stated = {"Cost (USD, thousands)": {"role": "cost", "scale": 1}}
    assert outside_data.in_dollars(path, roles=stated)["spend"].tolist() == [5_200, 6_100]


def test_a_small_letter_says_nothing_of_a_capital_one(file: WriteFile) -> None:
    path = costs(file, ["5 M", "20 m"])
    assert outside_data.in_dollars(path, currency="USD", magnitudes={"m": 1000})["spend"].tolist() == [
        5_000_000,
        20_000,
    ]


def test_an_unknown_word_can_be_stated(file: WriteFile) -> None:
    """Without the cell, a cost would be lost."""
    path = costs(file, ["5 kk", "800", "700"])
    with pytest.raises(BadQuery, match=r'magnitudes=\{"kk": ...\} says what kk stands for'):
        outside_data.in_dollars(path, currency="USD")
    assert outside_data.in_dollars(path, currency="USD", magnitudes={"kk": 10**6})["spend"].sum() == 5_001_500


def test_a_magnitude_is_a_power_of_ten(file: WriteFile) -> None:
    with pytest.raises(BadQuery, match="is no power of ten, as mil must be"):
        gl.read_table(costs(file, ["5 mil", "6 mil"]), magnitudes={"mil": 1024})


@pytest.mark.parametrize("text", ["12 installs", "5.2k%", "1e5K", "5KR", "Q4", "4 Kids", "K5"])
def test_other_words_make_no_number(text: str) -> None:
    assert not written_numbers([text]).is_number.any()


def test_exact_numbers_stay_exact() -> None:
    """A power of ten is part of the text that is read, not a product."""
    numbers = written_numbers(["1.1K", "2.3M", "0.07K"])
    assert np.array_equal(numbers.values("."), [1_100.0, 2_300_000.0, 70.0])


@pytest.mark.parametrize(("header", "role"), [("Plan", "text"), ("Kind", "text"), ("Clicks", "count")])
def test_plans_of_a_subscription_stay_names(file: WriteFile, header: str, role: str) -> None:
    """Only a header that says so makes a count of 1M and 12M."""
    rows = [f"{day},{cell},5" for day, cell in zip(DAYS, ["1M", "12M", "1M"], strict=False)]
    table = gl.read_table(file("\n".join([f"Date,{header},Units", *rows, ""])))
    assert table.column(header).role == role
