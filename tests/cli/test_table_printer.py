"""Frames printed in a terminal and in a pipe."""

from __future__ import annotations

import io
import re

import pandas as pd
import pytest
from rich.console import Console

from gamelens.cli.terminal.table_printer import boxed, columns_of, plain, print_table, screen_columns
from gamelens.notebook.tables.table_contents import contents_of

NUMBER = re.compile(r"1,234,568")


def frame(*, fields: int = 1) -> pd.DataFrame:
    """Return a frame with a null group, a missing count and *fields* numbers."""
    return pd.DataFrame(
        {
            "timestamp": pd.to_datetime(["2026-11-18", "2026-11-19"], utc=True),
            "country_code": pd.Categorical(["NA", None]),
            "event_count": pd.array([12_345, None], dtype="Int64"),
        }
        | {f"sum_of_field_{n}": [1234567.5, float("nan")] for n in range(fields)}
    )


def on_screen(given: pd.DataFrame, width: int) -> list[list[str]]:
    """Return the lines of each table that a terminal of *width* shows."""
    tables = []
    for table in boxed(screen_columns(contents_of(given, rows=1000, total=False, bars=())), width):
        console = Console(file=io.StringIO(), width=width)
        console.print(table, crop=False)
        tables.append(console.file.getvalue().splitlines())  # type: ignore[attr-defined]
    return tables


def test_a_pipe_gets_one_line_a_row_and_no_boxes() -> None:
    """A pipe gets one aligned line per row without boxes, missing numbers left empty."""
    lines = list(plain(columns_of(frame())))
    assert lines == [
        "timestamp   country_code  event_count  sum_of_field_0",
        "2026-11-18  NA                  12345    1234567.5000",
        "2026-11-19  (unknown)",
    ]


def test_a_terminal_gets_what_a_table_in_a_notebook_has() -> None:
    """Names, units and numbers are those of `df.lens.table()`, with numbers to the right."""
    (lines,) = on_screen(frame(), 80)
    assert lines[1].split("┃")[1:-1] == [" Day         ", " Country   ", " Events ", " Sum of field 0 "]
    assert lines[3].split("│")[1:-1] == [" 18 Nov 2026 ", " NA        ", " 12,345 ", "      1,234,568 "]
    assert [cell.strip() for cell in lines[4].split("│")[1:-1]] == ["19 Nov 2026", "(unknown)", "n/a", "n/a"]


@pytest.mark.parametrize("width", [60, 72, 100, 200])
def test_no_table_is_wider_than_the_terminal_and_no_number_is_cut(width: int) -> None:
    """A wide frame is split into tables that fit the terminal, without shortening numbers."""
    tables = on_screen(frame(fields=6), width)
    lines = [line for table in tables for line in table]
    assert max(map(len, lines)) <= width
    assert sum(len(NUMBER.findall(line)) for line in lines) == 6
    assert "…" not in "".join(lines)


def test_every_table_of_a_wide_frame_says_what_its_rows_are() -> None:
    """Every table of a split frame repeats timestamp and dimensions."""
    tables = on_screen(frame(fields=6), 60)
    assert len(tables) > 1
    assert all("Day" in table[1] and "Country" in table[1] for table in tables)


def test_long_names_are_cut_before_numbers_are() -> None:
    """A long name is shortened, numbers are not."""
    given = frame().assign(country_code=pd.Categorical(["x" * 200, "y"]))
    (lines,) = on_screen(given, 80)
    assert "xx…" in lines[3]
    assert "1,234,568" in lines[3]
    assert max(map(len, lines)) <= 80


def test_a_title_cannot_command_the_terminal() -> None:
    """Control and direction characters of a name are replaced, other Unicode stays."""
    given = frame().assign(country_code=pd.Categorical(["\x1b[2Jgone\nand\u202eback", "Größe 👩‍👩‍👧"]))
    lines = list(plain(columns_of(given)))
    assert len(lines) == 3
    assert "\ufffd[2Jgone\ufffdand\ufffdback" in lines[1]
    assert "Größe 👩‍👩‍👧" in lines[2]


def test_small_shares_keep_three_digits() -> None:
    """Small numbers keep three significant digits."""
    given = pd.DataFrame({"retention": [0.25, 0.000123]})
    assert list(plain(columns_of(given))) == ["retention", " 0.250000", " 0.000123"]


def test_a_time_that_is_not_midnight_is_shown_with_its_minutes() -> None:
    """A bucket start is printed as a day, another timestamp as day and minute in UTC."""
    given = pd.DataFrame({"timestamp": pd.to_datetime(["2026-11-18T10:30Z", "2026-11-19T00:00Z"])})
    assert list(plain(columns_of(given)))[1:] == ["2026-11-18T10:30Z", "2026-11-19T00:00Z"]


def test_a_terminal_notes_which_rows_may_change(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A row whose number may change has a mark, and a line below says so."""
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    given = frame()
    given.attrs["gamelens"] = {"asked": {"every": "day"}, "as_of": "2026-11-20T00:00:00+00:00"}
    print_table(given)
    shown = capsys.readouterr().out
    assert "19 Nov 2026¹" in shown
    assert "\n¹ May still change" in shown
