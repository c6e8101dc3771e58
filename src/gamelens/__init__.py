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
    NotYetAvailable,
    RateLimited,
    Refused,
    Retryable,
    ServiceError,
    Truncated,
    Unreachable,
)

if TYPE_CHECKING:
    from gamelens.client.metrics import AsyncClient, Client
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
    "NotAdditive",
    "NotYetAvailable",
    "RateLimited",
    "Refused",
    "Retryable",
    "ServiceError",
    "Truncated",
    "Unreachable",
    "connect",
    "dim",
]

_HOME = {
    "AsyncClient": "gamelens.client.metrics",
    "Client": "gamelens.client.metrics",
    "Interval": "gamelens.wire.intervals",
    "connect": "gamelens.lab",
    "dim": "gamelens.wire.filters",
}
_MAKES_FRAMES = frozenset({"AsyncClient", "Client", "connect"})
_ACCESSOR = "gamelens.notebook.accessor"  # registers df.lens


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
