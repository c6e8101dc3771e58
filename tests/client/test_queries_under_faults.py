"""Queries under each fault the sandbox can inject: right rows or the right error, in time."""

from __future__ import annotations

import _thread
import asyncio
import base64
import gc
import html
import logging
import random
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from email.utils import formatdate
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote

import httpx
import pandas as pd
import pytest
from starlette.responses import JSONResponse, Response

import gamelens.notebook.accessor  # noqa: F401  (registers df.lens)
from gamelens.client.async_client import AsyncClient
from gamelens.client.connection.metrics_api import MetricsApi
from gamelens.client.connection.settings import Secret
from gamelens.client.connection.transport import Transport
from gamelens.client.limits.rate_limit import RateLimiter
from gamelens.client.limits.shared_slots import SharedSlots
from gamelens.client.query.arguments import ExecutionOptions, QuerySpec
from gamelens.client.query.executor import QueryExecutor
from gamelens.client.query.progress import Progress
from gamelens.client.sync_client import Client
from gamelens.errors import (
    GamelensError,
    NotYetAvailable,
    PartialResult,
    RateLimited,
    Retryable,
    ServiceError,
    Unreachable,
)
from support.hypothesis_profiles import tries
from support.scripted_service import Script
from support.served_metrics import METRICS, Served, World, served
from support.virtual_time import run

pytestmark = pytest.mark.slow

Frame = pd.DataFrame
LATE_S = 3.0  # allowance for a busy machine, shorter than any wait without a deadline
KEY = "s3cr+t/k=y%26&-0123456789~ab"
FAN_OUT: dict[str, Any] = {"metric": "event_count", "by": "platform", "over": "last 6 complete days"}
REQUESTS = 6
"""With max_days=1."""


