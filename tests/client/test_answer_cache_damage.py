"""The cache on a damaged or full disk, and shared with processes that may be killed."""

from __future__ import annotations

import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gamelens
from gamelens.client.cache.answer_cache import AnswerCache
from gamelens.errors import BadQuery
from support import cache_writer
from support.cache_writer import ASKED, LATER, day_slice, day_slices, find, found_days, keep, rows_of_seed
from support.hypothesis_profiles import examples, tries

pytestmark = pytest.mark.slow

DAYS = range(20)


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Callable[..., AnswerCache]]:
    """Return a factory of caches of one owner, all closed after the test."""
    caches: list[AnswerCache] = []

    def make(folder: Path = tmp_path / "cache", **options: Any) -> AnswerCache:
        caches.append(AnswerCache(folder, owner="ann", **options))
        return caches[-1]

    yield make
    for cache in caches:
        cache.close()


@pytest.fixture
def cache(make: Callable[..., AnswerCache]) -> AnswerCache:
    """Return a cache in a folder of its own."""
    return make()


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with every kind of file a cache writes, as a killed process leaves it."""
    original, copy = tmp_path_factory.mktemp("written"), tmp_path_factory.mktemp("copy") / "cache"
    cache = AnswerCache(original, owner="ann")
    for day in DAYS:
        keep(cache, [day], rows_of_seed(day, 0))
        keep(cache, [day], rows_of_seed(day, 1))
    shutil.copytree(original, copy)
    cache.close()
    return copy


def answers_folder(cache: AnswerCache) -> Path:
    """Return the folder with the files of *cache*."""
    return cache.folder / "answers"


def parquet_files(cache: AnswerCache) -> list[Path]:
    """Return the Parquet files of *cache*, unfinished ones included."""
    return sorted(answers_folder(cache).glob("*.parquet*"))


def start_writer(verb: str, folder: Path, seed: int = 1) -> subprocess.Popen[str]:
    """Start `cache_writer` in a process of its own."""
    command = [sys.executable, cache_writer.__file__, verb, str(folder), str(seed)]
    folders = [Path(cache_writer.__file__).parents[1], Path(gamelens.__file__).parents[1]]
    environment = {"PYTHONPATH": os.pathsep.join(map(str, folders)), "PATH": ""}
    environment["PYTHONDONTWRITEBYTECODE"] = "1"  # compiled modules would be cut short by a limit on the size of files
    if "PYTHONPYCACHEPREFIX" in os.environ:
        environment["PYTHONPYCACHEPREFIX"] = os.environ["PYTHONPYCACHEPREFIX"]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)


def output_of(process: subprocess.Popen[str], word: str = "") -> str:
    """Return what *process* prints after it read *word*, once it has ended without an error."""
    out, _ = process.communicate(word, timeout=60)
    assert process.returncode == 0
    return out.strip()


def assert_works(cache: AnswerCache, days: range = DAYS) -> None:
    """Assert that *cache* finds only what was stored last, and can store again."""
    result = cache.find(ASKED, day_slices(days), available=LATER, fresh_s=0)
    expected = [rows_of_seed(day, 1) for day in days if day_slice(day) in result.slices]
    assert result.table == (pa.concat_tables(expected) if expected else None)
    keep(cache, days, pa.concat_tables([rows_of_seed(day, 1) for day in days]))
    assert found_days(cache, days) == [*days]
    assert cache.info().off is None


# Damage


def test_a_damaged_file_is_a_miss_and_is_removed(cache: AnswerCache) -> None:
    """A file with a flipped bit is removed and its buckets are requested again."""
    keep(cache, [1], rows_of_seed(1, 1))
    keep(cache, [2], rows_of_seed(2, 1))
    for path in parquet_files(cache):
        body = bytearray(path.read_bytes())
        body[len(body) // 2] ^= 1
        path.write_bytes(body)
        break
    assert len(cache.find(ASKED, day_slices([1, 2]), available=LATER, fresh_s=0).slices) == 1
    assert len(parquet_files(cache)) == 1
    assert (cache.info().buckets, cache.info().files, cache.info().off) == (1, 1, None)


def test_a_file_cut_short_is_a_miss(cache: AnswerCache) -> None:
    """A file that lacks its last byte is not read."""
    keep(cache, [1], rows_of_seed(1, 1))
    (path,) = parquet_files(cache)
    path.write_bytes(path.read_bytes()[:-1])
    assert find(cache, [1]) is None


def test_a_file_that_vanished_is_a_miss(cache: AnswerCache) -> None:
    """A missing file is a miss and leaves the index."""
    keep(cache, [1], rows_of_seed(1, 1))
    parquet_files(cache)[0].unlink()
    assert find(cache, [1]) is None
    assert cache.info().files == 0


def test_a_file_that_vanished_is_forgotten_when_a_cache_is_opened(
    cache: AnswerCache, make: Callable[..., AnswerCache]
) -> None:
    """Opening a cache removes index entries of missing files."""
    keep(cache, [1], rows_of_seed(1, 1))
    parquet_files(cache)[0].unlink()
    later = make()
    assert later.fresh_slices(ASKED, day_slices([1]), available=LATER, fresh_s=0) == frozenset()


@settings(max_examples=examples(60), deadline=None)
@given(st.integers(0), st.integers(0), st.integers(0, 7))
def test_any_byte_of_any_file_may_flip(written: Path, which: int, place: int, bit: int) -> None:
    """A wrong byte anywhere on disk is a miss, never a wrong number."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(shutil.copytree(written, Path(temporary) / "cache"))
        paths = sorted(path for path in (folder / "answers").iterdir() if path.stat().st_size)
        body = bytearray(paths[which % len(paths)].read_bytes())
        body[place % len(body)] ^= 1 << bit
        paths[which % len(paths)].write_bytes(body)
        cache = AnswerCache(folder, owner="ann")
        assert_works(cache)
        cache.restatements()
        cache.clear()
        cache.close()


