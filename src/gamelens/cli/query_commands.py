"""What an analyst types: `query` for a table, `plan` with the same arguments for what it will cost."""

from __future__ import annotations

import functools
import json
import os
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from gamelens._files import replace_file
from gamelens._text import terminal_line
from gamelens.cli.command_group import cli
from gamelens.cli.completion import dimensions, metrics, more_dimensions
from gamelens.cli.table_printer import print_table
from gamelens.cli.terminal_text import gap_line

if TYPE_CHECKING:
    from pandas import DataFrame

    from gamelens.client.query.plan_estimate import Plan
    from gamelens.client.sync_client import Client
    from gamelens.wire.receipts import Receipt

Command = Callable[..., None]


class QueryCommand(msgspec.Struct, frozen=True, kw_only=True):
    """A typed question: *question* are arguments of `Client.query`, *connection* those of `gamelens.connect`."""

    question: dict[str, Any]
    connection: dict[str, Any]
    out: Path | None
    as_json: bool


_FILE = click.Path(path_type=Path, dir_okay=False)
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
    click.option("--over", required=True, help='An interval, a date, or "last 7 complete days".'),
    click.option(
        "--every", type=click.Choice(["day", "week", "month", "all"]), default="day", help="Size of a bucket."
    ),
    click.option("--where", metavar="EXPR", help="Such as: platform == 'ios' and country_code in ['US', 'NA']"),
    click.option("--top", type=click.IntRange(min=1), help="Only the largest of each bucket."),
    click.option("--other", is_flag=True, help="With --top: a row (other) for the rest of each bucket."),
    click.option("--games", multiple=True, metavar="ID", help="Only this game; again for another."),
    click.option("--studios", multiple=True, metavar="ID", help="Only this studio; again for another."),
    click.option(
        "--since-days-ago", type=click.IntRange(min=1), metavar="N", help="Days since install, for retention."
    ),
    click.option(
        "--when-unavailable",
        type=click.Choice(["raise", "clip", "wait"]),
        default="raise",
        help="What if part of --over is not there yet: refuse, cut it off, or wait for it.",
    ),
    click.option(
        "--on-error",
        type=click.Choice(["raise", "gaps"]),
        default="raise",
        help="What if a piece fails for good: refuse, or show the rest and name the gaps.",
    ),
    click.option("--deadline", type=click.FloatRange(min=0, min_open=True), metavar="SECONDS", help="For everything."),
    click.option("--check", is_flag=True, help="Compare the rows with the service's own total."),
    click.option("--cache/--no-cache", default=True, help="Whether answers are kept on disk."),
    click.option(
        "--pace",
        type=click.Choice(["guaranteed", "adaptive"]),
        default="guaranteed",
        help="Keep to the guaranteed rate, or try more and fall back.",
    ),
    click.option("--record", type=_FOLDER, metavar="DIR", help="Write down what the service answers."),
    click.option(
        "--replay", type=_FOLDER, metavar="DIR", help="Answer from such a folder, with no key and no network."
    ),
    click.option("--out", type=_FILE, metavar="FILE", help="Into a .csv or .parquet file."),
    click.option("--json", "as_json", is_flag=True, help="JSON instead of a table."),
)


def _asking(command: Command) -> Command:
    """Give *command* the arguments of a question, put together into one `QueryCommand`."""

    @functools.wraps(command)
    def typed(**given: Any) -> None:
        command(_asked(**given))

    for argument in reversed(_ARGUMENTS):
        typed = argument(typed)
    return typed


