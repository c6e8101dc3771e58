"""The page of a report: own frame and style sheet around what nbconvert makes of the cells.

A page is one file that needs nobody: no network, no fonts, no scripts of others. Its own policy forbids every script
but the two that draw interactive figures, so that nothing a title, a network or an output holds can ever run.
"""

from __future__ import annotations

import base64
import html
import json
import re
import secrets
import zlib
from collections.abc import Mapping, Sequence
from copy import copy
from datetime import datetime
from functools import cache
from importlib import resources
from typing import Any, Final

from gamelens.notebook.figures.alt_text import alt_text
from gamelens.notebook.figures.browser_rendering import draw
from gamelens.notebook.labels import day
from gamelens.notebook.reports.svg_figures import WIDTH, StyleSheet, inline
from gamelens.wire.receipts import package_version

FIGURE: Final = "application/vnd.plotly.v1+json"
WIDGET: Final = "application/vnd.jupyter.widget-view+json"
_RUNS: Final = ("application/javascript", "text/javascript")
_POLICY: Final = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'; form-action 'none'"
)
_IN_SCRIPT: Final = str.maketrans(
    {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}
)


def page_of(document: Any, *, name: str, is_interactive: bool, parameters: Mapping[str, Any], made_at: datetime) -> str:
    """The report of a notebook that has run, as HTML; *name* is the notebook's.

    Raises:
        DrawingError: its figures are to stand still, and this machine cannot draw them.
    """
    outputs, sheet = _figures(document), StyleSheet()
    figures = [_plain(output.data[FIGURE]) for output in outputs]
    if is_interactive:
        drawn = [_live(figure, number) for number, figure in enumerate(figures)]
    else:
        stills = [inline(svg, sheet, number=number) for number, svg in enumerate(draw(figures, "svg", width=WIDTH))]
        drawn = [_still(figure, svg) for figure, svg in zip(figures, stills, strict=True)]
    return _framed(
        _cells(document, outputs, drawn),
        title=_title(document) or name,
        style=f"{_shipped('report.css')}\n{sheet.css()}",
        scripts=_plotly() if is_interactive and figures else "",
        foot=_foot(name, parameters, made_at),
    )


def _figures(document: Any) -> list[Any]:
    """Leave out what nobody reads or only a kernel can show; the outputs with figures, in order."""
    document.metadata.pop("widgets", None)
    for cell in document.cells:
        if "outputs" in cell:
            cell.outputs = [part for output in cell.outputs for part in _readable(output)]
    document.cells = [cell for cell in document.cells if cell.get("outputs") or cell.cell_type == "markdown"]
    outputs = (output for cell in document.cells for output in cell.get("outputs", []))
    return [output for output in outputs if FIGURE in output.get("data", {})]


def _readable(output: Any) -> list[Any]:
    """What of *output* a reader sees: nothing that runs, and for a widget what stands beside its view."""
    if output.output_type == "stream":
        return [output] if output.name == "stdout" else []
    data = output.get("data", {})
    if data.pop(WIDGET, None) is not None:
        return [_only(output, kind) for kind in ("text/html", FIGURE) if kind in data]
    scripts = [data.pop(kind) for kind in _RUNS if kind in data]
    return [] if scripts and not data.keys() - {"text/plain"} else [output]


def _only(output: Any, kind: str) -> Any:
    """*output* in one of its forms: a widget's table and figure are two things to see."""
    part = copy(output)
    part["data"] = {kind: output.data[kind]}
    return part


def _plain(figure: Mapping[str, Any]) -> dict[str, Any]:
    return {"data": figure.get("data", []), "layout": figure.get("layout", {})}


def _still(figure: Mapping[str, Any], svg: str) -> str:
    return (
        f'<figure class="still{_light(figure)}" role="img" aria-label="{html.escape(alt_text(figure))}">{svg}</figure>'
    )


