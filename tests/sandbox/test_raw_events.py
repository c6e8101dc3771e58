"""Import of raw events: the loop of simulation, export and import closes, in both formats and however it is killed."""

from __future__ import annotations

import gzip
import json
import os
import random
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from importlib.util import find_spec
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import fsspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from gamelens.catalog import METRICS
from gamelens.errors import BadQuery, GamelensError, Refused
from gamelens.sandbox.engines.duckdb_engine import DuckDBWriter
from gamelens.sandbox.imports.import_counts import ImportProgress
from gamelens.sandbox.imports.import_run import ImportOptions, ImportResult, import_raw_events
from gamelens.sandbox.processing.rebuild import rebuild
from gamelens.sandbox.storage.inbox import open_store
from gamelens.sandbox.storage.keyed_runs import PREFIX
from gamelens.sandbox.storage.lake import Lake
from gamelens.sandbox.storage.lake_schema import COLUMNS
from gamelens.simulator import ExportFormat, Ledger
from gamelens.simulator.output.raw_export import TABLES
from gamelens.wire.currencies import USD_PER_UNIT
from support.game_events import NOW, event
from support.killed_runs import IMPORT, kill
from support.ledger_comparison import PER_GAME, PLAIN, assert_equals_ledger
from support.raw_exports import OVER, Exported, export, table_of, tables, take, wrapped, write_lines
from support.reference_lake import differences, lake_tables
from support.sandbox_stage import CONFIG, Stage, metric_value
from support.watched_service import quick

pytestmark = pytest.mark.slow
S = int(NOW.timestamp())
KILLS = min(int(os.environ.get("KILLS", "3")), 20)
"""How often an import is killed: `make bench` sets it to more."""
FIRST_WRITES = 50
"""Number of writes of which an import makes more for the first of its groups than a kill waits for."""


def unnumbered(of_lake: dict[str, pa.Table]) -> dict[str, pa.Table]:
    """Return tables of a lake without the numbers of arrival, which depend on how events came."""
    changed = {}
    for name, rows in of_lake.items():
        if "seq" in rows.column_names:
            zeros = pa.array([0] * len(rows), pa.int64())
            rows = rows.set_column(rows.column_names.index("seq"), "seq", zeros)
        if "ilrd_id" in rows.column_names:
            ids = pc.replace_substring_regex(rows["ilrd_id"], "^s.*", "s")
            rows = rows.set_column(rows.column_names.index("ilrd_id"), "ilrd_id", ids)
        changed[name] = rows
    return changed


def lines_of(folder: Path) -> list[dict[str, Any]]:
    """Return all JSON lines below *folder* in the order of arrival."""
    files = sorted(folder.rglob("*.json.gz"), key=lambda path: path.name)
    found = [json.loads(line) for path in files for line in gzip.decompress(path.read_bytes()).splitlines()]
    return sorted(found, key=lambda line: line["arrival_ts"])


@pytest.fixture(scope="module")
def raw_json(tmp_path_factory: pytest.TempPathFactory) -> Exported:
    """Return an export as JSON lines."""
    return export(tmp_path_factory.mktemp("raw") / "json", "raw-json")


@pytest.fixture(scope="module")
def event_parquet(tmp_path_factory: pytest.TempPathFactory) -> Exported:
    """Return an export as Parquet."""
    return export(tmp_path_factory.mktemp("raw") / "parquet", "event-parquet")


class Taken(NamedTuple):
    """An import that has ended: the state directory, to be copied, its result and what it reported."""

    state: Path
    result: ImportResult
    reports: list[ImportProgress]


@pytest.fixture(scope="module")
def taken(tmp_path_factory: pytest.TempPathFactory, raw_json: Exported) -> Taken:
    """Return an import of the JSON lines."""
    state, reports = tmp_path_factory.mktemp("taken") / "state", list[ImportProgress]()
    result = take(state, raw_json.folder, report=reports.append)
    return Taken(state, result, reports)


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory, taken: Taken) -> Iterator[Stage]:
    """Return a sandbox whose lake has the JSON lines."""
    stage = Stage(shutil.copytree(taken.state, tmp_path_factory.mktemp("imported") / "state"))
    yield stage
    stage.sandbox.close()


@pytest.fixture(scope="module")
def received(tmp_path_factory: pytest.TempPathFactory, raw_json: Exported) -> Iterator[Stage]:
    """Return a sandbox whose collector received the same events at the times of their arrival."""
    stage = Stage(tmp_path_factory.mktemp("received") / "state")
    for (arrival_ts, game_id), lines in groupby(
        lines_of(raw_json.folder), key=lambda line: (line["arrival_ts"], line["game_id"])
    ):
        stage.clock.freeze(datetime.fromtimestamp(arrival_ts, UTC))
        events = [{name: value for name, value in line["data"].items() if name != "amount_usd"} for line in lines]
        assert stage.submit(events, game_id=str(game_id)).status_code == 200
    stage.clock.freeze(NOW)
    stage.process()
    yield stage
    stage.sandbox.close()


def test_an_imported_lake_equals_a_received_one(imported: Stage, received: Stage) -> None:
    """Every table of the lake has the same rows, whichever way the events came."""
    lakes = [unnumbered(lake_tables(stage.sandbox.lake.snapshot("acme"))) for stage in (imported, received)]
    assert lakes[0]["events"].num_rows > 1_000
    assert lakes[0].pop("stated_installs").num_rows > lakes[1].pop("stated_installs").num_rows == 0
    empty = {"stated_installs": pa.table({name: [] for name in COLUMNS["stated_installs"]})}
    assert differences(lakes[0] | empty, lakes[1] | empty) == {}


@pytest.mark.shown_by(8)
@pytest.mark.filterwarnings("ignore:retention_retro has no row where nobody came back")
@pytest.mark.parametrize("metric", [*PLAIN, *PER_GAME, "retention_retro"])
@pytest.mark.parametrize("by", [["game_id"], ["platform", "game_id"], ["country_code", "game_id"]], ids="-".join)
def test_every_metric_equals_the_ledger(imported: Stage, raw_json: Exported, metric: str, by: list[str]) -> None:
    """All metrics of imported JSON lines are those of the ledger (Wire 5.6, Raw Data)."""
    more: dict[str, Any] = {"since_days_ago": 1} if metric == "retention_retro" else {}
    frame = quick(imported.metrics_app, key="key-of-acme").query(metric, by=by, over=str(OVER), **more)
    assert_equals_ledger(frame, raw_json.ledger.metric(metric, interval=OVER, by=by, **more), metric, by)


