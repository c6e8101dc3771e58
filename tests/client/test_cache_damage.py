"""The cache when the disk, another kernel or the end of its process comes in between (analyst-api, promise 9)."""

from __future__ import annotations

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

from gamelens.client.cache.answer_cache import AnswerCache
from gamelens.errors import BadQuery
from support import cache_writer
from support.cache_writer import ASKED, LATER, find, keep, of_seed, there, unit, units

pytestmark = pytest.mark.slow

DAYS = range(20)


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Callable[..., AnswerCache]]:
    made: list[AnswerCache] = []

    def make(folder: Path = tmp_path / "cache", **options: Any) -> AnswerCache:
        made.append(AnswerCache(folder, owner="ann", **options))
        return made[-1]

    yield make
    for cache in made:
        cache.close()


@pytest.fixture
def cache(make: Callable[..., AnswerCache]) -> AnswerCache:
    return make()


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with everything in it that a cache ever writes, as a killed process leaves it."""
    here, copy = tmp_path_factory.mktemp("written"), tmp_path_factory.mktemp("copy") / "cache"
    cache = AnswerCache(here, owner="ann")
    for day in DAYS:
        keep(cache, [day], of_seed(day, 0))
        keep(cache, [day], of_seed(day, 1))
    shutil.copytree(here, copy)
    cache.close()
    return copy


def answers(cache: AnswerCache) -> Path:
    return cache.folder / "answers"


def parts(cache: AnswerCache) -> list[Path]:
    return sorted(answers(cache).glob("*.parquet*"))


def child(verb: str, folder: Path, seed: int = 1) -> subprocess.Popen[str]:
    command = [sys.executable, cache_writer.__file__, verb, str(folder), str(seed)]
    environment = {"PYTHONPATH": str(Path(cache_writer.__file__).parents[1]), "PATH": ""}
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)


def said(process: subprocess.Popen[str], word: str = "") -> str:
    out, _ = process.communicate(word, timeout=60)
    assert process.returncode == 0
    return out.strip()


def assert_right(cache: AnswerCache, days: range = DAYS) -> None:
    """What is found is what was kept last, and what is kept now is found."""
    found = cache.find(ASKED, units(days), available=LATER, fresh_s=0)
    expected = [of_seed(day, 1) for day in days if unit(day) in found.units]
    assert found.table == (pa.concat_tables(expected) if expected else None)
    keep(cache, days, pa.concat_tables([of_seed(day, 1) for day in days]))
    assert there(cache, days) == [*days]
    assert cache.info().off is None


# Damage


def test_a_damaged_file_is_a_miss_and_is_removed(cache: AnswerCache) -> None:
    keep(cache, [1], of_seed(1, 1))
    keep(cache, [2], of_seed(2, 1))
    for path in parts(cache):
        body = bytearray(path.read_bytes())
        body[len(body) // 2] ^= 1
        path.write_bytes(body)
        break
    assert len(cache.find(ASKED, units([1, 2]), available=LATER, fresh_s=0).units) == 1
    assert len(parts(cache)) == 1
    assert (cache.info().buckets, cache.info().files, cache.info().off) == (1, 1, None)


def test_a_file_cut_short_is_a_miss(cache: AnswerCache) -> None:
    keep(cache, [1], of_seed(1, 1))
    (path,) = parts(cache)
    path.write_bytes(path.read_bytes()[:-1])
    assert find(cache, [1]) is None


def test_a_file_that_vanished_is_a_miss(cache: AnswerCache) -> None:
    keep(cache, [1], of_seed(1, 1))
    parts(cache)[0].unlink()
    assert find(cache, [1]) is None
    assert cache.info().files == 0


def test_a_file_that_vanished_is_forgotten_when_a_cache_is_opened(
    cache: AnswerCache, make: Callable[..., AnswerCache]
) -> None:
    keep(cache, [1], of_seed(1, 1))
    parts(cache)[0].unlink()
    later = make()
    assert later.look(ASKED, units([1]), available=LATER, fresh_s=0) == frozenset()


@settings(max_examples=60, deadline=None)
@given(st.integers(0), st.integers(0), st.integers(0, 7))
def test_any_byte_of_any_file_may_flip(written: Path, which: int, place: int, bit: int) -> None:
    """A wrong byte is a miss, never a wrong number."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(shutil.copytree(written, Path(temporary) / "cache"))
        paths = sorted(path for path in (folder / "answers").iterdir() if path.stat().st_size)
        body = bytearray(paths[which % len(paths)].read_bytes())
        body[place % len(body)] ^= 1 << bit
        paths[which % len(paths)].write_bytes(body)
        cache = AnswerCache(folder, owner="ann")
        assert_right(cache)
        cache.restatements()
        cache.clear()
        cache.close()


def test_an_index_that_is_none_is_set_aside(cache: AnswerCache) -> None:
    answers(cache).mkdir(parents=True)
    (answers(cache) / "index.sqlite").write_bytes(b"my diary, and long enough to be looked at" * 100)
    assert_right(cache)
    assert (answers(cache) / "damaged.sqlite").read_bytes().startswith(b"my diary")


def test_an_index_of_another_program_is_set_aside(cache: AnswerCache) -> None:
    answers(cache).mkdir(parents=True)
    with sqlite3.connect(answers(cache) / "index.sqlite") as other:
        other.execute("CREATE TABLE units (diary TEXT)")
    other.close()
    assert_right(cache)
    assert (answers(cache) / "damaged.sqlite").exists()


def test_an_empty_index_is_begun(cache: AnswerCache) -> None:
    answers(cache).mkdir(parents=True)
    (answers(cache) / "index.sqlite").touch()
    assert_right(cache)


