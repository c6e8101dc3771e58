"""The client of a lake: the methods of `Client`, without a service, and SQL."""

from __future__ import annotations

import hashlib
import os
import secrets
import shutil
import sqlite3
import tempfile
import weakref
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import httpx
import msgspec
import pandas as pd
import pyarrow as pa

from gamelens._forks import OwnProcess
from gamelens.client.answer_cache import cache_folder
from gamelens.client.base_client import OwnMetrics, check_settings
from gamelens.client.connection.event_loop import shared_loop
from gamelens.client.connection.settings import Secret, client_catalog
from gamelens.client.connection.transport import Transport
from gamelens.client.query.arguments import check_seconds
from gamelens.client.sync_client import Client
from gamelens.client.tables.time_ranges import WhenUnavailable
from gamelens.errors import BadQuery, Refused
from gamelens.receipts import Provenance
from gamelens.sandbox.engines.engine import LakeLocation, QueryBounds
from gamelens.sandbox.engines.lake_sql import LakeSql
from gamelens.sandbox.engines.open_engine import CheckedEngine, open_engine
from gamelens.sandbox.engines.spill_folder import SHARE_OF_MEMORY, SpillFolder, in_units, machine_memory
from gamelens.sandbox.engines.sql_process import SqlProcess, bytes_of
from gamelens.sandbox.http.rate_limiter import RateLimits
from gamelens.sandbox.metrics.metrics_app import MetricsApp
from gamelens.sandbox.state.clock import Clock
from gamelens.sandbox.state.state_directory import check_state
from gamelens.sandbox.state.tenants import TenantDirectory, stored_organisations
from gamelens.sandbox.storage.lake import Lake
from gamelens.sandbox.storage.lake_health import LakeHealth
from gamelens.sandbox.storage.lake_schema import FORMAT
from gamelens.wire.dimensions import Category, dimensions_of_category
from gamelens.wire.intervals import Interval

if TYPE_CHECKING:
    from pandas import DataFrame

    from gamelens.sandbox.engines.lake_sql import Relation

AT_ONCE: Final = 16
"""Requests at the same time."""
QUERY_S: Final = 600.0
"""Seconds after which a question is stopped."""
MOST_FILES: Final = 20
"""Names of imported files in a receipt."""
_SHARE_OF_METRICS: Final = 0.25
"""Memory of all metrics together, beside the memory of a statement."""
MOST_ROWS: Final = 5_000_000
"""Rows of the result of an analysis."""
_NO_LIMIT: Final = RateLimits(1_000_000, AT_ONCE, lists=1_000_000)

_PARTS: Final = ", ".join(
    f"nullif(string_split(event_id, ':')[{part}], '') AS event_id_{part:02d}" for part in range(1, 6)
)
"""The parts of an event's id. DuckDB 2.0 cannot compare a `split_part` of a column that is null in all rows."""

_COMMON: Final = ("game_id", "ts", "day", "user_id", "session_id", "country_code", "platform", "build")
_NETWORKS: Final = ("ilrd_sdk_vendor", "ilrd_network_name")  # come first, in this order


def _of_category(category: Category, *others: str) -> str:
    """Return the statement of the events of *category*: common columns, its dimensions, *others*."""
    named = dimensions_of_category(category)
    dimensions = (*(name for name in _NETWORKS if name in named), *(name for name in named if name not in _NETWORKS))
    rates = " LEFT JOIN rates USING (currency)" if "currency" in others else ""
    columns = ", ".join((*_COMMON, *dimensions, *others))
    return f"SELECT {columns} FROM lake_events{rates} WHERE category = '{category}'"  # noqa: S608


