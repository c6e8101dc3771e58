"""What was created before a fork belongs to the parent: a child that uses it is told so at once."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Coroutine, Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from gamelens.client.answer_cache import AnswerCache, CacheKey
from gamelens.client.async_client import AsyncClient
from gamelens.client.events.game_server import GameServer
from gamelens.client.events.outbox import Outbox
from gamelens.client.events.outbox_file import OutboxFile
from gamelens.client.sync_client import Client
from gamelens.client.tables.time_ranges import BucketSlice
from gamelens.errors import Refused
from gamelens.wire.intervals import Interval
from support import foreign_service
from support.foreign_service import KEY, ForeignService
from support.forked_child import LONGEST_S, in_child
from support.game_network import ANN, Game, in_loop

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")

SAYS = "created in another process, .*: create a new one in this process"
OVER = "2026-11-02/2026-11-09"


@pytest.fixture(scope="module")
def service() -> Iterator[ForeignService]:
    """A service on a socket, which answers parent and child."""
    with foreign_service.foreign_service() as served:
        yield served


@pytest.fixture
def lens(service: ForeignService) -> Iterator[Client]:
    """A client with an open connection."""
    with Client(api_key=f"{KEY}-fork", metrics_url=service.address, progress=False) as client:
        client.available()
        yield client


def sync_uses() -> dict[str, Callable[[Client], object]]:
    """Every kind of use of a client."""
    return {
        "available": Client.available,
        "a list": Client.games,
        "query": lambda lens: lens.query("revenue", over=OVER, deadline_s=5),
        "plan": lambda lens: lens.plan("revenue", over=OVER),
        "retention": lambda lens: lens.retention(1, over=OVER),
        "restatements": Client.restatements,
        "close": Client.close,
    }


@pytest.mark.shown_by(2)
@pytest.mark.parametrize("use", sync_uses().values(), ids=sync_uses())
def test_a_client_refuses_at_once_in_a_child(lens: Client, use: Callable[[Client], object]) -> None:
    """No call waits for a thread that the child does not have."""
    with pytest.raises(Refused, match=SAYS):
        in_child(lambda: use(lens))
    assert len(lens.query("revenue", over=OVER)), "the parent goes on"


def test_an_asynchronous_client_refuses_at_once_in_a_child(service: ForeignService) -> None:
    """Its calls and its close."""

    async def main() -> None:
        lens = AsyncClient(api_key=f"{KEY}-fork", metrics_url=service.address, progress=False)
        await lens.available()
        for use in (lens.available, lambda: lens.query("revenue", over=OVER), lens.aclose):
            with pytest.raises(Refused, match=SAYS):
                in_child(partial(_run_anew, use))
        assert len(await lens.query("revenue", over=OVER))
        await lens.aclose()

    asyncio.run(main())


def _run_anew(use: Callable[[], Coroutine[Any, Any, object]]) -> object:
    """Run *use* in a child that was forked on a running loop, which it leaves to the parent."""
    asyncio._set_running_loop(None)
    return asyncio.new_event_loop().run_until_complete(use())


def _ask(lens: Client) -> str:
    try:
        return str(lens.available())
    except Refused as error:
        return str(error)


_lens: list[Client] = []


def _ask_global(_: int) -> str:
    return _ask(_lens[0])


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_worker_of_multiprocessing_is_told(lens: Client) -> None:
    """A pool that forks is a common way to use a client in several processes."""
    _lens[:] = [lens]
    # A handler of SIGTERM that this process has would keep the workers alive when the pool ends them.
    with multiprocessing.get_context("fork").Pool(2, signal.signal, (signal.SIGTERM, signal.SIG_DFL)) as pool:
        texts = pool.map_async(_ask_global, range(4)).get(timeout=LONGEST_S)
        pool.close()
        pool.join()  # a worker that is only starting would hand the signal of the end to the handler of this process
    _lens.clear()
    assert all("create a new one in this process" in text for text in texts), texts


def test_a_new_client_works_in_a_child(lens: Client, service: ForeignService) -> None:
    """It has its own loop and rate limiter, and shares the cache."""
    expected = lens.query("revenue", by="platform", over=OVER)

    def ask() -> Any:
        with Client(api_key=f"{KEY}-fork", metrics_url=service.address, progress=False) as client:
            frame = client.query("revenue", by="platform", over=OVER)
            assert client.cache is not None
            return frame.to_csv(), client.cache.info().hits, client.cache.off

    text, hits, off = in_child(ask)
    assert (text, off) == (expected.to_csv(), None)
    assert hits > 0


CHILD_THAT_ENDS = """
import os, sys
from gamelens.client.sync_client import Client
lens = Client(api_key=sys.argv[1], metrics_url=sys.argv[2], cache=sys.argv[3], progress=False)
lens.available()
if os.fork() == 0:
    sys.exit(0)          # the interpreter ends as usual, with all that it does then
