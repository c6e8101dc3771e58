"""A notebook, run from top to bottom and written as one HTML page that opens with no network."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from nbconvert import HTMLExporter

from gamelens.errors import Refused

CELL_DEADLINE_S = 300


def write_report(notebook: Path, out: Path, *, environment: Mapping[str, str]) -> Path:
    """Run *notebook* in a new kernel with *environment* added to ours, and write `<out>/<name>.html` without its code.

    Raises:
        Refused: a cell failed; names it and the error.
    """
    document = nbformat.read(notebook, as_version=4)
    client = NotebookClient(document, timeout=CELL_DEADLINE_S, resources={"metadata": {"path": str(notebook.parent)}})
    try:
        client.execute(env=dict(environment))
    except CellExecutionError as error:
        raise Refused(f"{notebook.name} did not run: {error.ename}: {error.evalue}") from None
    page, _ = HTMLExporter(
        exclude_input=True, exclude_input_prompt=True, exclude_output_prompt=True
    ).from_notebook_node(document, resources={"metadata": {"name": notebook.stem}})
    out.mkdir(parents=True, exist_ok=True)
    report = out / f"{notebook.stem}.html"
    report.write_text(_offline(page), encoding="utf-8")
    return report


def _offline(page: str) -> str:
    """*page* without the scripts that nbconvert's template fetches from elsewhere; none of ours needs them."""
    return re.sub(r'<script[^>]*\ssrc="https?://[^"]*"[^>]*>\s*</script>', "", page)
