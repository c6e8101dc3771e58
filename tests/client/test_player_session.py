"""One player's session against the sandbox's collector."""

from __future__ import annotations

import asyncio
import json
import math
import signal
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from gamelens.client.events.outbox import UNSENT
from gamelens.client.events.player_session import PlayerSession
from gamelens.errors import AuthError, BadQuery, Refused, Unreachable
from support.game_events import NOW
from support.game_network import ANN, GAME_KEY, KEYS, SECRET_KEY, Game, Time, Wire, in_loop, until
from support.sandbox_stage import Stage

pytestmark = pytest.mark.slow

TIME = int(NOW.timestamp())
DISABLED = (200, b'{"enabled":false,"server_ts":%d,"flags":[]}' % TIME)
BUY: dict[str, Any] = {"event_id": "gems:small", "amount": 499, "currency": "USD", "transaction_num": 1}


def init_answer(**fields: Any) -> tuple[int, bytes]:
    """Return an init answer with a configs hash and *fields*."""
    return 201, json.dumps({"server_ts": TIME, "configs": [], "configs_hash": "abc"} | fields).encode()


@in_loop
async def test_a_session_goes_from_init_to_its_end(game: Game) -> None:
    """`user` is first and `session_end` last (Wire 3.5, Category fields)."""
    async with game.session() as player:
        player.add("progression", event_id="Start:world1")
        player.add("business", **BUY)
    assert game.wire.categories == ["user", "progression", "business", "session_end"]


@in_loop
async def test_init_comes_before_every_event(game: Game) -> None:
    """Both inits are sent whenever a session starts (Wire 1.11, Version 2 init)."""
    async with game.session():
        await game.time.wait_for_pause(1)
    assert [sent.route for sent in game.wire.sent][:3] == ["init_v2", "init", "events"]


@in_loop
async def test_the_sandbox_counts_the_events_of_a_session(stage: Stage, time: Time) -> None:
    """The session reports as many collected events as the sandbox accepted."""
    session = Game(Wire(stage.sandbox.collector), time).session()
    async with session as player:
        player.add("design", event_id="menu:open")
    assert session.report().collected == stage.sandbox.summary()["accepted"] == 3


@in_loop
async def test_every_event_has_the_common_fields(game: Game) -> None:
    """Each event has player, device, session and time (Wire 3.3, Common fields)."""
    async with game.session(
        device="iPhone15,2", manufacturer="apple", build="1.0", also={"custom_01": "red"}
    ) as player:
        player.add("design", event_id="menu:open", value=0.5)
    assert game.wire.events[1] == {
        "category": "design",
        "event_id": "menu:open",
        "value": 0.5,
        "v": 2,
        "user_id": "ann",
        "client_ts": TIME,
        "sdk_version": "rest api v2",
        "os_version": "ios 17.0",
        "manufacturer": "apple",
        "device": "iPhone15,2",
        "platform": "ios",
        "build": "1.0",
        "custom_01": "red",
        "session_id": "00000000-0000-4000-8000-000000000001",
        "session_num": 1,
        "event_uuid": "00000000-0000-4000-8000-000000000003",
    }


@in_loop
async def test_every_event_has_a_uuid_of_its_own(game: Game) -> None:
    """No two events share an `event_uuid` (Wire 3.3, Common fields)."""
    async with game.session() as player:
        player.add("design", event_id="menu:open")
    assert len({event["event_uuid"] for event in game.wire.events}) == 3


@in_loop
async def test_a_wrong_clock_is_corrected(game: Game) -> None:
    """`client_ts` of every event has the server's offset (Wire 1.14, Server time)."""
    game.time.now_s -= 5000
    async with game.session() as player:
        game.time.advance(7)
        player.add("design", event_id="menu:open")
    assert [event["client_ts"] for event in game.wire.events] == [TIME, TIME + 7, TIME + 7]


@in_loop
async def test_the_offset_holds_across_restarts_while_offline(game: Game, tmp_path: Path) -> None:
    """The offset is stored and used by an offline session (Wire 1.14, Server time)."""
    game.time.now_s -= 5000
    for game.wire.is_down in (False, True, False):
        async with game.session(queue=tmp_path / "events.sqlite"):
            pass
    assert {event["client_ts"] for event in game.wire.events} == {TIME}


@in_loop
async def test_session_end_has_the_length(game: Game) -> None:
    """`session_end` has the length in seconds (Wire 3.5, Category fields)."""
    async with game.session():
        game.time.advance(95)
    assert game.wire.events[-1]["length"] == 95


