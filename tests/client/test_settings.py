"""Settings: arguments, then environment, then config file."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from gamelens.client.connection.settings import Secret, metrics_settings
from gamelens.errors import AuthError, BadQuery

ENVIRON = {"GAMELENS_API_KEY": "from-environment", "GAMELENS_METRICS_URL": "https://environment.example"}


def config(folder: Path, text: str = 'api_key = "from-file"\nmetrics_url = "https://file.example"\n') -> Path:
    """Write a config file and return its path."""
    file = folder / "config.toml"
    file.write_text(text)
    return file


def test_an_argument_wins_over_the_environment(tmp_path: Path) -> None:
    """An argument is used before the environment and the config file."""
    settings = metrics_settings(
        api_key="given", metrics_url="https://given.example/", environ=ENVIRON, file=config(tmp_path)
    )
    assert (settings.api_key.reveal(), settings.metrics_url) == ("given", "https://given.example")


def test_the_environment_wins_over_the_config_file(tmp_path: Path) -> None:
    """The environment is used before the config file."""
    settings = metrics_settings(api_key=None, metrics_url=None, environ=ENVIRON, file=config(tmp_path))
    assert (settings.api_key.reveal(), settings.metrics_url) == ("from-environment", "https://environment.example")


def test_the_config_file_is_read_last(tmp_path: Path) -> None:
    """The config file is used if neither argument nor environment is set."""
    settings = metrics_settings(api_key=None, metrics_url=None, environ={}, file=config(tmp_path))
    assert (settings.api_key.reveal(), settings.metrics_url) == ("from-file", "https://file.example")


def test_a_missing_key_is_refused_with_where_to_put_it(tmp_path: Path) -> None:
    """A missing key is an `AuthError` that lists argument, variable and file."""
    with pytest.raises(AuthError, match="pass api_key=, set GAMELENS_API_KEY, or write api_key into"):
        metrics_settings(api_key=None, metrics_url="https://a.example", environ={}, file=tmp_path / "none.toml")


def test_a_key_alone_is_a_key_of_the_real_service(tmp_path: Path) -> None:
    """A key without an address is used at the real service (Wire 2.1, Metrics addresses)."""
    settings = metrics_settings(api_key="k", metrics_url=None, environ={}, file=tmp_path / "none.toml")
    assert settings.metrics_url == "https://metrics.gameanalytics.com"


@pytest.mark.parametrize("address", ["metrics.example", "ftp://metrics.example", "https://", "https://a.example?x=1"])
def test_an_invalid_address_is_refused(address: str) -> None:
    """An address needs http or https and a host, and has no query string."""
    with pytest.raises(BadQuery, match="metrics_url"):
        metrics_settings(api_key="k", metrics_url=address, environ={})


def test_an_address_with_a_password_is_refused_without_quoting_it() -> None:
    """An address with a password is refused, and the error does not repeat it."""
    with pytest.raises(BadQuery) as refused:
        metrics_settings(api_key="k", metrics_url="https://ann:hunter2@a.example", environ={})
    assert "hunter2" not in str(refused.value)


def test_a_broken_config_file_is_named_and_its_key_is_not(tmp_path: Path) -> None:
    """The error of a broken config file has its name and none of its values."""
    file = config(tmp_path, 'api_key = "sesame" "twice"\n')
    with pytest.raises(BadQuery, match=r"config\.toml") as refused:
        metrics_settings(api_key=None, metrics_url="https://a.example", environ={}, file=file)
    assert "sesame" not in str(refused.value)


def test_a_secret_is_never_printed() -> None:
    """No text or fingerprint of a secret contains it."""
    secret = Secret("sesame")
    assert "sesame" not in f"{secret!r} {secret!s} {secret} {[secret]} {secret.fingerprint}"


def test_a_secret_is_not_pickled() -> None:
    """Pickling a secret is a `TypeError`."""
    with pytest.raises(TypeError, match="hand it over again"):
        pickle.dumps(Secret("sesame"))


@pytest.mark.parametrize("value", ["", "  ", "two words", "line\nbreak", "schlüssel"])
def test_a_key_that_fits_no_header_is_refused(value: str) -> None:
    """A key is visible ASCII without spaces, and the error does not quote it."""
    with pytest.raises(AuthError) as refused:
        Secret(value)
    assert value.strip() == "" or value not in str(refused.value)


def test_a_line_break_after_a_key_is_removed() -> None:
    """White space around a pasted key is removed."""
    assert Secret("sesame\n").reveal() == "sesame"
