"""A report's HTML page: one small file in which nothing from outside can run."""

from __future__ import annotations

import html
import json
import re
from datetime import UTC, datetime
from typing import Any

import pytest
from nbformat import NotebookNode

from gamelens.notebook.figures.alt_text import alt_text
from gamelens.notebook.reports.html_page import FIGURE, WIDGET, page_of
from support.hostile_names import Elements
from support.notebook_files import code_cell, markdown_cell, new_output, notebook_of

HOSTILE = "</script><img src=x onerror=alert(1)>"
MADE_AT = datetime(2026, 11, 20, 10, 30, tzinfo=UTC)


def shown(*outputs: NotebookNode, is_interactive: bool = True) -> str:
    """Return the page of a notebook with *outputs*."""
    cells = [code_cell("secret_code()", outputs=[output]) for output in outputs]
    document = notebook_of(markdown_cell("# Who pays & why"), *cells)
    return page_of(document, name="a.ipynb", is_interactive=is_interactive, parameters={"over": "<b>"}, made_at=MADE_AT)


def displayed(**data: object) -> NotebookNode:
    """Return a displayed output of the given kinds of data."""
    names = {"html": "text/html", "plain": "text/plain", "figure": FIGURE, "widget": WIDGET}
    return new_output("display_data", {names.get(name, name): value for name, value in data.items()})


def figure(text: str = HOSTILE, **layout: Any) -> dict[str, Any]:
    """Return a figure with *text* as title, name and value, as JSON."""
    return {
        "data": [{"type": "bar", "x": [1], "y": [text], "name": text}],
        "layout": {"title": {"text": text}, **layout},
    }


def test_a_page_has_title_outputs_and_foot_and_no_code() -> None:
    """A page has title, outputs and a footer with file, time and parameters, but no code."""
    page = shown(displayed(html="<table class='dataframe'><tr><td>7</td></tr></table>"))
    assert "<title>Who pays &amp; why</title>" in page
    assert ("<td>7</td>" in page, "secret_code" in page) == (True, False)
    assert "a.ipynb, run with gamelens" in page
    assert "on 20 Nov 2026 at 10:30 UTC; over = &#x27;&lt;b&gt;&#x27;" in page


def test_a_section_whose_code_shows_nothing_is_left_out() -> None:
    """Its heading and text are left out too; the title and a section without code stay."""
    cells = [
        markdown_cell("# Health"),
        code_cell("setup()"),
        markdown_cell("## What stands out"),
        markdown_cell("The alarms."),
        code_cell("if alarms: ..."),
        markdown_cell("## Notes"),
        markdown_cell("Only text."),
        markdown_cell("## Levels"),
        code_cell("levels", outputs=[displayed(plain="7")]),
    ]
    page = page_of(notebook_of(*cells), name="a.ipynb", is_interactive=True, parameters={}, made_at=MADE_AT)
    shown_texts = ("Health</h1>", "What stands out", "The alarms.", "Notes", "Only text.", "Levels")
    assert [text in page for text in shown_texts] == [True, False, False, True, True, True]


@pytest.mark.parametrize(
    ("output", "is_simulated"),
    [
        ({"figure": {"data": [], "layout": {"meta": {"badge": "demo data"}}}}, True),
        ({"html": '<b class="gamelens-badge">demo data</b>'}, True),
        ({"figure": {"data": [], "layout": {"meta": {"alt": "demo data"}}}}, False),
        ({"figure": {"data": [], "layout": {"meta": ["badge"]}}}, False),
        ({"html": "<p>demo data &lt;b class=&quot;gamelens-badge&quot;&gt;</p>"}, False),
    ],
)
def test_a_page_with_simulated_numbers_has_a_badge(output: dict[str, Any], is_simulated: bool) -> None:
    """The badge is on top of the page, before the title, if a figure or a table has it."""
    page = shown(displayed(**output))
    assert ('<main>\n<p class="badge" role="note"><b>demo data</b>' in page) is is_simulated


def test_a_page_without_figures_is_small_and_allows_no_script() -> None:
    """A page without figures is under 10 kB, and its policy allows no scripts."""
    page = shown(displayed(plain="7"))
    assert len(page) < 10_000
    assert "script-src" not in page
    assert "default-src 'none'" in page


def test_hostile_names_in_a_figure_stay_text() -> None:
    """The page has only its own elements, and the JSON of the figure is unchanged."""
    page = shown(displayed(figure=figure()))
    tags = Elements(re.sub(r'(<script type="text/plain" id="plotly">)[^<]*', r"\1", page)).found
    assert not [tag for tag, attributes in tags if tag == "img" or any(name.startswith("on") for name in attributes)]
    facts = re.search(r'data-figure="figure-0">(.*?)</script>', page)
    assert facts
    assert json.loads(facts[1])["data"][0]["name"] == HOSTILE