def test_what_was_set_aside_is_removed_with_everything(cache: AnswerCache) -> None:
    answers(cache).mkdir(parents=True)
    (answers(cache) / "index.sqlite").write_bytes(b"my diary" * 1000)
    keep(cache, [1], of_seed(1, 1))
    cache.clear(everything=True)
    assert not (answers(cache) / "damaged.sqlite").exists()


def test_an_index_that_breaks_while_it_is_open_is_begun_anew(cache: AnswerCache) -> None:
    keep(cache, DAYS, pa.concat_tables([of_seed(day, 1) for day in DAYS]))
    cache_index = answers(cache) / "index.sqlite"
    with sqlite3.connect(cache_index) as other:
        other.execute("PRAGMA writable_schema = ON")
        other.execute("UPDATE sqlite_master SET rootpage = 999999 WHERE name = 'units'")
    other.close()
    assert_right(cache)


def test_a_kernel_follows_when_another_sets_the_index_aside(
    cache: AnswerCache, make: Callable[..., AnswerCache]
) -> None:
    keep(cache, [1], of_seed(1, 1))
    index = answers(cache) / "index.sqlite"
    index.replace(index.with_name("elsewhere.sqlite"))
    for tail in ("-wal", "-shm"):
        index.with_name(f"index.sqlite{tail}").unlink()
    other = make()
    keep(other, [2], of_seed(2, 1))
    assert there(cache, [1, 2]) == [2]
    keep(cache, [3], of_seed(3, 1))
    other.close()
    cache.close()
    assert there(make(), [1, 2, 3]) == [2, 3]


def test_a_folder_may_be_removed_at_any_time(cache: AnswerCache) -> None:
    keep(cache, [1], of_seed(1, 1))
    shutil.rmtree(cache.folder)
    assert there(cache, [1]) == []
    assert_right(cache)


# A folder that does not work


def test_a_folder_that_cannot_be_made_switches_the_cache_off(tmp_path: Path, make: Callable[..., AnswerCache]) -> None:
    (tmp_path / "file").touch()
    cache = make(tmp_path / "file" / "cache")
    assert keep(cache, [1], of_seed(1, 1)) == []
    assert (there(cache, [1]), cache.restatements()) == ([], [])
    info = cache.info()
    assert str(tmp_path / "file") in (info.off or "")
    assert repr(info) == f"Cache in {cache.folder}: off, {info.off}"


def test_clearing_a_folder_that_does_not_work_is_refused(tmp_path: Path, make: Callable[..., AnswerCache]) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(BadQuery, match="cannot be cleared"):
        make(tmp_path / "file" / "cache").clear()


def test_clearing_switches_on_what_works_again(tmp_path: Path, make: Callable[..., AnswerCache]) -> None:
    (tmp_path / "file").touch()
    cache = make(tmp_path / "file" / "cache")
    keep(cache, [1], of_seed(1, 1))
    (tmp_path / "file").unlink()
    cache.clear()
    assert_right(cache)


def test_a_full_disk_switches_the_cache_off(tmp_path: Path, make: Callable[..., AnswerCache]) -> None:
    assert said(child("full", tmp_path / "cache"))
    assert_right(make())


def test_a_folder_of_somebody_else_switches_the_cache_off(tmp_path: Path) -> None:
    theirs = tmp_path / "cache"
    theirs.mkdir()
    theirs.chmod(0o500)
    assert "PermissionError" in said(child("nobody", theirs))


def test_a_lock_that_is_never_released_switches_the_cache_off(make: Callable[..., AnswerCache]) -> None:
    cache = make(patience_s=0.1)
    keep(cache, [1], of_seed(1, 1))
    with sqlite3.connect(answers(cache) / "index.sqlite", isolation_level=None) as stuck:
        stuck.execute("BEGIN IMMEDIATE")
        assert there(cache, [1]) == [1]  # who only reads does not wait
        keep(cache, [2], of_seed(2, 1))
    stuck.close()
    assert "locked" in (cache.info().off or "")
    later = make()
    assert there(later, [1, 2]) == [1]
    assert len(parts(later)) == 1


# Other processes


def test_a_writer_may_be_killed_at_any_moment(tmp_path: Path, make: Callable[..., AnswerCache]) -> None:
    folder = tmp_path / "cache"
    for _ in range(4):
        writer = child("write", folder)
        assert writer.stdout is not None
        days = int(writer.stdout.readline()) + 1
        time.sleep(random.uniform(0, 0.3))
        writer.send_signal(signal.SIGKILL)
        days += len(writer.communicate()[0].splitlines())
        cache = make()
        assert there(cache, range(days)) == [*range(days)]
        assert find(cache, range(days)) == pa.concat_tables([of_seed(day, 1) for day in range(days)])
        assert cache.info().off is None
        cache.close()


def test_two_processes_may_keep_the_same_at_once(tmp_path: Path, make: Callable[..., AnswerCache]) -> None:
    folder = tmp_path / "cache"
    writers = [child("race", folder, seed) for seed in (1, 2, 3)]
    for writer in writers:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "ready\n"
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write("go\n")
        writer.stdin.flush()
    for writer in writers:
        said(writer)
    cache = make()
    for day in range(10):
        assert find(cache, [day]) in [of_seed(day, seed) for seed in (1, 2, 3)]
    assert len(parts(cache)) == cache.info().files
    assert len(cache.restatements()) <= 3 * 20 * 10


def test_a_forked_child_opens_its_own(tmp_path: Path) -> None:
    said(child("fork", tmp_path / "cache"))
