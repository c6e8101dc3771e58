"""A live view of a sandbox: counts of each game's events, the newest events, and refused requests with their cause."""

from __future__ import annotations

import asyncio
import time
from concurrent.futures import Future
from datetime import UTC, datetime
from typing import Any, Final

import ipywidgets
from pandas import DataFrame

from gamelens.client.connection.control_api import ControlApi, ControlSummary, ReceivedEvent, RefusedRequest
from gamelens.client.connection.event_loop import shared_loop
from gamelens.errors import BadQuery, suggests_names
from gamelens.notebook.widgets import html_blocks
from gamelens.notebook.widgets.html_blocks import error_text
from gamelens.notebook.widgets.static_view import StaticView, WidgetWithStaticView
from gamelens.wire.field_rules import Violation

LEAST_S: Final = 1.0
LONGEST_S: Final = 3600.0  # a forgotten view must not keep a sandbox awake
_NEWEST: Final = 15
_DETAIL_FIELDS: Final = ("event_id", "progression", "ad_action", "message", "ad_network_name", "user_id")


@suggests_names
class LiveView(WidgetWithStaticView):
    """A widget that reads a sandbox every *every_s* seconds between Start and Stop.

    It stops by itself when it is closed, and after an hour.

    Attributes:
        summary: the newest counts, or None.
        newest: the newest events.
        refused: the newest requests that were refused as a whole.
        refreshes: how often the sandbox was read.
        start_button: the button Start.
        stop_button: the button Stop.
    """

    def __init__(self, control: ControlApi, *, every_s: float) -> None:
        self._control = control
        self._every_s = every_s
        self._future: Future[None] | None = None
        self.summary: ControlSummary | None = None
        self.newest: list[ReceivedEvent] = []
        self.refused: list[RefusedRequest] = []
        self.refreshes = 0
        self.start_button = ipywidgets.Button(description="Start", icon="play")
        self.stop_button = ipywidgets.Button(description="Stop", icon="stop", disabled=True)
        self.start_button.on_click(lambda _: self.start())
        self.stop_button.on_click(lambda _: self.stop())
        self._status, self._counts, self._events = ipywidgets.HTML(), ipywidgets.HTML(), ipywidgets.HTML()
        self._refused = ipywidgets.HTML()
        buttons = ipywidgets.HBox([self.start_button, self.stop_button])
        panels = [self._status, self._counts, self._refused, self._events]
        super().__init__([buttons, *panels])

    @property
    def is_running(self) -> bool:
        """The state: True between start and stop."""
        return self._future is not None and not self._future.done()

    def start(self) -> None:
        """Read the sandbox again and again, until `stop`."""
        if not self.is_running:
            self._show_running(True)
            self._future = shared_loop().submit(self._follow())

    def stop(self) -> None:
        """Stop reading. Counts and events stay on the page."""
        if self._future is not None:
            self._future.cancel()
        self._show_running(False)

    def close(self) -> None:
        """Stop reading, and remove the widget from the page."""
        self.stop()
        super().close()
        shared_loop().submit(self._control.aclose())

    def static(self) -> StaticView:
        """Return counts and newest events as ordinary tables."""
        if not self.refreshes and not self.is_running and self.comm is not None:
            shared_loop().run(self._refresh())
        return StaticView("".join(each.value for each in (self._status, self._counts, self._refused, self._events)))

    async def _follow(self) -> None:
        """Refresh until the widget is closed or an hour has passed."""
        ends_at = time.monotonic() + LONGEST_S
        while self.comm is not None and time.monotonic() < ends_at:
            began = time.monotonic()
            await self._refresh()
            await asyncio.sleep(max(0.0, self._every_s - (time.monotonic() - began)))
        if self.comm is not None:
            self._show_running(False)
            self._status.value = html_blocks.message("Stopped after an hour: press Start to continue.")

    async def _refresh(self) -> None:
        """Read counts and events once, and show them or the error."""
        try:
            summary, newest = await self._control.summary(), await self._control.events(limit=_NEWEST)
            self.refused = (await self._control.refused())[:_NEWEST]
        except Exception as error:  # a widget has no caller that could handle it
            self._status.value = html_blocks.message(error_text(error, then="Is the sandbox running?"), "wrong")
            return
        finally:
            self.refreshes += 1
        self.summary, self.newest = summary, newest
        self._status.value = html_blocks.message(_totals(summary))
        self._counts.value = html_blocks.table(counts(summary))
        self._refused.value = html_blocks.table(refused(self.refused)) if self.refused else ""
        self._events.value = html_blocks.table(events(newest, summary), classes={"status": "status"})

    def _show_running(self, is_running: bool) -> None:
        self.start_button.disabled, self.stop_button.disabled = is_running, not is_running


