"""The commands `simulate`, `demo` and `lab`."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

import click

from gamelens._text import printable
from gamelens.cli.command_group import cli
from gamelens.cli.terminal.completion import scenarios

if TYPE_CHECKING:
    from gamelens.local.sandbox_info import SandboxInfo
    from gamelens.simulator import Scenario

_STATUS_EVERY_S: Final = 10.0


@cli.command()
@click.option("--scenario", required=True, shell_complete=scenarios, help="Name of a shipped scenario, or a TOML file.")
@click.option("--players", type=click.IntRange(min=1), help="Overrides the scenario's.")
@click.option("--days", type=click.IntRange(min=1), help="Overrides the scenario's.")
@click.option("--seed", type=click.IntRange(min=0), help="Overrides the scenario's.")
@click.option(
    "--ready", type=click.Path(path_type=Path, dir_okay=False), help="Ready file of the sandbox to play into."
)
@click.option(
    "--into",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="STATE",
    help="Instead of sending, write to the lake of a stopped, empty sandbox.",
)
@click.option(
    "--export",
    type=(click.Choice(["raw-json", "event-parquet"]), click.Path(path_type=Path, file_okay=False)),
    metavar="FORMAT DIR",
    help="Instead of sending, write files as the service exports raw events: raw-json or event-parquet.",
)
@click.option("--workers", type=click.IntRange(min=1), default=1, help="Number of processes that generate the events.")
@click.option(
    "--mode",
    type=click.Choice(["batches", "clients", "server"]),
    default="batches",
    help="Ready-made bodies (fast), a client for each player, or a game server that submits for its players.",
)
@click.option("--live", is_flag=True, help="Keep playing from now on, in real time, until Ctrl-C.")
@click.option(
    "--speed",
    type=click.FloatRange(min=0, min_open=True),
    default=1.0,
    help="With --live: seconds played per real second.",
)
@click.option("--ledger", type=click.Path(path_type=Path, dir_okay=False), help="Write what really happened (Parquet).")
@click.option("--dry-run", is_flag=True, help="Instead of sending, count the events of the scenario.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")
def simulate(
    scenario: str,
    players: int | None,
    days: int | None,
    seed: int | None,
    ready: Path | None,
    into: Path | None,
    export: tuple[Literal["raw-json", "event-parquet"], Path] | None,
    workers: int,
    mode: Literal["batches", "clients", "server"],
    live: bool,
    speed: float,
    ledger: Path | None,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Play a scenario against a running sandbox.

    \b
    Example: gamelens simulate --scenario small --ready ready.json

    With --into, a hundred million events take minutes. They are written only to the lake: the sandbox has no raw
    events to show, to check with `gamelens sandbox verify`, or to rebuild the lake from.

    With --export, DIR gets the files that `gamelens lake import` takes, for games with the ids 1001, 1002, 2001 ...

    With --live the population keeps playing; --speed 60 plays one minute each second. Events are sent when they are
    due, and the live page of the sandbox shows them.
    """
    import msgspec

    from gamelens.local.sandbox_info import read_sandbox_info
    from gamelens.local.sandbox_population import (
        play_unsent,
        populate,
        populate_lake,
        populate_with_clients,
        write_raw_export,
    )
    from gamelens.simulator import Ledger, load_scenario
    from gamelens.simulator.output.play import estimated_events

    population = load_scenario(scenario, players=players, days=days, seed=seed)
    if [ready, into, export, dry_run or None].count(None) != 3:
        raise click.UsageError(
            "either --ready FILE, which `gamelens sandbox up --ready FILE` writes, --into STATE, --export FORMAT DIR "
            "or --dry-run is needed"
        )
    if ready is None and mode != "batches":
        raise click.UsageError(f"--mode {mode} needs --ready, since only a running sandbox has clients")
    if live and (ready is None or ledger is not None or mode != "batches"):
        raise click.UsageError("--live needs --ready and cannot be combined with --ledger or --mode")
    sandbox = read_sandbox_info(ready) if ready is not None else None
    if live and sandbox is not None:
        _play_live(sandbox, population, speed=speed)
        return
    truth = Ledger() if ledger else None
    with _progress(lambda: estimated_events(population)) as on_events:
        if dry_run:
            record = play_unsent(population, ledger=truth, workers=workers, on_events=on_events)
        elif export is not None:
            kind, folder = export
            record = write_raw_export(folder, kind, population, ledger=truth, workers=workers, on_events=on_events)
        elif into is not None:
            record = populate_lake(into, population, ledger=truth, workers=workers, on_events=on_events)
        elif sandbox is not None and mode == "batches":
            record = populate(sandbox, population, ledger=truth, workers=workers, on_batch=on_events)
        elif sandbox is not None and mode != "batches":
            record = populate_with_clients(sandbox, population, mode=mode, ledger=truth, on_batch=on_events)
    if truth is not None and ledger is not None:
        truth.write(ledger)
    played = msgspec.to_builtins(record)
    width = max(map(len, played))
    lines = "\n".join(printable(f"{name:<{width}}  {value}") for name, value in played.items())
    click.echo(json.dumps(played) if as_json else lines)


