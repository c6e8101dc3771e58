"""The command `gamelens morning`: the health of the last complete day, sent once."""

from __future__ import annotations

import time
import warnings
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, Literal

import click

from gamelens.cli.command_group import cli
from gamelens.cli.terminal.completion import metrics as metric_names
from gamelens.cli.terminal.terminal_text import print_line

if TYPE_CHECKING:
    from gamelens.messages.journal import Delivery
    from gamelens.messages.targets import Target
    from gamelens.notebook.health_check import HealthReport

_POLL_S: Final = 300.0
_COLOURS: Final = {"unsure": "yellow", "not sent": "red"}


@cli.command()
@click.option("--to", "to", multiple=True, metavar="TARGET", help="smtp://, slack+https://, github, env:NAME; again.")
@click.option("--games", multiple=True, metavar="ID", help="Only this game; again for another.")
@click.option(
    "--metrics", multiple=True, metavar="NAME", shell_complete=metric_names, help="Only this metric; again for another."
)
@click.option("--accept", metavar="FILE", help="A TOML file with accepted levels, as `gamelens health` takes it.")
@click.option(
    "--wait",
    type=click.FloatRange(min=0),
    default=0.0,
    metavar="MINUTES",
    help="Wait so long for yesterday to be complete; then send the last complete day, and say so.",
)
@click.option(
    "--unsure",
    type=click.Choice(["arrived", "lost"]),
    help="What you saw in a target that is unsure: its message arrived, or it is lost and is sent again.",
)
def morning(
    to: tuple[str, ...],
    games: tuple[str, ...],
    metrics: tuple[str, ...],
    accept: str | None,
    wait: float,
    unsure: Literal["arrived", "lost"] | None,
) -> None:
    """Send the health and headline numbers of the last complete day, once to each target.

    \b
    Example: gamelens morning --to env:SLACK_WEBHOOK --to github

    Tells what is new, still open and recovered since the last message to the target. Without --to it prints the
    message. The exit code is 1 when a target did not get its message, or when that is unsure.
    """
    from gamelens.messages.targets import target_of

    targets = [target_of(text) for text in to]
    if unsure is not None and not targets:
        raise click.UsageError("--unsure says what you saw in a target: name it with --to")
    report = _complete_report(wait, games=games or None, metrics=metrics or None, accept=accept)
    if not targets:
        _print(report)
    outcomes = [_delivered(target, report, unsure) for target in targets]
    raise SystemExit(int(any(outcome in _COLOURS for outcome in outcomes)))


def _complete_report(wait_minutes: float, **arguments: Any) -> HealthReport:
    """Return the board of yesterday, or after the wait of the last day that is complete."""
    from gamelens.local.connect import connect
    from gamelens.notebook.health_check import check_health

    until = time.monotonic() + wait_minutes * 60
    with connect() as lens, warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # missing data is shown in the board
        while True:
            report = check_health(lens, **arguments)
            yesterday = datetime.now(UTC).date() - timedelta(days=1)
            is_there = report.day is not None and report.day.date() >= yesterday
            left_s = until - time.monotonic()
            if is_there or left_s <= 0:
                return report
            print_line(f"waiting for {yesterday} to be complete", prefix="· ", err=True)
            time.sleep(min(_POLL_S, left_s))


def _print(report: HealthReport) -> None:
    from gamelens.messages.message_text import plain_text
    from gamelens.messages.morning_message import message_of

    for line in plain_text(message_of(report, {}, now=datetime.now(UTC))).splitlines():
        print_line(line)


def _delivered(target: Target, report: HealthReport, unsure: str | None) -> str:
    """Send the message to a target, print what became of it, and return its outcome."""
    from gamelens.messages.journal import MessageJournal
    from gamelens.messages.morning_message import alarms_of, message_of

    journal = MessageJournal()
    if unsure is not None and not journal.settle(target.identity, arrived=unsure == "arrived"):
        print_line(f"{target.name}: nothing was unsure", err=True)
    sent = journal.record(target.identity).sent
    message = message_of(report, sent.alarms if sent else {}, now=datetime.now(UTC))
    delivery = journal.deliver(target.identity, message.day, alarms_of(report), lambda: target.send(message))
    print_line(
        f"{target.name}: {_words(delivery, str(message.day))}",
        colour=_COLOURS.get(delivery.outcome),
        err=delivery.outcome in _COLOURS,
    )
    return delivery.outcome


def _words(delivery: Delivery, day: str) -> str:
    if delivery.outcome == "unsure":
        look = f'look there for "gamelens {day}", then repeat the command with --unsure arrived or --unsure lost'
        return f"unsure whether {day} arrived ({delivery.why}): {look}"
    return f"{day} {delivery.outcome}" + (f": {delivery.why}" if delivery.why else "")
