"""The events of a block as they are sent: when, at which claimed time, and which are lost, copied, malformed or added.

A request of a device holds the events of 20 seconds of a session (or of the scenario's `batch_s`), or of a whole
session that was played offline.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

import msgspec
import numpy as np

from gamelens.simulator.events.defects import (
    BOT_REPEATS,
    EVENT_DEFECTS,
    EVENT_QUIRKS,
    time_fragment,
)
from gamelens.simulator.events.event_columns import CATEGORIES
from gamelens.simulator.events.event_json import SDK_VERSION, BlockIds, Event, draw_uuids, join_events
from gamelens.simulator.population.arrays import Flags, Ints, pick, run_starts, shares
from gamelens.simulator.population.behaviour import EventSlot, PlayedBlock
from gamelens.simulator.population.session_times import CONNECTIONS, DAY_S, Sessions
from gamelens.simulator.scenarios.scenario import DeliveryProfile, DeviceClock, DirtProfile
from gamelens.wire.event_time import can_be_true
from gamelens.wire.limits import SUBMIT_PERIOD_S

YEAR_S: Final = 365 * DAY_S
HOUR_S: Final = 3600
RESEND_AFTER_S: Final = int(SUBMIT_PERIOD_S)
"""Delay of a second attempt, one period after the first."""
REPEATED: Final = "repeated"
REJECTED: Final = "rejected"
REFUSED: Final = "refused"
UNSENT: Final = "unsent"
"""Verdicts of the ledger on events that do not count.

