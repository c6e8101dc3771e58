"""contract, Sandbox configuration file; architecture, Decisions: one state directory, mode 0700, locked."""

from __future__ import annotations

import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from conftest import Stage
from gamelens.errors import BadQuery, GamelensError, Refused
from gamelens.sandbox.serving import Options, Sandbox
from gamelens.sandbox.tenants import Tenants, describe, load_tenants

SECRET, KEY = "5ec5e7" + "0" * 34, "c0ffee" + "0" * 26
ONE = f"""
[[organisation]]
name = "acme"
api_key = "api-secret"
[[organisation.studio]]
id = "s1"
[[organisation.studio.game]]
id = "1"
game_key = "{KEY}"
secret_key = "{SECRET}"
"""


def load(state: Path, text: str | None) -> Tenants:
    config = state / "sandbox.toml"
    if text is not None:
        config.write_text(text)
    return load_tenants(state, config if text is not None else None)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_without_a_file_there_are_two_studios_and_three_games(state: Path):
    """contract, Commands: one organisation, two studios, three games."""
    (organisation,) = load(state, None).organisations
    assert [len(studio.games) for studio in organisation.studios] == [2, 1]


def test_keys_that_were_made_are_kept_over_restarts(state: Path):
    """contract, Commands: keeps their keys in DIR."""
    assert describe(load(state, None)) == describe(load(state, None))


def test_made_keys_are_kept_with_a_file_too(state: Path):
    """contract, Sandbox configuration file: made and kept when absent."""
    absent = ONE.replace(f'secret_key = "{SECRET}"', "").replace(f'game_key = "{KEY}"', "")
    assert describe(load(state, absent)) == describe(load(state, absent))


def test_made_keys_follow_their_game_when_another_comes_before_it(state: Path):
    """contract, Sandbox configuration file: made and kept."""

    def keys(*ids: str) -> dict[str, str]:
        games = "".join(f'[[organisation.studio.game]]\nid = "{id_}"\n' for id_ in ids)
        tenants = load(state, f'[[organisation]]\nname = "acme"\n[[organisation.studio]]\n{games}')
        return {game.id: game.game_key for game in tenants.organisations[0].games}

    before, after = keys("7"), keys("3", "7")
    assert after["7"] == before["7"] != after["3"]


def test_two_sandboxes_make_different_keys(state: Path, tmp_path: Path):
    other = tmp_path / "other"
    other.mkdir()
    assert describe(load(state, None)) != describe(load(other, None))


def test_keys_of_the_file_are_used_as_they_are(state: Path):
    """contract, Sandbox configuration file."""
    organisation, game = load(state, ONE).game(KEY) or pytest.fail("unknown key")
    assert (organisation.api_key, game.secret_key) == ("api-secret", SECRET)


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        (KEY, KEY.upper(), "game_key"),
        (KEY, KEY[:-1], "game_key"),
        (SECRET, SECRET + "0", "secret_key"),
        (SECRET, "g" + SECRET[1:], "secret_key"),
        ('"api-secret"', "7", "api_key"),
        (f'"{SECRET}"', "[]", "secret_key"),
        ('id = "1"', "id = 1", "id"),
        ('id = "1"', 'id = "1"\nenvironment = "live"', "environment"),
        ('name = "acme"', "", "name"),
        ("[[organisation]]", "[[organization]]", "organisation"),
        ("[[organisation]]", "[[organisation", "line"),
    ],
)
def test_a_mistake_is_named_and_no_key_is_shown(state: Path, old: str, new: str, named: str):
    """contract, Commands: one clear line. A log is no place for keys."""
    with pytest.raises(BadQuery) as refused:
        load(state, ONE.replace(old, new))
    assert named in str(refused.value)
    for secret in ("5ec5e7", "c0ffee", "C0FFEE", "api-secret"):
        assert secret not in str(refused.value) + repr(refused.value)


@pytest.mark.parametrize(
    ("more", "named"),
    [
        (f'[[organisation.studio.game]]\nid = "2"\ngame_key = "{KEY}"', "game_key"),
        ('[[organisation.studio.game]]\nid = "1"', "game.id"),
        ('[[organisation.studio]]\nid = "s1"', "studio.id"),
        ('[[organisation]]\nname = "acme"', "organisation.name"),
        ('[[organisation]]\nname = "other"\napi_key = "api-secret"', "api_key"),
    ],
)
def test_what_must_be_unique_is_named(state: Path, more: str, named: str):
    """Two owners of one key would see each other's events."""
    with pytest.raises(BadQuery) as refused:
        load(state, ONE + more)
    assert refused.value.field == named
    assert "c0ffee" not in str(refused.value)
    assert "api-secret" not in str(refused.value)


def test_a_file_that_is_no_text_is_refused(state: Path):
    (state / "sandbox.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(BadQuery, match="--config"):
        load_tenants(state, state / "sandbox.toml")


def test_a_file_that_is_not_there_is_refused(state: Path):
    with pytest.raises(Refused, match="cannot read"):
        load_tenants(state, state / "nowhere.toml")


def test_nobody_s_repr_shows_a_key(state: Path):
    """A traceback is no place for keys."""
    tenants = load(state, ONE)
    shown = repr(tenants.organisations) + repr(tenants.organisations[0].games)
    assert "api-secret" not in shown
    assert "5ec5e7" not in shown


def test_the_state_directory_is_for_its_owner(stage: Stage):
    """architecture: mode 0700."""
    assert mode(stage.sandbox.options.state) == 0o700


def test_a_state_directory_that_was_open_is_closed(tmp_path: Path):
    """architecture: mode 0700."""
    (tmp_path / "open").mkdir(mode=0o755)
    Sandbox(Options(state=tmp_path / "open")).close()
    assert mode(tmp_path / "open") == 0o700


def test_files_with_keys_are_for_their_owner(stage: Stage):
    """contract, Commands: FILE (0600)."""
    keys = [game.secret_key.encode() for org in stage.sandbox.tenants.organisations for game in org.games]
    holding = [
        path
        for path in stage.sandbox.options.state.rglob("*")
        if path.is_file() and any(key in path.read_bytes() for key in keys)
    ]
    assert [path.name for path in holding] == ["tenants.json"]
    assert {mode(path) for path in holding} == {0o600}


def test_a_second_sandbox_on_the_same_state_is_refused(stage: Stage):
    """architecture: locked against a second server."""
    with pytest.raises(Refused, match="belongs to a running sandbox"):
        Sandbox(Options(state=stage.sandbox.options.state))


def test_a_state_is_free_again_when_its_sandbox_has_closed(make_stage: Callable[..., Stage]):
    """architecture: locked against a second server."""
    make_stage().sandbox.close()
    assert make_stage().get("interval").status_code == 200


def test_a_configuration_that_is_refused_holds_no_lock(tmp_path: Path):
    (tmp_path / "bad.toml").write_text("x")
    with pytest.raises(GamelensError):
        Sandbox(Options(state=tmp_path / "state", config=tmp_path / "bad.toml"))
    Sandbox(Options(state=tmp_path / "state")).close()
