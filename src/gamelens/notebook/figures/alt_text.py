"""What a figure shows in words, for who does not see it: leaders, first and last values, computed from its data."""

from __future__ import annotations

import base64
import html
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

import numpy as np
from plotly.graph_objects import Figure

from gamelens._text import format_number
from gamelens.notebook.labels import Kind, day, plain

MOST_NAMED: Final = 5
_TAG: Final = re.compile(r"<[^>]*>")


class TraceSummary(NamedTuple):
    """One trace of a figure: its name, and its points that are known."""

    name: str
    points: list[tuple[Any, float]]

    @property
    def total(self) -> float:
        """What it is ranked by."""
        return sum(number for _, number in self.points)


def alt_text(figure: Figure | Mapping[str, Any]) -> str:
    """Return the contents of *figure*, a plotly figure or its JSON, as one line of plain text without any markup.

    A figure of another library has no text of its own; its traces are described.
    """
    if not isinstance(figure, Figure):
        figure = Figure({name: _decoded(figure.get(name) or {}) for name in ("data", "layout")}, skip_invalid=True)
    meta = figure.layout.meta
    if isinstance(meta, dict) and meta.get("alt"):
        return str(meta["alt"])
    try:
        told = describe_traces(figure)
    except (TypeError, ValueError, IndexError):  # places of several kinds, or rows of another shape than ours
        told = ""
    return sentences(_seen(figure.layout.title.text), told) or "A figure."


def sentences(*parts: str) -> str:
    """*parts*, but for empty ones, as plain sentences, each with an end."""
    told = [plain(part) for part in parts if part]
    return " ".join(part if part.endswith((".", "?", "!")) else f"{part}." for part in told)


def describe_traces(figure: Figure, kind: Kind = "number") -> str:
    """The traces of *figure* that have a name or stand alone, the largest first; empty when there is nothing."""
    sentences = (
        _of_lines(list(_lines(figure)), figure, kind),
        _of_bars(list(_bars(figure)), kind),
        *(_of_cells(trace) for trace in figure.data if trace.type == "heatmap"),
    )
    return " ".join(sentence for sentence in sentences if sentence)


def in_order(names: Sequence[str]) -> str:
    """The first few of *names*, and how many more there are."""
    return _joined(map(plain, names[:MOST_NAMED]), len(names))


def _of_lines(lines: list[TraceSummary], figure: Figure, kind: Kind) -> str:
    if not lines:
        return ""
    ends = sorted(moment for line in lines for moment in (line.points[0][0], line.points[-1][0]))
    ticks = _ticks(figure.layout.xaxis)
    first, last = (_place(ticks.get(moment, moment)) for moment in (ends[0], ends[-1]))
    span = f"from {first} to {last}" if first != last else f"on {first}"
    ranked = sorted(lines, key=lambda line: -line.total)
    told = [f"{line.name or 'it'} ends at {format_number(line.points[-1][1], kind)}" for line in ranked[:MOST_NAMED]]
    leader = f", {ranked[0].name} leads" if len(lines) > 1 else ""
    return f"{_counted(len(lines), 'line')} {span}{leader}: {_joined(told, len(lines))}."


def _of_bars(bars: list[TraceSummary], kind: Kind) -> str:
    pairs = [
        (f"{bar.name}, {_seen(where)}" if bar.name and len(bars) > 1 else _seen(where), number)
        for bar in bars
        for where, number in bar.points
    ]
    if not pairs:
        return ""
    told = [f"{name} {format_number(number, kind)}" for name, number in pairs[:MOST_NAMED]]
    return f"{_counted(len(pairs), 'bar')}: {_joined(told, len(pairs))}."


def _of_cells(trace: Any) -> str:
    rows = trace.y if trace.customdata is None else [names[0] for names in trace.customdata]
    cells = [
        (known, row, column)
        for row, numbers in zip(rows, trace.z, strict=False)
        for column, number in zip(trace.x, numbers, strict=False)
        if (known := _number(number)) is not None
    ]
    if not cells:
        return ""
    (most, *of_most), (least, *of_least) = max(cells, key=lambda it: it[0]), min(cells, key=lambda it: it[0])
    kind: Kind = "share" if "%" in (trace.hovertemplate or trace.colorbar.tickformat or "") else "number"
    first, last = _seen(cells[0][1]), _seen(cells[-1][1])
    span = f"from {first} to {last}" if first != last else f"of {first}"
    ends = [
        f"{word} {format_number(number, kind)} ({_seen(row)}, {_seen(column)})"
        for word, number, (row, column) in (("highest", most, of_most), ("lowest", least, of_least))
    ]
    return f"{_counted(len(cells), 'cell')} {span}: {' and '.join(ends)}."


def _lines(figure: Figure) -> Iterator[TraceSummary]:
    """Series with a name, or the only ones; of a name in several traces the points are put together."""
    drawn = [trace for trace in figure.data if trace.type in ("scatter", "scattergl") and trace.hoverinfo != "skip"]
    named = [trace for trace in drawn if trace.name] or drawn
    points: dict[str, dict[Any, float]] = {}
    for trace in named:
        points.setdefault(str(trace.legendgroup or trace.name), {}).update(_points(trace.x, trace.y))
    names = {str(trace.legendgroup or trace.name): _seen(trace.name) for trace in named}
    yield from (TraceSummary(names[key], sorted(found.items())) for key, found in points.items() if found)


def _bars(figure: Figure) -> Iterator[TraceSummary]:
    for trace in figure.data:
        if trace.type in ("bar", "waterfall", "funnel"):
            is_flat = trace.orientation == "h"
            places, numbers = (trace.y, trace.x) if is_flat else (trace.x, trace.y)
            points = list(_points(trace.hovertext if trace.hovertext is not None else places, numbers))
            yield TraceSummary(_seen(trace.name), points[::-1] if is_flat else points)


def _points(places: Any, numbers: Any) -> Iterator[tuple[Any, float]]:
    for where, number in zip(() if places is None else places, () if numbers is None else numbers, strict=False):
        if (known := _number(number)) is not None:
            yield where, known


def _number(value: Any) -> float | None:
    try:
        number = float(value)
    except (TypeError, ValueError):  # a missing value, or a category
        return None
    return number if math.isfinite(number) else None


def _ticks(axis: Any) -> dict[Any, str]:
    return dict(zip(axis.tickvals or (), axis.ticktext or (), strict=False))


def _decoded(part: Any) -> Any:
    """Return *part* of a figure's JSON with its arrays of numbers, which plotly writes in base64, as lists."""
    if isinstance(part, list):
        return [_decoded(member) for member in part]
    if not isinstance(part, Mapping):
        return part
    if {"bdata", "dtype"} <= part.keys():
        numbers = np.frombuffer(base64.b64decode(part["bdata"]), dtype=part["dtype"])
        shape = tuple(int(size) for size in str(part.get("shape") or len(numbers)).split(","))
        return numbers.reshape(shape).tolist()
    return {name: _decoded(member) for name, member in part.items()}


def _counted(many: int, what: str) -> str:
    return f"{many} {what}{'' if many == 1 else 's'}"


def _joined(told: Iterable[str], many: int) -> str:
    more = [f"and {many - MOST_NAMED} more"] if many > MOST_NAMED else []
    return ", ".join([*told, *more])


def _place(where: Any) -> str:
    return day(where) if isinstance(where, datetime) else _seen(where)


def _seen(text: Any) -> str:
    """What a reader of the figure's markup *text* sees, plain."""
    return plain(html.unescape(_TAG.sub(" ", str("" if text is None else text))))
