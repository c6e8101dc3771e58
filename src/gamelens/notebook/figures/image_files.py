"""Figures as files: images drawn by a local browser, and HTML pages. Downloads nothing."""

from __future__ import annotations

import html
import os
import re
from pathlib import Path
from typing import Final

from plotly import io
from plotly.graph_objects import Figure

from gamelens._files import replace_file
from gamelens.errors import BadQuery, Refused
from gamelens.notebook.figures.alt_text import alt_text
from gamelens.notebook.figures.browser_rendering import DrawingError, draw

PICTURES: Final = (".png", ".svg", ".pdf", ".webp", ".jpg")
PAGE: Final = ".html"
WIDTH: Final = 960
_ROOT: Final = re.compile(r"<svg\b[^>]*>")


def save(figure: Figure, path: str | os.PathLike[str], *, width: int = WIDTH, scale: float = 2) -> Path:
    """Write *figure* to a .png, .svg, .pdf, .webp, .jpg or .html file and return its path.

    An image is as high as the figure says. An .html file contains plotly and needs no network. The alternative text is
    the title and description of an SVG, and the label of the figure in a page.

    Args:
        figure: a plotly figure.
        path: its suffix selects the kind of file.
        width: of an image, in pixels.
        scale: dots per pixel of an image that is not SVG or PDF.

    Raises:
        BadQuery: the suffix is another one, or the folder does not exist.
        Refused: kaleido or a browser is missing. The message says how to install it.
    """
    target = Path(path).expanduser()
    kind = target.suffix.lower()
    if kind not in (*PICTURES, PAGE):
        raise BadQuery("path", str(path), "does not end in a known file type", [*PICTURES, PAGE])
    if not target.parent.is_dir():
        raise BadQuery("path", str(path), f"is in a folder that does not exist: create {target.parent} first")
    content = _page(figure) if kind == PAGE else _picture(figure, kind[1:], width, scale)
    with replace_file(target) as draft:
        draft.write_bytes(content)
    return target


def _page(figure: Figure) -> bytes:
    """Return *figure* as an HTML page with plotly inside."""
    alt = html.escape(alt_text(figure), quote=True)
    plot = io.to_html(figure, include_plotlyjs=True, full_html=False, config={"displaylogo": False, "responsive": True})
    paper = figure.layout.template.layout.paper_bgcolor or "#ffffff"
    head = f'<meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{alt}</title>'
    labelled = f'<div role="img" aria-label="{alt}">{plot}</div>'
    body = f'<body style="margin:0;background:{html.escape(paper)}">{labelled}</body>'
    return f'<!DOCTYPE html>\n<html lang="en"><head>{head}</head>\n{body}</html>\n'.encode()


def _picture(figure: Figure, kind: str, width: int, scale: float) -> bytes:
    """Return *figure* as an image.

    Raises:
        Refused: it cannot be drawn on this machine.
    """
    try:
        (picture,) = draw([figure.to_dict()], kind, width=width, scale=scale)
    except DrawingError as error:
        raise Refused(f"{error}, or save a .html") from error
    return _with_description(picture.decode(), alt_text(figure)).encode() if kind == "svg" else picture


def _with_description(svg: str, alt: str) -> str:
    """Return *svg* with *alt* as its title and description."""
    title, _, rest = alt.partition(". ")
    words = f"<title>{html.escape(title)}</title><desc>{html.escape(rest or title)}</desc>"
    root = _ROOT.search(svg)
    if root is None:
        raise Refused("the browser drew no SVG: save a .png or .html")
    labelled = root[0][:-1] + f' role="img" aria-label="{html.escape(title, quote=True)}">'
    return svg[: root.start()] + labelled + words + svg[root.end() :]
