"""The two inits of a session: each is asked once, used on its own, and kept for its player."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from gamelens.client.events.game_server import GameServer
from gamelens.client.events.outbox import UNSENT
from gamelens.client.events.player_session import PlayerSession
from support.game_events import NOW
from support.game_network import ANN, Game, in_loop, until

TIME = int(NOW.timestamp())
PHONE: dict[str, Any] = {"platform": "ios", "os_version": "ios 17.0"}
FAILURES = [(404, b'{"message":"no such address"}'), (501, b"<html>"), (400, b"[]"), (200, b"hello")]
DISABLED = (200, b'{"enabled":false,"server_ts":%d,"flags":[]}' % TIME)
NOT_AUTHORISED = (401, b'{"message":"not authorised"}')


def init_answer(status: int = 201, **fields: Any) -> tuple[int, bytes]:
    """Return an init answer with a config and *fields*."""
    config = {"key": "difficulty", "value": "easy"}
    return status, json.dumps({"server_ts": TIME, "configs": [config], "configs_hash": "abc"} | fields).encode()


def inits(game: Game) -> Counter[str]:
    """Return how often each init was asked."""
    return Counter(sent.route for sent in game.wire.sent if sent.route != "events")


@pytest.mark.parametrize("failure", FAILURES)
def test_a_failed_version_2_init_does_not_cost_the_configs(game: Game, failure: tuple[int, bytes]) -> None:
    """Configs and clock offset come from the other init (Wire 1.12, Remote config init)."""

    @in_loop
    async def main() -> None:
        game.time.now_s -= 5000
        game.wire.script["init_v2"] = [failure]
        async with game.session() as player:
            assert player.configs == {"difficulty": "normal"}
        assert {event["client_ts"] for event in game.wire.events} == {TIME}

    main()


@pytest.mark.parametrize("failure", FAILURES)
def test_a_failed_config_init_does_not_cost_the_clock_offset(game: Game, failure: tuple[int, bytes]) -> None:
    """The clock offset comes from version 2 (Wire 1.14, Server time)."""

    @in_loop
    async def main() -> None:
        game.time.now_s -= 5000
        game.wire.script["init"] = [failure]
        async with game.session():
            pass
        assert {event["client_ts"] for event in game.wire.events} == {TIME}

    main()


@pytest.mark.parametrize("route", ["init_v2", "init"])
@pytest.mark.parametrize("failure", FAILURES)
def test_each_init_is_asked_once_whatever_is_answered(game: Game, route: str, failure: tuple[int, bytes]) -> None:
    """An init that a service does not have is not asked again before each delivery."""

    @in_loop
    async def main() -> None:
        game.wire.script[route] = [failure] * 5
        async with game.session() as player:
            for _ in range(4):
                player.add("design", event_id="menu:open")
                await player.flush()
        assert inits(game) == {"init_v2": 1, "init": 1}

    main()


@pytest.mark.parametrize("route", ["init_v2", "init"])
def test_an_unavailable_init_is_asked_again_and_holds_no_event_back(game: Game, route: str) -> None:
    """A 503 may be over soon; until then events are collected without it."""

    @in_loop
    async def main() -> None:
        game.wire.script[route] = [(503, b"{}")] * 2
        async with game.session() as player:
            await game.time.wait_for_pause(1)
            assert game.wire.categories == ["user"]
            await player.flush()
            await player.flush()
            assert player.configs == {"difficulty": "normal"}
        assert inits(game) == {route: 3, "init" if route == "init_v2" else "init_v2": 1}

    main()


@in_loop
async def test_events_wait_while_version_2_is_under_way(game: Game) -> None:
    """The client checks `enabled` before it sends events (Wire 1.15, Client queue)."""
    game.wire.gates["init_v2"] = answered = asyncio.Event()
    async with game.session(wait_s=0.4) as player:
        await player.flush()
        assert game.wire.categories == []
        answered.set()
        await until(lambda: player.report().disabled is None)
        await player.flush()
        assert game.wire.categories == ["user"]
    assert inits(game) == {"init_v2": 1, "init": 1}


@in_loop
async def test_a_late_disabled_sends_nothing(game: Game, tmp_path: Path) -> None:
    """An answer after the wait is obeyed, and what was recorded until then stays in the queue."""
    game.wire.gates["init_v2"], game.wire.script["init_v2"] = asyncio.Event(), [DISABLED]
    session = game.session(wait_s=0.4, queue=tmp_path / "events.sqlite")
    async with session as player:
        player.add("design", event_id="menu:open")
        game.wire.gates["init_v2"].set()
        await until(lambda: "enabled = false" in (player.report().disabled or ""))
        await player.flush()
    assert game.wire.of("events") == []
    assert session.report().waiting == 3


@in_loop
async def test_a_version_2_init_without_any_answer_holds_events_for_one_request(game: Game) -> None:
    """Whoever cannot be asked is enabled: events go when the first request has failed."""
    game.wire.gates["init_v2"], game.wire.script["init_v2"] = asyncio.Event(), [(0, b"")]
    async with game.session(wait_s=0.4) as player:
        await until(lambda: game.wire.of("init_v2"))
        await player.flush()
        assert game.wire.categories == []
        game.wire.gates.pop("init_v2").set()
        game.wire.hanging = {"init_v2"}
        await until(lambda: player.report().disabled is None)
        await player.flush()
        assert game.wire.categories == ["user"]
        assert inits(game)["init_v2"] == 2


@in_loop
async def test_the_longest_time_of_a_request_ends_the_wait_for_version_2(game: Game) -> None:
    """A collector that accepts the connection and says nothing holds events for that time only."""
    game.wire.hanging = {"init_v2"}
    collector = game.wire.collector(max_wait_s=0.0)
    async with PlayerSession(collector, **ANN, wait_s=0.4, **game.time.seams()) as player:
        await until(lambda: player.report().disabled is None)
        await player.flush()
        assert game.wire.categories == ["user"]


@pytest.mark.slow
@in_loop
async def test_the_last_delivery_waits_for_version_2(game: Game) -> None:
    """A session that ends before the answer sends its events after it."""
    game.wire.gates["init_v2"] = answered = asyncio.Event()
    session = game.session(wait_s=2.0)
    await session.start()
    closing = asyncio.create_task(session.close())
    await asyncio.sleep(0.1)
    assert game.wire.of("events") == []
    answered.set()
    report = await closing
    assert (report.collected, report.waiting) == (2, 0)


@in_loop
async def test_events_still_undecided_at_the_end_are_counted(game: Game, tmp_path: Path) -> None:
    """They wait in a queue file, and are dropped with a queue in memory."""
    game.wire.hanging = {"init_v2"}
    in_file, in_memory = game.session(wait_s=0.1, queue=tmp_path / "events.sqlite"), game.session(wait_s=0.1)
    async with in_file, in_memory:
        pass
    assert game.wire.of("events") == []
    assert (in_file.report().waiting, in_file.report().dropped) == (2, {})
    assert (in_memory.report().waiting, in_memory.report().dropped) == (0, {UNSENT: 2})


@pytest.mark.parametrize(
    "answer",
    [
        b'{"enabled":false}',
        b'{"enabled":false,"server_ts":0,"flags":[]}',
        b'{"enabled":false,"server_ts":"now","flags":[]}',
        b'{"enabled":false,"server_ts":1795000000,"flags":{}}',
        b'{"enabled":false,"server_ts":1795000000,"flags":null}',
        b'{"enabled":false,"server_ts":1795000000,"configs":7,"configs_hash":8,"ab_id":9}',
    ],
)
def test_enabled_false_is_obeyed_whatever_else_the_answer_holds(game: Game, answer: bytes) -> None:
    """A missing time or flags of another type do not matter (Wire 1.11, Version 2 init)."""

    @in_loop
    async def main() -> None:
        game.wire.script["init_v2"] = [(200, answer)]
        session = game.session()
        async with session as player:
            assert not player.add("design", event_id="menu:open")
        assert game.wire.of("events") == []
        assert session.report().dropped == {"disabled": 2}

    main()


@in_loop
async def test_pauses_between_attempts_of_an_unavailable_init_grow(game: Game) -> None:
    """An init that stays unavailable is asked ever more rarely: half of 40, 80, 160 s."""
    game.wire.script["init_v2"] = [(503, b"{}")] * 99
    async with game.session():
        for number in range(1, 31):
            game.time.advance(await game.time.wait_for_pause(number))
    assert 4 <= inits(game)["init_v2"] <= 7


@in_loop
async def test_configs_of_version_2_are_used_where_the_other_init_is_missing(game: Game) -> None:
    """A service may serve configs on version 2 alone (Wire 1.11, Version 2 init)."""
    game.wire.script["init_v2"] = [init_answer(enabled=True, flags=[], ab_id="exp1", ab_variant_id="fast")]
    game.wire.script["init"] = [(404, b"{}")]
    async with game.session() as player:
        assert player.configs == {"difficulty": "easy"}
    assert {event["ab_id"] for event in game.wire.events} == {"exp1"}


@in_loop
async def test_the_config_init_has_precedence_over_version_2(game: Game) -> None:
    """Where both serve configs, those of the config init hold (Wire 1.12, Remote config init)."""
    game.wire.script["init_v2"] = [init_answer(enabled=True, flags=[])]
    async with game.session() as player:
        assert player.configs == {"difficulty": "normal"}


@in_loop
async def test_current_configs_hold_although_version_2_has_others(game: Game, tmp_path: Path) -> None:
    """A 200 of the config init means the configs of the kept answer."""
    for game.wire.script["init_v2"] in ([], [init_answer(enabled=True, flags=[])]):
        async with game.session(queue=tmp_path / "events.sqlite") as player:
            assert player.configs == {"difficulty": "normal"}
    assert [sent.status for sent in game.wire.of("init")] == [201, 200]


@in_loop
async def test_a_version_2_answer_without_enabled_disables_nothing(game: Game) -> None:
    """A service may answer both inits with the same body."""
    game.wire.script["init_v2"] = [init_answer()]
    async with game.session():
        pass
    assert game.wire.categories == ["user", "session_end"]


@in_loop
async def test_configs_with_status_200_are_configs(game: Game) -> None:
    """The body says whether configs came, whatever the status."""
    game.wire.script["init"] = [init_answer(200)]
    async with game.session() as player:
        assert player.configs == {"difficulty": "easy"}


# Game servers


@pytest.mark.parametrize("refusal", [DISABLED, NOT_AUTHORISED])
def test_a_server_asks_again_when_the_player_joins_again(game: Game, refusal: tuple[int, bytes]) -> None:
    """A join after `enabled` false or a 401 asks init again, and its answer holds."""

    @in_loop
    async def main() -> None:
        game.wire.script["init_v2"] = [refusal]
        at = GameServer(game.wire.collector(), **game.time.seams())
        async with at:
            ann = await at.join("ann", ip="192.0.2.1", **PHONE)
            assert at.report().disabled is not None
            assert not ann.add("design", event_id="menu:open")
            ann = await at.join("ann", ip="192.0.2.1", **PHONE)
            assert at.report().disabled is None
            assert ann.add("design", event_id="menu:open")
            await at.submit()
            assert [event["category"] for event in game.wire.events] == ["user", "design"]
        assert at.report().dropped == {"disabled": 2}
        assert at.report().waiting == 0

    main()


@in_loop
async def test_rounds_go_on_after_a_401_on_events(game: Game) -> None:
    """The background rounds outlive it; the player's events wait for their next session."""
    async with GameServer(game.wire.collector(), **game.time.seams()) as at:
        await game.time.wait_for_pause(1)
        game.wire.script["events"] = [NOT_AUTHORISED]
        await at.join("ann", ip="192.0.2.1", **PHONE)
        game.time.advance(20)
        await game.time.wait_for_pause(2)
        assert at.report().disabled is not None
        await at.join("bob", ip="192.0.2.2", **PHONE)
        game.time.advance(20)
        await game.time.wait_for_pause(3)
        assert [event["user_id"] for event in game.wire.events] == ["bob"]
        await at.join("ann", ip="192.0.2.1", **PHONE)
        game.time.advance(20)
        await game.time.wait_for_pause(4)
        assert [event["user_id"] for event in game.wire.events] == ["bob", "ann", "ann", "ann"]


