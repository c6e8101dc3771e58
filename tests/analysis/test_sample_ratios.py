"""Sample ratios of experiments, in total and by day, on published and made-up cases."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from pandas import DataFrame

from gamelens.analysis import experiments
from gamelens.errors import BadQuery
from support.hypothesis_profiles import tries
from support.tidy_frames import tidy_frame


def split(**players: int) -> DataFrame:
    """Return a frame of the players of each variant of one experiment."""
    return DataFrame(
        {
            "ab_id": pd.Categorical(["gate"] * len(players)),
            "ab_variant_id": pd.Categorical(list(players)),
            "players": pd.array(list(players.values()), dtype="Int64"),
        }
    )


def test_the_sample_ratio_of_cookie_cats() -> None:
    """The sample ratio of Cookie Cats has p = 0.0086 and is not suspect.

    789 more of 90,189 players: chi-square is 789^2 / 90189 = 6.90 with one degree of freedom.
    """
    checked = experiments.sample_ratio(split(gate_30=44700, gate_40=45489))
    assert checked["p_value"].tolist() == pytest.approx([0.0086, 0.0086], abs=5e-5)
    assert not checked["is_suspect"].any()
    as_meant = experiments.sample_ratio(split(gate_30=44700, gate_40=45489), {"gate_30": 44700, "gate_40": 45489})
    assert as_meant["p_value"].tolist() == [1.0, 1.0]


def test_the_sample_ratio_against_other_shares() -> None:
    """300 and 100 players fit expected shares of 3 : 1, and are suspect against 1 : 1."""
    assert experiments.sample_ratio(split(ctrl=300, new=100), {"ctrl": 3, "new": 1})["p_value"].tolist() == [1.0, 1.0]
    assert experiments.sample_ratio(split(ctrl=300, new=100))["is_suspect"].all()


def test_an_arm_without_players_is_suspect() -> None:
    """An expected arm without players is suspect, and so is an arm expected to be empty."""
    checked = experiments.sample_ratio(split(ctrl=100), {"ctrl": 1, "new": 1}).set_index("ab_variant_id")
    assert checked.loc["new", "players"] == 0
    assert checked["is_suspect"].all()
    assert experiments.sample_ratio(split(ctrl=100, new=1), {"ctrl": 1, "new": 0})["is_suspect"].all()


def test_one_arm_alone_has_no_ratio() -> None:
    """With one arm the p-value of the ratio is NA."""
    assert experiments.sample_ratio(split(ctrl=100))["p_value"].isna().all()


def test_a_variant_without_an_expected_weight_is_refused() -> None:
    """A variant that the expected weights lack raises `BadQuery` that names it."""
    with pytest.raises(BadQuery, match="new"):
        experiments.sample_ratio(split(ctrl=100, new=100), {"ctrl": 1})


def test_two_experiments_at_once_are_checked_each_for_itself() -> None:
    """Sample ratios are checked per experiment, and given weights need exactly one."""
    installs = tidy_frame(
        "new_users",
        ab_id=["gate", "gate", "price", "price", None],
        ab_variant_id=["ctrl", "a", "ctrl", "b", None],
        new_users=[500, 300, 50, 50, 9000],
    )
    arms = experiments.arms(installs)
    assert arms["players"].tolist() == [300, 500, 50, 50]
    assert experiments.sample_ratio(arms)["is_suspect"].tolist() == [True, True, False, False]
    with pytest.raises(BadQuery, match="several experiments"):
        experiments.sample_ratio(arms, {"ctrl": 1})


def by_day(*, days: int | None = None, **players: list[int]) -> DataFrame:
    """Return new players of each day, for each variant; after *days* the days begin again."""
    number = len(next(iter(players.values())))
    names = [name for name in players for _ in range(number)]
    stamps = [f"2026-11-{place % (days or number) + 1:02}" for _ in players for place in range(number)]
    counts = [count for counts in players.values() for count in counts]
    return tidy_frame("new_users", timestamp=stamps, ab_variant_id=names, new_users=counts)


def test_a_split_that_is_right_only_in_total_is_suspect() -> None:
    """A day of 300 to 100 and one of 100 to 300 are equal in total, and neither is a fair split."""
    checked = experiments.sample_ratio(by_day(ctrl=[300, 100, 200], new=[100, 300, 200]))
    assert checked["p_value"].tolist() == [1.0, 1.0]
    assert checked["p_days"].max() < 1e-6
    assert checked["is_suspect"].all()
    assert checked["worst_day"].tolist() == [pd.Timestamp("2026-11-01", tz="UTC")] * 2


def test_a_planned_ramp_is_compared_with_the_weights_of_its_days() -> None:
    """Weights by day make the same split an intended one; a day without weights is refused."""
    installs = by_day(ctrl=[300, 100, 200], new=[100, 300, 200])
    planned = installs.rename(columns={"new_users": "weight"})
    checked = experiments.sample_ratio(installs, planned)
    assert checked["p_days"].tolist() == [1.0, 1.0]
    assert not checked["is_suspect"].any()
    with pytest.raises(BadQuery, match="on a day that has players"):
        experiments.sample_ratio(installs, planned[planned["timestamp"] < pd.Timestamp("2026-11-03", tz="UTC")])


def test_days_with_few_players_are_tested_together() -> None:
    """Days of two players are joined until the smallest arm expects five, and a fair split is not suspect."""
    checked = experiments.sample_ratio(by_day(ctrl=[1, 0, 2] * 10, new=[1, 2, 0] * 10))
    assert checked["p_days"].min() > 0.5
    assert not checked["is_suspect"].any()


@pytest.mark.wide
@pytest.mark.hypothesis  # more draws in `make bench`
def test_a_fair_split_has_small_p_values_as_often_as_promised() -> None:
    """Of fair experiments of 20 days, one in thirty or so has one of three p-values below 0.01, and none is suspect.

    More than five of fifty come by chance in 4 runs of 1,000.
    """
    fair = tries(in_test=20, in_bench=50)
    treated = np.random.default_rng(3).binomial(60, 0.5, (fair, 20))
    arms = by_day(ctrl=(60 - treated).ravel().tolist(), new=treated.ravel().tolist(), days=20)
    names = [f"experiment {place}" for place in range(fair) for _ in range(20)]
    checked = experiments.sample_ratio(arms.assign(ab_id=pd.Categorical(names * 2)))
    checked = checked.drop_duplicates("ab_id")
    assert len(checked) == fair
    assert (checked[["p_value", "p_days", "p_worst_day"]].min(axis=1) < 0.01).mean() <= 0.1
    assert checked["is_suspect"].sum() <= 1


def test_no_arm_has_no_ratio() -> None:
    """An empty frame has no rows."""
    assert not len(experiments.sample_ratio(split()))
