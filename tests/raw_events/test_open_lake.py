"""A lake that is opened without a service: the answers of the service, and SQL that is locked down."""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from threading import Timer
from typing import Any

import httpx
import pandas as pd
import pytest
from pandas.testing import assert_frame_equal

import gamelens as gl
from gamelens import raw_events
from gamelens.client.answer_cache import cache_folder
from gamelens.client.sync_client import Client
from gamelens.errors import BadQuery, GamelensError, Refused
from gamelens.raw_events.lake_client import LakeClient, open_lake
from gamelens.receipts import Receipt
from gamelens.sandbox.engines.spill_folder import machine_memory
from gamelens.sandbox.server import open_bulk_load
from gamelens.simulator import load_scenario, play_columns
from support.forked_child import in_child
from support.sandbox_stage import Stage
from support.served_metrics import populate

OVER = "last 28 complete days"
QUESTIONS: dict[str, dict[str, Any]] = {
    "event_count": {"metric": "event_count", "by": "country_code", "every": "day"},
    "dau": {"metric": "dau", "by": ["game", "platform"]},
    "several": {"metric": ["user_unique", "session_unique", "event_count"], "every": "week"},
    "filtered": {"metric": "event_count", "by": "build", "where": 'platform == "ios"', "top": 2},
    "installs": {"metric": "new_users", "by": "game_id", "every": "day"},
}


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """Return a sandbox with events of three games."""
    stage = Stage(tmp_path_factory.mktemp("open") / "state")
    populate(stage)
    yield stage
    stage.sandbox.close()


@pytest.fixture(scope="module")
def lake(stage: Stage) -> Iterator[LakeClient]:
    """Return its lake, opened beside the sandbox that holds it."""
    with open_lake(stage.sandbox.options.state, organisation="acme", progress=False) as lake:
        yield lake


def spilled(root: Path) -> list[Path]:
    """Return the spill folders below *root*."""
    return list(root.glob("gamelens-spill-*"))


LARGE = "SELECT count(*) AS n FROM (SELECT DISTINCT a.range, b.range AS other FROM range(2000) a, range(2000) b)"


def test_what_does_not_fit_into_memory_is_spilled(stage: Stage, tmp_path: Path) -> None:
    """To a folder that is the owner's alone, and is gone when the lake is closed."""
    root = tmp_path / "fast"
    with open_lake(stage.sandbox.options.state, organisation="acme", memory="60MB", spill=root, progress=False) as lake:
        assert lake.sql(LARGE)["n"].tolist() == [2000 * 2000]
        (folder,) = spilled(root)
        assert {path.stat().st_mode & 0o077 for path in (folder, root)} == {0}
        assert (folder / "sql").is_dir()
        lake.query("dau", over="last 3 complete days")
    assert list(root.iterdir()) == []


@pytest.mark.wide
def test_a_lake_takes_a_share_of_the_machine_and_the_cache_folder(stage: Stage) -> None:
    """Unless it is told otherwise; the folder is not made before it is needed."""
    root = cache_folder() / "spill"
    setting = "SELECT current_setting('memory_limit') AS memory, current_setting('temp_directory') AS folder"
    with open_lake(stage.sandbox.options.state, organisation="acme", progress=False) as lake:
        assert lake._spill.root == root
        before = set(spilled(root))
        (memory, folder), *_ = lake.sql(setting).to_numpy().tolist()
        number, unit = memory.split()
        assert float(number) * {"MiB": 2**20, "GiB": 2**30}[unit] == pytest.approx(
            0.6 * 0.8 * machine_memory(), rel=0.02
        )
        assert {Path(folder).parent} == set(spilled(root)) - before
    assert set(spilled(root)) <= before


@pytest.mark.wide
def test_analyses_take_the_memory_of_their_lake(stage: Stage, tmp_path: Path) -> None:
    """An analysis that fits into neither is refused, with the arguments to raise."""
    with (
        open_lake(
            stage.sandbox.options.state, organisation="acme", memory="1MB", spill=tmp_path, progress=False
        ) as lake,
        pytest.raises(Refused, match=r"more than 1MB of memory: raise memory= of open_lake"),
    ):
        raw_events.session_paths(lake, OVER)


