"""Random queries against the events: any metrics, dimensions, buckets, filters, largest values, caches and failures.

Each walk is one client that sends random queries, with some requests failing, and `Walk` holds all that must be true of
any query. What it prints of a failure is a row for `test_query_regressions.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from random import Random
from typing import Any

import pytest

from gamelens.catalog import ALIASES, DIMENSIONS, METRICS, CohortShare
from support.hypothesis_profiles import examples, tries
from support.query_oracle import RANGES, Expected
from support.query_walk import Fails, Query, Walk, after, of_kind, of_metric, some
from support.random_worlds import play
from support.sandbox_stage import Stage
from support.watched_service import BATCHES, SEED, Sent, Watch, WideTruth, World, quick

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
    """Return the seeds of the walks: 9 in `make check`, 18 in `make test`, 90 in `make bench`."""
    return range(examples(45))


class Questions:
    """Random queries in which each metric comes up before one comes up again."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._deck: list[str] = []

    def __iter__(self) -> Iterator[Query]:
        while True:
            yield self._retention() if self._random.random() < 0.1 else self._rows()

    def _metric(self) -> str:
        if not self._deck:
            self._deck = [*METRICS, *ALIASES]
            self._random.shuffle(self._deck)
        return self._deck.pop()

    def _retention(self) -> Query:
        days = self._random.sample((1, 2, 7, 14), self._random.choice((1, 2)))
        query = {"days": days, "by": self._dimensions(PLAYERS, 2), "every": self._every(), **self._scope()}
        return query | {"over": self._random.choice(WHOLE_DAYS)}

    def _rows(self) -> Query:
        random = self._random
        metrics = [*dict.fromkeys(self._metric() for _ in range(random.choice((1, 1, 1, 2, 3))))]
        buckets = {alias.every for name in metrics if (alias := ALIASES.get(name)) and alias.every}
        if len(buckets) > 1 or (buckets and "retention_retro" in metrics):  # one frame has one bucket
            metrics = metrics[:1]
        buckets = {alias.every for name in metrics if (alias := ALIASES.get(name)) and alias.every}
        is_of_players = any(name == "retention_retro" or name in COHORTS for name in metrics)
        query: dict[str, Any] = {"metric": metrics if len(metrics) > 1 else metrics[0]}
        pool, most = (USUAL if random.random() < 0.7 else (*DIMENSIONS,)), 3
        if is_of_players:  # whose requests are by game as well, so that more dimensions take hundreds of them
            pool, most = PLAYERS, 1
        query["by"] = self._dimensions(pool, most)
        query["every"] = next(iter(buckets), None) or self._every()
        if "retention_retro" in metrics:
            query["every"], query["since_days_ago"] = "day", random.choice((1, 2, 7))
            query["by"] += [] if {"game", "game_id"} & {*query["by"]} or random.random() < 0.1 else ["game"]
        elif "returning_users" in metrics and random.random() < 0.5:
            query["since_days_ago"] = random.choice((1, 7))
        query["over"] = random.choice(WHOLE_DAYS if is_of_players else [*RANGES])
        query |= self._scope()
        is_of_cohorts = any(name in COHORTS for name in metrics)
        if query["by"] and not is_of_cohorts and random.random() < 0.4:
            number = random.choice((1, 1, 2, 3))
            query["top"] = {random.choice(query["by"]): number} if random.random() < 0.4 else number
            query["other"] = random.random() < 0.6
        elif query["by"] and not is_of_cohorts and random.random() < 0.15:
            query["check"] = True
        if random.random() < 0.2:
            query["fields"] = "all"
        if random.random() < 0.1:
            query["sort"] = random.choice(("timestamp", metrics[0]))
        return query

    def _dimensions(self, pool: tuple[str, ...], most: int) -> list[str]:
        random = self._random
        pool = tuple(name for name in pool if name != "game_id")
        by = random.sample(pool, min(most, random.choices((0, 1, 2, 3), (2, 4, 3, 1))[0]))
        by += random.choices(([], ["game"], ["game_id"], ["studio"], ["studio", "game"]), (6, 2, 1, 1, 1))[0]
        random.shuffle(by)
        return by

    def _every(self) -> str:
        return self._random.choice(("day", "day", "week", "month", "all"))

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


@pytest.mark.hypothesis  # for `make bench`
@pytest.mark.parametrize("seed", walks())
def test_whatever_is_asked_is_true_and_costs_what_was_planned(world: World, tmp_path: Path, seed: int) -> None:
    """Frame = truth, requests = plan, none the second time, gaps = what failed, `(other)` = what `top` leaves out."""
    random = Random(seed)
    walk = Walk(world, cache=tmp_path if seed % 3 else None, max_days=random.choice((None, None, 9, 20)))
    questions = Questions(random)
    for query, _ in zip(questions, range(STEPS), strict=False):
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


@pytest.mark.hypothesis  # for `make bench`
@pytest.mark.parametrize("seed", range(tries(in_test=1, in_bench=20)))
def test_a_refresh_lists_exactly_what_late_events_changed(make_stage: Callable[..., Stage], seed: int) -> None:
    """Frames of any queries are asked again after late events: new numbers, and the buckets in which a row differs."""
    random = Random(seed)
    stage = make_stage()
    arrived = play(stage, Random(SEED), batches=BATCHES)["acme"]
    walk, questions, asked = Walk(World(stage, arrived)), Questions(random), []
    for query, _ in zip(questions, range(40), strict=False):
        before = Expected(WideTruth(arrived), query)
        shown = [column for name in before.metrics for column in before.fields(name)]
        if before.refusal is None and not {*before.metrics} & {*COHORTS} and len(shown) == len({*shown}):
            asked.append((query, before, walk.ask(query)))
    truth = WideTruth([*arrived, *play(stage, random, batches=4)["acme"]])
    lens, moved = quick(Watch(stage.metrics_app)), 0
    for query, before, frame in asked:
        now, refreshed = Expected(truth, query), lens.refresh(frame)
        now.check(refreshed)
        restated = refreshed.attrs["gamelens"].get("restated", [])
        listed = {(entry["metric"], datetime.fromisoformat(entry["timestamp"])) for entry in restated}
        assert listed == now.changed(before), query
        moved += len(listed)
    assert moved > 20
