"""Variants of an experiment: differences, sample ratio and chances on published cases."""

from __future__ import annotations

import pandas as pd
import pytest
from pandas import DataFrame

from gamelens.analysis import experiments
from gamelens.errors import BadQuery
from support.experiment_frames import shares
from support.tidy_frames import tidy_frame


@pytest.mark.parametrize(
    ("treated", "control", "low", "high"),
    [
        ((56, 70), (48, 80), 0.0524, 0.3339),
        ((9, 10), (3, 10), 0.1705, 0.8090),
        ((6, 7), (2, 7), 0.0582, 0.8062),
        ((5, 56), (0, 29), -0.0381, 0.1926),
        ((0, 10), (0, 20), -0.1611, 0.2775),
    ],
)
def test_intervals_are_those_newcombe_published(
    treated: tuple[int, int], control: tuple[int, int], low: float, high: float
) -> None:
    """Intervals of differences are those of Newcombe 1998, table II, method 10.

    R. G. Newcombe, Interval estimation for the difference between independent proportions.
    """
    result = experiments.differences(shares({"ctrl": control, "new": treated})).iloc[0]
    assert (result["low"], result["high"]) == pytest.approx((low, high), abs=5e-5)


def test_cookie_cats_is_read_as_it_was_published() -> None:
    """The published Cookie Cats experiment gives its published p-values and verdicts.

    90,189 players: day 7 .1902 and .1820 (z = 3.16), day 1 .4482 and .4423 (z = 1.78).
    """
    gates = {"gate_30": (8502, 44700), "gate_40": (8279, 45489)}
    day_7 = experiments.differences(shares(gates)).iloc[0]
    assert day_7["difference"] == pytest.approx(-0.0082, abs=5e-5)
    assert day_7["p_value"] == pytest.approx(0.0016, abs=5e-5)
    day_1 = experiments.differences(shares({"gate_30": (20034, 44700), "gate_40": (20119, 45489)})).iloc[0]
    assert day_1["p_value"] == pytest.approx(0.0744, abs=5e-5)
    assert day_1["low"] < 0 < day_1["high"]
    chance_best = experiments.probability_best(shares(gates)).set_index("ab_variant_id")["chance_best"]
    assert chance_best["gate_30"] == pytest.approx(0.9992, abs=5e-4)


def test_the_control_is_called_ctrl_or_comes_first_by_name() -> None:
    """The control is the variant `ctrl`, else the first by name, and None without variants."""
    assert experiments.control_of(tidy_frame(ab_variant_id=["a", "ctrl", None])) == "ctrl"
    assert experiments.control_of(tidy_frame(ab_variant_id=["gate_40", "gate_30"])) == "gate_30"
    assert experiments.control_of(tidy_frame(ab_variant_id=["a"])[:0]) is None


def test_a_control_without_players_is_refused() -> None:
    """A control that the frame does not have raises `BadQuery` that names it."""
    with pytest.raises(BadQuery, match="old"):
        experiments.differences(shares({"ctrl": (1, 10), "new": (1, 10)}), control="old")


def test_every_variant_is_compared_with_the_control_within_its_measure() -> None:
    """Each variant is compared with the control of its measure.

    The relative difference is NA if the control has no successes.
    """
    both = pd.concat(
        [
            shares({"ctrl": (10, 100), "a": (20, 100), "b": (10, 100)}, measure="D1 retention"),
            shares({"ctrl": (0, 100), "a": (5, 100)}, measure="conversion"),
        ]
    )
    result = experiments.differences(both)
    assert result[["measure", "ab_variant_id"]].to_numpy().tolist() == [
        ["D1 retention", "a"],
        ["D1 retention", "b"],
        ["conversion", "a"],
    ]
    assert result["difference"].tolist() == pytest.approx([0.1, 0.0, 0.05])
    assert result["relative"].isna().tolist() == [False, False, True]
    assert result["p_value"].iloc[1] == 1.0


def test_an_arm_without_players_has_an_unknown_difference() -> None:
    """An arm without players has NA as difference, bounds and p-value."""
    result = experiments.differences(shares({"ctrl": (1, 10), "new": (0, 0)})).iloc[0]
    assert result[["difference", "low", "high", "p_value"]].isna().all()


