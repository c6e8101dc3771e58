"""Verification, which builds the tables again from the raw events and compares them with the lake."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from gamelens.cli import cli
from gamelens.errors import Refused
from gamelens.sandbox.maintenance.verification import verify
from support.damaged_lake import flip_bit
from support.game_events import event
from support.hypothesis_profiles import tries
from support.random_worlds import play
from support.sandbox_stage import Stage

pytestmark = pytest.mark.slow


class Played(NamedTuple):
    """The state directory of a closed sandbox with a random world, and the number of events that it received."""

    state: Path
    events: int


@pytest.fixture(scope="module", params=range(60, 60 + tries(in_test=1, in_bench=30)))
def played(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Played:
    """Return each random world in turn."""
    stage = Stage(tmp_path_factory.mktemp("played") / "state")
    received = play(stage, Random(request.param), batches=tries(in_test=8, in_bench=14))
    stage.sandbox.close()
    return Played(stage.sandbox.options.state, sum(map(len, received.values())))


def test_late_batches_leave_no_difference(played: Played) -> None:
    """After several runs with late batches every table equals the raw events."""
    result = verify(played.state)
    assert result.differences == []
    assert 0 < result.events <= played.events


def test_a_late_first_event_makes_returns_of_days_that_it_does_not_meet(stage: Stage) -> None:
    """Those of a player with several cells on a day of another month, which is no install day any more."""
    september, august = (int(datetime(2026, month, 10, tzinfo=UTC).timestamp()) for month in (9, 8))
    stage.submit([event(client_ts=september), event(client_ts=september, build="1.1")])
    stage.process()
    stage.submit([event(client_ts=august)])
    stage.process()
    stage.sandbox.close()
    assert verify(stage.sandbox.options.state).differences == []


@pytest.mark.parametrize("build", ["1.0", "1.1"])
def test_a_player_of_an_earlier_run_gets_a_second_cell(stage: Stage, build: str) -> None:
    """The new run alone has one cell of the player, and with a build of its own the table beside it gets both."""
    for name in ("1.0", build):
        stage.submit([event(build=name)])
        stage.process()
    shared = stage.sandbox.lake.snapshot("acme").rows("daily_players_shared")
    stage.sandbox.close()
    assert shared == (2 if build == "1.1" else 0)
    assert verify(stage.sandbox.options.state).differences == []


@pytest.mark.shown_by(1)
@pytest.mark.parametrize(
    "tables",
    [
        ("events",),
        (
            *("slim", "cube", "active", "returns", "installs", "payments", "impressions_shared"),
            *("daily_players", "weekly_players", "monthly_players", "sessions"),
            *("daily_players_shared", "weekly_players_shared", "monthly_players_shared", "sessions_shared"),
        ),
    ],
    ids=["events", "tables"],
)
def test_a_missing_row_is_found(
    played: Played, make_stage: Callable[..., Stage], tmp_path: Path, tables: tuple[str, ...]
) -> None:
    """A row missing from any table is reported, with table and organisation."""
    shutil.copytree(played.state, tmp_path / "state")
    stage = make_stage()
    for table in tables:
        path = max(stage.sandbox.lake.snapshot("acme").parts(table), key=lambda part: part.rows).path
        pq.write_table(pq.read_table(path).slice(1), path)
    differences = verify(stage.sandbox.options.state).differences
    reported = {difference.table for difference in differences}
    assert reported >= {*tables}
    assert all(difference.organisation == "acme" for difference in differences)


def test_a_wrong_number_is_found(stage: Stage) -> None:
    """A wrong number in a table is reported as one row missing and one too many."""
    stage.submit([event()])
    stage.process()
    (path,) = stage.sandbox.lake.snapshot("acme").files("slim")
    table = pq.read_table(path)
    pq.write_table(table.set_column(table.schema.get_field_index("events"), "events", pa.array([2])), path)
    assert [str(difference) for difference in verify(stage.sandbox.options.state).differences] == [
        "acme: slim of 2026-11-20: 1 rows missing, 1 too many"
    ]


def test_a_damaged_batch_is_refused(stage: Stage) -> None:
    """A batch of the inbox that is not as it was stored makes no verdict possible, and nothing is noted."""
    stage.submit([event()])
    stage.process()
    path = stage.sandbox.options.state / "gamelens.db"
    with sqlite3.connect(path) as store:
        store.execute("UPDATE batches SET events = 7")
    with pytest.raises(Refused, match="a batch of the inbox is damaged"):
        verify(stage.sandbox.options.state)
    with sqlite3.connect(path) as store:
        assert store.execute("SELECT * FROM damaged").fetchall() == []


def test_the_command_fails_on_a_difference(stage: Stage) -> None:
    """`sandbox verify` says what it compared, and exits with 1 on a difference."""
    stage.submit([event(), event(user_id="bob")])
    stage.process()
    state = stage.sandbox.options.state
    success = CliRunner().invoke(cli, ["sandbox", "verify", "--state", str(state)])
    assert success.exit_code == 0
    assert success.output == "2 events and 2 players: no differences\n"
    with sqlite3.connect(state / "gamelens.db") as store:
        store.execute("DELETE FROM batches")
    failure = CliRunner().invoke(cli, ["sandbox", "verify", "--state", str(state)])
    assert failure.exit_code == 1
    assert "acme: events of 2026-11-20: 0 rows missing, 2 too many\n" in failure.output
    assert failure.output.endswith("differences\n")


def test_the_command_finds_damaged_files(stage: Stage) -> None:
    """`sandbox verify --files` compares files with their checksums, and names those that are damaged."""
    stage.submit([event()])
    stage.process()
    command = ["sandbox", "verify", "--files", "--state", str(stage.sandbox.options.state)]
    success = CliRunner().invoke(cli, command)
    assert success.exit_code == 0
    assert success.output.endswith(" files: none is damaged\n")
    (path,) = stage.sandbox.lake.snapshot("acme").files("slim")
    flip_bit(path, Random(1))
    failure = CliRunner().invoke(cli, command)
    assert failure.exit_code == 1
    assert f"acme: {path.relative_to(stage.sandbox.lake.root)} is damaged" in failure.output


def test_a_folder_without_a_sandbox_is_refused(tmp_path: Path) -> None:
    """A folder without a sandbox's state is refused."""
    with pytest.raises(Refused, match="holds no sandbox"):
        verify(tmp_path)
