"""Damaged files of the lake: no wrong answer, and what can be made again is."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pytest
from click.testing import CliRunner

from gamelens.cli import cli
from gamelens.errors import Refused
from gamelens.sandbox.control.control_app import control_app
from gamelens.sandbox.engines.engine import QueryBounds, SqlQuery
from gamelens.sandbox.engines.open_engine import CheckedEngine
from gamelens.sandbox.processing.compaction import Step, take_step
from gamelens.sandbox.processing.pipeline import commit_staged
from gamelens.sandbox.processing.rebuild import rebuild
from gamelens.sandbox.processing.staging import stage as stage_batches
from gamelens.sandbox.server import open_bulk_load
from gamelens.sandbox.storage import lake_health
from gamelens.sandbox.storage.inbox import pending
from gamelens.sandbox.storage.lake import Lake, Snapshot
from gamelens.sandbox.storage.lake_health import LakeHealth
from gamelens.sandbox.storage.manifest import LakePart, LakeUnavailable, file_checksum
from gamelens.simulator import load_scenario, play_columns
from support.app_requests import call
from support.damaged_lake import flip_bit
from support.game_events import NOW, event
from support.kinds_of_state import make_state
from support.sandbox_stage import Stage, event_counts, metric_value

S = int(NOW.timestamp())
QUERY: dict[str, Any] = {"interval": "2026-11-01/2026-12-01", "granularity": "day"}
SERIES: dict[str, Any] = QUERY | {"query": {"type": "timeseries"}}
QUESTIONS: dict[str, dict[str, Any]] = {
    "event_count": SERIES,
    "session_unique": {**SERIES, "interval": "2026-11-18T03:00/2026-12-01"},
    "returning_users": SERIES,
    "retention_retro": {"interval": "2026-11-01/2026-12-01", "since_days_ago": 1, "split_by": "country_code"},
    "ad_impressions_count": QUERY | {"query": {"type": "split", "dimensions": ["ad_type"], "limit": 10}},
    "arpu": SERIES | {"granularity": "week"},
    "new_users": SERIES | {"granularity": "month"},
    "conversion": QUERY | {"query": {"type": "split", "dimensions": ["first_build"], "limit": 10}},
}
"""Queries that together read most tables."""
EVENTS = [
    event(
        user_id=f"u{number % 40}",
        session_id=f"s{number % 90}",
        client_ts=S - (number % 5) * 86_400,
        event_uuid=f"e{number}",
        build=f"{number % 3}",
    )
    for number in range(400)
]


class Played:
    """A state directory with a lake of two runs, for tests to copy, and the answers that it gives."""

    def __init__(self, folder: Path) -> None:
        stage = Stage(folder / "state")
        for events in (EVENTS[:250], EVENTS[200:]):
            stage.submit(events)
            stage.process()
        self.state = stage.sandbox.options.state
        self.answers = ask_all(stage)
        stage.sandbox.close()
        assert 503 not in self.answers.values()


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Played:
    """Play the events once for all tests."""
    return Played(tmp_path_factory.mktemp("played"))


@pytest.fixture
def state_copy(played: Played, tmp_path: Path) -> Path:
    """Return a copy of the state directory for a test to damage."""
    return Path(shutil.copytree(played.state, tmp_path / "state"))


@pytest.fixture
def opened(state_copy: Path) -> Iterator[Stage]:
    """Return a sandbox over the copy."""
    stage = Stage(state_copy)
    yield stage
    stage.sandbox.close()


def ask_all(stage: Stage) -> dict[str, Any]:
    """Return the rows, or the status of a refusal, of every question."""
    answers = {metric: stage.ask(metric, **body) for metric, body in QUESTIONS.items()}
    return {metric: each.json() if each.status_code == 200 else each.status_code for metric, each in answers.items()}


def heal(stage: Stage) -> None:
    """Check the lake and make damaged tables again, as the sandbox does in the background."""
    asyncio.run(stage.sandbox.runs.check())


def parts(stage: Stage, table: str) -> list[LakePart]:
    """Return the parts of *table*."""
    return list(stage.sandbox.lake.snapshot("acme").parts(table))


def test_no_flipped_bit_gives_a_wrong_answer(opened: Stage, played: Played) -> None:
    """A bit of any file of the lake is flipped while it serves: every answer is right or 503."""
    random, refused = Random(8), 0
    for table in opened.sandbox.lake.snapshot("acme").tables:
        path = random.choice(parts(opened, table)).path
        content = path.read_bytes()
        flip_bit(path, random)
        answers = ask_all(opened)
        assert all(answer in (503, played.answers[metric]) for metric, answer in answers.items()), path
        refused += 503 in answers.values()
        path.write_bytes(content)
    assert refused >= 5
    assert ask_all(opened) == played.answers


@pytest.mark.parametrize("damage", ["missing", "cut short", "empty"])
def test_a_damaged_file_is_named_and_the_rest_still_answers(opened: Stage, damage: str) -> None:
    """A question over a damaged file is 503 with the file and what becomes of it; others are answered.

    Wire 2.12, Refusals.
    """
    path = parts(opened, "slim")[0].path
    match damage:
        case "missing":
            path.unlink()
        case "cut short":
            path.write_bytes(path.read_bytes()[:-9])
        case "empty":
            path.write_bytes(b"")
    refused = opened.ask("event_count", **SERIES)
    assert (refused.status_code, refused.headers["Retry-After"]) == (503, "5")
    assert refused.json()["error"] == "unavailable"
    assert path.name in refused.json()["message"]
    assert refused.json()["message"].endswith("its tables will be rebuilt. Ask again later")
    assert opened.ask("session_unique", **SERIES).status_code == 200


def test_damage_is_found_at_the_start_without_a_question(state_copy: Path, opened: Stage) -> None:
    """The check of a new version finds a flip that happened while the sandbox was stopped."""
    flip_bit(parts(opened, "returns")[0].path, Random(1))
    asyncio.run(check_only(opened))
    assert opened.sandbox.health.damaged_organisations() == ["acme"]


async def check_only(stage: Stage) -> None:
    """Check the files without a rebuild."""
    stage.sandbox.health.check_all(stage.sandbox.lake.snapshot("acme"), pause=0)


@pytest.mark.shown_by(1)
@pytest.mark.parametrize("events_too", [False, True], ids=["from the events", "from the inbox"])
def test_everything_behind_the_inbox_is_made_again(opened: Stage, played: Played, events_too: bool) -> None:
    """All tables and keyed runs are damaged: they are made again, of the events or of the inbox.

    The control API says what cannot be answered, and no more once it is healed. Repeated events are known again.
    """
    random, api = Random(2), partial(call, control_app(opened.sandbox, token="token"))
    counts = event_counts(opened)
    for table in opened.sandbox.lake.snapshot("acme").tables:
        for part in parts(opened, table):
            if events_too or table != "events":
                flip_bit(part.path, random)
    asyncio.run(check_only(opened))
    reason = api("GET", "/token/summary").json()["damaged"]["lake"]["acme"]
    assert api("GET", "/token/health").json() == {"status": "damaged", "cannot_answer": {"acme": reason}}
    assert " more: its tables will be rebuilt" in reason
    heal(opened)
    assert ask_all(opened) == played.answers
    assert api("GET", "/token/health").json() == {"status": "ok"}
    opened.submit(EVENTS[100:300])
    opened.process()
    assert ask_all(opened) == played.answers
    assert event_counts(opened) == counts | {
        "accepted": counts["accepted"] + 200,
        "duplicate": counts["duplicate"] + 200,
    }


@pytest.mark.wide
def test_a_run_heals_first_what_it_relies_on(opened: Stage, played: Played) -> None:
    """Processing with a damaged run of names would count repeated events twice: it is made again before."""
    flip_bit(parts(opened, "run_names")[0].path, Random(3))
    opened.submit(EVENTS)
    opened.process()
    assert ask_all(opened) == played.answers


def write_lake(stage: Stage) -> None:
    """Make the events of the inbox a lake that was written and has no inbox."""
    state = stage.sandbox.options.state
    scratch = state / "scratch"
    scratch.mkdir()
    staged = stage_batches(pending(stage.sandbox.store, after=0, up_to=10**6), scratch)
    lake = Lake(state / "lake", stage.sandbox.store)
    commit_staged(staged, lake, scratch, processed_ms=S * 1000, is_written=True)
    stage.sandbox.store.execute("DELETE FROM batches")
    stage.sandbox.metrics.forget_availability()


def test_a_written_lake_names_the_days_that_are_lost(stage: Stage) -> None:
    """Aggregates of a written lake are made again of its events; damaged events are lost, with their days named."""
    stage.submit([event(client_ts=S - days * 86_400, event_uuid=f"e{days}") for days in range(3)])
    write_lake(stage)
    flip_bit(parts(stage, "slim")[0].path, Random(4))
    assert stage.ask("event_count", **SERIES).status_code == 503
    heal(stage)
    assert metric_value(stage) == 3
    flip_bit(parts(stage, "events")[0].path, Random(4))
    asyncio.run(check_only(stage))
    heal(stage)
    (reason,) = stage.sandbox.cannot_answer().values()
    assert "events of acme on these days were written directly and are lost: 2026-11-18 to 2026-11-20" in reason
    assert metric_value(stage) == 3  # of a table that is whole
    assert stage.ask("session_unique", **QUESTIONS["session_unique"]).status_code == 503
    with pytest.raises(Refused, match="are lost"):
        rebuild(stage.sandbox.options.state, ["acme"])


def test_a_damaged_part_is_not_merged(opened: Stage) -> None:
    """Compaction refuses a damaged part, which would become a whole one with wrong rows."""
    merged = tuple(parts(opened, "slim"))
    flip_bit(merged[0].path, Random(5))
    with pytest.raises(Refused, match="is damaged: it is not merged"):
        take_step(Step("acme", "slim", merged), opened.sandbox.lake, opened.sandbox.options.state / "scratch")


def test_a_question_waits_only_so_long_for_a_check(opened: Stage) -> None:
    """Files that are not checked before the deadline are not read: the answer says so."""
    health = LakeHealth(opened.sandbox.lake, deadline_s=-1)
    with pytest.raises(LakeUnavailable, match="still being checked"):
        health.require("acme", parts(opened, "slim"))


def test_a_file_is_read_again_only_after_a_change(opened: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file is read for its checksum once, and again after it was touched."""
    health, slim = LakeHealth(opened.sandbox.lake), parts(opened, "slim")
    health.require("acme", slim)
    impatient = LakeHealth(opened.sandbox.lake, deadline_s=-1)
    impatient._sound = health._sound
    impatient.require("acme", slim)
    slim[0].path.touch()
    with pytest.raises(LakeUnavailable, match="still being checked"):
        impatient.require("acme", slim)


