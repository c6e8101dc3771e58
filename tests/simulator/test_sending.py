"""What becomes of events on the way: each label keeps its word, and everything else stays as it is."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pytest

from gamelens.errors import BadQuery
from gamelens.sandbox.collector.event_admission import admit
from gamelens.sandbox.http.request_body import UndecodableBody
from gamelens.simulator import Ledger, RequestBatch, Scenario, expect, load_scenario, play, play_columns
from gamelens.simulator.events.defects import BAD_REQUESTS, BREAKS, FLAWS, ODDITIES, too_large
from gamelens.simulator.events.delivery_times import IN_2100_S, YEAR_S, draw_delivery
from gamelens.simulator.output.play import BlockTask, first_day, play_task
from gamelens.simulator.population.behaviour import CONNECTIONS
from gamelens.simulator.scenarios.delivery_profile import DeliveryProfile
from gamelens.wire.limits import BODY_BYTES
from simulator.conftest import ENDS_ON, GAME_IDS, Played

pytestmark = pytest.mark.slow

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


@pytest.fixture(scope="module")
def dirty() -> tuple[list[RequestBatch], Ledger]:
    ledger = Ledger()
    batches = list(play(load_scenario("dirty"), ends_on=ENDS_ON, game_ids=GAME_IDS, ledger=ledger))
    return batches, ledger


def _clean() -> Scenario:
    return msgspec.structs.replace(load_scenario("dirty"), delivery=None, dirt=None)


def _table(ledger: Ledger, tmp_path: Any) -> pa.Table:
    ledger.write(tmp_path / "truth.parquet")
    return pa.parquet.read_table(tmp_path / "truth.parquet")


def _way(delivery: DeliveryProfile) -> Any:
    scenario = load_scenario("dirty")
    block, _ = play_task(scenario, first_day(scenario, ENDS_ON), BlockTask(game=0, block=0, players=400))
    return block, draw_delivery(block, delivery, rng=np.random.default_rng(5))


def test_the_collector_owes_each_body_what_the_batch_says(dirty: tuple[list[RequestBatch], Ledger]) -> None:
    """Contract, Collector: the good events of a batch are collected, a body that cannot be read is refused whole."""
    for batch in dirty[0]:
        if batch.bad:
            assert batch.rejected == (batch.bad.status == 400)
        elif not batch.events:
            with pytest.raises(UndecodableBody):
                admit(batch.body)
        else:
            admission = admit(batch.body)
            assert (admission.events, len(admission.rejected)) == (batch.events - batch.rejected, batch.rejected)


@pytest.mark.parametrize("broken", BREAKS, ids=lambda each: each.name)
def test_a_broken_body_is_broken_in_the_way_it_says(broken: Any, dirty: tuple[list[RequestBatch], Ledger]) -> None:
    body = next(batch.body for batch in dirty[0] if batch.events)
    with pytest.raises(UndecodableBody) as refusal:
        admit(broken.spoil(body))
    assert refusal.value.error_type == broken.error_type


def test_bad_requests_are_in_the_ledger_with_the_status_they_are_owed(dirty: tuple[list[RequestBatch], Ledger]) -> None:
    """Those that are told what is wrong with `/` count as rejected, the others as refused."""
    bad = Counter(batch.bad for batch in dirty[0] if batch.bad)
    assert set(bad) == set(BAD_REQUESTS)
    assert all(dirty[1].labels()[each.name] == count for each, count in bad.items())
    assert dirty[1].refused() == {each.status: count for each, count in bad.items() if each.status != 400}


@pytest.mark.parametrize("events", [1, 450])
def test_a_body_that_is_too_large_is_so_as_it_is_sent(played: Played, events: int) -> None:
    """Collector, Limits; made of good events, it would be taken if it were smaller."""
    body = too_large(msgspec.json.encode(msgspec.json.decode(played.batches[0].body)[:events]))
    assert BODY_BYTES < len(body) < 2 * BODY_BYTES
    assert len(msgspec.json.decode(body)) % events == 0


def test_names_of_the_catalogue_are_different() -> None:
    names = [each.name for each in (*FLAWS, *ODDITIES, *BREAKS, *BAD_REQUESTS)]
    assert len(set(names)) == len(names)


def test_same_seed_same_bytes_for_any_number_of_workers() -> None:
    scenario = load_scenario("dirty", players=60)
    ledgers = Ledger(), Ledger()
    one, two = (
        list(play(scenario, ends_on=ENDS_ON, ledger=ledger, workers=workers))
        for ledger, workers in zip(ledgers, (1, 2), strict=True)
    )
    assert one == two
    assert ledgers[0].labels() == ledgers[1].labels()


def test_delivery_and_dirt_change_nothing_in_what_players_do(dirty: tuple[list[RequestBatch], Ledger]) -> None:
    """Every clean event is sent, byte for byte, unless its device has a wrong clock, an old SDK or crashed."""
    before = Ledger()
    sent = Counter(
        event
        for batch in play(_clean(), ends_on=ENDS_ON, game_ids=GAME_IDS, ledger=before)
        for event in map(bytes, msgspec.json.decode(batch.body, type=list[msgspec.Raw]))
    )
    now = Counter(
        event
        for batch in dirty[0]
        if batch.events
        for event in map(bytes, msgspec.json.decode(batch.body, type=list[msgspec.Raw]))
    )
    missing = (sent - now).total()
    labels = dirty[1].labels()
    assert 0 < missing <= labels["wrong clock"] + labels["old SDK"] + labels["crash"]


def test_no_delivery_and_no_dirt_is_the_clean_scenario(tmp_path: Any) -> None:
    """A scenario with empty tables counts what the one without counts, in the order of sending."""
    still = msgspec.structs.replace(_clean(), delivery=DeliveryProfile())
    ledgers = Ledger(), Ledger()
    for ledger, scenario in zip(ledgers, (_clean(), still), strict=True):
        events = [
            bytes(event)
            for batch in play(scenario, ends_on=ENDS_ON, ledger=ledger)
            for event in msgspec.json.decode(batch.body, type=list[msgspec.Raw])
        ]
        assert len(set(events)) == len(events)
    assert ledgers[0].summary() == ledgers[1].summary()
    assert set(ledgers[1].labels()) == {"late"}


def test_a_repeat_comes_after_its_original(dirty: tuple[list[RequestBatch], Ledger], tmp_path: Any) -> None:
    """Metrics, Words: the first copy to arrive counts."""
    seen = set()
    for row in _table(dirty[1], tmp_path).to_pylist():
        name = row["game_id"], row["event_uuid"]
        if row["verdict"] == "repeated":
            assert name in seen
        elif row["verdict"] is None and row["event_uuid"] is not None:
            assert name not in seen
            seen.add(name)


def test_what_has_no_usable_time_needs_an_arrival() -> None:
    ledger = Ledger()
    for _ in play(load_scenario("dirty", players=100), ends_on=ENDS_ON, ledger=ledger):
        pass
    with pytest.raises(BadQuery, match="date_arrivals"):
        ledger.metric("event_count", interval="2026-11-21/P1D")
    ledger.date_arrivals(NOON)
    assert ledger.metric("event_count", interval="2026-11-21T12:00Z/PT1H")[0]["event_count"] > 0


def test_bots_play_one_session_over_and_over(dirty: tuple[list[RequestBatch], Ledger], tmp_path: Any) -> None:
    bots = [row for row in _table(dirty[1], tmp_path).to_pylist() if row["sent_as"] == "bot"]
    people = {row["user_id"] for row in _table(dirty[1], tmp_path).to_pylist() if row["sent_as"] is None}
    assert bots
    assert not {row["user_id"] for row in bots} & people
    assert max(Counter(row["user_id"] for row in {row["session_id"]: row for row in bots}.values()).values()) == 20


def test_online_events_are_sent_within_a_period() -> None:
    """Collector, POST events 3: every 20 seconds."""
    block, way = _way(DeliveryProfile())
    waited = way.sent_s - block.events.ts_s
    assert set(np.unique(waited[~way.is_late])) <= set(range(1, 21))
    offline = block.sessions.connection[block.events.session] == CONNECTIONS.index("offline")
    assert np.array_equal(way.is_late, offline)
    assert way.is_late.any()


def test_offline_sessions_are_sent_late_but_not_too_late() -> None:
    block, way = _way(DeliveryProfile(offline_delay_h=10, offline_cap_h=24))
    ends = (block.sessions.start_s + block.sessions.length_s)[block.events.session]
    delays = (way.sent_s - ends)[way.is_late]
    assert delays.min() >= 0
    assert delays.max() <= 24 * 3600
    assert 4 * 3600 < np.median(delays) < 24 * 3600


def test_init_corrects_a_wrong_clock_from_the_first_online_session_on() -> None:
    """Collector, POST init 3."""
    block, way = _way(DeliveryProfile(clocks={"past": 1.0}))
    is_off = way.told_s != block.events.ts_s
    assert is_off.any()
    assert way.is_late[is_off].all()
    assert (block.events.ts_s - way.told_s)[is_off].min() >= YEAR_S


def test_who_ignores_the_servers_time_stays_wrong() -> None:
    block, way = _way(DeliveryProfile(clocks={"future": 1.0}, uncorrected=1.0))
    assert not way.is_usable.any()
    assert way.told_s.min() > IN_2100_S
    hours = _way(DeliveryProfile(clocks={"zone": 1.0}, uncorrected=1.0))[1].told_s - block.events.ts_s
    assert set(np.unique(hours % 3600)) == {0}


def test_crashes_take_ends_of_sessions_away() -> None:
    block, way = _way(DeliveryProfile(crashes=0.25))
    ends = len(block.sessions.day)
    assert 0.18 * ends < way.is_unsent.sum() < 0.32 * ends


def test_a_scenario_with_dirt_must_be_sent(tmp_path: Any) -> None:
    """Only a collector can judge it."""
    with pytest.raises(BadQuery, match="collector"):
        play_columns(load_scenario("dirty"), tmp_path)


def test_expectation_counts_what_is_added(dirty: tuple[list[RequestBatch], Ledger]) -> None:
    expected = expect(load_scenario("dirty"), ends_on=ENDS_ON)
    assert expected.events == pytest.approx(sum(batch.events for batch in dirty[0]), rel=0.15)
