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
from zlib import crc32

import msgspec
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gamelens
from gamelens.client.answer_cache import AnswerCache
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
    return cache.folder / "answers-2"


def file_of(cache: AnswerCache) -> Path:
    """Return the file of *cache*."""
    return answers_folder(cache) / "answers.sqlite"


def damaged(cache: AnswerCache) -> Path:
    """Return the file that *cache* has set aside."""
    return cache.folder / "answers-2-damaged" / "answers.sqlite"


def change(cache: AnswerCache, statement: str) -> None:
    """Run *statement* on the file of *cache*."""
    with sqlite3.connect(file_of(cache)) as other:
        other.execute(statement)
    other.close()


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


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param("rows = substr(rows, 1, length(rows) - 1)", id="rows cut short"),
        pytest.param("rows = zeroblob(length(rows))", id="rows overwritten"),
        pytest.param("rows_checksum = rows_checksum + 1", id="their checksum"),
        pytest.param("as_of = as_of + 1", id="the time of the answer"),
        pytest.param("fetched_at = fetched_at - 1", id="the time of the request"),
    ],
)
def test_a_damaged_bucket_is_a_miss(cache: AnswerCache, damage: str) -> None:
    """Its rows are requested again, those of others are found."""
    keep(cache, [1], rows_of_seed(1, 1))
    keep(cache, [2], rows_of_seed(2, 1))
    change(cache, f"UPDATE bucket SET {damage} WHERE starts = (SELECT min(starts) FROM bucket)")
    result = cache.find(ASKED, day_slices([1, 2]), available=LATER, fresh_s=0)
    assert result.slices == {day_slice(2)}
    assert result.table == rows_of_seed(2, 1)
    assert cache.fresh_slices(ASKED, day_slices([1, 2]), available=LATER, fresh_s=0) == {day_slice(2)}
    assert cache.info().off is None
    keep(cache, [1], rows_of_seed(1, 1))
    assert found_days(cache, [1, 2]) == [1, 2]


def test_a_damaged_bucket_is_no_restatement(cache: AnswerCache) -> None:
    """What cannot be read cannot be compared."""
    keep(cache, [1], rows_of_seed(1, 1))
    change(cache, "UPDATE bucket SET rows = zeroblob(length(rows))")
    assert keep(cache, [1], rows_of_seed(1, 2)) == []


def test_rows_that_this_version_of_pyarrow_cannot_read_are_a_miss(cache: AnswerCache) -> None:
    """Their checksum is right, they are not an Arrow stream."""
    keep(cache, [1], rows_of_seed(1, 1))
    with sqlite3.connect(file_of(cache)) as other:
        ((query_key, *row),) = other.execute(
            "SELECT key, starts, ends, bucket_start, as_of, fetched_at FROM bucket JOIN query ON id = query"
        )
        rows_checksum = crc32(b"of another time")
        checksum = crc32(msgspec.json.encode((query_key, *row, rows_checksum)))
        values = (b"of another time", rows_checksum, checksum)
        other.execute("UPDATE bucket SET rows = ?, rows_checksum = ?, checksum = ?", values)
    other.close()
    assert cache.fresh_slices(ASKED, day_slices([1]), available=LATER, fresh_s=0) == {day_slice(1)}
    assert find(cache, [1]) is None
    assert cache.info().buckets == 0


def test_a_header_that_forbids_writing_is_damage(written: Path, tmp_path: Path) -> None:
    """SQLite takes a file of a later write version as read-only: it is set aside like any other damage."""
    folder = Path(shutil.copytree(written, tmp_path / "cache"))
    cache = AnswerCache(folder, owner="ann")
    body = bytearray(file_of(cache).read_bytes())
    body[18] = 3
    file_of(cache).write_bytes(body)
    assert_works(cache)
    assert damaged(cache).exists()


