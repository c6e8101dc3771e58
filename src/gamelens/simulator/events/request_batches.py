"""The requests of a block: its events in the order they are sent, with what is sent again and what is wrong.

Where a scenario says nothing of delivery and dirt that is every event once (`batches_of`). Else (`batches_with_defects`) every event
that is sent has a row in the ledger, with what was done to it and what the collector owes it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, groupby
from typing import Any, Final, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa

from gamelens.simulator.events.defects import (
    BODY_DEFECTS,
    BOT_REPEATS,
    EVENT_DEFECTS,
    EVENT_QUIRKS,
    REQUEST_DEFECTS,
    RequestDefect,
    enlarge_body,
    time_fragment,
)
from gamelens.simulator.events.delivery_times import HOUR_S, RESEND_AFTER_S, EventDelivery, draw_delivery
from gamelens.simulator.events.event_columns import CATEGORIES, SCHEMA
from gamelens.simulator.events.event_json import SDK_VERSION, BlockIds, Event, Fragments, draw_uuids, join_events
from gamelens.simulator.population.behaviour import EventSlot, PlayedBlock
from gamelens.simulator.scenarios.delivery_profile import DeliveryProfile, DirtProfile

BATCH_EVENTS: Final = 450
"""Near the most an official client sends at once (public-facts 1.10): about 0.2 MB, a tenth of that gzipped."""

REPEATED: Final = "repeated"
REJECTED: Final = "rejected"
REFUSED: Final = "refused"
UNSENT: Final = "unsent"
"""Verdicts of the ledger: what does not count, because a copy came before, it was rejected, its whole request was
refused with a status of its own, or it never left."""

OLD_SDK: Final = b"unity 2.4.1"
_SDK_FIELD: Final = b'"sdk_version":"%b"' % SDK_VERSION.encode()
_OLD_SDK_FIELD: Final = b'"sdk_version":"%b"' % OLD_SDK
_MAX_DUPLICATE_DELAY_S: Final = 6 * HOUR_S
"""Our own guess: how much later a duplicate comes, at most."""


class RequestBatch(msgspec.Struct, frozen=True):
    """One request to make: *body* is a JSON array of *events* events of one game (Collector, POST events).

    The collector must reject so many as are *rejected*; a body that cannot be read holds none, and counts as one. What
    is not *is_repeatable* has events without event_uuid, which are counted again when they are sent again. *bad* is the
    way in which the request itself is wrong, *device* a number of the one that made it, if one did: only the order of
    the requests of one matters.
    """

    game_id: str
    body: bytes
    events: int
    rejected: int = 0
    is_repeatable: bool = True
    bad: RequestDefect | None = None
    device: int | None = None


class SentEvent(NamedTuple):
    """One event as it is sent; *origin* is the row of facts it is made of, the rest is where it differs from that.

    *client_ts* is None where the collector must take the time of arrival. *verdict* is None for what counts.
    """

    source_row: int
    sent_s: int
    event: Event
    client_ts: int | None
    event_uuid: str | None
    sent_as: str | None = None
    verdict: str | None = None
    errors: str | None = None
    bot_ids: tuple[str, str] | None = None


_Request = tuple[int | None, list[SentEvent]]
"""The device that makes it, if one does, and the events."""


def batches_of(events: Fragments | Sequence[Event], game_id: str) -> Iterator[RequestBatch]:
    """Requests of at most `BATCH_EVENTS` of *events* each, once and in order."""
    for start in range(0, len(events), BATCH_EVENTS):
        chunk = events[start : start + BATCH_EVENTS]
        yield RequestBatch(game_id, join_events(chunk), len(chunk))


def batches_with_defects(
    block: PlayedBlock,
    ids: BlockIds,
    clean_events: list[Event],
    ledger_rows: pa.Table,
    *,
    delivery: DeliveryProfile,
    dirt: DirtProfile,
    ends_s: int,
    seed: np.random.SeedSequence,
) -> tuple[list[RequestBatch], pa.Table]:
    """The requests of *block*, whose events are *clean* and in the ledger *facts*, and what the ledger has of them."""
    delivery_rng, dirt_rng = (np.random.default_rng(child) for child in seed.spawn(2))
    event_delivery = draw_delivery(block, delivery, rng=delivery_rng)
    sent = list(_deliver_events(block, ids, clean_events, event_delivery))
    added = [
        *(
            resent
            for sent_event, is_resent in zip(sent, event_delivery.is_resent, strict=True)
            if is_resent
            for resent in _resend(sent_event)
        ),
        *_duplicates(sent, round(len(sent) * dirt.duplicates), rng=dirt_rng),
        *_malformed(block, sent, clean_events, dirt_rng.binomial(len(sent), dirt.malformed), rng=dirt_rng),
        *_quirks(block, sent, clean_events, dirt_rng.binomial(len(sent), dirt.odd), rng=dirt_rng),
        *_bots(block, ids, clean_events, dirt_rng.binomial(len(block.players), dirt.bots), ends_s=ends_s, rng=dirt_rng),
    ]
    sent = sorted([*sent, *added], key=lambda sent_event: sent_event.sent_s)
    requests: Iterable[_Request]
    if delivery.batch_s is None:
        requests = _fill_requests(sent, device=None)
    else:
        sent, requests = _by_device(sent, block.sessions.player[block.events.session].tolist(), delivery.batch_s)
    game_id = ledger_rows["game_id"][0].as_py() if len(ledger_rows) else ""
    batches, refused_rows = _batches(requests, game_id, dirt, rng=dirt_rng)
    return batches, pa.concat_tables([_rows_of(sent, ledger_rows), *refused_rows])


def _deliver_events(
    block: PlayedBlock, ids: BlockIds, clean_events: list[Event], event_delivery: EventDelivery
) -> Iterator[SentEvent]:
    """Every event once, as its device tells it."""
    columns = zip(
        clean_events,
        ids.event.tolist(),
        block.events.ts_s.tolist(),
        *(
            column.tolist()
            for column in (
                event_delivery.claimed_s,
                event_delivery.is_usable,
                event_delivery.lacks_uuid,
                event_delivery.is_offline,
                event_delivery.is_unsent,
            )
        ),
        event_delivery.sent_s.tolist(),
        strict=True,
    )
    for source_row, (event, name, ts_s, claimed_s, is_usable, lacks_uuid, is_offline, is_unsent, sent_s) in enumerate(
        columns
    ):
        tail, head, end = event
        if lacks_uuid:
            head, end = head.replace(_SDK_FIELD, _OLD_SDK_FIELD), time_fragment(claimed_s, None)
        elif claimed_s != ts_s:
            end = time_fragment(claimed_s, name)
        labels = {"crash": is_unsent, "wrong clock": claimed_s != ts_s, "old SDK": lacks_uuid, "late": is_offline}
        yield SentEvent(
            source_row=source_row,
            sent_s=sent_s,
            event=(tail, head, end),
            client_ts=claimed_s if is_usable else None,
            event_uuid=None if lacks_uuid else name.decode(),
            sent_as=next((name for name, is_so in labels.items() if is_so), None),
            verdict=UNSENT if is_unsent else None,
        )


def _resend(sent_event: SentEvent) -> Iterator[SentEvent]:
    """What is sent once more because nobody acknowledged it; without event_uuid nobody can tell that it is."""
    if sent_event.verdict is None:
        verdict = REPEATED if sent_event.event_uuid else None
        yield sent_event._replace(sent_s=sent_event.sent_s + RESEND_AFTER_S, sent_as="sent again", verdict=verdict)


def _duplicates(sent: list[SentEvent], count: int, *, rng: np.random.Generator) -> Iterator[SentEvent]:
    """Exact copies of some events, sooner or later."""
    for place, later_s in zip(
        _pick_rows(sent, count, rng), rng.integers(0, _MAX_DUPLICATE_DELAY_S, count).tolist(), strict=True
    ):
        sent_event = sent[place]
        if sent_event.verdict is None and sent_event.event_uuid is not None:
            yield sent_event._replace(sent_s=sent_event.sent_s + later_s, sent_as="duplicate", verdict=REPEATED)


def _malformed(
    block: PlayedBlock, sent: list[SentEvent], clean_events: list[Event], count: int, *, rng: np.random.Generator
) -> Iterator[SentEvent]:
    """So many malformed events, each made of a good one, at its time and with an event_uuid of its own."""
    rows_by_category = _by_category(block)
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
    """So many odd events, each made of a good one, at its time and with an event_uuid of its own."""
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
    """The events of so many bots: each plays a session of somebody over and over, without a pause, to the second."""
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


def _by_category(block: PlayedBlock) -> dict[str, Any]:
    """Positions of the events of each category."""
    slot = block.events.slot
    names = set(CATEGORIES.values())
    return {
        name: np.flatnonzero(np.isin(slot, [each for each in EventSlot if CATEGORIES[each] == name])) for name in names
    }


def _pick_rows(sent: list[SentEvent], count: int, rng: np.random.Generator) -> list[int]:
    chosen: list[int] = rng.integers(0, max(len(sent), 1), count).tolist()
    return chosen


def _by_device(sent: list[SentEvent], device: list[int], batch_s: int) -> tuple[list[SentEvent], Iterator[_Request]]:
    """Events *sent*, in the order they are when each device makes its own requests, and those requests.

    A device is that of the player whose event it is (*device* of its origin), or a bot, which sends what it made in
    *batch_s* seconds at their end. What is due at the same moment goes together.
    """

    def request(sent_event: SentEvent) -> tuple[int, str, int]:
        if sent_event.bot_ids is None:
            return sent_event.sent_s, "", device[sent_event.source_row]
        return -(-sent_event.sent_s // batch_s) * batch_s, sent_event.bot_ids[0], 0

    sent = sorted(sent, key=request)
    together = (list(sent_events) for _, sent_events in groupby(sent, key=request))
    return sent, chain.from_iterable(
        _fill_requests(sent_events, device=device[sent_events[0].source_row]) for sent_events in together
    )


def _fill_requests(sent: list[SentEvent], *, device: int | None) -> Iterator[_Request]:
    """As many events to a request as one may hold, without those that a crash took away."""
    sendable = [sent_event for sent_event in sent if sent_event.verdict != UNSENT]
    for start in range(0, len(sendable), BATCH_EVENTS):
        yield device, sendable[start : start + BATCH_EVENTS]


def _batches(
    requests: Iterable[_Request], game_id: str, dirt: DirtProfile, *, rng: np.random.Generator
) -> tuple[list[RequestBatch], list[pa.Table]]:
    """The requests, and rows for those of them that nobody can read."""
    batches, rows = [], []
    for device, sent_events in requests:
        body = join_events(sent_event.event for sent_event in sent_events)
        for batch, row in _refused_requests(body, game_id, dirt, device=device, rng=rng):
            batches.append(batch)
            rows.append(pa.Table.from_pylist([{"game_id": game_id, **row}], SCHEMA))
        batches.append(
            RequestBatch(
                game_id,
                body,
                events=len(sent_events),
                rejected=sum(sent_event.verdict == REJECTED for sent_event in sent_events),
                is_repeatable=all(
                    sent_event.event_uuid or sent_event.verdict == REJECTED for sent_event in sent_events
                ),
                device=device,
            )
        )
    return batches, rows


def _refused_requests(
    body: bytes, game_id: str, dirt: DirtProfile, *, device: int | None, rng: np.random.Generator
) -> Iterator[tuple[RequestBatch, dict[str, str]]]:
    """What is sent before a good *body* and kept nothing of, if anything; and what is said of it."""
    if rng.random() < dirt.broken_bodies:
        defect = BODY_DEFECTS[int(rng.integers(0, len(BODY_DEFECTS)))]
        row = {"sent_as": defect.name, "verdict": REJECTED, "errors": f"{defect.error_type} /"}
        yield RequestBatch(game_id, defect.apply(body), events=0, rejected=1, device=device), row
    if rng.random() < dirt.bad_requests:
        bad = REQUEST_DEFECTS[int(rng.integers(0, len(REQUEST_DEFECTS)))]
        row = {"sent_as": bad.name, "verdict": REJECTED if bad.error_type else REFUSED, "errors": bad.errors}
        content = body if bad.is_gzipped else enlarge_body(body)
        rejected = int(bad.error_type is not None)
        yield RequestBatch(game_id, content, events=0, rejected=rejected, bad=bad, device=device), row


def _rows_of(sent: list[SentEvent], ledger_rows: pa.Table) -> pa.Table:
    """What the ledger has of events *sent*, in their order."""
    rows = ledger_rows.take([sent_event.source_row for sent_event in sent])
    changes: dict[str, list[Any]] = {
        name: [getattr(sent_event, name) for sent_event in sent]
        for name in ("client_ts", "event_uuid", "sent_as", "verdict", "errors")
    }
    for place, name in enumerate(("user_id", "session_id")):
        originals = rows[name].to_pylist()
        changes[name] = [
            sent_event.bot_ids[place] if sent_event.bot_ids else original
            for sent_event, original in zip(sent, originals, strict=True)
        ]
    for name, values in changes.items():
        kind = SCHEMA.field(name).type
        column = pa.array(values, pa.string() if pa.types.is_dictionary(kind) else kind)
        column = column.dictionary_encode() if pa.types.is_dictionary(kind) else column
        rows = rows.set_column(rows.schema.get_field_index(name), SCHEMA.field(name), column)
    return rows
