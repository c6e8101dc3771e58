"""Scenario files: shipped ones load, bad ones are refused by file, key and rule."""

from __future__ import annotations

import re
from importlib import resources
from pathlib import Path

import msgspec
import pytest

from gamelens.errors import BadQuery
from gamelens.simulator import load_scenario
from support.fresh_python import run_python

SCENARIOS = resources.files("gamelens.simulator.scenarios") / "shipped"


LEVEL = 'kind = "hard_level", game = "Tile Harbor", day = 3'
SESSIONS = 'kind = "lost_sessions", game = "Tile Harbor", day = 3'


def extended_calm(tmp_path: Path, lines: str) -> Path:
    """Write a file that extends `calm` with *lines*."""
    path = tmp_path / "mine.toml"
    path.write_text(f'extends = "calm"\n{lines}\n')
    return path


def calm_text() -> str:
    return (SCENARIOS / "calm.toml").read_text()


def calm_with(tmp_path: Path, old: str, new: str) -> Path:
    """Write the file of `calm` with *old* replaced by *new*."""
    text = calm_text()
    assert old in text
    path = tmp_path / "mine.toml"
    path.write_text(text.replace(old, new, 1))
    return path


@pytest.mark.parametrize("name", ["calm", "demo", "small", "incident"])
def test_calm_and_its_extensions_have_two_studios_and_three_games(name: str) -> None:
    """They fit the studios and games of a sandbox without a configuration file."""
    assert [len(studio.games) for studio in load_scenario(name).studios] == [2, 1]


@pytest.mark.parametrize(("name", "players"), [("calm", 20_000), ("demo", 60_000)])
def test_calm_and_demo_are_sixty_days(name: str, players: int) -> None:
    """The demo has three times the players of the scenario in which nothing happens."""
    scenario = load_scenario(name)
    assert (scenario.days, scenario.players) == (60, players)


def test_small_differs_from_calm_in_size_only() -> None:
    """`small` equals `calm` but for name, text, seed, days and players."""
    small, calm = load_scenario("small"), load_scenario("calm")
    same = {name: getattr(calm, name) for name in ("name", "about", "seed", "days", "players")}
    assert msgspec.structs.replace(small, **same) == calm


def test_players_days_and_seed_can_be_given_in_place_of_the_files() -> None:
    """Arguments of `load_scenario` replace the values of the file."""
    mine = load_scenario("calm", players=10, days=3, seed=1)
    assert (mine.players, mine.days, mine.seed) == (10, 3, 1)


@pytest.mark.parametrize("players", [1, 2, 7, 1000, 20_000])
def test_players_of_the_games_add_up(players: int) -> None:
    """Players are divided among the games without a rounding loss, a single one too."""
    assert sum(load_scenario("calm", players=players).players_by_game()) == players


def test_a_file_may_extend_a_shipped_scenario(tmp_path: Path) -> None:
    """`extends = "calm"` and one key give `calm` with that key changed."""
    assert load_scenario(extended_calm(tmp_path, "players = 5")).players == 5


