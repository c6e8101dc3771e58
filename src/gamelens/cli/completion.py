"""What a shell offers after a TAB: names of the catalog, without a question to anybody and without pandas."""

from __future__ import annotations

import os

import click
from click.shell_completion import CompletionItem, get_completion_class

from gamelens.cli.command_group import cli

SHELLS = ("bash", "zsh", "fish")


def metrics(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Metrics that start with what is typed."""
    from gamelens.catalog import METRICS

    return [CompletionItem(name, help=it.meaning) for name, it in METRICS.items() if name.startswith(incomplete)]


def dimensions(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Dimensions that start with what is typed, game and studio among them."""
    from gamelens.catalog import DIMENSIONS

    own = {"game": "id and title of the game", "studio": "id and name of the studio"}
    meanings = own | {name: it.meaning for name, it in DIMENSIONS.items()}
    return [CompletionItem(name, help=it) for name, it in meanings.items() if name.startswith(incomplete)]


def more_dimensions(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Dimensions, once `--by` was typed: before that nothing goes here."""
    return dimensions(ctx, param, incomplete) if ctx.params.get("by") else []


def scenarios(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Shipped scenarios that start with what is typed; else files."""
    from importlib import resources

    # Not asked of the simulator: importing numpy takes longer than anybody waits for a TAB.
    shipped = resources.files("gamelens") / "simulator" / "scenarios" / "shipped"
    names = sorted(it.name.removesuffix(".toml") for it in shipped.iterdir() if it.name.endswith(".toml"))
    found = [CompletionItem(name) for name in names if name.startswith(incomplete)]
    return found or [CompletionItem(incomplete, type="file")]


@cli.command()
@click.argument("shell", type=click.Choice(SHELLS), required=False)
def completion(shell: str | None) -> None:
    """The script with which a shell completes commands, options, metrics and dimensions; yours when none is named.

    \b
    bash: put this into ~/.bashrc               eval "$(gamelens completion bash)"
    zsh:  put this into ~/.zshrc                eval "$(gamelens completion zsh)"
    fish: put this into ~/.config/fish/config.fish   gamelens completion fish | source
    """
    name = shell or os.path.basename(os.environ.get("SHELL", ""))
    found = get_completion_class(name)
    if found is None:
        raise click.UsageError(f"which shell? One of {', '.join(SHELLS)}")
    click.echo(found(cli, {}, "gamelens", "_GAMELENS_COMPLETE").source())
