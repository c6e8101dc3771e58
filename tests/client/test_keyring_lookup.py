"""The user's keyring: read last, once per name, and never a reason to fail."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from keyring.errors import KeyringLocked, NoKeyringError

from gamelens.client.connection.settings import KeyringLookup, Settings, collector_settings, metrics_settings
from gamelens.errors import AuthError
from gamelens.local.connect import connect
from support.memory_keyring import MemoryKeyring, failing

Use = Callable[[MemoryKeyring], MemoryKeyring]


def test_the_keyring_is_read_last(use: Use, tmp_path: Path) -> None:
    """A key found nowhere else is read from the keyring, the last source of settings."""
    use(MemoryKeyring({"api_key": "from-keyring"}))
    settings = metrics_settings(api_key=None, metrics_url=None, environ={}, file=tmp_path / "none.toml")
    assert settings.api_key.reveal() == "from-keyring"


def test_collector_keys_are_read_from_the_keyring_too(use: Use, tmp_path: Path) -> None:
    """Game key and secret key are read from the keyring too."""
    use(MemoryKeyring({"game_key": "g", "secret_key": "s"}))
    settings = collector_settings(
        collector_url="https://a.example", game_key=None, secret_key=None, environ={}, file=tmp_path / "none.toml"
    )
    assert (settings.game_key, settings.secret_key.reveal()) == ("g", "s")


@pytest.mark.parametrize("place", ["argument", "environment", "config file"])
def test_the_keyring_is_not_read_for_a_key_set_elsewhere(use: Use, tmp_path: Path, place: str) -> None:
    """A key set elsewhere leaves the keyring closed, since reading it may open a window."""
    ring = use(MemoryKeyring({"api_key": "from-keyring"}))
    file = tmp_path / "config.toml"
    file.write_text('api_key = "said"' if place == "config file" else "")
    environ = {"GAMELENS_API_KEY": "said"} if place == "environment" else {}
    settings = Settings({"api_key": "said" if place == "argument" else None}, environ, file)
    assert (settings.find("api_key"), settings.source("api_key"), ring.requested) == ("said", place, [])


def test_an_address_is_never_read_from_the_keyring(use: Use, tmp_path: Path) -> None:
    """Only keys are read from the keyring, never an address."""
    ring = use(MemoryKeyring({"metrics_url": "https://elsewhere.example", "api_key": "k"}))
    settings = metrics_settings(api_key=None, metrics_url=None, environ={}, file=tmp_path / "none.toml")
    assert (settings.metrics_url, ring.requested) == ("https://metrics.gameanalytics.com", ["api_key"])


def test_the_keyring_is_read_once_for_each_name(use: Use, tmp_path: Path) -> None:
    """Repeated lookups of a name read the keyring once."""
    ring = use(MemoryKeyring({"api_key": "from-keyring"}))
    settings = Settings({}, {}, tmp_path / "none.toml")
    assert settings.source("api_key") == "keyring"
    assert settings.find("api_key") == "from-keyring"
    assert ring.requested == ["api_key"]


@pytest.mark.parametrize(
    ("error", "trouble"),
    [
        (KeyringLocked("Failed to unlock the collection!"), "KeyringLocked: Failed to unlock the collection!"),
        (ValueError("the password is sesame"), "ValueError"),
    ],
)
def test_a_failing_keyring_is_no_error_and_is_not_read_again(
    use: Use, tmp_path: Path, error: Exception, trouble: str
) -> None:
    """A keyring that raises counts as empty, is not read again, and is named in the error."""
    ring = use(MemoryKeyring({}, failing(error)))
    settings = Settings({}, {}, tmp_path / "none.toml")
    assert [settings.find("api_key"), settings.find("secret_key")] == [None, None]
    assert (settings.keyring.error, ring.requested) == (trouble, ["api_key"])
    with pytest.raises(AuthError, match=rf"keyring set gamelens api_key` \(now it fails: {trouble[:10]}"):
        settings.metrics()


def test_connecting_reads_the_keyring_once(use: Use, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`connect` reads the keyring once, since each time may open a window."""
    ring = use(MemoryKeyring({"api_key": "from-keyring"}))
    monkeypatch.delenv("GAMELENS_API_KEY", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    with connect(metrics_url="http://127.0.0.1:9") as client:
        assert "Client of http://127.0.0.1:9: " in repr(client)
        assert ring.requested == ["api_key"]


def test_a_machine_without_a_keyring_is_no_failure(use: Use) -> None:
    """A machine without a keyring service is not reported as a failure."""
    use(MemoryKeyring({}, failing(NoKeyringError())))
    keychain = KeyringLookup()
    assert (keychain.find("api_key"), keychain.error) == (None, None)


def test_a_keyring_that_does_not_answer_times_out(use: Use) -> None:
    """A keyring that does not answer within `wait_s` counts as failed."""
    answered = threading.Event()
    use(MemoryKeyring({"api_key": "late"}, lambda: answered.wait(10)))
    keychain = KeyringLookup(wait_s=0.05)
    assert (keychain.find("api_key"), keychain.error) == (None, "it did not answer within 0.05 s")
    answered.set()
