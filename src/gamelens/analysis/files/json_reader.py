"""Reader of JSON: flat objects, one a line or all in one array, are the rows of a table.

A list of plain values is a cell: its only value, or the text of all. Objects within objects have no columns of their
own; the refusal has the code that gives them some.
"""

from __future__ import annotations

import json
import re
import zipfile
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from pandas import DataFrame, json_normalize

from gamelens.analysis.files.csv_reader import opened, unpacked, utf8
from gamelens.errors import BadQuery

_TOP_BYTES: Final = 1 << 12
_COMPACT_DAY: Final = re.compile(r"20\d\d(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])")
_DAY: Final = re.compile(r"20\d\d[-/.]?(?:0[1-9]|1[0-2])[-/.]?(?:0[1-9]|[12]\d|3[01])")
_NUMBER: Final = re.compile(r"[+-]?\d+(?:[.,]\d+)*")
_CURRENCY: Final = ("currency", "currencycode", "currency_code")
_MOST_TRIED: Final = 200  # objects that the code of a refusal is tried on
_MARKS: Final = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")


class JsonRows(NamedTuple):
    """The rows of a file, each its cells by column, and their numbers: its line, or its place in the array from 1."""

    rows: list[dict[str, Any]]
    numbers: list[int]


def read_json(path: Path, encoding: str | None = None, *, is_json: bool = False) -> JsonRows | None:
    """Return the rows of a file of JSON, None for a file of anything else, unless its name says that it *is_json*.

    Raises:
        BadQuery: it is JSON that is damaged, or whose objects hold others.
    """
    if not is_json and not _begins_like_json(path):
        return None
    text = utf8(path, unpacked(path), encoding).decode().strip()
    lines = [(number, line) for number, line in enumerate(text.splitlines(), 1) if line.strip()]
    try:
        whole = json.loads(text)  # also one object alone
    except ValueError as error:
        if not text.startswith("{"):
            if not is_json:  # a header in brackets
                return None
            raise BadQuery("other", path.name, f"cannot be read as JSON: {error}") from None
        whole = None
    if whole is None:
        rows, numbers = _rows_of_lines(path, lines, is_json=is_json), [number for number, _ in lines]
        if rows is None:
            return None
        read = f"[json.loads(line) for line in {_reads(path)}.splitlines() if line.strip()]"
        inner = _records_within(rows)
    elif isinstance(whole, list):
        rows, numbers = whole, [*range(1, len(whole) + 1)]
        if not rows or not all(isinstance(row, dict) for row in rows):
            read = f"json.loads({_reads(path)})"
            step = "where these are lists below one of names, import json, pathlib and pass "
            step += f"gl.read_table(pd.DataFrame({read}[1:], columns={read}[0]))"
            raise BadQuery(
                "other", path.name, f"is a JSON array of something else than objects, which are no rows: {step}"
            )
        read, inner = f"json.loads({_reads(path)})", _records_within(rows)
    elif isinstance(whole, dict):
        rows, numbers = [whole], [1]
        read, inner = f"json.loads({_reads(path)})", _records_of_object(whole)
    else:
        raise BadQuery("other", path.name, "is JSON without objects, which would be its rows")
    if any(_is_nested(value, is_alone=isinstance(whole, dict)) for row in rows for value in row.values()):
        raise _nested(path, read, rows if whole is None else whole, inner)
    return JsonRows([{key: cell_of(value) for key, value in row.items()} for row in rows], numbers)


def _is_nested(value: Any, *, is_alone: bool) -> bool:
    """Return whether a value makes no cell. A list may be a column where its object *is_alone* in a file."""
    if isinstance(value, list):
        return bool(value) and not (_is_plain(value) and (len(value) == 1 or not is_alone))
    return isinstance(value, dict) and bool(value)


def _is_plain(value: Any) -> bool:
    """Return whether a value is none of objects and none of lists, or a list of such values."""
    parts = value if isinstance(value, list) else [value]
    return not any(isinstance(part, (dict, list)) for part in parts)


def _are_objects(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(part, dict) for part in value)


