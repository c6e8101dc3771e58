"""The budget: 5 starts in any second and 5 at a time, over all processes (Metrics, Limits)."""

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

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from starlette.responses import JSONResponse, Response

from gamelens.client.connection.rate_limit import (
    ANSWERS_PER_SLOT,
    LAG_S,
    MARGIN_S,
    UNUSUAL_LAG_S,
    AdaptiveLimit,
    RateLimiter,
    Route,
    shared_rate_limiter,
)
from gamelens.client.connection.shared_slots import SharedSlots
from gamelens.client.connection.transport import HttpRequest, HttpResponse, RequestStats, Transport
from gamelens.errors import RateLimited
from gamelens.sandbox.http.rate_limiter import NodeLimiters, RateLimits
from support.virtual_time import run

pytestmark = pytest.mark.slow

Clock = Callable[[], float]


def budget_in(folder: Path, clock: Clock, *, probe: AdaptiveLimit | None = None) -> RateLimiter:
    """As another process would make it: with files and a queue of its own."""
    return RateLimiter(SharedSlots("key", folder=folder, clock=clock), probe=probe, clock=clock)


class Service:
    """Counts what arrives and what is under way."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.arrivals: list[float] = []
        self.under_way = 0
        self.most_under_way = 0

    async def ask(
        self,
        budget: RateLimiter,
        *,
        route: Route = "other",
        connect_s: float = 0,
        travel_s: float = 0,
        work_s: float = 0,
    ) -> None:
        async with budget.place(route) as place:
            await asyncio.sleep(connect_s)
            place.sent()
            await asyncio.sleep(travel_s)
            self.arrivals.append(self._clock())
            self.under_way += 1
            self.most_under_way = max(self.most_under_way, self.under_way)
            await asyncio.sleep(work_s)
            self.under_way -= 1
            place.answered()


def arrivals(number: int, folder: Path) -> list[float]:
    """When *number* requests that take no time arrive, from the first on."""

    async def main(clock: Clock) -> list[float]:
        service, budget = Service(clock), budget_in(folder, clock)
        await asyncio.gather(*(service.ask(budget) for _ in range(number)))
        return [at - service.arrivals[0] for at in service.arrivals]

    return run(main)


def test_five_requests_start_at_once(tmp_path: Path) -> None:
    """Metrics, Limits: at least 5 requests per second."""
    assert arrivals(5, tmp_path) == [0.0] * 5


def test_sixty_requests_take_no_longer_than_the_limit_forces(tmp_path: Path) -> None:
    """Metrics, Limits: 60 / 5 - 1 = 11 s, and the margin."""
    assert 11 <= arrivals(60, tmp_path)[-1] < 11 * 1.08


def test_the_metric_list_has_a_budget_of_its_own(tmp_path: Path) -> None:
    """Metrics, Limits: 1000 requests per second."""

    async def main(clock: Clock) -> float:
        service, budget, began = Service(clock), budget_in(tmp_path, clock), clock()
        for _ in range(1000):
            await service.ask(budget, route="metric list")
        return clock() - began

    assert run(main) == 0.0


TIMES = st.tuples(st.floats(0, 0.3), st.floats(0, 0.05), st.sampled_from([0.0, 0.01, 0.2, 1.5]))


@settings(max_examples=30, deadline=None)
@given(requests=st.lists(TIMES, min_size=6, max_size=30), processes=st.integers(1, 3))
def test_no_rolling_second_sees_more_than_five_arrivals_and_no_moment_more_than_five_requests(
    requests: list[tuple[float, float, float]], processes: int
) -> None:
    """Metrics, Limits: whatever connecting, travelling and answering take, and however many processes ask."""

    async def main(clock: Clock) -> Service:
        service = Service(clock)
        with tempfile.TemporaryDirectory() as folder:
            budgets = [budget_in(Path(folder), clock) for _ in range(processes)]
            pairs = zip(itertools.cycle(budgets), requests, strict=False)
            works = (
                service.ask(budget, connect_s=connect_s, travel_s=travel_s, work_s=work_s)
                for budget, (connect_s, travel_s, work_s) in pairs
            )
            await asyncio.gather(*works)
        return service

    service = run(main)
    assert len(service.arrivals) == len(requests)
    assert service.most_under_way <= 5
    counted = sorted(service.arrivals)
    assert all(later - earlier >= 1.0 for earlier, later in zip(counted, counted[5:], strict=False))


def test_a_service_that_is_held_up_is_not_overrun(tmp_path: Path) -> None:
    """Metrics, Limits: what it usually answers at once it counts a fifth of a second late."""

    async def main(clock: Clock) -> list[float]:
        service, budget = Service(clock), budget_in(tmp_path, clock)
        await asyncio.gather(
            *(service.ask(budget, travel_s=travel_s) for travel_s in [0.0] * 5 + [0.2] * 5 + [0.0] * 5)
        )
        return service.arrivals

    counted = run(main)
    assert all(later - earlier >= 1.0 for earlier, later in zip(counted, counted[5:], strict=False))


def test_two_processes_together_use_all_there_is(tmp_path: Path) -> None:
    """Metrics, Limits."""

    async def main(clock: Clock) -> float:
        service, began = Service(clock), clock()
        budgets = [budget_in(tmp_path, clock) for _ in range(2)]
        await asyncio.gather(*(service.ask(budget, work_s=0.02) for budget in budgets for _ in range(30)))
        return clock() - began

    assert run(main) < 11 * 1.08


def test_places_are_given_in_the_order_they_were_asked_for(tmp_path: Path) -> None:
    async def main(clock: Clock) -> list[int]:
        budget, served = budget_in(tmp_path, clock), []

        async def one(number: int) -> None:
            async with budget.place():
                served.append(number)
                await asyncio.sleep(random.Random(number).random())

        await asyncio.gather(*(one(number) for number in range(20)))
        return served

    assert run(main) == list(range(20))


def test_a_place_counts_from_when_its_request_was_sent(tmp_path: Path) -> None:
    """Metrics, Limits: the service counts arrivals, so waiting for a connection frees no place."""

    async def main(clock: Clock) -> float:
        service, budget, began = Service(clock), budget_in(tmp_path, clock), clock()
        await asyncio.gather(*(service.ask(budget, connect_s=7.0) for _ in range(5)))
        async with budget.place():
            return clock() - began

    assert run(main) == pytest.approx(7.0 + 1.0 + MARGIN_S)


def under_way_long(*, before: list[float]) -> Callable[[Path], float]:
    """When a fifth request may start while four others last, after requests that took *before*."""

    async def main(clock: Clock, folder: Path) -> float:
        service, budget = Service(clock), budget_in(folder, clock)
        for work_s in before:
            await service.ask(budget, work_s=work_s)
        await asyncio.sleep(5)
        long = [asyncio.create_task(service.ask(budget, work_s=60)) for _ in range(4)]
        await service.ask(budget)
        began = clock()
        for _ in range(2):  # the first takes the slot of the short one, the second that of a long one
            await service.ask(budget)
        after = clock() - began
        for task in long:
            task.cancel()
        await asyncio.gather(*long, return_exceptions=True)
        return after

    return lambda folder: run(lambda clock: main(clock, folder))


def test_a_slow_answer_does_not_hold_up_the_next_start(tmp_path: Path) -> None:
    """Metrics, Limits: 5 at a time is another limit than 5 in a second."""
    assert under_way_long(before=[0.2] * 5)(tmp_path) == pytest.approx(LAG_S + 1.0 + MARGIN_S, abs=0.02)


def test_where_answers_come_at_once_silence_means_that_a_request_is_not_counted_yet(tmp_path: Path) -> None:
    """A service that is still warming up, or held up, counts late what was sent in time."""
    assert under_way_long(before=[])(tmp_path) == pytest.approx(UNUSUAL_LAG_S + 1.0 + MARGIN_S, abs=0.02)


@pytest.mark.parametrize("route", ["metric list", "other"])
def test_no_more_than_five_are_under_way(tmp_path: Path, route: Route) -> None:
    """Metrics, Limits: simultaneous requests, at least 5; the lists of metrics are among them."""

    async def main(clock: Clock) -> int:
        service, budget = Service(clock), budget_in(tmp_path, clock)
        await asyncio.gather(*(service.ask(budget, route=route, work_s=3.0) for _ in range(12)))
        return service.most_under_way

    assert run(main) == 5


def test_a_cancelled_waiter_leaves_its_place_to_the_next(tmp_path: Path) -> None:
    async def main(clock: Clock) -> float:
        service, budget = Service(clock), budget_in(tmp_path, clock)
        await asyncio.gather(*(service.ask(budget) for _ in range(5)))
        waiters = [asyncio.create_task(service.ask(budget)) for _ in range(10)]
        began = clock()
        await asyncio.sleep(0.5)
        for waiter in waiters[:9]:
            waiter.cancel()
        await waiters[9]
        return clock() - began

    assert run(main) == pytest.approx(1.0 + MARGIN_S)


def test_a_cancelled_request_gives_its_place_back_once_it_must_have_been_counted(tmp_path: Path) -> None:
    async def main(clock: Clock) -> float:
        service, budget = Service(clock), budget_in(tmp_path, clock)
        asked = [asyncio.create_task(service.ask(budget, work_s=60)) for _ in range(5)]
        await asyncio.sleep(0.01)
        for request in asked:
            request.cancel()
        began = clock() - 0.01
        await service.ask(budget)
        return clock() - began

    assert run(main) == pytest.approx(UNUSUAL_LAG_S + 1.0 + MARGIN_S)


HOLDER = """
import sys, time
from pathlib import Path
from gamelens.client.slots import Guarantee
held = Guarantee("key", folder=Path(sys.argv[1]), clock=time.monotonic)
assert all(slot.take(time.monotonic()) for slot in held.starts + held.seats)
print("held", flush=True)
time.sleep(60)
"""


def test_a_killed_process_leaves_its_places_at_once(tmp_path: Path) -> None:
    async def main() -> str:
        budget = budget_in(tmp_path, asyncio.get_running_loop().time)
        with subprocess.Popen([sys.executable, "-c", HOLDER, tmp_path], stdout=subprocess.PIPE) as other:  # noqa: ASYNC220
            assert other.stdout is not None
            assert other.stdout.readline() == b"held\n"
            waiter = asyncio.create_task(budget.place().__aenter__())
            await asyncio.sleep(0.1)
            was_waiting = not waiter.done()
            other.kill()
            other.wait()
            place = await asyncio.wait_for(waiter, 0.2)
            place.leave(is_cut_short=False)
        return "it waited and went on" if was_waiting else "it did not wait"

    assert asyncio.run(main()) == "it waited and went on"


FORKED = """
import asyncio, os, sys
from pathlib import Path
from gamelens.client.pacing import shared_budget
mine = shared_budget("https://a.example", "f", folder=Path(sys.argv[1]))

