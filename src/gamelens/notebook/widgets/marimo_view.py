"""A widget as marimo shows it: its boxes as stacks, its outputs as figures, and the parts as they are.

marimo knows anywidgets, and neither the boxes nor the outputs of ipywidgets.
"""

from __future__ import annotations

import json
import sys
from functools import cache
from pathlib import Path
from typing import Any

import anywidget
import ipywidgets
import traitlets
from plotly.offline import get_plotlyjs

from gamelens.notebook.widgets.html_blocks import FIGURE


def in_marimo(part: Any) -> Any:
    """Return *part* of a widget as an object of marimo, or as it is. Only marimo calls this, so it is imported."""
    marimo = sys.modules["marimo"]
    if isinstance(part, ipywidgets.Output):
        return FollowingFigure(part)
    if not isinstance(part, ipywidgets.Box):
        return part
    children = [in_marimo(child) for child in part.children]
    if isinstance(part, ipywidgets.VBox):
        return marimo.vstack(children, gap=0.25)
    return marimo.hstack(children, justify="start", align="start", wrap=True, gap=1)


class FollowingFigure(anywidget.AnyWidget):
    """The figure that *output* shows, now and later. plotly.js comes with it, so that nothing is loaded from elsewhere.

    plotly's own FigureWidget changes traces one by one, and fails where a figure is replaced before it is drawn.
    """

    value = traitlets.Unicode("null").tag(sync=True)

    def __init__(self, output: ipywidgets.Output) -> None:
        self._esm = _script()
        super().__init__()
        output.observe(lambda _: self._follow(output), "outputs")
        self._follow(output)

    def _follow(self, output: ipywidgets.Output) -> None:
        figures = [shown["data"][FIGURE] for shown in output.outputs]
        self.value = json.dumps(figures[0] if figures else None)


@cache
def _script() -> str:
    """Return plotly.js as a module, and what draws with it."""
    script = Path(__file__).with_name("page").joinpath("figure.js").read_text(encoding="utf-8")
    begin = "const module = {exports: {}}, exports = module.exports, define = undefined;"
    return f"{begin}\n{get_plotlyjs()}\n{script}"
