"""Rows that add up others are left out, wherever they stand and whatever they are called; others are not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import gamelens as gl
from gamelens.analysis.outside_data.row_periods import periods_within
from gamelens.errors import BadQuery

WriteFile = Callable[..., Path]


@pytest.mark.shown_by(2)
@pytest.mark.parametrize(
    ("header", "labels"),
    [
        ("Network;Date;Cost (EUR)", ("Unity Ads Total", "Moloco Total", "Grand Total")),
        ("Netzwerk;Datum;Kosten (EUR)", ("Unity Ads Ergebnis", "Moloco Ergebnis", "Gesamtergebnis")),
        ("Netzwerk;Datum;Kosten (EUR)", ("Summe Unity Ads", "Summe Moloco", None)),
        ("Réseau;Date;Coût (EUR)", ("Total Unity Ads", "Total Moloco", "Total général")),
        ("Sieć;Data;Koszt (EUR)", ("Suma: Unity Ads", "Suma: Moloco", "Razem")),
        ("Сеть;Дата;Расход (EUR)", ("Unity Ads Итог", "Moloco Итог", None)),
        ("媒体;日付;費用 (EUR)", ("Unity Ads 集計", "Moloco 集計", "総計")),
        ("매체;날짜;비용 (EUR)", ("Unity Ads 요약", "Moloco 요약", None)),
        ("Network;Date;Cost (EUR)", ("Unity Ads — zzz", "Moloco — zzz", None)),  # a word that we do not know
    ],
)
@pytest.mark.parametrize("is_first", [False, True])
def test_a_total_of_one_name_is_left_out(
    file: WriteFile, header: str, labels: tuple[str, str, str | None], *, is_first: bool
) -> None:
    lines, total = [header], 0
    for name, label, cost in zip(("Unity Ads", "Moloco"), labels[:2], (40, 7), strict=True):
        block = [f"{name};2026-11-{day:02};{cost + day}" for day in range(1, 5)]
        subtotal = f"{label};;{4 * cost + 10}"
        lines += [subtotal, *block] if is_first else [*block, subtotal]
        total += 4 * cost + 10
    lines += [f"{labels[2]};;{total}"] if labels[2] else []
    table = gl.read_table(file("\n".join(lines) + "\n"))
    assert table.of_role("amount")[0].values.sum() == total
    assert "left out" in str(table)


def test_a_total_of_merged_names_is_left_out(file: WriteFile) -> None:
    """Its block is the name above and the empty cells below it."""
    rows = ["Unity Ads,2026-11-01,4", ",2026-11-02,5", ",2026-11-03,6", "Sum Unity Ads,,15"]
    rows += ["Moloco,2026-11-01,1", ",2026-11-02,2", ",2026-11-03,3", "Sum Moloco,,6"]
    table = gl.read_table(file("Network,Date,Cost (USD)\n" + "\n".join(rows) + "\n"))
    assert table.of_role("amount")[0].values.sum() == 21
    assert table.frame["Network"].tolist() == ["Unity Ads"] * 3 + ["Moloco"] * 3


def test_a_total_that_other_rows_do_not_reach_has_no_day(file: WriteFile) -> None:
    """A report that shows the largest rows only may have totals of all: no day has this cost."""
    rows = ["Moloco,2026-11-01,4", "Moloco,2026-11-02,5", "Moloco total,,90"]
    table = gl.read_table(file("Network,Date,Cost (USD)\n" + "\n".join(rows) + "\n"))
    assert table.starts.isna().tolist() == [False, False, True]
    assert "no day in row 4 of table.csv" in table.notes


def test_a_campaign_with_a_total_word_is_no_total(file: WriteFile) -> None:
    rows = [f"{name},2026-11-0{day},{cost}" for day in (1, 2, 3) for name, cost in (("War", 5), ("Total War", 9))]
    table = gl.read_table(file("Campaign,Date,Cost (USD)\n" + "\n".join(rows) + "\n"))
    assert table.of_role("amount")[0].values.sum() == 42


def test_an_empty_day_beside_another_name_is_not_the_day_above(file: WriteFile) -> None:
    """Only a merged cell is the cell above it: its row has the names of the row above, or its day comes first."""
    rows = ["Moloco,2026-11-01,4", "Moloco,2026-11-02,5", "Unity Ads,,7", "Unity Ads,2026-11-02,1"]
    table = gl.read_table(file("Network,Date,Cost (USD)\n" + "\n".join(rows) + "\n"))
    assert table.starts.isna().tolist() == [False, False, True, False]
    assert "no day in row 4 of table.csv" in table.notes
    merged = ["2026-11-01,Moloco,4", ",Unity Ads,5", "2026-11-02,Moloco,7", ",Unity Ads,1"]
    table = gl.read_table(file("Date,Network,Cost (USD)\n" + "\n".join(merged) + "\n"))
    assert table.starts.dt.day.tolist() == [1, 1, 2, 2]


@pytest.mark.shown_by(2)
@pytest.mark.parametrize("is_first", [False, True])
@pytest.mark.parametrize(
    ("header", "days", "whole"),
    [
        ("Campaign name,Day,Reporting starts,Reporting ends,Spent (USD)", "{0},{0},{0}", ",2026-11-01,2026-11-03"),
        ("Kampagne,Berichtsstart,Berichtsende,Kosten (EUR)", "{0},{0}", "2026-11-01,2026-11-03"),
        (
            "Campanha,Início dos relatórios,Encerramento dos relatórios,Valor usado (BRL)",
            "{0},{0}",
            "2026-11-01,2026-11-03",
        ),
        ("Network,From,Until,Expense (GBP)", "{0},{0}", "2026-11-01,2026-11-03"),
    ],
)
def test_a_total_of_the_whole_range_is_left_out(
    file: WriteFile, header: str, days: str, whole: str, *, is_first: bool
) -> None:
    rows = [f"{name},{days.format(f'2026-11-0{day}')},{day}" for day in (1, 2, 3) for name in ("one", "two")]
    total = f",{whole},12"
    table = gl.read_table(file("\n".join([header, *([total, *rows] if is_first else [*rows, total])]) + "\n"))
    assert table.of_role("amount")[0].values.sum() == 12
    assert len(table.rows) == 6
    assert table.period == "day"


def test_a_row_without_a_name_within_the_range_of_others_is_no_total(file: WriteFile) -> None:
    """Its number may be the sum of others, but its days are not theirs."""
    rows = ["one,2026-11-01,2026-11-07,1", "one,2026-11-08,2026-11-14,2", ",2026-11-15,2026-11-21,3"]
    table = gl.read_table(file("Campaign,Start,End,Cost (USD)\n" + "\n".join(rows) + "\n"))
    assert len(table.rows) == 3


def test_days_beside_a_start_are_its_end_or_are_asked_about(file: WriteFile) -> None:
    weeks = "Campaign,Start,Hasta el,Cost (USD)\none,2026-11-01,2026-11-07,1\none,2026-11-08,2026-11-14,2\n"
    assert gl.read_table(file(weeks)).period == "week from Sunday"
    changed = "\n".join(f"one,2026-11-0{day},2026-12-{2 * day * day + 1:02},1" for day in (1, 2, 3)) + "\n"
    changed += "\n".join(f"two,2026-11-0{day},2026-12-{20 + day * 2},1" for day in (1, 2, 3)) + "\n"
    table = gl.read_table(file("Campaign,Start,Ändrung,Cost (USD)\n" + changed))
    assert table.period is None
    assert 'roles={"Ändrung": "end"}' in str(table.periods.problem)
    assert (
        gl.read_table(file("Campaign,Start,Ändrung,Cost (USD)\n" + changed), roles={"Ändrung": "end"}).period
        == "period"
    )
    assert (
        gl.read_table(file("Campaign,Start,Ändrung,Cost (USD)\n" + changed), roles={"Ändrung": "text"}).period == "day"
    )


def test_periods_that_overlap_name_the_longest_row(file: WriteFile) -> None:
    """A total that also counts what the other rows do not show."""
    rows = ["one,2026-11-01,2026-11-07,1", "one,2026-11-08,2026-11-14,2", ",2026-11-01,2026-11-14,30"]
    table = gl.read_table(file("Campaign,Start,End,Cost (USD)\n" + "\n".join(rows) + "\n"))
    with pytest.raises(
        BadQuery, match=r"row 4 stands for 2026-11-01 to 2026-11-14, and row 2 for 2026-11-01 to 2026-11-07"
    ):
        periods_within(table, None, frame="money")


@pytest.mark.shown_by(2)
@pytest.mark.parametrize("place", ["first", "name"])
@pytest.mark.parametrize("has_tax", [False, True])
@pytest.mark.parametrize(
    "words", [("Razem", "OGÓŁEM"), ("Total", "Grand total"), ("Summe", "Gesamt"), ("合計", "総計")]
)
def test_totals_of_a_currency_are_left_out(
    file: WriteFile, words: tuple[str, str], place: str, *, has_tax: bool
) -> None:
    """A total word with a code is a total, also where the sums of the table are of one currency each."""
    lines, sums = ["Etap;Kanał;Waluta;Kwota netto" + ";VAT" * has_tax], {"PLN": 0, "EUR": 0}

    def line(label: str, code: str, stage: str, amount: int) -> str:
        tax = f";{amount // 5 if code == 'PLN' else 0}" * has_tax
        return f"{label if place == 'first' else stage};{'' if place == 'first' else label};{code};{amount}{tax}"

    for stage in range(1, 4):
        for code in sums:
            amounts = [100 * stage + 5 * place_of + len(sums) * 35 for place_of in (1, 2)]
            lines += [
                f"S{stage};{name};{code};{amount}" + f";{amount // 5 if code == 'PLN' else 0}" * has_tax
                for name, amount in zip(("Meta", "Moloco"), amounts, strict=True)
            ]
            lines.append(line(f"{words[0]} {code}", code, f"S{stage}", sum(amounts)))
            sums[code] += sum(amounts)
    lines += [line(f"{words[1]} {code}", code, "", amount) for code, amount in sums.items()]
    table = gl.read_table(file("\n".join(lines) + "\n"))
    assert table.frame.groupby("Waluta")["Kwota netto"].sum().to_dict() == sums
    assert "left out" in str(table)


@pytest.mark.parametrize("label", ["Summe KW 45", "Total Q1 2026", "Razem I kw. 2026", "Total semaine 45", "Total T1"])
def test_a_total_of_a_named_period_is_left_out(file: WriteFile, label: str) -> None:
    rows = ["Meta,4,1", "Moloco,5,2", f"{label},9,3"]
    table = gl.read_table(file("Network,Cost (USD),Installs\n" + "\n".join(rows) + "\n"))
    assert table.of_role("amount")[0].values.sum() == 9


@pytest.mark.parametrize("is_first", [False, True])
def test_a_nameless_row_that_adds_up_all_others_is_left_out(file: WriteFile, *, is_first: bool) -> None:
    """A summary of an export: its rate is an average, and its days are no day of the others."""
    rows = [f"c{place},{('TR', 'DE')[place % 2]},2026-11-0{1 + place},{10 + place},{100 * place + 7},{place / 10 + 1}"
            for place in range(6)]  # fmt: skip
    total = f",,2026-11-09,{sum(range(10, 16))},{sum(100 * place + 7 for place in range(6))},1.27"
    lines = [total, *rows] if is_first else [*rows, total]
    table = gl.read_table(file("Campaign,Country,Day,Installs,Cost (USD),Zzz\n" + "\n".join(lines) + "\n"))
    assert table.of_role("amount")[0].values.sum() == 1542
    assert "left out" in str(table)


@pytest.mark.parametrize("word", ["Total {}", "Razem {}", "{} total", "Summe {}"])
def test_a_total_of_a_name_of_another_column_is_left_out(file: WriteFile, word: str) -> None:
    rows = [
        f"S{stage};{name};{stage * 10 + cost}" for stage in (1, 2, 3) for name, cost in (("Meta", 1), ("Moloco", 4))
    ]
    totals = [f"{word.format('Meta')};;63", f"{word.format('Moloco')};;72"]
    table = gl.read_table(file("Stage;Network;Cost (USD)\n" + "\n".join([*rows, *totals]) + "\n"))
    assert table.of_role("amount")[0].values.sum() == 135
    assert "left out" in str(table)
