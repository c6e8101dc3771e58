"""The arguments of a query as an analyst types them, checked and made into values.

Open `query_spec` for the values themselves.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from importlib.util import find_spec
from numbers import Real
from typing import Final, TypeVar, get_args

from gamelens.client.query.query_spec import ExecutionOptions, FrameKind, OnError, QuerySpec, RetentionSpec
from gamelens.client.tables.time_ranges import WHEN_UNAVAILABLE, TimeRange
from gamelens.errors import BadQuery
from gamelens.wire.filters import Filter, WireFilter, parse_filter
from gamelens.wire.intervals import Granularity

Names = str | Iterable[str]
Word = TypeVar("Word", bound=str)
KINDS: Final[tuple[FrameKind, ...]] = get_args(FrameKind)
ON_ERROR: Final[tuple[OnError, ...]] = get_args(OnError)
Where = Filter | WireFilter


def question_of(
    metric: Names,
    by: Names | None,
    every: Granularity,
    where: Where | None,
    top: int | None,
    games: Names | None,
    studios: Names | None,
    since_days_ago: int | None,
    other: bool,
    check: bool,
) -> QuerySpec:
    """The question that the arguments of `query` ask.

    Raises:
        BadQuery: they ask nothing.
    """
    return QuerySpec(
        metrics=as_names("metric", metric),
        by=as_names("by", by),
        every=every,
        where=as_filter(where),
        top=top,
        games=optional_names("games", games),
        studios=optional_names("studios", studios),
        since_days_ago=since_days_ago,
        other=other,
        check=check,
    )


def terms_of(over: TimeRange, when: str, deadline_s: float | None, on_error: str, to: str) -> ExecutionOptions:
    """How it is to be answered.

    Raises:
        BadQuery: a word that is not allowed, or a deadline that is no number.
    """
    if deadline_s is not None:
        check_seconds("deadline_s", deadline_s)
    return ExecutionOptions(
        over=over,
        when=one_of("when_unavailable", when, WHEN_UNAVAILABLE),
        deadline_s=deadline_s,
        on_error=one_of("on_error", on_error, ON_ERROR),
        to=check_kind(to),
    )


def cohorts_of(
    days: int | Iterable[int], by: Names | None, where: Where | None, games: Names | None, studios: Names | None
) -> RetentionSpec:
    """Whom the arguments of `retention` follow.

    Raises:
        BadQuery: an age that is none.
    """
    return RetentionSpec(
        ages=tuple(days) if isinstance(days, Iterable) else (days,),
        by=as_names("by", by),
        where=as_filter(where),
        games=optional_names("games", games),
        studios=optional_names("studios", studios),
    )


def one_of(field: str, value: str, allowed: tuple[Word, ...]) -> Word:
    """Return *value*, the argument *field*, as the one of *allowed* that it is.

    Raises:
        BadQuery: it is none of them.
    """
    for word in allowed:
        if value == word:
            return word
    raise BadQuery(field, value, "is not allowed", allowed)


def optional_names(field: str, given: Names | None) -> tuple[str, ...] | None:
    """One name or several, the argument *field*, as a tuple; None is all."""
    return None if given is None else as_names(field, given)


def check_seconds(field: str, number: object) -> None:
    """Raise unless *number* is a number of seconds.

    Raises:
        BadQuery: it is not.
    """
    if isinstance(number, bool) or not isinstance(number, Real) or math.isnan(number):
        raise BadQuery(field, number, "must be a number of seconds")


def as_names(field: str, given: str | Iterable[str] | None) -> tuple[str, ...]:
    """One name or several, the argument *field*, as a tuple; None is none.

    Raises:
        BadQuery: what is no text, such as an id that was read as a number.
    """
    if given is None:
        return ()
    found = (given,) if isinstance(given, str) or not isinstance(given, Iterable) else tuple(given)
    for name in found:
        if not isinstance(name, str):
            raise BadQuery(field, name, "must be text, or several texts")
    return found


def as_filter(where: Filter | dict[str, object] | None) -> Filter | None:
    """*where* as a filter, from an expression of `dim` or the wire's own form.

    Raises:
        BadQuery: it is neither.
    """
    if where is None or isinstance(where, Filter):
        return where
    if not isinstance(where, dict):
        rule = 'must be an expression such as dim.platform == "ios", or an object as the service takes it'
        raise BadQuery("where", where, rule)
    return parse_filter(where)


def check_kind(to: str) -> FrameKind:
    """Return *to*, a kind of frame that can be made here.

    Raises:
        BadQuery: there is no such kind, or polars is not installed.
    """
    kind = one_of("to", to, KINDS)
    if kind == "polars" and find_spec(kind) is None:
        raise BadQuery("to", to, "needs polars: pip install polars")
    return kind
