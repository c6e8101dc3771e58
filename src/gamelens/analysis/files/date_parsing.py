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

import numpy as np
import pandas as pd
from pandas import Series

from gamelens.errors import BadQuery

Precision = Literal["time", "day", "week", "month"]

_TIME: Final = r"(?:[T ]+(\S.*))?"
_YEAR_FIRST: Final = re.compile(rf"(\d{{4}})([-/.])(\d{{1,2}})\2(\d{{1,2}}){_TIME}", re.ASCII)
_YEAR_LAST: Final = re.compile(rf"(\d{{1,2}})([-/.])(\d{{1,2}})\2(\d{{4}}){_TIME}", re.ASCII)
_YEAR_AND_MONTH: Final = re.compile(r"(\d{4})[-/.](\d{1,2})|(\d{1,2})[-/.](\d{4})", re.ASCII)
_WEEK: Final = re.compile(r"(\d{4})-?W(\d\d)", re.ASCII)
_DAY_OF_WEEK: Final = re.compile(r"\d{4}-W\d\d-\d|\d{4}W\d{3}", re.ASCII)
_COMPACT: Final = re.compile(rf"(\d{{4}})(\d\d)(\d\d){_TIME}", re.ASCII)
_NAMED: Final[tuple[tuple[str, Precision], ...]] = (
    *((form, "day") for form in ("%d %b %Y", "%d %B %Y", "%b %d %Y", "%B %d %Y")),
    *((form, "month") for form in ("%b %Y", "%B %Y")),
)
_SHORT_YEAR: Final = re.compile(rf"(\d\d?)([-/.])(\d\d?)\2(\d\d){_TIME}", re.ASCII)
_SERIAL: Final = re.compile(r"\d{5}(?:\.\d+)?", re.ASCII)
_SERIAL_START: Final = datetime(1899, 12, 30)  # day 0 of a spreadsheet's calendar
_SERIALS: Final = range(36_526, 54_789)  # the days of 2000 to 2049
_YEARS: Final = range(2015, 2041)  # that two digits may stand for
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_NOT_A_TIME: Final = np.iinfo(np.int64).min


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
    texts = [str(text) for text in values.dropna().unique()]
    plain = _written_out(texts, field, day_first)
    is_day_first = _is_day_first([*plain.values()], field, day_first)
    read = {text: _parse_text(plain[text], is_day_first, field) for text in texts}
    micros = {text: (moment - _EPOCH) // timedelta(microseconds=1) for text, (moment, _) in read.items()}
    at = np.array([micros.get(text, _NOT_A_TIME) for text in values], dtype="int64").view("datetime64[us]")
    example = next((text for text in texts if plain[text] != text), None)
    note = None if example is None else f"{field}: {example} is read as {read[example][0]:%Y-%m-%d}"
    return ParsedTimes(pd.Series(at, index=values.index).dt.tz_localize("UTC"), _precision(read, field), note)


def _written_out(texts: Sequence[str], field: str, day_first: bool | None) -> dict[str, str]:
    """Return each text with years of two digits and a spreadsheet's numbers written out.

    All texts must be written the same way. A spreadsheet counts days from 1899-12-30, and exports that number from a
    cell without a date format.

    Raises:
        BadQuery: the two digits of the year may come first or last.
    """
    stripped = {text: text.strip() for text in texts}
    numbers = [text for text in stripped.values() if _SERIAL.fullmatch(text) and int(text[:5]) in _SERIALS]
    if texts and len(numbers) == len(texts):
        days = {text: _SERIAL_START + timedelta(days=float(number)) for text, number in stripped.items()}
        return {text: day.date().isoformat() if "." not in text else day.isoformat() for text, day in days.items()}
    matches = {text: match for text, match in ((t, _SHORT_YEAR.fullmatch(s)) for t, s in stripped.items()) if match}
    if not texts or len(matches) < len(texts):
        return dict(zip(texts, texts, strict=True))
    first, last = ({2000 + int(match[place]) for match in matches.values()} for place in (1, 4))
    is_dotted = {match[2] for match in matches.values()} == {"."}
    may_be_last = last <= {*_YEARS}
    may_be_first = first <= {*_YEARS} and not is_dotted and day_first is None
    if may_be_last == may_be_first:
        rule = "has a year of two digits, first or last" if may_be_last else "has no year from 2015 to 2040"
        raise BadQuery(field, texts[0], f"{rule}: write four digits, or say day_first= if the year is last")
    parts = {text: ((match[1], match[3], match[4]), match[2], match[5]) for text, match in matches.items()}
    return {
        text: mark.join((a, b, f"20{c}") if may_be_last else (f"20{a}", b, c)) + (f" {time}" if time else "")
        for text, ((a, b, c), mark, time) in parts.items()
    }


def _precision(read: dict[str, tuple[datetime, Precision]], field: str) -> Precision:
    """Return the precision of a column.

    Raises:
        BadQuery: days, weeks and months are mixed.
    """
    examples: dict[Precision, str] = {precision: text for text, (_, precision) in reversed(read.items())}
    if set(examples) <= {"day", "time"}:
        return "time" if "time" in examples else "day"
    if len(examples) > 1:
        unlike = " and ".join(f"{text} (a {precision})" for precision, text in sorted(examples.items()))
        raise BadQuery(field, [*examples.values()], f"mixes {unlike}: write one kind")
    return next(iter(examples))


def _is_day_first(texts: Sequence[str], field: str, day_first: bool | None) -> bool:
    """Return whether 01.11.2026 is the first of November, decided by all texts together.

    *day_first* decides if the texts leave it open.

    Raises:
        BadQuery: the texts are written in two ways, or leave the order open.
    """
    matches = {text: match for text in texts if (match := _YEAR_LAST.fullmatch(text.strip()))}
    if not matches:
        return True
    if len(matches) < len(texts) or len({match[2] for match in matches.values()}) > 1:
        unlike = [next(iter(matches)), next((t for t in texts if t not in matches), list(matches)[-1])]
        raise BadQuery(field, unlike, "are days written in two ways: write one, such as 2026-11-01")
    if day_first is not None:
        return day_first
    pairs = {text: (int(match[1]), int(match[3])) for text, match in matches.items()}
    not_day_first = next((text for text, (_, second) in pairs.items() if second > 12), None)
    not_month_first = next((text for text, (first, _) in pairs.items() if first > 12), None)
    if not_day_first and not_month_first:
        raise BadQuery(
            field, [not_month_first, not_day_first], "are not days in one order: write one, such as 2026-11-01"
        )
    ambiguous = next((text for text, (first, second) in pairs.items() if first != second), None)
    if ambiguous and not (not_day_first or not_month_first):
        first, second = pairs[ambiguous]
        rule = f"is day {first} of month {second}, or day {second} of month {first}, and no other value tells"
        raise BadQuery(field, ambiguous, f"{rule}: say day_first=True or day_first=False")
    return not not_day_first


def _parse_text(text: str, is_day_first: bool, field: str) -> tuple[datetime, Precision]:
    """Return the time in *text* (UTC) and its precision.

    Raises:
        BadQuery: it is not a time.
    """
    try:
        moment, precision = _parse_form(text.strip(), is_day_first)
        return (moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)), precision
    except (ValueError, OverflowError):
        rule = "is not a day, week or month: write 2026-11-01, 2026-W45, 2026-11 or 2026-11-01T13:00Z"
        raise BadQuery(field, text, rule) from None


