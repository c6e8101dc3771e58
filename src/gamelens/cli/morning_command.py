"""The command `gamelens morning`: the health of the last complete day, sent once."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import click

from gamelens.cli.command_group import cli
from gamelens.cli.health_command import CANNOT_TELL, stale_option
from gamelens.cli.report_command import notebooks as notebook_names
from gamelens.cli.terminal.completion import metrics as metric_names
from gamelens.cli.terminal.terminal_text import print_line

if TYPE_CHECKING:
    from gamelens.investigations.health_check import HealthReport
    from gamelens.messages.targets import Target

_POLL_S: Final = 300.0
_COLOURS: Final = {"unsure": "yellow", "not sent": "red"}


@cli.command()
@click.option(
    "--to",
    "to",
    multiple=True,
    metavar="TARGET",
    help="An address of apprise, github, file:PATH, env:NAME; repeatable.",
)
@click.option("--games", multiple=True, metavar="ID", help="Only this game; repeatable.")
@click.option(
    "--metrics", multiple=True, metavar="NAME", shell_complete=metric_names, help="Only this metric; repeatable."
)
@click.option(
    "--report",
    "notebooks",
    multiple=True,
    metavar="NOTEBOOK",
    shell_complete=notebook_names,
    help="Run this notebook: mails carry its page, other targets name it; repeatable.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("reports"),
    metavar="FOLDER",
    help="Folder for the pages of --report; by default reports.",
)
@click.option("--accept", metavar="FILE", help="A TOML file with accepted levels, as `gamelens health` takes it.")
@click.option(
    "--wait",
    type=click.FloatRange(min=0),
    default=0.0,
    metavar="MINUTES",
    help="Wait this long for yesterday to be complete; then send the last complete day, and say so.",
)
@stale_option
@click.option(
    "--unsure",
    type=click.Choice(["arrived", "lost"]),
    help="For a target that is unsure: whether its message arrived, or was lost and is to be sent again.",
)
def morning(
    to: tuple[str, ...],
    games: tuple[str, ...],
    metrics: tuple[str, ...],
    notebooks: tuple[str, ...],
    out: Path,
    accept: str | None,
    wait: float,
    stale: timedelta | None,
    unsure: Literal["arrived", "lost"] | None,
) -> None:
    """Send the health and headline numbers of the last complete day, once to each target.

    \b
    Example: gamelens morning --to env:SLACK_WEBHOOK --to github

    Says what is new, still open or recovered since the last message to the target. Without --to it prints the
    message. The exit code is 1 when a target did not get its message, when that is unsure, or when a notebook failed,
    else 4 when the data are too old, or too few, to tell, which the message says first.
    """
    from gamelens.messages.targets import target_of

    targets = [target_of(text) for text in to]
    if unsure is not None and not targets:
        raise click.UsageError("--unsure is about one target: name it with --to")
    pages = ReportPages(notebooks, out)
    report = _complete_report(wait, games=games or None, metrics=metrics or None, accept=accept, stale_after=stale)
    if report.day is None:
        from gamelens.messages.morning_message import NO_DAY

        print_line(NO_DAY, colour="yellow", err=True)
        raise SystemExit(CANNOT_TELL)
    if not targets:
        from gamelens.messages.message_text import plain_text
        from gamelens.messages.morning_message import message_of

        pages.make()
        message = message_of(report, {}, reports=pages.made, notes=pages.failed)
        for line in plain_text(message).splitlines():
            print_line(line)
    outcomes = [_delivered(target, report, unsure, pages) for target in targets]
    if report.is_stale and targets:  # a target may have had the message before, and then gets none
        print_line(report.headline, colour="yellow", err=True)
    failed = bool(pages.failed) or any(outcome in _COLOURS for outcome in outcomes)
    raise SystemExit(1 if failed else CANNOT_TELL if report.cannot_tell else 0)


class ReportPages:
    """The pages of `--report`, which are made when the first target needs them.

    *failed* has a sentence for each notebook that did not run.

    Raises:
        BadQuery: a name is neither a file nor a notebook of ours.
    """

    def __init__(self, notebooks: Sequence[str], out: Path) -> None:
        from gamelens.local.demo import find_notebook

        self._waiting = [find_notebook(name) for name in notebooks]
        self._out = out
        self.made: list[Path] = []
        self.failed: list[str] = []

    def make(self) -> None:
        """Run the notebooks that have not run."""
        if not self._waiting:
            return
        from gamelens.errors import GamelensError
        from gamelens.local.connect import ensure_service
        from gamelens.notebook.reports.report import advice_at_end, write_report

        ensure_service(say=_say)
        with advice_at_end(_say) as advise:
            while self._waiting:
                notebook = self._waiting.pop(0)
                _say(f"running {notebook.name}")
                try:
                    self.made.append(write_report(notebook, self._out, say=_say, advise=advise))
                except GamelensError as error:
                    self.failed.append(f"The report {notebook.stem} is missing: {error}")
                    print_line(self.failed[-1], colour="red", err=True)


def _say(line: str) -> None:
    print_line(line, prefix="· ", err=True)


def _complete_report(wait_minutes: float, **arguments: Any) -> HealthReport:
    """Return the board of yesterday, or after the wait of the last day that is complete."""
    from gamelens.investigations.health_check import check_health
    from gamelens.local.connect import connect

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
            _say(f"waiting for {yesterday} to be complete")
            time.sleep(min(_POLL_S, left_s))


def _delivered(target: Target, report: HealthReport, unsure: str | None, pages: ReportPages) -> str:
    """Send the message to a target, print what became of it, and return its outcome."""
    from gamelens.messages.journal import MessageJournal
    from gamelens.messages.morning_message import alarms_of, message_of

    journal = MessageJournal()
    if unsure is not None and not journal.settle(target.identity, arrived=unsure == "arrived"):
        print_line(f"{target.name}: no message is in doubt", err=True)
    record = journal.record(target.identity)
    if report.day is not None and not record.has(report.day.date()):
        pages.make()
    alarms = record.sent.alarms if record.sent else {}
    message = message_of(report, alarms, reports=pages.made, notes=pages.failed)
    delivery = journal.deliver(target.identity, message.day, alarms_of(report), lambda: target.send(message))
    day, outcome = message.day, delivery.outcome
    words = f"{day} {outcome}" + (f": {delivery.why}" if delivery.why else "")
    if outcome == "unsure":
        look = f'look there for "gamelens {day}", then repeat the command with --unsure arrived or --unsure lost'
        words = f"unsure whether {day} arrived ({delivery.why}): {look}"
    print_line(f"{target.name}: {words}", colour=_COLOURS.get(outcome), err=outcome in _COLOURS)
    return outcome
