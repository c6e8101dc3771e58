"""What conversions are worth is money earned: by the words for value, and by a return on spend that the cells prove."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pandas import DataFrame

import gamelens as gl
from gamelens.analysis import outside_data
from gamelens.analysis.outside_data.roles import header_meanings
from gamelens.errors import BadQuery
from support.tidy_frames import tidy_frame

WriteFile = Callable[..., Path]


@pytest.mark.shown_by(8)
@pytest.mark.parametrize(
    "header",
    [
        "Conv.-Wert",
        "Conversionwert",
        "Conversions-Wert",
        "Wert der Conversions",
        "Wert aller Conv.",
        "Conversion-Wert für Käufe",
        "Valeur de conversion",
        "Valeur de conv.",
        "Valeur conv.",
        "Valeur des résultats",
        "Valor de conversión",
        "Valor de conv.",
        "Valor conv.",
        "Valor de conversión de compras",
        "Valor da conversão",
        "Valor de conv. de compras",
        "Valore di conversione",
        "Valore conv.",
        "Conversiewaarde",
        "Conv.waarde",
        "Waarde conv.",
        "Wartość konwersji",
        "Wartość konw.",
        "Dönüşüm değeri",
        "Ценность конверсии",
        "Ценность конв.",
        "Цінність конверсії",
        "Konverteringsvärde",
        "Konverteringsværdi",
        "Konverteringsverdi",
        "Konversioarvo",
        "Hodnota konverze",
        "Hodnota konverzií",
        "Konverziós érték",
        "Valoarea conversiei",
        "Αξία μετατροπής",
        "Giá trị chuyển đổi",
        "Nilai konversi",
        "มูลค่า Conversion",
        "قيمة التحويل",
        "ערך המרה",
        "रूपांतरण मान",
        "転換価値",
        "コンバージョンの価値",
        "转换价值",
        "轉換值",
        "전환가치",
        "전환값",
        "Value of conversions",
        "All conversions value",
    ],
)
def test_what_conversions_are_worth_is_income(header: str) -> None:
    meaning = next(header_meanings(header))
    assert (meaning.role, meaning.concept) == ("amount", "income")


@pytest.mark.shown_by(4)
@pytest.mark.parametrize(
    "header",
    [
        "Valeur d’achat",
        "Valeur totale des achats",
        "Valor das compras",
        "Valore degli acquisti",
        "Kaufwert",
        "Auftragswert",
        "Bestellwert",
        "Wert des Kaufs",
        "Köpvärde",
        "Aankoopwaarde",
        "Wartość zakupów",
        "Satın alma değeri",
        "Ценность покупок",
        "Giá trị mua hàng",
        "Nilai pembelian",
        "購入の価値",
        "구매값",
    ],
)
def test_what_purchases_are_worth_is_income_beside_a_cost(file: WriteFile, header: str) -> None:
    """Alone it may be what a company bought for."""
    rows = "DE;12,50;30,10\nFR;3,75;9,99\nIT;4,25;0,00\n"
    table = gl.read_table(file(f"Country;Cost (EUR);{header}\n{rows}"))
    assert (table.column(header).role, table.column(header).concept) == ("amount", "income")
    alone = gl.read_table(file(f"Country;Id;{header}\n{rows}", name="alone.csv"))
    assert (alone.column(header).role, alone.column(header).concept) == ("amount", "money")


@pytest.mark.parametrize(
    "header",
    ["Conversiones de alto valor", "High-value conversions", "Conversioni di valore", "Número de conversiones"],
)
def test_conversions_that_are_worth_much_are_a_count(header: str) -> None:
    assert next(header_meanings(header)).role == "count"


@pytest.mark.parametrize(
    "header",
    [
        "Wert/Conv.",
        "Valeur/conv.",
        "Value / conv.",
        "Valor por conversión",
        "Durchschn. Bestellwert",
        "購入あたりの価値",
    ],
)
def test_a_value_of_one_conversion_is_a_rate(header: str) -> None:
    assert next(header_meanings(header)).role == "rate"


@pytest.mark.parametrize(
    "header",
    ["SKAN conversion value", "Conversion value (SKAN)", "Fine conversion value", "SKAdNetwork-Conversion-Wert"],
)
def test_a_conversion_value_of_a_postback_is_no_money(header: str) -> None:
    assert next(header_meanings(header)).role == "identifier"


@pytest.mark.parametrize("header", ["Valore dei clic", "Valeur des clics", "Conversions (Wert)", "Achats (valeur)"])
def test_a_word_for_value_beside_a_count_makes_it_none(header: str) -> None:
    assert all(meaning.role != "count" for meaning in header_meanings(header))


_SPENT = (("DE", 100.0, 41.5), ("DE", 80.0, 20.0), ("AT", 50.0, 60.25), ("CH", 25.0, 10.0))


def _with_return(spent: str, earned: str, rate: str, rows: tuple[tuple[str, float, float], ...] = _SPENT) -> str:
    """Return a file of what was spent and earned, with the quotient of each row as a report rounds it."""
    lines = [f"{country};{cost:.2f};{income:.2f};{income / cost:.4f}" for country, cost, income in rows]
    return "\n".join([f"Country;{spent};{earned};{rate}", *lines, ""])


def _players() -> DataFrame:
    return tidy_frame("new_users", country_code=["DE", "AT", "CH"], new_users=[10, 20, 30])


@pytest.mark.parametrize(
    ("spent", "earned", "rate"),
    [
        ("Spesa (GBP)", "Acquisti", "ROAS"),
        ("Harcama (GBP)", "Xyz", "ROAS (reklam harcamasının getirisi)"),
        ("Cost (GBP)", "Orders", "Return on ad spend"),
        ("Gasto (GBP)", "Resultados", "Retorno de la inversión publicitaria"),
        ("Cost (GBP)", "Xyz", "Xyz / Cost"),
        ("Kosten (GBP)", "Wert", "Wert/Kosten"),
        ("消化金額 (GBP)", "購入", "広告費用対効果"),
    ],
)
def test_what_a_return_on_spend_is_made_of_is_money(file: WriteFile, spent: str, earned: str, rate: str) -> None:
    path = file(_with_return(spent, earned, rate))
    column = gl.read_table(path).column(earned)
    assert (column.role, column.concept, column.currency) == ("amount", "income", "GBP")
    joined = gl.join(_players(), path, rate={"GBP": 1.3}, columns=[spent, earned, rate], aggregate="sum").frame
    assert joined[earned].round(4).tolist() == [79.95, 78.325, 13.0]
    assert joined[rate].round(4).tolist() == [round(61.5 / 180, 4), 1.205, 0.4]


def test_two_rows_prove_a_return_that_their_headers_name(file: WriteFile) -> None:
    table = gl.read_table(file(_with_return("Cost (EUR)", "Xyz", "Xyz / Cost", _SPENT[:2])))
    assert table.column("Xyz").currency == "EUR"
    assert "rate, Xyz / Cost (EUR)" in str(table)


@pytest.mark.parametrize(
    ("earned", "rate"), [("Clicks", "Clicks / Cost"), ("Acquisti", "Rendimento"), ("Score", "Score / Cost")]
)
def test_other_quotients_prove_no_money(file: WriteFile, earned: str, rate: str) -> None:
    assert gl.read_table(file(_with_return("Cost (EUR)", earned, rate))).column(earned).role != "amount"


def test_a_return_that_the_cells_contradict_proves_nothing(file: WriteFile) -> None:
    text = _with_return("Cost (EUR)", "Acquisti", "ROAS").replace("0.4150", "0.9150")
    assert gl.read_table(file(text)).column("Acquisti").role == "count"


@pytest.mark.parametrize(("earned", "rate"), [("Clicks", "Clicks / Cost"), ("Acquisti", "Rendimento")])
def test_a_quotient_of_which_one_side_is_converted_stays_in_the_unit_of_the_file(
    file: WriteFile, earned: str, rate: str
) -> None:
    """Whatever it is called: a number for one pound is none for one dollar."""
    path = file(_with_return("Cost (GBP)", earned, rate))
    stated = {rate: {"role": "rate", "of": [earned, "Cost (GBP)"]}}
    as_it_is = gl.join(_players(), path, roles=stated, columns=[rate], aggregate="sum").frame
    converted = gl.join(_players(), path, roles=stated, rate={"GBP": 1.3}, columns=[rate], aggregate="sum")
    assert converted.frame[rate].round(3).tolist() == as_it_is[rate].round(3).tolist() == [0.342, 1.205, 0.4]
    said = f"{rate} stays {earned} / Cost (GBP) as the file has it, as rate= does not convert {earned}"
    assert any(said in warning for warning in converted.report.warnings)


def test_a_quotient_of_several_currencies_is_refused_where_one_side_is_converted(file: WriteFile) -> None:
    lines = [
        f"{country};{'EUR' if country == 'DE' else 'GBP'};{cost:.2f};{earned:.0f};{earned / cost:.4f}"
        for country, cost, earned in (("DE", 100, 41), ("DE", 80, 20), ("AT", 50, 60), ("AT", 25, 10))
    ]
    path = file("\n".join(["Country;Currency;Cost;Clicks;Clicks / Cost", *lines, ""]))
    rate = {"EUR": 1.1, "GBP": 1.3}
    with pytest.raises(
        BadQuery, match=r"Clicks is not what rate= converts: .*income.* if it is money earned"
    ) as refused:
        gl.join(_players(), path, rate=rate, columns=["Clicks / Cost"], aggregate="sum")
    assert refused.value.field == "Clicks / Cost"


def test_money_of_a_count_is_offered_as_spent_or_earned(file: WriteFile) -> None:
    path = file("Country;Cost (EUR);Acquisti\nDE;5,50;3\nAT;6,20;4\n")
    with pytest.raises(BadQuery, match=r'"income"\} if it is money earned, roles=\{"Acquisti": "cost"\} if spent'):
        outside_data.in_dollars(path, amount="Acquisti", rate=1.1)


def test_installs_for_a_cost_are_no_return(file: WriteFile) -> None:
    """A few rounded returns fit a count by chance."""
    rows = "".join(
        f"{country};{cost};{count};{count / cost:.1f}\n"
        for country, cost, count in (("DE", 10, 4), ("FR", 10, 6), ("IT", 20, 16))
    )
    for header in ("Installs", "Conversions"):
        table = gl.read_table(file(f"Country;Cost (EUR);{header};ROI\n{rows}"))
        assert table.column(header).role == "count"


def test_money_of_no_known_currency_is_said_beside_what_a_rate_converts(file: WriteFile) -> None:
    path = file("Country;Cost (EUR);Revenue (Q);Currency of revenue\nDE;5,50;3,25;\nAT;6,20;4,75;\n")
    joined = gl.join(_players(), path, rate={"EUR": 1.1}, columns=["Cost (EUR)", "Revenue (Q)"])
    assert joined.frame["Cost (EUR)"].round(2).tolist()[:2] == [6.05, 6.82]
    assert any(warning.startswith("Revenue (Q) is money") for warning in joined.report.warnings)


@pytest.mark.parametrize(
    "header",
    [
        "Valor conv. / custo",
        "Valor de conv./coste",
        "Valeur de conv./coût",
        "コンバージョン値/費用",
        "转化价值/费用",
        "전환 가치/비용",
        "Wartość konw. / koszt",
        "Conv.waarde / kosten",
        "Ценность конв. / расход",
        "Valore conv./costo",
    ],
)
def test_a_value_for_a_cost_is_a_return(header: str) -> None:
    meaning = next(header_meanings(header))
    assert (meaning.role, meaning.of) == ("rate", ("income", "cost", 1.0))


def test_a_return_on_a_cost_with_its_fee_has_money_above(file: WriteFile) -> None:
    lines = [
        f"{country},{cost},{1.1 * cost:.2f},{earned},{earned / (1.1 * cost):.4f}" for country, cost, earned in _SPENT
    ]
    path = file("\n".join(["Country,Media cost (EUR),Cost incl. fee (EUR),Value,ROAS", *lines, ""]))
    assert gl.read_table(path).in_words()["Value"] == "income, EUR"


def test_a_profit_is_money_and_no_income(file: WriteFile) -> None:
    lines = [f"{country},{cost},{earned - cost:.2f},{(earned - cost) / cost:.4f}" for country, cost, earned in _SPENT]
    column = gl.read_table(file("\n".join(["Country,Cost (EUR),Profit,ROI", *lines, ""]))).column("Profit")
    assert (column.role, column.concept, column.currency) == ("amount", "related", "EUR")


@pytest.mark.parametrize(
    "header", ["Valore di conversione degli acquisti", "Wartość konwersji zakupów", "Purchase value"]
)
def test_what_conversions_are_worth_in_the_report_of_a_network_is_in_its_currency(file: WriteFile, header: str) -> None:
    """Elsewhere it may be of a tracker, in another one."""
    text = f"{{}}Country,Amount spent (TRY),{header}\n{{}}DE,5.5,3.25\n{{}}AT,6.5,4.5\n"
    days = ("Reporting starts,Reporting ends,", *["2026-10-01,2026-10-31,"] * 2)
    assert gl.read_table(file(text.format(*days))).column(header).currency == "TRY"
    assert gl.read_table(file(text.format("", "", ""), name="other.csv")).column(header).currency is None