HARMFUL = {
    "a redirection": '<meta http-equiv="refresh" content="0;url=http://evil.example">',
    "a cookie": '<META HTTP-EQUIV="Set-Cookie" CONTENT="a=b">',
    "a redirection in an attribute": """<p title='"><meta http-equiv=refresh content=0>'>x</p>""",
    "a redirection behind a comment": "<!--><meta http-equiv=refresh content=0>-->",
    "a redirection in a style": "<svg><style><!--</style><meta http-equiv=refresh content=0>--></style></svg>",
    "a redirection in text": "<noscript><p title='</noscript><meta http-equiv=refresh content=0>'></noscript>",
    "a redirection by formulas": "<math><mi><style><!--</style><img title='--&gt;&lt;meta http-equiv=refresh&gt;'>",
    "a redirection in a shadow": "<template shadowrootmode=open><meta http-equiv=refresh content=0></template>",
    "the end of the page": "</div></main></body></html><meta http-equiv=refresh content=0><body onload=alert(1)>",
    "another base": '<base href="http://evil.example/" target="_top">',
    "a connection": '<link rel="preconnect" href="http://evil.example"><link rel="stylesheet" href="//a/a.css">',
    "an object": '<object data="http://evil.example"><embed src="//evil.example"></object><applet code="x"></applet>',
    "a frame": "<iframe srcdoc='<script>parent.alert(1)</script>' src=javascript:alert(1)></iframe>",
    "a set of frames": "<frameset onload=alert(1)><frame src=javascript:alert(1)></frameset>",
    "a link that runs": '<a href=" java\tscript:alert(1)">a</a><a href="JaVaScRiPt:alert(1)">b</a>',
    "a link that runs, encoded": '<a href="&#106;avascript&colon;alert(1)">a</a><a href="vbscript:x">b</a>',
    "a link with a page": '<a href="data:text/html,<script>alert(1)</script>">a</a>',
    "a link of a map": '<map name=m><area shape=default href="javascript:alert(1)" ping="http://evil.example"></map>',
    "a picture that runs": '<svg onload="alert(1)"><script>alert(1)</script><a xlink:href="javascript:x">a</a></svg>',
    "a picture that changes": "<svg><a><animate attributeName=href to=javascript:alert(1) /><text>a</text></a></svg>",
    "a picture with markup": "<svg><foreignObject><iframe srcdoc=x></iframe></foreignObject><use href='data:,'/></svg>",
    "handlers": "<img src=x onerror=alert(1)><details open ontoggle=alert(1)>x</details><p OnClick='alert(1)'>x</p>",
    "a style that runs": "<style onload=alert(1)>p { color: red }</style>",
    "a form": '<form action="//evil.example"><input autofocus onfocus=alert(1)><button formaction="javascript:x">',
    "a video": "<video poster=http://evil.example autoplay><source onerror=alert(1)></video>",
    "a script": "<script>alert(1)</script><script type='text/plain' id='plotly'>AAAA</script>",
}
KEPT_ELEMENTS = {"html", "head", "meta", "title", "style", "body", "main", "footer", "div", "h1", "p", "img", "details"}
KEPT_ELEMENTS |= {"a", "svg", "text", "map", "area", "pre"}


@pytest.mark.shown_by(8)
@pytest.mark.parametrize("what", HARMFUL)
@pytest.mark.parametrize("kind", ["text/html", "text/markdown", "image/svg+xml", "text/latex", "image/png", "a cell"])
def test_an_output_brings_nothing_that_acts(what: str, kind: str) -> None:
    """Whatever a cell or an output holds, the page has harmless elements and attributes, and its own policy."""
    harmful = HARMFUL[what]
    if kind == "image/png":
        harmful = f'"/>{harmful}'
    cells = [markdown_cell(harmful)] if kind == "a cell" else [code_cell("1", outputs=[displayed(**{kind: harmful})])]
    document = notebook_of(markdown_cell("# Title"), *cells, markdown_cell("The end."))
    page = page_of(document, name="a.ipynb", is_interactive=True, parameters={}, made_at=MADE_AT)
    found = Elements(page).found
    assert {tag for tag, _ in found} <= KEPT_ELEMENTS
    assert [attributes for tag, attributes in found if tag == "meta"] == [
        attributes for tag, attributes in Elements(shown()).found if tag == "meta"
    ]
    for _, attributes in found:
        assert not [name for name in attributes if name.startswith("on") or name in {"srcdoc", "ping", "formaction"}]
        assert not re.match(r"\s*(\w*script|data:text|vb)", attributes.get("href") or "", re.IGNORECASE)
    assert page.index("The end.") < page.index("</main>")


