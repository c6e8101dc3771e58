"""The command `gamelens`: every line a script may rely on, each with an example in its help."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gamelens.errors import GamelensError
from gamelens.wire.limits import REFRESH_S, REQUESTS_AT_ONCE, REQUESTS_PER_SECOND

if TYPE_CHECKING:
    from pandas import DataFrame


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
@click.option(
    "--validation",
    type=click.Choice(["lenient", "strict"]),
    default="lenient",
    help="Strict refuses events the documentation does not describe.",
)
@click.option(
    "--refresh", type=click.FloatRange(min=0), default=REFRESH_S, help="Seconds an available interval is kept."
)
@click.option(
    "--rate",
    type=click.IntRange(min=1),
    default=REQUESTS_PER_SECOND,
    help="Requests a second for each organisation.",
)
@click.option(
    "--concurrency",
    type=click.IntRange(min=1),
    default=REQUESTS_AT_ONCE,
    help="Requests at once for each organisation.",
)
@click.option("--geoip", type=click.Path(path_type=Path, dir_okay=False), help="Countries by IP address (.mmdb).")
@click.option("--nodes", type=click.IntRange(1, 100), default=1, help="Nodes that limit alone; requests go to any.")
@click.option("--tls", is_flag=True, help="HTTPS, with a certificate made at the first start and kept in the state.")
@click.option("--keep-free", type=click.IntRange(min=0), default=256, help="MB of disk that are never filled.")
@click.option(
    "--engine",
    default="duckdb",
    metavar="NAME",
    help="What answers metric queries: duckdb, spark, or the address of a Spark master.",
)
@click.option("--lake-url", metavar="URL", help="Where that engine sees the state's folder `lake`, if not as a folder.")
@click.option("--stop-after-idle", type=click.FloatRange(min=0), default=math.inf, hidden=True)
def sandbox_up(
    state: Path,
    collector_port: int,
    metrics_port: int,
    config: Path | None,
    ready: Path | None,
    reply: Any,
    validation: Any,
    refresh: float,
    rate: int,
    concurrency: int,
    geoip: Path | None,
    nodes: int,
    tls: bool,
    keep_free: int,
    engine: str,
    lake_url: str | None,
    stop_after_idle: float,
) -> None:
    """Run both services until SIGINT or SIGTERM.

    \b
    Example: gamelens sandbox up --state ~/sandbox --ready ready.json

    The live-events page is at the console_url of the ready file. With --tls the ready file names a ca_file as well:
    clients trust the services once SSL_CERT_FILE names it (curl: --cacert).
    """
    from gamelens.sandbox.serving import Options, Sandbox, serve

    options = Options(
        state=state,
        collector_port=collector_port,
        metrics_port=metrics_port,
        config=config,
        ready=ready,
        reply=reply,
        validation=validation,
        refresh_s=refresh,
        rate=rate,
        at_once=concurrency,
        geoip=geoip,
        nodes=nodes,
        tls=tls,
        reserved_bytes=keep_free << 20,
        engine=engine,
        lake_url=lake_url,
        stop_after_idle_s=stop_after_idle,
    )
    serve(Sandbox(options))


@sandbox.command("process")
@click.option("--state", type=click.Path(path_type=Path, file_okay=False), required=True, help="State directory.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object, by organisation.")
def sandbox_process(state: Path, as_json: bool) -> None:
    """Process everything received so far, now; prints what is available.

    \b
    Example: gamelens sandbox process --state ~/sandbox
    """
    from gamelens.lab import process_at

    available = process_at(state)
    if as_json:
        click.echo(json.dumps(available))
    else:
        for name, interval in available.items():
            click.echo(f"{name}  {interval}")


@sandbox.command("verify")
@click.option("--state", type=click.Path(path_type=Path, file_okay=False), required=True, help="State directory.")
@click.option("--days", type=click.IntRange(min=0), default=7, help="Days of each organisation to compare row by row.")
@click.option("--seed", type=int, help="Chooses the days; any other each time without it.")
def sandbox_verify(state: Path, days: int, seed: int | None) -> None:
    """Read everything received again and compare it with what answers are made from; exit 1 on any difference.

    \b
    Example: gamelens sandbox verify --state ~/sandbox
    """
    from gamelens.sandbox.verifying import verify

    verified = verify(state, days=days, seed=seed)
    what = f"{verified.events:,} events, {verified.players:,} players and {len(verified.days)} days row by row"
    for difference in verified.differences:
        click.echo(difference, err=True)
    if verified.differences:
        raise click.ClickException(f"{what}: {len(verified.differences)} differences")
    click.echo(f"{what}: no difference")


@cli.group()
def lake() -> None:
    """The Parquet files that a sandbox makes of its events."""


@lake.command("export")
@click.option("--state", type=click.Path(path_type=Path, file_okay=False), required=True, help="State directory.")
@click.option("--format", "kind", type=click.Choice(["delta"]), default="delta", help="Of the tables.")
@click.option("--out", required=True, metavar="DIR", help="A folder, or the URL of one (s3://, gs://, file://).")
@click.option("--json", "as_json", is_flag=True, help="One JSON object, by organisation.")
def lake_export(state: Path, kind: str, out: str, as_json: bool) -> None:
    """Make the events of each organisation a table for other tools; again: a new version of it.

    \b
    Example: gamelens lake export --state ~/sandbox --format delta --out ~/tables

    On the lake's own disk the files of the table are links to those of the lake, anywhere else copies.
    """
    import msgspec

    from gamelens.sandbox.export import export_delta

    exported = export_delta(state, out)
    if as_json:
        click.echo(json.dumps(msgspec.to_builtins(exported)))
        return
    for name, table in exported.items():
        click.echo(f"{name}  version {table.version}  {table.files:,} files  {table.rows:,} events  {table.table}")
    if not exported:
        click.echo("nothing is processed yet", err=True)


@cli.command()
@click.option("--scenario", required=True, help="Name of a shipped scenario, or a TOML file.")
@click.option("--players", type=click.IntRange(min=1), help="Instead of the scenario's.")
@click.option("--days", type=click.IntRange(min=1), help="Instead of the scenario's.")
@click.option("--seed", type=click.IntRange(min=0), help="Instead of the scenario's.")
@click.option(
    "--ready", type=click.Path(path_type=Path, dir_okay=False), help="Ready file of the sandbox to play into."
)
@click.option("--ledger", type=click.Path(path_type=Path, dir_okay=False), help="Write what really happened (Parquet).")
@click.option("--dry-run", is_flag=True, help="Say what would be sent, send nothing.")
@click.option("--json", "as_json", is_flag=True, help="JSON instead of words.")
def simulate(
    scenario: str,
    players: int | None,
    days: int | None,
    seed: int | None,
    ready: Path | None,
    ledger: Path | None,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Play a scenario against a running sandbox.

    \b
    Example: gamelens simulate --scenario small --ready ready.json --ledger truth.parquet
    """
    import msgspec

    from gamelens import lab
    from gamelens.simulator import Ledger, expect, load_scenario

    population = load_scenario(scenario, players=players, days=days, seed=seed)
    if dry_run:
        expected = msgspec.to_builtins(expect(population))
        click.echo(json.dumps(expected) if as_json else _as_lines(expected))
        return
    if ready is None:
        raise click.UsageError("--ready FILE is needed: `gamelens sandbox up --ready FILE` writes it")
    truth = Ledger() if ledger else None
    with _progress(lambda: expect(population).events) as on_batch:
        played = lab.play_into(lab.read_ready(ready), population, ledger=truth, on_batch=on_batch)
    if truth is not None and ledger is not None:
        truth.write(ledger)
    click.echo(json.dumps(msgspec.to_builtins(played)) if as_json else _as_lines(msgspec.to_builtins(played)))


