"""The live-events page in a browser: events within 2 s, shown as text."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from base64 import b64decode
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import httpx
import pytest

from gamelens.local.sandbox_info import SandboxGame, SandboxInfo
from gamelens.local.sandbox_process import running_sandbox
from gamelens.wire.signing import sign
from support.accessibility import violations_of
from support.game_events import event
from support.watched_page import expect, problems_of

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, Route

HOSTILE = "<img src=x onerror=alert(1)>"
SEEN_S = 2.0  # an event is shown within 2 s of its arrival
SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
PATIENCE_MS = 15_000  # for everything else, on a machine that does other things besides


class LivePage:
    """The live-events page of a running sandbox, and the problems that occurred in it."""

    def __init__(self, page: Page, ready: SandboxInfo) -> None:
        self.page = page
        self.ready = ready
        self.opened = 0
        self._home = ready.console_url
        self.problems = problems_of(
            page, is_allowed=lambda address: address.startswith(self._home), levels=("error", "warning")
        )

    def empty(self) -> LivePage:
        """Empty the sandbox and forget what was wrong with the page."""
        self.page.unroute_all()
        httpx.post(f"{self._home}/reset", timeout=30)
        httpx.delete(f"{self._home}/faults")
        self.problems.clear()
        return self

    def game(self, number: int) -> SandboxGame:
        """Return game *number* of the first organisation."""
        return self.ready.organisations[0].games[number]

    def open(self, fragment: str = "") -> LivePage:
        """Open the page and wait until it is connected."""
        self.opened += 1  # in the address, since the page is not loaded again where the fragment alone differs
        self.page.goto(f"{self._home}/?{self.opened}{fragment}")
        self.page.wait_for_selector('#connection[data-state="live"]')
        return self

    def submit(self, *events: object, game: int = 0, secret_key: str | None = None) -> None:
        """Submit *events* of a game in one signed request."""
        body = json.dumps(events).encode()
        key = self.game(game)
        signature = sign(body, secret_key=secret_key or key.secret_key)
        address = f"{self.ready.collector_url}/v2/{key.game_key}/events"
        httpx.post(address, content=body, headers={"Authorization": signature})

    def sees(self, text: str, *, within: str = "#events") -> None:
        """Wait until *text* is shown."""
        self.page.locator(within).get_by_text(text).first.wait_for(timeout=PATIENCE_MS)

    def rows(self, kind: str = "event") -> int:
        """Return the number of rows of *kind*."""
        return self.page.locator(f"#events > li.{kind}").count()


@pytest.fixture(scope="module")
def ready(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SandboxInfo]:
    """A running sandbox."""
    with running_sandbox(tmp_path_factory.mktemp("live") / "state") as ready:
        yield ready


@pytest.fixture(scope="module")
def only(ready: SandboxInfo, browser: Browser) -> Iterator[LivePage]:
    """The one page of these tests, since each new one starts processes of its own."""
    page = browser.new_page()
    yield LivePage(page, ready)
    page.close()


@pytest.fixture
def watched(only: LivePage) -> Iterator[LivePage]:
    """The live-events page of the empty sandbox, which must not have problems in the end."""
    yield only.empty()
    assert only.problems == []


def test_an_event_appears_as_it_arrives(watched: LivePage) -> None:
    """An event is shown within 2 s, with game, category and values (Wire 5.2, Live feed).

    The quickest of three counts: a busy machine only adds to a time.
    """
    watched.open()
    took_s = []
    for name in ("boosts:gold", "boosts:silver", "boosts:iron"):
        began = time.monotonic()
        watched.submit(event(category="business", event_id=name, amount=499, currency="EUR", transaction_num=1))
        watched.sees(name)
        took_s.append(time.monotonic() - began)
    assert min(took_s) < SEEN_S
    row = watched.page.locator("#events > li").first.inner_text().split()
    assert {"business", "499", "EUR", "Accepted", "Harbor"} <= set(row)


def test_a_page_from_elsewhere_cannot_frame_it(ready: SandboxInfo, browser: Browser) -> None:
    """The frame of a page that no port of this machine served stays empty."""
    page = browser.new_page()
    refused: list[str] = []
    page.on("console", lambda message: refused.append(message.text))
    page.set_content(f'<iframe src="{ready.console_url}/"></iframe>')
    page.wait_for_timeout(1000)
    assert page.frame_locator("iframe").locator("#connection").count() == 0
    assert "frame-ancestors" in "".join(refused)
    page.close()


def test_a_rejected_event_appears_with_its_reasons(watched: LivePage) -> None:
    """A rejected event has path and violation in words (Wire 1.8, Rejected events)."""
    watched.open().submit(event(user_id=None, v=3))
    watched.sees("is missing")
    reasons = watched.page.locator("#events .reasons li").all_inner_texts()
    assert sorted(reasons) == ["/user_id is missing", "/v is out of range"]


def test_hostile_text_is_only_text(watched: LivePage) -> None:
    """Hostile values, keys and types are shown as text, nothing runs (Wire 5.2, Live feed)."""
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


def test_earlier_events_are_shown(watched: LivePage) -> None:
    """A page opened later has the newest events, the last one first (Wire 5.2, Live feed)."""
    watched.submit(event(user_id="early"), event(user_id="later"))
    watched.open().sees("early")
    assert watched.page.locator("#events .first").all_inner_texts() == ["later", "early"]


def test_a_row_opens_to_the_whole_event(watched: LivePage) -> None:
    """A click on a row shows the whole event as JSON."""
    watched.submit(event(own_field=[1, {"deep": True}]))
    watched.open().sees("ann")
    watched.page.locator("#events summary").click()
    assert json.loads(watched.page.locator("pre.whole").inner_text())["own_field"] == [1, {"deep": True}]


@pytest.mark.shown_by(1)
@pytest.mark.parametrize(
    ("fragment", "shown"),
    [
        ("#status=rejected", 1),
        ("#status=accepted", 2),
        ("#category=session_end", 1),
        ("#status=rejected&category=ads", 0),
    ],
)
def test_a_filter_shows_only_its_own(watched: LivePage, fragment: str, shown: int) -> None:
    """The fragment of the address filters by status and category."""
    watched.submit(event(), event(category="session_end", length=3), event(v=1))
    watched.open(fragment).sees("session_end" if fragment != "#status=rejected" else "user", within="#categories")
    expect(watched.page.locator("#events > li.event")).to_have_count(shown)


def test_the_controls_filter_what_arrives_next(watched: LivePage) -> None:
    """A game selected on the page filters the events after it (Wire 5.2, Live feed)."""
    watched.open()
    watched.page.select_option("select[name=game_key]", label=watched.game(1).title)
    watched.page.wait_for_selector('#connection[data-state="live"]')
    watched.submit(event(user_id="elsewhere"))
    watched.submit(event(user_id="here"), game=1)
    watched.sees("here")
    assert watched.rows() == 1


@pytest.mark.wide
def test_counts_go_up_by_category(watched: LivePage) -> None:
    """Events are counted by category, rejected ones apart (Wire 5.2, Live feed)."""
    watched.open().submit(event(), event(), event(v=1), event(category="session_end", length=3))
    watched.sees("session_end", within="#categories")
    assert [bar.split() for bar in watched.page.locator("#categories button").all_inner_texts()] == [
        ["user", "1", "rejected", "3"],
        ["session_end", "1"],
    ]


def test_totals_go_up(watched: LivePage) -> None:
    """The totals of accepted, rejected and pending events follow what is submitted."""
    watched.open().submit(event(), event(), event(v=1))
    watched.sees("2", within="#accepted")
    assert [watched.page.inner_text(f"#{name}") for name in ("accepted", "rejected", "pending")] == ["2", "1", "2"]


def test_a_refused_request_is_mentioned(watched: LivePage) -> None:
    """A request with a wrong signature is mentioned, so that missing events are explained."""
    watched.open().submit(event(), secret_key="0" * 40)
    httpx.get(f"{watched.ready.collector_url}/")
    watched.submit(event())
    watched.sees("secret key", within="#refused")


def test_the_cause_of_a_refused_request_appears_at_once(watched: LivePage) -> None:
    """While everything is refused the page says why, with route, game and status, as text (Wire 5.2, Live feed)."""
    watched.open()
    key = watched.game(0)
    body = json.dumps([event(user_id=HOSTILE)]).encode().replace(b'17.0"', b'17.0", "x": NaN')
    address = f"{watched.ready.collector_url}/v2/{key.game_key}/events"
    httpx.post(address, content=body, headers={"Authorization": sign(body, secret_key=key.secret_key)})
    watched.sees("'NaN' at byte", within="#refusals")
    hexadecimal = b64decode(sign(b"[]", secret_key=key.secret_key)).hex()
    httpx.post(address, content=b"[]", headers={"Authorization": hexadecimal})
    watched.sees("the signature is hexadecimal, not base64", within="#refusals")
    httpx.post(f"{watched.ready.collector_url}/v2/{HOSTILE}/events")
    watched.sees("no game of this sandbox", within="#refusals")
    assert {"401", "400", "events", "Harbor"} <= set(watched.page.locator("#refusals").inner_text().split())
    assert watched.page.locator("main img, main script").count() == 0
    watched.open().sees("'NaN' at byte", within="#refusals")


@pytest.mark.wide
def test_refused_requests_are_listed_newest_first(watched: LivePage) -> None:
    """The list has the newest 20 with time, status, route and game, beside counts by status, and a reset empties it.

    Wire 5.2, Live feed.
    """
    watched.open()
    expect(watched.page.locator("#refusals")).to_be_hidden()
    key = watched.game(0)
    address = f"{watched.ready.collector_url}/v2/{key.game_key}/events"
    for number in range(21):
        body = b"[NaN]".rjust(5 + number)
        httpx.post(address, content=body, headers={"Authorization": sign(body, secret_key=key.secret_key)})
    watched.submit(event(), secret_key="0" * 40)
    watched.sees("of another secret key", within="#refused-requests")
    rows = watched.page.locator("#refused-requests > li")
    expect(rows).to_have_count(20)
    first, second = (rows.nth(number).inner_text() for number in (0, 1))
    assert first.split()[1:4] == ["401", "events", key.title.split()[0]]
    assert second.splitlines()[-1].startswith("'NaN' at byte 21")
    watched.sees("21", within="#refused")
    httpx.post(f"{watched.ready.console_url}/reset")
    expect(watched.page.locator("#refusals")).to_be_hidden()
    expect(rows).to_have_count(0)


@pytest.mark.wide
def test_repeated_events_are_mentioned(watched: LivePage) -> None:
    """Events that were dropped because they repeat an `event_uuid` are counted, and the switch that counts them named.

    Wire 4.8, Repeated events.
    """
    watched.open()
    expect(watched.page.locator("#repeats")).to_be_hidden()
    watched.submit(event(event_uuid="once"), event(event_uuid="once"), event(event_uuid="twice"))
    watched.submit(event(event_uuid="once"))
    httpx.post(f"{watched.ready.console_url}/process", timeout=30)
    watched.sees("2 events repeated an event_uuid and were dropped", within="#repeats")
    watched.sees("--repeats count", within="#repeats")


@pytest.mark.wide
def test_events_dated_by_arrival_are_mentioned(watched: LivePage) -> None:
    """An event whose device states no time that can be true says why, and such events are counted by reason at once.

    Wire 4.1, Event time.
    """
    watched.open().submit(event(client_ts=0), event(client_ts=1), event(client_ts=1_700_000_000_000), event(v=1))
    watched.sees("dated by arrival: client_ts in milliseconds")
    watched.sees("client_ts in milliseconds", within="#dated")
    counts = [row.split("\n") for row in watched.page.locator("#dated li").all_inner_texts()]
    assert counts == [["client_ts in milliseconds", "1"], ["client_ts more than 365 days before arrival", "2"]]


def test_an_accepted_event_is_marked_with_what_strict_rules_say(watched: LivePage) -> None:
    """Accepted events that the strict rules would refuse say so, and are counted by reason (Wire 5.2, Live feed)."""
    watched.open().submit(event(platform="Windows"), event(own_field=HOSTILE))
    watched.sees("The strict rules would refuse this:")
    reasons = {text for text in watched.page.locator("#events .strict li").all_inner_texts() if text.startswith("/")}
    assert reasons == {"/platform is not one of the allowed values", "/own_field is not documented"}
    watched.sees("2 of 2 events", within="#strict")
    watched.sees("1 of 1 requests, for their headers", within="#strict")


def test_pausing_holds_the_list_and_counts_what_waits(watched: LivePage) -> None:
    """While paused the list stays as it is and new events are counted."""
    watched.open()
    watched.page.click("#pause")
    watched.submit(event(user_id="while away"))
    watched.sees("1 new", within="#pause")
    assert watched.rows() == 0
    watched.page.click("#pause")
    watched.sees("while away")


def test_an_empty_page_says_how_to_begin(watched: LivePage) -> None:
    """A page without events names the command to begin with."""
    watched.open().sees("gamelens simulate", within="#first")


@pytest.mark.skipif(not (shutil.which("curl") and shutil.which("openssl")), reason="needs curl and openssl")
def test_the_commands_for_a_first_event_run_as_printed(watched: LivePage, tmp_path: Path) -> None:
    """The printed shell commands send an event, with only three values filled in."""
    game = watched.game(0)
    printed = watched.open().page.locator("#first pre").nth(1).inner_text()
    _, _, commands = printed.partition("\n")
    values = {"COLLECTOR": watched.ready.collector_url, "GAME_KEY": game.game_key, "SECRET_KEY": game.secret_key}
    subprocess.run(["sh", "-eu", "-c", commands], env={"PATH": "/usr/bin:/bin", **values}, check=True, cwd=tmp_path)
    watched.sees("hello:world")


@pytest.mark.wide
def test_dropped_events_are_counted(watched: LivePage) -> None:
    """Events that arrive faster than they can be shown are counted (Wire 5.2, Live feed)."""
    watched.open().submit(*[event()] * 1500)
    watched.sees("500 events came too fast", within="#filters")


@pytest.mark.wide
def test_faults_in_force_are_mentioned(watched: LivePage) -> None:
    """Fault rules in force are counted (Wire 5.3, Fault rules)."""
    httpx.post(f"{watched.ready.console_url}/faults", json={"service": "metrics", "status": 429})
    watched.open().sees("1 fault rule in force", within="#faults")


def test_a_reset_empties_the_page(watched: LivePage) -> None:
    """A reset empties the page (Wire 5.1, Control API)."""
    watched.submit(event())
    watched.open().sees("ann")
    httpx.post(f"{watched.ready.console_url}/reset")
    watched.sees("Waiting for the first event", within="#first")


def test_a_lost_connection_is_shown(watched: LivePage) -> None:
    """A page whose connection is lost shows that it is connecting, not live."""
    watched.open()

    def refuse(route: Route) -> None:
        """Answer 204, which tells an EventSource not to reconnect."""
        route.fulfill(status=204)  # what tells an EventSource to stay away

    watched.page.route("**/live?*", refuse)
    watched.page.click("text=Rejected >> nth=1")
    watched.page.wait_for_selector('#connection[data-state="connecting"]', timeout=PATIENCE_MS)


def test_the_policy_comes_with_the_page(watched: LivePage) -> None:
    """The page allows scripts and styles of its own origin only (Wire 5.2, Live feed)."""
    answer = watched.page.goto(f"{watched.ready.console_url}/")
    assert answer is not None
    policy = answer.headers["content-security-policy"]
    assert {"default-src 'none'", "script-src 'self'", "style-src 'self'"} <= set(policy.split("; "))


def test_nothing_is_wider_than_the_window(watched: LivePage) -> None:
    """Long values fit windows of 480, 800 and 1280 pixels, in light and dark."""
    watched.submit(event(category="design", event_id="x" * 64), event(category="y" * 500), event(user_id="z" * 900))
    watched.open().sees("xxx")
    for scheme in SCHEMES:
        watched.page.emulate_media(color_scheme=scheme)
        for width in (480, 800, 1280):
            watched.page.set_viewport_size({"width": width, "height": 800})
            assert watched.page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.shown_by(1)
@pytest.mark.parametrize("scheme", SCHEMES)
def test_the_page_has_no_violation(ready: SandboxInfo, browser: Browser, scheme: Literal["light", "dark"]) -> None:
    """axe-core finds nothing of any severity, with good and bad events and a refused request."""
    page = browser.new_page(color_scheme=scheme, bypass_csp=True)
    watched = LivePage(page, ready).empty().open()
    watched.submit(event(user_id="seen"), event(user_id=None))
    watched.submit(event(), secret_key="0" * 40)
    watched.sees("is missing")
    watched.sees("of another secret key", within="#refusals")
    page.locator("#events summary").first.click()
    assert violations_of(page) == []
    page.close()
