"""A running sandbox: its state directory, its services on loopback, and how it starts and stops."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import os
import secrets
import shutil
import signal
import socket
import sqlite3
import sys
from collections.abc import Iterator
from pathlib import Path
from time import monotonic
from typing import Any, Final

import msgspec
import uvloop

from gamelens._files import write_private
from gamelens.errors import Refused
from gamelens.sandbox.clock import Clock
from gamelens.sandbox.collector.collector_app import SERVICE_HEADERS, CollectorApp, Reply
from gamelens.sandbox.collector.geoip import GeoIp
from gamelens.sandbox.collector.live_feed import LiveFeed
from gamelens.sandbox.control.control_app import console_app
from gamelens.sandbox.control.fault_injection import FaultInjector
from gamelens.sandbox.engines.engine import LakeLocation
from gamelens.sandbox.engines.open_engine import open_engine
from gamelens.sandbox.http.certificates import load_certificate
from gamelens.sandbox.http.http_server import http_server
from gamelens.sandbox.http.rate_limiter import RateLimits
from gamelens.sandbox.metrics.metrics_app import MetricsApp
from gamelens.sandbox.processing.pipeline import process
from gamelens.sandbox.processing.worker import process_in_worker
from gamelens.sandbox.state_directory import READY_FILE, check_state, lock_state_directory
from gamelens.sandbox.storage.event_counts import EventCounter
from gamelens.sandbox.storage.inbox import (
    RESERVED_BYTES,
    Inbox,
    InboxBatch,
    delete_batches,
    newest,
    open_store,
    set_scenario,
)
from gamelens.sandbox.storage.inbox_recovery import recover_store
from gamelens.sandbox.storage.lake import Lake
from gamelens.sandbox.tenants import TenantDirectory, Titles, describe, load_tenants
from gamelens.wire.event_validator import Validation
from gamelens.wire.limits import REFRESH_S, REQUESTS_AT_ONCE, REQUESTS_PER_SECOND

_log = logging.getLogger(__name__)
LOOPBACK = "127.0.0.1"
_WORTH_A_WORKER: Final = 20_000  # events


class SandboxOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How to run: ports (0 is any free one), limits and habits."""

    state: Path
    collector_port: int = 0
    metrics_port: int = 0
    config: Path | None = None
    titles: Titles = ()
    ready: Path | None = None
    reply: Reply = "auto"
    validation: Validation = "lenient"
    stop_after_idle_s: float = math.inf
    refresh_s: float = REFRESH_S
    rate: int = REQUESTS_PER_SECOND
    at_once: int = REQUESTS_AT_ONCE
    nodes: int = 1
    tls: bool = False
    geoip: Path | None = None
    reserved_bytes: int = RESERVED_BYTES
    engine: str = "duckdb"
    lake_url: str | None = None


