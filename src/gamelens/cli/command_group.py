"""The group of all commands, and how it prints errors."""

from __future__ import annotations

from typing import Any

import click

from gamelens._text import terminal_line
from gamelens.cli.terminal_text import error_line
from gamelens.errors import GamelensError


class Commands(click.Group):
    """A group whose errors are one line on standard error, with a traceback only with --debug."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command and turn an exception into a `ClickException` with one line of text."""
        try:
            return super().invoke(ctx)
        except (click.ClickException, click.Abort, click.exceptions.Exit, BrokenPipeError):
            raise
        except Exception as error:
            if ctx.params.get("debug"):
                raise
            raise click.ClickException(terminal_line(_error_text(error))) from None


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
@click.version_option(package_name="gamelens")
def cli(debug: bool) -> None:
    """Query game metrics as DataFrames, and run a sandbox of both services.

    \b
    gamelens demo                                   everything, end to end, with no account
    gamelens query revenue --over "last 7 complete days" --by country_code
    gamelens doctor                                 what is set up, and whether it works
    """


def _error_text(error: Exception) -> str:
    match error:
        case GamelensError():
            return error_line(error)
        case ModuleNotFoundError(name=str(name)) if not name.startswith("gamelens"):
            return f"this needs {name}: pip install 'gamelens[lab,sandbox]'"
        case OSError(filename=str(name), strerror=str(reason)):
            return f"{name}: {reason}"
    return f"{type(error).__name__}: {error}. `gamelens --debug …` shows where"