@settings(max_examples=examples(60), deadline=None)
@given(st.integers(0), st.integers(0), st.integers(0, 7))
def test_any_byte_of_any_file_may_flip(written: Path, which: int, place: int, bit: int) -> None:
    """A wrong byte anywhere on disk is a miss, never a wrong number."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(shutil.copytree(written, Path(temporary) / "cache"))
        paths = sorted(path for path in (folder / "answers-2").iterdir() if path.stat().st_size)
        body = bytearray(paths[which % len(paths)].read_bytes())
        body[place % len(body)] ^= 1 << bit
        paths[which % len(paths)].write_bytes(body)
        cache = AnswerCache(folder, owner="ann")
        assert_works(cache)
        cache.restatements()
        cache.clear()
        cache.close()


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"my diary, and long enough to be looked at" * 100, id="not a database"),
        pytest.param(b"my diary", id="short"),
        pytest.param(b"", id="empty"),
    ],
)
def test_a_file_that_is_not_a_cache_is_set_aside(cache: AnswerCache, content: bytes) -> None:
    """With its folder; a new one is made, and `info` names the copy."""
    answers_folder(cache).mkdir(parents=True)
    file_of(cache).write_bytes(content)
    assert_works(cache)
    assert damaged(cache).read_bytes() == content
    assert repr(cache.info()).endswith(f"; a damaged file was set aside in {damaged(cache).parent}")


def test_a_database_of_another_program_is_set_aside(cache: AnswerCache) -> None:
    """Even one with a table of the same name."""
    answers_folder(cache).mkdir(parents=True)
    change(cache, "CREATE TABLE bucket (diary TEXT)")
    assert_works(cache)
    assert damaged(cache).exists()


def test_the_copy_of_a_damaged_file_is_removed_by_clear_everything(cache: AnswerCache) -> None:
    """And `info` no longer names it."""
    answers_folder(cache).mkdir(parents=True)
    file_of(cache).write_bytes(b"my diary" * 1000)
    keep(cache, [1], rows_of_seed(1, 1))
    cache.clear(everything=True)
    assert not damaged(cache).parent.exists()
    assert cache.info().damaged is None


def test_there_is_one_copy_of_a_damaged_file(cache: AnswerCache) -> None:
    """The last one."""
    for content in (b"my diary", b"my other diary"):
        answers_folder(cache).mkdir(parents=True, exist_ok=True)
        file_of(cache).write_bytes(content)
        keep(cache, [1], rows_of_seed(1, 1))
        assert damaged(cache).read_bytes() == content


def test_a_file_damaged_while_it_is_used_is_replaced(cache: AnswerCache) -> None:
    """A table whose root page is gone is damage, whatever else the file has."""
    keep(cache, DAYS, pa.concat_tables([rows_of_seed(day, 1) for day in DAYS]))
    with sqlite3.connect(file_of(cache)) as other:
        other.execute("PRAGMA writable_schema = ON")
        other.execute("UPDATE sqlite_master SET rootpage = 999999 WHERE name = 'bucket'")
    other.close()
    assert_works(cache)


def test_a_cache_follows_when_another_process_replaces_the_file(
    cache: AnswerCache, make: Callable[..., AnswerCache]
) -> None:
    """What is stored from then on is found by both."""
    keep(cache, [1], rows_of_seed(1, 1))
    answers_folder(cache).rename(cache.folder / "elsewhere")
    other = make()
    keep(other, [2], rows_of_seed(2, 1))
    assert found_days(cache, [1, 2]) == [2]
    keep(cache, [3], rows_of_seed(3, 1))
    assert found_days(other, [1, 2, 3]) == [2, 3]


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


@pytest.mark.wide
def test_a_full_disk_switches_the_cache_off(tmp_path: Path, make: Callable[..., AnswerCache]) -> None:
    """A process that cannot write more bytes switches the cache off and loses no old rows."""
    assert output_of(start_writer("full", tmp_path / "cache"))
    assert_works(make())


def test_a_folder_without_permission_switches_the_cache_off(tmp_path: Path) -> None:
    """A folder that the user may not write to switches the cache off with the reason."""
    folder = tmp_path / "cache"
    folder.mkdir()
    folder.chmod(0o500)
    assert "cannot be used (Permission denied)" in output_of(start_writer("denied", folder))


def test_a_lock_that_is_never_released_switches_the_cache_off(make: Callable[..., AnswerCache]) -> None:
    """A writer that waits longer than `patience_s` for the lock switches off, readers do not."""
    cache = make(patience_s=0.1)
    keep(cache, [1], rows_of_seed(1, 1))
    with sqlite3.connect(file_of(cache), isolation_level=None) as stuck:
        stuck.execute("BEGIN IMMEDIATE")
        assert found_days(cache, [1]) == [1]  # readers do not wait
        keep(cache, [2], rows_of_seed(2, 1))
    stuck.close()
    assert "locked" in (cache.info().off or "")
    later = make()
    assert found_days(later, [1, 2]) == [1]


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


@pytest.mark.wide
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
    assert len(cache.restatements()) <= 3 * 20 * 10


@pytest.mark.wide
def test_a_forked_child_uses_the_cache_too(tmp_path: Path) -> None:
    """Parent and child find what each has stored."""
    output_of(start_writer("fork", tmp_path / "cache"))
