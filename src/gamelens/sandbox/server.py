"""A running sandbox: its state, its three servers on loopback, its start and stop."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import shutil
import signal
import socket
import sqlite3
import sys
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import date
from pathlib import Path
from time import monotonic
from typing import Any, Final

import msgspec

from gamelens._files import write_private
from gamelens.errors import Refused
from gamelens.sandbox.collector.collector_app import CollectorApp
from gamelens.sandbox.collector.geoip import GeoIp
from gamelens.sandbox.collector.live_feed import LiveFeed
from gamelens.sandbox.control.control_app import control_app
from gamelens.sandbox.control.fault_injection import FaultInjector
from gamelens.sandbox.engines.engine import LakeLocation, QueryBounds
from gamelens.sandbox.engines.open_engine import CheckedEngine, open_engine
from gamelens.sandbox.http.http_server import http_server, load_certificate, loop_factory
from gamelens.sandbox.http.rate_limiter import RateLimits
from gamelens.sandbox.metrics.metrics_app import MetricsApp
from gamelens.sandbox.options import Repeats, SandboxOptions
from gamelens.sandbox.processing.compaction import compact
from gamelens.sandbox.processing.pipeline import LOADED, Report, commit_staged
from gamelens.sandbox.processing.rebuild import rebuild
from gamelens.sandbox.processing.scheduler import Scheduler
from gamelens.sandbox.state.clock import Clock
from gamelens.sandbox.state.state_directory import (
    READY_FILE,
    READY_FILE_BYTES,
    SandboxUsers,
    check_state,
    explained_trouble,
    lock_state_directory,
    spare_room,
)
from gamelens.sandbox.state.tenants import TenantDirectory, Titles, describe, load_tenants
from gamelens.sandbox.storage.inbox import (
    Inbox,
    delete_batches,
    newest,
    open_store,
    set_scenario,
)
from gamelens.sandbox.storage.lake import COUNTS_REPEATS, Lake
from gamelens.sandbox.storage.lake_health import LakeHealth
from gamelens.sandbox.storage.lake_schema import FORMAT
from gamelens.sandbox.storage.store_check import check_store
from gamelens.wire.limits import KIB

LOOPBACK = "127.0.0.1"
_RECEIVE_BYTES: Final = 64 * KIB  # of each connection; with the system's 6 MB uvloop reads up to 256 kB at once


class Sandbox:
    """Both services and the control API over one state directory, which this process locks.

    Raises:
        Refused: another process has locked *state*, its disk fails, or a file of the options cannot be read.
        BadQuery: the configuration file breaks a rule.
    """

    def __init__(self, options: SandboxOptions, *, clock: Clock | None = None) -> None:
        self.options = options
        self.clock = clock or Clock()
        self.token = secrets.token_urlsafe(16)
        self.last_request_s = monotonic()
        self.faults = FaultInjector()
        if options.ready and options.ready.exists() and not options.ready.is_file():
            raise Refused(f"--ready {options.ready} is not a regular file: name a new file, or one to replace")
        with explained_trouble(options.state), contextlib.ExitStack() as on_failure:
            self._lock = on_failure.enter_context(lock_state_directory(options.state))
            self._users = SandboxUsers(options.state)
            with spare_room(options.state, reserved_bytes=READY_FILE_BYTES):
                self.tenants, self._api_keys = load_tenants(options.state, options.config, options.titles)
                self._certificate = load_certificate(options.state, options.tls_name) if options.speaks_tls else None
                self._countries = GeoIp(options.geoip)
                location = LakeLocation(options.state / "lake", options.lake_url)
                self.reader = open_engine(options.engine, location, QueryBounds(seconds=options.query_seconds))
                self._open()
            on_failure.pop_all()

    def _open(self) -> None:
        """Open the store and the lake, and wire the services to them."""
        state = self.options.state
        (state / "lake").mkdir(exist_ok=True)
        check_store(state / "gamelens.db")
        self.store = open_store(state / "gamelens.db")
        self._set_repeats()
        self.lake = Lake(state / "lake", self.store)
        self.lake.recover()
        run, reason = self.lake.last_run(), self.lake.lost_because
        if run.version and run.format != FORMAT:
            self.store.close()
            raise Refused(
                f"{reason}. Nothing was changed. Open it with the version of gamelens that wrote it; or rebuild "
                f"its tables from the inbox with `gamelens sandbox rebuild --state {state}`; "
                "or import its files again into a new state directory"
            )
        self.health = LakeHealth(self.lake, memory=state / "checked.json")
        self.runs = Scheduler(state, self.lake, self.clock, lock=self._lock, health=self.health)
        self.inbox = Inbox(state / "gamelens.db", reserved_bytes=self.options.reserved_bytes)
        self._totals = _EventCounter()
        games = {(org.name, game.id): game for org in self.tenants.organisations for game in org.games}
        titles = {game.game_key: game.title for game in games.values() if game.environment == "sandbox"}
        self.live = LiveFeed(titles, since_ts=int(self.clock.now_s()), oldest_days=self.tenants.rules.oldest_days)
        with contextlib.suppress(sqlite3.DatabaseError):  # processing reports a damaged page
            stored = ((games.get((batch.organisation, batch.game_id)), batch) for batch in newest(self.store))
            self.live.restore((game.game_key, batch) for game, batch in stored if game and game.game_key in titles)
        limits = RateLimits(self.options.rate, self.options.concurrency)
        self.collector = CollectorApp(
            self.tenants,
            self.inbox,
            self.clock,
            live=self.live,
            reply=self.options.reply,
            init_status=self.options.init_status,
            validation=self.options.validation,
            countries=self._countries,
        )
        self.metrics = MetricsApp(
            self.tenants,
            self.lake,
            CheckedEngine(self.reader, self.health),
            self.clock,
            limits=limits,
            nodes=self.options.nodes,
            refresh_s=self.options.refresh_s,
        )

    def _set_repeats(self) -> None:
        """Store whether repeated events count. All events of a state directory are treated alike."""
        state, repeats = self.options.state, self.options.repeats
        stored: Repeats = "count" if (state / COUNTS_REPEATS).exists() else "drop"
        if repeats in (None, stored):
            return
        ((has_batches,),) = self.store.execute("SELECT EXISTS (SELECT 1 FROM batches)")
        if has_batches or Lake(state / "lake", self.store).organisations():
            self.store.close()
            done = {"drop": "dropped", "count": "counted"}[stored]
            raise Refused(
                f"--repeats {repeats} is for a state directory without events, and repeated events of {state} were "
                f"{done}: name a new --state, or delete its events first (POST /reset of the control API)"
            )
        if repeats == "count":
            (state / COUNTS_REPEATS).touch(mode=0o600)
        else:
            (state / COUNTS_REPEATS).unlink()

    async def examine_refused(self) -> None:
        """Find out why requests were refused where that is not known yet."""
        await self.collector.refused.examine()

    async def process(self) -> dict[str, str]:
        """Process everything received and return the available intervals, by organisation."""
        try:
            await self.runs.process()
        finally:
            self.metrics.forget_availability()
        return available_intervals(self.tenants, self.lake, self.clock)

    def summary(self) -> dict[str, Any]:
        """Return the counts of `GET /summary` (Wire 5.1, Control API)."""
        per_game = self._totals.by_game(self.lake, shared=self.tenants.shared_game_ids)
        duplicates = self.lake.last_run().duplicates
        damaged = self.store.execute("SELECT batch, kept_in FROM damaged").fetchall()
        totals = {
            name: sum(counts[name] for counts in per_game.values()) for name in ("accepted", "rejected", "pending")
        }
        return {
            **totals,
            "duplicate": duplicates,
            "dated_by_arrival": self.lake.dated_by_arrival(),
            "repeats": "count" if self.lake.counts_repeats else "drop",
            "asked": self.metrics.request_count,
            "processed": totals["accepted"] - totals["pending"] - duplicates,
            "available": available_intervals(self.tenants, self.lake, self.clock),
            "games": per_game,
            "since_start": self.live.counts(),
            "faults": len(self.faults.listed()),
            "damaged": {
                "batches": sum(batch is not None for batch, _ in damaged),
                "kept_in": sorted({file for _, file in damaged if file}),
                "lake": self.health.reasons(),
            },
            "processing": self.runs.progress and self.runs.progress.to_json(),
            "failing": {name: status.to_json() for name, status in self.lake.statuses().items() if status.failures},
            "oldest_days": self.tenants.rules.oldest_days,
        }

    async def reset(self) -> None:
        """Delete every event and the scenario. Keys, ports and clock stay."""
        await self.examine_refused()
        async with self.runs.exclusively():
            with self.store:
                self.store.execute("BEGIN IMMEDIATE")
                self.inbox.forget(delete_batches(self.store))
                self.lake.forget()
            self.lake.delete_files()
        self._totals.forget()
        self.live.forget(since_ts=int(self.clock.now_s()))
        self.metrics.forget_availability()

    async def load(self) -> dict[str, str]:
        """Make the files in `LOADED` the lake of the first organisation, and return the available intervals.

        The files are gone afterwards, whether they were taken or not.
        """
        folder = self.options.state / LOADED
        try:
            await self.runs.load(self.tenants.organisations[0].name)
        finally:
            self.metrics.forget_availability()
            await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
        return available_intervals(self.tenants, self.lake, self.clock)

    def set_scenario(self, name: str | None) -> None:
        """Store the name of the scenario that the events are of, for `GET /metrics/v1/interval`."""
        set_scenario(self.store, name)

    def unhealthy_because(self) -> str | None:
        """Return the reason why requests cannot be taken, or None."""
        return self.inbox.trouble or self.lake.cannot_be_written()

    def cannot_answer(self) -> dict[str, str]:
        """Return why questions are not answered, by organisation."""
        return self.health.reasons()

    def close(self) -> None:
        """Commit what is queued and release everything."""
        self.inbox.close()
        self.reader.close()
        self.store.close()
        self._countries.close()
        self._lock.close()
        self._users.lock.release()

    async def run(self) -> None:
        """Serve until SIGINT or SIGTERM, then finish the requests under way."""
        collector = _listen(self.options.collector_port)
        metrics = _listen(self.options.metrics_port)
        control = _listen(0)
        certificate = self._certificate.server_file if self._certificate else None
        servers = [
            (http_server(self._note_requests(app), certificate=file), listener)
            for app, file, listener in (
                (self.faults.around("collector", self.collector), certificate, collector),
                (self.faults.around("metrics", self.metrics.app()), certificate, metrics),
                (control_app(self, token=self.token), None, control),
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
        ready = {
            "collector_url": f"{scheme}://{LOOPBACK}:{collector.getsockname()[1]}",
            "metrics_url": f"{scheme}://{LOOPBACK}:{metrics.getsockname()[1]}",
            "console_url": f"http://{LOOPBACK}:{control.getsockname()[1]}/{self.token}",
            "pid": os.getpid(),
            **({"ca_file": str(self._certificate.ca_file)} if self._certificate else {}),
            "organisations": describe(self.tenants, self._api_keys),
        }
        # The one that is waited for comes last: a killed sandbox leaves its own in the state directory.
        with spare_room(self.options.state):
            for path in filter(None, (self.options.state / READY_FILE, self.options.ready)):
                with explained_trouble(path.parent):
                    write_private(path, msgspec.json.encode(ready))
        background_tasks = [
            asyncio.create_task(self.runs.process_hourly()),
            asyncio.create_task(self.runs.compact_after_runs()),
            asyncio.create_task(self.runs.keep_whole()),
            asyncio.create_task(self.collector.refused.examine_as_they_come()),
            asyncio.create_task(self._stop_when_idle(stop)),
        ]
        await stop.wait()
        for task in background_tasks:
            task.cancel()
        await self.runs.stop_compaction()
        self.live.close()
        for server, _ in servers:
            server.should_exit = True
        await asyncio.gather(*serving)
        await self.examine_refused()
        (self.options.state / READY_FILE).unlink(missing_ok=True)

    def _note_requests(self, app: Any) -> Any:
        """Wrap *app* so that the time of each request is noted."""

        async def noted(scope: Any, receive: Any, send: Any) -> None:
            self.last_request_s = monotonic()
            await app(scope, receive, send)

        return noted

    async def _stop_when_idle(self, stop: asyncio.Event) -> None:
        """Stop after `stop_after_idle` seconds without a request, once nobody uses the sandbox.

        The lock of the users is then kept until `close`: who joins meanwhile waits, and starts another sandbox.
        """
        while not stop.is_set():
            idle_s = monotonic() - self.last_request_s
            if idle_s >= self.options.stop_after_idle and self._users.lock_if_left():
                stop.set()
            await asyncio.sleep(1)


class _EventCounter:
    """Running sums over the batches of a store. A call reads only the batches that are new."""

    def __init__(self) -> None:
        self._up_to = 0
        self._by_game: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)

    def by_game(self, lake: Lake, *, shared: Collection[str]) -> dict[str, dict[str, int]]:
        """Return the numbers of events by game id: stored, refused by the collector, and stored but not processed yet.

        An id is unique only within its organisation. One that several organisations use, now (*shared*) or in the
        stored batches, is written `organisation/id`.
        """
        (last,) = lake.store.execute("SELECT coalesce(max(id), 0) FROM batches").fetchone()
        sums = lake.store.execute(
            "SELECT organisation, game_id, sum(events), sum(rejected) FROM batches WHERE id > ? AND id <= ? "
            "GROUP BY organisation, game_id",
            (self._up_to, last),
        )
        for organisation, game_id, accepted, rejected in sums:
            self._by_game[organisation, game_id].update(accepted=accepted, rejected=rejected)
        self._up_to = max(self._up_to, last)
        owners = Counter(game_id for _, game_id in self._by_game)
        waiting = lake.waiting_events(up_to=last)
        named = {
            f"{organisation}/{game_id}" if owners[game_id] > 1 or game_id in shared else game_id: {
                "accepted": counts["accepted"],
                "rejected": counts["rejected"],
                "pending": waiting.get((organisation, game_id), 0),
            }
            for (organisation, game_id), counts in self._by_game.items()
        }
        return dict(sorted(named.items()))

    def forget(self) -> None:
        """Start from zero after the batches were deleted. Batch ids are never reused."""
        self._by_game.clear()


def process_stopped(state: Path, *, report: Report | None = None) -> dict[str, str]:
    """Process a state directory that no sandbox serves, and *report* how far the run is.

    Returns:
        The available interval of each organisation, by name.

    Raises:
        Refused: *state* is not a state directory, or another process has locked it.
    """
    check_state(state)
    sandbox = Sandbox(SandboxOptions(state=state))
    try:
        sandbox.runs.report = report
        available = asyncio.run(sandbox.process())
        compact(state)
        return available
    finally:
        sandbox.close()


def rebuild_stopped(state: Path, organisations: Sequence[str] = (), *, accept_loss: bool = False) -> list[str]:
    """Make the tables of a state directory that no sandbox serves again (`rebuild`).

    With *accept_loss* it goes on without events that are lost. Returns the names of the organisations.

    Raises:
        Refused: *state* is not a state directory, another process has locked it, or its store is damaged or events are
            lost and that is not accepted.
    """
    check_state(state)
    with explained_trouble(state), lock_state_directory(state), spare_room(state):
        (state / "lake").mkdir(exist_ok=True)
        check_store(state / "gamelens.db", accept_loss=accept_loss)
        with contextlib.closing(open_store(state / "gamelens.db")) as store:
            Lake(state / "lake", store).recover()
        return rebuild(state, organisations, from_inbox=True, accept_loss=accept_loss)


class BulkLoad:
    """A sandbox that does not run and has no events. Its first organisation gets files of events.

    Such a lake has no raw events behind it: it can neither be verified nor rebuilt, so it is lost when the format of
    the lake changes. Events received later are added to it as to any other lake.
    """

    def __init__(self, sandbox: Sandbox, folder: Path) -> None:
        self._sandbox = sandbox
        self._organisation = sandbox.tenants.organisations[0]
        self.set_scenario = sandbox.set_scenario
        self.game_ids = [game.id for game in self._organisation.games]
        """Ids of the games of the organisation, in the order of its configuration."""
        self.folder = folder
        """An empty folder to write the files in, removed at the end."""

    def take(self, days: Mapping[date, list[Path]]) -> dict[str, str]:
        """Make *days* the lake, and return the available interval of each organisation, by name.

        Args:
            days: Parquet files of each UTC day, with the columns `lake_schema.EVENT_COLUMNS`.

        Raises:
            Refused: the engine or the disk failed; the sandbox is as before.
        """
        lake, clock = self._sandbox.lake, self._sandbox.clock
        staged = {self._organisation.name: [path for day in sorted(days) for path in days[day]]}
        try:
            commit_staged(staged, lake, self.folder, processed_ms=round(clock.now_s() * 1000), is_written=True)
        except OSError as error:
            raise Refused(f"the lake could not be filled: {error}") from error
        self._sandbox.health.note_written()
        return available_intervals(self._sandbox.tenants, lake, clock)


@contextlib.contextmanager
def open_bulk_load(state: Path, *, titles: Titles = (), clock: Clock | None = None) -> Iterator[BulkLoad]:
    """Lock *state* and yield a `BulkLoad` for it.

    A new state directory gets one organisation with the games of *titles*, or the default ones.

    Raises:
        Refused: another process has locked it, or it has events.
    """
    is_new = not (state / "tenants.json").exists()
    sandbox = Sandbox(SandboxOptions(state=state, titles=titles if is_new else ()), clock=clock)
    scratch = state / "scratch"
    try:
        ((batches,),) = sandbox.store.execute("SELECT count(*) FROM batches")
        if batches or sandbox.lake.organisations():
            raise Refused(f"{state} already has events: write into a new state directory")
        shutil.rmtree(scratch, ignore_errors=True)
        scratch.mkdir()
        yield BulkLoad(sandbox, scratch)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
        sandbox.close()


def serve(sandbox: Sandbox) -> None:
    """Run *sandbox* in this process until it is stopped. Everything received is then on disk."""
    try:
        # The inbox commits in its own thread, which would wait up to 5 ms for the GIL each time.
        sys.setswitchinterval(0.0005)
        with asyncio.Runner(loop_factory=loop_factory()) as runner:
            runner.run(sandbox.run())
    finally:
        sandbox.close()


def available_intervals(tenants: TenantDirectory, lake: Lake, clock: Clock) -> dict[str, str]:
    """Return the available interval of each organisation, ISO 8601, by name.

    The result is empty while the lake is lost.
    """
    if lake.lost_because:
        return {}
    return {org.name: str(lake.available(org.name, now=clock.now())) for org in tenants.organisations}


def _listen(port: int) -> socket.socket:
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVE_BYTES)
    try:
        listener.bind((LOOPBACK, port))
    except OSError as error:
        listener.close()
        raise Refused(f"port {port} cannot be used: {error.strerror}. Name another, or 0 for any free one") from None
    return listener
