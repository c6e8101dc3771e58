"""Claims about experiments that count: arms, payers, the best arm and the reach."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from gamelens.analysis import experiments
from gamelens.errors import BadQuery
from gamelens.receipts import Receipt
from support.retention_frames import frame_of
from support.said import as_made_by, said
from support.tidy_frames import tidy_frame

STAMPS = pd.date_range("2026-11-01", periods=4, tz="UTC")


def test_experiments_are_counted() -> None:
    """Two experiments have 60 new players; without players none is named."""
    splits = {"ab_id": ["gate", "gate", "price"], "ab_variant_id": ["a", "b", "a"]}
    installs = tidy_frame("new_users", **splits, new_users=[20, 30, 10])
    (claim,) = said(experiments.arms(installs))
    assert claim.text == "2 experiments have new players in this period, 60 players in all: gate and price."
    assert [claim.case for claim in said(experiments.arms(installs[:0]))] == ["none"]


def test_payers_are_counted() -> None:
    """Three of a hundred players paid, 15 dollars in all."""
    conversions = tidy_frame(players=[60, 40], successes=[2, 1])
    money = tidy_frame(players=[60, 40], money=[10.0, 5.0])
    (claim,) = said(experiments.payers(conversions, money))
    assert (claim.size, claim.text) == (0.03, "3 of 100 players have paid, $15.00 in total.")
    cases = {
        "none": (conversions.assign(successes=0), money.assign(money=0.0)),
        "nobody": (conversions[:0], money[:0]),
    }
    for case, frames in cases.items():
        assert [claim.case for claim in said(experiments.payers(*frames))] == [case]


@pytest.mark.parametrize(
    ("chance", "measures", "direction"),
    [(0.99, 1, "higher"), (0.80, 1, "no clear difference"), (0.98, 2, "no clear difference"), (0.99, 2, "higher")],
)
def test_the_best_arm_is_claimed_from_a_sure_chance_on(chance: float, measures: int, direction: str) -> None:
    """That is 97.5 % for one measure and 98.75 % for two; below it the likeliest arm is named and nothing claimed."""
    chances = tidy_frame(
        ab_id=["gate"] * 2 * measures,
        measure=[f"D{age} retention" for age in range(measures) for _ in range(2)],
        ab_variant_id=["ctrl", "new"] * measures,
        players=[100, 100] * measures,
        chance_best=[1 - chance, chance] * measures,
        expected_loss=[0.02, 0.001] * measures,
        sure_from=[1 - 0.025 / measures] * 2 * measures,
    )
    claim, *_ = said(as_made_by("experiments.probability_best", chances, arm="ab_variant_id"))
    assert (claim.subject, claim.direction) == ("gate, new", direction)
    assert "the expected loss of choosing it is 0.1%, in the measure itself" in claim.text
    assert said(as_made_by("experiments.probability_best", chances[:0], arm="ab_variant_id")) == []


def test_the_reach_of_an_experiment_is_its_smallest_change() -> None:
    """A change of 12 % is found; one of 5 % takes longer than a year, which is said instead of the days."""
    reach = tidy_frame(
        ab_id=["gate"],
        measure=["conversion"],
        ab_variant_id=["new"],
        players=[100],
        minimal_lift=[0.12],
        quarter_lift=[0.06],
        lift=[0.05],
        days_needed=[9000],
    )
    (claim,) = said(as_made_by("experiments.detectable_effects", reach))
    assert claim.size == 0.12
    assert "changes of 12.0% or more of the control's value; three months would detect 6.0%" in claim.text
    assert claim.text.endswith("Detecting a change of 5.0% takes more than 365 install days.")
    blind = reach.assign(minimal_lift=float("nan"), days_needed=pd.array([pd.NA], dtype="Int64"))
    (claim,) = said(as_made_by("experiments.detectable_effects", blind))
    assert "too few to detect any change" in claim.text


def test_the_newest_builds_are_those_that_began_last() -> None:
    """Of three builds the last two are kept, whatever their names; players without a build are left out."""
    frame = frame_of([10] * 4, np.full((4, 1), 5), [1]).assign(first_build=pd.Categorical(["1.10", "1.9", "2.0", None]))
    newest = experiments.newest_arms(frame, "first_build", by="game")
    assert newest["first_build"].tolist() == ["1.9", "2.0"]
    assert Receipt.of(newest.attrs) == Receipt.of(frame.attrs)
    assert experiments.newest_arms(frame, "first_build", most=1)["first_build"].tolist() == ["2.0"]
    with pytest.raises(BadQuery, match="build"):
        experiments.newest_arms(frame, "build")