@pytest.mark.parametrize("memory", ["as it was", "damaged"])
def test_a_run_after_a_start_reads_what_has_changed(
    opened: Stage, state_copy: Path, monkeypatch: pytest.MonkeyPatch, memory: str
) -> None:
    """What the process before has checked is read again beside the run, and before it only where it was touched.

    If it is not known what was checked, the run waits until everything is.
    """
    heal(opened)
    opened.sandbox.close()
    if memory == "damaged":
        (state_copy / "checked.json").write_bytes(b"{")
    read: list[Path] = []

    def noted_checksum(path: Path, *, on_chunk: Callable[[], None] | None = None) -> int:
        read.append(path)
        return file_checksum(path, on_chunk=on_chunk)

    monkeypatch.setattr(lake_health, "file_checksum", noted_checksum)
    stage = Stage(state_copy)
    with contextlib.closing(stage.sandbox):
        files = {part.path for table in stage.sandbox.lake.snapshot("acme").tables for part in parts(stage, table)}
        touched = parts(stage, "run_names")[0].path
        touched.touch()
        stage.process()
        assert set(read) == ({touched} if memory == "as it was" else files)
        heal(stage)
        assert len(read) == len(set(read) | files)


@pytest.mark.shown_by(1)
@pytest.mark.parametrize("kind", ["imported", "written"])
def test_a_run_after_an_import_or_a_bulk_load_reads_no_file_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """What was just read for its checksum is known to the next process, so that its first run does not wait for it."""
    state = tmp_path / "state"
    if kind == "imported":
        make_state(state, kind)
    else:
        Stage(state).sandbox.close()  # which gives it its games
        with open_bulk_load(state) as lake:
            scenario = load_scenario("small", players=20, days=3)
            lake.take(play_columns(scenario, lake.folder, ends_on=NOW.date(), game_ids=lake.game_ids))

    def unwanted(path: Path, **_: Any) -> int:
        raise AssertionError(f"{path} is read again")

    stage = Stage(state)
    with contextlib.closing(stage.sandbox):
        assert stage.sandbox.lake.snapshot("acme").rows("events") > 0
        monkeypatch.setattr(lake_health, "file_checksum", unwanted)
        stage.sandbox.health.check_changed(stage.sandbox.lake.snapshot("acme"))


