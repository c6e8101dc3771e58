"""The command `gamelens report`: a notebook, run with parameters and written as one page."""

from __future__ import annotations

from pathlib import Path

import click
from click.shell_completion import CompletionItem

from gamelens._text import terminal_line
from gamelens.cli.command_group import cli
from gamelens.cli.completion import complete_or_file


def notebooks(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return the shipped notebooks that start with *incomplete*, else complete a file."""
    from gamelens.local.demo import notebooks_folder

    return complete_or_file(sorted(path.stem for path in notebooks_folder().glob("*.ipynb")), incomplete)


@cli.command()
@click.argument("notebook", shell_complete=notebooks)
@click.option(
    "-p",
    "parameters",
    type=(str, str),
    multiple=True,
    metavar="NAME VALUE",
    help="A parameter of the notebook, again for another; a list takes one element each time.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path(),
    metavar="FILE.html",
    help="The page, or a folder for it; by default the current folder.",
)
@click.option("--interactive", is_flag=True, help="Interactive figures: the page contains plotly, 2 MB of it.")
def report(notebook: str, parameters: tuple[tuple[str, str], ...], out: Path, interactive: bool) -> None:
    """Run a notebook and write it as one HTML page, without its code.

    \b
    Example: gamelens report 01_ad_revenue -p over "last 7 complete days" --out ads.html

    NOTEBOOK is a file, or the name of a shipped notebook, such as 01_ad_revenue or ad_revenue. It queries the
    configured service or, without a key, the sandbox with demo data. Values are typed like the defaults in the cell
    tagged `parameters`; where a default is None, a number stays text, as ids are. When a cell fails, nothing is
    written. The page opens without a network.
    """
    from gamelens.local import connect, demo
    from gamelens.notebook.reports.report import check, write_report

    def say(line: str) -> None:
        click.echo(f"· {terminal_line(line)}", err=True)

    path = demo.find_notebook(notebook)
    check(path, parameters)  # before a sandbox is started and populated for nothing
    connect.ensure_service(say=say)
    click.echo(write_report(path, out, parameters=parameters, is_interactive=interactive, say=say))
