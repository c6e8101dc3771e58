"""Sparklines: the course of a number as a line of the height of a word, as SVG with its text alternative."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import groupby
from typing import Final

from gamelens.notebook.escaping import escape

_WIDTH: Final = 124
_HEIGHT: Final = 26
_MARGIN: Final = 3
_FEWEST: Final = 3
"""Two points are a change, which stands beside them in words."""


def sparkline(values: Sequence[float], label: str) -> str:
    """Return *values* as a line from left to right, empty for fewer than three known ones.

    The line is interrupted where a value is missing, and ends in a point at the last known one. Its lowest value is at
    the bottom, so it shows the shape and not the size.

    Args:
        values: the oldest first, NaN where one is unknown.
        label: what it shows, plain text: the text alternative.
    """
    known = [value for value in values if math.isfinite(value)]
    if len(known) < _FEWEST:
        return ""
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
