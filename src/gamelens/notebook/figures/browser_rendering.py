"""Images of plotly figures, drawn by kaleido in a browser of this machine.

The browser is Chromium or Chrome. Nothing is downloaded.
"""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Mapping, Sequence
from threading import Thread
from typing import Any, Final

from gamelens.errors import Refused

FigureJson = Mapping[str, Any]
"""A figure as a dict of `data` and `layout`."""

HEIGHT: Final = 420
_DEADLINE_S: Final = 120.0
_EACH_S: Final = 10
_SCALED: Final = ("png", "webp", "jpg")
_BROWSERS: Final = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "msedge")
_PLACES: Final = ("/usr/bin/chromium", "/usr/lib/chromium/chromium", "/usr/bin/google-chrome", "/snap/bin/chromium")


class DrawingError(Refused):
    """An error when no image can be drawn: kaleido or a browser is missing or fails."""


def draw(figures: Sequence[FigureJson], kind: str, *, width: int, scale: float = 1) -> list[bytes]:
    """Return every figure as an image, all drawn in one browser.

    Args:
        figures: as JSON. Each is as wide and high as its layout or its template says.
        kind: png, svg, pdf, webp or jpg.
        width: in pixels, for a figure that does not have one.
        scale: dots per pixel of a png, webp or jpg.

    Raises:
        DrawingError: kaleido or a browser is missing or fails. The message says how to install it.
    """
    if not figures:
        return []
    browser = _browser()
    sizes = [_size(figure, kind, width, scale) for figure in figures]
    results: list[list[bytes] | BaseException] = []

    def run() -> None:
        try:
            results.append(asyncio.run(_draw(figures, sizes, browser)))
        except BaseException as error:  # handed to the caller's thread
            results.append(error)

    thread = Thread(target=run, name="gamelens-drawing")  # its own event loop: that of a notebook is running
    thread.start()
    thread.join()
    match results[0]:
        case list() as pictures:
            return pictures
        case Exception() as error if type(error).__name__ == "BrowserFailedError":
            raise DrawingError(f"{browser} does not start: try it in a terminal") from error
        case Exception() as error:
            raise DrawingError(f"{browser} could not draw ({type(error).__name__})") from error
        case error:
            raise error


def _browser() -> str:
    """Return the path of the browser: BROWSER_PATH, else one on the PATH or in a usual place.

    Raises:
        DrawingError: kaleido is not installed, or there is no browser.
    """
    try:
        import kaleido  # noqa: F401
    except ImportError:
        raise DrawingError(
            "pictures are drawn by kaleido, which is not installed: pip install 'gamelens[lab]'"
        ) from None
    named = os.environ.get("BROWSER_PATH")
    if named and not os.access(named, os.X_OK):
        raise DrawingError(f"BROWSER_PATH names {named}, which is no program: correct it")
    browser = named or next(filter(None, map(shutil.which, (*_BROWSERS, *_PLACES))), None)
    if browser is None:
        raise DrawingError(
            "pictures are drawn by Chromium or Chrome, and none was found: install one (apt install chromium) or name "
            "it in BROWSER_PATH"
        )
    return browser


async def _draw(figures: Sequence[FigureJson], sizes: Sequence[dict[str, Any]], browser: str) -> list[bytes]:
    from kaleido import Kaleido

    # MathJax would be loaded from the network, and would read dollar signs in names as formulas.
    settings: dict[str, Any] = {"mathjax": False, "timeout": _DEADLINE_S, "path": browser}
    async with asyncio.timeout(_DEADLINE_S + _EACH_S * len(figures)), Kaleido(**settings) as drawing:
        return [await drawing.calc_fig(figure, opts=size) for figure, size in zip(figures, sizes, strict=True)]


def _size(figure: FigureJson, kind: str, width: int, scale: float) -> dict[str, Any]:
    layout = figure.get("layout") or {}
    template = (layout.get("template") or {}).get("layout") or {}
    height = layout.get("height") or template.get("height") or HEIGHT
    return {
        "format": kind,
        "width": layout.get("width") or width,
        "height": height,
        "scale": scale if kind in _SCALED else 1,
    }
