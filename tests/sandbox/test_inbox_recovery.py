"""Recovery of a damaged inbox: it is kept and reported, and the sandbox starts."""

from __future__ import annotations

import contextlib
import random
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from gamelens.errors import Refused
from gamelens.sandbox.storage.acknowledged_batches import AcknowledgedBatches
from gamelens.sandbox.storage.inbox import InboxBatch, edition, open_store, pending
from gamelens.sandbox.storage.inbox_recovery import recover_store
from gamelens.sandbox.storage.lake import Lake
from support.game_events import event
from support.sandbox_stage import Stage

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
    """Recovery leaves an undamaged store as it is and sets nothing aside."""
    recover_store(store)
    assert read_store(store) == ({number: batch(number).body for number in range(1, 301)}, set(), set())
    assert not (store.parent / "quarantine").exists()


@pytest.mark.parametrize("seed", range(40))
def test_every_batch_is_intact_or_reported(store: Path, seed: int) -> None:
    """After random damage to a page, each batch is intact or reported as damaged.

    The damage is a page of zeros, a page of noise or one byte, anywhere but in the first page.
    """
    random_source = random.Random(seed)
    page = random_source.randrange(1, store.stat().st_size // PAGE) * PAGE
    damage = random_source.choice([bytes(PAGE), random_source.randbytes(PAGE), random_source.randbytes(1)])
    overwrite(store, page + (random_source.randrange(PAGE) if len(damage) == 1 else 0), damage)
    recover_store(store)
    sound, damaged, _ = read_store(store)
    assert all(batch(number).body == body for number, body in sound.items())
    assert set(sound) | damaged == set(range(1, 301))
    assert len(damaged) < 300


@pytest.mark.parametrize("damage", ["no header", "cut short", "empty"])
def test_a_file_that_is_no_database_is_kept_and_replaced(store: Path, damage: str) -> None:
    """A store without header, cut or overwritten is kept beside a new one."""
    if damage == "no header":
        overwrite(store, 0, bytes(100))
    else:
        store.write_bytes(store.read_bytes()[: 5 * PAGE + 7] if damage == "cut short" else b"no database at all")
    damaged_content = store.read_bytes()
    recover_store(store)
    _, _, (kept_in,) = read_store(store)
    assert (store.parent / kept_in).read_bytes() == damaged_content


def test_new_batches_are_numbered_after_the_damaged_ones(store: Path) -> None:
    """New batches get numbers after the processed ones, so that none is skipped."""
    with contextlib.closing(open_store(store)) as connection:
        ((last_page,),) = connection.execute("PRAGMA page_count")
        lake = Lake(store.parent / "lake", connection)
        lake.create_if_new()
        lake.commit(processed_ms=1, last_batch=300, duplicates=0, files=[], retired=())
    for page in range(last_page // 2, last_page):
        overwrite(store, page * PAGE, bytes(PAGE))
    recover_store(store)
    with contextlib.closing(open_store(store)) as connection:
        assert Lake(store.parent / "lake", connection).last_run().last_batch == 300
        insert_batches(connection, range(301, 302))
        assert [stored.id for stored in pending(connection, after=300, up_to=LAST)] == [301]


@pytest.mark.parametrize("moved", [0, 1, 2, 3])
def test_a_crash_while_the_damaged_file_is_set_aside_loses_nothing(store: Path, moved: int) -> None:
    """A recovery that was interrupted between its renames is completed."""
    overwrite(store, 2 * PAGE, bytes(30 * PAGE))
    elsewhere = store.parent / "other"
    elsewhere.mkdir()
    recover_store(Path(shutil.copy(store, elsewhere / "gamelens.db")))
    expected = read_store(elsewhere / "gamelens.db")
    shutil.copy(elsewhere / "quarantine" / "gamelens-1.db", store)  # as the recovery left it
    (elsewhere / "gamelens.db").rename(store.with_suffix(".mended"))
    (store.parent / "quarantine").mkdir()
    for suffix in ("-wal", "-shm", "")[:moved]:
        if suffix:
            store.with_name(store.name + suffix).write_bytes(b"of the damaged store")
        store.with_name(store.name + suffix).rename(store.parent / "quarantine" / f"gamelens-1.db{suffix}")
    recover_store(store)
    assert read_store(store) == expected
    assert {file.name.split(".")[0] for file in (store.parent / "quarantine").iterdir()} == {"gamelens-1"}


@pytest.mark.parametrize("content", [b"", b"noise", None])
def test_a_foreign_copy_displaces_no_sound_store(store: Path, content: bytes | None) -> None:
    """A file `gamelens.mended` that was not made of this store, be it a store itself, is set aside and kept."""
    expected, foreign = read_store(store), store.with_suffix(".mended")
    if content is None:
        write_store(foreign, batches=3)
    else:
        foreign.write_bytes(content)
    written = foreign.read_bytes()
    recover_store(store)
    assert read_store(store) == expected
    assert [file.read_bytes() for file in (store.parent / "quarantine").iterdir()] == [written]


def test_a_recovery_that_the_last_release_began_is_completed(store: Path) -> None:
    """A copy of 0.1, which has no checksum of the damaged store, is taken when that is in quarantine as it says."""
    overwrite(store, 2 * PAGE, bytes(30 * PAGE))
    recover_store(store)
    expected = read_store(store)
    copy = store.rename(store.with_suffix(".mended"))
    with contextlib.closing(sqlite3.connect(copy)) as connection:
        connection.execute("DROP TABLE mended")
        connection.execute("PRAGMA journal_mode = DELETE")
    recover_store(store)
    assert read_store(store) == expected
    assert not copy.exists()


def test_a_foreign_copy_takes_no_place_of_a_missing_store(store: Path) -> None:
    """Without the store, a copy of another one is refused with what to do, and nothing is moved."""
    write_store(store.with_suffix(".mended"), batches=3)
    store.unlink()
    with pytest.raises(Refused, match=r"is missing, and .*gamelens.mended may not be its copy: if it is, rename"):
        recover_store(store)
    assert (store.exists(), store.with_suffix(".mended").exists()) == (False, True)


def test_a_copy_that_was_not_finished_is_made_again(store: Path) -> None:
    """An unfinished copy of an interrupted recovery is made again."""
    overwrite(store, 20 * PAGE, bytes(PAGE))
    store.with_suffix(".mending").write_bytes(b"half a copy")
    recover_store(store)
    sound, damaged, _ = read_store(store)
    assert set(sound) | damaged == set(range(1, 301))


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
    recover_store(store)
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
    recover_store(store)
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
    recover_store(store)
    assert set(read_store(store)[0]) == set(range(1, 50))
    assert not (state / "quarantine").exists()


def test_a_sandbox_with_a_damaged_store_starts_and_reports_it(make_stage: Callable[..., Stage]) -> None:
    """The summary counts the damaged batches and names the file that keeps them.

    Wire 5.1, Control API.
    """
    stage = make_stage()
    for number in range(60):
        stage.submit([event(user_id=f"u{number}", x=random.Random(number).randbytes(900).hex())])
    stage.sandbox.close()
    state = stage.sandbox.options.state
    overwrite(state / "gamelens.db", 20 * PAGE, bytes(PAGE))
    restarted = make_stage()
    damaged = restarted.sandbox.summary()["damaged"]
    assert 0 < damaged["batches"] < 60
    assert (state / damaged["kept_in"][0]).exists()
    assert restarted.submit([event(user_id="another")]).status_code == 200
