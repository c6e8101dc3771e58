"""Sentences from findings: the templates of `words.toml` and the one renderer of them.

A template has four forms. `{name}` is a field of the finding, a long name cut; `{name:money}` writes it so;
`{days|day|days}` is a number with its word; `[, at {ecpm:money}]` is left out where a field in it is unknown. There are
no conditions: another wording is another case of the kind.

Written by hand, since the templates of the standard library and of Jinja know neither units nor intervals, and a file
of words must not run code.
"""

from __future__ import annotations

import math
import os
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from statistics import median
from typing import Any, Final, NamedTuple

import numpy as np
import pandas as pd

from gamelens._scales import NumberKind, places_of, step_of
from gamelens._text import one_line, shortened
from gamelens.analysis.claims.findings import HALF_CENT, Clause, Finding
from gamelens.errors import BadQuery

Words = dict[str, dict[str, Any]]

WORDS_FILE: Final = "GAMELENS_WORDS"
"""Environment variable with the path of a file of words of one's own."""
COMMON: Final = "common"
"""The table of the cases that every kind has."""
OTHERS, NONE, NONE_KNOWN, UNJUDGED = "others", "none", "none_known", "unjudged"
"""The cases of a kind for what is not clear: beside claims that are, without any, if nothing is known, and for what
could not be judged beside what could."""
_FEW: Final = 3
"""Items up to which a list is written out.

Choice: a rule of wording; no figure depends on it.
"""
_MOST_NAMED: Final = 4
"""Names that a list has at most.

Choice: a rule of wording; no figure depends on it.
"""
_LONGEST_NAME: Final = 60
"""Letters of a name, which is cut beyond them.

Choice: a rule of wording; no figure depends on it.
"""
_TOKEN: Final = re.compile(r"\{(\w+)(?::(\w+))?(?:\|([^|{}]*)\|([^|{}]*))?\}|([\[\]])")
_MONEY: Final = ("money", "amount", "signed_money")
_PERCENT: Final = ("share", "change", "points", "ratio", "more", "size")
_SPECS: Final = frozenset({*_MONEY, *_PERCENT, "count", "number", "value", "difference"})
_KINDS: Final = {
    **dict.fromkeys(_MONEY, "money"),
    **{form: form for form in ("share", "change", "points", "count", "number", "p", "difference")},
    **{"value": "of the row", "ratio": "ratio", "more": "ratio"},
}
"""What a number is that a sentence writes in a form."""
_PARTS: Final = ("opening", "ending")
"""The parts in which the sentences of a kind may differ from the kind that it is `like`."""
_COUNTED: Final = "many_"
"""Of the word for several, before the field that counts them: `{others:count} other {by:many_others}`."""
_OTHER_SPECS: Final = frozenset({"day", "p", "many", "start", "text"})
_BASE: Final = frozenset({"size", "low", "high", "unit", "direction"})


class _Field(NamedTuple):
    name: str
    spec: str
    one: str | None
    several: str | None


class _Optional(NamedTuple):
    """A part that is left out where one of its fields, *names*, is unknown."""

    parts: Parsed
    names: tuple[str, ...]


Parsed = tuple["str | _Field | _Optional", ...]


