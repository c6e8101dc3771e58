"""Simulated players whose behaviour, events and metrics are known exactly.

The room never opens a connection, never asks the sandbox and shares no arithmetic with it. Open `output/play` first.
"""

from typing import TYPE_CHECKING

from gamelens.errors import no_such_name
from gamelens.simulator.events.request_batches import RequestBatch, batches_of
from gamelens.simulator.ledger.ledger import Ledger
from gamelens.simulator.output.parquet_days import play_columns
from gamelens.simulator.output.play import VERSION, play
from gamelens.simulator.output.raw_export import ExportFormat, export_raw
from gamelens.simulator.output.session_playback import LiveEvent, PlayedSession, live_start, play_day, play_sessions
from gamelens.simulator.retention_model.bgbb import BgbbMixture, BgbbModel, logit_step_for_lift
from gamelens.simulator.retention_model.bgbb_fit import fit_retention, nearest_feasible
from gamelens.simulator.scenarios.scenario import Scenario, load_scenario
from gamelens.simulator.scenarios.toml_tables import scenario_names

__all__ = [
    "VERSION",
    "BgbbModel",
    "RequestBatch",
    "ExportFormat",
    "Ledger",
    "LiveEvent",
    "BgbbMixture",
    "PlayedSession",
    "Scenario",
    "batches_of",
    "export_raw",
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


if not TYPE_CHECKING:  # type checkers should find a name that does not exist
    __getattr__ = no_such_name(__name__, __all__)
