"""Decoding of an answer of 360,000 rows, beside other libraries that read such JSON.

Run by `make bench`. The floor is `msgspec.json.decode` of the same bytes into typed structs, which are not frames yet.
Structs that the garbage collector does not track decode faster still, and are printed beside it.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

SCRIPT = Path(__file__).with_name("compare_decoders.py")


def run(*arguments: object) -> Any:
    """Run `compare_decoders.py` and return the JSON it prints."""
    return json.loads(subprocess.check_output([sys.executable, SCRIPT, *map(str, arguments)]))


@pytest.fixture(scope="module")
def answer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the answer."""
    folder: Path = tmp_path_factory.mktemp("answer")
    written = run("make", folder)
    print(f"\ndecoding: {written['rows']:,} rows, {written['bytes'] / 1e6:.0f} MB of JSON")
    assert written["rows"] == 360_000
    return folder


def test_a_large_answer_decodes_fast(answer: Path) -> None:
    """At least 4 times faster than json_normalize and 2 times faster than pydruid.

    The decode into bare structs is at most 2.5 times faster.
    """
    took = run("time", answer)
    ratio = {name: seconds / took["gamelens"] for name, seconds in took.items()}
    print(
        f"answer to frame: {took['gamelens']:.2f} s; json.loads and json_normalize {took['json_normalize']:.2f} s,"
        f" {ratio['json_normalize']:.1f} x that; pydruid {took['pydruid']:.2f} s, {ratio['pydruid']:.1f} x that;"
        f" structs {took['structs']:.2f} s, gamelens {1 / ratio['structs']:.2f} x that, and with gc=False"
        f" {took['untracked structs']:.2f} s, gamelens {1 / ratio['untracked structs']:.2f} x that"
    )
    assert ratio["json_normalize"] >= 4
    assert ratio["pydruid"] >= 2
    assert 1 / ratio["structs"] <= 2.5


def test_a_large_answer_takes_little_memory(answer: Path) -> None:
    """Beyond the body it needs at most half of the memory of json_normalize."""
    peak = {name: run("peak", answer, name) for name in ("gamelens", "json_normalize", "pydruid", "structs")}
    print("memory beyond the body: " + ", ".join(f"{name} {mib:.0f} MiB" for name, mib in peak.items()))
    assert peak["gamelens"] <= peak["json_normalize"] / 2