def test_an_unknown_name_is_refused_with_the_nearest() -> None:
    """An unknown scenario name raises `BadQuery` with the nearest name."""
    with pytest.raises(BadQuery, match="Did you mean `demo`"):
        load_scenario("demos")


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("playrs = 5", r"playrs.*Did you mean `players`"),
        ("players = 0", "players = 0 must be 1"),
        ("days = 0", "days = 0 must be 1"),
        ("seed = -1", "seed = -1 must be 0"),
        ('players = "many"', "players = 'many' is refused: expected `int`"),
        ("weekdays = [1, 1, 1]", r"weekdays = \[1, 1, 1\] is refused"),
        ("studio = []", "studio = .* at least one game"),
        ('extends = "calm"', "cannot be read"),
    ],
)
def test_a_top_level_value_that_is_not_allowed_is_named(tmp_path: Path, lines: str, message: str) -> None:
    """A bad top-level value raises `BadQuery` with the key, the value and the rule."""
    with pytest.raises(BadQuery, match=message):
        load_scenario(extended_calm(tmp_path, lines))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("d28 = 0.040", "d28 = 0.040, d2 = 0.5", r"retention.*Did you mean `d28`"),
        ('title = "Rooftop Dash"', 'title = "Tile Harbor"', "duplicate titles"),  # campaigns and incidents name them
        ('currency = "JPY"', 'currency = "JPX"', r"country\[2\].currency = 'JPX'"),
        ("tier = 1", "tier = 4", r"country\[0\].tier = 4 must be 1 to 3"),
        ("d7 = 0.125", "d7 = 0.5", "retention .* must fall"),
        ("d7 = 0.125", "d7 = 0.36999", "retention .* cannot be fitted by a BG/BB population"),
        ("per_round = 0.34", "per_round = 1.34", "ads.per_round = 1.34 must be 0 to 1"),
        ('vendor = "max"', 'vendor = "maxx"', "vendor = 'maxx' is refused"),
        ('vendor_version = "12.6.1"', 'vendor_version = "12.x"', "ads.vendor_version"),
        ('currency = "EUR"      #', 'currency = "EURO"      #', "ads.currency = 'EURO'"),
        ("interstitial = [8.4, 3.6, 0.9]", "banner = [8.4, 3.6, 0.9]", "AppLovin.*has no ecpm for"),
        ("US = 0.27, GB", "XX = 0.27, GB", r"game\[0\].countries.XX = 'XX'"),
        ("INR = 17900 }", "CAD = 17900 }", r"item\[0\].price .* lacks INR"),
        ("build = [{ day = 0", "build = [{ day = 1", "must start at 0"),
        ('id = "coins:small"', 'id = "coins"', r"purchases.item\[0\].id = 'coins' must be type:id"),
    ],
)
def test_a_value_deep_down_that_is_not_allowed_is_named(tmp_path: Path, old: str, new: str, message: str) -> None:
    """A bad nested value raises `BadQuery` with its full path, the value and the rule."""
    with pytest.raises(BadQuery, match=message):
        load_scenario(calm_with(tmp_path, old, new))


@pytest.mark.shown_by(2)
@pytest.mark.parametrize(
    ("old", "new", "key", "message"),
    [
        ("per_round = 0.34", "per_round = 1.34", "studio[0].game[0].ads.per_round", "1.34 must be 0 to 1"),
        ('vendor = "max"', 'vendor = "maxx"', "studio[0].game[0].ads.vendor", "Did you mean `max`"),
        ('vendor = "admob"', 'vendor = "xyz"', "studio[1].game[0].ads.vendor", "Allowed: admob, ironsource, max"),
        ("d28 = 0.040", "d29 = 0.040", "studio[0].game[0].retention.d29", "Did you mean `d28`"),
        (", d28 = 0.040", "", "studio[0].game[0].retention.d28", "lacks the key d28"),
        ("{ share = 0.45, unit", "{ share = -1, unit", "studio[0].game[0].ads.formats.interstitial.share", "-1.0 must"),
        ("interstitial = {", "interstitiel = {", "studio[0].game[0].ads.formats.interstitiel", "Did you mean"),
        ("USD = 4999", 'USD = "4999"', "studio[0].game[0].purchases.item[4].price.USD", "expected `int`"),
        ('countries = ["JP"]', 'countries = ["CN"]', "campaign[0].countries", "Allowed: US, GB, JP"),
        ('game = "Tile Harbor"\npub', 'game = "Tile Harbour"\npub', "campaign[1].game", "Did you mean `Tile Harbor`"),
        ("spend = 0.35", "spend = 35", "experiment[1].variant[1].spend", "must be -4 to 4"),
        ("share = 0.6\nday", "share = 1.6\nday", "experiment[1].share", "must be 0 to 1"),
        ('{ id = "late_gate"', '{ id = "ctrl"', "experiment[0].variant", "two or more distinct ids"),
        ("d7 = 0.125", "d7 = 0.36", "studio[0].game[0].retention", "the nearest that can: d1 = 0.37, d7 = 0.22"),
        ("weekdays = [0.94,", "weekdays = [0,", "weekdays", "0.0 must be more than 0"),
        ("reward = 65", "reward = 0", "studio[0].game[0].economy.reward", "must be 1 to"),
    ],
)
def test_a_refusal_names_the_file_the_key_and_what_is_allowed(
    tmp_path: Path, old: str, new: str, key: str, message: str
) -> None:
    """The error starts with file and path, has the path as `field`, and names what is allowed."""
    path = calm_with(tmp_path, old, new)
    with pytest.raises(BadQuery) as raised:
        load_scenario(path)
    assert str(raised.value).startswith(f"mine.toml: {key} ")
    assert raised.value.field == key
    assert message in str(raised.value)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('kind = "silence"', 'kind = "silent"', "Did you mean `silence`"),
        ('network = "Unity Ads"', 'network = "Unity"', "Did you mean `Unity Ads`"),
        ('platform = "android"', 'platform = "andriod"', "Did you mean `android`"),
        ('build = "1.10.0"', 'build = "1.10"', "Did you mean `1.10.0`"),
        ('country = "BR"', 'country = "CN"', "Allowed: US, GB"),
        ('extends = "calm"', 'extends = "clam"', "Did you mean `calm`"),
    ],
)
def test_an_incident_with_an_unknown_name_is_refused_by_its_path(
    tmp_path: Path, old: str, new: str, message: str
) -> None:
    """An incident with an unknown network, build or country is refused with its path and the nearest."""
    text = (SCENARIOS / "incident.toml").read_text()
    assert old in text
    path = tmp_path / "mine.toml"
    path.write_text(text.replace(old, new, 1))
    key = "extends" if "extends" in old else rf"incident\[[0-9]\].{old.split(' ')[0]}"
    with pytest.raises(BadQuery, match=rf"^mine.toml: {key} = .*{message}"):
        load_scenario(path)


