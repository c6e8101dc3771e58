"""The inbox: accepted events on disk, synced before they are acknowledged."""

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

from gamelens.sandbox.storage.inbox import Inbox, InboxBatch, StoreUnavailable, open_store, pending
from gamelens.wire.signing import sign
from support.app_requests import send
from support.full_disk import full_disk
from support.game_events import event
from support.sandbox_stage import Stage, event_counts, metric_value


def batch(number: int, *, size: int = 2) -> InboxBatch:
    """Return batch *number*, with a body of *size* bytes."""
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


def stored_arrivals(path: Path) -> list[int]:
    """Return the arrival times of the batches on disk, in the order of the inbox."""
    store = open_store(path)
    try:
        return [stored.arrival_ms for stored in pending(store, after=0, up_to=10**9)]
    finally:
        store.close()


def test_batches_that_wait_together_keep_their_order(state: Path) -> None:
    """Batches that are committed together keep the order of their commits."""

    async def commit_many(inbox: Inbox) -> None:
        await asyncio.gather(*(inbox.commit(batch(number)) for number in range(200)))

    inbox = Inbox(state / "gamelens.db")
    asyncio.run(commit_many(inbox))
    inbox.close()
    assert stored_arrivals(state / "gamelens.db") == list(range(200))


def test_acknowledged_events_are_on_disk(stage: Stage, tmp_path: Path) -> None:
    """A copy of the store after each 200 holds every event acknowledged so far.

    Wire 1.7, Submitting events.
    """
    copy = tmp_path / "copy"
    copy.mkdir()
    for count in (1, 2, 3):
        assert stage.submit([event()]).status_code == 200
        for file in stage.sandbox.options.state.glob("gamelens.db*"):
            shutil.copy(file, copy)
        assert len(stored_arrivals(copy / "gamelens.db")) == count


def test_every_commit_is_synced(state: Path) -> None:
    """The store is in WAL mode and syncs every commit to disk (Wire 1.7, Submitting events)."""
    store = open_store(state / "gamelens.db")
    settings = [store.execute(f"PRAGMA {name}").fetchone()[0] for name in ("journal_mode", "synchronous")]
    store.close()
    assert settings == ["wal", 2]


def test_queued_batches_are_committed_before_the_inbox_closes(state: Path) -> None:
    """Batches whose callers were cancelled are still committed before the inbox closes."""

    async def cancel_all(inbox: Inbox) -> None:
        waiting = [asyncio.ensure_future(inbox.commit(batch(number))) for number in range(20)]
        await asyncio.sleep(0)
        for task in waiting:
            task.cancel()

    inbox = Inbox(state / "gamelens.db")
    asyncio.run(cancel_all(inbox))
    inbox.close()
    assert stored_arrivals(state / "gamelens.db") == list(range(20))


def test_a_caller_whose_loop_is_closed_does_not_stop_the_writer(state: Path) -> None:
    """The writer thread goes on when the event loop of a caller is closed."""
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
    assert stored_arrivals(state / "gamelens.db") == list(range(21))


def test_a_failed_commit_raises_and_stores_nothing(state: Path) -> None:
    """A commit that fails on a full disk raises `StoreUnavailable` and stores nothing."""
    inbox = Inbox(state / "gamelens.db")
    with full_disk(at_bytes=500_000), pytest.raises(StoreUnavailable):
        asyncio.run(inbox.commit(batch(1, size=2_000_000)))
    assert inbox.trouble
    inbox.close()
    assert stored_arrivals(state / "gamelens.db") == []


class FakeDisk:
    """A disk whose free space a test sets."""

    def __init__(self, free_bytes: int) -> None:
        self.free_bytes = free_bytes

    def free(self, path: Path) -> int:
        """Return the free bytes that the test has set."""
        return self.free_bytes


def test_reserved_space_is_kept_free(state: Path) -> None:
    """A batch that would use reserved space is refused, and a smaller one is stored."""
    disk = FakeDisk(1000)
    inbox = Inbox(state / "gamelens.db", reserved_bytes=900, free=disk.free)
    asyncio.run(inbox.commit(batch(1, size=100)))
    with pytest.raises(StoreUnavailable):
        asyncio.run(inbox.commit(batch(2, size=101)))
    assert inbox.trouble
    inbox.close()
    assert stored_arrivals(state / "gamelens.db") == [1]