def test_an_index_that_is_no_database_is_set_aside(cache: AnswerCache) -> None:
    """An index file that is not a database is kept as `damaged.sqlite`, and a new one is made."""
    answers_folder(cache).mkdir(parents=True)
    (answers_folder(cache) / "index.sqlite").write_bytes(b"my diary, and long enough to be looked at" * 100)
    assert_works(cache)
    assert (answers_folder(cache) / "damaged.sqlite").read_bytes().startswith(b"my diary")


def test_an_index_of_another_program_is_set_aside(cache: AnswerCache) -> None:
    """A database with other tables is kept as `damaged.sqlite`, and a new index is made."""
    answers_folder(cache).mkdir(parents=True)
    with sqlite3.connect(answers_folder(cache) / "index.sqlite") as other:
        other.execute("CREATE TABLE units (diary TEXT)")
    other.close()
    assert_works(cache)
    assert (answers_folder(cache) / "damaged.sqlite").exists()


def test_an_empty_index_file_is_filled(cache: AnswerCache) -> None:
    """An empty index file is used as a new index."""
    answers_folder(cache).mkdir(parents=True)
    (answers_folder(cache) / "index.sqlite").touch()
    assert_works(cache)


def test_a_damaged_index_is_removed_by_clear_everything(cache: AnswerCache) -> None:
    """`clear(everything=True)` also removes `damaged.sqlite`."""
    answers_folder(cache).mkdir(parents=True)
    (answers_folder(cache) / "index.sqlite").write_bytes(b"my diary" * 1000)
    keep(cache, [1], rows_of_seed(1, 1))
    cache.clear(everything=True)
    assert not (answers_folder(cache) / "damaged.sqlite").exists()


def test_an_index_damaged_while_open_is_replaced(cache: AnswerCache) -> None:
    """An index that is damaged while it is open is replaced by a new one."""
    keep(cache, DAYS, pa.concat_tables([rows_of_seed(day, 1) for day in DAYS]))
    cache_index = answers_folder(cache) / "index.sqlite"
    with sqlite3.connect(cache_index) as other:
        other.execute("PRAGMA writable_schema = ON")
        other.execute("UPDATE sqlite_master SET rootpage = 999999 WHERE name = 'units'")
    other.close()
    assert_works(cache)


def test_a_cache_follows_when_another_process_replaces_the_index(
    cache: AnswerCache, make: Callable[..., AnswerCache]
) -> None:
    """An open cache switches to the new index once another process has replaced it."""
    keep(cache, [1], rows_of_seed(1, 1))
    index = answers_folder(cache) / "index.sqlite"
    index.replace(index.with_name("elsewhere.sqlite"))
    for tail in ("-wal", "-shm"):
        index.with_name(f"index.sqlite{tail}").unlink()
    other = make()
    keep(other, [2], rows_of_seed(2, 1))
    assert found_days(cache, [1, 2]) == [2]
    keep(cache, [3], rows_of_seed(3, 1))
    other.close()
    cache.close()
    assert found_days(make(), [1, 2, 3]) == [2, 3]


def test_a_folder_may_be_removed_at_any_time(cache: AnswerCache) -> None:
    """If the folder is removed, the cache finds nothing and works again at once."""
    keep(cache, [1], rows_of_seed(1, 1))
    shutil.rmtree(cache.folder)
    assert found_days(cache, [1]) == []
    assert_works(cache)


