"""The page of a report: frame and style sheet around the cells as nbconvert renders them.

A page is one file without external fonts, scripts or images. What cells and outputs contain is cleaned (`safe_markup`),
and the page's content security policy forbids every script but the two that draw interactive figures.
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
from itertools import count
from threading import Lock
from typing import Any, Final
from urllib.parse import unquote

from gamelens.notebook.figures.alt_text import alt_text, title_of
from gamelens.notebook.figures.browser_rendering import draw
from gamelens.notebook.reports.narrow_figures import NARROW, flat, narrow
from gamelens.notebook.reports.safe_markup import safe_markup
from gamelens.notebook.reports.svg_figures import WIDTH, StyleSheet, inline
from gamelens.notebook.tables.table_source import BADGE
from gamelens.receipt_text import day_text
from gamelens.receipts import package_version

FIGURE: Final = "application/vnd.plotly.v1+json"
WIDGET: Final = "application/vnd.jupyter.widget-view+json"
CONCLUSIONS: Final = "conclusions"
REMOVED: Final = "remove-cell"
SILENT: Final = "remove-output"
FOLDED: Final = "fold"
_ANSWER: Final = "gamelens_answer"
_FOLDED: Final = "gamelens_folded"
_FIRST: Final = "gamelens_first"
_SHEET: Final = re.compile("<style>.*?</style>", re.DOTALL)
_HEADING: Final = re.compile("<h2>(.*?)</h2>", re.DOTALL)
_SECTION_LINK: Final = re.compile(r'\s*<a href="#([^"]*)"[^>]*>(.*?)</a>', re.DOTALL)
_TABLE: Final = 'class="gamelens-table'
_BLANK: Final = "\n\n"
_LEAST_HEADINGS: Final = 3
_TALL_PX: Final = 600
_RUNS: Final = ("application/javascript", "text/javascript")
_POLICY: Final = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'; form-action 'none'"
)
_IN_SCRIPT: Final = str.maketrans(
    {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}
)


def page_of(document: Any, *, name: str, is_interactive: bool, parameters: Mapping[str, Any], made_at: datetime) -> str:
    """Return the page of an executed notebook as HTML.

    Args:
        document: the notebook. It is changed.
        name: file name of the notebook.
        is_interactive: True draws figures with plotly, False as SVG.
        parameters: names and values, shown at the end of the page.
        made_at: time of the run.

    Raises:
        DrawingError: figures are to be SVG, and this machine cannot draw them.
    """
    _arrange(document)
    outputs, sheet = _figure_outputs(document), StyleSheet()
    badge = _badge(document)
    figures = [_figure_json(output.data[FIGURE]) for output in outputs]
    if is_interactive:
        drawn = [_interactive_figure(figure, number) for number, figure in enumerate(figures)]
    else:
        wide = (
            flat(figure, is_first=_FIRST in output.metadata) for figure, output in zip(figures, outputs, strict=True)
        )
        pictures = draw([*wide, *map(narrow, figures)], "svg", width=WIDTH)
        stills = [inline(svg, sheet, number=number) for number, svg in enumerate(pictures)]
        both = zip(figures, stills[: len(figures)], stills[len(figures) :], strict=True)
        drawn = [_static_figure(figure, wide, small) for figure, wide, small in both]
        drawn = [
            _folded(still, title_of(figure)) if _FOLDED in output.metadata else still
            for still, figure, output in zip(drawn, figures, outputs, strict=True)
        ]
    return _html_document(
        badge + _cell_markup(document, outputs, drawn),
        title=_title(document) or name,
        style=f"{_asset('report.css')}\n{sheet.css()}",
        scripts=_plotly_scripts() if is_interactive and figures else "",
        foot=_footer(name, parameters, made_at),
    )


def _arrange(document: Any) -> None:
    """Move the conclusions up, and remove what is not for a page.

    The section whose heading is tagged `CONCLUSIONS` comes after the title. The tags `REMOVED` and `SILENT` are those
    of Jupyter Book. Tables and figures of cells tagged `FOLDED` open with a click, as does the text below a heading.
    """
    cells = [cell for cell in document.cells if REMOVED not in _tags(cell)]
    for cell in cells:
        if SILENT in _tags(cell) and "outputs" in cell:
            cell.outputs = []
        if FOLDED in _tags(cell):
            _fold(cell)
    begin = next((place for place, cell in enumerate(cells) if CONCLUSIONS in _tags(cell)), None)
    if begin is not None:
        after = (place for place in range(begin + 1, len(cells)) if _is_heading(cells[place]))
        end = next(after, len(cells))
        for cell in cells[begin:end]:
            cell.metadata[_ANSWER] = True
            for output in cell.get("outputs", []):
                if FIGURE in output.get("data", {}):
                    output.metadata[_FIRST] = True
        cells = [*cells[:1], *cells[begin:end], *cells[1:begin], *cells[end:]]
    document.cells = cells


def _fold(cell: Any) -> None:
    """Fold tables and printed lines of *cell*, mark its figures, and fold its paragraphs below a heading."""
    for output in cell.get("outputs", []):
        if output.output_type == "stream" and output.name == "stdout":
            printed = f"<pre>{html.escape(output.text.strip())}</pre>"
            output.clear()
            output |= {
                "output_type": "display_data",
                "metadata": {},
                "data": {"text/html": _folded(printed, "Details")},
            }
        elif FIGURE in output.get("data", {}):
            output.metadata[_FOLDED] = True
        elif table := str(output.get("data", {}).get("text/html", "")):
            label = re.search('aria-label="([^"]*)"', table) if _TABLE in table else None
            output.data["text/html"] = _folded(table, html.unescape(label[1]) if label else "Details")
    if cell.cell_type == "markdown":
        heading, _, text = cell.source.partition(_BLANK) if _is_heading(cell) else ("", "", cell.source)
        below = _folded(f"{_BLANK}{text}{_BLANK}", "How it is counted" if heading else "More") if text else ""
        cell.source = _BLANK.join(filter(None, (heading, below)))


def _folded(markup: str, summary: str) -> str:
    """Return *markup* below a line that opens it. Paper shows the line's page without it."""
    return f'<details class="folded"><summary>{html.escape(summary)}</summary>{markup}</details>'


