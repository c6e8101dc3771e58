"""A population of players whose truth is known: it decides what they do, writes the events, and keeps the books.

`scenario` reads what a population is like (`traits` are its tables), `activity` and `players` say who comes back when,
`behaviour` and `monetisation` what they do once they are there, `payload` and `impressions` how that is written,
`traffic` cuts it into request bodies for the collector, `columnar` into days of columns for a lake (`workers` share
the work of either). `ledger` remembers every event sent (`facts` are its columns)
and computes the truth of every metric from them (`question`, `columns`, `truth`).

This room never opens a connection, never asks the sandbox anything and shares no arithmetic with it: two ways to
the same number are the point. Everything comes from numpy and one seed, block of players by block of players, so the
same scenario gives the same bytes on any machine with any number of workers.

Open `traffic` first: `play` is the whole room in one function.
"""

from gamelens.simulator.activity import Activity, fit
from gamelens.simulator.columnar import play_columns
from gamelens.simulator.ledger import Ledger
from gamelens.simulator.scenario import Scenario, load_scenario, scenario_names
from gamelens.simulator.traffic import Batch, Expectation, expect, play

__all__ = [
    "Activity",
    "Batch",
    "Expectation",
    "Ledger",
    "Scenario",
    "expect",
    "fit",
    "load_scenario",
    "play",
    "play_columns",
    "scenario_names",
]