def test_the_inbox_recovers_without_a_new_batch(state: Path) -> None:
    """After a full disk the inbox is healthy again by itself, and stores no probe.

    Wire 5.1, Control API.
    """
    disk = FakeDisk(0)
    inbox = Inbox(state / "gamelens.db", reserved_bytes=900, free=disk.free, retry_s=0.01)
    with pytest.raises(StoreUnavailable):
        asyncio.run(inbox.commit(batch(1)))
    disk.free_bytes = 10_000
    deadline = time.monotonic() + 10
    while inbox.trouble:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    inbox.close()
    assert stored_arrivals(state / "gamelens.db") == []


def test_the_queue_of_batches_is_bounded(state: Path) -> None:
    """Batches beyond the queue's bytes are refused at once, and the rest is stored."""

    async def commit_many(inbox: Inbox) -> list[BaseException | None]:
        commits = (inbox.commit(batch(number, size=1000)) for number in range(50))
        return await asyncio.gather(*commits, return_exceptions=True)

    inbox = Inbox(state / "gamelens.db", queued_bytes=10_000)
    outcomes = asyncio.run(commit_many(inbox))
    asyncio.run(inbox.commit(batch(50, size=1000)))
    inbox.close()
    refused = [number for number, outcome in enumerate(outcomes) if isinstance(outcome, StoreUnavailable)]
    assert refused
    assert sorted(stored_arrivals(state / "gamelens.db") + refused) == list(range(51))


def test_batches_of_one_organisation_are_selected(stage: Stage) -> None:
    """Pending batches of one organisation come in order, without those of others."""
    for game_id in ("1001", "9001", "2001", "9001"):
        stage.submit([event()], game_id=game_id)
    game_ids = {
        name: [stored.game_id for stored in pending(stage.sandbox.store, after=0, up_to=10**9, organisation=name)]
        for name in ("acme", "rival", "nobody", None)
    }
    assert game_ids == {
        "acme": ["1001", "2001"],
        "rival": ["9001"] * 2,
        "nobody": [],
        None: ["1001", "9001", "2001", "9001"],
    }


def test_a_disk_that_is_nearly_full_is_503_and_unhealthy(make_stage: Callable[..., Stage]) -> None:
    """A nearly full disk gets 503 with Retry-After, and a reason in the health.

    Wire 1.10, Collector statuses; Wire 5.1, Control API.
    """
    stage = make_stage(keep_free=1 << 40)
    answer = stage.submit([event()])
    assert (answer.status_code, int(answer.headers["retry-after"]) > 0) == (503, True)
    assert "left free" in str(stage.sandbox.unhealthy_because())


def large_event() -> dict[str, Any]:
    """Return an event that hardly compresses, larger than the full disk has room for."""
    return event(x=random.Random(1).randbytes(25_000).hex())


def test_a_full_disk_is_503_and_nothing_is_stored(stage: Stage) -> None:
    """A batch that a full disk has no room for gets 503 and is not counted.

    Wire 1.10, Collector statuses.
    """
    stage.submit([event()])
    before = event_counts(stage)
    with full_disk(at_bytes=20_000):
        answer = stage.submit([large_event()])
    assert (answer.status_code, set(answer.json())) == (503, {"message"})
    assert int(answer.headers["retry-after"]) > 0
    assert event_counts(stage) == before


def test_a_sandbox_that_cannot_commit_is_not_healthy_until_it_can(stage: Stage) -> None:
    """The health has a reason from a failed commit until the next success.

    Wire 5.1, Control API.
    """
    with full_disk(at_bytes=20_000):
        stage.submit([large_event()])
        assert "the store cannot commit" in str(stage.sandbox.unhealthy_because())
    assert stage.submit([large_event()]).status_code == 200
    assert stage.sandbox.unhealthy_because() is None


def test_a_batch_refused_by_a_full_disk_may_be_sent_again(stage: Stage) -> None:
    """A batch that got 503 is stored once when it is sent again.

    Wire 1.10, Collector statuses.
    """
    with full_disk(at_bytes=20_000):
        stage.submit([large_event()])
    stage.submit([large_event()])
    stage.process()
    assert metric_value(stage) == 1


def test_concurrent_requests_are_each_stored_once(stage: Stage) -> None:
    """40 concurrent batches get 200 and are each stored once (Wire 1.7, Submitting events)."""
    game = stage.game("1001")

    async def submit_many() -> list[Any]:
        bodies = [json.dumps([event(user_id=f"u{number}")]).encode() for number in range(40)]
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
    assert metric_value(stage, "user_unique") == 40
