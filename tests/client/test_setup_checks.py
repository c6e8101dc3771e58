"""The checks of settings, keyring and cache that `gamelens doctor` prints."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from gamelens.client.answer_cache import AnswerCache
from gamelens.client.checks.setup_checks import CheckResult, cache_finding, has_problem, settings_findings, versions
from gamelens.client.connection.settings import Settings
from support.memory_keyring import MemoryKeyring, failing

Use = Callable[[MemoryKeyring], MemoryKeyring]


def checks_of(tmp_path: Path, environ: dict[str, str], file: str | None = None) -> list[CheckResult]:
    """Return the checks of settings from *environ* and a config file with the text *file*."""
    path = tmp_path / "config.toml"
    if file is not None:
        path.write_text(file)
        path.chmod(0o600)
    return list(settings_findings(Settings({}, environ, path), environ))


def test_every_value_has_a_source_and_no_key_is_shown(tmp_path: Path, use: Use) -> None:
    """Each setting is listed with its source, and no key or secret is printed."""
    use(MemoryKeyring({"secret_key": "sesame"}))
    environ = {"GAMELENS_API_KEY": "sesame", "GAMELENS_METRICS_URL": "https://a.example"}
    settings, keyring = checks_of(tmp_path, environ, 'game_key = "sesame"\ncollector_url = "https://b.example"\n')
    assert settings.says == (
        "metrics_url from the environment, collector_url from the config file, api_key from the environment, "
        "game_key from the config file, secret_key from the keyring"
    )
    assert keyring.says == "has secret_key"
    assert "sesame" not in f"{settings} {keyring}"


def test_a_key_alone_names_the_real_service(tmp_path: Path) -> None:
    """A key without an address belongs to the real service (Wire 2.1, Metrics addresses)."""
    assert "https://metrics.gameanalytics.com" in checks_of(tmp_path, {"GAMELENS_API_KEY": "k"})[0].says


def test_missing_settings_name_where_to_put_them(tmp_path: Path) -> None:
    """Without any setting the check names the environment variable and the config file."""
    assert (
        checks_of(tmp_path, {})[0].says
        == f"nothing in the environment (GAMELENS_API_KEY), nor in {tmp_path}/config.toml"
    )


def test_a_key_that_others_can_read_is_a_warning(tmp_path: Path) -> None:
    """A config file with a key and mode 0644 is a warning with the `chmod` to run."""
    checks_of(tmp_path, {}, 'api_key = "k"')
    (tmp_path / "config.toml").chmod(0o644)
    warning = list(settings_findings(Settings({}, {}, tmp_path / "config.toml"), {}))[1]
    assert (warning.mark, warning.next_step) == ("warning", f"chmod 600 {tmp_path}/config.toml")


@pytest.mark.parametrize(
    ("environ", "file", "message"),
    [
        ({}, 'apikey = "k"', "settings that gamelens does not know: apikey"),
        ({"GAMELENS_APIKEY": "k"}, "", "GAMELENS_APIKEY in the environment is not a setting"),
        ({"GAMELENS_METRICS_URL": "https://a.example"}, "", "metrics_url is set but api_key is not"),
        ({"GAMELENS_REPLAY": "answers"}, "", "answers from the recording in answers"),
    ],
)
def test_a_setting_without_effect_is_a_warning(
    tmp_path: Path, environ: dict[str, str], file: str, message: str
) -> None:
    """Unknown names, an address without a key and a replay folder are warnings."""
    warnings = [check for check in checks_of(tmp_path, environ, file) if check.mark == "warning"]
    assert [message in check.says for check in warnings] == [True]


def test_settings_with_an_effect_are_no_warning(tmp_path: Path) -> None:
    """Every documented environment variable is recognised."""
    environ = {
        "GAMELENS_API_KEY": "k",
        "GAMELENS_CACHE_DIR": "a",
        "GAMELENS_RUNTIME_DIR": "b",
        "GAMELENS_STATE_DIR": "c",
    }
    assert {check.mark for check in checks_of(tmp_path, environ)} == {"ok"}


def test_a_file_that_cannot_be_read_is_a_problem(tmp_path: Path) -> None:
    """A config file that is not TOML is a problem that names the file."""
    problems = checks_of(tmp_path, {}, "api_key = ")
    assert has_problem(problems)
    assert problems[0].next_step == f"correct {tmp_path}/config.toml"


def test_a_broken_keyring_is_a_warning(tmp_path: Path, use: Use) -> None:
    """A keyring that raises is a warning with the error type and without its message."""
    use(MemoryKeyring({}, failing(RuntimeError("sesame"))))
    assert checks_of(tmp_path, {})[-1] == CheckResult.warning(
        "keyring", "cannot be used: RuntimeError", "see what `keyring diagnose` says, or put the key somewhere else"
    )


def test_a_working_cache_is_ok(tmp_path: Path) -> None:
    """A cache that works is reported as ok."""
    assert cache_finding(AnswerCache(tmp_path, owner="o")).mark == "ok"


def test_a_cache_that_is_off_is_a_warning_with_the_reason(tmp_path: Path) -> None:
    """A cache that cannot be used is a warning that names what cannot, in the words of the system."""
    (tmp_path / "file").write_text("")
    finding = cache_finding(AnswerCache(tmp_path / "file", owner="o"))
    assert finding.mark == "warning"
    assert finding.says == f"off: {tmp_path / 'file' / 'answers-2' / 'answers.sqlite'} cannot be used (Not a directory)"


def test_versions_are_those_installed() -> None:
    """The versions of Python, gamelens, pandas and pyarrow are listed."""
    assert [word.split()[0] for word in versions().says.split(", ")] == ["python", "gamelens", "pandas", "pyarrow"]
