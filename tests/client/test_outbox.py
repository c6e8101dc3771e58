"""The queue of events: its order, its batches, its bound and its file."""

from __future__ import annotations

import sqlite3
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gamelens.client.events.outbox import BATCH_BYTES, BATCH_EVENTS, BatchKey, Outbox, as_array
from gamelens.client.events.outbox_file import OutboxFile
from gamelens.errors import BadQuery
from gamelens.wire.limits import BODY_BYTES
from gamelens.wire.remote_config import InitAnswer

ANN = BatchKey("ann", None)
ANSWER = InitAnswer(server_ts=1, configs=[], configs_hash="abc", ab_id="exp1", ab_variant_id="fast")


def outbox(path: Path | None = None, *, game_key: str = "a" * 32, **options: Any) -> Outbox:
    """Return an outbox in the file *path*, or in memory."""
    return Outbox(OutboxFile(path, game_key=game_key), **options)


def with_sessions(*names: str, user_id: str = "ann", **options: Any) -> Outbox:
    """Return an outbox in memory with an open session for each of *names*."""
    queue = outbox(**options)
    for name in names:
        queue.open_session(name, user_id, {}, now_s=0)
    return queue


def bodies(queue: Outbox, bucket: BatchKey = ANN) -> list[bytes]:
    """Return the bodies of the next batch of *bucket*."""
    return [event.body for event in queue.batch(bucket)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return the path of a queue file."""
    return tmp_path / "events.sqlite"


@pytest.fixture
def opened(path: Path) -> Iterator[Outbox]:
    """Return an outbox that is open in the file *path*."""
    queue = outbox(path)
    yield queue
    queue.file.close()


def test_events_leave_in_the_order_they_were_added() -> None:
    """A batch has events of all sessions in the order they were added."""
    queue = with_sessions("s1", "s2")
    for name, body in [("s1", b"1"), ("s2", b"2"), ("s1", b"3")]:
        queue.add(name, body, now_s=0)
    assert bodies(queue) == [b"1", b"2", b"3"]


def test_settled_events_leave_the_queue_and_are_counted() -> None:
    """A settled batch leaves the queue, counted as collected or rejected."""
    queue = with_sessions("s1")
    for body in (b"1", b"2", b"3"):
        queue.add("s1", body, now_s=0)
    queue.remove_batch(queue.batch(ANN), rejected=1)
    assert (queue.waiting(), queue.counts()) == (0, {"collected": 2, "rejected": 1})


def test_a_batch_holds_as_many_events_as_the_official_clients_send() -> None:
    """A batch holds at most 500 events (Wire 1.15, Client queue)."""
    queue = with_sessions("s1")
    for _ in range(BATCH_EVENTS + 1):
        queue.add("s1", b"{}", now_s=0)
    assert len(queue.batch(ANN)) == 500


def test_a_batch_is_under_1_mb_even_unzipped() -> None:
    """A batch stays under 1 MB even before gzip (Wire 1.6, Body limits)."""
    queue = with_sessions("s1")
    for _ in range(20):
        queue.add("s1", b"x" * 100_000, now_s=0)
    assert BODY_BYTES - 200_000 < len(as_array(queue.batch(ANN))) < BODY_BYTES


def test_the_largest_allowed_event_fits_into_a_request() -> None:
    """A batch with one event of the maximum size stays under 1 MB."""
    queue = with_sessions("s1")
    queue.add("s1", b"x" * BATCH_BYTES, now_s=0)
    assert len(as_array(queue.batch(ANN))) < BODY_BYTES


def test_each_user_at_each_address_has_batches_of_its_own() -> None:
    """All events of a request have one user and one IP (Wire 1.16, Submitting for players)."""
    queue = outbox()
    for number, (user_id, ip) in enumerate([("ann", "192.0.2.1"), ("bob", "192.0.2.1"), ("ann", "192.0.2.2")]):
        queue.open_session(str(number), user_id, {}, now_s=0, forwarded_for=ip)
        queue.add(str(number), b"%d" % number, now_s=0)
    assert [bodies(queue, bucket) for bucket in queue.batch_keys()] == [[b"0"], [b"1"], [b"2"]]


def test_a_full_queue_deletes_the_oldest_session_whole() -> None:
    """A full queue deletes all events of the oldest session (Wire 1.15, Client queue)."""
    queue = with_sessions("old", "new", cap_bytes=30)
    for name, body in [("old", b"a" * 10), ("new", b"b" * 10), ("old", b"c" * 10)]:
        queue.add(name, body, now_s=0)
    assert queue.add("new", b"d", now_s=0)
    assert bodies(queue) == [b"b" * 10, b"d"]


def test_events_deleted_from_a_full_queue_are_counted() -> None:
    """Events deleted from a full queue are counted as "cache full"."""
    queue = with_sessions("old", "new", cap_bytes=20)
    queue.add("old", b"a" * 10, now_s=0)
    queue.add("old", b"a" * 10, now_s=0)
    queue.add("new", b"b", now_s=0)
    assert queue.counts() == {"cache full": 2}


def test_only_as_many_sessions_are_deleted_as_needed() -> None:
    """A full queue deletes no more sessions than needed for the new event."""
    queue = with_sessions("oldest", "older", "new", cap_bytes=20)
    for name in ("oldest", "older", "new"):
        queue.add(name, b"x" * 10, now_s=0)
    assert len(bodies(queue)) == 2


def test_an_older_session_never_deletes_events_of_a_newer_one() -> None:
    """The oldest sessions go first, so an event of an old one finds no room (Wire 1.15, Client queue)."""
    queue = with_sessions("old", "new", cap_bytes=90)
    for _ in range(9):
        queue.add("new", b"n" * 10, now_s=0)
    assert not queue.add("old", b"o", now_s=0)
    assert (bodies(queue), queue.counts()) == ([b"n" * 10] * 9, {"cache full": 1})


def test_the_end_of_an_older_session_deletes_no_event_of_a_newer_one() -> None:
    """A `session_end` is queued in any case, beside the newer session."""
    queue = with_sessions("old", "new", cap_bytes=90)
    for _ in range(9):
        queue.add("new", b"n" * 10, now_s=0)
    queue.end_session("old", b"end")
    assert (queue.waiting(), queue.counts()) == (10, {})


def test_the_oldest_session_is_the_one_that_started_first() -> None:
    """The start of a session decides, not its oldest event in the queue."""
    queue = with_sessions("oldest", "older", "new", cap_bytes=20)
    for name, body in [("older", b"2" * 10), ("oldest", b"1" * 10), ("new", b"3" * 10)]:
        queue.add(name, body, now_s=0)
    assert bodies(queue) == [b"2" * 10, b"3" * 10]


def test_a_session_that_fills_the_queue_alone_takes_no_more_events() -> None:
    """A session that fills the queue alone refuses more events and counts them."""
    queue = with_sessions("s1", cap_bytes=10)
    queue.add("s1", b"x" * 10, now_s=0)
    assert not queue.add("s1", b"y", now_s=0)
    assert (bodies(queue), queue.counts()) == ([b"x" * 10], {"cache full": 1})


def test_a_full_queue_still_takes_vital_events() -> None:
    """`user`, `business` and `session_end` ignore the bound (Wire 1.15, Client queue)."""
    queue = with_sessions("s1", cap_bytes=1)
    assert queue.add("s1", b"purchase", now_s=0, is_vital=True)
    queue.end_session("s1", b"end")
    assert bodies(queue) == [b"purchase", b"end"]


def test_a_deleted_event_that_was_collected_counts_as_collected() -> None:
    """An event deleted while its request is under way counts as collected if it is accepted."""
    queue = with_sessions("old", "new", cap_bytes=10)
    queue.add("old", b"a" * 10, now_s=0)
    under_way = queue.batch(ANN)
    queue.add("new", b"b" * 10, now_s=0)
    queue.remove_batch(under_way)
    assert (queue.waiting(), queue.counts()) == (1, {"collected": 1})


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("put"), st.sampled_from(["s1", "s2", "s3"]), st.integers(1, 60)),
            st.tuples(st.just("settle"), st.integers(0, 2), st.integers(0, 2)),
        ),
        max_size=40,
    )
)
def test_every_event_is_counted_in_exactly_one_place(steps: list[tuple[str, Any, int]]) -> None:
    """Waiting, collected, rejected and dropped events always add up to those added."""
    queue = with_sessions("s1", "s2", "s3", cap_bytes=100)
    under_way, put = queue.batch(ANN), 0
    for verb, what, number in steps:
        if verb == "put":
            queue.add(what, b"x" * number, now_s=0)
            put += 1
            continue
        queue.remove_batch(under_way, rejected=min(what, len(under_way)))
        under_way = queue.batch(ANN)[: number + 1]
    waiting = sum(len(body) for body in bodies(queue))
    assert queue.waiting() + sum(queue.counts().values()) == put
    assert waiting <= 100
    queue.file.close()


def test_a_file_keeps_events_counts_and_numbers(path: Path) -> None:
    """Events, counts and session numbers survive a restart in the file."""
    first = outbox(path)
    first.open_session("s1", "ann", {}, now_s=0)
    first.add("s1", b"1", now_s=0)
    first.add("s1", b"2", now_s=0)
    first.remove_batch(first.batch(ANN)[:1])
    first.file.close()
    second = outbox(path)
    assert (bodies(second), second.counts()) == ([b"2"], {"collected": 1})
    assert second.open_session("s2", "ann", {}, now_s=0) == 2
    second.file.close()


def test_a_reopened_file_knows_how_full_it_is(path: Path) -> None:
    """The bound counts events that were in the file before it was opened."""
    first = outbox(path)
    first.open_session("s1", "ann", {}, now_s=0)
    first.add("s1", b"x" * 10, now_s=0)
    first.file.close()
    second = outbox(path, cap_bytes=10)
    second.open_session("s2", "ann", {}, now_s=0)
    second.add("s2", b"y", now_s=0)
    assert bodies(second) == [b"y"]
    second.file.close()


def test_sessions_are_counted_for_each_user() -> None:
    """`session_num` counts the user's sessions, this one included (Wire 3.3, Common fields)."""
    queue = outbox()
    numbers = [queue.open_session(str(it), user, {}, now_s=0) for it, user in enumerate(["ann", "bob", "ann"])]
    assert numbers == [1, 1, 2]


def test_an_unfinished_session_has_the_time_of_its_last_event() -> None:
    """An unfinished session has its start, the time of its last event and its fields."""
    queue = outbox()
    queue.open_session("s1", "ann", {"platform": "ios"}, now_s=100)
    queue.add("s1", b"{}", now_s=160)
    (session,) = queue.open_sessions()
    assert (session.started_s, session.last_s, session.fields) == (100, 160, {"platform": "ios", "session_num": 1})


def test_an_ended_session_without_events_is_deleted() -> None:
    """A session is deleted once it has ended and all its events are settled."""
    queue = with_sessions("s1", "s2")
    queue.end_session("s1", b"end")
    queue.remove_batch(queue.batch(ANN))
    with queue.file.transaction() as db:
        assert db.execute("SELECT id FROM sessions").fetchall() == [("s2",)]


def test_an_init_answer_is_stored_for_its_user(path: Path) -> None:
    """The last init answer is stored for the next start (Wire 1.12, Remote config init)."""
    first = OutboxFile(path, game_key="a" * 32)
    first.save_init_answer("ann", ANSWER)
    first.close()
    second = OutboxFile(path, game_key="a" * 32)
    assert second.load_init_answer("ann") == ANSWER
    second.close()


def test_each_user_has_an_init_answer_of_their_own() -> None:
    """Another user must not send the stored hash (Wire 1.12, Remote config init)."""
    file = OutboxFile(None, game_key="a" * 32)
    file.save_init_answer("ann", ANSWER)
    assert [file.load_init_answer(user_id) for user_id in ("bob", "ann")] == [None, ANSWER]


def test_the_init_answers_stored_last_are_kept() -> None:
    """A game server's file does not grow with every player it ever had."""
    file = OutboxFile(None, game_key="a" * 32)
    for number in range(10_001):
        file.save_init_answer(f"player{number}", ANSWER)
        file.save_init_answer("ann", ANSWER)
    kept = [file.load_init_answer(user_id) is not None for user_id in ("player0", "player9999", "ann")]
    assert kept == [False, True, True]


def test_an_init_answer_of_another_version_is_ignored() -> None:
    """A stored init answer without today's fields is ignored."""
    file = OutboxFile(None, game_key="a" * 32)
    with file.transaction() as db:
        db.execute("INSERT INTO init_answers VALUES ('ann', '{}')")
    assert file.load_init_answer("ann") is None


def test_a_file_is_open_in_one_outbox_at_a_time(path: Path, opened: Outbox) -> None:
    """A second outbox on the same file is a `BadQuery`."""
    with pytest.raises(BadQuery, match="locked"):
        outbox(path)


def test_a_file_of_another_game_is_refused(path: Path) -> None:
    """A queue file belongs to one game key."""
    outbox(path, game_key="b" * 32).file.close()
    with pytest.raises(BadQuery, match="another game"):
        outbox(path)


def test_a_file_that_is_no_queue_is_refused_and_left_alone(path: Path) -> None:
    """A file that is not a database is refused and not changed."""
    path.write_text("my diary, not a database, and long enough to look at")
    with pytest.raises(BadQuery, match="not a database"):
        outbox(path)
    assert path.read_text().startswith("my diary")


def test_a_missing_folder_is_refused(tmp_path: Path) -> None:
    """A queue in a folder that does not exist is a `BadQuery`."""
    with pytest.raises(BadQuery, match="queue"):
        outbox(tmp_path / "nowhere" / "events.sqlite")


def test_only_the_owner_may_read_the_file(path: Path, opened: Outbox) -> None:
    """The queue file and its journal have mode 0600."""
    opened.open_session("s1", "ann", {}, now_s=0)
    assert {stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()} == {0o600}


def test_a_full_disk_refuses_and_counts_an_event(path: Path, opened: Outbox) -> None:
    """An event that the disk cannot take is refused and counted as "disk failed"."""
    opened.open_session("s1", "ann", {}, now_s=0)
    with opened.file.transaction() as db:
        pages = db.execute("PRAGMA page_count").fetchone()[0]
        db.execute(f"PRAGMA max_page_count = {pages}")
    assert not opened.add("s1", b"x" * 100_000, now_s=0)
    assert (opened.waiting(), opened.counts()) == (0, {"disk failed": 1})


def test_the_file_is_in_write_ahead_mode(opened: Outbox) -> None:
    """The queue file uses a write-ahead log and normal synchronisation."""
    with opened.file.transaction() as db:
        modes = [db.execute(f"PRAGMA {name}").fetchone()[0] for name in ("journal_mode", "synchronous")]
    assert modes == ["wal", 1]


def test_an_outbox_without_a_path_has_no_file() -> None:
    """Without a path the queue is a database in memory."""
    with outbox().file.transaction() as db:
        assert isinstance(db, sqlite3.Connection)
        assert db.execute("PRAGMA database_list").fetchone()[2] == ""
