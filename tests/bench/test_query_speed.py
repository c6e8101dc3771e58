"""Time of answers over HTTP beside hand-written SQL, on 10 and on 100 million events.

Run by `make bench`. The SQL reads the same Parquet files with DuckDB, and each figure is printed as a ratio to it in
the same run. `pytest tests/bench/test_query_speed.py -k 10M` leaves out the hundred million, which take minutes.
"""

from __future__ import annotations

import contextlib
import statistics
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from gamelens.catalog import METRICS
from gamelens.sandbox.engines.engine import LakeLocation
from gamelens.sandbox.engines.open_engine import open_engine
from gamelens.sandbox.metrics.sql_planner import compile_query
from gamelens.sandbox.storage.inbox import open_store
from gamelens.sandbox.storage.lake import Lake
from gamelens.wire.limits import REQUESTS_AT_ONCE
from gamelens.wire.queries import decode_query
from support.process_memory import memory_mib
from support.served_lake import MONTH, Served

IN_MONTH = "ts >= TIMESTAMP '2026-10-01' AND ts < TIMESTAMP '2026-11-01'"
RATES = "(VALUES ('USD', 1000000000), ('EUR', 1162100000), ('JPY', 6500000)) AS rates(currency, scaled)"
INSTALLS = (
    "(SELECT game_id, user_id, min(ts) AS installed_at, arg_min(country_code, ts) AS country FROM events GROUP BY ALL)"
)
grouped_month_s: dict[str, float] = {}
"""Seconds of a grouped month by size and metric, measured by one test and compared by another."""


def seconds(work: Callable[[], Any], *, times: int) -> float:
    """Return the median seconds of *work*."""
    took = []
    for _ in range(times):
        began = time.perf_counter()
        work()
        took.append(time.perf_counter() - began)
    return statistics.median(took)


def test_memory_and_time_of_making(served: Served) -> None:
    """Made and processed in under 10 minutes and 8 GiB, then served in under 300 MiB."""
    made, at_rest_mib = served.made, memory_mib(served.pid, "VmRSS")
    print(
        f"\n{served.size}: made in {made['make_s']:.0f} s, processed in {made['process_s']:.0f} s, "
        f"peak {made['peak_mib']:.0f} MiB; rows {made['rows']}; service at rest {at_rest_mib:.0f} MiB"
    )
    assert made["make_s"] + made["process_s"] < 600
    assert made["peak_mib"] < 8192
    assert at_rest_mib < 300


BY_COUNTRY = {"query": {"type": "group", "dimension": "country_code"}}
DAILY = {"granularity": "day"}
SERIES = {"query": {"type": "timeseries"}}
ADDITIVE = {
    "ad_impressions_count": "count(*) FILTER (WHERE category = 'ads' AND ad_action = 'show')",
    "event_count": "count(*)",
}


@pytest.mark.parametrize("metric", ADDITIVE)
def test_a_grouped_month_of_an_additive_metric(served: Served, metric: str) -> None:
    """Under 25 ms p50 over HTTP, and at 100 million events 20 times faster than raw SQL."""
    sql = f"SELECT country_code, {ADDITIVE[metric]} AS n FROM events WHERE {IN_MONTH} GROUP BY 1 ORDER BY n DESC"
    answer = {row["country_code"]: row[metric] for row in served.query(metric, **BY_COUNTRY)[0]["result"]}
    assert answer == dict(served.raw.execute(sql).fetchall())
    own_s = seconds(lambda: served.query(metric, **BY_COUNTRY), times=41)
    raw_s = seconds(lambda: served.raw.execute(sql).fetchall(), times=5)
    print(
        f"\n{served.size}: {metric} by country, a month: {1000 * own_s:.1f} ms p50 over HTTP, "
        f"raw SQL {raw_s / own_s:.0f} x"
    )
    grouped_month_s[served.size + metric] = own_s
    assert raw_s / own_s >= 20 or served.made["events"] < 50_000_000
    assert own_s < 0.025


