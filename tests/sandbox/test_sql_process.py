"""Statements of a user in their process: what one leaves behind and what it does not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from gamelens.sandbox.engines.engine import QueryBounds
from gamelens.sandbox.engines.spill_folder import SpillFolder
from gamelens.sandbox.engines.sql_process import SqlProcess

MADE = ("CREATE TABLE made AS SELECT random() AS once",)


@pytest.fixture(scope="module")
def process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SqlProcess]:
    """A process for statements."""
    spill = SpillFolder(tmp_path_factory.mktemp("spill"))
    process = SqlProcess(spill)
    yield process
    process.close()
    spill.close()


def value(process: SqlProcess, statement: str, *, bounds: QueryBounds = QueryBounds(), **made_of: Any) -> Any:  # noqa: B008
    """Return the first value that *statement* selects."""
    table = process.run(statement, {}, bounds, **{"setup": MADE, "files": ()} | made_of)
    return table.to_pylist()[0].popitem()[1]


def test_what_is_read_is_made_once(process: SqlProcess) -> None:
    """The tables and views of the first statement are those of the next, unless it reads others or may take more."""
    first = value(process, "FROM made")
    assert value(process, "FROM made") == first
    for other in ({"setup": (*MADE, "SELECT 1")}, {"files": ("a",)}, {"bounds": QueryBounds(memory="300MB")}):
        assert value(process, "FROM made", **other) != first


def test_a_statement_changes_nothing_for_the_next(process: SqlProcess) -> None:
    """Its seed of random numbers is its own."""
    drawn = set()
    for _ in range(2):
        value(process, "SELECT setseed(0.5)")
        drawn.add(value(process, "SELECT random()"))
    assert len(drawn) == 2
