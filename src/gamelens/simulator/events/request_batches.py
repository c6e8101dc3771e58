"""The requests of a block: its events in the order sent, with resent and defective ones.

Without the scenario tables `delivery` and `dirt`, every event is sent once (`batches_of`). With either of them
(`batches_with_defects`), the ledger gets a row for each event sent, with what was done to it and the errors that the
collector must report.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, groupby
from typing import Any, Final

import msgspec
import numpy as np
import pyarrow as pa

from gamelens.errors import suggests_names
from gamelens.simulator.events.defects import (
    BODY_DEFECTS,
    REQUEST_DEFECTS,
    BodyDefect,
    RequestDefect,
    enlarge_body,
)
from gamelens.simulator.events.event_columns import SCHEMA
from gamelens.simulator.events.event_json import BlockIds, Event, Fragments, join_events
from gamelens.simulator.events.sent_events import REFUSED, REJECTED, UNSENT, SentEvent, draw_delivery, sent_events_of
from gamelens.simulator.population.arrays import Ints
from gamelens.simulator.population.behaviour import PlayedBlock
from gamelens.simulator.scenarios.scenario import DeliveryProfile, DirtProfile, Scenario

BATCH_EVENTS: Final = 450
"""Most events in a request: about 0.2 MB, a tenth of that gzipped.

