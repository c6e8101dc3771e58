"""An answer of 360,000 rows made into a frame, beside what else reads such JSON. Run by `make bench`.

Floor: a bare `msgspec.json.decode` of the same bytes into typed structs, which are not a frame yet. Structs that the
garbage collector leaves alone are made faster still, and printed beside it.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

SCRIPT = Path(__file__).with_name("decoding.py")


def run(*arguments: object) -> Any:
    return json.loads(subprocess.check_output([sys.executable, SCRIPT, *map(str, arguments)]))


@pytest.fixture(scope="module")
def answer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder: Path = tmp_path_factory.mktemp("answer")
    made = run("make", folder)
    print(f"\ndecoding: {made['rows']:,} rows, {made['bytes'] / 1e6:.0f} MB of JSON")
    assert made["rows"] == 360_000
    return folder


def test_a_large_answer_is_a_frame_in_no_time(answer: Path) -> None:
    took = run("time", answer)
    of = {name: seconds / took["ours"] for name, seconds in took.items()}
    print(
        f"answer to frame: {took['ours']:.2f} s; json.loads and json_normalize {took['normalized']:.2f} s,"
        f" {of['normalized']:.1f} x ours; pydruid {took['pydruid']:.2f} s, {of['pydruid']:.1f} x ours;"
        f" bare msgspec {took['typed']:.2f} s, ours {1 / of['typed']:.2f} x that, and with gc=False"
        f" {took['bare']:.2f} s, ours {1 / of['bare']:.2f} x that"
    )
    assert of["normalized"] >= 4
    assert of["pydruid"] >= 2
    assert 1 / of["typed"] <= 2.5


def test_a_large_answer_takes_little_memory(answer: Path) -> None:
    peak = {name: run("peak", answer, name) for name in ("ours", "normalized", "pydruid", "typed")}
    print("memory beyond the body: " + ", ".join(f"{name} {mib:.0f} MiB" for name, mib in peak.items()))
    assert peak["ours"] <= peak["normalized"] / 2
