"""Fewer batches than were acknowledged are always noticed, whatever was damaged."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gamelens.sandbox.storage.acknowledged_batches import AcknowledgedBatches
from gamelens.sandbox.storage.inbox import Inbox, InboxBatch, delete_batches, open_store, pending
from gamelens.sandbox.storage.store_check import check_store
from support.game_events import event
from support.hypothesis_profiles import examples
from support.sandbox_stage import Stage

PAGE = 4096
FRAME = PAGE + 24
BATCHES = 120
WRITER = """
import asyncio, pathlib, sys, time
from gamelens.sandbox.storage.inbox import Inbox
from sandbox.test_acknowledged_batches import batch, commit
inbox = Inbox(pathlib.Path(sys.argv[1]))
for first in range(1, int(sys.argv[2]), 10):
    asyncio.run(commit(inbox, range(first, first + 10)))
print("acknowledged", flush=True)
time.sleep(60)
"""


def batch(number: int) -> InboxBatch:
    """Return batch *number*; some bodies fill more than a page."""
    return InboxBatch(
        organisation="acme",
        game_id="1001",
        arrival_ms=number,
        country=None,
        events=5,
        rejected=0,
        is_gzipped=False,
        body=f"{number} ".encode() * (1 + number * 37 % 900),
    )


async def commit(inbox: Inbox, numbers: range) -> None:
    """Commit the batches of *numbers* together."""
    await asyncio.gather(*(inbox.commit(batch(number)) for number in numbers))


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the files of a process that was killed after acknowledging 120 batches, all of them in the log."""
    folder = tmp_path_factory.mktemp("killed")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([*sys.path, str(Path(__file__).parents[1])])}
    arguments = [sys.executable, "-c", WRITER, str(folder / "gamelens.db"), str(BATCHES)]
    process = subprocess.Popen(arguments, stdout=subprocess.PIPE, env=environment)
    assert process.stdout is not None
    assert process.stdout.readline() == b"acknowledged\n"
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    assert (folder / "gamelens.db-wal").stat().st_size > BATCHES * PAGE // 10
    return folder


def copied(killed: Path, to: Path) -> Path:
    """Copy the files of the killed process, and return the path of the store."""
    shutil.rmtree(to, ignore_errors=True)
    shutil.copytree(killed, to)
    return to / "gamelens.db"


def change(path: Path, place: int, mask: int) -> None:
    """Change the bits of *mask* in the byte of *path* at *place*."""
    content = bytearray(path.read_bytes())
    content[place] ^= mask
    path.write_bytes(content)


def checked(store: Path) -> tuple[set[int], set[int]]:
    """Check *store*, and return the ids of the batches that are as they were, and of those recorded as damaged."""
    check_store(store)
    with contextlib.closing(open_store(store)) as connection:
        stored = list(pending(connection, after=0, up_to=10**9))
        reported = {number for (number,) in connection.execute("SELECT batch FROM damaged WHERE batch > 0")}
    for found in stored:
        assert found.body == batch(found.arrival_ms).body
        assert found.id == found.arrival_ms
    return {found.id for found in stored}, reported


ALL = set(range(1, BATCHES + 1))


@pytest.mark.shown_by(4)
@pytest.mark.parametrize("place", range(32))
def test_a_changed_byte_in_the_header_of_the_log_loses_nothing_unreported(
    killed: Path, state: Path, place: int
) -> None:
    """Whichever byte of the log's header changes, every acknowledged batch is read or recorded as damaged."""
    store = copied(killed, state)
    change(state / "gamelens.db-wal", place, 0x41)
    sound, reported = checked(store)
    assert sound | reported == ALL


@pytest.mark.shown_by(8)
@pytest.mark.parametrize("place", range(24))
@pytest.mark.parametrize("frame", ["first", "second", "middle", "last"])
def test_a_changed_byte_in_the_header_of_a_frame_loses_nothing_unreported(
    killed: Path, state: Path, frame: str, place: int
) -> None:
    """Whichever byte of a frame's header changes, every acknowledged batch is read or recorded as damaged."""
    store = copied(killed, state)
    log = state / "gamelens.db-wal"
    frames = (log.stat().st_size - 32) // FRAME
    number = {"first": 0, "second": 1, "middle": frames // 2, "last": frames - 1}[frame]
    change(log, 32 + number * FRAME + place, 0x41)
    sound, reported = checked(store)
    assert sound | reported == ALL


def test_the_damaged_log_is_kept(killed: Path, state: Path) -> None:
    """The log is kept as it was found, and the store names the file."""
    store = copied(killed, state)
    change(state / "gamelens.db-wal", 17, 1)
    damaged = (state / "gamelens.db-wal").read_bytes()
    check_store(store)
    with contextlib.closing(open_store(store)) as connection:
        ((kept_in,),) = connection.execute("SELECT DISTINCT kept_in FROM damaged")
    assert (state / kept_in).read_bytes() == damaged


_FLIPS = st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(1, 255)), max_size=6)


