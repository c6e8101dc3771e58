"""Experiments on published and hand-computed cases, and on players whose truth is known in closed form."""

from __future__ import annotations

from math import sqrt

import numpy as np
import pandas as pd
import pytest
from pandas import DataFrame

from gamelens.analysis import experiments
from gamelens.analysis.significance import holm
from gamelens.errors import BadQuery
from gamelens.simulator import load_scenario
from gamelens.simulator.population.experiment_arms import activity_of, arms_of
from gamelens.simulator.population.players import draw_active


def shares(arms: dict[str, tuple[int, int]], *, measure: str = "conversion") -> DataFrame:
    """Successes and players of each variant."""
    frame = DataFrame(
        {
            "measure": pd.Categorical([measure] * len(arms)),
            "ab_variant_id": pd.Categorical(list(arms)),
            "players": pd.array([players for _, players in arms.values()], dtype="Int64"),
            "successes": pd.array([successes for successes, _ in arms.values()], dtype="Int64"),
        }
    )
    frame.attrs["gamelens"] = {"asked": {"metric": "retention"}, "requests": 1}
    return frame


def many(players: int, control: np.ndarray, treated: np.ndarray) -> DataFrame:
    """An experiment for each pair of successes."""
    runs = len(control)
    return DataFrame(
        {
            "ab_id": pd.Categorical(np.tile(np.arange(runs), 2).astype(str)),
            "measure": pd.Categorical(["D1"] * 2 * runs),
            "ab_variant_id": pd.Categorical(["ctrl"] * runs + ["new"] * runs),
            "players": pd.array([players] * 2 * runs, dtype="Int64"),
            "successes": pd.array([*control.tolist(), *treated.tolist()], dtype="Int64"),
        }
    )


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
def test_intervals_are_those_newcombe_published(treated, control, low, high) -> None:
    """Newcombe 1998, Interval estimation for the difference between independent proportions, table II, method 10."""
    made = experiments.differences(shares({"ctrl": control, "new": treated})).iloc[0]
    assert (made["low"], made["high"]) == pytest.approx((low, high), abs=5e-5)


def test_cookie_cats_is_read_as_it_was_published() -> None:
    """90,189 players: day 7 .1902 and .1820 (z = 3.16), day 1 .4482 and .4423 (z = 1.78)."""
    gates = {"gate_30": (8502, 44700), "gate_40": (8279, 45489)}
    day_7 = experiments.differences(shares(gates)).iloc[0]
    assert day_7["difference"] == pytest.approx(-0.0082, abs=5e-5)
    assert day_7["p_value"] == pytest.approx(0.0016, abs=5e-5)
    day_1 = experiments.differences(shares({"gate_30": (20034, 44700), "gate_40": (20119, 45489)})).iloc[0]
    assert day_1["p_value"] == pytest.approx(0.0744, abs=5e-5)
    assert day_1["low"] < 0 < day_1["high"]
    best = experiments.probability_best(shares(gates)).set_index("ab_variant_id")["chance_best"]
    assert best["gate_30"] == pytest.approx(0.9992, abs=5e-4)


def test_the_control_is_called_ctrl_or_comes_first_by_name(tidy) -> None:
    assert experiments.control_of(tidy(ab_variant_id=["a", "ctrl", None])) == "ctrl"
    assert experiments.control_of(tidy(ab_variant_id=["gate_40", "gate_30"])) == "gate_30"
    assert experiments.control_of(tidy(ab_variant_id=["a"])[:0]) is None


def test_a_control_nobody_is_in_is_refused() -> None:
    with pytest.raises(BadQuery, match="old"):
        experiments.differences(shares({"ctrl": (1, 10), "new": (1, 10)}), control="old")


def test_every_variant_is_compared_with_the_control_within_its_measure() -> None:
    both = pd.concat(
        [
            shares({"ctrl": (10, 100), "a": (20, 100), "b": (10, 100)}, measure="D1 retention"),
            shares({"ctrl": (0, 100), "a": (5, 100)}, measure="conversion"),
        ]
    )
    made = experiments.differences(both)
    assert made[["measure", "ab_variant_id"]].to_numpy().tolist() == [
        ["D1 retention", "a"],
        ["D1 retention", "b"],
        ["conversion", "a"],
    ]
    assert made["difference"].tolist() == pytest.approx([0.1, 0.0, 0.05])
    assert made["relative"].isna().tolist() == [False, False, True]
    assert made["p_value"].iloc[1] == 1.0


