"""issue, Must show: in a browser, too, a hostile name is only a name."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import nbformat
import pytest
from playwright.sync_api import Browser, Page

from gamelens.notebook import charts
from gamelens.notebook.reports.report import write_report
from support.hostile_names import CONFIG, NAMES, played
from support.sandbox_stage import Stage
from support.served_metrics import KEY, World, serving

OVER = "2026-11-17/2026-11-19"
CELLS = (
    "import gamelens as gl\nfrom gamelens.notebook import charts, say\nlens = gl.connect()",
    f"networks = lens.query('ilrd_revenue', by='ilrd_network_name', over='{OVER}', every='all')\nnetworks",
    f"games = lens.query('revenue', by='game', over='{OVER}')\ngames",
    "charts.draw_bars(networks)",
    "charts.draw_lines(games)",
    "say('{names} and {cut}.', names=networks.ilrd_network_name.dropna(), cut=games.game.iloc[0])",
    "print('\\n'.join(networks.ilrd_network_name.dropna()))",
    "print(networks.lens.explain())",
)


class Watched:
    """A page, and everything that went wrong or left the machine."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.wrongs: list[str] = []
        page.on("dialog", lambda dialog: (self.wrongs.append(f"dialog {dialog.message}"), dialog.dismiss()))
        page.on("pageerror", lambda error: self.wrongs.append(str(error)))
        page.on("console", lambda said: self.wrongs.append(said.text) if said.type == "error" else None)
        page.on("request", lambda sent: self.wrongs.append(sent.url) if sent.url.startswith("http") else None)

    def open(self, path: Path) -> Page:
        self.page.goto(path.as_uri())
        self.page.locator("svg text", has_text="Ad revenue by network").first.wait_for(state="attached")
        return self.page


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with serving(played(Stage(tmp_path_factory.mktemp("hostile") / "state", tenants=CONFIG))) as served:
        yield served.world()


@pytest.fixture
def watched(browser: Browser) -> Iterator[Watched]:
    page = browser.new_page()
    watched = Watched(page)
    yield watched
    page.close()
    assert watched.wrongs == []


def test_a_figure_under_the_pointer_shows_names(served: World, watched: Watched, tmp_path: Path) -> None:
    """What a figure shows when it is touched is made of names as well."""
    networks = served.client().query("ilrd_revenue", by="ilrd_network_name", over=OVER, every="all")
    worst = networks[networks["ilrd_network_name"].isin([*NAMES.values()][:12])]
    page = watched.open(charts.save(charts.draw_bars(worst), tmp_path / "bars.html"))
    assert {NAMES["tag"], NAMES["end of script"]} <= {*page.locator(".ytick").all_text_contents()}
    for bar in page.locator(".bars .point path").all():
        bar.hover(force=True)
        page.locator(".hovertext").first.wait_for()
    assert page.locator("img, iframe, [onload], [onerror], a[href^=javascript]").count() == 0


def test_a_report_shows_names(served: World, watched: Watched, tmp_path: Path) -> None:
    notebook = tmp_path / "names.ipynb"
    nbformat.write(nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in CELLS]), notebook)
    environment = {"GAMELENS_API_KEY": KEY, "GAMELENS_METRICS_URL": served.address}
    page = watched.open(write_report(notebook, tmp_path / "out", environment=environment))
    assert page.locator("svg text", has_text="Purchase revenue by game").count() == 1
    assert page.locator("img[src=x], iframe, svg[onload], [onerror], [onload], a[href^=javascript]").count() == 0
    shown = page.inner_text("body")
    assert all(shown.count(NAMES[kind]) >= 2 for kind in ("tag", "end of script", "markdown", "template"))