def _rows_of_lines(path: Path, lines: list[tuple[int, str]], *, is_json: bool) -> list[dict[str, Any]] | None:
    """Return the object of each line, None if the first line is none and so the file is not JSON.

    Raises:
        BadQuery: a later line is no object.
    """
    rows: list[dict[str, Any]] = []
    for number, line in lines:
        try:
            row = json.loads(line)
        except ValueError:
            row = None
        if not isinstance(row, dict):
            if not rows and not is_json:
                return None
            shown = line.strip()[:40]
            raise BadQuery(
                "other", path.name, f"has objects of JSON as its lines, and line {number} is none: {shown!r}"
            )
        rows.append(row)
    return rows


def _begins_like_json(path: Path) -> bool:
    try:
        with opened(path) as file:
            top: bytes = file.read(_TOP_BYTES)
    except (OSError, EOFError, RuntimeError, NotImplementedError, zipfile.BadZipFile):
        return False  # what is wrong is said where the file is read
    for mark in _MARKS:
        top = top.removeprefix(mark)
    return top.replace(b"\0", b"").lstrip().startswith((b"{", b"["))


class _Records(NamedTuple):
    """Where the rows of nested objects are, and what stands once for several of them.

    *start* is the way to their list in the one object of a file, *path* the way from there to the innermost lists.
    *names* tell rows apart, such as their day; *around* are texts of the one object, such as the currency. *dropped*
    are the ways to what has no column: numbers of several rows together, and their currencies.
    """

    path: list[str]
    names: list[list[str]]
    dropped: list[tuple[str, ...]]
    is_complete: bool = True
    is_distinct: bool = True
    start: tuple[str, ...] = ()
    around: Mapping[tuple[str, ...], str] = MappingProxyType({})
    lists: frozenset[tuple[str, ...]] = frozenset()

    def code(self, read: str) -> str:
        """Return the code that makes a frame of what *read* reads."""
        opened_as = f"(data := {read})" if self.around else read
        told = "".join(f"[{key!r}]" for key in self.start)
        if self.path:
            told += f', record_path="{self.path[0]}"' if len(self.path) == 1 else f", record_path={self.path!r}"
        if self.names:
            told += f", meta={[name[0] if len(name) == 1 else name for name in self.names]!r}"
            told += "" if self.is_complete else ', errors="ignore"'
            told += "" if self.is_distinct else ', meta_prefix="outer "'
        beside = {name: _got("data", way, is_list=way in self.lists) for way, name in self.around.items()}
        listed = ", ".join(f"{name!r}: {value}" for name, value in beside.items())
        return f"pd.json_normalize({opened_as}{told})" + (f".assign(**{{{listed}}})" if beside else "")

    def frame(self, data: Any) -> DataFrame:
        """Return the frame that the code makes of *data*.

        Raises:
            KeyError, TypeError, ValueError: the objects are not all built like this.
        """
        rows = data
        for key in self.start:
            rows = rows[key]
        found = json_normalize(
            rows,
            record_path=self.path or None,
            meta=[name[0] if len(name) == 1 else name for name in self.names] or None,
            errors="raise" if self.is_complete else "ignore",
            meta_prefix=None if self.is_distinct else "outer ",
        )
        return found.assign(**dict.fromkeys(self.around.values(), ""))


def _got(data: str, way: Sequence[str], *, is_list: bool) -> str:
    """Return the code of the value at the end of a *way*. The values of a list become one text."""
    found = data + "".join(f"[{key!r}]" for key in way)
    return f'", ".join(map(str, {found}))' if is_list else found


