"""Analyses of events where they lie give the numbers of a lake, or refuse."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import duckdb
import fsspec
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

import gamelens as gl
from gamelens import raw_events
from gamelens.errors import BadQuery, Refused
from gamelens.raw_events.lake_client import LakeClient, open_lake
from gamelens.raw_events.open_events import EventTable
from gamelens.receipts import Receipt
from gamelens.sandbox.engines.plain_sql import faults_of
from gamelens.wire.intervals import Interval
from support.every_analysis import (
    ANALYSES,
    INSTALLED,
    OVER,
    assert_equal,
    compare_all,
    played_world,
    with_repeats,
    with_zone,
)

pytestmark = pytest.mark.slow

NAMES = {"ts": "sent_at", "user_id": "Player Id"}


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LakeClient]:
    """Return a lake with events of a random world."""
    state = played_world(tmp_path_factory.mktemp("world") / "state", 53, batches=10)
    with open_lake(state, organisation="acme", progress=False) as lake:
        yield lake


@pytest.fixture(scope="module")
def events(lake: LakeClient) -> pa.Table:
    """Return its events as a table of Arrow."""
    return lake.relation("events").to_arrow_table()


def opened(kind: str, events: pa.Table, lake: LakeClient, folder: Path) -> EventTable:
    """Return *events* as a source of a kind."""
    available = str(lake.available())
    match kind:
        case "dataset":  # as a Delta table has one
            return gl.open_events(ds.dataset(events), unique=True, available=available)
        case "repeats":
            return gl.open_events(with_repeats(events), available=available)
        case "parquet":  # in two files with other names and types, and a table of players
            renamed = with_zone(events, NAMES)
            half = renamed.num_rows // 2
            pq.write_table(renamed.slice(0, half), folder / "a.parquet")
            pq.write_table(renamed.slice(half).drop_columns(["custom_03"]), folder / "b.parquet")
            pq.write_table(lake.relation("players").to_arrow_table(), folder / "players")
            return gl.open_events(
                folder / "*.parquet", players=folder / "players", columns=NAMES, unique=True, available=available
            )
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'Asia/Tokyo'")
    connection.register("mine", with_zone(events, NAMES))
    return gl.open_events(connection.sql("SELECT * FROM mine"), columns=NAMES, available=available)


@pytest.mark.shown_by("repeats", "relation")
@pytest.mark.parametrize("kind", ["dataset", "repeats", "parquet", "relation"])
def test_every_analysis_equals_that_of_the_lake(kind: str, lake: LakeClient, events: pa.Table, tmp_path: Path) -> None:
    """On random events, whatever engine reads them, and also where they are repeated or have a zone."""
    engines = {"dataset": "Arrow", "repeats": "Arrow, repeats", "parquet": "Parquet", "relation": "DuckDB relation"}
    with opened(kind, events, lake, tmp_path) as table:
        compare_all(engines[kind], table, lake)


class Recorded:
    """A lake that keeps the statements of analyses."""

    def __init__(self, lake: LakeClient) -> None:
        self._lake, self.statements = lake, list[str]()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._lake, name)

    def run(self, statement: str, parameters: Mapping[str, Any], reads: Interval | None = None) -> pa.Table:
        """Return the rows of a statement, which is kept."""
        self.statements.append(statement)
        return self._lake.run(statement, parameters, reads)


@pytest.mark.shown_by(3)
@pytest.mark.parametrize("name", ANALYSES)
def test_statements_are_plain(name: str, lake: LakeClient) -> None:
    """Each analysis is one statement, in words that mean the same on every engine."""
    recorded = Recorded(lake)
    ANALYSES[name](recorded)
    (statement,) = recorded.statements
    assert faults_of(statement) == []


@pytest.mark.wide
def test_a_delta_table_is_read_by_its_dataset(lake: LakeClient, events: pa.Table, tmp_path: Path) -> None:
    """As its documentation says."""
    write_deltalake(tmp_path / "delta", events)
    dataset = DeltaTable(tmp_path / "delta").to_pyarrow_dataset()
    with gl.open_events(dataset, unique=True, available=str(lake.available())) as table:
        assert_equal(ANALYSES["session_paths"](table), ANALYSES["session_paths"](lake))


@pytest.mark.wide
def test_files_at_a_url_are_read_by_fsspec(lake: LakeClient, events: pa.Table) -> None:
    """Also where only a pattern names them; an address that nothing reads says which package does."""
    with fsspec.open("memory://bucket/events/a.parquet", "wb") as file:
        pq.write_table(events, file)
    with gl.open_events("memory://bucket/events/*.parquet", unique=True, available=str(lake.available())) as table:
        assert_equal(ANALYSES["funnel"](table), ANALYSES["funnel"](lake))
        assert Receipt.of(ANALYSES["funnel"](table).attrs).provenance.text == (
            "memory://bucket/events/*.parquet, read by duckdb"
        )
    with pytest.raises(Refused, match=r"pip install 'gamelens\[remote\]'"):
        gl.open_events("nothing://bucket/a.parquet")


def test_a_statement_reads_the_days_that_are_asked_for(events: pa.Table, lake: LakeClient, tmp_path: Path) -> None:
    """Where no event is repeated, by the column as it lies, so that an engine can leave files out."""
    pq.write_table(with_zone(events, NAMES), tmp_path / "a.parquet")
    available = str(lake.available())
    with gl.open_events(tmp_path / "a.parquet", columns=NAMES, unique=True, available=available) as table:
        raw_events.active_players(table, OVER, away=3)
        assert """"sent_at" >= CAST('2026-10-22 00:00:00' || '+00' AS TIMESTAMPTZ)""" in table.statements[-1]
        assert len(table.statements) == 2  # the other asks for the games
    with gl.open_events(tmp_path / "a.parquet", columns=NAMES, available=available) as table:
        raw_events.active_players(table, OVER, away=3)
        assert '"sent_at" >= ' not in table.statements[-1]


def test_the_interval_is_that_of_the_events(events: pa.Table) -> None:
    """From the first day to the hour of the last event."""
    first, last = min(events["ts"].to_pylist()), max(events["ts"].to_pylist())
    with gl.open_events(events, unique=True) as table:
        found = table.available()
    assert (found.start.replace(tzinfo=None), found.end.replace(tzinfo=None)) == (
        first.replace(hour=0, minute=0, second=0),
        last.replace(minute=0, second=0) + timedelta(hours=1),
    )
    with pytest.raises(Refused, match="has no events with a game and a time"):
        gl.open_events(events.slice(0, 0), unique=True).available()


def test_what_a_table_does_not_have_is_not_known(events: pa.Table, lake: LakeClient) -> None:
    """Money and sessions are NA with a warning, and an analysis that needs a column refuses."""
    few = events.select(["game_id", "user_id", "category", "ts"])
    with gl.open_events(few, unique=True, available=str(lake.available())) as table:
        counted = raw_events.count_events(table, OVER, every="all")
        expected = raw_events.count_events(lake, OVER, every="all")
        assert counted[["events", "players"]].equals(expected[["events", "players"]])
        assert counted[["sessions", "revenue", "ad_revenue"]].isna().all(axis=None)
        warnings = " ".join(Receipt.of(counted.attrs).warnings)
        assert "no session_id" in warnings
        assert "no usd" in warnings
        assert_equal(ANALYSES["active_players"](table), ANALYSES["active_players"](lake))
        with pytest.raises(BadQuery, match="usd"):
            raw_events.player_money(table, INSTALLED, days=5)
        with pytest.raises(BadQuery, match=r"event_id' is a column that this analysis needs.*open_events\(columns="):
            raw_events.funnel(table, ["user"], OVER)
        with pytest.raises(BadQuery, match="session_id' is a column that this analysis needs"):
            raw_events.session_paths(table, OVER)
        with pytest.raises(BadQuery, match="by = 'country_code' is not a column to split by"):
            raw_events.count_events(table, OVER, by="country_code")
        with pytest.raises(BadQuery, match="names build, which the events do not have"):
            raw_events.count_events(table, OVER, where="build = '1.0'")
    unordered = events.drop_columns(["arrival", "event_uuid"])
    with gl.open_events(unordered, unique=True, available=str(lake.available())) as table:
        with pytest.raises(BadQuery, match="must order the events of one second"):
            raw_events.session_paths(table, OVER)
        with pytest.raises(BadQuery, match="must order the events of one second"):
            raw_events.player_money(table, INSTALLED, days=5)


def test_players_may_be_a_relation_of_the_same_connection(events: pa.Table, lake: LakeClient) -> None:
    """Another connection may have another table under the name: it is refused."""
    connection = duckdb.connect()
    connection.register("of_events", events)
    connection.register("of_players", lake.relation("players").to_arrow_table())
    mine = connection.sql("SELECT * FROM of_events")
    players = connection.sql("SELECT * FROM of_players WHERE game_id <> '' ORDER BY user_id")
    with gl.open_events(mine, players=players, unique=True, available=str(lake.available())) as table:
        assert_equal(ANALYSES["player_money"](table), ANALYSES["player_money"](lake))
    with pytest.raises(BadQuery, match="must be of the connection of the events"):
        gl.open_events(mine, players=lake.relation("players"), unique=True)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"columns": {"time": "ts"}}, "columns = 'time' is not a column of the events that analyses know"),
        ({"columns": {"ts": "tz"}}, "columns = 'tz' which is to be ts, is not a column of the table"),
        ({"columns": {"ts": None}}, r"columns = 'ts' is missing: say which column it is, columns=\{'ts': '...'\}"),
        ({"columns": {"ts": "platform"}}, "columns = 'platform' has the type VARCHAR, but ts must be a time: cast it"),
        ({"columns": {"usd": "build"}}, r"or leave it out: columns=\{'usd': None\}"),
        ({"columns": {"event_uuid": None}}, "say unique=True if none is repeated"),
        ({"players": "players.parquet", "events": "relation"}, "must be of the same kind as the events"),
        ({"events": [1, 2]}, "events = 'builtins.list' is no place of events: pass a DataFrame of Spark"),
        ({"memory": "lots"}, "memory = 'lots' is not an amount of memory"),
        ({"when_unavailable": "wait"}, "is for services"),
        ({"available": "always"}, "must be an ISO 8601 interval"),
    ],
)
def test_what_cannot_be_read_is_refused(arguments: dict[str, Any], message: str, events: pa.Table) -> None:
    """Each error names the value, the rule and the next step."""
    given = {"events": events} | arguments
    if given["events"] == "relation":
        given["events"] = duckdb.connect().sql("SELECT 1 AS game_id")
    with pytest.raises(BadQuery, match=message):
        gl.open_events(**given)


def test_an_engine_that_fails_says_why(tmp_path: Path, events: pa.Table) -> None:
    """A file that is not there, that is no Parquet, or too little memory."""
    with pytest.raises(Refused, match=r"nothing\.parquet cannot be read: "):
        gl.open_events(tmp_path / "nothing.parquet")
    (tmp_path / "text.parquet").write_text("game_id,user_id")
    with pytest.raises(Refused, match=r"text\.parquet cannot be read: "):
        gl.open_events(tmp_path / "text.parquet")
    with pytest.raises(Refused, match=r"memory://nowhere/a\.parquet cannot be read: (IO|FileNotFound)\s?Error: "):
        gl.open_events("memory://nowhere/a.parquet")
    many = pa.concat_tables([events] * 400)
    with gl.open_events(many, memory="5MB", spill=tmp_path / "spill") as table:
        with pytest.raises(Refused, match="the statement takes more than 5MB of memory"):
            table.available()
        assert (tmp_path / "spill").is_dir()
    assert list((tmp_path / "spill").iterdir()) == []
