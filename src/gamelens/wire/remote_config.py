"""Both init routes: what a client says and what it hears (Wire 1.11, Version 2 init; Wire 1.12, Remote config init)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec


class InitRequest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a client says of itself at the start of a session.

    *random_salt* is a string as documented, and the session number as an integer from every official client; both are
    read (Wire 1.11, Version 2 init).
    """

    user_id: str
    platform: str
    os_version: str
    sdk_version: str
    random_salt: str | int
    build: str | None = None


class RemoteConfig(msgspec.Struct, frozen=True, kw_only=True):
    """One remote config; a window without a start has no start_ts, one without an end has end_ts null."""

    key: str
    value: Any
    start_ts: int | msgspec.UnsetType = msgspec.UNSET
    end_ts: int | None = None


class VersionedConfig(RemoteConfig, frozen=True, kw_only=True):
    """The form for `config_vsn_supported`; a variant's config has id null and vsn 0.

    Wire 1.13, Configs and experiments.
    """

    id: str | None
    vsn: int


class V2InitAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """Answer of POST /v2/<game_key>/init."""

    enabled: bool
    server_ts: int
    flags: list[Any] = []


class InitUnchanged(msgspec.Struct, frozen=True, kw_only=True):
    """Answer 200 of the remote-config init: what you hold is still current."""

    server_ts: int


class InitAnswer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Answer 201 of the remote-config init: take all of this."""

    server_ts: int
    configs: Sequence[RemoteConfig]
    configs_hash: str
    ab_id: str | None = None
    ab_variant_id: str | None = None
