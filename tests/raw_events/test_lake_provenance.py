"""Receipts of a lake say where its events come from: simulated, imported, collected, or several of these."""

from __future__ import annotations

from pathlib import Path

import pytest

import gamelens as gl
from gamelens import raw_events
from gamelens.notebook.tables.table_source import source_html
from gamelens.receipt_text import explain, source_line
from gamelens.receipts import Provenance, Receipt
from support.game_events import event
from support.raw_exports import IN_ONE_GROUP, export, take
from support.sandbox_stage import Stage

OVER = "2026-11-05/2026-11-09"


def collected(state: Path, *, scenario: str | None = None) -> None:
    """Let a sandbox over *state* collect one event, and process it."""
    stage = Stage(state)
    stage.submit([event()])
    stage.process()
    if scenario is not None:
        stage.sandbox.set_scenario(scenario)
    stage.sandbox.close()


def named(state: Path, scenario: str) -> None:
    """Name the scenario of the events in *state*."""
    stage = Stage(state)
    stage.sandbox.set_scenario(scenario)
    stage.sandbox.close()


def origin(state: Path) -> Provenance:
    """Return the provenance in the receipt of a query of the lake, which is that of the client."""
    with gl.open_lake(state, organisation="acme", progress=False) as lake:
        frame = lake.query("event_count", over=str(lake.available()), every="all")
        provenance = Receipt.of(frame.attrs).provenance
        assert (provenance, provenance.kind, provenance.url) == (lake.provenance, "lake", str(state))
    return provenance


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of an export of raw events."""
    return export(tmp_path_factory.mktemp("export") / "raw", "raw-json", file_rows=100_000).folder


def test_an_imported_lake_names_its_files(tmp_path: Path, exported: Path) -> None:
    """There is no badge: the events may be anyone's."""
    take(tmp_path / "state", exported, options=IN_ONE_GROUP)
    paths = list(exported.rglob("*.*"))
    names = sorted({path.name for path in paths})
    found = origin(tmp_path / "state")
    (source,) = found.sources
    assert (source.kind, sorted(source.files), source.file_count) == ("imported", names, len(paths))
    assert (found.badge, found.text) == ("", f"lake, imported from {len(paths)} files")
    assert names[0] in explain(Receipt(provenance=found))


def test_an_imported_export_of_a_scenario_is_demo_data_everywhere(tmp_path: Path, exported: Path) -> None:
    """As in `sample_lake`: metrics, analyses, tables, Excel and Parquet have the badge."""
    state = tmp_path / "state"
    take(state, exported, options=IN_ONE_GROUP)
    named(state, "small")
    with gl.open_lake(state, organisation="acme", progress=False) as lake:
        frames = [lake.query("event_count", over=OVER), raw_events.count_events(lake, OVER, every="day")]
    for frame in frames:
        assert "demo data (lake, simulated, scenario small)" in source_line(frame)
        assert "demo data</b>" in source_html(frame)
        assert frame.lens.plot().layout.meta["badge"] == "demo data"
        frame.to_parquet(tmp_path / "frame.parquet")
        kept = Receipt.of(gl.join(frame, tmp_path / "frame.parquet", on="timestamp").frame.attrs).provenance
        assert (kept.kind, kept.badge) == ("lake", "demo data")
    gl.export_excel({"days": frames[1]}, tmp_path / "days.xlsx")
    from openpyxl import load_workbook

    rows = [" ".join(map(str, row)) for row in load_workbook(tmp_path / "days.xlsx")["Receipts"].values]
    assert any("provenance" in row and "small" in row for row in rows)


def test_collected_events_are_simulated_if_a_scenario_is_named(tmp_path: Path) -> None:
    """A game's own events have no badge, those that `populate` sends have it."""
    collected(tmp_path / "own")
    collected(tmp_path / "demo", scenario="demo")
    own, demo = origin(tmp_path / "own"), origin(tmp_path / "demo")
    assert (own.text, own.badge) == ("lake, collected", "")
    assert (demo.text, demo.badge) == ("lake, simulated, scenario demo", "demo data")


@pytest.mark.wide
def test_a_lake_of_several_origins_is_partly_demo_data(tmp_path: Path, exported: Path) -> None:
    """Simulated players and an import beside them."""
    collected(tmp_path / "state", scenario="demo")
    take(tmp_path / "state", exported, options=IN_ONE_GROUP)
    found = origin(tmp_path / "state")
    assert [source.kind for source in found.sources] == ["simulated", "imported"]
    assert found.badge == "partly demo data"
    assert found.text.startswith("lake, simulated, scenario demo and imported from ")


def test_a_lake_that_is_open_sees_what_comes_later(tmp_path: Path) -> None:
    """A scenario that is named after the lake was opened is in the next receipt."""
    collected(tmp_path / "state")
    with gl.open_lake(tmp_path / "state", organisation="acme", progress=False) as lake:
        over = str(lake.available())
        before = Receipt.of(lake.query("event_count", over=over, every="all").attrs).provenance
        named(tmp_path / "state", "demo")
        after = Receipt.of(lake.query("event_count", over=over, every="all").attrs).provenance
    assert (before.badge, after.badge) == ("", "demo data")


def test_a_lake_answers_own_metrics(tmp_path: Path) -> None:
    """They are computed from its events, as those of a service."""
    collected(tmp_path / "state")
    own = {"events_per_player": "event_count / user_unique"}
    with gl.open_lake(tmp_path / "state", organisation="acme", progress=False, metrics=own) as lake:
        frame = lake.query("events_per_player", over=str(lake.available()), every="all")
    assert frame["events_per_player"].to_list() == (frame["event_count"] / frame["user_unique"]).to_list() == [1.0]
