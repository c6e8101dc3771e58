"""The command `sandbox`: both services on this machine."""

from __future__ import annotations

import functools
import inspect
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import UnionType
from typing import TYPE_CHECKING, Any, Final, Literal, Union, get_args, get_origin, get_type_hints

import click
from click.shell_completion import CompletionItem

from gamelens._text import is_terminal, printable
from gamelens.cli.command_group import cli
from gamelens.cli.terminal.completion import matching, scenarios
from gamelens.cli.terminal.table_printer import PrintedColumn, print_columns
from gamelens.cli.terminal.terminal_text import print_line

if TYPE_CHECKING:
    from gamelens.client.connection.control_api import ProcessingProgress
    from gamelens.local.running_sandboxes import SandboxProcess


_ANSWER_S: Final = 3.0
_FOLDER: Final = click.Path(path_type=Path, file_okay=False)


_CELLS: Final[dict[str, Callable[[SandboxProcess], Any]]] = {
    "state": lambda sandbox: str(sandbox.state),
    "since": lambda sandbox: f"{sandbox.since:%Y-%m-%dT%H:%MZ}",
    "pid": lambda sandbox: sandbox.pid,
    "started_by": lambda sandbox: "connect" if sandbox.stops_when_idle else "command",
    "organisations": lambda sandbox: [known.name for known in sandbox.info.organisations] if sandbox.info else [],
    "metrics_url": lambda sandbox: sandbox.info.metrics_url if sandbox.info else None,
}
"""The columns of `sandbox list`."""


_VALIDATIONS: Final = ("lenient", "strict", "events", "headers", "init")


def _checked_validation(_: click.Context, __: click.Parameter, value: str) -> str:
    """Return *value* if it names ways to judge requests."""
    from gamelens.errors import BadQuery
    from gamelens.wire.event_validator import strict_parts

    try:
        strict_parts(value)
    except BadQuery as error:
        raise click.BadParameter(str(error)) from None
    return value


