"""Rates as central banks publish them: prices of several units in another currency, names below codes, trailers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

import gamelens as gl
from gamelens.analysis import outside_data
from gamelens.analysis.outside_data.bank_rates.quoted_rates import quote_in
from gamelens.analysis.outside_data.rates import DailyRates
from gamelens.errors import BadQuery

WriteFile = Callable[..., Path]

SAMPLES = Path(__file__).parent / "vendor_samples"


def _rate(rate: object, code: str, day: str) -> float:
    days = pd.Series(pd.to_datetime([day], utc=True))
    return float(DailyRates(rate).of_days(code, days).iloc[0])


@pytest.mark.shown_by(3)
@pytest.mark.parametrize(
    ("name", "code", "day", "rate"),
    [
        ("nbp_rates.csv", "EUR", "2026-10-30", 4.2659 / 3.6453),
        ("nbp_rates.csv", "JPY", "2026-11-01", 0.024286 / 3.6453),
        ("nbp_rates.csv", "PLN", "2026-11-02", 1 / 3.6512),
        ("cnb_rates.txt", "HUF", "2026-10-30", 0.06248 / 20.765),
        ("cnb_rates.txt", "CZK", "2026-10-30", 1 / 20.765),
        ("cnb_day_rates.txt", "JPY", "2026-11-28", 0.1383 / 20.78),
        ("cbr_rates.csv", "RUB", "2026-11-01", 1 / 81.502),
        ("nbu_rates.json", "JPY", "2026-11-02", 0.2951 / 44.56),
        ("nbu_rates.json", "UAH", "2026-10-30", 1 / 44.51),
        ("snb_rates.csv", "JPY", "2026-10-14", 0.5298 / 100 / 0.8012),
        ("snb_rates.csv", "CHF", "2026-09-30", 1 / 0.7981),
        ("riksbank_rates.csv", "JPY", "2026-10-04", 0.062510 / 9.4411),
        ("riksbank_rates.csv", "SEK", "2026-10-01", 1 / 9.4321),
        ("riksbank_series.csv", "EUR", "2026-10-05", 11.04 / 9.45),
        ("mnb_rates.csv", "JPY", "2026-10-01", 2.3013 / 340.22),
        ("mnb_rates.csv", "HUF", "2026-10-02", 1 / 341.22),
        ("bundesbank_rates.csv", "EUR", "2026-10-01", 1.0812),
        ("ecb_portal_rates.csv", "EUR", "2026-07-03", 1.125),
        ("ecb_portal_rates.csv", "EUR", "2026-07-05", 1.125),
        ("ecb_portal_rates.csv", "NOK", "2026-07-06", 1.12 / 11.198),
        ("boc_rates.csv", "EUR", "2026-10-30", 1.6234 / 1.3941),
        ("boc_rates.csv", "CAD", "2026-10-30", 1 / 1.3941),
        ("fed_rates.csv", "EUR", "2026-10-30", 1.1655),
        ("fed_rates.csv", "JPY", "2026-10-29", 1 / 151.05),
        ("fred_rates.csv", "MXN", "2026-11-02", 1 / 18.4),
        ("tcmb_rates.csv", "GBP", "2026-10-30", 56.202 / 42.0512),
        ("fbil_rates.csv", "JPY", "2026-10-30", 0.5866 / 88.701),
    ],
)
def test_dollars_for_one_unit_by_the_file_of_a_bank(name: str, code: str, day: str, rate: float) -> None:
    """Also of a day without a rate, which has the one before it."""
    assert _rate(SAMPLES / name, code, day) == pytest.approx(rate, rel=1e-6)


def test_a_file_of_a_bank_that_is_no_utf8_is_a_rate(tmp_path: Path, file: WriteFile) -> None:
    """Its codes and numbers are the same in all encodings."""
    path = tmp_path / "archiwum_tab_a.csv"
    path.write_bytes((SAMPLES / "nbp_rates.csv").read_text(encoding="utf-8").encode("cp1250"))
    spend = file("Date,Cost (PLN)\n2026-10-29,36364\n2026-10-30,36453\n")
    assert outside_data.in_dollars(spend, rate=path)["spend"].tolist() == pytest.approx([10_000, 10_000])


@pytest.mark.parametrize(
    "text",
    [
        "Date,USD,EUR,100 JPY,SEK\n2026-10-29,9.42,10.97,6.24,1\n",
        "Data;EUR;USD;100HUF\n2026-10-29;5,0921;4,3693;1,3193\n2026-10-30;5,0930;4,3700;1,3200\n",
        "Datum;USD 1;EUR 1;JPY 100\n2026-10-29;0,7982;0,9303;0,5280\n2026-10-30;0,7990;0,9310;0,5290\n",
        "Period,EUR/NOK,USD/NOK,GBP/NOK\n2026-10-29,11.65,10.00,13.30\n2026-10-30,11.66,10.01,13.31\n",
        "Date,Code,Units,Rate\n2026-10-29,USD,1,1.3012\n2026-10-29,EUR,1,1.5165\n2026-10-29,JPY,100,0.861\n",
    ],
)
def test_a_bank_that_no_format_knows(file: WriteFile, text: str) -> None:
    """The dollar among its currencies is enough, whatever the bank's own is."""
    assert _rate(file(text, "rates.csv"), "EUR", "2026-10-29") == pytest.approx(1.1655, rel=5e-3)


