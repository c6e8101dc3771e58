"""The group all commands hang on, and how it says no."""

from __future__ import annotations

from typing import Any

import click

from gamelens._text import terminal_line
from gamelens.cli.terminal_text import error_line
from gamelens.errors import GamelensError


class Commands(click.Group):
    """A group whose refusals are one clear line on standard error, and a traceback only with --debug."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; what it raises becomes a line."""
        try:
            return super().invoke(ctx)
        except (click.ClickException, click.Abort, click.exceptions.Exit, BrokenPipeError):
            raise
        except Exception as error:
            if ctx.params.get("debug"):
                raise
            raise click.ClickException(terminal_line(_reason(error))) from None


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--debug", is_flag=True, help="Show a traceback when something is refused.")
@click.version_option(package_name="gamelens")
def cli(debug: bool) -> None:
    """Game metrics as honest DataFrames, with a sandbox of both services.

    \b
    gamelens demo                                   everything, end to end, with no account
    gamelens query revenue --over "last 7 complete days" --by country_code
    gamelens doctor                                 what is set up, and whether it works
    """


def _reason(error: Exception) -> str:
    match error:
        case GamelensError():
            return error_line(error)
        case ModuleNotFoundError(name=str(name)) if not name.startswith("gamelens"):
            return f"this needs {name}: pip install 'gamelens[lab,sandbox]'"
        case OSError(filename=str(name), strerror=str(reason)):
            return f"{name}: {reason}"
    return f"{type(error).__name__}: {error}. `gamelens --debug …` shows where"