LIKE = """
[[studio]]
name = "Mine"
[[studio.game]]
like = "Tile Harbor"
title = "Tile Port"
retention = { d1 = 0.3, d7 = 0.09, d28 = 0.02 }
sessions = { per_day = 3 }
[[studio.game]]
like = "Tile Port"
title = "Tile Quay"
"""
NO_TIMELINE = "campaign = []\nexperiment = []\n"


def test_a_game_may_be_like_one_of_the_scenario_extended_or_above_it(tmp_path: Path) -> None:
    """`like` copies a game of the extended scenario or of the file itself, but for given keys."""
    port, quay = load_scenario(extended_calm(tmp_path, NO_TIMELINE + LIKE)).games
    harbor = load_scenario("calm").games[0]
    assert port.sessions == msgspec.structs.replace(harbor.sessions, per_day=3)
    assert (port.ads, port.retention.d1) == (harbor.ads, 0.3)
    assert quay == msgspec.structs.replace(port, title="Tile Quay")


def test_a_game_like_an_unknown_game_is_refused(tmp_path: Path) -> None:
    """`like` with an unknown title raises `BadQuery` with its path and the nearest title."""
    misspelt = LIKE.replace('like = "Tile Port"', 'like = "Tile Prot"')
    with pytest.raises(BadQuery, match=r"mine.toml: studio\[0\].game\[1\].like = 'Tile Prot' .*mean `Tile Port`"):
        load_scenario(extended_calm(tmp_path, "campaign = []" + misspelt))


def test_a_bad_value_is_reported_in_the_file_it_stands_in(tmp_path: Path) -> None:
    """An error names the extended file if the bad value stands there, else the user's own."""
    lines = 'incident = [{ kind = "bad_build", game = "Tile Harbor", build = "1.9.0", country = "BR" }]\nplayers = 0'
    with pytest.raises(BadQuery, match=r"mine.toml: players"):
        load_scenario(extended_calm(tmp_path, lines))
    with pytest.raises(BadQuery, match=r"calm.toml: campaign\[0\].game = 'Ember Realms'"):
        load_scenario(extended_calm(tmp_path, LIKE))


def test_experiments_that_overlap_share_the_players(tmp_path: Path) -> None:
    """Shares of experiments that run at the same time may not exceed 1 in total."""
    arms = 'variant = [{ id = "a" }, { id = "b" }]'
    both = "".join(f'[[experiment]]\nid = "e{i}"\ngame = "Tile Harbor"\nshare = 0.6\n{arms}\n' for i in (1, 2))
    with pytest.raises(BadQuery, match=r"experiment = 1.2 is the sum of the shares of \['e1', 'e2'\]"):
        load_scenario(extended_calm(tmp_path, both))


