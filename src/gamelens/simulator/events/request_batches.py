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
    BAD_REQUESTS,
    BOT_REPEATS,
    BREAKS,
    FLAWS,
    ODDITIES,
    RequestDefect,
    stamp,
    too_large,
)
from gamelens.simulator.events.delivery_times import AGAIN_S, HOUR_S, EventDelivery, draw_delivery
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
_SAID_SDK: Final = b'"sdk_version":"%b"' % SDK_VERSION.encode()
_SAID_OLD_SDK: Final = b'"sdk_version":"%b"' % OLD_SDK
_MOST_LATE_S: Final = 6 * HOUR_S
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

    origin: int
    sent_s: int
    event: Event
    client_ts: int | None
    event_uuid: str | None
    sent_as: str | None = None
    verdict: str | None = None
    errors: str | None = None
    who: tuple[str, str] | None = None


_Request = tuple[int | None, list[SentEvent]]
"""The device that makes it, if one does, and the events."""


def batches_of(events: Fragments | Sequence[Event], game_id: str) -> Iterator[RequestBatch]:
    """Requests of at most `BATCH_EVENTS` of *events* each, once and in order."""
    for start in range(0, len(events), BATCH_EVENTS):
        some = events[start : start + BATCH_EVENTS]
        yield RequestBatch(game_id, join_events(some), len(some))


def batches_with_defects(
    block: PlayedBlock,
    ids: BlockIds,
    clean: list[Event],
    facts: pa.Table,
    *,
    delivery: DeliveryProfile,
    dirt: DirtProfile,
    ends_s: int,
    seed: np.random.SeedSequence,
) -> tuple[list[RequestBatch], pa.Table]:
    """The requests of *block*, whose events are *clean* and in the ledger *facts*, and what the ledger has of them."""
    for_delivery, for_dirt = (np.random.default_rng(child) for child in seed.spawn(2))
    way = draw_delivery(block, delivery, rng=for_delivery)
    sent = list(_on_their_way(block, ids, clean, way))
    added = [
        *(again for one, is_again in zip(sent, way.is_again, strict=True) if is_again for again in _again(one)),
        *_duplicates(sent, round(len(sent) * dirt.duplicates), rng=for_dirt),
        *_malformed(block, sent, clean, for_dirt.binomial(len(sent), dirt.malformed), rng=for_dirt),
        *_odd(block, sent, clean, for_dirt.binomial(len(sent), dirt.odd), rng=for_dirt),
        *_bots(block, ids, clean, for_dirt.binomial(len(block.players), dirt.bots), ends_s=ends_s, rng=for_dirt),
    ]
    sent = sorted([*sent, *added], key=lambda one: one.sent_s)
    requests: Iterable[_Request]
    if delivery.batch_s is None:
        requests = _filled(sent, device=None)
    else:
        sent, requests = _by_device(sent, block.sessions.player[block.events.session].tolist(), delivery.batch_s)
    game_id = facts["game_id"][0].as_py() if len(facts) else ""
    batches, broken = _batches(requests, game_id, dirt, rng=for_dirt)
    return batches, pa.concat_tables([_rows(sent, facts), *broken])


def _on_their_way(block: PlayedBlock, ids: BlockIds, clean: list[Event], way: EventDelivery) -> Iterator[SentEvent]:
    """Every event once, as its device tells it."""
    told = zip(
        clean,
        ids.event.tolist(),
        block.events.ts_s.tolist(),
        *(column.tolist() for column in (way.told_s, way.is_usable, way.is_bare, way.is_late, way.is_unsent)),
        way.sent_s.tolist(),
        strict=True,
    )
    for origin, (event, name, ts_s, told_s, is_usable, is_bare, is_late, is_unsent, sent_s) in enumerate(told):
        tail, head, end = event
        if is_bare:
            head, end = head.replace(_SAID_SDK, _SAID_OLD_SDK), stamp(told_s, None)
        elif told_s != ts_s:
            end = stamp(told_s, name)
        ways = {"crash": is_unsent, "wrong clock": told_s != ts_s, "old SDK": is_bare, "late": is_late}
        yield SentEvent(
            origin=origin,
            sent_s=sent_s,
            event=(tail, head, end),
            client_ts=told_s if is_usable else None,
            event_uuid=None if is_bare else name.decode(),
            sent_as=next((name for name, is_so in ways.items() if is_so), None),
            verdict=UNSENT if is_unsent else None,
        )


