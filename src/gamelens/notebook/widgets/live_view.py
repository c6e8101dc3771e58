"""The live page of a sandbox, in a notebook: the same page as in a browser, in a frame."""

from __future__ import annotations

import html
from typing import Final

from gamelens.client.connection.control_api import ControlApi, ControlSummary, control_address
from gamelens.client.connection.event_loop import shared_loop
from gamelens.client.connection.transport import HttpBackend
from gamelens.errors import BadQuery, suggests_names
from gamelens.notebook.widgets import html_blocks
from gamelens.notebook.widgets.controls import Pane
from gamelens.notebook.widgets.html_blocks import error_text
from gamelens.notebook.widgets.static_view import StaticView, WidgetWithStaticView

HEIGHT: Final = 560
LEAST_HEIGHT: Final = 200


@suggests_names
class LiveView(WidgetWithStaticView):
    """A widget with the live page of a sandbox in a frame, and a link to it.

    The address holds the sandbox's token, so it is in the widget alone, and not in a saved notebook or a report.

    Args:
        console_url: as in `live`.
        height: of the frame, in pixels.
        pool: sends the requests of the static view instead of the network.
    """

    def __init__(self, console_url: str | None, *, height: int, pool: HttpBackend | None = None) -> None:
        address = control_address(console_url)
        self._control = ControlApi(console_url, pool=pool)
        self._page = Pane(_frame(f"{address.geturl().rstrip('/')}/", address.port or 80, height))
        super().__init__([self._page])

    def static(self) -> StaticView:
        """Return what the sandbox has received so far, in a sentence."""
        try:
            said = html_blocks.message(_totals(shared_loop().run(self._control.summary())))
        except Exception as error:  # a widget has no caller that could handle it
            said = html_blocks.message(error_text(error, then="Is the sandbox running?"), "wrong")
        return StaticView(said)

    def close(self) -> None:
        """Remove the widget from the page."""
        self._page.close()
        super().close()
        shared_loop().submit(self._control.aclose())


def live(console_url: str | None = None, *, height: int = HEIGHT) -> LiveView:
    """Return the live page of a sandbox as a widget: each event as it arrives, and each refused request with its cause.

    Args:
        console_url: address of the control API, as in the sandbox's ready file. None reads GAMELENS_CONSOLE_URL, which
            `gamelens lab` sets for its notebooks.
        height: of the frame, in pixels; 200 at least.

    Raises:
        BadQuery: there is no such address, or *height* is below 200.
    """
    if not (isinstance(height, int) and height >= LEAST_HEIGHT):
        raise BadQuery("height", height, f"must be a whole number of pixels, {LEAST_HEIGHT} or more")
    return LiveView(console_url, height=height)


def _frame(address: str, port: int, height: int) -> str:
    """Return the frame with the page, and below it a link and what to do where the frame stays empty."""
    shown = html.escape(address)
    return (
        f'<iframe src="{shown}" title="Live events of the sandbox" height="{height}" '
        'referrerpolicy="no-referrer"></iframe>'
        f'<div class="quiet"><a href="{shown}" target="_blank" rel="noopener noreferrer">Open the live page '
        "in a tab</a>, also where the frame stays empty: a sandbox shows its page only to a browser on its machine. If "
        "the notebook runs elsewhere, such as on a JupyterHub, first connect with "
        f"<code>ssh -L {port}:127.0.0.1:{port} MACHINE</code>.</div>"
    )


def _totals(summary: ControlSummary) -> str:
    reasons = summary.since_start.dated_by_arrival.items()
    listed = ", ".join(f"{events:,} with {reason}" for reason, events in reasons)
    dated = f" Dated by arrival since the start: {listed}." if listed else ""
    return (
        f"{summary.accepted:,} events accepted, {summary.rejected:,} rejected, {summary.duplicate:,} dropped because "
        f"they repeat an event_uuid; {summary.pending:,} not processed yet.{dated} "
        "The live page of the sandbox shows each of them."
    )