@in_loop
async def test_sessions_are_numbered_across_restarts(game: Game, tmp_path: Path) -> None:
    """`session_num` goes on after a restart (Wire 3.3, Common fields)."""
    for _ in range(2):
        async with game.session(queue=tmp_path / "events.sqlite"):
            pass
    assert [event["session_num"] for event in game.wire.events] == [1, 1, 2, 2]


@in_loop
async def test_queued_events_are_sent_every_20_seconds(game: Game) -> None:
    """The queue is sent every 20 seconds (Wire 1.15, Client queue)."""
    async with game.session() as player:
        await game.time.wait_for_pause(1)
        player.add("design", event_id="menu:open")
        game.time.advance(20)
        await game.time.wait_for_pause(2)
        assert game.wire.categories == ["user", "design"]
    assert game.time.pauses == [20, 20]


@in_loop
async def test_a_flush_does_not_wait(game: Game) -> None:
    """`flush` sends at once and reports the events collected so far."""
    async with game.session() as player:
        player.add("design", event_id="menu:open")
        report = await player.flush()
    assert (report.waiting, report.collected) == (0, 2)


@in_loop
async def test_events_of_all_kinds_share_a_request(game: Game) -> None:
    """A request may mix categories (Wire 1.7, Submitting events)."""
    async with game.session() as player:
        await game.time.wait_for_pause(1)
        player.add("design", event_id="menu:open")
        player.add("error", severity="info", message="hm")
        await player.flush()
    assert len(game.wire.of("events")[1].content) == 2


@in_loop
async def test_requests_are_gzipped_and_signed_as_sent(game: Game) -> None:
    """A wrong signature would be answered 401 (Wire 1.4, Signature)."""
    async with game.session():
        pass
    assert {(sent.headers["content-encoding"], sent.status) for sent in game.wire.of("events")} == {("gzip", 200)}


# Init


@in_loop
async def test_a_disabled_game_sends_nothing(game: Game) -> None:
    """A game with `enabled` false sends no events (Wire 1.11, Version 2 init)."""
    game.wire.script["init_v2"] = [DISABLED]
    session = game.session()
    async with session as player:
        assert not player.add("design", event_id="menu:open")
    report = session.report()
    assert [sent.route for sent in game.wire.sent] == ["init_v2", "init"]
    assert (report.waiting, report.dropped) == (0, {"disabled": 2})
    assert report.disabled is not None


@in_loop
async def test_a_disabled_game_keeps_queued_events(game: Game, tmp_path: Path) -> None:
    """Events queued before a game was disabled are sent once it is enabled again."""
    path = tmp_path / "events.sqlite"
    game.wire.is_down = True
    async with game.session(queue=path):
        pass
    game.wire.is_down, game.wire.script["init_v2"] = False, [DISABLED]
    async with game.session(queue=path):
        assert game.wire.events == []
    async with game.session(queue=path):
        pass
    assert game.wire.categories == ["user", "session_end"] * 2


@in_loop
async def test_wrong_keys_disable_the_session(game: Game) -> None:
    """A 401 on init disables the session (Wire 1.18, Official clients)."""
    game.wire.script["init_v2"] = [(401, b'{"message":"not authorised"}')]
    session = game.session()
    async with session as player:
        player.add("design", event_id="menu:open")
    assert "401" in (session.report().disabled or "")
    assert game.wire.of("events") == []


@in_loop
async def test_a_failed_init_disables_nothing(game: Game) -> None:
    """After a 400, a 5xx or bad JSON events are sent (Wire 1.18, Official clients)."""
    game.wire.script["init_v2"] = [(500, b""), (400, b"[]"), (200, b"hello")]
    async with game.session() as player:
        await game.time.wait_for_pause(1)
        await player.flush()
        assert game.wire.categories == ["user"]


@in_loop
async def test_init_is_repeated_until_it_is_answered(game: Game) -> None:
    """A session that starts offline repeats init before its events."""
    game.wire.is_down = True
    async with game.session() as player:
        await game.time.wait_for_pause(1)
        game.wire.is_down = False
        await player.flush()
        await player.flush()
        assert player.configs == {"difficulty": "normal"}
    assert [sent.route for sent in game.wire.sent] == ["init_v2", "init", "events", "events"]


@in_loop
async def test_the_hash_is_sent_at_the_next_start(game: Game, tmp_path: Path) -> None:
    """The stored hash is sent at the next start (Wire 1.12, Remote config init)."""
    path = tmp_path / "events.sqlite"
    async with game.session(queue=path):
        pass
    async with game.session(queue=path) as player:
        assert player.configs == {"difficulty": "normal"}
    first, second = game.wire.of("init")
    assert "configs_hash" not in first.params
    assert second.params["configs_hash"]
    assert (first.status, second.status) == (201, 200)


