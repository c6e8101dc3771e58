"""Conclusions in words, computed from the data: numbers readable, names safe."""

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
    """A Markdown sentence with *values* filled in.

    `{revenue:money}`, `{rate:share}`, `{players:count}`, `{ads:number}`, `{change:change}` (signed percent) and
    `{start:day}` are written as people read them; `{name}` is text from outside and escaped; a null is `(unknown)`. A
    list of names is joined with commas.
    """
    from IPython.display import Markdown

    return Markdown(  # type: ignore[no-untyped-call]
        _Readable().vformat(sentence, (), values)
    )


class _Readable(Formatter):
    def format_field(self, value: Any, format_spec: str) -> str:
        if format_spec in _KINDS:
            return _dollars(format_number(value, _KINDS[format_spec]))
        if format_spec == "change":
            return format_number(value, "change")
        if format_spec == "day":
            return "n/a" if pd.isna(value) else day(value)
        names = value if isinstance(value, Iterable) and not isinstance(value, str) else [value]
        return ", ".join(_dollars(text_of(name)) for name in names)


def _dollars(text: str) -> str:
    """Two dollar signs in a paragraph are a formula to MathJax, unless a tag stands around them."""
    return text.replace("&#36;", "$").replace("$", "<span>&#36;</span>")
