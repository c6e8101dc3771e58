"""Analyses of the DataFrames of a user's Spark session give the numbers of a lake."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support.every_analysis import played_world

pytest.importorskip("pyspark")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("java") is None, reason="Spark needs Java"),
]


@pytest.mark.parametrize("kind", ["classic", "connect"])
def test_every_analysis_equals_that_of_the_lake(kind: str, tmp_path: Path) -> None:
    """On random events with repeats and a zone, in a session whose own zone, settings and views stay as they are."""
    if kind == "connect":
        pytest.importorskip("grpc_status")
    played_world(tmp_path / "state", 54, batches=60)
    program = Path(__file__).parents[1] / "support" / "spark_event_tables.py"
    paths = os.pathsep.join([str(program.parents[1]), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, str(program), kind, str(tmp_path / "state"), str(tmp_path)]
    ended = subprocess.run(command, env=os.environ | {"PYTHONPATH": paths}, capture_output=True, text=True)
    assert ended.stdout.strip().endswith("equal"), ended.stderr[-3000:]
