"""The export of the lake as Delta tables over the same files."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gamelens.errors import Refused
from gamelens.sandbox.maintenance.delta_export import ExportedTable, export_delta
from support.game_events import NOW, event
from support.sandbox_stage import Stage

pytestmark = pytest.mark.slow

deltalake = pytest.importorskip("deltalake")


def export(stage: Stage, out: Path | str) -> dict[str, ExportedTable]:
    """Export the lake of *stage*."""
    return export_delta(stage.sandbox.options.state, str(out))


def rows(*tables: pa.Table) -> list[dict[str, object]]:
    """Return the rows of all *tables* in the order of arrival."""
    return sorted((row for table in tables for row in table.to_pylist()), key=lambda row: row["seq"])


def rows_of_lake(stage: Stage, organisation: str) -> list[dict[str, object]]:
    """Return the events of an organisation in the lake."""
    return rows(*map(pq.read_table, stage.sandbox.lake.snapshot(organisation).files("events")))


def rows_of_table(exported: ExportedTable, version: int | None = None) -> list[dict[str, object]]:
    """Return the rows of an exported table."""
    return rows(deltalake.DeltaTable(exported.table, version=version).to_pyarrow_table())


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a state directory with three days of one organisation and one of another, to be copied."""
    stage = Stage(tmp_path_factory.mktemp("played") / "state")
    stage.submit([event(client_ts=int(NOW.timestamp()) - days * 86_400, user_id=f"zoë{days}") for days in range(3)])
    stage.submit([event(build=None)], game_id="9001")
    stage.process()
    stage.sandbox.close()
    return stage.sandbox.options.state


@pytest.fixture
def played(template: Path, tmp_path: Path, make_stage: Callable[..., Stage]) -> Stage:
    """Return a sandbox with three days of one organisation and one of another."""
    shutil.copytree(template, tmp_path / "state")
    return make_stage()


def test_each_organisation_has_a_table_of_its_events(played: Stage, tmp_path: Path) -> None:
    """Each organisation has a table with all of its events and no others."""
    exported = export(played, tmp_path / "delta")
    assert {name: (exported_table.files, exported_table.rows) for name, exported_table in exported.items()} == {
        "acme": (1, 3),
        "rival": (1, 1),
    }
    for name, exported_table in exported.items():
        assert rows_of_table(exported_table) == rows_of_lake(played, name)


def test_on_the_same_disk_nothing_is_copied(played: Stage, tmp_path: Path) -> None:
    """On one disk the files of a table are hard links to those of the lake."""
    exported = export(played, tmp_path / "delta")["acme"]
    inodes = {path.stat().st_ino for path in Path(exported.table).glob("*.parquet")}
    assert inodes == {path.stat().st_ino for path in played.sandbox.lake.snapshot("acme").files("events")}


@pytest.mark.wide
def test_exporting_again_is_another_version_and_the_old_one_stays(played: Stage, tmp_path: Path) -> None:
    """A second export is a new version, and the first one can still be read."""
    first = export(played, tmp_path / "delta")["acme"]
    before = rows_of_table(first)
    played.submit([event(user_id="late")])
    played.process()
    played.sandbox.lake.sweep(grace_s=0)
    second = export(played, tmp_path / "delta")["acme"]
    assert (second.version, second.rows) == (first.version + 1, 4)
    assert rows_of_table(second) == rows_of_lake(played, "acme")
    assert rows_of_table(second, version=first.version) == before


def test_nothing_new_is_no_new_version(played: Stage, tmp_path: Path) -> None:
    """An export without new events makes no new version."""
    assert export(played, tmp_path / "delta") == export(played, tmp_path / "delta")


def test_file_statistics_name_the_days(played: Stage, tmp_path: Path) -> None:
    """The statistics of a file name its first and last day, so that readers skip others."""
    table = deltalake.DeltaTable(export(played, tmp_path / "delta")["acme"].table)
    actions = pa.table(table.get_add_actions(flatten=True))
    assert [str(actions[name][0]) for name in ("min.day", "max.day")] == ["2026-11-18", "2026-11-20"]


def test_the_target_may_be_a_url(played: Stage, tmp_path: Path) -> None:
    """The target may be a file URL with escaped spaces."""
    exported = export(played, (tmp_path / "a folder").as_uri())["rival"]
    assert exported.table == str(tmp_path / "a folder" / "org-rival" / "events")
    assert rows_of_table(exported) == rows_of_lake(played, "rival")


def test_timestamps_have_no_zone(played: Stage, tmp_path: Path) -> None:
    """Timestamps are UTC without a zone, as in the lake."""
    table = deltalake.DeltaTable(export(played, tmp_path / "delta")["acme"].table).to_pyarrow_table()
    assert table.schema.field("ts").type == pa.timestamp("us")


def test_a_table_of_an_earlier_layout_gets_the_new_columns(played: Stage, tmp_path: Path) -> None:
    """Columns that the lake did not have at the first export are added, and have their values."""
    path = tmp_path / "delta" / "org-acme" / "events"
    whole = deltalake.DeltaTable(export(played, tmp_path / "whole")["acme"].table).to_pyarrow_table().schema
    earlier = pa.schema([field for field in whole if field.name not in ("event_id", "device")])
    deltalake.DeltaTable.create(str(path), earlier)
    exported = export(played, tmp_path / "delta")["acme"]
    assert rows_of_table(exported) == rows_of_lake(played, "acme")
    assert {row["device"] for row in rows_of_table(exported)} == {event()["device"]}


def test_a_folder_without_a_sandbox_is_refused(tmp_path: Path) -> None:
    """A folder without a sandbox's state is refused."""
    with pytest.raises(Refused, match="holds no sandbox"):
        export_delta(tmp_path, str(tmp_path / "delta"))


def test_a_target_that_cannot_be_written_is_refused(played: Stage, tmp_path: Path) -> None:
    """A target below a file is refused with "was not exported"."""
    (tmp_path / "file").touch()
    with pytest.raises(Refused, match="was not exported"):
        export(played, tmp_path / "file" / "delta")
