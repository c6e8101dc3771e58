"""The message of one day: for each game a line of headline numbers, and what is new, still open or recovered."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime
from pathlib import Path
from typing import Final

import msgspec
import pandas as pd
from pandas import DataFrame

from gamelens._text import counted, one_line, shortened
from gamelens.analysis import health
from gamelens.errors import GamelensError
from gamelens.investigations.health_check import HealthReport, number_texts
from gamelens.receipt_text import day_text, source_line

NO_DAY: Final = "no day is complete yet: nothing is sent"
"""What is said in place of a message where no day is complete."""
MOST_LINES: Final = 5
MOST_NUMBERS: Final = 8
_LONGEST: Final = 300
_SIZES: Final = ((5, 8), (3, 8), (3, 4), (1, 4), (1, 2), (1, 1), (1, 0))
"""The most lines and numbers of a game, from a full message down to the shortest; the first that fits is sent."""
_LEGEND: Final = "A change in brackets is against a usual day of the game; gamelens health --json lists every number."


class GameNews(msgspec.Struct, frozen=True):
    """What a message has to say of one game.

    Attributes:
        game: its title.
        status: what stands out, such as "1 new alarm", in a few words.
        numbers: the headline numbers of the day, each with its name, unit and change.
        alarms: sentences that begin with "New:", "Still open:" or "Recovered:".
    """

    game: str
    status: str
    numbers: tuple[str, ...] = ()
    alarms: tuple[str, ...] = ()

    def lines(self, most_lines: int = MOST_LINES, most_numbers: int = MOST_NUMBERS) -> list[str]:
        """Return the first line, with the headline numbers, and the lines of the alarms. Both say how much is cut."""
        left_out = len(self.numbers) - most_numbers
        more = [counted(left_out, "more number")] if most_numbers and left_out > 0 else []
        first = f"{self.game}: {self.status}. {' · '.join([*self.numbers[:most_numbers], *more])}".strip()
        if len(self.alarms) < most_lines:
            return [first, *self.alarms]
        shown = max(0, most_lines - 2)
        rest = counted(len(self.alarms) - shown, "more alarm" if shown else "alarm")
        return [first, *self.alarms[:shown], f"{rest} not shown."] if most_lines > 1 else [first]


class MorningMessage(msgspec.Struct, frozen=True, kw_only=True):
    """The message of one complete day in UTC, as plain text that each shape escapes in its own way.

    Alarms are compared with the last message. *badge* is the warning beside simulated numbers, *notes* are
    what else the reader must know, and *reports* are pages of notebooks, which a mail carries and other targets name.
    """

    day: date
    headline: str
    badge: str = ""
    games: tuple[GameNews, ...] = ()
    notes: tuple[str, ...] = ()
    reports: tuple[Path, ...] = ()
    source: str = ""

    @property
    def title(self) -> str:
        """The subject: the badge, the day and the headline on one line."""
        badge = f"[{self.badge}] " if self.badge else ""
        return shortened(one_line(f"{badge}gamelens {self.day}: {self.headline}"), _LONGEST)

    def lines_by_game(self, write: Callable[[str], str] = one_line, most_letters: int | None = None) -> list[list[str]]:
        """Return the lines of each game as *write* escapes them: fewer for each where they exceed *most_letters*."""
        for most_lines, most_numbers in _SIZES:
            games = [[write(line) for line in game.lines(most_lines, most_numbers)] for game in self.games]
            if most_letters is None or sum(len(line) + 2 for lines in games for line in lines) <= most_letters:
                break
        return games

    @property
    def footnotes(self) -> tuple[str, ...]:
        """How to read a change, where the rest is, and the pages of notebooks."""
        reports = ["Reports: " + ", ".join(map(str, self.reports))] if self.reports else []
        return (*([_LEGEND] if self.games else []), *reports)


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
    reports: Sequence[Path] = (),
    notes: Sequence[str] = (),
) -> MorningMessage:
    """Return the message about the last complete day of *report*, with every game of the board.

    *before* has the alarms of the last message to the same target, as `alarms_of` returns them, and *notes* stand in
    front of its own.

    Raises:
        GamelensError: no day is complete.
    """
    if report.day is None:
        raise GamelensError(NO_DAY)
    day, on_board = report.day.date(), {*report.board["game_id"].astype(str)}
    alarms = {name: _undated(text, day) for name, text in alarms_of(report).items()}
    gone = [f"No longer on the board: {text}" for name, text in before.items() if _game_of(name) not in on_board]
    return MorningMessage(
        day=day,
        headline=_undated(report.headline, day),
        badge=report.provenance.badge,
        games=_games(report, alarms, before),
        notes=(*notes, *report.unmatched, *gone),
        reports=tuple(reports),
        source=source_line(report.board),
    )


def _games(report: HealthReport, alarms: Mapping[str, str], before: Mapping[str, str]) -> tuple[GameNews, ...]:
    """Return what there is to say of every game of the board, those with the worst rows first."""
    news = []
    for game_id, rows in report.board.groupby("game_id", sort=False, observed=True):
        game = one_line(rows["game"].iloc[0])
        known = [name for name in alarms if _game_of(name) == str(game_id)]
        kinds = {
            "New": [alarms[name] for name in known if name not in before],
            "Still open": [alarms[name] for name in known if name in before],
            "Recovered": [
                text for name, text in before.items() if _game_of(name) == str(game_id) and name not in alarms
            ],
        }
        counts = [f"{len(texts)} {kind.lower()}" for kind, texts in kinds.items() if texts]
        is_known = (rows["severity"] != "unknown").any()
        calm = "nothing stands out" if is_known else "not enough history to say what is usual"
        sentences = tuple(
            f"{kind}: {text.removeprefix(f'{game}: ')}" for kind, texts in kinds.items() for text in texts
        )
        news.append(GameNews(game, ", ".join(counts) or calm, _headline_numbers(rows, report.day), sentences))
    return tuple(news)


def _headline_numbers(rows: DataFrame, day: pd.Timestamp | None) -> tuple[str, ...]:
    """Return the numbers of a whole game on *day* in the order of `WATCHED`, each with its unit and its change."""
    rows = rows[rows["dimension"].isna() & (rows["timestamp"] == day)].drop_duplicates("watch")
    places = {name: place for place, name in enumerate(health.WATCHED)}
    rows = rows.sort_values("watch", key=lambda keys: keys.map(lambda key: places.get(key, len(places))), kind="stable")
    texts = []
    for row, text in zip(rows.to_dict("records"), number_texts(rows).to_dict("records"), strict=True):
        change = "" if pd.isna(row["change"]) else f" ({text['change']})"
        texts.append(f"{row['metric']} {text['value']}{change}")
    return tuple(texts)


def _game_of(identity: str) -> str | None:
    """Return the id of the game in a key of `alarms_of`."""
    game: str | None = msgspec.json.decode(identity)[0]
    return game


def _undated(text: str, day: date) -> str:
    """Return *text* without the day of the message, which its title has."""
    return text.replace(f" on {day_text(datetime(day.year, day.month, day.day))}", "")
