"""The check of a store: a damaged one is refused and kept, and batches that a log has lost are reported."""

from __future__ import annotations

import contextlib
import random
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from gamelens.errors import Refused
from gamelens.sandbox.server import rebuild_stopped
from gamelens.sandbox.storage.acknowledged_batches import AcknowledgedBatches
from gamelens.sandbox.storage.inbox import InboxBatch, edition, open_store, pending
from gamelens.sandbox.storage.store_check import check_store
from support.game_events import event
from support.sandbox_stage import Stage, metric_value

PAGE = 4096
LAST = 10**9


def batch(number: int) -> InboxBatch:
    """Return batch *number*, of a size that depends on the number."""
    random_source = random.Random(number)
    return InboxBatch(
        organisation="acme",
        game_id="1001",
        arrival_ms=number,
        country="US",
        events=1,
        rejected=0,
        is_gzipped=False,
        body=random_source.randbytes(random_source.choice([20, 900, 6000])),
    )


def write_store(path: Path, *, batches: int = 300) -> None:
    """Write a store with *batches* batches at *path*."""
    with contextlib.closing(open_store(path)) as store:
        insert_batches(store, range(1, batches + 1))


def insert_batches(store: sqlite3.Connection, numbers: range) -> None:
    """Insert the batches of *numbers* into *store*."""
    for number in numbers:
        new = batch(number)
        row = (new.organisation, new.game_id, new.arrival_ms, new.country, new.events, new.rejected, new.is_gzipped)
        store.execute(
            "INSERT INTO batches (organisation, game_id, arrival_ms, country, events, rejected, is_gzipped, body, "
            "checksum) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (*row, new.body, new.checksum),
        )


def read_store(path: Path) -> tuple[dict[int, bytes], set[int], set[str]]:
    """Return the intact batches, the numbers of damaged ones, and the files kept of them."""
    with contextlib.closing(open_store(path)) as store:
        sound = {stored.id: stored.body for stored in pending(store, after=0, up_to=LAST)}
        damaged = store.execute("SELECT batch, kept_in FROM damaged").fetchall()
    return sound, {number for number, _ in damaged if number}, {kept_in for _, kept_in in damaged if kept_in}


def edition_of(path: Path) -> str:
    """Return the edition of the store at *path*."""
    with contextlib.closing(open_store(path)) as store:
        return edition(store)