def test_memory_and_spill_are_checked_when_a_lake_is_opened(stage: Stage, tmp_path: Path) -> None:
    """No amount of memory, and no folder."""
    state = stage.sandbox.options.state
    with pytest.raises(BadQuery, match="amount of memory"):
        gl.open_lake(state, organisation="acme", memory="much")
    (tmp_path / "file").touch()
    with pytest.raises(BadQuery, match=r"spill = .*cannot be written"):
        gl.open_lake(state, organisation="acme", spill=tmp_path / "file")


@pytest.mark.wide
def test_the_folder_of_a_killed_process_goes_with_it(stage: Stage, tmp_path: Path) -> None:
    """The statement that runs on in another process removes it."""
    code = (
        "import sys, os, gamelens as gl; from threading import Timer\n"
        "lake = gl.open_lake(sys.argv[1], organisation='acme', spill=sys.argv[2], memory='60MB', progress=False)\n"
        "lake.sql('SELECT 1'); assert os.listdir(sys.argv[2]); Timer(1, os.kill, (os.getpid(), 9)).start()\n"
        "lake.sql('SELECT DISTINCT a.range, b.range FROM range(100000) a, range(100000) b')"
    )
    command = [sys.executable, "-c", code, str(stage.sandbox.options.state), str(tmp_path)]
    ended = subprocess.run(command, capture_output=True, text=True)
    assert ended.returncode == -9, ended.stderr
    deadline = time.monotonic() + 10
    while spilled(tmp_path) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert spilled(tmp_path) == []


@pytest.fixture(scope="module")
def service(stage: Stage) -> Iterator[Client]:
    """Return a client of its service."""
    pool = httpx.ASGITransport(stage.metrics_app)
    url = "http://127.0.0.1:1"
    with Client(api_key="key-of-acme", metrics_url=url, transport=pool, cache=False, progress=False) as service:
        yield service


@pytest.mark.parametrize("name", QUESTIONS)
def test_it_answers_as_the_service_does(lake: LakeClient, service: Client, name: str) -> None:
    """Frames are equal, and the receipt names the lake."""
    question = {"over": OVER, **QUESTIONS[name]}
    mine, theirs = lake.query(**question), service.query(**question)
    assert_frame_equal(mine, theirs)
    assert len(mine) > 0
    provenance = Receipt.of(mine.attrs).provenance
    assert (provenance.kind, provenance.url) == ("lake", str(lake._folder))


def test_retention_and_lists_are_those_of_the_service(lake: LakeClient, service: Client) -> None:
    """Every method of the client is there."""
    assert_frame_equal(lake.retention([1, 7], over=OVER), service.retention([1, 7], over=OVER))
    assert_frame_equal(lake.games(), service.games())
    assert lake.dimension_values("country_code") == service.dimension_values("country_code")
    assert (lake.available(), lake.metrics()) == (service.available(), service.metrics())
    assert lake.plan("revenue", over=OVER).requests == service.plan("revenue", over=OVER).requests


@pytest.mark.wide
def test_a_hundred_questions_wait_for_no_rate(lake: LakeClient) -> None:
    """The service takes five requests a second, the lake what the machine can."""
    began = time.monotonic()
    for _ in range(50):
        lake.query("event_count", over="last 3 complete days", every="all")
    assert time.monotonic() - began < 10 + 50 / 5 * 0.5


def test_sums_of_the_views_are_the_metrics(lake: LakeClient) -> None:
    """Counts of SQL equal the metrics over the same days."""
    start, end = lake.available().start, lake.available().end
    over = f"{start:%Y-%m-%dT%H:%M:%SZ}/{end:%Y-%m-%dT%H:%M:%SZ}"
    bounds = {"start": start.replace(tzinfo=None), "end": end.replace(tzinfo=None)}

    def counted(what: str, view: str, time_column: str) -> int:
        statement = f"SELECT {what} AS n FROM {view} WHERE {time_column} >= $start AND {time_column} < $end"
        return int(lake.sql(statement, bounds)["n"].sum())

    def measured(metric: str) -> int:
        return int(lake.query(metric, over=over, every="all")[metric].sum())

    assert counted("count(*)", "events", "ts") == measured("event_count") > 0
    assert counted("count(DISTINCT (game_id, user_id))", "events", "ts") == measured("user_unique")
    assert counted("count(*)", "players", "installed_at") == measured("new_users")


