"""Parameters of a notebook: papermill's convention, values as the defaults are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbformat
import pytest

from gamelens.errors import BadQuery
from gamelens.notebook.reports.notebook_parameters import inject, parameters_of, typed

CELL = """
over = "last 28 complete days"  # what a page is about
games = None
days: list[int] = [1, 7]
share, top = 0.1, 20
top = 20
is_deep = False
made = "a" + str(top)
"""
DEFAULTS = {"over": "last 28 complete days", "games": None, "days": [1, 7], "share": 0.1, "top": 20, "is_deep": False}


def document(source: str | None = CELL) -> Any:
    cells = [nbformat.v4.new_markdown_cell("# Title"), nbformat.v4.new_code_cell("print(top)")]
    if source is not None:
        cells.insert(1, nbformat.v4.new_code_cell(source, metadata={"tags": ["parameters"]}))
    return nbformat.v4.new_notebook(cells=cells)


def test_names_and_defaults_come_from_the_tagged_cell() -> None:
    found = parameters_of(document())
    assert found == {"over": "last 28 complete days", "games": None, "days": [1, 7]} | {
        "top": 20,
        "is_deep": False,
        "made": None,
    }


def test_a_notebook_without_such_a_cell_has_none() -> None:
    assert parameters_of(document(None)) == {}


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("over", "2026-11-01/2026-11-08", "2026-11-01/2026-11-08"),
        ("over", "None", "None"),
        ("top", "5", 5),
        ("top", "2.5", 2.5),
        ("top", "None", None),
        ("share", "1", 1.0),
        ("is_deep", "True", True),
        ("is_deep", "no", False),
        ("days", "14", [14]),
        ("days", "[1, 2]", [1, 2]),
        ("games", "1001", "1001"),
        ("games", "['1001', '1002']", ["1001", "1002"]),
        ("games", "None", None),
        ("games", "Tile Saga", "Tile Saga"),
    ],
)
def test_a_text_becomes_what_its_default_is(name: str, text: str, value: object) -> None:
    found = typed([(name, text)], DEFAULTS, of="a.ipynb")[name]
    assert (found, type(found)) == (value, type(value))


def test_a_name_typed_again_adds_to_a_list() -> None:
    given = [("games", "1001"), ("days", "3"), ("games", "1002"), ("days", "4")]
    assert typed(given, DEFAULTS, of="a.ipynb") == {"games": ["1001", "1002"], "days": [3, 4]}


@pytest.mark.parametrize(("name", "text"), [("top", "many"), ("share", "nan"), ("is_deep", "deep"), ("days", "x")])
def test_a_text_that_does_not_fit_is_refused_with_the_default(name: str, text: str) -> None:
    with pytest.raises(BadQuery, match="must be written like its default"):
        typed([(name, text)], DEFAULTS, of="a.ipynb")


def test_one_value_is_not_given_twice() -> None:
    with pytest.raises(BadQuery, match="is given 2 times"):
        typed([("top", "1"), ("top", "2")], DEFAULTS, of="a.ipynb")


def test_an_unknown_name_is_refused_with_the_nearest() -> None:
    with pytest.raises(BadQuery, match=r"ovr = 'x' is no parameter of a\.ipynb\. Did you mean `over`\?"):
        typed([("ovr", "x")], DEFAULTS, of="a.ipynb")


def test_a_notebook_that_takes_none_says_so() -> None:
    with pytest.raises(BadQuery, match="no cell of it is tagged `parameters`"):
        typed([("over", "x")], {}, of="a.ipynb")


def test_values_go_right_below_the_parameters_and_cannot_break_out() -> None:
    made = document()
    inject(made, {"over": "x'\"\n\\ import os", "games": ["1001"]})
    assert [cell.metadata.get("tags") for cell in made.cells] == [None, ["parameters"], ["injected-parameters"], None]
    set_ = {}
    exec(made.cells[2].source, set_)
    assert (set_["over"], set_["games"]) == ("x'\"\n\\ import os", ["1001"])


def test_nothing_given_adds_no_cell() -> None:
    made = document()
    inject(made, {})
    assert len(made.cells) == 3


@pytest.mark.slow
def test_papermill_sees_the_same_parameters(tmp_path: Path) -> None:
    """Its convention, so that its `papermill -p` works on our notebooks too."""
    from papermill import inspect_notebook

    made = document(CELL.replace("share, top = 0.1, 20\n", ""))
    made.metadata.kernelspec = {"name": "python3", "language": "python", "display_name": "Python 3"}
    nbformat.write(made, tmp_path / "a.ipynb")
    assert list(inspect_notebook(str(tmp_path / "a.ipynb"))) == list(parameters_of(made))
