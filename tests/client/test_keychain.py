"""The user's keyring: asked last, once, and never in the way."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from keyring.errors import KeyringLocked, NoKeyringError

from gamelens.client.connection.keyring_lookup import KeyringLookup
from gamelens.client.connection.settings import Settings, collector_settings, metrics_settings
from gamelens.errors import AuthError
from gamelens.local.connect import connect
from support.memory_keyring import Drawer, failing

Use = Callable[[Drawer], Drawer]


def test_keyring_has_the_last_word(use: Use, tmp_path: Path) -> None:
    """contract, Settings: then keyring where installed."""
    use(Drawer({"api_key": "from-keyring"}))
    settings = metrics_settings(api_key=None, metrics_url=None, environ={}, file=tmp_path / "none.toml")
    assert settings.api_key.reveal() == "from-keyring"


def test_collector_keys_are_there_too(use: Use, tmp_path: Path) -> None:
    use(Drawer({"game_key": "g", "secret_key": "s"}))
    found = collector_settings(
        collector_url="https://a.example", game_key=None, secret_key=None, environ={}, file=tmp_path / "none.toml"
    )
    assert (found.game_key, found.secret_key.reveal()) == ("g", "s")


@pytest.mark.parametrize("place", ["argument", "environment", "config file"])
def test_it_is_not_asked_where_somebody_else_says_it(use: Use, tmp_path: Path, place: str) -> None:
    """It may open a window."""
    drawer = use(Drawer({"api_key": "from-keyring"}))
    file = tmp_path / "config.toml"
    file.write_text('api_key = "said"' if place == "config file" else "")
    environ = {"GAMELENS_API_KEY": "said"} if place == "environment" else {}
    settings = Settings({"api_key": "said" if place == "argument" else None}, environ, file)
    assert (settings.find("api_key"), settings.source("api_key"), drawer.asked) == ("said", place, [])


def test_an_address_is_never_looked_for_in_it(use: Use, tmp_path: Path) -> None:
    drawer = use(Drawer({"metrics_url": "https://elsewhere.example", "api_key": "k"}))
    settings = metrics_settings(api_key=None, metrics_url=None, environ={}, file=tmp_path / "none.toml")
    assert (settings.metrics_url, drawer.asked) == ("https://metrics.gameanalytics.com", ["api_key"])


def test_it_is_asked_once_for_each_name(use: Use, tmp_path: Path) -> None:
    drawer = use(Drawer({"api_key": "from-keyring"}))
    settings = Settings({}, {}, tmp_path / "none.toml")
    assert settings.source("api_key") == "keyring"
    assert settings.find("api_key") == "from-keyring"
    assert drawer.asked == ["api_key"]


@pytest.mark.parametrize(
    ("error", "trouble"),
    [
        (KeyringLocked("Failed to unlock the collection!"), "KeyringLocked: Failed to unlock the collection!"),
        (ValueError("the password is sesame"), "ValueError"),
    ],
)
def test_a_broken_one_is_no_error_and_is_left_alone(use: Use, tmp_path: Path, error: Exception, trouble: str) -> None:
    drawer = use(Drawer({}, failing(error)))
    settings = Settings({}, {}, tmp_path / "none.toml")
    assert [settings.find("api_key"), settings.find("secret_key")] == [None, None]
    assert (settings.keychain.trouble, drawer.asked) == (trouble, ["api_key"])
    with pytest.raises(AuthError, match=rf"keyring set gamelens api_key` \(asked: {trouble[:10]}"):
        settings.metrics()


def test_connecting_asks_once(use: Use, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each time may open a window."""
    drawer = use(Drawer({"api_key": "from-keyring"}))
    monkeypatch.delenv("GAMELENS_API_KEY", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    with connect(metrics_url="http://127.0.0.1:9") as client:
        assert (repr(client), drawer.asked) == ("Client('http://127.0.0.1:9')", ["api_key"])


def test_a_machine_without_one_is_in_no_trouble(use: Use) -> None:
    use(Drawer({}, failing(NoKeyringError())))
    keychain = KeyringLookup()
    assert (keychain.find("api_key"), keychain.trouble) == (None, None)


def test_one_that_does_not_answer_is_not_waited_for(use: Use) -> None:
    answered = threading.Event()
    use(Drawer({"api_key": "late"}, lambda: answered.wait(10)))
    keychain = KeyringLookup(wait_s=0.05)
    assert (keychain.find("api_key"), keychain.trouble) == (None, "it did not answer within 0.05 s")
    answered.set()
