"""Parameters of a notebook: papermill's tags, and values typed like their defaults."""

from __future__ import annotations

from pathlib import Path

import pytest
from nbformat import NotebookNode

from gamelens.errors import BadQuery
from gamelens.notebook.reports.notebook_parameters import inject, parameters_of, typed
from support.notebook_files import code_cell, markdown_cell, notebook_of, write_notebook

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


def document(source: str | None = CELL) -> NotebookNode:
    """Return a notebook whose parameter cell is *source*, or that has none."""
    parameters = [] if source is None else [code_cell(source, is_parameters=True)]
    return notebook_of(markdown_cell("# Title"), *parameters, "print(top)")


def test_names_and_defaults_come_from_the_tagged_cell() -> None:
    """Parameters are the assignments of the tagged cell, None where no literal is assigned."""
    assert parameters_of(document()) == {"over": "last 28 complete days", "games": None, "days": [1, 7]} | {
        "top": 20,
        "is_deep": False,
        "made": None,
    }


def test_a_notebook_without_such_a_cell_has_none() -> None:
    """A notebook without a tagged cell has no parameters."""
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
def test_a_text_is_parsed_like_its_default(name: str, text: str, value: object) -> None:
    """A text is parsed to the type of its default, and for None to a literal or a text."""
    parsed = typed([(name, text)], DEFAULTS, notebook="a.ipynb")[name]
    assert (parsed, type(parsed)) == (value, type(value))


def test_a_name_typed_again_adds_to_a_list() -> None:
    """A parameter given twice collects its values in a list."""
    given = [("games", "1001"), ("days", "3"), ("games", "1002"), ("days", "4")]
    assert typed(given, DEFAULTS, notebook="a.ipynb") == {"games": ["1001", "1002"], "days": [3, 4]}


MISFITS = (("top", "many"), ("share", "nan"), ("is_deep", "deep"), ("days", "x"))


@pytest.mark.parametrize(
    ("given", "words"),
    [
        *(([pair], "must be written like its default") for pair in MISFITS),
        ([("top", "1"), ("top", "2")], "is given 2 times"),
        ([("ovr", "x")], r"ovr = 'x' is not a parameter of a\.ipynb\. Did you mean `over`\?"),
    ],
)
def test_what_is_no_parameter_is_refused(given: list[tuple[str, str]], words: str) -> None:
    """A text of another type than the default, one value that is given twice, and an unknown name."""
    with pytest.raises(BadQuery, match=words):
        typed(given, DEFAULTS, notebook="a.ipynb")
    with pytest.raises(BadQuery, match="none of its cells is tagged `parameters`"):
        typed(given, {}, notebook="a.ipynb")


def test_values_go_right_below_the_parameters_and_cannot_break_out() -> None:
    """Values are injected after the tagged cell, as literals that cannot end their string."""
    notebook = document()
    inject(notebook, {"over": "x'\"\n\\ import os", "games": ["1001"]})
    assert [cell.metadata.get("tags") for cell in notebook.cells] == [
        None,
        ["parameters"],
        ["injected-parameters"],
        None,
    ]
    variables: dict[str, object] = {}
    exec(notebook.cells[2].source, variables)
    assert (variables["over"], variables["games"]) == ("x'\"\n\\ import os", ["1001"])


def test_nothing_given_adds_no_cell() -> None:
    """Without values no cell is injected."""
    notebook = document()
    inject(notebook, {})
    assert len(notebook.cells) == 3


@pytest.mark.slow
def test_papermill_sees_the_same_parameters(tmp_path: Path) -> None:
    """papermill finds the same parameters, so that `papermill -p` works as well."""
    from papermill import inspect_notebook

    notebook = document(CELL.replace("share, top = 0.1, 20\n", ""))
    notebook.metadata.kernelspec = {"name": "python3", "language": "python", "display_name": "Python 3"}
    write_notebook(notebook, tmp_path / "a.ipynb")
    assert list(inspect_notebook(str(tmp_path / "a.ipynb"))) == list(parameters_of(notebook))
