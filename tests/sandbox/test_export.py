"""The lake as Delta tables: the same rows, over the same files."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from conftest import NOW, Stage, event
from gamelens.errors import Refused
from gamelens.sandbox.processing.delta_export import Exported, export_delta

pytestmark = pytest.mark.slow

deltalake = pytest.importorskip("deltalake")


def export(stage: Stage, out: Path | str) -> dict[str, Exported]:
    return export_delta(stage.sandbox.options.state, str(out))


def rows(*tables: pa.Table) -> list[dict[str, object]]:
    return sorted((row for table in tables for row in table.to_pylist()), key=lambda row: row["seq"])


def in_lake(stage: Stage, organisation: str) -> list[dict[str, object]]:
    return rows(*map(pq.read_table, stage.sandbox.lake.snapshot(organisation).days.values()))


def in_table(exported: Exported, version: int | None = None) -> list[dict[str, object]]:
    return rows(deltalake.DeltaTable(exported.table, version=version).to_pyarrow_table())


@pytest.fixture
def played(stage: Stage) -> Stage:
    """Three days of one organisation and a day of another."""
    stage.submit([event(client_ts=int(NOW.timestamp()) - days * 86_400, user_id=f"zoë{days}") for days in range(3)])
    stage.submit([event(build=None)], game_id="9001")
    stage.process()
    return stage


def test_each_organisation_has_a_table_of_its_events(played: Stage, tmp_path: Path) -> None:
    """Issue, Engines: Delta metadata over the same files."""
    exported = export(played, tmp_path / "delta")
    assert {name: (it.files, it.rows) for name, it in exported.items()} == {"acme": (3, 3), "rival": (1, 1)}
    for name, it in exported.items():
        assert in_table(it) == in_lake(played, name)


def test_on_the_same_disk_nothing_is_copied(played: Stage, tmp_path: Path) -> None:
    exported = export(played, tmp_path / "delta")["acme"]
    inodes = {path.stat().st_ino for path in Path(exported.table).glob("*.parquet")}
    assert inodes == {path.stat().st_ino for path in played.sandbox.lake.snapshot("acme").days.values()}


def test_exporting_again_is_another_version_and_the_old_one_stays(played: Stage, tmp_path: Path) -> None:
    first = export(played, tmp_path / "delta")["acme"]
    before = in_table(first)
    played.submit([event(user_id="late")])
    played.process()
    played.sandbox.lake.sweep(grace_s=0)
    second = export(played, tmp_path / "delta")["acme"]
    assert (second.version, second.rows) == (first.version + 1, 4)
    assert in_table(second) == in_lake(played, "acme")
    assert in_table(second, version=first.version) == before


def test_nothing_new_is_no_new_version(played: Stage, tmp_path: Path) -> None:
    assert export(played, tmp_path / "delta") == export(played, tmp_path / "delta")


def test_days_are_found_by_the_files_that_hold_them(played: Stage, tmp_path: Path) -> None:
    """One file a day, and the table says which."""
    table = deltalake.DeltaTable(export(played, tmp_path / "delta")["acme"].table)
    actions = pa.table(table.get_add_actions(flatten=True))
    assert actions["min.day"] == actions["max.day"]
    assert sorted(map(str, actions["min.day"].to_pylist())) == ["2026-11-18", "2026-11-19", "2026-11-20"]


def test_a_url_will_do(played: Stage, tmp_path: Path) -> None:
    exported = export(played, (tmp_path / "a folder").as_uri())["rival"]
    assert exported.table == str(tmp_path / "a folder" / "org-rival" / "events")
    assert in_table(exported) == in_lake(played, "rival")


def test_moments_keep_no_zone(played: Stage, tmp_path: Path) -> None:
    """The lake keeps UTC without a zone."""
    table = deltalake.DeltaTable(export(played, tmp_path / "delta")["acme"].table).to_pyarrow_table()
    assert table.schema.field("ts").type == pa.timestamp("us")


def test_a_folder_without_a_sandbox_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="holds no sandbox"):
        export_delta(tmp_path, str(tmp_path / "delta"))


def test_a_place_that_cannot_be_written_is_refused(played: Stage, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(Refused, match="was not exported"):
        export(played, tmp_path / "file" / "delta")
