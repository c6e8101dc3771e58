"""A figure as a file: a picture drawn by a browser of this machine, or a page of its own. Nothing is fetched."""

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
    """Write *figure* to *path* and return it: .png, .svg, .pdf, .webp, .jpg, or .html, which needs no network.

    A picture is *width* pixels wide and as high as the figure says; a .png has *scale* dots a pixel. An SVG has the
    text alternative as its title and description, a page as the label of its figure.

    Raises:
        BadQuery: another kind of file, or a folder that is not there.
        Refused: kaleido or a browser to draw with is missing; says how to get it. Neither is ever downloaded.
    """
    target = Path(path).expanduser()
    kind = target.suffix.lower()
    if kind not in (*PICTURES, PAGE):
        raise BadQuery("path", str(path), "ends in none of the kinds there are", [*PICTURES, PAGE])
    if not target.parent.is_dir():
        raise BadQuery("path", str(path), f"lies in no folder: make {target.parent} first")
    drawn = _page(figure) if kind == PAGE else _picture(figure, kind[1:], width, scale)
    with replace_file(target) as draft:
        draft.write_bytes(drawn)
    return target


def _page(figure: Figure) -> bytes:
    said = html.escape(alt_text(figure), quote=True)
    drawn = io.to_html(
        figure, include_plotlyjs=True, full_html=False, config={"displaylogo": False, "responsive": True}
    )
    paper = figure.layout.template.layout.paper_bgcolor or "#ffffff"
    head = f'<meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{said}</title>'
    drawn = f'<div role="img" aria-label="{said}">{drawn}</div>'
    body = f'<body style="margin:0;background:{html.escape(paper)}">{drawn}</body>'
    return f'<!DOCTYPE html>\n<html lang="en"><head>{head}</head>\n{body}</html>\n'.encode()


def _picture(figure: Figure, kind: str, width: int, scale: float) -> bytes:
    try:
        (drawn,) = draw([figure.to_dict()], kind, width=width, scale=scale)
    except DrawingError as error:
        raise Refused(f"{error}, or save a .html") from error
    return _described(drawn.decode(), alt_text(figure)).encode() if kind == "svg" else drawn


def _described(svg: str, said: str) -> str:
    """*svg* with *said* as its title and description."""
    title, _, rest = said.partition(". ")
    words = f"<title>{html.escape(title)}</title><desc>{html.escape(rest or title)}</desc>"
    root = _ROOT.search(svg)
    if root is None:
        raise Refused("the browser drew no SVG: save a .png or .html")
    labelled = root[0][:-1] + f' role="img" aria-label="{html.escape(title, quote=True)}">'
    return svg[: root.start()] + labelled + words + svg[root.end() :]
