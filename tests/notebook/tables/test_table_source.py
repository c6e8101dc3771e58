"""The source line below the tables that notebooks and widgets show."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from pandas import DataFrame, option_context

from gamelens.notebook.tables.frame_table import show_sources
from gamelens.notebook.tables.table_source import source_html
from gamelens.notebook.widgets import html_blocks
from gamelens.receipts import Provenance, Receipt
from support.notebook_shell import notebook_shell

HOSTILE = "<img src=x onerror=alert(1)>"


def frame_from(**provenance: Any) -> DataFrame:
    """Return a frame with an origin."""
    frame = DataFrame({"revenue": [1.0]})
    frame.attrs["gamelens"] = Receipt(provenance=Provenance(**provenance)).to_json()
    return frame


@pytest.fixture
def shell() -> Any:
    """Return the shell of a notebook that shows sources."""
    with notebook_shell() as shell:
        yield shell


def shown(shell: Any, frame: DataFrame) -> str:
    """Return the HTML of a frame at the end of a cell."""
    bundle, _ = shell.display_formatter.format(frame)
    return str(bundle.get("text/html"))


def test_a_table_of_simulated_numbers_has_a_badge() -> None:
    """The badge is in bold; numbers of a real service have none, and a frame without receipt no line."""
    assert '<b class="gamelens-badge">demo data</b> (sandbox)' in source_html(frame_from(kind="sandbox"))
    real = source_html(frame_from(kind="real", url="https://metrics.example.com"))
    assert ("metrics.example.com" in real, "badge" in real) == (True, False)
    assert source_html(DataFrame({"a": [1]})) == ""


def test_a_scenario_cannot_write_markup() -> None:
    """A scenario has a name from outside."""
    assert HOSTILE not in source_html(frame_from(kind="sandbox", scenario=HOSTILE))


def test_a_notebook_shows_the_source_below_a_frame(shell: Any) -> None:
    """Also below what was selected from it, but not below other frames."""
    show_sources()
    frame = frame_from(kind="sandbox", scenario="demo")
    assert "demo data</b> (sandbox, scenario demo)" in shown(shell, frame)
    assert "demo data</b>" in shown(shell, frame[frame["revenue"] > 0].head())
    assert "gamelens" not in shown(shell, DataFrame({"a": [1]}))


def test_the_options_of_pandas_are_kept(shell: Any) -> None:
    """Where pandas makes no HTML there is none."""
    show_sources()
    with option_context("display.notebook_repr_html", False):
        assert shown(shell, frame_from(kind="sandbox")) == "None"


def test_a_formatter_of_the_user_stays(shell: Any) -> None:
    """A formatter that was there first is not replaced."""
    shell.display_formatter.formatters["text/html"].for_type(DataFrame, lambda _: "mine")
    show_sources()
    assert shown(shell, frame_from(kind="sandbox")) == "mine"


def test_tables_of_widgets_have_the_source_too() -> None:
    """`html_blocks.table` ends with the source line."""
    assert "demo data</b>" in html_blocks.table(frame_from(kind="sandbox"))
    assert "gamelens-source" not in html_blocks.table(DataFrame({"a": [1]}))


@pytest.mark.wide
def test_a_script_needs_no_notebook() -> None:
    """Outside a notebook the accessor loads without IPython."""
    code = "import gamelens.notebook.accessor, sys; print('IPython' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
