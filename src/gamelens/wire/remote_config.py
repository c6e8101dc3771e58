"""Request and answers of both init routes of the collector.

Wire 1.11, Version 2 init; Wire 1.12, Remote config init; Wire 1.13, Configs and experiments.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec


class InitRequest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The body of an init request, sent at the start of a session.

    *random_salt* is documented as a string; official clients send the session number as an integer. Both are read
    (Wire 1.11, Version 2 init).
    """

    user_id: str
    platform: str
    os_version: str
    sdk_version: str
    random_salt: str | int
    build: str | None = None


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


class V2InitAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of POST /v2/<game_key>/init."""

    enabled: bool
    server_ts: int
    flags: list[Any] = []


class InitUnchanged(msgspec.Struct, frozen=True, kw_only=True):
    """The answer 200 of the remote config init: the configs of the client are current."""

    server_ts: int


class InitAnswer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The answer 201 of the remote config init: new configs, which replace all earlier ones."""

    server_ts: int
    configs: Sequence[RemoteConfig]
    configs_hash: str
    ab_id: str | None = None
    ab_variant_id: str | None = None
