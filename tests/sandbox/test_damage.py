"""A damaged page of the store is set aside and reported, and never keeps the sandbox from starting."""

from __future__ import annotations

import contextlib
import random
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from conftest import Stage, event
from gamelens.sandbox.storage.inbox import InboxBatch, edition, open_store, pending
from gamelens.sandbox.storage.inbox_recovery import recover_store
from gamelens.sandbox.storage.lake import Lake

PAGE = 4096
LAST = 10**9


def batch(number: int) -> InboxBatch:
    chance = random.Random(number)
    return InboxBatch(
        organisation="acme",
        game_id="1001",
        arrival_ms=number,
        country="US",
        events=1,
        rejected=0,
        is_gzipped=False,
        body=chance.randbytes(chance.choice([20, 900, 6000])),
    )


def filled(path: Path, *, batches: int = 300) -> None:
    with contextlib.closing(open_store(path)) as store:
        write(store, range(1, batches + 1))


def write(store: sqlite3.Connection, numbers: range) -> None:
    for it in map(batch, numbers):
        row = (it.organisation, it.game_id, it.arrival_ms, it.country, it.events, it.rejected, it.is_gzipped, it.body)
        store.execute(
            "INSERT INTO batches (organisation, game_id, arrival_ms, country, events, rejected, is_gzipped, body, "
            "checksum) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (*row, it.checksum),
        )


def read(path: Path) -> tuple[dict[int, bytes], set[int], set[str]]:
    """What can be read, what is known to be damaged, and where that is kept."""
    with contextlib.closing(open_store(path)) as store:
        sound = {it.id: it.body for it in pending(store, after=0, up_to=LAST)}
        damaged = store.execute("SELECT batch, kept_in FROM damaged").fetchall()
    return sound, {number for number, _ in damaged if number}, {kept_in for _, kept_in in damaged if kept_in}


def edition_of(path: Path) -> str:
    with contextlib.closing(open_store(path)) as store:
        return edition(store)


