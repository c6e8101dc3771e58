"""Requests as devices make them: of every so many seconds of play one, in order, and of nobody else's events."""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import chain
from typing import Any

import msgspec
import numpy as np
import pytest

from gamelens.simulator import Ledger, RequestBatch, Scenario, expect, load_scenario, play
from gamelens.simulator.events.delivery_times import draw_delivery
from gamelens.simulator.events.request_batches import BATCH_EVENTS
from gamelens.simulator.output.play import BlockTask, first_day, play_task
from gamelens.simulator.population.behaviour import CONNECTIONS
from gamelens.simulator.scenarios.delivery_profile import DeliveryProfile
from simulator.conftest import ENDS_ON, GAME_IDS

pytestmark = pytest.mark.slow

PEOPLE = load_scenario("small", players=90, days=12)


def sent_by(delivery: DeliveryProfile, scenario: Scenario = PEOPLE) -> list[RequestBatch]:
    scenario = msgspec.structs.replace(scenario, delivery=delivery)
    return list(play(scenario, ends_on=ENDS_ON, game_ids=GAME_IDS))


def events_of(batch: RequestBatch) -> list[dict[str, Any]]:
    return msgspec.json.decode(batch.body)


@pytest.fixture(scope="module")
def requests() -> list[list[dict[str, Any]]]:
    return list(map(events_of, sent_by(DeliveryProfile(batch_s=20))))


def test_a_request_is_of_one_device_and_one_session(requests: list[list[dict[str, Any]]]) -> None:
    """Collector, POST events 3. Nothing is lost here, so nothing of another session comes along."""
    assert all(len({event["session_id"] for event in some}) == 1 for some in requests)


def test_an_online_request_holds_what_was_gathered_in_20_seconds(requests: list[list[dict[str, Any]]]) -> None:
    """Collector, POST events 3: every 20 seconds, whatever there is."""
    periods = defaultdict(list)
    begun = {
        event["session_id"]: event["client_ts"]
        for event in chain.from_iterable(requests)
        if event["category"] == "user"  # which begins a session
    }
    for some in requests:
        if some[0]["connection_type"] != "offline":
            session = some[0]["session_id"]
            (period,) = {(event["client_ts"] - begun[session]) // 20 for event in some}
            periods[session].append(period)
    assert sum(map(len, periods.values())) > 1000
    assert all(made == sorted(set(made)) for made in periods.values())


def test_what_was_played_offline_is_one_request(requests: list[list[dict[str, Any]]]) -> None:
    offline = Counter(some[0]["session_id"] for some in requests if some[0]["connection_type"] == "offline")
    assert len(offline) > 5
    assert set(offline.values()) == {1}


def test_a_request_holds_no_more_than_a_client_sends() -> None:
    """An offline queue as long as a day."""
    batches = sent_by(DeliveryProfile(batch_s=3600, lost_answers=1.0), load_scenario("midcore", players=300, days=20))
    assert max(batch.events for batch in batches) <= BATCH_EVENTS


def test_the_events_are_those_of_any_other_delivery(requests: list[list[dict[str, Any]]]) -> None:
    """The rows are the same; only who makes the requests is another."""

    def all_of(made: list[list[dict[str, Any]]]) -> list[bytes]:
        return sorted(map(msgspec.json.encode, chain.from_iterable(made)))

    assert all_of(requests) == all_of(list(map(events_of, sent_by(DeliveryProfile()))))


def test_requests_of_a_device_are_made_in_order() -> None:
    """Also where answers are lost: what is sent again comes with the next request or in one of its own."""
    scenario = msgspec.structs.replace(PEOPLE, delivery=DeliveryProfile(batch_s=20, lost_answers=0.2))
    ledger, seen = Ledger(), defaultdict(list)
    batches = list(play(scenario, ends_on=ENDS_ON, game_ids=GAME_IDS, ledger=ledger))
    for batch in batches:
        for event in events_of(batch):
            seen[event["user_id"], event["connection_type"] == "offline"].append((event["client_ts"], batch.device))
    for (_, is_offline), told in seen.items():
        assert len({device for _, device in told}) == 1
        if not is_offline:
            first = list(dict.fromkeys(ts_s for ts_s, _ in told))
            assert first == sorted(first)
    assert ledger.labels()["sent again"] > 100


def test_a_request_that_no_device_made_says_so() -> None:
    assert {batch.device for batch in sent_by(DeliveryProfile())} == {None}


def test_the_end_of_a_period_is_when_it_is_sent() -> None:
    scenario = load_scenario("small")
    block, _ = play_task(scenario, first_day(scenario, ENDS_ON), BlockTask(game=0, block=0, players=100))
    way = draw_delivery(block, DeliveryProfile(batch_s=45), rng=np.random.default_rng(5))
    is_online = block.sessions.connection[block.events.session] != CONNECTIONS.index("offline")
    waited = (way.sent_s - block.events.ts_s)[is_online]
    assert (waited.min(), waited.max()) == (1, 45)


@pytest.mark.parametrize(("players", "delivery"), [(1200, None), (200, DeliveryProfile(batch_s=20, lost_answers=0.1))])
def test_a_dry_run_counts_requests(players: int, delivery: DeliveryProfile | None) -> None:
    """Issue, Build 8: what it would send. So few players may do more or less; how much goes together is known."""
    scenario = msgspec.structs.replace(load_scenario("small", players=players), delivery=delivery)
    batches, expected = list(play(scenario, ends_on=ENDS_ON)), expect(scenario, ends_on=ENDS_ON)
    made = len(batches) / sum(batch.events for batch in batches)
    assert expected.requests / expected.events == pytest.approx(made, rel=0.05)