class Sandbox:
    """Both services over one state directory, held by one process at a time.

    Raises:
        Refused: another process holds *state*, or a file of the options is not what it should be.
        BadQuery: the configuration file breaks a rule.
    """

    def __init__(self, options: SandboxOptions, *, clock: Clock | None = None) -> None:
        self.options = options
        self.clock = clock or Clock()
        self.token = secrets.token_urlsafe(16)
        self._lock = lock_state_directory(options.state)
        try:
            self.tenants, self._api_keys = load_tenants(options.state, options.config, options.titles)
            self._certificate = load_certificate(options.state) if options.tls else None
            self._countries = GeoIp(options.geoip)
            self.reader = open_engine(options.engine, LakeLocation(options.state / "lake", options.lake_url))
        except BaseException:
            self._lock.close()
            raise
        self._processing = asyncio.Lock()
        self.last_asked_s = monotonic()
        self.faults = FaultInjector()
        self._open()

    def _open(self) -> None:
        state = self.options.state
        (state / "lake").mkdir(exist_ok=True)
        recover_store(state / "gamelens.db")
        self.store = open_store(state / "gamelens.db")
        self.lake = Lake(state / "lake", self.store)
        self.lake.recover()
        self.inbox = Inbox(state / "gamelens.db", reserved_bytes=self.options.reserved_bytes)
        self._totals = EventCounter(self.store)
        self.live = _live(self.tenants, self.store, self.clock)
        limits = RateLimits(self.options.rate, self.options.at_once)
        self.collector = CollectorApp(
            self.tenants,
            self.inbox,
            self.clock,
            live=self.live,
            reply=self.options.reply,
            validation=self.options.validation,
            countries=self._countries,
        )
        self.metrics = MetricsApp(
            self.tenants,
            self.lake,
            self.reader,
            self.clock,
            limits=limits,
            nodes=self.options.nodes,
            refresh_s=self.options.refresh_s,
        )

    async def process(self) -> dict[str, str]:
        """Process everything received so far; available interval of each organisation, by name."""
        await self._take_in()
        self.metrics.forget_availability()
        return available_intervals(self.tenants, self.lake, self.clock)

    async def _take_in(self) -> None:
        """Process, one run at a time; what takes longer than starting a worker is done in one."""
        async with self._processing:
            if self._pending_events() < _WORTH_A_WORKER:
                await asyncio.to_thread(process, self.options.state, self.clock)
            else:
                await process_in_worker(self.options.state, self.clock, lock=self._lock)

    def _pending_events(self) -> int:
        """Events that wait to be processed, as far as it is worth counting."""
        ((events,),) = self.store.execute(
            "SELECT coalesce(sum(events), 0) FROM (SELECT events FROM batches WHERE id > ? LIMIT ?)",
            (self.lake.last_run().last_batch, _WORTH_A_WORKER),
        )
        return int(events)

    def summary(self) -> dict[str, Any]:
        """Counts of everything received, in all and by game, what is available, and the counts of this start."""
        received = self._totals.by_game(
            processed_up_to=self.lake.last_run().last_batch, shared=self.tenants.shared_game_ids
        )
        per_game = {game: msgspec.structs.asdict(counts) for game, counts in received.items()}
        (duplicates,) = self.store.execute("SELECT coalesce(sum(duplicates), 0) FROM runs").fetchone()
        damaged = self.store.execute("SELECT batch, kept_in FROM damaged").fetchall()
        totals = {
            name: sum(counts[name] for counts in per_game.values()) for name in ("accepted", "rejected", "pending")
        }
        return {
            **totals,
            "duplicate": duplicates,
            "asked": self.metrics.asked,
            "processed": totals["accepted"] - totals["pending"] - duplicates,
            "available": available_intervals(self.tenants, self.lake, self.clock),
            "games": per_game,
            "since_start": self.live.counts(),
            "faults": len(self.faults.listed()),
            "damaged": {
                "batches": sum(batch is not None for batch, _ in damaged),
                "kept_in": sorted({kept_in for _, kept_in in damaged if kept_in}),
            },
        }

    async def reset(self) -> None:
        """Forget every event and the scenario. Keys, ports and clock stay."""
        async with self._processing:
            with self.store:
                self.store.execute("BEGIN IMMEDIATE")
                delete_batches(self.store)
                self.lake.forget()
            for folder in self.lake.root.iterdir():
                shutil.rmtree(folder)
        self._totals.forget()
        self.live.forget(since_ts=int(self.clock.now_s()))
        self.metrics.forget_availability()

    def set_scenario(self, name: str | None) -> None:
        """Store the name of the scenario that the events are of, for `GET /metrics/v1/interval`."""
        set_scenario(self.store, name)

    def unhealthy_because(self) -> str | None:
        """Why the sandbox cannot take requests."""
        return self.inbox.trouble

    def close(self) -> None:
        """Commit what is queued, release everything."""
        self.inbox.close()
        self.reader.close()
        self.store.close()
        self._countries.close()
        self._lock.close()

    async def run(self) -> None:
        """Serve until SIGINT or SIGTERM, then drain."""
        collector = _listen(self.options.collector_port)
        metrics = _listen(self.options.metrics_port)
        console = _listen(0)
        certificate = self._certificate.server_file if self._certificate else None
        servers = [
            (http_server(self._watched(app), headers=headers, certificate=file), listener)
            for app, headers, file, listener in (
                (self.faults.around("collector", self.collector), SERVICE_HEADERS, certificate, collector),
                (self.faults.around("metrics", self.metrics.app()), (), certificate, metrics),
                (console_app(self, token=self.token), (), None, console),
            )
        ]
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, stop.set)
        serving = [asyncio.create_task(server.serve(sockets=[listener])) for server, listener in servers]
        while not all(server.started for server, _ in servers):  # noqa: ASYNC110 - uvicorn has no event for it
            await asyncio.sleep(0.01)
        scheme = "https" if self._certificate else "http"
        ready = self._describe(_address(collector, scheme), _address(metrics, scheme), _address(console, "http"))
        for path in filter(None, (self.options.ready, self.options.state / READY_FILE)):
            write_private(path, ready)
        chores = [asyncio.create_task(self._process_hourly()), asyncio.create_task(self._watch_idleness(stop))]
        await stop.wait()
        for chore in chores:
            chore.cancel()
        self.live.close()
        for server, _ in servers:
            server.should_exit = True
        await asyncio.gather(*serving)
        (self.options.state / READY_FILE).unlink(missing_ok=True)

    def _watched(self, app: Any) -> Any:
        """*app*, each request to which is noticed."""

        async def noticed(scope: Any, receive: Any, send: Any) -> None:
            self.last_asked_s = monotonic()
            await app(scope, receive, send)

        return noticed

    async def _process_hourly(self) -> None:
        """Process when the sandbox's clock has passed into another hour."""
        last = int(self.clock.now_s() // 3600)
        while True:
            await asyncio.sleep(1)
            if (hour := int(self.clock.now_s() // 3600)) != last:
                last = hour
                try:
                    await self._take_in()
                except Exception:  # whatever it was, the next hour is tried again
                    _log.exception("hourly processing failed: the lake is as it was")

    async def _watch_idleness(self, stop: asyncio.Event) -> None:
        """Stop when nobody has asked anything for as long as the options say."""
        while not stop.is_set():
            idle_s = monotonic() - self.last_asked_s
            if idle_s >= self.options.stop_after_idle_s:
                stop.set()
            await asyncio.sleep(1)

    def _describe(self, collector_url: str, metrics_url: str, console_url: str) -> bytes:
        return msgspec.json.encode(
            {
                "collector_url": collector_url,
                "metrics_url": metrics_url,
                "console_url": f"{console_url}/{self.token}",
                "pid": os.getpid(),
                **({"ca_file": str(self._certificate.ca_file)} if self._certificate else {}),
                "organisations": describe(self.tenants, self._api_keys),
            }
        )


def process_stopped(state: Path) -> dict[str, str]:
    """Process a state directory that no sandbox serves; available interval of each organisation, by name.

    Raises:
        Refused: *state* is no state directory, or another process has it.
    """
    check_state(state)
    sandbox = Sandbox(SandboxOptions(state=state))
    try:
        return asyncio.run(sandbox.process())
    finally:
        sandbox.close()


def serve(sandbox: Sandbox) -> None:
    """Run *sandbox* in this process until it is told to stop; everything received is on disk when this returns."""
    try:
        # The inbox commits from a thread of its own, which would wait 5 ms for each turn.
        sys.setswitchinterval(0.0005)
        # uvloop answers about twice as many small requests; without it everything else is the same.
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(sandbox.run())
    finally:
        sandbox.close()


def available_intervals(tenants: TenantDirectory, lake: Lake, clock: Clock) -> dict[str, str]:
    """Available interval of each organisation, ISO 8601."""
    return {org.name: str(lake.available(org.name, now=clock.now())) for org in tenants.organisations}


def _live(tenants: TenantDirectory, store: sqlite3.Connection, clock: Clock) -> LiveFeed:
    """The live record, with what an earlier start accepted last."""
    games = {(org.name, game.id): game for org in tenants.organisations for game in org.games}
    titles = {game.game_key: game.title for game in games.values() if game.environment == "sandbox"}
    live = LiveFeed(titles, since_ts=int(clock.now_s()))

    def stored() -> Iterator[tuple[str, InboxBatch]]:
        for batch in newest(store):
            game = games.get((batch.organisation, batch.game_id))
            if game is not None and game.game_key in titles:
                yield game.game_key, batch

    with contextlib.suppress(sqlite3.DatabaseError):  # a damaged page is for processing to report, and no obstacle
        live.recall(stored())
    return live


def _address(listener: socket.socket, scheme: str) -> str:
    return f"{scheme}://{LOOPBACK}:{listener.getsockname()[1]}"


def _listen(port: int) -> socket.socket:
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((LOOPBACK, port))
    except OSError as error:
        listener.close()
        raise Refused(f"port {port} cannot be used: {error.strerror}. Name another, or 0 for any free one") from None
    return listener
