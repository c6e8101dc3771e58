"""The plain part of SQL that every engine runs alike: what is in it, and how it is written for each."""

from __future__ import annotations

from datetime import datetime

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gamelens.errors import BadQuery
from gamelens.sandbox.engines.plain_sql import check_condition, faults_of, written_for

COLUMNS = {"category": "VARCHAR", "build": "VARCHAR", "usd": "DOUBLE", "ts": "TIMESTAMP"}


@pytest.mark.parametrize(
    ("statement", "reason"),
    [
        ("SELECT list(a) FROM events", "ArrayAgg is not plain"),
        ("SELECT count(DISTINCT (a, b)) FROM events", "not plain"),
        ("SELECT date_trunc('hour', ts) FROM events", "not plain"),
        ("SELECT ts AT TIME ZONE 'UTC' FROM events", "AtTimeZone is not plain"),
        ("SELECT a / 2 FROM events", "Div is not plain"),
        ("SELECT a // 2 FROM events", "IntDiv is not plain"),
        ("SELECT arg_min(a, b) FROM events", "ArgMin is not plain"),
        ("SELECT a FROM events JOIN players USING (a)", "joins need ON"),
        ("SELECT a FROM events, players", "joins need ON"),
        ("SELECT a, count(*) FROM events GROUP BY ALL", "GROUP BY needs names"),
        ("SELECT * FROM events", "columns need names"),
        ("SELECT CAST(a AS INTEGER) FROM events", "types are DATE"),
        ("SELECT date_diff('month', a, b) FROM events", "differences are in DAY"),
    ],
)
def test_what_engines_read_differently_is_not_plain(statement: str, reason: str) -> None:
    """Each place is named with its reason."""
    assert any(reason in fault for fault in faults_of(statement)), faults_of(statement)


@pytest.mark.parametrize(
    "condition",
    [
        "lower(category) = 'ads'",
        "category LIKE 'a%'",
        "category = 3",
        "usd = '3'",
        "ts > '2026-11-01'",
        "mood = 'good'",
        "category",
        "true OR category",
        "category IS TRUE",
        "category IN (SELECT build FROM events)",
        "true) OR (true",
        "category = 'ads' ORDER BY usd",
        "category = 'ads' --",
        "category = ",
        "true; SELECT 2",
        "events.category = 'ads'",
        "usd = usd + 1",
    ],
)
def test_a_condition_that_engines_may_read_differently_is_refused(condition: str) -> None:
    """Such as one of functions, of a text and a number, or one that is more than a condition."""
    with pytest.raises(BadQuery, match="where = "):
        check_condition(condition, COLUMNS)


@pytest.mark.parametrize(
    "condition",
    [
        "category = 'ads' OR (build IN ('1.0', 'it''s') AND NOT usd > -3.5)",
        "usd BETWEEN 0 AND 10 AND build IS NOT NULL",
        "starts_with(build, '1.') AND category <> build",
        "true",
    ],
)
def test_comparisons_are_plain(condition: str) -> None:
    """Of columns with texts and numbers of their own kind."""
    check_condition(condition, COLUMNS)


@given(text=st.text(st.characters(exclude_characters="\0", codec="utf-8"), max_size=20))
def test_any_text_is_written_as_it_is(text: str) -> None:
    """Quotes, backslashes, braces and dollars reach the engine."""
    sql = written_for("duckdb", "SELECT $text AS found", {"text": text}, {})
    with duckdb.connect() as connection:
        assert connection.execute(sql).fetchall() == [(text,)]


def test_views_come_before_what_reads_them() -> None:
    """With those that a view itself reads, and no others; values have their types."""
    views = {
        "all_events": "SELECT a, IN_UTC(b) AS ts FROM mine",
        "events": "SELECT a FROM mine WHERE b >= INSTANT('2026-11-01 00:00:00')",
        "players": "SELECT a, ID_PART(a, 2) AS part FROM all_events",
    }
    statement = "WITH c AS MATERIALIZED (SELECT a FROM players) SELECT a FROM c WHERE a < $at AND a = $text AND a > $n"
    values = {"at": datetime(2026, 11, 1, 12), "text": "${x} 'y'\\", "n": -3}
    assert written_for("duckdb", statement, values, views) == (
        "WITH all_events AS (SELECT a, CAST(b AS TIMESTAMPTZ) AT TIME ZONE 'UTC' AS ts FROM mine), "
        "players AS (SELECT a, string_split(a, ':')[2] AS part FROM all_events), "
        "c AS MATERIALIZED (SELECT a FROM players) "
        "SELECT a FROM c WHERE a < CAST('2026-11-01 12:00:00' AS TIMESTAMP) AND a = '${x} ''y''\\' AND a > (-3)"
    )
    assert written_for("spark", statement, values, views) == (
        "WITH all_events AS (SELECT a, TIMESTAMP_NTZ '1970-01-01 00:00:00' + "
        "MAKE_DT_INTERVAL(0, 0, 0, CAST(UNIX_MICROS(b) AS DECIMAL(20, 0)) / 1000000) AS ts FROM mine), "
        "players AS (SELECT a, SPLIT_PART(a, ':', 2) AS part FROM all_events), c AS (SELECT a FROM players) "
        "SELECT a FROM c WHERE a < CAST('2026-11-01 12:00:00' AS TIMESTAMP_NTZ) "
        "AND a = ('$' || '{x} \\'y\\'\\\\') AND a > (-3)"
    )
    assert written_for("bigquery", statement, values, views) == (
        "WITH all_events AS (SELECT a, DATETIME(b, 'UTC') AS ts FROM mine), "
        "players AS (SELECT a, SPLIT(a, ':')[SAFE_ORDINAL(2)] AS part FROM all_events), c AS (SELECT a FROM players) "
        "SELECT a FROM c WHERE a < CAST('2026-11-01 12:00:00' AS DATETIME) "
        "AND a = '${x} \\'y\\'\\\\' AND a > (-3)"
    )