class _Keyed(NamedTuple):
    """Where the keys of objects tell rows apart, such as their day: {"2026-11-01": [{...}, ...], ...}.

    *start* is the way to the object of the outermost keys, *others* are its keys that are no days, and *levels* the
    columns that the keys of each level become. Below them are rows, or lists of them, with the keys *of_rows*. *around*
    are the ways to texts beside them, *dropped* are as of `_Records`.
    """

    start: tuple[str, ...]
    levels: list[str]
    is_listed: bool
    others: list[str]
    around: dict[str, tuple[str, ...]]
    dropped: list[tuple[str, ...]]
    of_rows: set[str]

    def code(self, read: str) -> str:
        """Return the code that makes a frame of what *read* reads."""
        cells = {column: f"key{level or ''}" for level, column in enumerate(self.levels)}
        inside = "data" + "".join(f"[{key!r}]" for key in self.start)
        loops = f" for data in [{read}]"
        for name in [*cells.values()]:
            loops += f" for {name}, in_{name} in {inside}.items()"
            loops += f" if key not in {self.others!r}" if self.others and name == "key" else ""
            inside = f"in_{name}"
        loops += f" for row in {inside}" if self.is_listed else ""
        cells |= {column: "data" + "".join(f"[{key!r}]" for key in way) for column, way in self.around.items()}
        named = {f"outer {column}" if column in self.of_rows else column: code for column, code in cells.items()}
        listed = ", ".join(f"{column!r}: {code}" for column, code in named.items())
        return f"pd.DataFrame([{{{listed}, **{'row' if self.is_listed else inside}}}{loops}])"


def _keyed(whole: Mapping[str, Any]) -> _Keyed | None:
    """Return where keys of the one object of a file tell rows apart, None where none do."""
    waiting: list[tuple[tuple[str, ...], Mapping[str, Any]]] = [((), whole)]
    for start, found in waiting:  # the outermost first
        waiting += [((*start, key), value) for key, value in found.items() if isinstance(value, dict)]
        days = [key for key in found if _DAY.fullmatch(key)]
        inner = [found[key] for key in days or found]
        levels = ["day" if days else "name"]
        if not days and (len(found) == 1 or not _are_alike(inner)):
            continue
        while all(isinstance(value, dict) and _are_alike([*value.values()]) for value in inner):
            are_days = all(_DAY.fullmatch(key) for value in inner for key in value)
            free = [name for name in ("day" if are_days else "name", "name") if name not in levels]
            levels.append(free[0] if free else f"name {len(levels) + 1}")
            inner = [part for value in inner for part in value.values()]
        rows = [row for value in inner for row in (value if isinstance(value, list) else [value])]
        is_listed = isinstance(inner[0], list)
        if any(isinstance(value, list) != is_listed for value in inner) or not all(map(_is_flat, rows)):
            continue
        within = {(*start, key) for key in days or found}
        beside = [(way, value) for way, value in _inside(whole) if way[: len(start) + 1] not in within]
        around = {".".join(way): way for way, value in beside if _tells_apart(way[-1], value)}
        dropped = [way for way, value in beside if value is not None and ".".join(way) not in around]
        others = [key for key in found if (*start, key) not in within]
        return _Keyed(start, levels, is_listed, others, around, dropped, {key for row in rows for key in row})
    return None


def _is_flat(row: Any) -> bool:
    return isinstance(row, dict) and all(map(_is_plain, row.values()))


def _are_alike(values: Sequence[Any]) -> bool:
    """Return whether values are lists of objects, or objects, with the same keys, or with days as keys."""
    rows = [row for value in values for row in (value if isinstance(value, list) else [value])]
    if not rows or not all(isinstance(row, dict) for row in rows):
        return False
    return all({*row} == {*rows[0]} for row in rows) or all(_DAY.fullmatch(key) for row in rows for key in row)


def _records_of_object(whole: Mapping[str, Any]) -> _Records:
    """Return where the rows are in the one object of a file, with the texts that stand beside their list."""
    lists = [found for found in _inside(whole) if _are_objects(found[1])]
    if len(lists) != 1:
        return _Records([], [], [])
    ((start, rows),) = lists
    inner = _tried(_records_within(rows), rows)
    beside = [(way, value) for way, value in _inside(whole) if value is not None and not _are_objects(value)]
    of_rows = {*inner.frame(rows[:_MOST_TRIED]).columns}
    dropped = _of_totals(beside, start, of_rows)
    around = [way for way, value in beside if way not in dropped]
    named = {way: ".".join(way) for way in around}
    named = {way: f"outer {name}" if name in of_rows else name for way, name in named.items()}
    left = [*dropped, *((*start, *way) for way in inner.dropped)]
    are_lists = frozenset(way for way, value in beside if isinstance(value, list))
    return inner._replace(start=start, around=named, dropped=left, lists=are_lists)


