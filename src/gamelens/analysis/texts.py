"""Text from outside on one line, as nobody can misread it; markup in it stays what it is."""

from __future__ import annotations

import re
from typing import Final

_BREAKS: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\s]+")
_TURNING: Final = re.compile("[\u202a-\u202e\u2066-\u2069\ufeff\U000e0000-\U000e007f]")
_HALVES: Final = re.compile("[\ud800-\udfff]")


def one_line(text: object) -> str:
    """*text* with a blank for breaks and what a terminal obeys, without letters that turn a line or are never seen.

    Halves of letters, which UTF-8 cannot say, become the replacement character.
    """
    return _BREAKS.sub(" ", _HALVES.sub("\ufffd", _TURNING.sub("", str(text))))
