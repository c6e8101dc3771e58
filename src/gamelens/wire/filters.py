"""Filters over dimensions, as frozen values with operators (Wire 2.7, Filters).

    dim.platform == "ios"                          {"platform": "ios"}
    dim.country_code.isin(["US", "NA"])            {"country_code": ["US", "NA"]}
    (dim.platform == "ios") & ~(dim.build == "2")  {"and": [{"platform": "ios"}, {"not": {"build": "2"}}]}
    dim.country_code.is_null()                     {"country_code": None}, which the service does not take

Negation is plain: it also selects the events that have no value. A client replaces a comparison with null by the
negation of all values there are, and sends a filter as `flat_filter` writes it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from gamelens.errors import BadQuery, suggests_names
from gamelens.wire.dimensions import DIMENSIONS
from gamelens.wire.limits import FILTER_DEPTH, FILTER_OBJECTS

WireFilter = dict[str, Any]


@suggests_names
class Filter(msgspec.Struct, frozen=True):
    """One of Match, IsNull, And, Or and Not. Combine them with ``&``, ``|`` and ``~``."""

    def __and__(self, other: Filter) -> Filter:
        return And((*_members(And, self), *_members(And, other)))

    def __or__(self, other: Filter) -> Filter:
        return Or((*_members(Or, self), *_members(Or, other)))

    def __invert__(self) -> Filter:
        return Not(self)

    def __bool__(self) -> bool:
        raise TypeError("a filter is neither true nor false: combine filters with &, | and ~ instead of and, or, not")


class Match(Filter, frozen=True):
    """A comparison: *dimension* has one of *values*. Null never matches."""

    dimension: str
    values: tuple[str, ...]


class IsNull(Filter, frozen=True):
    """A comparison with null: *dimension* has no value.

    `with_values_of` writes it as the service takes it.
    """

    dimension: str


class And(Filter, frozen=True):
    """A conjunction: all of *members* select the event."""

    members: tuple[Filter, ...]


class Or(Filter, frozen=True):
    """A disjunction: at least one of *members* selects the event."""

    members: tuple[Filter, ...]


class Not(Filter, frozen=True):
    """A negation: *member* does not select the event."""

    member: Filter


@suggests_names
class FilterDimension:
    """One dimension in a filter expression, made by `dim`."""

    def __init__(self, name: str) -> None:
        self.name = name

    def isin(self, values: Iterable[str]) -> Filter:
        """Return the filter for events whose value is one of *values*.

        Raises:
            BadQuery: *values* is a single string, is empty, or holds something that is not a string.
        """
        if isinstance(values, str):
            raise BadQuery(f"filter.{self.name}", values, "is one value: put it into a list, or compare with ==")
        return Match(self.name, _values(self.name, list(values)))

    def is_null(self) -> Filter:
        """Return the filter for events without a value.

        Negate it with ``~`` for events that have one.
        """
        return IsNull(self.name)

    def __eq__(self, value: object) -> Filter:  # type: ignore[override]
        if value is None:
            raise BadQuery(f"filter.{self.name}", None, f"is not a value: write dim.{self.name}.is_null()")
        return Match(self.name, _values(self.name, value))

    def __ne__(self, value: object) -> Filter:  # type: ignore[override]
        return Not(self == value)

    __hash__ = None  # type: ignore[assignment]

    def _binds_too_tightly(self, _: object) -> Filter:
        """Raise TypeError: in `dim.a == "x" & dim.b == "y"` Python reads `"x" & dim.b` first."""
        raise TypeError("put each comparison in parentheses: & and | bind more tightly than == and !=")

    __and__ = __rand__ = __or__ = __ror__ = _binds_too_tightly

    def __repr__(self) -> str:
        return f"dim.{self.name}"


class DimensionNamespace:
    """The namespace `dim`, whose attributes are dimensions: `dim.platform`."""

    def __getattr__(self, name: str) -> FilterDimension:
        if name.startswith("_"):
            raise AttributeError(name)
        return FilterDimension(name)

    def __getitem__(self, name: str) -> FilterDimension:
        """Return the dimension whose name is in a variable: `dim[name]`."""
        return FilterDimension(name)

    def __dir__(self) -> list[str]:
        return list(DIMENSIONS)

    def _ipython_key_completions_(self) -> list[str]:
        return list(DIMENSIONS)

    def __repr__(self) -> str:
        return "dim"


dim = DimensionNamespace()


def parse_filter(wire: object, *, with_nulls: bool = False) -> Filter:
    """Read a filter object of a request body.

    *with_nulls* it may also compare with null, as `wire_filter` writes it: `{"country_code": None}`.

    Raises:
        BadQuery: an object has not exactly one key, a list is empty, a value is not a string, or there are more than
            500 objects or 16 levels of them.
    """
    node = _parse(wire, depth=1, with_nulls=with_nulls)
    if _object_count(node) > FILTER_OBJECTS:
        rule = f"must be made of at most {FILTER_OBJECTS} objects: put several values of a dimension into one list"
        raise BadQuery("filter", "…", rule)
    return node


def wire_filter(node: Filter) -> WireFilter:
    """Return *node* as a filter object of a request body.

    A comparison with null has None as its value, which the service does not take.
    """
    match node:
        case IsNull(dimension):
            return {dimension: None}
        case Match(dimension, (value,)):
            return {dimension: value}
        case Match(dimension, values):
            return {dimension: list(values)}
        case And(members):
            return {"and": [wire_filter(member) for member in members]}
        case Or(members):
            return {"or": [wire_filter(member) for member in members]}
        case Not(member):
            return {"not": wire_filter(member)}
    raise TypeError(f"{node!r} is not a filter")


def flat_filter(node: Filter) -> Filter:
    """Return a filter that selects the same events with as little nesting as possible.

    An `and` in an `and`, an `or` in an `or` and a list of one become part of what holds them, `not` moves to the
    comparisons, and comparisons of one dimension are merged. A filter that is nothing but alternatives becomes one `or`
    of single comparisons, the form that every service documents. A form of more than 500 objects is not used.
    """
    merged = _flat(node, is_negated=False)
    alternatives = tuple(_alternatives(merged))
    spread = Or(alternatives) if len(alternatives) > 1 else merged
    return next((form for form in (spread, merged) if _object_count(form) <= FILTER_OBJECTS), node)


def comparisons_in(node: Filter) -> Iterator[Match]:
    """Return the comparisons of a filter, in order."""
    return (part for part in _all_nodes(node) if isinstance(part, Match))


def dimensions_in(node: Filter) -> Iterator[str]:
    """Return the names of the dimensions that a filter reads, in order and with repeats."""
    return (part.dimension for part in _all_nodes(node) if isinstance(part, Match | IsNull))


def nullable_in(node: Filter) -> tuple[str, ...]:
    """Return the dimensions that a filter compares with null, each once."""
    return tuple(dict.fromkeys(part.dimension for part in _all_nodes(node) if isinstance(part, IsNull)))


def with_values_of(node: Filter, values: Mapping[str, Sequence[str]]) -> Filter:
    """Return *node* with each comparison with null as the service takes it.

    Null is to have none of the *values* of the dimension. A dimension without values is null in every event.
    """
    match node:
        case IsNull(dimension):
            return Not(_any_value(dimension, values))
        case Not(IsNull(dimension)):
            return _any_value(dimension, values)
        case Not(member):
            return Not(with_values_of(member, values))
        case And(members):
            return And(tuple(with_values_of(member, values) for member in members))
        case Or(members):
            return Or(tuple(with_values_of(member, values) for member in members))
    return node


def _any_value(dimension: str, values: Mapping[str, Sequence[str]]) -> Filter:
    """Return the filter of events with any value, which without values selects none."""
    return Match(dimension, tuple(values[dimension]) or ("",))


def _all_nodes(node: Filter) -> Iterator[Filter]:
    """Yield a filter and all filters inside it."""
    yield node
    match node:
        case And(members) | Or(members):
            for member in members:
                yield from _all_nodes(member)
        case Not(member):
            yield from _all_nodes(member)


def _object_count(node: Filter) -> int:
    """Return how many objects a filter is made of."""
    return sum(1 for _ in _all_nodes(node))


def _members(kind: type[And | Or], node: Filter) -> tuple[Filter, ...]:
    """Return the members of a filter of this *kind*, or the filter alone."""
    return node.members if isinstance(node, kind) else (node,)


def _alternatives(node: Filter) -> Iterator[Filter]:
    """Yield the members of an `or`, and each value of a comparison as a comparison of its own."""
    for member in _members(Or, node):
        if isinstance(member, Match):
            yield from (Match(member.dimension, (value,)) for value in member.values)
        else:
            yield member


def _flat(node: Filter, *, is_negated: bool) -> Filter:
    """Return *node*, or its negation, flat and with `not` around comparisons only."""
    match node:
        case Not(member):
            return _flat(member, is_negated=not is_negated)
        case And(members) | Or(members):
            kind = And if isinstance(node, And) is not is_negated else Or
            flat = [part for member in members for part in _members(kind, _flat(member, is_negated=is_negated))]
            merged = _merged(kind, flat)
            return merged[0] if len(merged) == 1 else kind(merged)
        case Match(dimension, values):
            node = Match(dimension, tuple(dict.fromkeys(values)))
    return Not(node) if is_negated else node


def _merged(kind: type[And | Or], members: Iterable[Filter]) -> tuple[Filter, ...]:
    """Return the distinct *members* of an `and` or `or`, comparisons of one dimension as one.

    In an `or` these are comparisons as they are, in an `and` negated ones.
    """
    values: dict[str, dict[str, None]] = {}
    merged: dict[Filter | str, Filter | None] = {}
    for member in members:
        leaf = member.member if isinstance(member, Not) else member
        if isinstance(leaf, Match) and isinstance(member, Not) is (kind is And):
            values.setdefault(leaf.dimension, {}).update(dict.fromkeys(leaf.values))
            merged[leaf.dimension] = None
        else:
            merged[member] = member
    joined = {dimension: Match(dimension, tuple(texts)) for dimension, texts in values.items()}
    for dimension, leaf in joined.items():
        merged[dimension] = Not(leaf) if kind is And else leaf
    return tuple(member for member in merged.values() if member is not None)


def _parse(wire: object, *, depth: int, with_nulls: bool) -> Filter:
    if depth > FILTER_DEPTH:
        raise BadQuery("filter", "…", f"must not be nested deeper than {FILTER_DEPTH} objects")
    if not isinstance(wire, dict) or len(wire) != 1:
        raise BadQuery("filter", wire, "must be an object with exactly one key: a dimension, 'and', 'or' or 'not'")
    ((key, value),) = wire.items()
    if key == "not":
        return Not(_parse(value, depth=depth + 1, with_nulls=with_nulls))
    if value is None and with_nulls and key not in ("and", "or"):
        return IsNull(key)
    if key not in ("and", "or"):
        return Match(key, _values(key, value))
    if not isinstance(value, list) or not value:
        raise BadQuery("filter", wire, f"must have a list of at least one filter under `{key}`")
    members = tuple(_parse(member, depth=depth + 1, with_nulls=with_nulls) for member in value)
    return And(members) if key == "and" else Or(members)


def _values(dimension: str, value: object) -> tuple[str, ...]:
    values = value if isinstance(value, list) else [value]
    if not values or not all(isinstance(item, str) for item in values):
        raise BadQuery(f"filter.{dimension}", value, "must be a string or a list of at least one string")
    return tuple(values)
