"""A report's page: one file, small, and nothing in it that comes from outside can run."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from html.parser import HTMLParser
from typing import Any

import nbformat
import pytest

from gamelens.notebook.figures.alt_text import alt_text
from gamelens.notebook.reports.html_page import FIGURE, WIDGET, page_of
from gamelens.notebook.reports.svg_figures import StyleSheet, inline

HOSTILE = "</script><img src=x onerror=alert(1)>"
MADE_AT = datetime(2026, 11, 20, 10, 30, tzinfo=UTC)
SVG = """<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" width="920" height="420"
 onload="alert(1)"><defs id="unused"><clipPath id="clip1"><rect width="9.0000001" height="12.3456"/></clipPath>
 <clipPath id="clip2"><rect width="7" height="7"/></clipPath></defs>
 <script>alert(2)</script><foreignObject><img src="x"/></foreignObject><g class="plot"><g/>
 <path class="js-line" d="M1,2L3,4" clip-path="url(#clip1)" style="stroke: rgb(1, 2, 3); cursor: pointer"/>
 <path class="point" d="M2.5,0A2.5,2.5 0 1,1 0,-2.5A2.5,2.5 0 0,1 2.5,0Z" style="stroke: rgb(1, 2, 3);"/></g>
 <image href="http://tracker/x.png"/><image xlink:href="data:image/png;base64,AA=="/>
 <text data-unformatted="x" style="fill: url(&quot;#clip1&quot;); background: url(http://tracker/y)"><a
 xlink:href="javascript:alert(3)">Tile &lt;b&gt;</a></text></svg>"""


class Tags(HTMLParser):
    """Elements of a page with their attributes, as a browser sees them."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def shown(*outputs: Any, is_interactive: bool = True) -> str:
    cells = [nbformat.v4.new_markdown_cell("# Who pays & why")]
    cells += [nbformat.v4.new_code_cell("secret_code()", outputs=[output]) for output in outputs]
    document = nbformat.v4.new_notebook(cells=cells)
    return page_of(document, name="a.ipynb", is_interactive=is_interactive, parameters={"over": "<b>"}, made_at=MADE_AT)


def displayed(**data: Any) -> Any:
    names = {"html": "text/html", "plain": "text/plain", "figure": FIGURE, "widget": WIDGET}
    return nbformat.v4.new_output("display_data", {names.get(name, name): value for name, value in data.items()})


def figure(text: str = HOSTILE, **layout: Any) -> dict[str, Any]:
    return {
        "data": [{"type": "bar", "x": [1], "y": [text], "name": text}],
        "layout": {"title": {"text": text}, **layout},
    }


def test_a_page_has_title_outputs_and_foot_and_no_code() -> None:
    page = shown(displayed(html="<table class='dataframe'><tr><td>7</td></tr></table>"))
    assert "<title>Who pays &amp; why</title>" in page
    assert ("<td>7</td>" in page, "secret_code" in page) == (True, False)
    assert "a.ipynb, run with gamelens" in page
    assert "on 20 Nov 2026 at 10:30 UTC; over = &#x27;&lt;b&gt;&#x27;" in page


def test_a_page_without_figures_is_small_and_allows_no_script() -> None:
    page = shown(displayed(plain="7"))
    assert len(page) < 10_000
    assert "script-src" not in page
    assert "default-src 'none'" in page


def test_hostile_names_in_a_figure_stay_text() -> None:
    """The only elements are the frame's own, and the figure is read back as it was."""
    page = shown(displayed(figure=figure()))
    tags = Tags(re.sub(r'(<script type="text/plain" id="plotly">)[^<]*', r"\1", page)).found
    assert not [tag for tag, attributes in tags if tag == "img" or any(name.startswith("on") for name in attributes)]
    facts = re.search(r'data-figure="figure-0">(.*?)</script>', page)
    assert facts
    assert json.loads(facts[1])["data"][0]["name"] == HOSTILE


