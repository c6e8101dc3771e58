"""Where addresses and keys come from: arguments, then the environment, then the user's config file, then keyring.

The file is `config.toml` in the user's configuration folder for gamelens (platformdirs); its names are those of the
arguments: api_key, metrics_url, collector_url, game_key, secret_key. Keyring is asked for keys only.
"""

from __future__ import annotations

import hashlib
import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Literal
from urllib.parse import urlsplit

import msgspec
import platformdirs

from gamelens.client.connection.keyring_lookup import SERVICE, KeyringLookup
from gamelens.errors import AuthError, BadQuery

Source = Literal["argument", "environment", "config file", "keyring"]

PREFIX = "GAMELENS_"
ADDRESSES: Final = ("metrics_url", "collector_url")
KEYS: Final = ("api_key", "game_key", "secret_key")
REAL_METRICS_URL = "https://metrics.gameanalytics.com"  # public facts 3.1: a key alone is a key of the real service


class Secret:
    """A key that no repr, format or log line can give away; only `reveal` does."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value.strip()
        # What cannot stand in a header would end up, quoted, in somebody else's error message.
        if not self._value or not all("!" <= letter <= "~" for letter in self._value):
            raise AuthError("the key is empty or holds characters that no key has: copy it again")

    def reveal(self) -> str:
        """The key itself, for the one line that sends it."""
        return self._value

    @property
    def fingerprint(self) -> str:
        """Sixteen hex digits that tell keys apart and say nothing about them."""
        return hashlib.sha256(self._value.encode()).hexdigest()[:16]

    def __repr__(self) -> str:
        return "Secret(…)"

    def __reduce__(self) -> str:
        raise TypeError("a key is not written anywhere: hand it over again")


class MetricsSettings(msgspec.Struct, frozen=True):
    """What a metrics client needs to know."""

    metrics_url: str
    api_key: Secret


class CollectorSettings(msgspec.Struct, frozen=True):
    """What a collector client needs to know."""

    collector_url: str
    game_key: str
    secret_key: Secret


class Settings:
    """Looks one value up after the other: what was given wins over the environment, over the file, over keyring.

    Args:
        given: the arguments.
        environ: the environment.
        file: the config file, there or not.
        keychain: asked for keys that are nowhere else.
    """

    def __init__(
        self,
        given: Mapping[str, str | None],
        environ: Mapping[str, str],
        file: Path,
        keychain: KeyringLookup | None = None,
    ) -> None:
        self.file = file
        self.keychain = keychain or KeyringLookup()
        self._given = given
        self._environ = environ
        self._stored: Mapping[str, object] | None = None

    @classmethod
    def from_environment(cls, keychain: KeyringLookup | None = None) -> Settings:
        """Return the settings of this process: its environment, the user's config file and keyring."""
        return cls({}, os.environ, config_file(), keychain)

    def find(self, name: str) -> str | None:
        """The value of *name*, or None where nobody says it. An empty string says nothing."""
        return self._look(name)[0]

    def source(self, name: str) -> Source | None:
        """Who says the value of *name*; None where nobody does."""
        return self._look(name)[1]

    @property
    def strange(self) -> list[str]:
        """Names in the config file that mean nothing."""
        return sorted(set(self._in_file()) - {*ADDRESSES, *KEYS})

    def address(self, name: str, *, default: str | None = None) -> str:
        """The service address called *name*, else *default*, without a slash at its end.

        Raises:
            BadQuery: it is missing, or is no http(s) address, or holds a user name or password.
        """
        value = self.find(name) or default
        if value is None:
            raise BadQuery(name, None, f"is missing: {self._places(name)}")
        parts = urlsplit(value)
        if parts.username is not None or parts.password is not None:
            raise BadQuery(name, "…", "must not hold a user name or password")
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
            raise BadQuery(name, value, "must be an address such as https://metrics.example.com")
        return value.rstrip("/")

    def secret(self, name: str) -> Secret:
        """The key called *name*.

        Raises:
            AuthError: there is none.
        """
        return Secret(self.text(name))

    def text(self, name: str) -> str:
        """The credential called *name*.

        Raises:
            AuthError: there is none.
        """
        value = self.find(name)
        if value is None:
            raise AuthError(f"no {name}: {self._places(name)}")
        return value

    def metrics(self) -> MetricsSettings:
        """Address and key of the metrics service; where nobody says an address, the real one.

        Raises:
            AuthError: no key anywhere.
            BadQuery: the address is none.
        """
        return MetricsSettings(self.address("metrics_url", default=REAL_METRICS_URL), self.secret("api_key"))

    def _look(self, name: str) -> tuple[str, Source] | tuple[None, None]:
        if value := self._given.get(name):
            return value, "argument"
        if value := self._environ.get(PREFIX + name.upper()):
            return value, "environment"
        if value := self._stored_text(name):
            return value, "config file"
        # Last, and only if need be: it may open a window.
        if name in KEYS and (value := self.keychain.find(name)):
            return value, "keyring"
        return None, None

    def _stored_text(self, name: str) -> str | None:
        value = self._in_file().get(name)
        if value is not None and not isinstance(value, str):
            raise BadQuery(f"{name} in {self.file}", type(value).__name__, "must be a string")
        return value or None

    def _in_file(self) -> Mapping[str, object]:
        if self._stored is None:
            self._stored = _read(self.file)
        return self._stored

    def _places(self, name: str) -> str:
        places = f"pass {name}=, set {PREFIX}{name.upper()}, or write {name} into {self.file}"
        if name not in KEYS:
            return places
        trouble = f" (asked: {self.keychain.trouble})" if self.keychain.trouble else ""
        return f"{places} or, with the package keyring, `keyring set {SERVICE} {name}`{trouble}"


def config_file() -> Path:
    """The user's config file, there or not."""
    return platformdirs.user_config_path("gamelens") / "config.toml"


def metrics_settings(
    *, api_key: str | None, metrics_url: str | None, environ: Mapping[str, str] = os.environ, file: Path | None = None
) -> MetricsSettings:
    """Address and key of the metrics service; where nobody says an address, the real one.

    Raises:
        AuthError: no key anywhere.
        BadQuery: the address is none.
    """
    return Settings({"api_key": api_key, "metrics_url": metrics_url}, environ, file or config_file()).metrics()


def collector_settings(
    *,
    collector_url: str | None,
    game_key: str | None,
    secret_key: str | None,
    environ: Mapping[str, str] = os.environ,
    file: Path | None = None,
) -> CollectorSettings:
    """Address and both keys of one game at the collector; errors as `metrics_settings`."""
    given = {"collector_url": collector_url, "game_key": game_key, "secret_key": secret_key}
    settings = Settings(given, environ, file or config_file())
    return CollectorSettings(
        settings.address("collector_url"), settings.text("game_key"), settings.secret("secret_key")
    )


def _read(file: Path) -> Mapping[str, object]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        # A TOML error quotes the place, never the line, so no key gets out with it.
        raise BadQuery("config file", str(file), f"cannot be read: {error}") from None
