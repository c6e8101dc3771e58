"""Dates and times as people write them: days, weeks, months and timestamps.

A column is read as a whole: `01.11.2026` is the first of November or the eleventh of January, and only the column's
other values, or the analyst, can decide. The machine's locale is not used.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Literal

import pandas as pd
from pandas import Series

from gamelens.errors import BadQuery

Precision = Literal["time", "day", "week", "month"]

_TIME: Final = r"(?:[T ]+(?P<time>\S.*))?"
_YEAR_FIRST: Final = re.compile(rf"(?P<year>\d{{4}})([-/.])(?P<month>\d{{1,2}})\2(?P<day>\d{{1,2}}){_TIME}", re.ASCII)
_COMPACT: Final = re.compile(rf"(?P<year>\d{{4}})(?P<month>\d\d)(?P<day>\d\d){_TIME}", re.ASCII)
_DAY_FIRST: Final = re.compile(rf"(?P<day>\d{{1,2}})([-/.])(?P<month>\d{{1,2}})\2(?P<year>\d{{4}}){_TIME}", re.ASCII)
_MONTH_FIRST: Final = re.compile(rf"(?P<month>\d{{1,2}})([-/.])(?P<day>\d{{1,2}})\2(?P<year>\d{{4}}){_TIME}", re.ASCII)
_YEAR_AND_MONTH: Final = re.compile(r"(\d{4})[-/.](\d{1,2})|(\d{1,2})[-/.](\d{4})", re.ASCII)
_WEEK: Final = re.compile(r"\d{4}(-?)W\d\d(?:\1(?P<day>\d))?", re.ASCII)
_NAMED: Final[tuple[tuple[str, Precision], ...]] = (
    *((form, "day") for form in ("%d %b %Y", "%d %B %Y", "%b %d %Y", "%B %d %Y")),
    *((form, "month") for form in ("%b %Y", "%B %Y")),
)
_SHORT_YEAR: Final = re.compile(rf"(\d\d?)([-/.])(\d\d?)\2(\d\d){_TIME}", re.ASCII)
_SERIAL: Final = re.compile(r"\d{5}(?:\.\d+)?", re.ASCII)
_SERIAL_START: Final = datetime(1899, 12, 30)  # day 0 of a spreadsheet's calendar
_SERIALS: Final = range(36_526, 54_789)  # the days of 2000 to 2049
_YEARS: Final = range(2015, 2041)  # that two digits may stand for


@dataclass(frozen=True, eq=False)
class ParsedTimes:
    """Times of a column: *at* (datetime64[us, UTC]), and the precision they were written in.

    A day, week or month is its start; the start of a week is its Monday. *note* says what was assumed, if anything.
    """

    at: Series[Any]
    precision: Precision
    note: str | None = None


def read_moments(values: Series[Any], *, field: str, day_first: bool | None = None) -> ParsedTimes:
    """Return times from texts, or from datetimes in UTC.

    A time without a zone is UTC, null stays null.

    Raises:
        BadQuery: a text is not a time, day and month may be swapped, or precisions do not mix.
    """
    if pd.api.types.is_datetime64_any_dtype(values):
        is_day = (values.dropna() == values.dropna().dt.normalize()).all()
        return ParsedTimes(values.astype("datetime64[us, UTC]"), "day" if is_day else "time")
    places, unique = pd.factorize(values)
    texts = [str(text) for text in unique]
    plain = _written_out(texts, field, day_first)
    is_day_first = _is_day_first([*plain.values()], field, day_first)
    read: dict[str, tuple[datetime, Precision]] = {}
    for text in texts:
        try:
            read[text] = _parse_text(plain[text].strip(), is_day_first)
        except (ValueError, OverflowError):
            rule = "is not a day, week or month: write 2026-11-01, 2026-W45, 2026-11 or 2026-11-01T13:00Z"
            raise BadQuery(field, plain[text], rule) from None
    examples: dict[Precision, str] = {precision: text for text, (_, precision) in reversed(read.items())}
    if len(examples) > 1 and set(examples) != {"day", "time"}:
        unlike = " and ".join(f"{text} (a {precision})" for precision, text in sorted(examples.items()))
        raise BadQuery(field, [*examples.values()], f"mixes {unlike}: use one kind")
    at = Series([read[text][0] for text in texts], dtype="datetime64[us, UTC]").reindex(places).set_axis(values.index)
    example = next((text for text in texts if plain[text] != text), None)
    note = None if example is None else f"{field}: {example} is read as {read[example][0]:%Y-%m-%d}"
    return ParsedTimes(at, "time" if "time" in examples else next(iter(examples), "day"), note)


def _written_out(texts: Sequence[str], field: str, day_first: bool | None) -> dict[str, str]:
    """Return each text with years of two digits and a spreadsheet's numbers written out.

    All texts must be written the same way. A spreadsheet counts days from 1899-12-30, and exports that number from a
    cell without a date format.

    Raises:
        BadQuery: the two digits of the year may come first or last.
    """
    if all(_SERIAL.fullmatch(text.strip()) and int(text.strip()[:5]) in _SERIALS for text in texts):
        days = {text: _SERIAL_START + timedelta(days=float(text)) for text in texts}
        return {text: day.isoformat() if "." in text else day.date().isoformat() for text, day in days.items()}
    matches = {text: match for text in texts if (match := _SHORT_YEAR.fullmatch(text.strip()))}
    if len(matches) < len(texts):
        return {text: text for text in texts}
    first, last = ({2000 + int(match[place]) for match in matches.values()} for place in (1, 4))
    is_dotted = {match[2] for match in matches.values()} == {"."}
    may_be_last = last <= {*_YEARS}
    may_be_first = first <= {*_YEARS} and not is_dotted and day_first is None
    if may_be_last == may_be_first:
        rule = "has a two-digit year, first or last" if may_be_last else "has no year from 2015 to 2040"
        raise BadQuery(field, texts[0], f"{rule}: write four digits, or pass day_first= if the year is last")
    day = r"\1\2\3\g<2>20\4" if may_be_last else r"20\1\2\3\2\4"
    return {text: match.expand(rf"{day} \g<time>").strip() for text, match in matches.items()}


def _is_day_first(texts: Sequence[str], field: str, day_first: bool | None) -> bool:
    """Return whether 01.11.2026 is the first of November, decided by all texts together.

    *day_first* decides if the texts leave it open.

    Raises:
        BadQuery: the texts are written in two ways, or leave the order open.
    """
    matches = {text: match for text in texts if (match := _DAY_FIRST.fullmatch(text.strip()))}
    if not matches:
        return True
    if len(matches) < len(texts) or len({match[2] for match in matches.values()}) > 1:
        unlike = [next(iter(matches)), next((t for t in texts if t not in matches), list(matches)[-1])]
        raise BadQuery(field, unlike, "are days written in two ways: use one, such as 2026-11-01")
    if day_first is not None:
        return day_first
    pairs = {text: (int(match["day"]), int(match["month"])) for text, match in matches.items()}
    not_day_first = next((text for text, (_, second) in pairs.items() if second > 12), None)
    not_month_first = next((text for text, (first, _) in pairs.items() if first > 12), None)
    if not_day_first and not_month_first:
        raise BadQuery(
            field, [not_month_first, not_day_first], "are not days in one order: use one, such as 2026-11-01"
        )
    ambiguous = next((text for text, (first, second) in pairs.items() if first != second), None)
    if ambiguous and not (not_day_first or not_month_first):
        first, second = pairs[ambiguous]
        rule = f"is day {first} of month {second}, or day {second} of month {first}, and no other value tells which"
        raise BadQuery(field, ambiguous, f"{rule}: pass day_first=True or day_first=False")
    return not not_day_first


def _parse_text(text: str, is_day_first: bool) -> tuple[datetime, Precision]:
    """Return the time in *text* (UTC) and its precision, by the first form that fits.

    Raises:
        ValueError: no form fits, or there is no such day or time.
        OverflowError: the time is outside the years 1 to 9999 in UTC.
    """
    for form in (_YEAR_FIRST, _COMPACT, _DAY_FIRST if is_day_first else _MONTH_FIRST):
        if match := form.fullmatch(text):
            midnight = datetime(int(match["year"]), int(match["month"]), int(match["day"]), tzinfo=UTC)
            if match["time"] is None:
                return midnight, "day"
            time = re.sub(r" ?UTC$", "Z", match["time"])
            moment = datetime.fromisoformat(f"{midnight.date().isoformat()}T{time}")
            return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC), "time"
    if match := _YEAR_AND_MONTH.fullmatch(text):
        return datetime(int(match[1] or match[4]), int(match[2] or match[3]), 1, tzinfo=UTC), "month"
    if match := _WEEK.fullmatch(text):
        return datetime.fromisoformat(text).replace(tzinfo=UTC), "day" if match["day"] else "week"
    words = " ".join(re.split(r"[-,/.\s]+", text))
    for pattern, precision in _NAMED:
        try:
            return datetime.strptime(words, pattern).replace(tzinfo=UTC), precision
        except ValueError:
            continue
    raise ValueError(text)
