"""Analyses of events in BigQuery give the numbers of a lake, within a bound, and tell nothing about credentials."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import gamelens as gl
from gamelens import raw_events
from gamelens.errors import BadQuery, Refused
from gamelens.raw_events.lake_client import LakeClient, open_lake
from gamelens.raw_events.open_events import EventTable
from gamelens.receipt_text import explain
from gamelens.receipts import Receipt, merge_receipts
from gamelens.sandbox.engines.plain_sql import written_for
from support.bigquery_service import BigQueryService, GoogleSql, serving, translated
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

bigquery = pytest.importorskip("google.cloud.bigquery")
credentials = pytest.importorskip("google.auth.credentials")
pytestmark = pytest.mark.slow

NAMES = {"ts": "sent_at", "user_id": "player"}
TABLE, PLAYERS = "studio.games.events", "studio.games.players"
WAREHOUSE = "studio.events"
STEPS = ("pack:gold", "Complete", "Complete:world1")


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LakeClient]:
    """Return a lake with events of a random world."""
    state = played_world(tmp_path_factory.mktemp("world") / "state", 57, batches=16)
    with open_lake(state, organisation="acme", progress=False) as lake:
        yield lake


@pytest.fixture(scope="module")
def tables(lake: LakeClient) -> dict[str, pa.Table]:
    """Return its events and players as tables of BigQuery: instants, whole numbers as ids, other names."""
    events = with_zone(lake.relation("events").to_arrow_table(), NAMES)
    place = events.column_names.index("sent_at")
    events = events.set_column(place, "sent_at", events["sent_at"].cast(pa.timestamp("us", "UTC")))
    players = lake.relation("players").to_arrow_table()
    place = players.column_names.index("installed_at")
    players = players.set_column(place, "installed_at", players["installed_at"].cast(pa.timestamp("us", "UTC")))
    kept = [field.name for field in players.schema if field.type in (pa.string(), pa.timestamp("us", "UTC"))]
    return {TABLE: events, PLAYERS: players.select(kept)}


@pytest.fixture
def service(tables: dict[str, pa.Table]) -> BigQueryService:
    """Return a service over these tables whose statements DuckDB runs."""
    return BigQueryService(tables, translated(tables))


def asked(address: str, **settings: Any) -> Any:
    """Return a client of the official library, without an account."""
    return bigquery.Client(
        project="studio",
        credentials=credentials.AnonymousCredentials(),
        client_options={"api_endpoint": address},
        **settings,
    )


@pytest.fixture
def client(service: BigQueryService) -> Iterator[Any]:
    """Return a client of the service."""
    with serving(service) as address:
        yield asked(address)


def opened(client: Any, lake: LakeClient, **arguments: Any) -> EventTable:
    """Return the events as a source."""
    given = {"players": PLAYERS, "columns": NAMES, "unique": True, "available": str(lake.available()), **arguments}
    return gl.open_events(client, TABLE, **given)


def test_every_analysis_equals_that_of_the_lake_in_the_reference_engine(
    lake: LakeClient, tables: dict[str, pa.Table]
) -> None:
    """GoogleSQL's own analyser and engine run what the client sends."""
    pytest.importorskip("zetasql")
    service = BigQueryService(tables, GoogleSql(tables))
    with serving(service) as address, opened(asked(address), lake) as table:
        compare_all("BigQuery", table, lake)


def test_repeats_and_first_events_are_found_by_the_reference_engine(lake: LakeClient) -> None:
    """As DuckDB finds them, in a few events: it compares each with all others."""
    pytest.importorskip("zetasql")
    events = with_repeats(lake.relation("events").to_arrow_table().slice(0, 60))
    service = BigQueryService({TABLE: events}, GoogleSql({TABLE: events}))
    available = str(lake.available())
    with (
        serving(service) as address,
        gl.open_events(asked(address), TABLE, players="first events", available=available) as table,
        gl.open_events(events, available=available) as expected,
    ):
        for name in ("active_players", "count_events by hour", "player_money"):
            assert_equal(ANALYSES[name](table), ANALYSES[name](expected))


@pytest.mark.parametrize("name", ANALYSES)
def test_every_analysis_is_what_the_client_sends_and_receives(
    name: str, lake: LakeClient, client: Any, service: BigQueryService
) -> None:
    """Rows come back over HTTP, page by page, with the types that the lake's have."""
    with opened(client, lake) as table:
        assert_equal(ANALYSES[name](table), ANALYSES[name](lake))
        assert service.statements[-1] == table.statements[-1]


