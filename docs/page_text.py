"""Pages: Markdown whose code is run, as a source for the site and as a twin that is Markdown alone.

A block of Python is run and followed by what it shows. ```` ```python raises ```` ends in an error, whose message
follows. ```` ```console run ```` has commands of gamelens, which are run too. In the text `{{ total:,.0f }}` is a
value of the code above it, so that no number has to be copied.

A block of ```` ```math ```` is a formula in LaTeX, and so is what stands between $` and `$ in the text: GitHub shows
them, and the site has them as MathML. ```` ```figures ```` and ```` ```constants ```` are tables of the methods
(`docs.method_tables`), ```` ```engines ```` what analyses are on other engines (`docs.engine_tables`), and
```` ```screens ```` is the gallery of first screens (`docs.first_screens`).
"""

from __future__ import annotations

import html
import json
import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from click.testing import CliRunner

from docs.engine_tables import engines_block
from docs.first_screens import gallery
from docs.method_tables import constants_table, figure_of, figures_table, mathml, with_formulas
from docs.page_runner import Output, PageError, PageRunner
from gamelens.cli import cli
from gamelens.notebook.figures.alt_text import alt_text

_FENCE = re.compile(r"^```(\w*) ?(\w*)\n(.*?)^```\n?", re.MULTILINE | re.DOTALL)
_VALUE = re.compile(r"\{\{ (.+?) \}\}")
_HIDDEN = "remove-output"
_TABLES = {"figures": figures_table, "constants": constants_table, "engines": engines_block, "screens": gallery}

DrawFigure = Callable[[Mapping[str, Any]], tuple[str, str]]
"""Takes a figure, and returns where its wide and its narrow image will be."""


class Page(NamedTuple):
    """One page of the site."""

    name: str
    """Its path in the site, ending in `.md`."""
    source: str
    """For the site: Markdown with HTML in it."""
    twin: str
    """The same in Markdown alone."""

    @property
    def title(self) -> str:
        """The first heading."""
        heading = re.search(r"^# (.+)$", self.twin, re.MULTILINE)
        return heading[1] if heading else self.name

    @property
    def summary(self) -> str:
        """The first sentence below the first heading, as text."""
        prose = re.sub(r"^```.*?^```", "", self.twin, flags=re.MULTILINE | re.DOTALL)
        body = re.sub(r"^[#<|>].*$", "", prose, flags=re.MULTILINE).strip()
        first = " ".join(body.partition("\n\n")[0].split())
        return re.sub(r"\[([^\]]+)\]\([^)]+\)", r"\1", re.split(r"(?<=[.?]) ", first)[0])


def plain_page(name: str, text: str) -> Page:
    """Return a page without code to run."""
    return Page(name, text, text)


def run_page(name: str, text: str, runner: PageRunner, draw: DrawFigure) -> Page:
    """Return the page called *name* with its code run.

    Raises:
        PageError: a block fails.
    """
    source, twin, end = "", "", 0
    for block in _FENCE.finditer(text):
        prose = _with_values(text[end : block.start()], runner)
        shown = f"```{block[1]}\n{block[3]}```\n"
        end = block.end()
        if block[1] in _TABLES:
            table = _TABLES[block[1]](block[3])
            source, twin = source + with_formulas(prose) + table, twin + prose + table
            continue
        outputs = _run_block(block, runner)
        for_site = f'<div class="formula">{mathml(block[3], is_block=True)}</div>\n' if block[1] == "math" else shown
        source += with_formulas(prose) + for_site + "".join(_site_output(it, draw) for it in outputs)
        twin += prose + shown + "".join(f"\n{_twin_output(it)}\n" for it in outputs)
    rest = _with_values(text[end:], runner)
    return Page(name, source + with_formulas(rest), twin + rest)


def notebook_text(path: Path) -> str:
    """Return a notebook as the text of a page. Outputs of cells tagged `remove-output` are not shown."""
    return "\n\n".join(_cell_text(cell) for cell in json.loads(path.read_text(encoding="utf-8"))["cells"])


def _cell_text(cell: Mapping[str, Any]) -> str:
    text = "".join(cell["source"])
    if cell["cell_type"] == "markdown":
        return text
    is_silent = _HIDDEN in cell["metadata"].get("tags", ())
    return f"```python{' silent' if is_silent else ''}\n{text}\n```"


def _with_values(prose: str, runner: PageRunner) -> str:
    """Return *prose* with the values that it names, of the code above or of the methods."""
    return _VALUE.sub(lambda it: figure_of(it[1]) if it[1].startswith("figure(") else runner.value(it[1]), prose)


def _run_block(block: re.Match[str], runner: PageRunner) -> list[Output]:
    language, how, code = block.groups()
    if language == "python":
        outputs = runner.run(code, raises=how == "raises")
        return [] if how == "silent" else outputs
    return [Output(text) for text in _typed(code)] if (language, how) == ("console", "run") else []


def _typed(code: str) -> Iterator[str]:
    """Yield what each command of a block prints."""
    for line in code.replace("\\\n", "").splitlines():
        if line.startswith("$ gamelens "):
            result = CliRunner().invoke(cli, shlex.split(line, comments=True)[2:])
            if result.exception is not None and not isinstance(result.exception, SystemExit):
                raise PageError(f"{line} ends in {result.exception!r}") from result.exception
            yield result.output.rstrip()


def _twin_output(output: Output) -> str:
    if output.figure is not None or output.markup == output.text:
        return f"{output.text}\n"
    return f"```text\n{output.text}\n```\n"


def _site_output(output: Output, draw: DrawFigure) -> str:
    if output.figure is not None:
        wide, narrow = draw(output.figure)
        label = html.escape(alt_text(output.figure))
        return (
            f'\n<figure class="still"><picture><source media="(max-width: 640px)" srcset="{narrow}">'
            f'<img alt="{label}" src="{wide}" loading="lazy"></picture></figure>\n\n'
        )
    if output.markup == output.text:
        text = output.text.replace("<details>", "<details markdown>")  # else the list within stays as it is typed
        return f"\n{text}\n\n"
    if output.markup:
        markup = re.sub(r"\n\s*", "\n", output.markup).strip()
        return f'\n<div class="shown">{markup}</div>\n\n'
    return f"\n```text\n{output.text}\n```\n\n"
