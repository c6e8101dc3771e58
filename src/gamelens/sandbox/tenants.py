"""Organisations, studios, games and their keys: from a configuration file, or made at the first start and kept.

Of an API key the services hold the SHA-256 digest, in memory (`TenantDirectory`) and on disk (`tenants.json`). The keys that
the sandbox made itself lie in `keys.json`, because every start writes them into its ready file; nothing else reads
that file. A key from a configuration file is written nowhere but into the ready file. Game secrets stay as they are:
a signature cannot be checked with less.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, get_args

import msgspec

from gamelens._files import write_private
from gamelens.errors import BadQuery, Refused

Environment = Literal["sandbox", "production"]
Titles = tuple[tuple[str, tuple[str, ...]], ...]
"""Names of studios, each with the titles of its games."""
_Value = TypeVar("_Value")


class TenantConfig(msgspec.Struct, frozen=True, kw_only=True):
    """One remote config, with the window in which it holds (epoch seconds; None: no bound)."""

    key: str
    value: Any
    start_ts: int | None = None
    end_ts: int | None = None


class TenantVariant(msgspec.Struct, frozen=True, kw_only=True):
    """One arm of an experiment and the configs its players are given; the control has none."""

    id: str
    config: tuple[TenantConfig, ...] = ()


class TenantExperiment(msgspec.Struct, frozen=True, kw_only=True):
    """An experiment; *share* of the players take part, evenly over the variants."""

    id: str
    share: Annotated[float, msgspec.Meta(ge=0, le=1)] = 1.0
    variant: tuple[TenantVariant, ...] = ()


class TenantGame(msgspec.Struct, frozen=True, kw_only=True):
    """A game, its keys and what it tells its players."""

    id: str = ""
    title: str = ""
    game_key: str = ""
    secret_key: str = ""
    environment: Environment = "sandbox"
    enabled: bool = True
    config: tuple[TenantConfig, ...] = ()
    experiment: tuple[TenantExperiment, ...] = ()

    def __repr__(self) -> str:
        return f"Game({self.id!r}, {self.title!r})"


class TenantStudio(msgspec.Struct, frozen=True, kw_only=True):
    """A studio and its games."""

    id: str = ""
    name: str = ""
    games: tuple[TenantGame, ...] = msgspec.field(default=(), name="game")


class Organisation(msgspec.Struct, frozen=True, kw_only=True):
    """An organisation: the owner of an API key, and everything its questions may see."""

    name: str
    api_key_sha256: str = ""
    studios: tuple[TenantStudio, ...] = msgspec.field(default=(), name="studio")

    def __repr__(self) -> str:
        return f"Organisation({self.name!r})"

    @property
    def games(self) -> tuple[TenantGame, ...]:
        """All games, studio by studio."""
        return tuple(game for studio in self.studios for game in studio.games)


class _Applicant(msgspec.Struct, frozen=True, kw_only=True):
    """An organisation as a configuration file describes it."""

    name: str
    api_key: str = ""
    studios: tuple[TenantStudio, ...] = msgspec.field(default=(), name="studio")

    def __repr__(self) -> str:
        return f"_Applicant({self.name!r})"


class _Configuration(msgspec.Struct, frozen=True):
    organisations: tuple[_Applicant, ...] = msgspec.field(name="organisation")


class _Kept(msgspec.Struct, frozen=True):
    organisations: tuple[Organisation, ...] = msgspec.field(default=(), name="organisation")


class TenantDirectory:
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

    @property
    def shared_game_ids(self) -> set[str]:
        """Ids that games of several organisations have: an id means something within its organisation only."""
        owners = Counter(game.id for org in self.organisations for game in org.games)
        return {game_id for game_id, count in owners.items() if count > 1}

    def game(self, game_key: str) -> tuple[Organisation, TenantGame] | None:
        """Who owns a game key, and the game."""
        return self._owners.get(game_key)

    def organisation(self, api_key: str) -> Organisation | None:
        """The owner of an API key; every digest is compared, each in constant time."""
        digest, owner = _digest(api_key), None
        for org in self.organisations:
            if hmac.compare_digest(org.api_key_sha256, digest):
                owner = org
        return owner


def load_tenants(state: Path, config: Path | None, titles: Titles = ()) -> tuple[TenantDirectory, dict[str, str]]:
    """The tenants of *config*, or of an earlier start in *state*, or new ones; what was made is kept in *state*.

    With *titles* it is one organisation that has these games. Its name, and so its API key, stay the same whichever.

    Beside them the API keys in plain, by organisation, for the ready file alone. One that an earlier configuration
    file gave is known by its digest only and is not among them.

    Raises:
        BadQuery: the configuration file breaks a rule.
        Refused: it cannot be read.
    """
    kept = _read_kept(state / "tenants.json", _Kept, default=_Kept()).organisations
    known = _read_kept(state / "keys.json", dict[str, str], default={})
    applicants = _read(config) if config else _one_with(titles) if titles else () if kept else _one_with(_DEFAULTS)
    given = {org.name: org.api_key for org in applicants if org.api_key}
    organisations = _completed(applicants, kept) if applicants else kept
    made = {
        org.name: known.get(org.name) or secrets.token_hex(20)
        for org in organisations
        if org.name in known or not org.api_key_sha256
        if org.name not in given
    }
    tenants = TenantDirectory(tuple(_keyed(org, made | given) for org in organisations))
    write_private(state / "keys.json", msgspec.json.encode(made))
    write_private(state / "tenants.json", msgspec.json.encode(_Kept(tenants.organisations)))
    return tenants, made | given


def describe(tenants: TenantDirectory, api_keys: Mapping[str, str]) -> list[dict[str, Any]]:
    """Organisations as the ready file gives them to whoever may hold their keys; an API key nobody knows is null."""
    return [
        {
            "name": org.name,
            "api_key": api_keys.get(org.name),
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


_DEFAULTS: Titles = (
    ("Northlight Games", ("Tile Harbor", "Rooftop Dash")),
    ("Saltwater Interactive", ("Ember Realms",)),
)


def _one_with(titles: Titles) -> tuple[_Applicant]:
    """One organisation: studio 1 has the games 1001, 1002 …, studio 2 those from 2001 on."""
    studios = (
        TenantStudio(
            id=str(number),
            name=name,
            games=tuple(
                TenantGame(id=f"{number}{place:03d}", title=title) for place, title in enumerate(games, start=1)
            ),
        )
        for number, (name, games) in enumerate(titles, start=1)
    )
    return (_Applicant(name="demo", studios=tuple(studios)),)


def _read(path: Path) -> tuple[_Applicant, ...]:
    try:
        decode = msgspec.toml.decode if path.suffix == ".toml" else msgspec.json.decode
        content = decode(path.read_bytes())
        _check_names(content, _Configuration)
        organisations = msgspec.convert(content, _Configuration).organisations
    except OSError as error:
        raise Refused(f"cannot read {path}: {error.strerror}. Name a file that exists with --config") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadQuery("--config", str(path), f"is not a sandbox configuration: {error}") from None
    for org in organisations:
        _check_api_key(org.api_key)
    return organisations


def _read_kept(path: Path, kind: type[_Value], *, default: _Value) -> _Value:
    """What an earlier start kept at *path*, if there was one."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind) if path.exists() else default
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Refused(f"{path} is damaged: {error}. Restore it, or start on another --state") from None