def test_all_metrics_are_compared() -> None:
    """The metrics of this module are all metrics of the catalog."""
    assert {*PLAIN, *PER_GAME, "retention_retro"} == METRICS.keys()


KNOWN_OF_PARQUET = (
    *("event_count", "user_unique", "new_users", "returning_users", "installs_ratio", "session_unique"),
    *("ad_impressions_count", "ad_impressions_per_session", "ilrd_id_unique", "ilrd_revenue", "retention_retro"),
)
"""Metrics that Event Data can answer."""


def ledger_of_tables(exported: Exported, folder: Path) -> Ledger:
    """Return the ledger of what Event Data has: six categories, and no country, platform, build or vendor's id."""
    exported.ledger.write(folder / "truth.parquet")
    rows = pq.read_table(folder / "truth.parquet")
    rows = rows.filter(pc.is_in(rows["category"].cast(pa.string()), pa.array(list(TABLES))))
    lacking = ("country_code", "platform", "build", "install_publisher", "ab_id", "ab_variant_id", "ilrd_id")
    for name in (*lacking, "event_uuid", "ilrd_sdk_vendor"):
        place = rows.schema.get_field_index(name)
        rows = rows.set_column(place, rows.schema.field(name), pa.nulls(len(rows), rows.schema.field(name).type))
    nanos = [
        None if nano is None else int(float(nano * USD_PER_UNIT[currency] / 10**7) * 10**7 + 0.5)
        for nano, currency in zip(rows["ilrd_nano"].to_pylist(), rows["ilrd_currency"].to_pylist(), strict=True)
    ]
    of_type = rows.schema.field("ilrd_currency").type
    usd = pa.array(["USD" if nano is not None else None for nano in nanos], pa.string()).cast(of_type)
    for name, column in (("ilrd_nano", pa.array(nanos, pa.int64())), ("ilrd_currency", usd)):
        place = rows.schema.get_field_index(name)
        rows = rows.set_column(place, rows.schema.field(name), column)
    ledger = Ledger()
    ledger.record(rows)
    return ledger


@pytest.fixture(scope="module")
def taken_parquet(tmp_path_factory: pytest.TempPathFactory, event_parquet: Exported) -> Taken:
    """Return an import of the tables of Event Data."""
    state = tmp_path_factory.mktemp("tables") / "state"
    return Taken(state, take(state, event_parquet.folder), [])


@pytest.fixture(scope="module")
def of_event_data(
    tmp_path_factory: pytest.TempPathFactory, event_parquet: Exported, taken_parquet: Taken
) -> Iterator[tuple[Stage, Ledger]]:
    """Return a sandbox whose lake has the tables of Event Data, and the ledger of what these have."""
    folder = tmp_path_factory.mktemp("of-event-data")
    assert taken_parquet.result.undisclosed > 0
    stage = Stage(shutil.copytree(taken_parquet.state, folder / "state"))
    yield stage, ledger_of_tables(event_parquet, folder)
    stage.sandbox.close()


@pytest.mark.shown_by(1)
@pytest.mark.filterwarnings("ignore:retention_retro has no row where nobody came back")
@pytest.mark.parametrize("by", [["game_id"], ["category", "game_id"], ["ad_type", "game_id"]], ids="-".join)
def test_metrics_of_event_data_equal_the_ledger(of_event_data: tuple[Stage, Ledger], by: list[str]) -> None:
    """What Event Data knows is that of the ledger, over its six categories (Wire 5.7, Event Data)."""
    stage, truth = of_event_data
    client = quick(stage.metrics_app, key="key-of-acme")
    for metric in KNOWN_OF_PARQUET:
        if metric == "retention_retro" and by[0] != "game_id":
            continue  # it has no dimensions of events
        more: dict[str, Any] = {"since_days_ago": 1} if metric == "retention_retro" else {}
        frame = client.query(metric, by=by, over=str(OVER), **more)
        assert_equals_ledger(frame, truth.metric(metric, interval=OVER, by=by, **more), metric, by)
    for metric in sorted(METRICS.keys() - set(KNOWN_OF_PARQUET)):
        with pytest.raises(BadQuery, match=f"{metric}.*is not known for game"):
            client.query(metric, by=by, over=str(OVER))


def event_data_file(path: Path, *arrived: datetime, game: int = 1001, **fields: Any) -> Path:
    """Write a table of Event Data with one design event for each time of arrival."""
    base = {"game_id": game, "user_id": "u", "session_id": "s", "event_id_01": "kill", "event_id_02": None}
    rows = [base | {"event_client_ts": at, "event_arrival_ts": at, **fields} for at in arrived]
    path.parent.mkdir(exist_ok=True)
    pq.write_table(pa.Table.from_pylist(rows), path)
    return path


@pytest.mark.wide
def test_what_event_data_lacks_is_refused(tmp_path: Path) -> None:
    """Purchases and ends of sessions are refused for its games and days of arrival (Wire 5.7, Event Data)."""
    now_s, day = int(NOW.timestamp()), 86_400
    at = [datetime.fromtimestamp(now_s - 4 * day, UTC), datetime.fromtimestamp(now_s - 3 * day, UTC)]
    late = event_data_file(tmp_path / "in" / "1.parquet", *at)
    bought = event(category="business", event_id="gems:small", amount=499, currency="USD", transaction_num=1)
    lines = [
        wrapped(bought | {"client_ts": now_s - days * day, "event_uuid": f"{days:032x}"}, game_id=game)
        for days, game in ((6, 1001), (3, 1002))
    ]
    take(tmp_path / "state", late, write_lines(tmp_path / "in" / "a.gz", *lines))
    days = "2026-11-16T00:00Z/2026-11-18T00:00Z"
    stage = Stage(tmp_path / "state")
    try:
        client = quick(stage.metrics_app, key="key-of-acme")
        for metric, lacking in (("revenue", "purchases"), ("arpdau", "purchases"), ("session_length", "session ends")):
            with pytest.raises(GamelensError, match=f"game 1001.*{days}.*no {lacking}.*import Raw Data"):
                client.query(metric, over="2026-11-14/2026-11-19")
        with pytest.raises(BadQuery, match="dimension = 'is_paying' is not known"):
            client.query("user_unique", by="is_paying", over="2026-11-16/2026-11-17")
        assert client.query("event_count", over="2026-11-14/2026-11-19").event_count.sum() == 4
        assert client.query("revenue", over="2026-11-14/2026-11-16").revenue.sum() == pytest.approx(4.99)
        other_game = client.query("revenue", over="2026-11-14/2026-11-19", games=["1002"])
        assert other_game.revenue.sum() == pytest.approx(4.99)
    finally:
        stage.sandbox.close()