def test_scripts_that_run_carry_a_nonce_of_this_page_alone() -> None:
    pages = [shown(displayed(figure=figure())) for _ in range(2)]
    nonces = [re.findall(r"nonce[-=]['\"]?([\w-]{20,})", page) for page in pages]
    assert [len(found) for found in nonces] == [2, 2]
    assert nonces[0][0] == nonces[0][1] != nonces[1][0]


def test_an_interactive_page_brings_plotly_packed() -> None:
    assert 1_000_000 < len(shown(displayed(figure=figure()))) < 2_500_000


def test_a_widget_is_its_twin_and_without_one_nothing() -> None:
    view = {"model_id": "abc", "version_major": 2}
    page = shown(
        displayed(widget=view, plain="IntProgress(value=0)"), displayed(widget=view, html="<p>the twin</p>", plain="x")
    )
    assert ("IntProgress" in page, "the twin" in page, "model_id" in page) == (False, True, False)


def test_a_widgets_table_and_figure_are_both_shown() -> None:
    page = shown(displayed(widget={"model_id": "abc"}, html="<p>the twin</p>", figure=figure(), plain="x"))
    assert page.index("the twin") < page.index('id="figure-0"')


def test_what_only_runs_is_left_out() -> None:
    page = shown(displayed(**{"application/javascript": "alert(1)", "plain": "<IPython.core.display.Javascript>"}))
    assert "alert" not in page
    assert "IPython" not in page


def test_standard_error_is_not_for_readers() -> None:
    page = shown(
        nbformat.v4.new_output("stream", name="stderr", text="/home/me/x.py: UserWarning"),
        nbformat.v4.new_output("stream", name="stdout", text="seven"),
    )
    assert ("UserWarning" in page, "seven" in page) == (False, True)


@pytest.mark.parametrize(
    ("layout", "words"),
    [
        ({"meta": {"alt": "Revenue rises."}, "title": {"text": "x"}}, "Revenue rises."),
        (
            {"title": {"text": "<b>Ads &#38; money</b><br><span style='x'>USD per day</span>"}},
            "Ads & money USD per day.",
        ),
        ({}, "A figure."),
    ],
)
def test_a_figure_says_what_it_shows(layout: dict[str, Any], words: str) -> None:
    assert alt_text({"layout": layout}) == words


def test_a_still_keeps_shapes_and_words_and_nothing_that_acts() -> None:
    sheet = StyleSheet()
    still = inline(SVG.encode(), sheet, number=3)
    tags = Tags(still).found
    assert [tag for tag, _ in tags] == [
        *("svg", "defs", "clippath", "rect", "path", "circle", "image", "image", "text", "tspan")
    ]
    assert not re.search(r"script|alert|tracker|foreign|onload|javascript|data-unformatted", still + sheet.css())
    assert "Tile &lt;b&gt;" in still
    assert 'href="data:image/png;base64,AA=="' in still


def test_a_still_has_ids_of_its_own_and_shares_looks() -> None:
    sheet = StyleSheet()
    still = inline(SVG.encode(), sheet, number=3)
    assert 'id="g3-0"' in still
    assert 'clip-path="url(#g3-0)"' in still
    assert "unused" not in still
    assert sheet.css().count("stroke:rgb(1, 2, 3)") == 1
    assert still.count('class="f0"') == 2


def test_a_still_holds_what_is_used_to_a_hundredth_of_a_pixel() -> None:
    still = inline(SVG.encode(), StyleSheet(), number=0)
    assert '<rect width="9" height="12.35" />' in still
    assert 'width="7"' not in still


def test_a_still_grows_with_the_page() -> None:
    attributes = Tags(inline(SVG.encode(), StyleSheet(), number=0)).found[0][1]
    assert attributes == {"aria-hidden": "true", "viewbox": "0 0 920 420"}


@pytest.mark.parametrize(
    ("paper", "is_turned"), [("#ffffff", True), ("#fff", True), ("white", True), ("#14191f", False)]
)
def test_only_a_light_figure_is_turned_around_in_the_dark(paper: str, is_turned: bool) -> None:
    page = shown(displayed(figure=figure(template={"layout": {"paper_bgcolor": paper}})))
    assert ('class="live light"' in page) == is_turned