_VIEWS: Final[dict[str, str]] = {
    "events": f"""
        SELECT lake_events.* EXCLUDE (seq, money, currency, ilrd_id), {_PARTS}, seq AS arrival,
               CASE category WHEN 'business' THEN money::DOUBLE * scaled / 100 / 1e9
                   WHEN 'impression' THEN money / 1e9 * scaled / 1e9 END AS usd
        FROM lake_events LEFT JOIN rates USING (currency)""",  # noqa: S608
    "players": """
        WITH installed AS (
            FROM lake_installs ANTI JOIN lake_installs_moved USING (game_id, user_id)
            UNION ALL BY NAME FROM lake_installs_moved
        ), paid AS (
            FROM lake_payments ANTI JOIN lake_payments_moved USING (game_id, user_id)
            UNION ALL BY NAME FROM lake_payments_moved
        ), stated AS (
            SELECT game_id, user_id, min(ts) AS ts FROM lake_stated_installs GROUP BY game_id, user_id
        )
        SELECT installed.game_id, installed.user_id, installed.ts AS installed_at,
               stated.ts AS stated_installed_at, installed.country_code,
               installed.platform, installed.build AS first_build, installed.install_publisher, installed.ab_id,
               installed.ab_variant_id, paid.ts AS first_paid_at
        FROM installed LEFT JOIN paid USING (game_id, user_id) LEFT JOIN stated USING (game_id, user_id)""",
    "sessions": """
        SELECT game_id, user_id, session_id, min(ts) AS started_at, max(ts) AS last_event_at, count(*) AS events,
               max(length) AS length, arg_min(country_code, ts) AS country_code, arg_min(platform, ts) AS platform,
               arg_min(build, ts) AS build
        FROM lake_events WHERE session_id IS NOT NULL GROUP BY game_id, user_id, session_id""",
    "purchases": _of_category(
        "business", "currency", "money / 100 AS amount", "money::DOUBLE * scaled / 100 / 1e9 AS usd"
    ),
    "ads": _of_category("ads"),
    "impressions": _of_category("impression", "currency", "money / 1e9 AS amount", "money / 1e9 * scaled / 1e9 AS usd"),
    "session_ends": _of_category("session_end", "length"),
    "errors": _of_category("error"),
}
"""The statement of each view of `lake.sql`, by name.

Times are UTC. Repeated events are not in them (Wire 4.8, Repeated events). Amounts are converted with the rates of
`wire.currencies`, as the metrics are.
"""

_MEANINGS: Final[dict[str, str]] = {
    "ts": "time of the event, UTC",
    "day": "its day, UTC",
    "arrived_at": "time at which it arrived, UTC; null where it is not known",
    "installed_at": "install of the player: as an export states it, else the time of the first event",
    "stated_installed_at": "install time stated in an export, else null",
    "first_paid_at": "time of the first purchase, null without one",
    "first_build": "build of the install: of its event, or what an export states of an install without one",
    "started_at": "time of the first event of the session",
    "last_event_at": "time of its last event",
    "length": "seconds, of a session that ended",
    "amount": "in the currency beside it",
    "usd": "US dollars, at the fixed rates of the lake",
    "events": "number of events",
    "category": "kind of the event",
    "event_id": "of a business, design, progression or resource event; its parts are event_id_01 to event_id_05",
    "event_id_01": "first part of event_id; of a progression event its status",
    "arrival": "order of arrival; orders events of the same second",
}
"""Meanings of columns whose name does not say enough."""


