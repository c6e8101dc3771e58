"""Labels for people: shortened names, and buckets."""

from __future__ import annotations

from datetime import datetime
from textwrap import wrap
from typing import Final

from gamelens.notebook.escaping import escape
from gamelens.receipt_text import day_text

_ROW_LETTERS: Final = 36


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
