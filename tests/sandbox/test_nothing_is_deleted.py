"""No file leaves `lake/` unless an intact manifest says what replaced it or a person asked; losses are 503."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import sqlite3
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from gamelens.cli import cli
from gamelens.errors import Refused
from gamelens.sandbox.storage.acknowledged_batches import AcknowledgedBatches
from gamelens.sandbox.storage.lake import Lake
from gamelens.sandbox.storage.lake_schema import FORMAT
from support.game_events import event
from support.kinds_of_state import KINDS, deleted_files, lake_files, make_state, raise_layout
from support.sandbox_stage import Stage, event_counts, metric_value

EVENTS = {"collected": 40, "imported": 20, "mixed": 60}
OLD_STATES = Path(__file__).parent / "states"
LAST_LAYOUT = 8
"""The layout of version 0.1.0, which wrote them."""
QUERY: dict[str, Any] = {"interval": "2026-11-01/2026-12-01", "granularity": "day", "query": {"type": "timeseries"}}


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    """Return each kind of state in turn."""
    return str(request.param)


@pytest.fixture(scope="module")
def templates(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return a state directory of each kind, to be copied."""
    return {kind: make_state(tmp_path_factory.mktemp(kind) / "state", kind) for kind in KINDS}


@pytest.fixture
def copy_of(tmp_path: Path, templates: dict[str, Path]) -> Callable[[str], Path]:
    """Return a function from a kind to a state directory of it, which nobody uses."""
    return lambda kind: shutil.copytree(templates[kind], tmp_path / kind / "state")


@pytest.fixture
def closed(copy_of: Callable[[str], Path], kind: str) -> Path:
    """Return a state directory of the kind, which nobody uses."""
    return copy_of(kind)


@contextlib.contextmanager
def refused_for_its_layout(layout: int) -> Iterator[None]:
    """Expect that a lake of *layout* is refused, with what to do."""
    with pytest.raises(Refused, match=rf"has layout {layout}, and this version reads {FORMAT}\b.*sandbox rebuild"):
        yield


def execute(state: Path, *statements: str) -> None:
    """Execute SQL in the store of *state*."""
    with contextlib.closing(sqlite3.connect(state / "gamelens.db", isolation_level=None)) as store:
        for statement in statements:
            store.execute(statement)


def content(state: Path) -> dict[str, bytes]:
    """Return the bytes of every file of *state*."""
    return {str(path.relative_to(state)): path.read_bytes() for path in state.rglob("*") if path.is_file()}


def flip(path: Path, place: int) -> None:
    """Change one bit of the byte at *place*."""
    changed = bytearray(path.read_bytes())
    changed[place] ^= 2
    path.write_bytes(changed)


def damage(state: Path, what: str) -> None:
    """Damage the store of *state*."""
    store = state / "gamelens.db"
    match what:
        case "the table of runs":
            execute(state, "ALTER TABLE runs DROP COLUMN format")
        case "the table of files":
            execute(state, "DROP TABLE files")
        case "missing":
            store.unlink()
        case "cut":
            store.write_bytes(store.read_bytes()[:5000])
        case "header":
            flip(store, 16)
        case _:
            raise AssertionError(what)


DAMAGES = ("the table of runs", "the table of files", "missing", "cut", "header")


def open_and_examine(state: Path, kind: str) -> None:
    """Start twice over a damaged *state*: refused with what to do, right, or 503 with the days; no file is deleted."""
    before = lake_files(state)
    for _ in range(2):
        stage = None
        with contextlib.suppress(Refused):
            stage = Stage(state)
        if stage is None:
            with pytest.raises(Refused, match="Put back a copy of the state directory"):
                Stage(state)
            assert lake_files(state) == before
            return
        with contextlib.closing(stage.sandbox):
            asyncio.run(stage.sandbox.runs.check())
            answers = (stage.ask("event_count", **QUERY), stage.get("interval"))
            if {answer.status_code for answer in answers} == {200}:
                assert metric_value(stage) == EVENTS[kind]
            else:
                assert {answer.status_code for answer in answers} == {503}
                assert "acme from 2026-11-" in answers[0].json()["message"]
                assert stage.sandbox.cannot_answer()
        assert deleted_files(state, before) == set()


@pytest.mark.shown_by("collected-the table of files", "imported-missing", "mixed-cut")
@pytest.mark.parametrize(
    ("made", "what"),
    [
        *(("collected", what) for what in DAMAGES),
        *(("imported", what) for what in ("the table of files", "missing", "header")),
        *(("mixed", what) for what in ("the table of runs", "cut")),
    ],
)
def test_a_damaged_manifest_deletes_nothing_and_answers_nothing_wrong(
    copy_of: Callable[[str], Path], made: str, what: str
) -> None:
    """Whatever happens to `gamelens.db`, the files stay, and what cannot be answered is 503 with its days."""
    state = copy_of(made)
    damage(state, what)
    open_and_examine(state, made)


