"""A live view of a sandbox: how much it accepts and rejects for each game, and what came last."""

from __future__ import annotations

import asyncio
import time
from concurrent.futures import Future
from datetime import UTC, datetime
from typing import Any, Final

import ipywidgets
from pandas import DataFrame

from gamelens.client.connection.control_api import ControlApi, ControlSummary, ReceivedEvent
from gamelens.client.connection.event_loop import shared_loop
from gamelens.errors import BadQuery
from gamelens.notebook.widgets import html_blocks
from gamelens.notebook.widgets.html_blocks import error_text
from gamelens.notebook.widgets.static_view import StaticView, WidgetWithStaticView

LEAST_S: Final = 1.0
LONGEST_S: Final = 3600.0  # a view that nobody looks at must not keep a sandbox awake
_NEWEST: Final = 15
_TELLING: Final = ("event_id", "progression", "ad_action", "message", "ad_network_name", "user_id")


class LiveView(WidgetWithStaticView):
    """Looks at a sandbox every *every_s* seconds between Start and Stop; `summary` and `newest` are what it saw last.

    It stops by itself when it is closed, and after an hour.
    """

    def __init__(self, console: ControlApi, *, every_s: float) -> None:
        self._console = console
        self._every_s = every_s
        self._future: Future[None] | None = None
        self.summary: ControlSummary | None = None
        self.newest: list[ReceivedEvent] = []
        self.looks = 0
        self.start_button = ipywidgets.Button(description="Start", icon="play")
        self.stop_button = ipywidgets.Button(description="Stop", icon="stop", disabled=True)
        self.start_button.on_click(lambda _: self.start())
        self.stop_button.on_click(lambda _: self.stop())
        self._status, self._counts, self._events = ipywidgets.HTML(), ipywidgets.HTML(), ipywidgets.HTML()
        buttons = ipywidgets.HBox([self.start_button, self.stop_button])
        panels = [self._status, self._counts, self._events]
        super().__init__([buttons, *panels])

    @property
    def is_running(self) -> bool:
        """True while it looks again and again."""
        return self._future is not None and not self._future.done()

    def start(self) -> None:
        """Look again and again, until `stop`."""
        if not self.is_running:
            self._show_running(True)
            self._future = shared_loop().submit(self._follow())

    def stop(self) -> None:
        """Look no more; what was seen stays."""
        if self._future is not None:
            self._future.cancel()
        self._show_running(False)

    def close(self) -> None:
        """Stop, and leave the page."""
        self.stop()
        super().close()
        shared_loop().submit(self._console.aclose())

    def static(self) -> StaticView:
        """Counts and newest events as they are now, as ordinary tables."""
        if not self.looks and not self.is_running and self.comm is not None:
            shared_loop().run(self._look())
        return StaticView("".join(each.value for each in (self._status, self._counts, self._events)))

    async def _follow(self) -> None:
        ends_at = time.monotonic() + LONGEST_S
        while self.comm is not None and time.monotonic() < ends_at:
            began = time.monotonic()
            await self._look()
            await asyncio.sleep(max(0.0, self._every_s - (time.monotonic() - began)))
        if self.comm is not None:
            self._show_running(False)
            self._status.value = html_blocks.message("Stopped after an hour: press Start to go on.")

    async def _look(self) -> None:
        try:
            summary, newest = await self._console.summary(), await self._console.events(limit=_NEWEST)
        except Exception as error:  # whatever it is, a widget has nobody to raise it to
            self._status.value = html_blocks.message(error_text(error, then="Is the sandbox running?"), "wrong")
            return
        finally:
            self.looks += 1
        self.summary, self.newest = summary, newest
        self._status.value = html_blocks.message(_totals(summary))
        self._counts.value = html_blocks.table(counts(summary))
        self._events.value = html_blocks.table(events(newest, summary), classes={"status": "status"})

    def _show_running(self, is_running: bool) -> None:
        self.start_button.disabled, self.stop_button.disabled = is_running, not is_running


def live(console_url: str | None = None, *, every_s: float = LEAST_S) -> LiveView:
    """A live view of the sandbox whose ready file names *console_url*; None reads GAMELENS_CONSOLE_URL.

    `gamelens lab` sets that variable for its notebooks. *every_s* is how often to look, once a second at most.

    Raises:
        BadQuery: no such address, or more than once a second.
    """
    if not every_s >= LEAST_S:
        raise BadQuery("every_s", every_s, f"must be {LEAST_S:g} or more")
    return LiveView(ControlApi(console_url), every_s=every_s)


def counts(summary: ControlSummary) -> DataFrame:
    """Events since the sandbox was started. Columns: game (str), accepted, rejected (Int64)."""
    games = summary.since_start.games.values()
    rows = {"game": [game.title for game in games], "accepted": [game.accepted for game in games]}
    rows |= {"rejected": [game.rejected for game in games]}
    return DataFrame(rows).astype({"accepted": "Int64", "rejected": "Int64"})


def events(newest: list[ReceivedEvent], summary: ControlSummary) -> DataFrame:
    """Events, newest first. Columns: arrived (UTC), game, category, what, status, why (str)."""
    titles = {key: game.title for key, game in summary.since_start.games.items()}
    rows = [
        {
            "arrived": f"{datetime.fromtimestamp(one.arrival_ts, UTC):%H:%M:%S}",
            "game": titles.get(one.game_key, ""),
            "category": _text(one.event, "category"),
            "what": next((text for name in _TELLING if (text := _text(one.event, name))), ""),
            "status": one.status,
            "why": ", ".join(f"{fault.path} {fault.error_type.replace('_', ' ')}" for fault in one.errors),
        }
        for one in newest
    ]
    return DataFrame(rows, columns=["arrived", "game", "category", "what", "status", "why"], dtype="str")


def _totals(summary: ControlSummary) -> str:
    return (
        f"{summary.accepted:,} events accepted, {summary.rejected:,} rejected, {summary.duplicate:,} sent twice; "
        f"{summary.pending:,} not processed yet. Below: since the sandbox was started."
    )


def _text(event: Any, name: str) -> str:
    """A field of an event, which may be anything; empty where it is not there."""
    value = event.get(name) if isinstance(event, dict) else None
    return "" if value is None else str(value)[:80]