@pytest.mark.parametrize(
    ("header", "quote"),
    [
        ("100JPY", ("JPY", "", 100)),
        ("1 USD", ("USD", "", 1)),
        ("JPY100", ("JPY", "", 100)),
        ("JPY (100)", ("JPY", "", 100)),
        ("FXEURCAD", ("EUR", "CAD", 1)),
        ("INR / 100 YEN", ("JPY", "INR", 100)),
        ("USD", None),
        ("Cost (USD)", None),
        ("10 MAX", None),
        ("1TOP", None),
        ("CPI10", None),
    ],
)
def test_what_a_header_quotes(header: str, quote: tuple[str, str, int] | None) -> None:
    assert quote_in(header) == quote


def test_rows_that_name_currencies_are_said(file: WriteFile) -> None:
    table = gl.read_table(SAMPLES / "nbp_rates.csv")
    assert "rows 2, 7, 8, 9 of nbp_rates.csv name currencies or units, and are left out" in table.notes


def test_rates_without_dollars_and_two_of_one_pair_are_refused(file: WriteFile) -> None:
    with pytest.raises(BadQuery, match="and none of US dollars: pass a file that has both"):
        DailyRates(file("data;1EUR;1GBP;nr tabeli\n20261029;4,26;4,86;1\n20261030;4,26;4,86;2\n"))
    both = "Tarih;TP DK USD A YTL;TP DK USD S YTL\n30-10-2026;42,05;42,12\n02-11-2026;42,06;42,13\n"
    path = file(both, "both.csv")
    with pytest.raises(BadQuery, match="has two columns of rates of USD"):
        DailyRates(path)
    left = gl.read_table(path, roles={"TP DK USD S YTL": "text"})
    assert _rate(left, "TRY", "2026-10-30") == pytest.approx(1 / 42.05)


def test_rates_far_from_the_usual_are_refused(file: WriteFile) -> None:
    """Dollars for one, in columns that say zlotys."""
    text = "data;1USD;1EUR;1GBP;nr tabeli\n20261029;3,64;0,85;4,86;1\n20261030;3,64;0,86;4,86;2\n"
    with pytest.raises(BadQuery, match="has rates of EUR that are far from the usual one"):
        DailyRates(file(text))


def test_prices_of_one_currency_are_no_rates(file: WriteFile) -> None:
    """Purchases by what they cost."""
    table = gl.read_table(file("Date,1 USD,10 USD\n2026-11-01,5,2\n2026-11-02,6,1\n2026-11-03,7,4\n"))
    assert not table.of_role("exchange_rate")


def test_rates_of_a_bank_with_names_of_its_own_are_renamed_as_the_refusal_says(file: WriteFile) -> None:
    path = file("Date,XUDLUSS,XUDLERS\n2026-10-28,1.3301,1.1420\n2026-10-29,1.3310,1.1425\n2026-10-30,1.3311,1.1426\n")
    with pytest.raises(BadQuery, match=r"frame\.rename\(columns=\{'XUDLUSS': 'usd_per_eur'\}\)"):
        DailyRates(path)
    renamed = gl.read_table(path).frame.rename(columns={"XUDLUSS": "usd_per_gbp"})
    assert _rate(renamed, "GBP", "2026-10-30") == pytest.approx(1.3311)


SDMX = (
    "FREQ,BASE_CUR,Valuta,QUOTE_CUR,DECIMALS,UNIT_MULT,TIME_PERIOD,OBS_VALUE\n"
    "B,USD,US dollar,SEK,4,0,2026-10-29,9.4210\nB,EUR,Euro,SEK,4,0,2026-10-29,10.9720\n"
    "B,JPY,Yen,SEK,4,2,2026-10-29,6.2400\nB,USD,US dollar,SEK,4,0,2026-10-30,9.4300\n"
    "B,EUR,Euro,SEK,4,0,2026-10-30,10.9800\nB,JPY,Yen,SEK,4,2,2026-10-30,6.2500\n"
)


