"""The notebooks and the explorer in a real JupyterLab, Notebook 7 and Voila, with no network but this machine."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import nbformat
import pytest
from playwright.sync_api import Browser, Page, expect

from gamelens.client.connection.control_api import ControlApi
from gamelens.local.demo import notebooks_folder
from gamelens.local.sandbox_info import environment_of
from gamelens.local.sandbox_population import ensure_populated
from gamelens.local.sandbox_process import call_console, running_sandbox
from gamelens.wire.signing import sign
from support.game_events import event
from support.hostile_names import NAMES

TITLE, NETWORK = NAMES["tag"], NAMES["formula"]
CONFIG = f"""
[[organisation]]
name = "demo"
  [[organisation.studio]]
  id = "1"
  name = "North"
    [[organisation.studio.game]]
    id = "1001"
    title = "Tile Harbor"
    [[organisation.studio.game]]
    id = "1002"
    title = "{TITLE}"
  [[organisation.studio]]
  id = "2"
  name = "{TITLE}"
    [[organisation.studio.game]]
    id = "2001"
    title = "Ember"
"""
EXPLORER = 'from gamelens.notebook import widgets\n\nwidgets.explorer(lens, metric="ilrd_revenue", by="game")'
ALONE = "import gamelens as gl\n\nlens = gl.connect()\n" + EXPLORER
START_S = 30
PATIENCE_MS = 120_000  # a machine that does other things besides
WIDGET = ".widget-vbox:has(.gamelens-pane pre)"
DRAWN = ".js-plotly-plot:has(.main-svg)"
FIGURES = """() => [...jupyterapp.shell.currentWidget.content.model.cells].flatMap(
    cell => cell.outputs ? cell.outputs.toJSON() : []
).map(output => output.data || {}).filter(
    data => data["application/vnd.plotly.v1+json"] && !data["application/vnd.jupyter.widget-view+json"]
).length"""  # those of the notebook itself, one output each
HAS_KERNEL = """() => {
    const kernel = jupyterapp.shell.currentWidget?.sessionContext?.session?.kernel
    return kernel?.status === "idle" && kernel.connectionStatus === "connected"
}"""
IN_NOTEBOOK = (  # of Notebook 7 itself, whatever it opens
    "Cannot read properties of undefined (reading 'schema')",  # its menu reads the settings of a plugin it has not
    "Command 'filebrowser:open-path' not registered.",
)
IN_VOILA = (  # of Voila itself, with any figure or with none
    "cdn.jsdelivr.net/npm/@fortawesome/",  # fonts of its page
    "cdnjs.cloudflare.com/ajax/libs/mathjax/",
    "net::ERR_",  # those two, where there is no network
    "RUNTIME-012",  # Notebook's extension, which Voila loads and cannot run
    "r.setData is not a function",  # plotly's renderer would keep a picture of what it has drawn
)

pytestmark = pytest.mark.slow


class Watched:
    """A page of the Jupyter server at *home*, and everything that went wrong in it or left the machine."""

    def __init__(self, page: Page, home: str) -> None:
        self.page = page
        self.home = home
        self.wrongs: list[str] = []
        page.set_default_timeout(PATIENCE_MS)
        page.on("pageerror", lambda error: self.wrongs.append(str(error)))
        page.on("console", lambda said: self.wrongs.append(said.text) if said.type == "error" else None)
        page.on("dialog", lambda dialog: (self.wrongs.append(dialog.message), dialog.dismiss()))
        page.on("request", lambda sent: self._asked(sent.url))

    def _asked(self, url: str) -> None:
        if not url.startswith((self.home, self.home.replace("http", "ws"), "data:", "blob:")):
            self.wrongs.append(url)

    def open(self, path: str) -> Watched:
        self.page.goto(f"{self.home}{path}")
        return self

    def run_all(self) -> Watched:
        """Run all cells from the menu; what is run before there is a kernel is not run."""
        self.page.locator(".jp-Notebook .jp-CodeCell").first.wait_for()
        self.page.wait_for_function(HAS_KERNEL)
        last = self.page.locator(".jp-Notebook .jp-CodeCell .jp-InputPrompt").last
        ends_at = time.monotonic() + PATIENCE_MS / 1000
        while last.inner_text().strip() == "[ ]:" and time.monotonic() < ends_at:
            self.page.locator(".lm-MenuBar-item", has_text="Run").click()
            self.page.locator('.lm-Menu-item:has-text("Run All Cells")').first.click()
            self.page.wait_for_timeout(1000)
        return self

    def explorer(self) -> Explorer:
        self.page.locator(".gamelens-pane pre").wait_for()
        return Explorer(self.page)


class Explorer:
    """The explorer as somebody at the page sees it."""

    def __init__(self, page: Page) -> None:
        self.page = page

    def pick(self, picker: str, choice: str) -> None:
        self.page.get_by_label(picker, exact=True).select_option(label=choice)

    def code_has(self, text: str) -> None:
        expect(self.page.locator(".gamelens-pane pre")).to_contain_text(text, timeout=PATIENCE_MS)

    def table_has(self, text: str) -> None:
        expect(self.page.locator(".gamelens-pane table")).to_contain_text(text, timeout=PATIENCE_MS)

    def too_wide_px(self) -> int:
        """By how much it is wider than the place it has."""
        wide: int = self.page.locator(WIDGET).last.evaluate("widget => widget.scrollWidth - widget.clientWidth")
        return wide

    def figure_has(self, text: str) -> None:
        figure = self.page.locator(f"{WIDGET} .js-plotly-plot").last
        expect(figure).to_contain_text(text, timeout=PATIENCE_MS)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A Jupyter server with Lab, Notebook and Voila on two notebooks, and a sandbox with hostile names behind them."""
    folder = tmp_path_factory.mktemp("lab")
    (folder / "sandbox.toml").write_text(CONFIG)
    books = folder / "books"
    books.mkdir()
    _write_notebooks(books)
    with running_sandbox(folder / "state", config=folder / "sandbox.toml") as ready:
        ensure_populated(ready, folder / "state", "small")
        _send_hostile(ready)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        server = subprocess.Popen(
            [sys.executable, "-m", "jupyterlab", *_options(port), str(books)],
            env=os.environ | environment_of(ready) | _own_folders(folder),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            _wait_for(f"http://127.0.0.1:{port}/api")
            yield f"http://127.0.0.1:{port}"
        finally:
            server.terminate()
            server.wait()


@pytest.fixture
def watched(home: str, browser: Browser) -> Iterator[Watched]:
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    yield Watched(page, home)
    page.close()


def test_lab_draws_the_figures_and_the_explorer_reacts(watched: Watched, tmp_path: Path) -> None:
    """Issue: open 01_ad_revenue, run all; figures drawn, pickers change table and figure, no error in the console."""
    watched.open("/lab/tree/01_ad_revenue.ipynb?reset").run_all()
    explorer = watched.explorer()
    expect(watched.page.locator(DRAWN)).to_have_count(watched.page.evaluate(FIGURES) + 1)
    _picks(explorer)
    for theme in ("JupyterLab Dark", "JupyterLab Light"):
        watched.page.evaluate("theme => jupyterapp.commands.execute('apputils:change-theme', {theme})", theme)
        for width in (800, 1280):
            watched.page.set_viewport_size({"width": width, "height": 900})
            explorer.page.locator(WIDGET).last.evaluate("widget => widget.scrollIntoView()")
            watched.page.screenshot(path=tmp_path / f"{theme[-5:].strip().lower()}-{width}.png")
            assert explorer.too_wide_px() <= 0
    assert watched.wrongs == []


@pytest.mark.parametrize(
    ("path", "known"),
    [
        ("/notebooks/explorer.ipynb", IN_NOTEBOOK),
        ("/voila/render/explorer.ipynb", IN_VOILA),
    ],
    ids=["notebook", "voila"],
)
def test_the_explorer_reacts_elsewhere(watched: Watched, path: str, known: tuple[str, ...]) -> None:
    """Issue: works in Notebook 7 and Voila."""
    watched.open(path)
    if "voila" not in path:
        watched.run_all()
    _picks(watched.explorer())
    assert [wrong for wrong in watched.wrongs if not any(part in wrong for part in known)] == []


def _picks(explorer: Explorer) -> None:
    """Everything that a picker changes, with the names of a hostile studio, game and network among it."""
    explorer.table_has(TITLE)
    explorer.figure_has(TITLE)
    expect(explorer.page.locator(f"{WIDGET} {DRAWN}")).to_have_count(1)
    explorer.pick("by", "ilrd_network_name")
    explorer.code_has('by="ilrd_network_name"')
    explorer.table_has(NETWORK)
    explorer.figure_has(NETWORK)
    explorer.pick("only where", "ilrd_network_name")
    explorer.page.get_by_role("listbox").locator("option", has_text="/C calc").wait_for(state="attached")
    explorer.page.get_by_role("listbox").last.select_option(label=NETWORK)
    explorer.code_has(f'where={{"ilrd_network_name": "{NETWORK}"}}')
    explorer.pick("studio", TITLE)
    explorer.code_has('studios="2"')
    explorer.pick("metric", "user_unique")
    explorer.code_has('"user_unique"')


def _write_notebooks(folder: Path) -> None:
    first = nbformat.read(notebooks_folder() / "01_ad_revenue.ipynb", as_version=4)
    first.cells = [cell for cell in first.cells if "widgets." not in cell.source]
    first.cells.append(nbformat.v4.new_code_cell(EXPLORER))
    nbformat.write(first, folder / "01_ad_revenue.ipynb")
    alone = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(ALONE)], metadata=first.metadata)
    nbformat.write(alone, folder / "explorer.ipynb")


