"""The alternative text of a figure, computed from its data: leaders and last values."""

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

from gamelens._scales import NumberKind, format_number
from gamelens.notebook.escaping import plain
from gamelens.notebook.labels import bucket_text

MOST_NAMED: Final = 5
_TAG: Final = re.compile(r"<[^>]*>")


class TraceSummary(NamedTuple):
    """One trace of a figure: its name, and its points without missing values."""

    name: str
    points: list[tuple[Any, float]]

    @property
    def total(self) -> float:
        """The sum of its values, by which traces are ranked."""
        return sum(number for _, number in self.points)


def alt_text(figure: Figure | Mapping[str, Any]) -> str:
    """Return the contents of a plotly figure, or of its JSON, as one line without markup.

    A figure made by `gamelens` carries its text in `layout.meta`. Of any other figure, title and traces are described.
    """
    if not isinstance(figure, Figure):
        figure = Figure({name: _decoded(figure.get(name) or {}) for name in ("data", "layout")}, skip_invalid=True)
    meta = figure.layout.meta
    if isinstance(meta, dict) and meta.get("alt"):
        return str(meta["alt"])
    try:
        traces = describe_traces(figure)
    except (TypeError, ValueError, IndexError):  # positions of several types, or rows of an unknown shape
        traces = ""
    return as_sentences(_visible_text(figure.layout.title.text), traces) or "A figure."


def title_of(figure: Mapping[str, Any]) -> str:
    """Return the title of a plotly figure's JSON without its subtitle and markup, or "Figure"."""
    title = (figure.get("layout") or {}).get("title") or {}
    text = str(title if isinstance(title, str) else title.get("text") or "")
    return _visible_text(text.partition("<span")[0]) or "Figure"


def as_sentences(*parts: str) -> str:
    """Return *parts* as plain sentences, each with a full stop, without the empty ones."""
    texts = [plain(part) for part in parts if part]
    return " ".join(text if text.endswith((".", "?", "!")) else f"{text}." for text in texts)


def describe_traces(figure: Figure, kind: NumberKind = "number", every: str | None = None) -> str:
    """Return the traces of *figure* in words, the largest first. Empty when it has none.

    Lines count if they have a name or are the only ones.

    Args:
        figure: a plotly figure.
        kind: how its numbers are written.
        every: the bucket of its times, if it is known.
    """
    descriptions = (
        _describe_lines(list(_lines(figure)), figure, kind, every),
        _describe_bars(list(_bars(figure)), kind),
        *(_describe_cells(trace) for trace in figure.data if trace.type == "heatmap"),
    )
    return " ".join(text for text in descriptions if text)


def short_list(names: Sequence[str]) -> str:
    """Return the first few of *names*, and how many more there are."""
    return _listed(map(plain, names[:MOST_NAMED]), len(names))


def _describe_lines(lines: list[TraceSummary], figure: Figure, kind: NumberKind, every: str | None) -> str:
    if not lines:
        return ""
    ends = sorted(moment for line in lines for moment in (line.points[0][0], line.points[-1][0]))
    ticks = _ticks(figure.layout.xaxis)
    first, last = (_position_text(ticks.get(moment, moment), every) for moment in (ends[0], ends[-1]))
    span = f"from {first} to {last}" if first != last else f"on {first}"
    ranked = sorted(lines, key=lambda line: -line.total)
    ends_at = [f"{line.name or 'it'} ends at {format_number(line.points[-1][1], kind)}" for line in ranked[:MOST_NAMED]]
    leader = f", {ranked[0].name} leads" if len(lines) > 1 else ""
    return f"{_with_count(len(lines), 'line')} {span}{leader}: {_listed(ends_at, len(lines))}."


def _describe_bars(bars: list[TraceSummary], kind: NumberKind) -> str:
    pairs = [
        (f"{bar.name}, {_visible_text(where)}" if bar.name and len(bars) > 1 else _visible_text(where), number)
        for bar in bars
        for where, number in bar.points
    ]
    if not pairs:
        return ""
    values = [f"{name} {format_number(number, kind)}" for name, number in pairs[:MOST_NAMED]]
    return f"{_with_count(len(pairs), 'bar')}: {_listed(values, len(pairs))}."


