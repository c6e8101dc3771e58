"""A population of players whose truth is known: it decides what they do, writes the events, and keeps the books.

`scenario` reads what a population is like: `traits`, `shop` and `timeline` are its tables, `tables`, `places` and
`refusal` the file and what is wrong with it. `installs` and `arms` say who comes from where, and into which experiment;
`activity`, `fitting` and `players` who comes back when; `behaviour` and `monetisation` what they do once they are
there, and `waterfall` who shows them ads; `payload` and `impressions` how that is written; `traffic` cuts it into
request bodies for the collector, `columnar` into days of columns for a lake (`workers` share the work of either),
`sessions` into what a client records.
`conditions` say what becomes of events on the way: `delivery` when they are sent, `dirt` what is wrong with some,
`sending` in which order. `ledger` remembers every event sent
(`facts` are its columns) and computes the truth of every metric from them (`question`, `columns`, `truth`); `outlook`
knows on average what will have happened. `outside` is what others have in their books: ad spend, `holidays`, store
ranks, exchange rates.

This room never opens a connection, never asks the sandbox anything and shares no arithmetic with it: two ways to
the same number are the point. Everything comes from numpy and one seed, block of players by block of players, so the
same scenario gives the same bytes on any machine with any number of workers.

Open `traffic` first: `play` is the whole room in one function.
"""

from gamelens.simulator.events.request_batches import RequestBatch, batches_of
from gamelens.simulator.ledger.ledger import Ledger
from gamelens.simulator.output.parquet_days import play_columns
from gamelens.simulator.output.play import VERSION, Expectation, expect, play
from gamelens.simulator.output.session_playback import LiveEvent, PlayedSession, live_start, play_day, play_sessions
from gamelens.simulator.retention_model.bgbb import BgbbMixture, BgbbModel, logit_step_for_lift
from gamelens.simulator.retention_model.bgbb_fit import fit_retention, nearest_feasible
from gamelens.simulator.scenarios.scenario import Scenario, load_scenario
from gamelens.simulator.scenarios.toml_tables import scenario_names

__all__ = [
    "VERSION",
    "BgbbModel",
    "RequestBatch",
    "Expectation",
    "Ledger",
    "LiveEvent",
    "BgbbMixture",
    "PlayedSession",
    "Scenario",
    "batches_of",
    "expect",
    "fit_retention",
    "live_start",
    "load_scenario",
    "nearest_feasible",
    "play",
    "play_columns",
    "play_day",
    "play_sessions",
    "logit_step_for_lift",
    "scenario_names",
]
