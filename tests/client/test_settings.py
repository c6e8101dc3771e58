"""Settings: arguments, then environment, then config file."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from gamelens.client.connection.settings import Secret, collector_settings, metrics_settings
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


LOOPBACK = ["http://127.0.0.1:80", "http://localhost:8080", "http://[::1]:80", "http://127.8.8.8", "http://LOCALHOST"]
BEYOND = ["http://a.example", "http://10.0.0.5:80", "http://[::2]", "http://localhost.example", "http://0.0.0.0:80"]


@pytest.mark.parametrize("address", LOOPBACK)
def test_plain_http_is_allowed_on_this_machine(address: str, tmp_path: Path) -> None:
    """An http address of loopback needs no leave."""
    file = tmp_path / "none.toml"
    assert metrics_settings(api_key="k", metrics_url=address, environ={}, file=file).metrics_url == address


@pytest.mark.parametrize("address", BEYOND)
def test_plain_http_beyond_this_machine_is_refused(address: str, tmp_path: Path) -> None:
    """Another http address is a `BadQuery` that names the ways to allow it."""
    file = tmp_path / "none.toml"
    ways = r"pass allow_http=True, set GAMELENS_ALLOW_HTTP=1, or write allow_http = true into .*none\.toml"
    with pytest.raises(BadQuery, match=f"metrics_url = .* must be https.*{ways}"):
        metrics_settings(api_key="k", metrics_url=address, environ={}, file=file)
    with pytest.raises(BadQuery, match=f"collector_url = .* must be https.*{ways}"):
        collector_settings(collector_url=address, game_key="g", secret_key="s", environ={}, file=file)


def http_settings(folder: Path, environ: dict[str, str], text: str = "", *, allow_http: bool = False) -> str:
    """Return the address of settings with a plain http address in the environment."""
    environ = {"GAMELENS_API_KEY": "k", "GAMELENS_METRICS_URL": "http://a.example"} | environ
    file = config(folder, text)
    settings = metrics_settings(api_key=None, metrics_url=None, allow_http=allow_http, environ=environ, file=file)
    return settings.metrics_url


@pytest.mark.parametrize(
    ("environ", "text", "given"),
    [
        ({}, "", True),
        *[({"GAMELENS_ALLOW_HTTP": word}, "", False) for word in ("1", "true", "True", "yes", "on")],
        ({}, "allow_http = true", False),
        ({}, 'allow_http = "yes"', False),
    ],
)
def test_plain_http_can_be_allowed(environ: dict[str, str], text: str, given: bool, tmp_path: Path) -> None:
    """Argument, variable and config file allow plain http."""
    assert http_settings(tmp_path, environ, text, allow_http=given) == "http://a.example"


@pytest.mark.parametrize(
    ("environ", "text"),
    [
        *[({"GAMELENS_ALLOW_HTTP": word}, "") for word in ("", "0", "false", "no", "off")],
        ({}, "allow_http = false"),
        ({"GAMELENS_ALLOW_HTTP": "0"}, "allow_http = true"),
    ],
)
def test_plain_http_can_be_forbidden(environ: dict[str, str], text: str, tmp_path: Path) -> None:
    """A false value refuses plain http, and the environment wins over the config file."""
    with pytest.raises(BadQuery, match="must be https"):
        http_settings(tmp_path, environ, text)


@pytest.mark.parametrize(
    ("environ", "text"),
    [({"GAMELENS_ALLOW_HTTP": "maybe"}, ""), ({}, 'allow_http = "maybe"'), ({}, "allow_http = 7")],
)
def test_a_leave_that_is_neither_true_nor_false_is_refused(environ: dict[str, str], text: str, tmp_path: Path) -> None:
    """Any other value is a `BadQuery` with the setting and its source."""
    with pytest.raises(BadQuery, match="allow_http"):
        http_settings(tmp_path, environ, text)


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
    with pytest.raises(TypeError, match="pass it again"):
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
