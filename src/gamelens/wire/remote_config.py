"""Request and answers of both init routes of the collector.

Wire 1.11, Version 2 init; Wire 1.12, Remote config init; Wire 1.13, Configs and experiments.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from gamelens.errors import suggests_names
from gamelens.wire.event_field_rules import event_rule
from gamelens.wire.event_validator import Validation
from gamelens.wire.rule_checking import FieldRule, Violation, struct_of, violations_of


class InitRequest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The body of an init request, sent at the start of a session.

    Older integrations send neither *user_id* nor *random_salt*. The salt is documented as a string, and official
    clients send the session number as an integer. Both are read (Wire 1.11, Version 2 init).
    """

    user_id: str | msgspec.UnsetType = msgspec.UNSET
    platform: str
    os_version: str
    sdk_version: str
    random_salt: str | int | msgspec.UnsetType = msgspec.UNSET
    build: str | None = None


class InitValidator:
    """The rules of an init body, which is an object or an array of one.

    The lenient validator requires nothing and names wrong types. The strict one wants every documented field in its
    documented form, and no other field (Wire 3.7, Strict validation).
    """

    def __init__(self, *, is_strict: bool) -> None:
        self._rule = _STRICT if is_strict else _LENIENT
        init = struct_of("init", self._rule)
        self._decoder: msgspec.json.Decoder[Any] = msgspec.json.Decoder(tuple[init] | init)  # type: ignore[valid-type]

    def user_id(self, body: bytes) -> str | None:
        """Return the `user_id` of *body*, None if it has none.

        Raises:
            msgspec.DecodeError: the body is not JSON, or it breaks a rule (see `violations`).
        """
        read = self._decoder.decode(body)
        init = read[0] if isinstance(read, tuple) else read
        return init.user_id or None

    def violations(self, body: object) -> list[Violation]:
        """Return the broken rules of a decoded *body* (Wire 1.9, Error types)."""
        init = body[0] if isinstance(body, list) and len(body) == 1 else body
        return list(violations_of(init, self._rule))


_LENIENT: Final = FieldRule(
    kind="object",
    members={
        "user_id": FieldRule(),
        "platform": FieldRule(),
        "os_version": FieldRule(),
        "sdk_version": FieldRule(),
        "random_salt": FieldRule(kind="string or integer"),
        "build": FieldRule(nullable=True),
    },
)


_FIELDS_OF_EVENTS: Final = event_rule("user", is_strict=True).members
# Documented fields have the form that they have in events.
_STRICT: Final = FieldRule(
    kind="object",
    members={name: _FIELDS_OF_EVENTS.get(name, FieldRule(shortest=1)) for name in _LENIENT.members},
    required=tuple(_LENIENT.members)[:-1],
    is_closed=True,
)
INIT_VALIDATORS: Final[Mapping[Validation, InitValidator]] = {
    "lenient": InitValidator(is_strict=False),
    "strict": InitValidator(is_strict=True),
}


@suggests_names
class RemoteConfig(msgspec.Struct, frozen=True, kw_only=True):
    """One remote config, with no start_ts if it has no start and end_ts null if no end."""

    key: str
    value: Any
    start_ts: int | msgspec.UnsetType = msgspec.UNSET
    end_ts: int | None = None


class VersionedConfig(RemoteConfig, frozen=True, kw_only=True):
    """A remote config with id and version, for `config_vsn_supported`.

    The config of a variant has id null and vsn 0 (Wire 1.13, Configs and experiments).
    """

    id: str | None
    vsn: int


@suggests_names
class InitUnchanged(msgspec.Struct, frozen=True, kw_only=True):
    """The answer 200 of the remote config init: the configs of the client are current."""

    server_ts: int


@suggests_names
class InitAnswer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The answer 201 of the remote config init: new configs, which replace all earlier ones."""

    server_ts: int
    configs: Sequence[RemoteConfig]
    configs_hash: str
    ab_id: str | None = None
    ab_variant_id: str | None = None


class V2InitAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of the version 2 init while the configs of the client are current."""

    enabled: bool
    server_ts: int
    flags: list[Any] = []


class V2FullAnswer(InitAnswer, frozen=True, kw_only=True, omit_defaults=True):
    """The full answer of the version 2 init: the fields of the remote config init and two more."""

    enabled: bool
    flags: list[Any]
