"""What becomes of a batch, by answer, and when the next one goes (Collector, POST events and Errors)."""

from __future__ import annotations

import json
from collections import Counter
from random import choices
from string import ascii_letters

import pytest

from gamelens.client.events.batch_sender import DeliveryReport
from gamelens.client.events.event_recorder import EventRecorder
from gamelens.client.events.player_session import PlayerSession
from gamelens.errors import RateLimited, ServiceError
from support.game_network import GAME_KEY, Game, in_loop

OK = (200, b"")
DOWN = (503, b'{"message":"nothing was stored: send it again"}')


def fill(player: PlayerSession | EventRecorder, events: int) -> None:
    for number in range(events):
        player.add("design", event_id=f"step:{number}")


def uuids(game: Game, status: int = 200) -> Counter[str]:
    """How often each event was sent with that answer."""
    sent = [sent for sent in game.wire.of("events") if sent.status == status]
    return Counter(event["event_uuid"] for one in sent for event in one.said)


async def quiet(game: Game) -> None:
    """Wait for the first delivery, so that a script meets the next."""
    await game.time.pauses_are(1)


@in_loop
async def test_a_400_removes_the_batch_and_reports_the_rejected(game: Game) -> None:
    """public-facts 1.7: the valid events of the same request are collected; sending all again duplicates them."""
    async with game.session() as player:
        await quiet(game)
        fill(player, 3)
        bad = {"event": {"category": "design"}, "errors": [{"error_type": "wrong_type", "path": "/value"}]}
        game.wire.script["events"] = [(400, json.dumps([bad]).encode())]
        report = await player.flush()
    (rejected,) = report.rejections
    assert (report.waiting, report.collected, report.rejected) == (0, 3, 1)
    assert rejected.errors[0].path == "/value"


@in_loop
async def test_a_rejected_event_is_logged_by_its_faults_only(game: Game, caplog: pytest.LogCaptureFixture) -> None:
    async with game.session() as player:
        await quiet(game)
        fill(player, 1)
        bad = {"event": {"user_id": "ann"}, "errors": [{"error_type": "wrong_type", "path": "/value"}]}
        game.wire.script["events"] = [(400, json.dumps([bad]).encode())]
        await player.flush()
    (line,) = [record.getMessage() for record in caplog.records if record.name == "gamelens.client.events.batch_sender"]
    assert line == "an event was rejected: wrong_type /value"


@in_loop
async def test_a_400_that_names_nothing_drops_the_batch_aloud(game: Game) -> None:
    """public-facts 1.6: for a body that is no list, almost nothing comes back; sent again it would be the same."""
    async with game.session() as player:
        await quiet(game)
        fill(player, 3)
        game.wire.script["events"] = [(400, b"")]
        report = await player.flush()
    assert report.dropped == {"answered 400 without saying why": 3}


@in_loop
async def test_one_unreadable_event_takes_no_other_with_it(game: Game) -> None:
    """The sandbox reads 32 levels deep, and refuses the whole of a body with more."""
    nested: dict[str, object] = {}
    for _ in range(40):
        nested = {"a": nested}
    async with game.session() as player:
        await quiet(game)
        fill(player, 10)
        player.add("design", event_id="deep", custom_fields=nested)
        fill(player, 10)
        report = await player.flush()
    assert (report.collected, report.rejected, report.waiting) == (21, 1, 0)
    assert set(uuids(game).values()) == {1}


@in_loop
async def test_wrong_keys_stop_everything_and_keep_what_waits(game: Game) -> None:
    """public-facts 1.6: 401."""
    session = game.session()
    async with session as player:
        await quiet(game)
        fill(player, 2)
        game.wire.script["events"] = [(401, b'{"message":"not authorised"}')]
        report = await player.flush()
        assert not player.add("design", event_id="late")
    assert (report.waiting, session.report().waiting) == (2, 3)
    assert session.report().dropped == {"disabled": 1}
    assert len(game.wire.of("events")) == 2


@pytest.mark.parametrize("answer", [DOWN, (500, b""), (502, b"<html>"), (404, b"{}"), (408, b"{}")])
def test_what_is_no_answer_keeps_the_batch(game: Game, answer: tuple[int, bytes]) -> None:
    @in_loop
    async def main() -> None:
        async with game.session() as player:
            await quiet(game)
            fill(player, 2)
            game.wire.script["events"] = [answer]
            with pytest.raises(ServiceError):
                await player.flush()
            assert player.report().waiting == 2
            assert (await player.flush()).collected == 3

    main()