# Unusable folders


def test_a_folder_that_cannot_be_made_switches_the_cache_off(tmp_path: Path, make: Callable[..., AnswerCache]) -> None:
    """If its folder cannot be created, the cache does nothing and `info` says why."""
    (tmp_path / "file").touch()
    cache = make(tmp_path / "file" / "cache")
    assert keep(cache, [1], rows_of_seed(1, 1)) == []
    assert (found_days(cache, [1]), cache.restatements()) == ([], [])
    info = cache.info()
    assert str(tmp_path / "file") in (info.off or "")
    assert repr(info) == f"Cache in {cache.folder}: off, {info.off}"


def test_clearing_a_folder_that_does_not_work_is_refused(tmp_path: Path, make: Callable[..., AnswerCache]) -> None:
    """`clear` on a folder that cannot be created is a `BadQuery`."""
    (tmp_path / "file").touch()
    with pytest.raises(BadQuery, match="cannot be cleared"):
        make(tmp_path / "file" / "cache").clear()


def test_clearing_switches_a_repaired_cache_on_again(tmp_path: Path, make: Callable[..., AnswerCache]) -> None:
    """`clear` switches the cache on again once its folder can be created."""
    (tmp_path / "file").touch()
    cache = make(tmp_path / "file" / "cache")
    keep(cache, [1], rows_of_seed(1, 1))
    (tmp_path / "file").unlink()
    cache.clear()
    assert_works(cache)


def test_a_full_disk_switches_the_cache_off(tmp_path: Path, make: Callable[..., AnswerCache]) -> None:
    """A process that cannot write more bytes switches the cache off and loses no old rows."""
    assert output_of(start_writer("full", tmp_path / "cache"))
    assert_works(make())


def test_a_folder_without_permission_switches_the_cache_off(tmp_path: Path) -> None:
    """A folder that the user may not write to switches the cache off with the reason."""
    folder = tmp_path / "cache"
    folder.mkdir()
    folder.chmod(0o500)
    assert "PermissionError" in output_of(start_writer("denied", folder))


def test_a_lock_that_is_never_released_switches_the_cache_off(make: Callable[..., AnswerCache]) -> None:
    """A writer that waits longer than `patience_s` for the lock switches off, readers do not."""
    cache = make(patience_s=0.1)
    keep(cache, [1], rows_of_seed(1, 1))
    with sqlite3.connect(answers_folder(cache) / "index.sqlite", isolation_level=None) as stuck:
        stuck.execute("BEGIN IMMEDIATE")
        assert found_days(cache, [1]) == [1]  # readers do not wait
        keep(cache, [2], rows_of_seed(2, 1))
    stuck.close()
    assert "locked" in (cache.info().off or "")
    later = make()
    assert found_days(later, [1, 2]) == [1]
    assert len(parquet_files(later)) == 1


# Other processes


@pytest.mark.hypothesis  # more kills in `make bench`
def test_a_writer_may_be_killed_at_any_moment(tmp_path: Path, make: Callable[..., AnswerCache]) -> None:
    """After SIGKILL every day that the writer reported as stored is found."""
    folder = tmp_path / "cache"
    for _ in range(tries(in_test=2, in_bench=20)):
        writer = start_writer("write", folder)
        assert writer.stdout is not None
        days = int(writer.stdout.readline()) + 1
        time.sleep(random.uniform(0, 0.3))
        writer.send_signal(signal.SIGKILL)
        days += len(writer.communicate()[0].splitlines())
        cache = make()
        assert found_days(cache, range(days)) == [*range(days)]
        assert find(cache, range(days)) == pa.concat_tables([rows_of_seed(day, 1) for day in range(days)])
        assert cache.info().off is None
        cache.close()


def test_processes_may_store_the_same_days_at_once(tmp_path: Path, make: Callable[..., AnswerCache]) -> None:
    """Three processes that store the same days leave each day whole, as one of them wrote it."""
    folder = tmp_path / "cache"
    writers = [start_writer("race", folder, seed) for seed in (1, 2, 3)]
    for writer in writers:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "ready\n"
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write("go\n")
        writer.stdin.flush()
    for writer in writers:
        output_of(writer)
    cache = make()
    for day in range(10):
        assert find(cache, [day]) in [rows_of_seed(day, seed) for seed in (1, 2, 3)]
    assert len(parquet_files(cache)) == cache.info().files
    assert len(cache.restatements()) <= 3 * 20 * 10


def test_a_forked_child_opens_the_index_itself(tmp_path: Path) -> None:
    """Parent and forked child each use a database connection of their own."""
    output_of(start_writer("fork", tmp_path / "cache"))
