"""How long a browser draws the nine reports of the demo, how large they are, and on how many pages they are printed.

Run by `make bench`. Times are those of the browser's main thread, from the address to the first screen, so what else
the machine does is not counted. A phone is four times as slow as this machine.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
import pandas as pd
import pytest
from pandas import DataFrame

from browser.conftest import CHROMIUM, QUIET
from gamelens.local.demo import run_demo
from gamelens.notebook.tables.frame_table import FrameTable

if TYPE_CHECKING:
    from playwright.sync_api import Browser, CDPSession, Page

LARGEST_BYTES: Final = 600_000
MOST_PAGES: Final = 4
PHONE_MS: Final = 200
PHONE_SLOWNESS: Final = 4
TABLE_MS: Final = 50
TRIES: Final = 9
_DRAWN: Final = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
_SHOW: Final = "html => { document.body.innerHTML = html }"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Chromium, with a process for each page, as a browser that is opened for a report."""
    if CHROMIUM is None:
        pytest.skip("needs chromium")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The nine reports of the demo."""
    folder = tmp_path_factory.mktemp("demo")
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("GAMELENS_STATE_DIR", str(folder / "state"))
        return run_demo(folder / "reports").reports


def main_thread_ms(session: CDPSession) -> float:
    """Return how long the main thread of the page has worked."""
    metrics = session.send("Performance.getMetrics")["metrics"]
    return 1000 * float(next(metric["value"] for metric in metrics if metric["name"] == "TaskDuration"))


def watched(page: Page) -> CDPSession:
    """Return a session that counts the time of the page's main thread."""
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})
    return session


def ms_to_open(browser: Browser, address: str) -> float:
    """Return how long the main thread works until the first screen of a page is shown on a phone."""
    page = browser.new_page(viewport={"width": 390, "height": 844}, device_scale_factor=3, is_mobile=True)
    session = watched(page)
    begun = main_thread_ms(session)
    page.goto(address)
    page.evaluate(_DRAWN)
    taken = main_thread_ms(session) - begun
    page.close()
    return taken


def test_reports_are_small_and_drawn_at_once(browser: Browser, reports: list[Path]) -> None:
    """At most 600 kB, four pages of paper, and 200 ms on a phone beyond those of an empty page."""
    empty = min(ms_to_open(browser, "data:text/html,<p>empty") for _ in range(TRIES))
    rows = []
    for report in reports:
        page = browser.new_page()
        page.goto(report.as_uri())
        printed = len(re.findall(rb"/Type\s*/Page\b", page.pdf(format="A4", prefer_css_page_size=True)))
        page.close()
        opened = min(ms_to_open(browser, report.as_uri()) for _ in range(TRIES)) - empty
        rows.append((report.stem, report.stat().st_size, printed, PHONE_SLOWNESS * opened))
        print("{:24} {:>8,} bytes {} pages {:5.0f} ms".format(*rows[-1]))
    assert len(rows) == 9
    assert [row for row in rows if row[1] > LARGEST_BYTES or row[2] > MOST_PAGES or row[3] > PHONE_MS] == []


@pytest.mark.parametrize("drawn", ["numbers", "bars", "sparklines"])
def test_a_table_of_five_hundred_rows_is_drawn_at_once(browser: Browser, drawn: str) -> None:
    """In a notebook, with bars or with sparklines."""
    random, rows = np.random.default_rng(1), 500
    frame = DataFrame({"game": [f"Game {row}" for row in range(rows)], "revenue": random.random(rows) * 999})
    for name in ("ilrd_revenue", "ecpm", "d1_retention", "arpdau"):
        frame[name] = random.random(rows)
    weeks = [frame.assign(timestamp=day) for day in pd.date_range("2026-10-05", periods=8, freq="7D", tz="UTC")]
    history = {"revenue": pd.concat(weeks)} if drawn == "sparklines" else None
    markup = FrameTable(frame, rows=rows, bars=["revenue"] if drawn == "bars" else [], history=history).html()
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    session, taken = watched(page), []
    for _ in range(TRIES):
        page.evaluate(_SHOW, "")
        page.evaluate(_DRAWN)
        begun = main_thread_ms(session)
        page.evaluate(_SHOW, markup)
        page.evaluate(_DRAWN)
        taken.append(main_thread_ms(session) - begun)
    page.close()
    print(f"500 rows with {drawn}: {min(taken):.0f} ms")
    assert min(taken) < TABLE_MS
