"""What an analyst picks from in a notebook: the explorer, the health board, a live view of the sandbox.

Each is made of plain ipywidgets, so it works in JupyterLab, Notebook 7 and Voila, fetches nothing, and has a static
twin (`static()`) for where no kernel runs. They ask in the background, survive a service that is gone, and show texts
from outside as text. Open `explorer` first; `latest` is how they ask, `panes` what they show.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from gamelens.client.base_client import BaseClient
from gamelens.errors import BadQuery
from gamelens.notebook.widgets.explorer import explorer
from gamelens.notebook.widgets.live_view import live

if TYPE_CHECKING:
    from gamelens.client.tables.time_ranges import TimeRange
    from gamelens.notebook.widgets.health_board import HealthBoard

__all__ = ["explorer", "health_board", "live"]


def health_board(
    lens: BaseClient,
    *,
    over: TimeRange = "last 56 complete days",
    games: Sequence[str] | None = None,
    metrics: Iterable[str] | None = None,
    days: int = 1,
) -> HealthBoard:
    """Every game and number, the worst first; a click shows the days of a row and the segments behind it.

    The keywords are those of `gamelens.notebook.health_check.watch`: what is looked at, and how many of its last *days*
    are judged.

    Raises:
        BadQuery: *lens* is no client.
    """
    from gamelens.notebook.widgets.health_board import HealthBoard

    if not isinstance(lens, BaseClient):
        raise BadQuery("lens", type(lens).__name__, "must be a client: gl.connect() gives one")
    return HealthBoard(lens, over=over, games=games, metrics=metrics and tuple(metrics), days=days)
