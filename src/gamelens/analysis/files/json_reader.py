"""Reader of JSON: flat objects, one a line or all in one array, are the rows of a table.

Objects within objects have no columns of their own; the refusal has the code that gives them some.
"""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from gamelens.analysis.files.csv_reader import opened, unpacked, utf8
from gamelens.errors import BadQuery

_TOP_BYTES: Final = 1 << 12
_COMPACT_DAY: Final = re.compile(r"20\d\d(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])")
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
        step = f"pd.json_normalize({read}{(inner := _records_within(rows)).arguments})"
    elif isinstance(whole, list):
        rows, numbers = whole, [*range(1, len(whole) + 1)]
        if not rows or not all(isinstance(row, dict) for row in rows):
            read = f"json.loads({_reads(path)})"
            step = "where these are lists below one of names, import json, pathlib and pass "
            step += f"gl.read_table(pd.DataFrame({read}[1:], columns={read}[0]))"
            raise BadQuery(
                "other", path.name, f"is a JSON array of something else than objects, which are no rows: {step}"
            )
        step = f"pd.json_normalize(json.loads({_reads(path)}){(inner := _records_within(rows)).arguments})"
    elif isinstance(whole, dict):
        rows, numbers = [whole], [1]
        step = f"pd.json_normalize(json.loads({_reads(path)}){(inner := _records_within(rows)).arguments})"
        if all(isinstance(value, list) for value in whole.values()) and not inner.path:  # a list for each column
            step = f"pd.DataFrame(json.loads({_reads(path)}))"
    else:
        raise BadQuery("other", path.name, "is JSON without objects, which would be its rows")
    if any(isinstance(value, (dict, list)) and value for row in rows for value in row.values()):
        raise _nested(path, step, inner)
    return JsonRows([{key: _cell(value) for key, value in row.items()} for row in rows], numbers)


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
    """Where the rows of nested objects are: the path to their list, and of what stands once for several of them.

    *names* tell rows apart, such as their day; *numbers* are of all of them together.
    """

    path: list[str]
    names: list[list[str]]
    numbers: list[str]
    is_complete: bool = True
    is_distinct: bool = True

    @property
    def arguments(self) -> str:
        """What `pd.json_normalize` is told."""
        if not self.path:
            return ""
        told = f', record_path="{self.path[0]}"' if len(self.path) == 1 else f", record_path={self.path!r}"
        if self.names:
            told += f", meta={[name[0] if len(name) == 1 else name for name in self.names]!r}"
            told += "" if self.is_complete else ', errors="ignore"'
            told += "" if self.is_distinct else ', meta_prefix="outer "'
        return told


def _records_within(rows: list[dict[str, Any]]) -> _Records:
    """Return where the innermost rows are: the only list of objects that each object has, and the one in these."""
    path: list[str] = []
    names: dict[tuple[str, ...], int] = {}
    numbers: dict[str, None] = {}
    is_complete = True
    while rows:
        inside = [[*_inside(row)] for row in rows]
        lists = [[found for found in of_row if isinstance(found[1], list)] for of_row in inside]
        if any(len(found) != 1 for found in lists) or len({found[0][0] for found in lists}) != 1:
            break
        for key, value in (found for of_row in inside for found in of_row if not isinstance(found[1], list)):
            if _tells_apart(key[-1], value):
                names[*path, *key] = names.get((*path, *key), 0) + 1
            elif value is not None:
                numbers[".".join((*path, *key))] = None
        is_complete = is_complete and all(count == len(rows) for name, count in names.items() if name[:-1] == (*path,))
        path += lists[0][0][0]
        rows = [row for found in lists for row in found[0][1]]
    of_rows = {".".join(key) for row in rows for key, _ in _inside(row)}
    is_distinct = not of_rows & {".".join(name) for name in names}
    return _Records(path, [[*name] for name in names], [*numbers], is_complete, is_distinct)


def _inside(row: Mapping[str, Any], above: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield the path and the value of what an object and those within it hold: texts, numbers, lists of objects."""
    for key, value in row.items():
        if isinstance(value, dict):
            yield from _inside(value, (*above, key))
        elif not isinstance(value, list) or (value and all(isinstance(part, dict) for part in value)):
            yield (*above, key), value


def _tells_apart(key: str, value: Any) -> bool:
    """Return whether a value is a name or a day, and no number of all rows below it."""
    if isinstance(value, int) and not isinstance(value, bool):
        return key.casefold().endswith("id") or _COMPACT_DAY.fullmatch(str(value)) is not None
    return isinstance(value, (str, bool))


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


def _nested(path: Path, step: str, inner: _Records) -> BadQuery:
    modules = ["json", *(module for module in ("gzip", "pathlib", "zipfile") if f"{module}." in step)]
    rule = f"is JSON whose objects hold others, which have no columns: import {', '.join(modules)} "
    if inner.path and inner.numbers:
        listed = ", ".join(map(repr, inner.numbers))
        rule += f"(without {listed}, once for several rows, which meta= would repeat) "
    rule += f"and pass gl.read_table({step})"
    return BadQuery("other", path.name, rule)


def _cell(value: Any) -> Any:
    return None if isinstance(value, (dict, list)) or value == "" else value
