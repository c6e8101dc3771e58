"""architecture, Decisions: Inbox in SQLite, synced, group commit; contract: a crash loses nothing acknowledged."""

from __future__ import annotations

import asyncio
import json
import random
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from conftest import Stage, event
from gamelens.sandbox.storage.inbox import Inbox, InboxBatch, StoreUnavailable, open_store, pending
from sandbox.conftest import counted, full_disk, number, send


def batch(number: int, *, size: int = 2) -> InboxBatch:
    return InboxBatch(
        organisation="acme",
        game_id="1001",
        arrival_ms=number,
        country=None,
        events=1,
        rejected=0,
        is_gzipped=False,
        body=bytes(size),
    )


def stored(path: Path) -> list[int]:
    """Arrival times of what is on disk, in the order of the inbox."""
    store = open_store(path)
    try:
        return [it.arrival_ms for it in pending(store, after=0, up_to=10**9)]
    finally:
        store.close()


def test_batches_that_wait_together_keep_their_order(state: Path) -> None:
    """architecture: group commit, one writer thread."""

    async def commit_many(inbox: Inbox) -> None:
        await asyncio.gather(*(inbox.commit(batch(number)) for number in range(200)))

    inbox = Inbox(state / "gamelens.db")
    asyncio.run(commit_many(inbox))
    inbox.close()
    assert stored(state / "gamelens.db") == list(range(200))


def test_what_is_acknowledged_is_on_disk_already(stage: Stage, tmp_path: Path) -> None:
    """contract: sent only after its good events are on disk. The copy is what a crash would leave."""
    copy = tmp_path / "copy"
    copy.mkdir()
    for count in (1, 2, 3):
        assert stage.submit([event()]).status_code == 200
        for file in stage.sandbox.options.state.glob("gamelens.db*"):
            shutil.copy(file, copy)
        assert len(stored(copy / "gamelens.db")) == count


def test_every_commit_is_synced(state: Path) -> None:
    """architecture: WAL, synchronous=FULL."""
    store = open_store(state / "gamelens.db")
    settings = [store.execute(f"PRAGMA {name}").fetchone()[0] for name in ("journal_mode", "synchronous")]
    store.close()
    assert settings == ["wal", 2]


def test_what_is_queued_is_committed_before_the_inbox_closes(state: Path) -> None:
    async def leave(inbox: Inbox) -> None:
        waiting = [asyncio.ensure_future(inbox.commit(batch(number))) for number in range(20)]
        await asyncio.sleep(0)
        for it in waiting:
            it.cancel()

    inbox = Inbox(state / "gamelens.db")
    asyncio.run(leave(inbox))
    inbox.close()
    assert stored(state / "gamelens.db") == list(range(20))


def test_a_caller_whose_loop_is_gone_stops_nobody(state: Path) -> None:
    """One writer thread serves everybody for as long as the sandbox runs."""
    inbox = Inbox(state / "gamelens.db")
    for place in range(20):
        loop = asyncio.new_event_loop()
        waiting = loop.create_task(inbox.commit(batch(place, size=100_000)))
        loop.run_until_complete(asyncio.sleep(0))
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            loop.run_until_complete(waiting)
        loop.close()
    asyncio.run(inbox.commit(batch(20)))
    inbox.close()
    assert stored(state / "gamelens.db") == list(range(21))


def test_a_failed_commit_is_told_and_leaves_nothing(state: Path) -> None:
    """architecture: a failed commit is answered 503."""
    inbox = Inbox(state / "gamelens.db")
    with full_disk(at_bytes=500_000), pytest.raises(StoreUnavailable):
        asyncio.run(inbox.commit(batch(1, size=2_000_000)))
    assert inbox.trouble
    inbox.close()
    assert stored(state / "gamelens.db") == []


class Disk:
    """A disk with as much room as a test says."""

    def __init__(self, free_bytes: int) -> None:
        self.free_bytes = free_bytes

    def free(self, path: Path) -> int:
        return self.free_bytes


def test_a_full_disk_is_noticed_before_it_is_full(state: Path) -> None:
    disk = Disk(1000)
    inbox = Inbox(state / "gamelens.db", reserved_bytes=900, free=disk.free)
    asyncio.run(inbox.commit(batch(1, size=100)))
    with pytest.raises(StoreUnavailable):
        asyncio.run(inbox.commit(batch(2, size=101)))
    assert inbox.trouble
    inbox.close()
    assert stored(state / "gamelens.db") == [1]


