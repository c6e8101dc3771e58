"""One query as SQL for every engine: a statement, its parameters and the files it reads."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

import msgspec

from gamelens.sandbox.engines.sql_dialects import render
from gamelens.wire.intervals import Interval

_LONGEST_CACHED: Final = 20_000
"""Longest statement to cache, in characters.

Longer ones name thousands of values and are rarely sent again.
"""

_render_cached = lru_cache(maxsize=512)(render)


class SqlStatement(msgspec.Struct, frozen=True):
    """One statement, written once and translated into the dialect of each engine."""

    text: str

    def sql(self, dialect: str) -> str:
        """Return the statement in *dialect*."""
        return (_render_cached if len(self.text) <= _LONGEST_CACHED else render)(self.text, dialect)


class SqlQuery(msgspec.Struct, frozen=True):
    """A statement with all that an engine needs to run it.

    Attributes:
        statement: the SQL.
        parameters: the bound values, by name.
        reads: for each table that the statement reads, the intervals of event time it needs.
    """

    statement: SqlStatement
    parameters: dict[str, Any]
    reads: dict[str, tuple[Interval, ...]]
