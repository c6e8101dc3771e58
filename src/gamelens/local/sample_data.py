"""Files from outside to try things with: ad spend, holidays, store ranks and exchange rates of made-up players.

They belong to the data that `connect` asks, as `gamelens.simulator.output.external_files` makes them: to the scenario that was played
into the sandbox on this machine, with its days, or, where recorded answers are asked, to those answers. Nobody else's
data gets any: for the real service the files hold headers and nothing below them, because made-up costs must not stand
beside real players.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from gamelens._files import replace_file
from gamelens.errors import BadQuery, Refused
from gamelens.local.connect import demo_state
from gamelens.local.population_record import PopulationRecord
from gamelens.local.sandbox_info import read_sandbox_info
from gamelens.local.sandbox_population import read_population_record


def sample_files() -> Path:
    """A folder with `ad_spend.csv`, `holidays.csv`, `store_rank.csv` and `exchange_rates.csv` for what `connect` asks.

    The files are written when this is called, into the state directory of the sandbox; those of recorded answers
    (GAMELENS_REPLAY) lie in a folder `sample_files` next to them. Where there are none, they hold headers and nothing else.
    """
    if replay := os.environ.get("GAMELENS_REPLAY"):
        beside = Path(replay).resolve().parent / "outside"
        return beside if beside.is_dir() else _empty()
    played = _played_behind_connect()
    return _empty() if played is None else _of(played, demo_state() / "outside")


def write(files: Mapping[str, str], folder: Path) -> Path:
    """Write *files*, text by name, into *folder*, and answer it."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        with replace_file(folder / name) as draft:
            draft.write_text(text, encoding="utf-8")
    return folder


def _of(played: PopulationRecord, folder: Path) -> Path:
    from gamelens.simulator import load_scenario
    from gamelens.simulator.output.external_files import outside_files

    try:
        scenario = load_scenario(played.scenario, players=played.players, days=played.days, seed=played.seed)
    except BadQuery:  # played from a file of the user's, which may be anywhere or gone
        return _empty()
    return write(outside_files(scenario, ends_on=played.ends_on), folder)


def _empty() -> Path:
    from gamelens.simulator.output.external_files import empty_files

    return write(empty_files(), demo_state() / "outside" / "none")


def _played_behind_connect() -> PopulationRecord | None:
    """What was played into the sandbox on this machine; None where `connect` asks somebody else."""
    from gamelens.client.connection.settings import Settings

    settings, state = Settings.from_environment(), demo_state()
    if settings.find("api_key"):
        try:
            ready = read_sandbox_info(state / "ready.json")
        except Refused:
            return None
        if (settings.find("metrics_url") or "").rstrip("/") != ready.metrics_url.rstrip("/"):
            return None
    return read_population_record(state)
