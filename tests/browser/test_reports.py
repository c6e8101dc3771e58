"""The reports as a browser shows them, with no network to lean on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import nbformat
import pytest
from playwright.sync_api import Browser, Page

from gamelens.local.demo import notebooks_folder
from gamelens.local.sandbox_info import environment_of
from gamelens.local.sandbox_population import ensure_populated
from gamelens.local.sandbox_process import running_sandbox
from gamelens.notebook.reports.report import write_report

HOSTILE = "</script><img src=x onerror=alert(1)>"
CELLS = [
    f"""import pandas as pd
from gamelens.notebook import charts, say
name = {HOSTILE!r}
frame = pd.DataFrame({{"game": [name, None], "installs": [7, 5]}})
frame""",
    "say('Best is {game}, with {installs:count}.', game=name, installs=7)",
    "charts.draw_bars(frame, 'installs', by='game', title=name)",
]


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    with running_sandbox(folder / "state") as ready:
        ensure_populated(ready, folder / "state", "small")
        notebook, environment = notebooks_folder() / "02_retention.ipynb", environment_of(ready)
        return write_report(notebook, folder, environment=environment, is_interactive=True)


@pytest.fixture(scope="module")
def still(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of a notebook that shows a hostile name in a table, a sentence and a figure."""
    folder = tmp_path_factory.mktemp("still")
    document = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in CELLS])
    nbformat.write(document, folder / "made.ipynb")
    return write_report(folder / "made.ipynb", folder)


def opened(browser: Browser, report: Path, **look: Any) -> tuple[Page, list[str]]:
    """The page, and everything that goes wrong or leaves the machine on the way."""
    faults: list[str] = []
    page = browser.new_page(**look)
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("dialog", lambda dialog: faults.append(dialog.message))
    page.on("console", lambda message: faults.append(message.text) if message.type == "error" else None)
    page.on("request", lambda request: faults.append(request.url) if request.url.startswith("http") else None)
    page.goto(report.as_uri())
    return page, faults


@pytest.fixture(scope="module")
def page(browser: Browser, report: Path) -> tuple[Page, list[str]]:
    page, faults = opened(browser, report)
    page.wait_for_selector(".js-plotly-plot .main-svg")
    return page, faults


def test_every_figure_is_drawn(page: tuple[Page, list[str]]) -> None:
    """Issue: reports with tables and plotly figures."""
    figures = page[0].locator(".plotly-graph-div")
    assert figures.count() >= 5
    assert page[0].locator(".plotly-graph-div .main-svg").count() >= figures.count()


def test_tables_are_shown(page: tuple[Page, list[str]]) -> None:
    """Issue: reports with tables and plotly figures."""
    assert page[0].locator("table.dataframe").count() >= 1


def test_code_is_not_shown(page: tuple[Page, list[str]]) -> None:
    """A report is for readers."""
    assert "gl.connect" not in page[0].inner_text("body")


def test_nothing_fails_and_nothing_is_fetched(page: tuple[Page, list[str]]) -> None:
    """A report opens with no network."""
    assert page[1] == []


def test_the_key_is_nowhere_in_the_report(report: Path) -> None:
    """Team guide: secrets never reach a notebook output."""
    (key,) = json.loads((report.parent / "state" / "keys.json").read_text()).values()
    assert key not in report.read_text()


@pytest.mark.parametrize("width", [800, 1280])
def test_a_still_report_fits_the_window(browser: Browser, still: Path, width: int) -> None:
    """Issue: readable at 800 and 1280 pixels."""
    page, faults = opened(browser, still, viewport={"width": width, "height": 900})
    assert page.evaluate("document.documentElement.scrollWidth") == width
    assert page.locator("figure svg").bounding_box()["width"] > 0.7 * min(width, 984)
    assert faults == []


def test_names_from_outside_are_words_in_a_still_report(browser: Browser, still: Path) -> None:
    """Issue: hostile names go through every report without running anything."""
    page, faults = opened(browser, still)
    assert page.locator("img, script").count() == 0
    assert page.inner_text("td >> nth=0") == HOSTILE
    assert HOSTILE in page.inner_text("p")
    assert HOSTILE[:8] in page.locator("figure svg").text_content()
    assert page.get_by_role("img", name="script").count() == 1
    assert faults == []


def test_a_report_is_dark_where_the_reader_likes_it(browser: Browser, still: Path) -> None:
    """Issue: light and dark."""

    def brightness(**look: Any) -> int:
        colour = opened(browser, still, **look)[0].evaluate("getComputedStyle(document.body).backgroundColor")
        return int(colour.removeprefix("rgb(").split(",")[0])

    assert brightness(color_scheme="light") > 240
    assert brightness(color_scheme="dark") < 40


@pytest.mark.parametrize("kind", ["still", "report"])
def test_even_markup_that_got_in_does_not_run(
    browser: Browser, kind: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """An output may be HTML of somebody else's: the page's own policy forbids what would run or be fetched."""
    written = request.getfixturevalue(kind).read_text()
    foreign = "<img src=x onerror=alert(1)><script>alert(2)</script>"
    (tmp_path / "page.html").write_text(written.replace("<main>", f"<main>{foreign}", 1))
    page, faults = opened(browser, tmp_path / "page.html")
    page.wait_for_selector("figure svg")
    assert page.locator("img").count() == 1
    assert faults
    assert all("Content Security Policy" in fault for fault in faults), faults