@pytest.fixture(scope="module")
def services(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Return a populated sandbox that serves worlds with faults of their own."""
    with served(tmp_path_factory.mktemp("faults") / "state") as worlds:
        yield worlds


@pytest.fixture(scope="module", autouse=True)
def no_coroutine_is_left() -> Iterator[None]:
    """Look for coroutines that were never awaited, which are warned about, once: it takes a third of a second."""
    yield
    gc.collect()


@pytest.fixture
def world(services: Served) -> World:
    """Return a new world without faults."""
    return services.world()


@pytest.fixture(scope="module")
def truth(services: Served) -> Frame:
    """Return the answer to `FAN_OUT` without faults, in one request."""
    with services.world().client() as lens:
        return lens.query(**FAN_OUT)


def rows(frame: Frame) -> list[tuple[Any, ...]]:
    """Return the rows of *frame*, null as None."""
    return [tuple(row) for row in frame.astype(object).where(frame.notna(), None).itertuples(index=False)]


def receipt(frame: Frame) -> dict[str, Any]:
    """Return the receipt of *frame*."""
    return frame.attrs["gamelens"]  # type: ignore[no-any-return]


def run_fan_out(world: World, *, max_wait_s: float = 60.0, cache: bool = False, **more: Any) -> Frame:
    """Return the frame of `FAN_OUT` in *world*."""
    with world.client(max_days=1, max_wait_s=max_wait_s, cache=cache) as lens:
        return lens.query(**FAN_OUT, **more)


def partial_result(world: World, **more: Any) -> PartialResult:
    """Return the error of `FAN_OUT` in a world whose requests fail."""
    with pytest.raises(PartialResult) as failed:
        run_fan_out(world, max_wait_s=0.3, **more)
    return failed.value


def without_gaps(frame: Frame, gaps: list[dict[str, Any]]) -> Frame:
    """Return the rows of *frame* that lie in no gap."""
    missing = pd.Series(False, index=frame.index)
    for gap in gaps:
        start, end = map(pd.Timestamp, gap["interval"].split("/"))
        missing |= (frame["timestamp"] >= start) & (frame["timestamp"] < end)
    return frame[~missing].reset_index(drop=True)


PASSING: dict[str, dict[str, Any]] = {
    "429": {"status": 429},
    "429 with seconds": {"status": 429, "retry_after": 1},
    "502": {"status": 502},
    "503": {"status": 503},
    "503 with seconds": {"status": 503, "retry_after": 1},
    "504": {"status": 504},
    "slow": {"latency_s": 0.5},
    "body cut": {"cut_body": True},
    "refusal cut": {"status": 503, "cut_body": True},
    "connection reset": {"status": 0},
}


@pytest.mark.wide
def test_temporary_faults_change_no_row(services: Served, truth: Frame) -> None:
    """Repeated requests give the right rows, and retries are counted (Wire 2.12, Refusals)."""
    worlds = {name: services.world() for name in PASSING}
    for name, world in worlds.items():
        world.fail(METRICS, times=2, **PASSING[name])
    with ThreadPoolExecutor(len(worlds)) as pool:
        frames = dict(zip(worlds, pool.map(run_fan_out, worlds.values()), strict=True))
    assert {name: rows(frame) == rows(truth) for name, frame in frames.items()} == dict.fromkeys(PASSING, True)
    retries = {name: receipt(frame)["retries"] for name, frame in frames.items()}
    assert retries == dict.fromkeys(PASSING, 2) | {"slow": 0}


def test_a_429_that_names_a_date_is_obeyed(world: World, truth: Frame) -> None:
    """`Retry-After` as an HTTP date, in whole seconds, is waited for."""
    until = int(time.time()) + 2
    world.answers["event_count"] = JSONResponse({}, 429, {"Retry-After": formatdate(until, usegmt=True)})
    until_s = time.monotonic() + until - time.time()
    lift = threading.Timer(until_s - time.monotonic() - 0.4, world.heal)
    lift.start()
    with world.client() as lens:
        assert rows(lens.query(**FAN_OUT)) == rows(truth)
    lift.join()
    first, second = (arrival.at for arrival in world.arrivals if "event_count" in arrival.path)
    assert first < until_s - 0.5
    assert until_s - 0.01 <= second < until_s + LATE_S


def test_a_retry_after_of_an_hour_is_raised_at_once(world: World) -> None:
    """`Retry-After: 3600` raises `RateLimited` after one request."""
    world.fail(METRICS, status=429, retry_after=3600)
    with world.client() as lens, pytest.raises(RateLimited) as limited:
        lens.query(**FAN_OUT)
    assert (limited.value.retry_after, world.arrived("event_count")) == (3600.0, 1)


FOR_EVER: dict[str, tuple[dict[str, Any], type[GamelensError]]] = {
    "429": ({"status": 429}, RateLimited),
    "429 with seconds": ({"status": 429, "retry_after": 1}, RateLimited),
    "501": ({"status": 501}, ServiceError),
    "502": ({"status": 502}, ServiceError),
    "503": ({"status": 503}, ServiceError),
    "504": ({"status": 504}, ServiceError),
    "body cut": ({"cut_body": True}, ServiceError),
    "connection reset": ({"status": 0}, Unreachable),
}


@pytest.mark.parametrize(("fault", "error"), FOR_EVER.values(), ids=FOR_EVER)
def test_lasting_faults_are_errors(world: World, fault: dict[str, Any], error: type[GamelensError]) -> None:
    """If no request succeeds the error is that of the fault, without a frame."""
    world.fail(METRICS, **fault)
    with world.client(max_wait_s=0.3) as lens, pytest.raises(error):
        lens.query(**FAN_OUT)


@pytest.mark.parametrize("on_error", ["raise", "gaps"])
def test_a_frame_of_gaps_only_is_an_error(world: World, on_error: str) -> None:
    """If all requests fail each is named, even with `on_error="gaps"`."""
    world.fail(METRICS, status=503)
    partial = partial_result(world, on_error=on_error)
    assert isinstance(partial.__cause__, ServiceError)
    assert (len(partial.frame), len(partial.gaps)) == (0, REQUESTS)


BROKEN: dict[str, bytes] = {
    "nothing": b"",
    "half": b'{"result": [{"timestamp": "2026-11-1',
    "a page": b"<!doctype html><title>Sign in</title>",
    "null": b"null",
    "a number": b"7",
    "too deep": b"[" * 200_000,
}


@pytest.mark.parametrize("body", BROKEN.values(), ids=BROKEN)
def test_an_answer_of_another_shape_is_a_service_error(world: World, body: bytes) -> None:
    """A body that is not the documented JSON never becomes an empty frame."""
    world.answers["event_count"] = Response(body)
    with world.client() as lens, pytest.raises(ServiceError):
        lens.query(**FAN_OUT)


LISTS: dict[str, Callable[[Client], object]] = {
    "/interval": lambda lens: lens.available(),
    "/metrics": lambda lens: lens.metrics(),
    "/dimensions": lambda lens: lens.dimensions(),
    "/dimensions/platform": lambda lens: lens.dimension_values("platform", over="last 3 complete days"),
    "/studios": lambda lens: lens.studios(over="last 3 complete days"),
    "/games": lambda lens: lens.games(over="last 3 complete days"),
}


@pytest.mark.shown_by(6)
@pytest.mark.parametrize("path", LISTS)
@pytest.mark.parametrize("body", BROKEN.values(), ids=BROKEN)
def test_a_list_of_another_shape_is_a_service_error(world: World, path: str, body: bytes) -> None:
    """A list that is not the documented JSON is a `ServiceError`."""
    world.answers[path] = Response(body)
    with world.client() as lens, pytest.raises(ServiceError):
        LISTS[path](lens)


PIECES: dict[str, Any] = {"metric": "event_count", "over": "last 30 complete days"}
TOMORROW = {"over": "2026-11-21", "when_unavailable": "wait"}
THREE = ["game_id", "platform", "country_code"]
PHASES: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "availability": ("*/interval", {"latency_s": 5}, PIECES),
    "waiting for availability": ("*/nothing", {"latency_s": 5}, {**PIECES, **TOMORROW}),
    "list of metrics": ("*/metrics", {"latency_s": 5}, {**PIECES, "metric": "brand_new"}),
    "list of dimensions": ("*/dimensions", {"latency_s": 5}, {**PIECES, "by": "brand_new"}),
    "list of studios": ("*/studios", {"latency_s": 5}, {**PIECES, "by": THREE}),
    "list of games": ("*/games", {"latency_s": 5}, {**PIECES, "by": THREE}),
    "list of values": ("*/dimensions/*", {"latency_s": 5}, {**PIECES, "by": THREE}),
    "titles": ("*/games", {"latency_s": 5}, {**PIECES, "by": "game"}),
    "a piece": (METRICS, {"latency_s": 5}, PIECES),
    "a permit of the rate limiter": (METRICS, {"latency_s": 0.01}, {**PIECES, "every": "day"}),
    "backing off": (METRICS, {"status": 503}, PIECES),
    "the wait that the service asks for": (METRICS, {"status": 429, "retry_after": 20}, PIECES),
}


@pytest.mark.shown_by(3)
@pytest.mark.parametrize(("route", "fault", "question"), PHASES.values(), ids=PHASES)
def test_the_deadline_holds_in_every_phase(
    world: World, route: str, fault: dict[str, Any], question: dict[str, Any]
) -> None:
    """`deadline_s` ends a query in each of its phases, waiting included."""
    world.fail(route, **fault)
    with world.client(max_days=1, refresh_s=0.2) as lens:
        began = time.monotonic()
        with pytest.raises((Unreachable, PartialResult, NotYetAvailable)):
            lens.query(**question, deadline_s=0.5)
        assert time.monotonic() - began < 0.5 + LATE_S


def test_at_the_deadline_missing_rows_may_be_gaps(world: World) -> None:
    """With `on_error="gaps"` the frame has all rows received until the deadline."""
    began = time.monotonic()
    with world.client(max_days=1) as lens:
        frame = lens.query(**PIECES, deadline_s=1.5, on_error="gaps")
    assert time.monotonic() - began < 1.5 + LATE_S
    assert len(frame) == 30 - len(receipt(frame)["gaps"]) >= 3


def test_the_deadline_is_one_for_all_phases(world: World) -> None:
    """`deadline_s` is a total: five phases of 0.9 s exceed 1 s."""
    for route in ("*/interval", "*/studios", "*/games", "*/dimensions/*", METRICS):
        world.fail(route, latency_s=0.9)
    began = time.monotonic()
    with world.client() as lens, pytest.raises(Unreachable, match="deadline_s=1"):
        lens.query("event_count", by=THREE, over="last 3 complete days", deadline_s=1)
    assert time.monotonic() - began < 1 + LATE_S


DAYS_THAT_CAME = 3
ENDS: dict[str, dict[str, Any]] = {
    "503": {"status": 503},
    "connection reset": {"status": 0},
    "body cut": {"cut_body": True},
    "told to wait": {"status": 429, "retry_after": 600},
}


@pytest.mark.shown_by(1)
@pytest.mark.parametrize("fault", ENDS.values(), ids=ENDS)
def test_rows_received_before_a_failure_are_kept_and_right(world: World, truth: Frame, fault: dict[str, Any]) -> None:
    """`PartialResult` has exactly the rows outside its gaps."""
    world.last(DAYS_THAT_CAME, **fault)
    partial = partial_result(world)
    assert rows(partial.frame) == rows(without_gaps(truth, partial.gaps))
    assert (partial.frame["timestamp"].nunique(), len(partial.gaps)) == (DAYS_THAT_CAME, REQUESTS - DAYS_THAT_CAME)
    assert isinstance(partial.__cause__, Retryable)


def test_a_failed_title_request_does_not_cost_the_rows(world: World) -> None:
    """A failure raises `PartialResult` also if titles were to be looked up."""
    world.last(DAYS_THAT_CAME, status=503)
    with world.client(max_days=1, max_wait_s=0.3) as lens, pytest.raises(PartialResult):
        lens.query("event_count", by="game", over="last 12 complete days")


def test_titles_at_the_deadline_do_not_cost_the_rows(world: World) -> None:
    """The deadline raises `PartialResult` also if titles were to be looked up."""
    with world.client(max_days=1) as lens, pytest.raises(PartialResult):
        lens.query("event_count", by="game", over="last 30 complete days", deadline_s=1.0)


def cohorts(lens: Client) -> Frame:
    """Return retention of five install days at three ages."""
    return lens.retention([1, 2, 3], over="last 5 complete days")


MIXED = [{"probability": 0.035, **fault} for fault in PASSING.values()]
WORLDS_AT_ONCE = 10


def seeds() -> range:
    """Return the seeds of the mixtures, of which `make bench` tries more."""
    return range(tries(in_test=10, in_bench=60))


def disturbed(world: World, **more: Any) -> Frame | None:
    """Return the frame of `FAN_OUT` with about three of ten requests disturbed, if any."""
    world.mix(*MIXED)
    try:
        return run_fan_out(world, max_wait_s=15, **more)
    except PartialResult as partial:
        return partial.frame
    except Retryable:
        return None


@pytest.mark.wide
@pytest.mark.hypothesis  # for `make bench`
def test_no_mixture_of_faults_makes_a_wrong_number(services: Served, truth: Frame) -> None:
    """Whatever the seed each frame is right outside its gaps, and a third are whole."""
    with ThreadPoolExecutor(WORLDS_AT_ONCE) as pool:
        frames = list(pool.map(lambda seed: disturbed(services.world(seed=seed)), seeds()))
    for seed, frame in enumerate(frames):
        if frame is not None:
            assert rows(frame) == rows(without_gaps(truth, receipt(frame)["gaps"])), seed
    whole = [frame for frame in frames if frame is not None and not receipt(frame)["gaps"]]
    assert len(whole) >= len(frames) // 3
    assert sum(receipt(frame)["retries"] for frame in whole) >= len(frames) // 3


@pytest.mark.hypothesis  # for `make bench`
def test_no_mixture_of_faults_and_gaps_makes_a_wrong_number(services: Served, truth: Frame) -> None:
    """Whatever the seed, with lasting failures each frame is right, and whole once the query is sent again."""

    def repeat_disturbed(seed: int) -> tuple[Frame, Frame]:
        world = services.world(seed=100 + seed)
        world.mix({"status": 501, "probability": 0.1})
        frame = disturbed(world, on_error="gaps", cache=True)
        assert frame is not None
        world.heal()
        return frame, run_fan_out(world, cache=True)

    with ThreadPoolExecutor(WORLDS_AT_ONCE) as pool:
        frames = list(pool.map(repeat_disturbed, seeds()))
    for seed, (frame, again) in enumerate(frames):
        assert rows(frame) == rows(without_gaps(truth, receipt(frame)["gaps"])), seed
        assert rows(again) == rows(truth), seed
    assert sum(bool(receipt(frame)["gaps"]) for frame, _ in frames) >= len(frames) // 3


OTHERS: dict[str, tuple[str, Callable[[Client], object]]] = {
    "plan": ("*/interval", lambda lens: lens.plan("event_count", over="last 3 complete days", deadline_s=0.6)),
    "retention": (
        "*/dimensions",
        lambda lens: lens.retention([1], by="brand_new", over="last 3 complete days", deadline_s=0.6),
    ),
    "retention of games": (
        "*/games",
        lambda lens: lens.retention([1], by=["studio", "game"], over="last 3 complete days", deadline_s=0.6),
    ),
}


@pytest.mark.parametrize(("route", "call"), OTHERS.values(), ids=OTHERS)
def test_the_deadline_holds_for_plan_and_retention(world: World, route: str, call: Callable[[Client], object]) -> None:
    """`deadline_s` ends `plan` and `retention` too."""
    world.fail(route, latency_s=3)
    with world.client() as lens:
        began = time.monotonic()
        with pytest.raises((Unreachable, PartialResult)):
            call(lens)
        assert time.monotonic() - began < 0.6 + LATE_S


@pytest.mark.shown_by(1)
@pytest.mark.parametrize("on_error", ["raise", "gaps"])
@pytest.mark.parametrize("headers", [{}, {"Retry-After": "20"}], ids=["", "20 s"])
def test_429_for_ever_ends_within_eighty_seconds_for_any_query(
    tmp_path: Path, headers: dict[str, str], on_error: Literal["raise", "gaps"]
) -> None:
    """A hundred requests end within 80 s of virtual time."""

    async def main(now: Callable[[], float]) -> float:
        script = Script()
        script.available = "2026-01-01T00:00:00Z/2026-11-20T11:00:00Z"
        script.answers["event_count"] = lambda _: JSONResponse({}, 429, headers)
        transport = Transport(
            "http://127.0.0.1",
            key=Secret(KEY),
            rate_limiter=RateLimiter(SharedSlots("key", folder=tmp_path, clock=now), clock=now),
            pool=httpx.ASGITransport(script.app()),
            clock=now,
            now=now,
            random=random.Random(1).random,
        )
        core = QueryExecutor(MetricsApi(transport, clock=now), None, max_days=1, refresh_s=3600)
        question, terms = (
            QuerySpec(metrics=("event_count",)),
            ExecutionOptions(over="last 100 complete days", on_error=on_error),
        )
        began = now()
        with pytest.raises(RateLimited):
            await core.query(question, terms, Progress())
        return now() - began

    assert run(main) < 80


HUNDRED: dict[str, Any] = {"metric": "event_count", "over": "last 100 complete days"}


def wait_for(world: World, arrivals: int) -> None:
    """Wait until *arrivals* metric requests have arrived."""
    while world.arrived("event_count") < arrivals:
        time.sleep(0.01)


def test_an_interrupt_stops_a_fan_out(world: World) -> None:
    """After Ctrl-C no request arrives, and the next call works."""
    stopped: list[float] = []

    def interrupt() -> None:
        wait_for(world, 7)
        stopped.append(time.monotonic())
        _thread.interrupt_main()

    with world.client(max_days=1) as lens:
        watching = threading.Thread(target=interrupt)
        watching.start()
        with pytest.raises(KeyboardInterrupt):
            lens.query(**HUNDRED)
        back_s = time.monotonic() - stopped[0]
        watching.join()
        time.sleep(0.5)  # for requests that were starting at the interrupt
        arrived = world.arrived("event_count")
        time.sleep(1.3)  # long enough for requests of the next second to arrive
        assert (world.arrived("event_count"), back_s < LATE_S) == (arrived, True)
        assert len(lens.query("event_count", over="last 3 complete days")) == 3


def test_cancelling_one_query_leaves_the_others_running(world: World, truth: Frame) -> None:
    """A cancelled task does not stop the queries of other tasks."""

    async def main() -> Frame:
        async with AsyncClient(**world.settings(max_days=1)) as lens:
            stopped = asyncio.create_task(lens.query(**HUNDRED))
            running = asyncio.create_task(lens.query(**FAN_OUT))
            await asyncio.to_thread(wait_for, world, 5)
            stopped.cancel()
            frame = await running
            assert stopped.cancelled()
            return frame

    assert rows(asyncio.run(main())) == rows(truth)


def spellings(key: str) -> list[bytes]:
    """Return *key* plain, quoted, escaped, in hex, and in Base64 at any offset."""
    plain = [key, quote(key), quote(key, safe=""), html.escape(key), key.replace("&", "\\u0026"), key.encode().hex()]
    # But for its ends, Base64 of a key has one of three spellings, by the offset it begins at.
    coded = [encode(b"x" * shift + key.encode())[4:-4] for shift in range(3) for encode in _BASE64]
    return [text.encode() for text in plain] + coded


_BASE64 = (base64.b64encode, base64.urlsafe_b64encode)


def test_the_search_finds_a_key_however_it_is_spelled() -> None:
    """The search of these tests finds a key in Base64 and nothing in other bytes."""
    for before in (b"", b"a", b"ab", b"abc"):
        text = base64.b64encode(before + KEY.encode() + b" and more")
        assert any(form in text for form in spellings(KEY))
    assert not any(form in base64.b64encode(b"nothing of the kind" * 9) for form in spellings(KEY))


def printed_error(error: BaseException) -> str:
    """Return all that can be printed of an error, with the locals of our own frames."""
    details = traceback.TracebackException.from_exception(error, capture_locals=True)
    plain = "".join(traceback.format_exception(error))
    own_frames = [f"{frame.name} {frame.locals}" for frame in details.stack if "gamelens" in frame.filename]
    return "\n".join([str(error), repr(error), plain, *own_frames])


def test_no_byte_of_a_session_holds_the_key(
    services: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The key is in no repr, traceback, log, receipt, cache, recording or slot file."""
    caplog.set_level(logging.DEBUG)
    monkeypatch.setenv("GAMELENS_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("GAMELENS_RUNTIME_DIR", str(tmp_path / "runtime"))
    world, printed = services.world(key=KEY), []
    for folder in ({"cache": True}, {"record": tmp_path / "record"}):
        world.heal()
        with world.client(**folder) as lens:
            frame = lens.query(**FAN_OUT, check=True)
            frame.to_parquet(tmp_path / "frame.parquet")
            frame.to_pickle(tmp_path / "frame.pickle")
            printed += [repr(lens), repr(lens.cache), frame.lens.explain(), frame.to_html(), frame.attrs]
            printed += [lens.plan("revenue", over="last 4 complete days"), cohorts(lens)]
            parts = (lens, lens._executor, lens._executor.service, lens._executor.service._transport)
            printed += [repr(vars(part)) for part in parts]
        for fault in (*PASSING.values(), {"status": 401}, {"status": 422}, {"status": 500}):
            failing = services.world(key=KEY)
            failing.fail(METRICS, **{**fault, "latency_s": 0.01})
            printed += failures(failing.client(max_wait_s=0.1, **folder))
        for status in (400, 401, 404, 422, 500):
            quoting = services.world(key=KEY)
            quoted = {"message": f"your key {KEY}", "field": KEY, "value": KEY, "result": KEY}
            quoting.answers["user_unique"] = JSONResponse(quoted, status)
            printed += failures(quoting.client(**folder))
    printed += failures(Client(api_key=KEY, metrics_url="http://127.0.0.1:1", cache=False, max_wait_s=0.1))
    written = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert {path.relative_to(tmp_path).parts[0] for path in written} >= {"cache", "runtime", "record", "frame.parquet"}
    assert len(caplog.records) > 100
    everything = [
        *map(str, written),
        *map(str, printed),
        *(f"{record.getMessage()} {record.__dict__}" for record in caplog.records),
    ]
    assert holding(spellings(KEY), [*written.values(), *(text.encode() for text in everything)]) == []


def failures(lens: Client) -> list[str]:
    """Return the printed error of a query that fails, or nothing."""
    try:
        lens.query("user_unique", over="last 2 complete days")
    except GamelensError as error:
        return [printed_error(error)]
    return []


def holding(forms: list[bytes], texts: list[bytes]) -> list[str]:
    """Return the context of each of *forms* found in *texts*."""
    matches = [(text, text.find(form)) for text in texts for form in forms]
    return [text[max(0, place - 80) : place].decode(errors="replace") for text, place in matches if place >= 0]