def _parse_form(text: str, is_day_first: bool) -> tuple[datetime, Precision]:
    """Return the time in *text* and its precision, by the first form that fits.

    Raises:
        ValueError: no form fits.
    """
    if match := _YEAR_FIRST.fullmatch(text):
        return _moment(match[1], match[3], match[4], match[5])
    if match := _COMPACT.fullmatch(text):
        return _moment(*match.groups())
    if match := _YEAR_LAST.fullmatch(text):
        day, month = (match[1], match[3]) if is_day_first else (match[3], match[1])
        return _moment(match[4], month, day, match[5])
    if match := _YEAR_AND_MONTH.fullmatch(text):
        return datetime(int(match[1] or match[4]), int(match[2] or match[3]), 1), "month"
    if match := _WEEK.fullmatch(text):
        return datetime.fromisocalendar(int(match[1]), int(match[2]), 1), "week"
    if _DAY_OF_WEEK.fullmatch(text):
        return datetime.fromisoformat(text), "day"
    words = " ".join(re.split(r"[-,/.\s]+", text))
    for form, precision in _NAMED:
        try:
            return datetime.strptime(words, form), precision
        except ValueError:
            continue
    raise ValueError(text)


def _moment(year: str, month: str, day: str, time: str | None) -> tuple[datetime, Precision]:
    midnight = datetime(int(year), int(month), int(day))
    if time is None:
        return midnight, "day"
    moment = datetime.fromisoformat(f"{midnight.date().isoformat()}T{re.sub(r' ?UTC$', 'Z', time)}")
    return moment, "time"
