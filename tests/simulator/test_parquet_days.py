"""Days written as Parquet: the events, answers and bytes that sending the batches gives."""

from __future__ import annotations

import contextlib
import gzip
import shutil
from collections.abc import Callable, Iterable, Iterator
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gamelens.catalog import METRICS
from gamelens.errors import BadQuery, Refused
from gamelens.sandbox.maintenance.verification import verify
from gamelens.sandbox.server import open_bulk_load
from gamelens.sandbox.state.clock import Clock
from gamelens.sandbox.storage.lake_schema import EVENT_COLUMNS
from gamelens.simulator import Ledger, RequestBatch, load_scenario, play, play_columns
from gamelens.simulator.output.parquet_days import SCHEMA, UNFILLED
from gamelens.wire.signing import sign
from support.game_events import NOW
from support.sandbox_stage import Stage

pytestmark = pytest.mark.slow

ENDS_ON = date(2026, 11, 20)
GAME_IDS = ["1001", "1002", "2001"]
SPAN = "2026-10-21/2026-11-20"
PLAIN = pa.schema(
    {field.name: field.type.value_type if pa.types.is_dictionary(field.type) else field.type for field in SCHEMA}
)
SCENARIO = load_scenario("small", players=250, days=30)


def frozen_clock() -> Clock:
    clock = Clock()
    clock.freeze(NOW)
    return clock


