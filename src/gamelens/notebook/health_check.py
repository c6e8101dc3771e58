"""The health board of an organisation, asked for and judged: what the notebook, the command and a widget show.

    seen = watch(lens)
    seen.board        # every game and number, the worst first; see `gamelens.analysis.health`
    seen.moved        # which segment is behind what is flagged

A board asks as few questions as it can, and about segments only where something is flagged.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec
import pandas as pd
from pandas import DataFrame

from gamelens._text import escape_markdown, format_number, markdown_table
from gamelens.analysis import health
from gamelens.analysis.health import HealthQuery, WatchedMetric
from gamelens.analysis.tidy_frames import UNKNOWN
from gamelens.errors import NotYetAvailable
from gamelens.wire.intervals import Interval
from gamelens.wire.receipts import Receipt

if TYPE_CHECKING:
    from gamelens.client.sync_client import Client
    from gamelens.client.tables.time_ranges import TimeRange

HISTORY: Final = "last 56 complete days"
MOST_DRILLS: Final = 5
MOST_GAMES: Final = 20
_HEADER: Final = ["severity", "day", "game", "number", "of", "is", "usually", "change", "since"]
_BEFORE_DAYS: Final = 30
"""Asked for before what is flagged: with the day itself, as long as one request may be."""


class HealthReport(msgspec.Struct, frozen=True):
    """A board, and what is behind it.

    *board* is the frame of `health.board`, *scores* that of `health.score_days`. *moved* has the rows of `health.segments`
    for every flagged row that was looked into, with its game_id, game, watch, metric, timestamp, of_dimension and
    of_segment, verdict and says (str, what the segments say together, plain text). *requests* is what it took.
    """

    board: DataFrame
    scores: DataFrame
    moved: DataFrame
    requests: int

    @property
    def alarms(self) -> DataFrame:
        """The rows at warning or worse."""
        return self.board[self.board["is_flagged"]].reset_index(drop=True)

    @property
    def day(self) -> pd.Timestamp | None:
        """The last day that is judged; None where there is none."""
        return self.board["timestamp"].max() if len(self.board) else None

    def count(self, severity: str) -> int:
        """How many rows of the board are so bad."""
        return int((self.board["severity"] == severity).sum())

    @property
    def as_of(self) -> str | None:
        """Until when the service had data, ISO 8601."""
        return Receipt.of(self.board.attrs).as_of

    @property
    def headline(self) -> str:
        """The board in a sentence, plain text."""
        if self.day is None or self.count("unknown") == len(self.board):
            return "Not enough history yet to say what is usual: two weeks for shares, three for everything else."
        judged = len(self.board) - self.count("unknown")
        games = self.board["game_id"].nunique()
        found = " and ".join(f"{self.count(it)} {it}" for it in ("critical", "warning") if self.count(it))
        unknown = f"; {self.count('unknown')} more have not enough history" if self.count("unknown") else ""
        return (
            f"{found or 'Nothing stands out'} on {self.day:%Y-%m-%d}: {judged} numbers of {games} "
            f"game{'' if games == 1 else 's'} judged{unknown}."
        )

    def table(self, rows: DataFrame) -> DataFrame:
        """*rows* of the board as people read them, with their day where there are several.

        All text, plain: escape it before it becomes HTML or Markdown.
        """
        made = DataFrame([dict(_cells(row)) for row in rows.to_dict("records")], columns=_HEADER, dtype="str")
        return made if rows["timestamp"].nunique() > 1 else made.drop(columns="day")

    def overview(self, most: int = MOST_GAMES) -> DataFrame:
        """The change of every whole game's numbers, the games with the worst on top; all text, plain.

        Columns: game, and one for each metric.
        """
        whole = self.board[self.board["dimension"].isna()].drop_duplicates(["game_id", "watch"])
        order = self.board["game_id"].astype(str).drop_duplicates().head(most)
        texts = whole["change"].map(lambda change: format_number(change, "change", places=0), na_action=None)
        long = DataFrame({"id": whole["game_id"].astype(str), "metric": whole["metric"].astype(str), "text": texts})
        wide = long.pivot(index="id", columns="metric", values="text")
        names = whole.assign(id=whole["game_id"].astype(str)).drop_duplicates("id").set_index("id")["game"].astype(str)
        metrics = [it.name for it in health.WATCHED.values() if it.name in wide]
        wide = wide[[*metrics, *(name for name in wide if name not in metrics)]]
        shown = wide.loc[[it for it in order if it in wide.index]].fillna("")
        shown.insert(0, "game", names.loc[shown.index])
        return shown.reset_index(drop=True).rename_axis(columns=None)

    def markdown(self) -> str:
        """The board as one page of Markdown; every name from outside is escaped."""
        parts = [f"# {escape_markdown(self.headline)}"]
        if len(self.alarms):
            parts.append(_markdown_of(self.table(self.alarms)))
        for sentence, more in self.explained():
            lines = [f"- {escape_markdown(sentence)}", *(f"  - {escape_markdown(line)}" for line in more)]
            parts.append("\n".join(lines))
        if len(overview := self.overview()):
            parts += ["## Change against a usual day", _markdown_of(overview)]
        if self.as_of:
            parts.append(f"Data as of {escape_markdown(self.as_of)}.")
        return "\n\n".join(parts)

    def explained(self) -> list[tuple[str, list[str]]]:
        """The sentence of each alarm, with those about its segments; plain text."""
        return [(str(row["sentence"]), list(self._says(row))) for row in self.alarms.to_dict("records")]

    def _says(self, row: dict[Any, Any]) -> Iterator[str]:
        if not len(self.moved):
            return
        same = (self.moved["game_id"] == row["game_id"]) & (self.moved["watch"] == row["watch"])
        same &= self.moved["timestamp"] == row["timestamp"]
        of = self.moved["of_segment"]
        same &= of.isna() if pd.isna(row["segment"]) else of == row["segment"]
        own = self.moved[same & (self.moved["says"] != "")].drop_duplicates("says")
        telling = own[own["verdict"] != "all alike"]
        yield from telling["says"] if len(telling) else own["says"]


def check_health(
    lens: Client,
    *,
    over: TimeRange = HISTORY,
    games: Sequence[str] | None = None,
    metrics: Iterable[str] | None = None,
    days: int = 1,
    drills: int = MOST_DRILLS,
) -> HealthReport:
    """The board of the last *days* days of *over*, the rest of which is the history they are held against.

    *games* are ids to narrow to, *metrics* keys of `health.WATCHED` or other metrics of the service. Of the worst
    *drills* alarms the segments are asked for. With no complete day yet the board is empty.

    Raises:
        BadQuery: no such metric.
        NotYetAvailable: *over* begins after what is available.
    """
    watched = health.watches(metrics)
    try:
        answers = [
            lens.query(over=over, when_unavailable="clip", **_narrowed(question, games).arguments)
            for question in health.questions(watched)
        ]
    except NotYetAvailable as error:
        if not _is_too_early(error):
            raise
        answers = []
    scores = health.score_days(health.daily(answers, watched), restatements=lens.restatements())
    board = health.board(scores, days=days)
    moved, asked = _look_into(lens, board, drills)
    requests = sum(Receipt.of(frame.attrs).requests for frame in [*answers, *asked])
    return HealthReport(board, scores, moved, requests)


def _is_too_early(error: NotYetAvailable) -> bool:
    """Whether what was asked lies before all there is: no day is complete yet."""
    asked, available = error.asked, error.available
    return isinstance(asked, Interval) and isinstance(available, Interval) and asked.end <= available.start


def planned_requests(
    lens: Client, *, over: TimeRange = HISTORY, games: Sequence[str] | None = None, metrics: Iterable[str] | None = None
) -> int:
    """How many requests `check_health` will send before it looks into segments, with the lists of titles, asked for once.

    While nothing is known of the studios one is assumed; each further one is one request more.
    """
    plans = [
        lens.plan(over=over, when_unavailable="clip", **_narrowed(question, games).arguments)
        for question in health.questions(health.watches(metrics))
    ]
    lists = max((plan.requests - len(plan.pieces) for plan in plans), default=0)
    return lists + sum(len(plan.pieces) for plan in plans)


def segments_of(lens: Client, row: dict[Any, Any], dimension: str) -> DataFrame:
    """The segments by *dimension* behind one *row* of a board, asked for: what a drill-down shows.

    Columns: those of `health.segments`, the row's game_id, game, watch, metric, timestamp, of_dimension, of_segment,
    verdict and says.
    """
    question = health.drill_questions(row)[dimension]
    return _segments(_ask(lens, question, row), row, dimension)


def _cells(row: dict[Any, Any]) -> Iterator[tuple[str, str]]:
    value, expected = (format_number(row[name], row["kind"]) for name in ("value", "expected"))
    segment = "" if pd.isna(row["dimension"]) else UNKNOWN if pd.isna(row["segment"]) else str(row["segment"])
    change = "" if pd.isna(row["change"]) else format_number(row["change"], "change", places=0)
    since = "" if pd.isna(row["since"]) else f"{row['since']:%Y-%m-%d}"
    named = (row["severity"], f"{row['timestamp']:%Y-%m-%d}", row["game"], row["metric"], segment)
    yield from zip(_HEADER, map(str, (*named, value, expected, change, since)), strict=True)


def _markdown_of(table: DataFrame) -> str:
    return markdown_table(map(str, table.columns), table.itertuples(index=False))


def _look_into(lens: Client, board: DataFrame, most: int) -> tuple[DataFrame, list[DataFrame]]:
    """The segments behind the first *most* alarms of *board*, and the answers they are from."""
    made, asked = [], []
    for row in board[board["is_flagged"]].head(most).to_dict("records"):
        for dimension, question in health.drill_questions(row).items():
            asked.append(_ask(lens, question, row))
            made.append(_segments(asked[-1], row, dimension))
    return pd.concat(made, ignore_index=True) if made else _nothing(), asked


def _ask(lens: Client, question: HealthQuery, row: dict[Any, Any]) -> DataFrame:
    day = row["timestamp"]
    first = day - pd.Timedelta(days=_BEFORE_DAYS + int(row["window_days"]) - 1)
    over = (first.date(), day.date())
    return lens.query(over=over, when_unavailable="clip", **question.arguments)


def _segments(frame: DataFrame, row: dict[Any, Any], dimension: str) -> DataFrame:
    watch, window = health.watches([row["watch"]])[0], int(row["window_days"])
    moved = health.segments(frame, watch, dimension, day=row["timestamp"], window_days=window, segment=row["segment"])
    verdict = health.verdict(moved)
    says = health.moved_sentence(moved, verdict, watch.kind)
    about = {name: row[name] for name in ("game_id", "game", "watch", "metric", "timestamp")}
    about |= {"of_dimension": row["dimension"], "of_segment": row["segment"]}
    about |= {"verdict": verdict, "says": says}
    return moved.assign(**about).astype({"segment": "object"})


def _nothing() -> DataFrame:
    of_segments = (
        "dimension segment value expected change contribution share_of_change mix weight z p is_moved first_day"
    )
    of_row = "game_id game watch metric timestamp of_dimension of_segment verdict says"
    return DataFrame(columns=[*of_segments.split(), *of_row.split()])


def _narrowed(question: HealthQuery, games: Sequence[str] | None) -> HealthQuery:
    return question if games is None else msgspec.structs.replace(question, games=tuple(games))


__all__ = ["HISTORY", "HealthReport", "WatchedMetric", "planned_requests", "segments_of", "check_health"]
