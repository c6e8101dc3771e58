"""The engine that writes the lake: one writer after another in one instance of DuckDB, and nothing left in between."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pytest

from gamelens.sandbox.engines.duckdb_engine import MEMORY_LIMIT, DuckDBWriter
from support.forked_child import in_child

SETTINGS = "SELECT current_setting('temp_directory'), current_setting('memory_limit')"


@pytest.fixture
def writer(tmp_path: Path) -> Callable[[str], DuckDBWriter]:
    """Return a function that makes a writer with a scratch folder of that name."""
    return lambda name: DuckDBWriter(tmp_path / name)


def test_a_writer_leaves_nothing_to_the_next(writer: Callable[[str], DuckDBWriter], tmp_path: Path) -> None:
    """Neither tables, views nor rows of Python; each spills to its own folder."""
    with closing(writer("one")) as one:
        one.create("made", "SELECT 1 AS n")
        one.create_view("seen", "FROM made")
        one.view("given", pa.table({"n": [1]}))
        assert one.run("SELECT count(*) FROM seen, given") == [(1,)]
    with closing(writer("two")) as two:
        assert two._instance is one._instance
        assert two.run("SELECT name FROM (SHOW ALL TABLES)") == []
        ((folder, limit),) = two.run(SETTINGS)
        assert (folder, MEMORY_LIMIT) == (str(tmp_path / "two"), "1GB")
        assert limit.startswith("953.6")


def test_writers_at_once_do_not_meet(writer: Callable[[str], DuckDBWriter]) -> None:
    """Each has an instance of its own, and so the memory that one may take."""
    with closing(writer("one")) as one, closing(writer("two")) as two:
        assert one._instance is not two._instance
        one.create("made", "SELECT 1 AS n")
        assert two.run("SELECT name FROM (SHOW ALL TABLES)") == []


def test_a_writer_that_spilled_is_the_last_of_its_instance(
    writer: Callable[[str], DuckDBWriter], tmp_path: Path
) -> None:
    """DuckDB would go on spilling to the folder of that writer, which is removed."""
    with closing(writer("one")) as one:
        one.run("SET memory_limit = '40MB'")
        one.create("made", "SELECT range AS n, repeat('x', 50) AS text FROM range(2_000_000)")
        assert [*(tmp_path / "one").iterdir()]
    with closing(writer("two")) as two:
        assert two._instance is not one._instance
        assert two.run(SETTINGS)[0][0] == str(tmp_path / "two")


def test_a_forked_child_makes_its_own_instance(writer: Callable[[str], DuckDBWriter]) -> None:
    """That of the parent has no threads there, for which its end would wait."""
    writer("one").close()

    def count() -> object:
        two, three = writer("two"), writer("three")
        rows = two.run("SELECT count(*) FROM range(1_000_000)")
        three.close()
        two.close()
        return rows

    assert in_child(count) == [(1_000_000,)]
