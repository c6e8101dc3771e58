"""A Spark cluster of its own: a master and workers of one core each, as processes of this machine.

A worker runs on one processor with its Python processes, which otherwise take a second one.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

START_S = 90


@contextmanager
def spark_cluster(folder: Path, *, workers: int) -> Iterator[str]:
    """Start a cluster with so many *workers*, which keep their files below *folder*, and yield its address."""
    import pyspark

    home = Path(pyspark.__file__).parent
    port, page = _free_port(), _free_port()
    address = f"spark://127.0.0.1:{port}"
    environment = os.environ | {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    master = ["Master", "--host", "127.0.0.1", "--port", str(port), "--webui-port", str(page)]
    worker = ["Worker", "--host", "127.0.0.1", "--cores", "1", "--memory", "2g", "--webui-port", "0"]
    commands = [
        master,
        *([*worker, "--work-dir", str(folder / f"worker{number}"), address] for number in range(workers)),
    ]
    with ExitStack() as stack:
        for number, (kind, *options) in enumerate(commands):
            command = [str(home / "bin" / "spark-class"), f"org.apache.spark.deploy.{kind.lower()}.{kind}", *options]
            log = stack.enter_context((folder / "cluster.log").open("ab"))
            process = subprocess.Popen(command, stdout=log, stderr=log, env=environment)
            if kind == "Worker":
                os.sched_setaffinity(process.pid, {number % (os.cpu_count() or 1)})
            stack.callback(process.wait)
            stack.callback(process.terminate)
        deadline = time.monotonic() + START_S
        while _alive(f"http://127.0.0.1:{page}/json/") < workers:
            assert time.monotonic() < deadline, (folder / "cluster.log").read_text()[-2000:]
            time.sleep(0.2)
        yield address


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def _alive(page: str) -> int:
    """Return the number of workers that the master knows, 0 while it does not answer or its page is not ready."""
    try:
        with urllib.request.urlopen(page, timeout=5) as answer:
            return int(json.load(answer)["aliveworkers"])
    except (OSError, json.JSONDecodeError):
        return 0