@pytest.mark.parametrize(
    ("lines", "key", "message"),
    [
        ('holiday = [{ name = "Off", day = 3, countries = ["CN"], play = 1 }]', "holiday[0].countries", "US, GB, JP"),
        ('holiday = [{ name = "Off", day = 3, countries = ["US"], play = 9 }]', "holiday[0].play", "must be -4 to 4"),
        (f"incident = [{{ {LEVEL}, level = 4, complete = 2, quits = 0 }}]", "incident[0].complete", "must be 0 to 1"),
        (f"incident = [{{ {LEVEL}, level = 999, complete = 0, quits = 0 }}]", "incident[0].level", "must be 1 to 240"),
        (f"incident = [{{ {SESSIONS}, share = 2, days = 1 }}]", "incident[0].share", "must be 0 to 1"),
        (
            f'incident = [{{ {SESSIONS}, share = 1, days = 1, platform = "web" }}]',
            "incident[0].platform",
            "android, ios",
        ),
        ("payday = 0", "payday", "must be more than 0"),
    ],
)
def test_impossible_holidays_levels_and_losses_are_refused(tmp_path: Path, lines: str, key: str, message: str) -> None:
    """Bad values of what the demo plants raise `BadQuery` with the key and the rule."""
    with pytest.raises(BadQuery, match=re.escape(key)) as raised:
        load_scenario(extended_calm(tmp_path, lines))
    assert message in str(raised.value)


def test_a_missing_file_is_refused_by_name(tmp_path: Path) -> None:
    """A missing file raises `BadQuery` with its name."""
    with pytest.raises(BadQuery, match=r"nowhere\.toml"):
        load_scenario(tmp_path / "nowhere.toml")


def test_a_scenario_cannot_extend_itself(tmp_path: Path) -> None:
    """A circular `extends` raises `BadQuery` instead of recursing."""
    path = tmp_path / "loop.toml"
    path.write_text(f'extends = "{path}"\n')
    with pytest.raises(BadQuery, match="extends"):
        load_scenario(path)


@pytest.mark.parametrize(
    ("lines", "key", "message"),
    [
        ("[delivery]\ncrashes = 1.5", "delivery.crashes", "must be 0 to 1"),
        ("[delivery]\nbatch_s = 0", "delivery.batch_s", "1 to 3600"),
        ("[delivery]\noffline_cap_h = 0", "delivery.offline_cap_h", "more than 0"),
        ("[delivery]\nclocks = { sundial = 1.0 }", "delivery.clocks.sundial", "is refused"),
        ("[delivery]\nclocks = { exact = 0.0 }", "delivery.clocks.exact", "more than 0"),
        ("[dirt]\nmalformed = -0.1", "dirt.malformed", "must be 0 to 1"),
        ("[dirt]\nduplicate = 0.1", "dirt.duplicate", "mean `duplicates`"),
    ],
)
def test_impossible_delivery_and_dirt_are_refused(tmp_path: Path, lines: str, key: str, message: str) -> None:
    """Bad values of `delivery` and `dirt` raise `BadQuery` with file, key and rule."""
    with pytest.raises(BadQuery, match=re.escape(key)) as raised:
        load_scenario(extended_calm(tmp_path, lines))
    assert str(raised.value).startswith(f"mine.toml: {key} ")
    assert message in str(raised.value)


_AT_ONCE = """
import sys, threading
from gamelens.simulator import load_scenario

sys.setswitchinterval(1e-6)
everybody = threading.Barrier(6)
names = []

def load():
    everybody.wait()
    names.append(load_scenario("calm").name)

threads = [threading.Thread(target=load) for _ in range(6)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(*names)
"""


@pytest.mark.wide
def test_threads_may_load_their_first_scenario_at_once() -> None:
    """Two that met a type for the first time ended the interpreter, with msgspec 0.22."""
    assert run_python("-c", _AT_ONCE).split() == ["calm"] * 6
