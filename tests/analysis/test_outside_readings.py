"""Headers that say enough: a currency beside a word for the tax, counts in many languages, days beside weeks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import gamelens as gl
from gamelens.analysis import outside_data
from gamelens.analysis.outside_data.outside_table import OutsideColumn
from gamelens.errors import BadQuery
from support.tidy_frames import tidy_frame

WriteFile = Callable[..., Path]


def _column(file: WriteFile, header: str) -> OutsideColumn:
    rows = "".join(f"2026-11-0{day},{100 + day},Meta\n" for day in (1, 2, 3, 4))
    return gl.read_table(file(f'Date,"{header}",Network\n{rows}')).column(header)


@pytest.mark.shown_by(2)
@pytest.mark.parametrize(
    ("header", "currency"),
    [
        ("消化金額(円・税抜)", "JPY"),
        ("광고비(원, VAT 별도)", "KRW"),
        ("Расход (руб. без НДС)", "RUB"),
        ("Koszt (zł netto)", "PLN"),
        ("Költség (Ft nettó)", "HUF"),
        ("Tutar (TL, KDV hariç)", "TRY"),
        ("Chi phí (đ, chưa VAT)", "VND"),
        ("Biaya (Rp, belum PPN)", "IDR"),
        ("Gasto (R$ sem impostos)", "BRL"),
        ("消耗（元/不含税）", None),
        ("Kostnad (kr exkl. moms)", None),
    ],
)
def test_a_currency_beside_a_word_for_the_tax_is_read(file: WriteFile, header: str, currency: str | None) -> None:
    """What stands for several currencies is asked about."""
    column = _column(file, header)
    assert (column.role, column.currency) == ("amount", currency)
    assert (column.money_problem is None) == (currency is not None)


def test_ten_thousands_of_a_currency_beside_the_tax_are_multiplied(file: WriteFile) -> None:
    column = _column(file, "費用(万円・税込)")
    assert (column.currency, column.values.iloc[0]) == ("JPY", 1_010_000)


@pytest.mark.shown_by(3)
@pytest.mark.parametrize(
    ("header", "concept"),
    [
        *(
            (header, "installs")
            for header in (
                "Số lượt cài đặt", "Lượt tải", "Liczba instalacji", "Počet instalací", "จำนวนติดตั้ง", "Установок",
                "Número de instalaciones", "Number of installs", "Anzahl Installationen", "التنزيلات", "Yükleme sayısı",
            )
        ),
        *(
            (header, "events")
            for header in (
                "New Subscriptions", "Cancelled Subscriptions", "Trials started", "Renewals", "Nowe subskrypcje",
                "Yeni abonelikler", "Nouveaux abonnements", "Отменённые подписки", "新規登録数", "구독 취소", "退订数",
                "Đăng ký mới", "Reengagements", "Novas assinaturas",
            )
        ),
    ],
)  # fmt: skip
def test_counts_are_counts_in_many_languages(file: WriteFile, header: str, concept: str) -> None:
    column = _column(file, header)
    assert (column.role, column.concept) == ("count", concept)


def test_subscribers_that_there_are_stay_a_stock(file: WriteFile) -> None:
    assert _column(file, "Active Subscriptions").role == "stock"


@pytest.mark.shown_by(2)
@pytest.mark.parametrize(
    ("week", "first", "last"),
    [
        ("Semana", "Del", "Al"),
        ("Tydzień", "Od", "Do"),
        ("KW", "Von", "Bis"),
        ("Неделя", "С", "По"),
        ("週", "から", "まで"),
        ("Week", "Start", "End"),
        ("Tuần", "Từ", "Đến"),
    ],
)
def test_a_week_without_a_year_does_not_hide_the_dates_beside_it(
    file: WriteFile, week: str, first: str, last: str
) -> None:
    """A row is of the days that it names in full, whatever its week is called."""
    rows = ["28/09/2026,04/10/2026", "05/10/2026,11/10/2026", "12/10/2026,18/10/2026"]
    text = "".join(f"{week} {40 + place},{days},Meta,{place + 1}\n" for place, days in enumerate(rows))
    table = gl.read_table(file(f"{week},{first},{last},Network,Cost (USD)\n{text}"))
    assert (table.period, str(table.interval)) == ("week from Monday", "2026-09-28T00:00Z/2026-10-19T00:00Z")


def test_two_days_that_are_no_from_and_to_are_asked_about(file: WriteFile) -> None:
    """A bill and the day on which it is due make no period."""
    path = file(
        "Rechnung,Zahlbar,Cost (USD)\n2026-10-01,2026-10-31,5\n2026-10-02,2026-11-01,6\n2026-10-05,2026-11-04,7\n"
    )
    table = gl.read_table(path)
    assert table.periods.problem is not None


def test_income_is_not_proposed_as_a_cost(file: WriteFile) -> None:
    """The step that is named works."""
    installs = tidy_frame("new_users", country_code=["US", "DE"], new_users=[10, 20])
    path = file("Country,Ad revenue (USD),Impressions\nUS,5.5,100\nDE,2.5,90\n")
    with pytest.raises(BadQuery, match=r'roles=\{"Ad revenue \(USD\)": "cost"\} if that was spent') as refused:
        outside_data.cost_per_install(installs, spend=path)
    assert "amount=" not in str(refused.value)
    result = outside_data.cost_per_install(installs, spend=path, roles={"Ad revenue (USD)": "cost"})
    assert result["spend"].sum() == 8.0


def test_units_below_the_headers_are_joined_where_they_repeat(file: WriteFile) -> None:
    """A row of names below codes is no header, and one of units that are there twice belongs to the row above."""
    rows = "".join(f"2026-11-0{day},{day}1,{day}2,3{day}\n" for day in range(1, 8))
    table = gl.read_table(file(f"Day,Meta cost,Moloco cost,Meta installs\n,(USD),(USD),(n)\n{rows}"))
    names = ["Day", "Meta cost (USD)", "Moloco cost (USD)", "Meta installs (n)"]
    assert [column.name for column in table.columns] == names


@pytest.mark.parametrize(
    ("header", "units", "names"),
    [
        ("Day,Cost,Completes,LOI", ",€,n,min", ["Day", "Cost €", "Completes (n)", "LOI (min)"]),
        ("Day,Cost,Completes,LOI", ",EUR,n,min", ["Day", "Cost (EUR)", "Completes (n)", "LOI (min)"]),
        ("Day,Cost,Completes,LOI", "(UTC),(EUR),(n),", ["Day (UTC)", "Cost (EUR)", "Completes (n)", "LOI"]),
        ("Day,Cost,Fee,Rate", ",€,€,%", ["Day", "Cost €", "Fee €", "Rate %"]),
    ],
)
def test_units_below_the_headers_leave_their_names(file: WriteFile, header: str, units: str, names: list[str]) -> None:
    rows = "".join(f"2026-11-0{day},{day}1.5,{day}2,3{day}\n" for day in range(1, 8))
    table = gl.read_table(file(f"{header}\n{units}\n{rows}"))
    assert [column.name for column in table.columns] == names
    assert table.column(names[1]).values.sum() == pytest.approx(290.5)


PERIODS = ("A,2026-10-05,2026-10-11,30.5", "B,2026-10-05,2026-10-12,20", "C,2026-10-09,2026-10-18,10")


def test_a_row_without_either_end_of_its_period_has_no_days(file: WriteFile) -> None:
    """Ends that differ from row to row look like merged cells, and starts that repeat do not: neither is filled."""
    table = gl.read_table(file("\n".join(["Name,Start,End,Cost (EUR)", *PERIODS, "Fee,,,7", ""])))
    assert table.periods.problem is None
    assert table.starts.isna().tolist() == [False, False, False, True]
    with pytest.warns(UserWarning, match="row 5 .*without a day counts"):
        dollars = outside_data.in_dollars(table, rate={"EUR": 1.2})
    assert dollars["spend"].sum() == pytest.approx(81.0)


def test_the_step_for_a_period_without_its_start_works_as_it_says(file: WriteFile) -> None:
    path = file("\n".join(["Name,Start,End,Cost (EUR)", *PERIODS, "Fee,,2026-10-20,7", ""]))
    with pytest.raises(BadQuery, match=r'roles=\{"Start": "text", "End": "day"\} takes End alone'):
        raise gl.read_table(path).periods.problem  # type: ignore[misc]
    alone = gl.read_table(path, roles={"Start": "text", "End": "day"})
    assert alone.starts.dt.day.tolist() == [11, 12, 18, 20]
