"""The formats of vendors: each has a sample of ten lines at most, and what becomes of its columns."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

import gamelens as gl
from gamelens.analysis import outside_data
from gamelens.analysis.outside_data.roles import vendor_of, vendors
from gamelens.errors import BadQuery

SAMPLES = Path(__file__).parent / "vendor_samples"
ROLES: dict[str, dict[str, Any]] = tomllib.loads((SAMPLES / "roles.toml").read_text(encoding="utf-8"))


@pytest.mark.shown_by(6)
@pytest.mark.parametrize("name", ROLES)
def test_a_sample_is_understood(name: str) -> None:
    """Its format, what a row stands for, the rows without totals, and the role of each column."""
    table = gl.read_table(SAMPLES / name)
    expected = ROLES[name]
    assert (table.vendor, table.period or "", len(table.rows)) == tuple(
        expected[it] for it in ("format", "period", "rows")
    )
    assert table.in_words() == expected["columns"]


def test_every_format_has_a_sample() -> None:
    """A row of the table without one would never be tried."""
    assert {vendor.name for vendor in vendors()} == {sample["format"] for sample in ROLES.values()}
    assert {path.name for path in SAMPLES.iterdir()} == {*ROLES, "roles.toml"}


@pytest.mark.shown_by(2)
@pytest.mark.parametrize(
    ("name", "column", "total"),
    [
        ("google_ads.csv", "Cost", 233.67),
        ("google_ads_de.csv", "Kosten", 2880.96),
        ("google_ads_pl.csv", "Koszt", 2880.96),
        ("google_ads_api.csv", "metrics.cost_micros", 129.96),
        ("ironsource_ads.csv", "spend", 141.0),
        ("meta_ads.csv", "Amount spent (EUR)", 56.65),
        ("tiktok_ads.csv", "Cost", 19.08),
        ("apple_search_ads.csv", "Spend", 29.923),
        ("play_sales.csv", "Charged Amount", 5.39),
        ("play_earnings.csv", "Amount (Merchant Currency)", 3.94),
        ("app_store_financial.txt", "Extended Partner Share", 13.7),
        ("dv360.csv", "Revenue (Adv Currency)", 308.64912),
        ("campaign_manager_360.csv", "Media Cost", 270.52),
        ("skan.csv", "postbacks", 3),
        ("play_statistics.csv", "User acquisition (All users, All events, Per interval, Daily)", 123),
    ],
)
def test_the_sum_of_a_sample_is_that_of_its_rows(name: str, column: str, total: float) -> None:
    """Without totals, with refunds below 0, in units and not millionths."""
    assert gl.read_table(SAMPLES / name).column(column).values.sum() == pytest.approx(total)


def test_a_file_of_local_midnights_has_days() -> None:
    """They end at the next midnight, also where the clock changes in between."""
    table = gl.read_table(SAMPLES / "snapchat_ads.csv")
    assert table.starts.dt.strftime("%Y-%m-%d").tolist() == ["2026-10-31", "2026-11-01", "2026-11-02"]
    assert (table.ends - table.starts).dt.days.tolist() == [1, 1, 1]


@pytest.mark.shown_by(3)
@pytest.mark.parametrize(
    ("header", "row", "format_name"),
    [
        ("By Week,Country/region,Cost,Clicks (destination),Currency", "2026-10-05,US,5.5,10,USD", "TikTok Ads Manager"),
        ("Campaign name,Cost,CPC (destination),Currency", "a,5.5,0.1,USD", "TikTok Ads Manager"),
        ("Por mes;Costo;Clics (destino);Moneda", "2026-10;5,5;10;MXN", "TikTok Ads Manager"),
        ("日別,消化金額,クリック数（遷移先）,通貨", "2026-10-05,550,10,JPY", "TikTok Ads Manager"),
        ("Mes;Fuente de anuncios;Ganancias estimadas (EUR);eCPM observado (EUR)", "oct 2026;Meta;1,5;3,2", "AdMob"),
        ("Datum;App;Beobachteter eCPM (€);Anfragen", "01.10.2026;A;3,2;40", "AdMob"),
        ("Date;Application;eCPM observé (EUR);Clics", "2026-10-01;A;3,2;40", "AdMob"),
        ("日付,アプリ,推定収益額 (JPY),実測 eCPM (JPY)", "2026-10-01,A,3,40", "AdMob"),
        ("날짜,앱,관찰된 eCPM(KRW),클릭", "2026-10-01,A,3,40", "AdMob"),
        ("Дата;Приложение;Наблюдаемый eCPM (RUB);Клики", "01.10.2026;A;3,2;40", "AdMob"),
        ("Country,Cost,Clicks (all),Currency", "US,5.5,10,USD", None),
        ("Fecha;Aplicación;eCPM (EUR);Clics", "2026-10-01;A;3,2;40", None),
    ],
)
def test_a_report_of_other_periods_or_languages_is_of_its_format(
    tmp_path: Path, header: str, row: str, format_name: str | None
) -> None:
    """A network that a file belongs to is who is paid in every row."""
    path = tmp_path / "report.csv"
    path.write_text(f"{header}\n{row}\n", encoding="utf-8")
    table = gl.read_table(path)
    assert table.vendor == format_name
    assert bool(table.of_role("network")) == (format_name == "TikTok Ads Manager" or "Fuente" in header)


def test_formats_are_listed() -> None:
    """By name, with what each is recognised by; another name brings the nearest."""
    listed = outside_data.formats("App Store sales").set_index("column")
    assert listed["is"]["Developer Proceeds"] == "price, in Currency of Proceeds, weighted by Units"
    assert outside_data.formats()["vendor"].nunique() == len(vendors())
    with pytest.raises(BadQuery, match="Did you mean `Google Ads`"):
        outside_data.formats("GoogleAds")


@pytest.mark.parametrize(
    "header",
    [
        "Jour;Campagne;Code de devise;Coût;Impressions",
        "Date,Media,Currency code,Cost",
        "Date,Campaign ID,eCPM,Spend,Installs",
        "Date,Offer Name,Spend,Ecpm",
        "day,campaign id,spend,starts",
        "Date,Notes,Spend",
        "day,network,estimated_revenue,ecpm",
    ],
)
def test_headers_that_several_vendors_write_name_none(header: str) -> None:
    """Otherwise every row would be paid to whoever is guessed, or be in its currency."""
    assert vendor_of([name for part in header.split(";") for name in part.split(",")]) is None
    assert vendor_of(header.replace(";", ",").split(",")[::-1]) is None


def test_a_line_above_says_the_vendor_of_headers_that_others_have() -> None:
    found = vendor_of(["Tag", "Kosten", "Währungscode"], ["Anzeigengruppenbericht", "1. bis 3. November 2026"])
    assert found is not None
    assert found.name == "Google Ads"


def test_what_the_advertiser_is_billed_is_a_cost() -> None:
    """Display & Video 360 calls it revenue, its own; it holds the media cost, so nobody adds up or chooses them."""
    path = SAMPLES / "dv360.csv"
    with pytest.raises(BadQuery, match=r'several costs: say which with .*amount="Revenue \(Adv Currency\)"'):
        outside_data.in_dollars(path, rate=1.2)
    spent = outside_data.in_dollars(path, "Revenue (Adv Currency)", rate=1.2)["spend"].sum()
    assert spent == pytest.approx(1.2 * 308.64912)


@pytest.mark.shown_by(2)
@pytest.mark.parametrize(
    "header", ["Advertiser revenue", "Publisher payout", "Client revenue", "Выручка рекламодателя", "広告主収益"]
)
def test_the_income_of_the_other_side_is_nobodys_guess(tmp_path: Path, header: str) -> None:
    path = tmp_path / "dsp.csv"
    path.write_text(f"Day,Campaign,{header}\n2026-11-01,A,5.5\n2026-11-02,B,6.25\n", encoding="utf-8")
    with pytest.raises(BadQuery, match=f'no column of costs .*name it with amount="{header}"'):
        outside_data.in_dollars(path, currency="USD")
    assert outside_data.in_dollars(path, header, currency="USD")["spend"].sum() == 11.75
