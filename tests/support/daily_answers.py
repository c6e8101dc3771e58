"""Daily answers about a simulated organisation, by SQL on the arrays of the simulation.

No event becomes a row of a file or of a ledger, so the answers to a board take a fraction of the time that
`simulated_organisation` needs. A test holds both to the same numbers.
"""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from typing import Final

import duckdb
import numpy as np
import pyarrow as pa
from pandas import DataFrame

from gamelens.analysis.health import HealthQuery, board_queries, watches
from gamelens.simulator import Scenario, load_scenario
from gamelens.simulator.events.event_columns import ledger_rows_of
from gamelens.simulator.output.play import block_tasks, play_task
from gamelens.simulator.population.behaviour import PlayedBlock
from gamelens.wire.currencies import RATE_SCALE, SCALED_RATES
from support.simulated_organisation import ENDS_ON, merged_answer

_NAMES: Final = (
    "game_id",
    "category",
    "country_code",
    "platform",
    "build",
    "ad_action",
    "ilrd_network_name",
    "ilrd_currency",
    "severity",
    "currency",
)
_NUMBERS: Final = ("ilrd_nano", "amount", "length")
_LENGTHS: Final = (
    "sum(length) / count(*) AS session_length, count(DISTINCT session) AS session_length_count, "
    "sum(length)::BIGINT AS session_length_sum"
)
_METRICS: Final = {
    "user_unique": ("count(DISTINCT player) AS user_unique", "true"),
    "session_unique": ("count(DISTINCT session) AS session_unique", "true"),
    "event_count": ("count(*) AS event_count", "true"),
    "ad_impressions_count": ("count(*) AS ad_impressions_count", "category = 'ads' AND ad_action = 'show'"),
    "revenue": ("sum(usd) AS revenue, count(*) AS revenue_event_count", "category = 'business'"),
    "ilrd_revenue": ("sum(usd) AS ilrd_revenue, count(*) AS ilrd_revenue_event_count", "category = 'impression'"),
    "session_length": (_LENGTHS, "category = 'session_end'"),
    "new_users": ("count(*) AS new_users", "installed"),
}


class ArrayAnswers:
    """The events of a scenario as arrays, and the answers to queries about them."""

    def __init__(self, scenario: Scenario) -> None:
        self._scenario = scenario
        self._connection = duckdb.connect()
        rates = ", ".join(f"('{code}', {rate})" for code, rate in SCALED_RATES.items())
        self._connection.register("arrays", _events(scenario))
        self._connection.execute(f"""
            CREATE TABLE events AS SELECT arrays.*,
              coalesce(amount / 1e2, ilrd_nano / 1e9) * rate / {RATE_SCALE} AS usd,
              row_number() OVER (PARTITION BY player ORDER BY ts) = 1 AS installed
            FROM arrays LEFT JOIN (VALUES {rates}) r(code, rate) ON code = coalesce(currency, ilrd_currency)
        """)
        self._connection.execute("CREATE TABLE installs AS SELECT * FROM events WHERE installed")

    def answer(self, query: HealthQuery) -> DataFrame:
        """Return the frame that answers *query* over all days."""
        return merged_answer(self._scenario, query, partial(self._rows, query))

    def _rows(self, query: HealthQuery, metric: str) -> DataFrame:
        """Return the rows of one metric by day: timestamp, dimensions and fields."""
        by = ["game_id" if name == "game" else name for name in query.by]
        conditions = [f"i.{name} = '{value}'" for name, value in (query.where or {}).items()]
        conditions += [f"i.game_id IN ({', '.join(map(repr, query.games))})"] if query.games else []
        if metric == "retention_retro":
            age, where = query.since_days_ago, " AND ".join(conditions or ["true"])
            names = ", ".join(f"i.{name}" for name in by)
            return self._connection.execute(f"""
                WITH cohort AS (SELECT {names}, day, count(*) AS size FROM installs i WHERE {where} GROUP BY ALL),
                     returned AS (SELECT {names}, i.day, count(DISTINCT player) AS players
                                  FROM installs i JOIN events e USING (player)
                                  WHERE e.day = i.day + {age} AND {where} GROUP BY ALL)
                SELECT make_timestamp((day + {age}) * 86400000000) AS timestamp, {", ".join(by)},
                       players / size AS retention_retro
                FROM returned JOIN cohort USING (day, {", ".join(by)})
            """).df()
        fields, is_counted = _METRICS[metric]
        return self._connection.execute(f"""
            SELECT make_timestamp(day * 86400000000) AS timestamp, {", ".join(by)}, {fields}
            FROM events i WHERE {" AND ".join([is_counted, *conditions])} GROUP BY ALL
        """).df()


def daily_answers(name: str, *, seed: int, players: int | None = None) -> tuple[Scenario, list[DataFrame]]:
    """Return the scenario *name* and the answers to all queries of a board about it."""
    scenario = load_scenario(name, seed=seed, players=players)
    arrays = ArrayAnswers(scenario)
    return scenario, [arrays.answer(query) for query in board_queries(watches())]


def _events(scenario: Scenario) -> pa.Table:
    """Return the events of *scenario* as columns, with numbers instead of ids."""
    begins = ENDS_ON - timedelta(days=scenario.days)
    tables, players, sessions = [], 0, 0
    for task in block_tasks(scenario):
        block, ids = play_task(scenario, begins, task)
        game = scenario.games[task.game]
        rows = ledger_rows_of(block, ids, game=game, game_id=game.title, scenario=scenario)
        tables.append(_table(block, rows, first_player=players, first_session=sessions))
        players, sessions = players + len(block.players), sessions + len(block.sessions.player)
    return pa.concat_tables(tables)


def _table(block: PlayedBlock, rows: pa.Table, *, first_player: int, first_session: int) -> pa.Table:
    numbers = {
        "player": block.sessions.player[block.events.session] + first_player,
        "session": block.events.session + first_session,
        "ts": block.events.ts_s,
        "day": block.events.ts_s // 86400,
    }
    return pa.table(
        {name: pa.array(np.asarray(values, dtype=np.int64)) for name, values in numbers.items()}
        | {name: rows[name] for name in (*_NAMES, *_NUMBERS)}
    )
