"""Step 2 of a query: its requests are sent, and what comes of them is kept.

All requests of a query go to the rate limiter together. A request that fails leaves a gap and stops only those that
would fail as well. Those are all requests where the key is refused or the rate limit is used up, and all requests of
the same shape where the service refuses the query.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from typing import Final

import msgspec
import pyarrow as pa

from gamelens.client.query.build import build_table
from gamelens.client.query.planner import FanOut, MetricPlan, rest_groups, rest_plan
from gamelens.client.query.prepare import Prepared
from gamelens.client.query.requests import Call, Fetched, Leaf, Request, RestRows, cache_key, leaf_of, leaves_of
from gamelens.client.tables import table_operations as tables
from gamelens.client.tables.answer_reading import read_answer
from gamelens.errors import AuthError, BadQuery, GamelensError, RateLimited, Retryable, Unreachable
from gamelens.wire.queries import MetricQuery

_COMMON: Final = (AuthError, BadQuery, RateLimited)
"""Failures that other requests would meet as well."""
_FANNED_FIELDS: Final = {"filter", "game", "games", "studios"}


async def fetch(prepared: Prepared, call: Call) -> Fetched:
    """Return what came of the requests of *prepared*, and of those for the rest beyond `top`.

    Raises:
        GamelensError: nothing came for one reason: the only request failed, or one failure stopped all others.
        NotAdditive, Truncated: the largest rows, on which the rest depends, cannot be put together.
    """
    fetched = await _send(prepared.leaves, Fetched(), prepared, call)
    for subquery in prepared.subqueries:
        for plan in subquery.plans:
            if plan.rest is not None:  # what `top` leaves out: known once the largest rows are
                fetched = await _fetch_rest(plan, subquery.values, fetched, prepared, call)
    return fetched


async def _fetch_rest(plan: MetricPlan, values: FanOut, fetched: Fetched, prepared: Prepared, call: Call) -> Fetched:
    """Return *fetched* with what came of the requests for the rest of *plan*."""
    groups = rest_groups(plan, values)
    unknown = [group for group in groups if fetched.lacks(plan, group)]
    shown, remarks = await asyncio.to_thread(build_table, plan, prepared, fetched)
    unsent = [
        request
        for leaf_plan in rest_plan(plan, unknown, shown, values).leaf_plans
        for request in leaf_of(leaf_plan).all_requests
    ]
    error = Unreachable("not requested, since the largest values are not known")
    rest = rest_plan(plan, [group for group in groups if group not in unknown], shown, values)
    fetched = msgspec.structs.replace(
        fetched,
        failures={**fetched.failures, **dict.fromkeys(unsent, error)},
        unsent=(*fetched.unsent, *unsent),
        rests=(
            *fetched.rests,
            RestRows(
                owner=plan,
                plan=rest,
                largest=shown,
                is_truncated=remarks.is_truncated,
                warnings=tuple(remarks.warnings),
            ),
        ),
    )
    leaves = await asyncio.to_thread(leaves_of, [rest], prepared.times.available, call)
    return await _send(leaves, fetched, prepared, call)


async def _send(leaves: Sequence[Leaf], before: Fetched, prepared: Prepared, call: Call) -> Fetched:
    """Send the requests of *leaves*, wait for them until the deadline, and return *before* with what came.

    Raises:
        GamelensError: as in `fetch`.
    """
    requests = [request for leaf in leaves for request in leaf.all_requests]
    call.progress.expect(len(requests))
    answered: dict[Request, pa.Table] = {}
    failures: dict[Request, GamelensError] = {}
    stopped: set[Request] = set()
    warnings = [note for leaf in leaves for rows in leaf.cached for note in rows.notes]
    tasks: dict[Request, asyncio.Task[None]] = {}

    async def answer(request: Request) -> None:
        """Send *request*. If it fails, stop the requests that would fail for the same reason."""
        query = request.query
        try:
            body = await call.service.post_query(request.template.metric, query, call.progress.tally)
            # In a thread: a large answer takes long enough to delay the requests of all other queries.
            table, notes = await asyncio.to_thread(_read_and_store, request, query, body, prepared, call)
            answered[request] = table
            warnings.extend(notes)
        except (Retryable, BadQuery, AuthError) as error:
            failures[request] = error  # before those that it stops: the first failure is the cause
            for other, task in tasks.items():
                if not task.done() and other is not request and _would_fail(other, request, error, answered):
                    failures[other] = Unreachable(f"not requested, since another request failed: {error}")
                    stopped.add(other)
                    task.cancel()
        call.progress.done += 1

    tasks |= {request: asyncio.create_task(answer(request)) for request in requests}
    await _wait_for(tasks.values(), call.deadline.left_s)
    for request in requests:
        if request not in answered and request not in failures:
            failures[request] = call.deadline.error
    fetched = msgspec.structs.replace(
        before,
        leaves=(*before.leaves, *leaves),
        tables={**before.tables, **answered},
        failures={**before.failures, **failures},
        stopped=before.stopped | stopped,
        warnings=(*before.warnings, *warnings),
    )
    if (first := fetched.first_failure) is not None and not fetched.has_rows:
        missing = [request for request in fetched.missing if prepared.shows(request)]
        causes = [fetched.failures[request] for request in missing if request not in fetched.stopped]
        is_one = call.deadline.left_s == 0 or all(isinstance(error, _COMMON) for error in causes)
        if len(requests) == 1 or is_one:
            raise first
    return fetched


async def _wait_for(tasks: Collection[asyncio.Task[None]], left_s: float | None) -> None:
    """Wait for *tasks*, for *left_s* at most, after which they are cancelled. The first that has a bug ends all."""
    if not tasks:
        return
    try:
        done, _ = await asyncio.wait(tasks, timeout=left_s, return_when=asyncio.FIRST_EXCEPTION)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    for task in done:
        if not task.cancelled() and (error := task.exception()) is not None:
            raise error


def _would_fail(other: Request, failed: Request, error: GamelensError, answered: Collection[Request]) -> bool:
    """Return whether *other* would fail with the *error* of the request *failed* as well.

    A refusal meets all requests of the same shape. Their shape is the metric plan, or the fanned-out value that the
    refusal names. It is about one request alone if it names the interval, or another request of the plan was answered.
    """
    if not isinstance(error, BadQuery):
        return isinstance(error, _COMMON)
    if error.field == "interval" or any(request.plan is failed.plan for request in answered):
        return False
    return other.template is failed.template if error.field in _FANNED_FIELDS else other.plan is failed.plan


def _read_and_store(
    request: Request, query: MetricQuery, body: bytes, prepared: Prepared, call: Call
) -> tuple[pa.Table, list[str]]:
    """Return the rows of an answer, which the cache stores, and what was said beside them."""
    template, notes = request.template, list[str]()
    answer = read_answer(template.metric, query, template.carried, body, prepared.studio_of_game, notes)
    table = tables.sort_by_time(answer)
    # A service whose buckets begin elsewhere is not cached: its rows belong to no slice of ours.
    if call.cache is not None and tables.bucket_starts(table) <= {slice_.bucket_start for slice_ in request.slices}:
        key = cache_key(template, call.service.edition)
        call.cache.keep(key, request.slices, table, available=prepared.times.available, notes=notes)
    return table, notes