def _is_heading(cell: Any) -> bool:
    return cell.cell_type == "markdown" and bool(re.match(r"#{1,2}\s", cell.source))


def _tags(cell: Any) -> list[str]:
    return list(cell.metadata.get("tags", []))


def _figure_outputs(document: Any) -> list[Any]:
    """Remove what a page does not show, and return the outputs with figures, in order.

    Removed are code cells without outputs, sections in which no code shows anything, such as that on the alarms of a
    calm day, and outputs that only a kernel can show.
    """
    document.metadata.pop("widgets", None)
    for cell in document.cells:
        if "outputs" in cell:
            cell.outputs = [part for output in cell.outputs for part in _visible_outputs(output)]
    document.cells = [
        cell for cell in _without_silent_sections(document.cells) if cell.get("outputs") or cell.cell_type == "markdown"
    ]
    outputs = (output for cell in document.cells for output in cell.get("outputs", []))
    return [output for output in outputs if FIGURE in output.get("data", {})]


def _without_silent_sections(cells: Sequence[Any]) -> list[Any]:
    """Return *cells* without the sections, but for the first, that have code and no output."""
    sections: list[list[Any]] = []
    for cell in cells:
        if _is_heading(cell) or not sections:
            sections.append([])
        sections[-1].append(cell)
    outputs = ([cell.outputs for cell in section if "outputs" in cell and not _tags(cell)] for section in sections[1:])
    shown = [
        section
        for section, section_outputs in zip(sections[1:], outputs, strict=True)
        if any(section_outputs) or not section_outputs
    ]
    return [cell for section in [*sections[:1], *shown] for cell in section]


def _visible_outputs(output: Any) -> list[Any]:
    """Return the visible parts of *output*: no scripts, and the static view of a widget."""
    if output.output_type == "stream":
        return [output] if output.name == "stdout" else []
    data = output.get("data", {})
    if data.pop(WIDGET, None) is not None:
        return [_with_one_type(output, kind) for kind in ("text/html", FIGURE) if kind in data]
    scripts = [data.pop(kind) for kind in _RUNS if kind in data]
    return [] if scripts and not data.keys() - {"text/plain"} else [output]


def _with_one_type(output: Any, kind: str) -> Any:
    """Return *output* with one of its MIME types: a widget's table and figure are two outputs."""
    part = copy(output)
    part["data"] = {kind: output.data[kind]}
    return part