@pytest.mark.wide
@pytest.mark.parametrize("kind", ["raw-json", "event-parquet"])
def test_an_import_that_is_killed_again_and_again_has_the_same_tables(
    tmp_path: Path, request: pytest.FixtureRequest, kind: ExportFormat
) -> None:
    """Killed at random writes to the disk, an import ends with the lake of one that was not."""
    exported: Exported = request.getfixturevalue(kind.replace("-", "_"))
    whole = request.getfixturevalue("taken" if kind == "raw-json" else "taken_parquet").state
    chance, state = random.Random(20), tmp_path / "state"
    Stage(state).sandbox.close()
    for _ in range(KILLS):
        kill(f"{IMPORT}{exported.folder}", state, before=chance.randrange(1, FIRST_WRITES))
    take(state, exported.folder)
    assert differences(tables(state), tables(whole)) == {}


def test_a_file_is_taken_once(tmp_path: Path, raw_json: Exported, taken: Taken) -> None:
    """A file that was taken is known again: by its name, or by its content under another name."""
    shutil.copytree(taken.state, tmp_path / "state")
    before = tables(tmp_path / "state")
    shutil.copytree(raw_json.folder, tmp_path / "copies")
    for path in (tmp_path / "copies").rglob("*.gz"):
        path.rename(path.with_name(f"again-{path.name}"))
    again = take(tmp_path / "state", raw_json.folder, tmp_path / "copies")
    assert (again.files, again.taken_before) == (0, 2 * taken.result.files)
    assert differences(tables(tmp_path / "state"), before) == {}


@pytest.mark.wide
def test_files_in_any_order_and_number_of_imports_give_the_same_tables(
    tmp_path: Path, raw_json: Exported, imported: Stage
) -> None:
    """Imports of one half and then of the other, each at once, answer as one import of all in groups does."""
    files = sorted(raw_json.folder.rglob("*.gz"))
    for part in (files[1::2], files[::2]):
        take(tmp_path / "state", *part, options=ImportOptions())
    one = lake_tables(imported.sandbox.lake.snapshot("acme"))
    lakes = [unnumbered(of_lake) for of_lake in (one, tables(tmp_path / "state"))]
    for of_lake in lakes:  # of a repeated event the first copy to be taken counts, and each has its own arrival
        of_lake["events"] = of_lake["events"].drop_columns("arrived_at")
    different = differences(*lakes)
    assert "events" not in different
    assert "returns" not in different


def test_events_keep_the_time_of_their_arrival(imported: Stage, raw_json: Exported) -> None:
    """An event that the export has once arrived when its line says."""
    events = lake_tables(imported.sandbox.lake.snapshot("acme"), "events")["events"]
    lines = lines_of(raw_json.folder)
    arrivals = {line["data"].get("event_uuid"): line["arrival_ts"] for line in reversed(lines)}
    stored = dict(zip(events["event_uuid"].to_pylist(), events["arrived_at"].to_pylist(), strict=True))
    named = {uuid: at for uuid, at in stored.items() if uuid is not None}
    assert len(named) > 500
    assert {uuid: int(at.replace(tzinfo=UTC).timestamp()) for uuid, at in named.items()} == {
        uuid: arrivals[uuid] for uuid in named
    }


def test_damaged_files_and_lines_are_left_out_with_reasons(tmp_path: Path) -> None:
    """A damaged file is not taken at all, a damaged line alone; the rest is, and a mended file later."""
    now_s = int(NOW.timestamp()) - 86_400
    good = [wrapped(event(user_id=f"u{number}", client_ts=now_s + number)) for number in range(9)]
    bad = [b'{"broken', b"17", b"null", json.dumps({"arrival_ts": 1}).encode(), b'{"arrival_ts": "soon"}']
    write_lines(tmp_path / "in" / "a.gz", *good[:3], *bad, b"", *good[3:5])
    whole = write_lines(tmp_path / "b.gz", *good[5:]).read_bytes()
    (tmp_path / "in" / "b.gz").write_bytes(whole[:-9])
    (tmp_path / "in" / "c.parquet").write_bytes(b"PAR1 and nothing else")
    (tmp_path / "in" / "d.txt").write_text("notes")
    result = take(tmp_path / "state", tmp_path / "in")
    assert (result.files, result.events) == (1, 5)
    assert result.refused == {"no JSON object": 2, "no game_id": 1, "no usable arrival_ts": 2}
    assert result.refused_at[0].startswith("a.gz, line 4")
    assert {name.rpartition("/")[2]: reason.partition(":")[0] for name, reason in result.damaged.items()} == {
        "b.gz": "its gzip ends too early",
        "c.parquet": "its Parquet is damaged",
        "d.txt": "it is neither JSON lines nor Parquet",
    }
    (tmp_path / "in" / "b.gz").write_bytes(whole)
    mended = take(tmp_path / "state", tmp_path / "in")
    assert (mended.files, mended.taken_before, mended.events) == (1, 1, 4)


@pytest.mark.wide
def test_a_file_that_proves_damaged_at_its_end_leaves_nothing(tmp_path: Path) -> None:
    """Its rows are decoded together with those of other files, and are not taken."""
    now_s, chance = int(NOW.timestamp()) - 86_400, random.Random(1)
    lines = [
        wrapped(event(user_id=f"u{n}", event_uuid=f"{chance.getrandbits(128):032x}", client_ts=now_s + n))
        for n in range(4_000)
    ]
    path = write_lines(tmp_path / "a.gz", *lines)
    path.write_bytes(path.read_bytes()[:-100])
    good = write_lines(tmp_path / "b.gz", *lines[:10])
    result = take(tmp_path / "state", path, good, options=ImportOptions())
    assert (result.files, result.events) == (1, 10)
    assert table_of(tmp_path / "state", "events").num_rows == 10


