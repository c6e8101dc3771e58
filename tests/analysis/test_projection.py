"""Choice of a retention curve and its projection, with a known truth."""

from __future__ import annotations

from collections.abc import Callable
from math import exp
from typing import Any

import numpy as np
import pandas as pd
import pytest
from pandas import DataFrame

from gamelens.analysis import retention
from gamelens.errors import BadQuery
from gamelens.receipts import Receipt
from gamelens.simulator import fit_retention as population
from support.retention_frames import expected_frame, frame_of
from support.said import said

Analysis = Callable[[DataFrame, str | None], DataFrame]

AGES = [1, 2, 3, 4, 5, 6, 7, 10, 14]
CASUAL = population(0.37, 0.125, 0.04)


@pytest.fixture
def casual() -> DataFrame:
    """Twenty install days of 400 players who return as the formula expects."""
    return expected_frame(CASUAL.retention, AGES, cohorts=20, installs=400)


@pytest.fixture
def two_games(casual: DataFrame) -> DataFrame:
    """The game of `casual`, one with only three ages, and one whose title is null."""
    young, nameless = casual[casual["age"] <= 3].assign(game="Farm"), casual.assign(game=None)
    result = pd.concat([casual, young, nameless], ignore_index=True).astype({"game": "category"})
    result.attrs = casual.attrs
    return result


def chosen(frame: DataFrame, by: str | None = None) -> DataFrame:
    """Return the chosen curve of each group."""
    return retention.compare_curves(frame, by).query("is_chosen")


def test_bg_bb_is_taken_of_a_bg_bb_population(casual: DataFrame) -> None:
    """A BG/BB population is fitted by BG/BB, with the latest three of nine ages held out."""
    best = chosen(casual).iloc[0]
    assert (best["model"], best["ages"], best["parameters"], best["held_out"]) == ("BG/BB", 9, 3, 3)


def test_the_power_law_is_taken_where_it_foretells_clearly_better() -> None:
    """Another curve than BG/BB is chosen only if it predicts the held-out ages clearly better."""
    frame = expected_frame(lambda age: 0.4 * age**-0.5, AGES)
    assert chosen(frame)["model"].item() == "power law"
    assert "clearly better than BG/BB" in said(retention.compare_curves(frame))[0].text


def test_held_out_error_is_players_foretold_wrongly() -> None:
    """The held-out error is small for the true curve and large for another one."""
    errors = retention.compare_curves(expected_frame(CASUAL.retention, AGES)).set_index("model")["held_out_error"]
    assert errors["BG/BB"] < 0.01 < 0.1 < errors["power law"]


def test_aic_is_the_misfit_and_two_for_each_parameter(casual: DataFrame) -> None:
    """The AIC is the misfit plus two per parameter."""
    fits = retention.compare_curves(casual)
    assert (fits["aic"] - fits["misfit"]).tolist() == pytest.approx([6, 4, 6, 4])


def test_a_curve_is_refused_ages_it_would_only_connect(casual: DataFrame) -> None:
    """A curve needs more ages than it has parameters: BG/BB has three and needs four."""
    fits = retention.compare_curves(casual[casual["age"] <= 3]).set_index("model")
    refused = fits.loc[["BG/BB"], ["why", "ages_needed", "ages"]]
    assert refused.to_numpy().tolist() == [["too_few_ages", 4, 3]]
    assert fits["is_chosen"].idxmax() == "shifted beta-geometric"
    assert pd.isna(fits["misfit"]["BG/BB"])


@pytest.mark.parametrize(
    ("cut", "rule"),
    [
        (lambda frame: frame[frame["age"] <= 2], "needs 3 ages reached by install days, and there are 2"),
        (lambda frame: frame.assign(retention=np.nan, returned=pd.NA), "and there are 0"),
        (lambda frame: frame.assign(retention=0.0, returned=0), "takes players who came back"),
        (lambda frame: frame.assign(retention=1.0, returned=frame["installs"]), "and players who did not"),
    ],
    ids=["two ages", "no age is reached", "no returning players", "only returning players"],
)
def test_what_cannot_be_fitted_names_the_rule(
    casual: DataFrame, cut: Callable[[DataFrame], DataFrame], rule: str
) -> None:
    """Counts that no curve fits give NA everywhere and a verdict that states the reason."""
    frame = cut(casual).astype({"returned": "Int64"})
    assert rule in said(retention.compare_curves(frame))[0].text
    assert retention.project_retention(frame, ages=[30])["retention"].isna().all()


