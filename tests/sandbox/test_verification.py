"""Verification, which recomputes days from the raw events and compares them with the lake."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from gamelens.cli import cli
from gamelens.errors import Refused
from gamelens.sandbox.processing.verification import verify
from support.game_events import event
from support.random_worlds import play
from support.sandbox_stage import Stage

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("seed", range(3))
def test_late_batches_leave_no_difference(make_stage: Callable[..., Stage], seed: int) -> None:
    """After several runs with late batches every table equals the raw events."""
    stage = make_stage()
    arrived = play(stage, Random(50 + seed))
    result = verify(stage.sandbox.options.state, days=1000)
    assert result.differences == []
    assert 0 < result.events <= sum(map(len, arrived.values()))


@pytest.mark.parametrize(
    "table",
    [
        *("events", "slim", "cube", "active", "returns", "installs", "payments", "impressions_shared"),
        *("daily_players", "weekly_players", "monthly_players", "sessions"),
        *("daily_players_shared", "weekly_players_shared", "monthly_players_shared", "sessions_shared"),
    ],
)
def test_a_missing_row_is_found(make_stage: Callable[..., Stage], table: str) -> None:
    """A row missing from any table is reported, with table and organisation."""
    stage = make_stage()
    play(stage, Random(60))
    path = max(stage.sandbox.lake.snapshot("acme").parts(table), key=lambda part: part.rows).path
    pq.write_table(pq.read_table(path).slice(1), path)
    differences = verify(stage.sandbox.options.state, days=1000).differences
    assert table in {difference.table for difference in differences}
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


def test_the_command_fails_on_a_difference(stage: Stage) -> None:
    """`sandbox verify` says what it compared, and exits with 1 on a difference."""
    stage.submit([event(), event(user_id="bob")])
    stage.process()
    state = stage.sandbox.options.state
    success = CliRunner().invoke(cli, ["sandbox", "verify", "--state", str(state)])
    assert (success.exit_code, success.output) == (0, "2 events, 2 players and 1 days row by row: no difference\n")
    with sqlite3.connect(state / "gamelens.db") as store:
        store.execute("DELETE FROM batches")
    failure = CliRunner().invoke(cli, ["sandbox", "verify", "--state", str(state)])
    assert failure.exit_code == 1
    assert "acme: events of 2026-11-20: 0 rows missing, 2 too many\n" in failure.output
    assert failure.output.endswith("differences\n")


def test_a_folder_without_a_sandbox_is_refused(tmp_path: Path) -> None:
    """A folder without a sandbox's state is refused."""
    with pytest.raises(Refused, match="holds no sandbox"):
        verify(tmp_path)
