"""Reports of the shipped notebooks: no violation of axe-core's rules, the answer on the first screen.

Those of `REPORTED` show all that any shipped notebook shows.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import pytest

from gamelens.local.demo import notebooks_folder
from gamelens.notebook.figures.browser_rendering import one_browser
from support.accessibility import violations_of
from support.executed_notebooks import report_of
from support.watched_page import is_file, problems_of

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

NOTEBOOKS = {path.stem: path for path in sorted(notebooks_folder().glob("*.ipynb"))}
REPORTED = ("00_monday", "08_tour", "01_ad_revenue", "02_retention", "03_health", "04_outside_data", "05_experiments")
KIND = re.compile(r"\bdraw_\w+|\b(?:say|print|key_numbers|lens\.(?:table|matrix|plan|plot))\(|\.report\b|\bbars=")
"""What is shown in a report in a way of its own: each chart, sentences, printed lines, numbers, tables, plans."""
ALIKE = {"draw_causes": "draw_decomposition"}
"""Both draw a bridge."""
FOCUS = """() => {
    const table = document.querySelector(".gamelens-table")
    table.focus({focusVisible: true})
    const {outlineStyle, outlineWidth, outlineColor} = getComputedStyle(table)
    const around = getComputedStyle(document.body).backgroundColor
    return [document.activeElement === table, outlineStyle, parseFloat(outlineWidth), outlineColor, around]
}"""

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The static reports of the notebooks `REPORTED` on recorded answers, by name."""
    folder = tmp_path_factory.mktemp("reports")
    with one_browser():
        return {name: report_of(name, folder) for name in REPORTED}


@pytest.fixture(scope="module", params=REPORTED)
def opened(request: pytest.FixtureRequest, browser: Browser, reports: dict[str, Path]) -> Iterator[Page]:
    """The page of each report in turn."""
    page = browser.new_page(bypass_csp=True)
    page.goto(reports[request.param].as_uri())
    yield page
    page.close()


def shown_by(name: str) -> set[str]:
    """Return the kinds of output that the code of a shipped notebook makes."""
    cells = json.loads(NOTEBOOKS[name].read_text(encoding="utf-8"))["cells"]
    kinds = KIND.findall("\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"))
    return {ALIKE.get(kind, kind) for kind in kinds}


def test_the_reports_have_every_kind_of_output() -> None:
    """A chart that only another notebook draws needs that notebook in `REPORTED`; none is there for nothing."""
    kinds = set().union(*map(shown_by, REPORTED))
    for name in NOTEBOOKS:
        assert shown_by(name) <= kinds, f"{name} shows what no report shows"
    for name in REPORTED:
        others = set().union(*(shown_by(other) for other in REPORTED if other != name))
        assert shown_by(name) - others, f"{name} shows nothing that the others do not"


@pytest.mark.shown_by(1)
@pytest.mark.parametrize(("width", "scheme"), [(390, "dark"), (1280, "light")])
def test_a_report_has_no_violation(opened: Page, width: int, scheme: Literal["light", "dark"]) -> None:
    """axe-core finds nothing of any severity, the page does not scroll sideways, and no figure is cut."""
    opened.emulate_media(color_scheme=scheme)
    opened.set_viewport_size({"width": width, "height": 900})
    assert opened.evaluate("document.documentElement.scrollWidth") == width
    assert violations_of(opened) == []


def test_conclusions_come_first_and_nothing_is_for_a_kernel(opened: Page) -> None:
    """The first section is what to take away, with a table of numbers; no explorer and no Python value is shown."""
    assert opened.locator("h2").first.inner_text() == "What to take away"
    assert opened.locator("h2:first-of-type, table").first.is_visible()
    assert not [word for word in ("Interval(", "Look further") if word in opened.inner_text("body")]


@pytest.mark.shown_by(1)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_focused_table_is_outlined(browser: Browser, reports: dict[str, Path], scheme: str) -> None:
    """A table takes the focus, and shows it by a line of 2 pixels or more with a contrast of 3:1 or more."""
    page = browser.new_page(color_scheme=scheme)  # type: ignore[arg-type]
    page.goto(reports["00_monday"].as_uri())
    is_focused, style, width, colour, around = page.evaluate(FOCUS)
    assert (is_focused, style) == (True, "solid")
    assert width >= 2
    dark, bright = sorted((_luminance(colour), _luminance(around)))
    assert (bright + 0.05) / (dark + 0.05) >= 3
    page.close()


def _luminance(colour: str) -> float:
    """Return the relative luminance of `rgb(r, g, b)` (WCAG 2.2)."""
    parts = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return sum(share * part for share, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


@pytest.mark.parametrize(
    ("width", "height", "parts", "across"), [(1280, 800, ".gamelens-tiles dl, li, figure", 5), (390, 844, "dl", 2)]
)
def test_the_answer_is_on_the_first_screen(opened: Page, width: int, height: int, parts: str, across: int) -> None:
    """Tiles, three sentences and a picture fit a laptop, the tiles a phone, five or two of them side by side."""
    opened.set_viewport_size({"width": width, "height": height})
    shown = opened.locator(f".answer :is({parts})").filter(visible=True)
    bottoms = shown.evaluate_all("all => all.map(one => one.getBoundingClientRect().bottom)")
    assert 0 < max(bottoms) <= height
    assert opened.locator(".answer li").filter(visible=True).count() <= 3
    assert opened.locator(".answer figure").count() == 1
    tops = (
        opened.locator(".answer dl > div")
        .filter(visible=True)
        .evaluate_all("all => all.map(one => one.getBoundingClientRect().top)")
    )
    assert max(Counter(tops).values()) <= across


def test_a_sentence_leads_to_its_section(browser: Browser, reports: dict[str, Path]) -> None:
    """By its number, and so do the contents."""
    page = browser.new_page()
    problems = problems_of(page, is_allowed=is_file)
    page.goto(reports["01_ad_revenue"].as_uri())
    page.locator(".contents a").first.click()
    assert page.url.endswith("#section-1")
    link = page.locator(".answer .to-section").filter(has_text="From request to click")
    place = link.get_attribute("href")
    assert place is not None
    assert page.locator(f"h2{place}").text_content() == "From request to click"
    assert problems == []
    page.close()


@pytest.mark.parametrize("paper", ["A4", "Letter"])
def test_a_report_is_printed_on_four_pages_at_most(opened: Page, paper: str) -> None:
    """What is folded stays off paper."""
    opened.emulate_media(color_scheme="light")
    assert 1 <= opened.pdf(format=paper).count(b"/Type /Page\n") <= 4


def test_a_report_is_small_and_runs_nothing(reports: dict[str, Path]) -> None:
    """600 kilobytes at most."""
    for path in reports.values():
        page = path.read_text(encoding="utf-8")
        assert len(page) < 600_000
        assert "<script" not in page
