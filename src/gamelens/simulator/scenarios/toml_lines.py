"""On which line of a TOML file each key and value stands: tomllib tells of syntax errors only.

The text is one that tomllib has read without complaint, so nothing here checks it again.
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
    """The line, from 1, of each key and array element of *text*, by its path: `("studio", 0, "name")`."""
    scanner = _Scanner(text.replace("\r\n", "\n"))
    scanner.scan()
    return scanner.lines


class _Scanner:
    def __init__(self, text: str) -> None:
        self.lines: dict[Path, int] = {}
        self._text, self._at = text, 0
        self._elements: dict[Path, int] = {}

    def scan(self) -> None:
        table: Path = ()
        while self._skip_blank():
            if self._text[self._at] == "[":
                table = self._header()
            else:
                self._pair(table)

    def _header(self) -> Path:
        is_element = self._text.startswith("[[", self._at)
        self._at += 2 if is_element else 1
        *above, last = self._key()
        path: Path = ()
        for part in above:
            path = self._newest((*path, part))
        path = (*path, last)
        if is_element:
            self._note(path)
            self._elements[path] = self._elements.get(path, -1) + 1
        path = self._newest(path)
        self._note(path)
        self._skip_blank()
        self._at += 2 if is_element else 1
        return path

    def _newest(self, path: Path) -> Path:
        """*path*, or its last element where it is an array of tables."""
        return (*path, self._elements[path]) if path in self._elements else path

    def _pair(self, table: Path) -> None:
        path = table
        for part in self._key():
            path = (*path, part)
            self._note(path)
        self._skip_blank()
        self._at += 1  # the =
        self._value(path)

    def _key(self) -> list[str]:
        parts = []
        while True:
            self._skip_blank()
            found = _STRING.match(self._text, self._at) or _BARE_KEY.match(self._text, self._at)
            if found is None:
                raise ValueError(f"no key at {self._at}")
            parts.append(found[0].strip("\"'"))
            self._at = found.end()
            self._skip_blank()
            if self._text[self._at] != ".":
                return parts
            self._at += 1

    def _value(self, path: Path) -> None:
        self._skip_blank()
        opening = self._text[self._at]
        if opening in "[{":
            self._at += 1
            self._members(path, is_array=opening == "[")
        elif found := _STRING.match(self._text, self._at) or _BARE_VALUE.match(self._text, self._at):
            self._at = found.end()

    def _members(self, path: Path, *, is_array: bool) -> None:
        index = 0
        while self._skip_blank() and self._text[self._at] not in "]}":
            if is_array:
                self._note((*path, index))
                self._value((*path, index))
                index += 1
            else:
                self._pair(path)
            self._skip_blank()
            if self._text[self._at] == ",":
                self._at += 1
        self._at += 1

    def _note(self, path: Path) -> None:
        self.lines.setdefault(path, self._text.count("\n", 0, self._at) + 1)

    def _skip_blank(self) -> bool:
        """Go to the next token; whether there is one."""
        found: Any = _BLANK.match(self._text, self._at)
        self._at = found.end()
        return self._at < len(self._text)
