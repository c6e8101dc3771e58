"""The receipt that travels with a frame, as a struct and as JSON that survives Parquet."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import cache
from importlib.metadata import version
from typing import Any, Final, Literal, TypeVar, get_args, get_origin, get_type_hints
from urllib.parse import urlsplit

import msgspec

from gamelens._text import one_line
from gamelens.errors import suggests_names
from gamelens.formulas import MetricFormula
from gamelens.wire.intervals import Granularity, Interval, MalformedInterval, bucket_start

RECEIPT: Final = "gamelens"
"""The receipt's name in `df.attrs` and in the metadata of an Arrow schema."""

ProvenanceKind = Literal[
    "real", "sandbox", "lake", "table", "replay", "mixed", "unknown", "simulated", "imported", "collected"
]
S = TypeVar("S", bound=msgspec.Struct)
T = TypeVar("T")


@cache
def package_version() -> str:
    """Return the version of gamelens."""
    return version("gamelens")


@suggests_names
class Provenance(msgspec.Struct, frozen=True, kw_only=True):
    """The origin of the numbers of a frame.

    Attributes:
        kind: the real service, a sandbox, a lake of one's own, a table of another engine (`open_events`), a replay of
            recorded answers, several of these mixed, or unknown. Among the *sources* of a lake: simulated, imported
            from files, or collected by a sandbox.
        url: the address of the service, the folder of a lake or a replay, or the place of a table; it never holds a key
            or a token.
        scenario: the scenario that a sandbox or a lake was populated with.
        sources: the service that was recorded, for a replay that knows it; the origins of the parts, for a mix; where
            its events come from, for a lake.
        files: the first 20 names of imported files.
        file_count: the number of all of them.
        engine: the engine that read a table: duckdb, spark or bigquery.
    """

    kind: ProvenanceKind = "unknown"
    url: str | None = None
    scenario: str | None = None
    sources: tuple[Provenance, ...] = ()
    files: tuple[str, ...] = ()
    file_count: int = 0
    engine: str | None = None

    @property
    def is_simulated(self) -> bool:
        """Whether the numbers, or some of them, count invented players."""
        return bool(self.badge)

    @property
    def badge(self) -> str:
        """The warning beside simulated numbers: "demo data", "partly demo data", or "" for others."""
        simulated = [
            source.kind in ("sandbox", "simulated") or source.scenario is not None for source in self._first_sources()
        ]
        if not any(simulated):
            return ""
        return "demo data" if all(simulated) else "partly demo data"

    def _first_sources(self) -> list[Provenance]:
        """Return the sources that have no sources themselves."""
        return [first for source in self.sources for first in source._first_sources()] or [self]

    @property
    def identity(self) -> tuple[str, str | None]:
        """The value that two frames of one origin share.

        A sandbox is recognised by its scenario, because its address is another after each start.
        """
        return self.kind, (self.scenario or self.url) if self.kind in ("sandbox", "simulated") else self.url

    @property
    def parts(self) -> tuple[Provenance, ...]:
        """The origins of the parts of a mix, or else the origin itself."""
        return self.sources if self.kind == "mixed" and self.sources else (self,)

    @property
    def text(self) -> str:
        """The origin in a few words, such as `sandbox, scenario demo`. Empty if it is unknown."""
        scenario = f", scenario {one_line(self.scenario)}" if self.scenario else ""
        match self.kind:
            case "sandbox":
                return f"sandbox{scenario}"
            case "lake":
                return (
                    f"lake, {' and '.join(source.text for source in self.sources)}"
                    if self.sources
                    else f"lake{scenario}"
                )
            case "table":
                return f"{one_line(self.url or 'a table')}, read by {self.engine}"
            case "simulated":
                return f"simulated{scenario}"
            case "imported":
                return f"imported from {self.file_count:,} file{'' if self.file_count == 1 else 's'}"
            case "collected":
                return "collected"
            case "replay":
                recorded = "".join(f", {source.text}" for source in self.sources) or scenario
                return f"replay of {one_line(self.url or 'recorded answers')}{recorded}"
            case "real":
                return one_line(urlsplit(self.url or "").netloc) or "real service"
            case "mixed":
                return " and ".join(source.text or "an unknown source" for source in self.sources) or "several sources"
        return ""


