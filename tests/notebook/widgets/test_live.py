"""The live view looks at a sandbox between Start and Stop, and never after it is closed."""

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
from gamelens.sandbox.control.control_app import console_app
from support.game_events import event
from support.sandbox_stage import Stage
from support.thousand_networks import HOSTILE

TOKEN = "a-token-of-its-own"


class Sandbox:
    """The control surface of a sandbox, which can be taken away."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.asked = 0
        self.is_gone = False
        self._app = console_app(stage.sandbox, token=TOKEN)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.asked += "summary" in scope["path"]
        if self.is_gone:
            await send({"type": "http.response.start", "status": 503, "headers": []})
            await send({"type": "http.response.body", "body": b"{}"})
            return
        await self._app(scope, receive, send)


@pytest.fixture
def sandbox(make_stage: Callable[..., Stage]) -> Sandbox:
    return Sandbox(make_stage())


@pytest.fixture
def view(sandbox: Sandbox) -> Iterator[LiveView]:
    """A view that looks twenty times a second, since a test cannot wait."""
    live = LiveView(ControlApi(f"http://127.0.0.1:1/{TOKEN}", pool=httpx.ASGITransport(sandbox)), every_s=0.05)
    yield live
    live.close()


def until(is_true: Callable[[], bool]) -> bool:
    ends_at = time.monotonic() + 5
    while not is_true() and time.monotonic() < ends_at:
        time.sleep(0.02)
    return is_true()


def test_what_arrives_is_seen(sandbox: Sandbox, view: LiveView) -> None:
    view.start_button.click()
    sandbox.stage.submit([event(user_id="somebody"), event(v=1)])
    assert until(lambda: view.summary is not None and view.summary.rejected == 1)
    assert until(lambda: "somebody" in view.static().html)
    shown = html.unescape(view.static().html)
    assert "Tile Saga" in shown
    assert re.search(r">rejected</td><td>/v not in \w+</td>", shown)


def test_stop_stops(sandbox: Sandbox, view: LiveView) -> None:
    view.start_button.click()
    assert until(lambda: sandbox.asked > 1)
    view.stop_button.click()
    assert until(lambda: not view.is_running)
    time.sleep(0.1)
    before = sandbox.asked
    time.sleep(0.3)
    assert sandbox.asked == before
    assert (view.start_button.disabled, view.stop_button.disabled) == (False, True)


def test_a_closed_view_looks_no_more(sandbox: Sandbox, view: LiveView) -> None:
    view.start()
    assert until(lambda: sandbox.asked > 1)
    view.close()
    assert until(lambda: not view.is_running)
    before = sandbox.asked
    time.sleep(0.3)
    assert sandbox.asked == before


def test_starting_twice_looks_once(sandbox: Sandbox, view: LiveView) -> None:
    view.start()
    first = view._future
    view.start()
    assert view._future is first


def test_a_sandbox_that_is_gone_is_a_message_until_it_is_back(sandbox: Sandbox, view: LiveView) -> None:
    sandbox.is_gone = True
    view.start()
    assert until(lambda: "Is the sandbox running" in view.static().html)
    assert TOKEN not in view.static().html
    sandbox.is_gone = False
    assert until(lambda: "events accepted" in view.static().html)


def test_without_a_start_the_twin_shows_what_is_there_now(sandbox: Sandbox, view: LiveView) -> None:
    sandbox.stage.submit([event()])
    assert "1 events accepted" in view.bundles()[0]["text/html"]
    assert not view.is_running


def test_events_are_only_text_and_keys_are_not_shown(sandbox: Sandbox, view: LiveView) -> None:
    sandbox.stage.submit([event(category=HOSTILE), event(user_id=HOSTILE), HOSTILE, None, {HOSTILE: HOSTILE}])
    shown = view.static().html
    assert "<img" not in shown
    assert sandbox.stage.game("1001").game_key not in shown


@pytest.mark.parametrize("every_s", [0.5, 0, -1, float("nan")])
def test_nobody_looks_more_than_once_a_second(every_s: float) -> None:
    with pytest.raises(BadQuery, match="every_s"):
        widgets.live("http://127.0.0.1:1/token", every_s=every_s)
