"""Health of all games: every game and metric against its own weekdays.

    answers = [lens.query(**query.arguments, over=...) for query in board_queries(watches())]
    scores = score_days(daily(answers))                # every day of every series
    board(scores)                                      # the last day, the worst first

`gamelens.notebook.check_health` does all three. The frame of `board` is what widgets, figures and the command show. Its
stable columns: game_id, game, metric, dimension and segment (both null for the whole game), timestamp, value, expected,
low, high, change, z, p, q, severity ("unknown", "ok", "info", "warning", "critical"), since, sentence. `segments`
explains a row. A slow change of a count (a tenth a week) is drift and no incident; shares are also tested over seven
and fourteen days.

Never asks a service and never draws. Open `board` first; `baseline` is the statistics.
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
    board_queries,
    drill_queries,
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
    "board_queries",
    "daily",
    "dimension_words",
    "drill_queries",
    "flagged",
    "measured",
    "moved_sentence",
    "row_sentence",
    "score_days",
    "segments",
    "silent_games",
    "subject",
    "verdict",
    "watches",
]
