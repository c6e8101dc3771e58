"""contract, Sandbox configuration file; architecture, Decisions: one state directory, mode 0700, locked."""

from __future__ import annotations

import gc
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType, FunctionType, ModuleType

import pytest

from conftest import Stage
from gamelens.errors import BadQuery, GamelensError, Refused
from gamelens.sandbox.server import Sandbox, SandboxOptions
from gamelens.sandbox.tenants import TenantDirectory, describe, load_tenants

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


def start(state: Path, text: str | None) -> tuple[TenantDirectory, dict[str, str]]:
    """Who is who after a start, and the API keys for its ready file."""
    config = state.parent / "sandbox.toml"
    if text is not None:
        config.write_text(text)
    return load_tenants(state, config if text is not None else None)


def load(state: Path, text: str | None) -> TenantDirectory:
    return start(state, text)[0]


def reachable(root: object) -> Iterator[str]:
    """Every text that can be reached from *root* through objects, without modules, types and code."""
    seen, waiting = set(), [root]
    while waiting:
        thing = waiting.pop()
        if id(thing) in seen or isinstance(thing, type | ModuleType | CodeType):
            continue
        seen.add(id(thing))
        if isinstance(thing, str | bytes):
            yield thing if isinstance(thing, str) else thing.decode("latin-1")
        elif isinstance(thing, FunctionType):  # its module is everybody's, its closure is its own
            waiting += [thing.__closure__, thing.__defaults__, thing.__kwdefaults__]
        else:
            waiting += gc.get_referents(thing)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_without_a_file_there_are_two_studios_and_three_games(state: Path) -> None:
    """contract, Commands: one organisation, two studios, three games."""
    (organisation,) = load(state, None).organisations
    assert [len(studio.games) for studio in organisation.studios] == [2, 1]


def test_keys_that_were_made_are_kept_over_restarts(state: Path) -> None:
    """contract, Commands: keeps their keys in DIR."""
    assert describe(*start(state, None)) == describe(*start(state, None))


def test_made_keys_are_kept_with_a_file_too(state: Path) -> None:
    """contract, Sandbox configuration file: made and kept when absent."""
    absent = ONE.replace(f'secret_key = "{SECRET}"', "").replace(f'game_key = "{KEY}"', "")
    assert describe(*start(state, absent)) == describe(*start(state, absent))


def test_made_keys_follow_their_game_when_another_comes_before_it(state: Path) -> None:
    """contract, Sandbox configuration file: made and kept."""

    def keys(*ids: str) -> dict[str, str]:
        games = "".join(f'[[organisation.studio.game]]\nid = "{id_}"\n' for id_ in ids)
        tenants = load(state, f'[[organisation]]\nname = "acme"\n[[organisation.studio]]\n{games}')
        return {game.id: game.game_key for game in tenants.organisations[0].games}

    before, after = keys("7"), keys("3", "7")
    assert after["7"] == before["7"] != after["3"]


def test_two_sandboxes_make_different_keys(state: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    assert describe(*start(state, None)) != describe(*start(other, None))


def test_keys_of_the_file_are_used_as_they_are(state: Path) -> None:
    """contract, Sandbox configuration file."""
    tenants, api_keys = start(state, ONE)
    organisation, game = tenants.game(KEY) or pytest.fail("unknown key")
    assert tenants.organisation("api-secret") is organisation
    assert (api_keys, game.secret_key) == ({"acme": "api-secret"}, SECRET)


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
        ('"api-secret"', '"api-secret "', "api_key"),
        ('"api-secret"', '"api-sécret"', "api_key"),
    ],
)
def test_a_mistake_is_named_and_no_key_is_shown(state: Path, old: str, new: str, named: str) -> None:
    """contract, Commands: one clear line. A log is no place for keys."""
    with pytest.raises(BadQuery) as refused:
        load(state, ONE.replace(old, new))
    assert named in str(refused.value)
    for secret in ("5ec5e7", "c0ffee", "C0FFEE", "api-secret"):
        assert secret not in str(refused.value) + repr(refused.value)


@pytest.mark.parametrize(
    ("old", "new", "field", "nearest"),
    [
        ("api_key =", "api_kee =", "organisation[0].api_kee", "api_key"),
        ('name = "acme"', 'name = "acme"\nowner = "ann"', "organisation[0].owner", None),
        ('id = "s1"', 'id = "s1"\ntitle = "North"', "organisation[0].studio[0].title", None),
        ('id = "1"', 'id = "1"\ntitel = "Tile Saga"', "organisation[0].studio[0].game[0].titel", "title"),
        ('id = "1"', 'id = "1"\nconfigs = []', "organisation[0].studio[0].game[0].configs", "config"),
        ("[[organisation.studio]]", "[[organisation.studios]]", "organisation[0].studios", "studio"),
        ("[[organisation]]", "organization = []\n[[organisation]]", "organization", "organisation"),
        (
            'id = "1"',
            'id = "1"\nexperiment = [{id = "e", variant = [{id = "v", configs = []}]}]',
            "organisation[0].studio[0].game[0].experiment[0].variant[0].configs",
            "config",
        ),
    ],
)
def test_a_field_it_does_not_know_is_named_with_the_nearest(
    state: Path, old: str, new: str, field: str, nearest: str | None
) -> None:
    """contract, Sandbox configuration file: what is there is meant, so what is ignored is a mistake nobody hears of."""
    with pytest.raises(BadQuery, match="is not part of a sandbox configuration") as refused:
        load(state, ONE.replace(old, new))
    assert (refused.value.field, refused.value.did_you_mean) == (field, nearest)
    assert "api-secret" not in str(refused.value)


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
def test_what_must_be_unique_is_named(state: Path, more: str, named: str) -> None:
    """Two owners of one key would see each other's events."""
    with pytest.raises(BadQuery) as refused:
        load(state, ONE + more)
    assert refused.value.field == named
    assert "c0ffee" not in str(refused.value)
    assert "api-secret" not in str(refused.value)


