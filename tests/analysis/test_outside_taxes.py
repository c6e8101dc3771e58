"""Amounts that hold the tax beside amounts that do not: asked about, never one sum."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

import gamelens as gl
from gamelens.analysis import outside_data
from gamelens.errors import BadQuery
from support.outside_files import written


@pytest.mark.shown_by(3)
@pytest.mark.parametrize(
    ("header", "gross", "net"),
    [
        ("税区分", "税込", "税抜"),
        ("消費税", "内税", "外税"),
        ("备注", "含税", "不含税"),
        ("부가세 구분", "VAT 포함", "VAT별도"),
        ("Tax", "incl. VAT", "excl. VAT"),
        ("Note", "incl. 19% VAT", "plus VAT"),
        ("GST", "with GST", "w/o GST"),
        ("Price type", "Gross", "Net"),
        ("Type", "VAT included", "+ VAT"),
        ("Preisart", "brutto", "netto"),
        ("Steuer", "inkl. 19% MwSt.", "zzgl. MwSt."),
        ("Base", "TTC", "HT"),
        ("TVA", "toutes taxes comprises", "hors taxes"),
        ("Impuestos", "IVA incluido", "sin IVA"),
        ("Observaciones", "con IVA", "IVA no incluido"),
        ("Impostos", "com impostos", "sem impostos"),
        ("IVA", "IVA inclusa", "IVA esclusa"),
        ("BTW", "incl. btw", "excl. btw"),
        ("Podatek", "z VAT", "bez VAT"),
        ("Moms", "inkl. moms", "ekskl. moms"),
        ("НДС", "с НДС", "без НДС"),
        ("Vergi", "KDV dahil", "KDV hariç"),
        ("DPH", "s DPH", "bez DPH"),
        ("PPN", "termasuk PPN", "belum termasuk PPN"),
        ("Thuế", "đã gồm VAT", "chưa VAT"),
        ("VAT included?", "yes", "no"),
        ("税込", "○", ""),
        ("Netto?", "nein", "ja"),
        ("Vendor", "Agency A (incl. VAT)", "Agency B (excl. VAT)"),
    ],
)
def test_amounts_of_two_tax_bases_are_asked_about(tmp_path: Path, header: str, gross: str, net: str) -> None:
    """The refusal names both texts, and the steps that it names work; amounts of one basis are one sum."""
    rows = [f"2026-11-0{day},c{day % 2},{gross if day % 3 else net},1{day}" for day in range(1, 7)]
    path = written(tmp_path / "bills.csv", f"Day,Campaign,{header},Cost (EUR)", *rows)
    with pytest.raises(BadQuery, match=r"Cost .EUR. holds amounts with and without tax by") as refused:
        outside_data.in_dollars(path, rate=1.0)
    for texts, total in (([gross], 29), ([net], 52), ([], 81)):
        assert f"leave_out={ {header: texts}!r}" in str(refused.value)
        assert outside_data.in_dollars(path, rate=1.0, leave_out={header: texts})["spend"].sum() == total
    alone = written(tmp_path / "one.csv", f"Day,Campaign,{header},Cost (EUR)", *(rows[place] for place in (0, 1, 3, 4)))
    assert gl.read_table(alone).column("Cost (EUR)").problem is None


@pytest.mark.shown_by(2)
@pytest.mark.parametrize(
    ("header", "amount", "texts"),
    [
        ("税区分", "金額 (JPY)", ("税込", "対象外")),
        ("Tax", "Cost (EUR)", ("excl. VAT", "reverse charge")),
        ("VAT", "Cost (EUR)", ("19%", "7%")),
        ("Note", "Cost incl. VAT (EUR)", ("incl. VAT", "")),
        ("Creative", "Cost (EUR)", ("Net", "Fish")),
        ("Campaign", "Cost (EUR)", ("HT_Haiti", "TTC_Trinidad")),
        ("Adset", "Cost (EUR)", ("Tax season with app", "Free with VAT")),
        ("Country", "Cost (EUR)", ("HT", "NE")),
        ("Network", "Cost (EUR)", ("Netflix", "Internet")),
    ],
)
def test_one_basis_or_none_is_not_asked_about(tmp_path: Path, header: str, amount: str, texts: tuple[str, str]) -> None:
    rows = [f"2026-11-0{day},{texts[day % 2]},1{day}" for day in range(1, 7)]
    path = written(tmp_path / "bills.csv", f"Day,{header},{amount}", *rows)
    assert outside_data.in_dollars(path, amount=amount, rate=1.0)["spend"].sum() == 81


def test_amounts_whose_basis_some_rows_do_not_say_are_asked_about(tmp_path: Path) -> None:
    rows = ["2026-11-01,incl. VAT,119", "2026-11-02,,100", "2026-11-03,,50"]
    path = written(tmp_path / "bills.csv", "Day,Comment,Cost (EUR)", *rows)
    with pytest.raises(BadQuery, match=r"by Comment, 'incl\. VAT' and no value, .*leave_out=\{'Comment': \[''\]\}"):
        outside_data.in_dollars(path, rate=1.0)
    assert outside_data.in_dollars(path, rate=1.0, leave_out={"Comment": ["incl. VAT"]})["spend"].sum() == 150


def test_flags_of_a_frame_tell_the_basis() -> None:
    for flags in ([True, False], [1, 0]):
        frame = pd.DataFrame({"Day": ["2026-11-01", "2026-11-02"], "vat_included": flags, "Cost (EUR)": [119.0, 100]})
        with pytest.raises(BadQuery, match="with and without tax by vat_included"):
            outside_data.in_dollars(gl.read_table(frame), rate=1.0)


@pytest.mark.shown_by(2)
@pytest.mark.parametrize(
    "headers",
    [
        ("Cost net", "Cost gross"),
        ("Cost", "Gross"),
        ("Kosten", "Brutto"),
        ("Coût HT", "Montant TTC"),
        ("Coste", "Importe con IVA"),
        ("費用", "税込金額"),
        ("Betrag netto", "Betrag brutto"),
    ],
)
def test_net_and_gross_columns_are_chosen_by_nobody_else(tmp_path: Path, headers: tuple[str, str]) -> None:
    rows = [f"2026-11-0{day},{day}00,{day}19" for day in range(1, 7)]
    path = written(tmp_path / "bills.csv", f"Day,{headers[0]},{headers[1]}", *rows)
    with pytest.raises(BadQuery, match=f'amount="{headers[0]}" or amount="{headers[1]}"'):
        outside_data.in_dollars(path, currency="EUR", rate=1.0)
    found = outside_data.in_dollars(path, amount=headers[1], currency="EUR", rate=1.0)
    assert found["spend"].sum() == 2214


def test_a_profit_beside_a_cost_is_no_other_basis(tmp_path: Path) -> None:
    rows = [f"2026-11-0{day},{day}00,{day}19,{day}" for day in range(1, 7)]
    path = written(tmp_path / "bills.csv", "Day,Cost (USD),Gross revenue (USD),Gross profit", *rows)
    assert outside_data.in_dollars(path)["spend"].sum() == 2100


@pytest.mark.shown_by(2)
@pytest.mark.parametrize(
    "header",
    ["Spesa,IVA 22%,Totale fattura", "खर्च (₹),GST 18% (₹),कुल (₹)", "Cost,VAT,Due", "Maliyet,KDV,Toplam borç"],
)
@pytest.mark.filterwarnings("ignore:.* is taken in ")
def test_a_sum_of_a_cost_and_its_tax_is_another_basis(tmp_path: Path, header: str) -> None:
    """Whatever it is called; without a column of the tax nothing is searched."""
    rows = [f"2026-11-0{day},{day}00,{day * 2}0,{day * 12}0" for day in range(1, 7)]
    path = written(tmp_path / "bills.csv", f"Day,{header}", *rows)
    net, _, gross = header.split(",")
    with pytest.raises(BadQuery, match=r"costs with and without tax|several amounts") as refused:
        outside_data.in_dollars(path, currency="USD")
    assert f'amount="{net}" or amount="{gross}"' in str(refused.value)
    assert outside_data.in_dollars(path, gross, currency="USD")["spend"].sum() == 2520


@pytest.mark.parametrize("header", ["부가세", "GST 18% (₹)", "MwSt. 19 %", "Agenturhonorar 8 %", "消費税"])
def test_a_tax_or_a_fee_is_proposed_for_no_cost(tmp_path: Path, header: str) -> None:
    path = written(tmp_path / "bills.csv", f"Day,{header},X", "2026-11-01,18.5,118.5", "2026-11-02,9.5,59.5")
    with pytest.raises(BadQuery) as refused:
        outside_data.in_dollars(path, currency="USD")
    assert f'amount="{header}"' not in str(refused.value)
    assert 'amount="X"' in str(refused.value)
