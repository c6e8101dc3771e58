"""The command `lake`: the events of a sandbox as Parquet files, taken in and handed out."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gamelens._text import is_terminal, printable
from gamelens.cli.command_group import cli
from gamelens.cli.terminal.terminal_text import print_line

if TYPE_CHECKING:
    from gamelens.sandbox.imports.import_counts import ImportProgress
    from gamelens.sandbox.imports.import_run import ImportResult


@cli.group()
def lake() -> None:
    """Use the Parquet files that a sandbox builds from its events."""


@lake.command("export")
@click.option("--state", type=click.Path(path_type=Path, file_okay=False), required=True, help="State directory.")
@click.option("--format", "kind", type=click.Choice(["delta"]), default="delta", help="Format of the tables.")
@click.option("--out", required=True, metavar="DIR", help="A folder, or the URL of one (s3://, gs://, file://).")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object, keyed by organisation.")
def lake_export(state: Path, kind: str, out: str, as_json: bool) -> None:
    """Export the events of each organisation as a table for other tools.

    \b
    Example: gamelens lake export --state ~/sandbox --format delta --out ~/tables

    Each export to the same place is a new version of the table. On the lake's own disk its files are links to those
    of the lake, elsewhere copies.
    """
    import msgspec

    from gamelens.sandbox.maintenance.delta_export import export_delta

    exported = export_delta(state, out)
    if as_json:
        click.echo(json.dumps(msgspec.to_builtins(exported)))
        return
    for name, table in exported.items():
        counts = f"version {table.version}  {table.files:,} files  {table.rows:,} events"
        click.echo(printable(f"{name}  {counts}  {table.table}"))
    if not exported:
        click.echo("nothing has been processed yet", err=True)


@lake.command("import")
@click.argument("sources", nargs=-1, required=True, metavar="SOURCE...")
@click.option("--state", type=click.Path(path_type=Path, file_okay=False), required=True, help="State directory.")
@click.option("--organisation", metavar="NAME", help="Organisation that receives the events; the first by default.")
@click.option(
    "--game",
    "games",
    multiple=True,
    metavar="EXPORTED=OWN",
    help="Id of a game in the export, and its id in the sandbox; repeatable. Ids not named stay the same.",
)
@click.option("--config", type=click.Path(path_type=Path, dir_okay=False), help="Games of a new state (TOML).")
@click.option(
    "--engine",
    default="duckdb",
    metavar="NAME",
    help="Engine that builds the tables: duckdb, spark, or the address of a Spark master.",
)
@click.option(
    "--lake-url", metavar="URL", help="Where that engine finds the state's folder `lake`, if not on this machine."
)
@click.option("--verify", is_flag=True, help="Read all files again, also those that were imported and look unchanged.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def lake_import(
    sources: tuple[str, ...],
    state: Path,
    organisation: str | None,
    games: tuple[str, ...],
    config: Path | None,
    engine: str,
    lake_url: str | None,
    verify: bool,
    as_json: bool,
) -> None:
    """Import the service's exports of raw events into the lake of a stopped sandbox.

    \b
    Example: gamelens lake import 's3://bucket/raw/*' --state ~/lake --game 7=1001

    A SOURCE is a file, a folder, a pattern or a URL of one. Gzipped JSON lines (Raw Data) and Parquet (Event Data) are
    recognised by their content. Each file is imported once: after an interruption, or when there are new files, run
    the command again. A file whose address, size and ETag (or checksum, or time) are known is not opened. The exit
    status is 1 when a file was not imported; its name and the reason are printed.
    """
    import msgspec

    from gamelens.sandbox.imports.import_run import ImportOptions, import_raw_events

    pairs = [game.partition("=") for game in games]
    for exported, sign, target in pairs:
        if not (exported and sign and target):
            raise click.UsageError(f"--game {exported}{sign}{target} is not a pair: write --game EXPORTED=OWN")
    targets = {exported: target for exported, _, target in pairs}
    options = ImportOptions(
        organisation=organisation, games=targets, config=config, engine=engine, lake_url=lake_url, verify=verify
    )
    result = import_raw_events(state, sources, options, report=_show_import if is_terminal(sys.stderr) else None)
    if as_json:
        click.echo(json.dumps(msgspec.to_builtins(result)))
    else:
        _print_import(result)
    if result.damaged:
        files = result.files + result.taken_before + len(result.damaged)
        raise click.ClickException(f"not imported: {len(result.damaged):,} of {files:,} files")


def _print_import(result: ImportResult) -> None:
    print_line(
        f"{result.organisation}: {result.events:,} events of {result.files:,} files, {result.repeated:,} of them "
        f"repeated; {result.taken_before:,} files were imported before; available {result.available}"
    )
    for line in _import_remarks(result):
        print_line(line, err=True)


def _show_import(progress: ImportProgress) -> None:
    """Write the progress of an import over the last line of the terminal."""
    text = f"{progress.read_bytes / 1e6:,.0f} of {progress.bytes / 1e6:,.0f} MB, {progress.rows:,} events read"
    if progress.rest_s is not None:
        text += f"; {progress.rows_per_s:,.0f} a second, about {progress.rest_s:.0f} s left"
    click.echo(f"\r\033[K{text}", nl=progress.read_bytes == progress.bytes, err=True)


def _import_remarks(result: ImportResult) -> Iterator[str]:
    """Yield what an import left out, a line each."""
    for name, reason in result.damaged.items():
        yield f"not imported: {name}: {reason}"
    for reason, count in result.refused.items():
        yield f"left out: {count:,} rows with {reason}"
    yield from (f"  {place}" for place in result.refused_at)
    if result.undisclosed:
        yield f"{result.undisclosed:,} impressions have no network: the service had no permission to show it"
    for reason, count in result.dated_by_arrival.items():
        yield f"dated by arrival: {count:,} events with {reason}"
    for reason, count in result.unusable_installs.items():
        yield f"install not used: {count:,} events with {reason}"
    for currency, count in result.valued_by_service.items():
        yield f"valued by amount_usd: {count:,} purchases in {currency}, which has no rate here"
    for remark, count in result.remarks.items():
        yield f"unlikely: {count:,} events with {remark}"
    for name, count in result.unknown.items():
        yield f"not read: the unknown field {name}, in {count:,} files"
    for name, count in result.missing.items():
        yield f"missing: the field {name}, in {count:,} files"
    if result.tables:
        yield (
            f"{result.tables:,} files are Event Data: country, platform and build of their events are not known, and "
            "metrics of purchases and session lengths are refused for their games and days"
        )
