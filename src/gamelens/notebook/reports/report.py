"""Reports: a notebook executed with parameters and written as one HTML page."""

from __future__ import annotations

import atexit
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any, Final

import nbformat
from jupyter_client.kernelspec import NoSuchKernel
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
from traitlets.config import Config

from gamelens._files import replace_file
from gamelens.errors import NO_DATA, Refused
from gamelens.notebook.figures.browser_rendering import DrawingError
from gamelens.notebook.reports.html_page import page_of
from gamelens.notebook.reports.notebook_parameters import inject, parameters_of, typed
from gamelens.notebook.tables.frame_table import REPORT

CELL_DEADLINE_S = 300
_LINK: Final = re.compile(r'<a href="(\w+)\.ipynb"[^>]*>(.*?)</a>')
_KERNEL: Final = Config({"KernelManager": {"transport_encryption": "auto"}})  # other users may share this machine


def write_report(
    notebook: Path,
    out: Path,
    *,
    parameters: Iterable[tuple[str, str]] = (),
    environment: Mapping[str, str] | None = None,
    is_interactive: bool = False,
    beside: Collection[str] = (),
    say: Callable[[str], object] = lambda _: None,
    advise: Callable[[str], object] | None = None,
    on_cells: Callable[[int, int], object] = lambda _, __: None,
) -> Path:
    """Run *notebook* in a new kernel, write its page without code, and return the path.

    Args:
        notebook: an .ipynb file.
        out: an `.html` file, or a folder that gets `<name>.html`.
        parameters: names and values as text, converted to the types of the notebook's defaults.
        environment: variables added to the environment of this process.
        is_interactive: True draws figures with plotly, which is then part of the page. False draws them as SVG, unless
            this machine has no browser to draw with.
        beside: names of notebooks whose reports are written into the same folder. A link to a notebook leads to its
            report if that is among them or there already; else it becomes the command that writes it.
        say: called with each line for the user, such as text that a cell wrote to standard error, which is not part of
            the page.
        advise: called with what is to be done about this machine, the same line for each report (`advice_at_end`);
            None is *say*.
        on_cells: called with the cells that have run and with all, before each cell and at the end.

    Raises:
        BadQuery: the notebook does not have a parameter, or a text does not fit its default.
        Refused: there is no such notebook, or a cell failed. The message names cell and error, and nothing is written.
    """
    document = _read(notebook)
    defaults = parameters_of(document)
    values = typed(parameters, defaults, notebook=notebook.name)
    places = {cell.id: place for place, cell in enumerate(document.cells, start=1)}
    inject(document, values)
    _run(document, notebook, {**os.environ, **(environment or {}), REPORT: "1"}, places, on_cells)
    for line in _stderr_lines(document, places):
        say(f"{notebook.name}, {line}")
    about: dict[str, Any] = {"name": notebook.name, "parameters": {**defaults, **values}, "made_at": datetime.now(UTC)}
    try:
        page = page_of(document, is_interactive=is_interactive, **about)
    except DrawingError as error:
        (advise or say)(f"the figures are interactive, and the page larger: {error}")
        page = page_of(document, is_interactive=True, **about)
    report = out if out.suffix == ".html" else out / f"{notebook.stem}.html"
    _write(report, _with_links(page, report.parent, beside))
    return report


@contextmanager
def advice_at_end(say: Callable[[str], object]) -> Iterator[Callable[[str], object]]:
    """Yield a function that keeps lines, for several reports; at the end *say* is called with each distinct one."""
    kept: dict[str, None] = {}
    try:
        yield kept.setdefault
    finally:
        for line in kept:
            say(line)


def _with_links(page: str, folder: Path, beside: Collection[str]) -> str:
    """Return *page* with its links to notebooks as links to their reports."""

    def linked(link: re.Match[str]) -> str:
        name, words = link.groups()
        if name in beside or (folder / f"{name}.html").exists():
            return f'<a href="{name}.html">{words}</a>'
        return f"<code>gamelens report {name}</code>"

    return _LINK.sub(linked, page)


