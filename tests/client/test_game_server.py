"""A game server that submits events for its players."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from gamelens.client.events.event_recorder import EventRecorder
from gamelens.client.events.game_server import GameServer
from gamelens.client.events.outbox import UNSENT
from gamelens.errors import BadQuery, Refused, ServiceError, Unreachable
from support.game_events import NOW
from support.game_network import Game, Sent, Time, Wire, in_loop, until
from support.sandbox_stage import Stage

PHONE: dict[str, Any] = {"platform": "ios", "os_version": "ios 17.0"}
OK = (200, b"")
DISABLED = (200, b'{"enabled":false,"server_ts":1795000000,"flags":[]}')


def server(game: Game, **options: Any) -> GameServer:
    """Return a game server with the clock and chance of *game*."""
    return GameServer(game.wire.collector(), **game.time.seams(**options))


async def join(at: GameServer, *names: str) -> list[EventRecorder]:
    """Return recorders of players called *names*, each at an IP of their own."""
    return [await at.join(name, ip=f"192.0.2.{number}", **PHONE) for number, name in enumerate(names, start=1)]


def players_of(sent: Sent) -> set[str]:
    """Return the players whose events a request has."""
    return {event["user_id"] for event in sent.content}


@in_loop
async def test_each_player_has_a_request_with_their_address(game: Game) -> None:
    """One request has one user, X-Forwarded-For their IP (Wire 1.16, Submitting for players)."""
    async with server(game) as at:
        await game.time.wait_for_pause(1)
        ann, bob = await join(at, "ann", "bob")
        for _ in range(3):
            ann.add("design", event_id="menu:open")
            bob.add("design", event_id="menu:open")
        await at.submit()
        first, second = game.wire.of("events")
    assert [(players_of(sent), sent.headers["x-forwarded-for"], len(sent.content)) for sent in (first, second)] == [
        ({"ann"}, "192.0.2.1", 4),
        ({"bob"}, "192.0.2.2", 4),
    ]


@in_loop
async def test_init_is_sent_with_the_players_address(game: Game) -> None:
    """Both inits have user and IP of the player (Wire 1.11, Version 2 init)."""
    async with server(game) as at:
        await join(at, "ann")
    inits = [sent for sent in game.wire.sent if sent.route != "events"]
    assert [(sent.route, sent.content["user_id"], sent.headers["x-forwarded-for"]) for sent in inits] == [
        ("init_v2", "ann", "192.0.2.1"),
        ("init", "ann", "192.0.2.1"),
    ]


@in_loop
async def test_one_round_is_one_request_per_player(game: Game) -> None:
    """A round sends one request per player, in turn (Wire 1.16, Submitting for players)."""
    async with server(game) as at:
        await game.time.wait_for_pause(1)
        ann, _ = await join(at, "ann", "bob")
        for _ in range(600):
            ann.add("design", event_id="menu:open")
        await at.submit()
        assert [len(sent.content) for sent in game.wire.of("events")] == [500, 1]
        await at.submit()
        assert [len(sent.content) for sent in game.wire.of("events")] == [500, 1, 101]


@pytest.mark.parametrize(("chance", "pause_s"), [(0.0, 15), (0.5, 17.5), (1.0, 20)])
def test_the_pause_is_15_to_20_seconds(game: Game, chance: float, pause_s: float) -> None:
    """Rounds are 15 to 20 seconds apart, by chance (Wire 1.16, Submitting for players)."""

    @in_loop
    async def main() -> None:
        async with server(game, random=lambda: chance):
            assert await game.time.wait_for_pause(1) == pause_s

    main()


@in_loop
async def test_rounds_repeat(game: Game) -> None:
    """A round starts after each pause."""
    async with server(game) as at:
        await game.time.wait_for_pause(1)
        await join(at, "ann")
        game.time.advance(20)
        await game.time.wait_for_pause(2)
        assert game.wire.categories == ["user"]


@in_loop
async def test_a_player_who_leaves_gets_a_session_end(game: Game) -> None:
    """The server submits `session_end` with the length (Wire 1.16, Submitting for players)."""
    async with server(game) as at:
        await join(at, "ann")
        game.time.advance(65)
        at.leave("ann")
        await at.submit()
        assert (game.wire.events[-1]["category"], game.wire.events[-1]["length"]) == ("session_end", 65)


@in_loop
async def test_an_idle_player_leaves_at_the_last_event(game: Game) -> None:
    """An idle session ends at its last event (Wire 1.16, Submitting for players)."""
    async with server(game, idle_s=300) as at:
        ann, bob = await join(at, "ann", "bob")
        game.time.advance(100)
        ann.add("design", event_id="menu:open")
        game.time.advance(290)
        bob.add("design", event_id="menu:open")
        game.time.advance(20)
        await at.submit()
        (end,) = [event for event in game.wire.events if event["category"] == "session_end"]
        assert (end["user_id"], end["length"]) == ("ann", 100)
        with pytest.raises(Refused):
            ann.add("design", event_id="menu:open")
        assert bob.add("design", event_id="menu:open")


@in_loop
async def test_a_player_who_joins_again_begins_a_new_session(game: Game) -> None:
    """Joining again ends the open session and starts the next."""
    async with server(game) as at:
        await join(at, "ann")
        await join(at, "ann")
    sessions = [(event["category"], event["session_num"]) for event in game.wire.events]
    assert sessions == [("user", 1), ("session_end", 1), ("user", 2), ("session_end", 2)]


@in_loop
async def test_closing_ends_every_session(game: Game) -> None:
    """Closing the server ends and sends every open session."""
    at = server(game)
    async with at:
        await join(at, "ann", "bob")
    assert sorted(game.wire.categories) == ["session_end", "session_end", "user", "user"]
    assert at.report().waiting == 0


@in_loop
async def test_the_country_is_that_of_each_player(stage: Stage, time: Time) -> None:
    """The country is looked up from X-Forwarded-For (Wire 1.17, Country)."""
    async with server(Game(Wire(stage.sandbox.collector), time)) as at:
        await at.join("ann", ip="198.51.100.7", **PHONE)
        await at.join("bob", ip="203.0.113.7", **PHONE)
    stage.clock.advance(timedelta(days=1))
    await stage.sandbox.process()
    query: dict[str, Any] = {"interval": f"{NOW:%Y-%m-%d}/P1D", "query": {"type": "group", "dimension": "country_code"}}
    answer = await asyncio.to_thread(lambda: stage.ask("user_unique", granularity="day", **query))
    assert {row["country_code"] for row in answer.json()["result"][0]["result"]} == {"DE", "JP"}


@in_loop
async def test_a_failed_player_is_last_in_the_next_round(game: Game) -> None:
    """After a failure the next round begins with the players not yet sent."""
    async with server(game) as at:
        await game.time.wait_for_pause(1)
        await join(at, "ann", "bob", "cid")
        game.wire.script["events"] = [(500, b"")]
        with pytest.raises(ServiceError):
            await at.submit()
        await at.submit()
        assert [next(iter(players_of(sent))) for sent in game.wire.of("events")] == ["ann", "bob", "cid", "ann"]


@in_loop
async def test_one_failing_player_slows_no_other(game: Game) -> None:
    """Rounds go on every 17.5 s while one player's requests fail ever more rarely."""
    game.wire.failing_users = {"ann"}
    async with server(game) as at:
        ann, bob = await join(at, "ann", "bob")
        for number in range(1, 61):
            bob.add("design", event_id="menu:open")
            ann.add("design", event_id="menu:open")
            game.time.advance(await game.time.wait_for_pause(number))
        attempts = [sent for sent in game.wire.of("events") if players_of(sent) == {"ann"}]
        assert set(game.time.pauses[:60]) == {17.5}
        assert sum(event["user_id"] == "bob" for event in game.wire.events) >= 59
        assert 4 <= len(attempts) <= 12
        assert "500" in (at.report().trouble or "")
        game.wire.failing_users.clear()
        game.time.advance(600)
        await game.time.wait_for_pause(61)
        assert {event["user_id"] for event in game.wire.events} == {"ann", "bob"}
        assert at.report().trouble is None