def live(console_url: str | None = None, *, every_s: float = LEAST_S) -> LiveView:
    """Return a live view of a sandbox.

    Args:
        console_url: address of the control API, as in the sandbox's ready file. None reads GAMELENS_CONSOLE_URL, which
            `gamelens lab` sets for its notebooks.
        every_s: seconds between two refreshes, 1 at least.

    Raises:
        BadQuery: there is no such address, or *every_s* is below 1.
    """
    if not every_s >= LEAST_S:
        raise BadQuery("every_s", every_s, f"must be {LEAST_S:g} or more")
    return LiveView(ControlApi(console_url), every_s=every_s)


def counts(summary: ControlSummary) -> DataFrame:
    """Return the events of each game since the sandbox was started.

    Columns: game (str), accepted and rejected (Int64).
    """
    games = summary.since_start.games.values()
    rows = {"game": [game.title for game in games], "accepted": [game.accepted for game in games]}
    rows |= {"rejected": [game.rejected for game in games]}
    return DataFrame(rows).astype({"accepted": "Int64", "rejected": "Int64"})


def events(newest: list[ReceivedEvent], summary: ControlSummary) -> DataFrame:
    """Return the newest events as readable rows, the newest first.

    Columns, all str: arrived (UTC), game, category, what, status, why.
    """
    titles = {key: game.title for key, game in summary.since_start.games.items()}
    rows = [
        {
            "arrived": f"{datetime.fromtimestamp(event.arrival_ts, UTC):%H:%M:%S}",
            "game": titles.get(event.game_key, ""),
            "category": _text(event.event, "category"),
            "what": next((text for name in _DETAIL_FIELDS if (text := _text(event.event, name))), ""),
            "status": event.status,
            "why": "; ".join(
                filter(
                    None,
                    (
                        *event.remarks,
                        _reasons(event.errors),
                        _reasons(event.strict_errors, "the strict rules would refuse this: "),
                    ),
                )
            ),
        }
        for event in newest
    ]
    return DataFrame(rows, columns=["arrived", "game", "category", "what", "status", "why"], dtype="str")


def _reasons(violations: list[Violation], introduction: str = "") -> str:
    reasons = [f"{violation.path} {violation.error_type.replace('_', ' ')}" for violation in violations]
    return introduction + ", ".join(reasons) if reasons else ""


def refused(newest: list[RefusedRequest]) -> DataFrame:
    """Return requests that were refused as a whole as readable rows, the newest first.

    Columns, all str: arrived (UTC), refused, game, why.
    """
    rows = [
        {
            "arrived": f"{datetime.fromtimestamp(request.arrival_ts, UTC):%H:%M:%S}",
            "refused": f"{request.route} ({request.status})",
            "game": request.game or f"unknown key {request.game_key}",
            "why": request.cause,
        }
        for request in newest
    ]
    return DataFrame(rows, columns=["arrived", "refused", "game", "why"], dtype="str")


def _totals(summary: ControlSummary) -> str:
    reasons = summary.since_start.dated_by_arrival.items()
    listed = ", ".join(f"{events:,} with {reason}" for reason, events in reasons)
    dated = f" Dated by arrival since the start: {listed}." if listed else ""
    return (
        f"{summary.accepted:,} events accepted, {summary.rejected:,} rejected, {summary.duplicate:,} dropped because "
        "they repeat an event_uuid; "
        f"{summary.pending:,} not processed yet.{dated} Below: since the sandbox was started."
    )


def _text(event: Any, name: str) -> str:
    """Return a field of *event*, which may be any JSON value, as text. Empty if it is missing."""
    value = event.get(name) if isinstance(event, dict) else None
    return "" if value is None else str(value)[:80]
