"""Comparison of arms: published cases, a split that changes, builds, and before and after a day."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from pandas import DataFrame

from gamelens.analysis import experiments
from gamelens.errors import BadQuery
from support.experiment_frames import FIRST_DAY, ramp, retention_of, shares
from support.hypothesis_profiles import tries
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
    result = experiments.compare(shares({"ctrl": control, "new": treated})).iloc[0]
    assert (result["low"], result["high"]) == pytest.approx((low, high), abs=5e-5)


def test_cookie_cats_is_read_as_it_was_published() -> None:
    """The published Cookie Cats experiment gives its published p-values and verdicts.

    90,189 players: day 7 .1902 and .1820 (z = 3.16), day 1 .4482 and .4423 (z = 1.78).
    """
    gates = {"gate_30": (8502, 44700), "gate_40": (8279, 45489)}
    day_7 = experiments.compare(shares(gates)).iloc[0]
    assert day_7["difference"] == pytest.approx(-0.0082, abs=5e-5)
    assert day_7["p_value"] == pytest.approx(0.0016, abs=5e-5)
    day_1 = experiments.compare(shares({"gate_30": (20034, 44700), "gate_40": (20119, 45489)})).iloc[0]
    assert day_1["p_value"] == pytest.approx(0.0744, abs=5e-5)
    assert day_1["low"] < 0 < day_1["high"]
    chance_best = experiments.probability_best(shares(gates)).set_index("ab_variant_id")["chance_best"]
    assert chance_best["gate_30"] == pytest.approx(0.9992, abs=5e-4)


def good_and_bad_days(seed: int, *, days: int = 28, rises: float = 0.04) -> DataFrame:
    """Return D1 of an experiment whose split ramps and whose install days are good or bad in turn."""
    rng, rows = np.random.default_rng(seed), []
    for day in range(days):
        share = min(0.9, 0.3 * float(np.exp(rng.normal(0, 0.5))))
        for name, players, gain in (("ctrl", 60 - day, 0.0), ("new", 10 + day, rises)):
            installs = int(rng.poisson(players)) + 1
            rows.append(
                (FIRST_DAY + pd.Timedelta(days=day), name, 1, installs, int(rng.binomial(installs, share + gain)))
            )
    return retention_of(rows, arm="ab_variant_id")


@pytest.mark.wide
@pytest.mark.hypothesis  # more draws in `make bench`
def test_the_p_value_of_shares_is_that_of_their_interval() -> None:
    """The interval excludes 0 where p is below 5 %, and only there; both are close to Cochran, Mantel and Haenszel."""
    from statsmodels.stats.contingency_tables import StratifiedTable

    for seed in range(tries(in_test=15, in_bench=60)):
        frame = good_and_bad_days(seed)
        row = experiments.compare(frame).iloc[0]
        assert (row["p_value"] < 0.05) == (not row["low"] <= 0 <= row["high"])
        on_the_edge = experiments.compare(frame, confidence=1 - row["p_value"]).iloc[0]
        assert min(abs(on_the_edge["low"]), abs(on_the_edge["high"])) == pytest.approx(0, abs=1e-9)
        arms = frame.pivot_table(
            index="timestamp", columns="ab_variant_id", values=["returned", "installs"], observed=True
        )
        returned, installs = (arms[name].to_numpy("float64").T for name in ("returned", "installs"))
        published = StratifiedTable(np.stack([returned, installs - returned], axis=1)).test_null_odds()
        assert row["p_value"] == pytest.approx(published.pvalue, abs=0.01)
        assert row["always_low"] <= row["low"] <= row["high"] <= row["always_high"]


def test_days_on_which_all_did_the_same_are_not_certain() -> None:
    """Both arms were equal on each day, and nobody differed within a day: the interval still has a width."""
    rows = [
        (FIRST_DAY + pd.Timedelta(days=day), name, 1, 10, 10 * (day % 2))
        for day in range(10)
        for name in ("ctrl", "new")
    ]
    row = experiments.compare(retention_of(rows, arm="ab_variant_id")).iloc[0]
    assert row["p_value"] == 1.0
    assert -0.2 < row["low"] < -0.01 < 0.01 < row["high"] < 0.2


def control(**arms: tuple[int, int]) -> str:
    """Return the control that is chosen among *arms* of one measure."""
    return str(experiments.compare(shares(arms))["control"].unique()[0])


def test_the_control_is_called_ctrl_or_comes_first_by_name() -> None:
    """The control is the variant `ctrl`, else the first by name."""
    assert control(a=(1, 10), ctrl=(1, 10)) == "ctrl"
    assert control(gate_40=(1, 10), gate_30=(1, 10)) == "gate_30"


def test_of_other_arms_the_oldest_is_the_control() -> None:
    """Build 1.9.0 is older than 1.10.0, which is the first by name."""
    days = [FIRST_DAY + pd.Timedelta(days=day) for day in range(14)]
    rows = [(day, "1.9.0" if place < 7 else "1.10.0", 1, 100, 40) for place, day in enumerate(days)]
    compared = experiments.compare(retention_of(rows, arm="first_build"), arm="first_build")
    assert compared["control"].tolist() == ["1.9.0"]


def test_a_control_without_players_is_refused() -> None:
    """A control that the frame does not have raises `BadQuery` that names it."""
    with pytest.raises(BadQuery, match="old"):
        experiments.compare(shares({"ctrl": (1, 10), "new": (1, 10)}), control="old")


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
    result = experiments.compare(both)
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
    result = experiments.compare(shares({"ctrl": (1, 10), "new": (0, 0)})).iloc[0]
    assert result[["difference", "low", "high", "p_value"]].isna().all()


def test_several_frames_are_adjusted_together_and_hand_on_their_receipts() -> None:
    """Frames compared together merge their receipts, and p-values are corrected over all rows."""
    both = [shares({"ctrl": (100, 1000), "new": (130, 1000)}, measure=name) for name in ("D1", "D7")]
    compared = experiments.compare(*both)
    assert compared["p_adjusted"].tolist() == pytest.approx([2 * compared["p_value"].iloc[0]] * 2)
    assert [*compared["measure"].cat.categories] == ["D1", "D7"]
    assert compared.attrs["gamelens"]["requests"] == 2
    assert len(experiments.compare(both[0][:0], both[1][:0])) == 0


def test_a_ramp_with_equal_arms_every_day_shows_no_difference() -> None:
    """A split that moves from 10 to 90 % while retention falls biases sums by -16 pp and the comparison by nothing."""
    frame = ramp()
    sums = frame.groupby("ab_variant_id", observed=True)[["returned", "installs"]].sum()
    share = sums["returned"] / sums["installs"]
    assert share["new"] - share["ctrl"] == pytest.approx(-0.16, abs=0.005)
    row = experiments.compare(frame).iloc[0]
    assert row["difference"] == pytest.approx(0.0, abs=0.001)
    assert row["p_value"] > 0.9
    assert row["design"] == "within days"


def test_a_ramp_does_not_hide_a_difference() -> None:
    """A rise of 5 pp is found in the ramp whose sums show a fall."""
    row = experiments.compare(ramp(treated=0.05)).iloc[0]
    assert row["low"] < 0.05 < row["high"]
    assert row["low"] > 0
    assert row["always_low"] > 0


def test_the_chance_to_be_the_best_is_not_moved_by_a_ramp() -> None:
    """Arms that are equal on every day are equally likely the best, whatever their sums are."""
    chances = experiments.probability_best(ramp())
    assert chances["chance_best"].tolist() == pytest.approx([0.5, 0.5], abs=0.05)


def test_the_always_valid_interval_holds_the_fixed_one() -> None:
    """Intervals for every look are wider than those for one, and hold the estimate in their middle."""
    row = experiments.compare(ramp()).iloc[0]
    assert row["always_low"] < row["low"] < row["high"] < row["always_high"]
    assert (row["always_low"] + row["always_high"]) / 2 == pytest.approx(row["difference"])


def test_unknown_successes_are_refused() -> None:
    """An arm whose successes are NA is refused by name, for it would be the best with a chance of 1."""
    frame = shares({"ctrl": (30, 100), "new": (0, 100)})
    frame["successes"] = pd.array([30, None], dtype="Int64")
    for analyse in (experiments.compare, experiments.probability_best, experiments.detectable_effects):
        with pytest.raises(BadQuery, match=r"conversion of new .* is not known"):
            analyse(frame)


@pytest.mark.parametrize(("successes", "rule"), [(101, "more than the players"), (-1, "0 or more")])
def test_impossible_successes_are_refused(successes: int, rule: str) -> None:
    """More successes than players and negative ones raise `BadQuery`."""
    with pytest.raises(BadQuery, match=rule):
        experiments.compare(shares({"ctrl": (30, 100), "new": (successes, 100)}))


def builds(countries: dict[str, float]) -> DataFrame:
    """Return D1 retention of build 1.9.0 for two weeks, then of 2.0.0, whose retention is other by country."""
    rows = [
        (FIRST_DAY + pd.Timedelta(days=day), "1.9.0" if day < 14 else "2.0.0", country, 1, 1000, returned)
        for day in range(28)
        for country, change in countries.items()
        for returned in [round(1000 * (0.4 + 0.02 * (-1) ** day + (change if day >= 14 else 0.0)))]
    ]
    frame = DataFrame(rows, columns=["timestamp", "first_build", "country_code", "age", "installs", "returned"])
    frame = frame.assign(retention=frame["returned"] / frame["installs"])
    counts = dict.fromkeys(("age", "installs", "returned"), "Int64")
    return frame.astype({"first_build": "category", "country_code": "category"} | counts)


def test_builds_are_compared_between_days_country_by_country() -> None:
    """The new build is worse by 5 pp in Brazil and no different in the US; the days' own spread is in the interval."""
    compared = experiments.compare(
        builds({"BR": -0.05, "US": 0.0}), arm="first_build", control="1.9.0", by="country_code"
    ).set_index("country_code")
    assert compared["design"].tolist() == ["between days"] * 2
    brazil, us = (compared.loc[name, ["low", "difference", "high"]].to_numpy("float64") for name in ("BR", "US"))
    assert brazil[1] == pytest.approx(-0.05)
    assert brazil[2] < 0
    assert us[0] < 0 < us[2]
    # days stray by 2 pp: 0.02 / sqrt(13) for each build, t(26) = 2.0555, and a little for what 14 days leave open
    assert us[2] - us[1] == pytest.approx(2.0555 * 0.02 * (2 / 13) ** 0.5, rel=0.15)