@in_loop
async def test_the_same_round_serves_the_players_after_a_failing_one(game: Game) -> None:
    """A 500 for one player does not end the round, and is raised after it."""
    game.wire.failing_users = {"ann"}
    async with server(game) as at:
        await game.time.wait_for_pause(1)
        await join(at, "ann", "bob", "cid")
        with pytest.raises(ServiceError):
            await at.submit()
        assert [event["user_id"] for event in game.wire.events] == ["bob", "cid"]


@in_loop
async def test_a_retry_after_holds_for_the_player_it_was_said_to(game: Game) -> None:
    """The player with a 429 waits `Retry-After`, the others do not."""
    async with server(game) as at:
        await game.time.wait_for_pause(1)
        await join(at, "ann", "bob")
        game.wire.retry_after_s, game.wire.script["events"] = 900, [(429, b"{}")]
        waited_s = 0.0
        for number in range(2, 80):
            game.time.advance(17.5)
            waited_s += 17.5
            await game.time.wait_for_pause(number)
            if "ann" in {event["user_id"] for event in game.wire.events}:
                break
        first = next(event["user_id"] for event in game.wire.events)
        assert (first, waited_s - 17.5 >= 900) == ("bob", True)


@in_loop
async def test_three_failures_in_a_row_end_a_round(game: Game) -> None:
    """A collector that is down is not asked for every player of every round."""
    async with server(game) as at:
        await game.time.wait_for_pause(1)
        await join(at, *(f"player{number}" for number in range(20)))
        game.wire.script["events"] = [(503, b"{}")] * 99
        with pytest.raises(ServiceError):
            await at.submit()
        assert len(game.wire.of("events")) == 3
        game.wire.script["events"] = []
        await at.submit()
        assert at.report().waiting == 0


