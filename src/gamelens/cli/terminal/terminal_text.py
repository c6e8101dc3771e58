"""Lines for a terminal: wrapped at words, with options instead of Python arguments."""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import StringIO
from typing import TYPE_CHECKING, Final

import click

from gamelens._files import why_unwritable
from gamelens._text import is_terminal, printable, terminal_line
from gamelens.errors import GamelensError, NotRecorded, NotYetAvailable, PartialResult, Truncated

if TYPE_CHECKING:
    from gamelens.receipts import Gap

_ERROR: Final = "Error:"
_MIN_WIDTH: Final = 20


def print_line(text: str, *, prefix: str = "", err: bool = False, colour: str | None = None) -> None:
    """Print *text*, which may hold names from outside, on one line, in a terminal wrapped at words.

    *prefix* stands in front of the first line, blanks in front of the others.
    """
    blanks = " " * len(click.unstyle(prefix))
    shown = _wrapped(terminal_line(text), blanks, err=err)
    click.echo(prefix + click.style(shown, fg=colour), err=err)


def show_error(error: click.ClickException) -> None:
    """Print *error* on standard error, after the usage if that was wrong."""
    text = StringIO()
    error.show(text)
    for line in text.getvalue().splitlines():
        shown = _wrapped(printable(line), err=True)
        if line.startswith(_ERROR):
            shown = click.style(_ERROR, fg="red", bold=True) + shown.removeprefix(_ERROR)
        click.echo(shown, err=True, color=has_colours())


@contextmanager
def progress_bar(label: str) -> Iterator[Callable[[int, int], object]]:
    """Yield a function that shows how many of how many are done.

    It does so on standard error if that is a terminal. What is printed meanwhile stands above the bar, which is gone
    at the end.
    """
    if not is_terminal(sys.stderr):
        yield lambda _, __: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, TimeElapsedColumn(), console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(terminal_line(label), total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def has_colours() -> bool | None:
    """Return False if NO_COLOR is set, else None: a terminal has them, a file or pipe not."""
    return False if os.environ.get("NO_COLOR") else None


def cannot_write(option: str, target: object, error: OSError) -> click.ClickException:
    """Return the error of a command that cannot write the file *target* of an *option*."""
    return click.ClickException(f"{option} {target} cannot be written: {why_unwritable(error)}")


def error_line(error: GamelensError) -> str:
    """Return the message of *error*, with options instead of Python arguments."""
    match error:
        case PartialResult(gaps=gaps):
            from gamelens.receipts import Gap

            pieces = f"{len(gaps)} pieces are missing, the first of them" if len(gaps) > 1 else "1 piece is missing:"
            return f"{pieces} {gap_line(Gap(**gaps[0]))} --on-error gaps shows the rest"
        case NotYetAvailable():
            options = str(error).replace("pass when_unavailable=", "add --when-unavailable ").replace('"', "")
            return options.replace("deadline_s=", "--deadline")
        case Truncated(limit=limit):
            full = f"an answer holds {limit} values, the most the service gives: there may be more"
            return f"{full}. Narrow it with --where, --games or a shorter --over, or ask for the largest with --top"
        case NotRecorded(asked=asked, nearest=nearest):
            hint = f" Nearest recorded: {nearest}." if nearest else ""
            return f"no answer is recorded for {asked}.{hint} Run the same command with --record DIR to record it"
    return str(error)


def gap_line(gap: Gap) -> str:
    """Return one line about a gap of a receipt."""
    parts = [f"{name} = {value}" for name, value in (gap.scope or {}).items()]
    narrowed = f" ({', '.join(parts)})" if parts else ""
    return f"{gap.metric} in {gap.interval}{narrowed}: {gap.error}"


def _wrapped(text: str, indent: str = "", *, err: bool) -> str:
    """Return *text* wrapped at words to the width of its terminal, or on one line in a pipe."""
    if not is_terminal(sys.stderr if err else sys.stdout):
        return text
    width = max(shutil.get_terminal_size().columns - len(indent), _MIN_WIDTH)
    lines = textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False)
    return f"\n{indent}".join(lines)
