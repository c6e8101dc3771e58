"""The commands `query`, which prints a table, and `plan`, which prints its cost."""

from __future__ import annotations

import functools
import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from gamelens._files import replace_file
from gamelens._text import printable
from gamelens.cli.command_group import cli
from gamelens.cli.terminal.completion import dimensions, metrics, more_dimensions, time_words
from gamelens.cli.terminal.table_printer import print_table
from gamelens.cli.terminal.terminal_text import cannot_write, gap_line, print_line

if TYPE_CHECKING:
    from pandas import DataFrame


CommandFunction = Callable[..., None]


class QueryCommand(msgspec.Struct, frozen=True, kw_only=True):
    """The parsed arguments of `query` or `plan`: those of `Client.query`, and those of `gamelens.connect`."""

    query: dict[str, Any]
    connection: dict[str, Any]
    out: Path | None
    as_json: bool


_FILE = click.Path(path_type=Path, dir_okay=False)


class TopParameter(click.ParamType["int | dict[str, int]"]):
    """The value of --top: a number, or a dimension and a number as in `country_code=5`."""

    name = "N|DIM=N"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int | dict[str, int]:
        """Return the number, or the dimension with its number."""
        dimension, equals, number = str(value).rpartition("=")
        if not number.isascii() or not number.isdigit() or int(number) < 1 or (equals and not dimension):
            self.fail(f"{value!r} must be a number from 1 on, or a dimension with one: country_code=5", param, ctx)
        return {dimension: int(number)} if equals else int(number)


_FOLDER = click.Path(path_type=Path, file_okay=False)
_ARGUMENTS = (
    click.argument("metric", shell_complete=metrics),
    click.argument("more", nargs=-1, metavar="", shell_complete=more_dimensions),
    click.option(
        "--by",
        multiple=True,
        metavar="DIM ...",
        shell_complete=dimensions,
        help="Dimensions, game and studio among them.",
    ),
    click.option(
        "--over",
        required=True,
        shell_complete=time_words,
        help='An interval, a date, or words: "last 7 complete days", yesterday, "month to date", "November 2026".',
    ),
    click.option(
        "--every",
        type=click.Choice(["day", "week", "month", "all"]),
        help="Size of a bucket: a day, unless the metric is counted in another, such as mau.",
    ),
    click.option("--where", metavar="EXPR", help="Such as: platform == 'ios' and country_code is not null"),
    click.option(
        "--top",
        type=TopParameter(),
        help="Only the largest of each bucket, or of each game or other dimension: --top country_code=5.",
    ),
    click.option("--other", is_flag=True, help="With --top: a row (other) for the rest of each bucket."),
    click.option("--games", multiple=True, metavar="GAME", help="Only this game, by id or title; again for another."),
    click.option(
        "--studios", multiple=True, metavar="STUDIO", help="Only this studio, by id or name; again for another."
    ),
    click.option(
        "--since-days-ago", type=click.IntRange(min=1), metavar="N", help="Days since install, for retention."
    ),
    click.option(
        "--when-unavailable",
        type=click.Choice(["raise", "clip", "wait"]),
        default="raise",
        help="If part of --over is not available yet: refuse, cut it off, or wait for it.",
    ),
    click.option(
        "--on-error",
        type=click.Choice(["raise", "gaps"]),
        default="raise",
        help="If a request fails for good: refuse, or show the other rows and name the gaps.",
    ),
    click.option("--deadline", type=click.FloatRange(min=0, min_open=True), metavar="SECONDS", help="For everything."),
    click.option("--check", is_flag=True, help="Compare the rows with the service's own total."),
    click.option("--fields", type=click.Choice(["all"]), help="Whatever else the service sent beside each metric."),
    click.option("--whole-buckets", is_flag=True, help="Without a first and a last bucket that are only a part."),
    click.option("--cache/--no-cache", default=True, help="Whether answers are cached on disk."),
    click.option(
        "--pace",
        type=click.Choice(["guaranteed", "adaptive"]),
        default="guaranteed",
        help="Keep to the guaranteed rate, or try more and fall back.",
    ),
    click.option("--record", type=_FOLDER, metavar="DIR", help="Write the service's answers to a folder."),
    click.option(
        "--replay", type=_FOLDER, metavar="DIR", help="Answer from such a folder, with no key and no network."
    ),
    click.option("--out", type=_FILE, metavar="FILE", help="Into a .csv or .parquet file."),
    click.option("--json", "as_json", is_flag=True, help="JSON instead of a table."),
)