@settings(max_examples=examples(40), deadline=None)
@given(in_log=_FLIPS, in_record=st.tuples(st.integers(0, 8191), st.integers(0, 255)))
def test_every_acknowledged_batch_is_read_or_reported(
    killed: Path,
    tmp_path_factory: pytest.TempPathFactory,
    in_log: list[tuple[float, int]],
    in_record: tuple[int, int],
) -> None:
    """Random bytes of the log change, and any one byte beside it: no batch is missing without a record of it."""
    store = copied(killed, tmp_path_factory.getbasetemp() / "flipped")
    log = store.with_name("gamelens.db-wal")
    for share, mask in in_log:
        change(log, int(share * log.stat().st_size), mask)
    change(store.with_suffix(".acknowledged"), *in_record)
    sound, reported = checked(store)
    assert sound | reported == ALL


@pytest.mark.parametrize("damage", ["no log", "half a log", "no header", "zeros", "no store"])
def test_a_lost_log_or_store_is_reported(killed: Path, state: Path, damage: str) -> None:
    """Batches that nothing holds any more are recorded as damaged, and new ids go on after theirs."""
    store = copied(killed, state)
    log = state / "gamelens.db-wal"
    content = log.read_bytes()
    match damage:
        case "no log":
            log.unlink()
        case "half a log":
            log.write_bytes(content[: len(content) // 2])
        case "no header":
            log.write_bytes(bytes(32) + content[32:])
        case "zeros":
            log.write_bytes(bytes(len(content)))
        case "no store":
            log.unlink()
            store.unlink()
    sound, reported = checked(store)
    assert sound | reported == ALL
    assert len(reported) > (0 if damage == "no header" else BATCHES // 10) or sound == ALL
    inbox = Inbox(store)
    asyncio.run(commit(inbox, range(BATCHES + 1, BATCHES + 3)))
    inbox.close()
    assert checked(store) == (sound | {BATCHES + 1, BATCHES + 2}, reported)


def test_a_store_without_a_record_begins_one(killed: Path, state: Path) -> None:
    """A store of an earlier version, or whose record is damaged as a whole, starts and has a record from then on."""
    store = copied(killed, state)
    store.with_suffix(".acknowledged").write_bytes(b"noise" * 2000)
    assert checked(store) == (ALL, set())
    for file in ("gamelens.db", "gamelens.db-wal"):
        (state / file).unlink(missing_ok=True)
    assert checked(store) == (set(), ALL)


def test_deleted_batches_are_not_missed(make_stage: Callable[..., Stage]) -> None:
    """A reset deletes on purpose: the next start reports nothing, and later losses still."""
    stage = make_stage()
    for number in range(3):
        stage.submit([event(user_id=f"u{number}")])
    asyncio.run(stage.sandbox.reset())
    stage.submit([event(user_id="after")])
    stage.sandbox.close()
    restarted = make_stage()
    assert restarted.sandbox.summary()["damaged"]["batches"] == 0
    restarted.sandbox.close()
    store = restarted.sandbox.options.state / "gamelens.db"
    with contextlib.closing(open_store(store)) as connection:
        connection.execute("DELETE FROM batches")
    assert make_stage().sandbox.summary()["damaged"]["batches"] == 1


def test_a_record_that_was_cut_short_leaves_the_one_before(state: Path) -> None:
    """Records go to two places in turn, so that an interrupted write loses the last one at most."""
    store = state / "gamelens.db"
    with contextlib.closing(AcknowledgedBatches(store)) as acknowledged:
        for last in (7, 8, 9):
            acknowledged.acknowledge(last)
    file = store.with_suffix(".acknowledged")
    newest = max((0, PAGE), key=lambda place: file.read_bytes()[place : place + 8])
    content = file.read_bytes()
    file.write_bytes(content[:newest] + b"\xff" * 64 + content[newest + 64 :])
    with contextlib.closing(AcknowledgedBatches(store)) as acknowledged:
        assert acknowledged.last == 8


def test_a_reset_that_is_rolled_back_reports_nothing(state: Path) -> None:
    """The record of a reset goes ahead of it, so a crash between both is not damage."""
    store = state / "gamelens.db"
    inbox = Inbox(store)
    asyncio.run(commit(inbox, range(1, 4)))
    with contextlib.closing(open_store(store)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        inbox.forget(delete_batches(connection))
        connection.execute("ROLLBACK")
    inbox.close()
    assert checked(store) == ({1, 2, 3}, set())
