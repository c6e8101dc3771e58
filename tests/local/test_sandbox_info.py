"""Ready files that are damaged."""

from __future__ import annotations

from pathlib import Path

import pytest

from gamelens.errors import Refused
from gamelens.local.sandbox_info import read_sandbox_info
from gamelens.local.sandbox_population import read_population_record

READY = b'{"collector_url": "http://a", "metrics_url": "http://b", "console_url": "http://c/t", "organisations": []}'


@pytest.mark.parametrize("damaged", [READY[:-1], READY.replace(b"//a", b"/\xaf"), READY.replace(b"[]", b"1"), b""])
def test_a_damaged_ready_file_is_refused(tmp_path: Path, damaged: bytes) -> None:
    """A ready file that is cut short, is not text or has another type is refused with its path."""
    path = tmp_path / "ready.json"
    path.write_bytes(READY)
    assert read_sandbox_info(path).collector_url == "http://a"
    path.write_bytes(damaged)
    with pytest.raises(Refused, match=r"ready\.json is not a ready file"):
        read_sandbox_info(path)


def test_a_damaged_record_of_players_is_none(tmp_path: Path) -> None:
    """Players whose record is not text are played again."""
    (tmp_path / "played.json").write_bytes(b'{"scenario": "\xff"}')
    assert read_population_record(tmp_path) is None
