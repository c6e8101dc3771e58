"""Clients in Jupyter kernels: interrupted, mixed and killed."""

from __future__ import annotations

import base64
import json
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import nbformat
import pytest
from jupyter_client.manager import KernelManager
from nbclient import NotebookClient

from support.killable_sandbox import Service

KEY = "s3cr+t/k=y%26-0123456789~ab"
ARRIVES_WITHIN_S = 0.3
SETUP = """
import asyncio, json, threading, time
from concurrent.futures import ThreadPoolExecutor
import gamelens as gl
quiet = {"cache": False, "progress": False}
lens, alens = gl.Client(**quiet), gl.AsyncClient(**quiet)
daily, adaily = gl.Client(max_days=1, **quiet), gl.AsyncClient(max_days=1, **quiet)
ALL = {"metric": "event_count", "over": "last 100 complete days"}
FEW = {"metric": "event_count", "over": "last 3 complete days"}
def say(frame): print(json.dumps(frame.event_count.tolist()))
"""


class Kernel:
    """A Jupyter kernel whose environment has the address and key of the service."""

    def __init__(self, environment: dict[str, str]) -> None:
        self.manager = KernelManager(kernel_name="python3")
        self.manager.start_kernel(env={**os.environ, **environment, "PYDEVD_DISABLE_FILE_VALIDATION": "1"})
        self._client = self.manager.client()
        self._client.start_channels()
        self._client.wait_for_ready(timeout=60)
        assert self.run(SETUP) == ("", None)

    def start(self, code: str) -> str:
        """Start a cell, and return its message id."""
        return str(self._client.execute(code))

    def end(self, cell_id: str) -> tuple[str, str | None]:
        """Wait for the end of a cell, and return its output and the name of its error."""
        printed, raised = "", None
        while True:
            message = self._client.get_iopub_msg(timeout=60)
            if message["parent_header"].get("msg_id") != cell_id:
                continue
            kind, content = message["msg_type"], message["content"]
            if kind == "stream":
                printed += content["text"]
            elif kind == "error":
                raised = content["ename"]
            elif kind == "status" and content["execution_state"] == "idle":
                return printed, raised

    def run(self, code: str) -> tuple[str, str | None]:
        """Run a cell to its end, and return its output and the name of its error."""
        return self.end(self.start(code))

    def kill(self) -> None:
        """Kill the kernel without a warning."""
        self.manager.signal_kernel(signal.SIGKILL)
        while self.manager.is_alive():
            time.sleep(0.01)
        self.close()

    def close(self) -> None:
        """Shut the kernel down and release its channels."""
        self._client.stop_channels()
        self.manager.shutdown_kernel(now=True)
        self.manager.cleanup_resources()


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """Run a sandbox with 102 days of events."""
    service = Service(tmp_path_factory.mktemp("kernel"), api_key=KEY)
    try:
        service.populate(days=102)
        yield service
    finally:
        service.stop()


