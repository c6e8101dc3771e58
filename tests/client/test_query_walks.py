"""Random queries against the events: any metrics, dimensions, buckets, filters, largest values, caches and failures.

Each walk is one client that sends random queries, with some requests failing, and `Walk` holds all that must be true of
any query. What it prints of a failure is a row for `test_query_regressions.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from itertools import count, islice
from pathlib import Path
from random import Random
from typing import Any

import pytest

from gamelens.catalog import ALIASES, DIMENSIONS, METRICS, CohortShare
from gamelens.wire.intervals import GRANULARITIES
from support.brute_force import ReceivedEvent
from support.game_events import NOW
from support.hypothesis_profiles import examples, tries
from support.query_oracle import RANGES, Expected
from support.query_walk import Fails, Query, Walk, after, of_kind, of_metric, some
from support.random_worlds import play
from support.sandbox_stage import Stage
from support.watched_service import BATCHES, SEED, Sent, Watch, WideTruth, World, quick, sale, sell

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")  # what they say is in the receipts

USUAL = ("platform", "build", "country_code", "is_paying", "is_converting", "ab_id", "install_publisher")
PLAYERS = (*USUAL, "first_build", "installed_on")
"""Dimensions that players have as well as events."""
FILTERS: tuple[dict[str, Any], ...] = (
    {"platform": "ios"},
    {"platform": ["ios", "android"]},
    {"not": {"build": "1.0"}},
    {"build": None},
    {"not": {"ab_id": None}},
    {"and": [{"country_code": ["US", "DE"]}, {"not": {"is_paying": "true"}}]},
    {"or": [{"platform": "ios"}, {"country_code": "FR"}]},
    {"and": [{"platform": "ios"}, {"or": [{"build": ["1.0", "2.0"]}, {"country_code": "US"}]}]},
)
GAMES = ("1001", ["1001", "2001"], ["1002", "1001"], "Ember")
STUDIOS = ("s1", ["s2"], ["s2", "s1"], "South")
WHOLE_DAYS = [over for over in RANGES if "T" not in RANGES[over]]
COHORTS = [name for name, alias in ALIASES.items() if isinstance(alias, CohortShare)]
STEPS = 8


def walks() -> range:
    """Return the seeds of the walks: 90 in `make bench`, eleven otherwise, of which `make test` walks four."""
    return range(examples(45))


def _pairs() -> list[tuple[str, str]]:
    """Return every metric in every bucket that it is counted in, and retention, in an order of chance."""
    pairs: list[tuple[str, str]] = [("retention", every) for every in GRANULARITIES]
    for name in (*METRICS, *ALIASES):
        own = ALIASES[name].every if name in ALIASES else "day" if name == "retention_retro" else None
        pairs += [(name, every) for every in (GRANULARITIES if own is None else [own])]
    Random(0).shuffle(pairs)
    return pairs


PAIRS = _pairs()


class Questions:
    """Random queries, in which each metric is asked in each bucket before one is asked again.

    Args:
        random: chooses all else.
        first: the place of the first pair of metric and bucket.
    """

    def __init__(self, random: Random, first: int = 0) -> None:
        self._random = random
        self._first = first

    def __iter__(self) -> Iterator[Query]:
        for place in count(self._first):
            metric, every = PAIRS[place % len(PAIRS)]
            yield self._retention(every) if metric == "retention" else self._rows(metric, every)

    def _retention(self, every: str) -> Query:
        days = self._random.sample((1, 2, 7, 14), self._random.choice((1, 2)))
        query = {"days": days, "by": self._dimensions(PLAYERS, 2), "every": every, **self._scope()}
        return query | {"over": self._random.choice(WHOLE_DAYS)}

    def _rows(self, metric: str, every: str) -> Query:
        random = self._random
        beside = [name for name, bucket in random.sample(PAIRS, random.choice((0, 0, 0, 1, 2))) if bucket == every]
        metrics = [*dict.fromkeys(name for name in (metric, *beside) if name != "retention")]
        is_of_cohorts = any(name in COHORTS for name in metrics)
        is_of_players = is_of_cohorts or "retention_retro" in metrics
        query: dict[str, Any] = {"metric": metrics if len(metrics) > 1 else metrics[0], "every": every}
        pool, most = (USUAL if random.random() < 0.7 else (*DIMENSIONS,)), 3
        if is_of_players:  # whose requests are by game as well, so that more dimensions take hundreds of them
            pool, most = PLAYERS, 1
        query["by"] = self._dimensions(pool, most)
        if "retention_retro" in metrics:
            query["since_days_ago"] = random.choice((1, 2, 7))
            query["by"] += [] if {"game", "game_id"} & {*query["by"]} or random.random() < 0.1 else ["game"]
        elif "returning_users" in metrics and not is_of_cohorts and random.random() < 0.5:
            query["since_days_ago"] = random.choice((1, 7))
        query["over"] = random.choice(WHOLE_DAYS if is_of_players else [*RANGES])
        query |= self._scope()
        if not is_of_players:
            query |= self._comparison(query)
        if random.random() < 0.2:
            query["fields"] = "all"
        if random.random() < 0.1:
            query["sort"] = random.choice(("timestamp", metric))
        return query

    def _comparison(self, query: Query) -> dict[str, Any]:
        """Return `top`, `other` or `check`, and dimensions where the rest of one bucket is a request of its own."""
        random, by = self._random, query["by"]
        if query["every"] == "all" and random.random() < 0.4:
            ranked = random.choice(USUAL)
            within = random.choice(([], ["game"], ["studio"], ["studio", "game"]))
            return {"by": [*within, ranked], "top": {ranked: random.choice((1, 2))}, "other": True}
        if not by or random.random() < 0.45:
            return {}
        if random.random() < 0.2:
            return {"check": True}
        number = random.choice((1, 1, 2, 3))
        top = {random.choice(by): number} if random.random() < 0.4 else number
        return {"top": top, "other": random.random() < 0.6}

    def _dimensions(self, pool: tuple[str, ...], most: int) -> list[str]:
        random = self._random
        pool = tuple(name for name in pool if name != "game_id")
        by = random.sample(pool, min(most, random.choices((0, 1, 2, 3), (2, 4, 3, 1))[0]))
        by += random.choices(([], ["game"], ["game_id"], ["studio"], ["studio", "game"]), (6, 2, 1, 1, 1))[0]
        random.shuffle(by)
        return by

    def _scope(self) -> dict[str, Any]:
        random = self._random
        scope: dict[str, Any] = {}
        if random.random() < 0.35:
            scope["where"] = random.choice(FILTERS)
        if random.random() < 0.2:
            scope["games"] = random.choice(GAMES)
        if scope.get("games") != "Ember" and random.random() < 0.15:
            scope["studios"] = random.choice(STUDIOS)
        return scope

    def failures(self) -> Fails | None:
        """Return which requests of the next query fail, if any."""
        random = self._random
        if random.random() < 0.4:
            return None
        metric, moment = self._random.choice([*METRICS]), random.choice(("2026-10-31", "2026-11-05", "2026-11-12"))
        return random.choice(
            (
                some(random.randrange(10**6)),
                some(random.randrange(10**6), share=0.8),
                after(moment),
                of_metric(metric),
                of_kind("timeseries"),
                of_kind("group", "split", None),
            )
        )


@pytest.mark.shown_by(4)
@pytest.mark.hypothesis  # for `make bench`
@pytest.mark.parametrize("seed", walks())
def test_whatever_is_asked_is_true_and_costs_what_was_planned(world: World, tmp_path: Path, seed: int) -> None:
    """Frame = truth, requests = plan, none the second time, gaps = what failed, `(other)` = what `top` leaves out."""
    random = Random(seed)
    walk = Walk(world, cache=tmp_path if seed % 3 else None, max_days=random.choice((None, None, 9, 20)))
    questions = Questions(random, seed * STEPS)
    for query in islice(questions, STEPS):
        fails = questions.failures()
        try:
            if walk.take(query, fails) is not None and random.random() < 0.2:
                walk.let_an_hour_pass(query)
        except Exception as error:
            error.add_note(f"seed {seed}, max_days={walk.max_days}: {query!r}, with failures: {fails is not None}")
            raise
    walk.close()


def one_more(rows: list[Any]) -> None:
    """Count one event more in the first row."""
    rows[0]["event_count"] += 1


def one_row_less(rows: list[Any]) -> None:
    """Remove the last row."""
    rows.pop()


@pytest.mark.parametrize("change", [one_more, one_row_less])
def test_a_wrong_answer_is_found(world: World, change: Callable[[list[Any]], None]) -> None:
    """The negative control: no query passes where one number of one row is wrong."""

    def spoilt(sent: Sent, answer: Any) -> Any:
        if sent.body is not None:
            change(next(bucket["result"] for bucket in answer["result"] if bucket["result"]))
        return answer

    walk = Walk(world)
    walk.watch.changes = spoilt
    with pytest.raises(AssertionError, match=r"is \d+, not|rows are missing"):
        walk.take({"metric": "event_count", "by": "platform", "over": "2026-10-20/2026-11-20"})


BY_BUILD: tuple[Query, ...] = (
    {"metric": ["revenue", "ilrd_revenue"], "by": "build", "every": "week", "over": "2026-10-20/2026-11-20"},
    {"days": [1, 2], "by": "build", "every": "day", "over": "2026-10-20/2026-11-20"},
)
"""Queries whose frames get a row for each bucket with a build that was not seen before."""


@pytest.mark.hypothesis  # for `make bench`
@pytest.mark.parametrize("seed", range(tries(in_test=1, in_bench=20)))
def test_a_refresh_lists_exactly_what_late_events_changed(make_stage: Callable[..., Stage], seed: int) -> None:
    """Frames of any queries are asked again after late events: new numbers, and the buckets in which a row differs."""
    random = Random(seed)
    stage = make_stage()
    arrived = play(stage, Random(SEED), batches=BATCHES)["acme"]
    walk, asked = Walk(World(stage, arrived)), []
    for query in (*BY_BUILD, *islice(Questions(random, seed * 40), tries(in_test=20, in_bench=40))):
        before = Expected(WideTruth(arrived), query)
        shown = [column for name in before.metrics for column in before.fields(name)]
        if before.refusal is None and not {*before.metrics} & {*COHORTS} and len(shown) == len({*shown}):
            asked.append((query, before, walk.ask(query)))
    late, moved = play(stage, random, batches=4)["acme"], 0
    sell(stage, new := sale("2026-11-05", build="9.9", country_code="IT", platform="tvos", user_id="of late"))
    truth = WideTruth([*arrived, *late, ReceivedEvent(NOW, "1001", None, new)])
    lens = quick(Watch(stage.metrics_app))
    for query, before, frame in asked:
        now, refreshed = Expected(truth, query), lens.refresh(frame)
        now.check(refreshed)
        restated = refreshed.attrs["gamelens"].get("restated", [])
        for entry in restated:
            entry["start"] = datetime.fromisoformat(entry["timestamp"])
            if now.ages:
                assert now.has_changed(before, entry["start"], entry["field"])
            for it, when in ((before, "before"), (now, "after")) if entry["before"] is not None and now.metrics else ():
                assert entry[when] == pytest.approx(it.total(entry["metric"], entry["start"], entry["field"]))
        changed = now.changed(before)
        assert {(entry["metric"], entry["start"]): entry["rows"] for entry in restated} == changed, query
        moved += len(changed)
    assert moved > 10
