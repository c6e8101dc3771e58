"""Organisations, games and keys, and the state directory that stores them."""

from __future__ import annotations

import gc
import json
import shutil
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType, FunctionType, ModuleType

import pytest

from gamelens.errors import BadQuery, GamelensError, Refused
from gamelens.sandbox.options import SandboxOptions
from gamelens.sandbox.server import Sandbox
from gamelens.sandbox.state.tenants import TenantDirectory, describe, load_tenants
from support.sandbox_stage import Stage

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


def start_with(state: Path, text: str | None) -> tuple[TenantDirectory, dict[str, str]]:
    """Load the configuration *text*, and return organisations and API keys."""
    config = state.parent / "sandbox.toml"
    if text is not None:
        config.write_text(text)
    return load_tenants(state, config if text is not None else None)


def load(state: Path, text: str | None) -> TenantDirectory:
    """Return the organisations after a start with the configuration *text*."""
    return start_with(state, text)[0]


def reachable(root: object) -> Iterator[str]:
    """Return every text reachable from *root*, except through modules, types and code."""
    seen, remaining = set(), [root]
    while remaining:
        current = remaining.pop()
        if id(current) in seen or isinstance(current, type | ModuleType | CodeType):
            continue
        seen.add(id(current))
        if isinstance(current, str | bytes):
            yield current if isinstance(current, str) else current.decode("latin-1")
        elif isinstance(current, FunctionType):  # its module is everybody's, its closure is its own
            remaining += [current.__closure__, current.__defaults__, current.__kwdefaults__]
        else:
            remaining += gc.get_referents(current)


def mode(path: Path) -> int:
    """Return the permissions of *path*."""
    return stat.S_IMODE(path.stat().st_mode)


def test_without_a_file_there_are_two_studios_and_three_games(state: Path) -> None:
    """Without a file there is one organisation with two studios and three games.

    Wire 5.4, Sandbox configuration.
    """
    (organisation,) = load(state, None).organisations
    assert [len(studio.games) for studio in organisation.studios] == [2, 1]


def test_generated_keys_are_kept_over_restarts(state: Path) -> None:
    """Generated keys are the same after a restart (Wire 5.4, Sandbox configuration)."""
    assert describe(*start_with(state, None)) == describe(*start_with(state, None))


def test_generated_keys_are_kept_with_a_file_too(state: Path) -> None:
    """Keys that the file leaves out are generated once (Wire 5.4, Sandbox configuration)."""
    absent = ONE.replace(f'secret_key = "{SECRET}"', "").replace(f'game_key = "{KEY}"', "")
    assert describe(*start_with(state, absent)) == describe(*start_with(state, absent))


def test_generated_keys_follow_their_game(state: Path) -> None:
    """A game keeps its generated key when another is put before it in the file.

    Wire 5.4, Sandbox configuration.
    """

    def keys(*ids: str) -> dict[str, str]:
        games = "".join(f'[[organisation.studio.game]]\nid = "{id_}"\n' for id_ in ids)
        tenants = load(state, f'[[organisation]]\nname = "acme"\n[[organisation.studio]]\n{games}')
        return {game.id: game.game_key for game in tenants.organisations[0].games}

    before, after = keys("7"), keys("3", "7")
    assert after["7"] == before["7"] != after["3"]


def test_two_sandboxes_make_different_keys(state: Path, tmp_path: Path) -> None:
    """Two state directories have different keys (Wire 5.4, Sandbox configuration)."""
    other = tmp_path / "other"
    other.mkdir()
    assert describe(*start_with(state, None)) != describe(*start_with(other, None))


def test_keys_of_the_file_are_used_as_they_are(state: Path) -> None:
    """Keys in the file are used unchanged (Wire 5.4, Sandbox configuration)."""
    tenants, api_keys = start_with(state, ONE)
    organisation, game = tenants.game(KEY) or pytest.fail("unknown key")
    assert tenants.organisation("api-secret") is organisation
    assert (api_keys, game.secret_key) == ({"acme": "api-secret"}, SECRET)


