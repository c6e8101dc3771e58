"""Sample files from outside: ad spend, holidays, store ranks and exchange rates.

They fit the players of the data that `connect` queries: the scenario that was played into the sandbox of this
machine, or the recorded answers. For the real service the files have headers and no rows, because invented
costs must not stand beside real players.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from gamelens._files import replace_file
from gamelens.client.connection.settings import writable_folder
from gamelens.errors import BadQuery, Refused
from gamelens.local.connect import STATE_DIR, demo_state, demo_states
from gamelens.local.sandbox_info import read_sandbox_info
from gamelens.local.sandbox_population import read_population_record


def sample_files(scenario: str | None = None) -> Path:
    """Return a folder with sample files for the data that `connect` queries.

    They are `ad_spend.csv`, `holidays.csv`, `store_rank.csv` and `exchange_rates.csv`, and `google_ads.csv` and
    `meta_ads.csv` as these networks export them, written into the state directory of the sandbox by this call. With
    *scenario* they are for the data of `demo(scenario)`. With GAMELENS_REPLAY they are in the folder `outside` beside
    the recorded answers. If there are none for these data, they have headers and no rows.
    """
    if scenario is not None:
        return _files_beside(demo_state(scenario))
    if replay := os.environ.get("GAMELENS_REPLAY"):
        recorded = Path(replay).resolve().parent / "outside"
        return recorded if recorded.is_dir() else _files_without_rows()
    from gamelens.client.connection.settings import Settings

    settings = Settings.from_environment()
    if not settings.find("api_key"):
        return _files_beside(demo_state())
    address = (settings.find("metrics_url") or "").rstrip("/")
    for state in demo_states():
        try:
            running = read_sandbox_info(state / "ready.json")
        except Refused:  # none runs over it
            continue
        if running.metrics_url.rstrip("/") == address:
            return _files_beside(state)
    return _files_without_rows()


def write_files(files: Mapping[str, str], folder: Path) -> Path:
    """Write *files*, a text for each name, into *folder* and return it."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        with replace_file(folder / name) as draft:
            draft.write_text(text, encoding="utf-8")
    return folder


def _files_beside(state: Path) -> Path:
    """Write the files that fit the players of the sandbox over *state*."""
    from gamelens.simulator import load_scenario
    from gamelens.simulator.output.external_files import outside_files

    population = read_population_record(state)
    if population is None:
        return _files_without_rows()
    try:
        scenario = load_scenario(
            population.scenario, players=population.players, days=population.days, seed=population.seed
        )
    except BadQuery:  # played from a scenario file, which may be anywhere or gone
        return _files_without_rows()
    return write_files(
        outside_files(scenario, ends_on=population.ends_on), writable_folder(state / "outside", STATE_DIR)
    )


def _files_without_rows() -> Path:
    from gamelens.simulator.output.external_files import empty_files

    return write_files(empty_files(), writable_folder(demo_state() / "outside" / "none", STATE_DIR))
