"""What a result says: the judgement behind each sentence, found by the reader of the analysis that made it.

A reader judges and never words. It stands beside its analysis:

    @reads("ads.concentration")
    def read_concentration(measured: DataFrame) -> Iterator[Finding]: ...

An argument of the analysis that the reader names as well, such as *by*, is passed on. `templates` words and never
judges.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from statistics import NormalDist
from typing import Any, Final, Literal

import msgspec
from pandas import DataFrame

from gamelens.analysis.significance import LEVEL
from gamelens.analysis.tidy_frames.results import ResultRecord
from gamelens.errors import BadQuery

Direction = Literal["higher", "lower", "no clear difference", "unknown"]
"""The reading of an interval of a difference."""

JudgedBy = Literal["days", "usual days", "other days", "players", "counted", "planned", "model"]
"""How a finding was judged; `words.toml` has the sentence for each."""


_ESTIMATED: Final = ("days", "players", "model")
_NORMAL: Final = NormalDist()
_HALF_WIDTH: Final = _NORMAL.inv_cdf(0.975)
"""Of an interval of 95%, in standard errors."""


HALF_CENT: Final = 0.005
"""Money (USD) below it is nothing: a float residue, or an amount that would be printed as $0.00.

Derived: half of the smallest amount that is shown.
"""


class Clause(msgspec.Struct, frozen=True):
    """A part of a sentence with a template of its own.

    Attributes:
        case: the template, of the kind of its finding.
        numbers: its fields, beside the fields of the finding.
        part: the field that is a part of an amount: the clause is left out where that is money below half a cent, or
            would be written as 0.
    """

    case: str
    numbers: Mapping[str, Any] = {}
    part: str | None = None


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One statement about the data, before it is put in words.

    Attributes:
        kind: the question, for instance "price" or "retention drift"; a table of `words.toml`.
        case: the template of that table which says it.
        subject: the segment it is about, by dimension: {"network": "Unity", "country_code": "BR"}. Empty for the whole.
        direction: how the subject compares with what the words name. "no clear difference" if the interval holds both
            signs, "unknown" if the data cannot say, or if the words compare nothing (a level).
        size: the estimated difference in *unit*, NaN if no number was estimated.
        low, high: bounds of its interval, NaN like *size*.
        unit: the unit of *size*: "ratio", "change" (a ratio less 1), "share", "USD", "players" or the measure's own.
            Shares and their differences are fractions of 1.
        neutral: the size that means no difference; None is 1 for a ratio and else 0.
        judged: how it was judged, None if nothing was.
        is_shown: whether it is shown beside those that carry a direction, such as an alarm that is still open.
        numbers: what the template may name, as the result has it: names, numbers and their bounds (`x_low`, `x_high`),
            and clauses.
    """

    kind: str
    case: str
    subject: Mapping[str, str] = {}
    direction: Direction = "unknown"
    size: float = math.nan
    low: float = math.nan
    high: float = math.nan
    unit: str = ""
    neutral: float | None = None
    judged: JudgedBy | None = None
    is_shown: bool = False
    numbers: Mapping[str, Any] = {}

    @property
    def is_clear(self) -> bool:
        """Whether it carries a direction."""
        return self.direction in ("higher", "lower")

    @property
    def p_value(self) -> float:
        """The p-value of a comparison of estimates, from its test or from its interval; NaN if nothing was compared."""
        if self.direction == "unknown" or self.judged not in _ESTIMATED:
            return math.nan
        if math.isnan(self.low) or math.isnan(self.high):
            tested = self.numbers.get("p_value")
            return math.nan if tested is None else float(tested)
        size, low, high = (value + (self.unit == "change") for value in (self.size, self.low, self.high))
        neutral = self.neutral if self.neutral is not None else float(self.unit in ("ratio", "change"))
        if neutral and min(size, low, high) > 0:
            size, low, high = (math.log(value / neutral) for value in (size, low, high))
        else:
            size, low, high = (value - neutral for value in (size, low, high))
        half = size - low if size > 0 else high - size
        return 2 * _NORMAL.cdf(-_HALF_WIDTH * abs(size) / half) if half > 0 else float(not size)

    @property
    def fields(self) -> dict[str, Any]:
        """All that the template may name."""
        basic = {name: getattr(self, name) for name in ("size", "low", "high", "unit", "direction")}
        return basic | dict(self.subject) | dict(self.numbers)


