"""Names as safe, readable text. They come from outside and may hold anything."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from typing import Final

from gamelens._scales import NumberKind as NumberKind
from gamelens._scales import format_number as format_number

_BREAKS: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\s]+")
_INVISIBLE: Final = re.compile("[\u202a-\u202e\u2066-\u2069\ufeff\U000e0000-\U000e007f]")
_SURROGATES: Final = re.compile("[\ud800-\udfff]")
_MARKDOWN: Final = re.compile(r"[!#$&*<>@\[-`{-~]|:(?=/)|(?<=www)\.|^[-+=](?=\s)|(?<=^\d)[.)](?=\s)", re.IGNORECASE)
_CONTROL: Final = frozenset({"Cc", "Cs", "Zl", "Zp"})  # controls, surrogates, line and paragraph separators
_REORDERING: Final = frozenset({"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"})  # of the line's text


def is_terminal(stream: object) -> bool:
    """Return whether *stream*, such as `sys.stderr`, is a terminal. A service has none, a window one of its own."""
    try:
        return bool(stream.isatty())  # type: ignore[attr-defined]
    except (AttributeError, ValueError):  # there is none, it has no such method, or it is closed
        return False


def one_line(text: object) -> str:
    """Return *text* on one line, for display outside a terminal. Markup stays.

    Line breaks and control characters become a space. Characters that reorder a line or are invisible are removed.
    Surrogates, which UTF-8 cannot encode, become the replacement character.
    """
    return _BREAKS.sub(" ", _SURROGATES.sub("\ufffd", _INVISIBLE.sub("", str(text))))


def shortened(text: str, most: int) -> str:
    """Return *text*, cut to *most* characters with an ellipsis if it is longer."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def printable(text: str) -> str:
    """Return *text* with the replacement character for everything a terminal would interpret."""
    return text if text.isprintable() else "".join(map(_printable_letter, text))


def terminal_line(text: str) -> str:
    """Return *text* on one line, for a terminal."""
    return printable(" ".join(text.split()))


def escape_unprintable(text: str) -> str:
    """Return *text* with unprintable characters as Python escapes, for messages to developers."""
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in text)


def escape_markdown(text: object) -> str:
    """Return *text* on one line, with entities for characters that are markup.

    These are the characters that Markdown or HTML would read as markup at their place.
    """
    return _MARKDOWN.sub(lambda found: f"&#{ord(found[0])};", one_line(text))


def markdown_table(header: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    """Return a Markdown table, with every cell escaped."""
    header = list(header)
    lines = [[escape_markdown(name) for name in header], ["---"] * len(header)]
    lines += [[escape_markdown(cell) for cell in row] for row in rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def without_accents(text: str) -> str:
    """Return *text* as letters and signs of their plainest form, without accents (Unicode's NFKD)."""
    return "".join(part for part in unicodedata.normalize("NFKD", text) if not unicodedata.combining(part))


def counted(number: int, word: str) -> str:
    """Return *number* and *word*, in the plural unless it is 1: `1 day`, `1,200 days`."""
    return f"{number:,} {word}{'' if number == 1 else 's'}"


def _printable_letter(letter: str) -> str:
    is_obeyed = unicodedata.category(letter) in _CONTROL or unicodedata.bidirectional(letter) in _REORDERING
    return "\N{REPLACEMENT CHARACTER}" if is_obeyed else letter