@in_loop
async def test_each_user_sends_their_own_hash_only(game: Game, tmp_path: Path) -> None:
    """Another user sends no hash (Wire 1.12, Remote config init)."""
    for user_id in ("ann", "bob", "ann"):
        async with game.session(queue=tmp_path / "events.sqlite", user_id=user_id):
            pass
    assert ["configs_hash" in sent.params for sent in game.wire.of("init")] == [False, False, True]


@in_loop
async def test_the_last_configs_hold_while_offline(game: Game, tmp_path: Path) -> None:
    """Offline, the stored configs are used (Wire 1.18, Official clients)."""
    for game.wire.is_down in (False, True):
        async with game.session(queue=tmp_path / "events.sqlite") as player:
            assert player.configs == {"difficulty": "normal"}


@in_loop
async def test_events_of_an_experiment_carry_its_ids(game: Game) -> None:
    """Experiment and variant of init are in each event (Wire 3.3, Common fields)."""
    game.wire.script["init"] = [init_answer(ab_id="exp1", ab_variant_id="fast")]
    async with game.session():
        pass
    assert {(event["ab_id"], event["ab_variant_id"]) for event in game.wire.events} == {("exp1", "fast")}


@pytest.mark.parametrize(
    ("start_ts", "end_ts", "holds"),
    [
        (None, None, True),
        (TIME - 1, TIME + 1, True),
        (TIME, None, False),
        (None, TIME, False),
    ],
)
def test_a_config_holds_strictly_within_its_window(
    game: Game, start_ts: int | None, end_ts: int | None, holds: bool
) -> None:
    """A config holds between its times, exclusively (Wire 1.13, Configs and experiments)."""

    @in_loop
    async def main() -> None:
        config = {"key": "speed", "value": 2, "start_ts": start_ts, "end_ts": end_ts}
        game.wire.script["init"] = [init_answer(configs=[config])]
        async with game.session() as player:
            assert player.configs == ({"speed": 2} if holds else {})

    main()


# Offline


@in_loop
async def test_offline_events_wait_and_go_when_the_connection_is_back(game: Game) -> None:
    """Events are queued while offline and sent afterwards (Wire 1.15, Client queue)."""
    game.wire.is_down = True
    async with game.session() as player:
        player.add("design", event_id="menu:open")
        with pytest.raises(Unreachable):
            await player.flush()
        game.wire.is_down = False
        await player.flush()
        assert game.wire.categories == ["user", "design"]


@in_loop
async def test_a_silent_collector_does_not_block_the_game(game: Game) -> None:
    """The session ends after `wait_s` even if the collector never answers."""
    game.wire.gate = asyncio.Event()
    session = game.session(wait_s=0.02)
    async with session as player:
        player.add("design", event_id="menu:open")
    assert session.report().dropped == {UNSENT: 3}


@in_loop
async def test_a_request_under_way_at_the_end_is_not_sent_twice(game: Game) -> None:
    """The last delivery waits for the one before it."""
    gate = asyncio.Event()
    async with game.session():
        game.wire.gate = gate
        await until(lambda: game.wire.of("events"))
        assert [sent.status for sent in game.wire.of("events")] == [0]
        asyncio.get_running_loop().call_later(0.01, gate.set)
    assert [[event["category"] for event in sent.content] for sent in game.wire.of("events")] == [
        ["user"],
        ["session_end"],
    ]


@in_loop
async def test_a_session_that_could_not_start_closes_its_queue(game: Game, tmp_path: Path) -> None:
    """A start that is cancelled releases the queue file for the next session."""
    path = tmp_path / "events.sqlite"
    game.wire.gate = asyncio.Event()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.02):
            await game.session(queue=path).start()
    game.wire.gate = None
    async with game.session(queue=path):
        pass
    assert game.wire.categories == ["user", "session_end"]


@in_loop
async def test_a_session_that_starts_and_ends_offline_is_sent_by_the_next(game: Game, tmp_path: Path) -> None:
    """Events of an offline session are sent by the next one, in order."""
    path = tmp_path / "events.sqlite"
    game.wire.is_down = True
    async with game.session(queue=path) as player:
        player.add("design", event_id="menu:open")
    game.wire.is_down = False
    async with game.session(queue=path):
        pass
    assert game.wire.categories == ["user", "design", "session_end", "user", "session_end"]
    assert [event["session_num"] for event in game.wire.events] == [1, 1, 1, 2, 2]


