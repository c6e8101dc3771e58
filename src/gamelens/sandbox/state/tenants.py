"""Organisations, studios, games and keys: configured, or generated at a first start.

The services know only the SHA-256 digest of an API key, in memory (`TenantDirectory`) and on disk (`tenants.json`).
Keys that the sandbox generated are also in `keys.json`, because every start writes them into its ready file. Nothing
else reads that file. A key from a configuration file is written to the ready file only. Game secrets are stored as
they are, because a signature cannot be checked with less. Both files have a checksum.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal, get_args

import msgspec

from gamelens._text import printable
from gamelens.errors import BadQuery, Refused
from gamelens.sandbox.state.state_directory import NEW_KEYS, read_stored, store_checked
from gamelens.wire.limits import OLDEST_DAYS

Environment = Literal["sandbox", "production"]
Titles = tuple[tuple[str, tuple[str, ...]], ...]
"""Names of studios, each with the titles of its games."""
NAME_LETTERS: Final = 100
"""Most characters of an organisation's name (Wire 5.4, Sandbox configuration)."""


class TenantConfig(msgspec.Struct, frozen=True, kw_only=True):
    """One remote config with the time in which it holds, in epoch seconds.

    The value is a string; another JSON value only where a state directory still has one from before that was refused.
    """

    key: str
    value: Any
    start_ts: int | None = None
    end_ts: int | None = None


class TenantVariant(msgspec.Struct, frozen=True, kw_only=True):
    """One variant of an experiment and the configs of its players. The control has none."""

    id: str
    config: tuple[TenantConfig, ...] = ()


class TenantExperiment(msgspec.Struct, frozen=True, kw_only=True):
    """An experiment of a *share* of the players, whose variants are equally likely."""

    id: str
    share: Annotated[float, msgspec.Meta(ge=0, le=1)] = 1.0
    variant: tuple[TenantVariant, ...] = ()


class TenantGame(msgspec.Struct, frozen=True, kw_only=True):
    """A game with its keys, remote configs and experiments.

    Attributes:
        id: unique within its organisation; empty if it is still to be generated, as are title and keys.
        game_key: 32 hexadecimal characters, the public key.
        secret_key: 40 hexadecimal characters, the key of signatures.
        environment: a key of `production` is not authorised here (Wire 1.4, Signature).
        enabled: the answer of version 2 init (Wire 1.11, Version 2 init).
        config: remote configs of players outside experiments.
        experiment: experiments; the first that a player falls into counts.
    """

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
    """An organisation: the owner of an API key and of everything that its queries may see."""

    name: str
    api_key_sha256: str = ""
    studios: tuple[TenantStudio, ...] = msgspec.field(default=(), name="studio")

    def __repr__(self) -> str:
        return f"Organisation({self.name!r})"

    @property
    def games(self) -> tuple[TenantGame, ...]:
        """All games, studio by studio."""
        return tuple(game for studio in self.studios for game in studio.games)


class _ConfiguredOrganisation(msgspec.Struct, frozen=True, kw_only=True):
    """An organisation as a configuration file describes it."""

    name: str
    api_key: str = ""
    studios: tuple[TenantStudio, ...] = msgspec.field(default=(), name="studio")

    def __repr__(self) -> str:
        return f"_ConfiguredOrganisation({self.name!r})"


class CollectorRules(msgspec.Struct, frozen=True, kw_only=True):
    """Rules of the collector of a sandbox.

    Attributes:
        oldest_days: days before its arrival from which on the time that a device gives an event is used (Wire 4.1,
            Event time).
    """

    oldest_days: Annotated[int, msgspec.Meta(ge=1, le=36_500)] = OLDEST_DAYS


class _Configuration(msgspec.Struct, frozen=True):
    organisations: tuple[_ConfiguredOrganisation, ...] = msgspec.field(name="organisation")
    collector: CollectorRules = CollectorRules()


