"""Clients that others wrote, unchanged and live, against a sandbox under the address that is built into them.

Run by `make bench`. The packages come from the npm registry; without Node, npm or the registry the tests are skipped.
What these clients sent once is in `data/` and replayed by `tests/journey/test_official_client.py`.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import NamedTuple
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import sync_playwright

from gamelens.client.connection.control_api import ControlApi
from gamelens.local.sandbox_info import SandboxInfo
from gamelens.local.sandbox_process import call_control_api, running_sandbox

CLIENTS = Path(__file__).parent / "clients"
HOST = "api.gameanalytics.com"
PACKAGES = ("gameanalytics@4.4.7", "gameanalytics-node-sdk@1.1.4")
KEY, SECRET = "0123456789abcdef" * 2, "01234567" * 5
CONFIG = f"""
[[organisation]]
name = "acme"
[[organisation.studio]]
[[organisation.studio.game]]
game_key = "{KEY}"
secret_key = "{SECRET}"
[[organisation.studio.game.config]]
key = "speed"
value = "fast"
"""


class Counts(NamedTuple):
    """The events that a sandbox accepted and rejected."""

    accepted: int
    rejected: int


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the installed packages."""
    if not shutil.which("node") or not shutil.which("npm"):
        pytest.skip("needs node and npm")
    folder = tmp_path_factory.mktemp("packages")
    command = ["npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", "--prefix", str(folder), *PACKAGES]
    installed = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    if installed.returncode:
        pytest.skip(f"npm installs nothing: {installed.stderr.strip().splitlines()[-1:]}")
    return folder / "node_modules"


@pytest.fixture
def ready(tmp_path: Path) -> Iterator[SandboxInfo]:
    """A sandbox with one game, whose certificate is for the host of the real collector too."""
    (tmp_path / "sandbox.toml").write_text(CONFIG)
    with running_sandbox(tmp_path / "state", config=tmp_path / "sandbox.toml", tls_names=[HOST]) as ready:
        yield ready


def counts(ready: SandboxInfo) -> Counts:
    """Return what the sandbox has received."""
    summary = call_control_api(ready, ControlApi.summary)
    return Counts(summary.accepted, summary.rejected)


def run_in_node(ready: SandboxInfo, preloaded: list[str], script: str, package: Path) -> str:
    """Run a script with a client as its argument, and return what it prints."""
    environment = os.environ | {
        "COLLECTOR_PORT": str(urlsplit(ready.collector_url).port),
        "NODE_EXTRA_CA_CERTS": str(ready.ca_file),
    }
    before = [word for name in preloaded for word in ("--require", str(CLIENTS / name))]
    command = ["node", *before, str(CLIENTS / script), str(package), KEY, SECRET]
    process = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=60, check=False)
    assert process.returncode == 0, process.stderr
    return process.stdout


def test_the_official_javascript_client_in_node(ready: SandboxInfo, packages: Path) -> None:
    """All of a session is accepted, with the report of the event it refused itself, and its configs arrive."""
    printed = run_in_node(ready, ["route.js", "browser.js"], "play.js", packages / "gameanalytics")
    assert printed.splitlines()[-1] == "fast"
    assert counts(ready) == Counts(accepted=10, rejected=0)


def test_the_official_javascript_client_in_a_browser(ready: SandboxInfo, packages: Path, tmp_path: Path) -> None:
    """The same in a page of another origin, whose preflights are answered."""
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("needs chromium")
    shutil.copy(packages / "gameanalytics" / "dist" / "GameAnalytics.js", tmp_path)
    shutil.copy(CLIENTS / "play.js", tmp_path)
    (tmp_path / "page.html").write_text('<script src="GameAnalytics.js"></script><script src="play.js"></script>')
    port = urlsplit(ready.collector_url).port
    flags = ["--no-sandbox", f"--host-resolver-rules=MAP {HOST}:443 127.0.0.1:{port}"]
    with (
        ThreadingHTTPServer(("127.0.0.1", 0), partial(SimpleHTTPRequestHandler, directory=str(tmp_path))) as server,
        sync_playwright() as playwright,
    ):
        Thread(target=server.serve_forever, daemon=True).start()
        browser = playwright.chromium.launch(executable_path=chromium, args=flags)
        page = browser.new_context(ignore_https_errors=True).new_page()
        page.goto(f"http://127.0.0.1:{server.server_address[1]}/page.html")
        speed = page.evaluate(f"play(gameanalytics, {json.dumps(KEY)}, {json.dumps(SECRET)})")
        browser.close()
        server.shutdown()
    assert speed == "fast"
    assert counts(ready) == Counts(accepted=10, rejected=0)


def test_a_third_party_client_for_servers(ready: SandboxInfo, packages: Path) -> None:
    """Its init, written to the older documentation, is answered, and all of a session is accepted."""
    run_in_node(ready, ["route.js"], "serve_player.js", packages / "gameanalytics-node-sdk")
    assert counts(ready) == Counts(accepted=7, rejected=0)
