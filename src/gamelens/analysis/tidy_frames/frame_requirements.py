"""Requirements on frames: the form that an analysis takes, and the error for another.

    @requires(frame=FrameRequirements(metrics=("ecpm",), every=("day",)))
    def split_in_halves(frame: DataFrame) -> ...

A frame with a receipt is judged by it: the query says bucket, `top`, gaps and interval. Without one, or for
what a receipt leaves open, the rows are judged: the spacing of timestamps, and rows `(other)`. The error names the
function, what it was given, and the query to use instead.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, wraps
from typing import Any, Final, ParamSpec, TypeVar, cast

import msgspec
import pandas as pd
from msgspec.structs import replace
from pandas import DataFrame

from gamelens._text import counted
from gamelens.analysis.tidy_frames.frame_columns import dimension_columns, label_columns, with_receipts_of
from gamelens.analysis.tidy_frames.frame_periods import days_text, part_of_length, visible_every, visible_period
from gamelens.analysis.tidy_frames.query_text import interval_text, query_text
from gamelens.analysis.tidy_frames.results import as_result, public_name
from gamelens.analysis.tidy_frames.returned_columns import as_declared, declared_columns
from gamelens.catalog import METRICS, TITLES, Catalog, service_metrics
from gamelens.errors import BadQuery, extra_named
from gamelens.receipts import QueryRecord, Receipt
from gamelens.wire.dimensions import DIMENSIONS
from gamelens.wire.intervals import Granularity, Interval, whole_months

P = ParamSpec("P")
R = TypeVar("R")

REST: Final = "(other)"
"""Value of the row with everything that `top` leaves out."""
_DECLARED: Final = "frame_requirements"
_ROWS: Final[dict[str, str]] = {
    "hour": "several rows a day",
    "day": "one row a day",
    "week": "one row a week",
    "month": "one row a month",
    "all": "one row for the whole interval",
}


class FrameRequirements(msgspec.Struct, frozen=True, kw_only=True):
    """The form that one frame of an analysis must have.

    By default it is complete, in buckets of any size.

    Attributes:
        metrics: the metrics that are read; gaps of others do not matter.
        every: the bucket sizes that are taken, the one to use first; empty for any.
        splits: dimensions that must be columns.
        is_split_by: whether the columns of the argument *by* must be there too.
        counts_players: whether players or sessions are added up, so that no dimension of ads may split them.
        takes_top: whether values that `top` left out do not matter.
        takes_rest: whether a row `(other)` may be one of the values, within one bucket.
        takes_gaps: whether rows whose requests failed do not matter, since they stay unknown.
        parts: columns that count a part of what another column counts, by the name of the part.
        columns: columns of the result of another analysis.
        source: the call that returns that result.
    """

    metrics: tuple[str, ...] = ()
    every: tuple[Granularity, ...] = ()
    splits: tuple[str, ...] = ()
    is_split_by: bool = False
    counts_players: bool = False
    takes_top: bool = False
    takes_rest: bool = False
    takes_gaps: bool = False
    parts: dict[str, str] = {}
    columns: tuple[str, ...] = ()
    source: str = ""


ANY: Final = FrameRequirements(takes_top=True, takes_rest=True, takes_gaps=True)
"""A frame of any form."""
POOLED_RETENTION: Final = replace(
    ANY,
    metrics=("retention",),
    parts={"returned": "installs"},
    columns=("timestamp", "age", "retention", "installs", "returned"),
)
"""The frame of `Client.retention`, in which a failed request leaves NA; by day, week, month or for the whole time."""
RETENTION: Final = replace(POOLED_RETENTION, every=("day",))
"""The frame of `Client.retention` by install day."""


def result_of(source: str, *columns: str) -> FrameRequirements:
    """Return the requirements on a result of another analysis.

    It has *columns*, and *source* is the call that returns it.
    """
    return replace(ANY, columns=columns, source=source)


def requires(
    *, equal_periods: tuple[str, str] | None = None, since: tuple[str, str] | None = None, **frames: FrameRequirements
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Declare the frames that a function takes. Others raise `BadQuery` before it is called.

    Args:
        equal_periods: two arguments whose frames, if both are given, must cover equally many days, or equally many
            whole calendar months.
        since: two arguments; the first frame must begin no later than the first row of the second.
        frames: the requirements on each argument. An argument that is not a frame, such as a number, is ignored;
            of several frames each is judged.
    """

    def declare(function: Callable[P, R]) -> Callable[P, R]:
        signature = inspect.signature(function)
        name = public_name(function)
        returned = declared_columns(function)

        @wraps(function)
        def judged(*args: P.args, **kwargs: P.kwargs) -> R:
            try:
                bound = signature.bind(*args, **kwargs)
            except TypeError:
                return function(*args, **kwargs)  # whose message names the function
            arguments = bound.arguments
            by = _by_of(signature, arguments)
            for argument, requirements in frames.items():
                if isinstance(value := arguments.get(argument), Iterator):
                    arguments[argument] = value = tuple(value)
                for frame in _frames(value):
                    judge(frame, requirements, function=name, argument=argument, by=by)
            if equal_periods and all(isinstance(arguments.get(one), DataFrame) for one in equal_periods):
                _judge_equal_periods(name, {one: _Case(arguments[one], frames[one], by) for one in equal_periods})
            if since:
                case = _Case(arguments[since[0]], frames[since[0]], by)
                _judge_beginning(name, since, case, arguments[since[1]])
            with extra_named(name, "analysis"):
                result: Any = function(*bound.args, **bound.kwargs)
            is_new = isinstance(result, DataFrame) and not any(result is value for value in arguments.values())
            if is_new and returned.columns:
                result = as_declared(result, returned.columns)
                if not returned.has_own_receipt:
                    with_receipts_of(result, *(frame for value in arguments.values() for frame in _frames(value)))
            if is_new:
                bound.apply_defaults()
                as_result(result, name, bound.arguments)
            return cast("R", result)

        vars(judged)[_DECLARED] = frames
        return judged

    return declare


