"""`gamelens health`: what is not as it usually is, in a terminal, for a scheduled job and for a chat."""

from __future__ import annotations

import json
import os
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from gamelens._files import replace_file
from gamelens._text import terminal_line
from gamelens.cli.command_group import cli
from gamelens.cli.completion import metrics as metric_names
from gamelens.cli.table_printer import print_table

if TYPE_CHECKING:
    from gamelens.notebook.health_check import HealthReport

_COLOURS: Final = {"critical": "red", "warning": "yellow"}
_SHOWN: Final = 15


@cli.command()
@click.option("--over", help="The history, its last day judged; the last 56 complete days if you do not say.")
@click.option("--days", type=click.IntRange(min=1), default=1, metavar="N", help="Judge the last N days.")
@click.option("--games", multiple=True, metavar="ID", help="Only this game; again for another.")
@click.option(
    "--metrics",
    multiple=True,
    metavar="NAME",
    shell_complete=metric_names,
    help="Only this number; again for another.",
)
@click.option(
    "--fail-on", type=click.Choice(["warning", "critical"]), help="Exit 1 when something is as bad, or worse."
)
@click.option("--json", "as_json", is_flag=True, help="The whole board as JSON.")
@click.option("--markdown", metavar="FILE", help="The page as Markdown into a file; - for standard output.")
def health(
    over: str | None,
    days: int,
    games: tuple[str, ...],
    metrics: tuple[str, ...],
    fail_on: str | None,
    as_json: bool,
    markdown: str | None,
) -> None:
    """Every game and number against its usual weekday; what stands out, since when, and which segment it is.

    \b
    Example: gamelens health --fail-on critical
    """
    from gamelens.local.connect import connect
    from gamelens.notebook.health_check import HISTORY, check_health

    if as_json and markdown == "-":
        raise click.UsageError("--json and --markdown - both want standard output: name a file for one of them")
    with connect() as lens, warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # what is not known is in the board
        seen = check_health(lens, over=over or HISTORY, games=games or None, metrics=metrics or None, days=days)
    if markdown is not None:
        _write(seen, markdown)
    if as_json:
        click.echo(json.dumps(_as_json(seen)))
    elif markdown != "-":
        _print(seen)
    raise SystemExit(1 if fail_on and _is_as_bad(seen, fail_on) else 0)


def _print(seen: HealthReport) -> None:
    click.echo(terminal_line(seen.headline))
    if len(seen.alarms):
        click.echo()
        print_table(seen.table(seen.alarms.head(_SHOWN)))
        click.echo()
    for row, (sentence, more) in zip(seen.alarms.to_dict("records"), seen.explained()[:_SHOWN], strict=False):
        click.secho(terminal_line(sentence), fg=_COLOURS[str(row["severity"])])
        for line in more:
            click.echo(f"    {terminal_line(line)}")
    if len(overview := seen.overview()):
        click.echo("\nChange against a usual day:")
        print_table(overview)
    if len(seen.alarms) > _SHOWN:
        click.echo(f"… and {len(seen.alarms) - _SHOWN} more alarms: --json has them all", err=True)


def _write(seen: HealthReport, target: str) -> None:
    if target == "-":
        click.echo(seen.markdown())
        return
    path = Path(target).expanduser()
    try:
        with replace_file(path) as draft:
            draft.write_text(seen.markdown() + "\n", encoding="utf-8")
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise click.ClickException(f"--markdown {target} cannot be written: {reason}") from None


def _as_json(seen: HealthReport) -> dict[str, Any]:
    from gamelens.analysis.health import SEVERITIES, as_json

    return {
        "day": f"{seen.day:%Y-%m-%d}" if seen.day is not None else None,
        "as_of": seen.as_of,
        "requests": seen.requests,
        "counts": {severity: seen.count(severity) for severity in reversed(SEVERITIES)},
        "alarms": [{"sentence": sentence, "segments": more} for sentence, more in seen.explained()],
        "board": as_json(seen.board),
    }


def _is_as_bad(seen: HealthReport, fail_on: str) -> bool:
    return bool(seen.count("critical") or (fail_on == "warning" and seen.count("warning")))
