"""The live-events page in a browser: what arrives is seen within 2 s, and whatever it holds is only text."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.sync_api import Browser, Page, Route, expect

from gamelens.local.sandbox_info import SandboxGame, SandboxInfo
from gamelens.local.sandbox_process import running_sandbox
from gamelens.wire.signing import sign
from support.game_events import event

HOSTILE = "<img src=x onerror=alert(1)>"
SEEN_MS = 2000  # contract, Control surface: within 2 s of arrival
PATIENCE_MS = 15_000  # for everything else, on a machine that does other things besides


class Watched:
    """The page of a running sandbox, and everything that went wrong in it."""

    def __init__(self, page: Page, ready: SandboxInfo) -> None:
        self.page = page
        self.ready = ready
        self.wrongs: list[str] = []
        page.on("pageerror", lambda error: self.wrongs.append(str(error)))
        page.on("console", lambda said: self.wrongs.append(said.text) if said.type in ("error", "warning") else None)
        page.on("dialog", lambda dialog: (self.wrongs.append(dialog.message), dialog.dismiss()))
        page.on("request", lambda sent: self.wrongs.append(sent.url) if not sent.url.startswith(self._home) else None)
        httpx.post(f"{self._home}/reset", timeout=30)
        httpx.delete(f"{self._home}/faults")

    @property
    def _home(self) -> str:
        return self.ready.console_url

    def game(self, number: int) -> SandboxGame:
        return self.ready.organisations[0].games[number]

    def open(self, fragment: str = "") -> Watched:
        self.page.goto(f"{self._home}/{fragment}")
        self.page.wait_for_selector('#connection[data-state="live"]')
        return self

    def submit(self, *events: Any, game: int = 0, secret_key: str | None = None) -> None:
        body = json.dumps(events).encode()
        key = self.game(game)
        signature = sign(body, secret_key=secret_key or key.secret_key)
        address = f"{self.ready.collector_url}/v2/{key.game_key}/events"
        httpx.post(address, content=body, headers={"Authorization": signature})

    def sees(self, text: str, *, within: str = "#events", within_ms: float = PATIENCE_MS) -> None:
        self.page.locator(within).get_by_text(text).first.wait_for(timeout=within_ms)

    def rows(self, kind: str = "event") -> int:
        return self.page.locator(f"#events > li.{kind}").count()


@pytest.fixture(scope="module")
def ready(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SandboxInfo]:
    with running_sandbox(tmp_path_factory.mktemp("live") / "state") as ready:
        yield ready


@pytest.fixture
def watched(ready: SandboxInfo, browser: Browser) -> Iterator[Watched]:
    page = browser.new_page()
    watched = Watched(page, ready)
    yield watched
    page.close()
    assert watched.wrongs == []  # nothing failed, nothing was run, nothing was asked of anybody else


def test_an_event_appears_as_it_arrives(watched: Watched) -> None:
    """contract, GET /: within 2 s, with its game, its category and what tells it apart."""
    watched.open().submit(
        event(category="business", event_id="boosts:gold", amount=499, currency="EUR", transaction_num=1)
    )
    watched.sees("boosts:gold", within_ms=SEEN_MS)
    row = watched.page.locator("#events > li").inner_text().split()
    assert {"business", "499", "EUR", "Accepted", "Harbor"} <= set(row)


def test_a_rejected_event_appears_with_its_reasons(watched: Watched) -> None:
    """contract, GET /: the path, and the fault in words."""
    watched.open().submit(event(user_id=None, v=3))
    watched.sees("is missing")
    reasons = watched.page.locator("#events .reasons li").all_inner_texts()
    assert sorted(reasons) == ["/user_id is missing", "/v is out of range"]


def test_hostile_text_is_only_text(watched: Watched) -> None:
    """Issue: textContent only. The fixture sees to it that nothing ran."""
    watched.open().submit(
        event(category=HOSTILE),
        event(category="design", event_id=HOSTILE),
        event(user_id=HOSTILE),
        event(category="error", severity="info", message=HOSTILE),
        {HOSTILE: {HOSTILE: HOSTILE}},
        {"category": "constructor", "event_id": {"toString": 1}, "__proto__": {"user_id": HOSTILE}},
        HOSTILE,
        None,
    )
    expect(watched.page.locator("#events summary")).to_have_count(8)
    for row in watched.page.locator("#events summary").all():
        row.click()
    expect(watched.page.locator("#events pre.whole")).to_have_count(8)
    assert watched.page.locator("main img, main script").count() == 0


def test_what_was_there_before_is_shown(watched: Watched) -> None:
    """contract, GET /: the newest events, also to who comes late."""
    watched.submit(event(user_id="early"), event(user_id="later"))
    watched.open().sees("early")
    assert watched.page.locator("#events .first").all_inner_texts() == ["later", "early"]


def test_a_row_opens_to_the_whole_event(watched: Watched) -> None:
    watched.submit(event(own_field=[1, {"deep": True}]))
    watched.open().sees("ann")
    watched.page.locator("#events summary").click()
    assert json.loads(watched.page.locator("pre.whole").inner_text())["own_field"] == [1, {"deep": True}]


@pytest.mark.parametrize(
    ("fragment", "shown"),
    [
        ("#status=rejected", 1),
        ("#status=accepted", 2),
        ("#category=session_end", 1),
        ("#status=rejected&category=ads", 0),
    ],
)
def test_a_filter_shows_only_its_own(watched: Watched, fragment: str, shown: int) -> None:
    """contract, GET /: by status and category; the address keeps the filter."""
    watched.submit(event(), event(category="session_end", length=3), event(v=1))
    watched.open(fragment).sees("session_end" if fragment != "#status=rejected" else "user", within="#categories")
    expect(watched.page.locator("#events > li.event")).to_have_count(shown)


def test_the_controls_filter_what_arrives_next(watched: Watched) -> None:
    """contract, GET /: by game, chosen by hand."""
    watched.open()
    watched.page.select_option("select[name=game_key]", label=watched.game(1).title)
    watched.page.wait_for_selector('#connection[data-state="live"]')
    watched.submit(event(user_id="elsewhere"))
    watched.submit(event(user_id="here"), game=1)
    watched.sees("here")
    assert watched.rows() == 1


def test_counts_go_up_by_category(watched: Watched) -> None:
    """contract, GET /: counts per category."""
    watched.open().submit(event(), event(), event(v=1), event(category="session_end", length=3))
    watched.sees("session_end", within="#categories")
    assert [bar.split() for bar in watched.page.locator("#categories button").all_inner_texts()] == [
        ["user", "1", "rejected", "3"],
        ["session_end", "1"],
    ]


def test_totals_go_up(watched: Watched) -> None:
    watched.open().submit(event(), event(), event(v=1))
    watched.sees("2", within="#accepted")
    assert [watched.page.inner_text(f"#{name}") for name in ("accepted", "rejected", "pending")] == ["2", "1", "2"]


def test_a_refused_request_is_mentioned(watched: Watched) -> None:
    """Nothing arrived, and this is why."""
    watched.open().submit(event(), secret_key="0" * 40)
    httpx.get(f"{watched.ready.collector_url}/")
    watched.submit(event())
    watched.sees("secret key", within="#refused")


def test_pausing_holds_the_list_and_counts_what_waits(watched: Watched) -> None:
    watched.open()
    watched.page.click("#pause")
    watched.submit(event(user_id="while away"))
    watched.sees("1 new", within="#pause")
    assert watched.rows() == 0
    watched.page.click("#pause")
    watched.sees("while away")


def test_an_empty_page_says_how_to_begin(watched: Watched) -> None:
    """Issue: an empty state that says what to do."""
    watched.open().sees("gamelens simulate", within="#first")


@pytest.mark.skipif(not (shutil.which("curl") and shutil.which("openssl")), reason="needs curl and openssl")
def test_the_commands_for_a_first_event_run_as_printed(watched: Watched, tmp_path: Path) -> None:
    """Only the three values are filled in."""
    game = watched.game(0)
    printed = watched.open().page.locator("#first pre").nth(1).inner_text()
    _, _, commands = printed.partition("\n")
    values = {"COLLECTOR": watched.ready.collector_url, "GAME_KEY": game.game_key, "SECRET_KEY": game.secret_key}
    subprocess.run(["sh", "-eu", "-c", commands], env={"PATH": "/usr/bin:/bin", **values}, check=True, cwd=tmp_path)
    watched.sees("hello:world")


def test_more_than_can_be_read_is_said(watched: Watched) -> None:
    """contract, GET /live: a listener that loses events is told how many."""
    watched.open().submit(*[event()] * 1500)
    watched.sees("500 events came faster", within="#filters")


def test_faults_in_force_are_mentioned(watched: Watched) -> None:
    httpx.post(f"{watched.ready.console_url}/faults", json={"service": "metrics", "status": 429})
    watched.open().sees("1 fault rule in force", within="#faults")


def test_a_reset_empties_the_page(watched: Watched) -> None:
    """contract, POST /reset."""
    watched.submit(event())
    watched.open().sees("ann")
    httpx.post(f"{watched.ready.console_url}/reset")
    watched.sees("Waiting for the first event", within="#first")


def test_a_lost_connection_is_said(watched: Watched) -> None:
    """The page never pretends to be live."""
    watched.open()

    def refuse(route: Route) -> None:
        route.fulfill(status=204)  # what tells an EventSource to stay away

    watched.page.route("**/live?*", refuse)
    watched.page.click("text=Rejected >> nth=1")
    watched.page.wait_for_selector('#connection[data-state="connecting"]', timeout=SEEN_MS)


def test_the_policy_comes_with_the_page(watched: Watched) -> None:
    """Issue: strict CSP."""
    policy = watched.page.goto(f"{watched.ready.console_url}/").headers["content-security-policy"]
    assert {"default-src 'none'", "script-src 'self'", "style-src 'self'"} <= set(policy.split("; "))


@pytest.mark.parametrize("width", [480, 800, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_is_wider_than_the_window(watched: Watched, scheme: Any, width: int) -> None:
    watched.submit(event(category="design", event_id="x" * 64), event(category="y" * 500), event(user_id="z" * 900))
    watched.page.emulate_media(color_scheme=scheme)
    watched.page.set_viewport_size({"width": width, "height": 800})
    watched.open().sees("xxx")
    assert watched.page.evaluate("document.documentElement.scrollWidth") <= width
