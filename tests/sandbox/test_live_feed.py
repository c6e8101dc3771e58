"""The live feed of events and the page that shows it (Wire 5.2, Live feed)."""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from collections.abc import AsyncIterator, Callable, MutableMapping
from typing import Any

import pytest

from gamelens.sandbox.collector.live_feed import FEED_EVENTS, MAX_LISTENERS, FeedFilter
from gamelens.sandbox.control.control_app import control_app
from gamelens.sandbox.control.live_event_stream import server_sent_events
from gamelens.wire.signing import sign
from support.app_requests import Call, call
from support.collector_requests import GAME_KEY
from support.game_events import NOW, event
from support.sandbox_stage import Stage

pytestmark = pytest.mark.slow

IP = "203.0.113.77"
BOUGHT = {"category": "business", "event_id": "boosts:gold", "amount": 500, "transaction_num": 1}
SHOWN = {"category": "impression", "ad_network_name": "admob", "ad_network_version": "1"}
NEW_EVENTS = FeedFilter(limit=0)
POLICY = {"default-src 'none'", "script-src 'self'", "style-src 'self'", "connect-src 'self'", "form-action 'none'"}


LIVE: dict[str, Any] = {
    "type": "http",
    "method": "GET",
    "path": "/t/live",
    "raw_path": b"/t/live",
    "query_string": b"",
    "headers": [(b"host", b"127.0.0.1")],
    "asgi": {"spec_version": "2.3"},
    "http_version": "1.1",
}
"""A request for the stream."""


def users(shown_events: list[dict[str, Any]]) -> list[str]:
    """Return the `user_id` of every event."""
    return [shown["event"]["user_id"] for shown in shown_events]


# -- GET /events ------------------------------------------------------------------------------------------------------


TIMES: dict[Any, str | None] = {
    NOW.timestamp() - 60: None,
    None: "no client_ts",
    0: "client_ts more than 365 days before arrival",
    NOW.timestamp() + 90_000: "client_ts more than 24 h after arrival",
    NOW.timestamp() * 1000: "client_ts in milliseconds",
    10**30: "client_ts that is no usable number of seconds",
}


def test_events_dated_by_arrival_are_marked_and_counted(stage: Stage, control_api: Call) -> None:
    """`/events` says which and why at once, `/summary` counts them since the start, and in the lake after processing.

    Wire 4.1, Event time; Wire 5.2, Live feed.
    """
    sent = [event(client_ts=None) | ({} if time is None else {"client_ts": _whole(time)}) for time in TIMES]
    assert stage.submit([*sent, event(v=1, client_ts=0)]).status_code == 400
    marked = [shown.get("remarks") for shown in control_api("GET", "/events?status=accepted").json()][::-1]
    assert marked == [[f"dated by arrival: {reason}"] if reason else None for reason in TIMES.values()]
    counts = dict(sorted(Counter(filter(None, TIMES.values())).items()))
    summary = control_api("GET", "/summary").json()
    assert summary["since_start"]["dated_by_arrival"] == counts
    assert summary["dated_by_arrival"] == {}
    stage.process()
    assert control_api("GET", "/summary").json()["dated_by_arrival"] == {"acme": counts}
    control_api("POST", "/reset")
    summary = control_api("GET", "/summary").json()
    assert summary["since_start"]["dated_by_arrival"] == summary["dated_by_arrival"] == {}


def _whole(time: Any) -> Any:
    return int(time) if isinstance(time, float) else time


def test_an_accepted_event_is_shown_as_it_was_sent(stage: Stage, control_api: Call) -> None:
    """An accepted event is listed as sent, with arrival, game, status, no errors, and what the strict rules say.

    Wire 5.2, Live feed.
    """
    sent = event(own_field={"kept": [1, "two"]})
    stage.submit([sent])
    assert control_api("GET", "/events").json() == [
        {
            "arrival_ts": int(NOW.timestamp()),
            "game_key": GAME_KEY,
            "status": "accepted",
            "event": sent,
            "errors": [],
            "strict_errors": [{"error_type": "no_extra_properties_allowed", "path": "/own_field"}],
        }
    ]


def test_a_rejected_event_is_shown_with_every_reason(stage: Stage, control_api: Call) -> None:
    """A rejected event is listed with the errors of the 400 response (Wire 5.2, Live feed)."""
    answer = stage.submit([event(user_id=None, v=3)])
    (shown,) = control_api("GET", "/events", params={"status": "rejected"}).json()
    assert {"event": shown["event"], "errors": shown["errors"]} == answer.json()[0]