@in_loop
async def test_unsent_events_in_memory_are_reported(game: Game) -> None:
    """The report of an offline session counts its events as dropped and names the failure."""
    game.wire.is_down = True
    session = game.session()
    async with session:
        await game.time.wait_for_pause(1)
    report = session.report()
    assert (report.waiting, report.collected, report.dropped) == (0, 0, {UNSENT: 2})
    assert "nothing answers" in (report.trouble or "")


@in_loop
async def test_an_hour_offline_in_a_small_cache_is_counted_to_the_last_event(game: Game, tmp_path: Path) -> None:
    """Each event is waiting or dropped in a bounded queue (Wire 1.15, Client queue)."""
    path, added = tmp_path / "events.sqlite", 0
    game.wire.is_down = True
    for _ in range(3):
        session = game.session(queue=path, cap_bytes=5000)
        async with session as player:
            for _ in range(10):
                player.add("design", event_id="menu:open")
                added += 1
        added += 2
    report = session.report()
    assert report.dropped["cache full"] > 0
    assert report.waiting + report.dropped["cache full"] == added


def test_a_killed_session_gets_its_end_at_the_next_start(game: Game, tmp_path: Path) -> None:
    """A missing `session_end` is made at the last event (Wire 1.15, Client queue)."""
    path = tmp_path / "events.sqlite"
    script = f"""
import asyncio, os, signal
from gamelens import CollectorClient, PlayerSession

seconds = [{TIME - 3600}]

async def main():
    collector = CollectorClient(collector_url="http://127.0.0.1:9", game_key="{GAME_KEY}", secret_key="{SECRET_KEY}")
    player = PlayerSession(collector, **{ANN}, queue="{path}", clock=lambda: seconds[-1])
    await player.start()
    for second in range(300):
        seconds.append(seconds[0] + second)
        player.add("design", event_id="menu:open")
    os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main())
"""
    assert subprocess.run([sys.executable, "-c", script]).returncode == -signal.SIGKILL

    @in_loop
    async def main() -> None:
        async with game.session(queue=path):
            pass

    main()
    killed = [event for event in game.wire.events if event["session_num"] == 1]
    assert [event["category"] for event in killed] == ["user"] + ["design"] * 300 + ["session_end"]
    assert (killed[-1]["length"], killed[-1]["client_ts"]) == (299, TIME - 3600 + 299)
    assert len({event["session_id"] for event in killed}) == 1


# Valid events


@pytest.mark.parametrize(
    ("category", "fields", "field"),
    [
        ("design", {}, "event_id"),
        ("design", {"event_id": "a:b:c:d:e:f"}, "event_id"),
        ("design", {"event_id": "a", "value": "much"}, "value"),
        ("design", {"event_id": "a", "value": math.nan}, "value"),
        ("design", {"event_id": "a", "custom_01": "x" * 33}, "custom_01"),
        ("business", BUY | {"currency": "usd"}, "currency"),
        ("business", BUY | {"amount": 4.99}, "amount"),
        ("business", BUY | {"amount": -1}, "amount"),
        ("desing", {"event_id": "a"}, "category"),
        ("session_end", {"length": 1}, "category"),
        ("user", {}, "category"),
        ("design", {"event_id": "a", "client_ts": 1}, "client_ts"),
        ("design", {"event_id": "a", "user_id": "bob"}, "user_id"),
        ("design", {"event_id": "a", "custom_fields": {"a": object()}}, "event"),
        ("design", {"event_id": "a", "custom_fields": {"a": "\ud800"}}, "event"),
        ("design", {"event_id": "a", "custom_fields": {"a": "x" * 1_100_000}}, "event"),
    ],
)
def test_an_invalid_event_is_refused_at_once(game: Game, category: str, fields: dict[str, Any], field: str) -> None:
    """An event the collector would reject is never queued (Wire 3.5, Category fields)."""

    @in_loop
    async def main() -> None:
        async with game.session() as player:
            with pytest.raises(BadQuery) as refused:
                player.add(category, **fields)
            assert refused.value.field == field

    main()
    assert game.wire.categories == ["user", "session_end"]


def test_a_misspelt_category_gets_a_suggestion(game: Game) -> None:
    """A misspelt category is a `BadQuery` with the nearest one."""

    @in_loop
    async def main() -> None:
        async with game.session() as player:
            with pytest.raises(BadQuery, match="Did you mean `design`"):
                player.add("desing", event_id="a")

    main()


