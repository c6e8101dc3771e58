"""Narrow figures: the same figure laid out again for a screen as wide as a phone.

Titles and source lines break sooner, a legend has as many rows as it needs, and panels stand below each other.
"""

from __future__ import annotations

import html
import re
from collections.abc import Mapping
from copy import deepcopy
from textwrap import wrap
from typing import Any, Final

from gamelens.notebook.labels import shorten

NARROW: Final = 358
_HEIGHT: Final = 330
_TITLE_LETTERS: Final = 34
_WORDS_LETTERS: Final = 50
_SOURCE_LETTERS: Final = 42
_MARK_LETTERS: Final = 15
_LINE_PX: Final = 21
_LEGEND_PX: Final = 19
_SOURCE_PX: Final = 14
_PANEL_PX: Final = 96
_PANEL_GAP_PX: Final = 58
_LABEL_LETTERS: Final = 17
_MOST_TICKS: Final = 8
_MOST_CELLS: Final = 8
_LABEL_PX: Final = 13
_LABEL_GAP_PX: Final = 5
_WIDE_HEIGHT: Final = 420
_MARGINS_PX: Final = 176
_ONE_DRAWING: Final = 2  # axes
_MARKUP: Final = re.compile(r"<[^>]+>")
_AXIS: Final = re.compile(r"[xy]axis\d*")


def narrow(figure: Mapping[str, Any]) -> dict[str, Any]:
    """Return *figure*, which is JSON, laid out for `NARROW` pixels."""
    data, layout = deepcopy(list(figure.get("data") or [])), deepcopy(dict(figure.get("layout") or {}))
    lines = _break_title(layout)
    sources = _break_source(layout)
    rows = _legend_rows(data, layout)
    axes = [name for name in layout if _AXIS.fullmatch(name)]
    panels = [name for name in axes if name.startswith("x") and "domain" in layout[name]]
    is_grid = len({tuple(layout[name]["domain"]) for name in panels}) > 1
    above = 40 + _LINE_PX * lines + _LEGEND_PX * rows
    below = 62 + _SOURCE_PX * sources
    inner = (_PANEL_PX + _PANEL_GAP_PX) * len(panels) - _PANEL_GAP_PX if is_grid else _inner_px(layout)
    if is_grid:
        _stack(layout, panels)
        above += 40
    for name in axes:
        _fit_axis(layout[name], is_grid)
        if name.startswith("y"):
            bottom, top = layout[name].get("domain") or (0, 1)
            inner = max(inner, round(_break_labels(layout[name]) / (top - bottom)))
        else:
            _thin_ticks(layout[name])
    _drop_cell_texts(data)
    for note in layout.get("annotations") or []:
        if note.get("xref", "x") == "x":  # beside a point, where there is room for one line
            note |= {"text": str(note.get("text") or "").partition("<br>")[0], "xanchor": "right"}
    layout |= {"width": NARROW, "height": above + inner + below, "autosize": False}
    beside = _break_marks(data)
    layout["margin"] = {**(layout.get("margin") or {}), "l": 4, "r": max(12, beside), "t": above, "b": below}
    layout["legend"] = {**(layout.get("legend") or {}), "font": {"size": 11}, "maxheight": 1}
    return {"data": data, "layout": layout}


def flat(figure: Mapping[str, Any], *, is_first: bool = False) -> dict[str, Any]:
    """Return *figure*, which is JSON, so low that it may fill the width of a printed page.

    Rows with names keep their height, and so do panels. The picture of a first screen is lower than others.
    """
    layout = deepcopy(dict(figure.get("layout") or {}))
    axes = [layout[name] for name in layout if _AXIS.fullmatch(name)]
    is_free = len(axes) <= _ONE_DRAWING
    has_names = any(axis.get("ticktext") or axis.get("type") == "category" for axis in axes)
    height = int(layout.get("height") or _WIDE_HEIGHT)
    share = 0.4 if is_free and not has_names else 0.0
    if is_first:
        is_low = any("<br>" in str(text) for axis in axes for text in axis.get("ticktext") or ())  # names of two lines
        share = 0.1 if is_low else 0.25 if has_names else 0.55 if is_free else 0.4
    if share:
        layout["height"] = height - max(0, round(share * (height - _MARGINS_PX)))
    return {"data": figure.get("data") or [], "layout": layout}


def _break_title(layout: dict[str, Any]) -> int:
    """Break the title for the narrow width. Returns the number of its lines."""
    title = layout.get("title") or {}
    text = title if isinstance(title, str) else str(title.get("text") or "")
    above, found, below = text.partition("<span")
    style, _, words = below.partition(">")
    top = _wrapped(above, _TITLE_LETTERS)
    under = _wrapped(words, _WORDS_LETTERS) if found else []
    start = "<br>".join(f"<b>{line}</b>" for line in top)
    span = f"<br><span{style.replace('13px', '12px')}>{'<br>'.join(under)}</span>" if under else ""
    given = {} if isinstance(title, str) else title
    layout["title"] = {
        **given,
        "text": start + span,
        "font": {**(given.get("font") or {}), "size": 16},
        "pad": {"l": 2, "t": 22},
    }
    return len(top) + len(under)


