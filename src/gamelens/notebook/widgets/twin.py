"""Widgets where nothing can be picked: the same as an ordinary table and figure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import ipywidgets

from gamelens.notebook.widgets.panes import STYLE, figure_data

if TYPE_CHECKING:
    from plotly.graph_objects import Figure


@dataclass(frozen=True)
class Twin:
    """What a widget shows, standing still: *html* (table, code, messages) and a figure.

    At the end of a cell it is two ordinary outputs, so that reports, nbconvert and GitHub show what they can.
    """

    html: str
    figure: Figure | None = None

    def _repr_html_(self) -> str:
        return STYLE + self.html

    def _ipython_display_(self) -> None:
        from IPython.display import display

        display({"text/html": self._repr_html_(), "text/plain": repr(self)}, raw=True)  # type: ignore[no-untyped-call]
        if self.figure is not None:
            display({**figure_data(self.figure), "text/plain": "a figure"}, raw=True)  # type: ignore[no-untyped-call]

    def __repr__(self) -> str:
        return f"<what a widget shows{', with a figure' if self.figure is not None else ''}>"


class Twinned(ipywidgets.VBox):  # type: ignore[misc]
    """A widget that has a static twin, and brings it along wherever it is shown.

    The bundle of a widget's cell holds `text/html` and plotly's own type beside the widget's view. A front end takes
    the view, which it prefers; what has no kernel, such as a report, takes the other two.
    """

    def static(self) -> Twin:
        """The widget as an ordinary table and figure, once the answer it waits for is there."""
        raise NotImplementedError

    def _repr_mimebundle_(self, **options: Any) -> dict[str, Any]:
        bundle: dict[str, Any] = super()._repr_mimebundle_(**options)
        twin = self.static()
        figure = figure_data(twin.figure) if twin.figure is not None else {}
        return {**bundle, "text/plain": repr(twin), "text/html": twin._repr_html_(), **figure}