def overwrite(path: Path, place: int, data: bytes) -> None:
    """Overwrite the bytes of *path* at *place* with *data*."""
    with path.open("r+b") as file:
        file.seek(place)
        file.write(data)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write one store of 300 batches for all tests."""
    path = tmp_path_factory.mktemp("whole") / "gamelens.db"
    write_store(path)
    return path


@pytest.fixture
def store(state: Path, whole: Path) -> Path:
    """Return a copy of the store for a test to damage."""
    return Path(shutil.copy(whole, state / "gamelens.db"))


def test_an_undamaged_store_is_not_changed(store: Path) -> None:
    """The check leaves an undamaged store as it is and sets nothing aside."""
    check_store(store)
    assert read_store(store) == ({number: batch(number).body for number in range(1, 301)}, set(), set())
    assert not (store.parent / "quarantine").exists()


@pytest.mark.shown_by(6)
@pytest.mark.parametrize("seed", range(40))
def test_a_damaged_page_is_refused_or_each_batch_is_intact_or_reported(store: Path, seed: int) -> None:
    """After damage anywhere but in the first page: a page of zeros, a page of noise or one byte.

    A refused store stays as it is, and the error says what to do; with the loss accepted an empty one takes its place,
    in which each batch is reported.
    """
    random_source = random.Random(seed)
    page = random_source.randrange(1, store.stat().st_size // PAGE) * PAGE
    damage = random_source.choice([bytes(PAGE), random_source.randbytes(PAGE), random_source.randbytes(1)])
    with contextlib.closing(AcknowledgedBatches(store)) as acknowledged:
        acknowledged.delete(0)
        acknowledged.acknowledge(300)
    overwrite(store, page + (random_source.randrange(PAGE) if len(damage) == 1 else 0), damage)
    damaged_content = store.read_bytes()
    refusal = ""
    try:
        check_store(store)
    except Refused as error:
        refusal = str(error)
    if refusal:
        assert "Put back a copy" in refusal
        assert store.read_bytes() == damaged_content
        check_store(store, accept_loss=True)
        (kept,) = (store.parent / "quarantine").glob("*.db")
        assert kept.read_bytes() == damaged_content
    sound, damaged, _ = read_store(store)
    assert all(batch(number).body == body for number, body in sound.items())
    assert set(sound) | damaged == set(range(1, 301))


@pytest.mark.parametrize("damage", ["no header", "cut short", "empty"])
def test_a_file_that_is_no_database_is_refused_then_set_aside(store: Path, damage: str) -> None:
    """A store without header, cut or overwritten stays in its place until a person accepts the loss."""
    if damage == "no header":
        overwrite(store, 0, bytes(100))
    else:
        store.write_bytes(store.read_bytes()[: 5 * PAGE + 7] if damage == "cut short" else b"no database at all")
    damaged_content = store.read_bytes()
    with pytest.raises(Refused, match="rebuild --accept-loss"):
        check_store(store)
    assert store.read_bytes() == damaged_content
    check_store(store, accept_loss=True)
    _, _, (kept_in,) = read_store(store)
    assert (store.parent / kept_in).read_bytes() == damaged_content


def test_an_accepted_loss_goes_on_after_the_lost_batches(make_stage: Callable[..., Stage]) -> None:
    """The sandbox is refused, then rebuilt without its events, and answers; new batches have new numbers."""
    stage = make_stage()
    for number in range(60):
        stage.submit([event(user_id=f"u{number}", x=random.Random(number).randbytes(900).hex())])
    stage.process()
    stage.sandbox.close()
    state = stage.sandbox.options.state
    overwrite(state / "gamelens.db", 20 * PAGE, bytes(PAGE))
    with pytest.raises(Refused, match="Put back a copy of the state directory"):
        make_stage()
    with pytest.raises(Refused, match="is damaged"):
        rebuild_stopped(state)
    assert rebuild_stopped(state, accept_loss=True) == []
    restarted = make_stage()
    damaged = restarted.sandbox.summary()["damaged"]
    assert (state / damaged["kept_in"][0]).exists()
    assert restarted.submit([event(user_id="another")]).status_code == 200
    restarted.process()
    assert restarted.sandbox.store.execute("SELECT min(id) FROM batches").fetchone()[0] > 1
    assert metric_value(restarted) == 1


def copy_of_running_store(state: Path) -> Path:
    """Return a store whose log still holds every transaction, as after a kill."""
    with contextlib.closing(open_store(state / "running.db")) as store:
        insert_batches(store, range(1, 51))
        for suffix in ("", "-wal"):
            shutil.copy(state / f"running.db{suffix}", state / f"gamelens.db{suffix}")
    return state / "gamelens.db"


def test_an_undamaged_log_is_read_to_its_end(state: Path) -> None:
    """All transactions of an undamaged log are kept, under the same edition."""
    store = copy_of_running_store(state)
    check_store(store)
    assert set(read_store(store)[0]) == set(range(1, 51))
    assert not (state / "quarantine").exists()
    assert edition_of(store) == edition_of(state / "running.db")


def test_a_damaged_log_is_kept_and_reported(state: Path) -> None:
    """A damaged log, which SQLite cuts silently, is kept, its batches are reported, and the edition changes."""
    store = copy_of_running_store(state)
    log = state / "gamelens.db-wal"
    with contextlib.closing(AcknowledgedBatches(store)) as acknowledged:
        acknowledged.delete(0)
        acknowledged.acknowledge(50)
    overwrite(log, log.stat().st_size // 2, b"damage")
    damaged_content = log.read_bytes()
    check_store(store)
    sound, damaged, (kept_in,) = read_store(store)
    assert 0 < len(sound) < 50
    assert set(sound) | damaged == set(range(1, 51))
    assert (state / kept_in).read_bytes() == damaged_content
    assert edition_of(store) != edition_of(state / "running.db")


def test_an_incomplete_transaction_is_no_damage(state: Path) -> None:
    """An incomplete last transaction was not acknowledged and is dropped."""
    store = copy_of_running_store(state)
    log = state / "gamelens.db-wal"
    with log.open("r+b") as file:
        file.truncate(log.stat().st_size - PAGE // 2)
    check_store(store)
    assert set(read_store(store)[0]) == set(range(1, 50))
    assert not (state / "quarantine").exists()