def _read(notebook: Path) -> Any:
    """Return the notebook as nbformat has it.

    Raises:
        Refused: it cannot be read, or is not a notebook.
    """
    try:
        return nbformat.read(notebook, as_version=4)  # type: ignore[no-untyped-call]
    except OSError as error:
        raise Refused(f"cannot read {notebook}: {error.strerror}") from None
    except (nbformat.reader.NotJSONError, nbformat.ValidationError, AttributeError, KeyError) as error:
        raise Refused(f"{notebook} is not a notebook: {str(error).splitlines()[0]}") from None


def _run(
    document: Any,
    notebook: Path,
    environment: dict[str, str],
    places: Mapping[str, int],
    on_cells: Callable[[int, int], object],
) -> None:
    """Execute all cells. Their outputs are then in *document*.

    Raises:
        Refused: a cell failed or took too long, or the kernel is missing or ended. The message names the cell. Or the
            service has no data yet, in one sentence.
    """
    name, begun = notebook.name, list[Any]()
    client = NotebookClient(
        document,
        timeout=CELL_DEADLINE_S,
        resources={"metadata": {"path": str(notebook.parent)}},
        config=_KERNEL,
        on_cell_start=lambda cell, cell_index: on_cells(cell_index, len(document.cells)),
        on_cell_execute=lambda cell, cell_index: begun.append(cell),
    )
    with TemporaryFile() as own_output:  # what the kernel itself writes, and not a cell, such as complaints at its end
        try:
            client.execute(env=environment, stderr=own_output)
            on_cells(len(document.cells), len(document.cells))
        except NoSuchKernel as error:
            raise Refused(f"{name} needs the kernel {error.name}, which is not installed") from None
        except Exception as error:
            if isinstance(error, CellExecutionError) and NO_DATA in error.evalue:
                again = f"{NO_DATA}; `gamelens simulate` sends events of invented players to a sandbox"
                raise Refused(f"{name} has nothing to show: {again}") from None
            if begun:
                raise Refused(f"{name} did not run: {_cell_label(begun[-1], places)}: {_reason(error)}") from error
            atexit.unregister(client._cleanup_kernel)  # it would fail, and say so when the process ends
            why = f"{_last(own_output)}{_reason(error)}"
            raise Refused(f"{name} did not run: before its first cell: {why}") from error


def _last(output: IO[bytes]) -> str:
    """Return the last line of *output* to put before a reason, or nothing."""
    output.seek(0)
    line = output.read().decode(errors="replace").strip().rpartition("\n")[2]
    return f"{line}: " if line else ""


def _reason(error: Exception) -> str:
    """Return why a cell, or the kernel that runs it, failed."""
    match error:
        # At a signal nbclient interrupts its kernel and ends it. It then reports the interrupt, the end, or asserts
        # that it has a kernel, whichever comes first.
        case CellExecutionError(ename="KeyboardInterrupt") | DeadKernelError() | AssertionError():
            return "its kernel died, or was ended by Ctrl-C or a signal"
        case CellExecutionError():
            return f"{error.ename}: {error.evalue}"
        case CellTimeoutError():
            return f"it took more than {CELL_DEADLINE_S} s"
    return f"{type(error).__name__}: {error}"


def _cell_label(cell: Any, places: Mapping[str, int]) -> str:
    """Return number and first line of a cell, as a reader finds it in the notebook."""
    first = next(iter(cell.source.strip().splitlines()), "")
    return f"cell {places[cell.id]} ({first})" if cell.id in places else f"the given parameters ({first})"


def _stderr_lines(document: Any, places: Mapping[str, int]) -> Iterable[str]:
    """Yield the text that cells wrote to standard error, one line for each output."""
    for cell in document.cells:
        for output in cell.get("outputs", []):
            if output.output_type == "stream" and output.name == "stderr":
                yield f"{_cell_label(cell, places)}: {' '.join(output.text.split())}"


def _write(report: Path, page: str) -> None:
    """Replace *report* as a whole: until then, readers see the previous report."""
    report.parent.mkdir(parents=True, exist_ok=True)
    with replace_file(report) as draft:
        draft.write_text(page, encoding="utf-8")
