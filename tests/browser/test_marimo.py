"""The widgets in marimo, without a network: its own front end, which knows anywidgets and no other ones."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from gamelens.local.sandbox_info import environment_of
from gamelens.local.sandbox_population import ensure_populated
from gamelens.local.sandbox_process import running_sandbox
from support.hostile_names import NAMES
from support.started_server import wait_for
from support.watched_page import expect, problems_of

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

TITLE = NAMES["tag"]
CONFIG = f"""
[[organisation]]
name = "demo"
  [[organisation.studio]]
  name = "North"
    [[organisation.studio.game]]
    title = "Tile Harbor"
    [[organisation.studio.game]]
    title = "{TITLE}"
    [[organisation.studio.game]]
    title = "Ember"
"""
BOOK = """import marimo

app = marimo.App()


@app.cell
def _():
    import gamelens as gl
    from gamelens.notebook import widgets

    lens = gl.connect()
    return lens, widgets


@app.cell
def _(lens, widgets):
    widgets.explorer(lens, metric="user_unique", by="game")
    return


@app.cell
def _(lens, widgets):
    widgets.health_board(lens, metrics=["user_unique"])
    return


@app.cell
def _(widgets):
    widgets.live()
    return
"""
PATIENCE_MS = 120_000  # a machine that does other things besides
DRAWN = ".js-plotly-plot"

pytestmark = [pytest.mark.slow, pytest.mark.wide]


@pytest.fixture(scope="module", params=["run", "edit"])
def page(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, browser: Browser) -> Iterator[Page]:
    """A notebook with all widgets, as an app and as one that is edited, and no problem in the end."""
    folder = tmp_path_factory.mktemp("marimo")
    (folder / "sandbox.toml").write_text(CONFIG)
    (folder / "book.py").write_text(BOOK)
    (folder / "pyproject.toml").write_text("[tool.marimo.runtime]\nauto_instantiate = true\n")  # else nothing runs
    with running_sandbox(folder / "state", config=folder / "sandbox.toml") as ready, socket.socket() as free:
        ensure_populated(ready, folder / "state", "small")
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        free.close()
        home = f"http://127.0.0.1:{port}"
        server = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "marimo",
                request.param,
                folder / "book.py",
                "--headless",
                "--no-token",
                "-p",
                f"{port}",
            ],
            env=os.environ | environment_of(ready) | {"HOME": str(folder)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            wait_for(f"{home}/health")
            page = browser.new_page(viewport={"width": 1280, "height": 1600})
            page.set_default_timeout(PATIENCE_MS)
            own = (home, home.replace("http", "ws"), "data:", "blob:", ready.console_url)
            problems = problems_of(page, is_allowed=lambda address: address.startswith(own))
            page.goto(home)
            yield page
            assert problems == []
            page.close()
        finally:
            server.terminate()
            server.wait()


def test_the_explorer_asks_what_is_picked_by_keys(page: Page) -> None:
    """A metric is found by typing, a game among hostile names is picked, and table, figure and code follow."""
    field = page.get_by_role("combobox", name="metric", exact=True)
    page.locator("table", has_text=TITLE).first.wait_for()
    field.click()
    page.keyboard.type("paying")
    options = page.locator(".gamelens-list [role=option]")
    expect(options.first).to_contain_text("players: distinct players with a purchase")
    field.press("Enter")
    code = page.locator("pre", has_text="lens.query(")
    expect(code).to_contain_text('"paying_users"', timeout=PATIENCE_MS)
    page.get_by_role("listbox", name="pick games").select_option(label=TITLE)
    expect(code).to_contain_text("games=[", timeout=PATIENCE_MS)
    expect(page.locator(DRAWN).first).to_contain_text("Paying users", timeout=PATIENCE_MS)
    assert page.locator("table img, option img, li img").count() == 0


def test_a_picker_without_effect_is_dimmed(page: Page) -> None:
    """marimo's own style would draw it as one that can be used."""
    over, day = (page.get_by_role("combobox", name=name, exact=True) for name in ("over", "day"))
    expect(day).to_be_disabled(timeout=PATIENCE_MS)
    expect(over).to_be_enabled()
    assert [field.evaluate("field => getComputedStyle(field).opacity") for field in (over, day)] == ["1", "0.5"]


def test_a_row_of_the_board_shows_its_segments(page: Page) -> None:
    """The search leaves the rows of one game; its button shows days and segments."""
    search = page.get_by_role("textbox", name="search", exact=True)
    search.fill(TITLE)
    rows = page.locator(".gamelens-rows li")
    expect(rows.first).to_contain_text(TITLE, timeout=PATIENCE_MS)
    assert all(TITLE in row for row in rows.all_inner_texts())
    rows.first.get_by_role("button").press("Enter")
    page.locator("table", has_text="share of the change").first.wait_for()
    expect(page.locator(DRAWN).nth(1)).to_contain_text("Latest day and usual range", timeout=PATIENCE_MS)


def test_the_live_page_is_in_a_frame(page: Page) -> None:
    """As in JupyterLab."""
    frame = page.frame_locator("iframe[title='Live events of the sandbox']")
    expect(frame.locator("#connection")).to_have_text("Live", timeout=PATIENCE_MS)


def test_a_page_that_cannot_insert_says_so(page: Page) -> None:
    """And what to do instead."""
    page.get_by_role("button", name="Insert cell below").press("Enter")
    page.get_by_text("This page cannot insert cells: copy the code instead.").wait_for()