def _break_source(layout: dict[str, Any]) -> int:
    """Break the source line of a figure of ours. Returns the number of its lines."""
    lines = 1
    for note in layout.get("annotations") or []:
        if note.get("yshift") == -40:
            broken = _wrapped(str(note.get("text") or "").replace("<br>", " · "), _SOURCE_LETTERS)
            note |= {"text": "<br>".join(broken), "font": {**(note.get("font") or {}), "size": 10}}
            lines = max(1, len(broken))
    return lines


def _wrapped(markup: str, letters: int) -> list[str]:
    """Return the words of *markup* in lines of about *letters*, without its tags."""
    text = " ".join(html.unescape(_MARKUP.sub(" ", markup.replace("<br>", " "))).split())
    return [html.escape(line) for line in wrap(text, letters)]


def _legend_rows(data: list[dict[str, Any]], layout: Mapping[str, Any]) -> int:
    """Return the number of rows that plotly breaks the legend into."""
    names = [str(trace["name"]) for trace in data if trace.get("name") and trace.get("showlegend") is not False]
    if layout.get("showlegend") is False or (len(names) < 2 and not layout.get("showlegend")):
        return 0
    widest = max((48 + 6.2 * len(html.unescape(name)) for name in names), default=0.0)
    return -(-len(names) // max(1, int((NARROW - 16) // widest)))


def _inner_px(layout: Mapping[str, Any]) -> int:
    """Return the height of the drawing: as in the wide figure, within limits."""
    margin = layout.get("margin") or {}
    wide = int(layout.get("height") or 420) - int(margin.get("t", 104)) - int(margin.get("b", 72))
    return max(_HEIGHT - 120, min(wide, 900))


def _stack(layout: dict[str, Any], panels: list[str]) -> None:
    """Place the panels below each other, the first on top."""
    step = _PANEL_PX + _PANEL_GAP_PX
    inner = step * len(panels) - _PANEL_GAP_PX
    for place, name in enumerate(panels):
        top = 1 - place * step / inner
        layout[name] |= {"domain": [0, 1], "showticklabels": True}
        layout[name.replace("x", "y", 1)] |= {"domain": [max(0.0, top - _PANEL_PX / inner), top]}


def _fit_axis(axis: dict[str, Any], is_grid: bool) -> None:
    """Set smaller texts and fewer ticks."""
    axis["tickfont"] = {**(axis.get("tickfont") or {}), "size": 10}
    axis["nticks"] = min(int(axis.get("nticks") or 5), 4 if is_grid else 5)
    title = axis.get("title")
    if isinstance(title, dict):
        axis["title"] = {**title, "font": {**(title.get("font") or {}), "size": 10}}


def _thin_ticks(axis: dict[str, Any]) -> None:
    """Remove ticks whose texts would touch, keeping the rightmost."""
    places, texts = list(axis.get("tickvals") or ()), list(axis.get("ticktext") or ())
    if not places or len(places) != len(texts) or not all(isinstance(place, int | float) for place in places):
        return
    least = (max(places) - min(places)) / _MOST_TICKS
    kept: list[int] = []
    for number in sorted(range(len(places)), key=lambda number: -places[number]):
        if not kept or places[kept[-1]] - places[number] >= least:
            kept.append(number)
    axis |= {
        "tickvals": [places[number] for number in kept[::-1]],
        "ticktext": [texts[number] for number in kept[::-1]],
    }


def _drop_cell_texts(data: list[dict[str, Any]]) -> None:
    """Remove the texts of heatmaps whose cells are too narrow for them; the colours show the values."""
    for trace in data:
        if trace.get("type") == "heatmap" and len(trace.get("x") or ()) > _MOST_CELLS:
            trace.pop("texttemplate", None)


def _break_labels(axis: dict[str, Any]) -> int:
    """Break the names beside an axis into short lines. Returns the height that keeps them apart."""
    if not axis.get("ticktext"):
        return 0
    texts = [html.unescape(_MARKUP.sub(" ", str(text))) for text in axis["ticktext"]]
    labels = [_wrapped(html.escape(shorten(text, 3 * _LABEL_LETTERS)), _LABEL_LETTERS) for text in texts]
    axis["ticktext"] = ["<br>".join(lines) for lines in labels]
    return len(labels) * (_LABEL_PX * max(map(len, labels)) + _LABEL_GAP_PX)


def _break_marks(data: list[dict[str, Any]]) -> int:
    """Break the texts beside marks. Returns the width that the longest of them takes."""
    widest = 0
    for trace in data:
        texts = trace.get("text")
        if "text" in str(trace.get("mode") or "") and isinstance(texts, (list, tuple)):
            firsts = [str(text or "").partition("<br>")[0] for text in texts]  # without the interval below
            trace |= {"text": firsts, "textfont": {**(trace.get("textfont") or {}), "size": 9}}
            widest = max([widest, *(len(html.unescape(text)) // 2 for text in firsts)])
        if trace.get("orientation") == "h" and isinstance(texts, (list, tuple)):
            lines = [_wrapped(str(text or ""), _MARK_LETTERS) for text in texts]
            trace |= {"text": ["<br>".join(words) for words in lines], "textfont": {"size": 10}}
            widest = max([widest, *(len(line) for words in lines for line in words)])
    return 8 + 6 * widest if widest else 0
