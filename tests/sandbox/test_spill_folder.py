"""The memory of a machine, and the folder for what does not fit into it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from gamelens.errors import Refused
from gamelens.sandbox.engines.engine import QueryBounds
from gamelens.sandbox.engines.spill_folder import SpillFolder, machine_memory
from gamelens.sandbox.engines.sql_process import SqlProcess

LARGE = "SELECT count(*) FROM (SELECT DISTINCT a.range, b.range AS other FROM range(2000) a, range(2000) b)"
CGROUPS = {
    "none": ({}, None),
    "version 2": ({"proc/self/cgroup": "0::/app/one\n", "sys/fs/cgroup/app/one/memory.max": "5000"}, 5000),
    "version 2, of a group around it": (
        {
            "proc/self/cgroup": "0::/app/one\n",
            "sys/fs/cgroup/app/one/memory.max": "5000",
            "sys/fs/cgroup/app/memory.max": "3000",
        },
        3000,
    ),
    "version 2, in a container": ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "7000"}, 7000),
    "version 2, unlimited": ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "max\n"}, None),
    "version 1": (
        {
            "proc/self/cgroup": "9:cpu:/other\n4:memory:/app\n0::/\n",
            "sys/fs/cgroup/memory/app/memory.limit_in_bytes": "4000\n",
            "sys/fs/cgroup/memory/other/memory.limit_in_bytes": "1\n",
        },
        4000,
    ),
    "version 1, group of the host": (
        {"proc/self/cgroup": "4:memory:/host/app\n", "sys/fs/cgroup/memory/memory.limit_in_bytes": "6000\n"},
        6000,
    ),
}


@pytest.mark.parametrize("name", CGROUPS)
def test_memory_is_that_of_the_machine_or_of_its_container(tmp_path: Path, name: str) -> None:
    """The least of them, whatever version of control groups Linux has."""
    files, limit = CGROUPS[name]
    for path, text in files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    assert machine_memory(tmp_path) == (limit or psutil.virtual_memory().total)


def test_the_folder_of_a_process_that_is_gone_is_removed(tmp_path: Path) -> None:
    """By the next one. The folder of a process that runs stays, and so does what is not a spill folder."""
    code = (
        "import os, sys; from pathlib import Path; from gamelens.sandbox.engines.spill_folder import SpillFolder\n"
        "folder = SpillFolder(Path(sys.argv[1])); Path(folder.path, 'rows').touch(); print(folder.path, flush=True)\n"
        "os.kill(os.getpid(), 9)"
    )
    killed = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True)
    assert Path(killed.stdout.strip(), "rows").exists(), killed.stderr
    (tmp_path / "mine").mkdir()
    first, second = SpillFolder(tmp_path), SpillFolder(tmp_path)
    paths = [Path(first.path), Path(second.path)]
    assert sorted(tmp_path.iterdir()) == sorted([*paths, tmp_path / "mine"])
    first.close()
    assert sorted(tmp_path.iterdir()) == sorted([paths[1], tmp_path / "mine"])
    second.close()
    assert second.settings("sql") == ["SET temp_directory = ''"]


def test_a_statement_that_fills_the_folder_says_what_to_raise(tmp_path: Path) -> None:
    """The folder, its bound, and both arguments; the next statement is answered."""
    spill = SpillFolder(tmp_path / "it's")
    assert spill.path
    spill.most_bytes = 2_000_000
    process = SqlProcess(spill)
    bounds = QueryBounds(memory="40MB")
    with pytest.raises(Refused, match=r"40MB of memory and the 2MB that it may write to .*it's: .*spill=.*memory="):
        process.run(LARGE, {}, bounds, setup=(), files=())
    assert process.run("SELECT 1 AS n", {}, bounds, setup=(), files=()).to_pylist() == [{"n": 1}]
    process.close()
    spill.close()


@pytest.mark.wide
def test_without_a_folder_the_memory_alone_bounds_a_statement(tmp_path: Path) -> None:
    """The error says why nothing can be spilled."""
    (tmp_path / "file").touch()
    spill = SpillFolder(tmp_path / "file")
    process = SqlProcess(spill)
    with pytest.raises(Refused, match=r"more than 40MB of memory, and .*file cannot be written: .*spill="):
        process.run(LARGE, {}, QueryBounds(memory="40MB"), setup=(), files=())
    process.close()
