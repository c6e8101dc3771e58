"""The three steps of a query as values: subqueries, lists that are not requested, rows put together twice."""

from __future__ import annotations

import pytest

from gamelens.client.query.arguments import ExecutionOptions, QuerySpec
from gamelens.client.query.assemble import assemble_table
from gamelens.client.query.cohorts import CohortSubquery
from gamelens.client.query.fetch import fetch
from gamelens.client.query.listings import Listings
from gamelens.client.query.prepare import Prepared, RowSubquery, kinds_of, prepare
from gamelens.client.query.progress import Progress
from gamelens.client.query.requests import Call, Fetched
from gamelens.client.sync_client import Client
from gamelens.errors import BadQuery
from gamelens.wire.intervals import Interval
from support.scripted_service import Script

DAYS = Interval.parse("2026-11-01/2026-11-03")
LIST_PATHS = {"/metrics/v1/studios", "/metrics/v1/games", "/metrics/v1/dimensions/platform"}


def test_rows_and_retention_are_two_kinds() -> None:
    """A metric of cohorts beside another one is a subquery of each kind, and a frame of retention is one."""
    both = kinds_of(QuerySpec(metrics=("d7_retention", "revenue", "d1_retention"), sort="revenue"))
    assert [type(kind) for kind in both] == [CohortSubquery, RowSubquery]
    assert (both[0].spec.ages, both[1].spec.metrics) == ((7, 1), ("revenue",))
    assert [kind.spec.sort for kind in both] == [None, None]
    assert [type(kind) for kind in kinds_of(QuerySpec(metrics=("retention",), ages=(1,)))] == [CohortSubquery]
    assert [type(kind) for kind in kinds_of(QuerySpec(metrics=("revenue",)))] == [RowSubquery]


def test_lists_that_are_not_requested_are_counted_and_guessed(lens: Client, script: Script) -> None:
    """Without a tally no list is requested; what is remembered is used."""
    service, spec = lens._executor.service, QuerySpec(metrics=("revenue",))

    async def look(listings: Listings) -> tuple[int, bool, int]:
        platforms = await listings.values("platform", spec, DAYS)
        return len(platforms), await listings.games(DAYS) is None, len(await listings.values("game_id", spec, DAYS))

    listings = Listings(service, None)
    platforms, is_unknown, games = lens._loop.run(look(listings))
    assert (script.paths, is_unknown) == ([], True)
    assert min(platforms, games) > 1
    assert len(listings.missing) == 3  # values of the platform, studios, and games of at least one studio
    assert listings.guessed == ("platform", "game_id", "studio_id")
    script.values = {"dimension": "platform", "values": ["ios"]}
    assert lens._loop.run(look(Listings(service, Progress().tally))) == (1, False, 1)
    assert {*script.paths} == LIST_PATHS
    known = Listings(service, None)
    assert lens._loop.run(look(known)) == (1, False, 1)
    assert (known.missing, known.guessed) == (set(), ())


def test_names_of_all_kinds_are_checked_before_any_list(lens: Client, script: Script) -> None:
    """A misspelt metric beside one of cohorts is refused before the titles of games are looked up."""
    with pytest.raises(BadQuery, match="revenu"):
        lens.query(["d7_retention", "revenu"], by="game", over="2026-11-01")
    assert {*script.paths}.isdisjoint(LIST_PATHS)


def test_steps_change_nothing_that_they_are_given(lens: Client, script: Script) -> None:
    """The same values put together twice are the same rows, with the rest that `top` leaves out."""

    def event_count(body: dict[str, object]) -> list[object]:
        rows = [{"game_id": "1001", "event_count": 5}, {"game_id": "1002", "event_count": 2}]
        is_grouped = body["query"] == {"type": "group", "dimension": "game_id", "limit": 1}
        day = "2026-11-01T00:00:00.000Z"
        return [{"timestamp": day, "result": rows[:1] if is_grouped else {"event_count": 7}}]

    script.answers = {"event_count": event_count}
    spec = QuerySpec(metrics=("event_count",), by=("game_id",), top=1, other=True)

    async def steps(call: Call) -> tuple[Prepared, Fetched]:
        prepared = await prepare(spec, call, Listings(call.service, call.progress.tally))
        return prepared, await fetch(prepared, call)

    options = ExecutionOptions(over="2026-11-01")
    prepared, fetched = lens._loop.run(steps(lens._executor._call(options, Progress())))
    assert fetched.failures == {}
    first, second = assemble_table(prepared, fetched), assemble_table(prepared, fetched)
    assert first.table.equals(second.table)
    assert first.table.to_pydict()["event_count"] == [5, 2]
    assert (first.warnings, first.is_truncated) == (second.warnings, second.is_truncated)