@lru_cache
def words() -> Words:
    """Return the templates by kind and case: ours, and over them the templates of the file `GAMELENS_WORDS`.

    Raises:
        BadQuery: the file is missing, is not TOML, or has a kind, case, field or form that ours do not have.
    """
    built_in = _inherited(tomllib.loads(files("gamelens.analysis.claims").joinpath("words.toml").read_text("utf-8")))
    path = os.environ.get(WORDS_FILE)
    if not path:
        return built_in
    try:
        theirs = tomllib.loads(Path(path).read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise BadQuery(WORDS_FILE, path, f"cannot be read as TOML: {error}") from None
    for kind, table in theirs.items():
        _check_table(kind, table, built_in)
        built_in[kind] = built_in[kind] | table
    return built_in


def _inherited(tables: Words) -> Words:
    """Return the tables of kinds, each `like` another with the templates of that one, in which its own parts stand."""
    found: Words = {}
    for kind, table in tables.items():
        like = str(table.get("like", ""))
        parts = {f"{{{part}}}": str(table.get(part, "")) for part in _PARTS}
        inherited = {case: _filled(str(text), parts) for case, text in tables[like].items()} if like else {}
        found[kind] = inherited | {case: text for case, text in table.items() if case not in ("like", *_PARTS)}
    return {
        kind: table for kind, table in found.items() if kind not in {cases.get("like") for cases in tables.values()}
    }


def _filled(text: str, parts: Mapping[str, str]) -> str:
    for mark, part in parts.items():
        text = text.replace(mark, part)
    return text


def _check_table(kind: str, table: object, built_in: Words) -> None:
    """Refuse a table of words that names what the built-in words do not."""
    if kind not in built_in:
        raise BadQuery(WORDS_FILE, kind, "is not a kind of claim", sorted(built_in))
    if not isinstance(table, dict):
        raise BadQuery(WORDS_FILE, kind, "must be a table of cases")
    for case, template in table.items():
        if case not in built_in[kind]:
            raise BadQuery(WORDS_FILE, case, f"is not a case of {kind}", sorted(built_in[kind]))
        if not isinstance(template, str):
            raise BadQuery(WORDS_FILE, case, f"of {kind} must be text")
        known = _BASE | {field.name for field in fields_of(parsed(str(built_in[kind][case])))}
        for field in fields_of(parsed(template)):
            if field.name not in known:
                raise BadQuery(WORDS_FILE, field.name, f"is not a field of {kind}, {case}", sorted(known))


def sentences_of(findings: Sequence[Finding], *, escape: Callable[[str], str] = str) -> list[str]:
    """Return the sentence of each finding.

    Args:
        findings: the findings of one result. Numbers of one field have the same decimal places in all of them.
        escape: how names are written, which come from outside, such as `escape_markdown`.
    """
    steps = _Steps(findings)
    return [_Sentence(finding, steps, escape).text() for finding in findings]


def spoken(findings: Sequence[Finding], *, escape: Callable[[str], str] = str) -> list[str]:
    """Return the sentences to read, each once.

    Of more than three claims of a kind they are the clear ones, and a line on the others where the kind has one, which
    may name what they measure ({measures}).

    Args:
        findings: the findings of one result.
        escape: as in `sentences_of`.
    """
    texts = sentences_of(findings, escape=escape)
    lines: list[str] = []
    for kind in dict.fromkeys(finding.kind for finding in findings):
        of_kind = [(finding, text) for finding, text in zip(findings, texts, strict=True) if finding.kind == kind]
        clear = [text for finding, text in of_kind if finding.is_clear or finding.is_shown]
        if OTHERS not in words()[kind] or len(of_kind) <= _FEW:
            lines += [text for _, text in of_kind]
            continue
        known = [finding for finding, _ in of_kind if finding.direction != "unknown"]
        judged = len(known)
        case = NONE_KNOWN if not judged else OTHERS if clear else NONE
        first, *more = (finding.numbers for finding, _ in of_kind)
        shared = {name: value for name, value in first.items() if all(numbers.get(name) is value for numbers in more)}
        unclear = [finding for finding in known if not (finding.is_clear or finding.is_shown)]
        shared["measures"] = [
            *dict.fromkeys(str(claim.numbers["measure"]) for claim in unclear if "measure" in claim.numbers)
        ]
        counts = {
            case: judged - len(clear) if judged else len(of_kind),
            UNJUDGED: len(of_kind) - judged if judged else 0,
        }
        rest = [
            Finding(kind=kind, case=summary, numbers=shared | {"others": count})
            for summary, count in counts.items()
            if count
        ]
        lines += clear + sentences_of(rest)
    return [*dict.fromkeys(lines)]


def kinds_of(findings: Sequence[Finding]) -> dict[str, str]:
    """Return what the numbers of each field are, by the forms in which all sentences of these kinds write them."""
    forms: dict[str, set[str]] = {}
    for kind in {finding.kind for finding in findings}:
        for template in words()[kind].values():
            for field in fields_of(parsed(str(template))):
                form = field.spec.removesuffix("_range").removesuffix("_interval")
                forms.setdefault(field.name, set()).add(_KINDS.get(form, ""))
    return {name: kind for name, (kind, *others) in forms.items() if kind and not others and name not in _BASE}


def judged_of(findings: Sequence[Finding]) -> list[str]:
    """Return how each finding was judged, in words, "" where nothing was."""
    texts = words()["judged"]
    return ["" if finding.judged is None else str(texts[finding.judged]) for finding in findings]


@lru_cache(maxsize=512)
def parsed(template: str) -> Parsed:
    """Return *template* as text, fields and optional parts.

    Raises:
        BadQuery: a bracket or brace has no partner, or a form is unknown.
    """
    levels: list[list[Any]] = [[]]
    end = 0
    for found in _TOKEN.finditer(template):
        if between := template[end : found.start()]:
            levels[-1].append(between)
        end = found.end()
        name, spec, one, several, bracket = found.groups()
        if bracket == "[":
            levels.append([])
        elif bracket == "]" and len(levels) > 1:
            part = tuple(levels.pop())
            levels[-1].append(_Optional(part, tuple(_needed_by(part))))
        elif name:
            if not _is_spec(spec):
                raise BadQuery("template", template, f"has an unknown form, {spec}", sorted(_SPECS | _OTHER_SPECS))
            levels[-1].append(_Field(name, spec or "", one, several))
        else:
            levels.append([])  # refused below
            break
    rest = template[end:]
    if (
        len(levels) > 1
        or set(rest) & set("{}[]")
        or any(set(token) & set("{}") for token in levels[0] if type(token) is str)
    ):
        raise BadQuery("template", template, "has an unmatched brace or bracket")
    return tuple([*levels[0], rest] if rest else levels[0])


def fields_of(template: Parsed) -> Iterator[_Field]:
    """Yield the fields of a template, also the fields in its optional parts."""
    for part in template:
        if isinstance(part, _Field):
            yield part
        elif isinstance(part, _Optional):
            yield from fields_of(part.parts)


def _needed_by(part: Parsed) -> Iterator[str]:
    """Yield the names of fields without which an optional part is left out. A range needs its bounds."""
    for field in fields_of(part):
        yield field.name
        if field.spec.endswith("_range"):
            yield "low" if field.name == "size" else f"{field.name}_low"


def _is_spec(spec: str | None) -> bool:
    base = (spec or "count").removesuffix("_range").removesuffix("_interval")
    return base in _SPECS or base in _OTHER_SPECS or base.startswith(_COUNTED)


def _is_unknown(value: Any) -> bool:
    if value is None or isinstance(value, (str, list, tuple)):
        return not value
    return bool(value != value) if isinstance(value, float) else bool(pd.isna(value))


class _Steps:
    """The smallest step of each field, which all its numbers in one text share, by the rule of `gamelens._scales`."""

    def __init__(self, findings: Sequence[Finding]) -> None:
        self._alike: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
        for finding in findings:
            self._alike.setdefault(self._group(finding.kind, fields := finding.fields), []).append(fields)
        self._known: dict[tuple[Any, ...], tuple[float | None, float]] = {}

    @staticmethod
    def _group(kind: str, fields: Mapping[str, Any]) -> tuple[Any, ...]:
        return kind, fields.get("unit"), fields.get("measure")

    def of(self, kind: str, fields: Mapping[str, Any], name: str) -> tuple[float | None, float]:
        """Return the step by the intervals of a field, None without any, and its usual size."""
        named = str(words()[kind].get("step_of_" + name, name))
        group = self._group(kind, fields)
        key = (named, name, *group)
        if key not in self._known:
            same = self._alike.get(group, [])
            bounds = [bounds_of(field, named) for field in same]
            halves = [(high - low) / 2 for low, high in bounds if math.isfinite(high - low) and high > low]
            sizes = _sizes(same, named) or _sizes(same, name)  # its own, where the other is 0
            step = step_of(median(halves)) if halves else None
            self._known[key] = step, median(sizes) if sizes else 1.0
        return self._known[key]


def _sizes(several: Sequence[Mapping[str, Any]], name: str) -> list[float]:
    """Return the sizes of a field that are neither 0 nor infinite."""
    sizes = (abs(float(fields[name])) for fields in several if _is_number(fields.get(name)))
    return [size for size in sizes if 0 < size < math.inf]


def bounds_of(fields: Mapping[str, Any], name: str) -> tuple[float, float]:
    """Return the bounds of a field, NaN without any: *name*_low and *name*_high, or low and high for `size`."""
    start = "" if name == "size" else f"{name}_"
    low, high = (fields.get(f"{start}{side}") for side in ("low", "high"))
    return (math.nan, math.nan) if low is None or high is None else (float(low), float(high))


class _Sentence:
    """One finding with what it takes to put it in words."""

    def __init__(self, finding: Finding, steps: _Steps, escape: Callable[[str], str]) -> None:
        self._finding, self._steps, self._escape = finding, steps, escape

    def text(self) -> str:
        fields = self._finding.fields
        named = {name: self._worth_naming(value, fields) for name, value in fields.items() if type(value) is list}
        return self._case(self._finding.case, {**fields, **named})

    def _case(self, case: str, fields: Mapping[str, Any]) -> str:
        return "".join(self._parts(self._template(case), fields))

    def _template(self, case: str) -> Parsed:
        table = words()[self._finding.kind]
        return parsed(str(table[case] if case in table else words()[COMMON][case]))

    def _worth_naming(self, values: list[Any], fields: Mapping[str, Any]) -> list[Any]:
        """Return *values* without the clauses whose part is nothing."""
        return [
            item for item in values if not (isinstance(item, Clause) and item.part and self._is_nothing(item, fields))
        ]

    def _is_nothing(self, clause: Clause, fields: Mapping[str, Any]) -> bool:
        """Return whether the part of a clause is below half a cent, or would be written as 0."""
        fields = {**fields, **clause.numbers}
        value = fields[str(clause.part)]
        specs = [field.spec for field in fields_of(self._template(clause.case)) if field.name == clause.part]
        if _is_unknown(value) or not specs:
            return False
        if specs[0] in _MONEY and abs(value) < HALF_CENT:
            return True
        return not re.search("[1-9]", self._number(str(clause.part), specs[0], value, fields))

    def _parts(self, template: Parsed, fields: Mapping[str, Any]) -> Iterator[str]:
        for part in template:
            if isinstance(part, str):
                yield part
            elif isinstance(part, _Field):
                yield self._field(part, fields)
            elif not any(_is_unknown(fields.get(name)) for name in part.names):
                yield from self._parts(part.parts, fields)

    def _field(self, field: _Field, fields: Mapping[str, Any]) -> str:
        value = fields[field.name]
        if _is_unknown(value):
            return "n/a"
        if isinstance(value, (list, tuple)):
            return self._listed(value, fields)
        text = self._one(field, value, fields)
        if field.one is not None:
            text = f"{text} {field.one if text == '1' else field.several}"
        return text

    def _listed(self, values: Sequence[Any], fields: Mapping[str, Any]) -> str:
        """Return names or clauses with commas and "and"."""
        texts = [
            self._case(item.case, {**fields, **item.numbers}) if isinstance(item, Clause) else self._name(str(item))
            for item in values
        ]
        if len(texts) > _MOST_NAMED and not isinstance(values[0], Clause):
            texts = [*texts[: _MOST_NAMED - 1], f"{len(texts) - _MOST_NAMED + 1} others"]
        return texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} and {texts[-1]}"

    def _name(self, name: str) -> str:
        return self._escape(_short(name))

    def _one(self, field: _Field, value: Any, fields: Mapping[str, Any]) -> str:
        spec = field.spec or ("number" if _is_number(value) else "name")
        if field.one is not None and not field.spec:
            spec = "count"
        match spec:
            case "name":
                return self._name(str(value))
            case "text":
                return self._escape(one_line(value))
            case "start":
                text = str(value)
                return self._name(text[:1].upper() + text[1:])
            case "many":
                return str(words()["plurals"].get(str(value), f"{value}s"))
            case _ if spec.startswith(_COUNTED):
                several = str(words()["plurals"].get(str(value), f"{value}s"))
                is_one = fields.get(spec.removeprefix(_COUNTED)) == 1
                return (several[:-3] + "y" if several.endswith("ies") else several[:-1]) if is_one else several
            case "day":
                return _day_text(value)
            case "p":
                places = 2 if value >= 0.1 else 3  # "1.00 day by day": 1 would be a number of days
                return "less than 0.001" if value < 0.001 else f"{value:.{places}f}"
        if spec.endswith("_range"):
            return self._range(field.name, spec.removesuffix("_range"), value, fields)
        if spec.endswith("_interval"):
            kind = spec.removesuffix("_interval")
            text = self._number(field.name, kind, value, fields)
            low, _ = bounds_of(fields, field.name)
            return text if math.isnan(low) else f"{text} ({self._range(field.name, kind, value, fields)})"
        return self._number(field.name, spec, value, fields)

    def _written(self, name: str, spec: str, fields: Mapping[str, Any]) -> _Written:
        """Return how a number is written: with more places where two shares and their difference would not agree."""
        written = _Written.of(spec, fields, *self._steps.of(self._finding.kind, fields, name))
        found = [fields.get(part) for part in ("value", "control_value", "size")]
        shown = {(field.name, field.spec) for field in fields_of(self._template(self._finding.case))}
        is_beside = written.factor > 1 and {("value", "value"), ("size", "difference_interval")} <= shown
        if spec not in ("value", "difference") or not is_beside or not all(map(_is_number, found)):
            return written
        value, control, size = map(float, found)  # type: ignore[arg-type]
        if not math.isclose(value - control, size, abs_tol=1e-12):  # such as a ratio
            return written
        for places in range(written.places, written.places + 3):
            first, second, gap = (round(written.factor * number, places) for number in (value, control, size))
            if math.isclose(first - second, gap, abs_tol=1e-9):
                return written._replace(places=places)
        return written

    def _number(self, name: str, spec: str, value: Any, fields: Mapping[str, Any]) -> str:
        written = self._written(name, spec, fields)
        return f"{written.text(float(value))}{written.unit(float(value))}"

    def _range(self, name: str, spec: str, value: Any, fields: Mapping[str, Any]) -> str:
        written = self._written(name, spec, fields)
        low, high = bounds_of(fields, name)
        if written.is_more and value < 1:
            low, high = high, low
        texts = [written.text(bound, is_bound=True, more=float(value)) for bound in (low, high)]
        return f"{texts[0]} to {texts[1]}{'' if written.is_more else written.unit(1.0)}"