def test_a_file_that_is_no_text_is_refused(state: Path) -> None:
    (state / "sandbox.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(BadQuery, match="--config"):
        load_tenants(state, state / "sandbox.toml")


def test_a_file_that_is_not_there_is_refused(state: Path) -> None:
    with pytest.raises(Refused, match="cannot read"):
        load_tenants(state, state / "nowhere.toml")


def test_nobody_s_repr_shows_a_key(state: Path) -> None:
    """A traceback is no place for keys."""
    tenants = load(state, ONE)
    shown = repr(tenants.organisations) + repr(tenants.organisations[0].games)
    assert "api-secret" not in shown
    assert "5ec5e7" not in shown


def test_an_api_key_of_the_file_is_kept_as_a_digest_only(state: Path) -> None:
    """Our choice: keys are stored hashed. The digest is that of `printf api-secret | sha256sum`."""
    load(state, ONE)
    kept = {path.name: path.read_text() for path in state.iterdir()}
    assert "014c243ff960e87afc8482648f41e2084dce765aa062dcdcbf4e0e43c4db8a41" in kept["tenants.json"]
    assert [name for name, text in kept.items() if "api-secret" in text] == []


def test_an_api_key_that_was_made_is_kept_for_the_ready_file_only(state: Path) -> None:
    """contract, Commands: keeps their keys in DIR, and writes FILE at every start."""
    tenants, api_keys = start(state, None)
    (key,) = api_keys.values()
    assert tenants.organisation(key) is tenants.organisations[0]
    assert [path.name for path in state.iterdir() if key in path.read_text()] == ["keys.json"]
    assert mode(state / "keys.json") == 0o600


def test_without_its_file_a_given_key_still_opens_and_is_not_told(state: Path) -> None:
    """contract, Commands: a start without --config goes on with what was configured."""
    load(state, ONE)
    tenants, api_keys = start(state, None)
    assert tenants.organisation("api-secret") is tenants.organisations[0]
    assert describe(tenants, api_keys)[0]["api_key"] is None


def test_a_given_key_replaces_a_made_one(state: Path) -> None:
    """contract, Sandbox configuration file: made when absent."""
    made = start(state, ONE.replace('api_key = "api-secret"', ""))[1]["acme"]
    tenants = load(state, ONE)
    assert tenants.organisation(made) is None
    assert made not in (state / "keys.json").read_text()


def test_a_key_that_was_changed_no_longer_opens(state: Path) -> None:
    load(state, ONE)
    changed = load(state, ONE.replace("api-secret", "api-other"))
    assert changed.organisation("api-secret") is None
    assert changed.organisation("api-other") is changed.organisations[0]


@pytest.mark.parametrize("name", ["tenants.json", "keys.json"])
def test_kept_keys_that_are_damaged_stop_the_start(state: Path, name: str) -> None:
    """New keys in their place would lock out whoever has the old ones."""
    load(state, None)
    (state / name).write_bytes(b"\xff{")
    with pytest.raises(Refused, match=f"{name} is damaged"):
        load(state, None)


def test_what_answers_requests_holds_no_api_key(stage: Stage) -> None:
    """Our choice: keys are stored hashed. Only what writes the ready file has them, and no service can reach it."""
    assert [text for text in reachable(stage.sandbox) if "key-of-" in text] != []
    reached = [*reachable(stage.sandbox.metrics), *reachable(stage.sandbox.collector)]
    assert any("1001" in text for text in reached)
    assert [text for text in reached if "key-of-" in text] == []


def test_the_state_directory_is_for_its_owner(stage: Stage) -> None:
    """architecture: mode 0700."""
    assert mode(stage.sandbox.options.state) == 0o700


def test_a_state_directory_that_was_open_is_closed(tmp_path: Path) -> None:
    """architecture: mode 0700."""
    (tmp_path / "open").mkdir(mode=0o755)
    Sandbox(SandboxOptions(state=tmp_path / "open")).close()
    assert mode(tmp_path / "open") == 0o700


def test_files_with_keys_are_for_their_owner(stage: Stage) -> None:
    """contract, Commands: FILE (0600)."""
    keys = [game.secret_key.encode() for org in stage.sandbox.tenants.organisations for game in org.games]
    holding = [
        path
        for path in stage.sandbox.options.state.rglob("*")
        if path.is_file() and any(key in path.read_bytes() for key in keys)
    ]
    assert [path.name for path in holding] == ["tenants.json"]
    assert {mode(path) for path in holding} == {0o600}


def test_a_second_sandbox_on_the_same_state_is_refused(stage: Stage) -> None:
    """architecture: locked against a second server."""
    with pytest.raises(Refused, match="belongs to a running sandbox"):
        Sandbox(SandboxOptions(state=stage.sandbox.options.state))


def test_a_state_is_free_again_when_its_sandbox_has_closed(make_stage: Callable[..., Stage]) -> None:
    """architecture: locked against a second server."""
    make_stage().sandbox.close()
    assert make_stage().get("interval").status_code == 200


def test_a_configuration_that_is_refused_holds_no_lock(tmp_path: Path) -> None:
    (tmp_path / "bad.toml").write_text("x")
    with pytest.raises(GamelensError):
        Sandbox(SandboxOptions(state=tmp_path / "state", config=tmp_path / "bad.toml"))
    Sandbox(SandboxOptions(state=tmp_path / "state")).close()
