"""The health board of an organisation, for notebook, command and widget.

    report = check_health(lens)
    report.board        # one row for each game and watched metric, the worst first; see `gamelens.analysis.health`
    report.moved        # the segments behind the alarms

It sends as few queries as possible, and queries segments only for rows that are flagged.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec
import pandas as pd
from pandas import DataFrame

from gamelens._text import escape_markdown, markdown_table
from gamelens.analysis import claims, health
from gamelens.analysis.health import HealthQuery
from gamelens.analysis.health.segments import SEGMENT_COLUMNS
from gamelens.analysis.tidy_frames import UNKNOWN
from gamelens.analysis.tidy_frames.columns import column_named
from gamelens.analysis.tidy_frames.results import as_result
from gamelens.analysis.tidy_frames.written_columns import written_columns
from gamelens.data_age import DataAge
from gamelens.errors import NotYetAvailable, suggests_names
from gamelens.receipt_text import source_line
from gamelens.receipts import RECEIPT, Provenance, Receipt
from gamelens.wire.intervals import Interval

if TYPE_CHECKING:
    from gamelens.client.sync_client import Client
    from gamelens.client.tables.time_ranges import TimeRange

HISTORY: Final = "last 112 complete days"
"""An incident is known as long as its first day and the weeks before it lie within."""
MOST_DRILLS: Final = 5
MOST_GAMES: Final = 6
_HEADER: Final = ["severity", "day", "game", "number", "of", "is", "usually", "change", "open since"]
_SEGMENT_HEADER: Final = ["game", "number", "of", "by", "segment", "is", "usually", "share of the change"]
_NUMBERS: Final = ("value", "expected", "change", "share_of_change")
_OF_ALARM: Final = ("game_id", "game", "watch", "timestamp")
_PURCHASES: Final = ("revenue",)
_ADS: Final = ("ilrd_revenue",)
_SHARES_OF_ADS: Final = ("network_share", "failed_shows")
_MONEY_OF: Final[Mapping[str, tuple[str, ...]]] = {
    **dict.fromkeys(("user_unique", "session_unique", "new_users", "retention_d1"), (*_PURCHASES, *_ADS)),
    **dict.fromkeys(("revenue", "purchases"), _PURCHASES),
    **dict.fromkeys(("ad_impressions_count", "ilrd_revenue", *_SHARES_OF_ADS), _ADS),
}
"""The money of a game that follows a watched metric, by its key."""
_BEFORE_DAYS: Final = 30
"""Days queried before a change: with a change of one day, as many as a request may have."""


@suggests_names
class HealthReport(msgspec.Struct, frozen=True):
    """A health board and the segments behind its alarms.

    Attributes:
        board: the frame of `health.board`.
        scores: the frame of `health.score_days`.
        moved: the rows of `health.segments` for each alarm whose segments were queried, with the alarm's game_id,
            game, watch, timestamp, of_dimension and of_segment.
        requests: how many requests it took.
        unmatched: a sentence for each accepted level or annotation that is about no row of the board.
        levels: the frame of `health.levels`, or None if it was not computed.
        stale_after: the age from which the data are stale, or None: they are if the day before was not complete.
    """

    board: DataFrame
    scores: DataFrame
    moved: DataFrame
    requests: int
    unmatched: tuple[str, ...] = ()
    levels: DataFrame | None = None
    stale_after: timedelta | None = None

    @property
    def alarms(self) -> DataFrame:
        """The rows of severity warning or worse."""
        return self.board[self.board["is_flagged"]].reset_index(drop=True)

    @property
    def by_money(self) -> DataFrame:
        """The alarms, the largest money first: the costliest of each game, then the others.

        The money of an alarm is what is at stake in a day if the usual purchases and ads of its game follow the number:
        its change times that money, of a country the part that its new players are. The same players are behind several
        numbers of a game, so the costliest one stands for the game. Alarms without such money, such as errors of a
        build, follow, the worst first.
        """
        return _by_money(self.board)

    @property
    def day(self) -> pd.Timestamp | None:
        """The last scored day, or None if the board is empty."""
        return self.board["timestamp"].max() if len(self.board) else None

    def count(self, severity: str) -> int:
        """Return the number of rows of a severity."""
        return int((self.board["severity"] == severity).sum())

    @property
    def as_of(self) -> str | None:
        """The time up to which the service had data, in ISO 8601."""
        return Receipt.of(self.board.attrs).as_of

    @property
    def is_stale(self) -> bool:
        """Whether the data are too old to tell what is usual now."""
        return DataAge.of(Receipt.of(self.board.attrs)).is_stale(self.stale_after)

    @property
    def cannot_tell(self) -> bool:
        """Whether the data are too old, or too few, to tell what is usual now."""
        return self.is_stale or len(self.board) == self.count("unknown")

    @property
    def provenance(self) -> Provenance:
        """The origin of the numbers."""
        return Receipt.of(self.board.attrs).provenance

    @property
    def headline(self) -> str:
        """The board in one sentence of plain text."""
        said = health.headline(self.board, self.levels, stale_after=self.stale_after)
        return str(claims.of(said, ["health"])["text"].iloc[0])

    def table(self, rows: DataFrame) -> DataFrame:
        """Return *rows* of the board as readable text, with a day column if they have several.

        The text is plain: escape it before it becomes HTML or Markdown.
        """
        texts = number_texts(rows).to_dict("records")
        cells = [dict(_cells(row, text)) for row, text in zip(rows.to_dict("records"), texts, strict=True)]
        table = DataFrame(cells, columns=_HEADER, dtype="str")
        return table if rows["timestamp"].nunique() > 1 else table.drop(columns="day")

    def overview(self, most: int = MOST_GAMES) -> DataFrame:
        """Return each metric in each game, the games with the worst rows first.

        A row is a metric and a column a game, so that the table fits a page. All columns are plain text: number, and
        one for each game, by title. A number is followed by the usual one; the change is said of flagged rows alone,
        since what is within the band of usual days is no news.

        Args:
            most: the number of games at most.
        """
        whole = self.board[self.board["dimension"].isna()].drop_duplicates(["game_id", "watch"])
        rows = zip(whole.to_dict("records"), number_texts(whole).to_dict("records"), strict=True)
        texts = [_beside_usual(row, text) for row, text in rows]
        long = DataFrame({"id": whole["game_id"].astype(str), "number": whole["metric"].astype(str), "text": texts})
        wide = long.pivot(index="number", columns="id", values="text").fillna("")
        watched = [watch.name for watch in health.WATCHED.values() if watch.name in wide.index]
        games = self.board.assign(id=self.board["game_id"].astype(str)).drop_duplicates("id")
        games = games[games["id"].isin(wide.columns)].head(most)
        shown = wide.loc[[*watched, *(name for name in wide.index if name not in watched)], games["id"].tolist()]
        shown.columns = pd.Index(games["game"].astype(str))
        return shown.rename_axis(columns=None).reset_index()

    def segment_table(self, rows: DataFrame) -> DataFrame:
        """Return *rows* of `moved` as readable text, each number in the unit of its metric.

        The text is plain, as in `table`.
        """
        texts = number_texts(rows, "health.segments").to_dict("records")
        cells = [[*_segment_cells(row, text)] for row, text in zip(rows.to_dict("records"), texts, strict=True)]
        return DataFrame(cells, columns=_SEGMENT_HEADER, dtype="str")

    def markdown(self) -> str:
        """Return the board as one page of Markdown, with names from outside escaped."""
        parts = [f"# {escape_markdown(self.headline)}"]
        if self.provenance.badge:
            parts.append(f"**{self.provenance.badge}**: the players are invented")
        if len(self.alarms):
            parts.append(_markdown_of(self.table(self.alarms)))
        for sentence, more in self.explained():
            lines = [f"- {escape_markdown(sentence)}", *(f"  - {escape_markdown(line)}" for line in more)]
            parts.append("\n".join(lines))
        if self.levels is not None and self.levels["is_moved"].any():
            moved = claims.of(self.levels[self.levels["is_moved"]])["text"]
            parts.append("## Levels that moved slowly\n\n" + "\n".join(f"- {escape_markdown(line)}" for line in moved))
        if len(overview := self.overview()):
            parts += ["## Each number and what is usual", _markdown_of(overview)]
        parts += [escape_markdown(sentence) for sentence in self.unmatched]
        if line := source_line(self.board):
            parts.append(f"{escape_markdown(line)}.")
        return "\n\n".join(parts)

    def explained(self) -> list[tuple[str, list[str]]]:
        """Return the sentence of each alarm, and those about its segments, in plain text."""
        return [(row["sentence"], self._segment_sentences(row)) for row in self.alarms.to_dict("records")]

    def behind(self, row: Mapping[Any, Any]) -> DataFrame:
        """Return the rows of `moved` that tell which segments are behind a *row* of the board.

        A split in which all segments changed alike is left out where another split shows a difference.
        """
        same = (self.moved["game_id"] == row["game_id"]) & (self.moved["watch"] == row["watch"])
        same &= self.moved["timestamp"] == row["timestamp"]
        alarm_segments = self.moved["of_segment"]
        same &= alarm_segments.isna() if pd.isna(row["segment"]) else alarm_segments == row["segment"]
        rows = self.moved[same & (self.moved["verdict"] != "unclear")]
        different = rows[rows["verdict"] != "all alike"]
        return as_result(different if len(different) else rows, "health.segments", {})

    def _segment_sentences(self, row: dict[Any, Any]) -> list[str]:
        """Return the sentences about the segments of a row."""
        rows = self.behind(row)
        return claims.of(rows)["text"].tolist() if len(rows) else []


def check_health(
    lens: Client,
    *,
    over: TimeRange = HISTORY,
    games: Sequence[str] | None = None,
    metrics: Iterable[str] | None = None,
    days: int = 1,
    drills: int = MOST_DRILLS,
    accept: str | Path | health.BoardNotes | None = None,
    stale_after: timedelta | None = None,
) -> HealthReport:
    """Query and score the health board of the last days of *over*.

    The days before them are the history that they are compared with. With no complete day yet the board is empty.

    Args:
        lens: a client.
        over: the scored days and their history.
        games: ids of games. None means all.
        metrics: keys of `health.WATCHED`, or other metrics of the service. None means all of `WATCHED`.
        days: how many of the last days are scored.
        drills: for how many alarms, the largest money first (`HealthReport.by_money`), the segments are queried too.
        accept: a TOML file with accepted levels, campaigns, releases and holidays, as `health.BoardNotes` reads it.
        stale_after: the age from which the data are stale, which the headline then says first. None means that they are
            if yesterday is not complete.

    Raises:
        BadQuery: there is no such metric, or *accept* breaks a rule.
        NotYetAvailable: *over* begins after the available interval.
    """
    known = set(lens.dimensions())  # a service without severities has no critical errors to watch
    watched = [watch for watch in health.watches(metrics) if {name for name, _ in watch.where} <= known]
    notes = health.BoardNotes.read(accept) if isinstance(accept, str | Path) else accept or health.BoardNotes()
    try:
        answers = [
            lens.query(over=over, when_unavailable="clip", **_for_games(query, games).arguments)
            for query in health.board_queries(watched)
        ]
    except NotYetAvailable as error:
        if not _is_too_early(error):
            raise
        answers = []
    daily = health.daily(answers, watched)
    if not answers:
        daily.attrs[RECEIPT] = Receipt(
            asked_at=datetime.now(UTC).isoformat(timespec="seconds"),
            as_of=lens.available().end.isoformat(),
        ).to_json()
    scores = health.score_days(daily, restatements=lens.restatements(), notes=notes)
    board = health.board(scores, days=days)
    moved, drill_answers = _query_segments(lens, board, drills)
    requests = sum(Receipt.of(frame.attrs).requests for frame in [*answers, *drill_answers])
    unmatched = tuple(health.unmatched_notes(daily, notes))
    return HealthReport(board, scores, moved, requests, unmatched, health.levels(daily), stale_after)


def _by_money(board: DataFrame) -> DataFrame:
    """Return the alarms of *board* in the order of `HealthReport.by_money`."""
    alarms = board[board["is_flagged"]].reset_index(drop=True)
    whole = board[board["dimension"].isna()]
    of_game = {
        (row["game_id"], row["timestamp"], row["watch"]): row
        for row in whole.to_dict("records")
        if row["watch"] in (*_PURCHASES, *_ADS) or row["kind"] == "share"
    }
    money = DataFrame(
        {
            "game": alarms["game_id"].astype("object"),
            "money": [_money_at_stake(row, of_game) for row in alarms.to_dict("records")],
        }
    ).sort_values("money", ascending=False, kind="stable", na_position="last")
    money["is_other"] = money["money"].isna() | money.duplicated("game")
    order = money.sort_values("is_other", kind="stable").index
    return alarms.loc[order].reset_index(drop=True)


def _money_at_stake(row: dict[Any, Any], of_game: Mapping[tuple[Any, ...], dict[Any, Any]]) -> float:
    """Return the usual money of a day that follows the number of an alarm, NaN where none does or none is known."""
    moved_with = _MONEY_OF.get(row["watch"], ())
    found = [of_game.get((row["game_id"], row["timestamp"], watch)) for watch in moved_with]
    usual = [float(one["expected"]) for one in found if one is not None and pd.notna(one["expected"])]
    if not usual or pd.isna(row["expected"]) or pd.isna(row["value"]):
        return math.nan
    if row["watch"] in _SHARES_OF_ADS:
        return abs(float(row["value"] - row["expected"])) * sum(usual)
    part, game = 1.0, of_game.get((row["game_id"], row["timestamp"], row["watch"]))
    if pd.notna(row["dimension"]) and game is not None and game["whole"] > 0:
        part = float(row["whole"] / game["whole"])
    change = abs(float(row["value"] / row["expected"] - 1)) if row["expected"] > 0 else math.nan
    return change * sum(usual) * part


def _is_too_early(error: NotYetAvailable) -> bool:
    """Return whether the queried days end before the available interval begins.

    This is the state of a service on its first day: no day is complete yet.
    """
    requested, available = error.asked, error.available
    return isinstance(requested, Interval) and isinstance(available, Interval) and requested.end <= available.start


def planned_requests(
    lens: Client, *, over: TimeRange = HISTORY, games: Sequence[str] | None = None, metrics: Iterable[str] | None = None
) -> int:
    """Return how many requests `check_health` will send before it queries any segments.

    Lists of titles count once. Until the studios are known, one studio is assumed: each further one costs one request.
    """
    plans = [
        lens.plan(over=over, when_unavailable="clip", **_for_games(query, games).arguments)
        for query in health.board_queries(health.watches(metrics))
    ]
    lists = max((plan.requests - len(plan.pieces) for plan in plans), default=0)
    return lists + sum(len(plan.pieces) for plan in plans)


def segments_of(lens: Client, row: dict[Any, Any], dimension: str) -> DataFrame:
    """Query the segments by *dimension* behind a *row* of a board.

    Returns:
        The columns of `health.segments`, and the row's game_id, game, watch, timestamp, of_dimension and of_segment.
    """
    query = health.drill_queries(row)[dimension]
    return _segments(_query_around(lens, query, row), row, dimension)


def number_texts(rows: DataFrame, analysis: str = "health.board") -> DataFrame:
    """Return the numbers of *rows* as every table writes them. Numbers of one metric have the same decimal places.

    Args:
        rows: rows of a board, or of segments.
        analysis: the analysis that made them, "health.board" or "health.segments".

    Returns:
        Columns value, expected, change and share_of_change (str) as far as *rows* has them, with a unit behind a plain
        number, such as "748 seconds"; and usual (str), the expected number without a unit.
    """
    written = written_columns(as_result(rows.copy(deep=False), analysis, {}))
    texts = {
        column.name: [column.text(number, place) for place, number in enumerate(rows[column.name])]
        for column in written
        if column.name in _NUMBERS
    }
    texts["usual"] = texts["expected"]
    units = [
        f" {_unit_of(key)}" if kind == "number" else "" for key, kind in zip(rows["watch"], rows["kind"], strict=True)
    ]
    for name in ("value", "expected"):
        known = zip(texts[name], units, rows[name].isna(), strict=True)
        texts[name] = [text if is_missing else f"{text}{unit}" for text, unit, is_missing in known]
    return DataFrame(texts, dtype="str")


def _unit_of(key: str) -> str:
    """Return the unit of a watched metric in words."""
    (watch,) = health.watches([key])
    return column_named(watch.field, [watch.metric]).unit_words


def _cells(row: dict[Any, Any], text: dict[Any, str]) -> Iterator[tuple[str, str]]:
    """Yield the header and text of each cell of a row of the readable table. *text* has its numbers."""
    segment = "" if pd.isna(row["dimension"]) else _segment_name(row["segment"])
    since = "" if pd.isna(row["since"]) else f"{row['since']:%Y-%m-%d}"
    severity = f"{row['severity']}: {why}" if (why := health.ok_reason(row)) else row["severity"]
    named = (severity, f"{row['timestamp']:%Y-%m-%d}", row["game"], row["metric"], segment)
    yield from zip(_HEADER, map(str, (*named, text["value"], text["expected"], text["change"], since)), strict=True)


def _beside_usual(row: dict[Any, Any], text: dict[Any, str]) -> str:
    """Return the number of a row, the usual one, and the change of a flagged row. *text* has the numbers."""
    value = text["value"] if pd.isna(row["expected"]) else f"{text['value']}, usually {text['usual']}"
    return f"{text['change']}: {value}" if row["is_flagged"] and not pd.isna(row["change"]) else value


def _segment_cells(row: dict[Any, Any], text: dict[Any, str]) -> Iterator[str]:
    """Yield the text of each cell of a row of the readable table of segments. *text* has its numbers."""
    alarm_segment = "" if pd.isna(row["of_dimension"]) else _segment_name(row["of_segment"])
    yield from (str(row["game"]), str(row["metric"]), alarm_segment, health.dimension_words(str(row["dimension"])))
    yield _segment_name(row["segment"])
    yield from (text["value"], text["expected"], text["share_of_change"])


def _segment_name(segment: Any) -> str:
    return UNKNOWN if pd.isna(segment) else str(segment)


def _markdown_of(table: DataFrame) -> str:
    return markdown_table(map(str, table.columns), table.itertuples(index=False))


def _query_segments(lens: Client, board: DataFrame, most: int) -> tuple[DataFrame, list[DataFrame]]:
    """Query the segments of the first *most* alarms. Returns segments and answers."""
    segments, answers = [], []
    for row in _by_money(board).head(most).to_dict("records"):
        for dimension, query in health.drill_queries(row).items():
            answers.append(_query_around(lens, query, row))
            segments.append(_segments(answers[-1], row, dimension))
    none = DataFrame(columns=[*SEGMENT_COLUMNS, *_OF_ALARM, "of_dimension", "of_segment"])
    moved = pd.concat(segments or [none], ignore_index=True)
    return as_result(moved, "health.segments", {}), answers


def _query_around(lens: Client, query: HealthQuery, row: dict[Any, Any]) -> DataFrame:
    """Run *query* over the days of *row*'s change and those before it that its baseline needs."""
    day, window = row["timestamp"], pd.Timedelta(days=int(row["window_days"]) - 1)
    began = day - window if pd.isna(row["since"]) else min(day - window, row["since"])
    over = ((began - pd.Timedelta(days=_BEFORE_DAYS)).date(), day.date())
    return lens.query(over=over, when_unavailable="clip", **query.arguments)


def _segments(frame: DataFrame, row: dict[Any, Any], dimension: str) -> DataFrame:
    """Return the segments of *frame* with the columns that tell which row they belong to."""
    watch, window = health.watches([row["watch"]])[0], int(row["window_days"])
    since = None if pd.isna(row["since"]) else row["since"]
    moved = health.segments(
        frame, watch, dimension, day=row["timestamp"], window_days=window, since=since, segment=row["segment"]
    )
    about = {name: row[name] for name in _OF_ALARM} | {f"of_{name}": row[name] for name in ("dimension", "segment")}
    return moved.assign(**about).astype({"segment": "object"})


def _for_games(query: HealthQuery, games: Sequence[str] | None) -> HealthQuery:
    """Return *query* of *games*, one or several; None is all of them."""
    chosen = (games,) if isinstance(games, str) else games
    return query if chosen is None else msgspec.structs.replace(query, games=tuple(chosen))
