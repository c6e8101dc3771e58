"""Lakes that Spark makes against those that DuckDB makes of the same events: row for row, with numbers of players."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from itertools import groupby, pairwise
from pathlib import Path
from random import Random
from typing import Final

import msgspec
import pytest

from gamelens.errors import Refused
from gamelens.sandbox.engines.engine import LakeLocation
from gamelens.sandbox.engines.spark_engine import SCRATCH, SparkWriter
from gamelens.sandbox.imports.import_run import ImportOptions
from gamelens.sandbox.storage.inbox import open_store
from gamelens.sandbox.storage.keyed_runs import PREFIX
from gamelens.sandbox.storage.lake import Lake
from gamelens.simulator import ExportFormat
from support.game_events import NOW, event
from support.random_batches import add_batch, join_batch, random_batches
from support.raw_exports import export, tables, take, wrapped, write_lines
from support.reference_lake import different_rows, lake_tables
from support.sandbox_stage import Stage
from support.spark_cluster import spark_cluster

KINDS: Final[tuple[ExportFormat, ...]] = ("raw-json", "event-parquet")

pytest.importorskip("pyspark")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("java") is None, reason="Spark needs Java"),
]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Start a standalone cluster of two workers and return its address."""
    with spark_cluster(tmp_path_factory.mktemp("cluster"), workers=2) as address:
        yield address


def sources(folder: Path) -> list[Path]:
    """Return two folders with the halves of an export of both formats, with dirt and damage among them."""
    halves = [folder / "first", folder / "second"]
    for half in halves:
        half.mkdir()
    for kind in KINDS:
        exported = export(folder / kind, kind, file_rows=2000).folder
        files = sorted(path for path in exported.rglob("*") if path.is_file())
        for number, path in enumerate(files):
            shutil.copy(path, halves[number * 2 // len(files)] / f"{number}-{path.name}")
    at = int(NOW.timestamp()) - 86_400
    lines = [wrapped(event(user_id=f"u{number}", client_ts=at + number)) for number in range(9)]
    write_lines(halves[0] / "lines.gz", *lines[:4], b'{"broken', b"17", b"null", b"1", b'{"arrival_ts": "soon"}')
    cut = write_lines(halves[0] / "cut.gz", *lines[4:])
    cut.write_bytes(cut.read_bytes()[:-9])
    (halves[0] / "none.parquet").write_bytes(b"PAR1 and nothing else")
    shutil.copy(halves[0] / "lines.gz", halves[1] / "again.gz")
    return halves


def test_imports_on_a_cluster_equal_those_on_this_machine(tmp_path: Path, cluster: str) -> None:
    """Two imports that follow each other give the same results and the same rows, and write a day once."""
    halves, results = sources(tmp_path), {}
    for name, options in (("here", ImportOptions()), ("cluster", ImportOptions(engine=cluster))):
        taken = [take(tmp_path / name / "state", half, options=options) for half in halves]
        results[name] = [msgspec.structs.replace(result, seconds=0) for result in taken]
    assert results["here"] == results["cluster"]
    first, second = results["cluster"]
    assert (first.taken_before, second.taken_before) == (0, 1)
    assert first.refused["no JSON object"] == 2
    assert len(first.damaged) == 2
    assert different_rows(*(tables(tmp_path / name / "state") for name in results)) == {}
    stage = Stage(tmp_path / "cluster" / "state")
    parts = stage.sandbox.lake.snapshot("acme").parts("events")
    stage.sandbox.close()
    for _, of_run in groupby(parts, key=lambda part: part.path.parent):
        spans = [(part.first_day, part.last_day) for part in of_run]
        assert all(earlier[1] <= later[0] for earlier, later in pairwise(sorted(spans)))  # type: ignore[operator]


def test_batches_on_spark_equal_those_with_keyed_runs(tmp_path: Path, cluster: str) -> None:
    """Random batches, one of them by DuckDB in between, have the rows and player numbers of DuckDB alone."""
    batches = sorted(random_batches(Random(3)), key=len)[-4:]
    batches.sort(key=lambda batch: batch[0]["seq"])
    snapshots = []
    for name in ("runs", "spark"):
        (tmp_path / name / "lake").mkdir(parents=True)
        lake = Lake(tmp_path / name / "lake", open_store(tmp_path / name / "gamelens.db"))
        lake.create_if_new()
        engine = SparkWriter(LakeLocation(lake.root), master=cluster) if name == "spark" else None
        for number, batch in enumerate(batches, 1):
            if engine and number != len(batches) - 1:
                join_batch(lake, batch, engine, number)
            else:
                add_batch(lake, batch, tmp_path / name / f"scratch{number}", number)
        if engine:
            engine.close()
        snapshots.append(lake.snapshot("acme"))
        lake.store.close()
    assert not any(kind.startswith(PREFIX) for kind in snapshots[1].tables)
    assert different_rows(*map(lake_tables, snapshots)) == {}


def test_a_file_with_an_unknown_game_is_left_out_on_the_cluster(tmp_path: Path, cluster: str) -> None:
    """It is named, the others are taken, and the next import takes the file once the game is mapped."""
    at = int(NOW.timestamp()) - 86_400
    write_lines(tmp_path / "in" / "a.gz", *(wrapped(event(user_id=f"u{n}", client_ts=at), game_id=7) for n in range(3)))
    options = ImportOptions(engine=cluster, lake_url=f"file://{tmp_path}/state/lake")
    alone = take(tmp_path / "state", tmp_path / "in", options=options)
    assert (alone.files, alone.events) == (0, 0)
    assert not (tmp_path / "state" / "lake" / SCRATCH).exists()
    write_lines(tmp_path / "in" / "b.gz", wrapped(event(user_id="u9", client_ts=at)))
    beside = take(tmp_path / "state", tmp_path / "in", options=options)
    assert (beside.files, beside.events) == (1, 1)
    assert beside.damaged == alone.damaged
    assert ["--game 7=1001" in reason for reason in alone.damaged.values()] == [True]
    result = take(tmp_path / "state", tmp_path / "in", options=msgspec.structs.replace(options, games={"7": "1001"}))
    assert (result.files, result.events, result.taken_before) == (1, 3, 1)


def test_java_is_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without Java the import is refused with what to install."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    path = write_lines(tmp_path / "a.gz", wrapped(event(client_ts=int(NOW.timestamp()))))
    with pytest.raises(Refused, match="needs Java 17 or newer"):
        take(tmp_path / "state", path, options=ImportOptions(engine="spark"))
