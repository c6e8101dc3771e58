"""The queue: what is in it, in which order it leaves, and what happens when it is full (Collector, POST events 3)."""

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
    return Outbox(OutboxFile(path, game_key=game_key), **options)


def with_sessions(*names: str, user_id: str = "ann", **options: Any) -> Outbox:
    made = outbox(**options)
    for name in names:
        made.open_session(name, user_id, {}, now_s=0)
    return made


def bodies(made: Outbox, bucket: BatchKey = ANN) -> list[bytes]:
    return [event.body for event in made.batch(bucket)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "events.sqlite"


@pytest.fixture
def held(path: Path) -> Iterator[Outbox]:
    made = outbox(path)
    yield made
    made.file.close()


def test_events_leave_in_the_order_they_came() -> None:
    made = with_sessions("s1", "s2")
    for name, body in [("s1", b"1"), ("s2", b"2"), ("s1", b"3")]:
        made.add(name, body, now_s=0)
    assert bodies(made) == [b"1", b"2", b"3"]


def test_what_is_settled_is_gone_and_counted() -> None:
    made = with_sessions("s1")
    for body in (b"1", b"2", b"3"):
        made.add("s1", body, now_s=0)
    made.remove_batch(made.batch(ANN), rejected=1)
    assert (made.waiting(), made.counts()) == (0, {"collected": 2, "rejected": 1})


def test_a_batch_holds_as_many_events_as_the_official_clients_send() -> None:
    """public-facts 1.10: 500."""
    made = with_sessions("s1")
    for _ in range(BATCH_EVENTS + 1):
        made.add("s1", b"{}", now_s=0)
    assert len(made.batch(ANN)) == 500


def test_a_batch_is_under_1_mb_even_unzipped() -> None:
    """Collector, Limits."""
    made = with_sessions("s1")
    for _ in range(20):
        made.add("s1", b"x" * 100_000, now_s=0)
    assert BODY_BYTES - 200_000 < len(as_array(made.batch(ANN))) < BODY_BYTES


def test_the_largest_event_still_goes() -> None:
    made = with_sessions("s1")
    made.add("s1", b"x" * BATCH_BYTES, now_s=0)
    assert len(as_array(made.batch(ANN))) < BODY_BYTES


def test_each_user_at_each_address_has_a_bucket() -> None:
    """Collector, Submitting on behalf 2: the country of all events in one request is resolved from one IP."""
    made = outbox()
    for number, (user_id, ip) in enumerate([("ann", "192.0.2.1"), ("bob", "192.0.2.1"), ("ann", "192.0.2.2")]):
        made.open_session(str(number), user_id, {}, now_s=0, forwarded_for=ip)
        made.add(str(number), b"%d" % number, now_s=0)
    assert [bodies(made, bucket) for bucket in made.batch_keys()] == [[b"0"], [b"1"], [b"2"]]


def test_a_full_queue_deletes_the_oldest_session_whole() -> None:
    """Collector, POST events 3: when exceeded, delete all events of the oldest sessions."""
    made = with_sessions("old", "new", cap_bytes=30)
    for name, body in [("old", b"a" * 10), ("new", b"b" * 10), ("old", b"c" * 10)]:
        made.add(name, body, now_s=0)
    assert made.add("new", b"d", now_s=0)
    assert bodies(made) == [b"b" * 10, b"d"]


def test_what_a_full_queue_deletes_is_counted() -> None:
    made = with_sessions("old", "new", cap_bytes=20)
    made.add("old", b"a" * 10, now_s=0)
    made.add("old", b"a" * 10, now_s=0)
    made.add("new", b"b", now_s=0)
    assert made.counts() == {"cache full": 2}


def test_only_as_many_sessions_are_deleted_as_needed() -> None:
    made = with_sessions("oldest", "older", "new", cap_bytes=20)
    for name in ("oldest", "older", "new"):
        made.add(name, b"x" * 10, now_s=0)
    assert len(bodies(made)) == 2


def test_a_session_that_fills_the_queue_alone_takes_no_more_events() -> None:
    made = with_sessions("s1", cap_bytes=10)
    made.add("s1", b"x" * 10, now_s=0)
    assert not made.add("s1", b"y", now_s=0)
    assert (bodies(made), made.counts()) == ([b"x" * 10], {"cache full": 1})


def test_a_full_queue_still_takes_what_is_vital_and_the_end() -> None:
    """public-facts 1.10: user, session_end and business are exempt."""
    made = with_sessions("s1", cap_bytes=1)
    assert made.add("s1", b"purchase", now_s=0, is_vital=True)
    made.end_session("s1", b"end")
    assert bodies(made) == [b"purchase", b"end"]


def test_what_was_deleted_on_its_way_and_collected_was_not_lost() -> None:
    made = with_sessions("old", "new", cap_bytes=10)
    made.add("old", b"a" * 10, now_s=0)
    under_way = made.batch(ANN)
    made.add("new", b"b" * 10, now_s=0)
    made.remove_batch(under_way)
    assert (made.waiting(), made.counts()) == (1, {"collected": 1})


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
    made = with_sessions("s1", "s2", "s3", cap_bytes=100)
    under_way, put = made.batch(ANN), 0
    for verb, what, number in steps:
        if verb == "put":
            made.add(what, b"x" * number, now_s=0)
            put += 1
            continue
        made.remove_batch(under_way, rejected=min(what, len(under_way)))
        under_way = made.batch(ANN)[: number + 1]
    waiting = sum(len(body) for body in bodies(made))
    assert made.waiting() + sum(made.counts().values()) == put
    assert waiting <= 100
    made.file.close()


def test_a_file_keeps_events_counts_and_numbers(path: Path) -> None:
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
    """public-facts 2.3: session_num counts the user's sessions, this one included."""
    made = outbox()
    numbers = [made.open_session(str(it), user, {}, now_s=0) for it, user in enumerate(["ann", "bob", "ann"])]
    assert numbers == [1, 1, 2]


def test_a_session_without_an_end_says_when_it_was_last_alive() -> None:
    made = outbox()
    made.open_session("s1", "ann", {"platform": "ios"}, now_s=100)
    made.add("s1", b"{}", now_s=160)
    (session,) = made.open_sessions()
    assert (session.started_s, session.last_s, session.fields) == (100, 160, {"platform": "ios", "session_num": 1})


def test_a_session_that_ended_and_left_is_forgotten() -> None:
    made = with_sessions("s1", "s2")
    made.end_session("s1", b"end")
    made.remove_batch(made.batch(ANN))
    with made.file.transaction() as db:
        assert db.execute("SELECT id FROM sessions").fetchall() == [("s2",)]


def test_an_answer_is_kept_for_its_user(path: Path) -> None:
    """Collector, POST remote_configs init 2."""
    first = OutboxFile(path, game_key="a" * 32)
    first.save_init_answer("ann", ANSWER)
    first.close()
    second = OutboxFile(path, game_key="a" * 32)
    assert second.load_init_answer("ann") == ANSWER
    second.close()


def test_an_answer_is_dropped_when_the_user_changes() -> None:
    """public-facts 1.5, Hash and user change."""
    file = OutboxFile(None, game_key="a" * 32)
    file.save_init_answer("ann", ANSWER)
    assert [file.load_init_answer(user_id) for user_id in ("bob", "ann")] == [None, None]


def test_an_answer_kept_by_another_version_counts_as_none() -> None:
    file = OutboxFile(None, game_key="a" * 32)
    with file.transaction() as db:
        db.execute("INSERT INTO notes VALUES ('init', '{}')")
    assert file.load_init_answer("ann") is None


def test_a_file_is_held_by_one_at_a_time(path: Path, held: Outbox) -> None:
    with pytest.raises(BadQuery, match="locked"):
        outbox(path)


def test_a_file_of_another_game_is_refused(path: Path) -> None:
    outbox(path, game_key="b" * 32).file.close()
    with pytest.raises(BadQuery, match="another game"):
        outbox(path)


def test_a_file_that_is_no_queue_is_refused_and_left_alone(path: Path) -> None:
    path.write_text("my diary, not a database, and long enough to look at")
    with pytest.raises(BadQuery, match="not a database"):
        outbox(path)
    assert path.read_text().startswith("my diary")


def test_a_folder_that_is_missing_is_said(tmp_path: Path) -> None:
    with pytest.raises(BadQuery, match="queue"):
        outbox(tmp_path / "nowhere" / "events.sqlite")


def test_only_the_owner_may_read_the_file(path: Path, held: Outbox) -> None:
    held.open_session("s1", "ann", {}, now_s=0)
    assert {stat.S_IMODE(it.stat().st_mode) for it in path.parent.iterdir()} == {0o600}


def test_a_full_disk_loses_an_event_aloud(path: Path, held: Outbox) -> None:
    held.open_session("s1", "ann", {}, now_s=0)
    with held.file.transaction() as db:
        pages = db.execute("PRAGMA page_count").fetchone()[0]
        db.execute(f"PRAGMA max_page_count = {pages}")
    assert not held.add("s1", b"x" * 100_000, now_s=0)
    assert (held.waiting(), held.counts()) == (0, {"disk failed": 1})


def test_the_file_is_in_write_ahead_mode(held: Outbox) -> None:
    with held.file.transaction() as db:
        modes = [db.execute(f"PRAGMA {name}").fetchone()[0] for name in ("journal_mode", "synchronous")]
    assert modes == ["wal", 1]


def test_memory_is_no_file() -> None:
    with outbox().file.transaction() as db:
        assert isinstance(db, sqlite3.Connection)
        assert db.execute("PRAGMA database_list").fetchone()[2] == ""
