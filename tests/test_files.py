"""Files are replaced as a whole, with the permissions they are to have from the first byte."""

from __future__ import annotations

import errno
import os
import sqlite3
import stat
from pathlib import Path

import pytest

import gamelens
from gamelens._files import DRAFT_NAME, create_private, disk_trouble, replace_file, write_private

SRC = Path(gamelens.__file__).parent
WRITERS = {
    "sandbox/server.py",  # the ready file
    "client/answer_cache.py",
    "client/connection/recording.py",
    "analysis/files/csv_export.py",
    "notebook/reports/report.py",
    "cli/query_commands.py",
}
"""The modules that write what a service answered, or its keys."""


def _mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_the_draft_takes_the_place_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("old")
    with replace_file(path) as draft:
        draft.write_text("new")
        assert (draft.parent, path.read_text()) == (tmp_path, "old")
        assert DRAFT_NAME.fullmatch(draft.name)["target"] == "x.csv"  # type: ignore[index]
    assert (path.read_text(), os.listdir(tmp_path)) == ("new", ["x.csv"])


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_a_failure_leaves_the_old_file_and_no_draft(tmp_path: Path, error: type[BaseException]) -> None:
    path = tmp_path / "x.csv"
    path.write_text("old")

    def fail(draft: Path) -> None:
        draft.write_text("half of the n")
        raise error

    with pytest.raises(error), replace_file(path) as draft:
        fail(draft)
    assert (path.read_text(), os.listdir(tmp_path)) == ("old", ["x.csv"])


def test_a_draft_is_private_and_so_is_a_new_file(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    with replace_file(path) as draft:
        assert (_mode(draft), draft.stat().st_size) == (0o600, 0)
        draft.write_text("x")
    assert _mode(path) == 0o600


def test_a_file_that_is_replaced_stays_open_to_those_it_was_opened_to(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.touch()
    path.chmod(0o644)
    with replace_file(path) as draft:
        assert _mode(draft) == 0o600
    assert _mode(path) == 0o644


def test_a_private_file_is_private_whatever_was_there_before(tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    path.touch()
    path.chmod(0o644)
    write_private(path, b"{}")
    assert _mode(path) == 0o600


def test_a_private_file_is_not_created_where_something_is(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(FileExistsError):
        create_private(tmp_path / "link")
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize("module", sorted(WRITERS))
def test_every_writer_of_answers_uses_the_one_helper(module: str) -> None:
    source = (SRC / module).read_text(encoding="utf-8")
    assert "replace_file(" in source or "write_private(" in source


def test_a_private_file_replaces_a_link_and_does_not_follow_it(tmp_path: Path) -> None:
    path, elsewhere = tmp_path / "keys.json", tmp_path / "elsewhere"
    path.symlink_to(elsewhere)
    write_private(path, b"secret")
    assert (path.read_bytes(), path.is_symlink(), elsewhere.exists()) == (b"secret", False, False)


def test_a_link_at_the_name_of_the_draft_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("secrets.token_hex", lambda _: "00000000")
    elsewhere = tmp_path / "elsewhere"
    (tmp_path / ".keys.json.00000000.part").symlink_to(elsewhere)
    with pytest.raises(FileExistsError):
        write_private(tmp_path / "keys.json", b"secret")
    assert (elsewhere.exists(), (tmp_path / "keys.json").exists()) == (False, False)


@pytest.mark.skipif(os.name == "nt", reason="no named pipes in the file system")
def test_a_pipe_is_written_to_but_gets_nothing_private(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    with replace_file(path) as draft:
        assert draft == path
    with pytest.raises(FileExistsError, match="is not a regular file"):
        write_private(path, b"secret")
    assert path.is_fifo()


def test_a_folder_is_not_replaced(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError), replace_file(tmp_path) as draft:
        draft.write_text("x")


def test_an_error_names_the_file_and_not_its_draft(tmp_path: Path) -> None:
    """As does one that comes without a name; another file's keeps its own."""
    for given, named in ((None, "x.csv"), (str(tmp_path / "other"), "other")):
        error = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), given)
        with pytest.raises(OSError, match="No space left"), replace_file(tmp_path / "x.csv"):
            raise error
        assert error.filename == str(tmp_path / named)
    with pytest.raises(OSError, match="No such file") as raised, replace_file(tmp_path / "none" / "x.csv"):
        pass
    assert raised.value.filename == str(tmp_path / "none" / "x.csv")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (OSError(errno.ENOSPC, "x"), "place cannot be written: No space left on device. Free"),
        (OSError(errno.EDQUOT, "x", "/a"), "/a cannot be written: Disk quota exceeded. Free"),
        (OSError(errno.ENOSPC, "x", "/a", None, "/b"), "/b cannot be written: No space left on device. Free"),
        (
            sqlite3.OperationalError("database or disk is full"),
            "place cannot be written: No space left on device. Free",
        ),
        (ValueError('Could not write file "/a": No space left on device'), "/a cannot be written: No space left on"),
        (ValueError(r'{"m": "file \"/a\": No space left on device"}'), "/a cannot be written: No space left on"),
        (OSError(errno.EACCES, "Permission denied", "/a"), "[Errno 13] Permission denied: '/a'"),
        (sqlite3.OperationalError("disk I/O error"), "disk I/O error"),
    ],
)
def test_a_full_disk_is_known_in_the_words_of_every_library(error: Exception, words: str) -> None:
    """It says which file and what to do; other errors stay as they are."""
    assert disk_trouble(error, "place").startswith(words)
