"""Batches of events: the effect of each collector answer, and the pauses between them."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
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


def add_events(player: PlayerSession | EventRecorder, events: int) -> None:
    """Add *events* design events with different ids."""
    for number in range(events):
        player.add("design", event_id=f"step:{number}")


def times_sent(game: Game, status: int = 200) -> Counter[str]:
    """Return how often each event was sent in requests answered with *status*."""
    sent = [sent for sent in game.wire.of("events") if sent.status == status]
    return Counter(event["event_uuid"] for one in sent for event in one.content)


async def first_delivery(game: Game) -> None:
    """Wait until the first batch is sent, so that a script meets the next one."""
    await game.time.wait_for_pause(1)


@in_loop
async def test_a_400_removes_the_batch_and_reports_the_rejected(game: Game) -> None:
    """A 400 collects the valid events, so none is sent again (Wire 1.8, Rejected events)."""
    async with game.session() as player:
        await first_delivery(game)
        add_events(player, 3)
        bad = {"event": {"category": "design"}, "errors": [{"error_type": "wrong_type", "path": "/value"}]}
        game.wire.script["events"] = [(400, json.dumps([bad]).encode())]
        report = await player.flush()
    (rejected,) = report.rejections
    assert (report.waiting, report.collected, report.rejected) == (0, 3, 1)
    assert rejected.errors[0].path == "/value"


@in_loop
async def test_a_rejected_event_is_logged_by_its_violations_only(game: Game, caplog: pytest.LogCaptureFixture) -> None:
    """The log names error type and path of a rejected event and no value of it."""
    async with game.session() as player:
        await first_delivery(game)
        add_events(player, 1)
        bad = {"event": {"user_id": "ann"}, "errors": [{"error_type": "wrong_type", "path": "/value"}]}
        game.wire.script["events"] = [(400, json.dumps([bad]).encode())]
        await player.flush()
    (line,) = [record.getMessage() for record in caplog.records if record.name == "gamelens.client.events.batch_sender"]
    assert line == "an event was rejected: wrong_type /value"


@in_loop
async def test_a_400_without_a_list_drops_the_batch_and_counts_it(game: Game) -> None:
    """A batch refused as a whole would be refused again (Wire 1.10, Collector statuses)."""
    async with game.session() as player:
        await first_delivery(game)
        add_events(player, 3)
        game.wire.script["events"] = [(400, b"")]
        report = await player.flush()
    assert report.dropped == {"answered 400 without a reason": 3}


@in_loop
async def test_one_unreadable_event_is_rejected_alone(game: Game) -> None:
    """A body nested too deeply is refused whole, and the batch is split to find the event."""
    nested: dict[str, object] = {}
    for _ in range(40):
        nested = {"a": nested}
    async with game.session() as player:
        await first_delivery(game)
        add_events(player, 10)
        player.add("design", event_id="deep", custom_fields=nested)
        add_events(player, 10)
        report = await player.flush()
    assert (report.collected, report.rejected, report.waiting) == (21, 1, 0)
    assert set(times_sent(game).values()) == {1}


@in_loop
async def test_a_401_stops_all_sending_and_keeps_the_queue(game: Game, tmp_path: Path) -> None:
    """After a 401 nothing more is sent or queued (Wire 1.10, Collector statuses)."""
    session = game.session(queue=tmp_path / "events.sqlite")
    async with session as player:
        await first_delivery(game)
        add_events(player, 2)
        game.wire.script["events"] = [(401, b'{"message":"not authorised"}')]
        report = await player.flush()
        assert not player.add("design", event_id="late")
    assert (report.waiting, session.report().waiting) == (2, 3)
    assert session.report().dropped == {"disabled": 1}
    assert len(game.wire.of("events")) == 2


@pytest.mark.parametrize("answer", [DOWN, (500, b""), (502, b"<html>"), (404, b"{}"), (408, b"{}")])
def test_a_failed_request_keeps_the_batch(game: Game, answer: tuple[int, bytes]) -> None:
    """After a 5xx, 404 or 408 the batch is sent again (Wire 1.10, Collector statuses)."""

    @in_loop
    async def main() -> None:
        async with game.session() as player:
            await first_delivery(game)
            add_events(player, 2)
            game.wire.script["events"] = [answer]
            with pytest.raises(ServiceError):
                await player.flush()
            assert player.report().waiting == 2
            assert (await player.flush()).collected == 3

    main()


@in_loop
async def test_a_batch_sent_again_is_the_same(game: Game) -> None:
    """A repeat has the same `event_uuid`s and counts once (Wire 4.8, Repeated events)."""
    async with game.session() as player:
        await first_delivery(game)
        add_events(player, 2)
        game.wire.script["events"] = [DOWN]
        with pytest.raises(ServiceError):
            await player.flush()
        await player.flush()
    _, first, second, _ = [sent.content for sent in game.wire.of("events")]
    assert first == second


@in_loop
async def test_a_413_halves_the_batch(game: Game) -> None:
    """After a 413 the batch is sent again in halves (Wire 1.18, Official clients)."""
    async with game.session() as player:
        await first_delivery(game)
        add_events(player, 64)
        game.wire.takes_events = 16
        report = await player.flush()
        assert (report.collected, report.waiting, report.dropped) == (65, 0, {})
    assert set(times_sent(game).values()) == {1}
    assert [len(sent.content) for sent in game.wire.of("events")] == [1, 64, 32, 16, 16, 32, 16, 16, 1]


@in_loop
async def test_an_event_too_large_alone_is_dropped_and_counted(game: Game) -> None:
    """An event that is refused with 413 alone is dropped, and the report counts it."""
    async with game.session() as player:
        await first_delivery(game)
        add_events(player, 3)
        player.add("error", severity="info", message="".join(choices(ascii_letters, k=8000)))
        game.wire.takes_bytes = 4000
        report = await player.flush()
        assert (report.collected, report.dropped) == (4, {"too large for the collector": 1})


@in_loop
async def test_a_long_queue_goes_in_several_requests(game: Game) -> None:
    """One request carries at most 500 events (Wire 1.15, Client queue)."""
    async with game.session() as player:
        await first_delivery(game)
        add_events(player, 1100)
        await player.flush()
    assert [len(sent.content) for sent in game.wire.of("events")] == [1, 500, 500, 100, 1]


@in_loop
async def test_a_failure_halfway_keeps_the_rest_only(game: Game) -> None:
    """If the second of two requests fails, only its events stay queued."""
    async with game.session() as player:
        await first_delivery(game)
        add_events(player, 700)
        game.wire.script["events"] = [OK, DOWN]
        with pytest.raises(ServiceError):
            await player.flush()
        assert player.report().waiting == 200


@in_loop
async def test_failures_make_the_pauses_longer_up_to_ten_minutes(game: Game) -> None:
    """Pauses double up to ten minutes with full jitter: half of each at chance 0.5."""
    game.wire.is_down = True
    async with game.session():
        for number in range(1, 8):
            game.time.advance(await game.time.wait_for_pause(number))
    assert game.time.pauses[:7] == [20, 40, 80, 160, 300, 300, 300]


@in_loop
async def test_the_pause_after_a_failure_may_be_short(game: Game) -> None:
    """With full jitter a pause after a failure may be close to 0."""
    game.wire.is_down = True
    async with game.session(random=lambda: 0.01):
        assert await game.time.wait_for_pause(1) == 0.4


@in_loop
async def test_a_success_makes_the_pauses_short_again(game: Game) -> None:
    """After a success the pause is 20 s again and the report shows no failure."""
    game.wire.is_down = True
    async with game.session() as player:
        game.time.advance(await game.time.wait_for_pause(1))
        game.time.advance(await game.time.wait_for_pause(2))
        assert player.report().trouble is not None
        game.wire.is_down = False
        game.time.advance(await game.time.wait_for_pause(3))
        assert await game.time.wait_for_pause(4) == 20
        assert player.report().trouble is None


@in_loop
async def test_a_flush_is_one_attempt(game: Game) -> None:
    """Only the queue repeats requests: attempts of two layers would multiply."""
    async with game.session() as player:
        await first_delivery(game)
        game.wire.script["events"] = [DOWN] * 5
        add_events(player, 1)
        with pytest.raises(ServiceError):
            await player.flush()
        assert len(game.wire.script["events"]) == 4
        game.wire.script["events"] = []


@in_loop
async def test_a_429_keeps_the_batch(game: Game) -> None:
    """A 429 raises `RateLimited` and the event stays queued."""
    async with game.session() as player:
        await first_delivery(game)
        add_events(player, 1)
        game.wire.script["events"] = [(429, b"{}")]
        with pytest.raises(RateLimited):
            await player.flush()
        assert player.report().waiting == 1


@in_loop
async def test_a_retry_after_is_waited_at_least(game: Game) -> None:
    """The next pause is at least as long as `Retry-After`."""
    game.wire.retry_after_s = 900
    game.wire.script["events"] = [(429, b"{}")]
    async with game.session():
        assert await game.time.wait_for_pause(1) == 900


@in_loop
async def test_events_go_to_the_route_of_the_game(game: Game) -> None:
    """The path of an events request names the game key (Wire 1.4, Signature)."""
    async with game.session():
        pass
    assert {sent.path for sent in game.wire.of("events")} == {f"/v2/{GAME_KEY}/events"}


def test_a_report_counts_each_event_once() -> None:
    """`added` is the sum of waiting, collected, rejected and dropped events."""
    report = DeliveryReport(waiting=1, collected=2, rejected=3, dropped={"cache full": 4})
    assert report.added == 10
