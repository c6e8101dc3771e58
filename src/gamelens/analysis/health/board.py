"""Board of all series: each day against its baseline, and the days that need attention.

A day is judged by the days before it alone, so a board stays the same until the service restates a day or a person
accepts a level. A day stands out if it differs beyond chance on the whole board (false discoveries, q) and by a tenth
or more, and it opens an incident: the series stays flagged, against the baseline from before, until it returns. A game
that sends nothing is one finding, not one for each of its metrics. Restated days raise no alarm, and days that are not
settled need a larger change.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import pandas as pd
from pandas import DataFrame, Series

from gamelens.analysis.claims.findings import Finding, reads
from gamelens.analysis.claims.templates import sentences_of
from gamelens.analysis.health.board_notes import BoardNotes, accepted_starts, exempt_days, note_texts
from gamelens.analysis.health.daily_series import IDENTITY, series_grid
from gamelens.analysis.health.health_text import row_finding
from gamelens.analysis.health.scoring import DayEvidence, Scores
from gamelens.analysis.health.severity import LEAST_CHANGE, MOST_Q, SEVERITIES, Limits, is_settled, restated_days
from gamelens.analysis.tidy_frames import with_receipts_of
from gamelens.analysis.tidy_frames.frame_requirements import requires, result_of

_DAY: Final = pd.Timedelta(days=1)
_NUMBERS: Final = ("expected", "low", "high", "change", "change_low", "change_high", "z", "p", "q")
_INCIDENT: Final = ("since", "open_days", "note")
_SERIES: Final = result_of("health.daily(answers)", "timestamp", *IDENTITY, "value", "part", "whole")
_SCORES: Final = result_of("health.score_days(daily)", "timestamp", *IDENTITY, *_NUMBERS, "severity")
_FLAGS: Final = ("is_settled", "is_restated", "is_silent", "is_flagged")


@requires(daily=_SERIES)
def score_days(
    daily: DataFrame,
    *,
    least_change: float = LEAST_CHANGE,
    most_q: float = MOST_Q,
    restatements: DataFrame | None = None,
    notes: BoardNotes | None = None,
) -> DataFrame:
    """Return every day of every series of `daily` with its baseline and severity.

    A share is judged by its day, or by the one to four weeks up to it if they show more; *value*, *expected* and
    the rest are then those of that window. *restatements* is the frame of `Client.restatements`, *notes* are accepted
    levels and annotations.

    Columns: those of `daily`, and expected, low, high (float64, the band of usual days), change (float64, -0.2 is
    20% below; NA if fewer than ten events were expected, of which there is no percentage), change_low, change_high
    (float64, its 95% interval by the noise of the day and of what was expected, never below -1), z (float64, the
    deviation in units of noise), p, q (float64, the probability of such a deviation, and the share of false
    discoveries on the day's board up to it), window_days (Int64, 1, 7, 14, 21 or 28), is_settled, is_restated,
    is_silent (boolean; the last: the whole game sent nothing), severity (ordered category of `SEVERITIES`; while an
    incident is open, the worst that it had), is_flagged (boolean, warning or worse), since (datetime64[us, UTC],
    the first day of the open incident, else NA), open_days (Int64, days since then, both counted) and note (str,
    what an annotation or a person says of the day; empty without one). NA while the history is short: two same
    weekdays and seven days to compare are needed, fourteen days for shares. Claims: "health coverage", of all rows.
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
    kinds: dict[str, Any] = {**dict.fromkeys(_FLAGS, "boolean"), "window_days": "Int64", "open_days": "Int64"}
    kinds |= {"since": "datetime64[us, UTC]", "note": "str"}
    names = [*daily.columns, *_NUMBERS, "window_days", *_FLAGS[:3], "severity", "is_flagged", *_INCIDENT]
    return with_receipts_of(scores[names].astype(kinds), daily)


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
def board(scores: DataFrame, *, days: int = 1) -> DataFrame:
    """Return the last *days* days of every series, worst first, each with a sentence.

    Columns: those of `score_days`, and sentence (str, the text of its claim: escape it before it becomes HTML or
    Markdown). The stable ones: game_id, game, metric, dimension, segment, timestamp, value, expected, low, high,
    change, change_low, change_high, z, p, q, severity, since, sentence. Claims: "number", one a row; alarms have a
    direction.
    """
    bare = _bare(scores)
    last = bare[bare["timestamp"] > bare["timestamp"].max() - days * _DAY] if len(bare) else bare
    return with_receipts_of(_with_sentences(last), scores)


@reads("health.board", row_by_row=True)
def _read_board(board: DataFrame) -> Iterator[Finding]:
    """Say of each number how far it is from the usual one."""
    yield from map(row_finding, board.to_dict("records"))


@requires(scores=_SCORES)
def flagged(scores: DataFrame) -> DataFrame:
    """Return all flagged days, newest first, each with a sentence.

    Columns: those of `board`, and is_open (boolean, whether its incident is still open on the last day of *scores*).
    Claims: "incidents", of all rows.
    """
    bare = _bare(scores)
    result = _with_sentences(bare[bare["is_flagged"]])
    result = result.sort_values("timestamp", ascending=False, kind="stable", ignore_index=True)
    newest = result.groupby([*IDENTITY, "since"], observed=True, dropna=False)["timestamp"].transform("max")
    return with_receipts_of(result.assign(is_open=(newest == bare["timestamp"].max()).astype("boolean")), scores)


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
def silent_games(daily: DataFrame) -> DataFrame:
    """Games that sent something before and nothing on the last day, whatever the metric.

    Columns: game_id, game (category), last_day (datetime64[us, UTC], the last with a value), silent_days (Int64).
    """
    whole = daily[daily["dimension"].isna() & (daily["kind"] != "share")]
    active = whole[whole["value"] > 0].groupby(["game_id", "game"], observed=True)["timestamp"].max()
    silent = (daily["timestamp"].max() - active).dt.days.astype("Int64")
    result = DataFrame({"last_day": active, "silent_days": silent}).reset_index()
    return with_receipts_of(result[result["silent_days"] > 0].reset_index(drop=True), daily)


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
