"""The tables of a health report: its numbers are written as those of any table."""

from __future__ import annotations

import pytest
from pandas import DataFrame

from gamelens.analysis import health
from gamelens.investigations.health_check import HealthReport, number_texts
from gamelens.notebook.tables.column_texts import columns_of
from support.every_result import shared_results

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
    assert overview["G7"].tolist() == ["-50.0%: 50, usually 100"] * 2
    assert overview["G4"].tolist() == ["104, usually 100"] * 2
    assert overview["G0"].tolist()[1] == ""


def alarm(game: str, watch: str, value: float, expected: float, **more: object) -> dict[str, object]:
    """Return a row of a board, flagged where it is not as usual."""
    kind = {"retention_d1": "share", "network_share": "share", "errors": "rate"}.get(watch, "count")
    row = {"game_id": game, "game": game, "watch": watch, "value": value, "expected": expected, "kind": kind}
    row |= {"timestamp": "2026-11-29", "dimension": None, "segment": None, "whole": None}
    return row | {"is_flagged": value != expected} | more


def test_the_largest_money_comes_first() -> None:
    """A small share of much money is more than a large share of little; each game once, then the others."""
    german = {"dimension": "country_code", "segment": "DE"}
    board = DataFrame(
        [
            alarm("small", "errors", 0.1, 0.01, dimension="build", segment="1.0"),
            alarm("small", "user_unique", 10.0, 100.0),
            alarm("large", "retention_d1", 0.2, 0.4, whole=10.0, **german),
            alarm("large", "retention_d1", 0.36, 0.4, whole=100.0),
            alarm("large", "network_share", 0.2, 0.3, dimension="ilrd_network_name", segment="AdMob"),
            alarm("large", "user_unique", 80.0, 100.0),
            alarm("small", "revenue", 5.0, 5.0),
            alarm("small", "ilrd_revenue", 5.0, 5.0),
            alarm("large", "revenue", 900.0, 900.0),
            alarm("large", "ilrd_revenue", 100.0, 100.0),
        ]
    )
    ordered = HealthReport(board, DataFrame(), DataFrame(), requests=0).by_money
    assert [*zip(ordered["game"], ordered["watch"], ordered["segment"].fillna(""), strict=True)] == [
        ("large", "user_unique", ""),  # 200 dollars of 1,000
        ("small", "user_unique", ""),  # 9 of 10
        ("large", "retention_d1", ""),  # 100
        ("large", "retention_d1", "DE"),  # half of a tenth of the players: 50
        ("large", "network_share", "AdMob"),  # a tenth of 100 from ads
        ("small", "errors", "1.0"),  # in no money
    ]


def test_alarms_without_money_stay_the_worst_first() -> None:
    """As on a board that watches players alone."""
    board = DataFrame([alarm("a", "user_unique", 9.0, 10.0), alarm("b", "user_unique", 1.0, 10.0)])
    assert HealthReport(board, DataFrame(), DataFrame(), requests=0).by_money["game"].tolist() == ["a", "b"]


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
    assert table.iloc[0].tolist() == ["Tile", "Day 1 retention", "BR", "build", "1.10.0", "18.0%", "34.9%", "98.6%"]
    assert table.iloc[1].tolist() == ["Tile", "Sessions", "", "country", "(unknown)", "90", "120", "40.0%"]
    assert list(report.segment_table(report.moved[:0])) == list(table)


def test_an_empty_board_has_an_empty_overview() -> None:
    """Without a complete day there are no games and no rows."""
    board = health.board(health.score_days(health.daily([])))
    assert HealthReport(board, DataFrame(), DataFrame(), requests=0).overview().empty


def test_a_number_that_is_neither_money_nor_a_count_has_its_unit() -> None:
    """A session of 748 is one of 748 seconds; what is usual is in the same unit."""
    row = {"game_id": "1", "game": "Tile", "watch": "session_length", "metric": "Session length", "dimension": None}
    numbers = {"change": -0.2, "value": 748.0, "expected": 944.0, "kind": "number", "is_flagged": False}
    board = DataFrame([row | numbers])
    overview = HealthReport(board, DataFrame(), DataFrame(), requests=0).overview()
    assert overview["Tile"].tolist() == ["748 seconds, usually 944"]
    unknown = number_texts(DataFrame([row | numbers | {"value": None}]))
    assert unknown.iloc[0].to_dict() == {"change": "-20.0%", "value": "n/a", "expected": "944 seconds", "usual": "944"}


@pytest.fixture(scope="module")
def results() -> dict[str, DataFrame]:
    return shared_results()


def test_a_report_writes_numbers_like_every_table(results: dict[str, DataFrame]) -> None:
    """Of a board and of segments, whose decimal places follow from the interval of what is usual."""
    for name in ("health.board", "health.segments"):
        rows = results[name].assign(watch="revenue")
        texts, shown = number_texts(rows, name), {column.column: column for column in columns_of(results[name])}
        for column in ("value", "expected", "change"):
            assert texts[column].tolist() == [shown[column].text(row) for row in range(len(rows))], (name, column)


def test_numbers_of_one_metric_have_the_same_decimals() -> None:
    """An expected 0.0117 is not beside a bare 0, and a rare error is not said to be none."""
    row = {"game_id": "1", "game": "Tile", "watch": "errors", "metric": "Errors", "kind": "rate", "dimension": None}
    numbers = [(0.0, 0.0117), (0.0159, 0.0077), (0.000012, 0.0101)]
    rows = DataFrame([row | {"value": value, "expected": usual, "change": 0.1} for value, usual in numbers])
    assert number_texts(rows)["value"].tolist() == ["0.0000", "0.0159", "< 0.0001"]
    assert number_texts(rows)["usual"].tolist() == ["0.0117", "0.0077", "0.0101"]
