"""Reports in a browser, without a network."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import pytest
from pandas import DataFrame

from gamelens.notebook.reports.report import write_report
from gamelens.notebook.tables.frame_table import FrameTable
from support.executed_notebooks import report_of
from support.notebook_files import notebook_of, write_notebook
from support.watched_page import is_file, problems_of

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

HOSTILE = "</script><img src=x onerror=alert(1)>"
CELLS = [
    f"""import pandas as pd
from gamelens.notebook import charts, conclusions
name = {HOSTILE!r}
frame = pd.DataFrame({{"game": [name, None], "installs": [7, 5]}})
frame""",
    "conclusions(f'Best is {name}, with 7.')",
    "charts.draw_bars(frame, 'installs', by='game', title=name)",
    """arm = {"measure": "D1 retention", "ab_id": "starter_price", "ab_variant_id": "half_price"}
numbers = ["value", "control_value", "difference", "low", "high", "p_adjusted"]
pd.DataFrame([arm | dict.fromkeys(numbers, -0.123)])""",
]


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interactive report of 02_retention."""
    return report_of("02_retention", tmp_path_factory.mktemp("report"), is_interactive=True)


@pytest.fixture(scope="module")
def still(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of a notebook with a hostile name in a table, a sentence and a figure."""
    folder = tmp_path_factory.mktemp("still")
    return write_report(write_notebook(notebook_of(*CELLS), folder / "made.ipynb"), folder)


def opened(browser: Browser, report: Path) -> tuple[Page, list[str]]:
    """Return the page of *report*, and the problems that occur in it."""
    page = browser.new_page()
    problems = problems_of(page, is_allowed=is_file)
    page.goto(report.as_uri())
    return page, problems


@pytest.fixture(scope="module")
def shown(browser: Browser, still: Path) -> Iterator[tuple[Page, list[str]]]:
    """The page of the still report, and its problems."""
    page, problems = opened(browser, still)
    yield page, problems
    page.close()


@pytest.fixture(scope="module")
def page(browser: Browser, report: Path) -> tuple[Page, list[str]]:
    """The page of the interactive report with its figures drawn, and its problems."""
    page, problems = opened(browser, report)
    page.wait_for_selector(".js-plotly-plot .main-svg")
    return page, problems


def test_every_figure_is_drawn(page: tuple[Page, list[str]]) -> None:
    """The interactive report of 02_retention draws its figures, five or more."""
    figures = page[0].locator(".plotly-graph-div")
    assert figures.count() >= 5
    assert page[0].locator(".plotly-graph-div .main-svg").count() >= figures.count()


def test_tables_are_shown(page: tuple[Page, list[str]]) -> None:
    """The report has at least one table."""
    assert page[0].locator(".gamelens-table").count() >= 1


def test_code_is_not_shown(page: tuple[Page, list[str]]) -> None:
    """The sources of the cells are left out of a report."""
    assert "gl.connect" not in page[0].inner_text("body")


def test_nothing_fails_and_nothing_is_fetched(page: tuple[Page, list[str]]) -> None:
    """The report opens without errors and without requests."""
    assert page[1] == []


@pytest.mark.shown_by(1)
@pytest.mark.parametrize("width", [800, 1280])
def test_a_still_report_fits_the_window(shown: tuple[Page, list[str]], width: int) -> None:
    """A static report fits windows of 800 and 1280 pixels, and its figure uses the width."""
    page, problems = shown
    page.set_viewport_size({"width": width, "height": 900})
    assert page.evaluate("document.documentElement.scrollWidth") == width
    box = page.locator("figure .wide svg").bounding_box()
    assert box is not None
    assert box["width"] > 0.7 * min(width, 984)
    assert problems == []


@pytest.mark.parametrize("width", [800, 1280])
def test_a_table_of_ten_columns_fits_the_window(shown: tuple[Page, list[str]], width: int) -> None:
    """A comparison of variants, the widest table of the shipped notebooks, needs no scrolling."""
    page, _ = shown
    page.set_viewport_size({"width": width, "height": 900})
    widths = page.locator(".gamelens-table", has_text="P-value, corrected").evaluate(
        "it => [it.scrollWidth, it.clientWidth]"
    )
    assert widths[0] <= widths[1]


@pytest.mark.parametrize(("width", "are_shown"), [(390, False), (1280, True)])
def test_bars_of_a_table_stand_beside_their_numbers(browser: Browser, width: int, are_shown: bool) -> None:
    """A bar is on the line of its number, and a phone shows the number alone."""
    money = DataFrame({"network": ["Any", "Other"], "revenue": [100.12, 9.65], "installs": [70_000, 50_000]})
    page = browser.new_page(viewport={"width": width, "height": 900})
    page.set_content(FrameTable(money, bars=["revenue", "installs"]).html())
    assert page.locator("td svg").first.is_visible() == are_shown
    heights = page.locator("tbody tr").evaluate_all("rows => rows.map(row => row.getBoundingClientRect().height)")
    assert max(heights) < 36
    page.close()


def test_names_from_outside_are_words_in_a_still_report(shown: tuple[Page, list[str]]) -> None:
    """A static report has hostile names as text in table, sentence and figure, and no script."""
    page, problems = shown
    assert page.locator("img, script").count() == 0
    assert page.inner_text("tbody th >> nth=0") == HOSTILE
    assert HOSTILE in page.inner_text("li")
    assert HOSTILE[:8] in (page.locator("figure .wide svg").text_content() or "")
    assert page.get_by_role("img", name="script").count() == 1
    assert problems == []


def test_a_report_follows_the_preferred_colour_scheme(shown: tuple[Page, list[str]]) -> None:
    """A report is light or dark as the reader's system prefers."""

    def brightness(scheme: Literal["light", "dark"]) -> int:
        """Return the red value of the page's background."""
        shown[0].emulate_media(color_scheme=scheme)
        colour = shown[0].evaluate("getComputedStyle(document.body).backgroundColor")
        return int(colour.removeprefix("rgb(").split(",")[0])

    assert brightness("light") > 240
    assert brightness("dark") < 40


@pytest.mark.shown_by(1)
@pytest.mark.parametrize("kind", ["still", "report"])
def test_foreign_markup_is_stopped_by_the_policy(
    browser: Browser, kind: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """Markup that got into the page neither runs nor loads, because its policy forbids it."""
    written = request.getfixturevalue(kind).read_text()
    foreign = "<img src=x onerror=alert(1)><script>alert(2)</script>"
    (tmp_path / "page.html").write_text(written.replace("<main>", f"<main>{foreign}", 1))
    page, problems = opened(browser, tmp_path / "page.html")
    page.wait_for_selector("figure svg")
    assert page.locator("img").count() == 1
    assert problems
    assert all("Content Security Policy" in problem for problem in problems), problems
