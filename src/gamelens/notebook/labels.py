"""Labels for people: names made safe to show, and buckets.

Titles, networks and countries come from outside, and plotly, Markdown and HTML all interpret markup in them. Every
text that is shown passes through `escape`.
"""

from __future__ import annotations

import math
import re
from datetime import datetime
from textwrap import wrap
from typing import Final

import pandas as pd

from gamelens._text import one_line
from gamelens.analysis.tidy_frames import UNKNOWN
from gamelens.receipt_text import day_text

_MARKUP: Final = re.compile(r"[!-$&'*;-@\[-`{-~]|:(?=/)")
_ROW_LETTERS: Final = 36
_PLAIN: Final = str.maketrans("<>\"'`", "‹›”’’")


def escape(text: object) -> str:
    """Return *text* on one line, each character that is markup replaced by an HTML entity.

    Covers the markup of HTML, plotly, Markdown and TeX.
    """
    return _MARKUP.sub(lambda match: f"&#{ord(match[0])};", one_line(text))


def plain(text: object) -> str:
    """Return *text* on one line for a place without markup, such as an attribute.

    Its angle brackets and quotation marks are replaced by harmless characters that look like them.
    """
    return one_line(text).translate(_PLAIN).strip()


def shorten(text: str, longest: int = 36) -> str:
    """Return *text* with its middle left out where it is longer than *longest*.

    Package and class names differ at their end, so most of what is kept is the end.
    """
    head = longest // 4
    return text if len(text) <= longest else f"{text[:head]}…{text[head + 1 - longest :]}"


def row_label(name: str) -> str:
    """Return *name*, escaped, as the label of a row of a figure: on two lines if it is long, then shortened."""
    return "<br>".join(map(escape, wrap(shorten(name, 2 * _ROW_LETTERS), _ROW_LETTERS))) or escape(name)


def bucket_heading(every: str | None) -> str:
    """Return what the timestamps of a frame with the bucket *every* are: `Day`, `Week of`, `Month`, `Period from`."""
    return {"week": "Week of", "month": "Month", "all": "Period from"}.get(every or "", "Day")


def bucket_text(start: datetime, every: str | None) -> str:
    """Return the bucket *every* that begins at *start*: `Nov 2026` for a month, `20 Nov 2026` for others."""
    return f"{start:%b %Y}" if every == "month" else day_text(start)


def text_of(value: object) -> str:
    """Return a name from outside, escaped. A null becomes `(unknown)`."""
    is_null = value is None or value is pd.NA or (isinstance(value, float) and math.isnan(value))
    return escape(UNKNOWN if is_null else value)
