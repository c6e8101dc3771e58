"""Notebooks and the explorer in JupyterLab, Notebook 7 and Voila, without a network."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import pytest

import gamelens
from gamelens.client.connection.control_api import ControlApi
from gamelens.local.demo import notebooks_folder
from gamelens.local.sandbox_info import SandboxInfo, environment_of
from gamelens.local.sandbox_population import ensure_populated
from gamelens.local.sandbox_process import call_control_api, running_sandbox
from gamelens.wire.signing import sign
from support.accessibility import violations_of
from support.game_events import event
from support.hostile_names import NAMES
from support.notebook_files import code_cell, notebook_of, read_notebook, write_notebook
from support.started_server import wait_for
from support.watched_page import expect, problems_of

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page, ViewportSize

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
LIVE = "from gamelens.notebook import widgets\n\nwidgets.live()"
BOARD = ALONE.replace(EXPLORER, "from gamelens.notebook import widgets\n\nwidgets.health_board(lens)")
EXTENSION = Path(gamelens.__file__).parent / "notebook" / "labextension"
SIZE: ViewportSize = {"width": 1280, "height": 900}
PATIENCE_MS = 120_000  # a machine that does other things besides
WIDGET = ".widget-vbox:has(.gamelens-pane pre)"
OPTIONS = ".gamelens-list [role=option]"
DRAWN = ".js-plotly-plot:has(.main-svg)"
FIGURES = """() => [...jupyterapp.shell.currentWidget.content.model.cells].flatMap(
    cell => cell.outputs ? cell.outputs.toJSON() : []
).map(output => output.data || {}).filter(
    data => data["application/vnd.plotly.v1+json"] && !data["application/vnd.jupyter.widget-view+json"]
).length"""  # those of the notebook itself, one output each
SHOW = """async name => {
    const {commands, shell} = jupyterapp
    const open = shell.currentWidget?.context
    if (open) open.model.dirty = false  // else it asks what to do with the outputs
    await commands.execute("application:close-all")
    // An empty JupyterLab opens its launcher, which would cover a notebook that was faster.
    for (let tries = 0; tries < 40 && ![...shell.widgets("main")].length; tries++)
        await new Promise(done => setTimeout(done, 50))
    shell.activateById((await commands.execute("docmanager:open", {path: name, factory: "Notebook"})).id)
}"""
CELL_TYPES = "() => [...jupyterapp.shell.currentWidget.content.model.cells].map(cell => cell.type)"
FIGURE_HEIGHTS = f"() => [...document.querySelectorAll('{DRAWN}')].map(figure => figure.clientHeight)"
LAST_OUTPUTS = """() => {
    const cells = [...jupyterapp.shell.currentWidget.content.model.cells]
    return [cells.length, ...cells.at(-1).outputs.toJSON().map(output => output.data?.["text/html"] ?? output.ename)]
}"""
IS_RUN = """() => {
    const {content, sessionContext} = jupyterapp.shell.currentWidget
    const code = [...content.model.cells].filter(cell => cell.type === "code" && cell.sharedModel.source)
    return code.every(cell => cell.executionCount) && sessionContext.session.kernel.status === "idle"
}"""
LAST_CELLS = """() => {
    const code = [...jupyterapp.shell.currentWidget.content.model.cells].filter(cell => cell.type === "code")
    const outputs = code.flatMap(cell => cell.outputs.toJSON())
    const last = code.filter(cell => cell.sharedModel.source).slice(-2)
    const kinds = last.at(-1).outputs.toJSON().flatMap(output => Object.keys(output.data ?? {}))
    return [last.map(cell => cell.sharedModel.source), kinds, outputs.map(output => output.ename).filter(name => name)]
}"""
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
LANDMARK = "document.getElementById('rendered_cells').setAttribute('role', 'main')"  # which Voila's page lacks

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

    def show(self, name: str) -> JupyterPage:
        """Open the notebook *name* in JupyterLab, in place of another one."""
        self.page.evaluate(SHOW, name)
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

    def problems_but(self, known: tuple[str, ...]) -> list[str]:
        """Return the problems that have nothing of *known*."""
        return [problem for problem in self.problems if not any(part in problem for part in known)]

    def explorer(self) -> Explorer:
        """Return the explorer of the page, once it shows its code."""
        self.page.locator(".gamelens-pane pre").wait_for()
        return Explorer(self.page)


class Explorer:
    """The explorer, as a user of the page operates it."""

    def __init__(self, page: Page) -> None:
        self.page = page

    def pick(self, picker: str, choice: str) -> None:
        """Select *choice* in *picker*, by its label or by typing."""
        field = self.page.get_by_role("combobox", name=picker, exact=True)
        if field.evaluate("field => field.localName") == "select":
            field.select_option(label=choice)
        else:
            field.fill(choice)
            self.page.locator(OPTIONS, has_text=choice).first.wait_for()
            field.press("Enter")

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
            wait_for(f"http://127.0.0.1:{port}/api")
            yield f"http://127.0.0.1:{port}"
        finally:
            server.terminate()
            server.wait()


@pytest.fixture(scope="module")
def window(home: str, browser: Browser) -> Iterator[BrowserContext]:
    """A window whose pages share what they have loaded, since JupyterLab takes seconds to load and compile."""
    window = browser.new_context(viewport=SIZE)
    window.grant_permissions(["clipboard-read", "clipboard-write"], origin=home)
    yield window
    window.close()


@pytest.fixture
def watched(home: str, window: BrowserContext) -> Iterator[JupyterPage]:
    """A new page of the Jupyter server."""
    watched = JupyterPage(window.new_page(), home)
    yield watched
    watched.page.close()


@pytest.fixture(scope="module")
def lab(home: str, window: BrowserContext) -> Iterator[JupyterPage]:
    """JupyterLab, in which one notebook is open at a time."""
    watched = JupyterPage(window.new_page(), home).open("/lab?reset")
    watched.page.locator(".jp-Launcher").first.wait_for()  # once all of JupyterLab is there
    yield watched
    watched.page.close()


@pytest.fixture(scope="module", params=["lab", "notebook"])
def notebook(request: pytest.FixtureRequest, home: str, window: BrowserContext) -> Iterator[JupyterPage]:
    """The notebook of an explorer, which was run once for the tests below: none needs what another one picked."""
    if request.param == "lab":
        watched = request.getfixturevalue("lab").show("explorer.ipynb")
    else:
        watched = JupyterPage(window.new_page(), home).open("/notebooks/explorer.ipynb")
    watched.run_all().explorer()
    yield watched
    if request.param != "lab":
        watched.page.close()


@pytest.fixture(scope="module")
def voila(home: str, window: BrowserContext) -> Iterator[JupyterPage]:
    """The notebook of an explorer in Voila, which was run once for the tests below."""
    watched = JupyterPage(window.new_page(), home).open("/voila/render/explorer.ipynb")
    watched.explorer()
    yield watched
    watched.page.close()


@pytest.mark.wide
def test_lab_draws_the_figures_and_the_explorer_reacts(lab: JupyterPage) -> None:
    """In JupyterLab 01_ad_revenue runs, each kind of its figures is drawn and the explorer reacts.

    All figures follow the theme, also when it is switched later, and keep their height. In both themes nothing is too
    wide at 800 and 1280 pixels, and the console has no error.
    """
    page, explorer = lab.page, lab.show("01_ad_revenue.ipynb").run_all().explorer()
    expect(page.locator(DRAWN)).to_have_count(page.evaluate(FIGURES) + 1)
    _picks(explorer)
    for theme, filtered in (("JupyterLab Dark", "invert(0.93) hue-rotate(180deg)"), ("JupyterLab Light", "none")):
        page.evaluate("theme => jupyterapp.commands.execute('apputils:change-theme', {theme})", theme)
        for figure in page.locator(DRAWN).all():
            expect(figure).to_have_css("filter", filtered, timeout=PATIENCE_MS)
        page.wait_for_timeout(1000)  # figures are laid out anew
        assert min(page.evaluate(FIGURE_HEIGHTS)) > 100
        for width in (800, 1280):
            page.set_viewport_size({"width": width, "height": 900})
            page.locator(WIDGET).last.evaluate("widget => widget.scrollIntoView()")
            assert explorer.too_wide_px() <= 0
    assert lab.problems == []


@pytest.mark.wide
def test_the_tour_is_done_by_keys_alone(lab: JupyterPage) -> None:
    """Without a pointer: the tour runs, a name is completed, a question is typed, its frame and figure are shown."""
    page = lab.show("08_tour.ipynb").page
    page.locator(".jp-Notebook .jp-CodeCell").first.wait_for()
    page.wait_for_function(HAS_KERNEL)
    page.wait_for_function("document.activeElement.closest('.jp-Notebook') !== null")
    for _ in page.evaluate(CELL_TYPES):
        page.keyboard.press("Shift+Enter")  # after the last one there is a new cell, in edit mode
    page.wait_for_function(IS_RUN)
    page.keyboard.type('df = lens.query("reven')
    page.keyboard.press("Tab")
    page.locator(".cm-content", has_text='df = lens.query("revenue').or_(page.locator(".jp-Completer")).first.wait_for()
    if page.locator(".jp-Completer:not(.lm-mod-hidden)").count():
        page.keyboard.press("Enter")
    page.keyboard.type('", by="game", over="last 7 complete days")')
    page.keyboard.press("Shift+Enter")
    page.keyboard.type("df.lens.plot()")
    page.keyboard.press("Shift+Enter")
    page.wait_for_function(IS_RUN)
    sources, kinds, errors = page.evaluate(LAST_CELLS)
    assert sources == ['df = lens.query("revenue", by="game", over="last 7 complete days")', "df.lens.plot()"]
    assert "application/vnd.plotly.v1+json" in kinds
    assert errors == []
    assert lab.problems == []


@pytest.mark.wide
def test_the_code_of_the_explorer_is_copied_and_inserted_and_runs(notebook: JupyterPage) -> None:
    """One button puts the call on the clipboard, the other into a new cell below, which runs and shows its frame."""
    page = notebook.page
    page.get_by_role("button", name="Copy the code").click()
    page.get_by_text("Copied.").wait_for()
    code = page.locator(".gamelens-pane pre").inner_text()
    assert page.evaluate("navigator.clipboard.readText()") == code
    page.get_by_role("button", name="Insert cell below").press("Enter")
    page.get_by_text("Inserted.").wait_for()
    expect(page.locator(".jp-Notebook .jp-CodeCell").last.locator(".cm-content")).to_have_text(code.replace("\n", ""))
    page.evaluate("jupyterapp.commands.execute('notebook:run-cell')")
    page.wait_for_function(f"({LAST_OUTPUTS})().length > 1")
    cells, shown = page.evaluate(LAST_OUTPUTS)
    assert (cells, "ilrd_revenue" in code, "<table" in shown) == (2, True, True)


@pytest.mark.shown_by("lab")
def test_the_explorer_reacts_in_a_notebook(notebook: JupyterPage) -> None:
    """In JupyterLab and Notebook 7 every picker changes the code, with no errors but those of Notebook itself."""
    _picks(notebook.explorer())
    assert notebook.problems_but(IN_NOTEBOOK if "/notebooks/" in notebook.page.url else ()) == []


@pytest.mark.wide
def test_keys_in_the_explorer_never_reach_the_notebook(notebook: JupyterPage) -> None:
    """`r` in a picker or at a button does not make the cell raw, and `d d` does not delete it."""
    before = notebook.page.evaluate(CELL_TYPES)
    assert {*before} == {"code"}
    for picker in notebook.page.locator(".gamelens-control :is(select, input, button)").all():
        if picker.is_enabled():
            picker.focus()
            notebook.page.keyboard.press("r")
            notebook.page.keyboard.press("d")
            notebook.page.keyboard.press("d")
    assert notebook.page.evaluate(CELL_TYPES) == before


@pytest.mark.wide
def test_a_row_of_the_board_is_picked_by_keys(lab: JupyterPage) -> None:
    """A search leaves the rows of one game; Enter on a button shows its days and segments, names as text alone."""
    page = lab.show("board.ipynb").run_all().page
    page.get_by_role("button", name="Ads shown").first.wait_for()
    page.get_by_role("textbox", name="search", exact=True).fill(TITLE)
    rows = page.locator(".gamelens-rows li")
    expect(rows.first).to_contain_text(TITLE, timeout=PATIENCE_MS)
    assert all(TITLE in row for row in rows.all_inner_texts())
    rows.first.get_by_role("button").press("Enter")
    page.locator(".gamelens-pane table").first.wait_for()
    expect(page.locator(DRAWN)).to_have_count(1, timeout=PATIENCE_MS)
    assert page.locator("img[src=x], .gamelens-control img").count() == 0
    assert lab.problems == []


@pytest.mark.wide
def test_the_live_page_is_in_a_frame(lab: JupyterPage) -> None:
    """It follows the sandbox, loads nothing but itself, and the link below it leads to the same page."""
    page = lab.show("live.ipynb").run_all().page
    frame = page.frame_locator("iframe[title='Live events of the sandbox']")
    expect(frame.locator("#connection")).to_have_text("Live", timeout=PATIENCE_MS)
    expect(frame.locator("#accepted")).not_to_have_text("–", timeout=PATIENCE_MS)
    address = page.locator("iframe").get_attribute("src")
    link = page.get_by_role("link", name="Open the live page in a tab")
    assert (link.get_attribute("href"), link.get_attribute("target")) == (address, "_blank")
    assert [problem for problem in lab.problems if not problem.startswith(str(address))] == []
    lab.problems.clear()


@pytest.mark.wide
def test_an_explorer_has_no_violation_in_voila(voila: JupyterPage) -> None:
    """axe-core finds nothing in a narrow page, once Voila's cells are in a landmark. Nothing is cut."""
    _check_narrow(voila)


