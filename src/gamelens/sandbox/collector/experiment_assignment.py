"""Which remote configs a player is given, and by which experiment (Collector, Init response).

Our choice: a player's place in an experiment is a hash of experiment and user id, so that it is the same at every init,
on every machine, and independent between experiments. The first experiment a player falls into is the one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import msgspec

from gamelens.sandbox.tenants import TenantConfig, TenantExperiment, TenantGame, TenantVariant
from gamelens.wire.remote_config import InitAnswer, RemoteConfig, VersionedConfig

_HASH_RANGE = 2**64


class VariantAssignment(msgspec.Struct, frozen=True):
    """A player's experiment and variant."""

    experiment: TenantExperiment
    variant: TenantVariant


def assigned(game: TenantGame, user_id: str) -> VariantAssignment | None:
    """The experiment *user_id* takes part in; None for who takes part in none."""
    for experiment in game.experiment:
        if experiment.variant and _share_of(game.id, experiment.id, user_id) < experiment.share:
            place = _share_of(game.id, experiment.id, "variant", user_id)
            return VariantAssignment(experiment, experiment.variant[int(place * len(experiment.variant))])
    return None


def answer_init(game: TenantGame, *, user_id: str, now_s: int, for_s: int, is_versioned: bool) -> InitAnswer:
    """What holds for *user_id* from now on for *for_s* seconds.

    A player in an experiment is given the configs of the variant and no others; who is in none, the global ones.
    """
    found = assigned(game, user_id)
    chosen = [
        config
        for config in (found.variant.config if found else game.config)
        if _is_active(config, now_s=now_s, until_s=now_s + for_s)
    ]
    configs: Sequence[RemoteConfig] = _versioned(chosen, is_global=found is None) if is_versioned else _plain(chosen)
    ab_id, ab_variant_id = (found.experiment.id, found.variant.id) if found else (None, None)
    return InitAnswer(
        server_ts=now_s,
        configs=configs,
        configs_hash=_digest(configs, ab_id, ab_variant_id),
        ab_id=ab_id,
        ab_variant_id=ab_variant_id,
    )


def _is_active(config: TenantConfig, *, now_s: int, until_s: int) -> bool:
    """Whether a config holds at any moment of the range; with an empty range, at its start."""
    has_begun = config.start_ts is None or config.start_ts <= until_s
    return has_begun and (config.end_ts is None or config.end_ts > now_s)


def _plain(configs: Sequence[TenantConfig]) -> list[RemoteConfig]:
    return [RemoteConfig(key=it.key, value=it.value, start_ts=_start(it), end_ts=it.end_ts) for it in configs]


def _start(config: TenantConfig) -> int | msgspec.UnsetType:
    return msgspec.UNSET if config.start_ts is None else config.start_ts


def _versioned(configs: Sequence[TenantConfig], *, is_global: bool) -> list[VersionedConfig]:
    """The same with `id` and `vsn`, both always there: a client that asks for them reads them unseen (1.5)."""
    return [
        VersionedConfig(
            key=it.key,
            value=it.value,
            start_ts=_start(it),
            end_ts=it.end_ts,
            id=_digest(it.key) if is_global else None,
            vsn=1 if is_global else 0,
        )
        for it in configs
    ]


def _digest(*content: Any) -> str:
    return hashlib.sha256(msgspec.json.encode(content, order="deterministic")).hexdigest()[:16]


def _share_of(*salts: str) -> float:
    """A number from 0 to 1 that is always the same for the same words and otherwise uniform."""
    digest = hashlib.sha256(msgspec.json.encode(salts)).digest()
    return int.from_bytes(digest[:8], "big") / _HASH_RANGE