def declared_requirements(function: Callable[..., Any]) -> Mapping[str, FrameRequirements]:
    """Return the requirements on each argument of *function*, empty if it declares none."""
    declared: Mapping[str, FrameRequirements] = vars(function).get(_DECLARED, {})
    return declared


def judge(
    frame: DataFrame,
    requirements: FrameRequirements,
    *,
    function: str,
    argument: str = "frame",
    by: Sequence[str] | None = None,
) -> None:
    """Raise an error if *frame* does not meet the *requirements*.

    Args:
        frame: the frame.
        requirements: what the function requires.
        function: its public name, for the message.
        argument: the name of its argument.
        by: the columns that make its groups; None if it groups by every dimension.

    Raises:
        BadQuery: it does not meet them. The message names the function, the frame's form, and the query to use instead.
    """
    case = _Case(frame, requirements, by)
    for rule in _broken_rules(case):
        raise BadQuery(f"{function}({argument})", msgspec.UNSET, rule)


@dataclass(frozen=True, eq=False)
class _Case:
    """A frame beside the requirements on it."""

    frame: DataFrame
    requirements: FrameRequirements
    by: Sequence[str] | None

    @cached_property
    def receipt(self) -> Receipt:
        return Receipt.of(self.frame.attrs)

    @cached_property
    def every(self) -> str | None:
        """The bucket size by the receipt or the spacing of timestamps, None if neither shows it."""
        return self.receipt.asked.every or visible_every(self.frame)

    @property
    def missing(self) -> list[str]:
        """The required dimensions for which the frame has no column."""
        names = [*self.requirements.splits, *(self.by or () if self.requirements.is_split_by else ())]
        return [name for name in dict.fromkeys(names) if name not in self.frame]

    @property
    def repeating(self) -> list[str]:
        """The dimensions in which one player has several values within a bucket."""
        names = [name for name in self.frame.columns if name in DIMENSIONS]
        return [name for name in names if DIMENSIONS[name].only or name == "category"]

    @property
    def has_rest(self) -> bool:
        """Whether a row `(other)` is one of the groups."""
        asked = self.receipt.asked
        if asked.every is not None and asked.top is None:
            return False  # the service itself calls a value so
        names = dimension_columns(self.frame) if self.by is None else [name for name in self.by if name in self.frame]
        return any((self.frame[name].astype("object") == REST).any() for name in names)

    @property
    def is_by_bucket(self) -> bool:
        """Whether no group has rows of several buckets."""
        is_one = "timestamp" not in self.frame or self.frame["timestamp"].nunique() <= 1
        return is_one or "timestamp" in (self.by or ())

    def query(self, **changes: Any) -> str:
        """Return the query to use instead, complete and with *changes*."""
        clip = {"when_unavailable": "clip"} if self.receipt.clipped else {}
        return query_text(_record(self, **changes), **clip)


