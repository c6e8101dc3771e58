"""Dates and times as people write them: days, weeks, months, periods and timestamps.

A column is read as a whole: `01.11.2026` is the first of November or the eleventh of January, and only the column's
other values, or the analyst, can decide. The machine's locale is not used; names of months are those of many languages.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np
from numpy.typing import NDArray

from gamelens._text import without_accents
from gamelens.analysis.files.day_ranges import DayRange, in_order, ranges_of
from gamelens.analysis.files.decimal_digits import ascii_digits
from gamelens.analysis.files.month_parts import MonthPart, month_parts
from gamelens.analysis.files.quarters import quarters_of
from gamelens.errors import BadQuery

Precision = Literal["time", "day", "week", "month", "period"]

_TIME: Final = r"(?:[T ]+(?P<time>\S.*))?"
_YEAR_FIRST: Final = re.compile(
    rf"(?P<year>\d{{4}})([-/.]) ?(?P<month>\d{{1,2}})\2 ?(?P<day>\d{{1,2}}){_TIME}", re.ASCII
)
_COMPACT: Final = re.compile(rf"(?P<year>\d{{4}})(?P<month>\d\d)(?P<day>\d\d){_TIME}", re.ASCII)
_COMPACT_DAY_FIRST: Final = re.compile(r"(?!(?:19|20)\d\d(?:0[1-9]|1[0-2])[0-3]\d)[0-3]\d[0-3]\d20[1-4]\d", re.ASCII)
_DAY_FIRST: Final = re.compile(
    rf"(?P<day>\d{{1,2}})([-/.]) ?(?P<month>\d{{1,2}})\2 ?(?P<year>\d{{4}}){_TIME}", re.ASCII
)
_MONTH_FIRST: Final = re.compile(rf"(?P<month>\d{{1,2}})([-/.])(?P<day>\d{{1,2}})\2(?P<year>\d{{4}}){_TIME}", re.ASCII)
_YEAR_AND_MONTH: Final = re.compile(r"(\d{4})[-/.](\d{1,2})|(\d{1,2})[-/.](\d{4})", re.ASCII)
_EAST_ASIAN: Final = re.compile(r"(\d{4}) ?[年년] ?(\d{1,2}) ?[月월](?: ?(\d{1,2}) ?[日일])?")
_WEEK: Final = re.compile(r"\d{4}(-?)W\d\d(?:\1(?P<day>\d))?", re.ASCII)
_WEEK_AND_YEAR: Final = re.compile(
    r"(?:KW|W) ?(?P<week>\d\d?)[-/ ]+(?P<year>\d{4})|(?P<of>\d{4})[-/ ]+(?:KW|W) ?(?P<nth>\d\d?)"
)
_CLOCK: Final = re.compile(r"(?P<date>.*?)[, ]+(?P<time>\d{1,2}:\d\d.*|\d{1,2} ?[AaPp]\.?[Mm]\b.*)")
_SHORT_YEAR: Final = re.compile(rf"(\d\d?)([-/.] ?)(\d\d?)\2(\d\d|(?<= )\d){_TIME}", re.ASCII)
_SIX_DAYS: Final = timedelta(days=6)
_ISO: Final = re.compile(
    r"(\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?(?=$|Z| UTC$|[+-]00:00))?)(?:Z| UTC|[+-]00:00)?", re.ASCII
)
_UNSEEN: Final = re.compile("[\u200e\u200f\u061c\u202a-\u202e\u2066-\u2069]")
_REMARK: Final = re.compile(r"[(（]([^()（）]{1,4})[)）]")
_HOLIDAYS: Final = frozenset("祝休祭振")  # beside a weekday in brackets
_NUMERALS: Final = frozenset({"i", "ii", "iii", "iv"})
_OF_MONTH: Final = "分度份분"  # behind an East Asian month: what is billed for it
_YEAR_WORD: Final = re.compile(r"(?<=\d) (?:\u0433|\u0440|r)$")  # the year, behind a date of numbers
_SERIAL: Final = re.compile(r"\d{5}(?:\.\d+)?", re.ASCII)
_SERIAL_START: Final = datetime(1899, 12, 30)  # day 0 of a spreadsheet's calendar
SERIALS: Final = range(36_526, 54_789)  # the days of 2000 to 2049
_EPOCH: Final = re.compile(r"1[0-9]{9}(?:[0-9]{3})?|2[0-4][0-9]{8}(?:[0-9]{3})?", re.ASCII)
YEARS: Final = range(2015, 2041)  # that two digits may stand for
_ZONE: Final = re.compile(r"(?P<clock>[\d:.]+(?: ?[AaPp]\.?[Mm]\.?(?![a-z]))?) ?(?P<zone>.*)")
_OFFSET: Final = re.compile(r"(?:UTC|GMT)?(?:([+-])(\d{1,2}):?(\d\d)?)?(?:\[.*\])?")
_HOURS_OF_ZONES: Final = {
    **{"PST": -8, "PDT": -7, "MST": -7, "MDT": -6, "EST": -5, "EDT": -4, "WET": 0, "WEST": 1, "CET": 1, "CEST": 2},
    **{"EET": 2, "EEST": 3, "MSK": 3, "JST": 9, "KST": 9, "SGT": 8, "HKT": 8, "AEST": 10, "AEDT": 11, "Z": 0},
}
_BUDDHIST: Final = re.compile(r"(?<!\d)25[4-9]\d(?=(?:\d{4})?(?!\d))", re.ASCII)
_BUDDHIST_YEARS: Final = 543
_YEARS_KNOWN: Final = (1900, 2100)
_WORDS: Final = Path(__file__).with_name("month_names.json")


@dataclass(frozen=True, eq=False)
class ParsedTimes:
    """Times of distinct texts (datetime64[us], UTC), and the precision they were written in.

    Attributes:
        at: the start of each day, week, month or period, or the time.
        until: the end of each period, exclusive; None for texts of one day each.
        precision: what a text names.
        written: the times as written, where they name another zone than UTC; None where none does.
        note: what was assumed, or None.
        is_dated: whether the texts name no year.
    """

    at: NDArray[np.datetime64]
    precision: Precision
    until: NDArray[np.datetime64] | None = None
    written: NDArray[np.datetime64] | None = None
    note: str | None = None
    is_dated: bool = False


class NotTimes(BadQuery):
    """Texts that are no days or times in any form."""


def read_times(texts: Sequence[str], *, field: str, **hints: Any) -> ParsedTimes:
    """Return the times in distinct *texts*. A time without a zone is UTC, a year of the Buddhist era is 543 less.

    Hints: *day_first* tells 01.11. from 11.01., a *language* (such as "pl") tells lis, November in Polish, from lis,
    October in Croatian. So do the other words, and the letters of texts *beside* them.

    Raises:
        NotTimes: a text is not a time.
        BadQuery: day and month may be swapped, a name is of two months, precisions do not mix, or a year is of an era
            that is not known.
    """
    if (plain := ascii_digits(texts)) != [*texts]:
        try:
            return read_times(plain, field=field, **hints)
        except BadQuery as error:
            if error.value not in plain:
                raise
            written = texts[plain.index(str(error.value))]
            rule = error.rule.replace(repr(error.value), repr(written))
            raise type(error)(error.field, written, rule, error.allowed) from None
    if not texts or not all(map(_BUDDHIST.search, texts)):
        read = _read_times(texts, field=field, **hints)
    else:
        common = [_BUDDHIST.sub(lambda year: str(int(year[0]) - _BUDDHIST_YEARS), text) for text in texts]
        read = _read_times(common, field=field, **hints)
        read = replace(read, note=f"{field}: {texts[0]} is read as {read.at[0].astype('datetime64[D]')}")
    years = read.at.astype("datetime64[Y]").astype("int64") + 1970
    if (is_odd := ~np.isnat(read.at) & ((years < _YEARS_KNOWN[0]) | (years > _YEARS_KNOWN[1]))).any():
        place = int(is_odd.argmax())
        rule = f"is of the year {years[place]}: write years of the common era, such as 2026-11-01"
        raise BadQuery(field, texts[place], rule)
    return read


def _read_times(
    texts: Sequence[str],
    *,
    field: str,
    day_first: bool | None = None,
    language: str | None = None,
    beside: Sequence[str] = (),
) -> ParsedTimes:
    if (read := _iso_times(texts)) is not None:
        return read
    serials = [text for text in texts if _is_serial(text)]
    if serials and len(serials) < len(texts):
        hints = {"day_first": day_first, "language": language, "beside": beside}
        return _days_beside_serials(texts, serials, field, hints)
    trimmed = [
        _YEAR_WORD.sub("", re.sub(r"\s+", " ", _UNSEEN.sub("", text)).strip().rstrip("."))
        for text in without_remarks(texts, field)
    ]
    if (quarters := quarters_of(trimmed)) is not None:
        starts, ends = (np.array(days, dtype="datetime64[us]") for days in zip(*quarters, strict=True))
        said = f"{field}: {texts[0]} is read as {quarters[0][0]} to {quarters[0][1] - timedelta(days=1)}"
        return ParsedTimes(starts, "period", ends, note=said)
    if (parts := month_parts(trimmed)) is not None:
        return _read_month_parts(texts, parts, field, {"language": language, "beside": beside})
    if (ranges := ranges_of(trimmed)) is not None:
        return _read_ranges(texts, ranges, field, day_first, language, beside)
    clocks = {text: match for text in trimmed if (match := _CLOCK.fullmatch(text))}
    texts_of = {text: f"{clocks[text]['date']} {clocks[text]['time']}" if text in clocks else text for text in trimmed}
    plain = _written_out([*texts_of.values()], field, day_first)
    is_day_first = is_order_day_first([*plain.values()], field, day_first)
    months = months_of([*plain.values()], field, language, beside)
    moments: list[tuple[datetime, Precision]] = []  # with their zones
    for text, short in zip(texts, trimmed, strict=True):
        try:
            moments.append(_parse_text(plain[texts_of[short]].strip(), is_day_first, months))
        except (ValueError, OverflowError, ZoneInfoNotFoundError):
            rule = "is not a day, week or month: write 2026-11-01, 2026-W45, 2026-11, Q4 2026 or 2026-11-01T13:00Z"
            raise NotTimes(field, plain[texts_of[short]] or text, rule) from None
    examples: dict[Precision, str] = {precision: text for text, (_, precision) in zip(texts, moments, strict=True)}
    if len(examples) > 1 and set(examples) != {"day", "time"}:
        unlike = " and ".join(f"{text} (a {precision})" for precision, text in sorted(examples.items()))
        raise BadQuery(field, [*examples.values()], f"mixes {unlike}: use one kind")
    changed = next((place for place, text in enumerate(trimmed) if plain[texts_of[text]] != texts_of[text]), None)
    note = None if changed is None else f"{field}: {texts[changed]} is read as {moments[changed][0]:%Y-%m-%d}"
    written, at = (
        np.array([moment.replace(tzinfo=None) for moment in read], dtype="datetime64[us]")
        for read in ([moment for moment, _ in moments], [moment.astimezone(UTC) for moment, _ in moments])
    )
    precision: Precision = "time" if "time" in examples else next(iter(examples), "day")
    return ParsedTimes(at, precision, written=written if (written != at).any() else None, note=note)


def without_remarks(texts: Sequence[str], field: str) -> list[str]:
    """Return *texts* without weekdays in brackets, and without short words there that tell no two days apart.

    Raises:
        BadQuery: two texts are of one day, and differ in words that nobody knows.
    """
    plain, known = [], dict[str, tuple[str, str]]()
    for text in texts:
        unknown = [inner for inner in _REMARK.findall(text) if not _is_weekday(inner)]
        if any(not _is_word(inner) for inner in unknown):
            plain.append(text)  # as it is: what is in brackets may be a part of the day
            continue
        bare = _REMARK.sub(" ", text)
        words, first = known.setdefault(bare.strip(), (" ".join(unknown), text))
        if words != " ".join(unknown):
            rule = f"and {text!r} are of one day, and nothing says what is in brackets: "
            raise BadQuery(field, first, f"{rule}leave_out={ {field: [text]}!r} leaves {text!r} out")
        plain.append(bare)
    return plain


def _is_weekday(inner: str) -> bool:
    """Return whether what is in brackets is a weekday; one letter such as P is not, as it may be provisional."""
    parts = re.findall(r"[^\W\d_]+", folded_word(inner))
    are_known = {*parts} <= date_words().weekdays | _HOLIDAYS
    return are_known and len(parts) > 0 and not re.fullmatch(r"[A-Za-z]|.*\d.*", inner.strip())


def _is_word(inner: str) -> bool:
    """Return whether what is in brackets has two letters or more and neither a digit nor a numeral."""
    return len(inner) > 1 and inner.isalpha() and inner.casefold() not in _NUMERALS


def folded_word(text: str) -> str:
    """Return a word of a date without case, accents and full stop."""
    return without_accents(text.casefold()).strip(" .")


def _iso_times(texts: Sequence[str]) -> ParsedTimes | None:
    """Return the times in *texts* that all are days or times in UTC as ISO 8601 has them, None for others."""
    matches = [_ISO.fullmatch(text) for text in texts]
    if not texts or not all(matches):
        return None
    try:
        at = np.array([match[1] for match in matches if match], dtype="datetime64[us]")
    except ValueError:  # such as a day 31 in a month of 30
        return None
    return ParsedTimes(at, "time" if any(":" in text for text in texts) else "day")


def _is_serial(text: str) -> bool:
    return bool(_SERIAL.fullmatch(text.strip())) and int(text.strip()[:5]) in SERIALS


def day_of_serial(serial: float) -> np.datetime64:
    """Return the day that a spreadsheet counts as *serial*: 46296 is 2026-10-01."""
    return np.datetime64((_SERIAL_START + timedelta(days=int(serial))).date())


def _days_beside_serials(
    texts: Sequence[str], serials: Sequence[str], field: str, hints: Mapping[str, Any]
) -> ParsedTimes:
    """Return the times of texts, some of them numbers of a spreadsheet's calendar, whose cells lost their format.

    Raises:
        NotTimes: the others are no days or times.
        BadQuery: the numbers are as many as the days, or of months that the days are not of.
    """
    others = [text for text in texts if not _is_serial(text)]
    read, of_serials = read_times(others, field=field, **hints), read_times(serials, field=field)
    if read.precision not in ("day", "time"):
        raise NotTimes(field, serials[0], f"is not a {read.precision}, and {others[0]} is: use one kind")
    known = {*read.at.astype("datetime64[M]")}
    strange = next((place for place, at in enumerate(of_serials.at) if at.astype("datetime64[M]") not in known), None)
    if strange is not None or 2 * len(serials) >= len(texts):
        number, day = serials[strange or 0], of_serials.at[strange or 0].astype("datetime64[D]")
        rule = f"is {day} in the calendar of a spreadsheet, and others are days such as {others[0]}"
        rule += f", none of them in {day.astype('datetime64[M]')}" if strange is not None else ""
        rule += f": write {day} if it is that day, or missing={[number]!r} reads it as empty"
        raise BadQuery(field, number, rule)
    places = {text: place for place, text in enumerate([*others, *serials])}
    order = [places[text] for text in texts]
    at = np.concatenate([read.at, of_serials.at])[order]
    written = None if read.written is None else np.concatenate([read.written, of_serials.at])[order]
    more = f" and {len(serials) - 1} other numbers as days" if len(serials) > 1 else ""
    note = f"{field}: {serials[0]} is read as {of_serials.at[0].astype('datetime64[D]')}{more}"
    precision: Precision = "time" if "time" in (read.precision, of_serials.precision) else "day"
    return ParsedTimes(at, precision, written=written, note=f"{read.note}; {note}" if read.note else note)


def _read_ranges(
    texts: Sequence[str],
    ranges: Sequence[DayRange],
    field: str,
    day_first: bool | None,
    language: str | None,
    beside: Sequence[str],
) -> ParsedTimes:
    """Return the periods that texts name by their first and their last day, or a week by its first."""
    days = [*dict.fromkeys(day for span in ranges for day in span if day is not None)]
    notes: list[str | None] = []

    def read(is_day_first: bool | None) -> list[tuple[date, date]]:
        ends = read_times(days, field=field, day_first=is_day_first, language=language, beside=beside)
        if ends.precision != "day":
            raise BadQuery(field, texts[0], "is not a period of days: write 2026-11-01 - 2026-11-07")
        notes.append(ends.note)
        at = dict(zip(days, ends.at.astype("datetime64[D]").tolist(), strict=True))
        return [(at[first], at[first] + _SIX_DAYS if last is None else at[last]) for first, last in ranges]

    found = in_order(read, day_first)
    if wrong := [text for text, (first, last) in zip(texts, found, strict=True) if last < first]:
        raise BadQuery(field, wrong[0], "ends before it begins")
    starts, lasts = (np.array(part, dtype="datetime64[us]") for part in zip(*found, strict=True))
    return ParsedTimes(starts, "period", lasts + np.timedelta64(1, "D").astype("timedelta64[us]"), note=notes[-1])


def _read_month_parts(
    texts: Sequence[str], parts: Sequence[MonthPart], field: str, hints: Mapping[str, Any]
) -> ParsedTimes:
    """Return the periods that texts name as parts of months, such as halves.

    Raises:
        NotTimes: what is beside a part is no month, or the month has no such days.
    """
    months = [*dict.fromkeys(part.month for part in parts)]
    read = read_times(months, field=field, **hints)
    if read.precision != "month":
        raise NotTimes(field, texts[0], "is not a part of a month: write 2026-10-01 - 2026-10-15")
    of_month = dict(zip(months, read.at.astype("datetime64[D]").tolist(), strict=True))
    found = []
    for text, part in zip(texts, parts, strict=True):
        try:
            first, last = part.days_of(of_month[part.month])
        except ValueError:
            raise NotTimes(field, text, "is not a part of a month: it has no such day") from None
        if last < first:
            raise BadQuery(field, text, "ends before it begins")
        found.append((first, last))
    starts, lasts = (np.array(days, dtype="datetime64[us]") for days in zip(*found, strict=True))
    place = next(at for at, part in enumerate(parts) if (part.first, part.last) != (1, 0))
    note = f"{field}: {texts[place]} is read as {found[place][0]} to {found[place][1]}"
    return ParsedTimes(starts, "period", lasts + np.timedelta64(1, "D").astype("timedelta64[us]"), note=note)


def _written_out(texts: Sequence[str], field: str, day_first: bool | None) -> dict[str, str]:
    """Return each text with years of two digits and the numbers of spreadsheets and programs written out.

    All texts must be written the same way. A spreadsheet counts days from 1899-12-30, and exports that number from a
    cell without a date format.

    Raises:
        BadQuery: the two digits of the year may come first or last.
    """
    if all(map(_is_serial, texts)):
        days = {text: _SERIAL_START + timedelta(days=float(text)) for text in texts}
        return {text: day.isoformat() if "." in text else day.date().isoformat() for text, day in days.items()}
    if all(_EPOCH.fullmatch(text.strip()) for text in texts):  # seconds or milliseconds since 1970
        return {
            text: datetime.fromtimestamp(int(text) / 1000 ** (len(text.strip()) > 10), UTC).isoformat()
            for text in texts
        }
    if texts and all(_COMPACT_DAY_FIRST.fullmatch(text.strip()) for text in texts):  # 01102026, which is no 0110-20-26
        return {text: "/".join((text.strip()[:2], text.strip()[2:4], text.strip()[4:])) for text in texts}
    matches = {text: match for text in texts if (match := _SHORT_YEAR.fullmatch(text.strip()))}
    if len(matches) < len(texts):
        return {text: text for text in texts}
    first, last = ({2000 + int(match[place]) for match in matches.values()} for place in (1, 4))
    is_dotted = {match[2] for match in matches.values()} == {"."}  # with blanks, Korean has the year first
    may_be_last = last <= {*YEARS}
    may_be_first = first <= {*YEARS} and not is_dotted and day_first is None
    if may_be_last == may_be_first:
        rule = "has a two-digit year, first or last" if may_be_last else "has no year from 2015 to 2040"
        raise BadQuery(field, texts[0], f"{rule}: write four digits, or pass day_first= if the year is last")
    day = r"\1\2\3\g<2>20\4" if may_be_last else r"20\1\2\3\2\4"
    return {text: match.expand(rf"{day} \g<time>").strip() for text, match in matches.items()}


def is_order_day_first(texts: Sequence[str], field: str, day_first: bool | None) -> bool:
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


def _parse_text(text: str, is_day_first: bool, months: Mapping[str, int]) -> tuple[datetime, Precision]:
    """Return the time in *text* in its zone and its precision, by the first form that fits.

    Raises:
        ValueError: no form fits, or there is no such day or time.
        OverflowError: the time is outside the years 1 to 9999 in UTC.
    """
    for form in (_YEAR_FIRST, _COMPACT, _DAY_FIRST if is_day_first else _MONTH_FIRST):
        if match := form.fullmatch(text):
            day = datetime(int(match["year"]), int(match["month"]), int(match["day"]), tzinfo=UTC)
            return (day, "day") if match["time"] is None else (_at_time(day, match["time"]), "time")
    if match := _YEAR_AND_MONTH.fullmatch(text):
        return datetime(int(match[1] or match[4]), int(match[2] or match[3]), 1, tzinfo=UTC), "month"
    if match := _WEEK.fullmatch(text):
        return datetime.fromisoformat(text).replace(tzinfo=UTC), "day" if match["day"] else "week"
    if match := _WEEK_AND_YEAR.fullmatch(text):
        year, week = int(match["year"] or match["of"]), int(match["week"] or match["nth"])
        return datetime.fromisocalendar(year, week, 1).replace(tzinfo=UTC), "week"
    clock = _CLOCK.fullmatch(text)
    day, precision = _named_day(clock["date"] if clock else text, months)
    return (day, precision) if clock is None else (_at_time(day, clock["time"]), "time")


def _named_day(text: str, names: Mapping[str, int]) -> tuple[datetime, Precision]:
    """Return the day or month in a text that names the month: 28 Sept 2026, Sat, Oct 31, 2026, 2026年10月31日.

    Raises:
        ValueError: it names none.
    """
    words, folded = date_words(), folded_word(text)
    if match := _EAST_ASIAN.search(text):
        rest = words.weekday.sub(" ", folded_word(f"{text[: match.start()]} {text[match.end() :]}"))
        if {*re.findall(r"[^\W_]+", rest)} - {*map(folded_word, _OF_MONTH)} - _HOLIDAYS:
            raise ValueError(text)
        year, month, day = (int(part) if part else 1 for part in match.groups())
        return datetime(year, month, day, tzinfo=UTC), "day" if match[3] else "month"
    found = words.month.findall(folded)
    if len(found) > 1:  # mar. is Tuesday and March
        found = [name for name in found if name not in words.weekdays] or found[:1]
    if len(found) != 1:
        raise ValueError(text)
    rest = words.weekday.sub(" ", words.month.sub(" ", folded))
    numbers = re.findall(r"\d+", rest)
    others = set(re.findall(r"[^\W\d_]+", rest)) - words.between
    if others or not 1 <= len(numbers) <= 2:
        raise ValueError(text)
    years = [number for number in numbers if len(number) == 4] or numbers[-1:]  # 31-Oct-26
    days = [number for number in numbers if number is not years[0]]
    year = int(years[0]) if len(years[0]) == 4 else 2000 + int(years[0])
    if len(years) > 1 or (len(years[0]) != 4 and (year not in YEARS or not days)):
        raise ValueError(text)
    return datetime(year, names[found[0]], int(days[0]) if days else 1, tzinfo=UTC), "day" if days else "month"


def months_of(texts: Sequence[str], field: str, language: str | None, beside: Sequence[str]) -> Mapping[str, int]:
    """Return the number of each name of a month, of names that are two months the one in the language of *texts*.

    Raises:
        BadQuery: the language is open.
    """
    words = date_words()
    spoken: dict[str, str] = {}
    for text in texts:
        folded = folded_word(text)
        spoken = dict.fromkeys((*words.month.findall(folded), *words.weekday.findall(folded)), text) | spoken
    unsure = [word for word in spoken if word in words.several]
    if not unsure:
        return words.months
    possible = {
        code: {**words.months} | {word: months[code] for word, months in words.several.items() if code in months}
        for code, known in words.languages.items()
        if (language or code) == code and known >= spoken.keys()
    }
    letters = {letter for text in beside for letter in text.casefold() if letter.isalpha() and not letter.isascii()}
    of_letters = {code: months for code, months in possible.items() if words.letters[code] >= letters}
    possible = of_letters or possible
    if len({tuple(months[word] for word in unsure) for months in possible.values()}) == 1:
        return next(iter(possible.values()))
    meant = ", or ".join(f"month {number} ({code})" for code, number in words.several[unsure[0]].items())
    rule = f"is {meant}, by its language, and no other value tells which"
    step = f'roles={{"{field}": {{"role": "day", "language": "..."}}}} names it'
    raise BadQuery(field, spoken[unsure[0]], f"{rule}: {step}")


def _at_time(day: datetime, text: str) -> datetime:
    """Return the moment of *day* at the time in *text*, in its zone.

    Raises:
        ValueError: it is not a time, or its zone is unknown.
    """
    match = _ZONE.fullmatch(text.strip().removesuffix(")").replace("(", ""))
    if not match:
        raise ValueError(text)
    clock = match["clock"].replace(".m.", "m").replace(".M.", "M").rstrip(".")
    if clock[-1].casefold() == "m":
        clock = re.sub(r"[ .]+", "", clock.upper())
        form = "%I:%M:%S%p" if clock.count(":") == 2 else "%I:%M%p" if ":" in clock else "%I%p"
        time = datetime.strptime(clock, form).time()
    else:
        time = datetime.fromisoformat(f"2000-01-01T{clock.zfill(5) if clock.count(':') == 1 else clock}").time()
    moment = datetime.combine(day.date(), time.replace(tzinfo=None), _zone(match["zone"]))
    moment.astimezone(UTC)  # which fails beyond the years 1 to 9999
    return moment


def _zone(name: str) -> tzinfo:
    """Return a zone by its offset, abbreviation or name.

    Raises:
        ValueError: there is no such zone, or the abbreviation means several.
    """
    name = name.strip()
    if name in _HOURS_OF_ZONES:
        return timezone(timedelta(hours=_HOURS_OF_ZONES[name]))
    if match := _OFFSET.fullmatch(name):
        offset = timedelta(hours=int(match[2] or 0), minutes=int(match[3] or 0))
        return timezone(-offset if match[1] == "-" else offset)
    if "/" not in name:
        raise ValueError(name)
    return ZoneInfo(name)


class _DateWords(NamedTuple):
    """Names in dates of many languages, folded.

    Attributes:
        months: the number of each name that is one month in all languages.
        several: of the other names, the number by language.
        languages: all names of months and weekdays of the languages in *several*.
        letters: the letters beyond ASCII that these languages have.
        weekdays: the names of weekdays.
        between: other words of a date, such as "of".
        month: finds a name of a month.
        weekday: finds a name of a weekday.
    """

    months: Mapping[str, int]
    several: Mapping[str, Mapping[str, int]]
    languages: Mapping[str, frozenset[str]]
    letters: Mapping[str, frozenset[str]]
    weekdays: frozenset[str]
    between: frozenset[str]
    month: re.Pattern[str]
    weekday: re.Pattern[str]


@cache
def date_words() -> _DateWords:
    """Return the names in dates of many languages."""
    table = json.loads(_WORDS.read_text(encoding="utf-8"))
    return _DateWords(
        months=table["months"],
        several=table["several"],
        languages={code: frozenset(names) for code, names in table["languages"].items()},
        letters={code: frozenset(letters) for code, letters in table["letters"].items()},
        weekdays=frozenset(table["weekdays"]),
        between=frozenset(table["between"]),
        month=_any_of([*table["months"], *table["several"]]),
        weekday=re.compile(rf"(?<![^\W_])(?:{_longest_first(table['weekdays'])})(?![^\W_])"),  # not the H of H1
    )


def _longest_first(names: Sequence[str]) -> str:
    return "|".join(map(re.escape, sorted(names, key=len, reverse=True)))


def _any_of(names: Sequence[str]) -> re.Pattern[str]:
    """Return a pattern of whole names, the longest first. Behind one of letters a number may follow: oct2026."""
    ends = {name: r"(?![^\W_])" if name[-1].isdigit() else r"(?![^\W\d_])" for name in names}
    spelled = (re.escape(name) + ends[name] for name in sorted(names, key=len, reverse=True))
    return re.compile(rf"(?<![^\W\d_])(?:{'|'.join(spelled)})")