def _again(one: SentEvent) -> Iterator[SentEvent]:
    """What is sent once more because nobody acknowledged it; without event_uuid nobody can tell that it is."""
    if one.verdict is None:
        verdict = REPEATED if one.event_uuid else None
        yield one._replace(sent_s=one.sent_s + AGAIN_S, sent_as="sent again", verdict=verdict)


def _duplicates(sent: list[SentEvent], count: int, *, rng: np.random.Generator) -> Iterator[SentEvent]:
    """Exact copies of some events, sooner or later."""
    for place, later_s in zip(_some(sent, count, rng), rng.integers(0, _MOST_LATE_S, count).tolist(), strict=True):
        one = sent[place]
        if one.verdict is None and one.event_uuid is not None:
            yield one._replace(sent_s=one.sent_s + later_s, sent_as="duplicate", verdict=REPEATED)


def _malformed(
    block: PlayedBlock, sent: list[SentEvent], clean: list[Event], count: int, *, rng: np.random.Generator
) -> Iterator[SentEvent]:
    """So many malformed events, each made of a good one, at its time and with an event_uuid of its own."""
    of_category = _by_category(block)
    names = draw_uuids(count, rng).tolist()
    for name, kind, draw in zip(names, rng.integers(0, len(FLAWS), count).tolist(), rng.random(count), strict=True):
        flaw = FLAWS[kind]
        places = range(len(sent)) if flaw.category is None else of_category.get(flaw.category, ())
        if not len(places):
            continue
        one = sent[int(places[int(draw * len(places))])]
        event = msgspec.json.decode(join_events([clean[one.origin]]))[0]
        spoilt = flaw.spoil(event | {"event_uuid": name.decode()})
        yield one._replace(
            event=(msgspec.json.encode(spoilt), b"", b","),
            event_uuid=name.decode() if isinstance(spoilt, dict) else None,
            sent_as=flaw.name,
            verdict=REJECTED,
            errors="; ".join(f"{error_type} {path}" for error_type, path in flaw.errors),
        )


def _odd(
    block: PlayedBlock, sent: list[SentEvent], clean: list[Event], count: int, *, rng: np.random.Generator
) -> Iterator[SentEvent]:
    """So many odd events, each made of a good one, at its time and with an event_uuid of its own."""
    names = draw_uuids(count, rng).tolist()
    drawn = zip(_some(sent, count, rng), rng.integers(0, len(ODDITIES), count).tolist(), names, strict=True)
    for place, kind, name in drawn:
        one, oddity, ts_s = sent[place], ODDITIES[kind], int(block.events.ts_s[place])
        yield one._replace(
            event=oddity.bend(clean[one.origin], ts_s, name),
            client_ts=ts_s if oddity.has_time else None,
            event_uuid=name.decode(),
            sent_as=oddity.name,
            verdict=None,
        )


def _bots(
    block: PlayedBlock, ids: BlockIds, clean: list[Event], count: int, *, ends_s: int, rng: np.random.Generator
) -> Iterator[SentEvent]:
    """The events of so many bots: each plays a session of somebody over and over, without a pause, to the second."""
    if not len(block.events.slot):
        return
    starts = np.flatnonzero(np.diff(block.events.session, prepend=-1))
    for name, draw in zip(draw_uuids(count, rng).tolist(), rng.random(count), strict=True):
        which = int(draw * len(starts))
        end = starts[which + 1] if which + 1 < len(starts) else len(block.events.slot)
        copied = range(int(starts[which]), int(end))
        session = int(block.events.session[copied[0]])
        begins_s = int(block.events.ts_s[copied[0]])
        of_sessions = draw_uuids(BOT_REPEATS, rng).tolist()
        of_events = iter(draw_uuids(BOT_REPEATS * len(copied), rng).tolist())
        user = ids.user[block.sessions.player[session]]
        for turn, of_session in enumerate(of_sessions):
            head = clean[copied[0]][1].replace(user, name).replace(ids.session[session], of_session)
            for place, origin in enumerate(copied):
                ts_s, uuid = begins_s + turn * len(copied) + place, next(of_events)
                if ts_s < ends_s:
                    yield SentEvent(
                        origin=origin,
                        sent_s=ts_s + AGAIN_S,
                        event=(clean[origin][0], head, stamp(ts_s, uuid)),
                        client_ts=ts_s,
                        event_uuid=uuid.decode(),
                        sent_as="bot",
                        who=(name.decode(), of_session.decode()),
                    )