class LakeClient(Client):
    """A client of a lake on this machine.

    It has the methods of `Client`, with the same frames and receipts of the source `lake`, no limit of requests and no
    cache. A lake that is still growing is read as it is at each question. Nothing is ever written to it. `open_lake`
    makes one, and says what its arguments are.
    """

    def __init__(
        self,
        state: Path,
        *,
        organisation: str | None = None,
        engine: str = "duckdb",
        lake_url: str | None = None,
        memory: str | None = None,
        spill: Path | None = None,
        when_unavailable: WhenUnavailable = "raise",
        metrics: OwnMetrics | None = None,
        progress: bool | None = None,
    ) -> None:
        catalog = client_catalog(metrics)
        check_state(state)
        self._memory = memory or in_units(SHARE_OF_MEMORY * machine_memory())
        of_metrics = in_units(bytes_of(self._memory) * _SHARE_OF_METRICS)
        owners = {owner.name: owner for owner in stored_organisations(state)}
        if organisation is None and len(owners) != 1:
            raise BadQuery("organisation", None, "must be named, since the lake has several", owners)
        if organisation is not None and organisation not in owners:
            raise BadQuery("organisation", organisation, "is not in the lake", owners)
        owner = next(iter(owners.values())) if organisation is None else owners[organisation]
        self._folder, self._owner = state, owner
        # A forked child has not the threads of what is closed at the end.
        self._process, self._at_the_end = OwnProcess("this lake"), ExitStack()
        end = self._at_the_end.close
        weakref.finalize(self, lambda process: end() if process.is_this else None, self._process)
        self._spill = SpillFolder(spill or cache_folder() / "spill")
        self._at_the_end.callback(self._spill.close)
        if spill is not None and not self._spill.path:
            raise BadQuery("spill", str(spill), f"is no folder to spill to: {self._spill.trouble}")
        self._lake = Lake(state / "lake", _read_only(state / "gamelens.db", self._at_the_end))
        health = LakeHealth(self._lake)
        bounds = QueryBounds(seconds=QUERY_S, memory=of_metrics, spill=self._spill)
        self._reader = open_engine(engine, LakeLocation(state / "lake", lake_url), bounds)
        self._sql = SqlProcess(self._spill)
        self._at_the_end.callback(self._sql.close)
        self._at_the_end.callback(self._reader.close)  # an engine that is open when Python ends complains of leaks
        key = secrets.token_hex(20)
        known = msgspec.structs.replace(owner, api_key_sha256=hashlib.sha256(key.encode()).hexdigest())
        app = MetricsApp(
            TenantDirectory((known,)),
            self._lake,
            CheckedEngine(self._reader, health),
            Clock(),
            limits=_NO_LIMIT,
            refresh_s=0,
        )
        self._loop, self._progress, self._address = shared_loop(), progress, f"{state}, organisation {owner.name}"
        self.when_unavailable = when_unavailable
        transport = _LakeTransport(app, Secret(key), state, self._lake, owner.name)
        self._start(transport, None, catalog, refresh_s=0, when=when_unavailable)

    def sql(
        self,
        statement: str,
        parameters: Mapping[str, Any] | None = None,
        *,
        seconds: float = 60.0,
        memory: str | None = None,
        rows: int = 1_000_000,
    ) -> DataFrame:
        """Return the rows of one SELECT over the views of the lake.

            lake.sql("SELECT country_code, count(*) AS players FROM players GROUP BY ALL")

        The views are `events`, `players`, `sessions`, `purchases`, `ads`, `impressions`, `session_ends`, `errors` and
        `games`; `lake.views()` has their columns. The statement reads these and nothing else: no file, no network, no
        extension, no setting, no variable of Python. It writes nothing. It runs in a process of its own, which starts
        in half a second at the first statement.

        Args:
            statement: in DuckDB's SQL.
            parameters: values of `$name` in the statement: numbers, text, times, lists.
            seconds: time after which it is stopped.
            memory: what it may take, as DuckDB writes it; None is the lake's. What does not fit is spilled, but for
                what a single function makes.
            rows: the most rows of its result.

        Raises:
            BadQuery: it is not one SELECT, is not valid, or has more rows.
            Refused: it takes more time or memory, or needs what is locked.
        """
        check_seconds("seconds", seconds)
        bounds = QueryBounds(seconds=seconds, memory=memory or self._memory, rows=rows)
        frame: DataFrame = self._views().run(self._sql, statement, parameters or {}, bounds).to_pandas()
        return frame

    def relation(self, view: str) -> Relation:
        """Return a view as a relation of DuckDB, which Arrow, Polars and Ibis can take.

            lake.relation("events").filter("category = 'ads'").pl()

        It reads the files as they are now. Those that are replaced are kept for two minutes.

        Raises:
            BadQuery: there is no such view.
        """
        return self._views().relation(view, memory=self._memory, spill=self._spill)

    def views(self) -> DataFrame:
        """Return the columns of the views that `sql` and `relation` read.

        Columns: view, column, type, meaning (str).
        """
        rows = [(*column, _MEANINGS.get(column[1], "")) for column in self._views().columns()]
        return pd.DataFrame(rows, columns=["view", "column", "type", "meaning"], dtype="str")

    @property
    def provenance(self) -> Provenance:
        """The origin of its numbers."""
        return self._executor.service.provenance

    @property
    def dated_by_arrival(self) -> dict[str, int]:
        """The number of its events that count at the time of their arrival, by reason (Wire 4.1, Event time)."""
        return self._executor.service.dated_by_arrival

    event_order: Final = ("arrival",)
    """The columns that order the events of a second."""

    event_warnings: Final[tuple[str, ...]] = ()
    """Nothing: a lake has events of every kind."""

    bytes_billed: Final = 0
    """Nothing: a lake is read by this machine."""

    def event_games(self) -> list[str]:
        """Return the ids of its games.

            lake.event_games()

        They are in order, also those without an event.
        """
        return sorted(game.id for studio in self._owner.studios for game in studio.games)

    def event_columns(self) -> dict[str, str]:
        """Return the columns of the view `events`.

            lake.event_columns()["ts"]

        Each has its type, in DuckDB's words.
        """
        return {name: kind for view, name, kind in self._views().columns() if view == "events"}

    def check_condition(self, condition: str) -> None:
        """Check a condition over its events, the argument `where` of an analysis.

            lake.check_condition("hour(ts) < 12")

        A lake takes any, and refuses what cannot be run when it runs it.
        """

    def run(self, statement: str, parameters: Mapping[str, Any], reads: Interval | None = None) -> pa.Table:
        """Return the rows of the statement of an analysis, as a table of Arrow. `sql` is for statements of your own.

            lake.run("SELECT count(*) AS players FROM players WHERE platform = $name", {"name": "ios"})

        It takes what an analysis may take, and reads all events, whatever *reads* says.

        Raises:
            BadQuery: it is not valid, or has more rows.
            Refused: it takes more time or memory.
        """
        bounds = QueryBounds(seconds=QUERY_S, memory=self._memory, rows=MOST_ROWS)
        return self._views().run(self._sql, statement, parameters, bounds)

    def lacks(self, category: str, interval: Interval, games: Sequence[str]) -> str | None:
        """Return why purchases of *games* in *interval* are not known: they came as Event Data, which has none.

            lake.lacks("business", lake.available(), lake.event_games())

        None if they are known, and for any other *category*.
        """
        if category != "business":
            return None
        try:
            self.query("revenue", over=interval, every="all", games=list(games), when_unavailable="clip")
        except BadQuery as error:
            return str(error)
        return None

    def _views(self) -> LakeSql:
        self._process.check()
        self._lake.require_events()
        return LakeSql(self._lake.snapshot(self._owner.name), self._owner, _VIEWS)

    def close(self) -> None:
        """Release the engine and the manifest, after which every call raises `Refused`."""
        super().close()
        self._at_the_end.close()


