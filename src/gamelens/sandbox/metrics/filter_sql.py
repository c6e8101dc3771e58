"""Filters of queries as SQL conditions with bound values (Wire 2.7, Filters)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from gamelens.catalog import DIMENSIONS
from gamelens.sandbox.metrics.sql_builder import Parameters, Select, all_of
from gamelens.wire.filters import And, Filter, Match, Not, Or, comparisons_in

_MOST_NAMED: Final = 20  # values with a parameter each; longer lists are one parameter
_MOST_JOINED: Final = 16  # such lists; DuckDB takes long to plan a statement with many joins


def column(dimension: str) -> str:
    """Return the column of *dimension*, which must be in the catalog.

    Raises:
        KeyError: the catalog does not list it.
    """
    return DIMENSIONS[dimension].name


class FilterSql:
    """Compiler of the filter *where*, which binds values in *parameters*."""

    def __init__(self, where: Filter | None, parameters: Parameters) -> None:
        lists = sum(len(part.values) > _MOST_NAMED for part in comparisons_in(where)) if where is not None else 0
        self._joins_lists = lists <= _MOST_JOINED
        self._parameters = parameters

    def conditions(self, node: Filter, values: Mapping[str, str]) -> list[str]:
        """Return conditions that must all be true.

        *values* has the SQL of each dimension that is not a column of the table.
        Outside any negation null may stand for false, which is faster: with plain comparisons an engine skips
        row groups that cannot match.
        """
        match node:
            case And(members):
                return [condition for member in members for condition in self.conditions(member, values)]
            case Match(dimension, wanted):
                return [self.one_of(values.get(dimension, column(dimension)), wanted)]
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
                is_one = self.one_of(values.get(dimension, column(dimension)), wanted, most_named=1)
                return f"COALESCE({is_one}, FALSE)"
            case And(members):
                return f"({all_of(self._condition(member, values) for member in members)})"
            case Or(members):
                return "(" + " OR ".join(self._condition(member, values) for member in members) + ")"
            case Not(member):
                return f"(NOT {self._condition(member, values)})"
        raise TypeError(f"no filter: {node!r}")