def test_money_of_the_views_is_the_revenue(tmp_path: Path) -> None:
    """Purchases and impressions in US dollars add up to the metrics."""

    with open_bulk_load(tmp_path / "state") as load:
        scenario = load_scenario("small", players=300, days=14)
        load.take(play_columns(scenario, load.folder, game_ids=load.game_ids))
    with open_lake(tmp_path / "state", progress=False) as lake:
        over = str(lake.available())
        for view, metric in (("purchases", "revenue"), ("impressions", "ilrd_revenue")):
            usd = lake.sql(f"SELECT sum(usd) AS usd FROM {view}")["usd"].sum()
            assert usd == pytest.approx(lake.query(metric, over=over, every="all")[metric].sum(), rel=1e-9) != 0
        assert lake.sql("SELECT count(first_paid_at) AS n FROM players")["n"].sum() > 0


LOCKED = {
    "a file": "SELECT * FROM read_csv('/etc/passwd')",
    "a file by its name": "SELECT * FROM '/etc/passwd'",
    "text of a file": "SELECT * FROM read_text('{state}/keys.json')",
    "bytes of a file": "SELECT * FROM read_blob('{state}/keys.json')",
    "lines of a file": "SELECT * FROM read_json_objects('{state}/keys.json')",
    "a database as a table": "SELECT * FROM read_duckdb('{state}/gamelens.db')",
    "the kind of a file": "SELECT * FROM sniff_csv('/etc/passwd')",
    "metadata of a file": "SELECT * FROM parquet_metadata('{file}')",
    "names of files": "SELECT * FROM glob('/etc/*')",
    "a file by a link": "SELECT * FROM read_text('lake://{file}/../../../../keys.json')",
    "a file in a text": "SELECT * FROM query('FROM read_text(''/etc/passwd'')')",
    "a file in a subquery": "SELECT (SELECT content FROM read_text('/etc/passwd'))",
    "a URL of a file": "SELECT * FROM read_text('file:///etc/passwd')",
    "an open file": "SELECT * FROM read_text('/dev/fd/0')",
    "another folder of the lake": "SELECT * FROM read_parquet('{state}/lake/*/*/*.parquet')",
    "the network": "SELECT * FROM read_json('http://127.0.0.1:9/x.json')",
    "an extension": "INSTALL httpfs",
    "an extension of others": "INSTALL shellfs FROM community",
    "a loaded extension": "LOAD '{state}/x.duckdb_extension'",
    "all extensions": "UPDATE EXTENSIONS",
    "a database": "ATTACH '{state}/gamelens.db' AS other",
    "a new database": "ATTACH '{state}/stolen.db'",
    "a database let go": "DETACH memory",
    "a written file": "COPY (SELECT 1) TO '{state}/stolen.csv'",
    "a written file of the lake": "COPY (SELECT 1 AS a) TO '{file}' (FORMAT parquet)",
    "a written file of the lake by its address": "COPY (SELECT 1 AS a) TO 'lake://{file}' (FORMAT parquet)",
    "a file written while it is explained": "EXPLAIN ANALYZE COPY (SELECT 1 AS a) TO '{file}' (USE_TMP_FILE false)",
    "the same with options": "EXPLAIN (ANALYZE, FORMAT json) COPY (SELECT 1 AS a) TO '{file}' (USE_TMP_FILE false)",
    "the same behind a comment": "/* SELECT */ EXPLAIN -- SELECT\n ANALYZE COPY (SELECT 1) TO '{file}'",
    "a plan of a write": "EXPLAIN COPY (SELECT 1 AS a) TO '{file}'",
    "a file written by a CTE": "WITH x AS (COPY (SELECT 1 AS a) TO '{file}' (USE_TMP_FILE false)) SELECT * FROM x",
    "a file written by a CTE of a CTE": "WITH y AS (WITH x AS (COPY games TO '{file}') FROM x) FROM y",
    "a file written by a subquery": "SELECT (WITH x AS (COPY games TO '{state}/stolen.csv') SELECT count(*) FROM x)",
    "rows of a CTE": "WITH x AS (INSERT INTO games VALUES ('1', '2', '3', '4') RETURNING *) FROM x",
    "rows removed by a CTE": "WITH x AS (DELETE FROM games RETURNING *) FROM x",
    "a whole database": "EXPORT DATABASE '{state}/stolen'",
    "a database from a folder": "IMPORT DATABASE '{state}'",
    "a copied database": "COPY FROM DATABASE memory TO memory",
    "a file copied in": "COPY games FROM '/etc/passwd'",
    "a prepared write": "PREPARE stolen AS COPY (SELECT 1) TO '{file}'",
    "a prepared statement": "EXECUTE stolen",
    "a prepared statement explained": "EXPLAIN ANALYZE EXECUTE stolen",
    "a prepared statement let go": "DEALLOCATE stolen",
    "a setting": "SET enable_external_access = true",
    "a setting of the file systems": "SET disabled_filesystems = ''",
    "a setting put back": "RESET allowed_directories",
    "a variable": "SET VARIABLE x = 1",
    "a schema": "USE memory",
    "a log in a file": "FROM enable_logging(storage = 'file', storage_config = {{'path': '{state}/stolen'}})",
    "a file above the spill folder": "SELECT * FROM read_text('{spill}/sql/../../../secret')",
    "a file written to the spill folder": "COPY (SELECT 1) TO '{spill}/sql/stolen.csv'",
    "a profile in a file": "FROM enable_profiling(save_location := '{state}/stolen.json')",
    "a pragma": "PRAGMA database_list",
    "a profile by a pragma": "PRAGMA enable_profiling = 'json'",
    "a call": "CALL pragma_version()",
    "a checkpoint": "CHECKPOINT",
    "a vacuum": "VACUUM",
    "an analysis of tables": "ANALYZE",
    "a transaction": "BEGIN",
    "a secret": "CREATE SECRET (TYPE s3)",
    "a table": "CREATE TABLE mine AS SELECT 1",
    "a view": "CREATE OR REPLACE VIEW events AS SELECT 1",
    "a macro": "CREATE MACRO stolen() AS TABLE FROM read_text('/etc/passwd')",
    "a sequence": "CREATE SEQUENCE mine",
    "a type": "CREATE TYPE mine AS ENUM ('a')",
    "a new row": "INSERT INTO games VALUES ('1', '2', '3', '4')",
    "a changed row": "UPDATE games SET game = '1'",
    "a removed row": "DELETE FROM games",
    "all rows": "TRUNCATE games",
    "a merge": "MERGE INTO games USING games AS g ON true WHEN MATCHED THEN DELETE",
    "a dropped view": "DROP VIEW events",
    "another table": "ALTER TABLE games ADD COLUMN mine INTEGER",
    "a comment": "COMMENT ON TABLE games IS 'mine'",
    "two statements": "SELECT 1; SELECT 2",
    "a write behind a SELECT": "SELECT 1; COPY (SELECT 1) TO '{file}'",
    "a variable of Python": "SELECT * FROM frame_of_the_caller",
    "nothing": "",
    "a comment alone": "-- SELECT 1",
    "no SQL": "SELEC 1",
}


