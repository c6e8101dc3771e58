"""Game metrics as DataFrames, each with a receipt of what was requested.

    import gamelens as gl
    lens = gl.connect()
    df = lens.query("revenue", by=["game", "country_code"], over="last 90 complete days")

The import is fast: whatever needs pandas or HTTP is imported when it is first used.
"""

from __future__ import annotations

import logging
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

from gamelens.errors import (
    AuthError,
    BadQuery,
    GamelensError,
    NotAdditive,
    NotRecorded,
    NotYetAvailable,
    PartialResult,
    RateLimited,
    Refused,
    Retryable,
    ServiceError,
    Truncated,
    Unreachable,
    extra_named,
    no_such_name,
)

if TYPE_CHECKING:
    from gamelens.analysis.files.csv_export import export_csv
    from gamelens.analysis.files.excel_export import export_excel
    from gamelens.analysis.outside_data.join import join
    from gamelens.analysis.outside_data.match_report import Joined
    from gamelens.analysis.outside_data.outside_table import OutsideTable
    from gamelens.analysis.outside_data.read_table import read_table
    from gamelens.analysis.totals import in_periods
    from gamelens.client.async_client import AsyncClient
    from gamelens.client.events.collector_client import CollectorClient
    from gamelens.client.events.game_server import GameServer
    from gamelens.client.events.player_session import PlayerSession
    from gamelens.client.query.plan_estimate import Plan
    from gamelens.client.sync_client import Client
    from gamelens.local.connect import connect, demo
    from gamelens.raw_events.lake_client import LakeClient, open_lake
    from gamelens.raw_events.open_events import EventTable, open_events
    from gamelens.raw_events.reconciliation.reconcile import Reconciliation, reconcile
    from gamelens.raw_events.reconciliation.retention_definitions import retention_definitions, retention_gap
    from gamelens.receipts import Receipt
    from gamelens.wire.filters import dim
    from gamelens.wire.intervals import Interval

    __version__: str

__all__ = [
    "AsyncClient",
    "AuthError",
    "BadQuery",
    "Client",
    "CollectorClient",
    "EventTable",
    "GameServer",
    "GamelensError",
    "Interval",
    "Joined",
    "LakeClient",
    "NotAdditive",
    "NotRecorded",
    "NotYetAvailable",
    "OutsideTable",
    "PartialResult",
    "Plan",
    "PlayerSession",
    "RateLimited",
    "Receipt",
    "Reconciliation",
    "Refused",
    "Retryable",
    "ServiceError",
    "Truncated",
    "Unreachable",
    "connect",
    "demo",
    "dim",
    "export_csv",
    "export_excel",
    "in_periods",
    "join",
    "open_events",
    "open_lake",
    "read_table",
    "reconcile",
    "retention_definitions",
    "retention_gap",
]

_HOME = {
    "AsyncClient": "gamelens.client.async_client",
    "Client": "gamelens.client.sync_client",
    "CollectorClient": "gamelens.client.events.collector_client",
    "EventTable": "gamelens.raw_events.open_events",
    "GameServer": "gamelens.client.events.game_server",
    "Interval": "gamelens.wire.intervals",
    "Joined": "gamelens.analysis.outside_data.match_report",
    "LakeClient": "gamelens.raw_events.lake_client",
    "OutsideTable": "gamelens.analysis.outside_data.outside_table",
    "Plan": "gamelens.client.query.plan_estimate",
    "PlayerSession": "gamelens.client.events.player_session",
    "Receipt": "gamelens.receipts",
    "Reconciliation": "gamelens.raw_events.reconciliation.reconcile",
    "connect": "gamelens.local.connect",
    "demo": "gamelens.local.connect",
    "dim": "gamelens.wire.filters",
    "export_csv": "gamelens.analysis.files.csv_export",
    "export_excel": "gamelens.analysis.files.excel_export",
    "in_periods": "gamelens.analysis.totals",
    "join": "gamelens.analysis.outside_data.join",
    "open_events": "gamelens.raw_events.open_events",
    "open_lake": "gamelens.raw_events.lake_client",
    "read_table": "gamelens.analysis.outside_data.read_table",
    "reconcile": "gamelens.raw_events.reconciliation.reconcile",
    "retention_definitions": "gamelens.raw_events.reconciliation.retention_definitions",
    "retention_gap": "gamelens.raw_events.reconciliation.retention_definitions",
}
_MAKES_FRAMES = frozenset(
    {
        "AsyncClient",
        "Client",
        "LakeClient",
        "connect",
        "demo",
        "in_periods",
        "join",
        "open_events",
        "open_lake",
        "read_table",
    }
)
_METHODS = (  # of a client, which people look for in the package
    *("available", "cache", "close", "describe", "dimension_values", "dimensions", "games", "metric_catalog"),
    *("metrics", "plan", "query", "refresh", "restatements", "retention", "studios"),
)
_ACCESSOR = "gamelens.notebook.accessor"  # registers df.lens


if not TYPE_CHECKING:  # type checkers should find a name that does not exist

    def __getattr__(name: str) -> Any:
        if name == "__version__":
            return import_module("gamelens.receipts").package_version()
        if name not in _HOME:
            no_such_name(__name__, __all__, {method: f"connect().{method}" for method in _METHODS})(name)
        with extra_named(f"gl.{name}"):
            value = getattr(import_module(_HOME[name]), name)
        if name in _MAKES_FRAMES:
            import_module(_ACCESSOR)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])


# The log of a library is shown where a program asks for it, warnings too: logging.basicConfig()
logging.getLogger(__name__).addHandler(logging.NullHandler())

if "pandas" in sys.modules:
    import_module(_ACCESSOR)
if "IPython" in sys.modules:
    import_module("gamelens.notebook.tab_completion").register()