@in_loop
async def test_what_is_sent_again_is_the_same(game: Game) -> None:
    """public-facts 2.3: event_uuid tells a repeat from a new event."""
    async with game.session() as player:
        await quiet(game)
        fill(player, 2)
        game.wire.script["events"] = [DOWN]
        with pytest.raises(ServiceError):
            await player.flush()
        await player.flush()
    _, first, second, _ = [sent.said for sent in game.wire.of("events")]
    assert first == second


@in_loop
async def test_a_413_halves_the_batch(game: Game) -> None:
    """public-facts 1.8: send again after 413, in smaller batches."""
    async with game.session() as player:
        await quiet(game)
        fill(player, 64)
        game.wire.takes_events = 16
        report = await player.flush()
        assert (report.collected, report.waiting, report.dropped) == (65, 0, {})
    assert set(uuids(game).values()) == {1}
    assert [len(sent.said) for sent in game.wire.of("events")] == [1, 64, 32, 16, 16, 32, 16, 16, 1]


@in_loop
async def test_an_event_that_is_too_large_alone_is_dropped_aloud(game: Game) -> None:
    async with game.session() as player:
        await quiet(game)
        fill(player, 3)
        player.add("error", severity="info", message="".join(choices(ascii_letters, k=8000)))
        game.wire.takes_bytes = 4000
        report = await player.flush()
        assert (report.collected, report.dropped) == (4, {"too large for the collector": 1})


@in_loop
async def test_a_long_queue_goes_in_several_requests(game: Game) -> None:
    """public-facts 1.10: 500 events in a request."""
    async with game.session() as player:
        await quiet(game)
        fill(player, 1100)
        await player.flush()
    assert [len(sent.said) for sent in game.wire.of("events")] == [1, 500, 500, 100, 1]


@in_loop
async def test_a_failure_halfway_keeps_the_rest_only(game: Game) -> None:
    async with game.session() as player:
        await quiet(game)
        fill(player, 700)
        game.wire.script["events"] = [OK, DOWN]
        with pytest.raises(ServiceError):
            await player.flush()
        assert player.report().waiting == 200


@in_loop
async def test_failures_make_the_pauses_longer_up_to_ten_minutes(game: Game) -> None:
    """Full jitter: with chance at one half, half of a doubling pause."""
    game.wire.is_down = True
    async with game.session():
        for number in range(1, 8):
            game.time.pass_s(await game.time.pauses_are(number))
    assert game.time.pauses[:7] == [20, 40, 80, 160, 300, 300, 300]


@in_loop
async def test_the_pause_after_a_failure_may_be_short(game: Game) -> None:
    game.wire.is_down = True
    async with game.session(random=lambda: 0.01):
        assert await game.time.pauses_are(1) == 0.4


@in_loop
async def test_a_success_makes_the_pauses_short_again(game: Game) -> None:
    game.wire.is_down = True
    async with game.session() as player:
        game.time.pass_s(await game.time.pauses_are(1))
        game.time.pass_s(await game.time.pauses_are(2))
        assert player.report().trouble is not None
        game.wire.is_down = False
        game.time.pass_s(await game.time.pauses_are(3))
        assert await game.time.pauses_are(4) == 20
        assert player.report().trouble is None


@in_loop
async def test_one_turn_is_one_attempt(game: Game) -> None:
    """Trying again is for the queue alone: attempts of two layers would multiply."""
    async with game.session() as player:
        await quiet(game)
        game.wire.script["events"] = [DOWN] * 5
        fill(player, 1)
        with pytest.raises(ServiceError):
            await player.flush()
        assert len(game.wire.script["events"]) == 4
        game.wire.script["events"] = []


@in_loop
async def test_a_429_is_waited_out(game: Game) -> None:
    async with game.session() as player:
        await quiet(game)
        fill(player, 1)
        game.wire.script["events"] = [(429, b"{}")]
        with pytest.raises(RateLimited):
            await player.flush()
        assert player.report().waiting == 1


@in_loop
async def test_a_retry_after_is_waited_at_least(game: Game) -> None:
    game.wire.retry_after_s = 900
    game.wire.script["events"] = [(429, b"{}")]
    async with game.session():
        assert await game.time.pauses_are(1) == 900


@in_loop
async def test_events_go_to_the_route_of_the_game(game: Game) -> None:
    """Collector, Authentication 4."""
    async with game.session():
        pass
    assert {sent.path for sent in game.wire.of("events")} == {f"/v2/{GAME_KEY}/events"}


def test_a_report_counts_each_event_once() -> None:
    report = DeliveryReport(waiting=1, collected=2, rejected=3, dropped={"cache full": 4})
    assert report.added == 10
