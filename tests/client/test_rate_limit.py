"""The rate limiter: 5 starts in any second and 5 at a time, over all processes."""

from __future__ import annotations

import asyncio
import itertools
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

from gamelens.client.connection.transport import HttpRequest, HttpResponse, RequestStats, Transport
from gamelens.client.limits.rate_limit import (
    LAG_S,
    MARGIN_S,
    UNUSUAL_LAG_S,
    AdaptiveLimit,
    RateLimiter,
    Route,
    shared_rate_limiter,
)
from gamelens.client.limits.shared_slots import SharedSlots
from gamelens.errors import RateLimited
from gamelens.sandbox.http.rate_limiter import NodeLimiters, RateLimits
from support.hypothesis_profiles import examples, tries
from support.virtual_time import run

pytestmark = pytest.mark.slow

Clock = Callable[[], float]


def limiter_in(folder: Path, clock: Clock, *, probe: AdaptiveLimit | None = None) -> RateLimiter:
    """Return a rate limiter as another process would make it, with a queue of its own."""
    return RateLimiter(SharedSlots("key", folder=folder, clock=clock), adaptive=probe, clock=clock)


class Service:
    """A service that records when requests arrive and how many are under way."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.arrivals: list[float] = []
        self.under_way = 0
        self.most_under_way = 0

    async def serve(
        self,
        limiter: RateLimiter,
        *,
        route: Route = "other",
        connect_s: float = 0,
        travel_s: float = 0,
        work_s: float = 0,
    ) -> None:
        """Send one request that takes the given times to connect, arrive and be answered."""
        async with limiter.permit(route) as permit:
            await asyncio.sleep(connect_s)
            permit.mark_sent()
            await asyncio.sleep(travel_s)
            self.arrivals.append(self._clock())
            self.under_way += 1
            self.most_under_way = max(self.most_under_way, self.under_way)
            await asyncio.sleep(work_s)
            self.under_way -= 1
            permit.mark_answered()


def arrivals(number: int, folder: Path) -> list[float]:
    """Return when *number* requests that take no time arrive, counted from the first."""

    async def main(clock: Clock) -> list[float]:
        service, limiter = Service(clock), limiter_in(folder, clock)
        await asyncio.gather(*(service.serve(limiter) for _ in range(number)))
        return [at - service.arrivals[0] for at in service.arrivals]

    return run(main)


def test_five_requests_start_at_once(tmp_path: Path) -> None:
    """Five requests start in the same instant (Wire 2.3, Rate limits)."""
    assert arrivals(5, tmp_path) == [0.0] * 5


def test_sixty_requests_take_no_longer_than_the_limit_forces(tmp_path: Path) -> None:
    """Sixty requests take 60 / 5 - 1 = 11 s and the margin (Wire 2.3, Rate limits)."""
    assert 11 <= arrivals(60, tmp_path)[-1] < 11 * 1.08


def test_the_metric_list_has_a_limit_of_its_own(tmp_path: Path) -> None:
    """The list of metrics allows 1000 requests per second (Wire 2.3, Rate limits)."""

    async def main(clock: Clock) -> float:
        service, limiter, began = Service(clock), limiter_in(tmp_path, clock), clock()
        for _ in range(1000):
            await service.serve(limiter, route="metric list")
        return clock() - began

    assert run(main) == 0.0


TIMES = st.tuples(st.floats(0, 0.3), st.floats(0, 0.05), st.sampled_from([0.0, 0.01, 0.2, 1.5]))


@settings(max_examples=examples(30), deadline=None)
@given(requests=st.lists(TIMES, min_size=6, max_size=30), processes=st.integers(1, 3))
def test_no_rolling_second_sees_more_than_five_arrivals_and_no_moment_more_than_five_requests(
    requests: list[tuple[float, float, float]], processes: int
) -> None:
    """Both limits hold for any timing and number of processes (Wire 2.3, Rate limits)."""

    async def main(clock: Clock) -> Service:
        service = Service(clock)
        with tempfile.TemporaryDirectory() as folder:
            limiters = [limiter_in(Path(folder), clock) for _ in range(processes)]
            pairs = zip(itertools.cycle(limiters), requests, strict=False)
            works = (
                service.serve(limiter, connect_s=connect_s, travel_s=travel_s, work_s=work_s)
                for limiter, (connect_s, travel_s, work_s) in pairs
            )
            await asyncio.gather(*works)
        return service

    service = run(main)
    assert len(service.arrivals) == len(requests)
    assert service.most_under_way <= 5
    serve_requests = sorted(service.arrivals)
    assert all(later - earlier >= 1.0 for earlier, later in zip(serve_requests, serve_requests[5:], strict=False))


def test_a_service_that_is_held_up_is_not_overrun(tmp_path: Path) -> None:
    """Requests counted 0.2 s late by the service cause no sixth in a second."""

    async def main(clock: Clock) -> list[float]:
        service, limiter = Service(clock), limiter_in(tmp_path, clock)
        await asyncio.gather(
            *(service.serve(limiter, travel_s=travel_s) for travel_s in [0.0] * 5 + [0.2] * 5 + [0.0] * 5)
        )
        return service.arrivals

    serve_requests = run(main)
    assert all(later - earlier >= 1.0 for earlier, later in zip(serve_requests, serve_requests[5:], strict=False))


def test_two_processes_together_use_the_whole_limit(tmp_path: Path) -> None:
    """Two processes with 30 requests each finish as fast as one with 60."""

    async def main(clock: Clock) -> float:
        service, began = Service(clock), clock()
        limiters = [limiter_in(tmp_path, clock) for _ in range(2)]
        await asyncio.gather(*(service.serve(limiter, work_s=0.02) for limiter in limiters for _ in range(30)))
        return clock() - began

    assert run(main) < 11 * 1.08


def test_permits_are_given_in_the_order_of_requests(tmp_path: Path) -> None:
    """Permits are given first come, first served."""

    async def main(clock: Clock) -> list[int]:
        limiter, served = limiter_in(tmp_path, clock), []

        async def one(number: int) -> None:
            async with limiter.permit():
                served.append(number)
                await asyncio.sleep(random.Random(number).random())

        await asyncio.gather(*(one(number) for number in range(20)))
        return served

    assert run(main) == list(range(20))


def test_a_permit_counts_from_when_its_request_was_sent(tmp_path: Path) -> None:
    """The service counts arrivals, so time spent connecting frees no permit."""

    async def main(clock: Clock) -> float:
        service, limiter, began = Service(clock), limiter_in(tmp_path, clock), clock()
        await asyncio.gather(*(service.serve(limiter, connect_s=7.0) for _ in range(5)))
        async with limiter.permit():
            return clock() - began

    assert run(main) == pytest.approx(7.0 + 1.0 + MARGIN_S)


def delay_of_a_start(*, before: list[float]) -> Callable[[Path], float]:
    """Return when a request starts while four others last, after some that took *before*."""

    async def main(clock: Clock, folder: Path) -> float:
        service, limiter = Service(clock), limiter_in(folder, clock)
        for work_s in before:
            await service.serve(limiter, work_s=work_s)
        await asyncio.sleep(5)
        long = [asyncio.create_task(service.serve(limiter, work_s=60)) for _ in range(4)]
        await service.serve(limiter)
        began = clock()
        for _ in range(2):  # the first takes the slot of the finished request, the second that of a slow one
            await service.serve(limiter)
        after = clock() - began
        for task in long:
            task.cancel()
        await asyncio.gather(*long, return_exceptions=True)
        return after

    return lambda folder: run(lambda clock: main(clock, folder))


def test_a_slow_answer_does_not_hold_up_the_next_start(tmp_path: Path) -> None:
    """Slow answers use up concurrency and not the starts of the next second."""
    assert delay_of_a_start(before=[0.2] * 5)(tmp_path) == pytest.approx(LAG_S + 1.0 + MARGIN_S, abs=0.02)


def test_an_unusually_late_answer_may_not_have_been_counted_yet(tmp_path: Path) -> None:
    """Of a service that always answers at once, an open request may still be uncounted."""
    assert delay_of_a_start(before=[])(tmp_path) == pytest.approx(UNUSUAL_LAG_S + 1.0 + MARGIN_S, abs=0.02)


@pytest.mark.parametrize("route", ["metric list", "other"])
def test_no_more_than_five_are_under_way(tmp_path: Path, route: Route) -> None:
    """At most 5 requests are under way, lists included (Wire 2.3, Rate limits)."""

    async def main(clock: Clock) -> int:
        service, limiter = Service(clock), limiter_in(tmp_path, clock)
        await asyncio.gather(*(service.serve(limiter, route=route, work_s=3.0) for _ in range(12)))
        return service.most_under_way

    assert run(main) == 5


def test_a_cancelled_waiter_leaves_its_turn_to_the_next(tmp_path: Path) -> None:
    """A request cancelled while it waits takes no permit."""

    async def main(clock: Clock) -> float:
        service, limiter = Service(clock), limiter_in(tmp_path, clock)
        await asyncio.gather(*(service.serve(limiter) for _ in range(5)))
        waiters = [asyncio.create_task(service.serve(limiter)) for _ in range(10)]
        began = clock()
        await asyncio.sleep(0.5)
        for waiter in waiters[:9]:
            waiter.cancel()
        await waiters[9]
        return clock() - began

    assert run(main) == pytest.approx(1.0 + MARGIN_S)


def test_a_cancelled_request_frees_its_permit_once_it_was_counted(tmp_path: Path) -> None:
    """The permit of a request cancelled under way is free after the longest usual lag."""

    async def main(clock: Clock) -> float:
        service, limiter = Service(clock), limiter_in(tmp_path, clock)
        requests = [asyncio.create_task(service.serve(limiter, work_s=60)) for _ in range(5)]
        await asyncio.sleep(0.01)
        for request in requests:
            request.cancel()
        began = clock() - 0.01
        await service.serve(limiter)
        return clock() - began

    assert run(main) == pytest.approx(UNUSUAL_LAG_S + 1.0 + MARGIN_S)


HOLDER = """
import sys, time
from pathlib import Path
from gamelens.client.limits.shared_slots import SharedSlots
held = SharedSlots("key", folder=Path(sys.argv[1]), clock=time.monotonic)
assert all(slot.take(time.monotonic()) for slot in held.starts + held.in_flight)
print("held", flush=True)
time.sleep(60)
"""


def test_a_killed_process_frees_its_permits_at_once(tmp_path: Path) -> None:
    """Once a process that holds all slots is killed, a waiting one goes on: nothing has to run out."""

    async def main() -> str:
        limiter = limiter_in(tmp_path, asyncio.get_running_loop().time)
        with subprocess.Popen([sys.executable, "-c", HOLDER, str(tmp_path)], stdout=subprocess.PIPE) as other:  # noqa: ASYNC220
            assert other.stdout is not None
            assert other.stdout.readline() == b"held\n"
            waiter = asyncio.create_task(limiter.permit().__aenter__())
            await asyncio.sleep(0.1)
            was_waiting = not waiter.done()
            other.kill()
            other.wait()
            permit = await asyncio.wait_for(waiter, 10)
            permit.release(is_cut_short=False)
        return "it waited and went on" if was_waiting else "it did not wait"

    assert asyncio.run(main()) == "it waited and went on"


FORKED = """
import asyncio, os, sys
from pathlib import Path
from gamelens.client.limits.rate_limit import shared_rate_limiter
mine = shared_rate_limiter("https://a.example", "f", folder=Path(sys.argv[1]))

