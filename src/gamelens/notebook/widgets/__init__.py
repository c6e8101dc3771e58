"""Widgets: the explorer, the health board and the live page of a sandbox.

Their parts are anywidgets (`controls`) in boxes of ipywidgets, which JupyterLab, Notebook 7, Voila, VS Code, Colab and
marimo take. They load nothing from the network.

They query in the background, keep working when the service fails, and show text from outside as text only. Never a
figure or a number of their own: those are `charts` and `investigations.health_check`. Each has a static view
(`static()`) for pages without a kernel. Open `explorer` first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gamelens.errors import no_such_name
from gamelens.notebook.widgets.explorer import explorer
from gamelens.notebook.widgets.health_board import health_board
from gamelens.notebook.widgets.live_view import live

__all__ = ["explorer", "health_board", "live"]


def __dir__() -> list[str]:
    return sorted(__all__)


if not TYPE_CHECKING:  # type checkers should find a name that does not exist
    __getattr__ = no_such_name(__name__, __all__)