def _running_states(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return the states of running sandboxes that start with *incomplete*, else a folder."""
    from gamelens.local.running_sandboxes import running_sandboxes

    found = matching((str(sandbox.state) for sandbox in running_sandboxes()), incomplete)
    return found or [CompletionItem(incomplete, type="dir")]


@cli.group()
def sandbox() -> None:
    """Run both services on this machine."""


_OF_OPTIONS: Final[dict[str, dict[str, Any]]] = {
    "state": {"type": _FOLDER},
    "validation": {
        "metavar": "[lenient|strict|PARTS]",
        "callback": _checked_validation,
        "shell_complete": lambda _, __, incomplete: matching(_VALIDATIONS, incomplete),
    },
    "tls_name": {"metavar": "HOST"},
    "engine": {"metavar": "NAME"},
    "lake_url": {"metavar": "URL"},
    "stop_after_idle": {"hidden": True},
}
"""What only the command line has of the fields of `SandboxOptions`, beside their types."""


@functools.cache
def _up_options() -> tuple[click.Option, ...]:
    """Return the fields of `SandboxOptions` as options, with the first sentence of their words as help."""
    from gamelens.sandbox.options import SandboxOptions

    section = inspect.cleandoc(SandboxOptions.__doc__ or "").partition("Attributes:\n")[2]
    words = {
        name: " ".join(text.split())
        for names, text in re.findall(r"^ {4}([\w, ]+?): ((?:.|\n {8})*)", section, re.MULTILINE)
        for name in names.split(", ")
    }
    names, kinds = SandboxOptions.__struct_fields__, get_type_hints(SandboxOptions, include_extras=True)
    defaults = dict(zip(reversed(names), reversed(SandboxOptions.__struct_defaults__), strict=False))

    def option(name: str) -> click.Option:
        text = re.sub(r" \(Wire .*?\)", "", words[name]).partition(". ")[0].rstrip(".")
        return click.Option(
            [f"--{name.removesuffix('_s').replace('_', '-')}", name],
            help=f"{text[0].upper()}{text[1:]}.",
            required=name not in defaults,
            **({} if defaults.get(name) is None else {"default": defaults[name]}),
            **_click_type(kinds[name]) | _OF_OPTIONS.get(name, {}),
        )

    return tuple(option(name) for name in names if name != "titles")


def _click_type(kind: Any) -> dict[str, Any]:
    """Return what makes an option of a field of this type."""
    kind, *limits = get_args(kind) if hasattr(kind, "__metadata__") else (kind,)
    if get_origin(kind) in (Union, UnionType):
        (kind,) = (one for one in get_args(kind) if one is not type(None))
    if kind is bool:
        return {"is_flag": True}
    if get_origin(kind) is tuple:
        return {"multiple": True}
    if get_origin(kind) is Literal:
        return {"type": click.Choice(get_args(kind))}
    if kind is Path:
        return {"type": click.Path(path_type=Path, dir_okay=False)}
    if limits:
        span = click.IntRange if kind is int else click.FloatRange
        return {"type": span(limits[0].ge, limits[0].le)}
    return {"type": kind}


class _UpCommand(click.Command):
    """A command with the options of a sandbox, which are read when they are needed: that imports its room."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return the options of a sandbox, the scenario beside the configuration."""
        options = [*_up_options()]
        place = 1 + [option.name for option in options].index("config")
        return [*options[:place], *self.params, *options[place:], *super().get_params(ctx)[len(self.params) :]]


@sandbox.command("up", cls=_UpCommand)
@click.option(
    "--scenario",
    shell_complete=scenarios,
    help="Studios and games of a scenario, by name or from a TOML file; replaces --config.",
)
def sandbox_up(scenario: str | None, **options: Any) -> None:
    """Run both services until SIGINT or SIGTERM.

    \b
    Example: gamelens sandbox up --state ~/sandbox --ready ready.json

    A new sandbox has one organisation with the three games of the scenario `demo`; with --scenario portfolio it has
    twenty. Without --config and --scenario, a sandbox keeps the organisations it has.

    The live-events page is at the console_url of the ready file. With --tls the ready file names a ca_file as well:
    clients trust the services if SSL_CERT_FILE names it (curl: --cacert).
    """
    from gamelens.local.sandbox_process import scenario_titles
    from gamelens.sandbox.options import SandboxOptions
    from gamelens.sandbox.server import Sandbox, serve

    if options["config"] and scenario:
        raise click.UsageError("--config and --scenario both say which games there are: pass one of them")
    serve(Sandbox(SandboxOptions(titles=scenario_titles(scenario) if scenario else (), **options)))


@sandbox.command("list")
@click.option("--json", "as_json", is_flag=True, help="A JSON array of sandboxes.")
def sandbox_list(as_json: bool) -> None:
    """Show the sandboxes that you run on this machine, the oldest first.

    \b
    Example: gamelens sandbox list

    Those that `connect` started stop by themselves when they are idle. One without organisations is still starting.
    """
    from gamelens.local.running_sandboxes import running_sandboxes

    found = running_sandboxes()
    if as_json:
        click.echo(json.dumps([{name: cell(sandbox) for name, cell in _CELLS.items()} for sandbox in found]))
    elif found:
        columns = []
        for name, cell in _CELLS.items():
            values = map(cell, found)
            texts = [", ".join(value) if isinstance(value, list) else str(value or "") for value in values]
            is_path = name == "state"  # a path is never cut
            columns.append(PrintedColumn(name, [*map(printable, texts)], is_key=is_path, is_text=not is_path))
        print_columns(columns)
    else:
        click.echo("no sandbox is running", err=True)


@sandbox.command("stop")
@click.option(
    "--state",
    type=_FOLDER,
    shell_complete=_running_states,
    help="State directory; by default the one of the sandbox that `connect` uses.",
)
def sandbox_stop(state: Path | None) -> None:
    """Stop a sandbox on this machine, wait for it to end, and say what was stopped.

    \b
    Example: gamelens sandbox stop --state ~/sandbox

    Everything it accepted stays in the state directory.
    """
    from gamelens.local.connect import demo_state
    from gamelens.local.running_sandboxes import stop_sandbox
    from gamelens.local.sandbox_process import find_sandbox

    state = state or demo_state()
    stopped = stop_sandbox(state)
    if stopped is not None:
        since = _CELLS["since"](stopped)
        print_line(
            f"stopped the sandbox over {stopped.state}, which had been running since {since} as process {stopped.pid}"
        )
    elif find_sandbox(state, within_s=_ANSWER_S):
        raise click.ClickException(f"the sandbox on {state} answers, but is not your process on this machine")
    else:
        print_line(f"no sandbox is running over {state}")


@sandbox.command("process")
@click.option("--state", type=_FOLDER, required=True, help="State directory.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object, keyed by organisation.")
def sandbox_process(state: Path, as_json: bool) -> None:
    """Process everything received so far and print the available intervals.

    \b
    Example: gamelens sandbox process --state ~/sandbox
    """
    from gamelens.local.sandbox_process import process_at

    available = process_at(state, report=_show_progress if is_terminal(sys.stderr) else None)
    if as_json:
        click.echo(json.dumps(available))
    else:
        for name, interval in available.items():
            click.echo(f"{printable(name)}  {interval}")


def _show_progress(progress: ProcessingProgress) -> None:
    """Write the progress of a run over the last line of the terminal."""
    text = f"{progress.decoded:,} of {progress.events:,} events decoded, {progress.committed:,} in the lake"
    if progress.rest_s is not None:
        text += f"; {progress.events_per_s:,} a second, about {progress.rest_s:.0f} s left"
    click.echo(f"\r\033[K{text}", nl=progress.committed == progress.events, err=True)


@sandbox.command("rebuild")
@click.option("--state", type=_FOLDER, required=True, help="State directory.")
@click.option(
    "--organisation", "organisations", multiple=True, metavar="NAME", help="Only this organisation; repeatable."
)
@click.option(
    "--accept-loss",
    is_flag=True,
    help="Continue without lost events; their files, and a damaged store, are moved to quarantine/.",
)
def sandbox_rebuild(state: Path, organisations: tuple[str, ...], accept_loss: bool) -> None:
    """Rebuild the tables of a stopped sandbox, and print the names of their organisations.

    \b
    Example: gamelens sandbox rebuild --state ~/sandbox

    A running sandbox does this by itself when it finds damage. If the inbox has all events, they are decoded again,
    under the rules of this version and of the last configuration; else intact events of the lake are kept. The old
    tables stay until everything is done.
    """
    from gamelens.sandbox.server import rebuild_stopped

    for name in rebuild_stopped(state, organisations, accept_loss=accept_loss):
        print_line(name)


@sandbox.command("verify")
@click.option("--state", type=_FOLDER, required=True, help="State directory.")
@click.option("--files", is_flag=True, help="Only check the size and checksum of each file.")
def sandbox_verify(state: Path, files: bool) -> None:
    """Rebuild the tables that answer queries from the stored events, and compare them row by row.

    \b
    Example: gamelens sandbox verify --state ~/sandbox

    Exits with 1 on any difference.
    """
    from gamelens.sandbox.maintenance.verification import verify, verify_files

    if files:
        count, damage = verify_files(state)
        if damage:
            raise click.ClickException("; ".join(damage))
        click.echo(f"{count:,} files: none is damaged")
        return
    verified = verify(state)
    compared = f"{verified.events:,} events and {verified.players:,} players"
    for difference in verified.differences:
        print_line(str(difference), err=True)
    if verified.differences:
        raise click.ClickException(f"{compared}: {len(verified.differences)} differences")
    click.echo(f"{compared}: no differences")
