"""The reference for scenario authors in the room's README against the tables that are decoded."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import resources
from pathlib import Path

import pytest
from msgspec import inspect

from gamelens.simulator import load_scenario, scenario_names
from gamelens.simulator.scenarios.validation import ScenarioTable

README = (resources.files("gamelens.simulator") / "README.md").read_text(encoding="utf-8")


def section(title: str) -> str:
    """Return the text of a section of the README."""
    return README.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def code(language: str, title: str) -> str:
    """Return the first block of code of a section."""
    return section(title).partition(f"```{language}\n")[2].partition("```")[0]


def tables(kind: type[ScenarioTable] = ScenarioTable) -> Iterator[type[ScenarioTable]]:
    """Yield every table of a scenario file."""
    for table in kind.__subclasses__():
        yield table
        yield from tables(table)


@pytest.mark.parametrize("table", [*tables()], ids=lambda table: table.__name__)
def test_the_readme_has_every_key(table: type[ScenarioTable]) -> None:
    """Authors know only the keys that the reference lists."""
    struct = inspect.type_info(table)
    assert isinstance(struct, inspect.StructType)
    keys = {field.encode_name for field in struct.fields} | ({str(struct.tag)} if struct.tag else set())
    assert keys <= set(re.findall(r"`(\w+)`", section("Writing a scenario")))


def test_the_readme_has_every_shipped_scenario() -> None:
    """Authors begin with one of them."""
    assert set(scenario_names()) <= set(re.findall(r"`([\w-]+)`", section("Shipped scenarios")))


def test_the_example_of_a_scenario_can_be_played(tmp_path: Path) -> None:
    """It takes from the demo what it does not give, and merges the game that is like another."""
    (tmp_path / "mine.toml").write_text(code("toml", "Writing a scenario"))
    scenario = load_scenario(tmp_path / "mine.toml")
    assert (scenario.name, scenario.players, scenario.days) == ("mine", 5000, load_scenario("calm").days)
    (game,) = scenario.games
    assert (game.retention.d1, game.retention.d1_and_d7) == (0.37, None)
    assert game.ads == load_scenario("calm").games[0].ads


def test_the_example_of_retention_runs() -> None:
    """Both names are public, and the arm returns 5 % more players on any day."""
    names: dict[str, object] = {}
    exec(code("python", "The truth"), names)
    players, better = names["players"], names["better"]
    assert better.retention(14) == pytest.approx(1.05 * players.retention(14))  # type: ignore[attr-defined]