def _live(figure: Mapping[str, Any], number: int) -> str:
    """A place for a figure and, in a script that is no program, what to draw there."""
    layout = {**figure.get("layout", {})}
    height = int(layout.get("height") or _template(figure).get("height") or 420)
    facts = json.dumps({"data": figure.get("data", []), "layout": layout}, separators=(",", ":")).translate(_IN_SCRIPT)
    return (
        f'<figure class="live{_light(figure)}" aria-label="{html.escape(alt_text(figure))}" '
        f'style="min-height:{height}px">'
        f'<div class="plotly-graph-div" id="figure-{number}"></div>'
        f'<script type="application/json" data-figure="figure-{number}">{facts}</script></figure>'
    )


def _light(figure: Mapping[str, Any]) -> str:
    """The class of a figure on light paper, which is turned around for a reader in the dark."""
    layout = figure.get("layout") or {}
    paper = str(layout.get("paper_bgcolor") or _template(figure).get("paper_bgcolor") or "").lower()
    known = re.fullmatch("#([0-9a-f]{2})([0-9a-f]{2})([0-9a-f]{2})", paper)
    return "" if known and sum(int(part, 16) for part in known.groups()) < 3 * 128 else " light"


def _template(figure: Mapping[str, Any]) -> Mapping[str, Any]:
    return ((figure.get("layout") or {}).get("template") or {}).get("layout") or {}


def _cells(document: Any, outputs: Sequence[Any], drawn: Sequence[str]) -> str:
    """The cells as markup, and in it, for each of the *outputs*, what is *drawn*.

    That goes in last, where a token stood: the exporter would read every tag of it, and write it in its own way.
    """
    from nbconvert import HTMLExporter

    token = secrets.token_hex(16)
    for number, output in enumerate(outputs):
        del output.data[FIGURE]
        output.data["text/html"] = f"{token}:{number}:"
    exporter = HTMLExporter(  # type: ignore[no-untyped-call]
        template_name="basic",
        exclude_input=True,
        exclude_input_prompt=True,
        exclude_output_prompt=True,
        exclude_anchor_links=True,
    )
    content, _ = exporter.from_notebook_node(document)
    return re.sub(rf"{token}:(\d+):", lambda found: drawn[int(found[1])], str(content))


def _plotly() -> str:
    """plotly, packed, and the few lines that unpack it and draw."""
    library = f'<script type="text/plain" id="plotly">{_packed()}</script>'
    return f'{library}\n<script nonce="NONCE">{_shipped("report.js")}</script>'


@cache
def _packed() -> str:
    from plotly.offline import get_plotlyjs

    return base64.b64encode(zlib.compress(get_plotlyjs().encode(), 9)).decode()


def _framed(content: str, *, title: str, style: str, scripts: str, foot: str) -> str:
    nonce = secrets.token_urlsafe(18)  # nobody could know it when the outputs were written
    allowed = f"; script-src 'nonce-{nonce}'" if scripts else ""
    policy = f"{_POLICY}{allowed}"
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{html.escape(title)}</title>
<style>{style}</style>
</head>
<body>
<main>
{content}
</main>
<footer>{foot}</footer>
{scripts.replace("NONCE", nonce, 1)}
</body>
</html>
"""


def _title(document: Any) -> str:
    """The first heading."""
    for cell in document.cells:
        if cell.cell_type == "markdown" and (found := re.search(r"^#\s+(.+)$", cell.source, re.MULTILINE)):
            return str(found[1]).strip()
    return ""


def _foot(name: str, parameters: Mapping[str, Any], made_at: datetime) -> str:
    told = f"{name}, run with gamelens {package_version()} on {day(made_at)} at {made_at:%H:%M} UTC"
    values = ", ".join(f"{name} = {value!r}" for name, value in parameters.items())
    return html.escape(f"{told}; {values}" if values else told)


def _shipped(name: str) -> str:
    return (resources.files("gamelens") / "notebook" / "reports" / "page" / name).read_text(encoding="utf-8").strip()
