"""SELECT statements from typed parts, and filters as conditions (Wire 2.7, Filters): how queries become SQL.

Names are written as they are and must be plain identifiers of the lake, and every value of a request is bound as a
parameter. A condition or a column is an expression in DuckDB's dialect; `engines.sql_dialects` translates whole
statements for Spark.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from gamelens.wire.filters import And, Filter, Match, Not, Or, comparisons_in

_MOST_NAMED: Final = 20  # values with a parameter each; longer lists are one parameter
_MOST_JOINED: Final = 16  # such lists; DuckDB takes long to plan a statement with many joins
_IDENTIFIER: Final = re.compile(r"[a-z][a-z0-9_]*\Z")


def identifier(name: str) -> str:
    """Return *name*, which is written into statements as it is.

    Raises:
        ValueError: it would need quotes.
    """
    if not _IDENTIFIER.match(name):
        raise ValueError(f"no plain identifier: {name!r}")
    return name


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
        words += ["WHERE", " AND ".join(self.where)] if self.where else []
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


class FilterSql:
    """Compiler of the filter *where*, which binds values in *parameters*."""

    def __init__(self, where: Filter | None, parameters: Parameters) -> None:
        lists = sum(len(part.values) > _MOST_NAMED for part in comparisons_in(where)) if where is not None else 0
        self._joins_lists = lists <= _MOST_JOINED
        self._parameters = parameters

    def conditions(self, node: Filter, values: Mapping[str, str]) -> list[str]:
        """Return conditions that must all be true.

        *values* has the SQL of each dimension.
        Outside any negation null may stand for false, which is faster: with plain comparisons an engine skips
        row groups that cannot match.
        """
        match node:
            case And(members):
                return [condition for member in members for condition in self.conditions(member, values)]
            case Match(dimension, wanted):
                return [self.one_of(values[dimension], wanted)]
        return [self._condition(node, values)]

    def one_of(self, value: str, wanted: Sequence[str], *, most_named: int = _MOST_NAMED) -> str:
        """Return the condition that *value* is one of *wanted*, which is null for a null value.

        Up to *most_named* values get a parameter each; more are bound as one list.
        """
        if not wanted:
            return "FALSE"
        if len(wanted) <= most_named:
            return f"{value} IN ({', '.join(map(self._parameters.bind, wanted))})"
        values = self._parameters.bind(list(wanted))
        if self._joins_lists and len(wanted) > _MOST_NAMED:  # list_contains scans the list for each row
            return f"{value} IN ({Select(columns={'wanted': f'unnest({values})'})})"
        return f"list_contains({values}, {value})"

    def _condition(self, node: Filter, values: Mapping[str, str]) -> str:
        """Return *node* as a condition that is never null, so that `not` is plain negation."""
        match node:
            case Match(dimension, wanted):
                is_one = self.one_of(values[dimension], wanted, most_named=1)
                return f"COALESCE({is_one}, FALSE)"
            case And(members):
                return f"({' AND '.join(self._condition(member, values) for member in members)})"
            case Or(members):
                return "(" + " OR ".join(self._condition(member, values) for member in members) + ")"
            case Not(member):
                return f"(NOT {self._condition(member, values)})"
        raise TypeError(f"no filter: {node!r}")