def test_no_address_is_stored(tmp_path: Path) -> None:
    """No file of the state directory has the `ip` of a line."""
    now_s = int(NOW.timestamp()) - 86_400
    write_lines(tmp_path / "a.gz", wrapped(event(client_ts=now_s)), b'{"ip": "198.51.100.0", broken')
    take(tmp_path / "state", tmp_path / "a.gz")
    files = [path for path in (tmp_path / "state").rglob("*") if path.is_file()]
    assert files
    assert not any(b"198.51.100" in path.read_bytes() for path in files)
    assert "ip" not in table_of(tmp_path / "state", "events").column_names


def stated_world(folder: Path) -> Path:
    """Write an export of three players: two installed before it, one of them with a day of play in it twice."""
    day, now_s = 86_400, int(NOW.timestamp()) // 86_400 * 86_400
    old = {"user_meta": {"install_ts": now_s - 30 * day, "first_build": "1.5"}}
    recent = {"user_meta": {"install_ts": now_s - 4 * day, "first_build": "0.9"}}
    new = {"user_meta": {"install_ts": now_s - 3 * day + 9}}
    write_lines(
        folder / "1.gz",
        wrapped(event(user_id="old", client_ts=now_s - 3 * day, build="2"), **old),
        wrapped(event(user_id="recent", client_ts=now_s - 3 * day + 5, build="2"), **recent),
        wrapped(event(user_id="new", client_ts=now_s - 3 * day + 9, build="3")),
    )
    write_lines(
        folder / "2.gz",
        wrapped(event(user_id="new", client_ts=now_s - 2 * day, build="4"), **new),
        wrapped(event(user_id="recent", client_ts=now_s - 4 * day, build="1"), **recent, arrival_ts=now_s - 2 * day),
        wrapped(event(user_id="old", client_ts=now_s - 2 * day, build="5"), **old),
    )
    return folder


def installs_of(state: Path) -> dict[str, tuple[str, str]]:
    """Return day and build of the install of each player."""
    of_lake = tables(state, "installs", "installs_moved")
    moved = {row["player"]: row for row in of_lake["installs_moved"].to_pylist()}
    rows = [moved.get(row["player"], row) for row in of_lake["installs"].to_pylist()]
    return {row["user_id"]: (f"{row['ts']:%m-%d}", row["build"]) for row in rows}


def by_first_build(state: Path) -> dict[tuple[str, str], int]:
    """Return the active players by day, of the builds that are those of installs alone."""
    stage = Stage(state)
    try:
        frame = quick(stage.metrics_app, key="key-of-acme").query(
            "user_unique", by="first_build", over="2026-11-16/2026-11-19"
        )
    finally:
        stage.sandbox.close()
    rows = frame[frame["first_build"].isin(["1.5", "0.9"])]
    return {
        (f"{day:%F}", build): players
        for day, build, players in zip(rows["timestamp"], rows["first_build"], rows["user_unique"], strict=True)
    }


@pytest.mark.shown_by(1)
@pytest.mark.parametrize("group_events", [1, 100])
def test_the_stated_install_wins(tmp_path: Path, group_events: int) -> None:
    """A player whom the service saw before the export has the install and the build of then (Wire 4.4, Install)."""
    state = tmp_path / "state"
    take(state, stated_world(tmp_path / "in"), options=ImportOptions(group_events=group_events))

    def returns() -> dict[tuple[str, int], int]:
        found: dict[tuple[str, int], int] = {}
        for row in table_of(state, "returns").to_pylist():
            key = f"{row['day']:%m-%d}", row["age"]
            found[key] = found.get(key, 0) + row["players"]
        return {key: count for key, count in found.items() if count}

    expected = {"old": ("10-21", "1.5"), "recent": ("11-16", "1"), "new": ("11-17", "3")}
    assert installs_of(state) == expected
    ages = {("10-21", 0): 1, ("11-17", 27): 1, ("11-18", 28): 1}
    ages |= {("11-16", 0): 1, ("11-17", 1): 1, ("11-17", 0): 1, ("11-18", 1): 1}
    assert returns() == ages
    active = {("2026-11-17", "1.5"): 1, ("2026-11-18", "1.5"): 1}
    assert by_first_build(state) == active
    rebuild(state)
    assert installs_of(state) == expected
    assert returns() == ages
    assert by_first_build(state) == active


@pytest.mark.wide
def test_the_build_of_a_stated_install_is_that_of_the_earliest(tmp_path: Path) -> None:
    """Where lines of a player differ (Wire 5.6, Raw Data)."""
    now_s, day = int(NOW.timestamp()) // 86_400 * 86_400, 86_400
    stated = [(now_s - 9 * day, "later"), (now_s - 30 * day, "first"), (now_s - 30 * day, None)]
    metas = [{"install_ts": ts, "first_build": build} for ts, build in stated]
    lines = [wrapped(event(client_ts=now_s - 2 * day, build="2"), user_meta=meta) for meta in metas]
    take(tmp_path / "state", write_lines(tmp_path / "a.gz", *lines))
    (install,) = table_of(tmp_path / "state", "installs").to_pylist()
    assert (f"{install['ts']:%m-%d}", install["build"]) == ("10-21", "first")


def test_stated_installs_of_an_earlier_release_have_no_build(tmp_path: Path) -> None:
    """Their parts lack the column, and lie beside parts that have it."""
    old, new = tmp_path / "old.parquet", tmp_path / "new.parquet"
    row = {"game_id": "1001", "user_id": "ann", "ts": datetime(2026, 11, 1)}
    pq.write_table(pa.Table.from_pylist([row]), old)
    pq.write_table(pa.Table.from_pylist([row | {"first_build": "1"}]), new)
    sql = DuckDBWriter(tmp_path)
    try:
        for paths, builds in (([old], [None]), ([old, new], ["1", None]), ([new], ["1"])):
            sql.view_files("stated_rows", paths, COLUMNS["stated_installs"])
            assert sql.run("SELECT first_build FROM stated_rows ORDER BY first_build") == [(each,) for each in builds]
    finally:
        sql.close()


TIMES: list[tuple[Any, str | None]] = [
    (S - 365 * 86_400, None),
    (S + 86_400, None),
    (str(S - 60), None),
    (float(S - 60), None),
    (None, "no client_ts"),
    (0, "client_ts more than 365 days before arrival"),
    (-5, "client_ts more than 365 days before arrival"),
    (S - 365 * 86_400 - 1, "client_ts more than 365 days before arrival"),
    (S + 86_401, "client_ts more than 24 h after arrival"),
    (S * 1000, "client_ts in milliseconds"),
    ((S - 4000 * 86_400) * 1000, "client_ts in milliseconds"),
    (S * 10**6, "client_ts in microseconds"),
    ("2026-11-20", "client_ts that is no usable number of seconds"),
    (10**30, "client_ts that is no usable number of seconds"),
    (True, "client_ts that is no usable number of seconds"),
]
"""Times that an export has of an event that arrived at `S`, and why they are not used."""


