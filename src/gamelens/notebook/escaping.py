"""Names made safe to show.

Titles, networks and countries come from outside, and plotly, Markdown and HTML all interpret markup in them. Every
text that is shown passes through `escape`.
"""

from __future__ import annotations

import math
import re
from typing import Final

import pandas as pd

from gamelens._text import one_line
from gamelens.analysis.tidy_frames import UNKNOWN

_MARKUP: Final = re.compile(r"[!-$&'*;-@\[-`{-~]|:(?=/)")
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


def text_of(value: object) -> str:
    """Return a name from outside, escaped. A null becomes `(unknown)`."""
    is_null = value is None or value is pd.NA or (isinstance(value, float) and math.isnan(value))
    return escape(UNKNOWN if is_null else value)


def escape_dollars(text: str) -> str:
    """Return *text* with each dollar sign in a tag of its own.

    MathJax would otherwise read the text between two dollar signs of a paragraph as a formula.
    """
    return text.replace("&#36;", "$").replace("$", "<span>&#36;</span>")
