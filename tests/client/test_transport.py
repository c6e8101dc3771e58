"""The transport: the error for each status, and which requests are repeated."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from email.utils import formatdate
from typing import Any

import httpx
import pytest
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.types import Receive, Scope, Send

from gamelens.client.connection.settings import Secret
from gamelens.client.connection.transport import HttpRequest, HttpResponse, RequestStats, Transport
from gamelens.errors import AuthError, BadQuery, RateLimited, ServiceError, Unreachable

KEY = "sesame-0123456789"
NOW = 1_795_000_000.0


class TransportUnderTest:
    """A transport to an app that gives *answers* in turn, the last for ever.

    Time passes only while it sleeps.
    """

    def __init__(self, *answers: Response, random: Callable[[], float] = lambda: 1.0, **options: Any) -> None:
        self.answers = list(answers)
        self.time = 0.0
        self.sleeps: list[float] = []
        self.headers: list[dict[str, str]] = []
        self.tally = RequestStats()
        self.transport = Transport(
            "http://127.0.0.1",
            key=Secret(KEY),
            pool=httpx.ASGITransport(self._app),
            clock=lambda: self.time,
            sleep=self._sleep,
            now=lambda: NOW,
            random=random,
            **options,
        )

    async def _app(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.headers.append({name.decode(): value.decode() for name, value in scope["headers"]})
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        await answer(scope, receive, send)

    async def _sleep(self, seconds: float) -> None:
        self.sleeps.append(seconds)
        self.time += seconds

    def send(self, **more: Any) -> HttpResponse:
        request = HttpRequest(method="POST", path="/metrics/v1/metrics/revenue", body=b"{}", **more)
        return asyncio.run(self.transport.send(request, self.tally))


def refused(status: int, headers: dict[str, str] | None = None, **body: Any) -> Response:
    """Return a JSON response with *status*."""
    return JSONResponse(body, status, headers)


GOOD = PlainTextResponse("fine")


def test_a_response_has_status_and_body() -> None:
    """A response has the status and the bytes of the body."""
    answer = TransportUnderTest(GOOD).send()
    assert (answer.status, answer.body) == (200, b"fine")


def test_the_key_is_sent_in_its_header() -> None:
    """The key is sent as `X-API-Key` (Wire 2.2, API key)."""
    stand = TransportUnderTest(GOOD)
    stand.send()
    assert stand.headers[0]["x-api-key"] == KEY


@pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503, 504])
def test_temporary_failures_are_repeated(status: int) -> None:
    """What may be over at the next try is repeated (Wire 2.12, Refusals)."""
    assert TransportUnderTest(refused(status), refused(status), GOOD).send().body == b"fine"


@pytest.mark.parametrize("status", [400, 401, 404, 422, 501])
def test_lasting_failures_are_not_repeated(status: int) -> None:
    """Other errors are raised after one request."""
    stand = TransportUnderTest(refused(status))
    with pytest.raises((AuthError, BadQuery, ServiceError)):
        stand.send()
    assert stand.tally.requests == 1


@pytest.mark.parametrize(
    "page",
    [
        Response("<!DOCTYPE html><p>Sign in", media_type="application/json"),
        Response("\ufeff\n<HTML lang=en>", media_type="text/plain"),
        Response("Welcome", media_type="text/html"),
    ],
)
def test_a_web_page_is_called_one(page: Response) -> None:
    """A page in place of an answer says to check the address, once."""
    stand = TransportUnderTest(page)
    with pytest.raises(ServiceError, match="a web page, not JSON: check the address"):
        stand.send()
    assert stand.tally.requests == 1


@pytest.mark.parametrize("part", ['{"result": [{"a": ', "[1, 2", '"abc', '{"result": []'])
def test_an_answer_cut_off_without_a_length_is_repeated(part: str) -> None:
    """Where nothing else tells how long an answer is, its JSON does."""

    cut = Response(part, media_type="application/json")
    del cut.headers["content-length"]
    assert TransportUnderTest(cut, cut, GOOD).send().body == b"fine"


def test_after_six_attempts_the_client_gives_up() -> None:
    """The sixth 503 is raised with its status."""
    stand = TransportUnderTest(refused(503))
    with pytest.raises(ServiceError) as failed:
        stand.send()
    assert (stand.tally.requests, stand.tally.retries, failed.value.status) == (6, 5, 503)


def test_waits_double_and_are_jittered_in_full() -> None:
    """Waits double from 1 s with full jitter: half of each at chance 0.5."""
    stand = TransportUnderTest(refused(503), random=lambda: 0.5)
    with pytest.raises(ServiceError):
        stand.send()
    assert stand.sleeps == [0.5, 1.0, 2.0, 4.0, 8.0]


def test_retry_after_in_seconds_is_obeyed() -> None:
    """`Retry-After: 7` is a wait of 7 s."""
    stand = TransportUnderTest(refused(429, {"Retry-After": "7"}), GOOD)
    stand.send()
    assert stand.sleeps == [7.0]


def test_retry_after_as_a_date_is_obeyed() -> None:
    """`Retry-After` as an HTTP date is a wait until then."""
    stand = TransportUnderTest(refused(429, {"Retry-After": formatdate(NOW + 9, usegmt=True)}), GOOD)
    stand.send()
    assert stand.sleeps == [9.0]


def test_retry_after_in_the_past_is_no_wait() -> None:
    """`Retry-After` with a past date is not a wait."""
    stand = TransportUnderTest(refused(429, {"Retry-After": formatdate(NOW - 9, usegmt=True)}), GOOD)
    stand.send()
    assert stand.sleeps == [0.0]


@pytest.mark.parametrize("nonsense", ["soon", "-5", "1e400", "nan"])
def test_an_invalid_retry_after_is_ignored(nonsense: str) -> None:
    """An invalid `Retry-After` leaves the usual wait."""
    stand = TransportUnderTest(refused(429, {"Retry-After": nonsense}), GOOD)
    stand.send()
    assert stand.sleeps == [1.0]


def test_a_retry_after_of_an_hour_is_raised_after_one_request() -> None:
    """A wait longer than `max_wait_s` raises `RateLimited` with its length."""
    stand = TransportUnderTest(refused(429, {"Retry-After": "3600"}))
    with pytest.raises(RateLimited) as limited:
        stand.send()
    assert (limited.value.retry_after, stand.tally.requests) == (3600.0, 1)


@pytest.mark.parametrize("header", [{}, {"Retry-After": "20"}, {"Retry-After": "59"}])
def test_429_for_ever_ends_within_eighty_seconds(header: dict[str, str]) -> None:
    """Repeated 429 answers are raised within 80 s, whatever `Retry-After` says."""
    stand = TransportUnderTest(refused(429, header))
    with pytest.raises(RateLimited):
        stand.send()
    assert stand.time < 80


def limited_text(*answers: Response, **options: Any) -> str:
    """Return the message of `RateLimited` after *answers*."""
    with pytest.raises(RateLimited) as limited:
        TransportUnderTest(*answers, **options).send()
    return str(limited.value)


def test_a_429_that_asks_for_a_long_wait_is_not_said_to_last() -> None:
    """One 429 with a wait beyond `max_wait_s` is told as one, with both numbers and the next step."""
    message = "http://127.0.0.1 answers 429 and requests a wait of 3600 s, more than max_wait_s=60: try again later"
    assert limited_text(refused(429, {"Retry-After": "3600"})) == message


def test_one_429_among_other_failures_is_not_said_to_last() -> None:
    """A 429 that was met once, at the end of the attempts, is told as one."""
    assert limited_text(*[refused(503)] * 5, refused(429)) == "http://127.0.0.1 answers 429: try again later"


def test_a_429_that_lasts_is_counted() -> None:
    """`keeps answering` is said of several answers 429 alone, with their number."""
    message = "http://127.0.0.1 keeps answering 429 (6 times): ask for less at a time, or try again later"
    assert limited_text(refused(429)) == message
    assert "keeps answering 429 (2 times)" in limited_text(*[refused(503)] * 4, refused(429))


def test_a_429_keeps_the_words_of_the_service() -> None:
    """The reason that the service gives follows ours."""
    assert limited_text(refused(429, detail="the plan is used up")).endswith("later: the plan is used up")


def test_401_is_an_auth_error_without_the_key() -> None:
    """A 401 is an `AuthError`, and a quoted key is masked (Wire 2.2, API key)."""
    with pytest.raises(AuthError) as unknown:
        TransportUnderTest(refused(401, message=f"no such key: {KEY}")).send()
    assert KEY not in str(unknown.value)


def test_a_key_quoted_in_escapes_is_masked_too() -> None:
    """A key written in Unicode escapes is masked in the error."""
    quoted = "".join(f"\\u{ord(letter):04x}" for letter in KEY)
    with pytest.raises(AuthError) as unknown:
        TransportUnderTest(PlainTextResponse(f'{{"message": "no such key: {quoted}"}}', 401)).send()
    assert str(unknown.value).endswith("no such key: …")


def test_a_body_of_escaped_quotes_is_searched_quickly() -> None:
    """Searching a body for the key takes linear time."""
    with pytest.raises(ServiceError):
        TransportUnderTest(PlainTextResponse('\\"' * 500_000, 500)).send()


def test_422_has_field_value_and_allowed_names() -> None:
    """A 422 is a `BadQuery` with field, value and allowed names (Wire 2.12, Refusals)."""
    body: dict[str, Any] = {
        "field": "query.dimension",
        "value": "platfrom",
        "message": "no",
        "allowed": ["platform", "build"],
    }
    with pytest.raises(BadQuery) as bad:
        TransportUnderTest(refused(422, **body)).send()
    error = bad.value
    assert (error.field, error.value, error.allowed) == ("query.dimension", "platfrom", ("platform", "build"))


def test_422_has_the_message_of_the_service() -> None:
    """The message of a 422 is that of the service."""
    with pytest.raises(BadQuery, match=r"^too many days$"):
        TransportUnderTest(refused(422, message="too many days")).send()


def test_422_keeps_the_nearest_name_the_service_offers() -> None:
    """`did_you_mean` of a 422 is passed on."""
    with pytest.raises(BadQuery) as bad:
        TransportUnderTest(refused(422, field="metric", value="x", did_you_mean="revenue")).send()
    assert bad.value.did_you_mean == "revenue"


def test_a_422_without_a_body_is_a_bad_query_all_the_same() -> None:
    """A 422 without a body is a `BadQuery` with a general message."""
    with pytest.raises(BadQuery, match="refused by the service"):
        TransportUnderTest(Response(status_code=422)).send()


def test_an_error_page_is_a_service_error() -> None:
    """An HTML page with status 500 is a `ServiceError` with the status."""
    with pytest.raises(ServiceError, match="the service answered 500"):
        TransportUnderTest(PlainTextResponse("<html>oops</html>", 500)).send()


def test_a_redirect_is_not_followed_with_the_key() -> None:
    """A redirect is an error, so the key is never sent to another host."""
    stand = TransportUnderTest(Response(status_code=302, headers={"Location": "https://elsewhere.example/"}))
    with pytest.raises(ServiceError):
        stand.send()
    assert stand.tally.requests == 1


def test_a_request_may_accept_another_status() -> None:
    """A status listed in `answers` is returned instead of raised."""
    assert TransportUnderTest(refused(400)).send(expected_statuses=frozenset({400})).status == 400


def test_a_refused_connection_names_the_address() -> None:
    """A refused connection is `Unreachable` with the address."""
    transport = Transport("http://127.0.0.1:1", random=lambda: 0.0)
    with pytest.raises(Unreachable, match=r"nothing answers at http://127\.0\.0\.1:1"):
        asyncio.run(transport.send(HttpRequest(method="GET", path="/")))


def test_no_error_leads_to_an_httpx_exception() -> None:
    """Errors have no httpx exception as cause or context."""
    transport = Transport("http://127.0.0.1:1", random=lambda: 0.0)
    with pytest.raises(Unreachable) as gone:
        asyncio.run(transport.send(HttpRequest(method="GET", path="/")))
    assert (gone.value.__cause__, gone.value.__context__) == (None, None)


def test_the_repr_holds_no_key() -> None:
    """The repr of a transport does not contain the key."""
    assert KEY not in repr(TransportUnderTest(GOOD).transport)