@pytest.mark.shown_by(12)
@pytest.mark.parametrize("what", LOCKED)
def test_sql_reaches_nothing_else(lake: LakeClient, what: str) -> None:
    """Each attempt is an error of ours, and no file appears or changes."""
    frame_of_the_caller = pd.DataFrame({"secret": [1]})
    state = lake._folder
    file = lake._lake.snapshot("acme").files("events")[0].resolve()

    def stored() -> dict[Path, tuple[int, int]]:
        files = [path for path in state.rglob("*") if path.is_file() and path.suffix not in {".db-shm", ".db-wal"}]
        return {path: (path.stat().st_mtime_ns, path.stat().st_size) for path in files}

    before = stored()
    with pytest.raises(GamelensError) as failed:
        lake.sql(LOCKED[what].format(state=state, file=file, spill=lake._spill.path))
    assert stored() == before
    assert len(str(failed.value).splitlines()) == 1
    assert len(frame_of_the_caller) == 1


READS = {
    "SELECT 1 AS n": 1,
    " from games ": 4,
    "WITH a AS MATERIALIZED (SELECT 1) SELECT * FROM a UNION ALL SELECT 2": 2,
    "WITH RECURSIVE a(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM a WHERE n < 5) FROM a": 5,
    "SELECT 'COPY (SELECT 1) TO ''x'' ' AS \"type\", 'INSERT_QUERY_NODE' AS text": 1,
    "FROM (PIVOT games ON game IN ('a') USING count(*) GROUP BY studio)": 2,
    "EXPLAIN SELECT 1": 1,
    "explain analyze SELECT count(*) FROM events": 1,
    "SHOW TABLES": 30,
    "DESCRIBE games": 4,
    "SUMMARIZE games": 4,
    "SELECT 1;": 1,
}


