"""The overview of a health board: the change of each number in each game."""

from __future__ import annotations

from pandas import DataFrame

from gamelens.investigations.health_check import HealthReport, number_text

CHANGES = {"G7": -0.5, **{f"G{number}": number / 100 for number in range(7)}}


def test_games_are_columns_and_the_worst_come_first() -> None:
    """Six games at most have a column, in the board's order, and numbers are rows in that of the watched metrics."""
    rows = [
        {"game_id": game, "game": game, "watch": watch, "metric": name, "dimension": None, "change": change}
        | {"value": 100 * (1 + change), "expected": 100.0, "kind": "count", "is_flagged": game == "G7"}
        for game, change in CHANGES.items()
        for watch, name in (("new_users", "New players"), ("user_unique", "Active players"))
        if (game, watch) != ("G0", "new_users")
    ]
    overview = HealthReport(DataFrame(rows), DataFrame(), DataFrame(), requests=0).overview()
    assert list(overview.columns) == ["number", "G7", "G0", "G1", "G2", "G3", "G4"]
    assert overview["number"].tolist() == ["Active players", "New players"]
    assert overview["G7"].tolist() == ["-50%: 50, usually 100"] * 2
    assert overview["G4"].tolist() == ["104, usually 100"] * 2
    assert overview["G0"].tolist()[1] == ""


def test_segments_are_in_the_unit_of_their_metric() -> None:
    """Retention is a share, sessions are counted, a null segment is (unknown)."""
    rows = {
        "game": ["Tile"] * 2,
        "watch": ["retention_d1", "session_unique"],
        "metric": ["Day 1 retention", "Sessions"],
        "kind": ["share", "count"],
        "of_dimension": ["country_code", None],
        "of_segment": ["BR", None],
        "dimension": ["build", "country_code"],
        "segment": ["1.10.0", None],
        "value": [0.18, 90.0],
        "expected": [0.349, 120.0],
        "share_of_change": [0.986, 0.4],
    }
    report = HealthReport(DataFrame(), DataFrame(), DataFrame(rows), requests=0)
    table = report.segment_table(report.moved)
    assert table.iloc[0].tolist() == ["Tile", "Day 1 retention", "BR", "build", "1.10.0", "18.0%", "34.9%", "99%"]
    assert table.iloc[1].tolist() == ["Tile", "Sessions", "", "country", "(unknown)", "90", "120", "40%"]
    assert list(report.segment_table(report.moved[:0])) == list(table)


def test_an_empty_board_has_an_empty_overview() -> None:
    """Without a complete day there are no games and no rows."""
    board = DataFrame(columns=["game_id", "game", "watch", "metric", "dimension", "change"])
    assert HealthReport(board, DataFrame(), DataFrame(), requests=0).overview().empty


def test_a_number_that_is_neither_money_nor_a_count_has_its_unit() -> None:
    """A session of 748 is one of 748 seconds; what is usual is in the same unit."""
    row = {"game_id": "1", "game": "Tile", "watch": "session_length", "metric": "Session length", "dimension": None}
    numbers = {"change": -0.2, "value": 748.0, "expected": 944.0, "kind": "number", "is_flagged": False}
    board = DataFrame([row | numbers])
    overview = HealthReport(board, DataFrame(), DataFrame(), requests=0).overview()
    assert overview["Tile"].tolist() == ["748 seconds, usually 944"]
    assert number_text(row | numbers | {"value": None}) == "n/a"
