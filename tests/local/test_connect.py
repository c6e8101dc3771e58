"""`gl.connect` and `gl.demo`: which sandbox answers, what they say, and which settings they take."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

import gamelens as gl
from gamelens.client import base_client
from gamelens.client.base_client import BaseClient
from gamelens.errors import AuthError, BadQuery
from gamelens.local import sample_files
from gamelens.local.connect import ConnectSettings, DemoSettings, demo_state, demo_states
from gamelens.local.running_sandboxes import stop_sandbox
from gamelens.local.sandbox_population import population_id, read_population_record, today
from gamelens.local.sandbox_process import find_sandbox, scenario_titles
from gamelens.simulator import load_scenario

MISTAKES: list[tuple[dict[str, Any], str]] = [
    ({"cahce": False}, "setting = 'cahce' does not exist. Did you mean `cache`?"),
    ({"pace": "fast"}, "pace = 'fast' is not allowed"),
    ({"max_days": "31"}, "max_days = '31' must be a whole number"),
    ({"refresh_s": "3600"}, "refresh_s = '3600' must be a number of seconds"),
]


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return the state directory of `connect`, in a place without any setting; its sandboxes are stopped."""
    for name in ("API_KEY", "METRICS_URL", "REPLAY", "RECORD", "CONSOLE_URL"):
        monkeypatch.delenv(f"GAMELENS_{name}", raising=False)
    for name in ("STATE", "CACHE", "RUNTIME"):
        monkeypatch.setenv(f"GAMELENS_{name}_DIR", str(tmp_path / name.lower()))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    yield tmp_path / "state"
    for each in demo_states():
        stop_sandbox(each)


@pytest.mark.parametrize(("settings", "message"), MISTAKES)
@pytest.mark.parametrize("call", [gl.connect, gl.demo])
def test_a_mistake_in_a_setting_is_refused_at_once(
    call: Any, settings: dict[str, Any], message: str, state: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A wrong name or value starts no sandbox and prints nothing but the error."""
    with pytest.raises(BadQuery) as refused:
        call(**settings)
    assert message in str(refused.value)
    assert not state.exists()


def test_a_misspelt_key_is_not_quoted() -> None:
    """The value of an unknown setting may be a key."""
    with pytest.raises(BadQuery, match="Did you mean `api_key`") as refused:
        gl.connect(apikey="not-to-be-shown")  # type: ignore[call-arg]
    assert "not-to-be-shown" not in str(refused.value)


def test_the_settings_are_those_of_a_client() -> None:
    """`connect` takes what `Client` takes, with the same types; `demo` all but what says who answers."""
    parameters = inspect.signature(BaseClient).parameters
    hints = typing.get_type_hints(BaseClient.__init__)
    settings = typing.get_type_hints(ConnectSettings, localns=vars(base_client))
    assert settings == {name: hints[name] for name in parameters}
    assert settings.keys() - DemoSettings.__annotations__.keys() == {
        *("allow_http", "api_key", "metrics_url", "replay", "transport"),
    }


def test_an_address_without_a_key_is_no_sandbox() -> None:
    """Whoever names a service does not want invented players."""
    with pytest.raises(AuthError, match="no api_key"):
        gl.connect(metrics_url="https://metrics.example.com")


def test_each_scenario_has_a_state_of_its_own(state: Path, tmp_path: Path) -> None:
    """That of `demo` is the named directory, others are in it; files of one name are different scenarios."""
    assert demo_state() == demo_state("demo") == state
    files = [tmp_path / "a" / "demo.toml", tmp_path / "b" / "demo.toml"]
    states = [demo_state(name) for name in ("demo", "small", *map(str, files))]
    assert len(set(states)) == 4
    assert all(each.parent == state / "scenarios" for each in states[1:])


def test_a_scenario_that_does_not_exist_is_refused() -> None:
    """With the nearest name, and before anything is started."""
    with pytest.raises(BadQuery, match="Did you mean `portfolio`"):
        gl.demo("portfolo")


def test_a_key_or_a_replay_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    """The line is about the sandbox alone."""
    gl.connect(api_key="k" * 40).close()
    gl.connect(replay=Path(__file__).parents[2] / "data" / "recorded").close()
    assert capsys.readouterr().err == ""


@pytest.mark.slow
def test_connect_answers_from_demo_whatever_else_was_played(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`connect` says in one line that a sandbox answers; `demo` does not, and has its own players."""
    with gl.demo("small", cache=False) as lens:
        frame = lens.query("new_users", over="last 3 complete days")
        address = lens._address
    assert "invented" not in capsys.readouterr().err  # a slow start reports its steps
    assert frame.lens.receipt.provenance.scenario == "small"
    assert sample_files("small").parent == demo_state("small")

    state.mkdir(exist_ok=True)  # as if `demo` had been played already: that takes half a minute
    played = population_id(load_scenario("demo"), today())
    (state / "played.json").write_bytes(msgspec.json.encode(played))
    with gl.connect(cache=False, api_key=None) as lens:
        assert lens._address != address
    (line,) = capsys.readouterr().err.splitlines()
    assert "a sandbox with invented players" in line
    assert "GAMELENS_API_KEY" in line
    ready = find_sandbox(state)
    assert ready is not None
    assert ready.organisations[0].titles == scenario_titles("demo")
    assert read_population_record(state) == played
    with gl.demo("small") as lens:  # still there, and not played again
        assert lens._address == address
