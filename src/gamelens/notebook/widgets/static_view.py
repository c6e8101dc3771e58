"""Static views: a widget as an ordinary table and figure, for pages without a kernel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import ipywidgets

from gamelens.errors import suggests_names
from gamelens.notebook.widgets.controls import STYLE
from gamelens.notebook.widgets.html_blocks import figure_data

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

VIEW: Final = "application/vnd.jupyter.widget-view+json"
_GONE: Final = ""  # id of a removed view, for which front ends show nothing


@suggests_names
@dataclass(frozen=True)
class StaticView:
    """The contents of a widget as *html* (table, code, messages) and a figure.

    At the end of a cell it makes two ordinary outputs, so that reports, nbconvert and GitHub can show it.
    """

    html: str
    figure: Figure | None = None

    def bundles(self) -> list[dict[str, Any]]:
        """Return the outputs, each as a MIME bundle."""
        drawn = [{"text/plain": "a figure", **figure_data(self.figure)}] if self.figure is not None else []
        return [{"text/plain": repr(self), "text/html": self._repr_html_()}, *drawn]

    def _repr_html_(self) -> str:
        return f'<style>{STYLE}</style><div class="gamelens-still">{self.html}</div>'

    def _ipython_display_(self) -> None:
        _display(self.bundles())

    def __repr__(self) -> str:
        return f"<what a widget shows{', with a figure' if self.figure is not None else ''}>"


class WidgetWithStaticView(ipywidgets.VBox):  # type: ignore[misc]
    """A widget whose cell output includes its static view.

    The cell has the outputs of the static view, each with a widget view beside it: the first is this widget, the second
    is empty. A front end with a kernel prefers widget views. Anything else, such as a report, shows table and figure.
    """

    def __init__(self, children: Sequence[Any]) -> None:
        super().__init__(children)
        self.add_class("gamelens-widget")

    def static(self) -> StaticView:
        """Return the widget as an ordinary table and figure, once the query under way is answered."""
        raise NotImplementedError

    def bundles(self) -> list[dict[str, Any]]:
        """Return the outputs of the cell that shows the widget, each as a MIME bundle."""
        outputs = self.static().bundles()
        return [{**output, **_view_of(model)} for output, model in zip(outputs, (self.model_id, _GONE), strict=False)]

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        return self.bundles()[0]

    def _ipython_display_(self) -> None:
        _display(self.bundles())

    def _display_(self) -> Any:
        """Return the widget as marimo shows it, which calls this and knows the parts, but neither boxes nor outputs."""
        from gamelens.notebook.widgets.marimo_view import in_marimo

        return in_marimo(self)


def _view_of(model_id: str) -> dict[str, Any]:
    return {VIEW: {"version_major": 2, "version_minor": 0, "model_id": model_id}}


def _display(bundles: list[dict[str, Any]]) -> None:
    from IPython.display import display

    for bundle in bundles:
        display(bundle, raw=True)  # type: ignore[no-untyped-call]
