"""The command `gamelens`: every line a script may rely on, each with an example in its help."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import click

from gamelens.errors import GamelensError


class _Commands(click.Group):
    """A group whose refusals are one clear line on standard error, and a traceback only with --debug."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except GamelensError as error:
            if ctx.params.get("debug"):
                raise
            raise click.ClickException(str(error)) from None


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--debug", is_flag=True, help="Show a traceback when something is refused.")
@click.version_option(package_name="gamelens")
def cli(debug: bool) -> None:
    """Game metrics as honest DataFrames, with a sandbox of both services.

    \b
    gamelens demo                                   everything, end to end, with no account
    gamelens query revenue --over "last 7 complete days" --by country_code
    """


@cli.group()
def sandbox() -> None:
    """Both services on this machine."""


@sandbox.command("up")
@click.option("--state", type=click.Path(path_type=Path, file_okay=False), required=True, help="State directory.")
@click.option("--collector-port", type=click.IntRange(0, 65535), default=0, help="0: any free port.")
@click.option("--metrics-port", type=click.IntRange(0, 65535), default=0, help="0: any free port.")
@click.option("--config", type=click.Path(path_type=Path, dir_okay=False), help="Organisations, games and keys (TOML).")
@click.option("--ready", type=click.Path(path_type=Path, dir_okay=False), help="Written when both services listen.")
@click.option("--reply", type=click.Choice(["auto", "empty", "json"]), default="auto", help="Body of a 200 for events.")
@click.option("--refresh", type=click.FloatRange(min=0), default=3600.0, help="Seconds an available interval is kept.")
@click.option("--rate", type=click.IntRange(min=1), default=5, help="Requests a second for each organisation.")
@click.option("--concurrency", type=click.IntRange(min=1), default=5, help="Requests at once for each organisation.")
def sandbox_up(
    state: Path,
    collector_port: int,
    metrics_port: int,
    config: Path | None,
    ready: Path | None,
    reply: Any,
    refresh: float,
    rate: int,
    concurrency: int,
) -> None:
    """Run both services until SIGINT or SIGTERM.

    \b
    Example: gamelens sandbox up --state ~/sandbox --ready ready.json
    """
    from gamelens.sandbox.serving import Options, Sandbox, serve

    options = Options(
        state=state,
        collector_port=collector_port,
        metrics_port=metrics_port,
        config=config,
        ready=ready,
        reply=reply,
        refresh_s=refresh,
        rate=rate,
        at_once=concurrency,
    )
    serve(Sandbox(options))