def test_any_text_reaches_the_reference_engine_as_it_is() -> None:
    """Quotes, backslashes, ends of lines, braces, and what looks like a parameter or the end of a text."""
    pytest.importorskip("zetasql")
    engine = GoogleSql({"mine": pa.table({"a": [1]})})
    texts = [
        "it's",
        '"',
        "\\",
        "\\'",
        "a\nb\r\t",
        "@x ?",
        "`",
        "{%}",
        "--",
        "/*",
        "'" * 3,
        "\u2028zoe\u0308 李",
        r"\n\x41",
    ]
    parameters = {f"t{number}": text for number, text in enumerate(texts)}
    columns = ", ".join(f"${name} AS {name}" for name in parameters)
    assert engine(written_for("bigquery", f"SELECT {columns}", parameters, {})).to_pylist() == [parameters]


def warehouse(events: pa.Table) -> dict[str, pa.Table]:
    """Return events of a lake as the tables of a warehouse, with random steps of a progression."""
    frame = events.to_pandas()
    frame = frame[frame["event_id"].notna() & frame["user_id"].notna()].reset_index(drop=True)
    at = pa.array(frame["ts"]).cast(pa.timestamp("us")).cast(pa.timestamp("us", "UTC"))
    common = {
        "event_dt": pc.cast(at, pa.date32()),
        "event_client_ts": at,
        "event_arrival_ts": at,
        "game_id": pa.array(frame["game_id"].astype("int64")),
        "user_id": pa.array(frame["user_id"], pa.string()),
        "session_id": pa.array(frame["session_id"], pa.string()),
    }
    parts = frame["event_id"].str.split(":", expand=True).reindex(columns=range(5))
    design = {f"event_id_{number:02d}": pa.array(parts[number - 1], pa.string()) for number in range(1, 6)}
    levels = {
        "progression_status": pa.array(["Complete" if number % 2 else "Start" for number in range(len(frame))]),
        "progression_1": pa.array([f"world{number % 3}" for number in range(len(frame))]),
        "progression_2": pa.nulls(len(frame), pa.string()),
        "progression_3": pa.nulls(len(frame), pa.string()),
    }
    renamed = {"event_date" if name == "event_dt" else name: column for name, column in common.items()}
    return {
        f"{WAREHOUSE}.design_event": pa.table({**common, **design}),
        f"{WAREHOUSE}.progression_event": pa.table({**renamed, **levels}),
        f"{WAREHOUSE}.error_event": pa.table(common),
        f"{WAREHOUSE}.notes": pa.table({"text": ["a"]}),
        "studio.checkpoints.player_checkpoint": pa.table(
            {
                "checkpoint": common["event_dt"],
                "game_id": common["game_id"],
                "user_id": common["user_id"],
                "install_ts": common["event_dt"],
            }
        ),
    }


@pytest.mark.parametrize("by", ["GoogleSQL", "DuckDB"])
def test_the_services_own_warehouse_is_read_by_its_tables(by: str, lake: LakeClient) -> None:
    """The funnel equals that of the same events in one table; what the warehouse does not tell is refused."""
    if by == "GoogleSQL":
        pytest.importorskip("zetasql")
    held = warehouse(lake.relation("events").to_arrow_table())
    service = BigQueryService(held, GoogleSql(held) if by == "GoogleSQL" else translated(held))
    service.partitions = {f"{WAREHOUSE}.design_event": "event_dt"}
    flat = flattened(held)
    available = str(lake.available())
    with (
        serving(service) as address,
        gl.open_events(
            asked(address),
            WAREHOUSE,
            shape="warehouse",
            players="checkpoints.player_checkpoint",
            available=available,
        ) as events,
        gl.open_events(flat, unique=True, available=available) as expected,
    ):
        found = raw_events.funnel(events, STEPS, OVER)
        assert found["players"].iloc[0] > found["players"].iloc[1] > 0
        assert_equal(found, raw_events.funnel(expected, STEPS, OVER))
        assert_equal(
            raw_events.count_events(events, OVER, every="day", by=["event_id_01", "category"])[["events", "players"]],
            raw_events.count_events(expected, OVER, every="day", by=["event_id_01", "category"])[["events", "players"]],
        )
        (warning,) = Receipt.of(found.attrs).warnings
        assert warning.startswith("only events of design_event, progression_event are counted")
        assert "error_event" in warning
        assert "notes" not in warning
        assert "`day` >= CAST('2026-10-24' AS DATE)" in events.statements[1]
        outcomes = compare_all("Warehouse", events, expected, may_refuse=True)
        refused = {name for name, outcome in outcomes.items() if outcome == "refused"}
        assert {name.partition(" ")[0] for name in outcomes if name not in refused} == {
            *("active_players", "active_players,", "count_events", "funnel")
        }
        with pytest.raises(BadQuery, match="usd"):
            raw_events.player_money(events, INSTALLED, days=5)
        with pytest.raises(BadQuery, match="country_code"):
            raw_events.count_events(events, OVER, by="country_code")
        with pytest.raises(BadQuery, match="must order the events of one second"):
            raw_events.session_paths(events, OVER)


