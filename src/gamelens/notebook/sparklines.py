"""Sparklines: the course of a number as a line of the height of a word, as SVG, in words and in block characters."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Final

from gamelens._text import counted
from gamelens.notebook.escaping import escape

_WIDTH: Final = 124
_HEIGHT: Final = 26
_MARGIN: Final = 3
_FEWEST: Final = 3
"""Two points are a change, which stands beside them in words."""
_LEVELS: Final = "▁▂▃▄▅▆▇█"


def sparkline(values: Sequence[float], label: str) -> str:
    """Return *values* as a line from left to right, empty for fewer than three known ones.

    The line is interrupted where a value is missing, and ends in a point at the last known one. Its lowest value is at
    the bottom, so it shows the shape and not the size.

    Args:
        values: the oldest first, NaN where one is unknown.
        label: what it shows, plain text: the text alternative.
    """
    if not has_sparkline(values):
        return ""
    known = [value for value in values if math.isfinite(value)]
    low, high = min(known), max(known)
    across = (_WIDTH - 2 * _MARGIN) / (len(values) - 1)
    up = (_HEIGHT - 2 * _MARGIN) / (high - low) if high > low else 0.0
    middle = 0.0 if high > low else _HEIGHT / 2 - _MARGIN
    points = [
        (_MARGIN + place * across, _HEIGHT - _MARGIN - middle - (value - low) * up) if math.isfinite(value) else None
        for place, value in enumerate(values)
    ]
    runs = (list(run) for is_known, run in groupby(points, key=lambda point: point is not None) if is_known)
    path = "".join(
        "M" + "L".join(f"{point[0]:.1f},{point[1]:.1f}" for point in run if point is not None) for run in runs
    )
    x, y = next(point for point in reversed(points) if point is not None)
    return (
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" height="{_HEIGHT}" role="img" '
        f'aria-label="{escape(label)}" focusable="false"><path d="{path}" fill="none" stroke="currentColor" '
        f'style="stroke-width:1.5;stroke-linejoin:round"/><circle cx="{x:.1f}" cy="{y:.1f}" r="2.4" '
        'fill="currentColor"/></svg>'
    )


def has_sparkline(values: Sequence[float]) -> bool:
    """Return whether *values* have a course to draw: three known ones at least."""
    return sum(map(math.isfinite, values)) >= _FEWEST


def sparkline_text(values: Sequence[float]) -> str:
    """Return *values* as block characters, a blank where one is unknown, empty for fewer than three known ones."""
    if not has_sparkline(values):
        return ""
    known = [value for value in values if math.isfinite(value)]
    low, high = min(known), max(known)
    step = (len(_LEVELS) - 1) / (high - low) if high > low else 0.0
    return "".join(_LEVELS[round((value - low) * step)] if math.isfinite(value) else " " for value in values)


def sparkline_in_words(values: Sequence[float], every: str, written: Callable[[float], str]) -> str:
    """Return the course of *values* in words: the number of its buckets, the first, the last and the extremes.

    Args:
        values: the oldest first, NaN where one is unknown.
        every: the bucket.
        written: writes a number as text.
    """
    known = [value for value in values if math.isfinite(value)]
    if not known:
        return ""
    first, last, low, high = (written(value) for value in (known[0], known[-1], min(known), max(known)))
    return f"{counted(len(values), every)}: from {first} to {last}, lowest {low}, highest {high}"
