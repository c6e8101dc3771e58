"""Addresses and keys of a running sandbox, as its ready file has them."""

from __future__ import annotations

from pathlib import Path

import msgspec

from gamelens.errors import Refused, suggests_names


@suggests_names
class SandboxGame(msgspec.Struct, frozen=True):
    """A game of a running sandbox and its keys."""

    id: str
    title: str
    game_key: str
    secret_key: str

    def __repr__(self) -> str:
        return f"SandboxGame({self.id!r}, {self.title!r})"


@suggests_names
class SandboxStudio(msgspec.Struct, frozen=True):
    """A studio of a running sandbox."""

    id: str
    name: str
    games: list[SandboxGame]


@suggests_names
class SandboxOrganisation(msgspec.Struct, frozen=True):
    """An organisation of a running sandbox. *api_key* is None if the sandbox has only its digest."""

    name: str
    api_key: str | None
    studios: list[SandboxStudio]

    def __repr__(self) -> str:
        return f"SandboxOrganisation({self.name!r})"

    @property
    def titles(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """Names of the studios, each with the titles of its games."""
        return tuple((studio.name, tuple(game.title for game in studio.games)) for studio in self.studios)

    @property
    def games(self) -> list[SandboxGame]:
        """All games, studio by studio."""
        return [game for studio in self.studios for game in studio.games]


@suggests_names
class SandboxInfo(msgspec.Struct, frozen=True):
    """The ready file of a running sandbox. Its repr has no keys.

    *console_url* is the address of the control API, and *ca_file* the certificate authority to trust, if the services
    speak HTTPS.
    """

    collector_url: str
    metrics_url: str
    console_url: str
    organisations: list[SandboxOrganisation]
    pid: int | None = None
    ca_file: str | None = None

    def __repr__(self) -> str:
        return f"SandboxInfo({self.collector_url!r}, {self.metrics_url!r})"


def read_sandbox_info(path: Path) -> SandboxInfo:
    """Read the ready file at *path*.

    Raises:
        Refused: it cannot be read, or is something else.
    """
    try:
        return msgspec.json.decode(path.read_bytes(), type=SandboxInfo)
    except OSError as error:
        raise Refused(f"cannot read {path}: {error.strerror}. `gamelens sandbox up --ready {path}` writes it") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Refused(f"{path} is not a ready file: {error}") from None


def environment_of(ready: SandboxInfo) -> dict[str, str]:
    """Return the environment variables with which a process connects to this sandbox.

    Events are submitted to its first game.
    """
    organisation = ready.organisations[0]
    game = organisation.games[0]
    variables = {
        "GAMELENS_METRICS_URL": ready.metrics_url,
        "GAMELENS_API_KEY": organisation.api_key or "",
        "GAMELENS_COLLECTOR_URL": ready.collector_url,
        "GAMELENS_GAME_KEY": game.game_key,
        "GAMELENS_SECRET_KEY": game.secret_key,
        "GAMELENS_CONSOLE_URL": ready.console_url,
    }
    return variables | ({"SSL_CERT_FILE": ready.ca_file} if ready.ca_file else {})
