"""Few events for a large lake, submitted over HTTP."""

from __future__ import annotations

import json
import random
from datetime import UTC, datetime, timedelta
from uuid import UUID

import httpx

from gamelens.wire.signing import sign
from support.game_events import event
from support.served_lake import Served

LAST_DAY = datetime(2026, 11, 19, tzinfo=UTC)
DAYS = 60
EVENTS_EACH = 100
SIZES = {"1 event": (1, 1), "10k of one day": (10_000, 1), "10k late": (10_000, DAYS), "100k late": (100_000, DAYS)}


def submit(served: Served, count: int, days: int, seed: int) -> None:
    """Submit *count* events of the last *days* days: nine of ten of players that are known, with new names."""
    source = random.Random(seed)
    players = [row[0] for row in served.raw.execute("SELECT DISTINCT user_id FROM events LIMIT 5000").fetchall()]
    game = served.info["organisations"][0]["studios"][0]["games"][0]
    events = []
    for _ in range(count):
        known = source.random() < 0.9
        moment = LAST_DAY - timedelta(days=source.randrange(days), seconds=source.randrange(80_000))
        events.append(
            event(
                user_id=source.choice(players) if known else str(UUID(int=source.getrandbits(128))),
                session_id=str(UUID(int=source.getrandbits(128))),
                client_ts=int(moment.timestamp()),
                event_uuid=str(UUID(int=source.getrandbits(128))),
            )
        )
    url = f"{served.info['collector_url']}/v2/{game['game_key']}/events"
    with httpx.Client(timeout=60) as http:
        for start in range(0, count, EVENTS_EACH):
            body = json.dumps(events[start : start + EVENTS_EACH]).encode()
            answer = http.post(url, content=body, headers={"Authorization": sign(body, secret_key=game["secret_key"])})
            assert answer.status_code == 200, answer.text


def first_run_after_a_start(served: Served, *, seed: int) -> float:
    """Return the seconds of the first run of a new process, of late events and with none of the lake's files cached."""
    submit(served, *SIZES["10k late"], seed=seed)
    served.stop()
    served.forget_cached_pages()
    served.start()
    return served.process()