def open_lake(
    path: str | os.PathLike[str],
    *,
    organisation: str | None = None,
    engine: str = "duckdb",
    lake_url: str | None = None,
    memory: str | None = None,
    spill: str | os.PathLike[str] | None = None,
    when_unavailable: WhenUnavailable = "raise",
    metrics: OwnMetrics | None = None,
    progress: bool | None = None,
) -> LakeClient:
    """Return a client of the lake at *path*: the methods of `Client`, and SQL.

        lake = gl.open_lake("lake")
        lake.query("revenue", by="country_code", over="last 28 complete days")
        lake.sql("SELECT * FROM purchases ORDER BY usd DESC LIMIT 10")

    Args:
        path: the state directory of a sandbox, as `gamelens sandbox up --state` names it; it may be running. A folder
            that can only be read, such as a read-only mount, is read as it is now.
        organisation: the organisation to ask for; None is the only one.
        engine: of metrics: `duckdb`, `spark`, or the address of a Spark master. `spark` is the running session of the
            process if it has one, also of Spark Connect, and leaves it as it is. SQL and analyses run on DuckDB.
        lake_url: where that engine finds the state's folder `lake`, if not on this machine.
        memory: what a statement or an analysis may take, such as "12GB"; None is 60% of the memory of the machine, or
            of its container if that has less. All metrics together may take a quarter of it beside.
        spill: a folder for what does not fit into memory; None is one in the user's cache folder. In it a folder is
            made that only you can read, for at most half of what is free on its disk. It is removed when the lake is
            closed.
        when_unavailable: what queries and analyses do about days that the lake does not have, unless a call says
            otherwise: "raise", "clip" them off, or "wait" for them.
        metrics: own metrics, as in `Client`.
        progress: a bar for work of more than two seconds: never, always, or (None) in a notebook or terminal.

    Raises:
        BadQuery: there is no such organisation, or none is named and there are several; *memory* is no amount of
            memory; nothing can be written to *spill*.
        Refused: *path* holds no lake, or one that this version cannot read.
    """
    check_settings(when_unavailable=when_unavailable)
    folder = Path(path).expanduser()
    return LakeClient(
        folder,
        organisation=organisation,
        engine=engine,
        lake_url=lake_url,
        memory=memory,
        spill=None if spill is None else Path(spill).expanduser(),
        when_unavailable=when_unavailable,
        metrics=metrics,
        progress=progress,
    )


