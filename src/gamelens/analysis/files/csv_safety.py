"""Formula injection: texts that a spreadsheet would run, and the apostrophe that stops it.

A cell that begins with = + - @ (full-width or not, after spaces or not), a tab or a line end gets an apostrophe in
front (OWASP, CSV injection), and so does an empty text, which would look like a missing value. Apostrophes in front of
such a text get one more, so that `unguarded` removes exactly what `guarded` added.
"""

from __future__ import annotations

from typing import Any, Final

import pyarrow.compute as pc

_TRIGGER: Final = r"'*(?:\s*[=+\-@＝＋－＠]|[\t\r\n]|$)"


def guarded(texts: Any) -> Any:
    """Return an Arrow array of *texts* that no spreadsheet runs as formulas. Nulls stay."""
    return pc.replace_substring_regex(texts, pattern=f"^({_TRIGGER})", replacement=r"'\1", max_replacements=1)


def unguarded(texts: Any) -> Any:
    """Return *texts* as they were before `guarded`.

    An apostrophe that protects nothing stays.
    """
    return pc.replace_substring_regex(texts, pattern=f"^'({_TRIGGER})", replacement=r"\1", max_replacements=1)
