"""`gamelens report`: a notebook with parameters, run and written as one page, by hand or by a scheduler."""

from __future__ import annotations

from pathlib import Path

import click
from click.shell_completion import CompletionItem

from gamelens._text import terminal_line
from gamelens.cli.command_group import cli


def notebooks(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Shipped notebooks that start with what is typed; else files."""
    from gamelens.local.demo import notebooks_folder

    names = sorted(path.stem for path in notebooks_folder().glob("*.ipynb"))
    found = [CompletionItem(name) for name in names if name.startswith(incomplete)]
    return found or [CompletionItem(incomplete, type="file")]


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
    help="The page, or a folder for it; here if you do not say.",
)
@click.option("--interactive", is_flag=True, help="Figures that move: plotly is put inside, 2 MB of it.")
def report(notebook: str, parameters: tuple[tuple[str, str], ...], out: Path, interactive: bool) -> None:
    """Run a notebook and write one HTML page without its code, which opens with no network.

    \b
    Example: gamelens report 01_ad_revenue -p over "last 7 complete days" --out ads.html

    NOTEBOOK is a file, or the name of one of ours, such as 01_ad_revenue or ad_revenue. It asks the configured service,
    or the sandbox with demo data where there is no key. Values are typed like the defaults in the cell tagged
    `parameters`; where a default is None, a number stays text, as ids are. When a cell fails nothing is written.
    """
    from gamelens.local import connect, demo
    from gamelens.notebook.reports.report import check, write_report

    def say(line: str) -> None:
        click.echo(f"· {terminal_line(line)}", err=True)

    found = demo.find_notebook(notebook)
    check(found, parameters)  # before a sandbox is started and filled for nothing
    connect.ensure_service(say=say)
    click.echo(write_report(found, out, parameters=parameters, is_interactive=interactive, say=say))