def _send_hostile(ready: Any) -> None:
    """Yesterday, in the last game: an impression of a network whose name a spreadsheet would run."""
    game = ready.organisations[0].games[2]
    data = {"revenue": 900.5, "network_name": NETWORK, "adunit_format": TITLE}
    noon = int(time.time()) // 86400 * 86400 - 43200
    vendor = {"ad_network_name": "max", "ad_network_version": "1"}
    shown = event(category="impression", **vendor, impression_data=data, client_ts=noon)
    body = json.dumps([event(client_ts=noon), shown]).encode()
    address = f"{ready.collector_url}/v2/{game.game_key}/events"
    sent = httpx.post(address, content=body, headers={"Authorization": sign(body, secret_key=game.secret_key)})
    assert sent.status_code == 200
    call_console(ready, ControlApi.process)


def _options(port: int) -> list[str]:
    return [
        "--no-browser",
        "--allow-root",
        "--IdentityProvider.token=",
        "--LabApp.expose_app_in_browser=True",
        "--JupyterNotebookApp.expose_app_in_browser=True",
        f"--ServerApp.port={port}",
        "--ServerApp.port_retries=0",
    ]


def _own_folders(folder: Path) -> dict[str, str]:
    """Nobody's settings but ours: every cell is in the page whichever is looked at, and nobody is asked about news."""
    for file, said in (
        ("notebook-extension/tracker", {"windowingMode": "none"}),
        ("apputils-extension/notification", {"fetchNews": "false", "checkForUpdates": False}),
    ):
        setting = folder / "settings" / "@jupyterlab" / f"{file}.jupyterlab-settings"
        setting.parent.mkdir(parents=True)
        setting.write_text(json.dumps(said))
    return {
        "JUPYTERLAB_SETTINGS_DIR": str(folder / "settings"),
        "JUPYTERLAB_WORKSPACES_DIR": str(folder / "workspaces"),
        "JUPYTER_CONFIG_DIR": str(folder / "config"),
        "JUPYTER_DATA_DIR": str(folder / "data"),
        "JUPYTER_RUNTIME_DIR": str(folder / "runtime"),
        "IPYTHONDIR": str(folder / "ipython"),
        "JUPYTER_PREFER_ENV_PATH": "1",
    }


def _wait_for(address: str) -> None:
    ends_at = time.monotonic() + START_S
    while True:
        try:
            httpx.get(address, timeout=2)
        except httpx.TransportError:
            assert time.monotonic() < ends_at, "Jupyter does not start"
            time.sleep(0.1)
        else:
            return
