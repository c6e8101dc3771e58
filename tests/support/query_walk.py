"""A client on its way through queries: each is held against the events, its plan, its cache and what failed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random
from typing import Any, Final

import pandas as pd
import pytest

from gamelens.catalog import ALIASES, METRICS
from gamelens.client.query.plan_estimate import Plan
from gamelens.client.sync_client import Client
from gamelens.errors import GamelensError, PartialResult, ServiceError
from gamelens.receipts import Receipt
from gamelens.wire.intervals import Interval
from support.query_oracle import AVAILABLE, RANGES, TITLED, Expected
from support.watched_service import ManualClock, Sent, Watch, World, assert_equal, quick

Query = Mapping[str, Any]
"""The arguments of `Client.query`, or with `days` those of `Client.retention`."""
Fails = Callable[[Sent], bool | int]

SETTLED: Final = "2026-11-18T10:00Z"
"""Where the days end that are not requested again: two days before the end of what is available."""
NOT_TODAY: Final = "the service answered 501: not today"
UNKNOWN_LARGEST: Final = "not requested, since the largest values are not known"


class Walk:
    """One client of a world, and all that must hold wherever it goes.

    Args:
        world: the sandbox and the truth about it.
        cache: the folder of its cache; None for a client without one.
        max_days: most days of one request.

    Attributes:
        watch: the requests that arrived.
        failed: those of the last query with failures that failed.
    """

    def __init__(self, world: World, *, cache: Path | None = None, max_days: int | None = None) -> None:
        self.watch: Watch = world.watch()
        self.failed: list[Sent] = []
        self._world = world
        self._cache = cache
        self.max_days = max_days
        self._clock = ManualClock()
        self.lens = self._client()
        assert self.lens.available() == AVAILABLE

    def _client(self) -> Client:
        return quick(self.watch, cache=self._cache, max_days=self.max_days, clock=self._clock)

    def close(self) -> None:
        """Close the cache."""
        if self.lens.cache is not None:
            self.lens.cache.close()

    def take(self, query: Query, fails: Fails | None = None) -> pd.DataFrame | None:
        """Ask *query*, first while the requests that match *fails* fail, and check all that is known about it.

        Returns the whole frame, or None where the query is refused.
        """
        expected = Expected(self._world.truth, query, self.max_days)
        if expected.refusal is not None:
            self._check_refused(query, expected.refusal)
            return None
        broken = self._check_disturbed(query, expected, fails) if fails is not None else None
        frame = self._check_calm(query, expected, broken)
        if broken is not None:
            refreshed = self.lens.refresh(broken)
            expected.check(refreshed)
            assert refreshed.attrs["gamelens"].get("restated", []) == []
        return frame

    def ask(self, query: Query, lens: Client | None = None, **options: Any) -> pd.DataFrame:
        """Return the frame of *query*."""
        lens, verb = lens or self.lens, "retention" if "days" in query else "query"
        frame: pd.DataFrame = getattr(lens, verb)(**_arguments(query), **options)
        return frame

    def _plan(self, query: Query) -> Plan | None:
        """Return the plan of *query*, for which nothing is sent; there is none of retention."""
        if "days" in query:
            return None
        self.watch.clear()
        plan = self.lens.plan(**_arguments(query))
        assert self.watch.sent == []
        return plan

    def _check_refused(self, query: Query, error: type[GamelensError]) -> None:
        """Assert that plan and query are refused alike, before a request for rows."""
        self.watch.clear()
        for verb in ("plan", "query"):
            with pytest.raises(error) as refused:
                getattr(self.lens, verb)(**_arguments(query))
            assert refused.type is error
        assert self.watch.queries == []

    def _check_calm(self, query: Query, expected: Expected, broken: pd.DataFrame | None) -> pd.DataFrame:
        """Assert that the frame is the truth, costs what was planned, and nothing the second time.

        What a *broken* frame of the same query has is in the cache.
        """
        plan = self._plan(query)
        self.watch.clear()
        frame = self.ask(query)
        receipt = Receipt.of(frame.attrs)
        if broken is not None and self._cache is not None:
            sent, unknown = [*self.watch.queries], _gaps(broken, UNKNOWN_LARGEST)
            assert [sent.pop(sent.index(request)) for request in self.failed if request in sent] == self.failed
            assert sorted(gap["metric"] for gap in unknown) == sorted(request.name for request in sent)
            plan = None if unknown else plan  # which counts the rest of all groups where it does not know one
        expected.check(frame)
        self._check_receipt(query, receipt, expected)
        self._check_cost(query, plan, receipt)
        again = self._plan(query)
        self.watch.clear()
        second = self.ask(query)
        assert_equal(second, frame)
        assert Receipt.of(second.attrs).requests == len(self.watch.sent) == len(self.watch.queries)
        assert self._cache is None or self.watch.sent == []
        if again is not None:
            assert again.guessed == ()
            assert again.requests == len(again.pieces) == len(self.watch.sent), (again, self.watch.sent)
        return frame

    def _check_receipt(self, query: Query, receipt: Receipt, expected: Expected) -> None:
        assert (receipt.gaps, receipt.filled) == ((), expected.filled)
        assert not [text for text in receipt.warnings if "differs from its total" in text]
        requested = str(query["over"]) if "/" in query["over"] else ""
        is_clipped = "2026-12-01" in requested
        assert receipt.clipped == (RANGES[query["over"]].replace("-10/", "-10T00:00Z/") if is_clipped else None)
        if not expected.ages:
            hidden = any(expected.everything[name].keys() - expected.shown[name].keys() for name in expected.metrics)
            assert receipt.truncated or not hidden
            assert expected.top is not None or not receipt.truncated

    def _check_cost(self, query: Query, plan: Plan | None, receipt: Receipt) -> None:
        """Assert that the requests that were sent are those of *plan*, unless it had to guess lists."""
        assert receipt.requests == len(self.watch.sent)
        if plan is None or plan.guessed:
            return
        # Values of a filter that no row shows are looked up in lists, and a title may be in a list that is remembered.
        titles = sum(query.get(field) in TITLED for field in ("games", "studios") if isinstance(query.get(field), str))
        assert receipt.requests - plan.requests in range(-titles, len(receipt.values_listed) + 1), plan
        assert receipt.cached_share == round(plan.cached_share, 4)
        pieces = sorted((piece.metric, str(piece.interval)) for piece in plan.pieces)
        assert pieces == sorted(
            (request.name, request.body["interval"]) for request in self.watch.queries if request.body
        )

    def _check_disturbed(self, query: Query, expected: Expected, fails: Fails) -> pd.DataFrame | None:
        """Assert that the gaps are what failed and that all else is right. Returns the frame, if anything failed."""
        self.watch.clear()
        self.watch.fails = fails
        try:
            frame = self.ask(query, on_error="gaps")
        except PartialResult as partial:  # nothing came
            frame = partial.frame
        except ServiceError:  # the only request
            frame = None
        self.watch.fails = lambda _: False
        self.failed = failed = [request for request in self.watch.queries if fails(request)]
        if frame is None:
            assert failed == self.watch.queries
            assert len(failed) == 1
            return None
        self._check_gaps(_gaps(frame, NOT_TODAY), [request for request in failed if not _is_comparison(request, query)])
        expected.check(frame, _gaps(frame))
        return frame if failed else None

    def _check_gaps(self, gaps: list[dict[str, Any]], failed: list[Sent]) -> None:
        """Assert that there is a gap for each request that failed, over its interval or the buckets that it cuts."""
        assert sorted(gap["metric"] for gap in gaps) == sorted(request.name for request in failed)
        for request in failed:
            assert request.body is not None
            interval = Interval.parse(request.body["interval"])
            own = [gap for gap in gaps if gap["metric"] == request.name]
            covering = [gap for gap in own if interval in Interval.parse(gap["interval"])]
            assert any(_narrows(gap["scope"] or {}, request.body) for gap in covering), (request, gaps)

    def let_an_hour_pass(self, query: Query) -> None:
        """Assert that an hour later a new client asks again for what may have changed, and for nothing else."""
        before = self.ask(query)
        self._clock.now_s += 3601
        self.lens = self._client()
        self.watch.clear()
        after = self.ask(query)
        assert_equal(after, before)
        if self._cache is not None:
            assert all(interval.split("/")[1] > SETTLED for interval in self.watch.intervals())
        assert self.lens.restatements().empty


def some(seed: int, share: float = 0.3) -> Fails:
    """Return a condition that a *share* of the metric requests meets, the same ones whenever they are sent."""
    return lambda sent: sent.body is not None and Random(f"{seed} {sent}").random() < share


def of_metric(metric: str) -> Fails:
    """Return a condition that the requests of *metric* meet."""
    return lambda sent: sent.body is not None and sent.name == metric


def after(moment: str) -> Fails:
    """Return a condition that metric requests meet whose interval ends after *moment*."""
    return lambda sent: sent.body is not None and sent.body["interval"].split("/")[1] > moment


def starting(*moments: str) -> Fails:
    """Return a condition that metric requests meet whose interval starts at one of *moments*."""
    return lambda sent: sent.body is not None and sent.body["interval"].split("/")[0] in moments


def having(**fields: Any) -> Fails:
    """Return a condition that metric requests meet whose body has these *fields*."""
    return lambda sent: sent.body is not None and all(sent.body.get(name) == it for name, it in fields.items())


def of_kind(*kinds: str | None) -> Fails:
    """Return a condition that queries of these *kinds* meet; None is one by game."""
    return lambda sent: sent.body is not None and sent.body.get("query", {}).get("type") in kinds


def both(one: Fails, other: Fails) -> Fails:
    """Return a condition that a request meets which meets both."""
    return lambda sent: bool(one(sent) and other(sent))


def _gaps(frame: pd.DataFrame, *errors: str) -> list[dict[str, Any]]:
    """Return the gaps of *frame* with one of these *errors*, or all."""
    gaps = frame.attrs["gamelens"]["gaps"]
    assert {gap["error"] for gap in gaps} <= {NOT_TODAY, UNKNOWN_LARGEST}
    return [gap for gap in gaps if not errors or gap["error"] in errors]


def _arguments(query: Query) -> dict[str, Any]:
    clip = {"when_unavailable": "clip"} if "2026-12-01" in query["over"] else {}
    return {**query, **clip}


def _is_comparison(request: Sent, query: Query) -> bool:
    """Return whether *request* counts the installs behind `retention_retro`, of which the frame shows nothing."""
    metrics = query.get("metric", ())
    metrics = [metrics] if isinstance(metrics, str) else metrics
    needed = {source for name in metrics for source, _ in (ALIASES[name].needs if name in ALIASES else [(name, None)])}
    return request.name == "new_users" and "retention_retro" in metrics and "new_users" not in needed


def _narrows(scope: Mapping[str, Any], body: Mapping[str, Any]) -> bool:
    """Return whether a request with *body* is for the values of *scope*."""
    text = str(body)
    return all(value is None or value == "(other)" or repr(value) in text for value in scope.values())


assert "retention_retro" in METRICS
