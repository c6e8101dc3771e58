"""The checks of a metrics service that `gamelens doctor` prints."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from datetime import UTC, datetime
from email.utils import format_datetime
from pathlib import Path

import httpx
import pytest
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gamelens.catalog import DIMENSIONS, METRICS
from gamelens.client.checks.service_checks import ServiceChecks
from gamelens.client.checks.setup_checks import CheckResult
from gamelens.client.connection.settings import MetricsSettings, Secret
from gamelens.client.limits.rate_limit import RateLimiter
from gamelens.client.limits.shared_slots import SharedSlots
from gamelens.errors import GamelensError
from support.scripted_service import KEY, Script

NOW = datetime(2026, 11, 20, 11, 30, tzinfo=UTC)


class Service:
    """An app that answers as the script says, after the responses in *before*.

    Attributes:
        paths: the paths of all requests.
        before: responses to give first, instead of the script's.
    """

    def __init__(self, script: Script, *, date: datetime | None = None) -> None:
        self.paths: list[str] = []
        self.before: list[Response] = []
        self._app = script.app()
        self._date = date

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.paths.append(scope["path"])
        assert Request(scope).headers["x-api-key"] == KEY

        async def dated(message: Message) -> None:
            if self._date is not None and message["type"] == "http.response.start":
                message["headers"].append((b"date", format_datetime(self._date, usegmt=True).encode()))
            await send(message)

        await (self.before.pop(0) if self.before else self._app)(scope, receive, dated)


@pytest.fixture
def script() -> Script:
    """Return a service with all metrics and dimensions of the catalog."""
    script = Script()
    script.metrics, script.dimensions = list(METRICS), list(DIMENSIONS)
    return script


@pytest.fixture
def check(tmp_path: Path) -> Callable[..., dict[str, CheckResult]]:
    """Return a function that runs all checks against an app and returns them by name."""

    def run(
        app: ASGIApp, *, deadline_s: float = 5.0, now: datetime = NOW, budget: RateLimiter | None = None
    ) -> dict[str, CheckResult]:
        guarantee = SharedSlots("k", folder=tmp_path / "runtime", clock=time.monotonic)
        checkup = ServiceChecks(
            MetricsSettings("http://127.0.0.1", Secret(KEY)),
            pool=httpx.ASGITransport(app),
            rate_limiter=budget or RateLimiter(guarantee),
            now=now.timestamp,
            sleep=lambda _: asyncio.sleep(0),
        )
        checks = asyncio.run(checkup.findings(deadline_s=deadline_s))
        assert KEY not in str(checks)
        assert all(check.next_step for check in checks if check.mark != "ok")
        return {check.about: check for check in checks}

    return run


Check = Callable[..., dict[str, CheckResult]]


def test_a_service_with_documented_answers_passes_all_checks(check: Check, script: Script) -> None:
    """The checks take five requests to documented addresses (Wire 2.1, Metrics addresses)."""
    service = Service(script)
    checks = check(service)
    assert {check.mark for check in checks.values()} == {"ok"}
    assert list(checks) == ["service", "key", "clock", "rate", "available", "metrics", "dimensions"]
    assert service.paths == ["/metrics/v1/interval"] * 3 + ["/metrics/v1/metrics", "/metrics/v1/dimensions"]


def test_the_clock_is_compared_with_the_date_header(check: Check, script: Script) -> None:
    """The local clock is compared with the service's `Date` header."""
    assert check(Service(script, date=NOW))["clock"] == CheckResult.ok("clock", "within 1 s of the service's")


@pytest.mark.parametrize(
    ("service_time", "message"),
    [
        (datetime(2026, 11, 20, 11, 28, tzinfo=UTC), "2 min ahead of the service's"),
        (datetime(2026, 11, 20, 14, 30, tzinfo=UTC), "3 h behind the service's"),
    ],
)
def test_a_clock_that_is_off_is_a_warning(check: Check, script: Script, service_time: datetime, message: str) -> None:
    """A clock off by minutes or hours is a warning that states how far and in which direction."""
    clock = check(Service(script, date=service_time))["clock"]
    assert (clock.mark, clock.says) == ("warning", message)


def test_a_service_without_a_date_header_is_no_warning(check: Check, script: Script) -> None:
    """Without a `Date` header the clock is not judged."""
    assert check(Service(script))["clock"].says == "the service does not say what time it is"


def test_age_is_counted_by_the_clock_of_the_service(check: Check, script: Script) -> None:
    """The age of the available interval is measured by the service's clock."""
    service_time = datetime(2026, 11, 20, 11, 39, tzinfo=UTC)
    checks = check(Service(script, date=service_time), now=datetime(2027, 3, 1, tzinfo=UTC))
    assert checks["available"].says.endswith("which ended 39 min ago")


@pytest.mark.parametrize(("hour", "mark"), [(0, "ok"), (1, "ok"), (2, "warning"), (12, "warning")])
def test_yesterday_is_expected_two_hours_after_midnight(check: Check, script: Script, hour: int, mark: str) -> None:
    """An interval that ended an hour before midnight is usual until then."""
    script.available = "2026-08-22T00:00:00Z/2026-11-20T23:00:00Z"
    assert check(Service(script), now=datetime(2026, 11, 21, hour, tzinfo=UTC))["available"].mark == mark


def test_an_interval_that_ended_long_ago_is_a_warning(check: Check, script: Script) -> None:
    """An available interval that ended three days ago is a warning."""
    available = check(Service(script), now=datetime(2026, 11, 23, 12, tzinfo=UTC))["available"]
    assert available.mark == "warning"
    assert available.says.endswith("which ended 3 days ago: yesterday is not complete")