def _of_totals(
    beside: Sequence[tuple[tuple[str, ...], Any]], to_rows: Sequence[str], of_rows: Collection[str]
) -> list[tuple[str, ...]]:
    """Return the ways to numbers of several rows together, and to their currencies where rows name their own.

    *to_rows* is the way to the list of the rows, *of_rows* are their columns.
    """
    numbers = [way for way, value in beside if not _tells_apart(way[-1], value)]
    if not any(name.rpartition(".")[2].casefold().endswith(_CURRENCY) for name in of_rows):
        return numbers
    off = [way[:-1] for way in numbers if way[:-1] != (*to_rows[: len(way) - 1],)]  # objects that rows are not in
    codes = [way for way, _ in beside if way[-1].casefold().endswith(_CURRENCY) and way[:-1] in off]
    return [way for way, _ in beside if way in numbers or way in codes]


def _records_within(rows: list[dict[str, Any]]) -> _Records:
    """Return where the innermost rows are: the only list of objects that each object has, and the one in these."""
    path: list[str] = []
    names: dict[tuple[str, ...], int] = {}
    values: dict[tuple[str, ...], Any] = {}
    is_complete = True
    while rows:
        inside = [[*_inside(row)] for row in rows]
        lists = [[found for found in of_row if _are_objects(found[1])] for of_row in inside]
        if any(len(found) != 1 for found in lists) or len({found[0][0] for found in lists}) != 1:
            break
        for key, value in (found for of_row in inside for found in of_row if not _are_objects(found[1])):
            if _tells_apart(key[-1], value):
                names[*path, *key] = names.get((*path, *key), 0) + 1
            if value is not None:
                values[*path, *key] = value
        is_complete = is_complete and all(count == len(rows) for name, count in names.items() if name[:-1] == (*path,))
        path += lists[0][0][0]
        rows = [row for found in lists for row in found[0][1]]
    of_rows = {".".join(key) for row in rows for key, _ in _inside(row)}
    dropped = _of_totals([*values.items()], path, of_rows) if path else []
    kept = {name: count for name, count in names.items() if name not in dropped}
    is_distinct = not of_rows & {".".join(name) for name in kept}
    return _Records(path, [[*name] for name in kept], dropped, is_complete, is_distinct)


def _runs(inner: _Records, data: Any) -> bool:
    """Return whether the code for *data* makes a frame, tried on its first objects."""
    try:
        return len(inner.frame(_beginning(data, inner.start)).columns) > 0
    except (KeyError, TypeError, ValueError, IndexError):
        return False


def _beginning(data: Any, way: Sequence[str]) -> Any:
    """Return *data* with the first objects of the list at the end of a *way* alone."""
    if isinstance(data, list):
        return data[:_MOST_TRIED]
    return {**data, way[0]: _beginning(data[way[0]], way[1:])} if way else data


def _tried(inner: _Records, data: Any) -> _Records:
    """Return *inner* as far as its code runs: without names of objects that lists within others cannot reach."""
    if _runs(inner, data):
        return inner
    kept: list[list[str]] = []
    for name in inner.names:
        if _runs(inner._replace(names=[*kept, name]), data):
            kept.append(name)
    left = [(*name,) for name in inner.names if name not in kept]
    found = inner._replace(names=kept, dropped=[*inner.dropped, *left])
    return found if _runs(found, data) else _Records([], [], [], start=inner.start)