async def waits():
    try:
        async with asyncio.timeout(0.3), budget.place():
            return False
    except TimeoutError:
        return True

async def main():
    for _ in range(5):
        await mine.place().__aenter__()
    return os.fork()

child = asyncio.new_event_loop().run_until_complete(main())
budget = shared_budget("https://a.example", "f", folder=Path(sys.argv[1]))
if child:
    assert os.waitpid(child, 0)[1] == 0
    print(budget is mine, asyncio.new_event_loop().run_until_complete(waits()))
else:
    asyncio.set_event_loop(None)
    os._exit(0 if budget is not mine and asyncio.new_event_loop().run_until_complete(waits()) else 1)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_has_a_budget_of_its_own_and_takes_no_place_of_its_parent(tmp_path: Path) -> None:
    """The parent holds all five: the child waits, and when it ends the parent still holds them."""
    command = [sys.executable, "-W", "ignore", "-c", FORKED, tmp_path]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout == "True True\n", done.stderr


def test_without_a_folder_it_paces_this_process_and_says_why(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    folder = tmp_path / "file" / "folder"
    assert 11 <= arrivals(60, folder)[-1] < 11 * 1.08
    alone = shared_rate_limiter("https://a.example", "f", folder=folder)
    assert alone.why_alone is not None
    assert alone.why_alone.startswith(f"other processes are not seen: {folder}: ")


@pytest.mark.parametrize("is_gone_for_good", [False, True])
def test_a_folder_that_goes_away_costs_no_request_and_no_limit(tmp_path: Path, is_gone_for_good: bool) -> None:
    """As the runtime directory does when its user logs out. It is made anew, or done without."""

    async def main(clock: Clock) -> tuple[Service, str | None]:
        service, budget = Service(clock), budget_in(tmp_path / "a", clock)
        await asyncio.gather(*(service.ask(budget) for _ in range(5)))
        (tmp_path / "a").rename(tmp_path / "b")
        if is_gone_for_good:
            (tmp_path / "a").write_text("in its place")
        await asyncio.gather(*(service.ask(budget) for _ in range(10)))
        return service, budget.why_alone

    service, why_alone = run(main)
    assert len(service.arrivals) == 15
    pairs = zip(service.arrivals, service.arrivals[5:], strict=False)
    assert all(later - earlier >= 1.0 for earlier, later in pairs)
    assert (why_alone is not None) is is_gone_for_good


def test_clients_with_the_same_key_and_address_share_one_budget(tmp_path: Path) -> None:
    ours = shared_rate_limiter("https://a.example", "f", folder=tmp_path)
    assert ours is shared_rate_limiter("https://a.example", "f", folder=tmp_path)
    assert ours.why_alone is None


@pytest.mark.parametrize(("address", "key"), [("https://a.example", "g"), ("https://b.example", "f")])
def test_another_key_or_service_has_another_budget(tmp_path: Path, address: str, key: str) -> None:
    async def main() -> None:
        ours = shared_rate_limiter("https://a.example", "f", folder=tmp_path)
        theirs = shared_rate_limiter(address, key, folder=tmp_path)
        for budget in (ours, theirs):
            for _ in range(5):
                async with asyncio.timeout(0.5), budget.place():
                    pass

    asyncio.run(main())


def test_clients_of_either_pace_share_the_slots_of_the_guarantee(tmp_path: Path) -> None:
    steady = shared_rate_limiter("https://a.example", "f", folder=tmp_path)
    probing = shared_rate_limiter("https://a.example", "f", "adaptive", folder=tmp_path)
    assert steady is not probing
    assert steady._guarantee is probing._guarantee


class Counter:
    """A metrics service of several nodes, answering through the real transport, on the loop's clock."""

    def __init__(self, clock: Clock, folder: Path, *, nodes: int, pace: str, seed: int = 1) -> None:
        chance = random.Random(seed)
        self._nodes = NodeLimiters(RateLimits(5, 5), nodes=nodes, random=chance.randrange, clock=clock)
        self._chance = chance
        self.refused_at: list[float] = []
        self.clock = clock
        self.tally = RequestStats()
        self.probe = AdaptiveLimit() if pace == "adaptive" else None
        budget = budget_in(folder, clock, probe=self.probe)
        self.transport = Transport("http://127.0.0.1", budget=budget, pool=httpx.ASGITransport(self._app), clock=clock)

    async def ask(self, number: int) -> float:
        """Seconds that *number* requests take, none of which may be lost."""
        began = self.clock()
        request = HttpRequest(method="GET", path="/metrics/v1/interval")
        answers = await asyncio.gather(*(self.transport.send(request, self.tally) for _ in range(number)))
        assert [answer.status for answer in answers] == [200] * number
        return self.clock() - began

    async def _app(self, scope: object, receive: object, send: object) -> None:
        await (await self._answer())(scope, receive, send)  # type: ignore[arg-type]

    async def _answer(self) -> Response:
        try:
            with self._nodes.place("acme"):
                await asyncio.sleep(self._chance.uniform(0.003, 0.03))
                return JSONResponse("2026-08-22T00:00:00Z/2026-11-20T11:00:00Z")
        except RateLimited:
            self.refused_at.append(self.clock())
            return JSONResponse({}, 429, {"Retry-After": "1"})


def counted(folder: Path, number: int, **options: object) -> tuple[float, Counter]:
    async def main(clock: Clock) -> tuple[float, Counter]:
        counter = Counter(clock, folder, **options)  # type: ignore[arg-type]
        return await counter.ask(number), counter

    return run(main)


@pytest.mark.parametrize("seed", range(3))
def test_adaptive_is_two_and_a_half_times_as_fast_where_four_nodes_serve(tmp_path: Path, seed: int) -> None:
    """Metrics, Limits 1: each node limits alone. No request is lost on the way."""
    steady_s, _ = counted(tmp_path / "steady", 240, nodes=4, pace="guaranteed", seed=seed)
    adaptive_s, counter = counted(tmp_path / "adaptive", 240, nodes=4, pace="adaptive", seed=seed)
    assert steady_s / adaptive_s >= 2.5
    assert counter.tally.retries == len(counter.refused_at)


def test_adaptive_stays_at_the_guarantee_for_a_minute_where_one_node_serves(tmp_path: Path) -> None:
    """Metrics, Limits 1: the limits are guaranteed minimums."""
    seconds, counter = counted(tmp_path, 240, nodes=1, pace="adaptive")
    assert len(counter.refused_at) == 1
    assert seconds < 1.08 * 47


def test_the_guarantee_is_never_refused(tmp_path: Path) -> None:
    """Metrics, Limits."""
    assert counted(tmp_path, 60, nodes=1, pace="guaranteed")[1].refused_at == []


def test_a_refusal_of_our_own_making_is_none_of_the_attempts(tmp_path: Path) -> None:
    """Seven refusals while more is asked for than guaranteed, where six attempts are all there are."""

    async def main(clock: Clock) -> tuple[HttpResponse, int]:
        probe = AdaptiveLimit()
        for _ in range(10 * ANSWERS_PER_SLOT):
            probe.answered(clock(), clock(), is_wanted=True)
        refusals = iter(range(7))

        async def app(scope: object, receive: object, send: object) -> None:
            is_refused = next(refusals, None) is not None
            answer = JSONResponse({}, 429, {"Retry-After": "0"}) if is_refused else JSONResponse("here")
            await answer(scope, receive, send)  # type: ignore[arg-type]

        budget = budget_in(tmp_path, clock, probe=probe)
        transport = Transport("http://127.0.0.1", budget=budget, pool=httpx.ASGITransport(app), clock=clock)
        tally = RequestStats()
        return await transport.send(HttpRequest(method="GET", path="/"), tally), tally.requests

    answer, requests = run(main)
    assert (answer.status, requests) == (200, 8)


def test_a_refusal_at_the_guarantee_is_one_of_the_attempts(tmp_path: Path) -> None:
    async def main(clock: Clock) -> int:
        async def app(scope: object, receive: object, send: object) -> None:
            await JSONResponse({}, 429, {"Retry-After": "0"})(scope, receive, send)  # type: ignore[arg-type]

        budget = budget_in(tmp_path, clock, probe=AdaptiveLimit())
        transport = Transport("http://127.0.0.1", budget=budget, pool=httpx.ASGITransport(app), clock=clock)
        tally = RequestStats()
        with pytest.raises(RateLimited):
            await transport.send(HttpRequest(method="GET", path="/"), tally)
        return tally.requests

    assert run(main) == 6
