"""Statements from typed parts: each construct, and values that would break out of text."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import duckdb
import pytest

from gamelens.sandbox.engines.spark_engine import spark_sql
from gamelens.sandbox.metrics.sql_planner import (
    FilterSql,
    Parameters,
    Select,
    identifier,
    left_join,
    named,
    nested,
    union_all,
    with_tables,
)
from gamelens.sandbox.storage.atoms import when
from gamelens.wire.filters import Match, Not
from support.game_events import event
from support.hostile_names import NAMES
from support.sandbox_stage import Stage, metric_value

NUMBERS = "(VALUES (1, 'a'), (2, 'b'), (2, 'b'), (NULL, 'c')) AS numbers(n, category)"


def rows(statement: object, **parameters: Any) -> list[tuple[Any, ...]]:
    """Return the rows of *statement* from DuckDB, which must also translate it for Spark."""
    text = str(statement)
    assert spark_sql(text)
    with duckdb.connect() as connection:
        return connection.execute(text, parameters).fetchall()


FIRST_USE = """
import threading, time
from sqlglot.dialects import dialect

trie_of = dialect.new_trie

def slow_trie(*arguments):
    time.sleep(0.05)
    return trie_of(*arguments)

dialect.new_trie = slow_trie
from gamelens.sandbox.engines.spark_engine import spark_sql

found = []
threads = [threading.Thread(target=lambda: found.append(spark_sql("SELECT $start / 2"))) for _ in range(100)]
for thread in threads:
    thread.start()
    time.sleep(0.01)
for thread in threads:
    thread.join()
print(len(found), *set(found))
"""
"""Threads that translate at once in a new process, in which a dialect takes its time to be made."""


@pytest.mark.wide
def test_threads_that_translate_first_get_the_same_statement() -> None:
    """None sees a dialect that is half made, whose statements are another dialect's."""
    printed = subprocess.run([sys.executable, "-c", FIRST_USE], capture_output=True, text=True, check=True).stdout
    assert printed == "100 SELECT CAST(:start AS DOUBLE) / CAST(2 AS DOUBLE)\n"


@pytest.mark.shown_by(2)
@pytest.mark.parametrize(
    ("select", "expected"),
    [
        (Select(columns={"one": "1"}), [(1,)]),
        (Select(source=NUMBERS, where=("n = 1",)), [(1, "a")]),
        (Select(columns=named("n"), source=NUMBERS, where=("n > 0", "category = 'b'")), [(2,), (2,)]),
        (
            Select(columns=named("n"), source=NUMBERS, is_distinct=True, order=("n DESC NULLS LAST",)),
            [(2,), (1,), (None,)],
        ),
        (
            Select(columns={**named("n"), "rows": "count(*)"}, source=NUMBERS, by=("n",), order=("n",), limit=1),
            [(1, 1)],
        ),
    ],
)
def test_a_select_has_its_clauses_in_their_order(select: Select, expected: list[Any]) -> None:
    """Columns, source, conditions, groups, order and limit mean what they do in SQL."""
    assert rows(select) == expected


def test_rows_are_added_nested_and_named() -> None:
    """Rows of several SELECTS are one source, by a name or as an intermediate table."""
    both = union_all((Select(columns={"n": "1"}), Select(columns={"n": "2"})))
    total = Select(columns={"total": "sum(n)"}, source=nested(both, "both_rows"))
    assert rows(total) == [(3,)]
    tables: dict[str, Select | str] = {"both_rows": both, "larger": Select(source="both_rows", where=("n > 1",))}
    assert rows(with_tables(tables, Select(source="larger"))) == [(2,)]


def test_a_left_join_keeps_rows_without_a_match() -> None:
    """Columns of the other source are null where no row has the same keys."""
    other = nested("SELECT 'a' AS category, 7 AS extra", "other")
    joined = Select(
        columns=named("category", "extra"), source=left_join(NUMBERS, other, "category"), where=("n < 2 OR n IS NULL",)
    )
    assert sorted(rows(joined)) == [("a", 7), ("c", None)]


def test_expressions_choose_a_value() -> None:
    """A value is null, or the other one, where its condition is false or null."""
    columns = {"chosen": when("n > 1", "'more'"), "other": when("n > 1", "1", "0")}
    select = Select(columns=columns, source=NUMBERS, where=("n > 0", "n < 3"), is_distinct=True, order=("other",))
    assert rows(select) == [(None, 0), ("more", 1)]


@pytest.mark.parametrize("name", ["", "1a", "a b", 'a"', "a;", "a--", "A", "a.b", "é", "a\n"])
def test_a_name_that_needs_quotes_is_refused(name: str) -> None:
    """Names are written as they are, so only plain ones may be."""
    with pytest.raises(ValueError, match="no plain identifier"):
        identifier(name)
    with pytest.raises(ValueError, match="no plain identifier"):
        str(Select(columns={name: "1"}))
    with pytest.raises(ValueError, match="no plain identifier"):
        nested("SELECT 1", name)


@pytest.mark.shown_by(4)
@pytest.mark.parametrize(
    "text", ["", "it's", "''", "'; DROP TABLE x; --", "a\\", "\n", "$p0", ":p0", "{player_key}", *NAMES.values()]
)
def test_any_text_is_a_parameter(text: str) -> None:
    """A bound value is the text itself, whatever is in it."""
    parameters = Parameters()
    select = Select(columns={"value": _text(parameters.bind(text)), "same": _text(parameters.bind(text, "again"))})
    assert rows(select, **parameters.values) == [(text, text)]
    for negated in (Match("platform", (text,)), Not(Match("platform", (text,)))):
        bound = Parameters()
        condition = FilterSql(negated, bound).conditions(negated, {"platform": "'other'"})
        count = Select(columns={"n": "count(*)"}, source=NUMBERS, where=condition)
        assert rows(count, **bound.values) == [(4 if isinstance(negated, Not) else 0,)]


def test_a_parameter_is_bound_once_under_its_name() -> None:
    """Values without a name are numbered, and a named one is the same parameter wherever it is used."""
    parameters = Parameters()
    assert [parameters.bind(1), parameters.bind(2, "limit"), parameters.bind(3), parameters.bind(2, "limit")] == [
        *("$p0", "$limit", "$p2", "$limit")
    ]
    assert parameters.values == {"p0": 1, "limit": 2, "p2": 3}


def _text(value: str) -> str:
    return f"CAST({value} AS VARCHAR)"


def test_a_negation_selects_events_without_a_value(stage: Stage) -> None:
    """Null is none of the values (Wire 2.7, Filters)."""
    stage.submit([event(), event(user_id="bob", country_code=None)])
    stage.process()
    for country, count in (
        ({"country_code": "US"}, 1),
        ({"not": {"country_code": "US"}}, 1),
        ({"not": {"build": "2"}}, 2),
    ):
        assert metric_value(stage, filter=country) == count
