"""Figures as SVG inside a report: small, with names as text and nothing that runs."""

from __future__ import annotations

import re

from gamelens.notebook.reports.svg_figures import StyleSheet, inline
from support.hostile_names import Elements

SVG = """<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" width="920" height="420"
 onload="alert(1)"><defs id="unused"><clipPath id="clip1"><rect width="9.0000001" height="12.3456"/></clipPath>
 <clipPath id="clip2"><rect width="7" height="7"/></clipPath></defs>
 <script>alert(2)</script><foreignObject><img src="x"/></foreignObject><g class="plot"><g/>
 <path class="js-line" d="M1,2L3,4" clip-path="url(#clip1)" style="stroke: rgb(1, 2, 3); cursor: pointer"/>
 <path class="point" d="M2.5,0A2.5,2.5 0 1,1 0,-2.5A2.5,2.5 0 0,1 2.5,0Z" style="stroke: rgb(1, 2, 3);"/></g>
 <image href="http://tracker/x.png"/><image xlink:href="data:image/png;base64,AA=="/>
 <text data-unformatted="x" style="fill: url(&quot;#clip1&quot;); background: url(http://tracker/y)"><a
 xlink:href="javascript:alert(3)">Tile &lt;b&gt;</a></text></svg>"""


def test_a_still_keeps_shapes_and_words_and_nothing_that_acts() -> None:
    """An inlined SVG has shapes, texts and embedded images, and nothing that runs or loads."""
    sheet = StyleSheet()
    still = inline(SVG.encode(), sheet, number=3)
    tags = Elements(still).found
    assert [tag for tag, _ in tags] == [
        *("svg", "defs", "clippath", "rect", "path", "circle", "image", "image", "text", "tspan")
    ]
    assert not re.search(r"script|alert|tracker|foreign|onload|javascript|data-unformatted", still + sheet.css())
    assert "Tile &lt;b&gt;" in still
    assert 'href="data:image/png;base64,AA=="' in still


def test_a_still_has_ids_of_its_own_and_shares_styles() -> None:
    """Ids carry the number of the figure, unused ones are dropped, and styles are shared."""
    sheet = StyleSheet()
    still = inline(SVG.encode(), sheet, number=3)
    assert 'id="g3-0"' in still
    assert 'clip-path="url(#g3-0)"' in still
    assert "unused" not in still
    assert sheet.css().count("stroke:rgb(1, 2, 3)") == 1
    assert still.count('class="f0"') == 2


def test_a_still_is_exact_to_a_hundredth_of_a_pixel() -> None:
    """Numbers are rounded to hundredths of a pixel, and unused definitions dropped."""
    still = inline(SVG.encode(), StyleSheet(), number=0)
    assert '<rect width="9" height="12.35" />' in still
    assert 'width="7"' not in still


def test_a_still_grows_with_the_page() -> None:
    """The SVG has a view box but no size, and is hidden from screen readers."""
    attributes = Elements(inline(SVG.encode(), StyleSheet(), number=0)).found[0][1]
    assert attributes == {"aria-hidden": "true", "viewbox": "0 0 920 420"}