def test_events_dated_by_arrival_are_counted_with_reasons(tmp_path: Path) -> None:
    """A time that cannot be true gives way to the arrival, and the report says how many did and why.

    Wire 4.1, Event time.
    """
    lines = []
    for number, (client_ts, _) in enumerate(TIMES):
        line = wrapped(event(user_id=f"u{number}"), arrival_ts=S, user_meta={"install_ts": None})
        line["data"]["client_ts"] = client_ts
        lines.append(line)
    del lines[4]["data"]["client_ts"]
    result = take(tmp_path / "state", write_lines(tmp_path / "a.gz", *lines))
    assert result.dated_by_arrival == Counter(reason for _, reason in TIMES if reason)
    with closing(open_store(tmp_path / "state" / "gamelens.db")) as store:
        assert Lake(tmp_path / "state" / "lake", store).dated_by_arrival() == {"acme": result.dated_by_arrival}
    for row in table_of(tmp_path / "state", "events").to_pylist():
        client_ts, reason = TIMES[int(row["user_id"][1:])]
        at = S if reason else int(float(client_ts))
        assert row["ts"] == datetime.fromtimestamp(at, UTC).replace(tzinfo=None), client_ts


@pytest.mark.wide
def test_an_import_may_use_older_times_of_devices(tmp_path: Path) -> None:
    """`oldest_days` of the configuration holds for imports too (Wire 5.4, Sandbox configuration)."""
    config = tmp_path / "own.toml"
    config.write_text(f"{CONFIG}[collector]\noldest_days = 4000\n")
    old = [wrapped(event(client_ts=S - days * 86_400, user_id=f"{days}"), arrival_ts=S) for days in (4000, 4001)]
    table = event_data_file(tmp_path / "b.parquet", NOW, event_client_ts=NOW - timedelta(days=3999))
    options = ImportOptions(config=config)
    result = import_raw_events(tmp_path / "state", [str(write_lines(tmp_path / "a.gz", *old)), str(table)], options)
    assert result.dated_by_arrival == {"client_ts more than 4000 days before arrival": 1}


IN_ANY_FORM: list[tuple[Any, Any, str | None]] = [
    (NOW, NOW, None),
    (S, S, None),
    (NOW.timestamp(), NOW.timestamp(), None),
    (NOW.isoformat(), NOW.isoformat(), None),
    ("2026-11-20T12:30:00+02:00", "2026-11-20T10:30:00Z", None),
    (str(S), str(S), None),
    (datetime(1970, 1, 1, tzinfo=UTC), NOW, "event_client_ts more than 365 days before arrival"),
    (S * 1000, S, "event_client_ts in milliseconds"),
    (S * 10**6, S, "event_client_ts in microseconds"),
    (None, NOW, "no event_client_ts"),
    ("soon", NOW.isoformat(), "event_client_ts that is no usable number of seconds"),
]
"""Times of a device and of arrival in Event Data, and why the arrival dates the event instead."""


def test_times_of_event_data_are_read_in_any_form(tmp_path: Path) -> None:
    """Moments, numbers of seconds and text say the same, and are judged as those of Raw Data."""
    for number, (sent, arrived, _) in enumerate(IN_ANY_FORM):
        fields = {"user_id": f"u{number}", "event_client_ts": sent, "event_arrival_ts": arrived}
        event_data_file(tmp_path / "in" / f"{number}.parquet", NOW, **fields)
    result = take(tmp_path / "state", tmp_path / "in")
    assert (result.events, result.refused) == (len(IN_ANY_FORM), {})
    assert result.dated_by_arrival == Counter(reason for *_, reason in IN_ANY_FORM if reason)
    for row in table_of(tmp_path / "state", "events").to_pylist():
        assert (row["ts"], row["arrived_at"]) == (NOW.replace(tzinfo=None),) * 2, IN_ANY_FORM[int(row["user_id"][1:])]


ARRIVALS = {
    0: "no usable {}",
    S * 1000: "{} in milliseconds",
    S * 10**6: "{} in microseconds",
    4_200_000_000: "no usable {}",
}
"""Arrivals that are no time of a service's clock, and the reason."""


def test_a_row_without_a_usable_arrival_is_left_out_with_the_unit(tmp_path: Path) -> None:
    """Nothing dates an event whose arrival is no time of a service's clock."""
    lines = write_lines(tmp_path / "a.gz", wrapped(event()), *(wrapped(event(), arrival_ts=at) for at in ARRIVALS))
    row = {"game_id": 1001, "user_id": "u", "session_id": "s", "event_id_01": "kill"}
    rows = [row | {"event_arrival_ts": at} for at in (S, *ARRIVALS)]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "b.parquet")
    result = take(tmp_path / "state", lines, tmp_path / "b.parquet")
    names = ("arrival_ts", "event_arrival_ts")
    assert result.refused == Counter(reason.format(name) for reason in ARRIVALS.values() for name in names)
    assert result.events == 2


INSTALLED: list[tuple[Any, str | None]] = [
    (S - 3000 * 86_400, None),
    (str(S - 86_400), None),
    (float(S - 86_400), None),
    (None, None),
    (0, "install_ts before 2000"),
    (-1, "install_ts before 2000"),
    (S + 86_401, "install_ts more than 24 h after arrival"),
    (S * 1000, "install_ts in milliseconds"),
    (S * 10**6, "install_ts in microseconds"),
    ("yesterday", "install_ts that is no usable number of seconds"),
]
"""Installs that an export states of an event that arrived at `S`, and why they are not used."""


