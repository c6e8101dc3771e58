"""Bounds of a metric query: rows, time, memory and queries at once.

Wire 2.3, Rate limits; Wire 2.10, Row order.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from gamelens.sandbox.engines.duckdb_engine import DuckDBReader
from gamelens.sandbox.engines.engine import LakeLocation, QueryBounds, QueryStopped
from gamelens.sandbox.metrics.metrics_app import QueryPlaces
from gamelens.sandbox.storage.lake import Snapshot
from support.bounded_queries import ENDLESS, LARGE, OtherQuery, asked, joined
from support.game_events import event
from support.sandbox_stage import Stage

NOTHING = Snapshot({})


@pytest.fixture
def open_reader(stage: Stage) -> Iterator[Callable[..., DuckDBReader]]:
    """Return a function that opens an engine with bounds."""
    readers: list[DuckDBReader] = []

    def open_one(**bounds: Any) -> DuckDBReader:
        readers.append(DuckDBReader(LakeLocation(stage.sandbox.lake.root), QueryBounds(**bounds)))
        return readers[-1]

    yield open_one
    for reader in readers:
        reader.close()


def test_a_long_query_is_stopped(open_reader: Callable[..., DuckDBReader]) -> None:
    """A query that takes too long ends soon after its time, and the engine goes on."""
    reader = open_reader(seconds=0.2)
    began = time.monotonic()
    with pytest.raises(QueryStopped, match=r"took more than 0\.2 s"):
        reader.rows(ENDLESS, NOTHING)
    assert time.monotonic() - began < 5
    assert reader.rows(joined("COUNT(*) AS n", 1), NOTHING)[0]["n"] > 100


def test_a_query_that_was_stopped_is_503(stage: Stage, open_reader: Callable[..., DuckDBReader]) -> None:
    """The answer to a query that took too long is 503 with the reason (Wire 2.12, Refusals)."""
    answer = asked(stage, OtherQuery(open_reader(seconds=0.2), ENDLESS))
    assert (answer.status_code, answer.json()["error"], answer.json()["field"]) == (503, "unavailable", "query")
    assert "took more than 0.2 s" in answer.json()["message"]


@pytest.mark.wide
def test_all_queries_share_one_memory(open_reader: Callable[..., DuckDBReader]) -> None:
    """A query beyond the memory of all queries is stopped with the reason."""
    reader = open_reader(memory="20MB")
    with pytest.raises(QueryStopped, match="more than the 20MB of memory for all"):
        reader.rows(LARGE, NOTHING)
    assert len(reader.rows(joined("r0.currency", 1), NOTHING)) > 100


def test_no_more_rows_are_read_than_may_be_answered(open_reader: Callable[..., DuckDBReader]) -> None:
    """The engine reads one row more than an answer may have, and no further."""
    assert len(open_reader(rows=5000).rows(joined("r0.currency", 2), NOTHING)) == 5001


def test_an_answer_of_too_many_rows_is_refused(stage: Stage, open_reader: Callable[..., DuckDBReader]) -> None:
    """A query of more rows than an answer may have is 422 and names the query (Wire 2.10, Row order)."""
    stage.submit([event(build=f"{number}") for number in range(4)])
    stage.process()
    by_build = {"query": {"type": "group", "dimension": "build"}}
    few, enough = (asked(stage, open_reader(rows=rows), **by_build) for rows in (3, 4))
    assert (few.status_code, few.json()["field"], enough.status_code) == (422, "query", 200)
    assert "at most 3 rows" in few.json()["message"]


def test_an_organisation_leaves_places_for_others() -> None:
    """Long queries of one organisation take half of the places, so those of another run at once."""

    async def ask() -> tuple[int, str]:
        places, done, under_way = QueryPlaces(within_s=30, places=4), threading.Event(), []

        def wait() -> None:
            under_way.append(1)
            done.wait(20)

        waiting = [asyncio.create_task(places.run("acme", wait)) for _ in range(6)]
        answer = await asyncio.wait_for(places.run("rival", lambda: "answered"), 10)
        most = len(under_way)
        done.set()
        await asyncio.gather(*waiting)
        assert len(under_way) == 6
        return most, answer

    assert asyncio.run(ask()) == (2, "answered")


def test_a_query_without_a_place_is_refused_in_time() -> None:
    """A query that gets no place in time is refused, and gives back what it had."""

    async def ask() -> str:
        places, done = QueryPlaces(within_s=0.05, places=2), threading.Event()
        waiting = asyncio.create_task(places.run("acme", lambda: done.wait(20)))
        await asyncio.sleep(0)
        with pytest.raises(QueryStopped, match=r"all slots for 0\.05 s"):
            await places.run("acme", lambda: None)
        done.set()
        await waiting
        return await places.run("acme", lambda: "answered")

    assert asyncio.run(ask()) == "answered"


def test_a_client_that_leaves_keeps_its_place_until_its_query_ends() -> None:
    """A place is free again when the thread has ended, not when the client is gone."""

    async def ask() -> None:
        places, done = QueryPlaces(within_s=0.05, places=2), threading.Event()
        leaving = asyncio.create_task(places.run("acme", lambda: done.wait(20)))
        await asyncio.sleep(0.01)
        leaving.cancel()
        with pytest.raises(QueryStopped):
            await places.run("acme", lambda: None)
        done.set()
        async with asyncio.timeout(10):
            while not await _has_place(places):  # noqa: ASYNC110 - nothing tells when a thread has ended
                await asyncio.sleep(0.01)

    asyncio.run(ask())


async def _has_place(places: QueryPlaces) -> bool:
    try:
        await places.run("acme", lambda: None)
    except QueryStopped:
        return False
    return True
