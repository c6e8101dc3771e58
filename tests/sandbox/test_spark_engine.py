"""Spark against DuckDB: equal plans over one lake give equal rows."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path
from random import Random
from typing import Any

import httpx
import pytest

from gamelens.catalog import METRICS, Metric
from gamelens.errors import Refused
from gamelens.local.sandbox_info import read_sandbox_info
from gamelens.sandbox.engines.engine import LakeLocation, QueryBounds, QueryStopped, SqlQuery
from gamelens.sandbox.engines.spark_engine import SparkReader
from gamelens.sandbox.metrics.sql_planner import TABLES, compile_dimension_values, compile_query
from gamelens.sandbox.storage.lake import Snapshot
from gamelens.wire.currencies import SCALED_RATES
from gamelens.wire.intervals import Interval
from gamelens.wire.queries import decode_query
from support.bounded_queries import ENDLESS
from support.brute_force import ReferenceQuery
from support.random_worlds import GAMES, POOLS, play, random_query
from support.sandbox_stage import Stage

pytest.importorskip("pyspark")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("java") is None, reason="Spark needs Java"),
]

MASTER = "local-cluster[2,1,1024]"
WHOLE_DAYS = ("2026-11-01/P20D", "2026-10-20/P31D", "2026-11-20/P1D")


@pytest.fixture(scope="module")
def spark_stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """Return a sandbox with random events in its lake."""
    spark_stage = Stage(tmp_path_factory.mktemp("world") / "state")
    play(spark_stage, Random(11), batches=20)
    yield spark_stage
    spark_stage.sandbox.close()


@pytest.fixture(scope="module")
def spark_reader(spark_stage: Stage, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkReader]:
    """Start a Spark cluster of two workers, each in a process of its own."""
    os.environ["SPARK_WORKER_DIR"] = str(tmp_path_factory.mktemp("workers"))
    reader = SparkReader(LakeLocation(spark_stage.sandbox.lake.root), master=MASTER)
    yield reader
    reader.close()


def test_a_long_query_is_stopped(spark_reader: SparkReader) -> None:
    """A query that takes too long ends soon after its time, and one of too many rows is cut off."""
    currencies = SqlQuery("SELECT currency FROM rates ORDER BY currency", {}, {})
    bounds, spark_reader.bounds = spark_reader.bounds, QueryBounds(seconds=2, rows=3)
    try:
        began = time.monotonic()
        with pytest.raises(QueryStopped, match="took more than 2 s"):
            spark_reader.rows(ENDLESS, Snapshot({}))
        assert time.monotonic() - began < 60
        spark_reader.bounds = QueryBounds(rows=3)
        assert [row["currency"] for row in spark_reader.rows(currencies, Snapshot({}))] == sorted(SCALED_RATES)[:4]
    finally:
        spark_reader.bounds = bounds


@pytest.fixture
def bounded(spark_reader: SparkReader) -> Iterator[SparkReader]:
    """Return the reader for a test to change its bounds."""
    bounds = spark_reader.bounds
    yield spark_reader
    spark_reader.bounds = bounds


def test_a_job_that_begins_after_its_time_is_stopped(bounded: SparkReader) -> None:
    """A query whose time is over before its job begins is stopped all the same."""
    bounded.bounds = QueryBounds(seconds=0.001)
    began = time.monotonic()
    with pytest.raises(QueryStopped, match=r"took more than 0\.001 s"):
        bounded.rows(ENDLESS, Snapshot({}))
    assert time.monotonic() - began < 60


def query_kinds(metric: Metric) -> tuple[str, ...]:
    """Return the kinds of query that *metric* has (Wire 2.6, Query kinds)."""
    plain = ("group", "split", "timeseries")
    return {"plain": plain, "per game": (*plain, "by_game"), "retention": ("by_game",)}[metric.kinds]


def random_queries(metric: Metric, random: Random) -> list[ReferenceQuery]:
    """Return random queries of every kind and granularity, half of them over whole days."""
    granularities = ("day",) if metric.kinds == "retention" else ("day", "week", "month", "all")
    missing_kinds = list(product(query_kinds(metric), granularities)) * (10 if metric.kinds == "retention" else 1)
    queries: list[ReferenceQuery] = []
    while missing_kinds:
        query = random_query(random, "acme")
        kind = query.body.get("query", {}).get("type", "by_game"), query.granularity
        if query.metric == metric.name and kind in missing_kinds:
            missing_kinds.remove(kind)
            if random.random() < 0.5:
                query.body["interval"] = random.choice(WHOLE_DAYS)
            queries.append(query)
    return queries


def rows_of_both(spark_stage: Stage, spark_reader: SparkReader, plan: SqlQuery) -> list[list[dict[str, Any]]]:
    """Return the rows of *plan* from DuckDB and from Spark."""
    snapshot = spark_stage.sandbox.lake.snapshot("acme")
    return [engine.rows(plan, snapshot) for engine in (spark_stage.sandbox.reader, spark_reader)]


@pytest.mark.parametrize("name", METRICS)
def test_every_kind_of_every_metric_has_the_same_rows(spark_stage: Stage, spark_reader: SparkReader, name: str) -> None:
    """Queries of every kind and granularity give the rows of DuckDB, to the last digit."""
    metric, random, answered_queries = METRICS[name], Random(name), 0
    for reference in random_queries(metric, random):
        query = decode_query(reference.body, granularity="day" if metric.kinds == "retention" else None)
        tables = random.choice((TABLES, TABLES, ()))
        duckdb_rows, spark_rows = rows_of_both(
            spark_stage, spark_reader, compile_query(metric, query, games=sorted(reference.games), tables=tables)
        )
        assert spark_rows == duckdb_rows, (reference, tables)
        answered_queries += bool(duckdb_rows)
    assert answered_queries


@pytest.mark.parametrize("dimension", POOLS)
def test_every_list_of_values_is_the_same(spark_stage: Stage, spark_reader: SparkReader, dimension: str) -> None:
    """The values of a dimension come in the order of code points, as in DuckDB.

    Wire 2.11, Lists.
    """
    plan = compile_dimension_values(dimension, Interval.parse("2026-10-01/P60D"), games=GAMES["acme"], limit=100)
    duckdb_rows, spark_rows = rows_of_both(spark_stage, spark_reader, plan)
    assert spark_rows == duckdb_rows
    assert duckdb_rows


def test_whole_quotients_may_exceed_64_bits(spark_stage: Stage, spark_reader: SparkReader) -> None:
    """Quotients that sort the rows of a ratio are exact beyond 64 bits (Wire 4.13, Numbers)."""
    big, by = "CAST('123456789012345678901234567896' AS HUGEINT)", "CAST(7 AS HUGEINT)"
    statement = f"SELECT {big} // {by} AS whole, ({big} % {by}) / {by} AS rest, {big} // NULLIF(0, 0) AS none"
    duckdb_rows, spark_rows = rows_of_both(spark_stage, spark_reader, SqlQuery(statement, {}, {}))
    assert spark_rows == duckdb_rows
    assert duckdb_rows[0]["whole"] == 123456789012345678901234567896 // 7


def test_concurrent_queries_use_their_own_snapshots(spark_stage: Stage, spark_reader: SparkReader) -> None:
    """Concurrent queries have views of their own under the same names."""
    body = {"granularity": "all", "query": {"type": "group", "dimension": "platform"}}
    plans = [
        compile_query(METRICS["event_count"], decode_query(body | {"interval": f"2026-11-{day}/P1D"}), games=["1001"])
        for day in (12, 13, 15, 17, 18, 19, 20)
    ]
    snapshot = spark_stage.sandbox.lake.snapshot("acme")
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda plan: spark_reader.rows(plan, snapshot), plans))
    assert answers == [spark_stage.sandbox.reader.rows(plan, snapshot) for plan in plans]
    assert sum(map(bool, answers)) > 2


def test_a_second_spark_in_one_process_is_refused(spark_stage: Stage, spark_reader: SparkReader) -> None:
    """A second Spark reader in one process is refused."""
    with pytest.raises(Refused, match="did not start"):
        SparkReader(LakeLocation(spark_stage.sandbox.lake.root), master="local[1]")


@pytest.mark.parametrize("kind", ["classic", "connect"])
def test_the_session_of_a_user_is_used_and_stays_as_it_is(spark_stage: Stage, kind: str) -> None:
    """Its zone, its ANSI setting and its views, and it is not stopped. A long query is stopped, also on a server."""
    if kind == "connect":
        pytest.importorskip("grpc_status")
    program = Path(__file__).parents[1] / "support" / "spark_user_session.py"
    paths = os.pathsep.join([str(program.parents[1]), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, str(program), kind, str(spark_stage.sandbox.options.state)]
    ended = subprocess.run(command, env=os.environ | {"PYTHONPATH": paths}, capture_output=True, text=True)
    assert ended.stdout.strip().endswith("equal"), ended.stderr[-3000:]


def start_sandbox(state: Path, **env: str) -> subprocess.Popen[str]:
    """Start a sandbox process on Spark."""
    command = [sys.executable, "-m", "gamelens", "sandbox", "up", "--state", str(state), "--engine", "local[1]"]
    return subprocess.Popen(command, env=os.environ | env, stderr=subprocess.PIPE, text=True, start_new_session=True)


@pytest.mark.parametrize("stop", [os.kill, os.killpg], ids=["the sandbox", "its driver as well"])
def test_a_sandbox_on_spark_ends_with_its_driver(tmp_path: Path, stop: Callable[[int, int], None]) -> None:
    """After SIGTERM the sandbox and its Spark driver end, with exit code 0."""
    ready = tmp_path / "state" / "ready.json"
    with start_sandbox(tmp_path / "state") as sandbox:
        while not ready.exists():
            assert sandbox.poll() is None
            time.sleep(0.1)
        info = read_sandbox_info(ready)
        answer = httpx.post(
            f"{info.metrics_url}/metrics/v1/metrics/event_count",
            headers={"X-API-Key": str(info.organisations[0].api_key)},
            json={"interval": "2026-11-01/P1D", "granularity": "all", "query": {"type": "timeseries"}},
            timeout=60,
        )
        drivers = children(sandbox.pid)
        stop(sandbox.pid, signal.SIGTERM)
        sandbox.communicate(timeout=60)
    assert answer.json()["result"][0]["result"] == {"event_count": 0}
    assert sandbox.returncode == 0
    assert drivers
    deadline = time.monotonic() + 20
    while any(map(is_running, drivers)) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not any(map(is_running, drivers))


def test_missing_java_is_reported(tmp_path: Path) -> None:
    """Without Java the sandbox exits with 1 and says what is missing."""
    with start_sandbox(tmp_path / "state", PATH=str(tmp_path), JAVA_HOME="") as sandbox:
        _, error = sandbox.communicate(timeout=60)
    assert sandbox.returncode == 1
    assert "needs Java" in error


def children(pid: int) -> list[int]:
    """Return the process ids of the children of *pid*."""
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def is_running(pid: int) -> bool:
    """Return whether a process runs and is not a zombie."""
    status = Path(f"/proc/{pid}/stat")
    return status.exists() and status.read_text().rpartition(")")[2].split()[0] != "Z"
