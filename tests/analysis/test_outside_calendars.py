"""Calendars of holidays and events: rows hold on each of their days, and in each country where they say so."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import openpyxl
import pandas as pd
import pytest
from openpyxl.styles import Font
from pandas import DataFrame

import gamelens as gl
from gamelens.errors import BadQuery
from support.tidy_frames import tidy_frame

WriteFile = Callable[..., Path]

ROWS = [
    ("2026-11-02", "2026-11-04", "US", "Spring break"),
    ("2026-11-03", "2026-11-03", "DE", "Reformation"),
    ("2026-11-06", "2026-11-07", "All", "Sale"),
]


def _installs(every: str = "day", *, countries: tuple[str | None, ...] = ("US", "DE")) -> DataFrame:
    first = {"day": pd.date_range("2026-11-02", "2026-11-08"), "week": pd.DatetimeIndex(["2026-11-02"])}[every]
    days = [f"{day:%Y-%m-%d}" for day in first]
    frame = tidy_frame(
        "new_users",
        timestamp=days * len(countries),
        country_code=[country for country in countries for _ in days],
        new_users=[1] * len(days) * len(countries),
    )
    frame.attrs["gamelens"]["asked"] |= {"every": every, "interval": "2026-11-02T00:00Z/2026-11-09T00:00Z"}
    return frame


def _events(frame: DataFrame, name: str) -> dict[tuple[str, str], str]:
    known = frame[frame[name].notna()]
    return {
        (f"{day:%m-%d}", str(country)): str(text)
        for day, country, text in zip(known["timestamp"], known["country_code"], known[name], strict=True)
    }


WANTED = {
    **{(f"11-0{day}", "US"): "Spring break" for day in (2, 3, 4)},
    ("11-03", "DE"): "Reformation",
    **{(f"11-0{day}", country): "Sale" for day in (6, 7) for country in ("US", "DE")},
}


SALE = {("11-06", "DE"), ("11-07", "DE")}


@pytest.mark.shown_by(2)
@pytest.mark.parametrize(
    ("headers", "everywhere"),
    [
        ("Start,End,Country,Event", "All"),
        ("Başlangıç,Bitiş,Ülke,Ad", "Tümü"),
        ("Von,Bis,Land,Ereignis", "Weltweit"),
        ("Początek,Koniec,Kraj,Nazwa", "Wszystkie"),
        ("開始,終了,国,イベント", "全世界"),
        ("Bắt đầu,Kết thúc,Quốc gia,Tên", "Toàn cầu"),
        ("Mulai,Selesai,Negara,Nama", "WW"),
        ("من تاريخ,تاريخ الانتهاء,الدولة,الحدث", "جميع الدول"),
    ],
)
def test_an_event_holds_on_each_of_its_days_and_in_all_countries(
    file: WriteFile, headers: str, everywhere: str
) -> None:
    rows = [",".join(row).replace("All", everywhere) for row in ROWS]
    joined = gl.join(_installs(), file("\n".join([headers, *rows, ""])))
    assert _events(joined.frame, headers.split(",")[-1]) == WANTED
    assert any("stands for all countries of the frame" in said for said in joined.report.warnings)
    assert any("that stand for several days hold on each of them" in said for said in joined.report.warnings)


def test_ranges_in_one_column_are_days_too(file: WriteFile) -> None:
    path = file("Days,Country,Event\n2-4 Nov 2026,US,Spring break\n6-7 Nov 2026,DE,Sale\n")
    frame = gl.join(_installs(), path, on={"timestamp": "Days", "country_code": "Country"}).frame
    assert _events(frame, "Event") == {key: text for key, text in WANTED.items() if "break" in text or key in SALE}


def test_an_unknown_country_has_the_events_of_all(file: WriteFile) -> None:
    path = file("\n".join(["Start,End,Country,Event", *map(",".join, ROWS), ""]))
    frame = gl.join(_installs(countries=("US", None)), path).frame
    assert frame.loc[frame["country_code"].isna(), "Event"].notna().sum() == 2


def test_texts_of_a_day_or_week_with_several_events_are_joined_as_the_refusal_says(file: WriteFile) -> None:
    path = file("\n".join(["Start,End,Country,Event", *map(",".join, ROWS), "2026-11-04,2026-11-05,US,Match", ""]))
    for frame in (_installs(), _installs("week")):
        with pytest.raises(BadQuery, match=r'how=\{"Event": "join"\} joins the texts of a key'):
            gl.join(frame, path)
        texts = gl.join(frame, path, how={"Event": "join"}).frame["Event"].dropna().astype("str")
        assert any(text in ("Spring break, Match", "Spring break, Sale, Match") for text in texts)


def test_a_period_with_an_amount_is_not_spread(file: WriteFile) -> None:
    """What was spent in a week was not spent on each of its days."""
    path = file("Start,End,Country,Cost (USD)\n2026-11-02,2026-11-04,US,30\n2026-11-06,2026-11-07,DE,40\n")
    with pytest.raises(BadQuery, match="one row a period"):
        gl.join(_installs(), path)


def test_an_event_that_is_struck_through_is_asked_about(tmp_path: Path) -> None:
    book, path = openpyxl.Workbook(), tmp_path / "calendar.xlsx"
    for row in [("Start", "End", "Country", "Event"), *ROWS]:
        book.active.append(row)
    for cell in book.active[2]:
        cell.font = Font(strike=True)
    book.save(path)
    with pytest.raises(BadQuery, match=r"which may be cancelled: leave_out=\{'struck through': \['yes'\]\}"):
        gl.join(_installs(), path)
    left = gl.join(_installs(), path, leave_out={"struck through": ["yes"]}).frame
    assert "Spring break" not in _events(left, "Event").values()
    kept = gl.join(_installs(), path, leave_out={"struck through": []}).frame
    assert _events(kept, "Event") == WANTED


@pytest.mark.shown_by(2)
@pytest.mark.parametrize(
    ("headers", "word", "other"),
    [
        ("Start,End,Country,Event,Status", "cancelled", "confirmed"),
        ("Von,Bis,Land,Ereignis,Status", "storniert", "bestätigt"),
        ("Inicio,Fin,País,Evento,Estado", "Cancelado", "Confirmado"),
        ("Από,Έως,Χώρα,Τίτλος,Κατάσταση", "Ακυρώθηκε", "Επιβεβαιωμένο"),
    ],
)
def test_an_event_that_was_cancelled_is_asked_about(file: WriteFile, headers: str, word: str, other: str) -> None:
    """Both steps work."""
    path = file("\n".join([headers, *(",".join((*row, word if row[2] == "DE" else other)) for row in ROWS), ""]))
    name, state = headers.split(",")[3:]
    with pytest.raises(BadQuery, match="leaves it out") as refused:
        gl.join(_installs(), path)
    assert f"leave_out={ {state: [word]}!r}" in str(refused.value)
    left = _events(gl.join(_installs(), path, leave_out={state: [word]}).frame, name)
    assert left == {key: text for key, text in WANTED.items() if text != "Reformation"}
    assert _events(gl.join(_installs(), path, leave_out={state: []}).frame, name) == WANTED


def test_a_kind_of_events_is_no_cancelled_one(file: WriteFile) -> None:
    """A test of prices is an event as well."""
    path = file("\n".join(["Start,End,Country,Event,Type", *(f"{','.join(row)},test" for row in ROWS[:2]), ""]))
    assert len(_events(gl.join(_installs(), path).frame, "Event")) == 4


def test_a_row_of_very_many_days_is_refused(file: WriteFile) -> None:
    path = file("Start,End,Country,Event\n" + "1990-01-01,9000-01-01,US,Forever\n2026-11-01,2026-11-02,DE,x\n")
    with pytest.raises(BadQuery):
        gl.join(_installs(), path)


OF_GERMANY = {("11-03", "DE"): "Reformation"}


@pytest.mark.parametrize(
    ("above", "name"),
    [
        ("Feiertage in Deutschland 2026,\n", "days.csv"),
        ("วันหยุดในประเทศเยอรมนี,\n", "days.csv"),
        ("ドイツの祝日,\n", "days.csv"),
        ("", "holidays_DE_2026.csv"),
    ],
)
def test_a_title_with_a_country_is_asked_about(file: WriteFile, above: str, name: str) -> None:
    """Each step of the question leads on: to that country, or to all."""
    path = file(f"{above}Date,Holiday\n2026-11-03,Reformation\n", name)
    with pytest.raises(BadQuery, match=r'names DE: country="DE" takes .*, on=\{"timestamp": "Date"\} for all'):
        gl.join(_installs(), path)
    assert _events(gl.join(_installs(), path, country="DE").frame, "Holiday") == OF_GERMANY
    of_all = gl.join(_installs(), path, on={"timestamp": "Date"}).frame
    assert _events(of_all, "Holiday") == OF_GERMANY | {("11-03", "US"): "Reformation"}
    assert gl.join(_installs(countries=("DE",)), path).frame["Holiday"].notna().sum() == 1


def test_a_calendar_of_no_country_says_that_it_holds_in_all(file: WriteFile) -> None:
    joined = gl.join(_installs(), file("Date,Event\n2026-11-03,Sale\n"))
    assert joined.frame["Event"].notna().sum() == 2
    assert any(
        'names no country, and holds in all of the frame: country="..."' in said for said in joined.report.warnings
    )


def test_the_country_of_all_rows_is_a_key(file: WriteFile) -> None:
    """Costs of one market are of its rows alone, whatever a column of that name holds."""
    path = file("Date,Cost (EUR)\n2026-11-03,5\n2026-11-04,6\n")
    frame = gl.join(_installs(), path, country="Deutschland").frame
    assert set(frame.loc[frame["Cost (EUR)"].notna(), "country_code"]) == {"DE"}
    assert "country: the argument (DE)" in str(gl.read_table(path, country="DE"))
    with pytest.raises(BadQuery, match="is no country: write a name or two letters"):
        gl.read_table(path, country="Nowhere")
    with pytest.raises(BadQuery, match=r'is not what the column Land says: .* roles=\{"Land": "text"\}'):
        gl.read_table(file("Date,Land,Cost (EUR)\n2026-11-03,DE,5\n"), country="US")
    table = gl.read_table(file("Date,country,Cost (EUR)\n2026-11-03,x,5\n"), country="US", roles={"country": "text"})
    assert [column.name for column in table.of_role("country")] == ["country of all rows"]
