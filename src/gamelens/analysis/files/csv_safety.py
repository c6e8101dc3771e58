"""Text that a spreadsheet would run as a formula, and the apostrophe that stops it.

A cell that begins with = + - @ (full-width or not, after spaces or not), a tab or a line end gets an apostrophe in
front (OWASP, CSV injection), and so does an empty text, which would otherwise look like a missing value. Apostrophes
that stand before such a text get one more: what `guarded` puts on, `unguarded` takes off, and nothing else.
"""

from __future__ import annotations

from typing import Any, Final

import pyarrow.compute as pc

_TRIGGER: Final = r"'*(?:\s*[=+\-@＝＋－＠]|[\t\r\n]|$)"


def guarded(texts: Any) -> Any:
    """An Arrow array of *texts* that no spreadsheet runs; nulls stay."""
    return pc.replace_substring_regex(texts, pattern=f"^({_TRIGGER})", replacement=r"'\1", max_replacements=1)


def unguarded(texts: Any) -> Any:
    """*texts* as they were before `guarded`; an apostrophe that protects nothing stays."""
    return pc.replace_substring_regex(texts, pattern=f"^'({_TRIGGER})", replacement=r"\1", max_replacements=1)