@pytest.mark.wide
def test_a_board_has_no_violation_in_voila(watched: JupyterPage) -> None:
    """Nor in a health board."""
    watched.open("/voila/render/board.ipynb").page.locator("button:has-text('·')").first.wait_for()
    _check_narrow(watched)


@pytest.mark.wide
def test_the_explorer_reacts_in_voila(voila: JupyterPage) -> None:
    """Every picker changes the code, with no errors but those of Voila itself."""
    _picks(voila.explorer())
    assert voila.problems_but(IN_VOILA) == []


@pytest.mark.wide
def test_the_metric_is_found_by_typing_and_picked_by_keys(voila: JupyterPage) -> None:
    """The field is a combobox: arrow keys move over what matches, Enter picks it, Escape leaves all as it was."""
    page, explorer = voila.page, voila.explorer()
    field = page.get_by_role("combobox", name="metric", exact=True)
    before = field.input_value()
    field.click()
    page.keyboard.type("paying")
    options = page.locator(OPTIONS)
    expect(options.first).to_contain_text("players: distinct players with a purchase")
    expect(field).to_have_attribute("aria-expanded", "true")
    field.press("ArrowDown")
    expect(options.nth(1)).to_have_attribute("aria-selected", "true")
    assert field.get_attribute("aria-activedescendant") == options.nth(1).get_attribute("id")
    field.press("Escape")
    expect(field).to_have_value(before)
    assert violations_of(page, within=".gamelens-widget") == []
    field.click()
    page.keyboard.type("paying")
    field.press("Enter")
    explorer.code_has('"paying_users"')
    expect(field).to_have_value("Paying users · paying_users")
    page.get_by_role("button", name="Insert cell below").click()
    page.get_by_text("This page cannot insert cells: copy the code instead.").wait_for()


