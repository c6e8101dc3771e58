"""Named queries that random walks reach seldom: what was wrong once, and what is pinned because it is easily broken.

A row is a query and which of its requests fail. What is expected is in no row: it is worked out from the events, and
`Walk` holds frame, plan, cache, gaps and refresh against that. What `test_query_walks.py` prints of a failure is a row.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from support.game_events import event
from support.query_walk import Fails, Query, Walk, after, both, having, of_kind, of_metric, starting
from support.sandbox_stage import Stage
from support.watched_service import Body, World, quick, rows_of

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")  # what they say is in the receipts

WHOLE, MONTH, NOON = "2026-09-30/2026-11-20", "2026-10-20/2026-11-20", "2026-10-25T12:00Z/2026-11-19T18:30Z"
LATE = "2026-11-12T00:00Z"
OTHERS: dict[str, Any] = {"top": 1, "other": True}


class Row(NamedTuple):
    """A query, the requests of it that fail, and the most days of a request."""

    query: Query
    fails: Fails | None = None
    max_days: int | None = None


ROWS: dict[str, Row] = {
    # Wrong once
    "top of a mean of days": Row(
        {"metric": ["wau", "dau"], "by": "game", "every": "week", "over": "October 2026", "top": 1}
    ),
    "other of a mean of days": Row({"metric": "dau", "by": "game", "every": "all", "over": NOON, **OTHERS}),
    "a game of each studio": Row(
        {"metric": "session_unique", "by": ["studio", "game"], "every": "week", "over": WHOLE, "top": {"game": 1}}
    ),
    "the other games of a studio": Row(
        {"metric": "ecpm", "by": ["studio", "game"], "every": "all", "over": MONTH, "top": {"game": 1}, "other": True}
    ),
    "installs that failed beside another metric": Row(
        {"metric": ["dau", "d1_retention"], "by": "is_paying", "over": MONTH}, of_metric("new_users")
    ),
    "a piece of the whole that failed beside another metric": Row(
        {"metric": ["revenue", "d7_retention"], "every": "all", "over": MONTH}, after(LATE), max_days=9
    ),
    "an alias whose part was in a gap": Row(
        {"metric": ["arppu", "wau"], "every": "week", "over": "2026-11-10/2026-12-01"}, of_metric("user_unique")
    ),
    # Failures that hide a part of a row, of a bucket, or of a total
    "a piece of a metric per game": Row({"metric": "conversion", "over": WHOLE}, after(LATE)),
    "a game of a metric per game": Row(
        {"metric": "conversion", "by": ["installed_on", "build"], "every": "week", "over": WHOLE}, having(game="1001")
    ),
    "a game of a fan-out": Row(
        {"metric": "revenue", "by": ["game", "platform", "build"], "over": WHOLE}, having(games=["1001"])
    ),
    "events without a value": Row(
        {"metric": "event_count", "by": ["platform", "build", "ab_id"], "over": WHOLE},
        having(filter={"not": {"ab_id": "exp1"}}),
    ),
    "a piece inside a week": Row(
        {"metric": "revenue", "by": "platform", "every": "week", "over": WHOLE}, starting("2026-11-07T00:00Z"), 5
    ),
    "the last pieces of a month": Row(
        {"metric": "revenue", "by": ["platform", "build"], "every": "month", "over": WHOLE}, after(LATE), 20
    ),
    "a piece of the whole": Row(
        {"metric": "revenue", "by": "platform", "every": "all", "over": WHOLE}, after(LATE), 31
    ),
    "a day of an alias by week": Row(
        {"metric": "arpdau", "by": "platform", "every": "week", "over": WHOLE},
        both(of_metric("user_unique"), starting("2026-09-30T00:00Z")),
    ),
    "the largest of some pieces": Row(
        {"metric": "revenue", "by": "platform", "every": "month", "over": WHOLE, "top": 1}, after(LATE), 20
    ),
    "the largest without a total": Row(
        {"metric": "event_count", "by": "platform", "over": WHOLE, **OTHERS}, both(after(LATE), of_kind("timeseries"))
    ),
    "a total without the largest": Row(
        {"metric": "event_count", "by": "platform", "over": WHOLE, **OTHERS}, both(after(LATE), of_kind("group"))
    ),
    "a check without its total": Row(
        {"metric": "revenue", "by": ["platform", "build"], "over": WHOLE, "check": True},
        both(after(LATE), of_kind("timeseries")),
    ),
    "the rest of a studio": Row(
        {
            "metric": "user_unique",
            **{"by": ["studio", "country_code"], "every": "all", "over": WHOLE},
            **{"top": {"country_code": 1}, "other": True},
        },
        both(of_kind("timeseries"), having(studios=["s1"])),
    ),
    "the rows of a studio": Row(
        {
            "metric": "user_unique",
            **{"by": ["studio", "country_code"], "every": "all", "over": WHOLE},
            **{"top": {"country_code": 1}, "other": True},
        },
        both(of_kind("group"), having(studios=["s1"])),
    ),
    "one age of retention": Row({"days": [1, 7], "by": "platform", "over": WHOLE}, having(since_days_ago=7)),
    "late days of one age": Row({"days": [1, 7], "over": WHOLE}, both(having(since_days_ago=1), after(LATE))),
    "late installs": Row({"days": [1, 7], "by": "platform", "over": WHOLE}, both(of_metric("new_users"), after(LATE))),
    "installs of a game": Row(
        {"days": [1], "by": ["platform", "build"], "every": "week", "over": WHOLE},
        both(of_metric("new_users"), having(games=["1001"])),
    ),
    # What is left out, ranked or put together in a way of its own
    "the rest with null among the largest": Row(
        {"metric": "user_unique", "by": "ab_id", "every": "all", "over": WHOLE, **OTHERS}
    ),
    "the rest of each game": Row(
        {"metric": "conversion", "by": ["platform", "game"], "every": "all", "over": WHOLE, "top": {"platform": 1}}
        | {"other": True}
    ),
    "the rest of a metric per game": Row(
        {"metric": "installs_ratio", "by": ["studio", "build"], "every": "all", "over": WHOLE, "top": {"build": 1}}
        | {"other": True}
    ),
    "the rest of players in one month": Row(
        {"metric": "user_unique", "by": "build", "every": "month", "over": "October 2026", **OTHERS}
    ),
    "the rest of a ratio over parts": Row(
        {"metric": "stickiness", "by": "country_code", "every": "month", "over": "October 2026", **OTHERS}
    ),
    "money per player and the other games": Row(
        {"metric": "arppu", "by": "game", "every": "week", "over": WHOLE, **OTHERS}
    ),
    "pieces of a bucket and the others": Row(
        {"metric": "revenue", "by": "country_code", "every": "all", "over": WHOLE, **OTHERS}, None, 14
    ),
    "nothing left out": Row({"metric": "revenue", "by": "platform", "over": WHOLE, "top": 100, "other": True}),
    "nothing there": Row(
        {"metric": "revenue", "by": ["game", "platform", "build"], "over": "2026-10-08/2026-10-10", **OTHERS}
    ),
    "a filter on what is fanned out": Row(
        {
            **{"metric": "user_unique", "by": ["platform", "build", "ab_id"], "every": "week", "over": MONTH},
            "where": {"and": [{"platform": "ios"}, {"or": [{"build": ["1.0", "2.0"]}, {"country_code": "US"}]}]},
        }
    ),
    "a dimension that is null in all events": Row(
        {"metric": "event_count", "by": ["ad_type", "severity", "platform"], "every": "month", "over": WHOLE}
        | {"where": {"category": ["error"]}}
    ),
}


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
def test_each_row_is_true(world: World, tmp_path: Path, row: Row) -> None:
    """The frame, also beside the requests that fail, is that of the events."""
    walk = Walk(world, cache=tmp_path, max_days=row.max_days)
    assert walk.take(row.query, row.fails) is not None
    assert row.fails is None or walk.failed, "no request of the row fails"
    walk.close()


DAYS: dict[str, Any] = {"metric": "revenue", "by": "country_code"}
CACHED: dict[str, tuple[Sequence[Query], list[str]]] = {
    "both ends of a longer range": (
        [DAYS | {"over": "2026-10-25T12:00Z/2026-11-19T18:30Z"}, DAYS | {"over": MONTH}],
        ["2026-10-20T00:00Z/2026-10-26T00:00Z", "2026-11-19T00:00Z/2026-11-20T00:00Z"],
    ),
    "a part of a longer range": ([DAYS | {"over": WHOLE}, DAYS | {"over": MONTH}], []),
    "whole weeks of a range that cuts others": (
        [DAYS | {"every": "week", "over": NOON}, DAYS | {"every": "week", "over": "last 3 complete weeks"}],
        [],
    ),
    "a part of a month for a whole one": (
        [DAYS | {"every": "month", "over": NOON}, DAYS | {"every": "month", "over": "October 2026"}],
        ["2026-10-01T00:00Z/2026-11-01T00:00Z"],
    ),
    "days for a week": (
        [DAYS | {"over": WHOLE}, DAYS | {"every": "week", "over": "last 3 complete weeks"}],
        ["2026-10-26T00:00Z/2026-11-16T00:00Z"],
    ),
    "the largest for all": (
        [DAYS | {"over": MONTH, "top": 1}, DAYS | {"over": MONTH}],
        ["2026-10-20T00:00Z/2026-11-20T00:00Z"],
    ),
    "the same games in another order": (
        [DAYS | {"over": MONTH, "games": ["1001", "2001"]}, DAYS | {"over": MONTH, "games": ["2001", "1001"]}],
        [],
    ),
    "other games": (
        [DAYS | {"over": MONTH, "games": ["1001", "2001"]}, DAYS | {"over": MONTH, "games": ["2001"]}],
        ["2026-10-20T00:00Z/2026-11-20T00:00Z"],
    ),
    "parts for an alias": (
        [
            DAYS | {"metric": ["revenue", "ilrd_revenue", "user_unique"], "over": MONTH},
            DAYS | {"metric": "arpdau", "over": MONTH},
        ],
        [],
    ),
    "one more age": (
        [{"days": [1, 7], "over": "October 2026"}, {"days": [1, 2, 7], "over": "October 2026"}],
        ["2026-10-03T00:00Z/2026-11-03T00:00Z"],
    ),
}


@pytest.mark.parametrize(("queries", "intervals"), CACHED.values(), ids=CACHED)
def test_only_what_the_cache_lacks_is_requested(
    world: World, tmp_path: Path, queries: Sequence[Query], intervals: list[str]
) -> None:
    """The last query of a row sends these intervals, and its frame is that of the events."""
    walk = Walk(world, cache=tmp_path)
    for query in queries:
        walk.watch.clear()
        walk.ask(query)
    assert walk.watch.intervals() == intervals
    walk.take(queries[-1])
    walk.close()


def test_retention_lists_the_values_of_the_whole_install_day(stage: Stage) -> None:
    """Installs count for their whole day, wherever the interval begins (Wire 4.12, Retention)."""

    def seen(user: str, moment: str, **fields: str) -> Body:
        return event(user_id=user, client_ts=int(datetime.fromisoformat(moment).timestamp()), **fields)

    events = [
        seen("early", "2026-11-10T01:00+00:00", build="rare"),
        seen("early", "2026-11-11T15:00+00:00", build="1.0"),
        *(
            seen(f"{country}{place}", "2026-11-10T14:00+00:00", country_code=country)
            for place, country in enumerate(("US", "DE", "FR"))
        ),
        *(seen("US0", "2026-11-10T14:01+00:00", platform=platform) for platform in ("android", "linux", "windows")),
    ]
    assert stage.submit(events).status_code == 200
    stage.process()
    frame = quick(stage.metrics_app).query(
        "retention_retro", by=["platform", "build", "game"], over="2026-11-11T12:00Z/PT10H", since_days_ago=1
    )
    assert rows_of(frame)[0]["build"] == "rare"
