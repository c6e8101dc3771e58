"""The command `gamelens report`: a notebook, run with parameters and written as one page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from gamelens.cli.command_group import cli
from gamelens.cli.terminal.completion import complete_or_file, matching, time_words
from gamelens.cli.terminal.terminal_text import print_line, progress_bar

_WORDS = "gamelens.cli.report_command.words"


class ReportCommand(click.Command):
    """A command that leaves its words for completion.

    Click drops the values of an option that lacks its last one.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse *args* as click does."""
        ctx.meta[_WORDS] = tuple(args)
        return super().parse_args(ctx, args)


def notebooks(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return the shipped notebooks that start with *incomplete*, else complete a file."""
    from gamelens.local.demo import notebooks_folder

    return complete_or_file(sorted(path.stem for path in notebooks_folder().glob("*.ipynb")), incomplete)


def parameters_and_values(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return the parameters that start with *incomplete*, or behind one of them its values."""
    from gamelens.errors import GamelensError
    from gamelens.local.demo import find_notebook
    from gamelens.notebook.reports.notebook_parameters import read_parameters

    words: tuple[str, ...] = ctx.meta[_WORDS]
    before, last = ("", *words)[-2:]
    try:
        defaults = read_parameters(find_notebook(ctx.args[0]))
    except (IndexError, GamelensError):  # no notebook is named yet, or none that there is
        return []
    if before not in param.opts:
        return matching(defaults, incomplete)
    default = defaults.get(last)
    is_time = isinstance(default, str) and default.startswith("last ")
    return time_words(ctx, param, incomplete) if is_time else matching(_values(default), incomplete)


def _values(default: Any) -> list[str]:
    """Return the values of a parameter that its *default* tells."""
    match default:
        case None:
            return []
        case bool():
            return ["true", "false"]
        case list() | tuple():
            return [str(value) for value in default]
    return [str(default)]


@cli.command(cls=ReportCommand)
@click.argument("notebook", shell_complete=notebooks)
@click.option(
    "-p",
    "parameters",
    type=(str, str),
    multiple=True,
    metavar="NAME VALUE",
    shell_complete=parameters_and_values,
    help="A parameter of the notebook; repeatable. Give a list one element at a time.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path(),
    metavar="FILE.html",
    help="The page, or a folder for it; by default the current folder.",
)
@click.option("--interactive", is_flag=True, help="Interactive figures, with 2 MB of plotly in the page.")
def report(notebook: str, parameters: tuple[tuple[str, str], ...], out: Path, interactive: bool) -> None:
    """Run a notebook and write it as one HTML page, without its code.

    \b
    Example: gamelens report 01_ad_revenue -p over yesterday --out ads.html

    NOTEBOOK is a file, or the name of a shipped notebook, such as 01_ad_revenue or ad_revenue. It queries the
    configured service or, without a key, the sandbox with demo data. Values are typed like the defaults in the cell
    tagged `parameters`; where a default is None, a number stays text, as ids are. When a cell fails, nothing is
    written. The page opens without a network.
    """
    from gamelens.local import demo
    from gamelens.notebook.reports.notebook_parameters import read_parameters, typed

    path = demo.find_notebook(notebook)
    typed(parameters, read_parameters(path), notebook=path.name)  # before anything slow is imported or started

    def say(line: str) -> None:
        print_line(line, prefix="· ", err=True)

    with progress_bar(path.name) as show:
        from gamelens.local.connect import ensure_service
        from gamelens.notebook.reports.report import write_report

        ensure_service(say=say)
        written = write_report(path, out, parameters=parameters, is_interactive=interactive, say=say, on_cells=show)
    print_line(str(written))
