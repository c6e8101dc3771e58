"""What an init is answered: the configs of a player, and the assigned variant of an experiment."""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec

from gamelens.sandbox.state.tenants import TenantExperiment, TenantGame, TenantVariant
from gamelens.wire.remote_config import InitAnswer, RemoteConfig, VersionedConfig


def assigned(game: TenantGame, user_id: str | None) -> tuple[TenantExperiment, TenantVariant] | None:
    """Return the experiment and variant of *user_id*, or None outside of experiments.

    Wire 1.13, Configs and experiments.
    A hash of game, experiment and user id decides, so the assignment is the same at every init and on every machine,
    and independent between experiments. The first experiment that a player falls into counts. A request without a user
    is outside of all of them.
    """
    if user_id is None:
        return None
    for experiment in game.experiment:
        if experiment.variant and _share_of(game.id, experiment.id, user_id) < experiment.share:
            position = _share_of(game.id, experiment.id, "variant", user_id)
            return experiment, experiment.variant[int(position * len(experiment.variant))]
    return None


def answer_init(game: TenantGame, *, user_id: str | None, now_s: int, for_s: int, is_versioned: bool) -> InitAnswer:
    """Return the configs and experiment of *user_id* (Wire 1.12, Remote config init).

    A player in an experiment gets the configs of the variant and no global ones.

    Configs that hold at any moment of *for_s* seconds from *now_s* (epoch seconds) are included, and carry `id` and
    `vsn` with *is_versioned*.
    """
    assignment = assigned(game, user_id)
    configs = [
        RemoteConfig(
            key=config.key,
            value=config.value,
            start_ts=msgspec.UNSET if config.start_ts is None else config.start_ts,
            end_ts=config.end_ts,
        )
        for config in (assignment[1].config if assignment else game.config)
        if config.start_ts is None or config.start_ts <= now_s + for_s
        if config.end_ts is None or config.end_ts > now_s
    ]
    if is_versioned:  # clients that request id and vsn do not check them
        configs = [
            VersionedConfig(
                **msgspec.structs.asdict(config),
                id=None if assignment else _digest(config.key),
                vsn=0 if assignment else 1,
            )
            for config in configs
        ]
    ab_id, ab_variant_id = (assignment[0].id, assignment[1].id) if assignment else (None, None)
    return InitAnswer(
        server_ts=now_s,
        configs=configs,
        configs_hash=_digest(configs, ab_id, ab_variant_id),
        ab_id=ab_id,
        ab_variant_id=ab_variant_id,
    )


def _digest(*content: Any) -> str:
    return hashlib.sha256(msgspec.json.encode(content, order="deterministic")).hexdigest()[:16]


def _share_of(*salts: str) -> float:
    """Return a number from 0 to 1: uniform, and always the same for the same texts."""
    digest = hashlib.sha256(msgspec.json.encode(salts)).digest()
    return int.from_bytes(digest[:8], "big") / 2**64
