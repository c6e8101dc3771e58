"""The choice of a query engine, and the lake as its only source of data."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import pytest
from msgspec.structs import replace
from sqlglot import parse_one

from gamelens.catalog import METRICS
from gamelens.errors import Refused
from gamelens.sandbox.engines.duckdb_engine import DuckDBReader
from gamelens.sandbox.engines.engine import LakeLocation, filesystem_of
from gamelens.sandbox.engines.open_engine import open_engine
from gamelens.sandbox.engines.read_files import ReadFiles
from gamelens.sandbox.engines.spark_engine import spark_sql
from gamelens.sandbox.metrics.sql_planner import TABLES, compile_query
from gamelens.sandbox.storage.lake import Snapshot
from gamelens.wire.queries import decode_query
from support.game_events import event
from support.random_worlds import random_query
from support.sandbox_stage import Stage

BODY = {"interval": "2026-11-01/P30D", "granularity": "all", "query": {"type": "group", "dimension": "platform"}}
PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
PLAN = compile_query(METRICS["event_count"], decode_query(BODY), games=["1001"])


@pytest.fixture
def played(stage: Stage) -> Stage:
    """Return a sandbox with events of two platforms."""
    stage.submit([event(), event(platform="android")])
    stage.process()
    return stage


def rows_at(stage: Stage, url: str | None, *, snapshot: Snapshot | None = None) -> list[dict[str, Any]]:
    """Return the rows of the query from the lake at *url*, or from the local lake."""
    engine = open_engine("duckdb", LakeLocation(stage.sandbox.lake.root, url))
    try:
        return engine.rows(PLAN, snapshot or stage.sandbox.lake.snapshot("acme"))
    finally:
        engine.close()


@pytest.mark.wide
def test_a_copy_of_the_lake_answers_as_the_lake_does(played: Stage, tmp_path: Path) -> None:
    """A copy of the lake, at a path or a file URL, gives the rows of the original."""
    copy = tmp_path / "the copy, 100%"
    shutil.copytree(played.sandbox.lake.root, copy)
    expected = rows_at(played, None)
    assert len(expected) == 2
    shutil.move(played.sandbox.lake.root, tmp_path / "elsewhere")
    assert rows_at(played, copy.as_uri()) == rows_at(played, str(copy)) == expected


@pytest.fixture
def in_memory(played: Stage) -> Iterator[str]:
    """Return the URL of a copy of the lake in an fsspec memory filesystem."""
    fsspec = pytest.importorskip("fsspec")
    memory = fsspec.filesystem("memory")
    memory.put(str(played.sandbox.lake.root), "/lake", recursive=True)
    memory.pipe_file("/other/secret.parquet", b"PAR1")
    yield "memory://lake"
    memory.rm("/lake", recursive=True)
    memory.rm("/other", recursive=True)


def test_a_lake_at_a_url_is_read_through_fsspec(played: Stage, in_memory: str) -> None:
    """A lake at an fsspec URL gives the rows of the local lake."""
    assert rows_at(played, in_memory) == rows_at(played, None)


@pytest.mark.parametrize("path", ["../other/secret.parquet", "../../etc/hostname"])
def test_nothing_outside_the_lake_is_read(played: Stage, in_memory: str, path: str) -> None:
    """DuckDB refuses a path outside the lake, of the same filesystem or of the machine."""
    outside = {
        name: [replace(part, path=played.sandbox.lake.root / path) for part in parts]
        for name, parts in played.sandbox.lake.snapshot("acme").tables.items()
    }
    with pytest.raises(duckdb.PermissionException):
        rows_at(played, in_memory, snapshot=Snapshot(outside))


def test_a_url_of_an_unknown_filesystem_is_refused(stage: Stage) -> None:
    """A URL whose scheme no filesystem has is refused."""
    with pytest.raises(Refused, match="cannot be read"):
        DuckDBReader(LakeLocation(stage.sandbox.lake.root, "nonsense://bucket/lake"))


def test_an_unknown_engine_is_refused(stage: Stage) -> None:
    """An unknown engine is refused with the list of engines."""
    with pytest.raises(Refused, match="is not an engine: duckdb, spark"):
        open_engine("sqlite", LakeLocation(stage.sandbox.lake.root))


@pytest.mark.parametrize(
    ("written", "in_spark"),
    [
        ("CAST(money AS HUGEINT)", "CAST(money AS DECIMAL(38, 0))"),
        ("ROW(game_id, user_id)", "STRUCT(game_id, user_id)"),
        ("a / b", "CAST(a AS DOUBLE) / CAST(b AS DOUBLE)"),
        ("ts >= $start", "ts >= :start"),
    ],
)
def test_sql_is_translated_for_spark(written: str, in_spark: str) -> None:
    """Types, rows and quotients of DuckDB are written as Spark has them."""
    assert spark_sql(f"SELECT {written}") == f"SELECT {in_spark}"


@pytest.fixture(scope="module")
def spark_statements() -> dict[str, set[str]]:
    """Return six statements of each metric, of random queries over all kinds of tables."""
    random, texts = Random(5), {name: set[str]() for name in METRICS}
    while min(map(len, texts.values())) < 6:
        reference = random_query(random, "acme")
        name = reference.metric
        if len(texts[name]) < 6:
            query = decode_query(reference.body, granularity="day" if name == "retention_retro" else None)
            plan = compile_query(METRICS[name], query, games=["1001"], tables=random.choice((TABLES, TABLES, ())))
            texts[name].add(spark_sql(plan.sql))
    return texts


@pytest.mark.shown_by(3)
@pytest.mark.parametrize("name", METRICS)
def test_every_statement_is_one_of_spark(spark_statements: dict[str, set[str]], name: str) -> None:
    """Statements of every metric, over all kinds of tables, are translated to what Spark's grammar reads."""
    for text in spark_statements[name]:
        assert "HUGEINT" not in text
        assert " ROW(" not in text
        assert parse_one(text, dialect="spark").sql("spark")