@in_loop
async def test_a_disabled_server_stays_disabled_while_init_is_unanswered(game: Game) -> None:
    """Only an answered init enables a game again."""
    game.wire.script["init_v2"] = [DISABLED]
    async with GameServer(game.wire.collector(), **game.time.seams()) as at:
        await at.join("ann", ip="192.0.2.1", **PHONE)
        game.wire.is_down = True
        await at.join("bob", ip="192.0.2.2", **PHONE)
        assert at.report().disabled is not None


@in_loop
async def test_a_server_keeps_the_init_answer_of_each_player(game: Game) -> None:
    """Each player's next join sends the hash of their own answer, whoever joined between."""
    async with GameServer(game.wire.collector(), **game.time.seams()) as at:
        for user_id in ("ann", "bob", "ann", "bob"):
            player = await at.join(user_id, ip="192.0.2.1", **PHONE)
            assert player.configs == {"difficulty": "normal"}
    assert [sent.status for sent in game.wire.of("init")] == [201, 201, 200, 200]


@in_loop
async def test_a_hanging_init_delays_a_round_once(game: Game) -> None:
    """After one player's init without an answer the round asks no other player's."""
    async with GameServer(game.wire.collector(), **game.time.seams()) as at:
        await game.time.wait_for_pause(1)
        game.wire.is_down = True
        for number in range(5):
            await at.join(f"player{number}", ip="192.0.2.1", **PHONE)
        game.wire.is_down = False
        game.wire.script["init_v2"] = [(503, b"{}")] * 5
        game.time.advance(100)
        await game.time.wait_for_pause(2)
        assert inits(game)["init_v2"] == 1
        assert len(game.wire.of("events")) == 5
