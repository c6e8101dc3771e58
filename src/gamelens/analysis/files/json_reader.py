"""Reader of JSON: flat objects, one a line or all in one array, are the rows of a table.

Objects within objects have no columns of their own; the refusal has the code that gives them some.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from gamelens.analysis.files.csv_reader import opened, unpacked, utf8
from gamelens.errors import BadQuery

_TOP_BYTES: Final = 1 << 12
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
        step = f"pd.json_normalize([json.loads(line) for line in {_reads(path)}.splitlines() if line.strip()])"
    elif isinstance(whole, list):
        rows, numbers = whole, [*range(1, len(whole) + 1)]
        if not rows or not all(isinstance(row, dict) for row in rows):
            read = f"json.loads({_reads(path)})"
            step = "where these are lists below one of names, import json, pathlib and pass "
            step += f"gl.read_table(pd.DataFrame({read}[1:], columns={read}[0]))"
            raise BadQuery(
                "other", path.name, f"is a JSON array of something else than objects, which are no rows: {step}"
            )
        inner = _list_within(rows[0])
        argument = f', record_path="{inner}"' if inner and all(_list_within(row) == inner for row in rows) else ""
        step = f"pd.json_normalize(json.loads({_reads(path)}){argument})"
    elif isinstance(whole, dict):
        rows, numbers = [whole], [1]
        inner = _list_within(whole)
        step = f"pd.json_normalize(json.loads({_reads(path)})" + (f'["{inner}"])' if inner else ")")
        if all(isinstance(value, list) for value in whole.values()) and not inner:  # a list for each column
            step = f"pd.DataFrame(json.loads({_reads(path)}))"
    else:
        raise BadQuery("other", path.name, "is JSON without objects, which would be its rows")
    if any(isinstance(value, (dict, list)) and value for row in rows for value in row.values()):
        raise _nested(path, step)
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


def _list_within(row: Mapping[str, Any]) -> str | None:
    """Return the only key of an object whose value is a list of objects: the rows of a wrapped answer."""
    names = [
        key
        for key, value in row.items()
        if isinstance(value, list) and value and all(isinstance(part, dict) for part in value)
    ]
    return names[0] if len(names) == 1 else None


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


def _nested(path: Path, step: str) -> BadQuery:
    modules = ["json", *(module for module in ("gzip", "pathlib", "zipfile") if f"{module}." in step)]
    rule = f"is JSON whose objects hold others, which have no columns: import {', '.join(modules)} "
    rule += f"and pass gl.read_table({step})"
    return BadQuery("other", path.name, rule)


def _cell(value: Any) -> Any:
    return None if isinstance(value, (dict, list)) or value == "" else value
