"""Conclusions in words, computed from the data, with readable numbers and escaped names."""

from __future__ import annotations

from collections.abc import Iterable
from string import Formatter
from typing import TYPE_CHECKING, Any, Final

import pandas as pd

from gamelens._text import format_number
from gamelens.notebook.labels import Kind, day, text_of

if TYPE_CHECKING:
    from IPython.display import Markdown

_KINDS: Final[dict[str, Kind]] = {"money": "money", "share": "share", "count": "count", "number": "number"}


def say(sentence: str, /, **values: Any) -> Markdown:
    """Return *sentence* as Markdown, with *values* filled in.

    The format after the colon says how a value is written: `{revenue:money}`, `{rate:share}`, `{players:count}`,
    `{ads:number}`, `{change:change}` (a percentage with its sign) and `{start:day}`. Without a format, `{name}` is text
    from outside: it is escaped, a null becomes `(unknown)`, and a list is joined with commas.
    """
    from IPython.display import Markdown

    return Markdown(  # type: ignore[no-untyped-call]
        _SentenceFormatter().vformat(sentence, (), values)
    )


class _SentenceFormatter(Formatter):
    """A `string.Formatter` with the formats of `say`."""

    def format_field(self, value: Any, format_spec: str) -> str:
        if format_spec in _KINDS:
            return _escape_dollars(format_number(value, _KINDS[format_spec]))
        if format_spec == "change":
            return format_number(value, "change")
        if format_spec == "day":
            return "n/a" if pd.isna(value) else day(value)
        names = value if isinstance(value, Iterable) and not isinstance(value, str) else [value]
        return ", ".join(_escape_dollars(text_of(name)) for name in names)


def _escape_dollars(text: str) -> str:
    """Return *text* with each dollar sign in a tag of its own.

    MathJax would otherwise read the text between two dollar signs of a paragraph as a formula.
    """
    return text.replace("&#36;", "$").replace("$", "<span>&#36;</span>")
