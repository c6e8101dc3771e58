"""Exports of raw events: what the collector accepted, in the service's two formats."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow.parquet as pq
import pytest

from gamelens.errors import Refused
from gamelens.simulator import ExportFormat, Ledger, export_raw, load_scenario, play
from gamelens.simulator.output.raw_export import TABLES

ENDS_ON = date(2026, 11, 20)
DIRTY = load_scenario("dirty", players=60, days=8)
FEW = load_scenario("dirty", players=30, days=4)
IDS = ["1001", "1002", "2001"]


def lines(folder: Path) -> list[dict[str, Any]]:
    """Return all JSON lines below *folder*."""
    files = sorted(folder.rglob("*.json.gz"))
    return [json.loads(line) for path in files for line in gzip.decompress(path.read_bytes()).splitlines()]


def bytes_of(folder: Path) -> dict[str, bytes]:
    """Return the bytes of each file below *folder*."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*.*")}


class Exported(NamedTuple):
    """A folder of JSON lines, the number of events in it, and the rows of the ledger."""

    folder: Path
    events: int
    rows: list[dict[str, Any]]


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Exported:
    """Export the scenario as JSON lines."""
    folder, ledger = tmp_path_factory.mktemp("exported"), Ledger()
    events = export_raw(DIRTY, folder / "out", "raw-json", ends_on=ENDS_ON, ledger=ledger)
    ledger.write(folder / "truth.parquet")
    return Exported(folder / "out", events, pq.read_table(folder / "truth.parquet").to_pylist())


def test_raw_json_has_what_the_collector_accepts(exported: Exported) -> None:
    """Good events are there once, repeated ones as often as they arrived (Wire 5.6, Raw Data)."""
    rows = exported.rows
    expected = Counter(
        (row["user_id"], row["event_uuid"], row["category"]) for row in rows if row["verdict"] in (None, "repeated")
    )
    data = [line["data"] for line in lines(exported.folder)]
    assert Counter((event["user_id"], event.get("event_uuid"), event["category"]) for event in data) == expected
    assert exported.events == len(data)
    assert any(row["verdict"] == "repeated" for row in rows)
    assert any(event.get("event_uuid") is None for event in data)