def test_damage_behind_the_back_of_the_file_system_is_found_after_a_start(opened: Stage, state_copy: Path) -> None:
    """A bit that changes with no trace in the file's times is found by the check that every start makes."""
    heal(opened)
    path = parts(opened, "run_names")[0].path
    opened.sandbox.close()
    flip_bit(path, Random(7))
    memory, status = state_copy / "checked.json", path.stat()
    stamps = json.loads(memory.read_text())
    stamp = [status.st_size, status.st_ino, status.st_mtime_ns, status.st_ctime_ns]
    stamps[str(path.relative_to(state_copy / "lake"))] = stamp
    memory.write_text(json.dumps(stamps))
    stage = Stage(state_copy)
    with contextlib.closing(stage.sandbox):
        stage.sandbox.health.check_changed(stage.sandbox.lake.snapshot("acme"))
        assert not stage.sandbox.health.damaged_organisations()
        asyncio.run(check_only(stage))
        assert stage.sandbox.health.damaged_organisations() == ["acme"]


def test_a_file_that_vanishes_under_a_query_is_no_defect_of_the_sandbox(opened: Stage) -> None:
    """An engine that fails because a file went after its check is 503, any other failure stays what it is."""

    class FailingEngine:
        bounds = QueryBounds()

        def rows(self, query: SqlQuery, snapshot: Snapshot) -> list[dict[str, Any]]:
            raise ZeroDivisionError

        def close(self) -> None:
            raise AssertionError

    engine = CheckedEngine(FailingEngine(), opened.sandbox.health)
    query = SqlQuery("SELECT 1", {}, {"slim": ()})
    snapshot = opened.sandbox.lake.snapshot("acme")
    with pytest.raises(ZeroDivisionError):
        engine.rows(query, snapshot)
    path, status = snapshot.files("slim")[0], snapshot.files("slim")[0].stat()
    flip_bit(path, Random(6))
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))  # no change is seen before the failure
    with pytest.raises(LakeUnavailable, match="is damaged"):
        engine.rows(query, snapshot)


