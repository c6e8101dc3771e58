"""What the transport makes of statuses, and when it tries again (Metrics, Errors; public-facts 3.1)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from email.utils import formatdate
from typing import Any

import httpx
import pytest
from starlette.responses import JSONResponse, PlainTextResponse, Response

from gamelens.client.connection.settings import Secret
from gamelens.client.connection.transport import HttpRequest, HttpResponse, RequestStats, Transport
from gamelens.errors import AuthError, BadQuery, RateLimited, ServiceError, Unreachable

KEY = "sesame-0123456789"
NOW = 1_795_000_000.0


class Stand:
    """A transport before an app that gives the *answers* in turn, the last for ever; time passes only in sleeps."""

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

    async def _app(self, scope: Any, receive: Any, send: Any) -> None:
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
    return JSONResponse(body, status, headers)


GOOD = PlainTextResponse("fine")


def test_an_answer_is_its_status_and_its_bytes() -> None:
    answer = Stand(GOOD).send()
    assert (answer.status, answer.body) == (200, b"fine")


def test_the_key_travels_in_its_header() -> None:
    """Metrics, Authentication 1."""
    stand = Stand(GOOD)
    stand.send()
    assert stand.headers[0]["x-api-key"] == KEY


@pytest.mark.parametrize("status", [429, 502, 503, 504])
def test_what_passes_is_tried_again(status: int) -> None:
    """Metrics, Errors 1; public-facts 3.1."""
    assert Stand(refused(status), refused(status), GOOD).send().body == b"fine"


@pytest.mark.parametrize("status", [400, 401, 404, 422, 500])
def test_what_does_not_pass_is_not_tried_again(status: int) -> None:
    stand = Stand(refused(status))
    with pytest.raises((AuthError, BadQuery, ServiceError)):
        stand.send()
    assert stand.tally.requests == 1


def test_after_six_attempts_the_client_gives_up() -> None:
    stand = Stand(refused(503))
    with pytest.raises(ServiceError) as failed:
        stand.send()
    assert (stand.tally.requests, stand.tally.retries, failed.value.status) == (6, 5, 503)


def test_waits_double_and_are_jittered_in_full() -> None:
    stand = Stand(refused(503), random=lambda: 0.5)
    with pytest.raises(ServiceError):
        stand.send()
    assert stand.sleeps == [0.5, 1.0, 2.0, 4.0, 8.0]


def test_retry_after_in_seconds_is_obeyed() -> None:
    stand = Stand(refused(429, {"Retry-After": "7"}), GOOD)
    stand.send()
    assert stand.sleeps == [7.0]


def test_retry_after_as_a_date_is_obeyed() -> None:
    stand = Stand(refused(429, {"Retry-After": formatdate(NOW + 9, usegmt=True)}), GOOD)
    stand.send()
    assert stand.sleeps == [9.0]


def test_retry_after_in_the_past_is_no_wait() -> None:
    stand = Stand(refused(429, {"Retry-After": formatdate(NOW - 9, usegmt=True)}), GOOD)
    stand.send()
    assert stand.sleeps == [0.0]


@pytest.mark.parametrize("nonsense", ["soon", "-5", "1e400", "nan"])
def test_a_retry_after_nobody_can_read_is_ignored(nonsense: str) -> None:
    stand = Stand(refused(429, {"Retry-After": nonsense}), GOOD)
    stand.send()
    assert stand.sleeps == [1.0]


def test_a_retry_after_of_an_hour_is_raised_after_one_request() -> None:
    stand = Stand(refused(429, {"Retry-After": "3600"}))
    with pytest.raises(RateLimited) as limited:
        stand.send()
    assert (limited.value.retry_after, stand.tally.requests) == (3600.0, 1)


@pytest.mark.parametrize("header", [{}, {"Retry-After": "20"}, {"Retry-After": "59"}])
def test_429_for_ever_ends_within_eighty_seconds(header: dict[str, str]) -> None:
    stand = Stand(refused(429, header))
    with pytest.raises(RateLimited):
        stand.send()
    assert stand.time < 80


def test_401_is_an_auth_error_without_the_key() -> None:
    """Metrics, Authentication; a service that quotes the key is not quoted."""
    with pytest.raises(AuthError) as unknown:
        Stand(refused(401, message=f"no such key: {KEY}")).send()
    assert KEY not in str(unknown.value)


def test_a_key_that_is_quoted_in_escapes_is_not_quoted_either() -> None:
    quoted = "".join(f"\\u{ord(letter):04x}" for letter in KEY)
    with pytest.raises(AuthError) as unknown:
        Stand(PlainTextResponse(f'{{"message": "no such key: {quoted}"}}', 401)).send()
    assert str(unknown.value).endswith("no such key: …")


def test_a_body_of_nothing_but_escaped_quotes_is_read_in_no_time() -> None:
    with pytest.raises(ServiceError):
        Stand(PlainTextResponse('\\"' * 500_000, 500)).send()


def test_422_names_field_value_and_what_is_allowed() -> None:
    body = {"field": "query.dimension", "value": "platfrom", "message": "no", "allowed": ["platform", "build"]}
    with pytest.raises(BadQuery) as bad:
        Stand(refused(422, **body)).send()
    error = bad.value
    assert (error.field, error.value, error.allowed) == ("query.dimension", "platfrom", ("platform", "build"))


def test_422_is_told_in_the_words_of_the_service() -> None:
    with pytest.raises(BadQuery, match=r"^too many days$"):
        Stand(refused(422, message="too many days")).send()


def test_422_keeps_the_nearest_name_the_service_offers() -> None:
    with pytest.raises(BadQuery) as bad:
        Stand(refused(422, field="metric", value="x", did_you_mean="revenue")).send()
    assert bad.value.did_you_mean == "revenue"


def test_a_422_without_a_body_is_a_bad_query_all_the_same() -> None:
    with pytest.raises(BadQuery, match="refused by the service"):
        Stand(Response(status_code=422)).send()


def test_an_error_page_is_a_service_error() -> None:
    with pytest.raises(ServiceError, match="the service answered 500"):
        Stand(PlainTextResponse("<html>oops</html>", 500)).send()


def test_a_redirect_is_not_followed_with_the_key() -> None:
    stand = Stand(Response(status_code=302, headers={"Location": "https://elsewhere.example/"}))
    with pytest.raises(ServiceError):
        stand.send()
    assert stand.tally.requests == 1


def test_a_request_may_count_another_status_as_an_answer() -> None:
    assert Stand(refused(400)).send(expected_statuses=frozenset({400})).status == 400


def test_nobody_at_the_address_is_said_so() -> None:
    transport = Transport("http://127.0.0.1:1", random=lambda: 0.0)
    with pytest.raises(Unreachable, match=r"nothing answers at http://127\.0\.0\.1:1"):
        asyncio.run(transport.send(HttpRequest(method="GET", path="/")))


def test_no_error_leads_to_an_httpx_exception() -> None:
    transport = Transport("http://127.0.0.1:1", random=lambda: 0.0)
    with pytest.raises(Unreachable) as gone:
        asyncio.run(transport.send(HttpRequest(method="GET", path="/")))
    assert (gone.value.__cause__, gone.value.__context__) == (None, None)


def test_the_repr_holds_no_key() -> None:
    assert KEY not in repr(Stand(GOOD).transport)