class _StoredTenants(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    organisations: tuple[Organisation, ...] = msgspec.field(name="organisation")
    collector: CollectorRules = CollectorRules()  # not written where it is the default, which version 0.1.0 reads


class TenantDirectory:
    """Organisations and games, looked up by key, and the *rules* of their collector.

    Raises:
        BadQuery: a key or id is not unique, or a game's key is not lower-case hexadecimal of its length.
    """

    def __init__(
        self,
        organisations: tuple[Organisation, ...],
        rules: CollectorRules = CollectorRules(),  # noqa: B008
    ) -> None:
        self.organisations, self.rules = organisations, rules
        self._owners = {game.game_key: (org, game) for org in organisations for game in org.games}
        games = [game for org in organisations for game in org.games]
        self._secrets = {game.secret_key for game in games}
        unique = [  # keys in all organisations, ids in one
            ("organisation.name", [org.name.casefold() for org in organisations]),  # as some disks compare folders
            ("api_key", [org.api_key_sha256 for org in organisations]),
            ("game_key", [game.game_key for game in games]),
        ]
        for org in organisations:
            unique.append(("studio.id", [studio.id for studio in org.studios]))
            unique.append(("game.id", [game.id for game in org.games]))
        for name, values in unique:
            for value in values:
                if values.count(value) > 1:
                    rule = "must be unique in the configuration, ignoring case: change one of them"
                    raise BadQuery(name, "…" if "key" in name else value, rule)
        for game in games:
            for name, key, length in (("game_key", game.game_key, 32), ("secret_key", game.secret_key, 40)):
                if not re.fullmatch(rf"[0-9a-f]{{{length}}}", key):
                    raise BadQuery(name, "…", f"must be {length} lower-case hexadecimal characters")

    @property
    def shared_game_ids(self) -> set[str]:
        """Ids that games of several organisations have, unique within each of them only."""
        owners = Counter(game.id for org in self.organisations for game in org.games)
        return {game_id for game_id, count in owners.items() if count > 1}

    def game(self, game_key: str) -> tuple[Organisation, TenantGame] | None:
        """Return the owner and the game of a game key, or None."""
        return self._owners.get(game_key)

    def is_secret(self, text: str) -> bool:
        """Return whether *text* is the secret key of a game or an API key."""
        return text in self._secrets or self.organisation(text) is not None

    def organisation(self, api_key: str) -> Organisation | None:
        """Return the owner of an API key, or None. Each digest takes constant time."""
        digest, owner = _digest(api_key), None
        for org in self.organisations:
            if hmac.compare_digest(org.api_key_sha256, digest):
                owner = org
        return owner


def stored_organisations(state: Path) -> tuple[Organisation, ...]:
    """Return the organisations of an earlier start on *state*.

    Raises:
        Refused: their file is damaged.
    """
    return _stored(state).organisations


def stored_rules(state: Path) -> CollectorRules:
    """Return the rules of the collector of the last start on *state*.

    Raises:
        Refused: their file is damaged.
    """
    return _stored(state).collector


def _stored(state: Path) -> _StoredTenants:
    return read_stored(state / "tenants.json", _StoredTenants, default=_StoredTenants(()))


def load_tenants(state: Path, config: Path | None, titles: Titles = ()) -> tuple[TenantDirectory, dict[str, str]]:
    """Load the organisations for a start and store them in *state*.

    They come from *config*, else from *titles* (one organisation with these games), else from an earlier start, else
    from the defaults. Missing ids and keys come from an earlier start or are new.

    Returns:
        The organisations, and their API keys in plain text by organisation, for the ready file only. A key from the
        configuration file of an earlier start is known only as a digest and is not among them.

    Raises:
        BadQuery: the configuration file breaks a rule.
        Refused: a file cannot be read, or one that an earlier start wrote is missing.
    """
    stored, rules = stored_organisations(state), stored_rules(state)
    if not stored and (state / "gamelens.db").exists():
        raise Refused(
            f"{state / 'tenants.json'} is missing: restore it from a copy, or use another --state: {NEW_KEYS}"
        )
    stored_keys = read_stored(state / "keys.json", dict[str, str], default={})
    if config:
        configuration = _read_configuration(config)
        configured, rules = configuration.organisations, configuration.collector
    elif titles or not stored:
        configured = _one_organisation(titles or _DEFAULTS)
    else:
        configured = ()
    configured_keys = {org.name: org.api_key for org in configured if org.api_key}
    organisations = _fill_in_keys(configured, stored) if configured else stored
    known = {org.name for org in stored} - configured_keys.keys()
    lost = [org.name for org in organisations if org.name in known and not (state / "keys.json").exists()]
    if lost:
        given = f"give the API key of {', '.join(lost)} with --config"
        rest = f"restore it from a copy, {given}, or use another --state: {NEW_KEYS}"
        raise Refused(f"{state / 'keys.json'} is missing: {rest}")
    generated_keys = {
        org.name: stored_keys.get(org.name) or secrets.token_hex(20)
        for org in organisations
        if org.name in stored_keys or not org.api_key_sha256
        if org.name not in configured_keys
    }
    api_keys = generated_keys | configured_keys
    digests = {name: _digest(key) for name, key in api_keys.items() if key}
    tenants = TenantDirectory(
        tuple(
            msgspec.structs.replace(org, api_key_sha256=digests.get(org.name, org.api_key_sha256))
            for org in organisations
        ),
        rules,
    )
    store_checked(state / "keys.json", generated_keys)
    store_checked(state / "tenants.json", _StoredTenants(tenants.organisations, rules))
    return tenants, api_keys


def describe(tenants: TenantDirectory, api_keys: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return the organisations as the ready file lists them. An unknown API key is null."""
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


def _one_organisation(titles: Titles) -> tuple[_ConfiguredOrganisation]:
    """Build one organisation. Studio 1 has the games 1001, 1002 …, studio 2 those from 2001."""
    studios = (
        TenantStudio(
            id=str(number),
            name=name,
            games=tuple(
                TenantGame(id=f"{number}{position:03d}", title=title) for position, title in enumerate(games, start=1)
            ),
        )
        for number, (name, games) in enumerate(titles, start=1)
    )
    return (_ConfiguredOrganisation(name="demo", studios=tuple(studios)),)


def _read_configuration(path: Path) -> _Configuration:
    try:
        decode = msgspec.toml.decode if path.suffix == ".toml" else msgspec.json.decode
        content = decode(path.read_bytes())
        _check_content(content, _Configuration)
        configuration = msgspec.convert(content, _Configuration)
    except OSError as error:
        raise Refused(f"cannot read {path}: {error.strerror}. Pass an existing file to --config") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadQuery("--config", str(path), f"is not a sandbox configuration: {error}") from None
    for org in configuration.organisations:
        if not re.fullmatch(r"[!-~]*", org.api_key):
            raise BadQuery("api_key", "…", "must be printable ASCII without spaces: it travels in a header")
    return configuration


def _check_content(content: object, kind: type[msgspec.Struct], *, path: str = "") -> None:
    """Refuse fields that *kind* does not have, and values that break its rules, at any depth.

    Ignored, such a field would leave a default without a warning.
    """
    fields = {field.encode_name: field.type for field in msgspec.structs.fields(kind)}
    _check_values(content, kind, path)
    for name, value in content.items() if isinstance(content, dict) else ():
        if name not in fields:
            raise BadQuery(f"{path}{name}", "…", "is not part of a sandbox configuration", fields, name=name)
        if fields[name] is CollectorRules:
            _check_content(value, CollectorRules, path=f"{path}{name}.")
        member = next(iter(get_args(fields[name])), None)
        if isinstance(member, type) and issubclass(member, msgspec.Struct) and isinstance(value, list):
            for position, item in enumerate(value):
                _check_content(item, member, path=f"{path}{name}[{position}].")


def _check_values(content: object, kind: type[msgspec.Struct], path: str) -> None:
    """Refuse values of a *kind* that break a rule beyond their type.

    Wire 1.13, Configs and experiments; Wire 5.4, Sandbox configuration.
    """
    match content:
        case {"name": str(name)} if kind is _ConfiguredOrganisation and not (
            1 <= len(name) <= NAME_LETTERS and name == name.strip() == printable(name)
        ):
            rule = f"must be 1 to {NAME_LETTERS} characters without control characters or surrounding white space"
            raise BadQuery(f"{path}name", name if len(name) <= NAME_LETTERS else f"{name[:20]}…", rule)
        case {"value": value} if kind is TenantConfig and not isinstance(value, str):
            raise BadQuery(f"{path}value", value, "must be a string: put it in quotes, even if it is a number or JSON")
        case {"id": "ctrl", "config": [*configs]} if kind is TenantVariant and configs:
            keys = [config.get("key") for config in configs if isinstance(config, dict)]
            rule = "must be empty, because ctrl is the control group: remove its configs, or rename the variant"
            raise BadQuery(f"{path}config", keys, rule)


def _fill_in_keys(
    configured: tuple[_ConfiguredOrganisation, ...], stored: tuple[Organisation, ...]
) -> tuple[Organisation, ...]:
    """Fill in missing ids, titles and game keys, from an earlier start if possible."""
    stored_games = {(org.name, game.id): game for org in stored for game in org.games}
    count = 0
    completed = []
    for org in configured:
        studios = []
        for position, studio in enumerate(org.studios, start=1):
            games = []
            for game in studio.games:
                count += 1
                game_id = game.id or str(1000 + count)
                earlier = stored_games.get((org.name, game_id), TenantGame())
                games.append(
                    msgspec.structs.replace(
                        game,
                        id=game_id,
                        title=game.title or f"Game {game_id}",
                        game_key=game.game_key or earlier.game_key or secrets.token_hex(16),
                        secret_key=game.secret_key or earlier.secret_key or secrets.token_hex(20),
                    )
                )
            studio_id = studio.id or str(position)
            named = msgspec.structs.replace(studio, id=studio_id, name=studio.name or f"Studio {studio_id}")
            studios.append(msgspec.structs.replace(named, games=tuple(games)))
        completed.append(Organisation(name=org.name, studios=tuple(studios)))
    return tuple(completed)


def _digest(api_key: str) -> str:
    """Return the SHA-256 of a key, with neither salt nor stretching.

    Both protect secrets that can be guessed. A generated key has 160 random bits, and the lookup must be cheap,
    because it happens for every request of any sender.
    """
    return hashlib.sha256(api_key.encode()).hexdigest()
