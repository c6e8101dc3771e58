"""Requests as devices send them: one per period of play, in order, of one device each."""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import chain
from typing import Any

import msgspec
import numpy as np
import pytest

from gamelens.simulator import Ledger, RequestBatch, Scenario, load_scenario, play
from gamelens.simulator.events.request_batches import BATCH_EVENTS
from gamelens.simulator.events.sent_events import draw_delivery
from gamelens.simulator.output.play import BlockTask, first_day, play_task
from gamelens.simulator.population.session_times import CONNECTIONS
from gamelens.simulator.scenarios.scenario import DeliveryProfile
from support.played_scenario import ENDS_ON, GAME_IDS

pytestmark = pytest.mark.slow

NINETY_PLAYERS = load_scenario("small", players=90, days=12)


def sent_by(delivery: DeliveryProfile, scenario: Scenario = NINETY_PLAYERS) -> list[RequestBatch]:
    """Return the batches of *scenario* delivered as *delivery* describes."""
    scenario = msgspec.structs.replace(scenario, delivery=delivery)
    return list(play(scenario, ends_on=ENDS_ON, game_ids=GAME_IDS))


def events_of(batch: RequestBatch) -> list[dict[str, Any]]:
    return msgspec.json.decode(batch.body, type=list[dict[str, Any]])


@pytest.fixture(scope="module")
def requests() -> list[list[dict[str, Any]]]:
    """Return the events of each request of 90 players who send every 20 seconds."""
    return list(map(events_of, sent_by(DeliveryProfile(batch_s=20))))


def test_a_request_is_of_one_device_and_one_session(requests: list[list[dict[str, Any]]]) -> None:
    """Without lost answers a request holds one session (Wire 1.15, Client queue)."""
    assert all(len({event["session_id"] for event in request}) == 1 for request in requests)


def test_an_online_request_holds_the_events_of_20_seconds(requests: list[list[dict[str, Any]]]) -> None:
    """A session sends one request for each 20 s with events (Wire 1.15, Client queue)."""
    periods = defaultdict(list)
    begun = {
        event["session_id"]: event["client_ts"]
        for event in chain.from_iterable(requests)
        if event["category"] == "user"  # which begins a session
    }
    for request in requests:
        if request[0]["connection_type"] != "offline":
            session = request[0]["session_id"]
            (period,) = {(event["client_ts"] - begun[session]) // 20 for event in request}
            periods[session].append(period)
    assert sum(map(len, periods.values())) > 1000
    assert all(numbers == sorted(set(numbers)) for numbers in periods.values())


def test_events_of_an_offline_session_are_one_request(requests: list[list[dict[str, Any]]]) -> None:
    """All events of an offline session are sent in a single request."""
    first_events = [request[0] for request in requests]
    offline = Counter(event["session_id"] for event in first_events if event["connection_type"] == "offline")
    assert len(offline) > 5
    assert set(offline.values()) == {1}


@pytest.mark.wide
def test_a_request_holds_no_more_than_a_client_sends() -> None:
    """A request has at most `BATCH_EVENTS` events, also with an hour-long period."""
    batches = sent_by(DeliveryProfile(batch_s=3600, lost_answers=1.0), load_scenario("midcore", players=300, days=20))
    assert max(batch.events for batch in batches) <= BATCH_EVENTS


def test_the_delivery_does_not_change_the_events(requests: list[list[dict[str, Any]]]) -> None:
    """The events are the same with and without periods, only their requests differ."""

    def encoded(requests: list[list[dict[str, Any]]]) -> list[bytes]:
        return sorted(map(msgspec.json.encode, chain.from_iterable(requests)))

    assert encoded(requests) == encoded(list(map(events_of, sent_by(DeliveryProfile()))))


def test_requests_of_a_device_are_made_in_order() -> None:
    """First copies of online events are sent in order of time, also where answers are lost."""
    scenario = msgspec.structs.replace(NINETY_PLAYERS, delivery=DeliveryProfile(batch_s=20, lost_answers=0.2))
    ledger, seen = Ledger(), defaultdict(list)
    batches = list(play(scenario, ends_on=ENDS_ON, game_ids=GAME_IDS, ledger=ledger))
    for batch in batches:
        for event in events_of(batch):
            seen[event["user_id"], event["connection_type"] == "offline"].append((event["client_ts"], batch.device))
    for (_, is_offline), sent in seen.items():
        assert len({device for _, device in sent}) == 1
        if not is_offline:
            first = list(dict.fromkeys(ts_s for ts_s, _ in sent))
            assert first == sorted(first)
    assert ledger.labels()["sent again"] > 100


def test_without_a_period_batches_have_no_device() -> None:
    """A batch without a period is not of one device, so it names none."""
    assert {batch.device for batch in sent_by(DeliveryProfile())} == {None}


def test_events_are_sent_at_the_end_of_their_period() -> None:
    """Online events wait from 1 to 45 seconds with a period of 45."""
    scenario = load_scenario("small")
    block, _ = play_task(scenario, first_day(scenario, ENDS_ON), BlockTask(game=0, block=0, players=100))
    delivery = draw_delivery(block, DeliveryProfile(batch_s=45), rng=np.random.default_rng(5))
    is_online = block.sessions.connection[block.events.session] != CONNECTIONS.index("offline")
    waited = (delivery.sent_s - block.events.ts_s)[is_online]
    assert (waited.min(), waited.max()) == (1, 45)
