"""The file of counts fails in both directions, and goes with the last count."""

from __future__ import annotations

from pathlib import Path

import pytest

from house.ratchet import Violation, hold, read

BROKEN = [Violation("client", "a.py:1"), Violation("client", "a.py:2"), Violation("wire", "b.py:7")]


@pytest.fixture(autouse=True)
def reading(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counts are compared, also while those of the other tests are written."""
    monkeypatch.delenv("RATCHET", raising=False)


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file of counts that holds those of `BROKEN`."""
    path = tmp_path / "ratchet.toml"
    monkeypatch.setenv("RATCHET", "write")
    hold("rule", BROKEN, file=path)
    monkeypatch.delenv("RATCHET")
    return path


def test_counts_as_written_pass(file: Path) -> None:
    """What was counted may stay."""
    assert read(file) == {"client": {"rule": 2}, "wire": {"rule": 1}}
    hold("rule", BROKEN, file=file)


def test_a_count_that_rises_fails_and_names_the_places(file: Path) -> None:
    """Every place of that room is listed, because the count does not tell which one is new."""
    with pytest.raises(pytest.fail.Exception, match=r"rule, wire: 1 -> 2\n  b.py:7\n  b.py:9"):
        hold("rule", [*BROKEN, Violation("wire", "b.py:9")], file=file)


def test_a_count_that_falls_fails_until_the_file_follows(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else it could rise again unseen."""
    with pytest.raises(pytest.fail.Exception, match=r"rule, client: 2 -> 1\nA count fell"):
        hold("rule", BROKEN[1:], file=file)
    monkeypatch.setenv("RATCHET", "write")
    hold("rule", BROKEN[1:], file=file)
    assert read(file)["client"] == {"rule": 1}


def test_without_a_file_nothing_may_be_broken(tmp_path: Path) -> None:
    """Deleting the file turns every rule on everywhere."""
    hold("rule", [], file=tmp_path / "none.toml")
    with pytest.raises(pytest.fail.Exception, match="rule, wire: 0 -> 1"):
        hold("rule", [BROKEN[2]], file=tmp_path / "none.toml")


def test_the_file_goes_with_the_last_count(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """There is no empty file to keep."""
    monkeypatch.setenv("RATCHET", "write")
    hold("rule", [], file=file)
    assert not file.exists()
