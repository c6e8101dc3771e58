"""A notebook, run from top to bottom with parameters and written as one HTML page that opens with no network."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import nbformat
from jupyter_client.kernelspec import NoSuchKernel
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
from traitlets.config import Config

from gamelens._files import replace_file
from gamelens.errors import Refused
from gamelens.notebook.figures.browser_rendering import DrawingError
from gamelens.notebook.reports.html_page import page_of
from gamelens.notebook.reports.notebook_parameters import inject, parameters_of, typed

CELL_DEADLINE_S = 300
_KERNEL: Final = Config({"KernelManager": {"transport_encryption": "auto"}})  # others may share this machine


def check(notebook: Path, parameters: Iterable[tuple[str, str]]) -> None:
    """Look whether *notebook* takes *parameters*, and run nothing.

    Raises:
        BadQuery, Refused: as `write_report`.
    """
    typed(parameters, parameters_of(_read(notebook)), of=notebook.name)


def write_report(
    notebook: Path,
    out: Path,
    *,
    parameters: Iterable[tuple[str, str]] = (),
    environment: Mapping[str, str] | None = None,
    is_interactive: bool = False,
    say: Callable[[str], object] = lambda _: None,
) -> Path:
    """Run *notebook* in a new kernel with *environment* added to ours, and write its page, without its code.

    *out* is an `.html` file, or a folder that gets `<name>.html`. Figures stand still as SVG, or, where they are to be
    interactive or nobody here can draw them, move with plotly, which is then part of the page. *say* is told what
    happens on the way, and whatever the notebook's cells wrote to standard error: the page is for readers.

    Raises:
        BadQuery: a parameter that the notebook does not have, or a text that does not fit its default.
        Refused: no such notebook, or a cell failed; names it and the error. Nothing is written then.
    """
    document = _read(notebook)
    defaults = parameters_of(document)
    values = typed(parameters, defaults, of=notebook.name)
    places = {cell.id: place for place, cell in enumerate(document.cells, start=1)}
    inject(document, values)
    _run(document, notebook, {**os.environ, **(environment or {})}, places)
    for line in _complaints(document, places):
        say(f"{notebook.name}, {line}")
    facts: dict[str, Any] = {"name": notebook.name, "parameters": {**defaults, **values}, "made_at": datetime.now(UTC)}
    try:
        page = page_of(document, is_interactive=is_interactive, **facts)
    except DrawingError as error:
        say(f"the figures are interactive, and the page larger: {error}")
        page = page_of(document, is_interactive=True, **facts)
    report = out if out.suffix == ".html" else out / f"{notebook.stem}.html"
    _write(report, page)
    return report


def _read(notebook: Path) -> Any:
    try:
        return nbformat.read(notebook, as_version=4)  # type: ignore[no-untyped-call]
    except OSError as error:
        raise Refused(f"cannot read {notebook}: {error.strerror}") from None
    except (nbformat.reader.NotJSONError, nbformat.ValidationError, AttributeError, KeyError) as error:
        raise Refused(f"{notebook} is no notebook: {str(error).splitlines()[0]}") from None


def _run(document: Any, notebook: Path, environment: dict[str, str], places: Mapping[str, int]) -> None:
    where = {"metadata": {"path": str(notebook.parent)}}
    try:
        NotebookClient(document, timeout=CELL_DEADLINE_S, resources=where, config=_KERNEL).execute(env=environment)
    except CellExecutionError as error:
        failed = next(cell for cell in document.cells if _failed(cell))
        what = f"{error.ename}: {error.evalue}"
        raise Refused(f"{notebook.name} did not run: {_cell(failed, places)}: {what}") from None
    except CellTimeoutError:
        raise Refused(f"{notebook.name} did not run: a cell took more than {CELL_DEADLINE_S} s") from None
    except NoSuchKernel as error:
        raise Refused(f"{notebook.name} wants the kernel {error.name}, which is not installed") from None
    except DeadKernelError:
        raise Refused(f"{notebook.name} did not run: its kernel died") from None


def _cell(cell: Any, places: Mapping[str, int]) -> str:
    """Number and first line of a cell, as who opens the notebook finds it."""
    first = next(iter(cell.source.strip().splitlines()), "")
    return f"cell {places[cell.id]} ({first})" if cell.id in places else f"the given parameters ({first})"


def _failed(cell: Any) -> bool:
    return any(output.output_type == "error" for output in cell.get("outputs", []))


def _complaints(document: Any, places: Mapping[str, int]) -> Iterable[str]:
    """What cells wrote to standard error, a line for each."""
    for cell in document.cells:
        for output in cell.get("outputs", []):
            if output.output_type == "stream" and output.name == "stderr":
                yield f"{_cell(cell, places)}: {' '.join(output.text.split())}"


def _write(report: Path, page: str) -> None:
    """All of it or nothing: whoever looks meanwhile sees the report of last time."""
    report.parent.mkdir(parents=True, exist_ok=True)
    with replace_file(report) as draft:
        draft.write_text(page, encoding="utf-8")