@pytest.mark.parametrize("place", [0, 16, 17, 21, 28, 100, 103, 104, 108])
def test_a_changed_byte_of_the_header_deletes_nothing(copy_of: Callable[[str], Path], place: int) -> None:
    """One changed byte in the header of `gamelens.db` costs an imported lake no file."""
    state = copy_of("imported")
    flip(state / "gamelens.db", place)
    open_and_examine(state, "imported")


def test_a_damaged_list_of_organisations_leaves_the_lake_as_it_is(closed: Path, kind: str) -> None:
    """A page of zeros in its table is refused, and deletes nothing."""
    with contextlib.closing(sqlite3.connect(closed / "gamelens.db")) as store:
        ((page,),) = store.execute("SELECT rootpage FROM sqlite_master WHERE name = 'organisations'")
    whole = bytearray((closed / "gamelens.db").read_bytes())
    whole[(page - 1) * 4096 : page * 4096] = bytes(4096)
    (closed / "gamelens.db").write_bytes(whole)
    open_and_examine(closed, kind)


@pytest.mark.shown_by(1)
def test_a_lake_of_another_layout_is_refused_and_not_changed(closed: Path, kind: str) -> None:
    """A start refuses it with what to do; a rebuild makes a lake of received events again, and no other."""
    raise_layout(closed / "gamelens.db")
    files = lake_files(closed)
    for _ in range(2):
        with refused_for_its_layout(FORMAT + 1):
            Stage(closed)
        assert lake_files(closed) == files
    result = CliRunner().invoke(cli, ["sandbox", "rebuild", "--state", str(closed)])
    assert deleted_files(closed, files) == set()
    if kind != "collected":
        assert result.exit_code == 1
        assert lake_files(closed) == files
        return
    assert result.output == "acme\n"
    stage = Stage(closed)
    with contextlib.closing(stage.sandbox):
        assert metric_value(stage) == EVENTS[kind]


@pytest.mark.shown_by(4)
@pytest.mark.parametrize("what", [*DAMAGES, "other layout"])
def test_verifying_files_reports_damage_and_changes_no_byte(closed: Path, what: str) -> None:
    """`sandbox verify --files` exits with 1 over a damaged store and leaves every byte as it was."""
    if what == "other layout":
        raise_layout(closed / "gamelens.db")
    else:
        damage(closed, what)
    before = content(closed)
    result = CliRunner().invoke(cli, ["sandbox", "verify", "--files", "--state", str(closed)])
    assert result.exit_code == 1
    assert "Error: " in result.output
    assert content(closed) == before


def test_verifying_a_sound_state_changes_no_byte(closed: Path) -> None:
    """`sandbox verify --files` says that nothing is damaged, and leaves every byte as it was."""
    before = content(closed)
    result = CliRunner().invoke(cli, ["sandbox", "verify", "--files", "--state", str(closed)])
    assert result.output.endswith("files: none is damaged\n")
    assert content(closed) == before


def test_a_store_of_another_state_is_refused(closed: Path, templates: dict[str, Path], kind: str) -> None:
    """`gamelens.db` of another state directory is refused before anything is changed."""
    other = templates[KINDS[KINDS.index(kind) - 1]]
    (closed / "gamelens.db").write_bytes((other / "gamelens.db").read_bytes())
    before = {name: file for name, file in content(closed).items() if name not in ("lock", "spare")}
    with pytest.raises(Refused, match="is the store of another state directory"):
        Stage(closed)
    assert {name: file for name, file in content(closed).items() if name not in ("lock", "spare")} == before


def test_opening_a_lake_writes_nothing(closed: Path) -> None:
    """A lake is opened and read over a store that cannot be written."""
    with contextlib.closing(
        sqlite3.connect(f"{(closed / 'gamelens.db').as_uri()}?mode=ro&immutable=1", uri=True)
    ) as store:
        assert Lake(closed / "lake", store).snapshot("acme").rows("events") > 0
        execute(closed, "DROP TABLE runs")
    with contextlib.closing(sqlite3.connect(closed / "gamelens.db")) as store:
        assert Lake(closed / "lake", store).lost_because
        assert not store.execute("SELECT 1 FROM sqlite_master WHERE name = 'runs'").fetchall()


