"""Millions of events as columns, written straight to a lake: players who come back less and less, as the engine can
make them from hashes. No two runs differ.

    python generated.py STATE EVENTS        (STATE: a state directory that nobody serves)

Prints JSON: how many events, players and days there are, the seconds of making and of processing them, and the peak
memory in MiB. Events carry no event_uuid, so that there is nothing to merge.
"""

from __future__ import annotations

import json
import resource
import shutil
import sys
import time
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb

from gamelens.sandbox.inbox import open_store
from gamelens.sandbox.lake import Lake
from gamelens.sandbox.processing import take
from gamelens.sandbox.tables import EVENT_COLUMNS

ORGANISATION = "acme"
FIRST = date(2026, 9, 20)
DAYS = 61
EVENTS_A_DAY = 24  # of a player who is there
RETENTION = [1.0] + [0.42 * age**-0.6 for age in range(1, DAYS)]
GAMES = ("1001", "1002", "2001")
COUNTRIES = [
    *("US", "IN", "BR", "DE", "GB", "JP", "FR", "ID", "MX", "TR", "IT", "ES", "RU", "PL", "KR", "CA", "AU", "NL", "AR"),
    *("PH", "VN", "TH", "EG", "SA", "CO", "CL", "PE", "ZA", "SE", "NO", "DK", "FI", "PT", "GR", "CZ", "HU", "RO", "UA"),
    *("IL", "AE"),
]


def players_for(events: int) -> int:
    """How many must install for about so many *events*."""
    days_each = sum(RETENTION[age] * (DAYS - age) for age in range(DAYS)) / DAYS
    return round(events / days_each / EVENTS_A_DAY)


def write_days(folder: Path, *, players: int) -> dict[date, list[Path]]:
    """One Parquet file a day in *folder*."""
    staged = {}
    with duckdb.connect() as engine:
        for setting in ("memory_limit = '2GB'", "preserve_insertion_order = false", f"temp_directory = '{folder}'"):
            engine.execute(f"SET {setting}")
        engine.execute(_PLAYERS.format(players=players, days=DAYS, games=list(GAMES), countries=COUNTRIES))
        retained = " ".join(f"WHEN {age} THEN {share!r}" for age, share in enumerate(RETENTION))
        for number in range(DAYS):
            day = FIRST + timedelta(days=number)
            path = folder / f"{day}.parquet"
            select = _DAY.format(number=number, day=day, retained=retained, events=EVENTS_A_DAY)
            rows = f"SELECT {', '.join(EVENT_COLUMNS)} FROM ({select})"
            engine.execute(f"COPY ({rows}) TO '{path}' (FORMAT parquet, COMPRESSION zstd)")
            staged[day] = [path]
    return staged


def generate(state: Path, events: int) -> dict[str, Any]:
    scratch = state / "scratch"
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir()
    store = open_store(state / "gamelens.db")
    players, began = players_for(events), time.perf_counter()
    staged = write_days(scratch, players=players)
    made = time.perf_counter()
    lake = Lake(state / "lake", store)
    processed_at = datetime.combine(FIRST + timedelta(days=DAYS), datetime.min.time())
    processed_ms = round((processed_at - datetime(1970, 1, 1)).total_seconds() * 1000)
    take({ORGANISATION: staged}, lake, scratch, processed_ms=processed_ms, last_batch=0)
    done = time.perf_counter()
    (count,) = store.execute("SELECT sum(rows) FROM files WHERE kind = 'events'").fetchone()
    rows = dict(store.execute("SELECT kind, sum(rows) FROM files GROUP BY kind"))
    store.close()
    shutil.rmtree(scratch)
    peak_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {
        "events": count,
        "rows": rows,
        "make_s": made - began,
        "process_s": done - made,
        "peak_mib": peak_mib,
    }


_PLAYERS = """
    CREATE TABLE players AS
    SELECT number, CAST(floor({days} * chance) AS INTEGER) AS installed_on,
        printf('%016x-%016x', hash(number, 1), hash(number, 2)) AS user_id,
        {games}[1 + CAST(floor(3 * pow(luck, 1.4)) AS INTEGER)] AS game_id,
        {countries}[1 + CAST(floor(40 * pow(place, 2.2)) AS INTEGER)] AS country_code,
        CASE WHEN hash(number, 4) % 100 < 74 THEN 'android' ELSE 'ios' END AS platform,
        CASE hash(number, 5) % 10 WHEN 0 THEN 'organic' WHEN 1 THEN 'unity' WHEN 2 THEN 'applovin' END AS publisher,
        CASE hash(number, 6) % 4 WHEN 0 THEN 'ctrl' WHEN 1 THEN 'fast' END AS variant,
        hash(number, 7) % 100 < 3 AS is_payer
    FROM (
        SELECT range AS number, (hash(range, 11) % 1000003) / 1000003 AS chance,
            (hash(range, 12) % 1000003) / 1000003 AS luck, (hash(range, 13) % 1000003) / 1000003 AS place
        FROM range({players})
    )"""