def test_before_and_after_are_the_arms_of_a_day() -> None:
    """With *since* all earlier days are the control, whatever the frame is split by."""
    frame = builds({"BR": -0.05})
    row = experiments.compare(frame, since="2026-11-15").iloc[0]
    assert (row["period"], row["control"]) == ("after", "before")
    assert (row["days"], row["control_days"]) == (14, 14)
    assert row["difference"] == pytest.approx(-0.05)


def test_too_few_days_after_give_no_interval() -> None:
    """Six days after a release do not show how much days differ: there is a difference and no interval."""
    row = experiments.compare(builds({"BR": -0.05}), since="2026-11-23").iloc[0]
    assert pd.notna(row["difference"])
    assert row[["low", "high", "always_low", "p_value"]].isna().all()


def test_days_that_only_one_arm_has_are_left_out() -> None:
    """A control that runs for longer is compared on the days of the variant."""
    frame = ramp()
    frame = frame[(frame["ab_variant_id"] == "ctrl") | (frame["timestamp"] >= FIRST_DAY + pd.Timedelta(days=10))]
    row = experiments.compare(frame).iloc[0]
    assert (row["days"], row["control_days"]) == (10, 10)
    assert row["difference"] == pytest.approx(0.0, abs=0.001)


def test_a_ratio_of_the_catalog_is_compared_by_day() -> None:
    """Conversion by platform is paying_users / user_unique, and its days are clusters."""
    days = [f"2026-11-{day:02}" for day in range(1, 9) for _ in range(2)]
    payers = [count for day in range(8) for count in (20 + day % 2, 30 + day // 2 % 2)]
    frame = tidy_frame(
        "conversion",
        timestamp=days,
        platform=["android", "ios"] * 8,
        conversion=[count / 1000 for count in payers],
        paying_users=payers,
        user_unique=[1000] * 16,
    )
    row = experiments.compare(frame, arm="platform", control="android").iloc[0]
    assert (row["measure"], row["unit"], row["design"]) == ("conversion", "share", "within days")
    assert row["difference"] == pytest.approx(0.01)
    assert 0.008 < row["low"] < 0.0095 < 0.0105 < row["high"] < 0.012


def test_what_cannot_be_compared_is_refused_with_the_query_to_use() -> None:
    """A frame of counts alone, a missing arm and a date that is none raise `BadQuery`."""
    counts = tidy_frame("new_users", timestamp=["2026-11-01"], platform=["ios"], new_users=[3])
    with pytest.raises(BadQuery, match=r"lens\.retention"):
        experiments.compare(counts, arm="platform")
    with pytest.raises(BadQuery, match="query by it"):
        experiments.compare(ramp(), arm="first_build")
    with pytest.raises(BadQuery, match="2026-11-03"):
        experiments.compare(ramp(), since="release day")
    with pytest.raises(BadQuery, match="at least one frame"):
        experiments.compare()


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
    assert list(experiments.compare(nothing).columns) == list(
        experiments.compare(shares({"ctrl": (1, 2), "new": (1, 2)})).columns
    )
    assert not len(experiments.probability_best(nothing))
    assert not len(experiments.detectable_effects(nothing))


def test_each_arm_is_compared_with_all_others_together() -> None:
    """The others of a game are the players and successes of both other games, day by day."""
    days = [f"2026-11-{day:02}" for day in range(1, 15)]
    rng = np.random.default_rng(1)
    frame = DataFrame(
        [
            (day, name, 1000, int(rng.binomial(1000, share)))
            for day in days
            for name, share in (("Tile", 0.3), ("Farm", 0.2), ("Iron", 0.2))
        ],
        columns=["timestamp", "game", "players", "successes"],
    )
    frame["timestamp"] = pd.to_datetime(frame["timestamp"], utc=True)
    rows = experiments.compare(frame.astype({"game": "category"}), arm="game", control=experiments.OTHERS)
    rows = rows.set_index("game")
    assert set(rows["control"]) == {"the others"}
    others = frame[frame["game"] != "Tile"]
    expected = others["successes"].sum() / others["players"].sum()
    assert rows.loc["Tile", "control_value"] == pytest.approx(expected)
    assert rows.loc["Tile", "control_players"] == 28_000
    assert (rows.loc[["Tile"], "low"] > 0).all()
    assert (rows.loc[["Farm", "Iron"], "high"] < 0).all()
