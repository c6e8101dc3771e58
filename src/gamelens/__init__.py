"""gamelens: game metrics as honest DataFrames.

    import gamelens as gl
    lens = gl.connect()
    df = lens.query("revenue", by=["game", "country_code"], over="last 90 complete days")

Importing this costs next to nothing: what needs pandas or HTTP is loaded when it is first named.
"""

from __future__ import annotations

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
)

if TYPE_CHECKING:
    from gamelens.analysis.export import export_csv
    from gamelens.analysis.outside.joining import join
    from gamelens.analysis.outside.matching import Joined
    from gamelens.client.async_metrics import AsyncClient
    from gamelens.client.metrics import Client
    from gamelens.lab import connect
    from gamelens.wire.filters import dim
    from gamelens.wire.intervals import Interval

__all__ = [
    "AsyncClient",
    "AuthError",
    "BadQuery",
    "Client",
    "GamelensError",
    "Interval",
    "Joined",
    "NotAdditive",
    "NotRecorded",
    "NotYetAvailable",
    "PartialResult",
    "RateLimited",
    "Refused",
    "Retryable",
    "ServiceError",
    "Truncated",
    "Unreachable",
    "connect",
    "dim",
    "export_csv",
    "join",
]

_HOME = {
    "AsyncClient": "gamelens.client.async_metrics",
    "Client": "gamelens.client.metrics",
    "Interval": "gamelens.wire.intervals",
    "Joined": "gamelens.analysis.outside.matching",
    "connect": "gamelens.lab",
    "dim": "gamelens.wire.filters",
    "export_csv": "gamelens.analysis.export",
    "join": "gamelens.analysis.outside.joining",
}
_MAKES_FRAMES = frozenset({"AsyncClient", "Client", "connect", "join"})
_ACCESSOR = "gamelens.notebook.accessor"  # registers df.lens


if not TYPE_CHECKING:  # a name that is none is a mistake that type checkers should find

    def __getattr__(name: str) -> Any:
        if name not in _HOME:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(import_module(_HOME[name]), name)
        if name in _MAKES_FRAMES:
            import_module(_ACCESSOR)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted(__all__)


if "pandas" in sys.modules:
    import_module(_ACCESSOR)