def test_exact_daily_actives_by_country(served: Served) -> None:
    """At least 5 times faster than raw SQL, with equal counts."""
    sql = f"SELECT day, country_code, count(DISTINCT (game_id, user_id)) FROM events WHERE {IN_MONTH} GROUP BY ALL"
    buckets = served.query("user_unique", **DAILY, **BY_COUNTRY)
    answer = {
        (bucket["timestamp"][:10], row["country_code"]): row["user_unique"]
        for bucket in buckets
        for row in bucket["result"]
    }
    assert answer == {(str(day), country): count for day, country, count in served.raw.execute(sql).fetchall()}
    own_s = seconds(lambda: served.query("user_unique", **DAILY, **BY_COUNTRY), times=5)
    raw_s = seconds(lambda: served.raw.execute(sql).fetchall(), times=3)
    print(f"\n{served.size}: daily actives by country: {1000 * own_s:.0f} ms, raw SQL {raw_s / own_s:.1f} x")
    assert raw_s / own_s >= 5


def test_the_retention_triangle(served: Served) -> None:
    """D1 to D30 in under 300 ms: 30 queries, as many at a time as a client may send."""

    def query(age: int) -> Any:
        return served.query("retention_retro", granularity="day", split_by="game_id", since_days_ago=age)

    with ThreadPoolExecutor(REQUESTS_AT_ONCE) as threads:
        own_s = seconds(lambda: list(threads.map(query, range(1, 31))), times=5)
    print(f"\n{served.size}: retention triangle, 30 requests: {1000 * own_s:.0f} ms")
    assert own_s < 0.3


NETWORKS = ["AppLovin", *(f"Net{number}" for number in range(29_999))]
SAMPLE: dict[str, tuple[str, dict[str, Any], str]] = {
    "revenue by country": (
        "revenue",
        BY_COUNTRY,
        f"SELECT country_code, count(*), sum(money * scaled) AS usd FROM events JOIN {RATES} USING (currency) "
        f"WHERE {IN_MONTH} AND category = 'business' GROUP BY ALL ORDER BY usd DESC LIMIT 100",
    ),
    "sessions a day": (
        "session_unique",
        DAILY | SERIES,
        f"SELECT day, count(DISTINCT (game_id, session_id)) FROM events WHERE {IN_MONTH} GROUP BY ALL",
    ),
    "session length a day": (
        "session_length",
        DAILY | SERIES,
        f"SELECT day, sum(length), count(*), count(DISTINCT (game_id, session_id)) FROM events "
        f"WHERE {IN_MONTH} AND category = 'session_end' GROUP BY ALL",
    ),
    "players with ads a day": (
        "user_unique",
        DAILY | SERIES | {"filter": {"category": "ads"}},
        f"SELECT day, count(DISTINCT (game_id, user_id)) FROM events "
        f"WHERE {IN_MONTH} AND category = 'ads' GROUP BY ALL",
    ),
    "players of the month by variant": (
        "user_unique",
        {"query": {"type": "group", "dimension": "ab_variant_id"}},
        f"SELECT ab_variant_id, count(DISTINCT (game_id, user_id)) FROM events WHERE {IN_MONTH} GROUP BY ALL",
    ),
    "impressions by network": (
        "ilrd_id_unique",
        {"query": {"type": "group", "dimension": "ilrd_network_name"}},
        f"SELECT ilrd_network_name, count(DISTINCT (game_id, ilrd_id)) FROM events "
        f"WHERE {IN_MONTH} AND category = 'impression' GROUP BY ALL",
    ),
    "impressions of all networks but 30,000": (
        "ilrd_id_unique",
        SERIES | {"filter": {"not": {"ilrd_network_name": NETWORKS}}},
        f"SELECT count(DISTINCT (game_id, ilrd_id)) FROM events WHERE {IN_MONTH} AND category = 'impression' "
        f"AND ilrd_network_name NOT IN (SELECT unnest({NETWORKS}))",
    ),
    "impression revenue by network and day": (
        "ilrd_revenue",
        DAILY | {"query": {"type": "group", "dimension": "ilrd_network_name"}},
        f"SELECT day, ilrd_network_name, count(*), sum(money) FROM events "
        f"WHERE {IN_MONTH} AND category = 'impression' GROUP BY ALL",
    ),
    "arpu by platform and day": (
        "arpu",
        DAILY | {"query": {"type": "group", "dimension": "platform"}},
        f"SELECT day, platform, sum(CASE WHEN category = 'business' THEN money * scaled END), "
        f"count(DISTINCT (game_id, user_id)) FROM events LEFT JOIN {RATES} USING (currency) "
        f"WHERE {IN_MONTH} GROUP BY ALL",
    ),
    "new users by country and day": (
        "new_users",
        DAILY | BY_COUNTRY,
        f"SELECT CAST(installed_at AS DATE) AS day, country, count(*) FROM {INSTALLS} "
        "WHERE installed_at >= TIMESTAMP '2026-10-01' AND installed_at < TIMESTAMP '2026-11-01' GROUP BY ALL",
    ),
    "events of payers a day": (
        "event_count",
        DAILY | SERIES | {"filter": {"is_paying": "true"}},
        f"WITH payers AS (SELECT game_id, user_id, min(ts) AS paid_at FROM events WHERE category = 'business' "
        f"GROUP BY ALL) SELECT day, count(*) FROM events JOIN payers USING (game_id, user_id) "
        f"WHERE {IN_MONTH} AND ts >= paid_at GROUP BY ALL",
    ),
    "shown ads cut at an hour": (
        "ad_impressions_count",
        BY_COUNTRY | {"interval": "2026-10-01/2026-10-31T10:00"},
        "SELECT country_code, count(*) FILTER (WHERE category = 'ads' AND ad_action = 'show') FROM events "
        "WHERE ts >= TIMESTAMP '2026-10-01' AND ts < TIMESTAMP '2026-10-31 10:00' GROUP BY ALL",
    ),
}