def test_whole_quotients_in_spark_avoid_div() -> None:
    """A whole quotient does not use Spark's DIV, which wraps around at 64 bits."""
    assert " DIV " not in spark_sql("SELECT a // b")


@pytest.mark.skipif(find_spec("pyspark") is not None, reason="it is not missing")
def test_missing_spark_says_how_to_install_it(stage: Stage) -> None:
    """Without pyspark, the engine "spark" is refused with the extra to install."""
    with pytest.raises(Refused, match=r"gamelens\[spark\]"):
        open_engine("spark", LakeLocation(stage.sandbox.lake.root))


def test_an_unknown_engine_is_refused_before_the_start(tmp_path: Path) -> None:
    """An unknown engine is refused before anything is served, and the state is unlocked."""
    with pytest.raises(Refused, match="is not an engine"):
        Stage(tmp_path / "state", engine="sqlite")
    Stage(tmp_path / "state").sandbox.close()


ON_DUCKDB = """
import sys
from pathlib import Path
import gamelens as gl
import gamelens.sandbox.server
from gamelens.local.sandbox_population import populate_lake
from gamelens.simulator import load_scenario

populate_lake(Path(sys.argv[1]), load_scenario("small", players=20, days=5))
lake = gl.open_lake(sys.argv[1])
rows = len(lake.query("new_users", over="last 3 complete days")), len(lake.sql("SELECT count(*) FROM events"))
lake.close()
print(rows, "sqlglot" in sys.modules)
"""


@pytest.mark.wide
def test_neither_a_sandbox_nor_a_lake_on_duckdb_imports_sqlglot(tmp_path: Path) -> None:
    """It takes longer to import than a question to answer: only Spark's statements are translated."""
    command = [sys.executable, "-c", ON_DUCKDB, str(tmp_path / "state")]
    assert subprocess.run(command, capture_output=True, text=True).stdout == "(3, 1) False\n"


@pytest.mark.parametrize(
    ("url", "extra"), [("s3://bucket/x", "s3"), ("gs://bucket/x", "gcs"), ("abfss://c@account/x", "azure")]
)
def test_a_store_without_its_package_names_the_extra(url: str, extra: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where fsspec does not know the scheme before its package is there."""
    for package in ("adlfs", "gcsfs", "s3fs"):
        monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(Refused, match="The export cannot be read: ") as refused:
        filesystem_of(url, called="The export")
    assert str(refused.value).endswith(f"Run pip install 'gamelens[{extra}]'")
    assert extra in PROJECT["optional-dependencies"]


@pytest.mark.wide
@pytest.mark.parametrize("address", ["lake://{path}", "{path}"])
def test_threads_read_one_file_at_once(tmp_path: Path, address: str) -> None:
    """Each read is of the place that its thread has sought, whatever the others do."""
    fsspec = pytest.importorskip("fsspec")
    path, content = tmp_path / "file", Random(1).randbytes(1 << 22)
    path.write_bytes(content)
    files = ReadFiles(fsspec.filesystem("file"), only=[str(path)] if "lake" in address else None)
    file = files.open(address.format(path=path))

    def read_all(seed: int) -> bool:
        draw = Random(seed)
        places = [(draw.randrange(len(content)), draw.choice([100, 50_000])) for _ in range(2_000)]
        return all(
            file.seek(place) == place and file.read(size) == content[place : place + size] for place, size in places
        )

    with file, ThreadPoolExecutor(8) as pool:
        assert all(pool.map(read_all, range(8)))