@pytest.mark.shown_by(2)
@pytest.mark.parametrize(
    ("text", "code", "expected"),
    [
        (SDMX, "EUR", 10.972 / 9.421),
        (SDMX, "JPY", 6.24 / 100 / 9.421),
        (SDMX, "SEK", 1 / 9.421),
        (
            "KEY,CURRENCY,CURRENCY_DENOM,TIME_PERIOD,OBS_VALUE,DECIMALS,UNIT_MULT\n"
            "a,USD,EUR,2026-10-29,1.1655,4,0\nb,PLN,EUR,2026-10-29,4.2513,4,0\n"
            "a,USD,EUR,2026-10-30,1.1660,4,0\nb,PLN,EUR,2026-10-30,4.2500,4,0\n",
            "PLN",
            1.1655 / 4.2513,
        ),
        (
            "date;base;target;rate\n2026-10-29;USD;CHF;0.7982\n2026-10-29;EUR;CHF;0.9303\n2026-10-30;USD;CHF;0.799\n",
            "EUR",
            0.9303 / 0.7982,
        ),
        (
            "date,from_currency,to_currency,rate\n2026-10-29,EUR,USD,1.1655\n2026-10-29,USD,JPY,151.05\n",
            "JPY",
            1 / 151.05,
        ),
    ],
)
def test_each_row_names_both_currencies(file: WriteFile, text: str, code: str, expected: float) -> None:
    """Codes in two columns say which pair a row is of, whatever the bank; decimals and powers of ten are no rates."""
    assert _rate(file(text, "dump.csv"), code, "2026-10-29") == pytest.approx(expected, rel=1e-6)


def test_numbers_of_a_currency_and_groups_are_no_rates(file: WriteFile) -> None:
    """Also where a column repeats the rate for one unit."""
    text = "day,numeric,iso,quantity,rate,rate_for_one,tier\n"
    for day, dollar, euro, yen in (("2026-10-29", 3.6453, 4.2659, 2.4286), ("2026-10-30", 3.6512, 4.27, 2.43)):
        text += f"{day},840,USD,1,{dollar},{dollar},2\n{day},978,EUR,1,{euro},{euro},1\n"
        text += f"{day},392,JPY,100,{yen},{yen / 100:.6f},1\n"
    assert _rate(file(text, "plain.csv"), "JPY", "2026-10-29") == pytest.approx(0.024286 / 3.6453)
    one_day = "".join(line + "\n" for line in text.splitlines()[:4])
    assert _rate(file(one_day, "day.csv"), "EUR", "2026-10-29") == pytest.approx(4.2659 / 3.6453)


def test_two_columns_of_rates_are_still_asked_about(file: WriteFile) -> None:
    text = "day,iso,buy,sell\n2026-10-29,USD,3.61,3.68\n2026-10-29,EUR,4.2,4.3\n2026-10-30,USD,3.6,3.7\n"
    with pytest.raises(BadQuery, match="several columns that may be rates") as refused:
        DailyRates(file(text, "counter.csv"))
    assert refused.value.allowed == ("buy", "sell")


def test_rates_by_pair_far_from_the_usual_are_refused(file: WriteFile) -> None:
    text = SDMX.replace(",10.9720", ",98.7").replace(",10.9800", ",98.8")
    with pytest.raises(BadQuery, match="has rates of EUR that are far from the usual one"):
        DailyRates(file(text, "dump.csv"))


def test_a_sheet_of_rates_without_days_is_an_argument(tmp_path: Path) -> None:
    """The refusal has the rates, whatever their direction, as far as it can be told."""
    path = tmp_path / "fx.csv"
    path.write_text("Ccy,Rate\nEUR,0.92\nJPY,151.2\nGBP,0.79\n", encoding="utf-8")
    with pytest.raises(BadQuery, match=r"rate=\{'EUR': 1.08696, 'GBP': 1.26582, 'JPY': 0.00661376\} takes them"):
        DailyRates(path)


