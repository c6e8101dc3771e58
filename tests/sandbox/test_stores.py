"""Events in stores are analysed where they lie and imported once, against servers that others wrote."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import pytest

from support.every_analysis import played_world

pytestmark = pytest.mark.slow

AZURE_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
"""The key of the account that every Azurite has, as its documentation publishes it."""
MAKE_BUCKET = "import fsspec; fsspec.filesystem('s3').mkdir('bucket')"
MAKE_CONTAINER = """
import os
from azure.storage.blob import BlobServiceClient
BlobServiceClient.from_connection_string(os.environ["AZURE_STORAGE_CONNECTION_STRING"]).create_container("bucket")
"""


def free_port() -> int:
    """Return a port of this machine that nobody listens at."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


@contextmanager
def started(command: Sequence[str], port: int) -> Iterator[None]:
    """Run a server until the end."""
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        for _ in range(600):
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                assert server.poll() is None, command
                time.sleep(0.1)
        yield
    finally:
        server.terminate()
        server.wait(30)


@pytest.mark.parametrize("kind", ["s3", "gs", "abfss"])
def test_events_in_a_store_are_analysed_there_and_imported_once(kind: str, tmp_path: Path) -> None:
    """With the credentials that the page of the documentation names; the second import takes nothing."""
    port = free_port()
    address = f"http://127.0.0.1:{port}"
    match kind:
        case "s3":
            if not (find_spec("moto") and find_spec("s3fs")):
                pytest.skip("needs moto and s3fs")
            command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
            url, make = "s3://bucket/studio", MAKE_BUCKET
            settings = {
                "AWS_ENDPOINT_URL": address,
                "AWS_ACCESS_KEY_ID": "key",
                "AWS_SECRET_ACCESS_KEY": "secret",
                "AWS_DEFAULT_REGION": "us-east-1",
            }
        case "gs":
            if not (find_spec("gcp_storage_emulator") and find_spec("gcsfs")):
                pytest.skip("needs gcp-storage-emulator and gcsfs")
            command = [sys.executable, "-m", "gcp_storage_emulator", "start", "--host=127.0.0.1", f"--port={port}"]
            command += ["--in-memory", "--default-bucket=bucket"]
            url, make, settings = "gs://bucket/studio", "", {"STORAGE_EMULATOR_HOST": address}
        case _:
            azurite = shutil.which("azurite-blob")
            if azurite is None or not find_spec("adlfs"):
                pytest.skip("needs Azurite, a package of npm, and adlfs")
            command = [azurite, "--inMemoryPersistence", "--blobHost", "127.0.0.1", "--blobPort", str(port), "--silent"]
            command += ["--skipApiVersionCheck", "--disableTelemetry"]
            url, make = "abfss://bucket@devstoreaccount1.dfs.core.windows.net/studio", MAKE_CONTAINER
            account = f"AccountName=devstoreaccount1;AccountKey={AZURE_KEY};BlobEndpoint={address}/devstoreaccount1"
            settings = {"AZURE_STORAGE_CONNECTION_STRING": f"DefaultEndpointsProtocol=http;{account};"}
    played_world(tmp_path / "state", 58, batches=20)
    program = Path(__file__).parents[1] / "support" / "in_a_store.py"
    paths = os.pathsep.join([str(program.parents[1]), os.environ.get("PYTHONPATH", "")])
    environment = os.environ | settings | {"PYTHONPATH": paths}
    with started(command, port):
        if make:
            subprocess.run([sys.executable, "-c", make], env=environment, check=True)
        ended = subprocess.run(
            [sys.executable, str(program), url, str(tmp_path / "state")],
            env=environment,
            capture_output=True,
            text=True,
        )
    assert ended.returncode == 0, ended.stderr[-3000:]
    assert json.loads(ended.stdout.splitlines()[-1]) == [3, {}, 0, 3]
    assert "secret" not in ended.stdout + ended.stderr
