"""Bills, budgets and statements: subtotals, taxes and notes among the rows, which count nowhere without a word."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import gamelens as gl
from gamelens.analysis import outside_data
from gamelens.errors import BadQuery
from support.outside_files import written
from support.tidy_frames import tidy_frame

EUROS = {"EUR": 1.0}


@pytest.mark.filterwarnings("ignore:row 9 of bill.csv without a day counts")
@pytest.mark.parametrize(
    ("header", "subtotal", "net", "tax", "gross", "period"),
    [
        ("N°;Prestation;Régie;Pays;Période;Montant (EUR)", "Sous-total média",
         "Total HT", "TVA 20 %", "Total TTC", "01/10/2026 – 31/10/2026"),
        ("Pos.;Leistung;Kanal;Land;Zeitraum;Betrag (EUR)", "Summe Schaltung",
         "Netto", "zuzüglich 20 % USt", "Bruttobetrag", "1.10.2026 - 31.10.2026"),
        ("No;Service;Channel;Country;Service period;Amount (EUR)", "Media subtotal",
         "Net amount", "plus VAT @ 20%", "Amount due", "1 Oct 2026 – 31 Oct 2026"),
        ("Nº;Concepto;Canal;País;Periodo;Importe (EUR)", "Subtotal medios",
         "Total neto", "IVA (20%)", "Total a pagar", "01/10/2026 – 31/10/2026"),
    ],
)  # fmt: skip
def test_the_tail_of_a_bill_is_one_question_about_its_tax(
    tmp_path: Path, header: str, subtotal: str, net: str, tax: str, gross: str, period: str
) -> None:
    """Sums count nowhere, and a label in the column of periods leaves the positions theirs."""
    rows = [
        *(f"{place};Media;{name};{land};{period};{cost}" for place, name, land, cost in (
            (1, "Meta", "FR", 1200.40), (2, "TikTok", "BE", 810.15), (3, "Google Ads", "FR", 655.30))),
        f";;;;{subtotal};2665.85",
        f"4;Setup;;;{period};266.59",
        f"5;Loyalty;;;{period};-50.00",
        f";;;;{net};2882.44",
        f";;;;{tax};576.49",
        f";;;;{gross};3458.93",
    ]  # fmt: skip
    path = written(tmp_path / "bill.csv", header, *rows)
    label = header.split(";")[4]
    table = gl.read_table(path, decimal=".")
    assert {f"{day:%Y-%m-%d}" for day in table.starts.dropna()} == {"2026-10-01"}
    with pytest.raises(BadQuery) as refused:
        outside_data.in_dollars(path, rate=EUROS, decimal=".")
    asked = f"leave_out={ {label: [tax]}!r} leaves"
    assert asked in str(refused.value)
    for texts, total in (([tax], 2882.44), ([], 3458.93)):
        costs = outside_data.in_dollars(path, rate=EUROS, decimal=".", leave_out={label: texts})
        assert costs["spend"].sum() == pytest.approx(total)


INVOICE = [
    "1,Prospecting,SE,1200000,2640.10",
    ",o/w rewarded,SE,,1020.00",
    "2,Retargeting,SE,480000,1311.45",
    ",o/w rewarded,SE,,402.30",
    ",Sub-total Sweden,,1680000,3951.55",
    "3,Prospecting,NO,900000,2105.85",
    ",o/w rewarded,NO,,760.25",
    "4,Retargeting,NO,310000,990.40",
    ",Sub-total Norway,,1210000,3096.25",
    ",Total media,,2890000,7047.80",
    ",Credit note for invalid clicks (Aug 2026),,,-310.55",
    ",Balance due,,,6737.25",
]


def test_all_doubts_of_a_column_are_one_question(tmp_path: Path) -> None:
    """Parts of rows do not hide the sums of the others, and what is below a total is asked about with them."""
    path = written(tmp_path / "dsp.csv", "Line,Item,Country,Impressions,Amount (USD)", *INVOICE)
    with pytest.raises(BadQuery) as refused:
        outside_data.in_dollars(path)
    said = str(refused.value)
    credit, part = "Credit note for invalid clicks (Aug 2026)", "o/w rewarded"
    assert repr(credit) in said
    assert repr(part) in said
    assert "Sub-total" not in said
    assert "and a list of some leaves these out alone" in said
    for texts, total in (([credit, part], 7047.80), ([part], 6737.25)):
        assert outside_data.in_dollars(path, leave_out={"Item": texts})["spend"].sum() == pytest.approx(total)
    notes = gl.read_table(path, leave_out={"Item": [part]}).notes
    assert f"row 12 of dsp.csv with {credit!r} in Item counts, as leave_out= names others" in notes
    with pytest.warns(
        UserWarning, match=r"count, which leave_out= does not name: leave_out={'Item': .'Sub-total Norway', "
    ):
        outside_data.in_dollars(path, leave_out={"Item": ["Sub-total Norway"]})


@pytest.mark.parametrize(
    "text",
    ["Previous year", "Vorjahr (Budget 2025)", "Budget 2025", "Año anterior", "Actual 2025",
     "N-1", "Last year's budget", "前年", "Rok poprzedni"],
)  # fmt: skip
@pytest.mark.parametrize("total", ["Total marketing", ""])
def test_a_row_below_the_total_of_a_budget_is_asked_about(tmp_path: Path, text: str, total: str) -> None:
    """So is the previous year in a budget without a total."""
    rows = ["UA Europe,210.5,190.25", "of which Meta,80,75.5", "Events,96.75,104.5", "Tools,45.25,41.3"]
    rows += [f"{total},352.5,336.05"] if total else []
    path = written(tmp_path / "plan.csv", "Item,Q1 2027,Q2 2027", *rows, f"{text},301.2,280.4")
    said: dict[str, Any] = {"roles": {"value": "cost"}, "currency": "EUR", "rate": EUROS}
    with pytest.raises(BadQuery) as refused:
        outside_data.in_dollars(path, **said)
    assert repr(text) in str(refused.value)
    assert "'of which Meta'" in str(refused.value)
    left = outside_data.in_dollars(path, **said, leave_out={"Item": [text, "of which Meta"]})
    assert left["spend"].sum() == pytest.approx(352.5 + 336.05)


def test_rows_of_the_next_block_below_a_total_are_not_asked_about(tmp_path: Path) -> None:
    rows = ["US,Meta,10.5", "US,Unity,20.25", "Total US,,30.75", "DE,Meta,7.5", "DE,Unity,8.25", "Total DE,,15.75"]
    path = written(tmp_path / "blocks.csv", "Country,Network,Cost (USD)", *rows)
    assert outside_data.in_dollars(path)["spend"].sum() == 46.5


@pytest.mark.parametrize(
    "text",
    ["Forecast Nov", "Plan KW 48", "Prognose Dez 2026", "Budget Q4", "Prévision novembre", "Target Dec", "11月予測"],
)
@pytest.mark.parametrize("header", ["Week", "OS", "Channel"])
def test_a_plan_among_names_is_asked_about_with_other_labels(tmp_path: Path, text: str, header: str) -> None:
    rows = [f"{day},{name},{cost}" for day, name, cost in (("2026-11-02", "A1", 10), ("2026-11-03", "B2", 20))]
    rows += ["2026-11-04,MTD Nov,30", f"2026-11-05,{text},500"]
    path = written(tmp_path / "weekly.csv", f"Day,{header},Cost (USD)", *rows)
    with pytest.raises(BadQuery) as refused:
        outside_data.in_dollars(path)
    assert f"leave_out={ {header: ['MTD Nov', text]}!r} leaves them out" in str(refused.value)
    assert outside_data.in_dollars(path, leave_out={header: ["MTD Nov", text]})["spend"].sum() == 30


@pytest.mark.parametrize("text", ["Tax (19%)", "VAT 20%", "MwSt. 7 %", "IVA", "消費税 10%", "GST @ 18%"])
@pytest.mark.parametrize("header", ["Cost type", "Line kind", "Description", "Resource"])
def test_a_row_of_a_tax_is_asked_about_in_any_column(tmp_path: Path, text: str, header: str) -> None:
    rows = ["alpha,Usage,2026-10-01,100.25", "beta,Usage,2026-10-01,200.5", f",{text},,57.14"]
    path = written(tmp_path / "cloud.csv", f"Project,{header},Start,Cost (EUR)", *rows)
    with pytest.raises(BadQuery, match="counts rows of") as refused:
        outside_data.in_dollars(path, rate=EUROS)
    assert f"leave_out={ {header: [text]}!r} leaves" in str(refused.value)
    left = outside_data.in_dollars(path, rate=EUROS, leave_out={header: [text]})
    assert left["spend"].sum() == 300.75


@pytest.mark.parametrize(
    "text",
    ["전월 정산 조정", "Correction of last month's statement", "前月分の調整額", "Korrektur der Abrechnung September"],
)
def test_a_correction_without_the_names_of_others_is_asked_about(tmp_path: Path, text: str) -> None:
    rows = [
        f"2026-{month},{land},Gems {land},{cost}" for month in ("09", "10") for land, cost in (("KR", 500), ("JP", 300))
    ]
    path = written(tmp_path / "store.csv", "Month,Country,Product,Revenue (KRW)", *rows, f"2026-10,,{text},-48")
    with pytest.raises(BadQuery, match="counts rows of") as refused:
        outside_data.in_dollars(path, "Revenue (KRW)", rate={"KRW": 1.0})
    assert repr(text) in str(refused.value)
    counted = outside_data.in_dollars(path, "Revenue (KRW)", rate={"KRW": 1.0}, leave_out={"Product": []})
    assert counted["spend"].sum() == 1552


def test_a_dispute_is_subtracted_by_its_sign_and_a_payout_is_asked_about(tmp_path: Path) -> None:
    """The shop bears a dispute and its fees; a payout only moves money."""
    rows = [f"2026-10-0{day},sale,{amount},{fee}" for day, amount, fee in ((1, 50, 2), (2, 30, 1), (3, 20, 1))]
    rows += ["2026-10-04,dispute,-30,15", "2026-10-05,refund,-20,0", "2026-10-06,payout,-40,0"]
    path = written(tmp_path / "shop.csv", "Day,Type,Amount (USD),Fee (USD)", *rows)
    with pytest.raises(BadQuery, match="counts rows of 'payout'"):
        outside_data.in_dollars(path, "Amount (USD)")
    assert outside_data.in_dollars(path, "Amount (USD)", leave_out={"Type": ["payout"]})["spend"].sum() == 50
    assert outside_data.in_dollars(path, "Fee (USD)")["spend"].sum() == 19


@pytest.mark.parametrize(("every", "said", "total"), [("all", "count", 330.5), ("day", "are left out", 300.5)])
def test_costs_without_a_day_are_said_to_count_where_they_do(
    tmp_path: Path, every: str, said: str, total: float
) -> None:
    days = ("2026-10-01", "2026-10-31") if every == "all" else ("2026-10-01", "2026-10-01")
    rows = [f"alpha,{days[0]},{days[1]},100.5", f"beta,{days[0]},{days[1]},200", "setup,,,30"]
    path = written(tmp_path / "cloud.csv", "Project,Start,End,Cost (USD)", *rows)
    installs = tidy_frame("new_users", timestamp=["2026-10-01"], new_users=[100])
    interval = "2026-10-01/2026-11-01" if every == "all" else "2026-10-01/2026-10-02"
    installs.attrs["gamelens"]["asked"] |= {"every": every, "interval": interval}
    with pytest.warns(UserWarning, match=f"30.00 of 330.50 USD {said}: row 4 of cloud.csv without a day"):
        costs = outside_data.cost_per_install(installs, spend=path)
    assert costs["spend"].sum() == total


@pytest.mark.parametrize(
    ("title", "code"), [("Weekly update (US$, UTC)", "USD"), ("Spend report, A$", "AUD"), ("Team costs CAD", "CAD")]
)
def test_a_title_says_which_dollar(tmp_path: Path, title: str, code: str) -> None:
    """A title with an amount says nothing of others."""
    rows = ["2026-11-02,$10.50", "2026-11-03,$20.25"]
    path = written(tmp_path / "update.csv", title, "", "Day,Spend", *rows)
    assert gl.read_table(path).column("Spend").currency == code
    capped = written(tmp_path / "capped.csv", "Weekly update; cap of US$ 5,000", "", "Day,Spend", *rows)
    assert gl.read_table(capped).column("Spend").currency is None


def test_a_text_among_the_periods_of_a_bill_is_asked_about(tmp_path: Path) -> None:
    """Also one whose words say nothing, and without a total above it."""
    rows = [f"{place},Meta,1 Oct 2026 - 31 Oct 2026,{cost}" for place, cost in ((1, 10.5), (2, 20.25))]
    path = written(
        tmp_path / "bill.csv", "No,Channel,Period,Cost (USD)", *rows, ",,Rest of order 77,5", ",,Total,35.75"
    )
    with pytest.raises(BadQuery, match="counts rows of 'Rest of order 77'"):
        outside_data.in_dollars(path)
    with pytest.warns(UserWarning, match="the total of row 5 of bill.csv is 35.75, its rows add up to 30.75"):
        costs = outside_data.in_dollars(path, leave_out={"Period": ["Rest of order 77"]})
    assert costs["spend"].sum() == 30.75


def test_a_month_that_holds_the_weeks_of_a_name_is_asked_about(tmp_path: Path) -> None:
    """So is one of all names; campaigns of other names may have longer periods."""
    weeks = ["5 Oct 2026 – 11 Oct 2026", "12 Oct 2026 – 18 Oct 2026"]
    rows = [f"{week},{name},10" for week in weeks for name in ("iOS", "Android")]
    for name in ("iOS", "all", ""):
        path = written(tmp_path / "weeks.csv", "Dates,OS,Cost (USD)", *rows, f"1 Oct 2026 – 31 Oct 2026,{name},100")
        with pytest.raises(
            BadQuery, match=r"row 6 of weeks.csv stands for several days, and other rows for parts of them"
        ):
            outside_data.in_dollars(path)
        assert outside_data.in_dollars(path, leave_out={"Dates": []})["spend"].sum() == 140
    path = written(tmp_path / "other.csv", "Dates,Creator,Cost (USD)", *rows, "1 Oct 2026 – 31 Oct 2026,Nova,100")
    assert outside_data.in_dollars(path)["spend"].sum() == 140


def test_labels_among_days_count_where_the_reader_says_so(tmp_path: Path) -> None:
    """Nothing is told again of what an argument answers."""
    rows = [f"2026-10-0{day},{day}0.5,7" for day in (1, 2, 3)]
    path = written(tmp_path / "daily.csv", "Date,Meta (USD),Unity (USD)", *rows, "Total,61.5,21", "Reserve,8,5")
    with pytest.raises(BadQuery, match=r"counts rows of 'Reserve' .Date., below a total that is without them"):
        outside_data.in_dollars(path, "Meta (USD)")
    assert outside_data.in_dollars(path, "Meta (USD)", leave_out={"Date": ["Reserve"]})["spend"].sum() == 61.5
    assert outside_data.in_dollars(path, "Meta (USD)", leave_out={"Date": []})["spend"].sum() == 69.5


def test_the_total_of_one_name_is_no_total_of_all(tmp_path: Path) -> None:
    rows = ["A,a1,10.25", "A,a2,20.5", "Total A,,30.75", "B,,5.5", "C,,6.25", "Total,,42.5"]
    path = written(tmp_path / "groups.csv", "Campaign,Ad group,Cost (USD)", *rows)
    assert outside_data.in_dollars(path)["spend"].sum() == 42.5


def test_several_taxes_and_a_payment_in_advance_are_one_question(tmp_path: Path) -> None:
    rows = ["Anzeigen Meta;Oktober 2026;1000,50", "Anzeigen Reddit;Oktober 2026;500,25", "Schulung;Oktober 2026;100,00"]
    rows += ["Summe netto;;1600,75", "MwSt 19%;;285,14", "MwSt 7%;;7,00", "Summe brutto;;1892,89"]
    rows += ["abzgl. Anzahlung;;-500,00", "Restbetrag;;1392,89"]
    path = written(tmp_path / "beleg.csv", "Leistung;Monat;Kosten EUR", *rows)
    with pytest.raises(BadQuery, match="counts rows of") as refused:
        outside_data.in_dollars(path, rate=EUROS)
    texts = ["MwSt 19%", "MwSt 7%", "abzgl. Anzahlung"]
    assert f"leave_out={ {'Leistung': texts}!r} leaves them out" in str(refused.value)
    left = outside_data.in_dollars(path, rate=EUROS, leave_out={"Leistung": texts})
    assert left["spend"].sum() == pytest.approx(1600.75)
