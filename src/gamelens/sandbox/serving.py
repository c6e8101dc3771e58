"""A running sandbox: its state directory, its services on loopback, and how it starts and stops."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import logging
import math
import os
import secrets
import shutil
import signal
import socket
from collections.abc import Iterator
from pathlib import Path
from time import monotonic
from typing import IO, Any

import msgspec
import uvicorn
import uvloop

from gamelens.errors import Refused
from gamelens.sandbox.clock import Clock
from gamelens.sandbox.collector import CollectorService, Reply
from gamelens.sandbox.console import console_app
from gamelens.sandbox.engine import Reader
from gamelens.sandbox.inbox import Inbox, open_store
from gamelens.sandbox.lake import Lake
from gamelens.sandbox.limits import Limits
from gamelens.sandbox.metrics import MetricsService
from gamelens.sandbox.processing import process
from gamelens.sandbox.tenants import Tenants, describe, load_tenants, write_private
from gamelens.wire.limits import REFRESH_S, REQUESTS_AT_ONCE, REQUESTS_PER_SECOND

_log = logging.getLogger(__name__)

READY_FILE = "ready.json"
LOOPBACK = "127.0.0.1"


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """How to run: ports (0 is any free one), limits and habits."""

    state: Path
    collector_port: int = 0
    metrics_port: int = 0
    config: Path | None = None
    ready: Path | None = None
    reply: Reply = "auto"
    stop_after_idle_s: float = math.inf
    refresh_s: float = REFRESH_S
    rate: int = REQUESTS_PER_SECOND
    at_once: int = REQUESTS_AT_ONCE


class Sandbox:
    """Both services over one state directory, held by one process at a time.

    Raises:
        Refused: another process holds *state*.
        BadQuery: the configuration file breaks a rule.
    """

    def __init__(self, options: Options, *, clock: Clock | None = None) -> None:
        self.options = options
        self.clock = clock or Clock()
        self.token = secrets.token_urlsafe(16)
        self._lock = hold(options.state)
        try:
            self.tenants: Tenants = load_tenants(options.state, options.config)
        except BaseException:
            self._lock.close()
            raise
        self._processing = asyncio.Lock()
        self.last_asked_s = monotonic()
        self._open()

    def _open(self) -> None:
        state = self.options.state
        (state / "lake").mkdir(exist_ok=True)
        self.store = open_store(state / "gamelens.db")
        self.lake = Lake(state / "lake", self.store)
        self.lake.recover()
        self.inbox = Inbox(state / "gamelens.db")
        self.reader = Reader(state / "lake")
        limits = Limits(self.options.rate, self.options.at_once)
        self.collector = CollectorService(self.tenants, self.inbox, self.clock, reply=self.options.reply)
        self.metrics = MetricsService(
            self.tenants, self.lake, self.reader, self.clock, limits=limits, refresh_s=self.options.refresh_s
        )

    async def process(self) -> dict[str, str]:
        """Process everything received so far; available interval of each organisation, by name."""
        async with self._processing:
            await asyncio.to_thread(process, self.options.state, self.clock)
        self.metrics.forget_availability()
        return available_by_name(self.tenants, self.lake, self.clock)

    def summary(self) -> dict[str, Any]:
        """Counts of everything received, in all and by game, and what is available."""
        run = self.lake.last_run()
        per_game = {
            game_id: {"accepted": accepted, "rejected": rejected, "pending": pending}
            for game_id, accepted, rejected, pending in self.store.execute(
                "SELECT game_id, sum(events), sum(rejected), sum(CASE WHEN id > ? THEN events ELSE 0 END) "
                "FROM batches GROUP BY game_id ORDER BY game_id",
                (run.last_batch,),
            )
        }
        (duplicates,) = self.store.execute("SELECT coalesce(sum(duplicates), 0) FROM runs").fetchone()
        totals = {
            name: sum(counts[name] for counts in per_game.values()) for name in ("accepted", "rejected", "pending")
        }
        return {
            **totals,
            "duplicate": duplicates,
            "asked": self.metrics.asked,
            "processed": totals["accepted"] - totals["pending"] - duplicates,
            "available": available_by_name(self.tenants, self.lake, self.clock),
            "games": per_game,
        }

    async def reset(self) -> None:
        """Forget every event; keys, ports and clock stay."""
        async with self._processing:
            with self.store:
                self.store.execute("BEGIN IMMEDIATE")
                for table in ("batches", "runs", "files"):
                    self.store.execute(f"DELETE FROM {table}")  # noqa: S608
            for folder in self.lake.root.iterdir():
                shutil.rmtree(folder)
        self.metrics.forget_availability()

    def unhealthy_because(self) -> str | None:
        """Why the sandbox cannot take requests."""
        return None if self.inbox.is_committing else "the store does not commit"

    def close(self) -> None:
        """Commit what is queued, release everything."""
        self.inbox.close()
        self.reader.close()
        self.store.close()
        self._lock.close()

    async def run(self) -> None:
        """Serve until SIGINT or SIGTERM, then drain."""
        collector = _listen(self.options.collector_port)
        metrics = _listen(self.options.metrics_port)
        console = _listen(0)
        apps = (self.collector, self.metrics.app(), console_app(self, token=self.token))
        servers = [
            (_server(self._watched(app)), listener)
            for app, listener in zip(apps, (collector, metrics, console), strict=True)
        ]
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, stop.set)
        serving = [asyncio.create_task(server.serve(sockets=[listener])) for server, listener in servers]
        while not all(server.started for server, _ in servers):  # noqa: ASYNC110 - uvicorn has no event for it
            await asyncio.sleep(0.01)
        ready = self._describe(*(f"http://{LOOPBACK}:{it.getsockname()[1]}" for it in (collector, metrics, console)))
        for path in filter(None, (self.options.ready, self.options.state / READY_FILE)):
            write_private(path, ready)
        chores = [asyncio.create_task(self._process_hourly()), asyncio.create_task(self._watch_idleness(stop))]
        await stop.wait()
        for chore in chores:
            chore.cancel()
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
                    async with self._processing:
                        await asyncio.to_thread(process, self.options.state, self.clock)
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
                "organisations": describe(self.tenants),
            }
        )


def process_stopped(state: Path) -> dict[str, str]:
    """Process a state directory that no sandbox serves; available interval of each organisation, by name.

    Raises:
        Refused: *state* is no state directory, or another process has it.
    """
    if not (state / "tenants.json").exists():
        raise Refused(f"{state} holds no sandbox: `gamelens sandbox up --state {state}` makes one")
    sandbox = Sandbox(Options(state=state))
    try:
        return asyncio.run(sandbox.process())
    finally:
        sandbox.close()


def serve(sandbox: Sandbox) -> None:
    """Run *sandbox* in this process until it is told to stop; everything received is on disk when this returns."""
    try:
        # uvloop answers about twice as many small requests; without it everything else is the same.
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(sandbox.run())
    finally:
        sandbox.close()


class _QuietServer(uvicorn.Server):
    """A server that leaves signals to us: three of them share one process."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def hold(state: Path) -> IO[str]:
    """Take a state directory for this process; closing the answer lets it go.

    Raises:
        Refused: another process has it.
    """
    state.mkdir(parents=True, exist_ok=True, mode=0o700)
    state.chmod(0o700)
    lock = (state / "lock").open("w")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        lock.close()
        raise Refused(f"{state} belongs to a running sandbox: stop that one, or name another --state") from None
    return lock


def available_by_name(tenants: Tenants, lake: Lake, clock: Clock) -> dict[str, str]:
    """Available interval of each organisation, ISO 8601."""
    return {org.name: str(lake.available(org.name, now=clock.now())) for org in tenants.organisations}


def _server(app: Any) -> uvicorn.Server:
    return _QuietServer(
        uvicorn.Config(
            app,
            log_level="warning",
            access_log=False,
            lifespan="off",
            server_header=False,
            timeout_graceful_shutdown=10,
            proxy_headers=False,
        )
    )


def _listen(port: int) -> socket.socket:
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((LOOPBACK, port))
    except OSError as error:
        listener.close()
        raise Refused(f"port {port} cannot be used: {error.strerror}. Name another, or 0 for any free one") from None
    return listener
