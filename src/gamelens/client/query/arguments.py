"""A query as an analyst types it, checked and made into values: what is asked, and how it is run.

The arguments are declared in `Client.query` and `Client.retention`: here they are checked.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from importlib.util import find_spec
from numbers import Real
from typing import Any, Final, TypeVar, get_args

import msgspec

from gamelens.catalog import CATALOG, TITLES, Catalog, CohortShare
from gamelens.client.query.filter_expressions import parse_expression
from gamelens.client.query.signatures import Fields, FrameKind, OnError
from gamelens.client.tables.time_ranges import WHEN_UNAVAILABLE, TimeRange, WhenUnavailable
from gamelens.errors import BadQuery
from gamelens.receipts import QueryRecord
from gamelens.wire.filters import Filter, WireFilter, parse_filter, wire_filter
from gamelens.wire.intervals import GRANULARITIES, Granularity
from gamelens.wire.limits import MAX_LIMIT

Names = str | Iterable[str]
Where = Filter | WireFilter | str
Top = int | Mapping[str, int]
Word = TypeVar("Word", bound=str)

GAME_ID: Final = "game_id"
STUDIO_ID: Final = "studio_id"
MOST_DAYS: Final = 36_500
"""Days after install that can be asked for at most: a hundred years."""
COUNTRY_CODE: Final = "country_code"
IDS: Final = {title: name for name, title in TITLES.items()}
"""Column of ids or codes for each name in `by` that adds a column of names."""
KINDS: Final[tuple[FrameKind, ...]] = get_args(FrameKind)
ON_ERROR: Final[tuple[OnError, ...]] = get_args(OnError)


_AS_GIVEN: Final = ("by", "every", "games", "studios", "since_days_ago", "other", "check", "fields", "sort")
"""The arguments that a query and its record have alike."""


class QuerySpec(msgspec.Struct, frozen=True, kw_only=True):
    """The content of a query, without its time range.

    Attributes:
        metrics: names, none twice; `retention` for a query for retention.
        by: dimensions as typed, `game`, `studio` and `country` among them.
        every: the granularity.
        where: the filter; None for all events.
        top: rows to keep of each bucket, largest first; None for all.
        top_of: the dimension whose largest values are kept within each value of the others, as typed; None for all.
        games, studios: ids to narrow to; None for all.
        since_days_ago: days since install, for the metrics that need it.
        other: whether what *top* leaves out is a row of each bucket.
        check: whether the rows are compared with the answer that has no dimensions.
        fields: "all" for every field of the rows; None for the metric and its parts.
        sort: the column by which the rows are ordered, largest first; None for the order of the service.
        ages: days since install of a query for retention; empty for rows.
        catalog: what can be queried: the own metrics of the client are in it.

    Raises:
        BadQuery: no metric, a dimension twice, or *top* without a dimension.
    """

    metrics: tuple[str, ...]
    by: tuple[str, ...] = ()
    every: Granularity = "day"
    where: Filter | None = None
    top: int | None = None
    top_of: str | None = None
    games: tuple[str, ...] | None = None
    studios: tuple[str, ...] | None = None
    since_days_ago: int | None = None
    other: bool = False
    check: bool = False
    fields: Fields | None = None
    sort: str | None = None
    ages: tuple[int, ...] = ()
    catalog: Catalog = CATALOG

    def __post_init__(self) -> None:
        if not self.metrics or len(set(self.metrics)) < len(self.metrics):
            raise BadQuery("metric", list(self.metrics), "must name at least one metric, and none twice")
        one_of("every", self.every, GRANULARITIES)
        if len(set(self.dimensions)) < len(self.dimensions):
            raise BadQuery("by", list(self.by), "must not name a dimension twice")
        if self.top is not None and not self.by:
            raise BadQuery("top", self.typed_top, "needs a dimension in by")
        if self.top is not None and not (is_integer(self.top) and 1 <= self.top <= MAX_LIMIT):
            raise BadQuery("top", self.typed_top, f"must be a whole number from 1 to {MAX_LIMIT}")
        if self.since_days_ago is not None and not (is_integer(self.since_days_ago) and self.since_days_ago >= 1):
            raise BadQuery("since_days_ago", self.since_days_ago, "must be a whole number of days, 1 or more")
        if self.other and self.top is None:
            raise BadQuery("other", self.other, "needs top: it adds what top leaves out")
        if self.check and self.top is not None:
            raise BadQuery("check", self.check, "needs all values: leave out top")
        if self.top_of is not None and self.top_of not in (*self.by, *self.dimensions):
            raise BadQuery("top", self.typed_top, "must name a dimension of by", self.by, name=self.top_of)
        if self.fields is not None:
            one_of("fields", self.fields, get_args(Fields))
        for field in ("top", "check", "since_days_ago") if self.cohort_shares else ():
            if (value := getattr(self, field)) not in (None, False):
                rule = f"does not apply to {self.cohort_shares[0].name}: leave it out"
                raise BadQuery(field, value, rule)

    def with_(self, **changes: Any) -> QuerySpec:
        """Return the query with other values of some fields."""
        return msgspec.structs.replace(self, **changes)

    @property
    def typed_top(self) -> int | dict[str, int] | None:
        """The argument *top* as it is typed."""
        return self.top if self.top_of is None or self.top is None else {self.top_of: self.top}

    @property
    def ranked(self) -> tuple[str, ...]:
        """The columns whose values *top* ranks: the column of one dimension, or all."""
        return self.dimensions if self.top_of is None else (IDS.get(self.top_of, self.top_of),)

    @property
    def within(self) -> tuple[str, ...]:
        """The columns within whose values *top* ranks the other one."""
        return tuple(name for name in self.dimensions if name not in self.ranked)

    @property
    def dimensions(self) -> tuple[str, ...]:
        """The dimensions under the names of their columns."""
        return tuple(IDS.get(name, name) for name in self.by)

    @property
    def titled(self) -> tuple[str, ...]:
        """The columns of ids and codes that get a column of names beside them."""
        return tuple(IDS[name] for name in self.by if name in IDS)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the metrics, as far as the catalog knows them."""
        columns = dict[str, None]()
        for name in self.metrics:
            known = self.catalog.find(name)
            shown = known.shown_columns(all_fields=self.fields == "all") if known is not None else {}
            columns |= dict.fromkeys(shown.values())
        return tuple(columns)

    @property
    def cohort_shares(self) -> tuple[CohortShare, ...]:
        """The metrics that are retention of one age."""
        known = (self.catalog.find(name) for name in self.metrics)
        return tuple(alias for alias in known if isinstance(alias, CohortShare))

    @property
    def needs_total(self) -> bool:
        """Whether the answer without dimensions is needed besides the rows."""
        return bool(self.by) and (self.other or self.check)


class ExecutionOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options that a query is executed with.

    Attributes:
        over: the time range.
        when_unavailable: "raise", "clip" or "wait" where part of *over* is not available; None is the client's choice.
        on_error: "raise" or "gaps" where a request fails for good.
        deadline_s: seconds for everything; None means no limit.
        to: the kind of frame.
        whole_buckets: the granularity whose whole buckets alone are asked for; None for cut ones too.
    """

    over: TimeRange
    when_unavailable: WhenUnavailable | None = None
    on_error: OnError = "raise"
    deadline_s: float | None = None
    to: FrameKind = "pandas"
    whole_buckets: Granularity | None = None


class QueryArguments(msgspec.Struct, frozen=True, kw_only=True):
    """The checked arguments of `Client.query`, `Client.plan` or `Client.retention`.

    Attributes:
        spec: the content of the query.
        options: how it is executed.
        progress: whether a bar is drawn; None to decide by where the output goes.
    """

    spec: QuerySpec
    options: ExecutionOptions
    progress: bool | None


def query_arguments(given: Mapping[str, Any], catalog: Catalog = CATALOG) -> QueryArguments:
    """Check the arguments of `Client.query`, by name. *catalog* has the own metrics of the client.

    Raises:
        BadQuery: an argument has a value that is not allowed.
    """
    metrics = as_names("metric", given["metric"])
    number, top_of = split_top(given["top"])
    bucket = _granularity(metrics, given["every"], catalog)
    spec = QuerySpec(
        metrics=metrics,
        by=as_names("by", given["by"]),
        every=bucket,
        where=as_filter(given["where"]),
        top=number,
        top_of=top_of,
        games=optional_names("games", given["games"]),
        studios=optional_names("studios", given["studios"]),
        catalog=catalog,
        **{name: given[name] for name in ("since_days_ago", "other", "check", "fields", "sort")},
    )
    if spec.sort is not None:
        one_of("sort", spec.sort, ("timestamp", *dict.fromkeys([*spec.columns, *metrics])))
    options = execution_options(given, whole_buckets=bucket if given["whole_buckets"] else None)
    return QueryArguments(spec=spec, options=options, progress=given["progress"])


def retention_arguments(given: Mapping[str, Any]) -> QueryArguments:
    """Check the arguments of `Client.retention`, by name.

    Raises:
        BadQuery: an argument has a value that is not allowed.
    """
    days = given["days"]
    ages = tuple(days) if isinstance(days, Iterable) else (days,)
    if not ages or len(set(ages)) < len(ages):
        raise BadQuery("days", list(ages), "must name at least one age, and none twice")
    for age in ages:
        if not is_integer(age) or not 1 <= age <= MOST_DAYS:
            raise BadQuery("days", age, f"must be whole numbers of days after install, 1 to {MOST_DAYS:,}")
    spec = QuerySpec(
        metrics=("retention",),
        ages=ages,
        by=as_names("by", given["by"]),
        every=given["every"],
        where=as_filter(given["where"]),
        games=optional_names("games", given["games"]),
        studios=optional_names("studios", given["studios"]),
    )
    return QueryArguments(spec=spec, options=execution_options(given), progress=given["progress"])


def _granularity(metrics: Sequence[str], every: Granularity | None, catalog: Catalog) -> Granularity:
    """Return *every*, or the bucket that the aliases among *metrics* are counted in.

    Raises:
        BadQuery: an alias is not counted in *every*, or two are not counted in the same.
    """
    bucket_of: dict[str, Granularity] = {}
    for name in metrics:
        if (alias := catalog.aliases.get(name)) is not None and alias.every is not None:
            bucket_of[name] = alias.every
    for name, bucket in bucket_of.items():
        if every not in (None, bucket):
            rule = f"does not apply to {name}, which is counted by {bucket}: leave out every"
            raise BadQuery("every", every, rule, [bucket])
    if len(set(bucket_of.values())) > 1:
        counted = ", ".join(f"{name} by {bucket}" for name, bucket in bucket_of.items())
        raise BadQuery("metric", list(metrics), f"must use the same buckets ({counted}): query each separately")
    default: Granularity = next(iter(bucket_of.values()), "day")
    return default if every is None else every


def execution_options(given: Mapping[str, Any], *, whole_buckets: Granularity | None = None) -> ExecutionOptions:
    """Return the checked options of a query that has the arguments *given*.

    Raises:
        BadQuery: a word that is not allowed, or a deadline that is not a number.
    """
    if given["deadline_s"] is not None:
        check_seconds("deadline_s", given["deadline_s"])
    if (when := given.get("when_unavailable")) is not None:
        one_of("when_unavailable", when, WHEN_UNAVAILABLE)
    return ExecutionOptions(
        over=given.get("over", ""),
        when_unavailable=when,
        deadline_s=given["deadline_s"],
        on_error=one_of("on_error", given["on_error"], ON_ERROR),
        to=check_kind(given.get("to", "pandas")),
        whole_buckets=whole_buckets,
    )


def optional_names(field: str, names: Names | None) -> tuple[str, ...] | None:
    """Return *names*, the argument *field*, as a tuple, or None, which means all.

    Raises:
        BadQuery: there is none in *names*, as where a list was filled by a filter that matched nothing.
    """
    listed = None if names is None else as_names(field, names)
    if listed == ():
        raise BadQuery(field, [], f"is empty, so that nothing would be counted: name {field}, or leave it out for all")
    return listed


def as_names(field: str, names: Names | None) -> tuple[str, ...]:
    """Return *names*, the argument *field*, as a tuple, which is empty for None.

    Raises:
        BadQuery: a name is not text, such as an id that was read as a number.
    """
    if names is None:
        return ()
    listed = (names,) if isinstance(names, str) or not isinstance(names, Iterable) else tuple(names)
    for name in listed:
        if not isinstance(name, str):
            raise BadQuery(field, name, "must be one or more strings")
    return listed


def as_filter(where: Filter | dict[str, object] | str | None) -> Filter | None:
    """Return *where* as a filter.

    It is an expression of `dim`, such an expression as text, or the service's own form.

    Raises:
        BadQuery: *where* is something else.
    """
    if where is None or isinstance(where, Filter):
        return where
    if isinstance(where, str):
        return parse_expression(where)
    if not isinstance(where, dict):
        rule = 'must be an expression such as dim.platform == "ios", or an object as the service documents it'
        raise BadQuery("where", where, rule)
    return parse_filter(where, with_nulls=True)


def check_seconds(field: str, number: object) -> None:
    """Refuse *number*, the argument *field*, unless it is a number of seconds.

    Raises:
        BadQuery: *number* is not a number.
    """
    if isinstance(number, bool) or not isinstance(number, Real) or math.isnan(number):
        raise BadQuery(field, number, "must be a number of seconds")


def check_kind(to: str) -> FrameKind:
    """Return *to* as a kind of frame that can be made here.

    Raises:
        BadQuery: there is no such kind, or polars is not installed.
    """
    kind = one_of("to", to, KINDS)
    if kind == "polars" and find_spec(kind) is None:
        raise BadQuery("to", to, "needs polars: pip install polars")
    return kind


def split_top(top: Top | None) -> tuple[int | None, str | None]:
    """Return the number of *top* and the dimension it is for, if it names one.

    Raises:
        BadQuery: it names none, or several.
    """
    if not isinstance(top, Mapping):
        return top, None
    if len(top) != 1 or None in top.values():
        raise BadQuery("top", dict(top), 'must be a number, or a dimension in by with a number: {"country_code": 5}')
    ((dimension, number),) = top.items()
    return number, str(dimension)


def is_integer(number: object) -> bool:
    """Return whether *number* is an int, which True and 3.0 are not."""
    return isinstance(number, int) and not isinstance(number, bool)


def one_of(field: str, value: str, allowed: tuple[Word, ...]) -> Word:
    """Return the word of *allowed* that equals *value*, the argument *field*.

    Raises:
        BadQuery: *value* is not allowed.
    """
    for word in allowed:
        if value == word:
            return word
    raise BadQuery(field, value, "is not allowed", allowed)


def query_record(spec: QuerySpec, over: TimeRange, interval: str | None = None) -> QueryRecord:
    """Return the record of a query: the arguments as they were given, *over* as text and, resolved, as *interval*."""
    return QueryRecord(
        metric=spec.metrics if len(spec.metrics) > 1 else spec.metrics[0],
        over=over_text(over),
        where=wire_filter(spec.where) if spec.where is not None else None,
        top=spec.typed_top,
        days=spec.ages,
        interval=interval,
        formulas=spec.catalog.formulas_of(spec.metrics),
        **{name: getattr(spec, name) for name in _AS_GIVEN},
    )


def recorded_spec(record: QueryRecord) -> QuerySpec:
    """Return the query that *record* is of."""
    number, top_of = split_top(record.top)
    return QuerySpec(
        metrics=record.metrics,
        where=as_filter(record.where),
        top=number,
        top_of=top_of,
        ages=record.days,
        catalog=Catalog.recorded(record.formulas),
        **{name: getattr(record, name) for name in _AS_GIVEN},
    )


def over_text(over: TimeRange) -> str:
    """Return *over* as text, a pair of dates with "to" between them."""
    if isinstance(over, (tuple, list)):
        return " to ".join(str(day) for day in over)
    return str(over)
