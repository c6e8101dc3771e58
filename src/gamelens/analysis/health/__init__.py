"""Is everything as it usually is? Every game and metric against its own weekday, and what stands out.

    answers = [lens.query(**...) for each of questions(watches())]     # or notebook.health_board.watch, which asks
    scores = judged(daily(answers))                                    # every day of every series
    board(scores)                                                      # the last day, the worst first

The frame of `board` is what widgets, figures and the command show. Columns to count on: game_id, game, metric,
dimension and segment (none is the whole game), timestamp, value, expected, low, high, change, z, p, q, severity
("unknown", "ok", "info", "warning", "critical"), since, sentence. `segments` says what is behind a row.

Slow changes of a count (a tenth a week) are drift here and not an incident; shares have a second look over seven days.
Open `board` first; `baseline` is the statistics.
"""

from gamelens.analysis.health.baseline import BAND_Z
from gamelens.analysis.health.board import board, flagged, score_days, silent_games
from gamelens.analysis.health.daily_series import IDENTITY, daily, measured
from gamelens.analysis.health.health_text import as_json, dimension_words, moved_sentence, row_sentence, subject
from gamelens.analysis.health.segments import segments, verdict
from gamelens.analysis.health.severity import SEVERITIES
from gamelens.analysis.health.watched_metrics import (
    WATCHED,
    HealthQuery,
    WatchedMetric,
    drill_questions,
    questions,
    watches,
)

__all__ = [
    "BAND_Z",
    "IDENTITY",
    "SEVERITIES",
    "WATCHED",
    "HealthQuery",
    "WatchedMetric",
    "as_json",
    "board",
    "daily",
    "dimension_words",
    "drill_questions",
    "flagged",
    "score_days",
    "measured",
    "moved_sentence",
    "questions",
    "segments",
    "row_sentence",
    "silent_games",
    "subject",
    "verdict",
    "watches",
]
