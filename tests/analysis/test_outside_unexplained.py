"""What a reader cannot explain is asked for: words of a header that make something else of a measure, and the like."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from pathlib import Path

import pytest

import gamelens as gl
from gamelens.analysis import outside_data
from gamelens.analysis.outside_data.roles import header_meanings
from gamelens.errors import BadQuery
from support.tidy_frames import tidy_frame

WriteFile = Callable[..., Path]


@pytest.mark.shown_by(2)
@pytest.mark.parametrize(
    "header",
    [
        "Cost center", "Cost code", "Spend tier", "Spend index", "Income level", "Revenue percentile", "Sales rep",
        "Session length", "Order size", "Event level", "Install score", "费用对効果", "费用科目", "费用来源",
        "收入人数", "매출건수",
    ],
)  # fmt: skip
def test_an_unknown_word_behind_a_measure_makes_it_something_else(file: WriteFile, header: str) -> None:
    """Languages that say last what a thing is: the numbers are of something that is asked for."""
    table = gl.read_table(file(f"Date;Campaign;{header}\n2026-10-01;A;12\n2026-10-02;B;15\n", "numbers.csv"))
    assert table.columns[2].role == "number"


@pytest.mark.parametrize(
    ("header", "concept"),
    [
        ("Cost Facebook", "cost"),
        ("Spend US", "cost"),
        ("Revenue IAP D7", "income"),
        ("Cost (all)", "cost"),
        ("Amount spent (EUR)", "cost"),
        ("Revenue by ad unit", "income"),
        ("Installs iOS", "installs"),
        ("Video views 25%", "views"),
        ("Gasto publicitario", "cost"),
        ("广告费用", "cost"),
        ("支出金額(税抜)", "money"),
        ("총 광고비(원)", "cost"),
    ],
)
def test_known_words_leave_a_measure_what_it_is(header: str, concept: str) -> None:
    """Names of networks, countries, currencies and times, and what comes behind in Romance languages."""
    assert concept in [meaning.concept for meaning in header_meanings(header) if meaning.role in ("amount", "count")]


@pytest.mark.shown_by(2)
@pytest.mark.parametrize("header", ["付费用户数", "付费用户", "付费人数", "结제자수".replace("结", "결"), "購入者数"])
def test_users_who_pay_are_no_cost(file: WriteFile, header: str) -> None:
    """费用, the cost, stands across the border of two words in 付费用户."""
    path = file(f"日期;国家;{header};收入(USD)\n2026-11-01;中国;12;1.5\n2026-11-02;日本;13;2.5\n", "pay.csv")
    assert gl.read_table(path).columns[2].role == "distinct"
    with pytest.raises(BadQuery, match="no column of costs"):
        outside_data.in_dollars(path)


@pytest.mark.parametrize(
    "header", ["Avoided cost (USD)", "Lost revenue (USD)", "Remaining spend (USD)", "Cost savings"]
)
def test_money_that_was_not_spent_or_earned_has_its_concept(header: str) -> None:
    """It is none of what the days of its row had."""
    meaning = next(known for known in header_meanings(header) if known.role == "amount")
    assert meaning.concept in ("planned", "compared", "limit")


def test_the_amount_of_something_counted_is_a_count(file: WriteFile) -> None:
    table = gl.read_table(file("Date;Amount of installs\n2026-10-01;12\n2026-10-02;15\n", "counts.csv"))
    assert (table.columns[1].role, table.columns[1].concept) == ("count", "installs")


def test_a_yen_has_no_decimals(file: WriteFile) -> None:
    """￥ may be a yuan, which has: the currency is asked for first. A mark of three digits is one of thousands."""
    path = file("日付;費用\n2026-10-01;￥68,000\n2026-10-02;￥69,000\n", "yen.csv")
    with pytest.raises(BadQuery, match=r'pass currency="CNY" or currency="JPY"'):
        outside_data.in_dollars(path, rate=0.0066)
    assert outside_data.in_dollars(path, rate=0.01, currency="JPY")["spend"].sum() == 1370
    with pytest.raises(BadQuery, match="pass decimal="):
        outside_data.in_dollars(path, rate=0.14, currency="CNY")


def test_a_column_of_days_has_ranges_among_them(file: WriteFile) -> None:
    """A calendar holds on each of their days; a cost is that of the range."""
    calendar = file(
        "Tanggal;Hari Libur;Libur (hari)\n1 Januari 2026;Tahun Baru;1\n21-22 Maret 2026;Idul Fitri;2\n", "libur.csv"
    )
    frame = tidy_frame("new_users", timestamp=[date(2026, 3, day) for day in (20, 21, 22, 23)], new_users=[1, 2, 3, 4])
    joined = gl.join(frame, calendar)
    assert joined.frame["Hari Libur"].astype("object").tolist()[1:3] == ["Idul Fitri"] * 2
    assert any("Libur (hari)" in warning for warning in joined.report.warnings)
    with pytest.raises(BadQuery, match="a number of several days"):
        gl.join(frame, calendar, columns=["Libur (hari)"])
    costs = gl.read_table(file("Day;Cost (USD)\n2026-10-01 - 2026-10-03;100\n2026-10-04;50\n", "costs.csv"))
    assert [f"{day:%m-%d}" for day in costs.ends] == ["10-04", "10-05"]


def test_a_range_over_the_days_of_other_rows_is_asked_about(file: WriteFile) -> None:
    """It may add them up."""
    path = file("Day;Cost (USD)\n2026-10-01;100\n2026-10-02;50\n2026-10-01 - 2026-10-02;150\n", "costs.csv")
    with pytest.raises(BadQuery, match="stands for several days, and other rows for one of them"):
        outside_data.in_dollars(path)
    left = outside_data.in_dollars(path, leave_out={"Day": ["2026-10-01 - 2026-10-02"]})
    assert left["spend"].sum() == 150
    assert outside_data.in_dollars(path, leave_out={"Day": []})["spend"].sum() == 300


def test_bookings_of_other_names_are_no_totals_of_a_day(file: WriteFile) -> None:
    """A day of one channel and a range of another; a range without a name is asked about."""
    rows = ["Meta;2026-10-01;100", "TV;2026-10-01 - 2026-10-07;900", "Radio;2026-10-03;40"]
    path = file("\n".join(["Channel;Day;Cost (USD)", *rows, ""]), "costs.csv")
    assert outside_data.in_dollars(path)["spend"].sum() == 1040
    path = file("\n".join(["Channel;Day;Cost (USD)", *rows, ";2026-10-01 - 2026-10-03;155", ""]), "costs.csv")
    with pytest.raises(BadQuery, match="stands for several days, and other rows for one of them"):
        outside_data.in_dollars(path)


def test_headers_of_networks_are_rows(file: WriteFile) -> None:
    """And their total is left out; another number beside them leaves the table as it is."""
    path = file(
        "Media cost (USD);;;;\nDate;Google Ads;Meta;Kwai;Total\n2026-10-01;1;2;3;6\n2026-10-02;4;5;6;15\n", "w.csv"
    )
    spent = outside_data.in_dollars(path)
    assert spent["spend"].sum() == 21
    assert spent.groupby("network", observed=True)["spend"].sum().to_dict() == {"Google Ads": 5, "Meta": 7, "Kwai": 9}
    other = file("Date;Google Ads;Meta;Installs\n2026-10-01;1;2;3\n2026-10-02;4;5;6\n", "other.csv")
    assert [column.name for column in gl.read_table(other).columns] == ["Date", "Google Ads", "Meta", "Installs"]


def test_a_whole_that_is_left_out_is_not_asked_about(file: WriteFile) -> None:
    rows = [
        f"2026-10-0{day};{code};{cost}"
        for day in (1, 2, 3)
        for code, cost in (("US", 9 + day), ("DE", 5), ("WW", 14 + day))
    ]
    path = file("\n".join(["Date;Country;Cost (USD)", *rows, ""]), "costs.csv")
    assert outside_data.in_dollars(path)["spend"].sum() == 48


def test_a_total_is_compared_with_the_mark_that_its_rows_have(file: WriteFile) -> None:
    """1.392 is a thousand here, and no total differs."""
    rows = ["13.11.2026;1.392;%2,37;1.000,50 TL", "14.11.2026;604;%3,1;900,50 TL", "Toplam;1.996;;1.901,00 TL"]
    table = gl.read_table(file("\n".join(["Tarih;Tıklama;TO;Maliyet", *rows, ""]), "tr.csv"))
    assert not [note for note in table.notes if "the total of" in note]
    assert table.column("TO").values.tolist() == pytest.approx([0.0237, 0.031])
    assert table.column("Tıklama").values.sum() == 1996


def test_a_number_may_be_a_rank(file: WriteFile) -> None:
    """The refusal says how, and offers no sum where the file says that it has ranks."""
    rows = "".join(f"2026-10-0{day};{place}\n" for day in (1, 2) for place in (12, 15))
    frame = tidy_frame("new_users", timestamp=[date(2026, 10, 1), date(2026, 10, 2)], new_users=[1, 2])
    with pytest.raises(BadQuery, match=r'roles=\{"Puzzle": "rank"\} if it is a rank, roles=\{"Puzzle": "count"\}'):
        gl.join(frame, file(f"Date;Puzzle\n{rows}", "numbers.csv"), aggregate="sum")
    with pytest.raises(BadQuery, match=r'"rank"\} if it is a rank, or leave it out'):
        gl.join(frame, file(f"Date;Puzzle\n{rows}", "TopGrossing.csv"), aggregate="sum")
    with pytest.raises(BadQuery, match=r'roles=\{"Puzzle": "rank"\} says that it is a rank'):
        gl.join(frame, file(f"Date;Puzzle\n{rows}", "numbers.csv"), aggregate="sum", how={"Puzzle": "best"})


def test_of_two_columns_of_days_the_range_is_offered_first(file: WriteFile) -> None:
    path = file(
        "Invoiced;Of;Cost (USD)\n2026-10-17;1.-15. Oktober 2026;5\n2026-11-02;16.-31. Oktober 2026;7\n", "b.csv"
    )
    problem = gl.read_table(path, roles={"Invoiced": "day", "Of": "day"}).periods.problem
    assert problem is not None
    assert 'roles={"Of": "day", "Invoiced": "text"} or roles={"Invoiced": "day", "Of": "text"}' in str(problem)


def test_the_day_of_ranks_stands_in_the_name_of_the_file(file: WriteFile) -> None:
    """And is said; of amounts it may be the day of the export, so that it is asked about with what takes it."""
    ranks = file("Country;App;Rank\nUS;Tile Harbor;12\nDE;Tile Harbor;15\n", "ranks_2026-10-14.csv")
    table = gl.read_table(ranks)
    assert table.interval is not None
    assert (f"{table.interval.start:%Y-%m-%d}", table.period) == ("2026-10-14", "day")
    assert "all rows are of 2026-10-14, by the name of ranks_2026-10-14.csv" in table.notes
    costs = file("Network;Cost (USD)\nMeta;12\nMoloco;15\n", "export-20261014.csv")
    frame = tidy_frame("new_users", timestamp=[date(2026, 10, 14), date(2026, 10, 15)], new_users=[4, 5])
    frame = frame.assign(install_publisher="Meta")
    with pytest.raises(BadQuery, match=r'has no column of days.*: days="2026-10-14" takes the one in its name'):
        outside_data.cost_per_install(frame, spend=costs)
    assert gl.read_table(costs, days="2026-10-14").period == "day"
    names = file("Campaign;Owner\nA;Ada\nB;Ben\n", "names_2026-10-14.csv")
    assert gl.read_table(names).period is None


@pytest.mark.parametrize(
    ("header", "role", "concept"),
    [
        ("af_purchase (Sales in USD)", "amount", "income"),
        ("Purchases (EUR)", "amount", "unnamed"),
        ("Downloads ($)", "amount", "unnamed"),
        ("af_purchase (Unique users)", "distinct", "people"),
        ("af_purchase (Event counter)", "count", "conversions"),
        ("Clicks (All)", "count", "clicks"),
        ("conversion_purchases_value_micro", "amount", "income"),
        ("bid_micros", "price", "price"),
        ("キャンペーンID", "identifier", "identifier"),
        ("캠페인ID", "identifier", "identifier"),
        ("广告组ID", "identifier", "identifier"),
        ("Estado de la campaña", "text", "description"),
        ("État de la campagne", "text", "description"),
        ("キャンペーンのステータス", "text", "description"),
        ("Kampanya durumu", "text", "description"),
        ("Статус кампании", "text", "description"),
    ],
)
def test_brackets_and_last_words_say_what_a_column_is(header: str, role: str, concept: str) -> None:
    """Money, people and identifiers win over the things that stand beside them."""
    meaning = next(header_meanings(header))
    assert (meaning.role, meaning.concept) == (role, concept)


def test_returns_have_the_sign_of_their_number_alone(file: WriteFile) -> None:
    """The average price of a report with negative prices and units of returns."""
    rows = ["2026-11-01,US,9.99,5", "2026-11-01,US,-9.99,-1", "2026-11-01,US,4.99,2"]
    path = file("\n".join(["Date,Country,Customer Price (USD),Units", *rows, ""]))
    frame = tidy_frame("new_users", timestamp=["2026-11-01"], country_code=["US"], new_users=[1])
    joined = gl.join(frame, path, columns=["Customer Price (USD)"]).frame
    assert joined["Customer Price (USD)"][0] == pytest.approx((9.99 * 5 - 9.99 + 4.99 * 2) / 6)