@pytest.fixture(scope="module")
def environment(service: Service, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return the environment of the kernels, with folders of their own."""
    folder = tmp_path_factory.mktemp("session")
    return {
        "GAMELENS_API_KEY": KEY,
        "GAMELENS_METRICS_URL": service.ready.metrics_url,
        "GAMELENS_CACHE_DIR": str(folder / "cache"),
        "GAMELENS_RUNTIME_DIR": str(folder / "runtime"),
        "RECORD_DIR": str(folder / "record"),
    }


@pytest.fixture(scope="module")
def shared(environment: dict[str, str]) -> Iterator[Kernel]:
    """Start one kernel for the cells of several tests."""
    kernel = Kernel(environment)
    yield kernel
    kernel.close()


@pytest.fixture(scope="module")
def days(service: Service) -> list[int]:
    """Return the event counts of the last three days, from one request without the client."""
    answer = httpx.get(f"{service.ready.metrics_url}/metrics/v1/interval", headers={"X-API-Key": KEY}).json()
    day = answer.split("/")[1][:10]
    body = {"interval": f"P3D/{day}", "granularity": "day", "query": {"type": "timeseries"}}
    address = f"{service.ready.metrics_url}/metrics/v1/metrics/event_count"
    rows = httpx.post(address, json=body, headers={"X-API-Key": KEY}).json()["result"]
    return [row["result"]["event_count"] for row in rows]


def wait_for(service: Service, requests: int) -> None:
    """Wait until the service has served *requests*."""
    ends_at = time.monotonic() + 30
    while service.request_count() < requests:
        assert time.monotonic() < ends_at, "the requests were not sent"
        time.sleep(0.02)


CELLS = {
    "sync": "daily.query(**ALL)",
    "await": "await adaily.query(**ALL)",
    "gather": "await asyncio.gather(*(adaily.query(**ALL) for _ in range(3)))",
    "sync within async": "async def ask():\n    return daily.query(**ALL)\nawait ask()",
}


@pytest.mark.shown_by(1)
@pytest.mark.parametrize("code", CELLS.values(), ids=CELLS)
def test_an_interrupted_cell_sends_nothing_more(service: Service, shared: Kernel, days: list[int], code: str) -> None:
    """After an interrupt no request is sent, and the next cell works.

    Requests are counted where they arrive, at the service.
    """
    before = service.request_count()
    cell_id = shared.start(code)
    wait_for(service, before + 6)
    time.sleep(0.85)  # until the next five requests are about to start
    shared.manager.interrupt_kernel()
    printed, raised = shared.end(cell_id)
    assert raised in ("Interrupted", "CancelledError")
    time.sleep(ARRIVES_WITHIN_S)  # what was sent before
    arrived = service.request_count()
    assert arrived < before + 90
    time.sleep(1.5)
    assert (printed, service.request_count()) == ("", arrived)
    assert shared.run("say(lens.query(**FEW))") == (json.dumps(days) + "\n", None)


MIXED = {
    "one after the other": "say(lens.query(**FEW)); say(await alens.query(**FEW)); say(lens.query(**FEW))",
    "gathered": "for frame in await asyncio.gather(*(alens.query(**FEW) for _ in range(3))): say(frame)",
    "in threads": (
        "with ThreadPoolExecutor(3) as pool:\n"
        "    for frame in pool.map(lambda _: lens.query(**FEW), range(3)): say(frame)"
    ),
    "both kinds at once": (
        "tasks = [asyncio.to_thread(lens.query, **FEW), alens.query(**FEW), asyncio.to_thread(lens.query, **FEW)]\n"
        "for frame in await asyncio.gather(*tasks): say(frame)"
    ),
    "in loops of threads": (
        "frames = []\n"
        "async def ask(): frames.append(await alens.query(**FEW))\n"
        "threads = [threading.Thread(target=lambda: asyncio.run(ask())) for _ in range(3)]\n"
        "for thread in threads: thread.start()\n"
        "for thread in threads: thread.join()\n"
        "for frame in frames: say(frame)"
    ),
}


@pytest.mark.parametrize("code", MIXED.values(), ids=MIXED)
def test_clients_of_both_kinds_may_be_mixed(shared: Kernel, days: list[int], code: str) -> None:
    """Both clients give equal frames in sequence, concurrently, in threads and in loops."""
    assert shared.run(code) == ((json.dumps(days) + "\n") * 3, None)


@pytest.mark.wide
def test_a_killed_kernel_leaves_no_lock(
    service: Service, shared: Kernel, environment: dict[str, str], days: list[int]
) -> None:
    """After a kill another kernel uses the cache and all request permits within seconds, also on a busy machine."""
    killed, before = Kernel(environment), service.request_count()
    killed.start("gl.Client(max_days=1, progress=False).query(**ALL)")
    wait_for(service, before + 12)
    killed.kill()
    code = "began = time.monotonic(); frame = gl.Client(progress=False).query(**FEW); print(time.monotonic() - began)\n"
    printed, raised = shared.run(code + "say(frame)")
    assert raised is None
    duration_s, values = printed.splitlines()
    assert json.loads(values) == days
    assert float(duration_s) < 10.0


NOTEBOOK = [
    "%xmode Verbose",
    "import logging, os\nlogging.basicConfig(level=logging.DEBUG, force=True)",
    "import gamelens as gl\nlens = gl.Client(max_days=2)\nlens",
    "vars(lens), dir(lens), lens.cache.info()",
    "df = lens.query('event_count', by=['game', 'platform'], over='last 6 complete days')\ndf",
    "print(df.lens.explain()); df.attrs",
    "lens.plan('revenue', over='last 90 complete days')",
    "gl.Client(record=os.environ['RECORD_DIR']).query('revenue', by='platform', over='last 3 complete days')",
    "lens.query('revenu', over='last 3 complete days')",
    "lens.query('revenue', over='2031-01-01')",
    "lens.query('revenue', over='last 90 complete days', deadline_s=0.05)",
    "gl.Client(metrics_url='http://127.0.0.1:1').available()",
    "gl.Client(metrics_url=os.environ['GAMELENS_METRICS_URL'] + '/elsewhere').available()",
    "await gl.AsyncClient(max_days=2).query('revenu', over='last 3 complete days')",
    "%tb",
]


def encodings_of(key: str) -> list[bytes]:
    """Return *key* plain, quoted, in hex, and in Base64 at every offset."""
    plain = [key, quote(key), quote(key, safe=""), key.encode().hex()]
    encoded = [
        encode(b"x" * shift + key.encode())[4:-4]
        for shift in range(3)
        for encode in (base64.b64encode, base64.urlsafe_b64encode)
    ]
    return [text.encode() for text in plain] + encoded


@pytest.mark.wide
def test_no_file_of_a_notebook_contains_the_key(environment: dict[str, str], tmp_path: Path) -> None:
    """Outputs, tracebacks, logs, cache and recordings of a notebook never contain the key."""
    cells = [nbformat.v4.new_code_cell(code) for code in NOTEBOOK]  # type: ignore[no-untyped-call]
    notebook = nbformat.v4.new_notebook(cells=cells)  # type: ignore[no-untyped-call]
    NotebookClient(notebook, kernel_name="python3", allow_errors=True).execute(env=os.environ | environment)
    nbformat.write(notebook, tmp_path / "executed.ipynb")  # type: ignore[no-untyped-call]
    folder = Path(environment["GAMELENS_CACHE_DIR"]).parent
    files = {path: path.read_bytes() for place in (folder, tmp_path) for path in place.rglob("*") if path.is_file()}
    assert {path.parent.name for path in files} >= {"runtime", "record"}
    outputs: list[Any] = [output for cell in notebook.cells for output in cell.outputs]
    assert sum(output.output_type == "error" for output in outputs) >= 6
    assert [path.name for path, content in files.items() for form in encodings_of(KEY) if form in content] == []
