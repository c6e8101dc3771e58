"""Images of plotly figures, drawn by kaleido in a browser of this machine.

The browser is Chromium or Chrome. Nothing is downloaded.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import shutil
import sys
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Thread
from typing import Any, Final

from gamelens.errors import Refused

FigureJson = Mapping[str, Any]
"""A figure as a dict of `data` and `layout`."""

HEIGHT: Final = 420
_DEADLINE_S: Final = 120.0
_EACH_S: Final = 10
_OPENING_S: Final = 40.0
_CLOSING_S: Final = 20.0
_ATTEMPTS: Final = 3
_TABS: Final = 2
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
    browser = browser_path()
    sizes = [_size(figure, kind, width, scale) for figure in figures]
    try:
        if _shared:
            return _shared[-1].draw(figures, sizes, browser)
        with ThreadPoolExecutor(
            1, "gamelens-drawing"
        ) as thread:  # with an event loop of its own: a notebook's is running
            return thread.submit(asyncio.run, _draw(figures, sizes, browser)).result()
    except Exception as error:
        fault = "does not start: try it in a terminal"
        if type(error).__name__ != "BrowserFailedError":
            fault = f"could not draw ({type(error).__name__})"
        raise DrawingError(f"{browser} {fault}") from error


@contextlib.contextmanager
def one_browser() -> Iterator[None]:
    """Draw all figures of the block in one browser, whatever thread asks.

    A browser takes seconds to start. This one starts with the first figure.
    """
    _shared.append(_SharedBrowser())
    try:
        yield
    finally:
        _shared.pop().close()


class _SharedBrowser:
    """A browser that draws until it is closed, on an event loop of its own."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._loop.run_forever, name="gamelens-drawing", daemon=True)
        self._thread.start()
        self._opening = asyncio.Lock()
        self._open = contextlib.AsyncExitStack()
        self._drawing: Any = None

    def draw(self, figures: Sequence[FigureJson], sizes: Sequence[dict[str, Any]], browser: str) -> list[bytes]:
        """Return every figure as an image."""
        return asyncio.run_coroutine_threadsafe(self._draw(figures, sizes, browser), self._loop).result()

    def close(self) -> None:
        """End the browser, the thread and the loop."""
        asyncio.run_coroutine_threadsafe(self._open.aclose(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _draw(self, figures: Sequence[FigureJson], sizes: Sequence[dict[str, Any]], browser: str) -> list[bytes]:
        async with self._opening:
            if self._drawing is None:
                self._drawing = await self._open.enter_async_context(_open_browser(browser, tabs=_TABS))
        return await _drawn(self._drawing, figures, sizes)


_shared: Final[list[_SharedBrowser]] = []


def browser_path() -> str:
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
        raise DrawingError(f"BROWSER_PATH names {named}, which is not a program: correct it")
    browser = named or next(filter(None, map(shutil.which, (*_BROWSERS, *_PLACES))), None)
    if browser is None:
        raise DrawingError(
            "pictures are drawn by Chromium or Chrome, and none was found: install one (apt install chromium) or name "
            "it in BROWSER_PATH"
        )
    return browser


async def _draw(figures: Sequence[FigureJson], sizes: Sequence[dict[str, Any]], browser: str) -> list[bytes]:
    async with _open_browser(browser) as drawing:
        return await _drawn(drawing, figures, sizes)


@contextlib.asynccontextmanager
async def _open_browser(browser: str, *, tabs: int = 1) -> AsyncIterator[Any]:
    """Start a browser, and end it.

    On a busy machine one in many starts and never answers, and kaleido would wait for it for ever: another is started.
    """
    for attempt in range(1, _ATTEMPTS + 1):
        drawing = _kaleido(browser, tabs=tabs)
        try:
            async with asyncio.timeout(_OPENING_S) as opening:
                await drawing.open()
            break
        except Exception:  # not always TimeoutError: the library makes an error of its own of what interrupts it
            await _close(drawing)  # or a thread that reads what the browser logs keeps Python from ending
            if attempt == _ATTEMPTS or not opening.expired():
                raise
    try:
        yield drawing
    finally:
        await _close(drawing)


async def _close(drawing: Any) -> None:
    """End a browser.

    One that is slow to end fails nothing: what is interrupted is the wait for its last answer.
    """
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_CLOSING_S):
            await drawing.close()


def _kaleido(browser: str, *, tabs: int = 1) -> Any:
    from kaleido import Kaleido

    class Drawing(Kaleido):  # type: ignore[misc]
        """Kaleido, which draws the next figure in the page as it is.

        Its own way is to load the page again after each figure, and plotly with it, which takes longer than drawing.
        `Plotly.toImage`, which is all that is run there, removes what it made. After an error the page is loaded again.
        """

        async def _return_kaleido_tab(self, tab: Any) -> None:
            if sys.exception():
                await super()._return_kaleido_tab(tab)
            else:
                await self.tabs_ready.put(tab)

    # On a busy machine a message of the browser may come in pieces. It is ignored, with a traceback on standard error.
    logging.getLogger("choreographer.channels.pipe").setLevel(logging.CRITICAL)
    # MathJax would be loaded from the network, and would read dollar signs in names as formulas.
    return Drawing(n=tabs, mathjax=False, timeout=_DEADLINE_S, path=browser)


async def _drawn(drawing: Any, figures: Sequence[FigureJson], sizes: Sequence[dict[str, Any]]) -> list[bytes]:
    async with asyncio.timeout(_DEADLINE_S + _EACH_S * len(figures)):
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
