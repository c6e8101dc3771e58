"""The command `gamelens health`: alarms for a terminal, a scheduled job or a chat."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from gamelens._files import replace_file
from gamelens.cli.command_group import cli
from gamelens.cli.terminal.completion import time_words, watched_metrics
from gamelens.cli.terminal.table_printer import print_table
from gamelens.cli.terminal.terminal_text import cannot_write, print_line

if TYPE_CHECKING:
    from gamelens.investigations.health_check import HealthReport

ALARM: Final = 3
CANNOT_TELL: Final = 4
_COLOURS: Final = {"critical": "red", "warning": "yellow"}
_SHOWN: Final = 15
_DURATION: Final = re.compile(r"(?:pt?)?(\d+(?:\.\d+)?)\s*([a-z]*)")
_UNITS: Final = {
    **dict.fromkeys(("s", "second", "seconds"), "seconds"),
    **dict.fromkeys(("m", "min", "minute", "minutes"), "minutes"),
    **dict.fromkeys(("h", "hour", "hours"), "hours"),
    **dict.fromkeys(("d", "day", "days"), "days"),
    **dict.fromkeys(("w", "week", "weeks"), "weeks"),
}
_LONGEST: Final = 100_000  # weeks, which a timedelta can hold


class DurationParameter(click.ParamType["timedelta"]):
    """A duration such as 36h, 2d or P2D; a number alone is hours."""

    name = "duration"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> timedelta:
        """Return the duration, or refuse what is none."""
        if isinstance(value, timedelta):
            return value
        parts = _DURATION.fullmatch(str(value).strip().lower())
        unit = _UNITS.get(parts[2] or "h") if parts else None
        if parts is None or unit is None or float(parts[1]) > _LONGEST:
            self.fail(f"{value!r} is not a duration: write 36h, 2d or P2D", param, ctx)
        return timedelta(**{unit: float(parts[1])})


stale_option = click.option(
    "--stale",
    type=DurationParameter(),
    metavar="DURATION",
    help="Exit 4 if the data are older, such as 36h or 2d; by default if yesterday is not complete.",
)


@cli.command()
@click.option(
    "--over",
    shell_complete=time_words,
    help="The history; its last day is judged. By default the last 112 complete days.",
)
@click.option("--days", type=click.IntRange(min=1), default=1, metavar="N", help="Judge the last N days.")
@click.option("--games", multiple=True, metavar="ID", help="Only this game; repeatable.")
@click.option(
    "--metrics",
    multiple=True,
    metavar="NAME",
    shell_complete=watched_metrics,
    help="Only this metric; repeatable.",
)
@click.option(
    "--accept",
    metavar="FILE",
    help="A TOML file with accepted levels, campaigns, releases and holidays.",
)
@click.option(
    "--fail-on", type=click.Choice(["warning", "critical"]), help="Exit 3 on an alarm of this severity or a worse one."
)
@stale_option
@click.option("--json", "as_json", is_flag=True, help="Print the whole board as JSON.")
@click.option("--markdown", metavar="FILE", help="Write the page as Markdown to a file; - for standard output.")
def health(
    over: str | None,
    days: int,
    games: tuple[str, ...],
    metrics: tuple[str, ...],
    accept: str | None,
    fail_on: str | None,
    stale: timedelta | None,
    as_json: bool,
    markdown: str | None,
) -> None:
    """Compare every game and metric with its usual weekday.

    \b
    Example: gamelens health --fail-on critical

    Shows what is unusual, since when, and in which segment. An alarm stays until the number returns, or until
    --accept names a person who accepts the new level.

    Exits with 3 when something is as bad as --fail-on says, with 4 when the data are too old, or too few, to tell.
    """
    from gamelens.investigations.health_check import HISTORY, check_health
    from gamelens.local.connect import connect

    if as_json and markdown == "-":
        raise click.UsageError("--json and --markdown - both write to standard output: name a file for one of them")
    with connect() as lens, warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # missing data is shown in the board
        report = check_health(
            lens,
            over=over or HISTORY,
            games=games or None,
            metrics=metrics or None,
            days=days,
            accept=accept,
            stale_after=stale,
        )
    if markdown is not None:
        _write_markdown(report, markdown)
    if as_json:
        click.echo(json.dumps(_as_json(report)))
    elif markdown != "-":
        _print(report)
    alarms = {name: report.count(name) for name in _COLOURS}
    raise SystemExit(exit_status(cannot_tell=report.cannot_tell, alarms=alarms, fail_on=fail_on))


def exit_status(*, cannot_tell: bool, alarms: Mapping[str, int], fail_on: str | None) -> int:
    """Return the exit status of a board: 4 if it cannot tell how things are now, 3 if they are as bad as *fail_on*.

    Args:
        cannot_tell: the data are too old or too few.
        alarms: how many there are of each severity.
        fail_on: the severity that fails, None for none.
    """
    if cannot_tell:
        return CANNOT_TELL
    bad = {"critical": ("critical",), "warning": ("critical", "warning"), None: ()}[fail_on]
    return ALARM if any(alarms.get(severity) for severity in bad) else 0


def _print(report: HealthReport) -> None:
    from gamelens.receipt_text import source_line

    print_line(report.headline)
    if len(report.alarms):
        click.echo()
        print_table(report.table(report.alarms.head(_SHOWN)))
        click.echo()
    for row, (alarm, segments) in zip(report.alarms.to_dict("records"), report.explained()[:_SHOWN], strict=False):
        print_line(alarm, colour=_COLOURS[str(row["severity"])])
        for segment in segments:
            print_line(segment, prefix="    ")
    if len(overview := report.overview()):
        click.echo("\nEach number and what is usual:")
        print_table(overview)
    if line := source_line(report.board):
        click.echo()
        print_line(line)
    for sentence in report.unmatched:
        print_line(sentence, err=True)
    if len(report.alarms) > _SHOWN:
        click.echo(f"… and {len(report.alarms) - _SHOWN} more alarms: --json lists them all", err=True)


def _write_markdown(report: HealthReport, target: str) -> None:
    if target == "-":
        click.echo(report.markdown())
        return
    path = Path(target).expanduser()
    try:
        with replace_file(path) as draft:
            draft.write_text(report.markdown() + "\n", encoding="utf-8")
    except OSError as error:
        raise cannot_write("--markdown", target, error) from None


def _as_json(report: HealthReport) -> dict[str, Any]:
    from gamelens.analysis.health import SEVERITIES, as_json
    from gamelens.receipts import Receipt

    return {
        "day": f"{report.day:%Y-%m-%d}" if report.day is not None else None,
        "as_of": report.as_of,
        "is_stale": report.is_stale,
        "requests": report.requests,
        "headline": report.headline,
        "unmatched": list(report.unmatched),
        "provenance": Receipt(provenance=report.provenance).to_json()["provenance"],
        "counts": {severity: report.count(severity) for severity in reversed(SEVERITIES)},
        "alarms": [{"sentence": one, "segments": more} for one, more in report.explained()],
        "board": as_json(report.board),
    }