print(os.waitstatus_to_exitcode(os.wait()[1]), len(lens.query("revenue", over=sys.argv[4])) > 0)
"""


FORK_DURING_AN_IMPORT = """
import os, sys, threading, time
from gamelens.client.sync_client import Client

slowed, has_begun = sys.argv[4], threading.Event()

class Slow:
    def find_spec(self, name, path=None, target=None):
        if name == slowed:
            has_begun.set()
            time.sleep(0.5)

def ask(cache):
    with Client(api_key=sys.argv[1], metrics_url=sys.argv[2], cache=cache, progress=False) as lens:
        return len(lens.query("revenue", over=sys.argv[3]))

sys.meta_path.insert(0, Slow())
asks = threading.Thread(target=ask, args=[sys.argv[5] + "/parent"])
asks.start()
assert has_begun.wait(20), f"nothing imports {slowed}"
child = os.fork()
if not child:
    os._exit(ask(sys.argv[5] + "/child") == 0)
asks.join()
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.wide
@pytest.mark.parametrize("slowed", ["anyio", "anyio._backends", "anyio._backends._asyncio"])
def test_a_fork_waits_for_an_import(service: ForeignService, tmp_path: Path, slowed: str) -> None:
    """The first request of another thread imports modules, whose locks nobody would release in the child."""
    assert run(FORK_DURING_AN_IMPORT, f"{KEY}-import", service.address, OVER, slowed, str(tmp_path)) == "0\n"


FAILS_AT_THE_END = """
import asyncio, atexit, threading, time
from gamelens.client.connection.event_loop import shared_loop

async def fails():
    while threading.main_thread().is_alive():
        await asyncio.sleep(0.001)
    raise RuntimeError("cannot schedule new futures after interpreter shutdown")

loop = shared_loop()
atexit.register(time.sleep, 0.5)
threading.Thread(target=loop.run, args=[fails()], daemon=True).start()
"""


def test_a_query_that_fails_as_python_ends_says_nothing() -> None:
    """Its thread is a daemon: nobody waits for it, and its traceback would be cut off."""
    done = subprocess.run([sys.executable, "-c", FAILS_AT_THE_END], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("", "")


ENDS = {
    "with an open client": "lens = used()",
    "with a client that was just collected": "used()",
    "during a query": "threading.Thread(target=used().query, args=['dau'], kwargs={'over': OVER}, daemon=True).start()",
}


@pytest.mark.shown_by(1)
@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)
def test_a_script_that_closes_nothing_ends_without_a_word(service: ForeignService, tmp_path: Path, end: str) -> None:
    """Whatever a client still does then: Python would report each task that it destroys."""
    script = f"""
import sys, threading
from gamelens.client.sync_client import Client

OVER = "2026-11-02"

def used():
    lens = Client(api_key=sys.argv[1], metrics_url=sys.argv[2], cache=sys.argv[3], progress=False)
    lens.available()
    return lens

{end}
"""
    assert run(script, f"{KEY}-end", service.address, str(tmp_path)) == ""


def run(script: str, *arguments: str) -> str:
    """Return what a script prints."""
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", script, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=30)
    assert not done.stderr, done.stderr
    return done.stdout


def test_a_child_ends_as_usual(service: ForeignService, tmp_path: Path) -> None:
    """The end of the child neither hangs nor closes the connections of the parent."""
    assert run(CHILD_THAT_ENDS, f"{KEY}-fork", service.address, str(tmp_path), OVER) == "0 True\n"