def test_an_empty_interval_is_a_warning(check: Check, script: Script) -> None:
    """An available interval of no length is a warning."""
    script.available = "2026-11-20T11:00:00Z/2026-11-20T11:00:00Z"
    assert check(Service(script))["available"].says == "nothing has been processed yet"


@pytest.mark.parametrize("status", [401, 403])
def test_a_key_that_is_not_known_is_a_problem_and_is_not_tried_again(check: Check, script: Script, status: int) -> None:
    """401 and 403 are a problem of the key, and end the checks after one request."""
    service = Service(script)
    service.before = [JSONResponse({"message": f"no such key: {KEY}"}, status)]
    checks = check(service)
    assert (checks["key"].mark, checks["service"].mark, len(service.paths)) == ("problem", "ok", 1)
    assert "metrics" not in checks


def test_a_429_is_retried_and_reported(check: Check, script: Script) -> None:
    """A 429 is retried and reported as a warning with the number of refusals."""
    service = Service(script)
    service.before = [Response(status_code=429)]
    checks = check(service)
    assert (checks["rate"].mark, checks["key"].mark) == ("warning", "ok")
    assert "1 of 6 requests were refused (429)" in checks["rate"].says


def test_429_for_ever_leaves_the_key_unknown(check: Check, script: Script) -> None:
    """If all three attempts are refused with 429, the key stays unverified."""
    service = Service(script)
    service.before = [Response(status_code=429)] * 3
    checks = check(service)
    assert (checks["rate"].mark, checks["key"].mark, len(service.paths)) == ("warning", "warning", 3)


@pytest.mark.parametrize(("status", "message"), [(404, "is it a metrics service?"), (302, "302"), (503, "but 503")])
def test_any_other_status_is_a_problem(check: Check, script: Script, status: int, message: str) -> None:
    """Any other status is a problem of the service, reported after one request."""
    service = Service(script)
    service.before = [Response(status_code=status, headers={"location": "https://elsewhere.example"})]
    checks = check(service)
    assert checks["service"].mark == "problem"
    assert message in checks["service"].says
    assert len(service.paths) == 1


@pytest.mark.parametrize("body", ['"yesterday"', "[]", ""])
def test_an_answer_that_is_no_interval_is_a_problem(check: Check, body: str) -> None:
    """A body that is not an interval is a problem (Wire 2.4, Available interval)."""
    checks = check(PlainTextResponse(body))
    assert checks["available"].mark == "problem"
    assert {checks["metrics"].mark, checks["dimensions"].mark} == {"warning"}


def test_a_web_page_in_place_of_the_service_is_a_problem(check: Check) -> None:
    """A sign-in page answers 200."""
    checks = check(PlainTextResponse("<html>hello</html>"))
    assert (checks["service"].mark, "a web page" in checks["service"].says) == ("problem", True)


def test_new_and_missing_names_are_told_apart(check: Check, script: Script) -> None:
    """Names beyond the catalog are listed as new, absent ones as missing."""
    script.metrics = [*METRICS, "brand_new"]
    script.dimensions = [name for name in DIMENSIONS if name != "severity"] + ["studio_id"]
    checks = check(Service(script))
    assert checks["metrics"].says == "1 new: brand_new"
    assert checks["dimensions"].says == "1 missing: severity"


def test_a_key_quoted_in_a_list_is_not_printed(check: Check, script: Script) -> None:
    """A list that contains the API key is printed without it."""
    script.metrics = [*METRICS, f"metric_{KEY}"]
    assert check(Service(script))["metrics"].says == "1 new: metric_…"


def test_a_service_that_is_silent_ends_at_the_deadline(check: Check) -> None:
    """A service that never answers is reported when the deadline ends."""

    async def silent(scope: Scope, receive: Receive, send: Send) -> None:
        await asyncio.sleep(60)

    began = time.monotonic()
    checks = check(silent, deadline_s=0.1)
    assert time.monotonic() - began < 20
    assert list(checks) == ["service", "rate"]
    assert "did not answer within" in checks["service"].says


def test_a_rate_limit_used_up_by_others_is_not_blamed_on_the_service(
    check: Check, script: Script, tmp_path: Path
) -> None:
    """If other processes hold all slots, the check says so and sends nothing."""
    others = SharedSlots("k", folder=tmp_path / "runtime", clock=time.monotonic)
    assert all(seat.take(time.monotonic()) for seat in others.in_flight)
    service = Service(script)
    checks = check(service, deadline_s=0.1)
    assert "could not be asked" in checks["service"].says
    assert service.paths == []


def test_an_unusable_runtime_folder_is_a_warning(check: Check, script: Script, tmp_path: Path) -> None:
    """Without a shared runtime folder the rate limit covers this process only."""
    (tmp_path / "file").write_text("")
    alone = RateLimiter(SharedSlots("k", folder=tmp_path / "file", clock=time.monotonic))
    rate = check(Service(script), budget=alone)["rate"]
    assert rate.mark == "warning"
    assert "for this process alone: it cannot see other processes" in rate.says


def test_a_closed_port_is_a_problem_in_our_own_words(tmp_path: Path) -> None:
    """A refused connection is reported with the address and without httpx's words."""
    settings = MetricsSettings("http://127.0.0.1:9", Secret(KEY))
    checks = asyncio.run(ServiceChecks(settings).findings(deadline_s=5.0))
    assert [(check.about, check.mark) for check in checks] == [("service", "problem"), ("rate", "ok")]
    assert checks[0].says.startswith("nothing answers at http://127.0.0.1:9")


def test_a_missing_ca_file_is_refused(tmp_path: Path) -> None:
    """A `ca_file` that does not exist is an error that names the setting."""
    settings = MetricsSettings("https://a.example", Secret(KEY))
    with pytest.raises(GamelensError, match="ca_file"):
        ServiceChecks(settings, ca_file=str(tmp_path / "none.pem"))