@pytest.mark.parametrize("has_new_events", [False, True])
def test_the_command_fails_over_what_cannot_be_made_again(
    state_copy: Path, has_new_events: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """`sandbox process` ends with 1 and the reason, be anything new or not, and prints no traceback."""
    stage = Stage(state_copy)
    if has_new_events:
        stage.submit([event(user_id="new")])
    for part in parts(stage, "events"):
        part.path.write_bytes(b"")
    stage.sandbox.close()
    with contextlib.closing(sqlite3.connect(state_copy / "gamelens.db")) as store, store:
        store.execute("DELETE FROM batches WHERE id = 1")
    done = CliRunner().invoke(cli, ["sandbox", "process", "--state", str(state_copy)])
    assert done.exit_code == 1
    assert "acme: " in done.stderr
    assert "the inbox lacks 1 batches" in done.stderr
    assert not [record for record in caplog.records if record.exc_info]


@pytest.mark.wide
def test_the_command_makes_tables_again(state_copy: Path, played: Played) -> None:
    """`sandbox rebuild` makes the tables of the named organisations, or of all, again."""
    command = ["sandbox", "rebuild", "--state", str(state_copy)]
    assert CliRunner().invoke(cli, command).output == "acme\n"
    assert CliRunner().invoke(cli, [*command, "--organisation", "acme"]).output == "acme\n"
    unknown = CliRunner().invoke(cli, [*command, "--organisation", "nobody"])
    assert unknown.exit_code == 1
    stage = Stage(state_copy)
    with contextlib.closing(stage.sandbox):
        assert ask_all(stage) == played.answers
        assert event_counts(stage)["duplicate"] == 50
