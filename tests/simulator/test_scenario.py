"""Scenario files: what ships can be played, what cannot be played is refused with its key, value and rule."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

import msgspec
import pytest

from gamelens.errors import BadQuery
from gamelens.simulator import load_scenario


def changed(tmp_path: Path, lines: str) -> Path:
    """A file that extends the demo with *lines*."""
    path = tmp_path / "mine.toml"
    path.write_text(f'extends = "demo"\n{lines}\n')
    return path


def demo_with(tmp_path: Path, old: str, new: str) -> Path:
    """The demo's file with *old* replaced."""
    text = (resources.files("gamelens.simulator") / "scenarios" / "demo.toml").read_text()
    assert old in text
    path = tmp_path / "mine.toml"
    path.write_text(text.replace(old, new, 1))
    return path


@pytest.mark.parametrize("name", ["demo", "small", "incident"])
def test_the_demo_and_what_builds_on_it_has_two_studios_and_three_games(name):
    """The games a sandbox makes when nobody says which."""
    assert [len(studio.games) for studio in load_scenario(name).studios] == [2, 1]


def test_demo_is_sixty_days_of_twenty_thousand_players():
    demo = load_scenario("demo")
    assert (demo.days, demo.players) == (60, 20_000)


def test_small_differs_from_demo_in_size_only():
    small, demo = load_scenario("small"), load_scenario("demo")
    same = {name: getattr(demo, name) for name in ("name", "about", "seed", "days", "players")}
    assert msgspec.structs.replace(small, **same) == demo


def test_players_days_and_seed_can_be_given_in_place_of_the_files():
    mine = load_scenario("demo", players=10, days=3, seed=1)
    assert (mine.players, mine.days, mine.seed) == (10, 3, 1)


@pytest.mark.parametrize("players", [1, 2, 7, 1000, 20_000])
def test_players_of_the_games_add_up(players):
    assert sum(load_scenario("demo", players=players).players_by_game()) == players


def test_a_file_may_extend_a_shipped_scenario(tmp_path):
    assert load_scenario(changed(tmp_path, "players = 5")).players == 5


def test_an_unknown_name_is_refused_with_the_nearest():
    with pytest.raises(BadQuery, match="Did you mean `demo`"):
        load_scenario("demos")


def test_an_unknown_key_is_refused_with_the_nearest(tmp_path):
    with pytest.raises(BadQuery, match=r"playrs.*Did you mean `players`"):
        load_scenario(changed(tmp_path, "playrs = 5"))


def test_an_unknown_key_deep_down_names_its_table_and_the_nearest(tmp_path):
    with pytest.raises(BadQuery, match=r"retention.*Did you mean `d28`"):
        load_scenario(demo_with(tmp_path, "d28 = 0.040", "d28 = 0.040, d2 = 0.5"))


@pytest.mark.parametrize(
    ("lines", "key"),
    [
        ("players = 0", "players = 0 must be 1"),
        ("days = 0", "days = 0 must be 1"),
        ("seed = -1", "seed = -1 must be 0"),
        ('players = "many"', "players = 'many' is refused: expected `int`"),
        ("weekdays = [1, 1, 1]", r"weekdays = \[1, 1, 1\] is refused"),
        ("studio = []", "studio = .* at least one game"),
        ('extends = "demo"', "cannot be read"),
    ],
)
def test_a_top_level_value_that_is_not_allowed_is_named(tmp_path, lines, key):
    with pytest.raises(BadQuery, match=key):
        load_scenario(changed(tmp_path, lines))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('currency = "JPY"', 'currency = "JPX"', r"country\[2\].currency = 'JPX'"),
        ("tier = 1", "tier = 4", r"country\[0\].tier = 4 must be 1 to 3"),
        ("d7 = 0.125", "d7 = 0.5", "retention .* must fall"),
        ("d7 = 0.125", "d7 = 0.36999", "retention .* has no BG/BB population"),
        ("per_round = 0.42", "per_round = 1.42", "ads.per_round = 1.42 must be 0 to 1"),
        ('vendor = "max"', 'vendor = "maxx"', "vendor = 'maxx' is refused"),
        ('vendor_version = "12.6.1"', 'vendor_version = "12.x"', "ads.vendor_version"),
        ('currency = "EUR"      #', 'currency = "EURO"      #', "ads.currency = 'EURO'"),
        ("interstitial = [8.4, 3.6, 0.9]", "banner = [8.4, 3.6, 0.9]", "AppLovin.*lacks"),
        ("US = 0.27, GB", "XX = 0.27, GB", r"game\[0\].countries.XX = 'XX'"),
        ("INR = 17900 }", "CAD = 17900 }", r"item\[0\].price .* lacks INR"),
        ("build = [{ day = 0", "build = [{ day = 1", "must start at 0"),
        ('id = "coins:small"', 'id = "coins"', r"purchases.item\[0\].id = 'coins' must be type:id"),
    ],
)
def test_a_value_deep_down_that_is_not_allowed_is_named(tmp_path, old, new, message):
    with pytest.raises(BadQuery, match=message):
        load_scenario(demo_with(tmp_path, old, new))


def test_a_missing_file_is_refused_by_name(tmp_path):
    with pytest.raises(BadQuery, match=r"nowhere\.toml"):
        load_scenario(tmp_path / "nowhere.toml")


def test_a_scenario_cannot_extend_itself(tmp_path):
    path = tmp_path / "loop.toml"
    path.write_text(f'extends = "{path}"\n')
    with pytest.raises(BadQuery, match="extends"):
        load_scenario(path)