@cli.command()
@click.option(
    "--out", type=click.Path(path_type=Path, file_okay=False), default=Path("reports"), help="Folder for the reports."
)
@click.option(
    "--scenario", default="demo", shell_complete=scenarios, help="Name of a shipped scenario, or a TOML file."
)
@click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON.")
def demo(out: Path, scenario: str, as_json: bool) -> None:
    """Run everything, end to end, with no account: sandbox, players, notebooks, reports.

    \b
    Example: gamelens demo --out reports
    """
    import msgspec

    from gamelens.local.demo import run_demo

    done = run_demo(out, scenario=scenario, say=lambda line: click.echo(f"· {line}", err=True))
    record, summary = done.population, done.summary
    if as_json:
        reports = [str(report) for report in done.reports]
        click.echo(
            json.dumps(
                {"played": msgspec.to_builtins(record), "summary": msgspec.to_builtins(summary), "reports": reports}
            )
        )
        return
    again = " (earlier today)" if done.was_populated else f" in {record.seconds:.0f} s"
    events = record.events + record.loaded
    click.echo(
        f"played     {events:,} events of {record.players:,} players over {record.days} days{again}\n"
        f"sent       {record.events:,} events{' of the last day' if record.loaded else ''}, "
        f"{record.requests:,} signed requests, {record.sent_bytes / 1e6:.0f} MB\n"
        f"collected  {summary.accepted:,} accepted, {summary.rejected:,} rejected, "
        f"{summary.duplicate:,} duplicate, {summary.processed:,} processed\n"
        f"asked      {summary.metrics_requests:,} requests to the metrics service"
    )
    for report in done.reports:
        click.echo(f"report     {report}")


@cli.command("lab", context_settings={"ignore_unknown_options": True})
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def open_lab(arguments: tuple[str, ...]) -> None:
    """Start the demo's sandbox, then JupyterLab on your copies of the notebooks.

    \b
    Example: gamelens lab --no-browser

    The copies are in your documents, or in the folder that GAMELENS_NOTEBOOKS names.
    ARGUMENTS are passed to JupyterLab.
    """
    from gamelens.local.demo import open_lab as run

    raise SystemExit(run(*arguments))


def _play_live(sandbox: SandboxInfo, population: Scenario, *, speed: float) -> None:
    """Play until Ctrl-C and print every ten seconds how many events were sent."""
    from gamelens.local.sandbox_population import play_live

    began = printed_at = time.monotonic()
    events = 0

    def count(more: int) -> None:
        nonlocal events, printed_at
        events += more
        now = time.monotonic()
        if events == more or now - printed_at >= _STATUS_EVERY_S:
            printed_at = now
            played = timedelta(seconds=round((now - began) * speed))
            click.echo(f"{played} played, {events:,} events sent", err=True)

    click.echo(
        f"playing {printable(population.name)} live, {speed:g} x; Ctrl-C ends it. {sandbox.console_url}", err=True
    )
    try:
        play_live(sandbox, population, speed=speed, on_batch=count)
    except KeyboardInterrupt:
        click.echo(f"{events:,} events sent", err=True)


@contextmanager
def _progress(events: Callable[[], int]) -> Iterator[Callable[[int], object]]:
    """Show a progress bar on standard error, if that is a terminal.

    Only then *events* is called for the number of events, which takes a while.
    """
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("events", total=events() if console.is_terminal else None)
        yield lambda sent: bar.advance(task, sent)