def test_an_arm_nobody_is_in_yet_differs_by_nobody_knows_what() -> None:
    made = experiments.differences(shares({"ctrl": (1, 10), "new": (0, 0)})).iloc[0]
    assert made[["difference", "low", "high", "p_value"]].isna().all()


def test_holm_raises_p_values_step_by_step_and_leaves_what_is_unknown() -> None:
    raised = holm(pd.Series([0.01, 0.04, float("nan"), 0.03]))
    assert raised.tolist()[:2] == pytest.approx([0.03, 0.06])
    assert raised.iloc[3] == pytest.approx(0.06)
    assert pd.isna(raised.iloc[2])


def test_together_hands_on_receipts_and_adjusts_for_all() -> None:
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
    return DataFrame(
        {
            "ab_id": pd.Categorical(["gate"] * len(players)),
            "ab_variant_id": pd.Categorical(list(players)),
            "players": pd.array(list(players.values()), dtype="Int64"),
        }
    )


def test_the_sample_ratio_of_cookie_cats() -> None:
    """789 more of 90,189: chi-square 789^2 / 90189 = 6.90 with one degree of freedom."""
    checked = experiments.sample_ratio(split(gate_30=44700, gate_40=45489))
    assert checked["p_value"].tolist() == pytest.approx([0.0086, 0.0086], abs=5e-5)
    assert not checked["is_suspect"].any()
    as_meant = experiments.sample_ratio(split(gate_30=44700, gate_40=45489), {"gate_30": 44700, "gate_40": 45489})
    assert as_meant["p_value"].tolist() == [1.0, 1.0]


def test_the_sample_ratio_against_other_shares() -> None:
    """300 and 100 where 3 : 1 was meant; against equal shares chi-square is 100."""
    assert experiments.sample_ratio(split(ctrl=300, new=100), {"ctrl": 3, "new": 1})["p_value"].tolist() == [1.0, 1.0]
    assert experiments.sample_ratio(split(ctrl=300, new=100))["is_suspect"].all()


def test_an_arm_that_lost_everybody_is_suspect() -> None:
    checked = experiments.sample_ratio(split(ctrl=100), {"ctrl": 1, "new": 1}).set_index("ab_variant_id")
    assert checked.loc["new", "players"] == 0
    assert checked["is_suspect"].all()
    assert experiments.sample_ratio(split(ctrl=100, new=1), {"ctrl": 1, "new": 0})["is_suspect"].all()


def test_one_arm_alone_has_no_ratio() -> None:
    assert experiments.sample_ratio(split(ctrl=100))["p_value"].isna().all()


def test_a_variant_without_an_expected_weight_is_refused() -> None:
    with pytest.raises(BadQuery, match="new"):
        experiments.sample_ratio(split(ctrl=100, new=100), {"ctrl": 1})


