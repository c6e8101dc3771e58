"""Queries that take more than a query may take, and a service that answers through a chosen engine."""

from __future__ import annotations

from typing import Any

import httpx

from gamelens.sandbox.engines.engine import Engine, SqlQuery
from gamelens.sandbox.metrics.metrics_app import MetricsApp
from gamelens.sandbox.storage.lake import Snapshot
from support.app_requests import call
from support.query_bodies import TIMESERIES
from support.sandbox_stage import Stage

ADDRESS = "/metrics/v1/metrics/event_count"
KEY = {"X-API-Key": "key-of-acme"}


def joined(columns: str, tables: int) -> SqlQuery:
    """Return a query over the product of the table of rates with itself."""
    names = [f"r{number}" for number in range(tables)]
    source = " CROSS JOIN ".join(f"rates AS {name}" for name in names)
    return SqlQuery(f"SELECT {columns} FROM {source}", {}, {})


ENDLESS = joined("SUM(r0.scaled % 7 + r4.scaled % 5) AS n", 5)
LARGE = joined("COUNT(DISTINCT r0.currency || r1.currency || r2.currency) AS n", 3)


class OtherQuery:
    """An engine that runs *query* in place of every other one."""

    def __init__(self, engine: Engine, query: SqlQuery) -> None:
        self._engine, self._query, self.bounds = engine, query, engine.bounds

    def rows(self, query: SqlQuery, snapshot: Snapshot) -> list[dict[str, Any]]:
        """Return the rows of the engine's own query."""
        return self._engine.rows(self._query, snapshot)

    def close(self) -> None:
        """Close the engine."""
        self._engine.close()


def asked(stage: Stage, reader: Engine, **body: Any) -> httpx.Response:
    """Return the answer of a metrics service that reads through *reader*."""
    sandbox = stage.sandbox
    app = MetricsApp(sandbox.tenants, sandbox.lake, reader, sandbox.clock).app()
    return call(app, "POST", ADDRESS, json=TIMESERIES | body, headers=KEY)
