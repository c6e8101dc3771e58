"""A player's configs and variants (Wire 1.13, Configs and experiments)."""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec
import pytest

from gamelens.sandbox.collector.experiment_assignment import answer_init, assigned
from gamelens.sandbox.state.tenants import TenantConfig, TenantExperiment, TenantGame, TenantVariant

FAST = TenantVariant(id="fast", config=(TenantConfig(key="speed", value="2"),))
EXPERIMENT = TenantExperiment(id="exp1", share=0.5, variant=(TenantVariant(id="ctrl"), FAST))
GAME = TenantGame(id="1", config=(TenantConfig(key="difficulty", value="normal"),), experiment=(EXPERIMENT,))
PLAYERS = [f"player-{number}" for number in range(4000)]


def init(
    game: TenantGame, user_id: str | None = "ann", *, now_s: int = 1000, for_s: int = 0, is_versioned: bool = False
) -> dict[str, Any]:
    """Return the answer to an init as JSON."""
    answer = answer_init(game, user_id=user_id, now_s=now_s, for_s=for_s, is_versioned=is_versioned)
    return msgspec.json.decode(msgspec.json.encode(answer), type=dict[str, Any])


def player_in(variant: str | None) -> str:
    """Return a player of *variant*, or one outside the experiment for None."""
    for user_id in PLAYERS:
        assignment = assigned(GAME, user_id)
        if (assignment[1].id if assignment else None) == variant:
            return user_id
    raise AssertionError(variant)


def test_a_player_outside_experiments_is_given_global_configs_and_no_ids() -> None:
    """A player outside all experiments gets the global configs and no ids.

    Wire 1.13, Configs and experiments.
    """
    answer = init(GAME, player_in(None))
    assert [config["key"] for config in answer["configs"]] == ["difficulty"]
    assert {"ab_id", "ab_variant_id"}.isdisjoint(answer)


def test_a_player_in_an_experiment_is_given_the_variants_configs_only() -> None:
    """A player in an experiment gets the configs of its variant alone, and both ids.

    Wire 1.13, Configs and experiments.
    """
    answer = init(GAME, player_in("fast"))
    assert [config["key"] for config in answer["configs"]] == ["speed"]
    assert (answer["ab_id"], answer["ab_variant_id"]) == ("exp1", "fast")


def test_the_control_group_has_empty_configs() -> None:
    """The control group gets an empty list of configs and the variant `ctrl`.

    Wire 1.13, Configs and experiments.
    """
    answer = init(GAME, player_in("ctrl"))
    assert (answer["configs"], answer["ab_variant_id"]) == ([], "ctrl")


def test_a_player_without_an_id_takes_part_in_no_experiment() -> None:
    """Without a user id there are global configs and no ids, where every player is enrolled.

    Wire 1.13, Configs and experiments.
    """
    everyone = msgspec.structs.replace(GAME, experiment=(msgspec.structs.replace(EXPERIMENT, share=1.0),))
    assert assigned(everyone, "ann") is not None
    answer = init(everyone, None)
    assert [config["key"] for config in answer["configs"]] == ["difficulty"]
    assert {"ab_id", "ab_variant_id"}.isdisjoint(answer)


def test_a_player_keeps_its_variant() -> None:
    """The variant is a salted hash of `user_id`, the same at every init.

    Wire 1.13, Configs and experiments.
    """
    assert [assigned(GAME, user_id) for user_id in PLAYERS[:50]] == [
        assigned(GAME, user_id) for user_id in PLAYERS[:50]
    ]


def test_the_share_takes_part_evenly_over_the_variants() -> None:
    """The share of players takes part, evenly over the variants.

    The bounds are four standard deviations.

    Wire 5.4, Sandbox configuration.
    """
    counts = Counter(assignment[1].id if (assignment := assigned(GAME, user_id)) else None for user_id in PLAYERS)
    assert counts[None] == pytest.approx(2000, abs=130)
    assert counts["ctrl"] == pytest.approx(1000, abs=110)
    assert counts["fast"] == pytest.approx(1000, abs=110)


def test_experiments_are_assigned_independently() -> None:
    """A quarter of the players is in both of two experiments with a share of one half.

    Wire 1.13, Configs and experiments.
    """
    other = TenantGame(id="1", experiment=(msgspec.structs.replace(EXPERIMENT, id="exp2"),))
    both = sum(1 for user_id in PLAYERS if assigned(GAME, user_id) and assigned(other, user_id))
    assert both == pytest.approx(1000, abs=110)


@pytest.mark.parametrize(
    ("window", "for_s", "is_there"),
    [
        ((None, None), 0, True),
        ((1000, None), 0, True),
        ((1001, None), 0, False),
        ((1001, None), 60, True),
        ((None, 1000), 0, False),
        ((None, 1001), 0, True),
        ((900, 950), 60, False),
    ],
)
def test_configs_hold_within_the_range_asked_for(
    window: tuple[int | None, int | None], for_s: int, is_there: bool
) -> None:
    """A config is given if its window overlaps the requested seconds from now.

    Wire 1.12, Remote config init.
    """
    game = TenantGame(id="1", config=(TenantConfig(key="sale", value="1", start_ts=window[0], end_ts=window[1]),))
    assert bool(init(game, for_s=for_s)["configs"]) == is_there


def test_a_window_without_bounds_has_no_start_and_a_null_end() -> None:
    """A config without window has no `start_ts` and a null `end_ts`.

    Wire 1.13, Configs and experiments.
    """
    assert init(GAME, player_in(None))["configs"] == [{"key": "difficulty", "value": "normal", "end_ts": None}]


def test_versioned_configs_always_have_id_and_vsn() -> None:
    """Versioned configs always have `id` and `vsn`, which clients read unchecked.

    Wire 1.13, Configs and experiments.
    """
    for variant in (None, "fast"):
        configs = init(GAME, player_in(variant), is_versioned=True)["configs"]
        assert all({"id", "vsn"} <= config.keys() for config in configs)


def test_the_hash_changes_with_the_configs_and_not_with_the_time() -> None:
    """The hash depends on the configs alone, not on the time (Wire 1.12, Remote config init)."""
    changed = msgspec.structs.replace(GAME, config=(TenantConfig(key="difficulty", value="hard"),))
    user_id = player_in(None)
    assert init(GAME, user_id)["configs_hash"] == init(GAME, user_id, now_s=2000)["configs_hash"]
    assert init(GAME, user_id)["configs_hash"] != init(changed, user_id)["configs_hash"]
