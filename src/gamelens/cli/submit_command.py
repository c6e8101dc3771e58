"""The command `gamelens submit`: a file of events, signed and sent to a collector."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click
import msgspec

from gamelens._text import terminal_line
from gamelens.cli.command_group import cli
from gamelens.cli.terminal.terminal_text import error_line, print_line
from gamelens.errors import Retryable

if TYPE_CHECKING:
    from gamelens.client.events.collector_client import CollectorClient
    from gamelens.client.events.event_file import FileEvent, SubmissionReport

SHOWN_FAULTS: Final = 20


@cli.command()
@click.argument("file", type=click.Path(dir_okay=False, allow_dash=True))
@click.option(
    "--strict", is_flag=True, help="First check all events against the documentation; send none if one fails."
)
@click.option("--dry-run", is_flag=True, help="Check the file and send nothing. Needs no keys.")
@click.option(
    "--ready", type=click.Path(path_type=Path, dir_okay=False), help="Ready file of a sandbox to submit to instead."
)
@click.option("--game", metavar="ID", help="With --ready: id or title of the game, if it has several.")
@click.option(
    "--forwarded-for",
    metavar="FIELD",
    help="Field of each event with the IP address of its player: sent as X-Forwarded-For, not in the event.",
)
@click.option("--json", "as_json", is_flag=True, help="Print counts and faults as a JSON object.")
def submit(
    file: str,
    strict: bool,
    dry_run: bool,
    ready: Path | None,
    game: str | None,
    forwarded_for: str | None,
    as_json: bool,
) -> None:
    """Sign the events of FILE and send them to the configured collector.

    \b
    Example: gamelens submit events.jsonl --strict
    Example: gzip -dc events.gz | gamelens submit - --ready ready.json --game 1001

    FILE is a JSON array of events, one event, or JSON lines, gzipped or not; - is standard input. If an event cannot
    be read nothing is sent. Events that break a rule are refused by the collector one by one, and the others are
    collected; with --strict every rule of the event documentation is checked first, unknown fields among them, and
    nothing is sent if one is broken. The init is asked first, and nothing is sent if it answers that the game is
    disabled.

    The country of an event is its country_code, else it is found by the address that sends it: this machine's, or with
    --forwarded-for FIELD the address of the event's player. Every player then has requests of their own.

    GAMELENS_COLLECTOR_URL, GAMELENS_GAME_KEY and GAMELENS_SECRET_KEY name the collector, or the config file.
    Exits with 1 if an event was refused or not sent.
    """
    import asyncio

    from gamelens.client.events.event_file import (
        MOST_BYTES,
        SubmissionReport,
        check_events,
        read_events,
        take_addresses,
    )

    if game is not None and ready is None:
        raise click.UsageError("--game needs --ready; for another collector, GAMELENS_GAME_KEY names the game")
    try:
        with contextlib.nullcontext(sys.stdin.buffer) if file == "-" else Path(file).open("rb") as opened:
            content = opened.read(MOST_BYTES + 1)  # of more, `read_events` says that it is too much
    except OSError as error:
        raise click.BadParameter(f"{file} cannot be read: {error.strerror}", param_hint="FILE") from None
    found = read_events(content)
    if forwarded_for is not None and not found.faults:
        found = take_addresses(found.events, forwarded_for)
    faults = found.faults
    if not faults and (strict or dry_run):
        faults = check_events(found.events, "strict" if strict else "lenient")
    if faults or dry_run or not found.events:
        report = SubmissionReport(not_sent=len(found.events), faults=faults)
    else:
        report = asyncio.run(_submit(_collector(ready, game), found.events))
    _print("stdin" if file == "-" else file, found.events, report, is_checked_only=dry_run, as_json=as_json)
    raise SystemExit(1 if report.faults or report.error else 0)


async def _submit(collector: CollectorClient, events: Sequence[FileEvent]) -> SubmissionReport:
    from gamelens.client.events.event_file import submit_events

    async with collector:
        return await submit_events(collector, events)


def _collector(ready: Path | None, game: str | None) -> CollectorClient:
    """Return a client of the collector that the options or the settings name.

    Raises:
        UsageError: they name none, or no game of it.
    """
    from gamelens.client.connection.settings import COLLECTOR_SETTINGS, PREFIX, Settings
    from gamelens.client.events.collector_client import CollectorClient
    from gamelens.local.sandbox_info import read_sandbox_info

    if ready is None:
        settings = Settings.from_environment()
        missing = [name for name in COLLECTOR_SETTINGS if settings.find(name) is None]
        if missing:
            variables = ", ".join(PREFIX + name.upper() for name in missing)
            places = f"set {variables}, or write {', '.join(missing)} into {settings.file}"
            raise click.ClickException(f"no collector is configured: {places}; for a sandbox pass --ready FILE")
        return CollectorClient()
    sandbox = read_sandbox_info(ready)
    games = [candidate for organisation in sandbox.organisations for candidate in organisation.games]
    named = [candidate for candidate in games if game is None or game in (candidate.id, candidate.title)]
    if len(named) != 1:
        listed = ", ".join(f"{candidate.id} ({candidate.title})" for candidate in games)
        which = "name one of its games with --game" if game is None else f"--game {game} is not one of its games"
        raise click.UsageError(terminal_line(f"{which}: {listed}"))
    return CollectorClient(
        collector_url=sandbox.collector_url,
        game_key=named[0].game_key,
        secret_key=named[0].secret_key,
        ca_file=sandbox.ca_file,
    )


def _print(
    name: str, events: Sequence[FileEvent], report: SubmissionReport, *, is_checked_only: bool, as_json: bool
) -> None:
    """Print counts on standard output and faults on standard error, or both as JSON."""
    if as_json:
        counts = {field: getattr(report, field) for field in ("collected", "rejected", "not_sent")}
        faults = msgspec.to_builtins(report.faults)
        error = error_line(report.error) if report.error is not None else None
        click.echo(json.dumps({"file": name, "events": len(events), **counts, "faults": faults, "error": error}))
        return
    for fault in report.faults[:SHOWN_FAULTS]:
        line = f":{fault.line}" if fault.line is not None else ""
        event = f" event {fault.event}:" if fault.event is not None else ""
        print_line(f"{name}{line}:{event} {fault.text}", err=True)
    if len(report.faults) > SHOWN_FAULTS:
        print_line(f"... and {len(report.faults) - SHOWN_FAULTS:,} more faults: --json lists them all", err=True)
    if report.error is not None:
        print_line(f"Error: {error_line(report.error)}", err=True)
    if report.error is not None and (first := report.first_not_sent) is not None:
        others = "those after it" if events[-report.not_sent] == first else f"{report.not_sent - 1:,} others"
        is_unknown = "; its request may have been collected" if isinstance(report.error, Retryable) else ""
        click.echo(f"not sent: event {first.number} (line {first.line}) and {others}{is_unknown}", err=True)
    click.echo(_summary(events, report, is_checked_only=is_checked_only))


def _summary(events: Sequence[FileEvent], report: SubmissionReport, *, is_checked_only: bool) -> str:
    counted = f"{len(events):,} event{'' if len(events) == 1 else 's'}"
    if is_checked_only and not report.faults:
        return f"{counted}, all valid: nothing was sent"
    if report.not_sent == len(events):
        return "nothing was sent" if report.faults or report.error else f"{counted}: nothing was sent"
    counts = {"collected": report.collected, "rejected": report.rejected, "not sent": report.not_sent}
    return f"{counted}: {', '.join(f'{count:,} {name}' for name, count in counts.items() if count)}"
