"""The receipt that travels with a frame: plain JSON without a key, which survives Parquet."""

from __future__ import annotations

from functools import cache
from importlib.metadata import version
from typing import Any, Final

RECEIPT: Final = "gamelens"
"""The receipt's name in `df.attrs`."""

Receipt = dict[str, Any]


@cache
def package_version() -> str:
    """Return the version of gamelens."""
    return version("gamelens")