@suggests_names
class QueryRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The arguments of a query as they were given, with *interval* as its `over` was resolved.

    Attributes:
        metric: a name, or several.
        over: the time range as text.
        where: the filter in the form of the service.
        top: the number of rows, or the number for one dimension.
        days: the ages of a retention frame.
        interval: the requested interval, ISO 8601.
        formulas: the definitions of the own metrics among the metrics, and of own metrics that their formulas name.
    """

    metric: str | tuple[str, ...] | None = None
    by: tuple[str, ...] = ()
    over: str | None = None
    every: Granularity | None = None
    where: dict[str, Any] | None = None
    top: int | dict[str, int] | None = None
    games: tuple[str, ...] | None = None
    studios: tuple[str, ...] | None = None
    since_days_ago: int | None = None
    other: bool = False
    check: bool = False
    fields: Literal["all"] | None = None
    sort: str | None = None
    days: tuple[int, ...] = ()
    interval: str | None = None
    formulas: tuple[MetricFormula, ...] = ()

    @property
    def metrics(self) -> tuple[str, ...]:
        """The names of the metrics, one or several."""
        return (self.metric,) if isinstance(self.metric, str) else self.metric or ()


@suggests_names
class Gap(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a query whose request failed.

    Attributes:
        metric: the metric of the request.
        interval: the buckets without rows, ISO 8601.
        scope: the fixed values that tell the request from the others of its query.
        error: the message of the failure.
    """

    metric: str = ""
    interval: str = ""
    scope: dict[str, Any] | None = None
    error: str = ""

    @property
    def times(self) -> Interval | None:
        """The interval, or None where its text is damaged."""
        return _interval(self.interval)


@suggests_names
class JoinedColumn(msgspec.Struct, frozen=True, kw_only=True):
    """A column that a join brought.

    Attributes:
        kind: what its numbers are: money, share, count or number; "text" for anything else.
        unit: the currency of money (ISO 4217), "several" where it differs by row, "unknown" where nothing says it.
    """

    kind: str = "text"
    unit: str = ""


@suggests_names
class JoinRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A join of the frame with an outside table.

    Attributes:
        source: the name of the outside table.
        on: the columns that were compared, by column of the frame.
        how: the kind of join.
        matched_share: the share of *share_of* that found a partner.
        columns: what the columns are that it brought, by name.
    """

    source: str | None = None
    on: dict[str, str] = {}
    how: str | None = None
    matched_share: float | None = None
    share_of: str | None = None
    columns: dict[str, JoinedColumn] = {}


@suggests_names
class RestatementRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A field of a past bucket whose rows changed.

    Attributes:
        timestamp: the start of the bucket, ISO 8601.
        by: the dimensions of the rows.
        rows: the number of rows that changed.
        before, after: the totals of *field*; None where its rows cannot be added up.
        before_as_of, as_of: the end of the available interval at both times, ISO 8601.
    """

    metric: str = ""
    timestamp: str = ""
    by: tuple[str, ...] = ()
    rows: int = 0
    field: str = ""
    before: int | float | None = None
    after: int | float | None = None
    before_as_of: str | None = None
    as_of: str | None = None


class SharedRecord(dict[str, Any]):
    """A record in `attrs`, which the frames that pandas makes of one share.

    pandas makes a deep copy of `attrs` with every step: a sixth of the time of an analysis.
    """

    def __deepcopy__(self, memo: object) -> SharedRecord:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        """Return a plain dict for a pickle, so that its reader needs no gamelens."""
        return dict, ({**self},)