Reader = Callable[..., Iterator[Finding]]
_READERS: Final[dict[str, tuple[Reader, Sequence[str], bool]]] = {}


def reads(analysis: str, *, row_by_row: bool = False) -> Callable[[Reader], Reader]:
    """Declare a function as the reader of the results of *analysis*, such as "ads.concentration".

    Args:
        analysis: the public name of the analysis.
        row_by_row: whether each finding is about one row, so that a part of the result may be read too.
    """

    def declare(reader: Reader) -> Reader:
        _READERS[analysis] = reader, [*inspect.signature(reader).parameters][1:], row_by_row
        return reader

    return declare


def analyses() -> list[str]:
    """Return the public names of all analyses whose results have claims."""
    for topic in import_module("gamelens.analysis").__all__:
        import_module(f"gamelens.analysis.{topic}")
    return sorted(_READERS)


def findings_of(result: DataFrame, kinds: Sequence[str] = ()) -> list[Finding]:
    """Return what *result* says of *kinds*, by default of all, in the order of its sentences.

    Of a kind that these data give no occasion for, such as the worth of lost ads where none was lost, it says nothing.

    Raises:
        BadQuery: it is not a result of an analysis, no longer what the analysis returned, or there is no such kind.
    """
    record = ResultRecord.of(result.attrs)
    if record is None:
        raise BadQuery("frame", [*map(str, result.columns)], "is not the result of an analysis with claims")
    if record.name not in _READERS and record.name not in analyses():
        raise BadQuery("frame", record.name, "is a result without claims", analyses())
    reader, names, row_by_row = _READERS[record.name]
    if missing := [name for name in record.columns if name not in result]:
        raise BadQuery(
            "frame",
            missing,
            f"are missing from the result of {record.name}: ask for its claims before dropping columns",
        )
    if not row_by_row and len(result) != record.rows:
        rule = f"of the result of {record.name} are left, but its claims are about all of them: pass the whole result"
        raise BadQuery("frame", f"{len(result):,} of {record.rows:,} rows", rule)
    found = [*reader(result, **{name: record.arguments[name] for name in names if name in record.arguments})]
    if unknown := {*kinds} - import_module("gamelens.analysis.claims.templates").words().keys():
        present = dict.fromkeys(finding.kind for finding in found)
        raise BadQuery("kinds", min(unknown), "is not a kind of claim; this result has others", [*present])
    return [finding for finding in found if not kinds or finding.kind in kinds]


def direction_of(low: float, high: float, *, neutral: float = 0.0) -> Direction:
    """Return the direction that an interval carries, compared with *neutral*.

    For example:

        claims.direction_of(1.02, 1.31, neutral=1.0)
    """
    if math.isnan(low) or math.isnan(high):
        return "unknown"
    if low > neutral:
        return "higher"
    return "lower" if high < neutral else "no clear difference"


def direction_among(low: float, high: float, p_adjusted: float, *, neutral: float = 0.0) -> Direction:
    """Return the direction of an interval if the p-value corrected for all rows of its result is below 5% as well."""
    side = direction_of(low, high, neutral=neutral)
    return side if side == "unknown" or p_adjusted < LEVEL else "no clear difference"


def case_among(direction: Direction, low: float, high: float, *, neutral: float = 0.0) -> str:
    """Return the case of a direction among rows: "among_many" where the interval excludes *neutral* all the same."""
    return direction.replace(" ", "_") if direction == direction_of(low, high, neutral=neutral) else "among_many"
