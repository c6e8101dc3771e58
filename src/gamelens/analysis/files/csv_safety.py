"""Cells of an exported file that no spreadsheet or terminal obeys, and the way back.

A cell that begins with = + - @ (full-width or not, after spaces or not), a tab or a line end gets an apostrophe in
front (OWASP, CSV injection), and so does an empty text, which would look like a missing value. Apostrophes in front of
such a text get one more. A control character, and one that reorders a line, is written as its number: `\\u{1b}`. Of a
text that reads so already, the backslashes are doubled. `unguarded` thereby undoes exactly what `guarded` did. Tabs and
line ends stay, as CSV has them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

_TRIGGER: Final = r"'*(?:\s*[=+\-@＝＋－＠]|[\t\r\n]|$)"
_OBEYED: Final = "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ufffe\uffff]"
_OBEYED_OR_NUMBER: Final = re.compile(rf"(\\*)(?:({_OBEYED})|(?<=\\)(u\{{[0-9a-f]+\}}))")
_NUMBER: Final = re.compile(r"(\\+)u\{([0-9a-f]{1,4})\}")


def guarded(texts: Any) -> Any:
    """Return an Arrow array of *texts* that nothing runs or obeys. Nulls stay."""
    return pc.replace_substring_regex(numbered(texts), pattern=f"^({_TRIGGER})", replacement=r"'\1", max_replacements=1)


def numbered(texts: Any) -> Any:
    """Return an Arrow array of *texts* with each control character as its number. Nulls stay."""
    return _changed(texts, lambda text: _OBEYED_OR_NUMBER.sub(_number_of, text))


def unguarded(texts: Any) -> Any:
    """Return *texts* as they were before `guarded`.

    An apostrophe that protects nothing stays.
    """
    texts = pc.replace_substring_regex(texts, pattern=f"^'({_TRIGGER})", replacement=r"\1", max_replacements=1)
    return _changed(texts, lambda text: _NUMBER.sub(_character_of, text))


def _number_of(match: re.Match[str]) -> str:
    backslashes, character, number = match.groups()
    return backslashes * 2 + (f"\\u{{{ord(character):x}}}" if character else number)


def _character_of(match: re.Match[str]) -> str:
    half, is_number = divmod(len(match[1]), 2)
    return "\\" * half + (chr(int(match[2], 16)) if is_number else f"u{{{match[2]}}}")


def _changed(texts: Any, change: Callable[[str], str]) -> Any:
    """Return *texts* with each one changed that may hold an obeyed character or its number."""
    is_suspect = pc.match_substring_regex(texts, pattern=rf"{_OBEYED}|\\u\{{")
    if not pc.any(is_suspect).as_py():
        return texts
    pairs = zip(texts.to_pylist(), is_suspect.to_pylist(), strict=True)
    return pa.array([change(text) if suspect else text for text, suspect in pairs], texts.type)
