"""A real browser for the tests of this folder, which are skipped without one."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser

CHROMIUM = shutil.which("chromium")
QUIET = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-sync", "--no-first-run"]
FEW_PROCESSES = "--renderer-process-limit=1"  # else each page has its own, and one more is kept ready


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Chromium, in which each test closes the pages that it opens."""
    if CHROMIUM is None:
        pytest.skip("needs chromium")
    from playwright.sync_api import sync_playwright  # takes a second, which other workers save

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=[*QUIET, FEW_PROCESSES])
        yield browser
        browser.close()