@cli.command()
@_asking
def query(asked: QueryCommand) -> None:
    """One table, from the configured service or, with no key, from the local sandbox.

    \b
    Example: gamelens query revenue --by country_code --over "last 7 complete days" --top 5
    """
    with _client(asked) as client, warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # said below, from the receipt, a line each
        frame = client.query(**asked.question)
    from gamelens.wire.receipts import Receipt

    for line in _remarks(Receipt.of(frame.attrs)):
        click.echo(terminal_line(line), err=True)
    if asked.out is not None:
        try:
            _write(frame, asked.out)
        except OSError as error:
            reason = os.strerror(error.errno) if error.errno else str(error)
            raise click.ClickException(f"--out {asked.out} cannot be written: {reason}") from None
    if asked.as_json:
        click.echo(frame.to_json(orient="records", date_format="iso"))
    elif asked.out is None:
        print_table(frame)


@cli.command()
@_asking
def plan(asked: QueryCommand) -> None:
    """What `query` with the same arguments would cost; nothing is sent but for the available interval.

    \b
    Example: gamelens plan revenue --by game country_code --over "last 90 complete days"
    """
    # A question that records goes past the cache; its plan does too, and leaves the folder alone.
    is_recorded = asked.connection.get("record") is not None
    with _client(asked, **({"record": None, "cache": False} if is_recorded else {})) as client:
        planned = client.plan(**asked.question)
    click.echo(json.dumps(_as_json(planned)) if asked.as_json else str(planned))


def _asked(
    *,
    metric: str,
    more: tuple[str, ...],
    by: tuple[str, ...],
    where: str | None,
    games: tuple[str, ...],
    studios: tuple[str, ...],
    deadline: float | None,
    cache: bool,
    pace: str,
    record: Path | None,
    replay: Path | None,
    out: Path | None,
    as_json: bool,
    **rest: Any,
) -> QueryCommand:
    from gamelens.cli.filter_expressions import parse_expression

    if more and not by:
        raise click.UsageError(f"one metric at a time: what is {' '.join(more)}?")
    if record is not None and replay is not None:
        raise click.UsageError("--record and --replay do not go together: record first, replay then")
    if out is not None and out.suffix not in (".csv", ".parquet"):
        raise click.UsageError(f"--out {out}: must end in .csv or .parquet")
    if out is not None and not out.expanduser().parent.is_dir():
        raise click.UsageError(f"--out {out}: there is no folder {out.parent}")
    folders = {"record": record, "replay": replay}
    question = {
        "metric": metric,
        "by": (*by, *more),
        "where": parse_expression(where) if where else None,
        "games": games or None,
        "studios": studios or None,
        "deadline_s": deadline,
        **rest,
    }
    # A folder that is not named may still be in the environment, unless the other one is.
    named = folders if record or replay else {}
    return QueryCommand(question=question, connection={"cache": cache, "pace": pace, **named}, out=out, as_json=as_json)


@contextmanager
def _client(asked: QueryCommand, **instead: Any) -> Iterator[Client]:
    from gamelens.local.connect import connect

    with connect(**{**asked.connection, **instead}) as client:
        yield client


def _remarks(receipt: Receipt) -> Iterator[str]:
    """What a receipt has to say besides the rows."""
    for text in receipt.warnings:
        yield f"warning: {text}"
    if receipt.clipped:
        yield f"clipped: {receipt.clipped} is what is available"
    for gap in receipt.gaps:
        yield f"gap: {gap_line(gap)}"


def _write(frame: DataFrame, out: Path) -> None:
    """Write *frame* to *out*, whole or not at all."""
    from gamelens.analysis.files.csv_export import export_csv

    if out.suffix == ".csv":
        export_csv(frame, out)
        return
    with replace_file(out.expanduser()) as draft:
        frame.to_parquet(draft)


def _as_json(planned: Plan) -> dict[str, Any]:
    return {
        "requests": planned.requests,
        "seconds": planned.seconds,
        "cached_share": planned.cached_share,
        "guessed": list(planned.guessed),
        "clipped": str(planned.clipped) if planned.clipped is not None else None,
        "pieces": [
            {"metric": it.metric, "interval": str(it.interval), "buckets": it.buckets, "scope": it.scope}
            for it in planned.pieces
        ],
    }
