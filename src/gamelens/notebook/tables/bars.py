"""Small bars beside the numbers of a column, as SVG or as block characters."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

_WIDTH: Final = 72
_HEIGHT: Final = 9
_BLOCKS: Final = 12
_PARTS: Final = " ▏▎▍▌▋▊▉█"


def svg_bars(values: Sequence[Any]) -> list[str]:
    """Return a bar for each of *values*, empty for one that is not a number. The style sheet of tables colours them.

    Bars start at zero and have one scale. Where some values are negative, zero lies within.
    """
    numbers = [_number(value) for value in values]
    low, high = min(0.0, *numbers), max(0.0, *numbers)
    scale = _WIDTH / (high - low) if high > low else 0.0
    bars = []
    for value, number in zip(values, numbers, strict=True):
        left, length = (min(0.0, number) - low) * scale, abs(number) * scale
        below = ' class="below"' if number < 0 else ""
        rectangle = f'<rect x="{left:.1f}" width="{length:.1f}" height="{_HEIGHT}"{below}/>'
        picture = f'<svg width="{_WIDTH}" height="{_HEIGHT}" aria-hidden="true">{rectangle}</svg>'
        bars.append(picture if _is_number(value) else "")
    return bars


def text_bars(values: Sequence[Any]) -> list[str]:
    """Return the length of each bar in block characters, padded to the same width."""
    numbers = [abs(_number(value)) for value in values]
    longest = max(numbers, default=0.0)
    bars = []
    for number in numbers:
        eighths = round(number / longest * _BLOCKS * 8) if longest else 0
        whole, rest = divmod(eighths, 8)
        bars.append(f"{_PARTS[-1] * whole}{_PARTS[rest] if rest else ''}".ljust(_BLOCKS))
    return bars


def _number(value: Any) -> float:
    return float(value) if _is_number(value) else 0.0


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)