@pytest.mark.wide
def test_a_stated_install_that_cannot_be_true_is_said(tmp_path: Path) -> None:
    """The player's first event is the install then (Wire 4.4, Install)."""
    lines = [
        wrapped(event(user_id=f"u{number}", client_ts=S), arrival_ts=S, user_meta={"install_ts": install_ts})
        for number, (install_ts, _) in enumerate(INSTALLED)
    ]
    result = take(tmp_path / "state", write_lines(tmp_path / "a.gz", *lines))
    assert result.unusable_installs == Counter(reason for _, reason in INSTALLED if reason)
    for row in table_of(tmp_path / "state", "installs").to_pylist():
        install_ts, reason = INSTALLED[int(row["user_id"][1:])]
        at = S if reason or install_ts is None else int(float(install_ts))
        assert row["ts"] == datetime.fromtimestamp(at, UTC).replace(tzinfo=None), install_ts


def test_undisclosed_networks_are_null(tmp_path: Path) -> None:
    """An impression whose network the service may not show has none, and is counted."""
    data = event(category="impression", ad_network_name="max", ad_network_version="11")
    data["impression_data"] = {"network_name": "undisclosed", "revenue": 0.01}
    result = take(tmp_path / "state", write_lines(tmp_path / "a.gz", wrapped(data)))
    assert result.undisclosed == 1
    assert table_of(tmp_path / "state", "events")["ilrd_network_name"].to_pylist() == [None]


def test_unknown_and_missing_fields_are_said(tmp_path: Path) -> None:
    """Fields that are not documented are counted, and documented ones that are not there are named."""
    line = wrapped(event(), weather="rain", user_meta={"shoe_size": 43})
    del line["user_meta"]["install_ts"]
    result = take(tmp_path / "state", write_lines(tmp_path / "a.gz", line))
    assert result.unknown == {"user_meta.shoe_size": 1, "weather": 1}
    assert result.missing == {"user_meta.install_ts": 1}


def test_fields_of_every_line_are_compared(tmp_path: Path) -> None:
    """An unknown field counts wherever it is, a documented one that only a late line has is not missing."""
    lines = [wrapped(event(event_uuid=f"e{number}")) for number in range(3000)]
    for line in lines[:-1]:
        del line["user_meta"]["install_ts"]
    lines[1500]["weather"] = None
    lines[2000]["user_meta"]["shoe_size"] = {"eu": 43}
    lines[2500]["user_meta"] = ["of another kind"]
    result = take(tmp_path / "state", write_lines(tmp_path / "a.gz", *lines), write_lines(tmp_path / "b.gz", lines[0]))
    assert result.unknown == {"user_meta.shoe_size": 1, "weather": 1}
    assert result.missing == {"user_meta.install_ts": 1}


@pytest.mark.wide
def test_lines_that_are_no_json_have_no_fields(tmp_path: Path) -> None:
    """Nor do those that break after an unknown field, or nest too deep."""
    broken = [b'{"weather": 1, ', b'{"weather": ' + b"[" * 200_000, b'{"\xff": 1}', b"[1]", b'"text"', b"\x00"]
    result = take(tmp_path / "state", write_lines(tmp_path / "a.gz", wrapped(event()), *broken))
    assert (result.events, result.unknown) == (1, {})
    assert sum(result.refused.values()) == len(broken)


@pytest.mark.wide
def test_fields_with_ever_other_names_are_named_so_far(tmp_path: Path) -> None:
    """A file of which each line has a field of its own is taken as fast as others, with the first hundred named."""
    lines = [wrapped(event(event_uuid=f"e{number}"), **{f"x{number}": 1}) for number in range(3000)]
    result = take(tmp_path / "state", write_lines(tmp_path / "a.gz", *lines))
    assert (result.events, len(result.unknown)) == (3000, 100)


def test_games_are_mapped(tmp_path: Path) -> None:
    """A game of the export gets the id it has in the lake."""
    path = write_lines(tmp_path / "a.gz", wrapped(event(), game_id=555))
    result = take(tmp_path / "state", path, options=ImportOptions(games={"555": "1002"}))
    assert result.events == 1
    assert table_of(tmp_path / "state", "events")["game_id"].to_pylist() == ["1002"]


def test_files_with_an_unknown_game_are_left_out_whole(tmp_path: Path) -> None:
    """The others are taken; once the game is mapped, so are they, all of their lines."""
    player = iter(range(99))

    def line(game_id: int) -> dict[str, Any]:
        return wrapped(event(user_id=f"u{next(player)}"), game_id=game_id)

    write_lines(tmp_path / "in" / "a.gz", line(1001), line(1002))
    mixed = write_lines(tmp_path / "in" / "b.gz", line(1001), line(555), b'{"broken')
    unknown = write_lines(tmp_path / "in" / "c.gz", line(556), line(556), line(555))
    row = {"game_id": 557, "user_id": "u", "session_id": "s", "event_id_01": "kill", "event_arrival_ts": NOW}
    table = tmp_path / "in" / "d.parquet"
    pq.write_table(pa.Table.from_pylist([row]), table)
    result = take(tmp_path / "state", tmp_path / "in")
    assert (result.files, result.events, result.refused) == (1, 2, {})
    words = "which the organisation does not have: map each to one that it has (1001, 1002, 2001, 2002), as with"
    assert result.damaged == {
        str(mixed): f"it has events of game 555, {words} --game 555=1001",
        str(unknown): f"it has events of games 555, 556, {words} --game 555=1001 --game 556=1001",
        str(table): f"it has events of game 557, {words} --game 557=1001",
    }
    mistaken = take(tmp_path / "state", unknown, options=ImportOptions(games={"555": "9", "556": "1001"}))
    assert mistaken.damaged == {str(unknown): f"it has events of game 9, {words} --game 555=1001"}
    mapped = ImportOptions(games=dict.fromkeys(("555", "556", "557"), "1002"))
    result = take(tmp_path / "state", tmp_path / "in", options=mapped)
    assert (result.files, result.events, result.taken_before, result.damaged) == (3, 6, 1, {})
    assert result.refused == {"no JSON object": 1}


def test_an_organisation_is_chosen(tmp_path: Path) -> None:
    """Events go to the organisation of that name; without one that exists, nothing is taken."""
    path = write_lines(tmp_path / "a.gz", wrapped(event(), game_id=9001))
    with pytest.raises(BadQuery, match="--organisation"):
        take(tmp_path / "state", path, options=ImportOptions(organisation="rivals"))
    assert take(tmp_path / "state", path, options=ImportOptions(organisation="rival")).organisation == "rival"


