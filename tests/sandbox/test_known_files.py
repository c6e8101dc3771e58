"""A second import opens no file that an import had taken: place, size and mark are known."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from gamelens.sandbox.imports.import_counts import file_marks_of
from gamelens.sandbox.imports.import_run import ImportOptions
from gamelens.sandbox.imports.source_files import ListedFile, SourceFile, list_files
from gamelens.sandbox.storage.inbox import open_store
from gamelens.sandbox.storage.lake import Lake
from gamelens.sandbox.storage.manifest import FileMark
from support.counted_bucket import CountedBucket, counted_bucket, reset_counts
from support.game_events import event
from support.raw_exports import IN_GROUPS, take, wrapped, write_lines

OLD = 1_700_000_000
VERIFY = msgspec.structs.replace(IN_GROUPS, verify=True)


@pytest.fixture
def bucket(tmp_path: Path) -> Iterator[type[CountedBucket]]:
    """Return a bucket with three files of two events each."""
    with counted_bucket() as bucket:
        for name in ("a", "b", "c"):
            bucket.objects[f"raw/{name}/1.gz"] = lines(tmp_path, f"{name}1", f"{name}2")
        yield bucket


def lines(tmp_path: Path, *users: str) -> bytes:
    """Return a file with an event of each of *users*."""
    return write_lines(tmp_path / "lines.gz", *(wrapped(event(user_id=user)) for user in users)).read_bytes()


@pytest.mark.shown_by(1)
@pytest.mark.parametrize("source", ["bucket://raw", "bucket://raw/*/*.gz", "bucket://raw/*"])
def test_a_second_import_opens_nothing(tmp_path: Path, bucket: type[CountedBucket], source: str) -> None:
    """Of a folder and of a pattern, which is listed as often as it has folders."""
    assert take(tmp_path / "state", source).files == 3
    assert bucket.read_bytes > 0
    reset_counts()
    again = take(tmp_path / "state", source)
    assert (again.files, again.taken_before, again.damaged) == (0, 3, {})
    assert (bucket.opens, bucket.read_bytes) == ([], 0)
    assert bucket.listings < 10


def test_only_what_is_new_is_opened(tmp_path: Path, bucket: type[CountedBucket]) -> None:
    """A new file, and one that was replaced by another of the same size."""
    take(tmp_path / "state", "bucket://raw")
    size = len(bucket.objects["raw/a/1.gz"])
    bucket.objects["raw/a/2.gz"] = lines(tmp_path, "d1")
    changed = next(body for n in range(100) if len(body := lines(tmp_path, f"b{n}", f"c{n}")) == size)
    bucket.objects["raw/a/1.gz"] = changed
    reset_counts()
    result = take(tmp_path / "state", "bucket://raw")
    assert (result.files, result.taken_before) == (2, 2)
    assert set(bucket.opens) == {"raw/a/1.gz", "raw/a/2.gz"}


@pytest.mark.wide
def test_verify_reads_everything(tmp_path: Path, bucket: type[CountedBucket]) -> None:
    """It still knows the files by their contents."""
    take(tmp_path / "state", "bucket://raw")
    reset_counts()
    again = take(tmp_path / "state", "bucket://raw", options=VERIFY)
    assert (again.files, again.taken_before) == (0, 3)
    assert set(bucket.opens) == set(bucket.objects)


@pytest.mark.wide
def test_a_file_that_wfile_mark_by_its_content_is_not_opened_a_third_time(
    tmp_path: Path, bucket: type[CountedBucket]
) -> None:
    """Files at another place are read once more, as are those of a lake from before such marks."""
    take(tmp_path / "state", "bucket://raw")
    bucket.objects |= {name.replace("raw", "copies"): content for name, content in bucket.objects.items()}
    moved = take(tmp_path / "state", "bucket://copies")
    assert (moved.files, moved.taken_before) == (0, 3)
    reset_counts()
    assert take(tmp_path / "state", "bucket://copies").taken_before == 3
    assert bucket.opens == []


@pytest.mark.wide
def test_a_file_that_was_not_taken_is_opened_again(tmp_path: Path, bucket: type[CountedBucket]) -> None:
    """Also where another file of the same content was not taken either: a game may be mapped now."""
    strange = write_lines(tmp_path / "strange.gz", wrapped(event(user_id="x"), game_id=555)).read_bytes()
    bucket.objects = {"raw/a.gz": strange, "raw/b.gz": strange}
    assert take(tmp_path / "state", "bucket://raw").files == 0
    del bucket.objects["raw/a.gz"]
    mapped = msgspec.structs.replace(IN_GROUPS, games={"555": "1001"})
    assert take(tmp_path / "state", "bucket://raw", options=mapped).files == 1


@pytest.mark.wide
def test_a_file_is_known_in_its_organisation_alone(tmp_path: Path, bucket: type[CountedBucket]) -> None:
    """Another one takes it too, if it maps the game to one of its own."""
    take(tmp_path / "state", "bucket://raw")
    rival = ImportOptions(organisation="rival", games={"1001": "9001"})
    assert take(tmp_path / "state", "bucket://raw", options=rival).files == 3


@pytest.mark.wide
def test_local_files_are_known_by_their_time(tmp_path: Path) -> None:
    """A file that was written a moment ago may be written again in that moment, so it is read again."""
    path = write_lines(tmp_path / "in" / "a.gz", wrapped(event(user_id="a")))
    assert list_files([str(path)])[0].mark == ""
    os.utime(path, (OLD, OLD))
    assert take(tmp_path / "state", tmp_path / "in").files == 1
    same_size = path.read_bytes()[:-8] + bytes(8)
    path.write_bytes(same_size)
    os.utime(path, (OLD, OLD))
    assert take(tmp_path / "state", tmp_path / "in").taken_before == 1  # it was not opened: it is damaged now
    assert take(tmp_path / "state", tmp_path / "in", options=VERIFY).damaged
    os.utime(path, (OLD + 1, OLD + 1))
    assert take(tmp_path / "state", tmp_path / "in").damaged


def test_no_address_of_a_file_is_stored(tmp_path: Path, bucket: type[CountedBucket]) -> None:
    """A signed address has a secret: only its digest is kept."""
    take(tmp_path / "state", "bucket://raw")
    with contextlib.closing(open_store(tmp_path / "state" / "gamelens.db")) as store:
        assert len(Lake(tmp_path / "state" / "lake", store).file_marks("acme")) == 3
        assert not [row for row in store.execute("SELECT * FROM file_marks") if "bucket" in str(row)]


@pytest.mark.wide
def test_a_year_of_files_every_15_minutes_is_known_in_seconds(tmp_path: Path, bucket: type[CountedBucket]) -> None:
    """An import of 35,000 known files opens none, and takes little time."""
    state = tmp_path / "state"
    take(state, "bucket://raw")
    bucket.objects |= {f"raw/{day:03d}/{part:02d}.gz": b"%d" % part for day in range(365) for part in range(96)}
    with contextlib.closing(open_store(state / "gamelens.db")) as store:
        files = marks_of(list_files(["bucket://raw"]))
        Lake(state / "lake", store).add_file_marks(files)
    for source in ("bucket://raw", "bucket://raw/*/*.gz"):
        reset_counts()
        began = time.process_time()
        assert take(state, source).taken_before == 365 * 96 + 3
        assert time.process_time() - began < 30
        assert bucket.opens == []


def marks_of(files: list[ListedFile]) -> list[FileMark]:
    """Return the entries of *files* in the manifest."""
    found = (SourceFile(url=file.url, bytes=file.bytes, kind="raw-json", listed=file) for file in files)
    return file_marks_of(found, "acme")
