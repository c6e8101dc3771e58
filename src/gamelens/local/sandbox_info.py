"""The addresses and keys of a running sandbox, as its ready file gives them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from gamelens.errors import Refused

if TYPE_CHECKING:
    pass


class SandboxGame(msgspec.Struct, frozen=True):
    """A game of a running sandbox and its keys."""

    id: str
    title: str
    game_key: str
    secret_key: str

    def __repr__(self) -> str:
        return f"ReadyGame({self.id!r}, {self.title!r})"


class SandboxStudio(msgspec.Struct, frozen=True):
    """A studio of a running sandbox."""

    id: str
    name: str
    games: list[SandboxGame]


class SandboxOrganisation(msgspec.Struct, frozen=True):
    """An organisation of a running sandbox and its API key; None where only its owner still has it."""

    name: str
    api_key: str | None
    studios: list[SandboxStudio]

    def __repr__(self) -> str:
        return f"ReadyOrganisation({self.name!r})"

    @property
    def titles(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """Names of studios, each with the titles of its games."""
        return tuple((studio.name, tuple(game.title for game in studio.games)) for studio in self.studios)

    @property
    def games(self) -> list[SandboxGame]:
        """All games, studio by studio."""
        return [game for studio in self.studios for game in studio.games]


class SandboxInfo(msgspec.Struct, frozen=True):
    """Where a running sandbox listens, and every key: the ready file."""

    collector_url: str
    metrics_url: str
    console_url: str
    organisations: list[SandboxOrganisation]
    pid: int | None = None
    ca_file: str | None = None

    def __repr__(self) -> str:
        return f"Ready({self.collector_url!r}, {self.metrics_url!r})"


def read_sandbox_info(path: Path) -> SandboxInfo:
    """The ready file at *path*.

    Raises:
        Refused: there is none, or it is something else.
    """
    try:
        return msgspec.json.decode(path.read_bytes(), type=SandboxInfo)
    except OSError as error:
        raise Refused(f"cannot read {path}: {error.strerror}. `gamelens sandbox up --ready {path}` writes it") from None
    except msgspec.DecodeError as error:
        raise Refused(f"{path} is no ready file: {error}") from None


def environment_of(ready: SandboxInfo) -> dict[str, str]:
    """What a process must find in its environment to connect to this sandbox as to the real service."""
    trusted = {"SSL_CERT_FILE": ready.ca_file} if ready.ca_file else {}
    api_key = ready.organisations[0].api_key or ""
    addresses = {"GAMELENS_METRICS_URL": ready.metrics_url, "GAMELENS_CONSOLE_URL": ready.console_url}
    return {"GAMELENS_API_KEY": api_key, **addresses, **trusted}
