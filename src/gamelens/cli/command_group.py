"""The group of all commands, and how it prints errors."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import click

from gamelens._files import disk_trouble, is_full
from gamelens._text import terminal_line
from gamelens.cli.terminal.completion import completion
from gamelens.cli.terminal.terminal_text import error_line, has_colours, show_error
from gamelens.errors import GamelensError


class Commands(click.Group):
    """A group whose errors are one line on standard error, with a traceback only with --debug."""

    group_class = type  # a group in this one is the same

    def main(  # type: ignore[override]  # click's overloads say the same of each mode
        self, args: Sequence[str] | None = None, *, standalone_mode: bool = True, **extra: Any
    ) -> Any:
        """Run the command line and exit, with an error as `show_error` has it.

        Without *standalone_mode* it is raised.
        """
        extra.setdefault("color", has_colours())
        if not standalone_mode:
            return super().main(args, standalone_mode=False, **extra)
        try:
            code = super().main(args, standalone_mode=False, **extra)
        except click.ClickException as error:
            show_error(error)
            code = error.exit_code
        except OSError as error:  # of help, which a file takes in place of a terminal
            show_error(click.ClickException(terminal_line(_error_text(error))))
            code = 1
        except click.Abort:
            click.echo("Aborted!", err=True)
            code = 1
        sys.exit(code)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write each command with its whole summary, which click would cut."""
        shown = [(name, self.commands[name]) for name in self.list_commands(ctx) if not self.commands[name].hidden]
        with formatter.section("Commands"):
            formatter.write_dl([(name, command.get_short_help_str(limit=sys.maxsize)) for name, command in shown])

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command and turn an exception into a `ClickException` with one line of text."""
        try:
            return super().invoke(ctx)
        except (click.ClickException, click.Abort, click.exceptions.Exit, BrokenPipeError):
            raise
        except Exception as error:
            if ctx.find_root().params.get("debug"):
                raise
            raise click.ClickException(terminal_line(_error_text(error))) from None


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
@click.version_option(package_name="gamelens")
def cli(debug: bool) -> None:
    """Query game metrics as DataFrames, and run a sandbox of both services.

    \b
    gamelens demo                         everything, end to end, with no account
    gamelens query revenue --over "last 7 complete days" --by country_code
    gamelens doctor                       what is set up, and whether it works
    """


cli.add_command(completion)


def _error_text(error: Exception) -> str:
    match error:
        case GamelensError():
            return error_line(error)
        case ModuleNotFoundError(name=str(name)) if not name.startswith("gamelens"):
            return f"this needs {name}: pip install 'gamelens[lab,sandbox]'"
        case OSError() if is_full(error):
            return disk_trouble(error, "the output")
        case OSError(filename=str(name), strerror=str(reason)):
            return f"{name}: {reason}"
    return f"{type(error).__name__}: {error}. `gamelens --debug …` shows where"
