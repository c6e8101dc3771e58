"""Addresses and keys from arguments, environment, the user's config file and keyring.

The first of these sources that has a value wins. The file is `config.toml` in the user's configuration folder for
gamelens (platformdirs), with the names of the arguments: api_key, metrics_url, collector_url, game_key, secret_key,
allow_http, and lake, the folder of one's own lake. Its table `metrics` has own metrics. The keyring is used for keys
only.
"""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
import threading
import tomllib
from collections.abc import Collection, Mapping
from contextlib import suppress
from functools import cached_property
from importlib.util import find_spec
from ipaddress import ip_address
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, Final, Literal
from urllib.parse import SplitResult, urlsplit, urlunsplit

import msgspec
import platformdirs
from msgspec import UNSET

from gamelens.catalog import Catalog
from gamelens.errors import AuthError, BadQuery, Refused

SettingOrigin = Literal["argument", "environment", "config file", "keyring"]

PREFIX = "GAMELENS_"
SERVICE: Final = "gamelens"
WAIT_S: Final = 30.0  # of a lookup in the keyring: long enough to click on "Allow"
ADDRESSES: Final = ("metrics_url", "collector_url")
KEYS: Final = ("api_key", "game_key", "secret_key")
COLLECTOR_SETTINGS: Final = ("collector_url", "game_key", "secret_key")
ALLOW_HTTP: Final = "allow_http"
LAKE: Final = "lake"
OWN_METRICS: Final = "metrics"
# The address that belongs to a key without an address (Wire 2.1, Metrics addresses).
REAL_METRICS_URL = "https://metrics.gameanalytics.com"
_TRUE: Final = ("1", "true", "yes", "on")
_FALSE: Final = ("0", "false", "no", "off")
# A JSON string with an escape. An unterminated one matches to the end, or the search would restart at each quote.
_ESCAPED: Final = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)++(?:"|\\?\Z)', re.DOTALL)


class Secret:
    """A key that appears in no repr, format or log line, and the *source* it is from."""

    __slots__ = ("_value", "source")

    def __init__(self, value: str, source: SettingOrigin = "argument") -> None:
        self._value = value.strip()
        self.source: SettingOrigin = source
        # A value that is not a valid header would be quoted in the error message of a library.
        if not self._value or not all("!" <= letter <= "~" for letter in self._value):
            raise AuthError("the key is empty or has characters that no key has: copy it again")

    def reveal(self) -> str:
        """Return the key, for the one line that sends it."""
        return self._value

    @property
    def fingerprint(self) -> str:
        """Sixteen hex digits that identify the key without revealing it."""
        return hashlib.sha256(self._value.encode()).hexdigest()[:16]

    def mask(self, text: str) -> str:
        """Return *text* with the key redacted."""
        return text.replace(self._value, "…")

    def mask_body(self, body: bytes) -> bytes:
        """Return *body* with the key redacted, also where JSON escapes write it."""
        body = body.replace(self._value.encode(), "…".encode())
        return _ESCAPED.sub(lambda match: self._masked_string(match.group()), body) if b"\\" in body else body

    def _masked_string(self, quoted: bytes) -> bytes:
        """Return a JSON string without the key, or unchanged if it is not JSON."""
        try:
            text = msgspec.json.decode(quoted, type=str)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return quoted
        return msgspec.json.encode(self.mask(text)) if self._value in text else quoted

    def __repr__(self) -> str:
        return "Secret(…)"

    def __reduce__(self) -> str:
        raise TypeError("a key is never pickled: pass it again")


class MetricsSettings(msgspec.Struct, frozen=True):
    """Address and key of a metrics service.

    *key_hint* has the source of the key and the places to set another, for the error of a refused key.
    """

    metrics_url: str
    api_key: Secret
    key_hint: str = ""


class CollectorSettings(msgspec.Struct, frozen=True):
    """Address and keys of one game at a collector. The secret key signs requests and is never sent."""

    collector_url: str
    game_key: str
    secret_key: Secret
    key_hint: str = ""


class KeyringLookup:
    """Keys from the user's keyring, if the package `keyring` is installed: `keyring set gamelens api_key`.

    Each name is looked up once. A failure of the backend is stored in `error`, and no further lookup is tried. Some
    backends open a window or wait for a service that does not run, so a lookup takes *wait_s* at most.
    """

    def __init__(self, *, wait_s: float = WAIT_S) -> None:
        self.error: str | None = None
        self._wait_s = wait_s
        self._passwords: dict[str, str | None] = {}

    @property
    def was_queried(self) -> bool:
        """Whether any name was looked up."""
        return bool(self._passwords)

    @property
    def is_installed(self) -> bool:
        """Whether the package `keyring` is installed."""
        return find_spec("keyring") is not None

    def find(self, name: str) -> str | None:
        """Return the password *name*, or None without one or after a failed lookup."""
        if name not in self._passwords and self.error is None and self.is_installed:
            answers: SimpleQueue[tuple[str | None, str | None]] = SimpleQueue()
            # A daemon thread, which is abandoned after the timeout. The process would wait for a pool's at exit.
            threading.Thread(
                target=lambda: answers.put(_query_backend(name)), name="gamelens-keyring", daemon=True
            ).start()
            try:
                self._passwords[name], self.error = answers.get(timeout=self._wait_s)
            except Empty:
                self._passwords[name], self.error = None, f"it did not answer within {self._wait_s:g} s"
        return self._passwords.get(name)


class Settings:
    """Settings by name: from arguments (*given*), else environment, else config file, else keyring."""

    def __init__(
        self,
        given: Mapping[str, str | Secret | None],
        environ: Mapping[str, str],
        file: Path,
        keyring: KeyringLookup | None = None,
    ) -> None:
        self.file = file
        self.keyring = keyring or KeyringLookup()
        self._given = given
        self._environ = environ

    @classmethod
    def from_environment(cls, keyring: KeyringLookup | None = None) -> Settings:
        """Return the settings of this process, from environment, config file and keyring."""
        return cls({}, os.environ, config_file(), keyring)

    def find(self, name: str) -> str | None:
        """Return the value of *name*, or None if no source has it. Empty strings count as missing."""
        return self._find_with_source(name)[0]

    def source(self, name: str) -> SettingOrigin | None:
        """Return the source of the value of *name*, or None if no source has it."""
        return self._find_with_source(name)[1]

    @cached_property
    def _stored(self) -> Mapping[str, object]:
        """The content of the config file, which is read when it is first needed."""
        return _read(self.file)

    @property
    def unknown_names(self) -> list[str]:
        """The names in the config file that are not settings."""
        return sorted(set(self._stored) - {*ADDRESSES, *KEYS, ALLOW_HTTP, LAKE, OWN_METRICS})

    @property
    def own_metrics(self) -> Catalog:
        """The catalog with the own metrics of the config file.

        Raises:
            BadQuery: one is not defined as it should be; names the file.
        """
        return Catalog.defined(self._own_metrics, f" in {self.file}")

    def catalog(self, given: Mapping[str, Any]) -> Catalog:
        """Return the catalog with the own metrics of the config file and those *given*, which take precedence.

        Raises:
            BadQuery: one is not defined as it should be.
        """
        stored = self.own_metrics
        return Catalog.defined({**self._own_metrics, **given}) if given else stored

    @property
    def _own_metrics(self) -> Mapping[str, Any]:
        stored = self._stored.get(OWN_METRICS, {})
        if not isinstance(stored, Mapping):
            raise BadQuery(
                f"{OWN_METRICS} in {self.file}", stored, "must be a table: [metrics], and below it a formula"
            )
        return stored

    @property
    def allows_http(self) -> bool:
        """Whether an address beyond this machine may be plain http.

        Raises:
            BadQuery: the setting is neither true nor false.
        """
        value = self.find(ALLOW_HTTP)
        if value is not None and value.lower() not in (*_TRUE, *_FALSE):
            raise BadQuery(f"{ALLOW_HTTP} from the {self.source(ALLOW_HTTP)}", value, "must be true or false")
        return value is not None and value.lower() in _TRUE

    def address(self, name: str, *, default: str | None = None) -> str:
        """Return the service address *name*, else *default*, without a trailing slash.

        Raises:
            BadQuery: it is missing, is not an http(s) address, holds a user name or password, or is plain http beyond
                this machine and `allow_http` is not set.
        """
        value = self.find(name) or default
        if value is None:
            raise BadQuery(name, UNSET, f"is missing: {self._places_to_set(name)}")
        origin = f" (from {self._place(name)})" if self.source(name) not in (None, "argument") else ""
        must_be, shown = "must be an address such as https://metrics.example.com", without_password(value)
        try:
            parts = split_address(value)
        except ValueError as error:
            raise BadQuery(name, shown, f"{must_be}: it {error}{origin}") from None
        if parts.username is not None or parts.password is not None:
            raise BadQuery(name, shown, f"must not hold a user name or password{origin}")
        if parts.query or parts.fragment:
            raise BadQuery(name, value, f"{must_be}, without ? and #{origin}")
        if parts.scheme == "http" and not is_loopback(parts.hostname) and not self.allows_http:
            rule = "must be https, or anyone in between can read the key. To use http anyway, pass"
            variable = PREFIX + ALLOW_HTTP.upper()
            ways = f"{ALLOW_HTTP}=True, set {variable}=1, or write {ALLOW_HTTP} = true into {self.file}"
            raise BadQuery(name, value, f"{rule} {ways}")
        return value.rstrip("/")

    def secret(self, name: str) -> Secret:
        """Return the key *name*.

        Raises:
            AuthError: no source has it.
        """
        return Secret(self.text(name), self.source(name) or "argument")

    def text(self, name: str) -> str:
        """Return the credential *name*.

        Raises:
            AuthError: no source has it.
        """
        value = self.find(name)
        if value is None:
            raise AuthError(f"no {name}: {self._places_to_set(name)}")
        return value

    def metrics(self) -> MetricsSettings:
        """Return address and key of the metrics service, by default the real service.

        Raises:
            AuthError: no source has a key.
            BadQuery: the address is invalid.
        """
        address = self.address("metrics_url", default=REAL_METRICS_URL)
        return MetricsSettings(address, self.secret("api_key"), self.key_hint("api_key"))

    def key_hint(self, *names: str) -> str:
        """Return the sources of the keys *names*, and where to set others."""
        origins = [f"{name} is from {self._place(name)}" for name in names]
        return f"{' and '.join(origins)}; for another, {self._places_to_set(*names)}"

    def _place(self, name: str) -> str:
        """Return the place where *name* is set, in words."""
        places: dict[SettingOrigin | None, str] = {
            "argument": "the argument",
            "environment": f"the variable {PREFIX}{name.upper()}",
            "config file": str(self.file),
            "keyring": "the keyring",
        }
        return places[self.source(name)]

    def _find_with_source(self, name: str) -> tuple[str, SettingOrigin] | tuple[None, None]:
        """Return the value of *name*, without blanks and line ends around it, and its source, or two None."""
        given = self._given.get(name)
        if isinstance(given, Secret):
            return given.reveal(), given.source
        if given and given.strip():
            return given.strip(), "argument"
        if variable := self._environ.get(PREFIX + name.upper(), "").strip():
            return variable, "environment"
        stored = self._stored.get(name)
        if isinstance(stored, bool) and name == ALLOW_HTTP:
            return str(stored), "config file"
        if stored is not None and not isinstance(stored, str):
            raise BadQuery(f"{name} in {self.file}", type(stored).__name__, "must be a string")
        if stored and stored.strip():
            return stored.strip(), "config file"
        # Last, because the keyring may open a window.
        if name in KEYS and (value := self.keyring.find(name)):
            return value, "keyring"
        return None, None

    def _places_to_set(self, *names: str) -> str:
        """Return a hint that lists the places where *names* can be set."""
        arguments, variables = (f"{name}=" for name in names), (PREFIX + name.upper() for name in names)
        listed = " and ".join(names)
        places = f"pass {' and '.join(arguments)}, set {' and '.join(variables)}, or write {listed} into {self.file}"
        if names[0] not in KEYS:
            return places
        error = f" (now it fails: {self.keyring.error})" if self.keyring.error else ""
        return f"{places} or, with the package keyring, `keyring set {SERVICE} {names[-1]}`{error}"


def split_address(text: str, *, schemes: Collection[str] = ("http", "https")) -> SplitResult:
    """Return the parts of an address.

    Raises:
        ValueError: what *text* lacks or has, as the end of a sentence about it.
    """
    if re.search(r"[\s\x00-\x1f\x7f]", text):
        raise ValueError("has a blank or a control character")
    if "://" not in text:
        raise ValueError("has no scheme: write https:// before it, or http:// for this machine")
    try:
        parts = urlsplit(text)
    except ValueError:
        raise ValueError("has brackets without an IPv6 address") from None
    try:
        is_port = parts.port != 0
    except ValueError:
        is_port = False
    if not is_port:
        raise ValueError("has a port that is not a number from 1 to 65535")
    if parts.scheme not in schemes:
        raise ValueError(f"begins with {parts.scheme}://, not with {' or '.join(f'{scheme}://' for scheme in schemes)}")
    host = parts.hostname or ""
    with suppress(UnicodeError):  # a label that is empty or too long
        if re.fullmatch(r"[^<>\"{}|\\^`,;]+", host) and host.encode("idna"):
            return parts
    raise ValueError("has no valid host")


def without_password(address: str) -> str:
    """Return *address*, from outside, without what may be a user name and a password."""
    return f"…{address[address.rindex('@') :]}" if "@" in address else address


def is_loopback(host: str | None) -> bool:
    """Return whether *host* is this machine: `localhost` or a loopback address."""
    try:
        return host == "localhost" or ip_address(host or "").is_loopback
    except ValueError:
        return False


def portless(address: str) -> str:
    """Return *address*, without its port if it is on this machine, where any is taken."""
    parts = urlsplit(address)
    return urlunsplit(parts._replace(netloc=parts.hostname or "")) if is_loopback(parts.hostname) else address


def config_file() -> Path:
    """Return the path of the user's config file, which may be missing."""
    return platformdirs.user_config_path("gamelens") / "config.toml"


def writable_folder(folder: Path, variable: str) -> Path:
    """Return *folder*, which is made if it is missing; the environment variable *variable* names another.

    Raises:
        Refused: it cannot be made or written to.
    """
    check_writable(folder, variable)
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    return folder


def check_writable(folder: Path, variable: str) -> None:
    """Refuse *folder* if it cannot be made or written to. Makes nothing.

    Raises:
        Refused: names the environment variable *variable*, which names another.
    """
    if why := unwritable(folder):
        raise Refused(f"{why}: name a folder of your own in {variable}")


def unwritable(folder: Path) -> str:
    """Return why *folder*, or what is there of the path to it, cannot be written to; empty if it can."""
    there = next(path for path in (folder, *folder.absolute().parents) if os.path.lexists(path))
    try:
        with tempfile.TemporaryFile(dir=there):
            return ""
    except OSError as error:
        return f"{folder} cannot be written to ({error.strerror or error})"


def metrics_settings(
    *,
    api_key: str | Secret | None,
    metrics_url: str | None,
    allow_http: bool = False,
    environ: Mapping[str, str] = os.environ,
    file: Path | None = None,
) -> MetricsSettings:
    """Return address and key of the metrics service, by default the real service.

    Raises:
        AuthError: no source has a key.
        BadQuery: the address is invalid.
    """
    given = {"api_key": api_key, "metrics_url": metrics_url, ALLOW_HTTP: "true" if allow_http else None}
    return Settings(given, environ, file or config_file()).metrics()


def client_catalog(
    metrics: Mapping[str, Any] | None, *, environ: Mapping[str, str] = os.environ, file: Path | None = None
) -> Catalog:
    """Return what a client can query: own *metrics* take precedence over metrics of the config file.

    Raises:
        BadQuery: an own metric is not defined as it should be.
    """
    if metrics is not None and not isinstance(metrics, Mapping):
        return Catalog.defined(metrics)
    return Settings({}, environ, file or config_file()).catalog(metrics or {})


def collector_settings(
    *,
    collector_url: str | None,
    game_key: str | None,
    secret_key: str | None,
    allow_http: bool = False,
    environ: Mapping[str, str] = os.environ,
    file: Path | None = None,
) -> CollectorSettings:
    """Return address and keys of one game at the collector.

    Raises:
        AuthError: a key is missing.
        BadQuery: the address is missing or invalid.
    """
    given = {"collector_url": collector_url, "game_key": game_key, "secret_key": secret_key}
    given[ALLOW_HTTP] = "true" if allow_http else None
    settings = Settings(given, environ, file or config_file())
    return CollectorSettings(
        settings.address("collector_url"),
        settings.text("game_key"),
        settings.secret("secret_key"),
        settings.key_hint("game_key", "secret_key"),
    )


def _query_backend(name: str) -> tuple[str | None, str | None]:
    """Return the password and an error text. No exception of a backend gets out."""
    try:
        import keyring
        from keyring.errors import KeyringError, NoKeyringError
    except Exception as error:  # loads the backend named in the environment or configuration, which may raise anything
        return None, f"it cannot be loaded ({type(error).__name__})"
    try:
        return keyring.get_password(SERVICE, name) or None, None
    except NoKeyringError:
        return None, None  # no backend on this machine, as on most servers
    except KeyringError as error:
        return None, f"{type(error).__name__}: {error}".rstrip(": ")
    except Exception as error:  # from a lower library: its message may hold a secret
        return None, type(error).__name__


def _read(file: Path) -> Mapping[str, object]:
    """Return the contents of the config file, or nothing if there is no file, or none that this user can look up."""
    try:
        if not file.parent.is_dir() or not os.access(file.parent, os.X_OK):
            return {}
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        # A TOML error names the position and never quotes the line, so it cannot reveal a key.
        raise BadQuery("config file", str(file), f"cannot be read: {error}") from None