@pytest.mark.parametrize("statement", READS)
def test_whatever_only_reads_is_run(lake: LakeClient, statement: str) -> None:
    """A SELECT in all its forms, and its plan."""
    assert 0 < len(lake.sql(statement)) <= READS[statement]


@pytest.mark.wide
def test_an_endless_statement_is_stopped(lake: LakeClient) -> None:
    """Time, memory and rows are bounded."""
    with pytest.raises(Refused, match=r"more than 0\.5 s"):
        lake.sql("SELECT count(*) FROM range(10000000000) a, range(10000000000) b", seconds=0.5)
    with pytest.raises(Refused, match="memory"):
        lake.sql("SELECT len(list(range)) FROM range(100000000)", memory="50MB")  # which is never spilled
    with pytest.raises(BadQuery, match="more than 10 rows"):
        lake.sql("SELECT * FROM range(1000)", rows=10)
    with pytest.raises(BadQuery, match="amount of memory"):
        lake.sql("SELECT 1", memory="much")
    assert lake.sql("SELECT 1 AS n", memory="-1")["n"].tolist() == [1]  # as much as there is, for DuckDB


@pytest.mark.shown_by(1)
@pytest.mark.parametrize(
    "call",
    [
        "length(repeat('x', 2000000000))",
        "levenshtein(repeat('a', 100000), repeat('b', 100000))",
        "length(string_agg(repeat('x', 1000000), '')) FROM range(1000)",
        "repeat('x', 1000000) FROM range(100000)",
    ],
)
def test_the_bounds_hold_inside_a_function(lake: LakeClient, call: str) -> None:
    """No call takes more time or memory, and the next statement is answered."""
    began = time.monotonic()
    with pytest.raises(Refused, match=r"took more than 0\.3 s|more than 200MB of memory"):
        lake.sql(f"SELECT {call}", seconds=0.3, memory="200MB")
    assert time.monotonic() - began < 15
    assert lake.sql("SELECT 1 AS n")["n"].tolist() == [1]


@pytest.mark.wide
def test_a_process_that_dies_is_said_and_started_again(lake: LakeClient) -> None:
    """The next statement is answered by a new one."""
    lake.sql("SELECT 1")
    running = lake._sql._running
    assert running is not None
    killer = Timer(0.3, running.process.kill)
    killer.start()
    with pytest.raises(Refused, match="ended its process"):
        lake.sql("SELECT count(*) FROM range(10000000000) a, range(10000000000) b", seconds=20)
    killer.join()
    assert lake.sql("SELECT 1 AS n")["n"].tolist() == [1]


def test_parameters_keep_their_types(lake: LakeClient) -> None:
    """Times, lists and numbers arrive as they are, and what is no value is refused."""
    at = datetime(2026, 1, 1, 12)
    frame = lake.sql("SELECT $at + INTERVAL 1 DAY AS at, len($names) AS n", {"at": at, "names": ["a", "b"]})
    assert (frame["at"][0].to_pydatetime(), int(frame["n"][0])) == (at + timedelta(days=1), 2)
    with pytest.raises(BadQuery, match="plain values"):
        lake.sql("SELECT $f", {"f": lambda: 1})


def test_a_view_is_a_relation(lake: LakeClient) -> None:
    """It filters as DuckDB does, and hands over Arrow."""
    table = lake.relation("events").filter("platform = 'ios'").aggregate("count(*) AS n").to_arrow_table()
    assert table.to_pylist()[0]["n"] == int(lake.sql("SELECT count(*) AS n FROM events WHERE platform = 'ios'")["n"][0])
    with pytest.raises(BadQuery, match="not a view of the lake"):
        lake.relation("event")
    described = lake.views()
    assert {"events", "players", "sessions", "purchases", "games"} <= set(described["view"])
    assert list(described.columns) == ["view", "column", "type", "meaning"]


SCRIPTS = {
    "a metric": "print(len(lake.query('event_count', over='last 3 complete days')))",
    "SQL, then closed": "print(lake.sql('SELECT 3 AS n')['n'][0]); lake.close()",
    "a relation that is left": "left = lake.relation('games').limit(3); print(len(left))",
    "an analysis": "from gamelens import raw_events as r; r.active_players(lake, 'last 3 complete days'); print(3)",
}