def _badge(document: Any) -> str:
    """Return the badge of a page with simulated numbers, else an empty text."""
    shown = [output.get("data", {}) for cell in document.cells for output in cell.get("outputs", [])]
    tables = (str(bundle.get("text/html", "")) for bundle in shown)
    is_simulated = any(map(_is_badged, shown)) or any(f'class="{BADGE}"' in table for table in tables)
    about = "<b>demo data</b> Numbers on this page come from invented players in a sandbox."
    return f'<p class="badge" role="note">{about}</p>\n' if is_simulated else ""


def _is_badged(bundle: Mapping[str, Any]) -> bool:
    """Return whether a figure of ours in *bundle* has the badge of simulated numbers."""
    meta = ((bundle.get(FIGURE) or {}).get("layout") or {}).get("meta")
    return isinstance(meta, Mapping) and bool(meta.get("badge"))


def _figure_json(figure: Mapping[str, Any]) -> dict[str, Any]:
    return {"data": figure.get("data", []), "layout": figure.get("layout", {})}


def _static_figure(figure: Mapping[str, Any], wide: str, small: str) -> str:
    """Return a figure in two widths. The style sheet shows one of them."""
    label = html.escape(alt_text(figure))
    is_tall = int((figure.get("layout") or {}).get("height") or 0) > _TALL_PX
    stills = f'<div class="wide">{wide}</div><div class="narrow" style="max-width:{NARROW + 60}px">{small}</div>'
    tall = " tall" if is_tall else ""
    return f'<figure class="still{tall}{_paper_class(figure)}" role="img" aria-label="{label}">{stills}</figure>'


def _interactive_figure(figure: Mapping[str, Any], number: int) -> str:
    """Return a placeholder for a figure, and its JSON in a script element that never runs."""
    layout = {**figure.get("layout", {})}
    height = int(layout.get("height") or _template(figure).get("height") or 420)
    facts = json.dumps({"data": figure.get("data", []), "layout": layout}, separators=(",", ":")).translate(_IN_SCRIPT)
    return (
        f'<figure class="live{_paper_class(figure)}" aria-label="{html.escape(alt_text(figure))}" '
        f'style="min-height:{height}px">'
        f'<div class="plotly-graph-div" id="figure-{number}"></div>'
        f'<script type="application/json" data-figure="figure-{number}">{facts}</script></figure>'
    )


def _paper_class(figure: Mapping[str, Any]) -> str:
    """Return the CSS class of figures on a light background. Dark mode inverts them."""
    layout = figure.get("layout") or {}
    paper = str(layout.get("paper_bgcolor") or _template(figure).get("paper_bgcolor") or "").lower()
    channels = re.fullmatch("#([0-9a-f]{2})([0-9a-f]{2})([0-9a-f]{2})", paper)
    return "" if channels and sum(int(channel, 16) for channel in channels.groups()) < 3 * 128 else " light"


def _template(figure: Mapping[str, Any]) -> Mapping[str, Any]:
    return ((figure.get("layout") or {}).get("template") or {}).get("layout") or {}


def _cell_markup(document: Any, outputs: Sequence[Any], drawn: Sequence[str]) -> str:
    """Return the cells as markup, with the figures *drawn* in place of *outputs*.

    The figures are inserted last, in place of a token, because the exporter would parse and rewrite all their tags.
    """
    token = secrets.token_hex(16)
    for number, output in enumerate(outputs):
        del output.data[FIGURE]
        output.data["text/html"] = f"{token}:{number}:"
    with _exporting:
        title, answer, rest = (_rendered(_exporter(), document, cells) for cells in _parts(document.cells))
    answer = f'<section class="answer">{_with_section_links(answer, rest)}</section>' if answer else ""
    page = _with_sheets_once(title + answer + _with_contents(rest))
    return re.sub(rf"{token}:(\d+):", lambda match: drawn[int(match[1])], page)


def _with_sheets_once(markup: str) -> str:
    """Return *markup* with each style sheet where it comes first: every table and every row of tiles brings its own."""
    first = {sheet[0]: sheet.start() for sheet in reversed([*_SHEET.finditer(markup)])}
    return _SHEET.sub(lambda sheet: sheet[0] if first[sheet[0]] == sheet.start() else "", markup)


