"""Numbers below a word for days are dates of a spreadsheet only where nothing contradicts that; levels stay levels."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path

import pytest
from pandas import DataFrame

import gamelens as gl
from support.outside_files import written
from support.tidy_frames import tidy_frame

_LEVELS = (38238, 38214, 38307, 39412, 41079)
_DAYS = tuple(str(date(2026, 10, 5) + timedelta(days=day)) for day in range(5))


def _table(path: Path, header: str, numbers: tuple[float, ...] = _LEVELS) -> Path:
    return written(path / "t.csv", f"Date;{header}", *(f"{day};{n}" for day, n in zip(_DAYS, numbers, strict=True)))


@pytest.mark.parametrize(
    ("header", "role"),
    [
        ("Spend day", "amount"),
        ("Ausgaben am Tag", "amount"),
        ("Dépenses du jour", "amount"),
        ("広告費 日", "amount"),
        ("Clicks per day", "rate"),
        ("Installazioni giorno", "count"),
        ("Clics, día", "count"),
        ("Impressões (dia)", "count"),
        ("Installed audience (last day)", "stock"),
        ("Installierte Zielgruppe, letzter Tag", "stock"),
        ("Nutzer mit Installationen (letzter Tag)", "stock"),
        ("Audience installée, dernier jour", "stock"),
        ("Base instalada (último día)", "stock"),
        ("Base installata: ultimo giorno", "stock"),
        ("Público instalado: último dia", "stock"),
        ("База установок, последний день", "stock"),
        ("インストール ベース（最終日）", "stock"),
        ("설치 기반 (마지막 날)", "stock"),
        ("安装受众群体（最后一天）", "stock"),
        ("Yüklü cihazlar, son gün", "stock"),
        ("Baza instalacji, ostatni dzień", "stock"),
        ("Last day: all countries", "stock"),
        ("Letzter Tag: Österreich", "stock"),
        ("Players of the day", "distinct"),
        ("Something day", "number"),
        ("Day", "number"),
    ],
)
def test_numbers_far_from_the_days_of_their_rows_are_no_dates(tmp_path: Path, header: str, role: str) -> None:
    table = gl.read_table(_table(tmp_path, header), currency="EUR")
    assert table.column("Date").role == "day"
    assert table.column(header).role == role
    assert table.column(header).values.dropna().tolist() == [*_LEVELS]


@pytest.mark.parametrize("header", ["Installed audience, end of day", "Öffnungen am Tag", "Último dia: Chile"])
def test_levels_without_other_days_are_no_dates(header: str) -> None:
    table = gl.read_table(DataFrame({"Country": ["CL", "AT", "DE", "FR", "IT"], header: _LEVELS}))
    assert table.column(header).role in ("stock", "number")


@pytest.mark.parametrize("header", ["Day", "Tag", "Fecha", "Report day", "Jour de facturation"])
def test_dates_of_a_spreadsheet_stay_days(tmp_path: Path, header: str) -> None:
    rows = [f"{46300 + day};{100 + day}" for day in range(5)]
    table = gl.read_table(written(tmp_path / "t.csv", f"{header};Clicks", *rows))
    assert table.column(header).role == "day"
    assert str(table.starts.iloc[0].date()) == "2026-10-05"


def test_a_date_near_the_days_of_its_rows_stays_one(tmp_path: Path) -> None:
    path = _table(tmp_path, "Start date", (46290, 46290, 46290, 46290, 46290))
    assert gl.read_table(path).column("Start date").role in ("start", "day")


@pytest.mark.parametrize(
    "header",
    [
        "Active devices", "Aktive Geräte", "Appareils actifs", "Dispositivos activos", "Dispositivi attivi",
        "Dispositivos ativos", "Активные устройства", "アクティブなデバイス", "활성 기기", "活跃设备", "Aktif cihazlar",
        "Aktywne urządzenia", "Público com instalações", "Publikum mit Installationen", "Installed base",
    ],
)  # fmt: skip
def test_a_level_has_its_last_day_in_a_week(tmp_path: Path, header: str) -> None:
    path = _table(tmp_path, header)
    frame = tidy_frame("new_users", timestamp=["2026-10-05"], new_users=[5])
    frame.attrs["gamelens"]["asked"] |= {"every": "week", "interval": "2026-10-05T00:00Z/2026-10-12T00:00Z"}
    assert gl.join(frame, path).frame[header].tolist() == [41079]


def test_columns_of_one_measure_by_country_have_one_role(tmp_path: Path) -> None:
    headers = ["Utilizadores (dia): Todos os países", "Utilizadores (dia): Portugal", "Utilizadores (dia): Brasil"]
    rows = [f"{day};{level};{level // 3};{level // 7}" for day, level in zip(_DAYS, _LEVELS, strict=True)]
    table = gl.read_table(written(tmp_path / "t.csv", ";".join(["Data", *headers]), *rows))
    assert len({table.column(header).role for header in headers}) == 1
    assert table.column(headers[0]).values.tolist() == [*_LEVELS]


def test_a_role_of_most_countries_is_that_of_all(tmp_path: Path) -> None:
    headers = ["Ratio x: World", "Ratio x: Peru", "Clicks: Peru", "Clicks: World", "Total: Clicks", "Total: Spend"]
    rows = [f"{day};1;2;3;4;5;6" for day in _DAYS]
    table = gl.read_table(written(tmp_path / "t.csv", ";".join(["Day", *headers]), *rows), currency="EUR")
    assert [table.column(header).role for header in headers] == ["rate", "rate", "count", "count", "count", "amount"]


@pytest.mark.parametrize(
    "header",
    ["Installations de l'application", "Impressions de la pub", "Engagements", "Clics del anuncio", "Sessions du jour"],
)
def test_counts_with_what_they_are_of_are_counts(tmp_path: Path, header: str) -> None:
    assert gl.read_table(_table(tmp_path, header, (1, 2, 3, 4, 5))).column(header).role == "count"


def test_a_level_without_a_row_in_the_last_snapshot_of_a_day_names_its_time(tmp_path: Path) -> None:
    rows = [
        f"{_DAYS[0]} {hour};{place};{n}"
        for hour, place, n in (("06:01", "de", 5), ("06:01", "cz", 7), ("18:02", "de", 6))
    ]
    path = written(tmp_path / "t.csv", "Scraped at;Country;Active devices", *rows)
    frame = tidy_frame("new_users", timestamp=["2026-10-05"], new_users=[5])
    frame.attrs["gamelens"]["asked"] |= {"every": "day", "interval": "2026-10-05T00:00Z/2026-10-06T00:00Z"}
    joined = gl.join(frame, path)
    assert joined.frame["Active devices"].tolist() == [13]
    assert "'cz' has none at 2026-10-05 18:02" in str(joined.report.explain())


def test_a_column_with_a_text_for_a_number_is_left_out_by_its_cell(tmp_path: Path) -> None:
    rows = [f"{day};{n};{text}" for day, n, text in zip(_DAYS, range(5), ("1", "2", "off", "4", "5"), strict=True)]
    path = written(tmp_path / "t.csv", "Date;Clicks;Position", *rows)
    frame = tidy_frame("new_users", timestamp=["2026-10-05"], new_users=[5])
    frame.attrs["gamelens"]["asked"] |= {"every": "week", "interval": "2026-10-05T00:00Z/2026-10-12T00:00Z"}
    joined = gl.join(frame, path)
    assert "Position left out: its cell in row 4 is not a number" in str(joined.report.explain())
