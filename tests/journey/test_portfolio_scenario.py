"""The scenario "portfolio": a sandbox gets its twenty games of four studios by itself."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from gamelens.client.connection.control_api import ControlApi
from gamelens.client.sync_client import Client
from gamelens.errors import Refused
from gamelens.local.sandbox_info import SandboxInfo, environment_of
from gamelens.local.sandbox_population import populate, populate_lake
from gamelens.local.sandbox_process import call_control_api, find_or_stop_sandbox, running_sandbox
from gamelens.simulator import Ledger, load_scenario
from support.command_process import run_here

pytestmark = pytest.mark.slow

PORTFOLIO = load_scenario("portfolio", players=240, days=4)
TITLES = [title for _, titles in PORTFOLIO.titles for title in titles]


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a state directory for both sandboxes."""
    return tmp_path_factory.mktemp("portfolio") / "state"


@pytest.fixture(scope="module")
def previous(state: Path) -> Iterator[SandboxInfo]:
    """Run a sandbox with the default games."""
    with running_sandbox(state) as ready:
        yield ready


@pytest.fixture(scope="module")
def ready(previous: SandboxInfo, state: Path) -> Iterator[SandboxInfo]:
    """Run a sandbox with the scenario's games, in place of the previous one."""
    with running_sandbox(state, scenario="portfolio") as ready:
        yield ready


def test_a_scenario_with_more_games_is_refused_with_a_command(previous: SandboxInfo) -> None:
    """A scenario with more games than the sandbox is refused, with the command to use."""
    with pytest.raises(Refused, match="has 3 games, portfolio needs 20: `gamelens sandbox up --scenario"):
        populate(previous, PORTFOLIO)


def test_a_sandbox_is_replaced_for_a_scenario(previous: SandboxInfo, ready: SandboxInfo, state: Path) -> None:
    """A sandbox for a scenario replaces the running one and keeps the keys."""
    assert ready.organisations[0].titles == PORTFOLIO.titles
    assert ready.pid != previous.pid
    assert ready.organisations[0].api_key == previous.organisations[0].api_key
    assert ready.organisations[0].games[0].game_key == previous.organisations[0].games[0].game_key
    running = find_or_stop_sandbox(state, "portfolio")
    assert running is not None
    assert running.pid == ready.pid


def test_every_game_of_the_scenario_has_events(ready: SandboxInfo) -> None:
    """Every game and studio of the scenario has events under its title."""
    ledger = Ledger()
    populate(ready, PORTFOLIO, ledger=ledger)
    call_control_api(ready, ControlApi.process)
    settings = environment_of(ready)
    with Client(api_key=settings["GAMELENS_API_KEY"], metrics_url=settings["GAMELENS_METRICS_URL"]) as client:
        frame = client.query("event_count", by=["studio", "game"], over="last 4 complete days", every="all")
    assert set(frame["game"]) == set(TITLES)
    assert set(frame["studio"]) == {name for name, _ in PORTFOLIO.titles}
    assert frame["event_count"].sum() == len(ledger)


@pytest.mark.wide
def test_populating_an_empty_state_creates_the_games(tmp_path: Path) -> None:
    """A scenario written into an empty state directory creates its games there."""
    populate_lake(tmp_path, PORTFOLIO)
    with running_sandbox(tmp_path) as ready:
        assert ready.organisations[0].titles == PORTFOLIO.titles


def test_sandbox_up_checks_the_scenario_option(tmp_path: Path) -> None:
    """`--scenario` beside `--config` is wrong usage, and an unknown one names the nearest."""
    up = ("sandbox", "up", "--state", tmp_path / "state", "--scenario", "portfolio")
    result = run_here(*up, "--config", tmp_path / "sandbox.toml")
    assert (result.returncode, "--config and --scenario" in result.stderr) == (2, True)
    result = run_here("sandbox", "up", "--state", tmp_path / "state", "--scenario", "portfolioo")
    assert (result.returncode, "portfolio" in result.stderr) == (1, True)
