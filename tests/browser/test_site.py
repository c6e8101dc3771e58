"""The documentation site, built once and opened from disk in a real browser."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

ROOT = Path(__file__).parents[2]
BUILT = "No issues found"
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, browser: Browser) -> Path:
    """The site as `make docs` builds it: every block of every page was run, and Zensical found nothing wrong."""
    folder = tmp_path_factory.mktemp("docs") / "site"
    command = [sys.executable, "-m", "docs.build", "--out", str(folder)]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    assert BUILT in built.stdout + built.stderr
    return folder


@pytest.fixture
def complaints(page: Page) -> list[str]:
    """Requests that leave the disk, errors of scripts, and messages of the console, as they come."""
    found: list[str] = []
    page.on("request", lambda it: found.append(it.url) if not it.url.startswith(("file:", "data:", "blob:")) else None)
    page.on("pageerror", lambda it: found.append(str(it)))
    page.on("console", lambda it: found.append(it.text) if it.type in ("error", "warning") else None)
    return found


@pytest.fixture
def page(browser: Browser) -> Page:
    """An empty page."""
    return browser.new_page()


def test_all_pages_open_from_disk_without_a_request_elsewhere(site: Path, page: Page, complaints: list[str]) -> None:
    """And without an error in the console, nor wider than a phone: tables and code scroll inside the page."""
    page.set_viewport_size({"width": 390, "height": 844})
    found, wide = {}, []
    for path in sorted(site.rglob("*.html")):
        page.goto(path.as_uri())
        page.wait_for_function("document.title.length > 0")
        if page.evaluate("document.documentElement.scrollWidth > innerWidth"):
            wide.append(path.name)
        found[path.name], complaints[:] = complaints[:], []
    page.close()
    assert len(found) > 50
    assert {name: lines for name, lines in found.items() if lines} == {}
    assert wide == []


def test_search_finds_a_page_from_disk(site: Path, page: Page, complaints: list[str]) -> None:
    """Where browsers start no worker from a file."""
    page.goto((site / "index.html").as_uri())
    page.keyboard.press("/")
    page.keyboard.type("stickiness", delay=30)
    page.get_by_text(re.compile(r"^[1-9]\d* results$")).wait_for()
    page.close()
    assert complaints == []


def test_every_page_has_a_twin_and_is_listed(site: Path) -> None:
    """`llms.txt` has each page with a sentence, and links to Markdown alone."""
    pages = {path.relative_to(site).with_suffix(".md").as_posix() for path in site.rglob("*.html")}
    listing = (site / "llms.txt").read_text(encoding="utf-8")
    listed = dict(re.findall(r"^- \[.+?\]\((.+?)\): (.+)$", listing, re.MULTILINE))
    assert listed.keys() == pages
    assert all((site / name).is_file() for name in listed)


def test_a_twin_is_markdown_alone(site: Path) -> None:
    """Without markup of tables and figures, and with every value filled in."""
    for path in (site / "how-to").glob("*.md"):
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"<(table|figure|div)|\{\{", text), path.name


def test_no_page_names_a_folder_of_the_machine(site: Path) -> None:
    """Messages name the folders of an invented user."""
    folders = (f"{Path.home()}/", str(ROOT))
    texts = {path.name: path.read_text(encoding="utf-8") for path in site.rglob("*.md")}
    assert [name for name, text in texts.items() if any(folder in text for folder in folders)] == []
