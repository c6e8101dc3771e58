"""Code that the READMEs print runs as printed."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

import pytest

from gamelens.client.connection.control_api import ControlApi
from gamelens.local.sandbox_info import SandboxInfo, environment_of
from gamelens.local.sandbox_population import ensure_populated
from gamelens.local.sandbox_process import call_control_api, running_sandbox

if TYPE_CHECKING:
    from playwright.sync_api import Browser

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
ROOMS = ROOT / "src" / "gamelens"
INTEGRATION = ROOMS / "sandbox" / "collector" / "README.md"
"""The README with code for a game that submits events."""


def block(readme: Path, language: str, mark: str) -> str:
    """Return the code block of *language* in *readme* that contains *mark*."""
    blocks: list[str] = re.findall(rf"```{language}\n(.*?)```", readme.read_text(), re.DOTALL)
    return next(code for code in blocks if mark in code)


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, SandboxInfo]]:
    """A folder with a ready.json, and the sandbox that it describes."""
    folder = tmp_path_factory.mktemp("readme")
    with running_sandbox(folder / "state") as ready:
        ensure_populated(ready, folder / "state", "small")
        shutil.copy(folder / "state" / "ready.json", folder / "ready.json")
        yield folder, ready


def _accepted(ready: SandboxInfo) -> int:
    """Return the number of accepted events."""
    return call_control_api(ready, ControlApi.summary).accepted


TESTED_ALONE = {INTEGRATION, ROOMS / "local" / "README.md"}
"""READMEs whose blocks are no session: tested below, and in tests/local/test_pytest_plugin.py."""


SESSIONS = [
    readme
    for readme in (README, *sorted(ROOMS.rglob("README.md")))
    if readme not in TESTED_ALONE and "```python\n" in readme.read_text(encoding="utf-8")
]


@pytest.mark.shown_by("README.md")
@pytest.mark.parametrize("readme", SESSIONS, ids=lambda it: str(it.relative_to(ROOT)))
def test_every_block_of_python_runs(readme: Path, sandbox: tuple[Path, SandboxInfo], tmp_path: Path) -> None:
    """One after the other in one session, in a folder that has nothing, as a reader types them."""
    folder, ready = sandbox
    blocks = re.findall(r"```python\n(.*?)```", readme.read_text(encoding="utf-8"), re.DOTALL)
    environment = os.environ | environment_of(ready) | {"GAMELENS_STATE_DIR": str(folder / "state")}
    command = [sys.executable, "-c", "\n".join(blocks)]
    process = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert process.returncode == 0, process.stderr


@pytest.mark.skipif(not all(map(shutil.which, ("curl", "openssl", "jq"))), reason="needs curl, openssl and jq")
def test_curl_and_openssl_send_a_signed_event(sandbox: tuple[Path, SandboxInfo]) -> None:
    """The shell lines send one event, signed with openssl (Wire 1.4, Signature)."""
    folder, ready = sandbox
    before = _accepted(ready)
    process = subprocess.run(
        ["bash", "-c", block(INTEGRATION, "bash", "openssl")], cwd=folder, capture_output=True, text=True
    )
    assert "200 OK" in process.stdout
    assert _accepted(ready) == before + 1


def test_a_python_session_sends_what_it_was_given(sandbox: tuple[Path, SandboxInfo]) -> None:
    """The session lines send `user`, two events of the game and `session_end`."""
    folder, ready = sandbox
    before = _accepted(ready)
    code = block(INTEGRATION, "python", "PlayerSession")
    process = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True)
    assert process.returncode == 0, process.stderr
    assert _accepted(ready) == before + 4


@pytest.mark.wide
def test_a_page_of_another_origin_sends_a_signed_event(sandbox: tuple[Path, SandboxInfo], browser: Browser) -> None:
    """A page of another origin sends an event after a preflight (Wire 1.5, Response headers)."""
    folder, ready = sandbox
    before, game = _accepted(ready), ready.organisations[0].games[0]
    page = block(INTEGRATION, "html", "crypto.subtle").replace("COLLECTOR_URL", ready.collector_url)
    page = page.replace("GAME_KEY", game.game_key).replace("SECRET_KEY", game.secret_key)
    (folder / "page.html").write_text(page)
    handler = partial(_SilentHandler, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        tab = browser.new_page()
        tab.goto(f"http://127.0.0.1:{server.server_port}/page.html")
        tab.wait_for_function("document.title == 'sent: 200'")
        tab.close()
        server.shutdown()
    assert _accepted(ready) == before + 1


class _SilentHandler(SimpleHTTPRequestHandler):
    """A file server without a log."""

    def log_message(self, *_: object) -> None:
        """Write nothing."""
