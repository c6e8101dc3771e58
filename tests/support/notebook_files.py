"""Notebooks written and read by tests: nbformat with the types that it does not declare."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import nbformat
from nbformat import NotebookNode

_code: Callable[..., NotebookNode] = nbformat.v4.new_code_cell
_markdown: Callable[..., NotebookNode] = nbformat.v4.new_markdown_cell
_notebook: Callable[..., NotebookNode] = nbformat.v4.new_notebook
_read: Callable[..., NotebookNode] = nbformat.read
_write: Callable[..., None] = nbformat.write

new_output: Final[Callable[..., NotebookNode]] = nbformat.v4.new_output


def code_cell(source: str, *, outputs: Sequence[NotebookNode] = (), is_parameters: bool = False) -> NotebookNode:
    """Return a code cell, tagged `parameters` if *is_parameters*."""
    return _code(source, outputs=[*outputs], metadata={"tags": ["parameters"]} if is_parameters else {})


def markdown_cell(source: str) -> NotebookNode:
    """Return a Markdown cell."""
    return _markdown(source)


def notebook_of(*cells: NotebookNode | str) -> NotebookNode:
    """Return a notebook of *cells*, in which a text is a code cell."""
    return _notebook(cells=[code_cell(cell) if isinstance(cell, str) else cell for cell in cells])


def read_notebook(path: Path) -> NotebookNode:
    """Return the notebook in *path*."""
    return _read(path, as_version=4)


def silent_at_the_end(document: NotebookNode) -> tuple[str, int] | None:
    """Return source and place of the last code cell of an executed notebook if a reader sees no output of it."""
    place = max(place for place, cell in enumerate(document.cells) if cell.cell_type == "code")
    cell = document.cells[place]
    is_shown = any(
        output.get("text", "").strip() if output.output_type == "stream" else output.get("data")
        for output in cell.outputs
    )
    return None if is_shown else (cell.source, place)


def write_notebook(document: NotebookNode, path: Path) -> Path:
    """Write *document* to *path* and return it."""
    _write(document, path)
    return path
