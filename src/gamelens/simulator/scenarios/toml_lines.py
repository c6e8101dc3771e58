"""The line of each key and value of a TOML file, which tomllib does not report.

The text must be one that tomllib has parsed, so the scanner does not validate it again.
"""

from __future__ import annotations

import re
from typing import Any, Final

Path = tuple[str | int, ...]

_BLANK: Final = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_STRING: Final = re.compile(r'"""(?:\\.|[^\\])*?"{3,5}|\'\'\'.*?\'{3,5}|"(?:\\.|[^"\\])*"|\'[^\']*\'', re.DOTALL)
_BARE_KEY: Final = re.compile(r"[A-Za-z0-9_-]+")
_BARE_VALUE: Final = re.compile(r"[^,\]}#\n]+")


def lines_of(text: str) -> dict[Path, int]:
    """Return the line, from 1, of each key and array element by its path.

    A path looks like `("studio", 0, "name")`.
    """
    scanner = _Scanner(text.replace("\r\n", "\n"))
    scanner.scan()
    return scanner.lines


class _Scanner:
    """A single pass over the text that records the line of each key and element."""

    def __init__(self, text: str) -> None:
        self.lines: dict[Path, int] = {}
        self._text, self._position = text, 0
        self._elements: dict[Path, int] = {}

    def scan(self) -> None:
        """Scan the whole text."""
        table: Path = ()
        while self._skip_blank():
            if self._text[self._position] == "[":
                table = self._header()
            else:
                self._key_value(table)

    def _header(self) -> Path:
        """Read a table header and return the path of the table."""
        is_element = self._text.startswith("[[", self._position)
        self._position += 2 if is_element else 1
        *above, last = self._key()
        path: Path = ()
        for key in above:
            path = self._latest_element((*path, key))
        path = (*path, last)
        if is_element:
            self._record_line(path)
            self._elements[path] = self._elements.get(path, -1) + 1
        path = self._latest_element(path)
        self._record_line(path)
        self._skip_blank()
        self._position += 2 if is_element else 1
        return path

    def _latest_element(self, path: Path) -> Path:
        """Return *path*, or the path of its last element if it is an array of tables."""
        return (*path, self._elements[path]) if path in self._elements else path

    def _key_value(self, table: Path) -> None:
        path = table
        for key in self._key():
            path = (*path, key)
            self._record_line(path)
        self._skip_blank()
        self._position += 1  # the =
        self._value(path)

    def _key(self) -> list[str]:
        """Read a dotted key and return its names."""
        keys = []
        while True:
            self._skip_blank()
            match = _STRING.match(self._text, self._position) or _BARE_KEY.match(self._text, self._position)
            if match is None:
                raise ValueError(f"no key at {self._position}")
            keys.append(match[0].strip("\"'"))
            self._position = match.end()
            self._skip_blank()
            if self._text[self._position] != ".":
                return keys
            self._position += 1

    def _value(self, path: Path) -> None:
        self._skip_blank()
        opening = self._text[self._position]
        if opening in "[{":
            self._position += 1
            self._members(path, is_array=opening == "[")
        elif match := _STRING.match(self._text, self._position) or _BARE_VALUE.match(self._text, self._position):
            self._position = match.end()

    def _members(self, path: Path, *, is_array: bool) -> None:
        """Read the members of an array or inline table up to its closing bracket."""
        index = 0
        while self._skip_blank() and self._text[self._position] not in "]}":
            if is_array:
                self._record_line((*path, index))
                self._value((*path, index))
                index += 1
            else:
                self._key_value(path)
            self._skip_blank()
            if self._text[self._position] == ",":
                self._position += 1
        self._position += 1

    def _record_line(self, path: Path) -> None:
        self.lines.setdefault(path, self._text.count("\n", 0, self._position) + 1)

    def _skip_blank(self) -> bool:
        """Advance to the next token and return whether there is one."""
        match: Any = _BLANK.match(self._text, self._position)
        self._position = match.end()
        return self._position < len(self._text)