def _inside(row: Mapping[str, Any], above: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield the path and the value of what an object and those within it hold: texts, numbers, lists."""
    for key, value in row.items():
        if isinstance(value, dict):
            yield from _inside(value, (*above, key))
        elif not isinstance(value, list) or value:
            yield (*above, key), value


def _tells_apart(key: str, value: Any) -> bool:
    """Return whether a value is a name or a day, or a list of such, and no number of all rows below it."""
    if isinstance(value, list):
        return _is_plain(value) and all(_tells_apart(key, part) for part in value)
    if isinstance(value, int) and not isinstance(value, bool):
        return key.casefold().endswith("id") or _COMPACT_DAY.fullmatch(str(value)) is not None
    is_written = isinstance(value, str) and _NUMBER.fullmatch(value) and not _COMPACT_DAY.fullmatch(value)
    return isinstance(value, (str, bool)) and (not is_written or key.casefold().endswith("id"))


def _reads(path: Path) -> str:
    """Return the code that has the text of a file."""
    name = path.as_posix()
    if name.lower().endswith(".gz"):
        return f"gzip.open({name!r}).read()"
    if name.lower().endswith(".zip"):
        with zipfile.ZipFile(path) as archive:
            inner = next(entry for entry in archive.namelist() if "__MACOSX" not in entry and not entry.endswith("/"))
        return f"zipfile.ZipFile({name!r}).read({inner!r})"
    return f'pathlib.Path({name!r}).read_text("utf-8")'


def _nested(path: Path, read: str, data: Any, inner: _Records) -> BadQuery:
    is_by_column = isinstance(data, dict) and all(isinstance(value, list) for value in data.values())
    keyed = _keyed(data) if isinstance(data, dict) else None
    lists = [way for way, value in _inside(data) if _are_objects(value)] if isinstance(data, dict) else []
    rule, dropped = "is JSON whose objects hold others, which have no columns", inner.dropped
    if keyed is not None and ("day" in keyed.levels or not inner.start):
        step, dropped = keyed.code(read), keyed.dropped
    elif is_by_column and not inner.start:  # a list for each column
        step = f"pd.DataFrame({read})"
    elif len(lists) > 1:
        step = f"pd.json_normalize({read}{''.join(f'[{key!r}]' for key in lists[0])})"
        named = ", ".join(repr(".".join(way)) for way in lists)
        rule += f", and several lists of rows ({named}), the first by this code"
        dropped = [way for way, value in _inside(data) if value is not None and way not in lists]
    else:
        inner = _tried(inner, data)
        step = inner.code(read)
        dropped = inner.dropped if inner.path or inner.start else []
    modules = ["json", *(module for module in ("gzip", "pathlib", "zipfile") if f"{module}." in step)]
    if dropped:
        shown = ", ".join(repr(".".join(way)) for way in _with_one_name(dropped, data))
        rule += f" (nor has what stands once for several rows, {shown})"
    return BadQuery("other", path.name, f"{rule}: import {', '.join(modules)} and pass gl.read_table({step})")


def _with_one_name(dropped: Sequence[tuple[str, ...]], data: Any) -> list[tuple[str, ...]]:
    """Return the ways to what is *dropped*. An object that is dropped as a whole has one way, not one for each part."""
    kept = {way[:count] for way in _ways(data) if way not in {*dropped} for count in range(len(way) + 1)}
    found = [next((way[:count] for count in range(1, len(way)) if way[:count] not in kept), way) for way in dropped]
    of_one = Counter(found)
    return [*dict.fromkeys(name if of_one[name] > 1 else way for way, name in zip(dropped, found, strict=True))]


def _ways(data: Any, above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the ways to all values of objects and of those in their lists."""
    if isinstance(data, list):
        for part in data[:_MOST_TRIED]:
            yield from _ways(part, above)
    elif isinstance(data, dict):
        for key, value in data.items():
            is_plain = value is not None and value != [] and not isinstance(value, dict) and _is_plain(value)
            yield from [(*above, key)] if is_plain else _ways(value, (*above, key))


def cell_of(value: Any) -> Any:
    """Return a value as a cell: nothing for an object, the only value of a list, or the text of all its values."""
    if isinstance(value, list) and value:
        return value[0] if len(value) == 1 else ", ".join(map(str, value))
    return None if isinstance(value, (dict, list)) or value == "" else value
