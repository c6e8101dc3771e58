"""Compact pivot tables: names of rows that add up those below are keys of these, and countries are no amounts."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from pathlib import Path

import openpyxl
import pytest

import gamelens as gl
from support.tidy_frames import tidy_frame

WriteFile = Callable[..., Path]

PIVOT = [
    ("Betriebssystem", "Android"),
    (),
    ("Summe von Kosten", "Spaltenbeschriftungen"),
    ("Zeilenbeschriftungen", "AT", "CH", "PL", "Gesamtergebnis"),
    ("Mai", 30, 70.5, 12, 112.5),
    ("Moloco", 10, 20, 5, 35),
    ("Vungle", 20, 50.5, 7, 77.5),
    ("Jun", 5, None, 3, 8),
    ("Moloco", 5, None, 3, 8),
    ("Jul", 11, 12, 14, 37),
    ("Moloco", 1, 4, 6, 11),
    ("Vungle", 10, 8, 8, 26),
    ("Gesamtergebnis", 46, 82.5, 29, 157.5),
]


def _sheet(path: Path, rows: Sequence[tuple[object, ...]]) -> Path:
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    book.save(path)
    return path


def test_months_of_a_pivot_are_days_of_the_networks_below(tmp_path: Path) -> None:
    table = gl.read_table(_sheet(tmp_path / "pivot.xlsx", PIVOT), currency="EUR", year=2026)
    frame = table.frame
    roles = {column.name: column.role for column in table.columns}
    assert roles == {
        "Zeilenbeschriftungen": "network",
        "day": "day",
        "country": "country",
        "Summe von Kosten": "amount",
    }
    by_month = frame.groupby("day")["Summe von Kosten"].sum()
    assert [f"{day:%Y-%m}" for day in by_month.index] == ["2026-05", "2026-06", "2026-07"]
    assert by_month.tolist() == [112.5, 8, 37]
    assert frame.groupby("country", observed=True)["Summe von Kosten"].sum().to_dict() == {
        "AT": 46,
        "CH": 82.5,
        "PL": 29,
    }
    assert any("(Mai, Jun, Jul) are the sums of the rows below them" in note for note in table.notes)


def test_year_of_the_months_of_a_pivot_is_asked_for(tmp_path: Path) -> None:
    table = gl.read_table(_sheet(tmp_path / "pivot.xlsx", PIVOT), currency="EUR")
    assert "year=2026" in str(table.periods.problem)


def test_cost_of_a_pivot_stands_beside_its_month_alone(tmp_path: Path) -> None:
    path = _sheet(tmp_path / "pivot.xlsx", PIVOT)
    months = tidy_frame(
        "new_users",
        timestamp=["2026-05-01", "2026-06-01", "2026-07-01"],
        install_publisher=["Moloco"] * 3,
        new_users=[7, 10, 20],
    )
    joined = gl.join(months, path, columns=["Summe von Kosten"], currency="EUR", year=2026)
    assert joined.frame["Summe von Kosten"].tolist() == [35, 8, 11]


def test_networks_above_countries_above_games(file: WriteFile) -> None:
    lines = ["Row Labels,Sum of Spend (USD),Average of CPI"]
    costs = {
        ("Meta Ads", "DE"): (10, 20),
        ("Meta Ads", "FR"): (5, 7),
        ("Moloco", "DE"): (3, 4),
        ("Moloco", "FR"): (9, 1),
    }
    for network in ("Meta Ads", "Moloco"):
        lines.append(f"{network},{sum(map(sum, (cost for key, cost in costs.items() if key[0] == network)))},2.5")
        for country in ("DE", "FR"):
            pair = costs[network, country]
            lines += [f"{country},{sum(pair)},2.4", f"Harbor Tale,{pair[0]},2.2", f"Moon Farm,{pair[1]},2.6"]
    table = gl.read_table(file("\n".join([*lines, "Grand Total,59,2.5", ""])))
    frame = table.frame
    assert frame["Sum of Spend (USD)"].sum() == 59
    assert frame.groupby("network", observed=True)["Sum of Spend (USD)"].sum().to_dict() == {
        "Meta Ads": 42,
        "Moloco": 17,
    }
    assert frame.groupby("country", observed=True)["Sum of Spend (USD)"].sum().to_dict() == {"DE": 37, "FR": 22}
    assert [table.column(name).role for name in ("network", "country")] == ["network", "country"]


def test_one_month_above_its_networks(file: WriteFile) -> None:
    text = "Row Labels,Sum of Spend (USD)\nOct 2026,30\nMoloco,10\nVungle,20\nGrand Total,30\n"
    frame = gl.read_table(file(text)).frame
    assert frame["Sum of Spend (USD)"].tolist() == [10, 20]
    assert frame["day"].dt.month.tolist() == [10, 10]


def test_names_of_an_unknown_kind_are_kept_too(file: WriteFile) -> None:
    text = "Row Labels,Sum of Spend (USD)\nNorth,30\nLina,10\nOmar,20\nSouth,9\nLina,4\nOmar,5\nGrand Total,39\n"
    frame = gl.read_table(file(text)).frame
    assert frame["group"].tolist() == ["North", "North", "South", "South"]
    assert frame["Sum of Spend (USD)"].sum() == 39


def test_totals_that_are_kept_stay_rows(file: WriteFile) -> None:
    text = "Row Labels,Sum of Spend (USD)\nOct 2026,30\nMoloco,10\nVungle,20\nNov 2026,9\nMoloco,4\nVungle,5\n"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        frame = gl.read_table(file(text), totals="keep").frame
    assert len(frame) == 6


@pytest.mark.parametrize("total", ["Total", "Суммарно"])
def test_countries_without_a_column_that_adds_them_up_stay_columns(file: WriteFile, total: str) -> None:
    table = gl.read_table(file(f"Game,US,GB,JP,{total}\nMoon Farm,3,7,1,3\nHarbor Tale,9,2,4,5\nTile Cove,8,1,2,2\n"))
    assert {"US", "GB", "JP"} <= {column.name for column in table.columns}


def test_years_above_months_are_their_years(file: WriteFile) -> None:
    """Months of two years have the same names."""
    lines = ["Row Labels,Sum of Spend (USD)", "2025,30", "Dez,30", "Moloco,10", "Vungle,20", "2026,24"]
    lines += ["Mai,15", "Moloco,7", "Vungle,8", "Dez,9", "Moloco,4", "Vungle,5", "Grand Total,54", ""]
    table = gl.read_table(file("\n".join(lines)))
    found = table.frame.groupby(table.frame["day"].dt.strftime("%Y-%m"))["Sum of Spend (USD)"].sum()
    assert found.to_dict() == {"2025-12": 30, "2026-05": 15, "2026-12": 9}


def test_years_above_months_that_are_the_rows(file: WriteFile) -> None:
    lines = ["Row Labels,Sum of Spend (USD)", "2025,30", "Nov,10", "Dec,20", "2026,24", "Jan,15", "Feb,9", ""]
    table = gl.read_table(file("\n".join(lines)))
    assert [f"{day:%Y-%m}" for day in table.starts] == ["2025-11", "2025-12", "2026-01", "2026-02"]
    assert table.period == "month"