def test_what_is_harmless_stays() -> None:
    """Tables with their styles, pictures, formulas as text, links and folded text."""
    html = (
        "<style>td.x { color: red }</style><table class='x' style='width: 90%'><caption>c</caption>"
        "<thead><tr><th scope='col' colspan='2'>a</th></tr></thead>"
        "<tbody><tr><td class='x' data-n='1'>&lt;1&nbsp;€</td></tr></tbody><tfoot><tr><td>2</td></tr></tfoot></table>"
        "<details open><summary>more</summary>text</details><img src='data:image/png;base64,AAAA' alt='a picture'>"
        "<a href='https://example.com/a?b=c#d'>out</a><a href='#section-1'>in</a><a href='01_ad.ipynb'>beside</a>"
        "<svg viewBox='0 0 2 2' role='img' aria-label='s'><rect x='1' y='1' width='1' fill='red'></rect></svg>"
    )
    page = shown(displayed(html=html))
    assert Elements(page[page.index("<style>td.x") : page.index("</svg>")]).found == [
        (name, {attribute: value or "" for attribute, value in attributes.items()})
        for name, attributes in Elements(html).found
    ]


def test_no_output_takes_the_place_of_the_library() -> None:
    """An element with its name is not unpacked and run."""
    page = shown(displayed(html='<div id="plotly">AAAA</div><p id="figure-0"></p>'), displayed(figure=figure()))
    assert 'querySelector("script#plotly")' in page
    assert page.count("<script") == 3


def test_scripts_that_run_carry_a_nonce_of_this_page_alone() -> None:
    """The policy and the script share a nonce, which differs between pages."""
    pages = [shown(displayed(figure=figure())) for _ in range(2)]
    nonces = [re.findall(r"nonce[-=]['\"]?([\w-]{20,})", page) for page in pages]
    assert [len(found) for found in nonces] == [2, 2]
    assert nonces[0][0] == nonces[0][1] != nonces[1][0]


def test_an_interactive_page_brings_plotly_packed() -> None:
    """An interactive page contains plotly compressed, in 1 to 2.5 MB."""
    assert 1_000_000 < len(shown(displayed(figure=figure()))) < 2_500_000


def test_a_widget_is_its_static_view_and_without_one_nothing() -> None:
    """A widget is shown as its static view, and left out if it has none."""
    view = {"model_id": "abc", "version_major": 2}
    page = shown(
        displayed(widget=view, plain="IntProgress(value=0)"), displayed(widget=view, html="<p>the twin</p>", plain="x")
    )
    assert ("IntProgress" in page, "the twin" in page, "model_id" in page) == (False, True, False)


def test_a_widgets_table_and_figure_are_both_shown() -> None:
    """The static view of a widget is its table, then its figure."""
    page = shown(displayed(widget={"model_id": "abc"}, html="<p>the twin</p>", figure=figure(), plain="x"))
    assert page.index("the twin") < page.index('id="figure-0"')


def test_javascript_outputs_are_left_out() -> None:
    """An output of application/javascript is dropped, and so is its plain text."""
    page = shown(displayed(**{"application/javascript": "alert(1)", "plain": "<IPython.core.display.Javascript>"}))
    assert "alert" not in page
    assert "IPython" not in page