@in_loop
async def test_the_end_sends_all_events_of_the_players_that_do_not_fail(game: Game) -> None:
    """More than one request of a player is sent although another player's requests fail."""
    game.wire.failing_users = {"ann"}
    at = server(game)
    async with at:
        _, bob = await join(at, "ann", "bob")
        for _ in range(1200):
            bob.add("design", event_id="menu:open")
    assert (at.report().dropped, at.report().collected) == ({UNSENT: 2}, 1202)


@in_loop
async def test_players_may_join_and_play_offline(game: Game) -> None:
    """Events of offline players are queued and sent later (Wire 1.15, Client queue)."""
    game.wire.is_down = True
    async with server(game) as at:
        (ann,) = await join(at, "ann")
        ann.add("design", event_id="menu:open")
        with pytest.raises(Unreachable):
            await at.submit()
        game.wire.is_down = False
        await at.submit()
        assert game.wire.categories == ["user", "design"]
        assert ann.configs == {"difficulty": "normal"}


@in_loop
async def test_a_server_that_was_stopped_sends_the_rest_at_the_next_start(game: Game, tmp_path: Path) -> None:
    """Queued events keep their IP over a restart, so that the country is right."""
    path = tmp_path / "events.sqlite"
    game.wire.is_down = True
    async with server(game, queue=path) as at:
        await join(at, "ann", "bob")
    game.wire.is_down = False
    async with server(game, queue=path):
        await game.time.wait_for_pause(1)
    sent = game.wire.of("events")
    assert [(players_of(one), one.headers["x-forwarded-for"]) for one in sent[:2]] == [
        ({"ann"}, "192.0.2.1"),
        ({"bob"}, "192.0.2.2"),
    ]


@in_loop
async def test_addresses_leave_the_queue_with_the_last_event(game: Game, tmp_path: Path) -> None:
    """The queue file holds no IP of a player without queued events."""
    path = tmp_path / "events.sqlite"
    async with server(game, queue=path) as at:
        await join(at, "ann")
    assert b"192.0.2.1" not in await asyncio.to_thread(path.read_bytes)


@in_loop
async def test_a_disabled_game_sends_nothing_for_anyone(game: Game) -> None:
    """A game with `enabled` false sends no events (Wire 1.11, Version 2 init)."""
    game.wire.script["init_v2"] = [(200, b'{"enabled":false,"server_ts":1795000000,"flags":[]}')] * 2
    at = server(game)
    async with at:
        ann, bob = await join(at, "ann", "bob")
        assert not ann.add("design", event_id="menu:open")
        assert not bob.add("design", event_id="menu:open")
        await at.submit()
    assert [sent.route for sent in game.wire.sent] == ["init_v2", "init"] * 2
    assert at.report().dropped == {"disabled": 4}


@in_loop
async def test_a_disabled_player_stops_no_other(game: Game) -> None:
    """`enabled` is the answer to one player's init (Wire 1.16, Submitting for players)."""
    async with server(game) as at:
        (bob,) = await join(at, "bob")
        game.wire.script["init_v2"] = [DISABLED]
        (ann,) = await join(at, "ann")
        assert bob.add("design", event_id="menu:open")
        assert not ann.add("design", event_id="menu:open")
        await at.submit()
        assert {event["user_id"] for event in game.wire.events} == {"bob"}


