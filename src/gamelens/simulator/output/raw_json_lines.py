"""Gzipped JSON lines of raw events, as the service's "Raw Data" has them.

Wire 5.6, Raw Data. One line is one event: `data` is the event as sent, with the amount in US dollar cents, and the
wrapper has what the service knows: arrival, place, and `user_meta` about the player.
"""

from __future__ import annotations

import gzip
from collections import defaultdict
from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import msgspec
import pyarrow as pa

from gamelens.simulator.events.event_json import join_events
from gamelens.simulator.events.sent_events import SentEvent
from gamelens.wire.currencies import USD_PER_UNIT

_HOUR_S: Final = 3600
_LEVEL: Final = 6
_CONTINENTS: Final = {"US": "NA", "GB": "EU", "DE": "EU", "FR": "EU", "JP": "AS", "IN": "AS", "BR": "SA"}
_ADDRESS: Final = "203.0.113.0"  # of the range for documentation, as the last byte of an anonymised one is
_COLUMNS: Final = ("user_id", "client_ts", "country_code", "build", "install_publisher", "category", "amount")


class _Player:
    """The facts of a player that `user_meta` repeats on every event."""

    def __init__(self, install_ts: int, build: str | None, publisher: str | None) -> None:
        self._install_ts, self._build, self._publisher = install_ts, build, publisher
        self._paid_ts: int | None = None
        self._revenue_cents = 0

    def see_installed(self, ts: int, build: str | None, publisher: str | None) -> None:
        """Take an event at *ts* for the install, if it is the earliest."""
        if ts < self._install_ts:
            self._install_ts, self._build, self._publisher = ts, build, publisher

    def pay(self, ts: int, cents: int) -> None:
        """Add a purchase."""
        self._paid_ts = ts if self._paid_ts is None else self._paid_ts
        self._revenue_cents += cents

    def user_meta(self, arrival_ts: int) -> dict[str, Any]:
        """Return the object `user_meta` of an event that arrives at *arrival_ts*."""
        installed = datetime.fromtimestamp(self._install_ts, UTC).replace(hour=0, minute=0, second=0)
        week, month = installed - timedelta(days=installed.weekday()), installed.replace(day=1)
        meta: dict[str, Any] = {
            "install_ts": self._install_ts,
            "install_hour": self._install_ts - self._install_ts % _HOUR_S,
            "cohort_week": round(week.timestamp()),
            "cohort_month": round(month.timestamp()),
            "first_build": self._build,
            "origin": self._publisher or "organic",
            "revenue": {"usd": self._revenue_cents},
        }
        if self._publisher:
            meta["install_publisher"] = self._publisher
        if self._paid_ts is not None:
            is_first_day = arrival_ts // 86_400 == self._paid_ts // 86_400
            meta |= {"is_paying": True, "is_converting": is_first_day, "pay_ft": self._paid_ts}
        return meta


def json_lines_by_day(sent: list[SentEvent], rows: pa.Table) -> dict[date, bytes]:
    """Return the lines of *sent* by the UTC day of their arrival, gzipped.

    Args:
        sent: events that the collector accepted, repeated ones included, in the order sent.
        rows: their rows of the ledger, each with a time.
    """
    lines: defaultdict[date, list[bytes]] = defaultdict(list)
    for event, line in zip(sent, _lines(sent, rows), strict=True):
        lines[datetime.fromtimestamp(event.sent_s, UTC).date()].append(line)
    return {
        day: gzip.compress(b"\n".join(of_day) + b"\n", compresslevel=_LEVEL, mtime=0) for day, of_day in lines.items()
    }


def append_days(folder: Path, game_id: str, lines: Mapping[date, bytes]) -> None:
    """Append gzipped *lines* to the file of each day of a game."""
    for day, packed in lines.items():
        path = folder / game_id / f"{day}.json.gz"
        path.parent.mkdir(exist_ok=True)
        with path.open("ab") as file:
            file.write(packed)


def _lines(sent: list[SentEvent], rows: pa.Table) -> Iterator[bytes]:
    game_id: str | int = rows["game_id"][0].as_py() if len(rows) else ""
    game_id = int(game_id) if str(game_id).isdecimal() else game_id
    facts = list(zip(*(rows[name].to_pylist() for name in _COLUMNS), strict=True))
    players = _players(sent, facts)
    for event, (user, ts, country, _, _, category, amount) in zip(sent, facts, strict=True):
        player, data = players[user], join_events([event.event])[1:-1]
        if category == "business":
            cents = round(amount * USD_PER_UNIT[msgspec.json.decode(data)["currency"]])
            data = b'%b,"amount_usd":%d}' % (data[:-1], cents)
            if event.verdict is None:
                player.pay(ts, cents)
        wrapper = {
            "arrival_ts": event.sent_s,
            "country_code": country,
            "continent": _CONTINENTS.get(country),
            "game_id": game_id,
            "ip": _ADDRESS,
            "user_meta": player.user_meta(event.sent_s),
            "data": msgspec.Raw(data),
        }
        yield msgspec.json.encode({name: value for name, value in wrapper.items() if value is not None})


def _players(sent: list[SentEvent], facts: list[tuple[Any, ...]]) -> dict[str, _Player]:
    """Return the players by user_id, installed at the time of their first event that counts."""
    players: dict[str, _Player] = {}
    for event, (user, ts, _, build, publisher, *_) in zip(sent, facts, strict=True):
        if event.verdict is not None:
            continue
        if user in players:
            players[user].see_installed(ts, build, publisher)
        else:
            players[user] = _Player(ts, build, publisher)
    return players
