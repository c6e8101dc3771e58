"""Delivery times and defects: each label has its effect, and nothing else changes."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gamelens.errors import BadQuery
from gamelens.sandbox.collector.event_admission import admit
from gamelens.sandbox.http.request_body import UndecodableBody
from gamelens.simulator import Ledger, RequestBatch, Scenario, load_scenario, play, play_columns
from gamelens.simulator.events.defects import (
    BODY_DEFECTS,
    EVENT_DEFECTS,
    EVENT_QUIRKS,
    REQUEST_DEFECTS,
    BodyDefect,
    enlarge_body,
)
from gamelens.simulator.events.device_clocks import YEAR_S
from gamelens.simulator.events.sent_events import EventDelivery, draw_delivery
from gamelens.simulator.output.play import BlockTask, estimated_events, first_day, play_task
from gamelens.simulator.population.behaviour import PlayedBlock
from gamelens.simulator.population.session_times import CONNECTIONS
from gamelens.simulator.scenarios.scenario import DeliveryProfile
from gamelens.wire.limits import BODY_BYTES
from support.played_scenario import ENDS_ON, GAME_IDS, PlayedScenario

pytestmark = pytest.mark.slow

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
Played = tuple[list[RequestBatch], Ledger]
"""The batches of a scenario and the ledger of it."""


@pytest.fixture(scope="module")
def dirty() -> Played:
    """Play the `dirty` scenario."""
    ledger = Ledger()
    batches = list(play(load_scenario("dirty"), ends_on=ENDS_ON, game_ids=GAME_IDS, ledger=ledger))
    return batches, ledger


def _clean() -> Scenario:
    return msgspec.structs.replace(load_scenario("dirty"), delivery=None, dirt=None)


def _table(ledger: Ledger, tmp_path: Path, *columns: str) -> pa.Table:
    """Return the *columns* of the ledger, or all."""
    ledger.write(tmp_path / "truth.parquet")
    return pq.read_table(tmp_path / "truth.parquet", columns=list(columns) or None)


def _delivered(delivery: DeliveryProfile) -> tuple[PlayedBlock, EventDelivery]:
    """Draw 400 players and the delivery of their events."""
    scenario = load_scenario("dirty")
    block, _ = play_task(scenario, first_day(scenario, ENDS_ON), BlockTask(game=0, block=0, players=400))
    return block, draw_delivery(block, delivery, rng=np.random.default_rng(5))


def test_the_collector_answers_each_body_as_the_batch_expects(dirty: Played) -> None:
    """The collector rejects as many events as the batch states (Wire 1.7, Submitting events)."""
    for batch in dirty[0]:
        if batch.bad:
            assert batch.rejected == (batch.bad.status == 400)
        elif not batch.events:
            with pytest.raises(UndecodableBody):
                admit(batch.body)
        else:
            admission = admit(batch.body)
            assert (admission.events, len(admission.rejected)) == (batch.events - batch.rejected, batch.rejected)


@pytest.mark.parametrize("broken", BODY_DEFECTS, ids=lambda each: each.name)
def test_a_body_defect_gives_its_error_type(broken: BodyDefect, dirty: Played) -> None:
    """A spoiled body is refused with the error type of its defect (Wire 1.8, Rejected events)."""
    body = next(batch.body for batch in dirty[0] if batch.events)
    with pytest.raises(UndecodableBody) as raised:
        admit(broken.apply(body))
    assert raised.value.error_type == broken.error_type


def test_bad_requests_are_in_the_ledger_with_their_expected_status(dirty: Played) -> None:
    """A bad request with status 400 counts as rejected, any other as refused with its status."""
    bad = Counter(batch.bad for batch in dirty[0] if batch.bad)
    assert set(bad) == set(REQUEST_DEFECTS)
    assert all(dirty[1].labels()[each.name] == count for each, count in bad.items())
    assert dirty[1].refused() == {each.status: count for each, count in bad.items() if each.status != 400}


@pytest.mark.parametrize("events", [1, 450])
def test_a_body_that_is_too_large_exceeds_the_limit_as_sent(played: PlayedScenario, events: int) -> None:
    """The oversized body is between 1 and 2 MB of good events (Wire 1.6, Body limits)."""
    body = enlarge_body(msgspec.json.encode(msgspec.json.decode(played.batches[0].body)[:events]))
    assert BODY_BYTES < len(body) < 2 * BODY_BYTES
    assert len(msgspec.json.decode(body)) % events == 0


def test_names_of_defects_and_quirks_are_unique() -> None:
    """No two defects, quirks, body defects or request defects share a name."""
    names = [each.name for each in (*EVENT_DEFECTS, *EVENT_QUIRKS, *BODY_DEFECTS, *REQUEST_DEFECTS)]
    assert len(set(names)) == len(names)


@pytest.mark.wide
def test_same_seed_same_bytes_for_any_number_of_workers() -> None:
    """A scenario with defects gives the same batches and labels with one worker and with two."""
    scenario = load_scenario("dirty", players=60)
    ledgers = Ledger(), Ledger()
    one, two = (
        list(play(scenario, ends_on=ENDS_ON, ledger=ledger, workers=workers))
        for ledger, workers in zip(ledgers, (1, 2), strict=True)
    )
    assert one == two
    assert ledgers[0].labels() == ledgers[1].labels()


def test_delivery_and_dirt_change_nothing_in_what_players_do(dirty: Played) -> None:
    """Events are sent byte for byte, but for those with a wrong clock, an old SDK or a crash."""
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


def test_no_delivery_and_no_dirt_is_the_clean_scenario(tmp_path: Path) -> None:
    """An empty delivery profile gives the events and totals of a scenario without one."""
    empty = msgspec.structs.replace(_clean(), delivery=DeliveryProfile())
    ledgers = Ledger(), Ledger()
    for ledger, scenario in zip(ledgers, (_clean(), empty), strict=True):
        events = [
            bytes(event)
            for batch in play(scenario, ends_on=ENDS_ON, ledger=ledger)
            for event in msgspec.json.decode(batch.body, type=list[msgspec.Raw])
        ]
        assert len(set(events)) == len(events)
    assert ledgers[0].summary() == ledgers[1].summary()
    assert set(ledgers[1].labels()) == {"late"}


def test_a_repeat_comes_after_its_original(dirty: Played, tmp_path: Path) -> None:
    """The first copy of an `event_uuid` counts, later ones repeat (Wire 4.8, Repeated events)."""
    seen = set()
    for row in _table(dirty[1], tmp_path, "game_id", "event_uuid", "verdict").to_pylist():
        name = row["game_id"], row["event_uuid"]
        if row["verdict"] == "repeated":
            assert name in seen
        elif row["verdict"] is None and row["event_uuid"] is not None:
            assert name not in seen
            seen.add(name)


def test_events_without_a_usable_time_need_an_arrival_time() -> None:
    """Metrics need `date_arrivals` first: such events count at arrival (Wire 4.1, Event time)."""
    ledger = Ledger()
    for _ in play(load_scenario("dirty", players=100), ends_on=ENDS_ON, ledger=ledger):
        pass
    with pytest.raises(BadQuery, match="date_arrivals"):
        ledger.metric("event_count", interval="2026-11-21/P1D")
    ledger.date_arrivals(NOON)
    assert ledger.metric("event_count", interval="2026-11-21T12:00Z/PT1H")[0]["event_count"] > 0


def test_bots_play_one_session_over_and_over(dirty: Played, tmp_path: Path) -> None:
    """Bots are players of their own, and the busiest one repeats its session twenty times."""
    rows = _table(dirty[1], tmp_path, "user_id", "session_id", "sent_as").to_pylist()
    bots = [row for row in rows if row["sent_as"] == "bot"]
    players = {row["user_id"] for row in rows if row["sent_as"] is None}
    assert bots
    assert not {row["user_id"] for row in bots} & players
    assert max(Counter(row["user_id"] for row in {row["session_id"]: row for row in bots}.values()).values()) == 20


def test_online_events_are_sent_within_a_period() -> None:
    """Online events are sent within 20 seconds, offline ones late (Wire 1.15, Client queue)."""
    block, delivery = _delivered(DeliveryProfile())
    waited = delivery.sent_s - block.events.ts_s
    assert set(np.unique(waited[~delivery.is_offline])) <= set(range(1, 21))
    offline = block.sessions.connection[block.events.session] == CONNECTIONS.index("offline")
    assert np.array_equal(delivery.is_offline, offline)
    assert delivery.is_offline.any()


def test_offline_sessions_are_sent_late_but_not_too_late() -> None:
    """Offline sessions arrive after their end, near the configured delay, within the cap."""
    block, delivery = _delivered(DeliveryProfile(offline_delay_h=10, offline_cap_h=24))
    ends = (block.sessions.start_s + block.sessions.length_s)[block.events.session]
    delays = (delivery.sent_s - ends)[delivery.is_offline]
    assert delays.min() >= 0
    assert delays.max() <= 24 * 3600
    assert 4 * 3600 < np.median(delays) < 24 * 3600


def test_init_corrects_a_wrong_clock_from_the_first_online_session_on() -> None:
    """A wrong clock holds until the first online session only (Wire 1.14, Server time)."""
    block, delivery = _delivered(DeliveryProfile(clocks={"past": 1.0}))
    is_off = delivery.claimed_s != block.events.ts_s
    assert is_off.any()
    assert delivery.is_offline[is_off].all()
    assert (block.events.ts_s - delivery.claimed_s)[is_off].min() >= YEAR_S
    assert not delivery.is_usable[is_off].any()


def test_a_client_that_ignores_server_time_keeps_its_wrong_clock() -> None:
    """Without correction a clock stays off: years ahead, or by whole hours for a wrong zone."""
    block, delivery = _delivered(DeliveryProfile(clocks={"future": 1.0}, uncorrected=1.0))
    assert not delivery.is_usable.any()
    assert (delivery.claimed_s - block.events.ts_s).min() >= 100 * YEAR_S
    of_zone = _delivered(DeliveryProfile(clocks={"zone": 1.0}, uncorrected=1.0))[1]
    assert set(np.unique((of_zone.claimed_s - block.events.ts_s) % 3600)) == {0}
    assert of_zone.is_usable.all()


def test_crashes_remove_session_ends() -> None:
    """A crash rate of 0.25 leaves about a quarter of the sessions without `session_end`."""
    block, delivery = _delivered(DeliveryProfile(crashes=0.25))
    ends = len(block.sessions.day)
    assert 0.18 * ends < delivery.is_unsent.sum() < 0.32 * ends


def test_a_scenario_with_defects_cannot_be_written_as_columns(tmp_path: Path) -> None:
    """`play_columns` refuses defects, because only a collector can judge them."""
    with pytest.raises(BadQuery, match="collector"):
        play_columns(load_scenario("dirty"), tmp_path)


@pytest.mark.wide
def test_an_estimate_includes_defects_and_repeats(dirty: Played) -> None:
    """The estimated number of events is within 15 % of all that is sent, defects included."""
    estimated = estimated_events(load_scenario("dirty"), ends_on=ENDS_ON)
    assert estimated == pytest.approx(sum(batch.events for batch in dirty[0]), rel=0.15)
