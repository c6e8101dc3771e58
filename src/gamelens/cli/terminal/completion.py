"""Shell completion of metrics, dimensions, time ranges and scenarios.

The names come from the catalog and from file names: no request is sent, and neither pandas nor numpy is imported.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from typing import Any

import click
from click.shell_completion import BashComplete, CompletionItem, add_completion_class, get_completion_class

SHELLS = ("bash", "zsh", "fish")


@add_completion_class
class BashWords(BashComplete):
    """Completion for bash, in which a value with blanks stays one word."""

    def format_completion(self, item: CompletionItem[Any]) -> str:
        """Return the line for *item*, with blanks escaped unless its word began with a quote."""
        words, place = os.environ["COMP_WORDS"].split("\n"), int(os.environ["COMP_CWORD"])
        if item.type == "plain" and not (place < len(words) and words[place].startswith(("'", '"'))):
            # `read` in the script takes one of the two backslashes.
            item.value = re.sub(r"([^\w@%+=:,./-])", r"\\\\\1", item.value)
        return super().format_completion(item)


def metrics(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return the metrics, aliases and own metrics that start with *incomplete*."""
    from gamelens.catalog import CATALOG
    from gamelens.client.connection.settings import client_catalog
    from gamelens.errors import BadQuery

    try:
        rows = [*client_catalog(None).metrics.values()]
    except BadQuery:  # a damaged config file; the command itself tells
        rows = [*CATALOG.metrics.values()]
    return [CompletionItem(row.name, help=row.meaning) for row in rows if row.name.startswith(incomplete)]


def watched_metrics(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return the numbers that a health board can watch: its usual ones and the metrics of the service."""
    from gamelens.analysis.health.watched_metrics import WATCHED
    from gamelens.catalog import METRICS

    return matching(dict.fromkeys((*WATCHED, *METRICS)), incomplete)


def time_words(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return the time ranges in words that start with *incomplete*."""
    from gamelens.client.tables.time_ranges import TIME_WORDS

    return matching(TIME_WORDS, incomplete)


def dimensions(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return the dimensions that start with *incomplete*, including `game` and `studio`."""
    from gamelens.catalog import DIMENSIONS
    from gamelens.client.query.description import TITLE_DIMENSIONS

    meanings = TITLE_DIMENSIONS | {name: row.meaning for name, row in DIMENSIONS.items()}
    return [CompletionItem(name, help=meaning) for name, meaning in meanings.items() if name.startswith(incomplete)]


def more_dimensions(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return dimensions for the values after the first of `--by`, or none without `--by`."""
    return dimensions(ctx, param, incomplete) if ctx.params.get("by") else []


def scenarios(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return the shipped scenarios that start with *incomplete*, else complete a file."""
    from importlib import resources

    # The files are listed without the simulator: importing it, and numpy, is too slow for a completion.
    shipped = resources.files("gamelens") / "simulator" / "scenarios" / "shipped"
    names = sorted(file.name.removesuffix(".toml") for file in shipped.iterdir() if file.name.endswith(".toml"))
    return complete_or_file(names, incomplete)


def matching(values: Iterable[str], incomplete: str) -> list[CompletionItem]:
    """Return the *values* that start with *incomplete*."""
    return [CompletionItem(value) for value in values if value.startswith(incomplete)]


def complete_or_file(names: Iterable[str], incomplete: str) -> list[CompletionItem]:
    """Return the *names* that start with *incomplete*, else let the shell complete a file."""
    return matching(names, incomplete) or [CompletionItem(incomplete, type="file")]


@click.command()
@click.argument("shell", type=click.Choice(SHELLS), required=False)
@click.pass_context
def completion(ctx: click.Context, shell: str | None) -> None:
    """Print the script that completes commands, options and names in a shell.

    Without SHELL, it is the script for your own shell.

    \b
    bash: put this into ~/.bashrc               eval "$(gamelens completion bash)"
    zsh:  put this into ~/.zshrc                eval "$(gamelens completion zsh)"
    fish: put this into config.fish             gamelens completion fish | source
    """
    name = shell or os.path.basename(os.environ.get("SHELL", ""))
    completion_class = get_completion_class(name)
    if completion_class is None:
        raise click.UsageError(f"cannot detect your shell: name one of {', '.join(SHELLS)}")
    click.echo(completion_class(ctx.find_root().command, {}, "gamelens", "_GAMELENS_COMPLETE").source())