@pytest.mark.wide
def test_a_fork_waits_for_the_cache(tmp_path: Path) -> None:
    """SQLite would take locks of the parent for those of the child: no fork comes between."""
    start = datetime(2026, 11, 2, tzinfo=UTC)
    day = Interval(start, start + timedelta(days=1))
    slices, rows = [BucketSlice(day, start)], pa.table({"timestamp": pa.array([start], pa.timestamp("us", "UTC"))})
    is_over = threading.Event()
    cache = AnswerCache(tmp_path, owner="ann")

    def write(number: int) -> None:
        while not is_over.is_set():
            cache.keep(CacheKey("revenue", (), f"{number}", True), slices, rows, available=day)

    def child() -> tuple[str | None, int]:
        own, key = AnswerCache(tmp_path, owner="ann", patience_s=9.0), CacheKey("revenue", (), "child", True)
        own.keep(key, slices, rows, available=day)
        return own.off, len(own.find(key, slices, available=day, fresh_s=60).slices)

    writers = [threading.Thread(target=write, args=(number,)) for number in range(3)]
    for writer in writers:
        writer.start()
    try:
        assert [in_child(child) for _ in range(8)] == [(None, 1)] * 8
    finally:
        is_over.set()
        for writer in writers:
            writer.join()
    assert (cache.off, cache.info().damaged) == (None, None)


@in_loop
async def test_a_session_refuses_events_of_a_child(game: Game, tmp_path: Path) -> None:
    """An event that the child could only lose is refused; the parent goes on and loses none."""
    session = game.session(queue=tmp_path / "events.sqlite")
    async with session as player:
        player.add("design", event_id="menu:open")
        for use in (
            lambda: player.add("design", event_id="child"),
            player.report,
            partial(_run_anew, player.flush),
            partial(_run_anew, player.close),
        ):
            with pytest.raises(Refused, match=SAYS):
                in_child(use)
        player.add("design", event_id="menu:close")
    assert session.report().collected == 4
    assert [event.get("event_id") for event in game.wire.events] == [None, "menu:open", "menu:close", None]


@in_loop
async def test_a_server_refuses_events_of_a_child(game: Game) -> None:
    """The recorders of its players too."""
    async with GameServer(game.wire.collector(), **game.time.seams()) as server:
        ann = await server.join("ann", ip="192.0.2.7", platform="ios", os_version="ios 17.0")
        for use in (lambda: ann.add("design", event_id="child"), lambda: server.leave("ann"), server.report):
            with pytest.raises(Refused, match=SAYS):
                in_child(use)
    assert server.report().collected == 2


@in_loop
async def test_a_collector_client_refuses_in_a_child(game: Game) -> None:
    """Two processes must not write to one connection."""
    async with game.wire.collector() as collector:
        await collector.init_v2(**ANN)
        for use in (lambda: collector.submit(b"[]"), lambda: collector.init_v2(**ANN), collector.aclose):
            with pytest.raises(Refused, match=SAYS):
                in_child(partial(_run_anew, use))


CHILD_OF_A_QUEUE = """
import gc, os, sys
from gamelens.client.events.outbox import Outbox
from gamelens.client.events.outbox_file import OutboxFile

outbox = Outbox(OutboxFile(sys.argv[1], game_key="0" * 32))
outbox.open_session("s", "ann", {}, now_s=1)
outbox.add("s", b"{}", now_s=1)
if not (child := os.fork()):
    del outbox
    gc.collect()
    sys.exit(0)
os.waitpid(child, 0)
for _ in range(5):
    outbox.add("s", b"{}", now_s=1)
os._exit(0)  # as a game that is killed
"""


def test_the_end_of_a_child_leaves_the_queue_file_alone(tmp_path: Path) -> None:
    """It closes no connection of the parent, which would delete the log in which the parent's events are."""
    queue = tmp_path / "events.sqlite"
    assert run(CHILD_OF_A_QUEUE, str(queue)) == ""
    assert Outbox(OutboxFile(queue, game_key="0" * 32)).waiting() == 6