def overwrite(path: Path, place: int, data: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(place)
        file.write(data)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("whole") / "gamelens.db"
    filled(path)
    return path


@pytest.fixture
def store(state: Path, whole: Path) -> Path:
    return Path(shutil.copy(whole, state / "gamelens.db"))


def test_a_sound_store_is_left_alone(store: Path) -> None:
    recover_store(store)
    assert read(store) == ({number: batch(number).body for number in range(1, 301)}, set(), set())
    assert not (store.parent / "quarantine").exists()


@pytest.mark.parametrize("seed", range(40))
def test_every_batch_is_whole_or_reported(store: Path, seed: int) -> None:
    """A page of zeros, of noise, or one byte changed, anywhere but in the very first page."""
    chance = random.Random(seed)
    page = chance.randrange(1, store.stat().st_size // PAGE) * PAGE
    damage = chance.choice([bytes(PAGE), chance.randbytes(PAGE), chance.randbytes(1)])
    overwrite(store, page + (chance.randrange(PAGE) if len(damage) == 1 else 0), damage)
    recover_store(store)
    sound, damaged, _ = read(store)
    assert all(batch(number).body == body for number, body in sound.items())
    assert set(sound) | damaged == set(range(1, 301))
    assert len(damaged) < 300


@pytest.mark.parametrize("damage", ["no header", "cut short", "empty"])
def test_a_file_that_is_no_database_any_more_is_kept_and_replaced(store: Path, damage: str) -> None:
    if damage == "no header":
        overwrite(store, 0, bytes(100))
    else:
        store.write_bytes(store.read_bytes()[: 5 * PAGE + 7] if damage == "cut short" else b"no database at all")
    remains = store.read_bytes()
    recover_store(store)
    _, _, (kept_in,) = read(store)
    assert (store.parent / kept_in).read_bytes() == remains


def test_new_batches_come_behind_the_damaged_ones(store: Path) -> None:
    """What is processed already is known by its number."""
    with contextlib.closing(open_store(store)) as connection:
        ((last_page,),) = connection.execute("PRAGMA page_count")
        Lake(store.parent, connection).commit(processed_ms=1, last_batch=300, duplicates=0, files=[])
    for page in range(last_page // 2, last_page):
        overwrite(store, page * PAGE, bytes(PAGE))
    recover_store(store)
    with contextlib.closing(open_store(store)) as connection:
        assert Lake(store.parent, connection).last_run().last_batch == 300
        write(connection, range(301, 302))
        assert [it.id for it in pending(connection, after=300, up_to=LAST)] == [301]


@pytest.mark.parametrize("moved", [0, 1, 2, 3])
def test_a_crash_while_the_damaged_file_is_set_aside_loses_nothing(store: Path, moved: int) -> None:
    """The complete copy is there; some of the damaged files are moved, the others not yet."""
    overwrite(store, 20 * PAGE, bytes(PAGE))
    other = store.parent / "other"
    other.mkdir()
    recover_store(Path(shutil.copy(store, other / "gamelens.db")))
    wanted = read(other / "gamelens.db")
    (other / "gamelens.db").rename(store.with_suffix(".mended"))
    (store.parent / "quarantine").mkdir()
    for suffix in ("-wal", "-shm", "")[:moved]:
        if suffix:
            store.with_name(store.name + suffix).write_bytes(b"of the damaged store")
        store.with_name(store.name + suffix).rename(store.parent / "quarantine" / f"gamelens-1.db{suffix}")
    recover_store(store)
    assert read(store) == wanted


def test_a_copy_that_was_not_finished_is_made_again(store: Path) -> None:
    overwrite(store, 20 * PAGE, bytes(PAGE))
    store.with_suffix(".mending").write_bytes(b"half a copy")
    recover_store(store)
    sound, damaged, _ = read(store)
    assert set(sound) | damaged == set(range(1, 301))


def crashed(state: Path) -> Path:
    """A store whose log still holds every transaction, as a killed process leaves it."""
    with contextlib.closing(open_store(state / "running.db")) as store:
        write(store, range(1, 51))
        for suffix in ("", "-wal"):
            shutil.copy(state / f"running.db{suffix}", state / f"gamelens.db{suffix}")
    return state / "gamelens.db"


def test_a_log_that_is_whole_is_read_to_its_end(state: Path) -> None:
    store = crashed(state)
    recover_store(store)
    assert set(read(store)[0]) == set(range(1, 51))
    assert not (state / "quarantine").exists()
    assert edition_of(store) == edition_of(state / "running.db")


def test_a_damaged_log_is_kept_and_reported(state: Path) -> None:
    """SQLite itself would go on without a word."""
    store = crashed(state)
    log = state / "gamelens.db-wal"
    overwrite(log, log.stat().st_size // 2, b"damage")
    remains = log.read_bytes()
    recover_store(store)
    sound, _, (kept_in,) = read(store)
    assert 0 < len(sound) < 50
    assert (state / kept_in).read_bytes() == remains
    assert edition_of(store) != edition_of(state / "running.db")


def test_a_transaction_that_was_never_whole_is_no_damage(state: Path) -> None:
    """The last writes of a killed process: nobody was told that they are there."""
    store = crashed(state)
    log = state / "gamelens.db-wal"
    with log.open("r+b") as file:
        file.truncate(log.stat().st_size - PAGE // 2)
    recover_store(store)
    assert set(read(store)[0]) == set(range(1, 50))
    assert not (state / "quarantine").exists()


def test_a_sandbox_with_a_damaged_store_starts_and_says_so(make_stage: Callable[..., Stage]) -> None:
    """contract, Control surface: summary."""
    stage = make_stage()
    for number in range(60):
        stage.submit([event(user_id=f"u{number}", x=random.Random(number).randbytes(900).hex())])
    stage.sandbox.close()
    state = stage.sandbox.options.state
    overwrite(state / "gamelens.db", 20 * PAGE, bytes(PAGE))
    again = make_stage()
    damaged = again.sandbox.summary()["damaged"]
    assert 0 < damaged["batches"] < 60
    assert (state / damaged["kept_in"][0]).exists()
    assert again.submit([event(user_id="another")]).status_code == 200