def flattened(held: dict[str, pa.Table]) -> pa.Table:
    """Return events of a warehouse as one table with the names of the contract."""
    design, levels = (held[f"{WAREHOUSE}.{name}_event"].to_pandas() for name in ("design", "progression"))
    parts = design[[f"event_id_{number:02d}" for number in range(1, 6)]]
    design["event_id"] = parts.apply(lambda row: ":".join(row.dropna()), axis=1)
    levels["event_id"] = levels["progression_status"] + ":" + levels["progression_1"]
    both = []
    for category, frame in (("design", design), ("progression", levels)):
        both.append(
            frame.assign(category=category).rename(columns={"event_client_ts": "ts"})[
                ["game_id", "user_id", "session_id", "category", "ts", "event_id"]
            ]
        )
    return pa.concat_tables([pa.Table.from_pandas(frame, preserve_index=False) for frame in both])


def test_a_dataset_without_described_tables_is_refused(service: BigQueryService, client: Any) -> None:
    """With what its tables lack."""
    with pytest.raises(Refused, match="no table of events that the public pages describe, such as design_event"):
        gl.open_events(client, "studio.games", shape="warehouse")
    service.tables = {f"{WAREHOUSE}.design_event": pa.table({"game_id": [1], "user_id": ["a"]})}
    with pytest.raises(Refused, match="design_event lacks event_client_ts, event_id_01"):
        gl.open_events(client, WAREHOUSE, shape="warehouse")


def test_a_statement_is_estimated_before_it_runs_and_refused_above_the_bound(
    lake: LakeClient, client: Any, service: BigQueryService
) -> None:
    """The refusal names both amounts and what to narrow; nothing was run or billed."""
    service.estimate = 61_200_000_000
    with opened(client, lake, most_bytes="20GB") as table:
        with pytest.raises(Refused, match=r"61\.2 GB of BigQuery and may read 20\.0 GB\. Say since=.*most_bytes="):
            raw_events.active_players(table, OVER)
        assert service.statements == []
        assert table.bytes_billed == 0
        service.estimate = 19_000_000_000
        raw_events.active_players(table, OVER)
        service.estimate = 61_200_000_000
        with pytest.raises(Refused, match="Ask for fewer days"):
            raw_events.active_players(table, OVER)
        with pytest.raises(Refused, match="Say since="):
            raw_events.session_paths(table, OVER)
    with opened(client, lake, unique=False) as table, pytest.raises(Refused, match="say unique=True"):
        raw_events.active_players(table, OVER)
    run = [body["configuration"] for _, path, body in service.requests if path.endswith("/jobs")]
    assert {settings["query"]["maximumBytesBilled"] for settings in run if not settings.get("dryRun")} == {
        "20000000000"
    }


def test_a_bound_of_the_users_client_holds_where_it_is_lower(lake: LakeClient, service: BigQueryService) -> None:
    """And its other settings stay."""
    settings = bigquery.QueryJobConfig(maximum_bytes_billed=30_000_000, labels={"team": "a"}, use_legacy_sql=True)
    service.estimate = 31_000_000
    with serving(service) as address:
        client = asked(address, default_query_job_config=settings)
        with opened(client, lake) as table, pytest.raises(Refused, match=r"may read 30\.0 MB"):
            raw_events.active_players(table, OVER)
        service.estimate = 29_000_000
        with opened(client, lake) as table:
            raw_events.active_players(table, OVER)
    jobs = [body["configuration"] for _, path, body in service.requests if path.endswith("/jobs")]
    assert jobs[-1]["labels"] == {"team": "a"}
    assert settings.maximum_bytes_billed == 30_000_000


def test_the_receipt_says_what_was_billed(lake: LakeClient, client: Any, service: BigQueryService) -> None:
    """By statement; frames computed from several add up."""
    service.estimate = 12_345_678
    with opened(client, lake) as table:
        counted, active = raw_events.count_events(table, OVER, every="day"), raw_events.active_players(table, OVER)
        receipts = [Receipt.of(frame.attrs) for frame in (counted, active)]
        assert [receipt.bytes_billed for receipt in receipts] == [12_345_678] * 2
        assert merge_receipts(receipts).bytes_billed == 24_691_356
        assert "12.3 MB billed" in explain(receipts[0])
        assert receipts[0].provenance.text == "studio.games.events of BigQuery, read by bigquery"
        assert table.bytes_billed == 3 * 12_345_678  # the first asked for the games


def test_only_the_days_that_are_asked_for_are_read(lake: LakeClient, client: Any) -> None:
    """By the column as it lies, so that partitions are left out; nothing before the day that is stated."""
    with opened(client, lake, since="2026-09-01") as table:
        raw_events.active_players(table, OVER, away=3)
        raw_events.session_paths(table, OVER)
        first, second, third = table.statements
        assert "`sent_at` >= TIMESTAMP('2026-09-01 00:00:00' || '+00')" in first
        assert "`sent_at` >= TIMESTAMP('2026-10-22 00:00:00' || '+00')" in second
        assert "`sent_at` >= TIMESTAMP('2026-09-01 00:00:00' || '+00')" in third


