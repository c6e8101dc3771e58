"""Runs that are killed at every write to the disk: a version is there as a whole, or it is not.

`make test` kills a run of one kind, `make test-wide` one of each kind, `make bench` one at every write (KILLS=500).
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random

import pytest

from gamelens.sandbox.maintenance.verification import verify
from gamelens.sandbox.processing.compaction import FAN_IN
from gamelens.sandbox.storage.inbox import open_store
from gamelens.sandbox.storage.lake import Lake
from support.game_events import NOW, event
from support.killed_runs import kill, writes
from support.sandbox_stage import Stage

pytestmark = pytest.mark.slow
KILLS = int(os.environ.get("KILLS", "1"))


def submit(stage: Stage, random: Random, games: Sequence[str]) -> None:
    """Submit thirty events to each of *games*: late ones, repeated ones, purchases and impressions."""
    now_s = int(NOW.timestamp())
    for game_id in games:
        batch = []
        for _ in range(30):
            of_player = {
                "user_id": f"u{random.randrange(12)}",
                "session_id": f"s{random.randrange(20)}",
                "client_ts": now_s - random.randrange(9 * 86_400),
                "event_uuid": f"e{random.randrange(2000)}",
                "platform": random.choice(("ios", "android")),
            }
            if random.random() < 0.2:
                of_player |= {"category": "business", "event_id": "a:b", "amount": 99, "currency": "USD"}
                of_player |= {"transaction_num": 1}
            batch.append(event(**of_player))
        assert stage.submit(batch, game_id=game_id).status_code == 200


def events_of(state: Path) -> dict[str, int]:
    """Return the events of each organisation in the lake of *state*."""
    with contextlib.closing(open_store(state / "gamelens.db")) as store:
        lake = Lake(state / "lake", store)
        return {name: lake.snapshot(name).rows("events") for name in lake.organisations()}


def files_beside(state: Path) -> set[str]:
    """Return the files of the lake that the manifest does not list, after the clean-up of a start."""
    store = open_store(state / "gamelens.db")
    lake = Lake(state / "lake", store)
    lake.recover()
    listed = {path for (path,) in store.execute("SELECT path FROM files")}
    store.close()
    return {str(path.relative_to(lake.root)) for path in lake.root.rglob("*.*") if path.is_file()} - listed


@pytest.mark.shown_by(1)
@pytest.mark.disk
@pytest.mark.parametrize(
    ("order", "runs", "games"), [("process", 1, ("1001", "1002", "9001")), ("compact", FAN_IN, ("1001",))]
)
def test_a_run_killed_at_any_write_has_done_all_or_nothing(
    make_stage: Callable[..., Stage], tmp_path: Path, order: str, runs: int, games: Sequence[str]
) -> None:
    """The run of an organisation that is killed has all of its events or none, and the next one completes it."""
    random, stage = Random(runs), make_stage()
    for _ in range(runs):
        submit(stage, random, games)
        stage.process()
    base = stage.sandbox.options.state
    if order == "process":
        submit(stage, random, games)
    stage.sandbox.close()
    before = events_of(base)
    whole = tmp_path / "whole"
    shutil.copytree(base, whole)
    last = writes(order, whole)
    after = events_of(whole)
    for number in sorted(random.sample(range(1, last + 1), min(KILLS, last))):
        state = tmp_path / str(number)
        shutil.copytree(base, state)
        kill(order, state, before=number)
        assert all(events in (before[name], after[name]) for name, events in events_of(state).items())
        writes(order, state)
        assert events_of(state) == after
        assert verify(state).differences == []  # of all tables: what a kill had left half done would stay
        assert files_beside(state) == set()
        shutil.rmtree(state)
    print(f"\n{order}: killed at {min(KILLS, last)} of {last} writes")
