"""In real kernels: interrupted, mixed, killed (promises 8 and 12)."""

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
LATE_S = 0.3
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
    """A kernel with the service in its environment, that says what its cells print and raise."""

    def __init__(self, environment: dict[str, str]) -> None:
        self.manager = KernelManager(kernel_name="python3")
        self.manager.start_kernel(env={**os.environ, **environment, "PYDEVD_DISABLE_FILE_VALIDATION": "1"})
        self._client = self.manager.client()
        self._client.start_channels()
        self._client.wait_for_ready(timeout=60)
        assert self.run(SETUP) == ("", None)

    def start(self, code: str) -> str:
        return str(self._client.execute(code))

    def end(self, cell: str) -> tuple[str, str | None]:
        """What *cell* printed and the name of what it raised."""
        printed, raised = "", None
        while True:
            message = self._client.get_iopub_msg(timeout=60)
            if message["parent_header"].get("msg_id") != cell:
                continue
            kind, content = message["msg_type"], message["content"]
            if kind == "stream":
                printed += content["text"]
            elif kind == "error":
                raised = content["ename"]
            elif kind == "status" and content["execution_state"] == "idle":
                return printed, raised

    def run(self, code: str) -> tuple[str, str | None]:
        return self.end(self.start(code))

    def kill(self) -> None:
        """End it in the middle of whatever it does."""
        self.manager.signal_kernel(signal.SIGKILL)
        while self.manager.is_alive():
            time.sleep(0.01)
        self.close()

    def close(self) -> None:
        self._client.stop_channels()
        self.manager.shutdown_kernel(now=True)
        self.manager.cleanup_resources()


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    service = Service(tmp_path_factory.mktemp("kernel"), api_key=KEY)
    try:
        service.populate(days=102)
        yield service
    finally:
        service.stop()


@pytest.fixture(scope="module")
def environment(service: Service, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
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
    """One kernel for the cells of one analyst."""
    kernel = Kernel(environment)
    yield kernel
    kernel.close()


@pytest.fixture(scope="module")
def days(service: Service) -> list[int]:
    """The last three days, as the service says them when it is asked once."""
    answer = httpx.get(f"{service.ready.metrics_url}/metrics/v1/interval", headers={"X-API-Key": KEY}).json()
    day = answer.split("/")[1][:10]
    body = {"interval": f"P3D/{day}", "granularity": "day", "query": {"type": "timeseries"}}
    address = f"{service.ready.metrics_url}/metrics/v1/metrics/event_count"
    rows = httpx.post(address, json=body, headers={"X-API-Key": KEY}).json()["result"]
    return [row["result"]["event_count"] for row in rows]


def wait_for(service: Service, requests: int) -> None:
    ends_at = time.monotonic() + 30
    while service.asked() < requests:
        assert time.monotonic() < ends_at, "the requests did not come"
        time.sleep(0.02)


CELLS = {
    "sync": "daily.query(**ALL)",
    "await": "await adaily.query(**ALL)",
    "gather": "await asyncio.gather(*(adaily.query(**ALL) for _ in range(3)))",
    "sync within async": "async def ask():\n    return daily.query(**ALL)\nawait ask()",
}


@pytest.mark.parametrize("code", CELLS.values(), ids=CELLS)
def test_an_interrupted_cell_sends_nothing_more(service: Service, shared: Kernel, days: list[int], code: str) -> None:
    """Promise 8: measured by what arrives at the service; and the next cell works."""
    before = service.asked()
    cell = shared.start(code)
    wait_for(service, before + 6)
    time.sleep(0.85)  # the next five are about to start
    interrupted = time.monotonic()
    shared.manager.interrupt_kernel()
    time.sleep(max(0.0, interrupted + LATE_S - time.monotonic()))
    arrived = service.asked()
    printed, raised = shared.end(cell)
    assert raised in ("KeyboardInterrupt", "CancelledError")
    assert arrived < before + 90
    time.sleep(1.5)
    assert (printed, service.asked()) == ("", arrived)
    assert shared.run("say(lens.query(**FEW))") == (json.dumps(days) + "\n", None)


TOGETHER = {
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
        "found = []\n"
        "async def ask(): found.append(await alens.query(**FEW))\n"
        "threads = [threading.Thread(target=lambda: asyncio.run(ask())) for _ in range(3)]\n"
        "for thread in threads: thread.start()\n"
        "for thread in threads: thread.join()\n"
        "for frame in found: say(frame)"
    ),
}


@pytest.mark.parametrize("code", TOGETHER.values(), ids=TOGETHER)
def test_a_notebook_may_mix_what_it_likes(shared: Kernel, days: list[int], code: str) -> None:
    """Promise 8."""
    assert shared.run(code) == ((json.dumps(days) + "\n") * 3, None)


def test_a_killed_kernel_leaves_nothing_locked(
    service: Service, shared: Kernel, environment: dict[str, str], days: list[int]
) -> None:
    """Promises 7 and 9: its places are free and its cache is usable as soon as it is gone."""
    killed, before = Kernel(environment), service.asked()
    killed.start("gl.Client(max_days=1, progress=False).query(**ALL)")
    wait_for(service, before + 12)
    killed.kill()
    code = "began = time.monotonic(); frame = gl.Client(progress=False).query(**FEW); print(time.monotonic() - began)\n"
    printed, raised = shared.run(code + "say(frame)")
    assert raised is None
    took, said = printed.splitlines()
    assert json.loads(said) == days
    assert float(took) < 2.0


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


def spelled(key: str) -> list[bytes]:
    """*key* as it is, in addresses, in hex, and in Base64 wherever it may begin."""
    plain = [key, quote(key), quote(key, safe=""), key.encode().hex()]
    coded = [
        encode(b"x" * shift + key.encode())[4:-4]
        for shift in range(3)
        for encode in (base64.b64encode, base64.urlsafe_b64encode)
    ]
    return [text.encode() for text in plain] + coded


def test_no_byte_a_notebook_leaves_holds_the_key(environment: dict[str, str], tmp_path: Path) -> None:
    """Promise 12: outputs, tracebacks with values, logs, cache, recording, budget."""
    cells = [nbformat.v4.new_code_cell(code) for code in NOTEBOOK]
    notebook = nbformat.v4.new_notebook(cells=cells)
    NotebookClient(notebook, kernel_name="python3", allow_errors=True).execute(env=os.environ | environment)
    nbformat.write(notebook, tmp_path / "left.ipynb")
    folder = Path(environment["GAMELENS_CACHE_DIR"]).parent
    left = {path: path.read_bytes() for place in (folder, tmp_path) for path in place.rglob("*") if path.is_file()}
    assert {path.parent.name for path in left} >= {"runtime", "record"}
    outputs: list[Any] = [output for cell in notebook.cells for output in cell.outputs]
    assert sum(output.output_type == "error" for output in outputs) >= 6
    assert [path.name for path, held in left.items() for form in spelled(KEY) if form in held] == []
