"""The metrics service against the reference implementation, on random data."""

from __future__ import annotations

from random import Random

from support.brute_force import ReceivedEvent, ReferenceMetrics
from support.random_worlds import play, random_query
from support.sandbox_stage import Stage


def assert_equal_answers(stage: Stage, seed: int, *, queries: int) -> None:
    """Send random *queries* to *stage*, half of them after late batches, and compare."""
    random = Random(seed)
    received: dict[str, list[ReceivedEvent]] = {}
    for _ in range(2):
        for name, events in play(stage, random, batches=9).items():
            received.setdefault(name, []).extend(events)
        references = {name: ReferenceMetrics(events) for name, events in received.items()}
        for _ in range(queries // 2):
            organisation = random.choices(("acme", "rival"), (9, 1))[0]
            query = random_query(random, organisation)
            response = stage.ask(query.metric, api_key=f"key-of-{organisation}", **query.body)
            assert response.status_code == 200, (query, response.text)
            assert response.json()["result"] == references[organisation].answer(query), query