# Of the events of a player's day: a user event, two session ends, ads in three steps, impressions, the rest design.
_DAY = """
    WITH present AS (
        SELECT *, {number} - installed_on AS age, row_number() OVER () AS place FROM players
        WHERE installed_on <= {number} AND (hash(number, {number}, 20) % 1000003) / 1000003
            < CASE {number} - installed_on {retained} END
    ), happened AS (
        SELECT *, CAST(range AS INTEGER) AS step, CAST(hash(number, {number}, range) >> 1 AS BIGINT) AS dice,
            CAST(range // 12 AS INTEGER) AS session
        FROM present, range({events})
    ), kinds AS (
        SELECT *, CASE WHEN step % 12 = 0 THEN 'user' WHEN step % 12 = 11 THEN 'session_end'
            WHEN step % 12 BETWEEN 3 AND 6 THEN 'ads' WHEN step % 12 = 7 THEN 'impression'
            WHEN step = 9 AND is_payer AND dice % 3 = 0 THEN 'business'
            WHEN step % 12 = 8 AND dice % 50 = 0 THEN 'error'
            ELSE 'design' END AS category
        FROM happened
    )
    SELECT CAST({number} AS BIGINT) * 1000000000 + place * {events} + step AS seq,
        CAST(DATE '{day}' AS TIMESTAMP) + to_seconds(CAST(hash(number, {number}) % 70000 + step * 600 AS BIGINT)) AS ts,
        DATE '{day}' AS day, game_id, country_code, platform,
        '1.' || CAST(greatest(0, ({number} - CAST(hash(number, 8) % 20 AS INTEGER)) // 14) AS VARCHAR) AS build,
        category,
        CASE WHEN category = 'ads' THEN ['unity', 'applovin', 'googleadmob'][1 + dice % 3] END AS ad_sdk_name,
        CASE WHEN category = 'ads' THEN ['rewarded_video', 'interstitial', 'banner'][1 + (dice // 3) % 3] END
            AS ad_type,
        CASE WHEN category = 'ads' THEN ['request', 'loaded', 'show', 'clicked'][step % 12 - 2] END AS ad_action,
        CASE WHEN category = 'error' THEN ['warning', 'error', 'critical'][1 + dice % 3] END AS severity,
        CASE WHEN category = 'impression' THEN 'max' END AS ilrd_sdk_vendor,
        CASE WHEN category = 'impression' THEN ['home', 'level_end', 'shop', 'revive'][1 + dice % 4] END
            AS ilrd_adunit_name,
        CASE WHEN category = 'impression' THEN ['NetA', 'NetB', 'NetC', 'NetD', 'NetE', 'NetF'][1 + (dice // 4) % 6] END
            AS ilrd_network_name,
        CASE WHEN category = 'impression' THEN ['REWARD', 'INTER', 'BANNER'][1 + (dice // 24) % 3] END
            AS ilrd_adunit_format,
        publisher AS install_publisher,
        CASE WHEN variant IS NOT NULL THEN 'exp1' END AS ab_id, variant AS ab_variant_id,
        user_id, CAST(hash(number, {number}, session) AS VARCHAR) AS session_id,
        NULL AS event_uuid, CASE WHEN category = 'impression' THEN CAST(dice AS VARCHAR) END AS ilrd_id,
        CASE WHEN category = 'session_end' THEN CAST(30 + dice % 900 AS BIGINT) END AS length,
        CASE category WHEN 'business' THEN [99, 199, 499, 999][1 + dice % 4]
            WHEN 'impression' THEN CAST(200000 + dice % 20000000 AS BIGINT) END AS money,
        CASE category WHEN 'business' THEN ['USD', 'EUR', 'JPY'][1 + (dice // 4) % 3]
            WHEN 'impression' THEN 'USD' END AS currency
    FROM kinds"""


if __name__ == "__main__":
    print(json.dumps(generate(Path(sys.argv[1]), int(sys.argv[2]))))