async def waits():
    try:
        async with asyncio.timeout(0.3), budget.permit():
            return False
    except TimeoutError:
        return True

async def main():
    for _ in range(5):
        await mine.permit().__aenter__()
    return os.fork()

child = asyncio.new_event_loop().run_until_complete(main())
budget = shared_rate_limiter("https://a.example", "f", folder=Path(sys.argv[1]))
if child:
    assert os.waitpid(child, 0)[1] == 0
    print(budget is mine, asyncio.new_event_loop().run_until_complete(waits()))
else:
    asyncio.set_event_loop(None)
    os._exit(0 if budget is not mine and asyncio.new_event_loop().run_until_complete(waits()) else 1)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_has_a_limiter_of_its_own(tmp_path: Path) -> None:
    """If the parent holds all five permits the child waits, and its end frees none of them."""
    command = [sys.executable, "-W", "ignore", "-c", FORKED, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout == "True True\n", done.stderr


def test_without_a_folder_the_limit_covers_this_process_only(tmp_path: Path) -> None:
    """Without a shared folder this process keeps the limits, and `why_alone` says why."""
    (tmp_path / "file").write_text("no folder")
    folder = tmp_path / "file" / "folder"
    assert 11 <= arrivals(60, folder)[-1] < 11 * 1.08
    alone = shared_rate_limiter("https://a.example", "f", folder=folder)
    assert alone.why_alone is not None
    assert alone.why_alone.startswith(f"it cannot see other processes: {folder}: ")


@pytest.mark.parametrize("is_gone_for_good", [False, True])
def test_a_folder_that_goes_away_costs_no_request_and_no_limit(tmp_path: Path, is_gone_for_good: bool) -> None:
    """A removed folder is made again or done without, and no request or limit is lost."""

    async def main(clock: Clock) -> tuple[Service, str | None]:
        service, limiter = Service(clock), limiter_in(tmp_path / "a", clock)
        await asyncio.gather(*(service.serve(limiter) for _ in range(5)))
        (tmp_path / "a").rename(tmp_path / "b")
        if is_gone_for_good:
            (tmp_path / "a").write_text("in its place")
        await asyncio.gather(*(service.serve(limiter) for _ in range(10)))
        return service, limiter.why_alone

    service, why_alone = run(main)
    assert len(service.arrivals) == 15
    pairs = zip(service.arrivals, service.arrivals[5:], strict=False)
    assert all(later - earlier >= 1.0 for earlier, later in pairs)
    assert (why_alone is not None) is is_gone_for_good


def test_clients_with_the_same_key_and_address_share_one_limiter(tmp_path: Path) -> None:
    """The same key and address give the same rate limiter in one process."""
    first = shared_rate_limiter("https://a.example", "f", folder=tmp_path)
    assert first is shared_rate_limiter("https://a.example", "f", folder=tmp_path)
    assert first.why_alone is None


@pytest.mark.parametrize(("address", "key"), [("https://a.example", "g"), ("https://b.example", "f")])
def test_another_key_or_address_has_another_limiter(tmp_path: Path, address: str, key: str) -> None:
    """Requests with another key or to another address do not wait for each other."""

    async def main() -> None:
        first = shared_rate_limiter("https://a.example", "f", folder=tmp_path)
        second = shared_rate_limiter(address, key, folder=tmp_path)
        for limiter in (first, second):
            for _ in range(5):
                async with asyncio.timeout(0.9), limiter.permit():
                    pass

    asyncio.run(main())


def test_clients_of_either_pace_share_the_guaranteed_slots(tmp_path: Path) -> None:
    """An adaptive and a guaranteed limiter of one key share the guaranteed slots."""
    steady = shared_rate_limiter("https://a.example", "f", folder=tmp_path)
    probing = shared_rate_limiter("https://a.example", "f", "adaptive", folder=tmp_path)
    assert steady is not probing
    assert steady._slots is probing._slots


class TracedPool(httpx.ASGITransport):
    """The app in place of the network, which also reports when a request has been sent."""

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send *request* to the app."""
        await request.extensions["trace"]("http11.send_request_body.complete", {})
        return await super().handle_async_request(request)


class LimitedService:
    """A metrics service of several nodes behind the real transport, on the loop's clock."""

    def __init__(
        self, clock: Clock, folder: Path, *, nodes: int, pace: Literal["guaranteed", "adaptive"], seed: int
    ) -> None:
        chance = random.Random(seed)
        self._nodes = NodeLimiters(RateLimits(5, 5), nodes=nodes, random=chance.randrange, clock=clock)
        self._chance = chance
        self.refused_at: list[float] = []
        self.clock = clock
        self.tally = RequestStats()
        self.probe = AdaptiveLimit() if pace == "adaptive" else None
        limiter = limiter_in(folder, clock, probe=self.probe)
        self.transport = Transport("http://127.0.0.1", rate_limiter=limiter, pool=TracedPool(self._app), clock=clock)

    async def serve(self, number: int) -> float:
        """Return how many seconds *number* requests take, all of which must succeed."""
        began = self.clock()
        request = HttpRequest(method="GET", path="/metrics/v1/interval")
        answers = await asyncio.gather(*(self.transport.send(request, self.tally) for _ in range(number)))
        assert [answer.status for answer in answers] == [200] * number
        return self.clock() - began

    async def _app(self, scope: Scope, receive: Receive, send: Send) -> None:
        await (await self._answer())(scope, receive, send)

    async def _answer(self) -> Response:
        try:
            with self._nodes.permit("acme"):
                await asyncio.sleep(self._chance.uniform(0.003, 0.03))
                return JSONResponse("2026-08-22T00:00:00Z/2026-11-20T11:00:00Z")
        except RateLimited:
            self.refused_at.append(self.clock())
            return JSONResponse({}, 429, {"Retry-After": "1"})


def serve_requests(
    folder: Path, number: int, *, nodes: int, pace: Literal["guaranteed", "adaptive"], seed: int = 1
) -> tuple[float, LimitedService]:
    """Return how long *number* requests took, and the service they were sent to."""

    async def main(clock: Clock) -> tuple[float, LimitedService]:
        counter = LimitedService(clock, folder, nodes=nodes, pace=pace, seed=seed)
        return await counter.serve(number), counter

    return run(main)


@pytest.fixture(scope="module")
def steady(tmp_path_factory: pytest.TempPathFactory) -> Callable[[int], float]:
    """Return how long a number of requests takes at the guaranteed rate, which no number of nodes changes."""
    seconds, _ = serve_requests(tmp_path_factory.mktemp("steady"), 180, nodes=4, pace="guaranteed")
    return lambda number: seconds * (number - 5) / (180 - 5)  # the first five start at once


@pytest.mark.wide
@pytest.mark.hypothesis  # more draws in `make bench`
@pytest.mark.parametrize("seed", range(tries(in_test=1, in_bench=3)))
def test_adaptive_is_two_and_a_half_times_as_fast_where_four_nodes_serve(
    tmp_path: Path, steady: Callable[[int], float], seed: int
) -> None:
    """Four nodes limit alone: at most 5 % is refused and none lost (Wire 2.3, Rate limits)."""
    adaptive_s, counter = serve_requests(tmp_path, 720, nodes=4, pace="adaptive", seed=seed)
    assert steady(720) / adaptive_s >= 2.5
    assert len(counter.refused_at) <= 0.05 * counter.tally.requests
    assert counter.tally.retries == len(counter.refused_at)


@pytest.mark.shown_by(1)
@pytest.mark.parametrize(("nodes", "times"), [(2, 1.3), (3, 1.8), (8, 3.5)])
def test_adaptive_finds_the_rate_of_any_number_of_nodes(
    tmp_path: Path, steady: Callable[[int], float], nodes: int, times: float
) -> None:
    """With fewer or more nodes too at most 5 % of the requests are refused."""
    adaptive_s, counter = serve_requests(tmp_path, 480, nodes=nodes, pace="adaptive")
    assert steady(480) / adaptive_s >= times
    assert len(counter.refused_at) <= 0.05 * counter.tally.requests


def test_adaptive_stays_at_the_guarantee_for_a_minute_where_one_node_serves(tmp_path: Path) -> None:
    """The limits are guaranteed minimums: one refusal ends probing (Wire 2.3, Rate limits)."""
    seconds, counter = serve_requests(tmp_path, 240, nodes=1, pace="adaptive")
    assert len(counter.refused_at) == 1
    assert seconds < 1.08 * 47


def test_the_guarantee_is_never_refused(tmp_path: Path) -> None:
    """With `pace="guaranteed"` the service refuses nothing (Wire 2.3, Rate limits)."""
    assert serve_requests(tmp_path, 60, nodes=1, pace="guaranteed")[1].refused_at == []


def test_a_refusal_while_probing_is_not_counted_as_an_attempt(tmp_path: Path) -> None:
    """Seven refusals of more than the guaranteed rate do not use up six attempts."""

    async def main(clock: Clock) -> tuple[HttpResponse, int]:
        probe = AdaptiveLimit()
        for _ in range(20):
            probe.mark_answered(clock(), clock(), is_wanted=True)
        refusals = iter(range(7))

        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            is_refused = next(refusals, None) is not None
            answer = JSONResponse({}, 429, {"Retry-After": "0"}) if is_refused else JSONResponse("here")
            await answer(scope, receive, send)

        limiter = limiter_in(tmp_path, clock, probe=probe)
        transport = Transport("http://127.0.0.1", rate_limiter=limiter, pool=httpx.ASGITransport(app), clock=clock)
        tally = RequestStats()
        return await transport.send(HttpRequest(method="GET", path="/"), tally), tally.requests

    answer, requests = run(main)
    assert (answer.status, requests) == (200, 8)


def test_a_refusal_at_the_guarantee_is_one_of_the_attempts(tmp_path: Path) -> None:
    """At the guaranteed rate the sixth refusal is raised as `RateLimited`."""

    async def main(clock: Clock) -> int:
        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            await JSONResponse({}, 429, {"Retry-After": "0"})(scope, receive, send)

        limiter = limiter_in(tmp_path, clock, probe=AdaptiveLimit())
        transport = Transport("http://127.0.0.1", rate_limiter=limiter, pool=httpx.ASGITransport(app), clock=clock)
        tally = RequestStats()
        with pytest.raises(RateLimited):
            await transport.send(HttpRequest(method="GET", path="/"), tally)
        return tally.requests

    assert run(main) == 6