@pytest.mark.parametrize(
    ("old", "new", "field"),
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
def test_a_mistake_is_named_without_a_key(state: Path, old: str, new: str, field: str) -> None:
    """The error for a wrong value names the field and shows no key.

    Wire 5.4, Sandbox configuration.
    """
    with pytest.raises(BadQuery) as refused:
        load(state, ONE.replace(old, new))
    assert field in str(refused.value)
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
def test_an_unknown_field_is_named_with_a_suggestion(
    state: Path, old: str, new: str, field: str, nearest: str | None
) -> None:
    """An unknown field is refused, with its path and the nearest field.

    Wire 5.4, Sandbox configuration.
    """
    with pytest.raises(BadQuery, match="is not part of a sandbox configuration") as refused:
        load(state, ONE.replace(old, new))
    assert (refused.value.field, refused.value.did_you_mean) == (field, nearest)
    assert "api-secret" not in str(refused.value)


@pytest.mark.parametrize(
    ("addition", "field"),
    [
        (f'[[organisation.studio.game]]\nid = "2"\ngame_key = "{KEY}"', "game_key"),
        ('[[organisation.studio.game]]\nid = "1"', "game.id"),
        ('[[organisation.studio]]\nid = "s1"', "studio.id"),
        ('[[organisation]]\nname = "acme"', "organisation.name"),
        ('[[organisation]]\nname = "other"\napi_key = "api-secret"', "api_key"),
    ],
)
def test_a_duplicate_is_named(state: Path, addition: str, field: str) -> None:
    """A name, id or key that occurs twice is refused, with its field and without a key.

    Wire 5.4, Sandbox configuration.
    """
    with pytest.raises(BadQuery) as refused:
        load(state, ONE + addition)
    assert refused.value.field == field
    assert "c0ffee" not in str(refused.value)
    assert "api-secret" not in str(refused.value)


GAME = "organisation[0].studio[0].game[0]"


@pytest.mark.parametrize(
    ("addition", "field", "shown"),
    [
        ('config = [{key = "speed", value = 2}]', f"{GAME}.config[0].value", "= 2 "),
        ('config = [{key = "a", value = "1"}, {key = "b", value = true}]', f"{GAME}.config[1].value", "= True "),
        ('config = [{key = "speed", value = [1]}]', f"{GAME}.config[0].value", "= [1] "),
        (
            'experiment = [{id = "e", variant = [{id = "v", config = [{key = "speed", value = 2.5}]}]}]',
            f"{GAME}.experiment[0].variant[0].config[0].value",
            "= 2.5 ",
        ),
    ],
)
def test_a_config_value_that_is_no_string_is_refused(state: Path, addition: str, field: str, shown: str) -> None:
    """A config value of another type is refused with its place, the value and what to write.

    Wire 1.13, Configs and experiments; Wire 5.4, Sandbox configuration.
    """
    with pytest.raises(BadQuery, match="must be a string: put it in quotes") as refused:
        load(state, ONE + addition)
    assert refused.value.field == field
    assert f"{field} {shown}" in str(refused.value)


def test_configs_of_the_control_group_are_refused(state: Path) -> None:
    """The variant `ctrl` with configs is refused, with their keys and what to do.

    Wire 1.13, Configs and experiments; Wire 5.4, Sandbox configuration.
    """
    control = (
        'experiment = [{id = "e", variant = [{id = "a"}, {id = "ctrl", config = [{key = "speed", value = "2"}]}]}]'
    )
    with pytest.raises(BadQuery, match="ctrl is the control group: remove its configs") as refused:
        load(state, ONE + control)
    assert refused.value.field == f"{GAME}.experiment[0].variant[1].config"
    assert "'speed'" in str(refused.value)


def test_a_control_group_without_configs_is_accepted(state: Path) -> None:
    """The variant `ctrl` may stand in a file, also with an empty list of configs."""
    variants = 'variant = [{id = "ctrl", config = []}, {id = "fast", config = [{key = "speed", value = "2"}]}]'
    (game,) = load(state, f'{ONE}experiment = [{{id = "e", {variants}}}]').organisations[0].games
    assert [variant.id for variant in game.experiment[0].variant] == ["ctrl", "fast"]


@pytest.mark.parametrize("name", ["", " ", " acme", "acme\\n", "a\\u0007b", "a\\u202eb", "x" * 101, "游" * 101])
def test_an_organisation_name_out_of_bounds_is_refused(state: Path, name: str) -> None:
    """A name has 1 to 100 visible characters and no white space around it.

    Wire 5.4, Sandbox configuration.
    """
    with pytest.raises(BadQuery, match="must be 1 to 100 characters") as refused:
        load(state, ONE.replace('"acme"', f'"{name}"'))
    assert refused.value.field == "organisation[0].name"
    assert len(str(refused.value)) < 250


@pytest.mark.parametrize("name", ["x" * 100, "游" * 100, "𠀀" * 24, "../..", ".", "a/b\\\\c:*?", "株式会社　ゲーム"])
def test_an_organisation_may_have_any_name_within_bounds(state: Path, name: str) -> None:
    """Any visible characters are allowed, those that file names cannot have included.

    Wire 5.4, Sandbox configuration.
    """
    (organisation,) = load(state, ONE.replace('"acme"', f'"{name}"')).organisations
    assert organisation.name == name.replace("\\\\", "\\")


def test_organisation_names_differ_by_more_than_case(state: Path) -> None:
    """Two names that differ by case alone are refused: some disks take them for one folder.

    Wire 5.4, Sandbox configuration.
    """
    with pytest.raises(BadQuery, match=r"organisation\.name"):
        load(state, f'{ONE}[[organisation]]\nname = "ACME"')


def test_a_file_that_is_no_text_is_refused(state: Path) -> None:
    """A configuration that is not UTF-8 is refused with the option's name."""
    (state / "sandbox.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(BadQuery, match="--config"):
        load_tenants(state, state / "sandbox.toml")


def test_a_file_that_is_not_there_is_refused(state: Path) -> None:
    """A configuration file that does not exist is refused."""
    with pytest.raises(Refused, match="cannot read"):
        load_tenants(state, state / "nowhere.toml")


def test_no_repr_shows_a_key(state: Path) -> None:
    """The repr of organisations and games, as in a traceback, shows no key."""
    tenants = load(state, ONE)
    text = repr(tenants.organisations) + repr(tenants.organisations[0].games)
    assert "api-secret" not in text
    assert "5ec5e7" not in text


def test_a_given_api_key_is_stored_as_a_digest(state: Path) -> None:
    """Only the SHA-256 digest of a given API key is stored.

    The digest is that of `printf api-secret` piped to `sha256sum`.

    Wire 5.4, Sandbox configuration.
    """
    load(state, ONE)
    contents = {path.name: path.read_text() for path in state.iterdir()}
    assert "014c243ff960e87afc8482648f41e2084dce765aa062dcdcbf4e0e43c4db8a41" in contents["tenants.json"]
    assert [name for name, text in contents.items() if "api-secret" in text] == []


def test_a_generated_api_key_is_stored_for_the_ready_file(state: Path) -> None:
    """A generated API key is in one private file, for the ready file of every start.

    Wire 5.4, Sandbox configuration.
    """
    tenants, api_keys = start_with(state, None)
    (key,) = api_keys.values()
    assert tenants.organisation(key) is tenants.organisations[0]
    assert {path.name for path in state.iterdir() if key in path.read_text()} == {"keys.json"}
    assert mode(state / "keys.json") == 0o600


def test_a_given_key_stays_valid_without_its_file(state: Path) -> None:
    """After a start without the file a given key is valid, and null in the ready file.

    Wire 5.4, Sandbox configuration.
    """
    load(state, ONE)
    tenants, api_keys = start_with(state, None)
    assert tenants.organisation("api-secret") is tenants.organisations[0]
    assert describe(tenants, api_keys)[0]["api_key"] is None


def test_a_given_key_replaces_a_generated_one(state: Path) -> None:
    """A generated key is invalid and deleted once the file gives one.

    Wire 5.4, Sandbox configuration.
    """
    made_key = start_with(state, ONE.replace('api_key = "api-secret"', ""))[1]["acme"]
    tenants = load(state, ONE)
    assert tenants.organisation(made_key) is None
    assert made_key not in (state / "keys.json").read_text()


def test_a_changed_key_is_no_longer_valid(state: Path) -> None:
    """After a change of the key in the file only the new one is valid.

    Wire 5.4, Sandbox configuration.
    """
    load(state, ONE)
    changed = load(state, ONE.replace("api-secret", "api-other"))
    assert changed.organisation("api-secret") is None
    assert changed.organisation("api-other") is changed.organisations[0]


@pytest.mark.parametrize("name", ["tenants", "keys"])
def test_a_flipped_bit_of_a_key_file_is_refused(state: Path, name: str) -> None:
    """A flipped bit anywhere, be it in the name of a field, stops the start: new keys would lock out their owners."""
    tenants, keys = start_with(state, None)
    path = state / f"{name}.json"
    whole = path.read_bytes()
    for place in range(0, len(whole), 1 + len(whole) // 200):
        content = bytearray(whole)
        content[place] ^= 1 << place % 7
        path.write_bytes(content)
        with pytest.raises(Refused, match=f"{name}.json is damaged"):
            start_with(state, None)
        assert path.read_bytes() == content
    path.write_bytes(whole)
    found, found_keys = start_with(state, None)
    assert (found.organisations, found_keys) == (tenants.organisations, keys)


@pytest.mark.parametrize("config", [None, ONE.replace('api_key = "api-secret"', "")])
def test_a_start_without_the_keys_of_an_earlier_one_is_refused(state: Path, config: str | None) -> None:
    """A lost file neither gives new keys nor an unknown one; with every key in the configuration it is not needed."""
    _, keys = start_with(state, ONE.replace('api_key = "api-secret"', ""))
    path = state / "keys.json"
    whole = path.read_bytes()
    path.unlink()
    with pytest.raises(Refused, match=r"keys.json is missing: .* the API key of acme with --config"):
        start_with(state, config)
    assert not path.exists()
    path.write_bytes(whole)
    assert start_with(state, config)[1] == keys
    path.unlink()
    assert start_with(state, ONE)[1] == {"acme": "api-secret"}


def test_a_start_without_the_organisations_of_an_earlier_one_is_refused(state: Path) -> None:
    """A store of events belongs to organisations; without one, as after a first start that was killed, all is new."""
    start_with(state, None)
    (state / "tenants.json").unlink()
    start_with(state, None)
    (state / "tenants.json").unlink()
    (state / "gamelens.db").touch()
    with pytest.raises(Refused, match=r"tenants.json is missing: restore it"):
        start_with(state, None)
    assert not (state / "tenants.json").exists()


def test_key_files_of_earlier_versions_are_read(state: Path) -> None:
    """Files without a checksum are read and get one; the copy that 0.1 kept of each goes, since it has keys."""
    tenants, keys = start_with(state, None)
    for name in ("tenants", "keys"):
        stored = json.loads((state / f"{name}.json").read_bytes())["content"]
        (state / f"{name}.json").write_text(json.dumps(stored))
        shutil.copy(state / f"{name}.json", state / f"{name}.copy.json")
    found, found_keys = start_with(state, None)
    assert (found.organisations, found_keys) == (tenants.organisations, keys)
    assert json.loads((state / "keys.json").read_bytes())["checksum"]
    assert not list(state.glob("*.copy.json"))


def test_the_services_hold_no_api_key(stage: Stage) -> None:
    """No API key is reachable in memory from the objects that serve requests."""
    assert [text for text in reachable(stage.sandbox) if "key-of-" in text] != []
    reachable_texts = [*reachable(stage.sandbox.metrics), *reachable(stage.sandbox.collector)]
    assert any("1001" in text for text in reachable_texts)
    assert [text for text in reachable_texts if "key-of-" in text] == []


def test_the_state_directory_is_for_its_owner(stage: Stage) -> None:
    """The state directory has mode 0700."""
    assert mode(stage.sandbox.options.state) == 0o700


def test_an_open_state_directory_is_made_private(tmp_path: Path) -> None:
    """A state directory with mode 0755 gets mode 0700."""
    (tmp_path / "open").mkdir(mode=0o755)
    Sandbox(SandboxOptions(state=tmp_path / "open")).close()
    assert mode(tmp_path / "open") == 0o700


def test_files_with_keys_are_for_their_owner(stage: Stage) -> None:
    """The one file with secret keys has mode 0600."""
    keys = [game.secret_key.encode() for org in stage.sandbox.tenants.organisations for game in org.games]
    holding = [
        path
        for path in stage.sandbox.options.state.rglob("*")
        if path.is_file() and any(key in path.read_bytes() for key in keys)
    ]
    assert {path.name for path in holding} == {"tenants.json"}
    assert {mode(path) for path in holding} == {0o600}


def test_a_second_sandbox_on_the_same_state_is_refused(stage: Stage) -> None:
    """A second sandbox on one state directory is refused."""
    with pytest.raises(Refused, match="belongs to a running sandbox"):
        Sandbox(SandboxOptions(state=stage.sandbox.options.state))


def test_a_closed_sandbox_unlocks_its_state(make_stage: Callable[..., Stage]) -> None:
    """A state directory can be used again once its sandbox is closed."""
    make_stage().sandbox.close()
    assert make_stage().get("interval").status_code == 200


def test_a_refused_configuration_leaves_no_lock(tmp_path: Path) -> None:
    """A start with a bad configuration leaves the state directory unlocked."""
    (tmp_path / "bad.toml").write_text("x")
    with pytest.raises(GamelensError):
        Sandbox(SandboxOptions(state=tmp_path / "state", config=tmp_path / "bad.toml"))
    Sandbox(SandboxOptions(state=tmp_path / "state")).close()


@pytest.mark.parametrize(
    ("rules", "refusal"),
    [
        ("oldest_days = 0", r"Expected `int` >= 1 - at `\$.collector.oldest_days`"),
        ("oldest_days = 40000", r"Expected `int` <= 36500 - at `\$.collector.oldest_days`"),
        ('oldest_days = "400"', r"Expected `int`, got `str` - at `\$.collector.oldest_days`"),
        (
            "oldest_day = 400",
            r"collector.oldest_day .*is not part of a sandbox configuration.*Did you mean .oldest_days",
        ),
    ],
)
def test_rules_of_the_collector_are_checked(state: Path, rules: str, refusal: str) -> None:
    """A bound, a type and a name that are wrong are refused with their place (Wire 5.4, Sandbox configuration)."""
    with pytest.raises(BadQuery, match=refusal):
        load(state, f'[[organisation]]\nname = "acme"\n[collector]\n{rules}\n')