@pytest.fixture(scope="module")
def sent(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """Return a sandbox that received and processed every batch of the scenario."""
    stage = Stage(tmp_path_factory.mktemp("sent") / "state")
    for batch in play(SCENARIO, ends_on=ENDS_ON, game_ids=GAME_IDS):
        submit(stage, batch)
    stage.process()
    yield stage
    stage.sandbox.close()


class Written(NamedTuple):
    """A state directory whose lake the scenario was written to, to be copied, and the available intervals."""

    state: Path
    available: dict[str, str]


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Written:
    """Write the scenario to a lake."""
    state = tmp_path_factory.mktemp("template") / "state"
    return Written(state, write_small(state))


@pytest.fixture(scope="module")
def written(template: Written, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """Return a sandbox whose lake the same scenario was written to."""
    stage = Stage(shutil.copytree(template.state, tmp_path_factory.mktemp("written") / "state"))
    yield stage
    stage.sandbox.close()


def write_small(state: Path) -> dict[str, str]:
    """Write the scenario to the lake of a new sandbox and return the available intervals."""
    Stage(state).sandbox.close()  # which gives it its games
    with open_bulk_load(state, clock=frozen_clock()) as lake:
        return lake.take(play_columns(SCENARIO, lake.folder, ends_on=ENDS_ON, game_ids=lake.game_ids))


def rows(stage: Stage) -> pa.Table:
    """Return every event in the lake in the order received, without the sequence number and the time of arrival."""
    days = [pq.read_table(path) for path in stage.sandbox.lake.snapshot("acme").files("events")]
    return (
        pa.concat_tables([day.cast(PLAIN) for day in days])
        .sort_by([("day", "ascending"), ("seq", "ascending")])
        .drop_columns(["seq", "arrived_at"])
    )


def submit(stage: Stage, batch: RequestBatch) -> None:
    game, body = stage.game(batch.game_id), gzip.compress(batch.body, 1)
    headers = {"Authorization": sign(body, secret_key=game.secret_key), "Content-Encoding": "gzip"}
    assert stage.post(f"/v2/{game.game_key}/events", body, headers).status_code == 200


def written_bytes(folder: Path, **given: Any) -> dict[date, bytes]:
    """Return the bytes of each written day of a small scenario."""
    folder.mkdir()
    scenario = load_scenario("small", players=1300, days=3)
    written = play_columns(scenario, folder, ends_on=ENDS_ON, **given)
    return {day: b"".join(path.read_bytes() for path in paths) for day, paths in written.items()}


def test_columns_are_those_of_a_lake() -> None:
    """Names and types equal those of the sandbox."""
    kinds = {"BIGINT": pa.int64(), "TIMESTAMP": pa.timestamp("us"), "DATE": pa.date32(), "VARCHAR": pa.string()}
    assert pa.schema({name: kinds[kind] for name, kind in EVENT_COLUMNS.items()}).equals(PLAIN)


def test_files_have_the_types_of_a_lake(written: Stage) -> None:
    """Written files hold plain strings, no Arrow dictionaries, so any engine can read them."""
    path = written.sandbox.lake.snapshot("acme").files("events")[0]
    assert {str(kind) for kind in pq.read_schema(path).types} == {"int64", "timestamp[us]", "date32[day]", "string"}


def test_columns_without_values_are_listed(written: Stage) -> None:
    """A dimension that the simulation gives no event a value of would look like one that players do not have."""
    days = pa.concat_tables([pq.read_table(path) for path in written.sandbox.lake.snapshot("acme").files("events")])
    assert {name for name in days.column_names if days[name].null_count == days.num_rows} == {*UNFILLED}


def test_the_lake_has_the_events_that_are_sent(sent: Stage, written: Stage) -> None:
    """A written lake equals a received one, row by row and in the same order."""
    assert rows(sent).num_rows > 9_000
    assert rows(written).equals(rows(sent))


@pytest.mark.shown_by(4)
@pytest.mark.parametrize("name", METRICS)
def test_every_metric_is_the_same(sent: Stage, written: Stage, name: str) -> None:
    """Every metric of a written lake equals the metric of a received one, as JSON."""
    kinds = METRICS[name].kinds
    bodies: dict[str, dict[str, Any]] = {
        "plain": {"granularity": "day", "query": {"type": "split", "dimensions": ["country_code", "first_build"]}},
        "per game": {"granularity": "day", "split_by": "platform"},
        "retention": {"granularity": "day", "split_by": "platform", "since_days_ago": 1},
    }
    answers = [stage.ask(name, interval=SPAN, **bodies[kinds]) for stage in (sent, written)]
    assert [answer.status_code for answer in answers] == [200, 200]
    assert answers[0].json() == answers[1].json()
    assert answers[0].json()["result"]


def test_written_days_are_in_the_available_interval(template: Written) -> None:
    """Written days are available from the first one on (Wire 2.4, Available interval)."""
    assert template.available["acme"] == "2026-10-21T00:00Z/2026-11-20T10:00Z"


def test_events_received_later_are_added(template: Written, tmp_path: Path, make_stage: Callable[..., Stage]) -> None:
    """Events received after writing are added to the written ones."""
    shutil.copytree(template.state, tmp_path / "state")
    stage = make_stage()
    stage.process()
    before = rows(stage)
    batch = next(play(load_scenario("small", players=5, days=3, seed=9), ends_on=ENDS_ON, game_ids=GAME_IDS))
    submit(stage, batch)
    stage.process()
    assert rows(stage).num_rows == before.num_rows + batch.events


def test_an_event_that_was_written_is_not_received_again(
    template: Written, tmp_path: Path, make_stage: Callable[..., Stage]
) -> None:
    """A received copy of a written event is dropped (Wire 4.8, Repeated events)."""
    shutil.copytree(template.state, tmp_path / "state")
    stage = make_stage()
    before = rows(stage)
    submit(stage, next(play(SCENARIO, ends_on=ENDS_ON, game_ids=GAME_IDS)))
    stage.process()
    assert rows(stage).equals(before)


def test_days_written_and_later_ones_sent_make_the_same_lake(sent: Stage, tmp_path: Path) -> None:
    """Columns before a day and requests from it on have each event once."""
    state, day = tmp_path / "state", 27
    Stage(state).sandbox.close()  # which gives it its games
    with open_bulk_load(state, clock=frozen_clock()) as lake:
        lake.take(play_columns(SCENARIO, lake.folder, ends_on=ENDS_ON, game_ids=lake.game_ids, before_day=day))
    stage = Stage(state)
    with contextlib.closing(stage.sandbox):
        for batch in play(SCENARIO, ends_on=ENDS_ON, game_ids=GAME_IDS, from_day=day):
            submit(stage, batch)
        stage.process()
        assert rows(stage).equals(rows(sent))


def test_days_of_a_dirty_scenario_are_not_left_out() -> None:
    """Its events arrive on other days than they happen."""
    with pytest.raises(BadQuery, match="must be 0"):
        play(load_scenario("dirty"), from_day=3)


def test_a_lake_that_was_written_cannot_be_verified(written: Stage) -> None:
    """`verify` raises `Refused`: there are no raw events to compare the lake with."""
    with pytest.raises(Refused, match="was written directly"):
        verify(written.sandbox.options.state)


def test_a_sandbox_with_events_is_not_written_to(template: Written, tmp_path: Path) -> None:
    """Writing to a lake that has events raises `Refused`."""
    shutil.copytree(template.state, tmp_path / "state")
    with pytest.raises(Refused, match="already has events"):
        write_small(tmp_path / "state")


def test_a_running_sandbox_is_not_written_to(stage: Stage) -> None:
    """Writing while a sandbox holds the state directory raises `Refused`."""
    with pytest.raises(Refused, match="running sandbox"), open_bulk_load(stage.sandbox.options.state):
        raise AssertionError("two processes hold the state directory")


@pytest.mark.wide
def test_same_seed_same_files_with_any_number_of_workers(tmp_path: Path) -> None:
    """The same seed gives the same bytes in every file, also with two workers."""
    assert written_bytes(tmp_path / "one") == written_bytes(tmp_path / "two", workers=2)


def test_the_ledger_of_columns_is_that_of_bodies(tmp_path: Path) -> None:
    """`play_columns` and `play` record the same ledger, byte for byte equal as a table."""
    ledgers = Ledger(), Ledger()
    scenario = load_scenario("small", players=60, days=5)
    play_columns(scenario, tmp_path, ends_on=ENDS_ON, ledger=ledgers[0])
    assert list(play(scenario, ends_on=ENDS_ON, ledger=ledgers[1]))
    assert ledgers[0].summary() == ledgers[1].summary()
    for ledger, name in zip(ledgers, ("one", "two"), strict=True):
        ledger.write(tmp_path / name)
    assert pq.read_table(tmp_path / "one").equals(pq.read_table(tmp_path / "two"))


def table(paths: Iterable[Path]) -> pa.Table:
    """Return the rows of several Parquet files as one table."""
    return pa.concat_tables([pq.read_table(path) for path in paths])


@pytest.mark.wide
def test_the_chapter_size_changes_only_the_row_groups(tmp_path: Path) -> None:
    """Smaller chapters give more row groups in one file a day, with equal rows in equal order."""
    scenario = load_scenario("small", players=2000, days=3)
    folders = [tmp_path / "one", tmp_path / "several"]
    for folder in folders:
        folder.mkdir()
    whole, cut = (
        play_columns(scenario, folder, ends_on=ENDS_ON, row_group_events=events)
        for folder, events in zip(folders, (10**6, 1), strict=True)
    )
    assert whole.keys() == cut.keys()
    for day, paths in cut.items():
        assert table(paths).equals(table(whole[day]))
        assert len(paths) == 1 < pq.read_metadata(paths[0]).num_row_groups


def test_days_that_share_a_file_are_its_row_groups(tmp_path: Path) -> None:
    """Rows and their order stay; a file has the days from its first one on, the last file the rest."""
    scenario = load_scenario("small", players=400, days=7)
    folders = [tmp_path / "apart", tmp_path / "shared"]
    for folder in folders:
        folder.mkdir()
    apart, shared = (
        play_columns(scenario, folder, ends_on=ENDS_ON, days_a_file=days)
        for folder, days in zip(folders, (1, 3), strict=True)
    )
    days = sorted(apart)
    assert sorted(shared) == days[::3]
    for place, first in enumerate(days[::3]):
        inside = days[3 * place : 3 * place + 3]
        assert table(shared[first]).equals(table(path for day in inside for path in apart[day]))
        (path,) = shared[first]
        assert pq.read_metadata(path).num_row_groups == len(inside)


@pytest.mark.wide
def test_more_days_than_may_be_open_are_in_several_files_each(tmp_path: Path) -> None:
    """With more days than files may be open, a day has one file per chapter, none lost."""
    counts: list[int] = []
    scenario = load_scenario("small", players=60, days=520)
    written = play_columns(scenario, tmp_path, ends_on=ENDS_ON, row_group_events=1, on_events=counts.append)
    assert max(map(len, written.values())) == len(counts)
    assert sum(table(paths).num_rows for paths in written.values()) == sum(counts)
    assert all(table(paths)["day"].unique().to_pylist() == [day] for day, paths in written.items())


def test_fewer_game_ids_than_games_are_refused(tmp_path: Path) -> None:
    """`play_columns` raises `BadQuery` if it gets fewer game ids than games."""
    with pytest.raises(BadQuery, match="game_ids"):
        play_columns(SCENARIO, tmp_path, game_ids=["1001"])