@pytest.mark.parametrize("name", SAMPLE)
def test_no_query_is_slower_than_raw_sql(served: Served, name: str) -> None:
    """No query of the sample takes more than 1.2 times the time of the raw SQL."""
    metric, body, sql = SAMPLE[name]
    served.query(metric, **body)
    own_s = seconds(lambda: served.query(metric, **body), times=3)
    raw_s = seconds(lambda: served.raw.execute(sql).fetchall(), times=3)
    print(f"\n{served.size}: {name}: {1000 * own_s:.0f} ms, {own_s / raw_s:.2f} of the raw SQL's {1000 * raw_s:.0f} ms")
    assert own_s < 1.2 * raw_s


def test_eight_heavy_queries_at_once(served: Served) -> None:
    """Eight heavy queries at once all succeed and keep the service under 2 GiB."""
    heavy = [
        SAMPLE[name]
        for name in ("sessions a day", "players with ads a day", "impressions by network", "arpu by platform and day")
    ]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda sample: served.query(sample[0], **sample[1]), heavy * 2))
    peak_mib = memory_mib(served.pid, "VmHWM")
    print(f"\n{served.size}: eight heavy queries at once: peak {peak_mib:.0f} MiB")
    assert peak_mib < 2048


@pytest.mark.parametrize("name", ["a grouped month", "daily actives by country"])
def test_beside_spark(served: Served, name: str) -> None:
    """Faster than Spark on the events of the same files, if Spark is installed."""
    pytest.importorskip("pyspark")
    metric, body = {
        "a grouped month": ("event_count", {"granularity": "all"} | BY_COUNTRY),
        "daily actives by country": ("user_unique", DAILY | BY_COUNTRY),
    }[name]
    query = decode_query({"interval": MONTH} | body)
    plan = compile_query(METRICS[metric], query, games=["1001", "1002", "2001"], tables=())
    with contextlib.closing(open_store(served.state / "gamelens.db")) as store:
        lake = Lake(served.state / "lake", store)
        with contextlib.closing(open_engine("spark", LakeLocation(lake.root))) as spark:
            peer_s = seconds(lambda: spark.rows(plan, lake.snapshot("acme")), times=3)
    own_s = seconds(lambda: served.query(metric, **body), times=5)
    print(f"\n{served.size}: {name}: {1000 * own_s:.0f} ms, Spark on the events takes {peer_s / own_s:.0f} x")
    assert own_s < peer_s


def test_cost_grows_with_aggregate_rows() -> None:
    """A grouped month of 100 million events takes at most twice that of 10 million."""
    for metric in ADDITIVE:
        costs = [
            cost
            for name, cost in sorted(grouped_month_s.items(), key=lambda item: len(item[0]))
            if name.endswith(metric)
        ]
        if len(costs) < 2:
            pytest.skip("only one size was measured")
        print(f"\n{metric}: a grouped month of ten times the events costs {costs[1] / costs[0]:.2f} x")
        assert costs[1] <= 2 * costs[0]