def _by_category(block: PlayedBlock) -> dict[str, Any]:
    """Positions of the events of each category."""
    slot = block.events.slot
    names = set(CATEGORIES.values())
    return {
        name: np.flatnonzero(np.isin(slot, [each for each in EventSlot if CATEGORIES[each] == name])) for name in names
    }


def _some(sent: list[SentEvent], count: int, rng: np.random.Generator) -> list[int]:
    some: list[int] = rng.integers(0, max(len(sent), 1), count).tolist()
    return some


def _by_device(sent: list[SentEvent], device: list[int], batch_s: int) -> tuple[list[SentEvent], Iterator[_Request]]:
    """Events *sent*, in the order they are when each device makes its own requests, and those requests.

    A device is that of the player whose event it is (*device* of its origin), or a bot, which sends what it made in
    *batch_s* seconds at their end. What is due at the same moment goes together.
    """

    def request(one: SentEvent) -> tuple[int, str, int]:
        if one.who is None:
            return one.sent_s, "", device[one.origin]
        return -(-one.sent_s // batch_s) * batch_s, one.who[0], 0

    sent = sorted(sent, key=request)
    together = (list(some) for _, some in groupby(sent, key=request))
    return sent, chain.from_iterable(_filled(some, device=device[some[0].origin]) for some in together)


def _filled(sent: list[SentEvent], *, device: int | None) -> Iterator[_Request]:
    """As many events to a request as one may hold, without those that a crash took away."""
    leaving = [one for one in sent if one.verdict != UNSENT]
    for start in range(0, len(leaving), BATCH_EVENTS):
        yield device, leaving[start : start + BATCH_EVENTS]


def _batches(
    requests: Iterable[_Request], game_id: str, dirt: DirtProfile, *, rng: np.random.Generator
) -> tuple[list[RequestBatch], list[pa.Table]]:
    """The requests, and rows for those of them that nobody can read."""
    batches, rows = [], []
    for device, some in requests:
        body = join_events(one.event for one in some)
        for batch, told in _unreadable(body, game_id, dirt, device=device, rng=rng):
            batches.append(batch)
            rows.append(pa.Table.from_pylist([{"game_id": game_id, **told}], SCHEMA))
        batches.append(
            RequestBatch(
                game_id,
                body,
                events=len(some),
                rejected=sum(one.verdict == REJECTED for one in some),
                is_repeatable=all(one.event_uuid or one.verdict == REJECTED for one in some),
                device=device,
            )
        )
    return batches, rows


def _unreadable(
    body: bytes, game_id: str, dirt: DirtProfile, *, device: int | None, rng: np.random.Generator
) -> Iterator[tuple[RequestBatch, dict[str, str]]]:
    """What is sent before a good *body* and kept nothing of, if anything; and what is said of it."""
    if rng.random() < dirt.broken_bodies:
        way = BREAKS[int(rng.integers(0, len(BREAKS)))]
        told = {"sent_as": way.name, "verdict": REJECTED, "errors": f"{way.error_type} /"}
        yield RequestBatch(game_id, way.spoil(body), events=0, rejected=1, device=device), told
    if rng.random() < dirt.bad_requests:
        bad = BAD_REQUESTS[int(rng.integers(0, len(BAD_REQUESTS)))]
        told = {"sent_as": bad.name, "verdict": REJECTED if bad.error_type else REFUSED, "errors": bad.errors}
        content = body if bad.is_gzipped else too_large(body)
        rejected = int(bad.error_type is not None)
        yield RequestBatch(game_id, content, events=0, rejected=rejected, bad=bad, device=device), told


def _rows(sent: list[SentEvent], facts: pa.Table) -> pa.Table:
    """What the ledger has of events *sent*, in their order."""
    rows = facts.take([one.origin for one in sent])
    changed: dict[str, list[Any]] = {
        name: [getattr(one, name) for one in sent]
        for name in ("client_ts", "event_uuid", "sent_as", "verdict", "errors")
    }
    for place, name in enumerate(("user_id", "session_id")):
        own = rows[name].to_pylist()
        changed[name] = [one.who[place] if one.who else was for one, was in zip(sent, own, strict=True)]
    for name, values in changed.items():
        kind = SCHEMA.field(name).type
        column = pa.array(values, pa.string() if pa.types.is_dictionary(kind) else kind)
        column = column.dictionary_encode() if pa.types.is_dictionary(kind) else column
        rows = rows.set_column(rows.schema.get_field_index(name), SCHEMA.field(name), column)
    return rows
