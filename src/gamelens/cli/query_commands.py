"""The commands `query`, which prints a table, and `plan`, which prints its cost."""

from __future__ import annotations

import functools
import inspect
import json
import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

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


class QueryOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The parsed arguments of `query` or `plan`, for `Client.query` and for `gamelens.connect`."""

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
            self.fail(f"{value!r} must be a number, 1 or more, or a dimension and a number: country_code=5", param, ctx)
        return {dimension: int(number)} if equals else int(number)


_FOLDER = click.Path(path_type=Path, file_okay=False)
_OF_TYPES: dict[str, dict[str, Any]] = {
    "by": {"multiple": True, "metavar": "DIM ...", "shell_complete": dimensions},
    "Names": {"multiple": True, "metavar": "NAME"},
    "TimeRange": {"shell_complete": time_words},
    "Top": {"type": TopParameter()},
    "Where": {"metavar": "EXPR"},
    "bool": {"is_flag": True},
    "float": {"type": click.FloatRange(min=0, min_open=True), "metavar": "SECONDS"},
    "int": {"type": click.IntRange(min=1), "metavar": "N"},
    "str": {"metavar": "NAME"},
}
_NOT_TYPED = ("metric", "to", "progress")  # an argument; what is printed is a table, with a bar in a terminal
_OTHERS = (
    click.option("--cache/--no-cache", default=True, help="Whether answers are cached on disk."),
    click.option(
        "--pace",
        type=click.Choice(["guaranteed", "adaptive"]),
        default="guaranteed",
        help="Keep to the guaranteed rate, or try more and fall back.",
    ),
    click.option("--record", type=_FOLDER, metavar="DIR", help="Write the service's answers to a folder."),
    click.option(
        "--replay", type=_FOLDER, metavar="DIR", help="Answer from a folder of --record, without a key or a network."
    ),
    click.option("--out", type=_FILE, metavar="FILE", help="Write to a .csv or .parquet file."),
    click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table."),
)


@functools.cache
def _query_options() -> tuple[click.Parameter, ...]:
    """Return the arguments of `Client.query` as options of a command, each with its first sentence as help."""
    from gamelens.client.query.signatures import WORDS, Argument, arguments_of
    from gamelens.client.sync_client import Client

    def option(argument: Argument) -> click.Option:
        kind = argument.type.removesuffix(" | None")
        kind = "by" if argument.name == "by" else kind
        given = {"type": click.Choice(get_args(WORDS[kind]))} if kind in WORDS else _OF_TYPES[kind]
        words = re.sub(r"\*(\w+)\*", r"--\1", argument.words.partition(". ")[0].rstrip(".").replace("`", ""))
        again = "; repeatable" if kind == "Names" else ""
        is_needed = argument.default is inspect.Parameter.empty
        return click.Option(
            [f"--{argument.name.removesuffix('_s').replace('_', '-')}", argument.name],
            help=f"{words[0].upper()}{words[1:]}{again}.",
            required=is_needed,
            **({} if is_needed or argument.default is None else {"default": argument.default}),
            **given,
        )

    return (
        click.Argument(["metric"], shell_complete=metrics),
        click.Argument(["more"], nargs=-1, metavar="", shell_complete=more_dimensions),
        *(option(argument) for argument in arguments_of(Client.query) if argument.name not in _NOT_TYPED),
    )


class _QueryCommand(click.Command):
    """A command with the arguments of `Client.query`, which are read when they are needed: that imports the client."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return the arguments of a query, and then the command's own."""
        return [*_query_options(), *super().get_params(ctx)]

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the own metrics of the config file, below the options."""
        from gamelens.client.connection.settings import client_catalog
        from gamelens.errors import BadQuery

        try:
            metrics = client_catalog(None).own.values()
        except BadQuery as error:  # the help is most needed then
            rows = [("config.toml", str(error))]
        else:
            rows = [(metric.name, f"{metric.meaning} ({metric.unit})") for metric in metrics]
        if rows:
            with formatter.section("Own metrics"):
                formatter.write_dl(rows)


def _query_command(function: Callable[[QueryOptions], None]) -> click.Command:
    """Return *function* as a command that receives the options of a query as one value."""

    @functools.wraps(function)
    def call(**options: Any) -> None:
        function(_arguments(options))

    for add in reversed(_OTHERS):
        call = add(call)
    return cli.command(cls=_QueryCommand)(call)


@_query_command
def query(command: QueryOptions) -> None:
    """Print one table from the configured service or, without a key, from the local sandbox.

    \b
    Example: gamelens query revenue --by country_code --over yesterday --top 5
    """
    from gamelens.local.connect import connect

    with connect(**command.connection) as client, warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # printed below from the receipt, one line each
        frame = client.query(**command.query)
    from gamelens.receipt_text import source_line
    from gamelens.receipts import Receipt

    receipt = Receipt.of(frame.attrs)
    remarks = [f"warning: {text}" for text in receipt.warnings]
    remarks += [f"clipped: only {receipt.clipped} is available"] if receipt.clipped else []
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


@_query_command
def plan(command: QueryOptions) -> None:
    """Print what `query` with the same arguments would cost.

    \b
    Example: gamelens plan revenue --by game --over "last 90 complete days"

    Only the available interval is requested.
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


def _arguments(options: dict[str, Any]) -> QueryOptions:
    """Check the *options* of the command line and sort them by where they go."""
    query = dict(options)
    out, as_json = query.pop("out"), query.pop("as_json")
    connection = {name: query.pop(name) for name in ("cache", "pace")}
    folders = {name: query.pop(name) for name in ("record", "replay")}
    by, more, where = query.pop("by"), query.pop("more"), query.pop("where")
    if more and not by:
        raise click.UsageError(f"one metric at a time: not also {' '.join(more)}")
    if None not in folders.values():
        raise click.UsageError("--record and --replay cannot be combined: record first, then replay")
    # A file that cannot be written is refused before anything is requested.
    if out is not None and out.suffix not in (".csv", ".parquet"):
        raise click.UsageError(f"--out {out}: must end in .csv or .parquet")
    if out is not None and not out.expanduser().parent.is_dir():
        raise click.UsageError(f"--out {out}: there is no folder {out.parent}")
    query |= {name: query[name] or None for name in ("games", "studios")}
    query |= {"by": (*by, *more), "where": where or None}
    if any(folders.values()):  # without an option, `connect` takes a folder from the environment
        connection |= folders
    return QueryOptions(query=query, connection=connection, out=out, as_json=as_json)


def _write_frame(frame: DataFrame, out: Path) -> None:
    """Write *frame* to *out* as a whole."""
    from gamelens.analysis.files.csv_export import export_csv

    if out.suffix == ".csv":
        export_csv(frame, out)
        return
    with replace_file(out.expanduser()) as draft:
        frame.to_parquet(draft)