@cli.command()
@click.argument("metric")
@click.argument("more", nargs=-1, metavar="")
@click.option("--by", multiple=True, metavar="DIM ...", help="A dimension, or game; two for every pair.")
@click.option("--over", required=True, help='An interval, a date, or "last 7 complete days".')
@click.option("--every", type=click.Choice(["day", "week", "month", "all"]), default="day", help="Size of a bucket.")
@click.option("--where", metavar="EXPR", help="Such as: platform == 'ios' and country_code in ['US', 'NA']")
@click.option("--top", type=click.IntRange(min=1), help="Only the largest of each bucket.")
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), help="A .csv or .parquet file instead.")
@click.option("--json", "as_json", is_flag=True, help="One JSON array of rows.")
def query(
    metric: str,
    more: tuple[str, ...],
    by: tuple[str, ...],
    over: str,
    every: Any,
    where: str | None,
    top: int | None,
    out: Path | None,
    as_json: bool,
) -> None:
    """One table, from the configured service or, with no key, from the local sandbox.

    \b
    Example: gamelens query revenue --by country_code --over "last 7 complete days" --top 5
    """
    from gamelens.lab import connect
    from gamelens.wire.expressions import parse_expression

    if more and not by:
        raise click.UsageError(f"one metric at a time: what is {' '.join(more)}?")
    if out is not None and out.suffix not in (".csv", ".parquet"):
        raise click.UsageError(f"--out {out}: must end in .csv or .parquet")
    condition = parse_expression(where) if where else None
    with connect() as client:
        frame = client.query(metric, by=(*by, *more), over=over, every=every, where=condition, top=top)
    if out is not None and out.suffix == ".parquet":
        frame.to_parquet(out)
    elif out is not None:
        frame.to_csv(out, index=False)
    elif as_json:
        click.echo(frame.to_json(orient="records", date_format="iso"))
    else:
        _print_table(frame)