def test_together_hands_on_receipts_and_adjusts_for_all() -> None:
    """Joined comparisons merge their receipts and adjust p-values over all rows."""
    first, second = (
        experiments.differences(shares({"ctrl": (100, 1000), "new": (130, 1000)}, measure=name))
        for name in ("D1", "D7")
    )
    both = experiments.concat_comparisons(first, second)
    assert both["p_adjusted"].tolist() == pytest.approx([2 * first["p_value"].item()] * 2)
    assert [*both["measure"].cat.categories] == ["D1", "D7"]
    assert both.attrs["gamelens"]["requests"] == 2
    assert len(experiments.concat_comparisons(first[:0], second[:0])) == 0


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


def test_returns_pool_the_cohorts_that_have_reached_an_age(cohorts: DataFrame) -> None:
    """Shares of returning players pool only the cohorts that have reached the age."""
    frame = cohorts.assign(ab_variant_id=pd.Categorical(["ctrl", "new"] * 4))
    result = experiments.retention_shares(frame)
    assert result["measure"].tolist() == ["D1 retention"] * 2 + ["D2 retention"] * 2
    assert result["players"].tolist() == [30, 5, 10, 4]
    assert result["successes"].tolist() == [13, 2, 2, 0]


def test_conversion_counts_variants_without_payers() -> None:
    """Conversion is per new player of the variant, and 0 for a variant without payers."""
    installs = tidy_frame("new_users", ab_variant_id=["ctrl", "new", None], new_users=[100, 50, 7])
    paid = tidy_frame("converting_users", ab_variant_id=["ctrl", None], converting_users=[3, 9])
    result = experiments.conversion_shares(installs, paid)
    assert result[["ab_variant_id", "players", "successes"]].to_numpy().tolist() == [["ctrl", 100, 3], ["new", 50, 0]]


def test_chances_of_two_arms_are_those_of_the_closed_form() -> None:
    """Chances to be best equal the closed form within 0.005 and add up to 1.

    P(Beta(2,1) > Beta(1,1)) = 2/3, and for Beta(3, 1) > Beta(1, 3) it is 19/20.
    """
    result = experiments.probability_best(shares({"a": (1, 1), "b": (0, 0)})).set_index("ab_variant_id")
    assert result.loc["a", "chance_best"] == pytest.approx(2 / 3, abs=0.005)
    result = experiments.probability_best(shares({"a": (2, 2), "b": (0, 2)})).set_index("ab_variant_id")
    assert result.loc["a", "chance_best"] == pytest.approx(19 / 20, abs=0.005)
    assert result["chance_best"].sum() == pytest.approx(1.0)


def test_the_loss_of_choosing_is_the_expected_gain_of_the_best() -> None:
    """The expected loss of an arm is the expected maximum less its own mean.

    E[max] of two flat posteriors is 2/3, so either costs 2/3 - 1/2.
    """
    result = experiments.probability_best(shares({"a": (0, 0), "b": (0, 0)}))
    assert result["expected_loss"].tolist() == pytest.approx([1 / 6, 1 / 6], abs=0.003)


def test_chances_are_the_same_with_the_same_seed() -> None:
    """Equal seeds give equal chances, another seed others."""
    frame = shares({"a": (10, 100), "b": (12, 100)})
    assert experiments.probability_best(frame).equals(experiments.probability_best(frame))
    assert not experiments.probability_best(frame).equals(experiments.probability_best(frame, seed=1))


def test_an_empty_frame_gives_empty_results() -> None:
    """Every analysis of an empty frame has no rows, and differences keep their columns."""
    nothing = shares({"ctrl": (0, 0)})[:0]
    assert list(experiments.differences(nothing).columns) == list(
        experiments.differences(shares({"ctrl": (1, 2), "new": (1, 2)})).columns
    )
    assert not len(experiments.probability_best(nothing))
    assert not len(experiments.detectable_effects(nothing))
    assert not len(experiments.sample_ratio(split()))