@pytest.mark.wide
def test_sources_are_patterns_and_urls(tmp_path: Path) -> None:
    """A pattern and a URL name files as a folder does; what has no file is refused."""
    first, second = (event(user_id=name) for name in ("a", "b"))
    write_lines(tmp_path / "in" / "a.gz", wrapped(first))
    write_lines(tmp_path / "in" / "b.bin", wrapped(second))
    assert take(tmp_path / "state", tmp_path / "in" / "*.gz").events == 1
    assert take(tmp_path / "state", f"{(tmp_path / 'in').as_uri()}/").events == 1
    with pytest.raises(Refused, match="there is no file at"):
        take(tmp_path / "state", tmp_path / "none" / "*")


@pytest.mark.wide
def test_files_of_another_file_system_are_read(tmp_path: Path) -> None:
    """Both formats are read through fsspec, known again at the same place, and their copies removed."""
    memory = fsspec.filesystem("memory")
    lines = write_lines(tmp_path / "a.gz", wrapped(event(user_id="a")), wrapped(event(user_id="b")))
    table = event_data_file(tmp_path / "b.parquet", datetime(2026, 11, 18, tzinfo=UTC))
    try:
        memory.pipe({"/raw/1/a.gz": lines.read_bytes(), "/raw/2/b.parquet": table.read_bytes()})
        first = take(tmp_path / "state", "memory://raw/*/a.gz", "memory://raw/2/b.parquet")
        assert (first.files, first.events, first.tables) == (2, 3, 1)
        again = take(tmp_path / "state", "memory://raw")
        assert (again.files, again.taken_before) == (0, 2)
        assert not (tmp_path / "state" / "scratch").exists()
        with pytest.raises(Refused, match="there is no file at memory://none"):
            take(tmp_path / "state", "memory://none")
    finally:
        memory.rm("/raw", recursive=True)


@pytest.mark.wide
@pytest.mark.parametrize("group_events", [1, 100])
def test_a_stated_install_wins_over_the_clock_of_a_device(tmp_path: Path, group_events: int) -> None:
    """A phone that is months slow is new on the stated day, and on no other (Wire 4.4, Install)."""
    now_s, day = int(NOW.timestamp()) // 86_400 * 86_400, 86_400
    installed = {"user_meta": {"install_ts": now_s - 2 * day, "first_build": "1.1"}}
    lines = [
        wrapped(event(client_ts=now_s - days * day, build="2"), arrival_ts=now_s - 2 * day, **installed)
        for days in (200, 3, 2, 1)
    ]
    files = [write_lines(tmp_path / f"{place}.gz", line) for place, line in enumerate(lines)]
    take(tmp_path / "state", *files, options=ImportOptions(group_events=group_events))
    assert installs_of(tmp_path / "state") == {"ann": ("11-18", "2")}
    stage = Stage(tmp_path / "state")
    try:
        client = quick(stage.metrics_app, key="key-of-acme")
        new = client.query("new_users", over="2026-05-04/2026-11-20", every="month")
        assert new[new.new_users > 0].timestamp.dt.strftime("%Y-%m").tolist() == ["2026-11"]
        back = client.query("returning_users", by="game_id", over="2026-05-04/2026-11-20", every="all")
        assert back.returning_users.tolist() == [1]
    finally:
        stage.sandbox.close()


@pytest.mark.wide
def test_an_import_states_the_install_of_a_player_that_was_received(
    tmp_path: Path, make_stage: Callable[..., Stage]
) -> None:
    """Also where the import has no event that was not received: all of them are repeated."""
    day = 86_400
    events = [event(client_ts=S - days * day, event_uuid=f"{days:032x}") for days in (90, 2, 1)]
    stage = make_stage()
    stage.submit(events)
    stage.process()
    today = {"interval": "2026-11-18/P2D", "granularity": "all", "query": {"type": "timeseries"}, "game": "1001"}
    assert metric_value(stage, "returning_users", **today) == 1
    state = stage.sandbox.options.state
    stage.sandbox.close()
    lines = [wrapped(each, arrival_ts=S, user_meta={"install_ts": S - 2 * day}) for each in events]
    result = take(state, write_lines(tmp_path / "a.gz", *lines))
    assert (result.events, result.repeated) == (3, 3)
    stage = make_stage()
    assert metric_value(stage, "new_users", **{name: today[name] for name in today if name != "game"}) == 1
    only = {**today, "interval": "2026-11-18/P1D"}
    assert metric_value(stage, "returning_users", **only) == 0
    assert metric_value(stage, "returning_users", **today) == 1
    stage.sandbox.close()
    before = tables(state)
    rebuild(state)
    assert differences(before, tables(state)).keys() <= {"installs"}  # which may have the values of another event


def test_events_received_before_and_after_are_counted_once(tmp_path: Path, make_stage: Callable[..., Stage]) -> None:
    """A copy of an event that came the other way is dropped (Wire 4.8, Repeated events)."""
    data = [event(user_id=f"u{n}", event_uuid=f"{n:032x}") for n in range(4)]
    stage = make_stage()
    state = stage.sandbox.options.state
    assert stage.submit(data[:2]).status_code == 200
    stage.sandbox.close()
    result = take(state, write_lines(tmp_path / "a.gz", *map(wrapped, data[1:3])))
    assert (result.events, result.repeated) == (2, 1)
    stage = make_stage()
    assert stage.submit(data).status_code == 200
    stage.process()
    assert stage.sandbox.lake.snapshot("acme").rows("events") == 4


@pytest.mark.wide
def test_a_reset_forgets_the_files(tmp_path: Path) -> None:
    """After a reset the same files are taken again."""
    import asyncio

    path = write_lines(tmp_path / "a.gz", wrapped(event()))
    take(tmp_path / "state", path)
    stage = Stage(tmp_path / "state")
    asyncio.run(stage.sandbox.reset())
    stage.sandbox.close()
    assert take(tmp_path / "state", path).files == 1


def test_progress_ends_with_everything_read(taken: Taken) -> None:
    """The last report has all bytes and rows, with a rate and no time left."""
    last = taken.reports[-1]
    assert (last.read_bytes, last.rows) == (last.bytes, taken.result.events)
    assert last.rows_per_s > 0
    assert last.rest_s == 0


