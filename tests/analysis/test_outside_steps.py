"""Steps that a refusal or a note names are true and work: days of a line, sides of a sheet, weeks of a plain frame."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path

import openpyxl
import pandas as pd
import pytest

import gamelens as gl
from gamelens.analysis import outside_data
from gamelens.errors import BadQuery
from support.tidy_frames import tidy_frame

WriteFile = Callable[..., Path]

TITLES = ["Top free - Strategy - 2026-07-14 09:30 UTC", "Chart of 14 July 2026", "Stand: 2026-07-14"]


def _chart(title: str) -> str:
    return f"{title}\n\nTitle\tAT\tCH\nMoon Farm\t3\t9\nHarbor Tale\t14\t2\nTile Cove\t8\t8\n"


@pytest.mark.parametrize("title", TITLES)
def test_day_of_a_line_is_named_and_not_denied(file: WriteFile, title: str) -> None:
    table = gl.read_table(file(_chart(title), "chart.tsv"))
    note = next(note for note in table.notes if "days=" in note)
    assert note.startswith("no column says its days, and the day of a line may be when it was written: ")
    assert f'days="2026-07-14" takes the day of the line {title!r}' in note


@pytest.mark.parametrize("title", TITLES)
def test_ranks_are_of_the_day_of_their_title(file: WriteFile, title: str) -> None:
    table = gl.read_table(file(_chart(title), "chart.tsv"), roles={"AT": "rank", "CH": "rank"})
    assert table.period == "day"
    assert {f"{day:%Y-%m-%d}" for day in table.starts} == {"2026-07-14"}
    assert any(note == f"all rows are of 2026-07-14, by the line {title!r}" for note in table.notes)


def test_day_when_a_bill_is_due_is_no_step(file: WriteFile) -> None:
    table = gl.read_table(file("Zahlbar bis: 2026-08-14\n\nLand\tKosten (EUR)\nAT\t3\nCH\t9\nPL\t4\n", "bill.tsv"))
    assert not any("2026-08-14" in note and "days=" in note for note in table.notes)


def test_join_of_a_table_without_days_names_the_argument_that_gives_them(file: WriteFile) -> None:
    frame = tidy_frame("new_users", timestamp=["2026-07-13", "2026-07-14"], new_users=[1, 2])
    path = file(_chart(TITLES[0]), "chart.tsv")
    with pytest.raises(BadQuery, match='days="2026-07-14" takes the day of the line') as refused:
        gl.join(frame, path, columns=["AT"], roles={"AT": "number", "CH": "number"})
    assert 'on={"timestamp"' not in str(refused.value)


def test_code_for_a_side_of_a_sheet_keeps_its_currency(tmp_path: Path) -> None:
    """The currency stands above several columns; a remark below the table has no numbers."""
    book, path = openpyxl.Workbook(), tmp_path / "stores.xlsx"
    rows = [
        ("Play (PLN)", None, None, None, "Galaxy (KRW)", None, None),
        ("Monat", "Brutto", "Netto", None, "Monat", "Brutto", "Netto"),
        *((f"2026-0{at}", 100.5 * at, 70.5 * at, None, f"2026-0{at}", 9000 * at, 6300 * at) for at in (4, 5, 6)),
        (),
        ("Galaxy pays in won", None, None, None, None, None, None),
    ]
    for row in rows:
        book.active.append(row)
    book.save(path)
    with pytest.raises(BadQuery, match="has two tables side by side") as refused:
        gl.read_table(path)
    code = refused.value.rule.split("pass a frame of one of them, ")[1].split(" or pd.")
    for step, currency, total in ((code[0], "PLN", 1057.5), (f"pd.{code[1]}", "KRW", 94500)):
        frame = eval(step.replace("'stores.xlsx'", repr(str(path))), {"pd": pd})
        table = gl.read_table(frame)
        net = next(column for column in table.columns if "Netto" in column.name)
        assert (net.currency, net.values.sum(), table.period) == (currency, total, "month")


@pytest.mark.parametrize(
    ("days", "ends"),
    [(["2026-06-29", "2026-07-06", "2026-07-13"], 6), (["2026-06-01", "2026-07-01", "2026-08-01"], 27)],
)
def test_buckets_of_a_plain_frame_are_told_by_their_days(file: WriteFile, days: list[str], ends: int) -> None:
    """Of a frame without a receipt, also where the table has one period of them alone."""
    last = (
        (pd.Timestamp(days[1]) + pd.offsets.MonthEnd()) if ends == 27 else pd.Timestamp(days[1]) + pd.Timedelta(days=6)
    )
    path = file(
        f"Start,End,Network,Cost (USD)\n{days[1]},{last:%Y-%m-%d},Moloco,7\n{days[1]},{last:%Y-%m-%d},Vungle,9\n"
    )
    moments = pd.to_datetime(days, utc=True)
    frame = pd.DataFrame({"timestamp": moments, "install_publisher": "Moloco", "new_users": [1, 2, 3]})
    joined = gl.join(frame, path, columns=["Cost (USD)"])
    assert joined.frame["Cost (USD)"].fillna(0).tolist() == [0, 7, 0]


def test_days_of_a_plain_frame_are_no_weeks(file: WriteFile) -> None:
    frame = pd.DataFrame({"timestamp": pd.to_datetime(["2026-07-06", "2026-07-07"], utc=True), "new_users": [1, 2]})
    with pytest.raises(BadQuery, match="has one value a week"):
        gl.join(frame, file("Start,End,Cost (USD)\n2026-07-06,2026-07-12,7\n"), columns=["Cost (USD)"])


def test_each_doubt_of_a_table_is_warned_of_once(file: WriteFile) -> None:
    table = gl.read_table(
        file("Day,Spend (USD),Status\n2026-07-01,5,paid\n2026-07-02,6,cancelled\n2026-07-03,7,paid\n")
    )
    with pytest.warns(UserWarning, match="cancelled"):
        first = table.frame
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert table.frame.equals(first)


def test_a_doubt_of_several_columns_is_one_warning(file: WriteFile) -> None:
    text = "Day,Spend (USD),Sales (USD),Status\n2026-07-01,5,8,paid\n2026-07-02,6,9,cancelled\n2026-07-03,7,3,paid\n"
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        _ = gl.read_table(file(text)).frame
    said = [str(warning.message) for warning in caught if "cancelled" in str(warning.message)]
    assert len(said) == 1
    assert said[0].endswith("The question is the same for Sales (USD).")


@pytest.mark.parametrize("offset", ["+09:00", "UTC-05:00", "Europe/Warsaw"])
def test_days_of_another_zone_are_said(file: WriteFile, offset: str) -> None:
    rows = "".join(f"2026-07-0{day},{day},{offset}\n" for day in (1, 2, 3))
    table = gl.read_table(file(f"day,cost_usd,request.utc_offset\n{rows}"))
    said = f"day has days of {offset} (request.utc_offset), and a frame has days of UTC"
    assert any(said in note for note in table.notes)


@pytest.mark.parametrize("offset", ["+00:00", "UTC", "0"])
def test_days_of_utc_are_not_remarked_on(file: WriteFile, offset: str) -> None:
    rows = "".join(f"2026-07-0{day},{day},{offset}\n" for day in (1, 2, 3))
    table = gl.read_table(file(f"day,cost_usd,request.utc_offset\n{rows}"))
    assert not any("has days of" in note for note in table.notes)


def test_rates_with_a_range_in_dollars(file: WriteFile) -> None:
    path = file("Period,Cost (EUR)\n2026-07-06 : 2026-07-12,10\n2026-07-13 : 2026-07-19,20\n")
    assert outside_data.in_dollars(path, rate={"EUR": 1.1})["spend"].tolist() == pytest.approx([11, 22])
