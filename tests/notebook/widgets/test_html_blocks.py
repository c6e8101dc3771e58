"""HTML that widgets show."""

from __future__ import annotations

from html.parser import HTMLParser

import pandas as pd
import pytest

from gamelens.notebook.tables.frame_table import FrameTable
from gamelens.notebook.widgets.html_blocks import table
from support.hostile_names import NAMES

FRAME = pd.DataFrame({"network": pd.Categorical(["AppLovin", None]), "ecpm": [1.5, None]})


def test_a_table_of_a_widget_has_the_cells_of_all_tables() -> None:
    """A null name is (unknown), a missing number n/a, a number is written by the unit of its column."""
    assert FrameTable(FRAME).html() in table(FRAME)
    assert "&#36;1.50" in table(FRAME)
    assert table(FRAME).split("<tr>")[-1].startswith('<th scope="row">(unknown)</th><td class="number">n/a</td>')


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_no_name_is_an_element_or_a_tone_of_its_own(name: str) -> None:
    """A hostile name stays text in a cell, in a heading, and where its column is coloured."""
    frame = pd.DataFrame({"Severity": [name, "ok"], name: [1, 2]})
    html, found = table(frame, tones="Severity"), []
    parser = HTMLParser()
    parser.handle_starttag = lambda tag, attributes: found.append((tag, {*dict(attributes)}))  # type: ignore[assignment]
    parser.feed(html)
    assert {tag for tag, _ in found} <= {"div", "style", "table", "thead", "tbody", "tr", "th", "td", "span", "small"}
    assert set().union(*(attributes for _, attributes in found)) <= {"class", "scope", "role", "aria-label", "tabindex"}
    assert '<span class="ok">ok</span>' in html