def test_trouble_passes_by_itself(state: Path) -> None:
    """contract, Control surface: health is 200 again when the store commits, whether somebody sends or not."""
    disk = Disk(0)
    inbox = Inbox(state / "gamelens.db", reserved_bytes=900, free=disk.free, probe_s=0.01)
    with pytest.raises(StoreUnavailable):
        asyncio.run(inbox.commit(batch(1)))
    disk.free_bytes = 10_000
    deadline = time.monotonic() + 10
    while inbox.trouble:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    inbox.close()
    assert stored(state / "gamelens.db") == []


def test_no_more_waits_for_the_disk_than_may(state: Path) -> None:
    """Bounded queue: what comes too much is refused at once, and the rest is stored."""

    async def commit_many(inbox: Inbox) -> list[BaseException | None]:
        commits = (inbox.commit(batch(number, size=1000)) for number in range(50))
        return await asyncio.gather(*commits, return_exceptions=True)

    inbox = Inbox(state / "gamelens.db", queued_bytes=10_000)
    outcomes = asyncio.run(commit_many(inbox))
    asyncio.run(inbox.commit(batch(50, size=1000)))
    inbox.close()
    refused = [number for number, outcome in enumerate(outcomes) if isinstance(outcome, StoreUnavailable)]
    assert refused
    assert sorted(stored(state / "gamelens.db") + refused) == list(range(51))


def test_one_organisation_s_batches_may_be_asked_for(stage: Stage) -> None:
    """In their order, and nobody else's."""
    for game_id in ("1001", "9001", "2001", "9001"):
        stage.submit([event()], game_id=game_id)
    found = {
        name: [it.game_id for it in pending(stage.sandbox.store, after=0, up_to=10**9, organisation=name)]
        for name in ("acme", "rival", "nobody", None)
    }
    assert found == {
        "acme": ["1001", "2001"],
        "rival": ["9001"] * 2,
        "nobody": [],
        None: ["1001", "9001", "2001", "9001"],
    }


def test_a_disk_that_is_nearly_full_is_503_and_unhealthy(make_stage: Callable[..., Stage]) -> None:
    """architecture: a failed commit is answered 503."""
    stage = make_stage(reserved_bytes=1 << 60)
    answer = stage.submit([event()])
    assert (answer.status_code, int(answer.headers["retry-after"]) > 0) == (503, True)
    assert "left free" in str(stage.sandbox.unhealthy_because())


def large_event() -> dict[str, Any]:
    """An event that hardly packs, and yet is held in memory until the store takes it."""
    return event(x=random.Random(1).randbytes(25_000).hex())


def test_a_full_disk_is_503_and_nothing_is_stored(stage: Stage) -> None:
    """architecture: a failed commit is answered 503 and the service stops accepting until it works again."""
    stage.submit([event()])
    before = counted(stage)
    with full_disk(at_bytes=20_000):
        answer = stage.submit([large_event()])
    assert (answer.status_code, set(answer.json())) == (503, {"message"})
    assert int(answer.headers["retry-after"]) > 0
    assert counted(stage) == before


def test_a_sandbox_that_cannot_commit_is_not_healthy_until_it_can(stage: Stage) -> None:
    """contract, Control surface: health, 503 with the reason."""
    with full_disk(at_bytes=20_000):
        stage.submit([large_event()])
        assert "the store does not commit" in str(stage.sandbox.unhealthy_because())
    assert stage.submit([large_event()]).status_code == 200
    assert stage.sandbox.unhealthy_because() is None


def test_what_was_refused_by_a_full_disk_may_be_sent_again(stage: Stage) -> None:
    """contract, Collector: nothing was stored: send it again."""
    with full_disk(at_bytes=20_000):
        stage.submit([large_event()])
    stage.submit([large_event()])
    stage.process()
    assert number(stage) == 1


def test_requests_at_once_are_each_stored_once(stage: Stage) -> None:
    """architecture: group commit."""
    game = stage.game("1001")

    async def submit_many() -> list[Any]:
        bodies = [json.dumps([event(user_id=f"u{number}")]).encode() for number in range(40)]
        from gamelens.wire.signing import sign

        return await asyncio.gather(
            *(
                send(
                    stage.sandbox.collector,
                    "POST",
                    f"/v2/{game.game_key}/events",
                    content=body,
                    headers={"Authorization": sign(body, secret_key=game.secret_key)},
                )
                for body in bodies
            )
        )

    assert {answer.status_code for answer in asyncio.run(submit_many())} == {200}
    stage.process()
    assert number(stage, "user_unique") == 40