def test_one_cohort_is_enough_for_a_curve(casual: DataFrame) -> None:
    """One install day has a band, from the number of its players alone."""
    first = casual[casual["timestamp"] == casual["timestamp"].min()]
    line = retention.project_retention(first, ages=[30]).iloc[0]
    assert line["low"] < line["retention"] < line["high"]


def test_a_verdict_on_several_groups_says_how_often_which(two_games: DataFrame) -> None:
    """The verdict on several groups counts how often each curve is chosen."""
    verdict = said(retention.compare_curves(two_games, "game"))[0].text
    assert "3 groups" in verdict
    assert "2 use the BG/BB curve" in verdict
    assert "1 use the shifted beta-geometric curve" in verdict


def test_d30_and_d90_are_those_of_the_closed_form() -> None:
    """Projected D30 and D90 are within 2 % of the closed form."""
    lines = retention.project_retention(expected_frame(CASUAL.retention, AGES), ages=[30, 90])
    assert lines["retention"].tolist() == pytest.approx([CASUAL.retention(30), CASUAL.retention(90)], rel=0.02)


def test_a_band_holds_its_curve_and_gets_wider_with_the_years(casual: DataFrame) -> None:
    """The band contains its curve and grows with age, relative to retention."""
    lines = retention.project_retention(casual, ages=[14, 30, 90, 365])
    width = np.log(lines["high"] / lines["low"]).tolist()
    assert width == sorted(width)
    assert (lines["low"] <= lines["retention"]).all()
    assert (lines["retention"] <= lines["high"]).all()


def test_less_confidence_is_a_narrower_band(casual: DataFrame) -> None:
    """A band of 50 % lies inside that of 95 %."""
    wide, narrow = (retention.project_retention(casual, ages=[30], confidence=share).iloc[0] for share in (0.95, 0.5))
    assert wide["low"] < narrow["low"] < narrow["high"] < wide["high"]


def test_ages_that_no_install_day_has_reached_are_marked_as_projected() -> None:
    """`is_projected` is true exactly for ages that no install day has reached.

    On the fifth day one install day has reached age 4, and none age 7.
    """
    returned = np.outer([100] * 5, [0.4, 0.25, 0.2, 0.15, 0.1])
    frame = frame_of([100] * 5, returned, [1, 2, 3, 4, 7], until=5)
    lines = retention.project_retention(frame, ages=[3, 4, 5, 7])
    assert lines["is_projected"].tolist() == [False, False, True, True]


def test_the_seed_decides_the_band(casual: DataFrame) -> None:
    """Equal seeds give equal bands, another seed another one."""
    one, same, other = (retention.project_retention(casual, ages=[30], seed=seed)["high"].item() for seed in (1, 1, 2))
    assert one == same != other


def test_every_curve_can_be_seen(casual: DataFrame) -> None:
    """`model="all"` returns every curve, and a single model the same numbers."""
    lines = retention.project_retention(casual, ages=[30], model="all")
    assert lines["model"].tolist() == ["BG/BB", "shifted beta-geometric", "Weibull", "power law"]
    assert lines["is_chosen"].tolist() == [True, False, False, False]
    alone = retention.project_retention(casual, ages=[30], model="power law")
    assert alone["retention"].item() == lines["retention"].iloc[3]


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({"model": "powerlaw"}, "model"),
        ({"confidence": 95}, "confidence"),
        ({"ages": [0, 1]}, "ages"),
        ({"draws": 0}, "draws"),
    ],
)
def test_arguments_that_mean_nothing_are_refused(casual: DataFrame, arguments: dict[str, Any], field: str) -> None:
    """An unknown model or a value out of range raises `BadQuery` that names the argument."""
    with pytest.raises(BadQuery) as bad:
        retention.project_retention(casual, **arguments)
    assert bad.value.field == field


