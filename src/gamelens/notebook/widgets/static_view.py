"""Widgets where nothing can be picked: the same as an ordinary table and figure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import ipywidgets

from gamelens.notebook.widgets.html_blocks import STYLE, figure_data

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

VIEW: Final = "application/vnd.jupyter.widget-view+json"
_GONE: Final = ""  # of a view that was removed, for which front ends show nothing


@dataclass(frozen=True)
class StaticView:
    """What a widget shows, standing still: *html* (table, code, messages) and a figure.

    At the end of a cell it is two ordinary outputs, so that reports, nbconvert and GitHub show what they can.
    """

    html: str
    figure: Figure | None = None

    def bundles(self) -> list[dict[str, Any]]:
        """The outputs, each by its types."""
        drawn = [{"text/plain": "a figure", **figure_data(self.figure)}] if self.figure is not None else []
        return [{"text/plain": repr(self), "text/html": self._repr_html_()}, *drawn]

    def _repr_html_(self) -> str:
        return f'{STYLE}<div class="gamelens-still">{self.html}</div>'

    def _ipython_display_(self) -> None:
        _display(self.bundles())

    def __repr__(self) -> str:
        return f"<what a widget shows{', with a figure' if self.figure is not None else ''}>"


class WidgetWithStaticView(ipywidgets.VBox):  # type: ignore[misc]
    """A widget that has a static twin, and brings it along wherever it is shown.

    Its cell has the outputs of the twin, each with a widget's view beside it: the widget's own, and one of nothing. A
    front end with a kernel prefers views; whatever has none, such as a report, takes the table and the figure.
    """

    def __init__(self, children: Sequence[Any]) -> None:
        super().__init__([ipywidgets.HTML(STYLE), *children])

    def static(self) -> StaticView:
        """The widget as an ordinary table and figure, once the answer it waits for is there."""
        raise NotImplementedError

    def bundles(self) -> list[dict[str, Any]]:
        """The outputs of a cell that shows it, each by its types."""
        outputs = self.static().bundles()
        return [{**output, **_view_of(model)} for output, model in zip(outputs, (self.model_id, _GONE), strict=False)]

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        return self.bundles()[0]

    def _ipython_display_(self) -> None:
        _display(self.bundles())


def _view_of(model_id: str) -> dict[str, Any]:
    return {VIEW: {"version_major": 2, "version_minor": 0, "model_id": model_id}}


def _display(bundles: list[dict[str, Any]]) -> None:
    from IPython.display import display

    for bundle in bundles:
        display(bundle, raw=True)  # type: ignore[no-untyped-call]