@lru_cache  # a board has the same few names and days in thousands of rows
def _short(name: str) -> str:
    return shortened(one_line(name), _LONGEST_NAME)


@lru_cache
def _day_text(value: Any) -> str:
    moment = pd.Timestamp(value) if not isinstance(value, date) else value
    return f"{moment.day} {moment:%b %Y}"


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, np.number)) and not isinstance(value, bool)


class _Written(NamedTuple):
    """How the numbers of a field are written."""

    factor: float
    shift: float
    places: int
    before: str
    after: str
    is_signed: bool
    is_size: bool
    is_more: bool
    word: str

    @classmethod
    def of(cls, spec: str, fields: Mapping[str, Any], step: float | None, usual: float) -> _Written:
        """Return the form *spec*. "value" and "difference" follow `measured_in`, or else the unit of the finding."""
        unit = str(fields.get("measured_in", fields.get("unit", "")))
        is_count = spec == "count" or (unit == "count" and spec in ("value", "difference"))
        if spec == "value":
            spec = {"share": "share", "USD": "money", "money": "money"}.get(unit, "number")
        elif spec == "difference":
            spec = {"share": "points", "USD": "signed_money", "money": "signed_money"}.get(unit, "signed")
        is_percent = spec in _PERCENT
        kind: NumberKind = "share" if is_percent else "money" if spec in _MONEY else "number"
        kind = "count" if is_count else kind
        is_rough = step is None and spec in ("more", "ratio")
        return cls(
            factor=100.0 if is_percent else 1.0,
            shift=1.0 if spec in ("ratio", "more") else 0.0,
            places=0 if is_rough else places_of(kind, step=step, usual=usual),
            before="$" if spec in _MONEY else "",
            after="%" if is_percent and spec != "points" else "",
            is_signed=spec in ("change", "points", "signed_money", "signed", "ratio"),
            is_size=spec in ("size", "amount"),
            is_more=spec == "more",
            word=" pp" if spec == "points" else "",
        )

    def text(self, value: float, *, is_bound: bool = False, more: float | None = None) -> str:
        """Return a number without its unit's word. A bound is never rounded onto zero."""
        if not math.isfinite(value):
            return "n/a" if math.isnan(value) else "unbounded"
        number = self.factor * (value - self.shift)
        if self.is_size:
            number = abs(number)
        elif self.is_more:
            number = abs(number) if more is None else number if more > 1 else -number
        places = self.places
        while is_bound and number and places < self.places + 2 and round(number, places) == 0:
            places += 1
        sign = "-" if round(number, places) < 0 else "+" if self.is_signed and round(number, places) > 0 else ""
        return f"{sign}{self.before}{abs(number):,.{places}f}{self.after}"

    def unit(self, value: float) -> str:
        """Return the word after a number or range."""
        if self.is_more:
            return " more" if value > 1 else " less"
        return self.word
