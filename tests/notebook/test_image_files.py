"""Figures saved as PNG, SVG and HTML files, drawn on this machine."""

from __future__ import annotations

import contextlib
import shutil
import struct
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from pandas import DataFrame

from gamelens.errors import BadQuery, Refused
from gamelens.notebook import charts
from gamelens.notebook.figures import browser_rendering

SVG = "{http://www.w3.org/2000/svg}"
needs_chromium = pytest.mark.skipif(shutil.which("chromium") is None, reason="needs chromium")
pytestmark = pytest.mark.slow


@pytest.mark.wide
@needs_chromium
def test_a_png_is_as_wide_as_asked(networks: DataFrame, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """The width of a PNG is width times scale.

    A message of the browser that comes in pieces prints nothing. The library that reads it ignores it with a traceback,
    which would stand in a notebook.
    """
    path = charts.save(networks.lens.plot(), tmp_path / "revenue.png", width=400, scale=2)
    head = path.read_bytes()[:24]
    assert (head[:8], struct.unpack(">I", head[16:20])) == (b"\x89PNG\r\n\x1a\n", (800,))
    from choreographer.channels import pipe

    try:
        raise ValueError("half a message")
    except ValueError:
        pipe._logger.exception("JSONError decoding message. Ignoring")
    assert capfd.readouterr().err == ""


@needs_chromium
def test_an_svg_says_what_it_shows_and_holds_no_markup_of_others(networks: DataFrame, tmp_path: Path) -> None:
    """An SVG has title, description and role, and hostile names as text."""
    figure = networks.lens.plot()
    root = ElementTree.parse(charts.save(figure, tmp_path / "revenue.svg")).getroot()
    title, words = root.findtext(f"{SVG}title"), root.findtext(f"{SVG}desc")
    assert f"{title}. {words}" == charts.alt_text(figure)
    assert root.get("role") == "img"
    assert [*root.iter(f"{SVG}img")] == []
    assert "<img src=x onerror=alert(1)>" in [element.text for element in root.iter(f"{SVG}text")]


@pytest.mark.wide
@needs_chromium
def test_one_browser_draws_for_several_threads(networks: DataFrame, monkeypatch: pytest.MonkeyPatch) -> None:
    """Inside the block one browser starts, its figures are those of a browser of their own, and it ends with it."""
    figure = networks.lens.plot().to_plotly_json()
    (alone,) = browser_rendering.draw([figure], "svg", width=400)
    kaleido, opened = browser_rendering._kaleido, list[str]()

    def counted(browser: str, **options: Any) -> Any:
        opened.append(browser)
        return kaleido(browser, **options)

    monkeypatch.setattr(browser_rendering, "_kaleido", counted)
    with browser_rendering.one_browser(), ThreadPoolExecutor(3) as threads:
        drawn = list(threads.map(lambda _: browser_rendering.draw([figure], "svg", width=400), range(4)))
    assert len(opened) == 1
    assert {len(picture) // 100 for (picture,) in drawn} == {len(alone) // 100}
    assert not [thread for thread in threading.enumerate() if thread.name == "gamelens-drawing"]


@pytest.mark.wide
@needs_chromium
def test_a_figure_that_takes_too_long_spoils_no_other(networks: DataFrame, monkeypatch: pytest.MonkeyPatch) -> None:
    """It fails alone: the page is loaded again after it, and the next figure is as those before it."""
    figure = networks.lens.plot().to_plotly_json()
    with browser_rendering.one_browser():
        (before,) = browser_rendering.draw([figure], "svg", width=400)
        with monkeypatch.context() as hasty:
            hasty.setattr(browser_rendering._shared[-1]._drawing, "_timeout", 0)
            with pytest.raises(browser_rendering.DrawingError, match="could not draw"):
                browser_rendering.draw([figure], "svg", width=400)
        (after,) = browser_rendering.draw([figure], "svg", width=400)
    assert len(after) // 100 == len(before) // 100


@pytest.mark.slow
def test_a_browser_that_does_not_answer_is_given_up(
    networks: DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the deadline another is started, then the drawing fails, alone and in a shared browser.

    Nothing waits for it any longer: a thread that does would keep Python from ending.
    """
    browser, starts, others = tmp_path / "chromium", tmp_path / "starts", set(threading.enumerate())
    browser.write_text(f"#!/bin/sh\necho >> {starts}\nexec sleep 2\n")
    browser.chmod(0o755)
    monkeypatch.setenv("BROWSER_PATH", str(browser))
    monkeypatch.setattr(browser_rendering, "_OPENING_S", 0.5)
    monkeypatch.setattr(browser_rendering, "_CLOSING_S", 0.5)
    monkeypatch.setattr(browser_rendering, "_ATTEMPTS", 2)
    figure = networks.lens.plot().to_plotly_json()
    for scope in (contextlib.nullcontext, browser_rendering.one_browser):
        with scope(), pytest.raises(browser_rendering.DrawingError, match="does not start"):
            browser_rendering.draw([figure], "svg", width=400)
    assert len(starts.read_text()) == 4
    deadline = time.monotonic() + 20
    while [thread for thread in threading.enumerate() if not thread.daemon and thread not in others]:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("gamelens-drawing")]


def test_a_page_needs_no_network_and_says_what_it_shows(networks: DataFrame, tmp_path: Path) -> None:
    """A figure saved as HTML loads nothing and has its alternative text."""
    figure = networks.lens.plot()
    page = charts.save(figure, tmp_path / "revenue.html").read_text()
    assert f'role="img" aria-label="{charts.alt_text(figure)}"' in page
    assert 'src="http' not in page
    assert "<img src=x" not in page


@pytest.mark.parametrize("name", ["figure", "figure.gif", "figure.PPT"])
def test_another_kind_of_file_is_refused(networks: DataFrame, tmp_path: Path, name: str) -> None:
    """Another suffix raises `BadQuery` that lists the allowed ones."""
    with pytest.raises(BadQuery, match=r"\.png, \.svg"):
        charts.save(networks.lens.plot(), tmp_path / name)


def test_a_missing_folder_is_refused(networks: DataFrame, tmp_path: Path) -> None:
    """A missing folder raises `BadQuery` that names the folder to create."""
    with pytest.raises(BadQuery, match=r"create .*nowhere first"):
        charts.save(networks.lens.plot(), tmp_path / "nowhere" / "figure.png")


def test_without_a_browser_the_next_step_is_said(
    networks: DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a browser `Refused` names the setting and .html, and no file is left."""
    monkeypatch.setenv("BROWSER_PATH", str(tmp_path / "chromium"))
    with pytest.raises(Refused, match=r"BROWSER_PATH names .* or save a \.html"):
        charts.save(networks.lens.plot(), tmp_path / "figure.png")
    assert [*tmp_path.iterdir()] == []


def test_a_browser_that_does_not_start_is_named(
    networks: DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the browser exits at once, `Refused` names its path."""
    monkeypatch.setenv("BROWSER_PATH", shutil.which("false") or "")
    with pytest.raises(Refused, match=r"false does not start"):
        charts.save(networks.lens.plot(), tmp_path / "figure.png")
