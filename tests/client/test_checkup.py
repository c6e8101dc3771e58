"""What `gamelens doctor` says about a service, whatever service it is."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from datetime import UTC, datetime
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response

from gamelens.catalog import DIMENSIONS, METRICS
from gamelens.client.connection.rate_limit import RateLimiter
from gamelens.client.connection.settings import MetricsSettings, Secret
from gamelens.client.connection.shared_slots import SharedSlots
from gamelens.client.service_checks import ServiceChecks
from gamelens.client.setup_checks import Finding
from gamelens.errors import GamelensError
from support.scripted_service import KEY, Script

NOW = datetime(2026, 11, 20, 11, 30, tzinfo=UTC)


class Service:
    """Answers as the script says, after *before*, which may answer in its place, and at the time *date*."""

    def __init__(self, script: Script, *, date: datetime | None = None) -> None:
        self.asked: list[str] = []
        self.before: list[Response] = []
        self._app = script.app()
        self._date = date

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.asked.append(scope["path"])
        assert Request(scope).headers["x-api-key"] == KEY

        async def dated(message: Any) -> None:
            if self._date is not None and message["type"] == "http.response.start":
                message["headers"].append((b"date", format_datetime(self._date, usegmt=True).encode()))
            await send(message)

        await (self.before.pop(0) if self.before else self._app)(scope, receive, dated)


@pytest.fixture
def script() -> Script:
    script = Script()
    script.metrics, script.dimensions = list(METRICS), list(DIMENSIONS)
    return script


@pytest.fixture
def check(tmp_path: Path) -> Callable[..., dict[str, Finding]]:
    def run(app: Any, *, deadline_s: float = 5.0, now: datetime = NOW, budget: RateLimiter | None = None) -> Any:
        guarantee = SharedSlots("k", folder=tmp_path / "runtime", clock=time.monotonic)
        checkup = ServiceChecks(
            MetricsSettings("http://127.0.0.1", Secret(KEY)),
            pool=httpx.ASGITransport(app),
            budget=budget or RateLimiter(guarantee),
            now=now.timestamp,
            sleep=lambda _: asyncio.sleep(0),
        )
        found = asyncio.run(checkup.findings(deadline_s=deadline_s))
        assert KEY not in str(found)
        assert all(it.next_step for it in found if it.mark != "ok")
        return {it.about: it for it in found}

    return run


Check = Callable[..., dict[str, Finding]]


def test_a_service_of_the_specification_is_well(check: Check, script: Script) -> None:
    """Metrics, Endpoints: nothing but what is promised there, and five requests."""
    service = Service(script)
    found = check(service)
    assert {it.mark for it in found.values()} == {"ok"}
    assert list(found) == ["service", "key", "clock", "rate", "available", "metrics", "dimensions"]
    assert service.asked == ["/metrics/v1/interval"] * 3 + ["/metrics/v1/metrics", "/metrics/v1/dimensions"]


def test_the_clock_is_compared_with_the_date_header(check: Check, script: Script) -> None:
    assert check(Service(script, date=NOW))["clock"] == Finding.ok("clock", "within 1 s of the service's")


@pytest.mark.parametrize(
    ("there", "says"),
    [
        (datetime(2026, 11, 20, 11, 28, tzinfo=UTC), "2 min ahead of the service's"),
        (datetime(2026, 11, 20, 14, 30, tzinfo=UTC), "3 h behind the service's"),
    ],
)
def test_a_clock_that_is_off_is_a_warning(check: Check, script: Script, there: datetime, says: str) -> None:
    clock = check(Service(script, date=there))["clock"]
    assert (clock.mark, clock.says) == ("warning", says)


def test_a_service_that_does_not_say_the_time_is_no_warning(check: Check, script: Script) -> None:
    assert check(Service(script))["clock"].says == "the service does not say what time it is"


def test_age_is_counted_by_the_clock_of_the_service(check: Check, script: Script) -> None:
    there = datetime(2026, 11, 20, 11, 39, tzinfo=UTC)
    found = check(Service(script, date=there), now=datetime(2027, 3, 1, tzinfo=UTC))
    assert found["available"].says.endswith("which ended 39 min ago")


def test_an_interval_that_ended_long_ago_is_a_warning(check: Check, script: Script) -> None:
    available = check(Service(script), now=datetime(2026, 11, 23, 12, tzinfo=UTC))["available"]
    assert (available.mark, available.says.split(", ")[1]) == ("warning", "which ended 3 days ago")


def test_an_empty_interval_is_a_warning(check: Check, script: Script) -> None:
    script.available = "2026-11-20T11:00:00Z/2026-11-20T11:00:00Z"
    assert check(Service(script))["available"].says == "nothing is processed yet"


@pytest.mark.parametrize("status", [401, 403])
def test_a_key_that_is_not_known_is_a_problem_and_is_not_tried_again(check: Check, script: Script, status: int) -> None:
    service = Service(script)
    service.before = [JSONResponse({"message": f"no such key: {KEY}"}, status)]
    found = check(service)
    assert (found["key"].mark, found["service"].mark, len(service.asked)) == ("problem", "ok", 1)
    assert "metrics" not in found


def test_a_429_is_met_waited_out_and_told(check: Check, script: Script) -> None:
    service = Service(script)
    service.before = [Response(status_code=429)]
    found = check(service)
    assert (found["rate"].mark, found["key"].mark) == ("warning", "ok")
    assert "1 of 6 requests were refused (429)" in found["rate"].says


def test_429_for_ever_leaves_the_key_unknown(check: Check, script: Script) -> None:
    service = Service(script)
    service.before = [Response(status_code=429)] * 3
    found = check(service)
    assert (found["rate"].mark, found["key"].mark, len(service.asked)) == ("warning", "warning", 3)


@pytest.mark.parametrize(("status", "says"), [(404, "is it a metrics service?"), (302, "302"), (503, "but 503")])
def test_any_other_status_is_a_problem(check: Check, script: Script, status: int, says: str) -> None:
    service = Service(script)
    service.before = [Response(status_code=status, headers={"location": "https://elsewhere.example"})]
    found = check(service)
    assert found["service"].mark == "problem"
    assert says in found["service"].says
    assert len(service.asked) == 1


@pytest.mark.parametrize("body", ["<html>hello</html>", '"yesterday"', "[]", ""])
def test_an_answer_that_is_no_interval_is_a_problem(check: Check, body: str) -> None:
    found = check(PlainTextResponse(body))
    assert found["available"].mark == "problem"
    assert {found["metrics"].mark, found["dimensions"].mark} == {"warning"}


def test_new_and_missing_names_are_told_apart(check: Check, script: Script) -> None:
    script.metrics = [*METRICS, "brand_new"]
    script.dimensions = [name for name in DIMENSIONS if name != "severity"] + ["studio_id"]
    found = check(Service(script))
    assert found["metrics"].says == "1 new: brand_new"
    assert found["dimensions"].says == "1 missing: severity"


def test_a_service_quoting_the_key_in_its_lists_gives_it_to_nobody(check: Check, script: Script) -> None:
    script.metrics = [*METRICS, f"metric_{KEY}"]
    assert check(Service(script))["metrics"].says == "1 new: metric_…"


def test_a_service_that_is_silent_ends_at_the_deadline(check: Check) -> None:
    async def silent(scope: Any, receive: Any, send: Any) -> None:
        await asyncio.sleep(60)

    began = time.monotonic()
    found = check(silent, deadline_s=0.1)
    assert time.monotonic() - began < 2
    assert list(found) == ["service", "rate"]
    assert "did not answer within" in found["service"].says


def test_a_budget_that_others_use_up_is_not_the_service_s_silence(check: Check, script: Script, tmp_path: Path) -> None:
    others = SharedSlots("k", folder=tmp_path / "runtime", clock=time.monotonic)
    assert all(seat.take(time.monotonic()) for seat in others.seats)
    service = Service(script)
    found = check(service, deadline_s=0.1)
    assert "could not be asked" in found["service"].says
    assert service.asked == []


def test_a_runtime_folder_of_no_use_is_a_warning(check: Check, script: Script, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    alone = RateLimiter(SharedSlots("k", folder=tmp_path / "file", clock=time.monotonic))
    rate = check(Service(script), budget=alone)["rate"]
    assert rate.mark == "warning"
    assert "for this process alone: other processes are not seen" in rate.says


def test_nobody_at_the_address_is_a_problem_without_a_word_of_httpx(tmp_path: Path) -> None:
    settings = MetricsSettings("http://127.0.0.1:9", Secret(KEY))
    found = asyncio.run(ServiceChecks(settings).findings(deadline_s=5.0))
    assert [(it.about, it.mark) for it in found] == [("service", "problem"), ("rate", "ok")]
    assert found[0].says.startswith("nothing answers at http://127.0.0.1:9")


def test_a_file_of_authorities_that_is_none_is_refused(tmp_path: Path) -> None:
    settings = MetricsSettings("https://a.example", Secret(KEY))
    with pytest.raises(GamelensError, match="ca_file"):
        ServiceChecks(settings, ca_file=str(tmp_path / "none.pem"))