@cli.command()
@click.option(
    "--out", type=click.Path(path_type=Path, file_okay=False), default=Path("reports"), help="For the reports."
)
@click.option("--scenario", default="demo", help="Name of a shipped scenario, or a TOML file.")
@click.option("--json", "as_json", is_flag=True, help="The summary as JSON.")
def demo(out: Path, scenario: str, as_json: bool) -> None:
    """Everything, end to end, with no account: sandbox, players, notebooks, reports.

    \b
    Example: gamelens demo --out reports
    """
    import msgspec

    from gamelens.lab import demo as run

    done = run(out, scenario=scenario, say=lambda line: click.echo(f"· {line}", err=True))
    played, summary = done.played, done.summary
    if as_json:
        reports = [str(report) for report in done.reports]
        click.echo(json.dumps({"played": msgspec.to_builtins(played), "summary": summary, "reports": reports}))
        return
    again = " (earlier today)" if done.was_there else f" in {played.seconds:.0f} s"
    click.echo(
        f"sent       {played.events:,} events of {played.players:,} players over {played.days} days, "
        f"{played.requests:,} signed requests, {played.sent_bytes / 1e6:.0f} MB{again}\n"
        f"collected  {summary['accepted']:,} accepted, {summary['rejected']:,} rejected, "
        f"{summary['duplicate']:,} duplicate, {summary['processed']:,} processed\n"
        f"asked      {summary['asked']:,} requests to the metrics service"
    )
    for report in done.reports:
        click.echo(f"report     {report}")


@cli.command("lab", context_settings={"ignore_unknown_options": True})
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def open_lab(arguments: tuple[str, ...]) -> None:
    """The demo's sandbox, then JupyterLab on the notebooks; ARGUMENTS are for JupyterLab.

    \b
    Example: gamelens lab --no-browser
    """
    from gamelens.lab import open_lab as run

    raise SystemExit(run(*arguments))


def _as_lines(values: dict[str, Any]) -> str:
    width = max(map(len, values))
    return "\n".join(f"{name:<{width}}  {value}" for name, value in values.items() if not isinstance(value, list))


@contextmanager
def _progress(events: Callable[[], int]) -> Iterator[Callable[[int], object]]:
    """A bar on standard error where somebody watches; only then *events* is asked how many there will be."""
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("events", total=events() if console.is_terminal else None)
        yield lambda sent: bar.advance(task, sent)


def _print_table(frame: DataFrame) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table()
    for name in frame.columns:
        table.add_column(Text(str(name)), justify="left" if frame[name].dtype == "category" else "right")
    for row in frame.itertuples(index=False):
        table.add_row(*(Text(_cell(value)) for value in row))
    Console().print(table)


def _cell(value: Any) -> str:
    from pandas import Timestamp, isna

    if isna(value):
        return ""
    if isinstance(value, Timestamp):
        return f"{value:%Y-%m-%d}"
    return f"{value:,.4f}" if isinstance(value, float) else str(value)