def test_a_day_with_several_rates_of_one_currency_is_refused(tmp_path: Path) -> None:
    """Such as the mean of a month and its last day."""
    rows = [
        f"2026-10;{kind};{code};{rate}" for kind in ("M0", "M1") for code, rate in (("USD1", 0.8), ("JPY100", 0.53))
    ]
    path = tmp_path / "snb.csv"
    path.write_text("\n".join(["Date;D0;D1;Value", *rows, ""]), encoding="utf-8")
    with pytest.raises(BadQuery, match=r"leave_out=\{'D0': \['M1'\]\} leaves one"):
        DailyRates(path)
    left = DailyRates(gl.read_table(path, leave_out={"D0": ["M1"]}))
    day = pd.Series(pd.to_datetime(["2026-10-05"], utc=True))
    assert left.of_days("JPY", day).iloc[0] == pytest.approx(0.53 / 0.8 / 100)


def test_units_that_a_series_does_not_say_are_an_argument(tmp_path: Path) -> None:
    """A rate that is a hundred times the usual one may be of a hundred."""
    path = tmp_path / "riksbank.csv"
    path.write_text("Datum;SEKUSDPMI;SEKJPYPMI\n2026-10-01;9,43;6,24\n2026-10-02;9,45;6,25\n", encoding="utf-8")
    with pytest.raises(BadQuery, match=r"if they are of 100 JPY, roles=(.*) of gl.read_table says so") as refused:
        DailyRates(path)
    stated = {"SEKJPYPMI": {"role": "exchange_rate", "scale": 0.01}}
    assert repr(stated) in str(refused.value)
    day = pd.Series(pd.to_datetime(["2026-10-01"], utc=True))
    assert DailyRates(gl.read_table(path, roles=stated)).of_days("JPY", day).iloc[0] == pytest.approx(0.0624 / 9.43)


@pytest.mark.parametrize(
    ("name", "roles", "code", "rate"),
    [
        ("ptax_rates.csv", {"Taxa Venda": "exchange_rate"}, "BRL", 1 / 5.4327),
        ("ptax_rates.csv", {"Taxa Venda": "exchange_rate"}, "EUR", 6.3327 / 5.4327),
        ("ptax_dollar.csv", {"cotacaoVenda": "text"}, "BRL", 1 / 5.4321),
    ],
)
def test_a_bank_that_buys_and_sells_is_asked_which(name: str, roles: dict[str, str], code: str, rate: float) -> None:
    """And the roles that the sentences name take one."""
    with pytest.raises(BadQuery, match=r"roles=\{"):
        DailyRates(SAMPLES / name)
    assert _rate(gl.read_table(SAMPLES / name, roles=roles), code, "2026-10-01") == pytest.approx(rate)


BANK = ["Data;1 USD;1 EUR;{0} {1}", "2026-10-29;3.60;4.20;0.0240", "2026-10-30;3.62;4.22;0.0242"]


@pytest.mark.parametrize(
    ("again", "since"),
    [
        ("Data;1 USD;1 EUR;100 JPY", "2026-11-02;3.64;4.24;2.44"),
        ("Data;100 JPY;1 EUR;1 USD", "2026-11-02;2.44;4.24;3.64"),
        ("Data;1 USD;1 EUR;1 JPY", "2026-11-02;3.64;4.24;0.0244"),
        ("Liczba jednostek;1;1;100", "2026-11-02;3.64;4.24;2.44"),
    ],
)
def test_headers_among_rates_hold_for_the_rates_below(file: WriteFile, again: str, since: str) -> None:
    """A bank quotes other units, or in another order, from a day on."""
    path = file("\n".join([*BANK, again, since, since.replace("02;", "03;", 1), ""]).format("1", "JPY"))
    table = gl.read_table(path)
    assert "row 4 of table.csv names currencies or units, and is left out" in table.notes
    with pytest.raises(BadQuery, match="none of US dollars"):  # the bank's own currency is not known
        DailyRates(gl.read_table(file("Data;1 EUR;1 JPY\n2026-10-29;4.20;0.0240\n")))
    assert _rate(table, "JPY", "2026-10-30") == pytest.approx(0.0242 / 3.62)
    assert _rate(table, "JPY", "2026-11-03") == pytest.approx(0.0244 / 3.64)
    assert _rate(table, "EUR", "2026-11-03") == pytest.approx(4.24 / 3.64)


def test_rates_that_jump_are_of_other_units(file: WriteFile) -> None:
    """No row says it, and no currency falls to an eighth in a day."""
    rows = ["date,usd_per_try", "2026-10-29,0.0206", "2026-10-30,0.0205", "2026-11-02,2.05", ""]
    with pytest.raises(BadQuery, match=r"0\.0205 dollars for one TRY on 2026-10-30 and 2\.05 on 2026-11-02"):
        _rate(file("\n".join(rows)), "TRY", "2026-11-02")
