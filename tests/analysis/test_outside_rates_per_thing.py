"""A header with a word for "per" and what is counted names a rate, and a number behind it is no unit."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import gamelens as gl

WriteFile = Callable[..., Path]


@pytest.mark.shown_by(4)
@pytest.mark.parametrize(
    "header",
    [
        "Cost per 1 000 views",
        "Coût pour 1 000 vues",
        "Prix pour 1 000 abonnés (EUR)",
        "Revenue for 1000 users",
        "Coste por cada mil impresiones",
        "Цена за 1000 показов",
        "Sonuç başına ücret (TRY)",
        "Yükleme başına maliyet",
        "costo por resultado",
        "Kosten pro Ergebnis",
        "Kosten je Kunde",
        "Kosten je 1.000 Einblendungen",
        "стоимость за установку",
        "стоимость за результат",
        "вартість за результат",
        "koszt za wynik",
        "koszt na instalację",
        "cena za výsledek",
        "cost pe rezultat",
        "költség eredményenként",
        "chi phí mỗi kết quả",
        "biaya per hasil",
        "omkostning pr. installation",
        "hinta per asennus",
        "κόστος ανά αποτέλεσμα",
        "प्रति परिणाम लागत",
        "ค่าใช้จ่ายต่อผลลัพธ์",
        "التكلفة لكل نتيجة",
        "עלות לתוצאה",
        "1000回表示当たりのコスト",
        "설치당 비용",
        "每次安装费用",
        "每千次展示费用",
    ],
)
def test_a_header_with_per_is_a_rate(file: WriteFile, header: str) -> None:
    table = gl.read_table(file(f"Campaign;{header}\nA;12.5\nB;3.75\nC;4.25\n"))
    assert table.columns[1].role == "rate"
    assert table.columns[1].values.tolist() == [12.5, 3.75, 4.25]


@pytest.mark.shown_by(2)
@pytest.mark.parametrize(
    "header",
    [
        "Kosten pro Tag",
        "Coût par jour",
        "Gasto por país",
        "Gasto por campaña",
        "Umsatz je Land",
        "расход на рекламу",
        "Выручка за ноябрь",
        "Расходы за день",
        "wydatki na reklamę",
        "Coût pour 30 jours",
        "Revenue for 7 days",
        "Kosten (in 1 000)",
    ],
)
def test_what_an_amount_is_for_leaves_it_one(file: WriteFile, header: str) -> None:
    table = gl.read_table(file(f"Campaign;{header}\nA;12.5\nB;3.75\nC;4.25\n"))
    assert table.columns[1].role == "amount"


def test_a_cost_per_thousand_is_no_cost_to_choose(file: WriteFile) -> None:
    """The cost beside it is the only one, so nobody is asked which is meant."""
    rows = ["FR;400,00 €;10000;40,00 €", "DE;90,00 €;3000;30,00 €", "IT;50,50 €;1000;50,50 €"]
    table = gl.read_table(file("Pays;Coût HT;Vues;Coût pour 1 000 vues\n" + "\n".join(rows) + "\n"))
    assert [column.name for column in table.of_role("amount")] == ["Coût HT"]
    assert "1,000 * Coût HT / Vues" in str(table)