@pytest.mark.shown_by(1)
@pytest.mark.parametrize("script", SCRIPTS)
def test_a_script_ends_quietly(stage: Stage, script: str) -> None:
    """Nothing of the engine is left when Python ends: else it lists what it calls leaks on standard error."""
    code = "import sys, gamelens as gl; lake = gl.open_lake(sys.argv[1], organisation='acme', progress=False); "
    command = [sys.executable, "-c", code + SCRIPTS[script], str(stage.sandbox.options.state)]
    ended = subprocess.run(command, capture_output=True, text=True, check=True)
    assert (ended.stdout.strip(), ended.stderr) == ("3", "")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_lake_refuses_in_a_forked_child(lake: LakeClient) -> None:
    """The engine has threads, which no child has."""
    lake.sql("SELECT count(*) FROM events")
    for use in (lambda: lake.sql("SELECT 1 FROM events"), lake.views, lake.games, lake.close):
        with pytest.raises(Refused, match="create a new one in this process"):
            in_child(use)


def test_a_folder_without_a_lake_is_refused(tmp_path: Path, stage: Stage) -> None:
    """The error names the folder, the organisation or the layout, and what to do."""
    with pytest.raises(Refused, match="holds no sandbox"):
        gl.open_lake(tmp_path)
    state = stage.sandbox.options.state
    with pytest.raises(BadQuery, match="must be named") as failed:
        gl.open_lake(state)
    assert "acme" in str(failed.value)
    with pytest.raises(BadQuery, match="not in the lake"):
        gl.open_lake(state, organisation="acmee")


@pytest.fixture(params=["stopped", "killed", "copied without the shared memory"])
def left(request: pytest.FixtureRequest, tmp_path: Path, stage: Stage) -> Path:
    """Return a state directory as a sandbox leaves it that is stopped or killed."""
    state = tmp_path / "state"
    shutil.copytree(stage.sandbox.options.state, state)  # its sandbox runs: as after SIGKILL
    log = state / "gamelens.db-wal"
    assert log.stat().st_size
    if request.param == "stopped":
        with contextlib.closing(sqlite3.connect(state / "gamelens.db")) as store:
            store.execute("PRAGMA user_version").fetchall()
        assert not log.exists()
    if request.param.startswith("copied"):
        (state / "gamelens.db-shm").unlink()
    return state


@pytest.mark.shown_by(2)
@pytest.mark.parametrize("mount", ["rw", "ro"])
def test_a_lake_that_is_read_gets_no_files(left: Path, lake: LakeClient, mount: str) -> None:
    """Nothing appears or changes in its folder, which may be mounted to be read only."""
    if mount == "ro":
        bound = subprocess.run(["mount", "--bind", "-o", "ro", str(left), str(left)], capture_output=True)
        if bound.returncode:
            pytest.skip("nothing can be mounted here")
    try:
        files = {path: path.read_bytes() for path in left.rglob("*") if path.is_file()}
        statement = "SELECT count(*) AS n FROM events"
        with open_lake(left, organisation="acme", progress=False) as opened:
            assert_frame_equal(opened.query("event_count", over=OVER), lake.query("event_count", over=OVER))
            assert_frame_equal(opened.sql(statement), lake.sql(statement))
        after = {path: path.read_bytes() for path in left.rglob("*") if path.is_file()}
        assert after.keys() == files.keys()
        files.pop(left / "gamelens.db-shm", None)  # where readers leave marks
        assert {path: after[path] for path in files} == files
    finally:
        if mount == "ro":
            subprocess.run(["umount", "--lazy", str(left)], check=True)


def test_a_lake_of_another_layout_is_left_alone(tmp_path: Path) -> None:
    """Opening it changes nothing."""
    stage = Stage(tmp_path / "state")
    stage.sandbox.close()
    path = tmp_path / "state" / "gamelens.db"
    with sqlite3.connect(path) as store:
        store.execute("PRAGMA user_version = 3")
    with pytest.raises(Refused, match="layout 3"):
        gl.open_lake(tmp_path / "state", organisation="acme")
    with sqlite3.connect(path) as store:
        assert store.execute("PRAGMA user_version").fetchone() == (3,)
