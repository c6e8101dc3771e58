"""Issue, Processing: verification recomputes days from the raw events and compares them with lake and aggregates."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from conftest import Stage, event
from gamelens.cli import cli
from gamelens.errors import Refused
from gamelens.sandbox.processing.verification import verify
from support.random_worlds import play

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("seed", range(3))
def test_what_processing_makes_of_late_batches_is_what_they_say(make_stage: Callable[..., Stage], seed: int) -> None:
    """Every day of a small world, after several runs."""
    stage = make_stage()
    arrived = play(stage, Random(50 + seed))
    verified = verify(stage.sandbox.options.state, days=1000)
    assert verified.differences == []
    assert 0 < verified.events <= sum(map(len, arrived.values()))


@pytest.mark.parametrize("table", ["events", "players", "slim", "cube", "active", "sessions", "returns"])
def test_a_row_that_is_missing_is_found(make_stage: Callable[..., Stage], table: str) -> None:
    stage = make_stage()
    play(stage, Random(60))
    path = max(stage.sandbox.lake.snapshot("acme").tables[table].values(), key=lambda it: pq.read_metadata(it).num_rows)
    pq.write_table(pq.read_table(path).slice(1), path)
    differences = verify(stage.sandbox.options.state, days=1000).differences
    assert table in {it.table for it in differences}
    assert all(it.organisation == "acme" for it in differences)


def test_a_number_that_is_wrong_is_found(stage: Stage) -> None:
    stage.submit([event()])
    stage.process()
    (path,) = stage.sandbox.lake.snapshot("acme").tables["slim"].values()
    table = pq.read_table(path)
    pq.write_table(table.set_column(table.schema.get_field_index("events"), "events", pa.array([2])), path)
    assert [str(it) for it in verify(stage.sandbox.options.state).differences] == [
        "acme: slim of 2026-11-20: 1 rows missing, 1 too many"
    ]


def test_the_command_says_what_it_looked_at_and_fails_on_a_difference(stage: Stage) -> None:
    """Issue: report differences and exit 1."""
    stage.submit([event(), event(user_id="bob")])
    stage.process()
    state = stage.sandbox.options.state
    good = CliRunner().invoke(cli, ["sandbox", "verify", "--state", str(state)])
    assert (good.exit_code, good.output) == (0, "2 events, 2 players and 1 days row by row: no difference\n")
    with sqlite3.connect(state / "gamelens.db") as store:
        store.execute("DELETE FROM batches")
    bad = CliRunner().invoke(cli, ["sandbox", "verify", "--state", str(state)])
    assert bad.exit_code == 1
    assert "acme: events of 2026-11-20: 0 rows missing, 2 too many\n" in bad.output
    assert bad.output.endswith("differences\n")


def test_where_there_is_no_sandbox_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="holds no sandbox"):
        verify(tmp_path)
