"""The reports as a browser shows them, with no network to lean on."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, sync_playwright

from gamelens.lab import ensure_played, environment_of, notebooks_folder, sandbox_at
from gamelens.notebook.reports import write_report

CHROMIUM = shutil.which("chromium")
QUIET = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-sync", "--no-first-run"]
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs chromium")


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    with sandbox_at(folder / "state") as ready:
        ensure_played(ready, folder / "state", "small")
        return write_report(notebooks_folder() / "02_retention.ipynb", folder, environment=environment_of(ready))


@pytest.fixture(scope="module")
def page(report: Path) -> Iterator[tuple[Page, list[str]]]:
    """The page, drawn, and everything that went wrong or left the machine on the way."""
    faults: list[str] = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        page = browser.new_page()
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("console", lambda message: faults.append(message.text) if message.type == "error" else None)
        page.on("request", lambda request: faults.append(request.url) if request.url.startswith("http") else None)
        page.goto(report.as_uri())
        page.wait_for_selector(".js-plotly-plot .main-svg")
        yield page, faults
        browser.close()


def test_every_figure_is_drawn(page: tuple[Page, list[str]]):
    """Issue: reports with tables and plotly figures."""
    figures = page[0].locator(".plotly-graph-div")
    assert figures.count() >= 5
    assert page[0].locator(".plotly-graph-div .main-svg").count() >= figures.count()


def test_tables_are_shown(page: tuple[Page, list[str]]):
    """Issue: reports with tables and plotly figures."""
    assert page[0].locator("table.dataframe").count() >= 1


def test_code_is_not_shown(page: tuple[Page, list[str]]):
    """A report is for readers."""
    assert "gl.connect" not in page[0].inner_text("body")


def test_nothing_fails_and_nothing_is_fetched(page: tuple[Page, list[str]]):
    """A report opens with no network."""
    assert page[1] == []


def test_the_key_is_nowhere_in_the_report(report: Path):
    """Team guide: secrets never reach a notebook output."""
    (key,) = json.loads((report.parent / "state" / "keys.json").read_text()).values()
    assert key not in report.read_text()
