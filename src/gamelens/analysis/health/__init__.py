"""Health of all games: every game and metric against its own weekdays.

    answers = [lens.query(**query.arguments, over=...) for query in board_queries(watches())]
    scores = score_days(daily(answers), notes=notes)   # every day of every series
    board(scores)                                      # the last day, the worst first

`gamelens.notebook.check_health` does all three. The frame of `board` is what widgets, figures and the command show. Its
stable columns: game_id, game, metric, dimension and segment (both null for the whole game), timestamp, value, expected,
low, high, change, change_low, change_high, z, p, q, severity ("unknown", "ok", "info", "warning", "critical"), since,
open_days, note, sentence. `segments` explains a row. A slow change (a tenth a week) is drift and no incident: `levels`
sets the last week of each number against the one of eight weeks before. Shares are also tested over one to four weeks.

A flagged day opens an incident. Its row stays flagged, against the baseline from before *since*, until the series
returns or `BoardNotes` says that a person accepts the level.

Never asks a service and never draws. Open `board` first; `baseline` is the statistics, `incidents` decides what
stays open.
"""

from typing import TYPE_CHECKING

from gamelens.analysis.health.board import (
    as_json,
    board,
    dimension_words,
    flagged,
    ok_reason,
    silent_games,
    subject,
)
from gamelens.analysis.health.board_headline import data_age, headline
from gamelens.analysis.health.board_notes import Accepted, Annotation, BoardNotes, unmatched_notes
from gamelens.analysis.health.daily_series import IDENTITY, daily, measured
from gamelens.analysis.health.levels import levels
from gamelens.analysis.health.scoring import score_days
from gamelens.analysis.health.segments import segments
from gamelens.analysis.health.severity import SEVERITIES
from gamelens.analysis.health.watched_metrics import (
    WATCHED,
    HealthQuery,
    WatchedMetric,
    board_queries,
    drill_queries,
    watches,
)
from gamelens.errors import no_such_name

__all__ = [
    "Accepted",
    "Annotation",
    "BoardNotes",
    "IDENTITY",
    "SEVERITIES",
    "WATCHED",
    "HealthQuery",
    "WatchedMetric",
    "as_json",
    "board",
    "board_queries",
    "daily",
    "data_age",
    "dimension_words",
    "drill_queries",
    "flagged",
    "headline",
    "levels",
    "measured",
    "ok_reason",
    "score_days",
    "segments",
    "silent_games",
    "subject",
    "unmatched_notes",
    "watches",
]


if not TYPE_CHECKING:  # type checkers should find a name that does not exist
    __getattr__ = no_such_name(__name__, __all__)
