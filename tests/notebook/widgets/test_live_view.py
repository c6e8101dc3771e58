"""The live page in a frame, and the sentence that stands for it without a kernel."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterator

import httpx
import pytest

from gamelens import BadQuery
from gamelens.notebook import widgets
from gamelens.notebook.widgets.live_view import LiveView
from gamelens.sandbox.control.control_app import control_app
from support.game_events import event
from support.sandbox_stage import Stage

TOKEN = "a-token-of-its-own"
URL = f"http://127.0.0.1:8123/{TOKEN}"


@pytest.fixture
def stage(make_stage: Callable[..., Stage]) -> Stage:
    """An empty sandbox."""
    return make_stage()


@pytest.fixture
def view(stage: Stage) -> Iterator[LiveView]:
    """The view of the sandbox."""
    view = LiveView(URL, height=300, pool=httpx.ASGITransport(control_app(stage.sandbox, token=TOKEN)))
    yield view
    view.close()


def test_the_frame_has_the_page_and_a_link_for_where_it_stays_empty(view: LiveView) -> None:
    """The address of both is that of the page, and the port is the one to forward from another machine."""
    shown = view.children[0].value
    assert re.findall(r'(?:src|href)="([^"]+)"', shown) == [f"{URL}/", f"{URL}/"]
    assert '<iframe src="http://127.0.0.1:8123/a-token-of-its-own/" title="Live events of the sandbox"' in shown
    assert "ssh -L 8123:127.0.0.1:8123 MACHINE" in shown


def test_the_static_view_says_what_was_received_without_the_token(stage: Stage, view: LiveView) -> None:
    """A saved notebook keeps no address of the sandbox."""
    stage.submit([event(), event(v=1), event(client_ts=0)])
    bundles = view.bundles()
    shown = html.unescape(bundles[0]["text/html"])
    assert "2 events accepted, 1 rejected" in shown
    assert "Dated by arrival since the start: 1 with client_ts more than 365 days before arrival." in shown
    assert TOKEN not in str(bundles)


def test_a_sandbox_that_is_gone_is_a_message_without_the_token() -> None:
    """Which says to start it."""
    view = LiveView("http://127.0.0.1:1/a-token-of-its-own", height=300)
    shown = html.unescape(view.static().html)
    view.close()
    assert "Is the sandbox running?" in shown
    assert TOKEN not in shown


@pytest.mark.parametrize("height", [0, -1, 199, 300.5, float("nan"), "300"])
def test_a_height_that_shows_nothing_is_refused(height: float) -> None:
    """Below 200 pixels, or no whole number, raises `BadQuery`."""
    with pytest.raises(BadQuery, match="height"):
        widgets.live(URL, height=height)  # type: ignore[arg-type]