@pytest.mark.parametrize("answer", [(503, b"{}"), (500, b"<html>"), (404, b"{}"), (200, b"hello")])
def test_only_version_2_enables_a_disabled_player(game: Game, answer: tuple[int, bytes]) -> None:
    """A player told `enabled` false sends nothing until told true; the other init does not tell."""

    @in_loop
    async def main() -> None:
        game.wire.script["init_v2"] = [DISABLED, answer, answer]
        async with server(game) as at:
            await join(at, "ann")
            (ann,) = await join(at, "ann")
            ann.add("design", event_id="menu:open")
            await at.submit()
            assert game.wire.of("events") == []
            game.wire.script["init_v2"] = []
            await join(at, "ann")
            await at.submit()
            assert {event["user_id"] for event in game.wire.events} == {"ann"}

    main()


@in_loop
async def test_a_disabled_player_stays_disabled_over_a_restart(game: Game, tmp_path: Path) -> None:
    """Events queued before `enabled` false wait in the file, also for the next process."""
    path = tmp_path / "events.sqlite"
    game.wire.is_down = True
    async with server(game, queue=path) as at:
        await join(at, "ann")
    game.wire.is_down, game.wire.script["init_v2"] = False, [DISABLED]
    game.wire.failing_users = {"ann"}
    async with server(game, queue=path) as at:
        await join(at, "ann")
    game.wire.failing_users = set()
    game.wire.sent.clear()
    async with server(game, queue=path) as at:
        await game.time.wait_for_pause(1)
        await at.submit()
        assert game.wire.of("events") == []
        assert at.report().disabled is not None
    async with server(game, queue=path) as at:
        await join(at, "ann")
    assert game.wire.categories == ["user", "session_end"] * 2


@pytest.mark.slow
@in_loop
async def test_events_wait_for_a_late_version_2_init(game: Game) -> None:
    """An answer after 5 s is used: until then the player's events wait, those of others do not."""
    game.wire.gates["init_v2"], game.wire.script["init_v2"] = asyncio.Event(), [DISABLED]
    async with server(game) as at:
        (ann,) = await join(at, "ann")
        answered, answers = game.wire.gates.pop("init_v2"), game.wire.script.pop("init_v2")
        await join(at, "bob")
        ann.add("design", event_id="menu:open")
        await at.submit()
        assert {event["user_id"] for event in game.wire.events} == {"bob"}
        game.wire.script["init_v2"] = answers
        answered.set()
        await until(lambda: "enabled = false" in (at.report().disabled or ""))
        await at.submit()
        assert not ann.add("design", event_id="menu:open")
    assert {event["user_id"] for event in game.wire.events} == {"bob"}


@pytest.mark.slow
@in_loop
async def test_the_last_delivery_follows_each_init_that_is_answered(game: Game) -> None:
    """Neither a player whose init hangs nor one whose requests fail keeps it from the others."""
    game.wire.failing_users = {"cid"}
    at = server(game)
    await at.start()
    await join(at, "cid")
    of_ann, of_bob = asyncio.Event(), asyncio.Event()
    game.wire.gates["init_v2"] = of_ann
    joining = asyncio.create_task(join(at, "ann"))
    await until(lambda: len(game.wire.of("init_v2")) == 2)
    game.wire.gates["init_v2"] = of_bob
    await join(at, "bob")
    await joining
    closing = asyncio.create_task(at.close())
    await until(lambda: game.wire.of("events"))
    assert game.wire.events == []
    of_bob.set()
    await until(lambda: game.wire.events)
    of_ann.set()
    await closing
    assert [event["user_id"] for event in game.wire.events] == ["bob", "bob", "ann", "ann"]


@pytest.mark.parametrize("ip", ["", "ann's house", "192.0.2.1\r\nX-Evil: 1", "192.0.2.300"])
def test_an_invalid_ip_is_refused(game: Game, ip: str) -> None:
    """A player's `ip` is an IPv4 or IPv6 address, else a `BadQuery`."""

    @in_loop
    async def main() -> None:
        async with server(game) as at:
            with pytest.raises(BadQuery, match="ip"):
                await at.join("ann", ip=ip, **PHONE)

    main()


@in_loop
async def test_many_players_are_told_apart(game: Game) -> None:
    """Each request of thirty players has events of one of them, and none is lost."""
    async with server(game) as at:
        players = await join(at, *(f"player{number}" for number in range(30)))
        for player in players:
            player.add("design", event_id="menu:open")
        await at.submit()
        rounds = [sent for sent in game.wire.of("events") if sent.status == 200]
        assert all(len(players_of(sent)) == 1 for sent in rounds)
        assert at.report().collected == 60
