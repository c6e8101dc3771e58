"""Lines over time whose unfinished buckets are dotted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import pandas as pd
import plotly.graph_objects as go
from pandas import Series

from gamelens._scales import Scale
from gamelens.analysis.tidy_frames.columns import Column
from gamelens.notebook.figures.theme import theme

_MARKED_POINTS: Final = 45


def line_traces(
    points: Series[Any], name: str, colour: str | None, unit: Column, partial: set[pd.Timestamp]
) -> Iterator[go.Scatter]:
    """Yield the traces of one series: whole buckets as a line, unfinished ends dotted.

    Args:
        points: values by timestamp.
        name: escaped.
        colour: None draws a pale line without a name, in the background.
        unit: of the values.
        partial: the unfinished buckets. Lines to and from them are dotted.
    """
    known = points.notna()
    whole = points.where(~points.index.isin(list(partial)))
    is_named = colour is not None
    style: dict[str, Any] = {
        "x": points.index,
        "legendgroup": name,
        "line": {"color": colour or theme().pale, "width": 2.25 if is_named else 1},
        "marker": {"size": 5 if known.sum() > 1 else 9},
        "mode": "lines+markers" if is_named and known.sum() <= _MARKED_POINTS else "lines",
        "name": name,
    }
    hover = f"%{{y:{Scale.of(unit.written, points).d3}}}" if is_named else None
    yield go.Scatter(y=whole, showlegend=is_named, hovertemplate=hover, hoverinfo=None if hover else "skip", **style)
    cut = points.index.isin(list(partial))
    near = cut | Series(cut).shift(1, fill_value=False).to_numpy() | Series(cut).shift(-1, fill_value=False).to_numpy()
    if cut.any():
        style |= {"line": {**style["line"], "dash": "dot"}, "mode": "lines" if near.sum() > 1 else "markers"}
        yield go.Scatter(y=points.where(near), showlegend=False, hoverinfo="skip", **style)