def test_lost_batches_are_503_until_a_person_goes_on_without_them(make_stage: Callable[..., Stage]) -> None:
    """Acknowledged batches that are damaged before they are processed make answers 503, not smaller."""
    stage = make_stage()
    for name in ("one", "two"):
        stage.submit([event(user_id=name)])
    stage.sandbox.close()
    state = stage.sandbox.options.state
    execute(state, "UPDATE batches SET body = x'00' WHERE id = 2")
    stage = make_stage()
    with pytest.raises(Refused, match=r"1 acknowledged batches .* are lost"):
        stage.process()
    refused = stage.ask("event_count", **QUERY)
    assert refused.status_code == 503
    assert "1 acknowledged batches" in refused.json()["message"]
    assert "on or after 2026-11-20" in refused.json()["message"]
    stage.sandbox.close()
    command = ["sandbox", "rebuild", "--state", str(state), "--accept-loss"]
    assert CliRunner().invoke(cli, command).exit_code == 0
    stage = make_stage()
    assert metric_value(stage) == 1
    assert stage.sandbox.summary()["damaged"]["batches"] == 1


@pytest.mark.wide
def test_a_lake_is_not_made_again_from_an_inbox_that_lacks_batches(make_stage: Callable[..., Stage]) -> None:
    """Tables whose manifest is lost stay when the inbox is incomplete, unless a person goes on without the rest."""
    stage = make_stage()
    for name in ("one", "two"):
        stage.submit([event(user_id=name)])
        stage.process()
    stage.sandbox.close()
    state = stage.sandbox.options.state
    files = lake_files(state)
    execute(state, "UPDATE batches SET body = x'00' WHERE id = 1", "DROP TABLE files")
    stage = make_stage()
    asyncio.run(stage.sandbox.runs.check())
    assert "the inbox lacks 1 batches" in stage.ask("event_count", **QUERY).json()["message"]
    assert lake_files(state) == files
    stage.sandbox.close()
    CliRunner().invoke(cli, ["sandbox", "rebuild", "--state", str(state), "--accept-loss"])
    stage = make_stage()
    assert metric_value(stage) == 1
    assert deleted_files(state, files) == set()


@pytest.mark.wide
def test_a_collected_lake_without_a_record_is_made_again_from_the_inbox(copy_of: Callable[[str], Path]) -> None:
    """A state that has no record yet, and no manifest, answers again: each event of it has the number of a batch."""
    state = copy_of("collected")
    (state / "gamelens.lake").unlink(missing_ok=True)
    files = lake_files(state)
    execute(state, *(f"DROP TABLE {name}" for name in ("runs", "files")))
    stage = Stage(state)
    with contextlib.closing(stage.sandbox):
        asyncio.run(stage.sandbox.runs.check())
        assert metric_value(stage) == EVENTS["collected"]
    assert deleted_files(state, files) == set()


@pytest.mark.parametrize("made", ["imported", "mixed"])
def test_an_imported_lake_without_a_record_is_not_made_again(copy_of: Callable[[str], Path], made: str) -> None:
    """A state that has no record yet, and no manifest, keeps its files if events of them were never received."""
    state = copy_of(made)
    (state / "gamelens.lake").unlink(missing_ok=True)
    files = lake_files(state)
    execute(state, *(f"DROP TABLE {name}" for name in ("runs", "files")))
    open_and_examine(state, made)
    assert lake_files(state) == files


@pytest.mark.wide
def test_a_store_that_lost_a_reset_does_not_bring_events_back(make_stage: Callable[..., Stage]) -> None:
    """A store that ends before a reset, because its log is gone, has no events, and takes new ones."""
    stage = make_stage()
    stage.submit([event(), event()])
    stage.process()
    state = stage.sandbox.options.state
    stage.sandbox.store.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    before = (state / "gamelens.db").read_bytes()
    asyncio.run(stage.sandbox.reset())
    stage.sandbox.close()
    (state / "gamelens.db").write_bytes(before)
    stage = make_stage()
    assert event_counts(stage)["accepted"] == 0
    asyncio.run(stage.sandbox.runs.check())
    stage.submit([event(user_id="new")])
    stage.process()
    assert metric_value(stage) == 1


