"""Organisations, studios, games and their keys: from a configuration file, or made at the first start and kept."""

from __future__ import annotations

import hmac
import os
import re
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from gamelens.errors import BadQuery, Refused

Environment = Literal["sandbox", "production"]


class RemoteConfig(msgspec.Struct, frozen=True, kw_only=True):
    """One remote config, with the window in which it holds (epoch seconds; None: no bound)."""

    key: str
    value: Any
    start_ts: int | None = None
    end_ts: int | None = None


class Variant(msgspec.Struct, frozen=True, kw_only=True):
    """One arm of an experiment and the configs its players are given; the control has none."""

    id: str
    config: tuple[RemoteConfig, ...] = ()


class Experiment(msgspec.Struct, frozen=True, kw_only=True):
    """An experiment; *share* of the players take part, evenly over the variants."""

    id: str
    share: Annotated[float, msgspec.Meta(ge=0, le=1)] = 1.0
    variant: tuple[Variant, ...] = ()


class Game(msgspec.Struct, frozen=True, kw_only=True):
    """A game, its keys and what it tells its players."""

    id: str = ""
    title: str = ""
    game_key: str = ""
    secret_key: str = ""
    environment: Environment = "sandbox"
    enabled: bool = True
    config: tuple[RemoteConfig, ...] = ()
    experiment: tuple[Experiment, ...] = ()

    def __repr__(self) -> str:
        return f"Game({self.id!r}, {self.title!r})"


class Studio(msgspec.Struct, frozen=True, kw_only=True):
    """A studio and its games."""

    id: str = ""
    name: str = ""
    games: tuple[Game, ...] = msgspec.field(default=(), name="game")


class Organisation(msgspec.Struct, frozen=True, kw_only=True):
    """An organisation: the owner of an API key, and everything its questions may see."""

    name: str
    api_key: str = ""
    studios: tuple[Studio, ...] = msgspec.field(default=(), name="studio")

    def __repr__(self) -> str:
        return f"Organisation({self.name!r})"

    @property
    def games(self) -> tuple[Game, ...]:
        """All games, studio by studio."""
        return tuple(game for studio in self.studios for game in studio.games)


class _File(msgspec.Struct, frozen=True):
    organisations: tuple[Organisation, ...] = msgspec.field(name="organisation")


class Tenants:
    """Who is who, by key.

    Raises:
        BadQuery: two games share a key or an id, or a key is not lower-case hexadecimal of its length.
    """

    def __init__(self, organisations: tuple[Organisation, ...]) -> None:
        self.organisations = organisations
        self._owners = {game.game_key: (org, game) for org in organisations for game in org.games}
        for name, found in _identifiers(organisations):
            for value in found:
                if found.count(value) > 1:
                    raise BadQuery(name, "…" if "key" in name else value, "must be there once in the configuration")
        for _, game in self._owners.values():
            _check_key("game_key", game.game_key, 32)
            _check_key("secret_key", game.secret_key, 40)

    def game(self, game_key: str) -> tuple[Organisation, Game] | None:
        """Who owns a game key, and the game."""
        return self._owners.get(game_key)

    def organisation(self, api_key: str) -> Organisation | None:
        """The owner of an API key; every key is compared, each in constant time."""
        matches = [org for org in self.organisations if hmac.compare_digest(org.api_key.encode(), api_key.encode())]
        return matches[0] if matches else None


def load_tenants(state: Path, config: Path | None) -> Tenants:
    """The tenants of *config*, or of an earlier start in *state*, or new ones; what was made is kept in *state*.

    Raises:
        BadQuery: the configuration file breaks a rule.
        Refused: it cannot be read.
    """
    kept = state / "tenants.json"
    known = _read(kept) if kept.exists() else ()
    organisations = _completed(_read(config), known) if config else known or _completed(_DEFAULTS, ())
    tenants = Tenants(organisations)
    write_private(kept, msgspec.json.encode(_File(organisations)))
    return tenants


def describe(tenants: Tenants) -> list[dict[str, Any]]:
    """Organisations as the ready file gives them to whoever may hold their keys."""
    return [
        {
            "name": org.name,
            "api_key": org.api_key,
            "studios": [
                {
                    "id": studio.id,
                    "name": studio.name,
                    "games": [
                        {"id": game.id, "title": game.title, "game_key": game.game_key, "secret_key": game.secret_key}
                        for game in studio.games
                    ],
                }
                for studio in org.studios
            ],
        }
        for org in tenants.organisations
    ]


_DEFAULTS = (
    Organisation(
        name="demo",
        studios=(
            Studio(
                id="1",
                name="Northlight Games",
                games=(Game(id="1001", title="Tile Harbor"), Game(id="1002", title="Rooftop Dash")),
            ),
            Studio(id="2", name="Saltwater Interactive", games=(Game(id="2001", title="Ember Realms"),)),
        ),
    ),
)


def _read(path: Path) -> tuple[Organisation, ...]:
    try:
        decode = msgspec.toml.decode if path.suffix == ".toml" else msgspec.json.decode
        return decode(path.read_bytes(), type=_File).organisations
    except OSError as error:
        raise Refused(f"cannot read {path}: {error.strerror}. Name a file that exists with --config") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadQuery("--config", str(path), f"is not a sandbox configuration: {error}") from None


def _completed(organisations: tuple[Organisation, ...], known: tuple[Organisation, ...]) -> tuple[Organisation, ...]:
    """The same with ids and keys filled in: as they were kept, else new."""
    kept_api_keys = {org.name: org.api_key for org in known}
    kept_games = {(org.name, game.id): game for org in known for game in org.games}
    count = 0
    completed = []
    for org in organisations:
        studios = []
        for position, studio in enumerate(org.studios, start=1):
            games = []
            for game in studio.games:
                count += 1
                game_id = game.id or str(1000 + count)
                kept = kept_games.get((org.name, game_id), Game())
                games.append(
                    msgspec.structs.replace(
                        game,
                        id=game_id,
                        title=game.title or f"Game {game_id}",
                        game_key=game.game_key or kept.game_key or secrets.token_hex(16),
                        secret_key=game.secret_key or kept.secret_key or secrets.token_hex(20),
                    )
                )
            studio_id = studio.id or str(position)
            named = msgspec.structs.replace(studio, id=studio_id, name=studio.name or f"Studio {studio_id}")
            studios.append(msgspec.structs.replace(named, games=tuple(games)))
        api_key = org.api_key or kept_api_keys.get(org.name) or secrets.token_hex(20)
        completed.append(msgspec.structs.replace(org, api_key=api_key, studios=tuple(studios)))
    return tuple(completed)


def _identifiers(organisations: tuple[Organisation, ...]) -> Iterator[tuple[str, list[str]]]:
    """What must be there once: keys among all organisations, ids within one."""
    games = [game for org in organisations for game in org.games]
    yield "organisation.name", [org.name for org in organisations]
    yield "api_key", [org.api_key for org in organisations]
    yield "game_key", [game.game_key for game in games]
    for org in organisations:
        yield "studio.id", [studio.id for studio in org.studios]
        yield "game.id", [game.id for game in org.games]


def _check_key(name: str, key: str, length: int) -> None:
    if not re.fullmatch(rf"[0-9a-f]{{{length}}}", key):
        raise BadQuery(name, "…", f"must be {length} lower-case hexadecimal characters")


def write_private(path: Path, content: bytes) -> None:
    """Write a file that only its owner can read, all of it or nothing."""
    draft = path.with_suffix(".draft")
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(content)
    draft.replace(path)