def test_standard_error_is_left_out() -> None:
    """Standard output is shown, standard error is not."""
    page = shown(
        new_output("stream", name="stderr", text="/home/me/x.py: UserWarning"),
        new_output("stream", name="stdout", text="seven"),
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
    """The alternative text is the figure's own, else its title without markup."""
    assert alt_text({"layout": layout}) == words


@pytest.mark.parametrize(
    ("paper", "is_turned"), [("#ffffff", True), ("#fff", True), ("white", True), ("#14191f", False)]
)
def test_only_a_light_figure_is_inverted_in_dark_mode(paper: str, is_turned: bool) -> None:
    """Only figures on light paper have the class that dark mode inverts."""
    page = shown(displayed(figure=figure(template={"layout": {"paper_bgcolor": paper}})))
    assert ('class="live light"' in page) == is_turned


def test_conclusions_follow_the_title_and_what_is_tagged_stays_away() -> None:
    """The section tagged `conclusions` comes second; `remove-cell` and `remove-output` are left out."""
    setup, hidden = code_cell("one", outputs=[displayed(plain="Interval(1)")]), markdown_cell("## Pick another")
    setup.metadata["tags"], hidden.metadata["tags"] = ["remove-output"], ["remove-cell"]
    end = markdown_cell("## What to take away")
    end.metadata["tags"] = ["conclusions"]
    cells = [markdown_cell("# Ads"), setup, markdown_cell("## By day"), hidden, end, markdown_cell("All is well.")]
    page = page_of(notebook_of(*cells), name="a.ipynb", is_interactive=False, parameters={}, made_at=MADE_AT)
    places = [page.index(text) for text in ("Ads</h1>", "What to take away", "All is well.", "By day")]
    assert places == sorted(places)
    assert ("Interval" in page, "Pick another" in page) == (False, False)


def sections(*names: str) -> str:
    """Return the page of a notebook with a section of each name, the last of which has the conclusions."""
    cells = [markdown_cell(f"## {name}") for name in names]
    cells[-1].metadata["tags"] = ["conclusions"]
    document = notebook_of(markdown_cell("# Title"), *cells)
    return page_of(document, name="a.ipynb", is_interactive=True, parameters={}, made_at=MADE_AT)


def test_contents_stand_below_the_answer_and_lead_to_each_section() -> None:
    """The answer is first, then a link to each section, whose heading has the anchor."""
    page = sections("One", "Two & <b>more</b>", "Three", "Answer")
    assert page.index("Answer</h2>") < page.index('<nav class="contents"') < page.index("One</h2>")
    for place, text in enumerate(["One", "Two &amp; more", "Three"], start=1):
        assert f'<li><a href="#section-{place}">{text}</a></li>' in page
        assert f'<h2 id="section-{place}">' in page


def test_a_short_page_has_no_contents() -> None:
    """Two sections need no list."""
    assert '<nav class="contents"' not in sections("One", "Two", "Answer")


def tagged(cell: NotebookNode, *tags: str) -> NotebookNode:
    """Return *cell* with *tags*."""
    cell.metadata["tags"] = [*tags]
    return cell


def test_what_is_tagged_fold_opens_with_a_click() -> None:
    """A table, printed lines and a paragraph below its heading; names in a summary are words. Another cell stays."""
    label = html.escape(f"Table: {HOSTILE}")
    table = f'<div class="gamelens-table" aria-label="{label}"><table><tr><td>7</td></tr></table></div>'
    printed = new_output("stream", name="stdout", text="<b>1 request</b>\n")
    cells = [
        markdown_cell("# Health"),
        tagged(markdown_cell("## The board\n\nHow *it* is made.\n\nAt length."), "fold"),
        tagged(code_cell("board", outputs=[displayed(html=table), printed]), "fold"),
        code_cell("other", outputs=[displayed(html=table)]),
    ]
    page = page_of(notebook_of(*cells), name="a.ipynb", is_interactive=False, parameters={}, made_at=MADE_AT)
    folded = re.findall('<details class="folded">.*?</details>', page, re.DOTALL)
    assert [re.findall("<summary>(.*?)</summary>", part)[0] for part in folded] == [
        "How it is counted",
        html.escape(f"Table: {HOSTILE}", quote=False),
        "Details",
    ]
    assert ("<em>it</em>" in folded[0], "At length." in folded[0], "The board</h2>" in folded[0]) == (True, True, False)
    assert "<td>7</td>" in folded[1]
    assert "&lt;b&gt;1 request" in folded[2]
    assert page.count("<td>7</td>") == 2


def test_a_folded_figure_has_its_title_as_summary() -> None:
    """Without a subtitle, markup or anything that runs."""
    title = "<b>Money &amp; games</b><br><span style='font-size:13px'>USD</span>"
    cell = tagged(code_cell("figure", outputs=[displayed(figure=figure(title))]), "fold")
    cells = [markdown_cell("# Health"), markdown_cell("## A"), cell]
    page = page_of(notebook_of(*cells), name="a.ipynb", is_interactive=False, parameters={}, made_at=MADE_AT)
    assert '<details class="folded"><summary>Money &amp; games</summary><figure' in page


def test_links_of_the_conclusions_lead_to_sections_by_number() -> None:
    """A link to a section that the page does not have is left out."""
    end = tagged(
        markdown_cell("## End\n\n- It rose. [Why it rose?](#Why-it-rose?)\n- It fell. [Gone](#Gone)"), "conclusions"
    )
    cells = [markdown_cell("# A"), markdown_cell("## One\n\nText."), markdown_cell("## Why it rose?\n\nText."), end]
    page = page_of(notebook_of(*cells), name="a.ipynb", is_interactive=False, parameters={}, made_at=MADE_AT)
    assert 'It rose. <a class="to-section" href="#section-2">Why it rose?</a>' in page
    assert "It fell.</li>" in page


def test_a_page_has_each_style_sheet_once() -> None:
    """Each table brings the same one, so a browser would read it again and again; another one stays."""
    sheet = "<style>.gamelens-table { margin: 0 }</style>"
    page = shown(*(displayed(**{"text/html": f"{sheet}<p>{word}</p>"}) for word in ("one", "two")))
    other = shown(displayed(**{"text/html": sheet}), displayed(**{"text/html": "<style>p { margin: 0 }</style>"}))
    assert (page.count(sheet), "<p>two</p>" in page) == (1, True)
    assert (other.count(sheet), other.count("<style>p {")) == (1, 1)
