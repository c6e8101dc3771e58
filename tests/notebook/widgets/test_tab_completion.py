"""What Tab offers in a notebook, through IPython's own completer."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pandas
import pytest
from IPython.core.completer import provisionalcompleter
from IPython.core.interactiveshell import InteractiveShell
from pandas import DataFrame
from plotly.graph_objects import Figure

import gamelens
from gamelens import dim
from gamelens.client.sync_client import Client
from gamelens.notebook import charts, tab_completion, widgets
from support.notebook_shell import notebook_shell

MOST_S = 1.0


@pytest.fixture
def shell(calm: Client) -> Iterator[InteractiveShell]:
    """A shell of which `gl`, `dim`, `lens`, a frame and the parts of the notebook room are variables."""
    with notebook_shell() as shell:
        shell.user_ns |= {"gl": gamelens, "dim": dim, "lens": calm, "charts": charts, "widgets": widgets}
        shell.user_ns |= {"pd": pandas, "figure": Figure(), "column": pandas.Series(["US"])}
        shell.user_ns["df"] = DataFrame({"country_code": ["US"], "revenue": [1.0]})
        tab_completion.register()
        yield shell


def offered(shell: InteractiveShell, source: str) -> list[str]:
    """Return the texts that Tab offers at the end of *source*."""
    with provisionalcompleter():
        return [each.text for each in shell.Completer.completions(source, len(source))]


@pytest.mark.shown_by(3)
@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("gl.", "connect"),
        ("gl.dim.", "platform"),
        ("dim.pl", "platform"),
        ("df.le", "lens"),
        ("df.coun", "country_code"),
        ("df.lens.", "explain"),
        ("df.plot.", "line"),
        ("df.columns.", "to_list"),
        ("column.", "rolling"),
        ("column.str.", "upper"),
        ("pd.", "DataFrame"),
        ("figure.", "update_layout"),
        ("lens.", "query"),
        ("charts.draw_l", "draw_lines"),
        ("f(lens.", "query"),
    ],
)
def test_attributes_are_offered_within_a_second(shell: InteractiveShell, source: str, text: str) -> None:
    """Those of our objects, of frames and of figures, for which jedi took half a minute of the processor."""
    began = time.process_time()
    assert text in offered(shell, source)
    assert time.process_time() - began < MOST_S


def test_own_metrics_of_the_client_are_offered(shell: InteractiveShell) -> None:
    """Those of another client are not."""
    own = {"ads_per_payer": "ad_impressions_count / paying_users"}
    with Client(api_key="k", metrics_url="http://127.0.0.1:9", cache=False, metrics=own) as mine:
        shell.user_ns["mine"] = mine
        assert offered(shell, 'mine.query("ads_') == ["ads_per_payer"]
        assert offered(shell, 'mine.describe("ads_') == ["ads_per_payer"]
        assert offered(shell, 'lens.query("ads_') == []


@pytest.mark.parametrize(
    ("source", "names"), [("widgets.", widgets.__all__), ("charts.", charts.__all__), ("gl.", gamelens.__all__)]
)
def test_only_public_names_are_offered(shell: InteractiveShell, source: str, names: list[str]) -> None:
    """No module that a package happens to contain."""
    assert sorted(offered(shell, source)) == sorted(name for name in names if not name.startswith("_"))


@pytest.mark.parametrize(
    ("source", "texts"),
    [
        ('lens.query("rev', ["revenue"]),
        ("lens.query('rev", ["revenue"]),
        ('lens.query(["revenue", "arpd', ["arpdau"]),
        ('x = lens.plan("revenue", by="coun', ["country", "country_code"]),
        ('lens.query(\n    "revenue",  # a ( in a comment\n    by=["game", "coun', ["country", "country_code"]),
        ('lens.query("revenue", over="last 90', ["last 90 complete days"]),
        ('lens.retention([1], over="yester', ["yesterday"]),
        ('lens.query("revenue", every="w', ["week"]),
        ('lens.query("revenue", where="platform == \'ios\' and coun', ["country_code"]),
        ('lens.dimension_values("plat', ["platform"]),
        ('lens.describe("arpd', ["arpdau"]),
        ('lens.query("revenue", games="tile s', ["Tile Saga"]),
        ('lens.query("revenue", studios="nor', ["North"]),
        ('widgets.explorer(lens, metric="rev', ["revenue"]),
    ],
)
def test_texts_of_a_query_are_completed(shell: InteractiveShell, source: str, texts: list[str]) -> None:
    """Metrics, dimensions, time ranges and titles, whatever stands before them."""
    assert offered(shell, source) == texts


def test_lists_need_no_time_range(calm: Client) -> None:
    """Without one they are those of the last 28 complete days, as far as they are available."""
    last = "last 28 complete days"
    assert calm.games().equals(calm.games(over=last))
    assert calm.studios().equals(calm.studios(over=last))
    assert calm.dimension_values("platform") == calm.dimension_values("platform", over=last)


@pytest.mark.parametrize("source", ['print("rev', 'other.read("rev', 'lens.query("revenue", top="rev', '"rev', "rev"])
def test_other_texts_are_not_ours(source: str) -> None:
    """A text that is not an argument of a query is left to IPython."""
    opened = tab_completion.open_text(source)
    assert opened is None or opened.argument == "top"
