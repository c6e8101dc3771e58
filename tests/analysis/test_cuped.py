"""Arms compared player by player, with and without a covariate."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from gamelens.analysis import experiments
from gamelens.errors import BadQuery
from support.hypothesis_profiles import tries


def players(seed: int = 0, *, effect: float = 0.0, each: int = 400) -> pd.DataFrame:
    """Return players of two arms, whose money depends on what they spent before."""
    chance = np.random.default_rng(seed)
    before = chance.gamma(0.5, 4.0, 2 * each)
    noise = chance.normal(0.0, 1.0, 2 * each)
    arms = np.repeat(["ctrl", "new"], each)
    money = 2 + before + noise + effect * (arms == "new")
    return pd.DataFrame({"ab_id": "shop", "ab_variant_id": arms, "revenue": money, "before": before})


def test_the_difference_is_that_of_welch() -> None:
    """Mean, interval and p-value are those of scipy's t-test with unequal variances."""
    from scipy import stats

    frame = players(effect=0.4)
    (row,) = experiments.compare_players(frame, "revenue").to_dict("records")
    new, base = (frame.loc[frame["ab_variant_id"] == arm, "revenue"] for arm in ("new", "ctrl"))
    expected = stats.ttest_ind(new, base, equal_var=False)
    bounds = expected.confidence_interval()
    assert row["difference"] == pytest.approx(new.mean() - base.mean())
    assert row["p_value"] == row["p_adjusted"] == pytest.approx(expected.pvalue)
    assert (row["low"], row["high"]) == pytest.approx((bounds.low, bounds.high))
    assert row["relative_low"] * base.mean() == pytest.approx(bounds.low, abs=0.05)
    assert row["relative_low"] < row["relative"] < row["relative_high"]
    assert (row["control"], row["players"], row["variance_kept"]) == ("ctrl", 400, 1.0)


def test_a_covariate_narrows_the_interval_as_regression_does() -> None:
    """CUPED with one slope for both arms has the estimate of a regression on arm and covariate."""
    frame = players(effect=0.4)
    (plain,) = experiments.compare_players(frame, "revenue").to_dict("records")
    (row,) = experiments.compare_players(frame, "revenue", covariate="before").to_dict("records")
    design = np.column_stack([np.ones(len(frame)), frame["ab_variant_id"] == "new", frame["before"]])
    slopes = np.linalg.lstsq(design.astype("float64"), frame["revenue"].to_numpy(), rcond=None)[0]
    assert row["difference"] == pytest.approx(slopes[1])
    assert row["value"] - row["control_value"] == pytest.approx(row["difference"])
    assert row["variance_kept"] == pytest.approx(1 / 9, abs=0.04)
    ratio = ((row["high"] - row["low"]) / (plain["high"] - plain["low"])) ** 2
    assert ratio == pytest.approx(row["variance_kept"], rel=0.05)


@pytest.mark.wide
@pytest.mark.hypothesis  # more draws in `make bench`
@pytest.mark.parametrize("covariate", [None, "before"])
def test_intervals_hold_the_true_difference_as_often_as_they_say(covariate: str | None) -> None:
    """Of many experiments with an effect of 0.3, about 95 % of the intervals hold it."""
    runs = tries(in_test=250, in_bench=400)
    drawn = [players(seed, effect=0.3, each=150).assign(ab_id=f"experiment {seed}") for seed in range(runs)]
    rows = experiments.compare_players(pd.concat(drawn, ignore_index=True), "revenue", covariate=covariate)
    assert len(rows) == runs
    assert 0.92 <= rows["low"].le(0.3).mul(rows["high"].ge(0.3)).mean() <= 0.975


def test_experiments_are_compared_apart() -> None:
    """Each experiment has its own control, and players without an arm are left out."""
    other = players(1).assign(ab_id="tutorial", ab_variant_id=lambda it: it["ab_variant_id"].replace("ctrl", "a"))
    none = players(2).assign(ab_id=None, ab_variant_id=None)
    result = experiments.compare_players(pd.concat([players(), other, none], ignore_index=True), "revenue")
    assert result[["ab_id", "ab_variant_id", "control"]].astype("str").to_numpy().tolist() == [
        ["shop", "new", "ctrl"],
        ["tutorial", "new", "a"],
    ]
    assert result["p_adjusted"].ge(result["p_value"]).all()


def test_money_that_does_not_vary_has_no_p_value() -> None:
    """Nobody paid in either arm: the difference is 0, and not tested."""
    (row,) = experiments.compare_players(
        players().assign(revenue=0.0, before=1.0), "revenue", covariate="before"
    ).to_dict("records")
    assert row["difference"] == 0
    assert np.isnan(row["p_value"])


def test_what_cannot_be_compared_is_refused() -> None:
    """The error names the argument, its value and what is wrong with it."""
    frame = players()
    with pytest.raises(BadQuery, match="value = 'money' is not a column"):
        experiments.compare_players(frame, "money")
    with pytest.raises(BadQuery, match="covariate = 'age' is not a column"):
        experiments.compare_players(frame, "revenue", covariate="age")
    with pytest.raises(BadQuery, match="is unknown for some players"):
        experiments.compare_players(
            frame.assign(before=frame["before"].where(frame["before"] > 1)), "revenue", covariate="before"
        )
    with pytest.raises(BadQuery, match="control = 'old' has no players"):
        experiments.compare_players(frame, "revenue", control="old")
    with pytest.raises(BadQuery, match="confidence = 1"):
        experiments.compare_players(frame, "revenue", confidence=1)


@pytest.mark.wide
def test_the_relative_interval_of_players_is_judged_as_the_difference() -> None:
    """It excludes 0 where low and high do; a control that may be 0 has none."""
    for seed in range(30):
        (row,) = experiments.compare_players(players(seed, effect=0.4, each=100), "revenue").to_dict("records")
        assert (row["relative_low"] <= 0 <= row["relative_high"]) == (row["low"] <= 0 <= row["high"])
    frame = players(effect=0.4).assign(revenue=lambda rows: rows["revenue"] - rows["revenue"].mean())
    (row,) = experiments.compare_players(frame, "revenue").to_dict("records")
    assert np.isnan([row["relative_low"], row["relative_high"]]).all()
