"""SELECT statements from typed parts: the one way in which queries become SQL.

Names are written as they are and must be plain identifiers of the lake, texts that the code itself compares with are
quoted by one rule, and every value of a request is bound as a parameter. A condition or a column is an expression in
DuckDB's dialect; `engines.sql_dialects` translates whole statements for Spark.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

_IDENTIFIER: Final = re.compile(r"[a-z][a-z0-9_]*\Z")


def identifier(name: str) -> str:
    """Return *name*, which is written into statements as it is.

    Raises:
        ValueError: it would need quotes.
    """
    if not _IDENTIFIER.match(name):
        raise ValueError(f"no plain identifier: {name!r}")
    return name


def quoted(text: str) -> str:
    """Return *text* as a literal."""
    return "'" + text.replace("'", "''") + "'"


def when(condition: str, value: str, otherwise: str | None = None) -> str:
    """Return the SQL of *value* where *condition* is true, else of *otherwise* or null."""
    return f"CASE WHEN {condition} THEN {value} {'' if otherwise is None else f'ELSE {otherwise} '}END"


def all_of(conditions: Iterable[str]) -> str:
    """Return the condition that all *conditions* are true, of which there is at least one."""
    return " AND ".join(conditions)


class Parameters:
    """The values that a statement binds, by name."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}

    def bind(self, value: Any, name: str | None = None) -> str:
        """Bind *value* and return its placeholder.

        It has the next number, or a *name* that always has this value.
        """
        key = identifier(name or f"p{len(self.values)}")
        self.values[key] = value
        return f"${key}"


class Select(msgspec.Struct, frozen=True, kw_only=True):
    """One SELECT, as text by `str`.

    Attributes:
        columns: SQL of each column, by name; empty for all columns.
        source: what FROM names: a table, joined tables, or `nested` rows; empty for none.
        where: conditions that must all be true.
        by: columns to group by.
        is_distinct: whether equal rows are returned once.
        order: terms to sort by.
        limit: most rows to return.
    """

    source: str = ""
    columns: Mapping[str, str] = {}
    where: Sequence[str] = ()
    by: Sequence[str] = ()
    is_distinct: bool = False
    order: Sequence[str] = ()
    limit: int | None = None

    def __str__(self) -> str:
        columns = [sql if sql == name else f"{sql} AS {identifier(name)}" for name, sql in self.columns.items()]
        words = ["SELECT DISTINCT" if self.is_distinct else "SELECT", ", ".join(columns) or "*"]
        words += ["FROM", self.source] if self.source else []
        words += ["WHERE", all_of(self.where)] if self.where else []
        words += ["GROUP BY", ", ".join(map(identifier, self.by))] if self.by else []
        words += ["ORDER BY", ", ".join(self.order)] if self.order else []
        words += ["LIMIT", str(int(self.limit))] if self.limit is not None else []
        return " ".join(words)


def named(*names: str) -> dict[str, str]:
    """Return columns that are taken as they are."""
    return {name: name for name in names}


def union_all(selects: Iterable[Select]) -> str:
    """Return the rows of all *selects*, of which there is at least one."""
    return " UNION ALL ".join(map(str, selects))


def nested(rows: Select | str, name: str) -> str:
    """Return *rows* as a source that is called *name*."""
    return f"({rows}) AS {identifier(name)}"


def left_join(source: str, other: str, *keys: str) -> str:
    """Return *source* with the columns of *other*, null where no row has equal *keys*."""
    return f"{source} LEFT JOIN {other} USING ({', '.join(map(identifier, keys))})"


def with_tables(tables: Mapping[str, Select | str], select: Select) -> str:
    """Return the statement *select* over named intermediate *tables*.

    Each table may use those before it.
    """
    return f"WITH {', '.join(f'{identifier(name)} AS ({rows})' for name, rows in tables.items())} {select}"