def test_a_table_of_all_categories_is_read(tmp_path: Path) -> None:
    """The category of an event is told by its columns, where a table has those of several."""
    at = datetime(2026, 11, 18, 12)
    base = {"event_client_ts": at, "event_arrival_ts": at, "game_id": 1001, "user_id": "u", "session_id": "s"}
    rows = [
        base | {"ad_action": "show", "ad_type": "banner", "ad_sdk_name": "admob"},
        base | {"adunit_name": "top", "publisher_revenue_usd_cents": 1.25, "ad_network_name": "Undisclosed"},
        base | {"event_id_01": "kill", "event_id_02": "boss", "value": 3.0},
        base | {"severity": "error", "event_client_ts": None},
        base | {"user_id": None, "event_id_01": "kill"},
        base,
    ]
    names = dict.fromkeys(name for row in rows for name in row)
    table = pa.Table.from_pylist([dict.fromkeys(names) | row for row in rows]).append_column("seq", pa.array([7] * 6))
    pq.write_table(table, tmp_path / "all")
    result = take(tmp_path / "state", tmp_path / "all")
    assert (result.events, result.tables, result.undisclosed) == (4, 1, 1)
    assert result.refused == {"no known category": 1, "no user_id": 1}
    assert result.unknown == {"seq": 1}
    found = {row["category"]: row for row in table_of(tmp_path / "state", "events").to_pylist()}
    assert found.keys() == {"ads", "impression", "design", "error"}
    assert found["impression"]["money"] == 12_500_000
    assert found["impression"]["ilrd_network_name"] is None
    assert {row["ts"] for row in found.values()} == {at}
    assert found["design"]["event_id"] == "kill:boss"
    assert found["error"]["event_id"] is None


@pytest.mark.skipif(find_spec("pyspark") is not None, reason="it is not missing")
def test_an_import_without_spark_says_how_to_install_it(tmp_path: Path) -> None:
    """Nothing is taken, and the lake is as before."""
    path = write_lines(tmp_path / "a.gz", wrapped(event(client_ts=int(NOW.timestamp()))))
    with pytest.raises(Refused, match=r"pip install 'gamelens\[spark\]'"):
        take(tmp_path / "state", path, options=ImportOptions(engine="spark"))
    assert take(tmp_path / "state", path).files == 1


def test_an_unknown_engine_is_refused_before_a_file_is_taken(tmp_path: Path) -> None:
    """The error has the engines that there are."""
    path = write_lines(tmp_path / "a.gz", wrapped(event(client_ts=int(NOW.timestamp()))))
    with pytest.raises(Refused, match="'yarm' is not an engine: duckdb, spark, or the address of a Spark master"):
        take(tmp_path / "state", path, options=ImportOptions(engine="yarm"))


@pytest.mark.wide
def test_sdk_errors_need_no_player(tmp_path: Path) -> None:
    """They alone are exempt (Wire 3.3, Common fields): counted as events, and nobody's install."""
    lines = [
        wrapped(event(event_uuid="1")),
        wrapped(event(category="sdk_error", user_id=None, session_id=None, session_num=None, event_uuid="2")),
        wrapped(event(user_id=None, event_uuid="3")),
    ]
    result = take(tmp_path / "state", write_lines(tmp_path / "a.gz", *lines))
    assert (result.events, result.refused) == (2, {"no user_id": 1})
    of_lake = tables(tmp_path / "state")
    assert sorted(of_lake["events"]["category"].to_pylist()) == ["sdk_error", "user"]
    assert {row["user_id"] for name in ("installs", "stated_installs") for row in of_lake[name].to_pylist()} == {"ann"}


def test_missing_columns_of_a_table_are_said(tmp_path: Path) -> None:
    """Each documented column of its category, those of other categories not (Wire 5.7, Event Data)."""
    columns = ("event_dt", "player_id", "custom_01", "custom_02", "custom_fields", "event_id_03", "event_id_04")
    filled: dict[str, Any] = dict.fromkeys((*columns, "event_id_05", "value"), "x")
    file = event_data_file(tmp_path / "1.parquet", NOW, **filled)
    assert take(tmp_path / "state", file).missing == {"custom_03": 1}


class TwoDays(NamedTuple):
    """Two files of events: a state directory that has the first one, the second, and the tables of both."""

    state: Path
    second: Path
    tables: dict[str, pa.Table]


@pytest.fixture(scope="module")
def two_days(tmp_path_factory: pytest.TempPathFactory) -> TwoDays:
    """Return the events of sixty players on two days."""
    folder = tmp_path_factory.mktemp("two-days")
    days = [
        [event(user_id=f"u{user}", event_uuid=f"{day}-{user}", client_ts=S - 86_400 * day) for user in range(60)]
        for day in (1, 0)
    ]
    first, second = (
        write_lines(folder / "in" / f"{place}.json.gz", *map(wrapped, events)) for place, events in enumerate(days)
    )
    take(folder / "first" / "state", first)
    shutil.copytree(folder / "first", folder / "both")
    take(folder / "both" / "state", second)
    return TwoDays(folder / "first" / "state", second, tables(folder / "both" / "state"))


@pytest.mark.shown_by(1)
@pytest.mark.parametrize("kind", ["sessions", "players", "player_days", "names"])
def test_an_import_reads_no_rotten_run(tmp_path: Path, two_days: TwoDays, kind: str) -> None:
    """A keyed run whose bytes have changed is made again first, although its size and times are as they were."""
    state = shutil.copytree(two_days.state, tmp_path / "state")
    (run,) = (state / "lake").rglob(f"{PREFIX}{kind}-*.arrow")
    before, content = run.stat(), run.read_bytes()
    middle = len(content) // 2
    run.write_bytes(content[: middle - 100] + random.Random(1).randbytes(200) + content[middle + 100 :])
    os.utime(run, ns=(before.st_atime_ns, before.st_mtime_ns))
    result = take(state, two_days.second)
    assert (result.events, result.repeated) == (60, 0)
    assert differences(two_days.tables, tables(state)) == {}


def test_an_import_over_lost_events_is_refused(tmp_path: Path) -> None:
    """Imported events that are damaged cannot be made again: nothing more is imported, and the reason is said."""
    line = write_lines(tmp_path / "in" / "1.json.gz", wrapped(event(user_id="u1", client_ts=S)))
    take(tmp_path / "state", line)
    for part in (tmp_path / "state" / "lake").rglob("events-*.parquet"):
        part.write_bytes(part.read_bytes()[:-9] + b"rotten123")
    more = write_lines(tmp_path / "in" / "2.json.gz", wrapped(event(user_id="u2", client_ts=S)))
    with pytest.raises(Refused, match=r"^nothing was imported: .*parquet is damaged"):
        take(tmp_path / "state", more)