def _check_narrow(watched: JupyterPage) -> None:
    """Make the page narrow, check that nothing is cut and that axe-core finds nothing, and make it wide again."""
    watched.page.set_viewport_size({"width": 390, "height": 900})
    assert watched.page.evaluate("document.documentElement.scrollWidth") == 390
    watched.page.evaluate(LANDMARK)
    assert violations_of(watched.page) == []
    watched.page.set_viewport_size(SIZE)


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
    explorer.pick("metric", "Active players · user_unique")
    explorer.code_has('"user_unique"')


def _write_notebooks(folder: Path) -> None:
    """Write 01_ad_revenue with one figure of each kind, and a notebook of each widget alone."""
    first, drawn = read_notebook(notebooks_folder() / "01_ad_revenue.ipynb"), set[str]()
    cells = [cell for cell in first.cells if "widgets." not in cell.source]
    first.cells = []
    for cell in cells:
        kinds = {*re.findall(r"draw_\w+", cell.source)}
        if not kinds or kinds - drawn:
            first.cells.append(cell)
        drawn |= kinds
    first.cells.append(code_cell(EXPLORER))
    write_notebook(first, folder / "01_ad_revenue.ipynb")
    shutil.copy(notebooks_folder() / "08_tour.ipynb", folder)
    for name, source in {"explorer": ALONE, "board": BOARD, "live": LIVE}.items():
        alone = notebook_of(source)
        alone.metadata = first.metadata
        write_notebook(alone, folder / f"{name}.ipynb")


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
        "JUPYTER_DATA_DIR": str(_with_extension(folder / "data")),
        "JUPYTER_RUNTIME_DIR": str(folder / "runtime"),
        "IPYTHONDIR": str(folder / "ipython"),
        "JUPYTER_PREFER_ENV_PATH": "1",
    }


def _with_extension(data: Path) -> Path:
    """Put our extension into a folder of Jupyter's data, as an installation does."""
    shutil.copytree(EXTENSION, data / "labextensions" / "gamelens")
    return data