@suggests_names
class Receipt(msgspec.Struct, frozen=True, kw_only=True):
    """The record that travels with a frame: its query, its origin and what is missing from it.

    Attributes:
        asked: the query.
        asked_at: when it was executed, ISO 8601.
        as_of: the end of the available interval at that time, ISO 8601.
        available: the available interval at that time.
        requests: all requests of the query, repeats and lists of titles included, the hourly availability call not.
        retries: the repeats among them.
        cached_share: the share of the buckets that needed no request.
        gaps: the parts whose requests failed.
        clipped: the part of the interval that was requested, or None for all of it.
        truncated: whether `top` left values out or may have.
        titles: titles of all games that sent something in the interval, if titles were looked up.
        version: the version of gamelens.
        joined: the joins with outside tables.
        restated: the changes that `refresh` found; None for a frame of any other call.
        provenance: the origin of the numbers.
        filled: number of rows of each metric whose counts and money are 0 because the service had no row.
        values_listed: dimensions whose values were requested only to check the filter.
        dated_by_arrival: number of events that count at the time of their arrival, because their device states no time
            that can be true, by reason. They count all events of the service or lake, which tells it if it is ours.
        bytes_billed: bytes that an engine billed for the statement, such as BigQuery; 0 where none are billed.
        periods: the periods of the rows that `gl.in_periods` added up, ISO 8601; empty for buckets of a query.
    """

    asked: QueryRecord = QueryRecord()
    asked_at: str | None = None
    as_of: str | None = None
    available: str | None = None
    requests: int = 0
    retries: int = 0
    cached_share: float = 0.0
    gaps: tuple[Gap, ...] = ()
    clipped: str | None = None
    truncated: bool = False
    warnings: tuple[str, ...] = ()
    titles: tuple[str, ...] = ()
    version: str | None = None
    joined: tuple[JoinRecord, ...] = ()
    restated: tuple[RestatementRecord, ...] | None = None
    provenance: Provenance = Provenance()
    filled: dict[str, int] = {}
    values_listed: tuple[str, ...] = ()
    dated_by_arrival: dict[str, int] = {}
    bytes_billed: int = 0
    periods: tuple[str, ...] = ()

    @classmethod
    def of(cls, attrs: object) -> Receipt:
        """Read the receipt from the `attrs` of a frame, or return an empty one.

        Unknown keys are ignored; a value of another type than ours is replaced by its default.
        """
        return _lenient(cls, attrs.get(RECEIPT) if isinstance(attrs, Mapping) else None)

    def __bool__(self) -> bool:
        """Return whether there is anything in it: a frame without a receipt has an empty one."""
        return self != _EMPTY

    def to_json(self) -> dict[str, Any]:
        """Return the receipt as plain JSON values, the form it has in `df.attrs["gamelens"]`.

        The frames that pandas makes of one share it: replace it, and do not change it in place.
        """
        written: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(self, enc_hook=str))
        hidden = (
            "titles",
            "joined",
            "restated",
            "filled",
            "values_listed",
            "dated_by_arrival",
            "bytes_billed",
            "periods",
        )
        _omit_defaults(written, self, hidden)
        _omit_defaults(written["asked"], self.asked, {*self.asked.__struct_fields__} - _IN_EVERY_RECEIPT)
        for record, joined in zip(written.get("joined", ()), self.joined, strict=True):
            _omit_defaults(record, joined, ("columns",))
        _omit_sources(written["provenance"])
        return SharedRecord(written)

    @property
    def interval(self) -> Interval | None:
        """The interval whose events the frame counts, or None where the receipt does not say."""
        return _interval(self.clipped or self.asked.interval)

    @property
    def partial_buckets(self) -> list[datetime]:
        """The starts of the buckets that are counted only in part: first, last or none."""
        every, interval = self.asked.every, self.interval
        if every is None or every == "all" or interval is None:
            return []
        edges = {moment: bucket_start(moment, every) for moment in (interval.start, interval.end)}
        return sorted({start for moment, start in edges.items() if start != moment})

    def within(self, interval: Interval | None) -> Receipt:
        """Return the receipt of the same query for another *interval*, or for none.

        An empty receipt stays empty.
        """
        if not self:
            return self
        text = str(interval) if interval is not None else None
        if self.clipped and text:
            return msgspec.structs.replace(self, clipped=text)
        return msgspec.structs.replace(self, asked=msgspec.structs.replace(self.asked, interval=text), clipped=None)

    @property
    def is_complete(self) -> bool:
        """Whether no rows are missing: no gap, and nothing left out by `top`."""
        return not self.truncated and not self.gaps