@in_loop
async def test_a_field_that_is_none_is_left_out(game: Game) -> None:
    """A field given as None is not sent."""
    async with game.session() as player:
        player.add("design", event_id="menu:open", value=None)
    assert "value" not in game.wire.events[1]


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"os_version": ""}, "os_version"),
        ({"device": "x" * 33}, "device"),
        ({"build": "x" * 33}, "build"),
        ({"also": {"connection_type": "pigeon"}}, "connection_type"),
        ({"also": {"v": 3}}, "v"),
    ],
)
def test_an_invalid_device_is_refused_before_the_start(game: Game, fields: dict[str, Any], field: str) -> None:
    """Invalid common fields are a `BadQuery` when the session is made."""
    with pytest.raises(BadQuery) as refused:
        game.session(**fields)
    assert refused.value.field == field


def test_a_missing_key_is_refused_before_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """A missing game key is an `AuthError` when the session is made."""
    monkeypatch.setenv("GAMELENS_COLLECTOR_URL", "http://127.0.0.1:9")
    monkeypatch.delenv("GAMELENS_GAME_KEY", raising=False)
    with pytest.raises(AuthError, match="game_key"):
        PlayerSession(**ANN)


def test_keys_and_address_may_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Address, game key and secret key are read from the environment."""
    for name, value in (KEYS | {"collector_url": "http://127.0.0.1:9"}).items():
        monkeypatch.setenv(f"GAMELENS_{name.upper()}", value)
    session = PlayerSession(**ANN)
    with session:
        pass
    assert session.report().dropped == {UNSENT: 2}


@in_loop
async def test_events_belong_between_start_and_end(game: Game) -> None:
    """Adding an event before the start or after the end raises `Refused`."""
    session = game.session()
    with pytest.raises(Refused):
        session.add("design", event_id="menu:open")
    async with session:
        pass
    with pytest.raises(Refused):
        session.add("design", event_id="menu:open")


@in_loop
async def test_a_session_starts_once(game: Game) -> None:
    """A session that ended cannot be started again."""
    session = game.session()
    async with session:
        pass
    with pytest.raises(Refused, match="create a new one"):
        await session.start()


# Use from a game


def test_a_session_works_without_an_event_loop(game: Game) -> None:
    """With plain `with` the session runs on the background loop."""
    session = PlayerSession(game.wire.collector(), **ANN)
    with session as player:
        for _ in range(100):
            assert player.add("design", event_id="menu:open")
    assert session.report().collected == 102
    assert game.wire.categories == ["user"] + ["design"] * 100 + ["session_end"]


def test_the_secret_is_neither_shown_nor_stored(game: Game, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The secret key is in no repr, log, report or queue file."""
    caplog.set_level("DEBUG")
    session = game.session(queue=tmp_path / "events.sqlite")
    with session as player:
        player.add("design", event_id="menu:open")
        stored = b"".join(path.read_bytes() for path in tmp_path.glob("events.sqlite*"))
        shown = repr(player) + repr(vars(player)) + repr(player.report())
    assert b"menu:open" in stored
    assert SECRET_KEY.encode() not in stored
    assert SECRET_KEY not in shown + caplog.text


@in_loop
async def test_an_error_in_the_game_still_ends_the_session(game: Game) -> None:
    """An exception inside `with` passes through after `session_end` is sent."""
    with pytest.raises(ZeroDivisionError):
        async with game.session():
            raise ZeroDivisionError
    assert game.wire.categories == ["user", "session_end"]


@in_loop
async def test_nothing_is_left_running(game: Game) -> None:
    """No task is left on the loop after a session."""
    async with game.session():
        await game.time.wait_for_pause(1)
    assert asyncio.all_tasks() == {asyncio.current_task()}


@in_loop
async def test_a_day_is_processed_as_it_was_played(stage: Stage, time: Time) -> None:
    """Events added in a session are counted by the metrics service."""
    async with Game(Wire(stage.sandbox.collector), time).session() as player:
        player.add("business", **BUY)
    stage.clock.advance(timedelta(days=1))
    await stage.sandbox.process()
    day = f"{NOW:%Y-%m-%d}"
    query: dict[str, Any] = {
        "interval": f"{day}/P1D",
        "granularity": "day",
        "query": {"type": "group", "dimension": "category"},
    }
    answer = await asyncio.to_thread(lambda: stage.ask("event_count", **query))
    assert {row["category"]: row["event_count"] for row in answer.json()["result"][0]["result"]} == {
        "user": 1,
        "business": 1,
        "session_end": 1,
    }