In this order: an event_uuid sent before, an event the collector rejects, a request refused with a status of its own, an
event lost before it was sent.
"""
OLD_SDK: Final = b"unity 2.4.1"
_SDK_FIELD: Final = b'"sdk_version":"%b"' % SDK_VERSION.encode()
_OLD_SDK_FIELD: Final = b'"sdk_version":"%b"' % OLD_SDK
_MAX_DUPLICATE_DELAY_S: Final = 6 * HOUR_S
"""Longest delay of a duplicate. Our choice, without a public figure."""


@dataclass(frozen=True, eq=False, slots=True)
class EventDelivery:
    """Delivery of each event of a block, one array per attribute."""

    claimed_s: Ints  # the client_ts the event carries, by the clock of the device
    is_usable: Flags  # whether the collector uses that time: a later arrival changes nothing for a year
    lacks_uuid: Flags  # whether the event has no event_uuid
    is_offline: Flags  # whether it was recorded offline
    is_unsent: Flags  # whether a crash lost it
    sent_s: Ints  # time of sending, in epoch seconds
    is_resent: Flags  # whether it is sent again because no response arrived


def draw_delivery(block: PlayedBlock, delivery: DeliveryProfile, *, rng: np.random.Generator) -> EventDelivery:
    """Draw the delivery of each event of *block*."""
    sessions, events = block.sessions, block.events
    player = sessions.player[events.session]
    offset_s = _session_offsets(sessions, len(block.players), delivery, rng=rng)
    lacks_uuid = rng.random(len(block.players)) < delivery.old_sdk
    is_crashed = rng.random(len(sessions.day)) < delivery.crashes
    session_is_offline = sessions.connection == CONNECTIONS.index("offline")
    is_offline = session_is_offline[events.session]
    period_s = delivery.batch_s or RESEND_AFTER_S  # seconds of play in a request
    period = np.where(is_offline, 0, (events.ts_s - sessions.start_s[events.session]) // period_s)
    hours = rng.lognormal(np.log(delivery.offline_delay_h), delivery.offline_sigma, len(sessions.day))
    delay_s = (np.minimum(hours, delivery.offline_cap_h) * HOUR_S).astype(np.int64)
    due = np.where(
        is_offline,
        (sessions.start_s + sessions.length_s + delay_s)[events.session],
        sessions.start_s[events.session] + (period + 1) * period_s,
    )
    starts_request = run_starts(events.session) | run_starts(period)
    claimed = np.maximum(events.ts_s + offset_s[events.session], 0)
    return EventDelivery(
        claimed_s=claimed,
        is_usable=can_be_true(claimed, due),
        lacks_uuid=lacks_uuid[player],
        is_offline=is_offline,
        is_unsent=is_crashed[events.session] & (events.slot == EventSlot.SESSION_END),
        sent_s=due,
        is_resent=(rng.random(int(starts_request.sum())) < delivery.lost_answers)[np.cumsum(starts_request) - 1],
    )


def _session_offsets(sessions: Sessions, players: int, delivery: DeliveryProfile, *, rng: np.random.Generator) -> Ints:
    """Return the seconds by which the times of each session are off.

    They are off by the device's clock, until the answer to an init has corrected it.
    """
    names: list[DeviceClock] = list(delivery.clocks)
    clock = pick(rng, shares(delivery.clocks.values()), players)
    offsets = np.vstack([_clock_offsets(name, players, rng=rng) for name in names])
    is_uncorrected = rng.random(players) < delivery.uncorrected
    is_online = sessions.connection != CONNECTIONS.index("offline")
    first_online = np.full(players, np.iinfo(np.int64).max)
    np.minimum.at(first_online, sessions.player[is_online], sessions.number[is_online])
    is_corrected = ~is_uncorrected[sessions.player] & (sessions.number >= first_online[sessions.player])
    offset: Ints = np.where(is_corrected, 0, offsets[clock, np.arange(players)][sessions.player])
    return offset


def _clock_offsets(clock: DeviceClock, count: int, *, rng: np.random.Generator) -> Ints:
    """Draw the seconds that clocks of one setting are ahead."""
    offset: Ints
    match clock:
        case "exact":
            offset = np.zeros(count, dtype=np.int64)
        case "minutes":
            offset = np.rint(rng.normal(0, 600, count)).astype(np.int64)
        case "zone":
            offset = rng.integers(-11, 13, count) * HOUR_S
        case "past":
            offset = -rng.integers(1, 60, count) * YEAR_S
        case "future":
            offset = rng.integers(100, 120, count) * YEAR_S
    return offset


class SentEvent(NamedTuple):
    """One event as it is sent, with its differences from the row of the ledger it is made of."""

    source_row: int  # that row
    sent_s: int  # time of sending, in epoch seconds
    event: Event  # its JSON fragments
    client_ts: int | None  # its time, or None if the collector must take the time of arrival
    event_uuid: str | None  # its id, or None
    sent_as: str | None = None  # what was done to it, or None
    verdict: str | None = None  # why it does not count, or None if it counts
    errors: str | None = None  # the errors the collector must report
    bot_ids: tuple[str, str] | None = None  # user_id and session_id if a bot sends it


def sent_events_of(
    block: PlayedBlock,
    ids: BlockIds,
    clean_events: list[Event],
    delivery: EventDelivery,
    dirt: DirtProfile,
    *,
    ends_s: int,
    rng: np.random.Generator,
) -> list[SentEvent]:
    """Return all events sent for *block*, in the order sent. Bots stop at *ends_s*, the end of the scenario."""
    sent = list(_deliver_events(block, ids, clean_events, delivery))
    added = [
        # Sent again because no response arrived. Without event_uuid the collector cannot know it, so that it counts.
        *(
            event._replace(
                sent_s=event.sent_s + RESEND_AFTER_S,
                sent_as="sent again",
                verdict=REPEATED if event.event_uuid else None,
            )
            for event, is_resent in zip(sent, delivery.is_resent, strict=True)
            if is_resent and event.verdict is None
        ),
        *_duplicates(sent, round(len(sent) * dirt.duplicates), rng=rng),
        *_malformed(block, sent, clean_events, rng.binomial(len(sent), dirt.malformed), rng=rng),
        *_quirks(block, sent, clean_events, rng.binomial(len(sent), dirt.odd), rng=rng),
        *_bots(block, ids, clean_events, rng.binomial(len(block.players), dirt.bots), ends_s=ends_s, rng=rng),
    ]
    return sorted([*sent, *added], key=lambda event: event.sent_s)


def _deliver_events(
    block: PlayedBlock, ids: BlockIds, clean_events: list[Event], event_delivery: EventDelivery
) -> Iterator[SentEvent]:
    """Yield every event once, as its device sends it."""
    arrays = [ids.event, block.events.ts_s, event_delivery.claimed_s, event_delivery.is_usable]
    arrays += [event_delivery.lacks_uuid, event_delivery.is_offline, event_delivery.is_unsent, event_delivery.sent_s]
    rows = zip(clean_events, *(array.tolist() for array in arrays), strict=True)
    for source_row, (event, name, ts_s, claimed_s, is_usable, lacks_uuid, is_offline, is_unsent, sent_s) in enumerate(
        rows
    ):
        content, head, end = event
        if lacks_uuid:
            head, end = head.replace(_SDK_FIELD, _OLD_SDK_FIELD), time_fragment(claimed_s, None)
        elif claimed_s != ts_s:
            end = time_fragment(claimed_s, name)
        labels = {"crash": is_unsent, "wrong clock": claimed_s != ts_s, "old SDK": lacks_uuid, "late": is_offline}
        yield SentEvent(
            source_row=source_row,
            sent_s=sent_s,
            event=(content, head, end),
            client_ts=claimed_s if is_usable else None,
            event_uuid=None if lacks_uuid else name.decode(),
            sent_as=next((name for name, is_so in labels.items() if is_so), None),
            verdict=UNSENT if is_unsent else None,
        )


def _duplicates(sent: list[SentEvent], count: int, *, rng: np.random.Generator) -> Iterator[SentEvent]:
    """Yield exact copies of random events, sent up to some hours later."""
    for place, later_s in zip(
        _pick_rows(sent, count, rng), rng.integers(0, _MAX_DUPLICATE_DELAY_S, count).tolist(), strict=True
    ):
        sent_event = sent[place]
        if sent_event.verdict is None and sent_event.event_uuid is not None:
            yield sent_event._replace(sent_s=sent_event.sent_s + later_s, sent_as="duplicate", verdict=REPEATED)


def _malformed(
    block: PlayedBlock, sent: list[SentEvent], clean_events: list[Event], count: int, *, rng: np.random.Generator
) -> Iterator[SentEvent]:
    """Yield *count* malformed events, each derived from a good one.

    They have its time and an event_uuid of their own.
    """
    of_category = np.array([CATEGORIES[slot] for slot in EventSlot])[block.events.slot]
    rows_by_category = {name: np.flatnonzero(of_category == name) for name in set(CATEGORIES.values())}
    names = draw_uuids(count, rng).tolist()
    for name, kind, draw in zip(
        names, rng.integers(0, len(EVENT_DEFECTS), count).tolist(), rng.random(count), strict=True
    ):
        defect = EVENT_DEFECTS[kind]
        places = range(len(sent)) if defect.category is None else rows_by_category.get(defect.category, ())
        if not len(places):
            continue
        sent_event = sent[int(places[int(draw * len(places))])]
        event = msgspec.json.decode(join_events([clean_events[sent_event.source_row]]))[0]
        malformed = defect.apply(event | {"event_uuid": name.decode()})
        yield sent_event._replace(
            event=(msgspec.json.encode(malformed), b"", b","),
            event_uuid=name.decode() if isinstance(malformed, dict) else None,
            sent_as=defect.name,
            verdict=REJECTED,
            errors="; ".join(f"{error_type} {path}" for error_type, path in defect.errors),
        )


def _quirks(
    block: PlayedBlock, sent: list[SentEvent], clean_events: list[Event], count: int, *, rng: np.random.Generator
) -> Iterator[SentEvent]:
    """Yield *count* odd events, each derived from a good one.

    They have its time, unless the quirk changes it, and an event_uuid of their own.
    """
    names = draw_uuids(count, rng).tolist()
    drawn = zip(_pick_rows(sent, count, rng), rng.integers(0, len(EVENT_QUIRKS), count).tolist(), names, strict=True)
    for place, kind, name in drawn:
        sent_event, quirk, ts_s = sent[place], EVENT_QUIRKS[kind], int(block.events.ts_s[place])
        yield sent_event._replace(
            event=quirk.apply(clean_events[sent_event.source_row], ts_s, name),
            client_ts=ts_s if quirk.has_time else None,
            event_uuid=name.decode(),
            sent_as=quirk.name,
            verdict=None,
        )


def _bots(
    block: PlayedBlock, ids: BlockIds, clean_events: list[Event], count: int, *, ends_s: int, rng: np.random.Generator
) -> Iterator[SentEvent]:
    """Yield the events of *count* bots.

    Each repeats one session of a player, one event per second and without a pause.
    """
    if not len(block.events.slot):
        return
    starts = np.flatnonzero(np.diff(block.events.session, prepend=-1))
    for name, draw in zip(draw_uuids(count, rng).tolist(), rng.random(count), strict=True):
        index = int(draw * len(starts))
        end = starts[index + 1] if index + 1 < len(starts) else len(block.events.slot)
        copied = range(int(starts[index]), int(end))
        session = int(block.events.session[copied[0]])
        begins_s = int(block.events.ts_s[copied[0]])
        session_ids = draw_uuids(BOT_REPEATS, rng).tolist()
        event_ids = iter(draw_uuids(BOT_REPEATS * len(copied), rng).tolist())
        user = ids.user[block.sessions.player[session]]
        for repeat, session_id in enumerate(session_ids):
            head = clean_events[copied[0]][1].replace(user, name).replace(ids.session[session], session_id)
            for place, source_row in enumerate(copied):
                ts_s, uuid = begins_s + repeat * len(copied) + place, next(event_ids)
                if ts_s < ends_s:
                    yield SentEvent(
                        source_row=source_row,
                        sent_s=ts_s + RESEND_AFTER_S,
                        event=(clean_events[source_row][0], head, time_fragment(ts_s, uuid)),
                        client_ts=ts_s,
                        event_uuid=uuid.decode(),
                        sent_as="bot",
                        bot_ids=(name.decode(), session_id.decode()),
                    )


def _pick_rows(sent: list[SentEvent], count: int, rng: np.random.Generator) -> list[int]:
    """Draw *count* positions in *sent*."""
    chosen: list[int] = rng.integers(0, max(len(sent), 1), count).tolist()
    return chosen
