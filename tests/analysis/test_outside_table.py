"""What is understood of an outside table: roles, currencies, days, totals; and nothing that only looks like it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import openpyxl
import pandas as pd
import pytest
from pandas import DataFrame

import gamelens as gl
from gamelens.analysis import outside_data
from gamelens.errors import BadQuery
from support.tidy_frames import tidy_frame

WriteFile = Callable[..., Path]

INTERVAL = "2026-10-31T00:00Z/2026-11-03T00:00Z"
DAYS = ["2026-10-31", "2026-11-01", "2026-11-02"]
PESOS = """Campaign report
"October 31, 2026 - November 2, 2026"
Day,Campaign,Campaign ID,Currency code,Cost,Impr.,CTR
2026-10-31,Meta Ads,12345678901,MXN,"$1,000.00","1,234",0.57%
2026-11-01,Meta Ads,12345678901,MXN,$847.64,"1,234",0.57%
2026-11-02,Google Ads,12345678901,MXN,$10.00,"1,234",0.57%
Total: Account, --, --,MXN,"$1,857.64","98,765",0.52%
"""
RATES = """Date,USD,JPY,BGN,GBP,MXN,
2026-11-02,1.1000,164.42,N/A,0.85465,22.0000,
2026-10-30,1.0800,163.60,N/A,0.85040,20.0000,
"""
EARNINGS = """Date,Ad source,Country,Estimated earnings (USD),Observed eCPM (USD),Requests,Match rate,Impressions
2026-10-31,AdMob Network,United States,1.26,9.77,387,91.20%,129
2026-10-31,Unity Ads (bidding),Germany,0.67,3.79,531,80.00%,177
2026-10-31,Unity Ads (bidding),United States,5.00,20.00,1000,60.00%,250
"""
PERIOD = """Campaign name,Reporting starts,Reporting ends,Results,Reach,Amount spent (USD),Ends
Meta Ads,2026-10-31,2026-11-02,85,30000,"1,400.00",Ongoing
Google Ads,2026-10-31,2026-11-02,85,30000,100.00,2026-12-31
"""


def queried(metric: str | list[str], every: str = "day", **columns: Any) -> DataFrame:
    """Return a frame of the three days as a query returns it."""
    frame = tidy_frame(metric, **columns)
    frame.attrs["gamelens"]["asked"] |= {"every": every, "interval": INTERVAL}
    return frame


@pytest.fixture
def money() -> DataFrame:
    """A dollar a day from the players of each install day and publisher, some of them organic."""
    rows = [(day, installed, name) for installed in DAYS for day in DAYS if day >= installed for name in PUBLISHERS]
    days, installed_on, names = zip(*rows, strict=True)
    dollars = [1.0] * len(rows)
    return queried("revenue", timestamp=days, installed_on=installed_on, install_publisher=names, revenue=dollars)


PUBLISHERS = ["Meta Ads", "Google Ads", "TikTok Ads", None]


def spends(frame: DataFrame, age: int = 0) -> dict[str, float]:
    """Return the spend of each publisher at *age*."""
    rows = frame[frame["age"] == age]
    return dict(zip(rows["install_publisher"], rows["spend"].round(6), strict=True))


def test_dollar_signs_beside_a_column_of_pesos_are_pesos(file: WriteFile, money: DataFrame) -> None:
    """They are converted, at the rate of the last day before a weekend also where the range begins with it.

    1 November 2026 is a Sunday. A peso is 1.08 / 20 dollars on Friday, 1.1 / 22 on Monday.
    """
    path = file(PESOS)
    with pytest.raises(BadQuery, match=r'MXN.* has no rate: rate=\{"MXN": \.\.\.\} with US dollars for one MXN'):
        outside_data.roas(path, money)
    frame, report = outside_data.roas(path, money, rate=file(RATES, "eurofxref-hist.csv"), ages=[0])
    assert spends(frame) == {"Meta Ads": round(1847.64 * 1.08 / 20, 6), "Google Ads": 0.5}
    assert any("row 7 of table.csv adds up others" in warning for warning in report.warnings)


@pytest.mark.shown_by(2)
@pytest.mark.parametrize(
    ("header", "rows", "above"),
    [
        ("Day,Publisher,Cost,Currency", ["2026-10-31,Meta,5.25,CAD"], ""),
        ("Day,Publisher,Cost", ["2026-10-31,Meta,CA$5.25"], ""),
        ("Day,Publisher,Cost", ["2026-10-31,Meta,5.25 CAD"], ""),
        ("Day,Publisher,Cost (CAD)", ["2026-10-31,Meta,$5.25"], ""),
        ("day,publisher,cost_cad", ["2026-10-31,Meta,5.25"], ""),
        ("Day,Publisher,Cost", ["2026-10-31,Meta,$5.25"], "Report\nCurrency: CAD\n\n"),
        ("Tag;Werbenetzwerk;Kosten;Währung", ["31.10.2026;Meta;5,25;CAD"], ""),
        ("日期,渠道,消耗,币种", ["2026-10-31,Meta,5.25,CAD"], ""),
    ],
)
def test_a_currency_stands_anywhere(
    file: WriteFile, money: DataFrame, header: str, rows: list[str], above: str
) -> None:
    """In a column, the cells, the header or a line above; never taken for dollars."""
    path = file(f"{above}{header}\n" + "\n".join(rows) + "\n")
    assert outside_data.roas(path, money, rate={"CAD": 0.7}, ages=[0]).frame["spend"].tolist() == [pytest.approx(3.675)]
    with pytest.raises(BadQuery, match="CAD"):
        outside_data.roas(path, money)


def test_a_currency_in_the_format_of_a_workbook_is_one(tmp_path: Path, money: DataFrame) -> None:
    """As a spreadsheet shows it, where the cell is a bare number; the language tells whose dollar it is."""
    book = openpyxl.Workbook()
    for row in [["Day", "Publisher", "Cost"], ["2026-10-31", "Meta", 5.25], ["2026-11-01", "Meta", 7.5]]:
        book.active.append(row)
    for form, code in (
        ("[$€-407] #,##0.00", "EUR"),
        ("[$$-80A]#,##0.00", "MXN"),
        ('#,##0.00 "kr."', ""),
        ("[$$-409]0", "USD"),
    ):
        for row in (2, 3):
            book.active[f"C{row}"].number_format = form
        book.save(tmp_path / "spend.xlsx")
        column = gl.read_table(tmp_path / "spend.xlsx").column("Cost")
        assert (column.currency or "") == code
    assert outside_data.roas(tmp_path / "spend.xlsx", money, ages=[0]).frame["spend"].tolist() == [12.75]


@pytest.mark.parametrize(
    ("header", "cell", "amount", "code"),
    [
        ("利用金額", '"¥12,345",JPY', 12345, "JPY"),
        ("광고비(원)", '"12,345",', 12345, "KRW"),
        ("Spend (VND)", '"1.234.567",', 1234567, "VND"),
        ("Расходы (руб.)", "12.5,", 12.5, "RUB"),
        ("Spend (Rp)", '"12.345,00",', 12345, "IDR"),
    ],
)
def test_a_currency_without_cents_has_no_decimals(
    file: WriteFile, header: str, cell: str, amount: float, code: str
) -> None:
    """So a mark before three digits is one of thousands; names of currencies stand in brackets of a header."""
    column = gl.read_table(file(f"Day,{header},Currency\n2026-10-31,{cell}\n")).column(header)
    assert (column.currency, column.values.tolist(), column.problem) == (code, [amount], None)


def test_witnesses_that_contradict_each_other_are_refused_where_money_is_used(
    file: WriteFile, money: DataFrame
) -> None:
    """With both, and the argument that decides."""
    path = file("Day,Publisher,Cost (EUR),Budget currency\n2026-10-31,Meta,5.25,USD\n")
    rule = r"is in USD by the column of codes \(Budget currency\) and in EUR by the header .*: pass currency="
    with pytest.raises(BadQuery, match=rule):
        outside_data.roas(path, money)
    assert gl.join(money, path).frame["Cost (EUR)"].dropna().tolist() == [5.25]
    assert outside_data.roas(path, money, currency="USD", ages=[0]).frame["spend"].tolist() == [5.25]


def test_an_amount_of_unknown_currency_is_no_dollar_after_a_join(file: WriteFile) -> None:
    """Neither its cost of an install nor its dollars are computed, until the currency is named."""
    installs = queried("new_users", timestamp=DAYS, new_users=[10, 10, 10])
    path = file("Day,Spend\n2026-10-31,$5\n2026-11-01,$7\n")
    joined = gl.join(installs, path).frame
    for use in (outside_data.cost_per_install, outside_data.in_dollars):
        with pytest.raises(BadQuery, match='pass currency="'):
            use(joined, **({"spend": "Spend"} if use is outside_data.cost_per_install else {"amount": "Spend"}))
    named = gl.join(installs, path, currency="USD").frame
    assert outside_data.cost_per_install(named, spend="Spend")["spend"].tolist() == [12.0]
    assert outside_data.cost_per_install(installs, spend=path, currency="USD")["spend"].tolist() == [12.0]


@pytest.mark.parametrize("name", ["x.csv", "x.xlsx", "x.parquet"])
def test_an_export_keeps_the_currency(file: WriteFile, tmp_path: Path, name: str) -> None:
    """Euros that were joined are euros when the exported file is read again."""
    installs = queried("new_users", timestamp=DAYS, new_users=[10, 10, 10])
    frame = gl.join(installs, file("Day,Spend\n2026-10-31,€5\n2026-11-01,€7\n")).frame
    if name.endswith("csv"):
        gl.export_csv(frame, tmp_path / name)
    elif name.endswith("xlsx"):
        gl.export_excel({"data": frame.drop(columns="Spend_currency")}, tmp_path / name)
    else:
        frame.to_parquet(tmp_path / name)
    table = gl.read_table(tmp_path / name, sheet="data" if name.endswith("xlsx") else None)
    spend = next(column for column in table.columns if column.name.startswith("Spend"))
    assert (spend.role, spend.currency, spend.values.dropna().tolist()) == ("amount", "EUR", [5.0, 7.0])


def test_rates_are_put_together_by_what_they_are_made_of(file: WriteFile) -> None:
    """An eCPM is 1,000 times the earnings by impressions, a match rate is weighted by the requests; none is a sum."""
    revenue = queried("ilrd_revenue", timestamp=DAYS, ilrd_revenue=[1.0] * 3)
    frame = gl.join(revenue, file(EARNINGS)).frame
    assert frame["Estimated earnings (USD)"][0] == pytest.approx(6.93)
    assert frame["Observed eCPM (USD)"][0] == pytest.approx(1000 * 6.93 / 556)
    assert frame["Match rate"][0] == pytest.approx((0.912 * 387 + 0.8 * 531 + 0.6 * 1000) / 1918)
    assert frame["Impressions"][0] == 556
    summed = gl.join(revenue, file(EARNINGS), aggregate="sum", columns=["Observed eCPM (USD)"]).frame
    assert summed["Observed eCPM (USD)"][0] == pytest.approx(12.464, abs=0.001)


def test_a_rate_that_is_not_known_is_told_by_an_argument(file: WriteFile) -> None:
    """Its parts, and a factor."""
    revenue = queried("ilrd_revenue", timestamp=DAYS, ilrd_revenue=[1.0] * 3)
    path = file("Day,shown,yield\n2026-10-31,100,2.0\n2026-10-31,300,4.0\n")
    with pytest.raises(BadQuery, match=r"yield is a number, and nothing says of what"):
        gl.join(revenue, path, columns=["yield"])
    told = {"shown": "count", "yield": {"role": "rate", "weight": "shown"}}
    assert gl.join(revenue, path, columns=["yield"], roles=told).frame["yield"][0] == 3.5


def test_a_number_that_is_an_amount_by_a_count_is_a_rate(file: WriteFile) -> None:
    """Whatever its header."""
    rows = "\n".join(
        f"{day},{cost},{n},{cost / n:.4f}" for day, cost, n in [(DAYS[0], 5, 3), (DAYS[0], 8, 7), (DAYS[1], 9, 2)]
    )
    table = gl.read_table(file(f"Day,Spend (USD),Installs,K7\n{rows}\n"))
    assert (table.column("K7").role, str(table.column("K7").weight)) == ("rate", "Spend (USD) / Installs")


def test_a_row_for_a_period_is_not_booked_on_its_first_day(file: WriteFile, money: DataFrame) -> None:
    """Its cohort is all players of those days; a frame by day is refused with the query that fits."""
    table = gl.read_table(file(PERIOD))
    assert (table.period, str(table.interval)) == ("period", INTERVAL)
    frame, _ = outside_data.roas(table, money, ages=[0])
    assert frame.set_index("install_publisher")["roas"].to_dict() == pytest.approx(
        {"Meta Ads": 3 / 1400, "Google Ads": 0.03}
    )
    installs = queried("new_users", timestamp=DAYS, install_publisher=["Meta Ads"] * 3, new_users=[10, 20, 30])
    with pytest.raises(BadQuery, match=r'one row a period .*: query over="2026-10-31/2026-11-03", every="all"'):
        gl.join(installs, table)
    whole = queried("new_users", "all", timestamp=DAYS[:1], install_publisher=["Meta Ads"], new_users=[60])
    for frame in (whole, gl.in_periods(installs, table)):
        joined = gl.join(frame, table, on={"install_publisher": "Campaign name"}).frame
        assert joined[["new_users", "Amount spent (USD)"]].to_numpy().tolist() == [[60, 1400.0]]
    costs = outside_data.cost_per_install(whole, "install_publisher", spend=table)
    assert costs["cpi"].tolist()[0] == pytest.approx(1400 / 60)


def test_periods_add_up_what_adds_up_over_days(file: WriteFile) -> None:
    """Weeks of a file from Sunday on; players of several days are not added up."""
    days = [str(day.date()) for day in pd.date_range("2026-11-01", periods=14)]
    path = file("Week,Campaign,Spend (USD)\n2026-11-01,a,5\n2026-11-08,a,7\n2026-11-15,a,9\n")
    frame = tidy_frame("new_users", timestamp=days, new_users=[1] * 7 + [2] * 7)
    frame.attrs["gamelens"]["asked"] |= {"every": "day", "interval": "2026-11-01T00:00Z/2026-11-15T00:00Z"}
    with pytest.raises(BadQuery, match=r"one row a week from Sunday.*gl\.in_periods"):
        gl.join(frame, path)
    weeks = gl.in_periods(frame, path)
    joined = gl.join(weeks, path, how="outer").frame
    assert joined[["new_users", "Spend (USD)"]].fillna(0).to_numpy().tolist() == [[7, 5], [14, 7], [0, 9]]
    players = frame.rename(columns={"new_users": "user_unique"})
    players.attrs = frame.attrs | {
        "gamelens": frame.attrs["gamelens"] | {"asked": frame.attrs["gamelens"]["asked"] | {"metric": "user_unique"}}
    }
    with pytest.raises(gl.NotAdditive, match="counts every player once"):
        gl.in_periods(players, path)


@pytest.mark.shown_by(5)
@pytest.mark.parametrize(
    "total",
    [
        *["2026-10-31,Total,12.00", "Total,,20.00", "Total: all,--,20.00", "Total of 3 results,-,20.00"],
        *["2026-10-31,All countries,12.00", "2026-10-31,,12.00", ",,20.00", ",US,13.00", "2026-10-31,US Total,12.00"],
        *[
            "Summe,,20.00",
            "合計,,20.00",
            "Grand total,,20.00",
            "Suma: konto,--,20.00",
            "Łącznie,,20.00",
            "Celkem,,20.00",
        ],
        *["Итого:,,20.00", "Összesen,,20.00", "Totalt: konto, --,20.00", "Yhteensä,,20.00", "Tổng cộng: 3,,20.00"],
        *["2026-10-31,Alle Länder,12.00", "2026-10-31,Wszystkie kraje,12.00", "2026-10-31,全世界,12.00"],
    ],
)
@pytest.mark.parametrize("place", [0, 3])
def test_totals_are_left_out_whatever_keys_they_have(file: WriteFile, total: str, place: int) -> None:
    """By their word, or by their sum; above the rows or below."""
    rows = ["2026-10-31,US,5.00", "2026-10-31,DE,7.00", "2026-11-01,US,8.00"]
    rows.insert(place, total)
    table = gl.read_table(file("Date,Country,Spend (USD)\n" + "\n".join(rows) + "\n"))
    assert table.column("Spend (USD)").values.sum() == 20.0
    assert any("add" in note and "others" in note for note in table.notes)
    kept = gl.read_table(file("Date,Country,Spend (USD)\n" + "\n".join(rows) + "\n"), totals="keep")
    assert len(kept.rows) == 4


def test_a_name_with_a_total_word_and_an_unknown_country_are_no_totals(file: WriteFile) -> None:
    """Total War and Lump Sum are campaigns, and players may have no country."""
    rows = ["2026-10-31,Total War,US,5.00", "2026-10-31,Lump Sum,DE,7.00", "2026-10-31,Lump Sum,,4.00"]
    table = gl.read_table(file("Date,Campaign,Country,Spend (USD)\n" + "\n".join(rows) + "\n"))
    assert len(table.rows) == 3


@pytest.mark.shown_by(2)
@pytest.mark.parametrize("form", ["{} Total", "Total {}", "{} (total)", "Summe {}", "Total for {}", "{} - razem"])
@pytest.mark.parametrize("day", ["", "2026-10-31"])
def test_totals_of_a_name_add_up_the_rows_of_that_name(file: WriteFile, form: str, day: str) -> None:
    """With a day or without; a campaign with such a word in its name is one where the sum is another."""
    rows = ["Meta,2026-10-31,US,10", "Meta,2026-10-31,DE,20", "Google,2026-10-31,US,5", "Google,2026-10-31,DE,6"]
    rows[2:2] = [f"{form.format('Meta')},{day},,30"]
    rows += [f"{form.format('Google')},{day},,11"]
    path = file("Network,Date,Country,Cost (USD)\n" + "\n".join([*rows, "Grand total,,,41", ""]))
    assert gl.read_table(path).column("Cost (USD)").values.sum() == 41
    other = file("Network,Date,Country,Cost (USD)\n" + "\n".join([*rows, ""]).replace(",30", ",31"), "other.csv")
    assert gl.read_table(other).column("Cost (USD)").values.sum() == (41 if form == "Total for {}" else 72)


def test_names_that_only_contain_a_word_of_totals_are_none(file: WriteFile) -> None:
    """Whatever they cost: a hyphen is no colon, and a campaign may be called after all saints."""
    rows = [
        f"2026-10-31,{name},{cost}" for name, cost in [("Total-Recall", 50), ("Todos los Santos", 90), ("Sum-mer", 9)]
    ]
    table = gl.read_table(file("Date,Campaign,Spend (USD)\n" + "\n".join([*rows, "2026-10-31,b,5", ""])))
    assert table.column("Spend (USD)").values.sum() == 154


def test_a_day_that_is_none_is_asked_about_and_its_row_left_out(file: WriteFile, money: DataFrame) -> None:
    """Not read as text, which would take the days of a line above for all rows; a total in words nobody knows."""
    rows = ["2026-10-31,Meta,5", "2026-11-01,Meta,7", "Wszystkiego,--,12"]
    path = file("Report\n2026-10-31 - 2026-11-01\nDay,Publisher,Spend (USD)\n" + "\n".join([*rows, ""]))
    rule = r"in row 6 is not a day, and most others are: leave_out=\{'Day': \['Wszystkiego'\]\} leaves the row out"
    with pytest.raises(BadQuery, match=rule):
        outside_data.roas(path, money)
    frame, _ = outside_data.roas(path, money, totals=["Wszystkiego"], ages=[0])
    assert spends(frame) == {"Meta Ads": 12.0}
    with pytest.raises(BadQuery, match="is in no cell"):
        gl.read_table(path, totals=["Wszystko"])


def test_a_whole_that_is_larger_than_its_parts_needs_its_key(file: WriteFile) -> None:
    """Countries that are not listed are missing from their sum."""
    rows = ["2026-10-31,Worldwide,50", "2026-10-31,US,5", "2026-10-31,DE,7"]
    path = file("Date,Country,Installs\n" + "\n".join(rows) + "\n")
    installs = queried("new_users", timestamp=DAYS, new_users=[60] * 3)
    with pytest.raises(BadQuery, match="has a row 'Worldwide' that is larger than the sum of the others"):
        gl.join(installs, path)
    by_country = queried("new_users", timestamp=DAYS[:2], country_code=["US", "DE"], new_users=[60, 50])
    assert gl.join(by_country, path).frame["Installs"].fillna(0).tolist() == [5, 0]


def test_names_of_vendors_and_countries_are_understood(file: WriteFile, money: DataFrame) -> None:
    """As attribution writes them; a cost without a publisher does not meet organic players, and Organic does."""
    rows = [
        f"2026-10-31,{name},{cost}"
        for name, cost in [("googleadwords_int", 1), ("Facebook Ads", 2), ("bytedanceglobal_int", 4)]
    ]
    rows += ["2026-10-31,Organic,", "2026-10-31,,8", "2026-10-31,None,16"]
    path = file("Date,Media Source (pid),Total Cost (USD)\n" + "\n".join(rows) + "\n")
    frame, _ = outside_data.roas(path, money, ages=[0])
    known = frame[frame["install_publisher"].notna()]
    assert spends(known) == {"Google Ads": 1.0, "Meta Ads": 2.0, "TikTok Ads": 4.0}
    nobody = frame[frame["install_publisher"].isna()]
    assert (nobody["spend"].tolist(), nobody["roas"].isna().tolist()) == ([24.0], [True])
    countries = queried("new_users", timestamp=DAYS * 2, country_code=["GB"] * 3 + ["TR"] * 3, new_users=[10] * 6)
    path = file(
        "Date,Country,Spend (USD)\n2026-10-31,Vereinigtes Königreich,5\n2026-11-01,UK,6\n2026-11-02,GBR,7\n"
        "2026-10-31,Türkiye,8\n"
    )
    assert gl.join(countries, path).frame["Spend (USD)"].fillna(0).tolist() == [5, 6, 7, 8, 0, 0]


def test_names_that_match_nothing_are_refused_with_the_mapping_to_type(file: WriteFile, money: DataFrame) -> None:
    """Never a return of 0; what follows the mapping is right."""
    path = file("Date,Media Source,Cost (USD)\n2026-10-31,foo_int,5\n")
    with pytest.raises(
        BadQuery, match=r"has 'foo_int', and none of its names is in install_publisher.*names=\{\"foo_int\": \.\.\.\}"
    ):
        outside_data.roas(path, money)
    frame, _ = outside_data.roas(path, money, names={"foo_int": "Meta Ads"}, ages=[0])
    assert spends(frame) == {"Meta Ads": 5.0}
    path = file("Date,Media Source,Cost (USD)\n2026-10-31,foo_int,5\n2026-10-31,Meta,7\n")
    frame, report = outside_data.roas(path, money, ages=[0])
    assert frame.set_index("install_publisher")["roas"].isna().to_dict() == {"Meta Ads": False, "foo_int": True}
    assert any('names={"foo_int": ...} says what it means' in warning for warning in report.warnings)


@pytest.mark.parametrize(
    ("rate", "rule"),
    [
        (
            88.5,
            r"0\.0113 is usual \(gamelens' own table, 2026-11-01\): it is INR .* pass 1 / 88\.5, 0\.0112994",
        ),
        ({"INR": 88.5}, "pass 1 / 88.5, 0.0112994"),
        ({"EUR": 1.1}, r'has no rate: rate=\{"INR": \.\.\.\}'),
        (0.0, "must be a number above 0"),
    ],
)
def test_a_rate_that_is_upside_down_or_missing_is_refused(
    file: WriteFile, money: DataFrame, rate: Any, rule: str
) -> None:
    """With the usual one."""
    with pytest.raises(BadQuery, match=rule):
        outside_data.roas(file("Day,Publisher,Cost (INR)\n2026-10-31,Meta,500\n"), money, rate=rate)


@pytest.mark.parametrize(
    ("header", "rate", "dollars"),
    [
        ("usd_per_pln", 0.275, 275.0),
        ("USD/PLN", 3.6, 277.78),
        ("pln_per_usd", 3.6, 277.78),
        ("Kurs", 0.275, 275.0),
        ("EUR/PLN", 4.25, "is of EUR and PLN by its name, and not US dollars for one PLN"),
        ("pln_to_eur", 0.235, "is of EUR and PLN by its name"),
        ("usd_per_eur", 1.16, "is of EUR and USD by its name, and not US dollars for one PLN"),
        ("Rate (EUR)", 0.235, "is of EUR by its name"),
        ("Kurs", 3.6, "it is PLN for one dollar"),
    ],
)
@pytest.mark.parametrize("is_read", [True, False])
def test_a_column_of_rates_is_of_the_currencies_that_its_name_has(
    header: str, rate: float, dollars: float | str, is_read: bool
) -> None:
    """Of a table and of a frame, also where its name looks like a path."""
    days = pd.to_datetime(["2026-11-02", "2026-11-03"], utc=True)
    frame = DataFrame({"timestamp": days, "cost": [1000.0, 1000.0], "currency": "PLN", header: rate})
    argument: Any = gl.read_table(frame) if is_read else frame
    reading: dict[str, Any] = {} if is_read else {"currency": "currency"}
    if isinstance(dollars, str):
        with pytest.raises(BadQuery, match=dollars):
            outside_data.in_dollars(argument, "cost", header, **reading)
        return
    assert outside_data.in_dollars(argument, "cost", header, **reading)["spend"].round(2).tolist() == [dollars] * 2


@pytest.mark.parametrize(("start", "end", "empty"), [("2026-10-31", "", "End date"), ("", "2026-10-31", "Start date")])
def test_amounts_of_a_period_without_an_end_are_asked_about(
    file: WriteFile, money: DataFrame, start: str, end: str, empty: str
) -> None:
    """They would be booked on a day; both steps of the question can be followed."""
    table = file(f"Publisher,Start date,End date,Cost\nMeta,2026-10-31,2026-10-31,300\nGoogle,{start},{end},120\n")
    with pytest.raises(BadQuery, match=f"{empty} is empty in row 3 of table.csv, which has .* and numbers"):
        outside_data.roas(table, money, currency="USD")
    kept = outside_data.roas(table, money, currency="USD", leave_out={empty: [""]})
    assert spends(kept.frame) == {"Meta Ads": 300}


def test_a_holiday_without_an_end_is_one_day(file: WriteFile, money: DataFrame) -> None:
    """It has no numbers that could belong to other days."""
    holidays = file("Holiday,Start date,End date\nFair,2026-10-31,2026-11-01\nAll Souls,2026-11-02,\n")
    joined = gl.join(money, holidays).frame
    assert joined.groupby("timestamp")["Holiday"].first().tolist() == ["Fair", "Fair", "All Souls"]


@pytest.mark.shown_by(2)
@pytest.mark.parametrize(
    "rates",
    [
        "date,usd_per_inr\n2026-10-30,0.0125\n",
        "date,USD/INR\n2026-10-30,80\n",
        "date,INR/USD\n2026-10-30,0.0125\n",
        "date,currency,rate\n2026-10-30,INR,0.0125\n2026-10-30,EUR,1.16\n",
        "date,INR,JPY\n2026-10-30,80,150\n",
        "Date,USD,JPY,GBP,INR\n2026-10-30,1.2,160,0.85,96\n",
        "Datum;Währung;Wechselkurs\n30.10.2026;INR;0,0125\n",
    ],
)
def test_a_file_of_rates_is_taken_as_it_comes(file: WriteFile, money: DataFrame, rates: str) -> None:
    """By pair, by currency, of the dollar or the euro; Saturday has the rate of Friday."""
    path = file("Day,Publisher,Cost (INR)\n2026-10-31,Meta,500\n")
    frame, _ = outside_data.roas(path, money, rate=file(rates, "rates.csv"), ages=[0])
    assert frame["spend"].tolist() == [pytest.approx(6.25)]


def test_a_table_is_read_again_with_what_is_said_later(file: WriteFile) -> None:
    """And with what was said before; rates may be a frame."""
    table = gl.read_table(file("Day,Cost,Note\n2026-10-31,5,x\n"), currency="EUR", text=["Note"])
    rates = DataFrame({"date": ["2026-10-30"], "usd_per_eur": [1.2]})
    again = gl.read_table(table, rate=rates)
    assert (again.column("Cost").currency, again.column("Cost").values.tolist()) == ("USD", [6.0])
    assert gl.read_table(table) is table


def test_old_rates_are_refused(file: WriteFile, money: DataFrame) -> None:
    """Ten days without any are more than holidays."""
    path, rates = (
        file("Day,Publisher,Cost (INR)\n2026-10-31,Meta,500\n"),
        file("date,usd_per_inr\n2026-10-01,0.0125\n", "r.csv"),
    )
    with pytest.raises(BadQuery, match="no rate of INR on or up to 10 days before 2026-10-31"):
        outside_data.roas(path, money, rate=rates)


def test_days_that_the_money_does_not_cover_need_no_rate(file: WriteFile, money: DataFrame) -> None:
    """A file of costs may begin long before both."""
    rows = ["2026-01-01,Meta,9,EUR", "2026-10-31,Meta,5,EUR", "2026-11-02,Meta,7,EUR"]
    path = file("\n".join(["Day,Publisher,Cost,Currency", *rows, ""]))
    rates = file("date,usd_per_eur\n2026-10-30,1.1\n2026-11-02,1.2\n", "rates.csv")
    frame, report = outside_data.roas(path, money, rate=rates, ages=[0])
    assert frame["spend"].tolist() == [pytest.approx(5 * 1.1 + 7 * 1.2)]
    assert any(
        warning.endswith("1 row of table.csv on days that money does not cover left out") for warning in report.warnings
    )


def test_what_was_understood_is_shown_as_text_and_html(file: WriteFile) -> None:
    """The roles, the currency and where it stands, the days, and what was left out; cells are escaped."""
    table = gl.read_table(file(PESOS.replace("Campaign ID", "<b>Campaign ID</b>")))
    text, html = repr(table), table._repr_html_()
    assert text.splitlines()[0] == "table.csv, a file of Google Ads, 3 rows, one a day, 2026-10-31 to 2026-11-02"
    line = next(line for line in text.splitlines() if line.startswith("Cost"))
    assert "cost, MXN" in line
    assert "MXN: the column of codes (Currency code)" in line
    assert "row 7 of table.csv adds up others and is left out" in text
    assert "&lt;b&gt;Campaign ID" in html
    assert "<b>" not in html


def test_a_strange_column_that_nobody_asks_for_stops_nobody(file: WriteFile) -> None:
    """It is refused when it is asked for."""
    revenue = queried("revenue", timestamp=DAYS, revenue=[1.0] * 3)
    path = file("Day,Clicks,Share\n2026-10-31,5,< 10%\n2026-11-01,6,41.2%\n2026-11-02,7,39.1%\n")
    frame, _ = gl.join(revenue, path)
    assert (frame["Clicks"].tolist(), "Share" in frame) == ([5, 6, 7], False)
    with pytest.raises(BadQuery, match=r"missing=\['< 10%'\] reads it as empty"):
        gl.join(revenue, path, columns=["Share"])
    frame = gl.join(revenue, path, columns=["Share"], missing=["< 10%"]).frame
    assert frame["Share"].tolist()[1:] == [0.412, 0.391]


def test_a_header_that_is_not_found_is_named(file: WriteFile, money: DataFrame) -> None:
    """Lines of names and values above a table of names and values look like its rows; the refusal says what to type."""
    path = file("Report,Costs (USD)\nAccount,12345\nPublisher,Spend (USD)\nMeta,5\nGoogle Ads,7\n")
    with pytest.raises(BadQuery, match="header_row=1 reads the first, header_row=3 the second"):
        outside_data.in_dollars(path)
    assert outside_data.in_dollars(path, header_row=3)["spend"].tolist() == [5, 7]


@pytest.mark.shown_by(2)
@pytest.mark.parametrize(
    ("texts", "day"),
    [
        (["2026-10-24 00:00 Europe/Berlin", "2026-10-25 00:00 Europe/Berlin", "2026-10-26 00:00 Europe/Berlin"], 24),
        (["Oct 31, 2026, 12:00:00 AM PDT", "Nov 2, 2026, 12:00:00 AM PST"], 31),
        (["2026-10-31T00:00:00+09:00", "2026-11-01T00:00:00+09:00"], 31),
    ],
)
@pytest.mark.parametrize("header", ["Time", "Start time"])
def test_midnights_of_another_zone_are_asked_about(file: WriteFile, texts: list[str], day: int, header: str) -> None:
    """Also where the clock changes between them; taken as the days that they name, they are."""
    rows = "\n".join(f'"{text}",5,"{text}"' for text in texts)
    path = file(f"{header},Spend (USD),{'End time' if header == 'Start time' else 'Note'}\n{rows}\n")
    problem = gl.read_table(path).periods.problem
    assert problem is not None
    assert "is midnight in another zone" in problem.rule
    role = "day" if header == "Time" else "start"
    table = gl.read_table(path, roles={header: {"role": role, "local": True}})
    assert (table.starts[0].day, table.period) == (day, "day")


@pytest.mark.parametrize(
    ("header", "zones", "hours", "days"),
    [
        ("Hour (account time zone)", ["PDT", "PST"], "07:00 in UTC", [3.0, 12.0]),
        ("Hour", ["+09:00", "+09:00"], "15:00 in UTC", [3.0, 12.0]),
        ("Time", ["America/Los_Angeles"] * 2, "07:00 in UTC", [3.0, 12.0]),
    ],
)
def test_hours_that_name_a_zone_say_so(
    file: WriteFile, header: str, zones: list[str], hours: str, days: list[float]
) -> None:
    """In the table and the report of a join, with the days that are incomplete, and what has the days of the zone."""
    times = [f"2026-10-31 00:00 {zones[0]}", f"2026-10-31 20:00 {zones[0]}", f"2026-11-01 05:00 {zones[1]}"]
    times += [f"2026-11-01 23:00 {zones[1]}"]
    rows = [f"{time},{spend}" for time, spend in zip(times, (1, 2, 4, 8), strict=True)]
    path = file("\n".join([f"{header},Spend (USD)", *rows, ""]))
    said = next(note for note in gl.read_table(path).notes if "names" in note)
    frame = tidy_frame("new_users", timestamp=["2026-10-31", "2026-11-01"], new_users=[1, 2])
    assert said in gl.join(frame, path).report.warnings
    assert f"{header} names {' and '.join(dict.fromkeys(zones))}: '{times[0]}' is read as" in said
    assert hours in said
    assert "Incomplete in UTC: 2026-10-3" in said
    roles = {header: {"role": "day", "local": True}}
    assert f'roles={{"{header}": {{"role": "day", "local": True}}}}' in said
    dollars = outside_data.in_dollars(path, roles=roles)
    assert dollars.groupby(dollars["timestamp"].dt.floor("D"))["spend"].sum().tolist() == days
    assert "a frame has days of UTC" in str(gl.read_table(path, roles=roles))


@pytest.mark.parametrize(
    ("text", "zone"),
    [
        ("Day (PST),Spend (USD)\n", "PST"),
        ("Day (America/New_York),Spend (USD)\n", "America/New_York"),
        ("Day (account time zone),Spend (USD)\n", "another zone"),
        ("Zeitzone: (GMT+02:00) Berlin\n\nTag,Kosten (USD)\n", "GMT+02:00"),
        ("Day (UTC),Spend (USD)\n", None),
        ("Day (Install/Event),Spend (USD)\n", None),
        ("Day,Spend (USD)\n", None),
    ],
)
def test_the_zone_of_days_is_said_where_the_file_states_it(file: WriteFile, text: str, zone: str | None) -> None:
    """A header or a line above it does."""
    notes = " ".join(gl.read_table(file(f"{text}2026-10-31,1\n2026-11-01,2\n2026-11-02,4\n")).notes)
    assert (f"has days of {zone} (" in notes) == (zone is not None)
    assert ("a frame has days of UTC" in notes) == (zone is not None)


def test_times_of_a_frame_in_another_zone_say_so() -> None:
    moments = pd.date_range("2026-10-31 20:00", periods=3, freq="h", tz="America/Los_Angeles")
    table = gl.read_table(pd.DataFrame({"time": moments, "spend": [1.0, 2.0, 4.0]}))
    assert any("time has times of America/Los_Angeles, and its days are of UTC" in note for note in table.notes)


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({"roles": {"x": "count"}}, "roles"),
        ({"roles": {"Day": "x"}}, "roles"),
        ({"roles": {"Day": {"rol": "day"}}}, "roles"),
        ({"currency": "XYZ"}, "currency"),
        ({"text": ["x"]}, "text"),
        ({"how": {"x": "join"}}, "how"),
        ({"totals": "x"}, "totals"),
        ({"decimal": ";"}, "decimal"),
    ],
)
def test_arguments_that_name_nothing_are_refused(file: WriteFile, arguments: dict[str, Any], field: str) -> None:
    """A column, a role, a detail or a currency that is not there."""
    with pytest.raises(BadQuery) as refused:
        outside_data.in_dollars(file("Day,Spend\n2026-10-31,5.5\n"), **arguments)
    assert refused.value.field == field


@pytest.mark.parametrize(
    ("header", "cells", "currency"),
    [
        ("매출 비용(원)", "1200", "KRW"),
        ("広告費（円）", "1200", "JPY"),
        ("広告費（万円）", "1.2", "JPY"),
        ("Ausgaben [zł]", "3.50", "PLN"),
    ],
)
def test_a_unit_in_brackets_is_a_currency(file: WriteFile, header: str, cells: str, currency: str) -> None:
    table = gl.read_table(file(f"Date,Network,{header}\n2026-11-01,one,{cells}\n2026-11-02,one,{cells}\n"))
    assert table.columns[2].currency == currency


@pytest.mark.parametrize(
    ("header", "cell", "steps"),
    [
        ("Spend", "¥1200", 'currency="CNY" or currency="JPY"'),
        ("Kostnad (kr)", "12", 'currency="DKK" or currency="ISK"'),
        ("Cost (ကျပ်)", "12", 'pass currency="..." with its code'),
    ],
)
def test_the_currencies_that_a_symbol_may_mean_are_proposed(
    file: WriteFile, header: str, cell: str, steps: str
) -> None:
    table = gl.read_table(file(f"Date,Network,{header}\n2026-11-01,one,{cell}\n2026-11-02,one,{cell}\n"))
    problem = str(table.columns[2].money_problem)
    assert steps in problem
    assert "USD" not in problem


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_headers_that_are_repeated_within_a_file_are_left_out(file: WriteFile, separator: str) -> None:
    """Exports that were pasted below each other."""
    rows = ["Tag,Netzwerk,Kosten (EUR)", "2026-11-01,one,1.5", "Tag,Netzwerk,Kosten (EUR)", "2026-11-02,two,2.5"]
    table = gl.read_table(file("\n".join(rows).replace(",", separator) + "\n"))
    assert table.period == "day"
    assert table.columns[2].values.tolist() == [1.5, 2.5]
    assert "row 3 of table.csv repeats the headers and is left out" in table.notes


def test_names_that_only_share_a_general_word_are_not_proposed(file: WriteFile, money: DataFrame) -> None:
    path = file("Date,Media Source,Cost (USD)\n2026-10-31,Moloco Ads,5\n")
    with pytest.raises(BadQuery, match=r'names=\{"Moloco Ads": \.\.\.\}'):
        outside_data.roas(path, money)
