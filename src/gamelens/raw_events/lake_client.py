"""The client of a lake: the methods of `Client`, without a service, and SQL."""

from __future__ import annotations

import hashlib
import os
import secrets
import weakref
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec
import pandas as pd

from gamelens.client.connection.event_loop import shared_loop
from gamelens.client.connection.settings import Secret
from gamelens.client.query.arguments import check_seconds
from gamelens.client.sync_client import Client
from gamelens.raw_events.lake_access import AT_ONCE, QUERY_S, LakeTransport, chosen, read_only
from gamelens.raw_events.lake_views import MEANINGS, VIEWS
from gamelens.receipts import Provenance
from gamelens.sandbox.engines.checked_engine import CheckedEngine
from gamelens.sandbox.engines.engine import LakeLocation, QueryBounds
from gamelens.sandbox.engines.lake_sql import LakeSql, Relation, SqlBounds
from gamelens.sandbox.engines.open_engine import open_engine
from gamelens.sandbox.http.rate_limiter import RateLimits
from gamelens.sandbox.metrics.metrics_app import MetricsApp
from gamelens.sandbox.state.clock import Clock
from gamelens.sandbox.state.state_directory import check_state
from gamelens.sandbox.state.tenants import TenantDirectory, stored_organisations
from gamelens.sandbox.storage.lake import Lake
from gamelens.sandbox.storage.lake_health import LakeHealth

if TYPE_CHECKING:
    from pandas import DataFrame

_NO_LIMIT: Final = RateLimits(1_000_000, AT_ONCE, lists=1_000_000)


class LakeClient(Client):
    """A client of a lake on this machine.

    It has the methods of `Client`, with the same frames and receipts of the source `lake`, no limit of requests and no
    cache. A lake that is still growing is read as it is at each question. Nothing is ever written to it.

    Args:
        state: the state directory of a sandbox, running or not.
        organisation: the organisation to ask for; None is the only one.
        engine: `duckdb`, `spark`, or the address of a Spark master. SQL runs on DuckDB.
        progress: a bar for work of more than two seconds: never, always, or (None) in a notebook or terminal.

    Raises:
        BadQuery: there is no such organisation, or none is named and there are several.
        Refused: *state* holds no lake, or one that this version cannot read.
    """

    def __init__(
        self, state: Path, *, organisation: str | None = None, engine: str = "duckdb", progress: bool | None = None
    ) -> None:
        check_state(state)
        owner = chosen(stored_organisations(state), organisation)
        self._folder, self._owner = state, owner
        self._store = read_only(state / "gamelens.db")
        self._lake = Lake(state / "lake", self._store)
        health = LakeHealth(self._lake)
        self._reader = open_engine(engine, LakeLocation(state / "lake"), QueryBounds(seconds=QUERY_S, memory="4GB"))
        weakref.finalize(self, self._reader.close)  # an engine that is open when Python ends complains of leaks
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
        self._loop, self._progress, self._address = shared_loop(), progress, str(state)
        self._start(LakeTransport(app, Secret(key), state, self._lake, owner.name), None, refresh_s=0)

    def __repr__(self) -> str:
        return f"LakeClient({str(self._folder)!r}, organisation={self._owner.name!r})"

    def sql(
        self,
        statement: str,
        parameters: Mapping[str, Any] | None = None,
        *,
        seconds: float = 60.0,
        memory: str = "2GB",
        rows: int = 1_000_000,
    ) -> DataFrame:
        """Return the rows of one SELECT over the views of the lake.

            lake.sql("SELECT country_code, count(*) AS players FROM players GROUP BY ALL")

        The views are `events`, `players`, `sessions`, `purchases`, `ads`, `impressions`, `session_ends`, `errors` and
        `games`; `lake.views()` has their columns. The statement reads these and nothing else: no file, no network, no
        extension, no setting, no variable of Python.

        Args:
            statement: in DuckDB's SQL.
            parameters: values of `$name` in the statement.
            seconds: time after which it is stopped.
            memory: what it may take, as DuckDB writes it.
            rows: the most rows of its result.

        Raises:
            BadQuery: it is not one SELECT, is not valid, or has more rows.
            Refused: it takes more time or memory, or needs what is locked.
        """
        check_seconds("seconds", seconds)
        bounds = SqlBounds(seconds=seconds, memory=memory, rows=rows)
        frame: DataFrame = self._views().run(statement, parameters or {}, bounds).to_pandas()
        return frame

    def relation(self, view: str) -> Relation:
        """Return a view as a relation of DuckDB, which Arrow, Polars and Ibis can take.

            lake.relation("events").filter("category = 'ads'").pl()

        It reads the files as they are now. Those that are replaced are kept for two minutes.

        Raises:
            BadQuery: there is no such view.
        """
        return self._views().relation(view)

    def views(self) -> DataFrame:
        """Return the columns of the views that `sql` and `relation` read.

        Columns: view, column, type, meaning (str).
        """
        rows = [(*column, MEANINGS.get(column[1], "")) for column in self._views().columns()]
        return pd.DataFrame(rows, columns=["view", "column", "type", "meaning"], dtype="str")

    @property
    def provenance(self) -> Provenance:
        """The origin of its numbers."""
        return self._executor.service.provenance

    def _views(self) -> LakeSql:
        self._lake.require_events()
        return LakeSql(self._lake.snapshot(self._owner.name), self._owner, VIEWS)

    def close(self) -> None:
        """Release the engine and the manifest, after which every call raises `Refused`."""
        super().close()
        self._reader.close()
        self._store.close()


def open_lake(
    path: str | os.PathLike[str],
    *,
    organisation: str | None = None,
    engine: str = "duckdb",
    progress: bool | None = None,
) -> LakeClient:
    """Return a client of the lake at *path*: the methods of `Client`, and SQL.

        lake = gl.open_lake("lake")
        lake.query("revenue", by="country_code", over="last 28 complete days")
        lake.sql("SELECT * FROM purchases ORDER BY usd DESC LIMIT 10")

    Args:
        path: the state directory of a sandbox, as `gamelens sandbox up --state` names it; it may be running.
        organisation: the organisation to ask for; None is the only one.
        engine: `duckdb`, `spark`, or the address of a Spark master. SQL runs on DuckDB.
        progress: a bar for work of more than two seconds: never, always, or (None) in a notebook or terminal.

    Raises:
        BadQuery: there is no such organisation, or none is named and there are several.
        Refused: *path* holds no lake, or one that this version cannot read.
    """
    return LakeClient(Path(path).expanduser(), organisation=organisation, engine=engine, progress=progress)
