"""What a person sees in a terminal: lines lines wrapped at words, colours and progress."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from gamelens.cli import cli
from support.command_process import GAMELENS, run_here
from support.notebook_files import code_cell, notebook_of, write_notebook

NO_COLOURS = {"NO_COLOR": "1"}
RED = "\x1b[31m"


def shown(*arguments: str, columns: int = 80, env: dict[str, str] | None = None) -> str:
    """Return what `gamelens` with *arguments* writes to a terminal of so many *columns*."""
    ours, its = pty.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    inherited = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES", "NO_COLOR")}
    process = subprocess.Popen(
        [*GAMELENS, *arguments], stdin=its, stdout=its, stderr=its, env=inherited | {"TERM": "xterm"} | (env or {})
    )
    os.close(its)
    text = b"".join(chunks(ours)).decode()
    process.wait(timeout=60)
    os.close(ours)
    return text.replace("\r\n", "\n")


def chunks(terminal: int) -> Iterator[bytes]:
    """Yield what is written to *terminal* until nobody writes any more."""
    while True:
        try:
            chunk = os.read(terminal, 4096)
        except OSError:  # Linux ends a terminal so
            return
        if not chunk:
            return
        yield chunk


def commands(command: click.Command, name: str, parent: click.Context | None = None) -> Iterator[click.Context]:
    """Yield the context of *command* and of all commands in it, as they are called."""
    context = command.make_context(name, [], parent, resilient_parsing=True, terminal_width=80)
    yield context
    for inner_name, inner in getattr(command, "commands", {}).items():
        yield from commands(inner, inner_name, context)


def test_help_fits_80_columns_and_cuts_no_summary() -> None:
    """No line of any help is longer than 80 columns, and no summary ends in three dots."""
    for context in commands(cli, "gamelens"):
        text = context.command.get_help(context)
        assert [line for line in text.splitlines() if len(line) > 80] == []
        assert "..." not in text.partition("Commands:")[2]


@pytest.mark.parametrize("columns", [80, 60])
def test_an_error_wraps_at_words(columns: int) -> None:
    """In a terminal an error is as wide as that, and no word of it is broken; in a pipe it is one line."""
    text = shown("report", "no_such_notebook_anywhere", columns=columns)
    piped = run_here("report", "no_such_notebook_anywhere").stderr
    plain = re.sub(r"\x1b\[\d*m", "", text)
    assert max(map(len, plain.splitlines())) <= columns
    assert plain.count("\n") > piped.count("\n") == 1
    assert plain.split() == piped.split()


@pytest.mark.wide
def test_an_error_is_red_where_there_are_colours() -> None:
    """The word `Error:` is red in a terminal, unless NO_COLOR is set; so is that of wrong usage."""
    assert f"{RED}\x1b[1mError:\x1b[0m" in shown("report", "nothing")
    assert f"{RED}\x1b[1mError:\x1b[0m" in shown("query", "revenue", "--nonsense")
    assert "\x1b" not in shown("report", "nothing", env=NO_COLOURS)


@pytest.mark.wide
def test_a_terminal_obeys_nothing_in_what_was_typed() -> None:
    """An error that quotes an argument shows its control characters as text."""
    text = shown("report", "bad\x1b]0;owned\x07\u202e", env=NO_COLOURS)
    usage = shown("query", "revenue", "--over", "yesterday", "\x1b[2Jmore", env=NO_COLOURS)
    assert not {"\x1b", "\x07", "\u202e"} & {*text, *usage}
    assert "owned" in text
    assert "more" in usage


def test_a_misspelt_notebook_is_refused_before_anything_slow() -> None:
    """Neither pandas nor nbformat is imported to refuse a notebook or a parameter that there is not."""
    for arguments in (["nothing"], ["01_ad_revenue", "-p", "ovr", "x"]):
        code = f"import sys; from gamelens.cli import cli; cli({['report', *arguments]}, standalone_mode=False)"
        code = f"try:\n  {code}\nexcept Exception as error: print(error, {{'pandas', 'nbformat'}} & {{*sys.modules}})"
        result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert result.stdout.rstrip().endswith("set()"), result.stdout
        assert "Did you mean" in result.stdout or "neither a file" in result.stdout


@pytest.mark.wide
@pytest.mark.slow
def test_a_report_shows_its_progress_in_a_terminal(tmp_path: Path) -> None:
    """While a notebook runs, a terminal shows how many of its cells have run; `test_report_command` has a pipe."""
    cells = ("import time", "time.sleep(0.4)", "print(1)")
    path = write_notebook(notebook_of(code_cell("a = 1", is_parameters=True), *cells), tmp_path / "ours.ipynb")
    quiet = {"GAMELENS_API_KEY": "key", "GAMELENS_METRICS_URL": "http://127.0.0.1:9"}
    text = shown("report", str(path), "--out", str(tmp_path), env=quiet)
    assert "ours.ipynb" in text
    assert "2/4" in text