_EMPTY: Final = Receipt()
_IN_EVERY_RECEIPT: Final = frozenset(
    ("metric", "by", "over", "every", "where", "top", "games", "studios", "since_days_ago", "interval")
)
"""The arguments that every receipt has. One that is added later is only in the receipts of queries that use it."""


def merge_receipts(receipts: Sequence[Receipt]) -> Receipt:
    """Return the receipt of a frame that was computed from several.

    Metrics and what is missing are listed, requests are added, and the oldest `as_of` counts. Several origins are
    "mixed", with a warning. Several periods, such as one and the one before, become the one from the first of their
    days to the last.
    """
    if len(receipts) <= 1:
        return receipts[0] if receipts else _EMPTY
    first = _over_all_periods(receipts)
    metrics = dict.fromkeys(name for receipt in receipts for name in receipt.asked.metrics)
    titles = sorted({title for receipt in receipts for title in receipt.titles})
    provenance = merge_provenance([receipt.provenance for receipt in receipts])
    warnings = [warning for receipt in receipts for warning in receipt.warnings] + mixture_warnings(provenance)
    formulas, differing = _all_formulas(receipts)
    warnings += differing
    return msgspec.structs.replace(
        first,
        asked=msgspec.structs.replace(first.asked, metric=tuple(metrics), formulas=formulas),
        as_of=min((receipt.as_of for receipt in receipts if receipt.as_of), default=None),
        requests=sum(receipt.requests for receipt in receipts),
        retries=sum(receipt.retries for receipt in receipts),
        cached_share=sum(receipt.cached_share for receipt in receipts) / len(receipts),
        gaps=tuple(gap for receipt in receipts for gap in receipt.gaps),
        warnings=tuple(dict.fromkeys(warnings)),
        clipped=str(first.interval) if any(receipt.clipped for receipt in receipts) else None,
        truncated=any(receipt.truncated for receipt in receipts),
        titles=tuple(titles),
        filled=dict(sum((Counter(receipt.filled) for receipt in receipts), Counter())),
        provenance=provenance,
        values_listed=tuple(dict.fromkeys(name for receipt in receipts for name in receipt.values_listed)),
        dated_by_arrival=_dated_in_all(receipts),
        bytes_billed=sum(receipt.bytes_billed for receipt in receipts),
    )


def _all_formulas(receipts: Sequence[Receipt]) -> tuple[tuple[MetricFormula, ...], list[str]]:
    """Return the own metrics of all receipts, the first of each name, and a warning for each that has two formulas."""
    formulas: dict[str, MetricFormula] = {}
    warnings = []
    for formula in (formula for receipt in receipts for formula in receipt.asked.formulas):
        first = formulas.setdefault(formula.name, formula)
        if first.formula != formula.formula:
            warnings.append(f"{formula.name} is {first.formula} in one frame and {formula.formula} in another")
    return tuple(formulas.values()), warnings


def _dated_in_all(receipts: Sequence[Receipt]) -> dict[str, int]:
    """Return the events dated by arrival of all origins: of each the largest numbers, since they only grow."""
    by_origin: dict[Any, Counter[str]] = {}
    for receipt in receipts:
        origin = receipt.provenance.identity
        by_origin[origin] = by_origin.get(origin, Counter()) | Counter(receipt.dated_by_arrival)
    return dict(sum(by_origin.values(), Counter()))


