"""What `gamelens doctor` says about this machine."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from gamelens.client.cache.answer_cache import AnswerCache
from gamelens.client.connection.settings import Settings
from gamelens.client.setup_checks import Finding, cache_finding, has_problem, settings_findings, versions
from support.memory_keyring import Drawer, failing

Use = Callable[[Drawer], Drawer]


def found(tmp_path: Path, environ: dict[str, str], file: str | None = None) -> list[Finding]:
    path = tmp_path / "config.toml"
    if file is not None:
        path.write_text(file)
        path.chmod(0o600)
    return list(settings_findings(Settings({}, environ, path), environ))


def test_every_value_has_a_source_and_no_key_is_shown(tmp_path: Path, use: Use) -> None:
    use(Drawer({"secret_key": "sesame"}))
    environ = {"GAMELENS_API_KEY": "sesame", "GAMELENS_METRICS_URL": "https://a.example"}
    settings, keyring = found(tmp_path, environ, 'game_key = "sesame"\ncollector_url = "https://b.example"\n')
    assert settings.says == (
        "metrics_url from the environment, collector_url from the config file, api_key from the environment, "
        "game_key from the config file, secret_key from the keyring"
    )
    assert keyring.says == "has secret_key"
    assert "sesame" not in f"{settings} {keyring}"


def test_a_key_alone_says_that_the_real_service_is_asked(tmp_path: Path) -> None:
    assert "https://metrics.gameanalytics.com" in found(tmp_path, {"GAMELENS_API_KEY": "k"})[0].says


def test_nothing_set_says_where_it_could_be(tmp_path: Path) -> None:
    assert (
        found(tmp_path, {})[0].says == f"nothing in the environment (GAMELENS_API_KEY), nor in {tmp_path}/config.toml"
    )


def test_a_key_that_others_can_read_is_a_warning(tmp_path: Path) -> None:
    found(tmp_path, {}, 'api_key = "k"')
    (tmp_path / "config.toml").chmod(0o644)
    warning = list(settings_findings(Settings({}, {}, tmp_path / "config.toml"), {}))[1]
    assert (warning.mark, warning.next_step) == ("warning", f"chmod 600 {tmp_path}/config.toml")


@pytest.mark.parametrize(
    ("environ", "file", "says"),
    [
        ({}, 'apikey = "k"', "names that mean nothing: apikey"),
        ({"GAMELENS_APIKEY": "k"}, "", "GAMELENS_APIKEY in the environment means nothing"),
        ({"GAMELENS_METRICS_URL": "https://a.example"}, "", "metrics_url is set and no api_key"),
        ({"GAMELENS_REPLAY": "answers"}, "", "answers from the recording in answers"),
    ],
)
def test_what_has_no_effect_is_a_warning(tmp_path: Path, environ: dict[str, str], file: str, says: str) -> None:
    warnings = [it for it in found(tmp_path, environ, file) if it.mark == "warning"]
    assert [says in it.says for it in warnings] == [True]


def test_what_has_an_effect_is_none(tmp_path: Path) -> None:
    environ = {
        "GAMELENS_API_KEY": "k",
        "GAMELENS_CACHE_DIR": "a",
        "GAMELENS_RUNTIME_DIR": "b",
        "GAMELENS_STATE_DIR": "c",
    }
    assert {it.mark for it in found(tmp_path, environ)} == {"ok"}


def test_a_file_that_cannot_be_read_is_a_problem(tmp_path: Path) -> None:
    problems = found(tmp_path, {}, "api_key = ")
    assert has_problem(problems)
    assert problems[0].next_step == f"correct {tmp_path}/config.toml"


def test_a_broken_keyring_is_a_warning(tmp_path: Path, use: Use) -> None:
    use(Drawer({}, failing(RuntimeError("sesame"))))
    assert found(tmp_path, {})[-1] == Finding.warning(
        "keyring", "is of no use: RuntimeError", "see what `keyring diagnose` says, or put the key somewhere else"
    )


def test_a_cache_says_what_it_holds(tmp_path: Path) -> None:
    assert cache_finding(AnswerCache(tmp_path, owner="o")).mark == "ok"


def test_a_cache_that_is_off_says_why(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    finding = cache_finding(AnswerCache(tmp_path / "file", owner="o"))
    assert finding.mark == "warning"
    assert "NotADirectoryError" in finding.says or "FileExistsError" in finding.says


def test_versions_are_those_installed() -> None:
    assert [word.split()[0] for word in versions().says.split(", ")] == ["python", "gamelens", "pandas", "pyarrow"]