def test_the_band_holds_a_weibull_truth() -> None:
    """D90 of a Weibull population lies in the band, and the band of BG/BB alone excludes it."""
    counts = np.random.default_rng(1).binomial(1500, [weibull(age) for age in range(1, 15)], (28, 14))
    frame = frame_of([1500] * 28, counts, range(1, 15))
    averaged, alone = (retention.project_retention(frame, ages=[90], model=name).iloc[0] for name in (None, "BG/BB"))
    assert averaged["low"] < weibull(90) < averaged["high"]
    assert weibull(90) < alone["low"]


def weibull(age: int) -> float:
    """Return the share of a stretched exponential with D1 of 40 % and D7 of 19 %."""
    return exp(-0.916 * age**0.3)


def test_weights_are_shares_of_the_band(casual: DataFrame) -> None:
    """Weights add up to 1, and the band of families apart is wider than that of one."""
    fits = retention.compare_curves(casual).set_index("model")
    assert fits["weight"].sum() == pytest.approx(1)
    assert fits["weight"].idxmax() == "BG/BB"
    averaged, alone = (retention.project_retention(casual, ages=[90], model=name).iloc[0] for name in (None, "BG/BB"))
    assert averaged["high"] - averaged["low"] > alone["high"] - alone["low"]


def test_counts_on_no_curve_are_named_and_widen_the_band(casual: DataFrame) -> None:
    """A D4 a half higher fits no curve: the verdict says so and the band doubles."""
    spike = casual.assign(returned=casual["returned"].where(casual["age"] != 4, (casual["returned"] * 1.5).round()))
    spike["retention"] = (spike["returned"] / spike["installs"]).astype("float64")
    on, off = (
        retention.project_retention(each.astype({"returned": "Int64"}), ages=[30]).iloc[0] for each in (casual, spike)
    )
    assert on["fit_p_value"] > 0.5
    assert off["fit_p_value"] < 0.001
    assert off["high"] - off["low"] > 2 * (on["high"] - on["low"])
    assert "No curve fits the counted ages" in said(retention.compare_curves(spike))[0].text
    assert "No curve" not in said(retention.compare_curves(casual))[0].text


ANSWERS: dict[str, Analysis] = {
    "compared": retention.compare_curves,
    "projected": lambda frame, by: retention.project_retention(frame, by, ages=[30]),
}


@pytest.mark.parametrize("answer", ANSWERS.values(), ids=list(ANSWERS))
class TestEveryResult:
    """Rules for both analyses: choice of a curve, and projection."""

    def test_an_empty_frame_gives_the_same_columns(self, two_games: DataFrame, answer: Analysis) -> None:
        """A frame without rows gives a result without rows, of the same columns and dtypes."""
        assert answer(two_games[:0], "game").dtypes.equals(answer(two_games, "game").dtypes)

    def test_groups_are_as_they_were(self, two_games: DataFrame, answer: Analysis) -> None:
        """The group column keeps its dtype and all its values, null included."""
        result = answer(two_games, "game")
        assert result["game"].dtype == two_games["game"].dtype
        assert set(result["game"].dropna()) == {"Tile", "Farm"}
        assert result["game"].isna().any()

    def test_a_group_alone_is_as_it_is_among_others(
        self, two_games: DataFrame, casual: DataFrame, answer: Analysis
    ) -> None:
        """A group has the same result alone and among others."""
        among = answer(two_games, "game").query("game == 'Tile'").drop(columns="game").reset_index(drop=True)
        pd.testing.assert_frame_equal(among, answer(casual, None), check_like=True)

    def test_another_frame_than_of_retention_is_refused(self, casual: DataFrame, answer: Analysis) -> None:
        """A frame without the columns of a retention frame raises `BadQuery`."""
        with pytest.raises(BadQuery, match=r"has no installs: use lens\.retention\("):
            answer(casual.drop(columns="installs"), None)

    def test_the_receipt_is_handed_on(self, casual: DataFrame, answer: Analysis) -> None:
        """The result carries the receipt of the frame."""
        assert Receipt.of(answer(casual, None).attrs) == Receipt.of(casual.attrs)

    def test_the_frame_given_stays_as_it_was(self, casual: DataFrame, answer: Analysis) -> None:
        """The given frame is not changed."""
        before = casual.copy()
        answer(casual, "game")
        pd.testing.assert_frame_equal(casual, before)