def _over_all_periods(receipts: Sequence[Receipt]) -> Receipt:
    """Return the first of *receipts*, with the period that holds all periods where all are known and they differ."""
    first, periods = receipts[0], [receipt.interval for receipt in receipts]
    known = {period for period in periods if period is not None}
    if len(known) < 2 or None in periods:
        return first
    whole = Interval(min(period.start for period in known), max(period.end for period in known))
    asked = msgspec.structs.replace(first.asked, over=str(whole))
    return msgspec.structs.replace(first, asked=asked).within(whole)


def merge_provenance(origins: Sequence[Provenance]) -> Provenance:
    """Return the origin of numbers computed from numbers of all *origins*, mixed if they differ."""
    parts = {part.identity: part for origin in origins for part in origin.parts}
    if len(parts) > 1:
        return Provenance(kind="mixed", sources=tuple(parts.values()))
    return Provenance(
        kind=origins[0].kind,
        url=_shared([origin.url for origin in origins]),
        scenario=_shared([origin.scenario for origin in origins]),
        # A lake grows, so two frames of one lake may have different sources; the newest of each kind counts.
        sources=tuple({source.identity: source for origin in origins for source in origin.sources}.values()),
    )


def mixture_warnings(provenance: Provenance) -> list[str]:
    """Return a warning for numbers of several origins, else nothing."""
    if provenance.kind != "mixed":
        return []
    suffix = f" ({provenance.badge})" if provenance.badge else ""
    return [f"numbers of different sources{suffix}: {provenance.text}. Compare frames of one source"]


def _shared(values: Sequence[T]) -> T | None:
    return values[0] if len({*values}) == 1 else None


def _interval(text: str | None) -> Interval | None:
    try:
        return Interval.parse(text) if text else None
    except MalformedInterval:
        return None


def _omit_defaults(written: dict[str, Any], struct: msgspec.Struct, names: Iterable[str]) -> None:
    """Leave out the keys that only some receipts have."""
    default = type(struct)()
    for name in names:
        if getattr(struct, name) == getattr(default, name):
            del written[name]


def _omit_sources(written: dict[str, Any]) -> None:
    """Leave sources and files out of a written provenance that has none, and of those in it."""
    for source in written["sources"]:
        _omit_sources(source)
    for name in ("sources", "files", "file_count", "engine"):
        if not written[name]:
            del written[name]


def _lenient(kind: type[S], given: object) -> S:
    """Convert *given* to *kind*, with defaults for values of another type."""
    try:
        return msgspec.convert(given, kind)
    except (msgspec.ValidationError, RecursionError):
        if not isinstance(given, Mapping):
            return kind()
    hints = get_type_hints(kind)
    fields = {name: _field(hints[name], given[name]) for name in hints if name in given}
    return kind(**{name: value for name, value in fields.items() if value is not msgspec.UNSET})


def _field(kind: Any, given: object) -> Any:
    """Convert the value of one field, or return UNSET where it is of another type."""
    try:
        if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
            return _lenient(kind, given)
        member = _member_struct(kind)
        if member is not None and isinstance(given, (list, tuple)):
            return tuple(_lenient(member, one) for one in given if isinstance(one, Mapping))
        return msgspec.convert(given, kind)
    except (msgspec.ValidationError, RecursionError):
        return msgspec.UNSET


def _member_struct(kind: Any) -> type[msgspec.Struct] | None:
    """Return the struct that a field holds several of, also where it may be None."""
    for one in (kind, *get_args(kind)):
        members = get_args(one) if get_origin(one) is tuple else ()
        if members and isinstance(members[0], type) and issubclass(members[0], msgspec.Struct):
            return members[0]
    return None