def _with_query_options(function: CommandFunction) -> CommandFunction:
    """Give a command the options of a query, which it receives as one `QueryCommand`."""

    @functools.wraps(function)
    def call(**options: Any) -> None:
        function(_query_command(options))

    for argument in reversed(_ARGUMENTS):
        call = argument(call)
    return call


@cli.command()
@_with_query_options
def query(command: QueryCommand) -> None:
    """Print one table from the configured service or, without a key, from the local sandbox.

    \b
    Example: gamelens query revenue --by country_code --over yesterday --top 5
    """
    from gamelens.local.connect import connect

    with connect(**command.connection) as client, warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # printed below from the receipt, one line each
        frame = client.query(**command.query)
    from gamelens.notebook.receipt_text import source_line
    from gamelens.receipts import Receipt

    receipt = Receipt.of(frame.attrs)
    remarks = [f"warning: {text}" for text in receipt.warnings]
    remarks += [f"clipped: {receipt.clipped} is what is available"] if receipt.clipped else []
    remarks += [f"gap: {gap_line(gap)}" for gap in receipt.gaps]
    for line in remarks:
        print_line(line, err=True)
    if command.out is not None:
        try:
            _write_frame(frame, command.out)
        except OSError as error:
            raise cannot_write("--out", command.out, error) from None
    if command.as_json:
        click.echo(frame.to_json(orient="records", date_format="iso"))
    elif command.out is None:
        print_table(frame)
    print_line(source_line(frame), err=True)


@cli.command()
@_with_query_options
def plan(command: QueryCommand) -> None:
    """Print what `query` with the same arguments would cost.

    \b
    Example: gamelens plan revenue --by game --over "last 90 complete days"

    Nothing is requested but the available interval.
    """
    from gamelens.local.connect import connect

    # A query that records bypasses the cache; so does its plan, which does not touch the folder.
    is_recorded = command.connection.get("record") is not None
    without_record = {"record": None, "cache": False} if is_recorded else {}
    with connect(**{**command.connection, **without_record}) as client:
        planned = client.plan(**command.query)
    if not command.as_json:
        click.echo("\n".join(map(printable, str(planned).split("\n"))))
        return
    pieces = [
        {"metric": piece.metric, "interval": str(piece.interval), "buckets": piece.buckets, "scope": piece.scope}
        for piece in planned.pieces
    ]
    costs = {name: getattr(planned, name) for name in ("requests", "seconds", "cached_share")}
    clipped = str(planned.clipped) if planned.clipped is not None else None
    click.echo(json.dumps({**costs, "guessed": list(planned.guessed), "clipped": clipped, "pieces": pieces}))


def _query_command(options: dict[str, Any]) -> QueryCommand:
    """Check the *options* of the command line and sort them by where they go."""
    query = dict(options)
    out, as_json = query.pop("out"), query.pop("as_json")
    connection = {name: query.pop(name) for name in ("cache", "pace")}
    folders = {name: query.pop(name) for name in ("record", "replay")}
    by, more, where = query.pop("by"), query.pop("more"), query.pop("where")
    if more and not by:
        raise click.UsageError(f"one metric at a time: what is {' '.join(more)}?")
    if None not in folders.values():
        raise click.UsageError("--record and --replay do not go together: record first, replay then")
    # A file that cannot be written is refused before anything is requested.
    if out is not None and out.suffix not in (".csv", ".parquet"):
        raise click.UsageError(f"--out {out}: must end in .csv or .parquet")
    if out is not None and not out.expanduser().parent.is_dir():
        raise click.UsageError(f"--out {out}: there is no folder {out.parent}")
    query |= {name: query[name] or None for name in ("games", "studios")}
    query |= {"by": (*by, *more), "where": where or None}
    query["deadline_s"] = query.pop("deadline")
    if any(folders.values()):  # without an option, `connect` takes a folder from the environment
        connection |= folders
    return QueryCommand(query=query, connection=connection, out=out, as_json=as_json)


def _write_frame(frame: DataFrame, out: Path) -> None:
    """Write *frame* to *out* as a whole."""
    from gamelens.analysis.files.csv_export import export_csv

    if out.suffix == ".csv":
        export_csv(frame, out)
        return
    with replace_file(out.expanduser()) as draft:
        frame.to_parquet(draft)