@pytest.mark.wide
def test_a_reset_that_was_killed_before_its_commit_deletes_nothing(make_stage: Callable[..., Stage]) -> None:
    """Batches that were noted as deleted, and are not, are in the lake that is made again of the inbox."""
    stage = make_stage()
    stage.submit([event(), event()])
    stage.process()
    stage.sandbox.inbox.forget(1)
    stage.sandbox.close()
    state = stage.sandbox.options.state
    make_stage().sandbox.close()
    execute(state, "DROP TABLE files")
    stage = make_stage()
    asyncio.run(stage.sandbox.runs.check())
    assert metric_value(stage) == 2
    stage.sandbox.close()
    with contextlib.closing(AcknowledgedBatches(state / "gamelens.db")) as acknowledged:
        assert (acknowledged.deleted, acknowledged.last) == (0, 1)


def test_a_reset_empties_lake_and_quarantine(make_stage: Callable[..., Stage]) -> None:
    """A person who asks for a reset gets rid of every file, those in quarantine too, and the sandbox goes on."""
    stage = make_stage()
    stage.submit([event()])
    stage.process()
    state = stage.sandbox.options.state
    (state / "quarantine" / "lake-1").mkdir(parents=True)
    asyncio.run(stage.sandbox.reset())
    assert (lake_files(state), (state / "quarantine").exists()) == (set(), False)
    stage.submit([event()])
    stage.process()
    stage.sandbox.close()
    stage = make_stage()
    assert metric_value(stage) == 1


def of_last_release(kind: str, folder: Path) -> Path:
    """Return a state directory in *folder* that version 0.1.0 wrote."""
    with tarfile.open(OLD_STATES / f"layout-{LAST_LAYOUT}-{kind}.tar.xz") as archive:
        archive.extractall(folder, filter="data")
    return folder / "state"


@pytest.mark.shown_by(1)
@pytest.mark.parametrize("name", ["collected", "imported"])
def test_a_state_of_the_last_release_is_opened_with_the_same_answers(tmp_path: Path, name: str) -> None:
    """A state directory that version 0.1.0 wrote answers as it did, and takes new events.

    Once this version has another layout, it is refused unchanged, and what was received is rebuilt to the same answers.
    """
    state = of_last_release(name, tmp_path)
    files = lake_files(state)
    if LAST_LAYOUT != FORMAT:
        with refused_for_its_layout(LAST_LAYOUT):
            Stage(state)
        result = CliRunner().invoke(cli, ["sandbox", "rebuild", "--state", str(state)])
        assert result.exit_code == (0 if name == "collected" else 1), result.output
        if name == "imported":
            assert lake_files(state) == files
            return
        files = lake_files(state)
    for _ in range(2):
        stage = Stage(state)
        with contextlib.closing(stage.sandbox):
            assert metric_value(stage) == EVENTS[name]
            assert metric_value(stage, "user_unique") == {"collected": 14, "imported": 7}[name]
            assert files <= lake_files(state)
    stage = Stage(state)
    with contextlib.closing(stage.sandbox):
        stage.submit([event()])
        stage.process()
        assert metric_value(stage) == EVENTS[name] + 1
        assert event_counts(stage)["pending"] == 0


@pytest.mark.wide
def test_a_list_of_the_last_release_is_read_until_a_run_commits(tmp_path: Path) -> None:
    """Version 0.1.0 listed only organisations with batches that waited: they wait still, and become rows.

    Once this version has another layout, a rebuild takes them in and drops the list.
    """
    state = of_last_release("collected", tmp_path)
    execute(state, "INSERT INTO behind VALUES ('acme', 1, NULL, 3, 'no room', 5.0)")
    if LAST_LAYOUT != FORMAT:
        assert CliRunner().invoke(cli, ["sandbox", "rebuild", "--state", str(state)]).exit_code == 0
    for _ in range(2 if LAST_LAYOUT == FORMAT else 0):
        stage = Stage(state)
        with contextlib.closing(stage.sandbox):
            summary = stage.sandbox.summary()
            assert (summary["accepted"], summary["pending"]) == (40, 20)
            assert summary["failing"] == {"acme": {"reason": "no room", "failures": 3, "retry_ts": 5}}
            assert stage.sandbox.store.execute("SELECT count(*) FROM behind").fetchone() == (1,)
    stage = Stage(state)
    with contextlib.closing(stage.sandbox):
        stage.process()
        repeated = 20 if LAST_LAYOUT == FORMAT else 0  # the lake of the state had those that waited
        processed = {"processed": 40 - repeated, "duplicate": repeated}
        assert event_counts(stage) == {"accepted": 40, "rejected": 0, "pending": 0} | processed
        assert stage.sandbox.summary()["failing"] == {}
        assert metric_value(stage) == EVENTS["collected"]
        tables = {name for (name,) in stage.sandbox.store.execute("SELECT name FROM sqlite_master")}
        assert (tables & {"behind", "organisations"}) == {"organisations"}
