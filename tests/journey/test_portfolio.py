"""Twenty games of four studios: the sandbox gets the games of a scenario, and none has to be written down."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from gamelens.client.connection.control_api import ControlApi
from gamelens.client.sync_client import Client
from gamelens.errors import Refused
from gamelens.local.sandbox_info import SandboxInfo, environment_of
from gamelens.local.sandbox_population import populate, populate_lake
from gamelens.local.sandbox_process import call_console, running_sandbox, running_with
from gamelens.simulator import Ledger, load_scenario
from support.command_process import run

pytestmark = pytest.mark.slow

PORTFOLIO = load_scenario("portfolio", players=240, days=4)
TITLES = [title for _, titles in PORTFOLIO.titles for title in titles]


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("portfolio") / "state"


@pytest.fixture(scope="module")
def before(state: Path) -> Iterator[SandboxInfo]:
    """A sandbox with the usual games, which still runs."""
    with running_sandbox(state) as ready:
        yield ready


@pytest.fixture(scope="module")
def ready(before: SandboxInfo, state: Path) -> Iterator[SandboxInfo]:
    """The sandbox that takes its place."""
    with running_sandbox(state, scenario="portfolio") as ready:
        yield ready


def test_a_scenario_that_needs_more_games_is_refused_with_the_way_out(before: SandboxInfo) -> None:
    with pytest.raises(Refused, match="has 3 games, portfolio needs 20: `gamelens sandbox up --scenario"):
        populate(before, PORTFOLIO)


def test_a_sandbox_with_other_games_makes_room(before: SandboxInfo, ready: SandboxInfo, state: Path) -> None:
    """What asks for a scenario finds its games, whatever was there; keys of before still open."""
    assert ready.organisations[0].titles == PORTFOLIO.titles
    assert ready.pid != before.pid
    assert ready.organisations[0].api_key == before.organisations[0].api_key
    assert ready.organisations[0].games[0].game_key == before.organisations[0].games[0].game_key
    running = running_with(state, "portfolio")
    assert running is not None
    assert running.pid == ready.pid


def test_every_game_is_there_by_its_title(ready: SandboxInfo) -> None:
    ledger = Ledger()
    populate(ready, PORTFOLIO, ledger=ledger)
    call_console(ready, ControlApi.process)
    settings = environment_of(ready)
    with Client(api_key=settings["GAMELENS_API_KEY"], metrics_url=settings["GAMELENS_METRICS_URL"]) as client:
        frame = client.query("event_count", by=["studio", "game"], over="last 4 complete days", every="all")
    assert set(frame["game"]) == set(TITLES)
    assert set(frame["studio"]) == {name for name, _ in PORTFOLIO.titles}
    assert frame["event_count"].sum() == len(ledger)


def test_a_new_lake_gets_the_games_of_what_is_written(tmp_path: Path) -> None:
    """simulate --into."""
    populate_lake(tmp_path, PORTFOLIO)
    with running_sandbox(tmp_path) as ready:
        assert ready.organisations[0].titles == PORTFOLIO.titles


def test_the_command_starts_one_with_the_games_of_a_scenario(tmp_path: Path) -> None:
    up = ("sandbox", "up", "--state", tmp_path / "state", "--scenario", "portfolio")
    done = run(*up, "--config", tmp_path / "sandbox.toml")
    assert (done.returncode, "either --config or --scenario" in done.stderr) == (2, True)
    done = run("sandbox", "up", "--state", tmp_path / "state", "--scenario", "portfolioo")
    assert (done.returncode, "portfolio" in done.stderr) == (1, True)
