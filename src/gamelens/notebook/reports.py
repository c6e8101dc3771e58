"""A notebook, run from top to bottom and written as one HTML page that opens with no network."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from nbconvert import HTMLExporter
from plotly import io, offline
from traitlets.config import Config

from gamelens.errors import Refused

CELL_DEADLINE_S = 300
_FIGURE: Final = "application/vnd.plotly.v1+json"
_WIDGET: Final = "application/vnd.jupyter.widget-view+json"
_KERNEL: Final = Config({"KernelManager": {"transport_encryption": "auto"}})  # others may share this machine


def write_report(notebook: Path, out: Path, *, environment: Mapping[str, str]) -> Path:
    """Run *notebook* in a new kernel with *environment* added to ours, and write `<out>/<name>.html` without its code.

    Raises:
        Refused: a cell failed; names it and the error.
    """
    document = nbformat.read(  # type: ignore[no-untyped-call]
        notebook, as_version=4
    )
    where = {"metadata": {"path": str(notebook.parent)}}
    try:
        NotebookClient(document, timeout=CELL_DEADLINE_S, resources=where, config=_KERNEL).execute(
            env=dict(environment)
        )
    except CellExecutionError as error:
        raise Refused(f"{notebook.name} did not run: {error.ename}: {error.evalue}") from None
    _drop_widgets(document)
    _embed_figures(document)
    exporter = HTMLExporter(  # type: ignore[no-untyped-call]
        exclude_input=True, exclude_input_prompt=True, exclude_output_prompt=True
    )
    page, _ = exporter.from_notebook_node(document, resources={"metadata": {"name": notebook.stem}})
    out.mkdir(parents=True, exist_ok=True)
    report = out / f"{notebook.stem}.html"
    report.write_text(_offline(page), encoding="utf-8")
    return report


def _drop_widgets(document: Any) -> None:
    """Take out what only a running kernel can show, such as bars of progress, and what would fetch a script for it."""
    document.metadata.pop("widgets", None)
    for cell in document.cells:
        if "outputs" in cell:
            cell.outputs = [output for output in cell.outputs if _WIDGET not in output.get("data", {})]


def _embed_figures(document: Any) -> None:
    """Give every plotly output a form that a page without Jupyter can draw."""
    for cell in document.cells:
        for output in cell.get("outputs", []):
            if figure := output.get("data", {}).pop(_FIGURE, None):
                output.data["text/html"] = io.to_html(
                    {"data": figure["data"], "layout": figure["layout"]},
                    config={"displaylogo": False, "responsive": True},
                    include_plotlyjs=False,
                    full_html=False,
                    validate=False,
                )


def _offline(page: str) -> str:
    """*page* with plotly's script inside, and without those that nbconvert's template would fetch."""
    alone = re.sub(r'<script[^>]*\ssrc="https?://[^"]*"[^>]*>\s*</script>', "", page)
    script = f'<script type="text/javascript">{offline.get_plotlyjs()}</script>'
    return alone.replace("</head>", f"{script}\n</head>", 1)