Official clients send up to 500 at once (Wire 1.15, Client queue).
"""


@suggests_names
class RequestBatch(msgspec.Struct, frozen=True):
    """One request to make, with the outcome the collector must report.

    Attributes:
        game_id: the receiving game.
        body: a JSON array of events (Wire 1.7, Submitting events).
        events: number of events in it; an unreadable body has none.
        rejected: number of events the collector must reject; an unreadable body counts as one.
        is_repeatable: whether it can be sent again. Events without event_uuid would count twice.
        bad: the defect of the request itself, or None.
        device: number of the device that sends it, or None. Only the order of the requests of one device matters.
    """

    game_id: str
    body: bytes
    events: int
    rejected: int = 0
    is_repeatable: bool = True
    bad: RequestDefect | None = None
    device: int | None = None


_Request = tuple[int | None, list[SentEvent]]
"""The number of the device that makes the request, if one does, and the events."""


def batches_of(events: Fragments | Sequence[Event], game_id: str) -> Iterator[RequestBatch]:
    """Yield requests of at most `BATCH_EVENTS` events each, in order."""
    for start in range(0, len(events), BATCH_EVENTS):
        chunk = events[start : start + BATCH_EVENTS]
        yield RequestBatch(game_id, join_events(chunk), len(chunk))


def batches_with_defects(
    block: PlayedBlock,
    ids: BlockIds,
    clean_events: list[Event],
    ledger_rows: pa.Table,
    *,
    scenario: Scenario,
    ends_s: int,
    seed: np.random.SeedSequence,
) -> tuple[list[RequestBatch], pa.Table]:
    """Return the requests of *block*, which ends at *ends_s*, and their rows of the ledger."""
    sent, dirt_rng = send_block(block, ids, clean_events, scenario=scenario, ends_s=ends_s, seed=seed)
    batch_s = scenario.delivery.batch_s if scenario.delivery else None
    requests: Iterable[_Request]
    if batch_s is None:
        requests = _fill_requests(sent, device=None)
    else:
        sent, requests = _by_device(sent, block.sessions.player[block.events.session].tolist(), batch_s)
    game_id = ledger_rows["game_id"][0].as_py() if len(ledger_rows) else ""
    batches, refused_rows = _batches(requests, game_id, scenario.dirt or DirtProfile(), rng=dirt_rng)
    return batches, pa.concat_tables([rows_of_sent(sent, ledger_rows), *refused_rows])


def send_block(
    block: PlayedBlock,
    ids: BlockIds,
    clean_events: list[Event],
    *,
    scenario: Scenario,
    ends_s: int,
    seed: np.random.SeedSequence,
) -> tuple[list[SentEvent], np.random.Generator]:
    """Return the events of *block* in the order sent, and the generator of further defects.

    It takes the arguments of `batches_with_defects`.
    """
    delivery_rng, dirt_rng = (np.random.default_rng(child) for child in seed.spawn(2))
    delivery = draw_delivery(block, scenario.delivery or DeliveryProfile(), rng=delivery_rng)
    dirt = scenario.dirt or DirtProfile()
    return sent_events_of(block, ids, clean_events, delivery, dirt, ends_s=ends_s, rng=dirt_rng), dirt_rng


def send_times(block: PlayedBlock, *, scenario: Scenario, seed: np.random.SeedSequence) -> Ints:
    """Return when each event of a block without defects is sent, in epoch seconds, as `send_block` draws it."""
    delivery_rng = np.random.default_rng(seed.spawn(2)[0])
    return draw_delivery(block, scenario.delivery or DeliveryProfile(), rng=delivery_rng).sent_s


def _by_device(sent: list[SentEvent], device: list[int], batch_s: int) -> tuple[list[SentEvent], Iterator[_Request]]:
    """Return *sent* sorted by the request they are in, and the requests, one device each.

    The device belongs to the player whose event it is (*device* of its source row), or is a bot, which sends the
    events of *batch_s* seconds at their end. Events due at the same second travel together.
    """

    def request(sent_event: SentEvent) -> tuple[int, str, int]:
        """Return the sort key of the request of an event: time, bot, device."""
        if sent_event.bot_ids is None:
            return sent_event.sent_s, "", device[sent_event.source_row]
        return -(-sent_event.sent_s // batch_s) * batch_s, sent_event.bot_ids[0], 0

    sent = sorted(sent, key=request)
    together = (list(sent_events) for _, sent_events in groupby(sent, key=request))
    return sent, chain.from_iterable(
        _fill_requests(sent_events, device=device[sent_events[0].source_row]) for sent_events in together
    )


def _fill_requests(sent: list[SentEvent], *, device: int | None) -> Iterator[_Request]:
    """Yield requests with as many events as one may hold, without those that a crash lost."""
    sendable = [sent_event for sent_event in sent if sent_event.verdict != UNSENT]
    for start in range(0, len(sendable), BATCH_EVENTS):
        yield device, sendable[start : start + BATCH_EVENTS]


def _batches(
    requests: Iterable[_Request], game_id: str, dirt: DirtProfile, *, rng: np.random.Generator
) -> tuple[list[RequestBatch], list[pa.Table]]:
    """Return the batches of *requests*, and rows of the ledger for the unreadable ones added."""
    batches, rows = [], []

    def refuse(body: bytes, device: int | None, defect: BodyDefect | RequestDefect, errors: str, verdict: str) -> None:
        """Add a request that is refused as a whole, and its row of the ledger."""
        bad = defect if isinstance(defect, RequestDefect) else None
        is_rejected = int(verdict == REJECTED)
        batches.append(RequestBatch(game_id, body, events=0, rejected=is_rejected, bad=bad, device=device))
        row = {"game_id": game_id, "sent_as": defect.name, "verdict": verdict, "errors": errors}
        rows.append(pa.Table.from_pylist([row], SCHEMA))

    for device, sent_events in requests:
        body = join_events(sent_event.event for sent_event in sent_events)
        if rng.random() < dirt.broken_bodies:
            broken = BODY_DEFECTS[int(rng.integers(0, len(BODY_DEFECTS)))]
            refuse(broken.apply(body), device, broken, f"{broken.error_type} /", REJECTED)
        if rng.random() < dirt.bad_requests:
            bad = REQUEST_DEFECTS[int(rng.integers(0, len(REQUEST_DEFECTS)))]
            content = body if bad.is_gzipped else enlarge_body(body)
            refuse(content, device, bad, bad.errors, REJECTED if bad.error_type else REFUSED)
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


def rows_of_sent(sent: list[SentEvent], ledger_rows: pa.Table) -> pa.Table:
    """Return the rows of the ledger for the events *sent*, in their order."""
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