def _check_names(content: object, kind: type[msgspec.Struct], *, path: str = "") -> None:
    """Refuse a field that *kind* does not have: ignored, it would leave its writer with a default and no word."""
    fields = {field.encode_name: field.type for field in msgspec.structs.fields(kind)}
    for name, value in content.items() if isinstance(content, dict) else ():
        if name not in fields:
            raise BadQuery(f"{path}{name}", "…", "is not part of a sandbox configuration", fields, name=name)
        member = next(iter(get_args(fields[name])), None)
        if isinstance(member, type) and issubclass(member, msgspec.Struct) and isinstance(value, list):
            for position, item in enumerate(value):
                _check_names(item, member, path=f"{path}{name}[{position}].")


def _completed(applicants: tuple[_Applicant, ...], known: tuple[Organisation, ...]) -> tuple[Organisation, ...]:
    """Organisations whose ids and game keys are filled in: as they were kept, else new. API keys come after."""
    kept_games = {(org.name, game.id): game for org in known for game in org.games}
    count = 0
    completed = []
    for org in applicants:
        studios = []
        for position, studio in enumerate(org.studios, start=1):
            games = []
            for game in studio.games:
                count += 1
                game_id = game.id or str(1000 + count)
                kept = kept_games.get((org.name, game_id), TenantGame())
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
        completed.append(Organisation(name=org.name, studios=tuple(studios)))
    return tuple(completed)


def _keyed(organisation: Organisation, api_keys: Mapping[str, str]) -> Organisation:
    """*organisation* with the digest of its API key, where the key is known; else with the one that was kept."""
    key = api_keys.get(organisation.name)
    return msgspec.structs.replace(organisation, api_key_sha256=_digest(key)) if key else organisation


def _digest(api_key: str) -> str:
    """SHA-256 of a key, with neither salt nor stretching.

    Those protect what can be guessed. A key of ours has 160 random bits, and a lookup must be cheap: it is made for
    every request, by whoever sends one.
    """
    return hashlib.sha256(api_key.encode()).hexdigest()


def _identifiers(organisations: tuple[Organisation, ...]) -> Iterator[tuple[str, list[str]]]:
    """What must be there once: keys among all organisations, ids within one."""
    games = [game for org in organisations for game in org.games]
    yield "organisation.name", [org.name for org in organisations]
    yield "api_key", [org.api_key_sha256 for org in organisations]
    yield "game_key", [game.game_key for game in games]
    for org in organisations:
        yield "studio.id", [studio.id for studio in org.studios]
        yield "game.id", [game.id for game in org.games]


def _check_key(name: str, key: str, length: int) -> None:
    if not re.fullmatch(rf"[0-9a-f]{{{length}}}", key):
        raise BadQuery(name, "…", f"must be {length} lower-case hexadecimal characters")


def _check_api_key(key: str) -> None:
    if not re.fullmatch(r"[!-~]*", key):
        raise BadQuery("api_key", "…", "must be printable ASCII without spaces: it travels in a header")