def test_the_newest_event_is_first(stage: Stage, control_api: Call) -> None:
    """Events are listed newest first, within a batch as well (Wire 5.2, Live feed)."""
    stage.submit([event(user_id="a"), event(user_id="b")])
    stage.submit([event(user_id="c")], game_id="1002")
    stage.submit([event(user_id="d")])
    assert users(control_api("GET", "/events").json()) == ["d", "c", "b", "a"]


@pytest.mark.parametrize(
    ("params", "shown"),
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
def test_events_are_filtered(stage: Stage, control_api: Call, params: dict[str, str], shown: list[str]) -> None:
    """Events are filtered by status, game, category and limit, where not empty.

    Wire 5.2, Live feed.
    """
    stage.submit([event(), event(category="session_end", length=3, user_id="shop")])
    stage.submit([event(category="<b>", user_id="bad")])
    stage.submit([event(user_id="ember")], game_id="2001")
    assert users(control_api("GET", "/events", params=params).json()) == shown


@pytest.mark.parametrize(
    ("params", "field"),
    [
        ({"status": "good"}, "status"),
        ({"game_key": "0" * 32}, "game_key"),
        ({"limit": "-1"}, "limit"),
        ({"limit": "many"}, "limit"),
        ({"limit": "10001"}, "limit"),
        ({"categroy": "user"}, "categroy"),
    ],
)
def test_a_bad_filter_is_refused_by_field(control_api: Call, params: dict[str, str], field: str) -> None:
    """A wrong value or an unknown parameter gets 422 with its name (Wire 5.2, Live feed)."""
    answer = control_api("GET", "/events", params=params)
    assert (answer.status_code, answer.json()["field"]) == (422, field)


def test_accepted_events_are_still_there_after_a_restart(make_stage: Callable[..., Stage]) -> None:
    """Accepted events are listed after a restart, because they are read from disk.

    Wire 5.2, Live feed.
    """
    first = make_stage()
    first.submit([event(user_id="a"), event(user_id="b")])
    first.sandbox.close()
    control = control_app(make_stage().sandbox, token="t")
    assert users(call(control, "GET", "/t/events").json()) == ["b", "a"]


def test_kept_events_are_bounded(stage: Stage, control_api: Call) -> None:
    """The newest events of a game and status stay, up to a bound, in whole batches.

    Wire 5.2, Live feed.
    """
    for number in range(7):
        stage.submit([event(user_id=str(number))] * (FEED_EVENTS // 5))
    shown = users(control_api("GET", "/events", params={"limit": 10_000}).json())
    assert (len(shown), set(shown)) == (FEED_EVENTS, {"2", "3", "4", "5", "6"})


def test_a_busy_game_does_not_push_out_another(stage: Stage, control_api: Call) -> None:
    """The bound on kept events is for each game alone (Wire 5.2, Live feed)."""
    stage.submit([event(user_id="quiet")], game_id="2001")
    stage.submit([event()] * (FEED_EVENTS + 1))
    assert users(control_api("GET", "/events", params={"game_key": stage.game("2001").game_key}).json()) == ["quiet"]


def test_neither_address_nor_keys_are_shown(stage: Stage, control_api: Call) -> None:
    """Neither IP addresses nor keys appear in events and summary.

    Wire 1.17, Country; Wire 5.2, Live feed.
    """
    stage.submit([event(), event(v=1)], headers={"X-Forwarded-For": IP})
    shown = control_api("GET", "/events").text + control_api("GET", "/summary").text
    assert not [secret for secret in (IP, stage.game("1001").secret_key, "key-of-acme") if secret in shown]


def test_reset_empties_the_feed(stage: Stage, control_api: Call) -> None:
    """`POST /reset` removes accepted and rejected events from the list.

    Wire 5.1, Control API.
    """
    stage.submit([event(), event(v=1)])
    control_api("POST", "/reset")
    assert control_api("GET", "/events").json() == []


# -- GET /summary -----------------------------------------------------------------------------------------------------


def test_counts_are_kept_by_category(stage: Stage, control_api: Call) -> None:
    """Events are counted by category, and unknown categories as "unknown".

    Wire 5.2, Live feed.
    """
    stage.submit([event(), event(), event(v=1), event(category="session_end", length=1), event(category="x"), 17])
    counts = control_api("GET", "/summary").json()["since_start"]["categories"]
    assert counts == {
        "session_end": {"accepted": 1, "rejected": 0, "strict_refusals": 0},
        "unknown": {"accepted": 0, "rejected": 2, "strict_refusals": 0},
        "user": {"accepted": 2, "rejected": 1, "strict_refusals": 0},
    }


def test_counts_are_kept_by_game(stage: Stage, control_api: Call) -> None:
    """Events are counted by game key, and production games are left out.

    Wire 5.1, Control API.
    """
    stage.submit([event(), event(v=1)])
    counts = control_api("GET", "/summary").json()["since_start"]["games"]
    assert counts[GAME_KEY] == {"title": "Tile Saga", "accepted": 1, "rejected": 1, "strict_refusals": 0}
    assert stage.game("2002").game_key not in counts


def test_refused_requests_are_counted_by_status(stage: Stage, control_api: Call) -> None:
    """Refused requests are counted by status, although they store no event.

    Wire 5.2, Live feed.
    """
    stage.submit([event()], headers={"Authorization": "wrong"})
    stage.submit({"no": "array"})
    stage.submit([event(v=1)])
    assert control_api("GET", "/summary").json()["since_start"]["refused"] == {"400": 1, "401": 1}


def test_repeated_summaries_add_up(stage: Stage) -> None:
    """Every summary has the totals, although it sums only what is new (Wire 5.1, Control API)."""
    for accepted in (1, 2, 3):
        stage.submit([event(), event(v=1)])
        assert stage.sandbox.summary()["games"]["1001"] == {
            "accepted": accepted,
            "rejected": accepted,
            "pending": accepted,
        }


# -- GET /live --------------------------------------------------------------------------------------------------------


def parsed_messages(chunk: bytes) -> list[tuple[str, Any]]:
    """Return kind and content of every message in a piece of the stream."""
    messages = []
    for block in chunk.decode().split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.splitlines() if not line.startswith(":"))
        if "data" in fields:
            messages.append((fields.get("event", "message"), json.loads(fields["data"])))
    return messages


def messages_of(
    stage: Stage, *actions: Callable[[], Any], feed_filter: FeedFilter = NEW_EVENTS, keepalive_s: float = 5
) -> list[tuple[str, Any]]:
    """Return the messages a new subscriber gets while *actions* run one after the other."""
    return [
        message
        for chunk in asyncio.run(_stream(stage, actions, feed_filter, keepalive_s))
        for message in parsed_messages(chunk)
    ]


async def _stream(
    stage: Stage, actions: tuple[Callable[[], Any], ...], feed_filter: FeedFilter, keepalive_s: float
) -> list[bytes]:
    live = stage.sandbox.live
    stream: AsyncIterator[bytes] = server_sent_events(
        live, feed_filter, live.listen(), gather_s=0, silence_s=keepalive_s
    )
    chunks = [await anext(stream), await anext(stream)]
    for action in actions:
        await asyncio.to_thread(action)
        chunks.append(await anext(stream))
    stage.sandbox.live.close()
    return chunks + [chunk async for chunk in stream]


def events_in(messages: list[tuple[str, Any]]) -> list[dict[str, Any]]:
    """Return the events among *messages*."""
    return [content for kind, content in messages if kind == "message"]


def test_a_subscriber_gets_the_events_that_are_listed(stage: Stage, control_api: Call) -> None:
    """`GET /live` sends the events that `GET /events` lists (Wire 5.2, Live feed)."""
    messages = messages_of(stage, lambda: stage.submit([event(), event(v=1)]))
    assert events_in(messages)[::-1] == control_api("GET", "/events").json()


def test_a_subscriber_may_start_with_the_newest_events(stage: Stage) -> None:
    """With a limit, the newest events come first, in the order of arrival.

    Wire 5.2, Live feed.
    """
    stage.submit([event(user_id=name) for name in "abc"])
    messages = messages_of(stage, lambda: stage.submit([event(user_id="d")]), feed_filter=FeedFilter(limit=2))
    assert users(events_in(messages)) == ["b", "c", "d"]


def test_a_subscriber_gets_only_events_of_its_filter(stage: Stage) -> None:
    """`GET /live` has the filters of `GET /events` (Wire 5.2, Live feed)."""
    feed_filter = FeedFilter(limit=0, status="rejected", category="user")
    messages = messages_of(stage, lambda: stage.submit([event(), event(v=1, user_id="bad")]), feed_filter=feed_filter)
    assert users(events_in(messages)) == ["bad"]


def test_counts_are_sent_with_the_events(stage: Stage) -> None:
    """The counts are sent at the start and with every change (Wire 5.2, Live feed)."""
    messages = messages_of(stage, lambda: stage.submit([event()]))
    assert [content["accepted"] for kind, content in messages if kind == "counts"][:2] == [0, 1]


def test_line_ends_inside_an_event_do_not_end_the_message(stage: Stage) -> None:
    """An event that was sent with line breaks is still one message (Wire 5.2, Live feed)."""
    game = stage.game("1001")
    body = json.dumps([event(user_id="a\nb")], indent=2).replace("\n", "\r\n").encode()
    signed = {"Authorization": sign(body, secret_key=game.secret_key)}
    messages = messages_of(stage, lambda: stage.post(f"/v2/{game.game_key}/events", body, signed))
    assert users(events_in(messages)) == ["a\nb"]


def test_a_slow_subscriber_loses_the_oldest_events(stage: Stage) -> None:
    """A slow subscriber loses the oldest events, and their number is reported.

    Wire 5.2, Live feed.
    """
    seen = stage.sandbox.live.seen()
    for number in range(3):
        stage.submit([event(user_id=str(number))] * (FEED_EVENTS // 2))
    entries, missed = stage.sandbox.live.after(seen, FeedFilter())
    user_ids = {json.loads(bytes(entry.event))["user_id"] for entry in entries}
    assert (len(entries), user_ids, missed) == (FEED_EVENTS, {"1", "2"}, FEED_EVENTS // 2)


def test_events_that_a_filter_leaves_out_are_not_missed(stage: Stage) -> None:
    """A busy game costs the listeners of another game nothing (Wire 5.2, Live feed)."""
    seen = stage.sandbox.live.seen()
    stage.submit([event(user_id="quiet")], game_id="2001")
    stage.submit([event()] * (FEED_EVENTS + 1))
    stage.submit([event()] * (FEED_EVENTS + 1))
    entries, missed = stage.sandbox.live.after(seen, FeedFilter(game_key=stage.game("2001").game_key))
    assert (len(entries), missed) == (1, 0)


def test_a_batch_larger_than_what_is_shown_at_once(stage: Stage) -> None:
    """Of a batch beyond the limit the newest events are sent, and the rest counted.

    Wire 5.2, Live feed.
    """
    messages = messages_of(stage, lambda: stage.submit([event()] * (FEED_EVENTS + 7)))
    assert ("missed", {"events": 7}) in messages
    assert len(events_in(messages)) == FEED_EVENTS


def test_a_reset_is_sent_to_subscribers(stage: Stage) -> None:
    """A reset is sent to subscribers, so that they can drop the events they show.

    Wire 5.2, Live feed.
    """
    messages = messages_of(stage, lambda: asyncio.run(stage.sandbox.reset()))
    assert ("reset", {}) in messages


def test_silence_is_filled_with_comments(stage: Stage) -> None:
    """A comment is sent when there are no events, to keep the connection open.

    Wire 5.2, Live feed.
    """
    chunks = asyncio.run(_stream(stage, (lambda: None,), FeedFilter(limit=0), 0.01))
    assert chunks[2].startswith(b":")


def test_a_subscriber_that_disconnects_is_removed(stage: Stage) -> None:
    """A client that disconnects is removed, even if it has stopped reading.

    Wire 5.2, Live feed.
    """
    asyncio.run(_leave(stage))
    assert not stage.sandbox.live.listeners


async def _leave(stage: Stage) -> None:
    app = control_app(stage.sandbox, token="t")
    started = asyncio.Event()

    async def receive() -> dict[str, str]:
        await started.wait()
        return {"type": "http.disconnect"}

    async def send(message: MutableMapping[str, Any]) -> None:
        if message.get("body"):
            assert stage.sandbox.live.listeners
            started.set()
            await asyncio.sleep(3600)  # a client that stops reading and disconnects later

    async with asyncio.timeout(5):
        await app(dict(LIVE), receive, send)


def test_the_bound_of_streams_holds_in_a_burst(stage: Stage) -> None:
    """Of many that come at once, no more are opened than there may be, and all are removed in the end.

    Wire 5.2, Live feed.
    """
    statuses = asyncio.run(_burst(stage, MAX_LISTENERS * 3))
    assert (statuses.count(200), statuses.count(503)) == (MAX_LISTENERS, MAX_LISTENERS * 2)
    assert not stage.sandbox.live.listeners


async def _burst(stage: Stage, requests: int) -> list[int]:
    """Return the statuses of *requests* for the stream that start before any is answered, and stop when all are."""
    app, statuses, all_answered = control_app(stage.sandbox, token="t"), list[int](), asyncio.Event()

    async def receive() -> dict[str, str]:
        await all_answered.wait()
        return {"type": "http.disconnect"}

    async def send(message: MutableMapping[str, Any]) -> None:
        await asyncio.sleep(0)
        if message["type"] == "http.response.start":
            statuses.append(message["status"])
            if len(statuses) == requests:
                all_answered.set()

    async with asyncio.timeout(20), asyncio.TaskGroup() as group:
        for _ in range(requests):
            group.create_task(app(dict(LIVE), receive, send))
    return statuses


# -- GET / ------------------------------------------------------------------------------------------------------------


def test_every_file_the_page_names_is_served(control_api: Call) -> None:
    """The page has an icon, one script and one stylesheet, and all are served.

    Wire 5.2, Live feed.
    """
    names = re.findall(r'(?:src|href)="([^"]+)"', control_api("GET", "/").text)
    assert {name: control_api("GET", f"/{name}").headers["content-type"].split(";")[0] for name in names} == {
        "icon.svg": "image/svg+xml",
        "live.css": "text/css",
        "live.js": "text/javascript",
    }


def test_the_page_may_load_nothing_but_its_own_files(control_api: Call) -> None:
    """The page's Content-Security-Policy allows its own files and nothing else.

    Wire 5.2, Live feed.
    """
    answer = control_api("GET", "/")
    assert set(answer.headers["content-security-policy"].split("; ")) >= POLICY
    assert "unsafe" not in answer.headers["content-security-policy"]


def test_only_pages_of_this_machine_may_frame_the_page(control_api: Call) -> None:
    """Such as a notebook, whose port is any. A page from elsewhere may not, whatever it knows of the address."""
    headers = control_api("GET", "/").headers
    rules = dict(rule.split(" ", 1) for rule in headers["content-security-policy"].split("; "))
    assert rules["frame-ancestors"] == "http://127.0.0.1:* http://localhost:*"
    assert "x-frame-options" not in headers


def test_the_page_has_nothing_inline(control_api: Call) -> None:
    """The page has no inline script, style or event handler (Wire 5.2, Live feed)."""
    assert not re.search(r"<style|<script>|\son\w+=|\sstyle=", control_api("GET", "/").text)


def test_the_script_sets_text_and_never_markup(control_api: Call) -> None:
    """The script uses no function that would turn event data into markup.

    Wire 5.2, Live feed.
    """
    assert not re.search(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(", control_api("GET", "/live.js").text
    )


@pytest.mark.parametrize("path", ["/", "/events", "/live", "/live.js", "/faults"])
def test_a_foreign_host_header_is_403(stage: Stage, path: str) -> None:
    """Every path of the page is 403 for a foreign `Host` header (Wire 5.1, Control API)."""
    app = control_app(stage.sandbox, token="t")
    assert call(app, "GET", f"/t{path}", base_url="http://evil.example").status_code == 403


@pytest.mark.parametrize("path", ["/", "/events", "/live", "/faults"])
def test_without_the_token_every_path_is_404(stage: Stage, path: str) -> None:
    """Every path of the page is 404 without the token (Wire 5.1, Control API)."""
    assert call(control_app(stage.sandbox, token="t"), "GET", f"/wrong{path}").status_code == 404


@pytest.mark.parametrize(
    ("fields", "remark"),
    [
        ({"length": 86_400}, None),
        ({"length": 86_401}, "86,401 s, 1.0 days"),
        ({"length": 1_795_892_197}, "1,795,892,197 s, 20,785.8 days"),
        ({"category": "design", "event_id": "session_end", "length": 1_795_892_197}, None),
        (BOUGHT | {"currency": "USD"}, None),
        (BOUGHT | {"currency": "VEF"}, "VEF is of another list of currencies: here the country has VES"),
        (BOUGHT | {"currency": "BYR"}, "BYR is of another list of currencies: here the country has BYN"),
        (BOUGHT | {"currency": "eur "}, "the currency is written EUR"),
        (BOUGHT | {"currency": "coins"}, "none of the three-letter codes"),
        (SHOWN | {"impression_data": {"currency": "VEF"}}, "it counts as an impression of 0: VEF is of another list"),
        (SHOWN | {"impression_data": {"currency": "EUR"}}, None),
        (SHOWN | {"impression_data": {"revenue": 1}}, None),
    ],
)
def test_what_is_unlikely_about_an_event_is_remarked_on(
    stage: Stage, control_api: Call, fields: dict[str, Any], remark: str | None
) -> None:
    """Sessions of more than a day and currencies without a rate have a remark, accepted or rejected.

    Wire 4.11, Metrics; Wire 3.8, Currencies.
    """
    stage.submit([event(**{"category": "session_end"} | fields)])
    (shown,) = control_api("GET", "/events").json()
    said = shown.get("remarks", [])
    assert len(said) == (remark is not None)
    assert remark is None or remark in said[0]