def _describe_cells(trace: Any) -> str:
    rows = trace.y if trace.customdata is None else [names[0] for names in trace.customdata]
    cells = [
        (value, row, column)
        for row, numbers in zip(rows, trace.z, strict=False)
        for column, number in zip(trace.x, numbers, strict=False)
        if (value := _number(number)) is not None
    ]
    if not cells:
        return ""
    (most, *of_most), (least, *of_least) = max(cells, key=_cell_value), min(cells, key=_cell_value)
    kind: NumberKind = "share" if "%" in (trace.hovertemplate or trace.colorbar.tickformat or "") else "number"
    first, last = _visible_text(cells[0][1]), _visible_text(cells[-1][1])
    span = f"from {first} to {last}" if first != last else f"of {first}"
    ends = [
        f"{word} {format_number(number, kind)} ({_visible_text(row)}, {_visible_text(column)})"
        for word, number, (row, column) in (("highest", most, of_most), ("lowest", least, of_least))
    ]
    return f"{_with_count(len(cells), 'cell')} {span}: {' and '.join(ends)}."


def _cell_value(cell: tuple[float, Any, Any]) -> float:
    return cell[0]


def _lines(figure: Figure) -> Iterator[TraceSummary]:
    """Yield the line series, the points of several traces of one name combined."""
    drawn = [trace for trace in figure.data if trace.type in ("scatter", "scattergl") and trace.hoverinfo != "skip"]
    named = [trace for trace in drawn if trace.name] or drawn
    points: dict[str, dict[Any, float]] = {}
    for trace in named:
        points.setdefault(str(trace.legendgroup or trace.name), {}).update(_points(trace.x, trace.y))
    names = {str(trace.legendgroup or trace.name): _visible_text(trace.name) for trace in named}
    yield from (TraceSummary(names[key], sorted(series.items())) for key, series in points.items() if series)


def _bars(figure: Figure) -> Iterator[TraceSummary]:
    for trace in figure.data:
        if trace.type in ("bar", "waterfall", "funnel"):
            is_flat = trace.orientation == "h"
            places, numbers = (trace.y, trace.x) if is_flat else (trace.x, trace.y)
            points = list(_points(trace.hovertext if trace.hovertext is not None else places, numbers))
            yield TraceSummary(_visible_text(trace.name), points[::-1] if is_flat else points)


def _points(places: Any, numbers: Any) -> Iterator[tuple[Any, float]]:
    for where, number in zip(() if places is None else places, () if numbers is None else numbers, strict=False):
        if (value := _number(number)) is not None:
            yield where, value


def _number(value: Any) -> float | None:
    try:
        number = float(value)
    except (TypeError, ValueError):  # a missing value, or a category
        return None
    return number if math.isfinite(number) else None


def _ticks(axis: Any) -> dict[Any, str]:
    return dict(zip(axis.tickvals or (), axis.ticktext or (), strict=False))


def _decoded(part: Any) -> Any:
    """Return *part* of a figure's JSON with its arrays as lists: plotly writes them in base64."""
    if isinstance(part, list):
        return [_decoded(member) for member in part]
    if not isinstance(part, Mapping):
        return part
    if {"bdata", "dtype"} <= part.keys():
        numbers = np.frombuffer(base64.b64decode(part["bdata"]), dtype=part["dtype"])
        shape = tuple(int(size) for size in str(part.get("shape") or len(numbers)).split(","))
        return numbers.reshape(shape).tolist()
    return {name: _decoded(member) for name, member in part.items()}


def _with_count(many: int, what: str) -> str:
    return f"{many} {what}{'' if many == 1 else 's'}"


def _listed(items: Iterable[str], many: int) -> str:
    more = [f"and {many - MOST_NAMED} more"] if many > MOST_NAMED else []
    return ", ".join([*items, *more])


def _position_text(where: Any, every: str | None) -> str:
    return bucket_text(where, every) if isinstance(where, datetime) else _visible_text(where)


def _visible_text(text: Any) -> str:
    """Return *text* without its markup, as a reader sees it."""
    return plain(html.unescape(_TAG.sub(" ", str("" if text is None else text))))