def _broken_rules(case: _Case) -> Iterator[str]:
    """Yield what is wrong with the frame, each with the next step."""
    needed = case.requirements
    if absent := [name for name in needed.columns if name not in case.frame]:
        yield f"has no {', '.join(absent)}: use {needed.source or case.query()}"
    if case.missing:
        yield f"has no {', '.join(case.missing)}: use {case.query()}"
    if needed.every and case.every not in (None, *needed.every):
        once = ", in which a player counts once" if needed.counts_players else ""
        wanted = " or ".join(_ROWS[every] for every in needed.every)
        yield f"needs {wanted}, but has {_ROWS[str(case.every)]}{once}: use {case.query()}"
    if needed.counts_players and case.repeating:
        yield f"is split by {', '.join(case.repeating)}, so a player counts once for each value: use {case.query()}"
    yield from _impossible_parts(case)
    yield from _missing_rows(case)


def _impossible_parts(case: _Case) -> Iterator[str]:
    """Yield which part is larger than the whole, in the first such row."""
    for part, whole in case.requirements.parts.items():
        if not {part, whole} <= {*case.frame.columns}:
            continue
        parts, wholes = (pd.to_numeric(case.frame[name]).astype("float64") for name in (part, whole))
        is_larger = (parts > wholes).to_numpy()
        if is_larger.any():
            row = int(is_larger.argmax())
            yield (
                f"has {counted(int(is_larger.sum()), 'row')} with more {part} than {whole}, the first with "
                f"{parts.iloc[row]:g} of {wholes.iloc[row]:g}, which count different players: use {case.query()}"
            )


def _missing_rows(case: _Case) -> Iterator[str]:
    """Yield which rows are missing: beyond `top`, in a row `(other)`, of failed requests."""
    needed, asked = case.requirements, case.receipt.asked
    if case.receipt.truncated and not asked.other and not needed.takes_top:
        top = f"the top {asked.top}" if isinstance(asked.top, int) else "the largest values"
        rest: dict[str, Any] = {"top": asked.top, "other": True} if needed.takes_rest and case.every == "all" else {}
        yield f"needs all values, and has {top} only: use {case.query(**rest)}"
    if case.has_rest and not (needed.takes_rest and case.is_by_bucket):
        yield f"needs each value by itself, and has rows {REST}: use {case.query()}"
    gaps = [gap for gap in case.receipt.gaps if not needed.metrics or gap.metric in service_metrics(needed.metrics)]
    if gaps and not needed.takes_gaps:
        yield f"needs all rows, and {len(gaps)} failed requests are missing: run {case.query()} again"


