"""Notebooks and the explorer in JupyterLab, Notebook 7 and Voila, without a network."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Browser, Page, expect

from gamelens.client.connection.control_api import ControlApi
from gamelens.local.demo import notebooks_folder
from gamelens.local.sandbox_info import SandboxInfo, environment_of
from gamelens.local.sandbox_population import ensure_populated
from gamelens.local.sandbox_process import call_control_api, running_sandbox
from gamelens.wire.signing import sign
from support.game_events import event
from support.hostile_names import NAMES
from support.notebook_files import code_cell, notebook_of, read_notebook, write_notebook
from support.watched_page import problems_of

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
START_S = 120  # a machine that runs other tests beside
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


class JupyterPage:
    """A page of the Jupyter server at *home*, and the problems that occurred in it."""

    def __init__(self, page: Page, home: str) -> None:
        self.page = page
        self.home = home
        own = (home, home.replace("http", "ws"), "data:", "blob:")
        self.problems = problems_of(page, is_allowed=lambda address: address.startswith(own))
        page.set_default_timeout(PATIENCE_MS)

    def open(self, path: str) -> JupyterPage:
        """Open *path* of the server."""
        self.page.goto(f"{self.home}{path}")
        return self

    def run_all(self) -> JupyterPage:
        """Run all cells from the menu, again until the last one was run by the kernel."""
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
        """Return the explorer of the page, once it shows its code."""
        self.page.locator(".gamelens-pane pre").wait_for()
        return Explorer(self.page)


class Explorer:
    """The explorer, as a user of the page operates it."""

    def __init__(self, page: Page) -> None:
        self.page = page

    def pick(self, picker: str, choice: str) -> None:
        """Select *choice* in *picker*."""
        self.page.get_by_label(picker, exact=True).select_option(label=choice)

    def code_has(self, text: str) -> None:
        """Wait until the code contains *text*."""
        expect(self.page.locator(".gamelens-pane pre")).to_contain_text(text, timeout=PATIENCE_MS)

    def table_has(self, text: str) -> None:
        """Wait until the table contains *text*."""
        expect(self.page.locator(".gamelens-pane table")).to_contain_text(text, timeout=PATIENCE_MS)

    def too_wide_px(self) -> int:
        """Return by how many pixels the explorer is wider than its place."""
        wide: int = self.page.locator(WIDGET).last.evaluate("widget => widget.scrollWidth - widget.clientWidth")
        return wide

    def figure_has(self, text: str) -> None:
        """Wait until the figure contains *text*."""
        figure = self.page.locator(f"{WIDGET} .js-plotly-plot").last
        expect(figure).to_contain_text(text, timeout=PATIENCE_MS)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a Jupyter server with two notebooks and a sandbox with hostile names."""
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
def watched(home: str, browser: Browser) -> Iterator[JupyterPage]:
    """A new page of the Jupyter server."""
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    yield JupyterPage(page, home)
    page.close()


def test_lab_draws_the_figures_and_the_explorer_reacts(watched: JupyterPage, tmp_path: Path) -> None:
    """In JupyterLab 01_ad_revenue runs, its figures are drawn and the explorer reacts.

    In light and dark theme and at 800 and 1280 pixels nothing is too wide, and the console has no error.
    """
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
    assert watched.problems == []


@pytest.mark.parametrize(
    ("path", "known"),
    [
        ("/notebooks/explorer.ipynb", IN_NOTEBOOK),
        ("/voila/render/explorer.ipynb", IN_VOILA),
    ],
    ids=["notebook", "voila"],
)
def test_the_explorer_reacts_in_notebook_and_voila(watched: JupyterPage, path: str, known: tuple[str, ...]) -> None:
    """The explorer reacts in Notebook 7 and Voila, with no errors but their own."""
    watched.open(path)
    if "voila" not in path:
        watched.run_all()
    _picks(watched.explorer())
    assert [problem for problem in watched.problems if not any(part in problem for part in known)] == []


def _picks(explorer: Explorer) -> None:
    """Use every picker, with a hostile studio, game and network among the choices."""
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
    """Write 01_ad_revenue with an explorer, and a notebook of an explorer alone."""
    first = read_notebook(notebooks_folder() / "01_ad_revenue.ipynb")
    first.cells = [cell for cell in first.cells if "widgets." not in cell.source]
    first.cells.append(code_cell(EXPLORER))
    write_notebook(first, folder / "01_ad_revenue.ipynb")
    alone = notebook_of(ALONE)
    alone.metadata = first.metadata
    write_notebook(alone, folder / "explorer.ipynb")


def _send_hostile(ready: SandboxInfo) -> None:
    """Send an impression of a network with a hostile name to the last game, dated yesterday."""
    game = ready.organisations[0].games[2]
    data = {"revenue": 900.5, "network_name": NETWORK, "adunit_format": TITLE}
    noon = int(time.time()) // 86400 * 86400 - 43200
    vendor = {"ad_network_name": "max", "ad_network_version": "1"}
    shown = event(category="impression", **vendor, impression_data=data, client_ts=noon)
    body = json.dumps([event(client_ts=noon), shown]).encode()
    address = f"{ready.collector_url}/v2/{game.game_key}/events"
    sent = httpx.post(address, content=body, headers={"Authorization": sign(body, secret_key=game.secret_key)})
    assert sent.status_code == 200
    call_control_api(ready, ControlApi.process)


def _options(port: int) -> list[str]:
    """Return the command-line options of the server."""
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
    """Return an environment with own settings: all cells rendered, no news, no updates."""
    for file, settings in (
        ("notebook-extension/tracker", {"windowingMode": "none"}),
        ("apputils-extension/notification", {"fetchNews": "false", "checkForUpdates": False}),
    ):
        setting = folder / "settings" / "@jupyterlab" / f"{file}.jupyterlab-settings"
        setting.parent.mkdir(parents=True)
        setting.write_text(json.dumps(settings))
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
    """Wait until *address* answers."""
    ends_at = time.monotonic() + START_S
    while True:
        try:
            httpx.get(address, timeout=2)
        except httpx.TransportError:
            assert time.monotonic() < ends_at, "Jupyter does not start"
            time.sleep(0.1)
        else:
            return
