"""The values that a filter names, the rows that prove them, and the nearest existing ones."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from difflib import get_close_matches
from functools import cache
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from gamelens._text import escape_unprintable
from gamelens.client.tables.countries import country_code
from gamelens.wire.dimensions import DIMENSIONS, Sent
from gamelens.wire.event_field_rules import event_rule
from gamelens.wire.filters import And, Filter, Match, Or, comparisons_in, dimensions_in
from gamelens.wire.intervals import Interval

_SHOWN: Final = 8


def doubtful_values(where: Filter, table: pa.Table) -> dict[str, tuple[str, ...]]:
    """Return the values in *where*, by dimension, that the rows of *table* do not prove.

    A value is proven by a row that shows it, or by any number other than 0 if every event must have that value.
    """
    shown = {*dimensions_in(where)} & {*table.column_names}
    seen = {name: {*table[name].unique().to_pylist()} for name in shown}
    return _values_beside(where, _required(where) if _has_numbers(table) else (), seen)


def unprovable_values(where: Filter, shown: Collection[str]) -> dict[str, tuple[str, ...]]:
    """Return the values in *where*, by dimension, that no answer can prove.

    The rows of the answer show the dimensions *shown*, but never a value that is excluded.
    """
    provable = (match for match in _selecting(where) if match.dimension in shown)
    return _values_beside(where, (*_required(where), *provable), {})


def unseen_value_text(dimension: str, value: str, known: Collection[str], available: Interval) -> str:
    """Return the warning for *value*, which is not among the *known* ones of *dimension*."""
    nearest = _nearest(dimension, value, known)
    names = ", ".join(sorted(known)[:_SHOWN])
    more = f" and {len(known) - _SHOWN} more" if len(known) > _SHOWN else ""
    hint = f"Did you mean `{nearest}`?" if nearest else f"It has {names}{more}." if known else "It has no values."
    text = f"{dimension} = {value!r} in where matches nothing: the service has no such value in {available}. {hint}"
    return escape_unprintable(text)


def _nearest(dimension: str, value: str, known: Collection[str]) -> str | None:
    """Return the known value in another case, of that country, or spelt alike, if any."""
    by_case = {name.casefold(): name for name in known}
    wanted = [value.strip().casefold()]
    if dimension == "country_code" and (code := country_code(value)):
        wanted.append(code.casefold())
    exact = next((by_case[name] for name in wanted if name in by_case), None)
    close = get_close_matches(wanted[0], by_case, n=1) if exact is None and len(wanted) == 1 else []
    return exact or next((by_case[name] for name in close), None)


def _values_beside(
    where: Filter, proven: Iterable[Match], seen: Mapping[str, Collection[str]]
) -> dict[str, tuple[str, ...]]:
    """Return the values in *where* that are neither in a *proven* comparison, nor *seen*, nor stated by a rule."""
    certain, values_by_dimension = {*proven}, dict[str, tuple[str, ...]]()
    for match in comparisons_in(where):
        name, before = match.dimension, values_by_dimension.get(match.dimension, ())
        sure = {*seen.get(name, ()), *_stated_values(name)}
        values = [value for value in match.values if match not in certain and value not in sure]
        values_by_dimension[name] = tuple(dict.fromkeys((*before, *values)))
    return {name: values for name, values in values_by_dimension.items() if values}


@cache
def _stated_values(dimension: str) -> frozenset[str]:
    """Return the values that the rules of events state for *dimension*: these are spelt right, seen or not."""
    source = DIMENSIONS[dimension].source if dimension in DIMENSIONS else None
    if not isinstance(source, Sent):
        return frozenset()
    rule = event_rule(source.only or "user", is_strict=False).members.get(source.field or dimension)
    return frozenset(map(str, rule.enum)) if rule and rule.enum else frozenset()


def _required(where: Filter) -> Iterator[Match]:
    """Yield the comparisons with one value that every selected event must match."""
    if isinstance(where, Match) and len(where.values) == 1:
        yield where
    elif isinstance(where, And):
        for member in where.members:
            yield from _required(member)


def _selecting(where: Filter) -> Iterator[Match]:
    """Yield the comparisons that are not negated."""
    if isinstance(where, Match):
        yield where
    elif isinstance(where, And | Or):
        for member in where.members:
            yield from _selecting(member)


def _has_numbers(table: pa.Table) -> bool:
    """Return whether there is any number other than 0 in *table*."""
    numbers = (
        column for column in table.columns if pa.types.is_integer(column.type) or pa.types.is_floating(column.type)
    )
    return any(pc.any(pc.not_equal(column, 0)).as_py() for column in numbers)