def _record(case: _Case, **changes: Any) -> QueryRecord:
    """Return the query of the frame with what it lacks, by its receipt or its rows."""
    asked, needed = case.receipt.asked, case.requirements
    dimensions = [name for name in label_columns(case.frame) if name in DIMENSIONS or name in TITLES.values()]
    by = dict.fromkeys([*(asked.by or dimensions), *case.missing])
    repeating = case.repeating if needed.counts_players else []
    is_taken = asked.every is not None and (not needed.every or asked.every in needed.every)
    period = visible_period(case.frame, case.every) if asked.interval is None else None
    more: dict[str, Any] = {
        "metric": _metrics(case),
        "by": tuple(name for name in by if name not in repeating),
        "every": asked.every if is_taken else next(iter(needed.every), None),
        "top": None,
        "other": False,
        "interval": asked.interval or (str(period) if period else None),
    }
    return replace(asked, **(more | changes))


def _metrics(case: _Case) -> tuple[str, ...]:
    """Return the metrics of the query.

    The metrics of the receipt, if the function reads any of them; else the metrics that it reads.
    """
    asked, needed = case.receipt.asked.metrics, case.requirements.metrics
    catalog = Catalog.recorded(case.receipt.asked.formulas)
    if needed and not catalog.service_metrics(asked) & service_metrics(needed):
        return needed
    return asked or tuple(name for name in case.frame.columns if name in METRICS)


def _by_of(signature: inspect.Signature, arguments: Mapping[str, Any]) -> Sequence[str] | None:
    """Return the columns of the argument *by*, or None for a function without it."""
    if "by" not in signature.parameters:
        return None
    by = arguments.get("by", signature.parameters["by"].default)
    return (by,) if isinstance(by, str) else tuple(by or ())


def _frames(value: object) -> Iterator[DataFrame]:
    """Yield the frames of one argument, which may be one, several or none."""
    if isinstance(value, DataFrame):
        yield value
    elif isinstance(value, (list, tuple)):
        yield from (one for one in value if isinstance(one, DataFrame))


def _periods(cases: Iterable[_Case]) -> list[Interval | None]:
    """Return the interval of each frame by its receipt, or of its rows.

    Parts of one frame share its receipt, so their rows say their intervals.
    """
    cases = list(cases)
    by_receipt = [case.receipt.interval for case in cases]
    visible = [visible_period(case.frame, case.every) for case in cases]
    first, second = visible
    are_parts = by_receipt[0] == by_receipt[1] and first is not None and second is not None and not first & second
    return visible if are_parts else [known or seen for known, seen in zip(by_receipt, visible, strict=True)]


def _judge_equal_periods(function: str, cases: Mapping[str, _Case]) -> None:
    """Raise `BadQuery` if both frames cover a different number of days, unless it is one of whole months."""
    first, second = _periods(cases.values())
    if first is None or second is None or first.length == second.length:
        return
    if whole_months(first) and whole_months(first) == whole_months(second):
        return
    texts = [f"{name} has {days_text(period)}" for name, period in zip(cases, (first, second), strict=True)]
    (name, long), (_, short) = sorted(zip(cases, (first, second), strict=True), key=lambda pair: -pair[1].length)
    part = part_of_length(long, short)
    query = cases[name].query(over=interval_text(part))
    rule = f"compares periods of the same length, but {' and '.join(texts)}: use {name} = {query}"
    raise BadQuery(f"{function}({', '.join(cases)})", msgspec.UNSET, rule)


def _judge_beginning(function: str, names: tuple[str, str], case: _Case, other: DataFrame) -> None:
    """Raise `BadQuery` if the frame of *case* begins after the first row of *other*."""
    period = case.receipt.interval
    first = pd.to_datetime(other["timestamp"], utc=True).min() if "timestamp" in other else pd.NaT
    if period is None or pd.isna(first) or pd.Timestamp(period.start) <= first:
        return
    whole = Interval(first.to_pydatetime(), max(first.to_pydatetime(), period.end))
    query = case.query(over=interval_text(whole))
    rule = f"begins on {period.start:%Y-%m-%d}, after the first row of {names[1]} on {first:%Y-%m-%d}: use {query}"
    raise BadQuery(f"{function}({names[0]})", msgspec.UNSET, rule)