class _LakeTransport(Transport):
    """Requests to the metrics service over a lake, in this process."""

    def __init__(self, app: MetricsApp, key: Secret, folder: Path, lake: Lake, organisation: str) -> None:
        super().__init__(
            "http://localhost", key=key, at_once=AT_ONCE, max_wait_s=QUERY_S, pool=httpx.ASGITransport(app.app())
        )
        self._folder, self._lake, self._organisation = folder, lake, organisation
        self._known: tuple[tuple[int, str | None], Provenance] | None = None

    @property
    def provenance(self) -> Provenance:
        """The lake and where its events come from, read again after each run."""
        read = self._lake.last_run().version, self._lake.scenario
        if self._known is None or self._known[0] != read:
            sources = lake_sources(self._lake, self._organisation)
            scenario = next((source.scenario for source in sources), None)
            self._known = read, Provenance(kind="lake", url=str(self._folder), scenario=scenario, sources=sources)
        return self._known[1]


def lake_sources(lake: Lake, organisation: str) -> tuple[Provenance, ...]:
    """Return where the events of *organisation* come from: simulated, imported, collected, or several of these.

    A scenario names the events that the sandbox received, or those that were written to the lake as files. A lake that
    has neither got its scenario's events from an import: an export of simulated players, such as `sample_lake` makes.
    """
    status, scenario = lake.status(organisation), lake.scenario
    files = [file.name for file in lake.taken_files() if file.organisation == organisation]
    received, is_received_here = lake.store.execute(
        "SELECT EXISTS (SELECT 1 FROM batches), EXISTS (SELECT 1 FROM batches WHERE organisation = ? AND id <= ?)",
        (organisation, status.last_batch),
    ).fetchone()
    is_simulated_export = scenario is not None and not received and not status.is_written
    sources = []
    if status.is_written or is_simulated_export or (scenario is not None and is_received_here):
        sources.append(Provenance(kind="simulated", scenario=scenario))  # only simulated players are written
    if files and not is_simulated_export:
        names = tuple(dict.fromkeys(files))[:MOST_FILES]  # folders of an export have files of the same name
        sources.append(Provenance(kind="imported", files=names, file_count=len(files)))
    if is_received_here and (scenario is None or status.is_written):
        sources.append(Provenance(kind="collected"))
    return tuple(sources)


def _read_only(path: Path, at_the_end: ExitStack) -> sqlite3.Connection:
    """Open the manifest of a lake, to be read until *at_the_end*. No file appears beside it, or none stays.

    Raises:
        Refused: it cannot be read, or the lake has the layout of another version.
    """
    log, memory = path.with_name(f"{path.name}-wal"), path.with_name(f"{path.name}-shm")
    try:
        if log.exists() and not memory.exists():  # a copy: SQLite would make the memory, where it can
            folder = Path(at_the_end.enter_context(tempfile.TemporaryDirectory()))
            shutil.copyfile(log, folder / log.name)
            shutil.copyfile(path, folder / path.name)
            store = _opened(folder / path.name, "ro")
        elif log.exists():
            store = _opened(path, "ro")
        elif os.access(path.parent, os.W_OK):
            at_the_end.callback(_tidy, path, log)
            store = _opened(path, "ro")
        else:
            store = _opened(path, "ro&immutable=1")  # where SQLite can make neither file
        at_the_end.callback(store.close)
        ((layout,),) = store.execute("PRAGMA user_version")
    except (OSError, sqlite3.Error) as error:
        at_the_end.close()
        raise Refused(f"{path} cannot be read: {error}. Check that the folder is the state of a sandbox") from None
    if layout != FORMAT:
        at_the_end.close()
        next_step = (
            f"`gamelens sandbox rebuild --state {path.parent}` rebuilds it from its inbox; then repeat its imports"
        )
        raise Refused(f"the lake in {path.parent} has layout {layout}, but this version reads {FORMAT}: {next_step}")
    return store


def _tidy(path: Path, log: Path) -> None:
    """Let SQLite remove the files that a reader made beside a store, if nobody else has such files there."""
    with suppress(OSError, sqlite3.Error):  # they are empty, and the next user of the store removes them
        if log.stat().st_size == 0:
            with closing(_opened(path, "rw")) as store:
                store.execute("PRAGMA user_version").fetchall()


def _opened(path: Path, mode: str) -> sqlite3.Connection:
    address = f"file:{path.resolve().as_posix().replace('?', '%3f').replace('#', '%23')}?mode={mode}"
    return sqlite3.connect(address, uri=True, timeout=30, isolation_level=None, check_same_thread=False)
