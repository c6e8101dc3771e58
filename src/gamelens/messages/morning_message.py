"""The message of one day: headline numbers, and what is new, still open or recovered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Final

import msgspec
import pandas as pd

from gamelens._text import counted, format_number, one_line, shortened
from gamelens.errors import GamelensError
from gamelens.notebook.health_check import HealthReport
from gamelens.notebook.labels import day as day_text
from gamelens.notebook.receipt_text import source_line

MOST_NUMBERS: Final = 24
MOST_ALARMS: Final = 20
_LONGEST: Final = 300


class HeadlineNumber(msgspec.Struct, frozen=True):
    """One number of one game, and its change against a usual day if there is one."""

    game: str
    name: str
    value: str
    change: str


class MorningMessage(msgspec.Struct, frozen=True, kw_only=True):
    """The message of one complete day in UTC, as plain text that each shape escapes in its own way.

    Alarms are compared with those of the last message. *badge* is the warning beside simulated numbers, *notes* are
    what else the reader must know, and *reports* are pages of notebooks, which a mail carries and other targets name.
    """

    day: date
    headline: str
    badge: str = ""
    numbers: tuple[HeadlineNumber, ...] = ()
    new: tuple[str, ...] = ()
    still_open: tuple[str, ...] = ()
    recovered: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    reports: tuple[Path, ...] = ()
    source: str = ""

    @property
    def title(self) -> str:
        """The subject: the badge, the day and the headline on one line."""
        badge = f"[{self.badge}] " if self.badge else ""
        return shortened(one_line(f"{badge}gamelens {self.day}: {self.headline}"), _LONGEST)

    @property
    def sections(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """New, still open, recovered and reports, each with its lines, without empty ones."""
        alarms = (("New", self.new), ("Still open", self.still_open), ("Recovered", self.recovered))
        named = (*alarms, ("Reports", tuple(map(str, self.reports))))
        return tuple((heading, lines) for heading, lines in named if lines)


def alarms_of(report: HealthReport) -> dict[str, str]:
    """Return the sentence of each alarm of a board by the identity of its series."""
    alarms = {}
    for row in report.alarms.to_dict("records"):
        parts = [row[name] for name in ("game_id", "watch", "dimension", "segment")]
        identity = msgspec.json.encode([None if pd.isna(part) else str(part) for part in parts]).decode()
        alarms[identity] = shortened(one_line(row["sentence"]), _LONGEST)
    return alarms


def message_of(
    report: HealthReport,
    before: Mapping[str, str],
    *,
    now: datetime,
    reports: Sequence[Path] = (),
    notes: Sequence[str] = (),
) -> MorningMessage:
    """Return the message about the last complete day of *report*, sent *now*.

    *before* has the alarms of the last message to the same target, as `alarms_of` returns them, and *notes* stand in
    front of its own.

    Raises:
        GamelensError: no day is complete.
    """
    if report.day is None:
        raise GamelensError("no day is complete yet: nothing is sent")
    alarms, day = alarms_of(report), report.day.date()
    numbers, left_out = _headline_numbers(report)
    cut = [f"{counted(left_out, 'more headline number')}: gamelens health --json has them all."] if left_out else []
    late: list[str] = []
    yesterday = now.date() - timedelta(days=1)
    if day < yesterday:
        ended, last = (day_text(datetime(it.year, it.month, it.day)) for it in (yesterday, day))
        late = [f"{ended} is not complete yet: these are the numbers of {last}."]
    return MorningMessage(
        day=day,
        headline=report.headline,
        badge=report.provenance.badge,
        numbers=numbers,
        new=_cut([alarms[name] for name in alarms if name not in before]),
        still_open=_cut([alarms[name] for name in alarms if name in before]),
        recovered=_cut([sentence for name, sentence in before.items() if name not in alarms]),
        notes=(*notes, *late, *report.unmatched, *cut),
        reports=tuple(reports),
        source=source_line(report.board),
    )


def _headline_numbers(report: HealthReport) -> tuple[tuple[HeadlineNumber, ...], int]:
    """Return the numbers of whole games on the last day, the games with the worst rows first.

    The second value counts those that are left out: every game keeps its first number, then each its second, until
    there are `MOST_NUMBERS`.
    """
    board = report.board[report.board["dimension"].isna() & (report.board["timestamp"] == report.day)]
    rows = board.drop_duplicates(["game_id", "watch"])
    game, _ = pd.factorize(rows["game_id"], use_na_sentinel=False)
    rows = rows.assign(_game=game, _place=pd.Series(game, rows.index).groupby(game).cumcount())
    most = max(MOST_NUMBERS, rows["_game"].nunique())
    shown = rows.sort_values(["_place", "_game"]).head(most).sort_values(["_game", "_place"])
    numbers = tuple(
        HeadlineNumber(
            one_line(row["game"]),
            str(row["metric"]),
            format_number(row["value"], row["kind"]),
            "" if pd.isna(row["change"]) else format_number(row["change"], "change", places=0),
        )
        for row in shown.to_dict("records")
    )
    return numbers, len(rows) - len(shown)


def _cut(sentences: list[str]) -> tuple[str, ...]:
    """Return the first sentences, and how many more there are."""
    more = len(sentences) - MOST_ALARMS
    return (*sentences[:MOST_ALARMS], *([f"and {more} more: gamelens health --json has them all"] if more > 0 else []))