def test_first_events_are_looked_for_only_if_asked(lake: LakeClient, client: Any, service: BigQueryService) -> None:
    """They would read, and bill, the whole history."""
    with opened(client, lake, players=None) as table:
        raw_events.funnel(table, ["user"], OVER)
        ran = len(service.statements)
        with pytest.raises(BadQuery, match='players="first events"'):
            raw_events.active_players(table, OVER)
        assert len(service.statements) == ran
    with opened(client, lake, players="first events") as table:
        assert_equal(ANALYSES["active_players"](table), ANALYSES["active_players"](lake))


class Leaking(credentials.AnonymousCredentials):  # type: ignore[misc, name-defined, unused-ignore]
    """Credentials that cannot be renewed, with an error that has the key in it."""

    def before_request(self, *_: object) -> None:
        """Fail as google.auth does."""
        from google.auth.exceptions import RefreshError

        raise RefreshError("invalid_grant", {"assertion": "KEY-OF-THE-ACCOUNT"})


def test_nothing_shows_credentials(lake: LakeClient, service: BigQueryService, client: Any) -> None:
    """Neither errors nor receipts, statements or the traceback."""
    with serving(service) as address:
        leaking = bigquery.Client(project="studio", credentials=Leaking(), client_options={"api_endpoint": address})
        with pytest.raises(Refused, match="BigQuery cannot be asked, RefreshError: see whether `gcloud auth") as told:
            gl.open_events(leaking, TABLE, columns=NAMES, unique=True)
    assert "KEY-OF-THE-ACCOUNT" not in "".join(traceback.format_exception(told.value))
    service.failure = 403, "Access Denied: Project studio: User does not have bigquery.jobs.create permission"
    message = "BigQuery refuses: Access Denied: Project studio"
    with opened(client, lake) as table, pytest.raises(Refused, match=message) as told:
        raw_events.active_players(table, OVER)
    assert "127.0.0.1" not in str(told.value)


def test_a_service_that_cannot_be_reached_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Soon, and without an address or a traceback of sockets."""
    monkeypatch.setattr("gamelens.sandbox.engines.bigquery_tables._RETRY_S", 1.0)
    client = asked("http://127.0.0.1:9")
    with pytest.raises(Refused, match="BigQuery cannot be reached: ") as told:
        gl.open_events(client, TABLE)
    assert "127.0.0.1" not in str(told.value)


def test_a_statement_that_takes_too_long_is_cancelled(
    lake: LakeClient, client: Any, service: BigQueryService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its job ends, since nobody waits for the rows."""
    monkeypatch.setattr("gamelens.raw_events.open_events.QUERY_S", 0.5)
    with opened(client, lake) as table:
        service.hangs = True
        with pytest.raises(Refused, match=r"took more than 0\.5 s and was stopped"):
            raw_events.count_events(table, OVER)
    assert service.cancelled.is_set()
    assert any(path.endswith("/cancel") for _, path, _ in service.requests)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"table": None}, "table = 'None' must name a table of BigQuery"),
        ({"table": "events"}, "is no table of BigQuery: name it as project.dataset.table"),
        ({"table": 'a.b.c" UNION'}, "is no table of BigQuery"),
        ({"table": "studio.games.nothing"}, "BigQuery refuses: Not found: Table studio:games.nothing"),
        ({"shape": "lake"}, "shape = 'lake' is not a shape of tables"),
        ({"most_bytes": "lots"}, "most_bytes = 'lots' must be an amount of bytes"),
        ({"players": pa.table({"a": [1]})}, "players = .* must be the name of a table of BigQuery"),
        ({"columns": {**NAMES, "day": "nothing"}}, "which is to be day, is not a column of the table"),
        ({"columns": {**NAMES, "day": "category"}}, "has the type STRING, but day must be a date"),
    ],
)
def test_wrong_arguments_are_refused(arguments: dict[str, Any], message: str, client: Any) -> None:
    """Before a statement is run."""
    given = {"table": TABLE, "columns": NAMES, "unique": True, **arguments}
    with pytest.raises(Refused, match=message):
        gl.open_events(client, **given)


@pytest.mark.parametrize("argument", [{"table": "a.b"}, {"shape": "warehouse"}, {"most_bytes": "1GB"}])
def test_arguments_of_bigquery_are_refused_for_other_tables(argument: dict[str, Any]) -> None:
    """They would say nothing."""
    with pytest.raises(BadQuery, match="is for a client of BigQuery"):
        gl.open_events(pa.table({"a": [1]}), **argument)
