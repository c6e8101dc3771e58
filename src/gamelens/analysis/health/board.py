"""Board of all series: each day against its baseline, and the days that need attention.

A day is judged by the days before it alone, so a board stays the same until the service restates a day or a person
accepts a level. A day stands out if it differs beyond chance on the whole board (false discoveries, q) and by a tenth
or more, and it opens an incident: the series stays flagged, against the baseline from before, until it returns. A game
that sends nothing is one finding, not one for each of its metrics. Restated days raise no alarm, and days that are not
settled need a larger change.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
import pandas as pd
from pandas import DataFrame, Series

from gamelens.analysis.claims.findings import Finding, reads
from gamelens.analysis.claims.templates import sentences_of
from gamelens.analysis.health.board_notes import BoardNotes, accepted_starts, exempt_days, note_texts
from gamelens.analysis.health.daily_series import IDENTITY, SERIES, series_grid
from gamelens.analysis.health.health_text import row_finding
from gamelens.analysis.health.scoring import DayEvidence, Scores
from gamelens.analysis.health.severity import LEAST_CHANGE, MOST_Q, SEVERITIES, Limits, is_settled, restated_days
from gamelens.analysis.tidy_frames.columns import Column
from gamelens.analysis.tidy_frames.frame_requirements import requires, result_of
from gamelens.analysis.tidy_frames.returned_columns import KEYS, between, named, returns

_DAY: Final = pd.Timedelta(days=1)
_NUMBERS: Final = ("expected", "low", "high", "change", "change_low", "change_high", "z", "p", "q")
_SERIES: Final = result_of("health.daily(answers)", "timestamp", *IDENTITY, "value", "part", "whole")
_SCORES: Final = result_of("health.score_days(daily)", "timestamp", *IDENTITY, *_NUMBERS, "severity")


_SHORT: Final = "while the history is short"
SCORE_COLUMNS: Final = (
    *SERIES,
    between(named("expected", scale="values", na=_SHORT), "the band of usual days", low="low", high="high"),
    between(
        named("change", about="-0.2 is 20% below", na=f"{_SHORT}, and if fewer than ten events were expected"),
        "95%, by the noise of the day and of what was expected, never below -1",
    ),
    Column("z", "number", about="the deviation in units of noise", na=_SHORT),
    named("p", about="the probability of such a deviation", na=_SHORT),
    named("q", about="the share of false discoveries on the day's board up to it", na=_SHORT),
    Column("window_days", "count", about="1, 7, 14, 21 or 28"),
    *(Column(name, "flag", na=_SHORT) for name in ("is_settled", "is_restated")),
    Column("is_silent", "flag", about="the whole game sent nothing", na=_SHORT),
    Column("severity", "category", about="while an incident is open, the worst that it had", values=SEVERITIES),
    Column("is_flagged", "flag", about="warning or worse", na=_SHORT),
    Column("since", "day", about="the first day of the open incident", na="without one"),
    Column("open_days", "count", about="days since then, both counted", na="without one"),
    Column("note", "text", about="what an annotation or a person says of the day, empty without one"),
)
BOARD_COLUMNS: Final = (
    *SCORE_COLUMNS,
    Column("sentence", "text", about="the text of its claim: escape it before it becomes HTML or Markdown"),
)


@requires(daily=_SERIES)
@returns(*SCORE_COLUMNS)
def score_days(
    daily: DataFrame,
    *,
    least_change: float = LEAST_CHANGE,
    most_q: float = MOST_Q,
    restatements: DataFrame | None = None,
    notes: BoardNotes | None = None,
) -> DataFrame:
    """Return every day of every series of `daily` with its baseline and severity.

        installs = lens.query("new_users", by="game", over="last 28 complete days")
        health.score_days(health.daily([installs]), least_change=0.2)

    A share is judged by its day, or by the one to four weeks up to it if they show more; *value*, *expected* and
    the rest are then those of that window. *restatements* is the frame of `Client.restatements`, *notes* are accepted
    levels and annotations.

    NA while the history is short: two same weekdays and seven days to compare are needed, fourteen days for shares.
    Claims: "health coverage", of all rows.
    """
    series, notes = series_grid(daily), notes if notes and len(daily) else BoardNotes()
    settled, (up, down) = is_settled(series.days, daily), restated_days(series, restatements)
    evidence = DayEvidence(settled, up, down, exempt_days(series, notes), accepted_starts(series, notes))
    columns = Scores(series, evidence, Limits(least_change, most_q)).columns()
    codes, since = columns.pop("severity"), columns.pop("since")
    scores = series.rows(**columns)
    scores["is_settled"] = np.tile(settled, len(series.identity))
    scores["severity"] = pd.Categorical.from_codes(codes.ravel().tolist(), pd.Index(SEVERITIES), ordered=True)
    scores["is_flagged"] = codes.ravel() >= SEVERITIES.index("warning")
    scores["since"] = Series(series.days.take(since.ravel()), index=scores.index).where(since.ravel() >= 0)
    scores["open_days"] = (scores["timestamp"] - scores["since"]).dt.days + 1
    scores["note"] = note_texts(series, notes, since)
    return scores.astype({"since": "datetime64[us, UTC]"})


@reads("health.score_days")
def _read_coverage(scores: DataFrame) -> Iterator[Finding]:
    """Say how much is watched."""
    if not len(scores):
        yield Finding(kind="health coverage", case="nothing", unit="series")
        return
    counts = {name: scores[column].nunique() for name, column in (("games", "game_id"), ("days", "timestamp"))}
    series = len(scores[IDENTITY].drop_duplicates())
    numbers = {**counts, "last_day": scores["timestamp"].max()}
    yield Finding(
        kind="health coverage", case="counted", size=float(series), unit="series", judged="counted", numbers=numbers
    )


@requires(scores=_SCORES)
@returns(*BOARD_COLUMNS)
def board(scores: DataFrame, *, days: int = 1) -> DataFrame:
    """Return the last *days* days of every series, worst first, each with a sentence.

        queries = health.board_queries(health.watches(["user_unique", "revenue"]))
        answers = [lens.query(**query.arguments, over="last 28 complete days") for query in queries]
        health.board(health.score_days(health.daily(answers)), days=3)

    The stable ones: game_id, game, metric, dimension, segment, timestamp, value, expected, low, high, change,
    change_low, change_high, z, p, q, severity, since, sentence. Claims: "number", one a row; alarms have a direction.
    """
    bare = _bare(scores)
    last = bare[bare["timestamp"] > bare["timestamp"].max() - days * _DAY] if len(bare) else bare
    return _with_sentences(last)


@reads("health.board", row_by_row=True)
def _read_board(board: DataFrame) -> Iterator[Finding]:
    """Say of each number how far it is from the usual one."""
    yield from map(row_finding, board.to_dict("records"))


@requires(scores=_SCORES)
@returns(
    *BOARD_COLUMNS, Column("is_open", "flag", about="its incident is still open on the last day of *scores*", na=_SHORT)
)
def flagged(scores: DataFrame) -> DataFrame:
    """Return all flagged days, newest first, each with a sentence.

        sessions = lens.query("session_unique", by="game", over="last 28 complete days")
        health.flagged(health.score_days(health.daily([sessions]), most_q=0.2))

    Claims: "incidents", of all rows.
    """
    bare = _bare(scores)
    result = _with_sentences(bare[bare["is_flagged"]])
    result = result.sort_values("timestamp", ascending=False, kind="stable", ignore_index=True)
    newest = result.groupby([*IDENTITY, "since"], observed=True, dropna=False)["timestamp"].transform("max")
    return result.assign(is_open=newest == bare["timestamp"].max())


@reads("health.flagged")
def _read_incidents(flags: DataFrame) -> Iterator[Finding]:
    """Say how many incidents there were, and how many are open."""
    found = flags.drop_duplicates([*IDENTITY, "since"])
    still_open = int(found["is_open"].sum())
    yield Finding(
        kind="incidents",
        case=("some_open" if still_open else "all_over") if len(found) else "nothing",
        size=float(len(found)),
        unit="incidents",
        judged="counted",
        numbers={"still_open": still_open, "newest": found["since"].max() if len(found) else None},
    )


@requires(daily=_SERIES)
@returns(KEYS, named("last_day", about="the last with a value"), Column("silent_days", "count"))
def silent_games(daily: DataFrame) -> DataFrame:
    """Games that sent something before and nothing on the last day, whatever the metric.

    For example:

        purchases = lens.query("revenue", by="game", over="last 14 complete days")
        health.silent_games(health.daily([purchases], health.watches("revenue")))
    """
    whole = daily[daily["dimension"].isna() & (daily["kind"] != "share")]
    active = whole[whole["value"] > 0].groupby(["game_id", "game"], observed=True)["timestamp"].max()
    silent = (daily["timestamp"].max() - active).dt.days.astype("Int64")
    result = DataFrame({"last_day": active, "silent_days": silent}).reset_index()
    return result[result["silent_days"] > 0].reset_index(drop=True)


def _with_sentences(rows: DataFrame) -> DataFrame:
    """Return *rows*, worst first, with their sentence."""
    size = rows["z"].abs().fillna(-1.0)
    order = DataFrame({"severity": rows["severity"].cat.codes, "day": rows["timestamp"], "size": size})
    order = order.sort_values(["severity", "day", "size"], ascending=False, kind="stable")
    result = rows.loc[order.index].reset_index(drop=True)
    result["sentence"] = Series(sentences_of([*_read_board(result)]), dtype="str")
    return result


def _bare(scores: DataFrame) -> DataFrame:
    """Return *scores* without its receipt, which pandas would copy with every column read."""
    bare = scores.copy(deep=False)
    bare.attrs = {}
    return bare
