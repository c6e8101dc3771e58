"""Spark against DuckDB: the same plans over the same lake, the same rows to the last digit."""

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

from conftest import Stage
from gamelens.catalog import METRICS, Metric
from gamelens.errors import Refused
from gamelens.local.sandbox_info import read_sandbox_info
from gamelens.sandbox.engines.engine import LakeLocation
from gamelens.sandbox.engines.spark_engine import SparkReader
from gamelens.sandbox.engines.sql_query import SqlQuery, SqlStatement
from gamelens.sandbox.metrics.sql_planner import TABLES, compile_dimension_values, compile_query
from gamelens.wire.intervals import Interval
from gamelens.wire.queries import decode_query
from support.brute_force import Asked
from support.random_worlds import GAMES, POOLS, ask, play

pytest.importorskip("pyspark")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("java") is None, reason="Spark needs Java"),
]

MASTER = "local-cluster[2,1,1024]"
WHOLE_DAYS = ("2026-11-01/P20D", "2026-10-20/P31D", "2026-11-20/P1D")


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """A sandbox with a small world in its lake."""
    stage = Stage(tmp_path_factory.mktemp("world") / "state")
    play(stage, Random(11), batches=20)
    yield stage
    stage.sandbox.close()


@pytest.fixture(scope="module")
def spark(stage: Stage, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkReader]:
    """A cluster of two workers, each a process of its own."""
    os.environ["SPARK_WORKER_DIR"] = str(tmp_path_factory.mktemp("workers"))
    reader = SparkReader(LakeLocation(stage.sandbox.lake.root), master=MASTER)
    yield reader
    reader.close()


def kinds_of(metric: Metric) -> tuple[str, ...]:
    """Every kind of question about *metric* (design/metrics, Query kinds)."""
    plain = ("group", "split", "timeseries")
    return {"plain": plain, "per game": (*plain, "by_game"), "retention": ("by_game",)}[metric.kinds]


def questions(metric: Metric, random: Random) -> list[Asked]:
    """Random questions of every kind and granularity; half of them about whole days, which most tables need."""
    granularities = ("day",) if metric.kinds == "retention" else ("day", "week", "month", "all")
    missing = list(product(kinds_of(metric), granularities)) * (10 if metric.kinds == "retention" else 1)
    found: list[Asked] = []
    while missing:
        asked = ask(random, "acme")
        kind = asked.body.get("query", {}).get("type", "by_game"), asked.granularity
        if asked.metric == metric.name and kind in missing:
            missing.remove(kind)
            if random.random() < 0.5:
                asked.body["interval"] = random.choice(WHOLE_DAYS)
            found.append(asked)
    return found


def both(stage: Stage, spark: SparkReader, plan: SqlQuery) -> list[list[dict[str, Any]]]:
    snapshot = stage.sandbox.lake.snapshot("acme")
    return [engine.rows(plan, snapshot) for engine in (stage.sandbox.reader, spark)]


@pytest.mark.parametrize("name", METRICS)
def test_every_kind_of_every_metric_has_the_same_rows(stage: Stage, spark: SparkReader, name: str) -> None:
    """architecture, Decisions: one planner; equal answers on every engine, to the last digit."""
    metric, random, answered = METRICS[name], Random(name), 0
    for asked in questions(metric, random):
        query = decode_query(asked.body, granularity="day" if metric.kinds == "retention" else None)
        tables = random.choice((TABLES, TABLES, ()))
        duckdb, other = both(stage, spark, compile_query(metric, query, games=sorted(asked.games), tables=tables))
        assert other == duckdb, (asked, tables)
        answered += bool(duckdb)
    assert answered


@pytest.mark.parametrize("dimension", POOLS)
def test_every_list_of_values_is_the_same(stage: Stage, spark: SparkReader, dimension: str) -> None:
    """design/metrics, GET lists: in code points."""
    plan = compile_dimension_values(dimension, Interval.parse("2026-10-01/P60D"), games=GAMES["acme"], limit=100)
    duckdb, other = both(stage, spark, plan)
    assert other == duckdb
    assert duckdb


def test_quotients_of_more_than_64_bits_are_whole(stage: Stage, spark: SparkReader) -> None:
    """What orders the rows of a ratio: a whole quotient, then the rest."""
    big, by = "CAST('123456789012345678901234567896' AS HUGEINT)", "CAST(7 AS HUGEINT)"
    statement = SqlStatement(
        f"SELECT {big} // {by} AS whole, ({big} % {by}) / {by} AS rest, {big} // NULLIF(0, 0) AS none"
    )
    duckdb, other = both(stage, spark, SqlQuery(statement, {}, {}))
    assert other == duckdb
    assert duckdb[0]["whole"] == 123456789012345678901234567896 // 7


def test_many_questions_at_once_are_kept_apart(stage: Stage, spark: SparkReader) -> None:
    """Each has its own snapshot, and views of it under the same names."""
    body = {"granularity": "all", "query": {"type": "group", "dimension": "platform"}}
    plans = [
        compile_query(METRICS["event_count"], decode_query(body | {"interval": f"2026-11-{day}/P1D"}), games=["1001"])
        for day in (12, 13, 15, 17, 18, 19, 20)
    ]
    snapshot = stage.sandbox.lake.snapshot("acme")
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda plan: spark.rows(plan, snapshot), plans))
    assert answers == [stage.sandbox.reader.rows(plan, snapshot) for plan in plans]
    assert sum(map(bool, answers)) > 2


def test_a_second_spark_in_one_process_is_refused(stage: Stage, spark: SparkReader) -> None:
    with pytest.raises(Refused, match="did not start"):
        SparkReader(LakeLocation(stage.sandbox.lake.root), master="local[1]")


def up(state: Path, **env: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "gamelens", "sandbox", "up", "--state", str(state), "--engine", "local[1]"]
    return subprocess.Popen(command, env=os.environ | env, stderr=subprocess.PIPE, text=True, start_new_session=True)


@pytest.mark.parametrize("stop", [os.kill, os.killpg], ids=["the sandbox", "its driver as well"])
def test_a_sandbox_on_spark_answers_and_takes_its_driver_along(
    tmp_path: Path, stop: Callable[[int, int], None]
) -> None:
    """Issue, Engines; contract, Commands: SIGTERM, exit 0."""
    ready = tmp_path / "state" / "ready.json"
    with up(tmp_path / "state") as sandbox:
        while not ready.exists():
            assert sandbox.poll() is None
            time.sleep(0.1)
        served = read_sandbox_info(ready)
        answer = httpx.post(
            f"{served.metrics_url}/metrics/v1/metrics/event_count",
            headers={"X-API-Key": str(served.organisations[0].api_key)},
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


def test_without_java_it_says_so(tmp_path: Path) -> None:
    with up(tmp_path / "state", PATH=str(tmp_path), JAVA_HOME="") as sandbox:
        _, said = sandbox.communicate(timeout=60)
    assert sandbox.returncode == 1
    assert "needs Java" in said


def children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def is_running(pid: int) -> bool:
    status = Path(f"/proc/{pid}/stat")
    return status.exists() and status.read_text().rpartition(")")[2].split()[0] != "Z"
