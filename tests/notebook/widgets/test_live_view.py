"""The live view: polls a sandbox between start and stop, and never after close."""

from __future__ import annotations

import html
import re
import time
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from gamelens import BadQuery
from gamelens.client.connection.control_api import ControlApi
from gamelens.notebook import widgets
from gamelens.notebook.widgets.live_view import LiveView
from gamelens.sandbox.control.control_app import control_app
from support.game_events import event
from support.sandbox_stage import Stage
from support.thousand_networks import HOSTILE

TOKEN = "a-token-of-its-own"


class Sandbox:
    """The control API of a sandbox, which can be made to fail."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.summary_requests = 0
        self.is_gone = False
        self._app = control_app(stage.sandbox, token=TOKEN)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Count requests for the summary, and answer 503 while the sandbox is gone."""
        self.summary_requests += "summary" in scope["path"]
        if self.is_gone:
            await send({"type": "http.response.start", "status": 503, "headers": []})
            await send({"type": "http.response.body", "body": b"{}"})
            return
        await self._app(scope, receive, send)


@pytest.fixture
def sandbox(make_stage: Callable[..., Stage]) -> Sandbox:
    """The control API of an empty sandbox."""
    return Sandbox(make_stage())


@pytest.fixture
def view(sandbox: Sandbox) -> Iterator[LiveView]:
    """A view that polls twenty times a second."""
    live = LiveView(ControlApi(f"http://127.0.0.1:1/{TOKEN}", pool=httpx.ASGITransport(sandbox)), every_s=0.05)
    yield live
    live.close()


def until(is_true: Callable[[], bool]) -> bool:
    """Return whether *is_true* becomes true within five seconds."""
    ends_at = time.monotonic() + 5
    while not is_true() and time.monotonic() < ends_at:
        time.sleep(0.02)
    return is_true()


def test_received_events_are_shown(sandbox: Sandbox, view: LiveView) -> None:
    """Accepted and rejected events are shown, with the game and the violation."""
    view.start_button.click()
    sandbox.stage.submit([event(user_id="somebody"), event(v=1)])
    assert until(lambda: view.summary is not None and view.summary.rejected == 1)
    assert until(lambda: "somebody" in view.static().html)
    shown = html.unescape(view.static().html)
    assert "Tile Saga" in shown
    assert re.search(r">rejected</td><td>/v not in \w+</td>", shown)


def test_a_refused_request_is_shown_with_its_cause(sandbox: Sandbox, view: LiveView) -> None:
    """A request that was refused as a whole says why; its own text is only text."""
    sandbox.stage.submit([event()], headers={"Authorization": "Bearer x", "Content-Encoding": "<b>"})
    shown = view.static().html
    assert "no signature" in shown
    assert "Tile Saga" in shown
    assert "<b>" not in shown


def test_an_accepted_event_is_marked_with_what_strict_rules_say(sandbox: Sandbox, view: LiveView) -> None:
    """An accepted event that the strict rules would refuse has their reason."""
    sandbox.stage.submit([event(platform="Windows")])
    assert "the strict rules would refuse this: /platform not in enum" in view.static().html


def test_events_dated_by_arrival_are_marked_and_counted(sandbox: Sandbox, view: LiveView) -> None:
    """An event without a usable time of its device has the reason, and the totals count it (Wire 4.1, Event time)."""
    sandbox.stage.submit([event(client_ts=0)])
    shown = html.unescape(view.static().html)
    assert "dated by arrival: client_ts more than 365 days before arrival" in shown
    assert "with client_ts more than 365 days before arrival" in shown


def test_stop_stops(sandbox: Sandbox, view: LiveView) -> None:
    """After stop there are no requests, and only start is enabled."""
    view.start_button.click()
    assert until(lambda: sandbox.summary_requests > 1)
    view.stop_button.click()
    assert until(lambda: not view.is_running)
    time.sleep(0.1)
    before = sandbox.summary_requests
    time.sleep(0.3)
    assert sandbox.summary_requests == before
    assert (view.start_button.disabled, view.stop_button.disabled) == (False, True)


def test_a_closed_view_sends_no_requests(sandbox: Sandbox, view: LiveView) -> None:
    """After close there are no requests."""
    view.start()
    assert until(lambda: sandbox.summary_requests > 1)
    view.close()
    assert until(lambda: not view.is_running)
    before = sandbox.summary_requests
    time.sleep(0.3)
    assert sandbox.summary_requests == before


def test_starting_twice_polls_once(sandbox: Sandbox, view: LiveView) -> None:
    """A second start does not start a second poll."""
    view.start()
    first = view._future
    view.start()
    assert view._future is first


def test_a_sandbox_that_is_gone_is_a_message_until_it_is_back(sandbox: Sandbox, view: LiveView) -> None:
    """A failing sandbox shows a message without its token, until it is back."""
    sandbox.is_gone = True
    view.start()
    assert until(lambda: "Is the sandbox running" in view.static().html)
    assert TOKEN not in view.static().html
    sandbox.is_gone = False
    assert until(lambda: "events accepted" in view.static().html)


def test_without_a_start_the_static_view_shows_the_current_counts(sandbox: Sandbox, view: LiveView) -> None:
    """The static view of a view that was not started queries the counts once."""
    sandbox.stage.submit([event()])
    assert "1 events accepted" in view.bundles()[0]["text/html"]
    assert not view.is_running


def test_events_are_only_text_and_keys_are_not_shown(sandbox: Sandbox, view: LiveView) -> None:
    """Hostile events are escaped, and the game key is not shown."""
    sandbox.stage.submit([event(category=HOSTILE), event(user_id=HOSTILE), HOSTILE, None, {HOSTILE: HOSTILE}])
    shown = view.static().html
    assert "<img" not in shown
    assert sandbox.stage.game("1001").game_key not in shown


@pytest.mark.parametrize("every_s", [0.5, 0, -1, float("nan")])
def test_polling_more_than_once_a_second_is_refused(every_s: float) -> None:
    """An interval below one second or NaN raises `BadQuery`."""
    with pytest.raises(BadQuery, match="every_s"):
        widgets.live("http://127.0.0.1:1/token", every_s=every_s)