def test_events_lie_on_the_days_of_their_arrival(exported: Exported) -> None:
    """A late event is in the file of a later day."""
    for path in exported.folder.rglob("*.json.gz"):
        days = {json.loads(line)["arrival_ts"] // 86_400 for line in gzip.decompress(path.read_bytes()).splitlines()}
        assert days == {(date.fromisoformat(path.name.removesuffix(".json.gz")) - date(1970, 1, 1)).days}
    late = [line for line in lines(exported.folder) if line["arrival_ts"] - line["data"].get("client_ts", 0) > 86_400]
    assert late


def test_the_install_is_the_first_event_that_counts(exported: Exported) -> None:
    """`install_ts` is the earliest time of a player's events, dated by arrival where they have none."""
    first: dict[str, int] = {}
    for row in exported.rows:
        if row["verdict"] is None:
            first[row["user_id"]] = min(first.get(row["user_id"], row["client_ts"]), row["client_ts"])
    installs = {line["data"]["user_id"]: line["user_meta"]["install_ts"] for line in lines(exported.folder)}
    assert installs == first


def test_event_data_has_the_counted_events_of_six_categories(tmp_path: Path) -> None:
    """Each table has the events of its category that count (Wire 5.7, Event Data)."""
    ledger = Ledger()
    export_raw(DIRTY, tmp_path / "out", "event-parquet", ends_on=ENDS_ON, ledger=ledger, file_rows=100)
    ledger.write(tmp_path / "truth.parquet")
    counted = Counter(
        row["category"] for row in pq.read_table(tmp_path / "truth.parquet").to_pylist() if row["verdict"] is None
    )
    found = {
        category: sum(pq.read_metadata(path).num_rows for path in (tmp_path / "out" / table).glob("*.parquet"))
        for category, table in TABLES.items()
    }
    assert found == {category: counted[category] for category in TABLES}
    assert len(list((tmp_path / "out" / "progression_event").iterdir())) > 1


@pytest.mark.wide
@pytest.mark.parametrize("kind", ["raw-json", "event-parquet"])
def test_the_same_scenario_gives_the_same_files(tmp_path: Path, kind: ExportFormat) -> None:
    """Any number of workers writes the same bytes."""
    for name, workers in (("one", 1), ("two", 2)):
        export_raw(FEW, tmp_path / name, kind, ends_on=ENDS_ON, workers=workers)
    assert bytes_of(tmp_path / "one") == bytes_of(tmp_path / "two")


@pytest.mark.wide
def test_a_ledger_changes_no_file(tmp_path: Path) -> None:
    """Without defects and a ledger, lines are written from the arrays of a block, else from its events one by one."""
    clean = load_scenario("demo", players=300, days=40)
    export_raw(clean, tmp_path / "arrays", "raw-json", ends_on=ENDS_ON)
    export_raw(clean, tmp_path / "events", "raw-json", ends_on=ENDS_ON, ledger=Ledger())
    written = bytes_of(tmp_path / "arrays")
    assert written == bytes_of(tmp_path / "events")
    metas = [line["user_meta"] for line in lines(tmp_path / "arrays")]
    assert {True, False} <= {meta.get("is_converting") for meta in metas}
    assert any("install_publisher" in meta for meta in metas)


def test_user_meta_has_what_the_service_knew_when_an_event_arrived(exported: Exported) -> None:
    """Money adds up in the order of arrival, the first payment stays, and a cohort is that of the install."""
    paid: dict[str, int] = {}
    first: dict[str, int] = {}
    by_arrival: dict[str, list[dict[str, Any]]] = {}
    for line in lines(exported.folder):  # of a player: files are in the order of days, lines in that of arrival
        by_arrival.setdefault(line["data"]["user_id"], []).append(line)
    for user_id, of_player in by_arrival.items():
        seen: set[str] = set()
        for line in of_player:
            meta, data = line["user_meta"], line["data"]
            is_first_copy = data.get("event_uuid") is None or data["event_uuid"] not in seen
            seen |= {data.get("event_uuid")} - {None}
            if data["category"] == "business" and is_first_copy:
                paid[user_id] = paid.get(user_id, 0) + data["amount_usd"]
                first.setdefault(user_id, meta["pay_ft"])
            assert meta["revenue"]["usd"] == paid.get(user_id, 0)
            assert meta.get("pay_ft") == first.get(user_id)
            if user_id in first:
                assert meta["is_converting"] == (line["arrival_ts"] // 86_400 == first[user_id] // 86_400)
            assert meta["install_hour"] == meta["install_ts"] // 3600 * 3600
    assert paid


def test_a_folder_with_files_is_refused(tmp_path: Path) -> None:
    """Nothing is added to an earlier export."""
    (tmp_path / "a").write_text("")
    with pytest.raises(Refused, match="not empty"):
        export_raw(DIRTY, tmp_path, "raw-json")


def test_exported_events_are_those_that_are_sent(exported: Exported, tmp_path: Path) -> None:
    """An export and the requests of `play` have the same ledger, but for times of arrival."""
    sent = Ledger()
    assert list(play(DIRTY, ends_on=ENDS_ON, game_ids=IDS, ledger=sent))
    sent.write(tmp_path / "sent")
    of_requests = [row for row in pq.read_table(tmp_path / "sent").to_pylist() if row["user_id"]]
    columns = ("game_id", "user_id", "event_uuid", "category", "sent_as", "verdict")
    one, other = (
        Counter(tuple(row[name] for name in columns) for row in rows) for rows in (exported.rows, of_requests)
    )
    assert one == other
