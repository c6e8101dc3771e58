"""Quarters are periods with true ends; two columns of days that are a first and a last day are told as a period."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import gamelens as gl
from gamelens.errors import BadQuery
from support.tidy_frames import tidy_frame

WriteFile = Callable[..., Path]


@pytest.mark.shown_by(2)
@pytest.mark.parametrize(
    "form",
    [
        "Q{n} 2026", "2026-Q{n}", "2026Q{n}", "Q{n}/2026", "Q{n} '26", "{n}. Quartal 2026", "T{n} 2026",
        "{n}º trimestre 2026", "{n}º trimestre de 2026", "{n}e trimestre 2026", "{r} kw. 2026", "{r} kwartał 2026",
        "{r} квартал 2026 г.", "{n} кв. 2026", "Kv{n} 2026", "{n}. kvartal 2026", "{n}. çeyrek 2026",
        "2026年第{n}四半期", "2026年第{n}季度", "2026년 {n}분기", "Quý {n}/2026",
        "{n}. negyedév 2026", "2026 {n}. negyedév",
    ],
)  # fmt: skip
def test_quarters_are_periods(file: WriteFile, form: str) -> None:
    numerals = {1: "I", 2: "II", 3: "III", 4: "IV"}
    rows = [f"{form.format(n=n, r=numerals[n])};{100 * n}" for n in numerals]
    table = gl.read_table(file("Okres;Cost (EUR)\n" + "\n".join(rows) + "\n"))
    assert table.period == "period"
    assert table.starts.dt.strftime("%m-%d").tolist() == ["01-01", "04-01", "07-01", "10-01"]
    assert table.ends.dt.strftime("%Y-%m-%d").tolist() == ["2026-04-01", "2026-07-01", "2026-10-01", "2027-01-01"]


def test_a_calendar_week_is_no_quarter(file: WriteFile) -> None:
    table = gl.read_table(file("Woche;Kosten (EUR)\n1. KW 2026;5\n2. KW 2026;6\n3. KW 2026;7\n"))
    assert table.period is None


_MEASURES = ["10,100.5,900", "11,120,800", "12,90,700", "9,99.5,650"]
_NAMES = ["K1,TR", "K2,DE", "K1,TR", "K2,DE"]
_DAYS = ["2026-11-02,2026-11-08"] * 2 + ["2026-11-09,2026-11-15"] * 2
_ROWS = [",".join(parts) for parts in zip(_NAMES, _DAYS, _MEASURES, strict=True)]
_TOTAL = ",,2026-11-02,2026-11-15,42,410,2500"


def test_an_export_in_turkish_is_one_of_meta(file: WriteFile) -> None:
    header = "Kampanya adı,Ülke,Raporlama başlangıcı,Raporlama bitişi,Sonuçlar,Harcanan tutar (TRY),Erişim"
    table = gl.read_table(file("\n".join([header, _TOTAL, *_ROWS]) + "\n"))
    assert table.vendor == "Meta Ads Manager"
    assert table.period == "week from Monday"
    assert table.column("Harcanan tutar (TRY)").values.sum() == 410


def test_a_first_and_a_last_day_are_a_period(file: WriteFile) -> None:
    """The sentence names both as a period, and works when followed; the total of all is left out before."""
    path = file("\n".join(["Campaign,Country,Aaa,Bbb,Installs,Cost (TRY),Reach", _TOTAL, *_ROWS]) + "\n")
    table = gl.read_table(path)
    assert table.column("Cost (TRY)").values.sum() == 410
    rule = str(table.periods.problem)
    assert 'roles={"Aaa": "start", "Bbb": "end"}' in rule
    assert gl.read_table(path, roles={"Aaa": "start", "Bbb": "end"}).period == "week from Monday"


def test_two_days_in_any_order_are_no_period(file: WriteFile) -> None:
    rows = ["A,2026-11-02,2026-11-05,1", "B,2026-11-04,2026-11-03,2", "C,2026-11-05,2026-11-09,3"]
    table = gl.read_table(file("Campaign,Aaa,Bbb,Cost (USD)\n" + "\n".join(rows) + "\n"))
    assert "say which one is meant" in str(table.periods.problem)


@pytest.mark.parametrize("width", [2, 5])
@pytest.mark.parametrize("place", [2, 4])
def test_a_line_of_separators_is_empty(file: WriteFile, place: int, width: int) -> None:
    rows = [f"2026-11-0{day};Meta;{day}" for day in (1, 2, 3, 4)]
    rows.insert(place, ";" * (width - 1))
    table = gl.read_table(file("Date;Network;Cost (USD)\n" + "\n".join(rows) + "\n"))
    assert table.of_role("amount")[0].values.sum() == 10
    assert table.rows.tolist() == [row for row in range(2, 7) if row != place + 2]


def test_a_cell_too_many_is_still_told(file: WriteFile) -> None:
    with pytest.raises(BadQuery, match="quote cells"):
        gl.read_table(file("Date;Network;Cost (USD)\n2026-11-01;Meta;1;2\n;;;;\n2026-11-02;Meta;3\n"))


@pytest.mark.parametrize(
    "header", ["Date,End date", "Day,Until", "Datum,Enddatum", "Fecha,Fecha de fin", "Data,Data końcowa"]
)
def test_a_day_beside_an_end_is_a_start(file: WriteFile, header: str) -> None:
    """Where the rows of a name follow each other; in a daily report the end is that of the campaign."""
    rows = ["2026-10-01,2026-10-07,TV,100", "2026-10-08,2026-10-14,Radio,50", "2026-10-15,2026-10-16,Radio,5"]
    table = gl.read_table(file("\n".join([f"{header},Channel,Cost (USD)", *rows, ""])))
    assert table.ends.dt.strftime("%m-%d").tolist() == ["10-08", "10-15", "10-17"]
    daily = ["2026-10-01,2026-10-31,A,9", "2026-10-02,2026-10-31,A,8", "2026-10-01,2026-10-20,B,7"]
    table = gl.read_table(file("\n".join([f"{header},Campaign,Cost (USD)", *daily, ""])))
    assert table.period == "day"


def test_a_holiday_with_an_end_holds_until_it(file: WriteFile) -> None:
    rows = ["2026-10-01,2026-10-07,CN,Golden Week", "2026-10-03,,DE,Einheit"]
    path = file("\n".join(["Date,End date,Country,Holiday", *rows, ""]))
    days = [f"2026-10-0{day}" for day in range(1, 9)]
    frame = tidy_frame("new_users", timestamp=days * 2, country_code=["CN"] * 8 + ["DE"] * 8, new_users=[1] * 16)
    assert gl.join(frame, path).frame["Holiday"].notna().sum() == 8


@pytest.mark.parametrize("paper", ["invoice_date", "due_date", "Payment date", "Rechnungsdatum", "支払日"])
def test_the_days_of_a_service_are_no_days_of_its_bill(file: WriteFile, paper: str) -> None:
    """A bill is written and paid after what it is of."""
    rows = ["A,2026-10-01,2026-10-11,100,2026-11-05,2026-12-05", "B,2026-10-12,2026-10-31,50,2026-11-05,2026-12-05"]
    table = gl.read_table(file("\n".join([f"line,service_start,service_end,cost_usd,{paper},due_date (2)", *rows, ""])))
    assert table.period == "period"
    assert table.starts.dt.strftime("%m-%d").tolist() == ["10-01", "10-12"]


@pytest.mark.parametrize("header", ["week", "Zeitraum", "when"])
@pytest.mark.parametrize(
    "ranges",
    [
        ("2026-06-29 : 2026-07-05", "2026-07-06 : 2026-07-12"),
        ("2026-06-29:2026-07-05", "2026-07-06:2026-07-12"),
        ("2026-06-29..2026-07-05", "2026-07-06..2026-07-12"),
        ("29.06.2026 : 05.07.2026", "06.07.2026 : 12.07.2026"),
        ("Jun 29 → Jul 5, 2026", "Jul 6 → Jul 12, 2026"),
        ("Jun 29 through Jul 5, 2026", "Jul 6 through Jul 12, 2026"),
    ],
)
def test_ranges_with_other_signs_between_their_days(file: WriteFile, ranges: tuple[str, str], header: str) -> None:
    text = f'{header};Cost (USD)\n"{ranges[0]}";3\n"{ranges[1]}";4\n"{ranges[0]}";5\n'
    table = gl.read_table(file(text))
    assert table.period == "week from Monday"
    assert [f"{day:%m-%d}" for day in table.starts] == ["06-29", "07-06", "06-29"]