_exporting: Final = Lock()
"""An exporter keeps the notebook that it converts."""


@cache
def _exporter() -> Any:
    """Return the exporter of this process, whose templates take 0.1 s to compile."""
    from nbconvert import HTMLExporter

    return HTMLExporter(  # type: ignore[no-untyped-call]
        template_name="basic",
        exclude_input=True,
        exclude_input_prompt=True,
        exclude_output_prompt=True,
        exclude_anchor_links=True,
        sanitize_html=True,
        filters={"clean_html": safe_markup},  # of each cell and output, so that none can swallow the next
    )


def _parts(cells: Sequence[Any]) -> tuple[list[Any], list[Any], list[Any]]:
    """Return the cells before the conclusions, the conclusions, and the cells after. The title is before them."""
    answer = [cell for cell in cells if _ANSWER in cell.metadata]
    others = [cell for cell in cells if _ANSWER not in cell.metadata]
    return others[:1], answer, others[1:]


def _rendered(exporter: Any, document: Any, cells: list[Any]) -> str:
    """Return *cells* of *document* as safe markup, empty without any."""
    part = copy(document)
    part["cells"] = cells
    return safe_markup(str(exporter.from_notebook_node(part)[0])) if cells else ""


def _with_contents(markup: str) -> str:
    """Return *markup* with an anchor at each section, below a list of links to them if there are several."""
    numbers = count(1)
    headings = [re.sub("<[^>]+>", "", text).strip() for text in _HEADING.findall(markup)]
    anchored = _HEADING.sub(lambda match: f'<h2 id="section-{next(numbers)}">{match[1]}</h2>', markup)
    items = "".join(f'<li><a href="#section-{place}">{text}</a></li>' for place, text in enumerate(headings, start=1))
    is_long = len(headings) >= _LEAST_HEADINGS
    return (f'<nav class="contents" aria-label="Contents"><ul>{items}</ul></nav>' if is_long else "") + anchored


def _with_section_links(markup: str, rest: str) -> str:
    """Return *markup* with links to the sections of *rest* by their numbers, without those that lead nowhere."""
    headings = _HEADING.findall(rest)
    places = {_plain(heading).replace(" ", "-"): place for place, heading in enumerate(headings, start=1)}

    def linked(link: re.Match[str]) -> str:
        place = places.get(html.unescape(unquote(link[1])))
        return f' <a class="to-section" href="#section-{place}">{link[2]}</a>' if place else ""

    return _SECTION_LINK.sub(linked, markup)


def _plain(heading: str) -> str:
    """Return a heading's markup as text."""
    return html.unescape(re.sub("<[^>]+>", "", heading)).strip()


def _plotly_scripts() -> str:
    """Return plotly, compressed, and the script that unpacks it and draws the figures."""
    library = f'<script type="text/plain" id="plotly">{_compressed_plotly()}</script>'
    return f'{library}\n<script nonce="NONCE">{_asset("report.js")}</script>'


@cache
def _compressed_plotly() -> str:
    from plotly.offline import get_plotlyjs

    return base64.b64encode(zlib.compress(get_plotlyjs().encode(), 9)).decode()


def _html_document(content: str, *, title: str, style: str, scripts: str, foot: str) -> str:
    """Return the whole page, with a policy that allows *scripts* by a nonce."""
    nonce = secrets.token_urlsafe(18)  # chosen after the outputs were written, so that none of them can contain it
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
    """Return the first heading of the notebook, or an empty text."""
    for cell in document.cells:
        if cell.cell_type == "markdown" and (heading := re.search(r"^#\s+(.+)$", cell.source, re.MULTILINE)):
            return str(heading[1]).strip()
    return ""


def _footer(name: str, parameters: Mapping[str, Any], made_at: datetime) -> str:
    """Return the last line of the page: notebook, version, time and parameters."""
    text = f"{name}, run with gamelens {package_version()} on {day_text(made_at)} at {made_at:%H:%M} UTC"
    values = ", ".join(f"{name} = {value!r}" for name, value in parameters.items())
    return html.escape(f"{text}; {values}" if values else text)


def _asset(name: str) -> str:
    return (resources.files("gamelens") / "notebook" / "reports" / "page" / name).read_text(encoding="utf-8").strip()
