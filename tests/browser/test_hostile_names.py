"""Hostile names in a browser: figures and reports show them as text."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from gamelens.notebook import charts
from gamelens.notebook.reports.report import write_report
from support.hostile_names import CONFIG, NAMES, played
from support.notebook_files import notebook_of, write_notebook
from support.sandbox_stage import Stage
from support.served_metrics import KEY, World, serving
from support.watched_page import is_file, problems_of

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.wide

OVER = "2026-11-17/2026-11-19"
CELLS = (
    "import gamelens as gl\nfrom gamelens.notebook import charts, conclusions\nlens = gl.connect()",
    f"networks = lens.query('ilrd_revenue', by='ilrd_network_name', over='{OVER}', every='all')\nnetworks",
    f"games = lens.query('revenue', by='game', over='{OVER}')\ngames",
    "charts.draw_bars(networks)",
    "charts.draw_lines(games)",
    "conclusions(*networks.ilrd_network_name.dropna(), games.game.iloc[0])",
    "print('\\n'.join(networks.ilrd_network_name.dropna()))",
    "print(networks.lens.explain())",
)


def opened(page: Page, path: Path) -> Page:
    """Open *path* in *page* and wait for its figure."""
    page.goto(path.as_uri())
    page.locator("svg text", has_text="Ad revenue by network").first.wait_for(state="attached")
    return page


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """A metrics service of games and networks with hostile names."""
    with serving(played(Stage(tmp_path_factory.mktemp("hostile") / "state", tenants=CONFIG))) as service:
        yield service.world()


@pytest.fixture
def watched(browser: Browser) -> Iterator[Page]:
    """A page in which nothing may fail and from which nothing may leave the machine."""
    page = browser.new_page()
    problems = problems_of(page, is_allowed=is_file)
    yield page
    page.close()
    assert problems == []


def test_a_figure_under_the_pointer_shows_names(served: World, watched: Page, tmp_path: Path) -> None:
    """Hover labels of a figure show hostile names as text."""
    networks = served.client().query("ilrd_revenue", by="ilrd_network_name", over=OVER, every="all")
    hostile = networks[networks["ilrd_network_name"].isin([*NAMES.values()][:12])]
    page = opened(watched, charts.save(charts.draw_bars(hostile), tmp_path / "bars.html"))
    assert {NAMES["tag"], NAMES["end of script"]} <= {*page.locator(".ytick").all_text_contents()}
    for bar in page.locator(".bars .point path").all():
        bar.hover(force=True)
        page.locator(".hovertext").first.wait_for()
    assert page.locator("img, iframe, [onload], [onerror], a[href^=javascript]").count() == 0


def test_a_report_shows_names_and_not_the_key(served: World, watched: Page, tmp_path: Path) -> None:
    """A report shows hostile names as text in table, figure and sentence. The key it asked with is not in the file."""
    notebook = write_notebook(notebook_of(*CELLS), tmp_path / "names.ipynb")
    environment = {"GAMELENS_API_KEY": KEY, "GAMELENS_METRICS_URL": served.address}
    page = opened(watched, report := write_report(notebook, tmp_path / "out", environment=environment))
    assert page.locator("figure .wide text", has_text="Purchase revenue by game").count() == 1
    assert page.locator("img[src=x], iframe, svg[onload], [onerror], [onload], a[href^=javascript]").count() == 0
    shown = page.text_content("main") or ""  # the browser draws, and has a layout of, what is in sight
    assert all(shown.count(NAMES[kind]) >= 2 for kind in ("tag", "end of script", "markdown", "template"))
    assert KEY not in report.read_text(encoding="utf-8")
