"""contract, Control surface: the live view. Collector, What the service does 6: visible within a few seconds."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from conftest import NOW, Stage, event
from gamelens.sandbox.collector.live_entries import FeedFilter
from gamelens.sandbox.collector.live_feed import KEPT_EVENTS, QUEUED_EVENTS, FeedSubscriber
from gamelens.sandbox.control.control_app import console_app
from gamelens.sandbox.control.live_stream import server_sent_events
from gamelens.wire.signing import sign
from sandbox.conftest import GAME_KEY, Call, call

pytestmark = pytest.mark.slow

IP = "203.0.113.77"
ANYTHING_NEW = FeedFilter(limit=0)
POLICY = {"default-src 'none'", "script-src 'self'", "style-src 'self'", "connect-src 'self'", "frame-ancestors 'none'"}


def users(entries: list[dict[str, Any]]) -> list[str]:
    return [entry["event"]["user_id"] for entry in entries]


# -- GET /events ------------------------------------------------------------------------------------------------------


def test_an_accepted_event_is_shown_as_it_was_sent(stage: Stage, console: Call) -> None:
    """contract, GET /events: its five fields."""
    sent = event(own_field={"kept": [1, "two"]})
    stage.submit([sent])
    assert console("GET", "/events").json() == [
        {
            "arrival_ts": int(NOW.timestamp()),
            "game_key": GAME_KEY,
            "status": "accepted",
            "event": sent,
            "errors": [],
        }
    ]


def test_a_rejected_event_is_shown_with_every_reason(stage: Stage, console: Call) -> None:
    """contract, GET /events: the reasons are those of the 400 answer."""
    answer = stage.submit([event(user_id=None, v=3)])
    (shown,) = console("GET", "/events", params={"status": "rejected"}).json()
    assert {"event": shown["event"], "errors": shown["errors"]} == answer.json()[0]


def test_the_newest_event_is_first(stage: Stage, console: Call) -> None:
    """contract, GET /events: newest first, within a request as well."""
    stage.submit([event(user_id="a"), event(user_id="b")])
    stage.submit([event(user_id="c")], game_id="1002")
    stage.submit([event(user_id="d")])
    assert users(console("GET", "/events").json()) == ["d", "c", "b", "a"]


@pytest.mark.parametrize(
    ("asked", "shown"),
    [
        ({"status": "accepted"}, ["ember", "shop", "ann"]),
        ({"status": "rejected"}, ["bad"]),
        ({"game_key": GAME_KEY}, ["bad", "shop", "ann"]),
        ({"category": "session_end"}, ["shop"]),
        ({"category": "unknown"}, ["bad"]),
        ({"category": "<b>"}, ["bad"]),
        ({"status": "accepted", "limit": "2"}, ["ember", "shop"]),
        ({"limit": "0"}, []),
        ({"status": "", "category": ""}, ["ember", "bad", "shop", "ann"]),
    ],
)
def test_events_are_filtered(stage: Stage, console: Call, asked: dict[str, str], shown: list[str]) -> None:
    """contract, GET /events: status, game_key, category, limit; one that is empty is not asked."""
    stage.submit([event(), event(category="session_end", length=3, user_id="shop")])
    stage.submit([event(category="<b>", user_id="bad")])
    stage.submit([event(user_id="ember")], game_id="2001")
    assert users(console("GET", "/events", params=asked).json()) == shown


@pytest.mark.parametrize(
    ("asked", "field"),
    [
        ({"status": "good"}, "status"),
        ({"game_key": "0" * 32}, "game_key"),
        ({"limit": "-1"}, "limit"),
        ({"limit": "many"}, "limit"),
        ({"limit": "10001"}, "limit"),
        ({"categroy": "user"}, "categroy"),
    ],
)
def test_what_cannot_be_asked_is_refused_by_name(console: Call, asked: dict[str, str], field: str) -> None:
    """house-style: every refusal names the value and the rule."""
    answer = console("GET", "/events", params=asked)
    assert (answer.status_code, answer.json()["field"]) == (422, field)


def test_accepted_events_are_still_there_after_a_restart(make_stage: Callable[..., Stage]) -> None:
    """contract, GET /events: what was acknowledged is on disk, and shown from there."""
    first = make_stage()
    first.submit([event(user_id="a"), event(user_id="b")])
    first.sandbox.close()
    again = console_app(make_stage().sandbox, token="t")
    assert users(call(again, "GET", "/t/events").json()) == ["b", "a"]


def test_the_record_is_bounded(stage: Stage, console: Call) -> None:
    """The newest of each game and status; a request is forgotten whole."""
    for number in range(7):
        stage.submit([event(user_id=str(number))] * (KEPT_EVENTS // 5))
    shown = users(console("GET", "/events", params={"limit": 10_000}).json())
    assert (len(shown), set(shown)) == (KEPT_EVENTS, {"2", "3", "4", "5", "6"})


def test_a_busy_game_does_not_push_out_another(stage: Stage, console: Call) -> None:
    """contract, GET /: the newest events of each game."""
    stage.submit([event(user_id="quiet")], game_id="2001")
    stage.submit([event()] * (KEPT_EVENTS + 1))
    assert users(console("GET", "/events", params={"game_key": stage.game("2001").game_key}).json()) == ["quiet"]


def test_neither_address_nor_keys_are_shown(stage: Stage, console: Call) -> None:
    """Collector, What the service does 7: the IP is not stored."""
    stage.submit([event(), event(v=1)], headers={"X-Forwarded-For": IP})
    shown = console("GET", "/events").text + console("GET", "/summary").text
    assert not [secret for secret in (IP, stage.game("1001").secret_key, "key-of-acme") if secret in shown]


def test_reset_forgets_what_was_shown(stage: Stage, console: Call) -> None:
    """contract, POST /reset: forgets events."""
    stage.submit([event(), event(v=1)])
    console("POST", "/reset")
    assert console("GET", "/events").json() == []


# -- GET /summary -----------------------------------------------------------------------------------------------------


def test_counts_are_kept_by_category(stage: Stage, console: Call) -> None:
    """contract, GET /: counts per category; a category that is none counts as unknown."""
    stage.submit([event(), event(), event(v=1), event(category="session_end", length=1), event(category="x"), 17])
    counted = console("GET", "/summary").json()["since_start"]["categories"]
    assert counted == {
        "session_end": {"accepted": 1, "rejected": 0},
        "unknown": {"accepted": 0, "rejected": 2},
        "user": {"accepted": 2, "rejected": 1},
    }


def test_counts_are_kept_by_game(stage: Stage, console: Call) -> None:
    """contract, GET /summary: per game; a production game is none of the sandbox."""
    stage.submit([event(), event(v=1)])
    counted = console("GET", "/summary").json()["since_start"]["games"]
    assert counted[GAME_KEY] == {"title": "Tile Saga", "accepted": 1, "rejected": 1}
    assert stage.game("2002").game_key not in counted


def test_refused_requests_are_counted_by_status(stage: Stage, console: Call) -> None:
    """The first thing that goes wrong is a key: the live view says so although no event arrived."""
    stage.submit([event()], headers={"Authorization": "wrong"})
    stage.submit({"no": "array"})
    stage.submit([event(v=1)])
    assert console("GET", "/summary").json()["since_start"]["refused"] == {"400": 1, "401": 1}


def test_sums_of_looks_add_up(stage: Stage) -> None:
    """contract, GET /summary: each look sums only what is new."""
    for accepted in (1, 2, 3):
        stage.submit([event(), event(v=1)])
        assert stage.sandbox.summary()["games"]["1001"] == {
            "accepted": accepted,
            "rejected": accepted,
            "pending": accepted,
        }


# -- GET /live --------------------------------------------------------------------------------------------------------


def spoken(chunk: bytes) -> list[tuple[str, Any]]:
    """Kinds and contents of the messages in a piece of stream."""
    messages = []
    for block in chunk.decode().split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.splitlines() if not line.startswith(":"))
        if "data" in fields:
            messages.append((fields.get("event", "message"), json.loads(fields["data"])))
    return messages


def heard(
    stage: Stage, *acts: Callable[[], Any], look: FeedFilter = ANYTHING_NEW, silence_s: float = 5
) -> list[tuple[str, Any]]:
    """What a listener hears from its start on, when *acts* happen one after the other."""
    return [message for chunk in asyncio.run(_heard(stage, acts, look, silence_s)) for message in spoken(chunk)]


async def _heard(stage: Stage, acts: tuple[Callable[[], Any], ...], look: FeedFilter, silence_s: float) -> list[bytes]:
    stream: AsyncIterator[bytes] = server_sent_events(stage.sandbox.live, look, gather_s=0, silence_s=silence_s)
    chunks = [await anext(stream), await anext(stream)]
    for act in acts:
        await asyncio.to_thread(act)
        chunks.append(await anext(stream))
    stage.sandbox.live.close()
    return chunks + [chunk async for chunk in stream]


def events_in(messages: list[tuple[str, Any]]) -> list[dict[str, Any]]:
    return [content for kind, content in messages if kind == "message"]


def test_a_listener_hears_what_events_shows(stage: Stage, console: Call) -> None:
    """contract, GET /live: the same as server-sent events."""
    messages = heard(stage, lambda: stage.submit([event(), event(v=1)]))
    assert events_in(messages)[::-1] == console("GET", "/events").json()


def test_a_listener_may_begin_with_the_newest(stage: Stage) -> None:
    """contract, GET /live: `limit` is how many; they come in the order of arrival."""
    stage.submit([event(user_id=name) for name in "abc"])
    messages = heard(stage, lambda: stage.submit([event(user_id="d")]), look=FeedFilter(limit=2))
    assert users(events_in(messages)) == ["b", "c", "d"]


def test_a_listener_hears_only_what_it_asked_for(stage: Stage) -> None:
    """contract, GET /live: filtered as /events."""
    look = FeedFilter(limit=0, status="rejected", category="user")
    assert users(events_in(heard(stage, lambda: stage.submit([event(), event(v=1, user_id="bad")]), look=look))) == [
        "bad"
    ]


def test_counts_are_told_with_the_events(stage: Stage) -> None:
    """contract, GET /: counts per category, as they change."""
    messages = heard(stage, lambda: stage.submit([event()]))
    assert [content["accepted"] for kind, content in messages if kind == "counts"][:2] == [0, 1]


def test_line_ends_inside_an_event_do_not_end_the_message(stage: Stage) -> None:
    """An event is kept as sent, spaces between its tokens and all."""
    game = stage.game("1001")
    body = json.dumps([event(user_id="a\nb")], indent=2).replace("\n", "\r\n").encode()
    signed = {"Authorization": sign(body, secret_key=game.secret_key)}
    messages = heard(stage, lambda: stage.post(f"/v2/{game.game_key}/events", body, signed))
    assert users(events_in(messages)) == ["a\nb"]


def test_a_slow_listener_loses_the_oldest_and_is_told_how_many(stage: Stage) -> None:
    """contract, GET /live: the collector never waits for a listener."""
    listener = FeedSubscriber(FeedFilter())
    stage.sandbox.live.listen(listener)
    for number in range(3):
        stage.submit([event(user_id=str(number))] * (QUEUED_EVENTS // 2))
    entries, missed = listener.take()
    told = {json.loads(bytes(entry.event))["user_id"] for entry in entries}
    assert (len(entries), told, missed) == (QUEUED_EVENTS, {"1", "2"}, QUEUED_EVENTS // 2)


def test_one_request_may_be_more_than_a_listener_takes(stage: Stage) -> None:
    """contract, GET /live: the queue is bounded whatever a request holds."""
    messages = heard(stage, lambda: stage.submit([event()] * (QUEUED_EVENTS + 7)))
    assert ("missed", {"events": 7}) in messages
    assert len(events_in(messages)) == QUEUED_EVENTS


def test_a_reset_is_told(stage: Stage) -> None:
    """contract, POST /reset: whoever shows events forgets them too."""
    messages = heard(stage, lambda: asyncio.run(stage.sandbox.reset()))
    assert ("reset", {}) in messages


def test_silence_is_filled_with_comments(stage: Stage) -> None:
    """Server-sent events: a comment keeps the connection, and is no message."""
    chunks = asyncio.run(_heard(stage, (lambda: None,), FeedFilter(limit=0), 0.01))
    assert chunks[2].startswith(b":")


def test_a_listener_that_leaves_is_forgotten(stage: Stage) -> None:
    """contract, GET /live: ends when the client leaves."""
    asyncio.run(_leaving(stage))
    assert not stage.sandbox.live._listeners


async def _leaving(stage: Stage) -> None:
    app = console_app(stage.sandbox, token="t")
    scope = {"type": "http", "method": "GET", "path": "/t/live", "raw_path": b"/t/live", "query_string": b""}
    scope |= {"headers": [(b"host", b"127.0.0.1")], "asgi": {"spec_version": "2.3"}, "http_version": "1.1"}
    begun = asyncio.Event()

    async def receive() -> dict[str, str]:
        await begun.wait()
        return {"type": "http.disconnect"}

    async def send(message: dict[str, Any]) -> None:
        if message.get("body"):
            assert stage.sandbox.live._listeners
            begun.set()
            await asyncio.sleep(3600)  # a client that reads no further: still it may leave

    async with asyncio.timeout(5):
        await app(scope, receive, send)


# -- GET / ------------------------------------------------------------------------------------------------------------


def test_every_file_the_page_names_is_served(console: Call) -> None:
    """contract, GET /: plain HTML, one script, one stylesheet."""
    named = re.findall(r'(?:src|href)="([^"]+)"', console("GET", "/").text)
    assert {name: console("GET", f"/{name}").headers["content-type"].split(";")[0] for name in named} == {
        "icon.svg": "image/svg+xml",
        "live.css": "text/css",
        "live.js": "text/javascript",
    }


def test_the_page_may_load_nothing_but_its_own_files(console: Call) -> None:
    """Issue: strict CSP."""
    answer = console("GET", "/")
    assert set(answer.headers["content-security-policy"].split("; ")) >= POLICY
    assert "unsafe" not in answer.headers["content-security-policy"]


def test_the_page_has_nothing_inline(console: Call) -> None:
    """Issue: no inline script, style or handler."""
    assert not re.search(r"<style|<script>|\son\w+=|\sstyle=", console("GET", "/").text)


def test_the_script_sets_text_and_never_markup(console: Call) -> None:
    """Issue: textContent only."""
    assert not re.search(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(", console("GET", "/live.js").text
    )


@pytest.mark.parametrize("path", ["/", "/events", "/live", "/live.js", "/faults"])
def test_a_page_of_another_site_gets_nothing(stage: Stage, path: str) -> None:
    """contract, Control surface: the Host header is checked."""
    app = console_app(stage.sandbox, token="t")
    assert call(app, "GET", f"/t{path}", base_url="http://evil.example").status_code == 403


@pytest.mark.parametrize("path", ["/", "/events", "/live", "/faults"])
def test_without_the_token_there_is_nothing(stage: Stage, path: str) -> None:
    """contract, Control surface: the token is part of the address."""
    assert call(console_app(stage.sandbox, token="t"), "GET", f"/wrong{path}").status_code == 404
