"""Where addresses and keys come from (settings order: arguments, environment, config file)."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from gamelens.client.connection.settings import Secret, metrics_settings
from gamelens.errors import AuthError, BadQuery

ENVIRON = {"GAMELENS_API_KEY": "from-environment", "GAMELENS_METRICS_URL": "https://environment.example"}


def config(folder: Path, text: str = 'api_key = "from-file"\nmetrics_url = "https://file.example"\n') -> Path:
    file = folder / "config.toml"
    file.write_text(text)
    return file


def test_an_argument_wins_over_the_environment(tmp_path: Path) -> None:
    settings = metrics_settings(
        api_key="given", metrics_url="https://given.example/", environ=ENVIRON, file=config(tmp_path)
    )
    assert (settings.api_key.reveal(), settings.metrics_url) == ("given", "https://given.example")


def test_the_environment_wins_over_the_config_file(tmp_path: Path) -> None:
    settings = metrics_settings(api_key=None, metrics_url=None, environ=ENVIRON, file=config(tmp_path))
    assert (settings.api_key.reveal(), settings.metrics_url) == ("from-environment", "https://environment.example")


def test_the_config_file_speaks_where_nobody_else_does(tmp_path: Path) -> None:
    settings = metrics_settings(api_key=None, metrics_url=None, environ={}, file=config(tmp_path))
    assert (settings.api_key.reveal(), settings.metrics_url) == ("from-file", "https://file.example")


def test_a_missing_key_says_where_to_put_it(tmp_path: Path) -> None:
    with pytest.raises(AuthError, match="pass api_key=, set GAMELENS_API_KEY, or write api_key into"):
        metrics_settings(api_key=None, metrics_url="https://a.example", environ={}, file=tmp_path / "none.toml")


def test_a_key_alone_is_a_key_of_the_real_service(tmp_path: Path) -> None:
    """Public facts 3.1."""
    settings = metrics_settings(api_key="k", metrics_url=None, environ={}, file=tmp_path / "none.toml")
    assert settings.metrics_url == "https://metrics.gameanalytics.com"


@pytest.mark.parametrize("address", ["metrics.example", "ftp://metrics.example", "https://", "https://a.example?x=1"])
def test_an_address_that_is_none_is_refused(address: str) -> None:
    with pytest.raises(BadQuery, match="metrics_url"):
        metrics_settings(api_key="k", metrics_url=address, environ={})


def test_an_address_with_a_password_is_refused_without_quoting_it() -> None:
    with pytest.raises(BadQuery) as refused:
        metrics_settings(api_key="k", metrics_url="https://ann:hunter2@a.example", environ={})
    assert "hunter2" not in str(refused.value)


def test_a_broken_config_file_is_named_and_its_key_is_not(tmp_path: Path) -> None:
    file = config(tmp_path, 'api_key = "sesame" "twice"\n')
    with pytest.raises(BadQuery, match=r"config\.toml") as refused:
        metrics_settings(api_key=None, metrics_url="https://a.example", environ={}, file=file)
    assert "sesame" not in str(refused.value)


def test_a_secret_has_no_words_for_itself() -> None:
    secret = Secret("sesame")
    assert "sesame" not in f"{secret!r} {secret!s} {secret} {[secret]} {secret.fingerprint}"


def test_a_secret_is_not_pickled() -> None:
    with pytest.raises(TypeError, match="hand it over again"):
        pickle.dumps(Secret("sesame"))


@pytest.mark.parametrize("value", ["", "  ", "two words", "line\nbreak", "schlüssel"])
def test_what_cannot_stand_in_a_header_is_no_key(value: str) -> None:
    with pytest.raises(AuthError) as refused:
        Secret(value)
    assert value.strip() == "" or value not in str(refused.value)


def test_the_line_break_of_a_copied_key_does_no_harm() -> None:
    assert Secret("sesame\n").reveal() == "sesame"
