"""What an analyst picks from in a notebook: the explorer, the health board, a live view of the sandbox.

Each is made of plain ipywidgets, so it works in JupyterLab, Notebook 7 and Voila, fetches nothing, and has a static
twin (`static()`) for where no kernel runs. They ask in the background, survive a service that is gone, and show texts
from outside as text. Open `explorer` first; `latest` is how they ask, `panes` what they show.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from gamelens.client.faces import Face
from gamelens.errors import BadQuery
from gamelens.notebook.widgets.explorer import explorer
from gamelens.notebook.widgets.live import live

if TYPE_CHECKING:
    from gamelens.client.spans import Over
    from gamelens.notebook.widgets.board import Board

__all__ = ["explorer", "health_board", "live"]


def health_board(
    lens: Face,
    *,
    over: Over = "last 56 complete days",
    games: Sequence[str] | None = None,
    metrics: Iterable[str] | None = None,
    days: int = 1,
) -> Board:
    """Every game and number, the worst first; a click shows the days of a row and the segments behind it.

    The keywords are those of `gamelens.notebook.health_board.watch`: what is looked at, and how many of its last *days*
    are judged.

    Raises:
        BadQuery: *lens* is no client.
    """
    from gamelens.notebook.widgets.board import Board

    if not isinstance(lens, Face):
        raise BadQuery("lens", type(lens).__name__, "must be a client: gl.connect() gives one")
    return Board(lens, over=over, games=games, metrics=metrics and tuple(metrics), days=days)