def test_two_experiments_at_once_are_checked_each_for_itself(tidy) -> None:
    installs = tidy(
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


def test_returns_pool_the_cohorts_that_have_reached_an_age(cohorts) -> None:
    frame = cohorts.assign(ab_variant_id=pd.Categorical(["ctrl", "new"] * 4))
    made = experiments.retention_shares(frame)
    assert made["measure"].tolist() == ["D1 retention"] * 2 + ["D2 retention"] * 2
    assert made["players"].tolist() == [30, 5, 10, 4]
    assert made["successes"].tolist() == [13, 2, 2, 0]


def test_conversion_is_of_those_who_came_also_where_nobody_paid(tidy) -> None:
    installs = tidy("new_users", ab_variant_id=["ctrl", "new", None], new_users=[100, 50, 7])
    paid = tidy("converting_users", ab_variant_id=["ctrl", None], converting_users=[3, 9])
    made = experiments.conversion_shares(installs, paid)
    assert made[["ab_variant_id", "players", "successes"]].to_numpy().tolist() == [["ctrl", 100, 3], ["new", 50, 0]]


def test_chances_of_two_arms_are_those_of_the_closed_form() -> None:
    """P(Beta(2,1) > Beta(1,1)) = 2/3; of Beta(3, 1) > Beta(1, 3) it is 19/20."""
    made = experiments.probability_best(shares({"a": (1, 1), "b": (0, 0)})).set_index("ab_variant_id")
    assert made.loc["a", "chance_best"] == pytest.approx(2 / 3, abs=0.005)
    made = experiments.probability_best(shares({"a": (2, 2), "b": (0, 2)})).set_index("ab_variant_id")
    assert made.loc["a", "chance_best"] == pytest.approx(19 / 20, abs=0.005)
    assert made["chance_best"].sum() == pytest.approx(1.0)


def test_the_loss_of_choosing_is_what_the_better_one_brings_more() -> None:
    """E[max] of two flat posteriors is 2/3, so either costs 2/3 - 1/2."""
    made = experiments.probability_best(shares({"a": (0, 0), "b": (0, 0)}))
    assert made["expected_loss"].tolist() == pytest.approx([1 / 6, 1 / 6], abs=0.003)


def test_chances_are_the_same_with_the_same_seed() -> None:
    frame = shares({"a": (10, 100), "b": (12, 100)})
    assert experiments.probability_best(frame).equals(experiments.probability_best(frame))
    assert not experiments.probability_best(frame).equals(experiments.probability_best(frame, seed=1))


def test_nothing_is_compared_with_nothing() -> None:
    nothing = shares({"ctrl": (0, 0)})[:0]
    assert list(experiments.differences(nothing).columns) == list(
        experiments.differences(shares({"ctrl": (1, 2), "new": (1, 2)})).columns
    )
    assert not len(experiments.probability_best(nothing))
    assert not len(experiments.detectable_effects(nothing))
    assert not len(experiments.sample_ratio(split()))


def test_sample_size_is_the_textbooks() -> None:
    """10 % against 12 %, two-sided 5 %, power 80 %: 3,841 players an arm."""
    assert experiments.sample_size(0.10, 0.12) == 3841
    assert experiments.power(0.10, 0.12, 3841, 3841) == pytest.approx(0.8, abs=1e-4)
    assert experiments.minimal_effect(0.10, 3841, 3841) == pytest.approx(0.02, abs=1e-5)


def test_unequal_arms_need_more_players_together() -> None:
    control = experiments.sample_size(0.10, 0.12, ratio=0.25)
    assert experiments.power(0.10, 0.12, control * 0.25, control) == pytest.approx(0.8, abs=1e-3)
    assert control * 1.25 > 2 * 3841


@pytest.mark.parametrize("share", [-0.1, 1.1, float("nan")])
def test_a_share_that_is_none_is_refused(share) -> None:
    with pytest.raises(BadQuery, match="between 0 and 1"):
        experiments.sample_size(0.1, share)


def test_equal_shares_cannot_be_told_apart_by_any_number() -> None:
    with pytest.raises(BadQuery, match="no number of players"):
        experiments.sample_size(0.1, 0.1)


def test_reach_says_what_the_players_can_find() -> None:
    made = experiments.detectable_effects(shares({"ctrl": (400, 4000), "new": (800, 3841)}), lift=0.2).iloc[0]
    assert made["players_needed"] == 3841
    assert made["minimal_effect"] == pytest.approx(experiments.minimal_effect(0.1, 3841, 4000))
    assert made["minimal_lift"] == pytest.approx(made["minimal_effect"] / 0.1)
    assert pd.isna(experiments.detectable_effects(shares({"ctrl": (0, 10), "new": (1, 10)}))["players_needed"].item())


def test_of_experiments_without_effect_one_in_twenty_is_found() -> None:
    """issue 7, experiments: A/A at 5 %, of players drawn as the simulator draws them."""
    game = load_scenario("cookie-cats").games[0]
    rng, runs, players = np.random.default_rng(7), 400, 500
    install = np.zeros(2 * runs * players, dtype=np.int64)
    came = draw_active(install, days=2, activity=activity_of(game), rng=rng)[:, 1].reshape(2, runs, players).sum(axis=2)
    made = experiments.differences(many(players, *came))
    found = (made["p_value"] < 0.05).mean()
    assert abs(found - 0.05) < 3 * sqrt(0.05 * 0.95 / runs)
    missed = ((made["low"] > 0) | (made["high"] < 0)).mean()
    assert abs(missed - 0.05) < 3 * sqrt(0.05 * 0.95 / runs)


def test_an_effect_is_found_as_often_as_the_formula_says() -> None:
    """issue 7, experiments: power as formula, for the shares that cookie-cats has in closed form."""
    scenario = load_scenario("cookie-cats")
    game, rng, runs = scenario.games[0], np.random.default_rng(8), 500
    control, treated = (activity_of(game, variant=arm.variant).retention(7) for arm in arms_of(game, scenario=scenario))
    players = experiments.sample_size(control, treated)
    made = experiments.differences(
        many(players, rng.binomial(players, control, runs), rng.binomial(players, treated, runs))
    )
    assert abs((made["p_value"] < 0.05).mean() - 0.8) < 3 * sqrt(0.8 * 0.2 / runs)
    covered = ((made["low"] < treated - control) & (treated - control < made["high"])).mean()
    assert abs(covered - 0.95) < 3 * sqrt(0.05 * 0.95 / runs)


def money(days: list[tuple[str, str, int, float]]) -> DataFrame:
    """Install day, variant, players and their money."""
    frame = DataFrame(days, columns=["timestamp", "ab_variant_id", "players", "money"])
    frame["timestamp"] = pd.to_datetime(frame["timestamp"], utc=True)
    return frame.astype({"ab_variant_id": "category", "players": "Int64"})


def test_money_of_each_install_day_is_that_of_its_players(tidy) -> None:
    installs = tidy(
        "new_users",
        timestamp=["2026-11-01", "2026-11-01", "2026-11-02", "2026-11-02"],
        ab_variant_id=["ctrl", "new", "ctrl", None],
        new_users=[10, 12, 9, 5],
    )
    spent = tidy(
        "revenue",
        installed_on=["2026-11-01", "2026-11-01", "2026-10-01", None],
        ab_variant_id=["new", None, "ctrl", "ctrl"],
        sum=[4.5, 9.0, 1.0, 1.0],
    )
    made = experiments.money_per_player(installs, spent)
    assert made[["ab_variant_id", "players", "money"]].to_numpy().tolist() == [
        ["ctrl", 10, 0.0],
        ["new", 12, 4.5],
        ["ctrl", 9, 0.0],
    ]


def test_the_error_of_money_is_that_of_the_days() -> None:
    """Ten players an arm and day; the difference of the arms is 1 and 3 dollars in turn on eight days.

    Money per player differs by 0.2; the days stray from it by 0.1, so the error is 0.1 / sqrt(7) and t(7) = 2.3646.
    """
    days = [
        (f"2026-11-0{day}", name, 10, 5.0 + (0 if name == "ctrl" else 1 + 2 * (day % 2)))
        for day in range(1, 9)
        for name in ("ctrl", "new")
    ]
    made = experiments.money_differences(money(days)).iloc[0]
    assert made["difference"] == pytest.approx(0.2)
    assert made["high"] - made["difference"] == pytest.approx(2.3646 * 0.1 / sqrt(7), abs=1e-5)
    assert made["unit"] == "money"


def test_what_a_day_does_to_both_arms_cancels() -> None:
    days = [
        (f"2026-11-0{day}", name, 10, 10.0 * day**2 + (0 if name == "ctrl" else 2))
        for day in range(1, 9)
        for name in ("ctrl", "new")
    ]
    made = experiments.money_differences(money(days)).iloc[0]
    assert (made["low"], made["high"]) == pytest.approx((0.2, 0.2))


def test_a_few_days_give_a_difference_and_no_interval() -> None:
    days = [(f"2026-11-0{day}", name, 10, 5.0) for day in range(1, 7) for name in ("ctrl", "new")]
    made = experiments.money_differences(money(days)).iloc[0]
    assert made["difference"] == 0
    assert made[["low", "high", "p_value"]].isna().all()
