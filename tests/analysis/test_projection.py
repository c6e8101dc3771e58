"""Which curve is taken and what it says, where the truth is known."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from gamelens.analysis import retention, revenue
from gamelens.errors import BadQuery
from gamelens.simulator import fit_retention as population
from support.retention_frames import expected_frame, frame_of

AGES = [1, 2, 3, 4, 5, 6, 7, 10, 14]
CASUAL = population(0.37, 0.125, 0.04)


@pytest.fixture
def casual():
    """Twenty days of 400 players who do what the formula expects."""
    return expected_frame(CASUAL.retention, AGES, cohorts=20, installs=400)


@pytest.fixture
def two_games(casual):
    """Beside them a game that only three ages are known of, and one whose title is null."""
    young, nameless = casual[casual["age"] <= 3].assign(game="Farm"), casual.assign(game=None)
    made = pd.concat([casual, young, nameless], ignore_index=True).astype({"game": "category"})
    made.attrs = casual.attrs
    return made


def chosen(frame, by=None):
    return retention.compare_curves(frame, by).query("is_chosen")


def test_bg_bb_is_taken_of_a_bg_bb_population(casual) -> None:
    best = chosen(casual).iloc[0]
    assert (best["model"], best["ages"], best["parameters"], best["held_out"]) == ("BG/BB", 9, 3, 3)


def test_the_power_law_is_taken_where_it_foretells_clearly_better() -> None:
    frame = expected_frame(lambda age: 0.4 * age**-0.5, AGES)
    assert chosen(frame)["model"].item() == "power law"
    assert "clearly better than BG/BB" in retention.verdict(retention.compare_curves(frame))


def test_held_out_error_is_players_foretold_wrongly() -> None:
    """With all the counts in the world, the right curve foretells everything, and the wrong one does not."""
    errors = retention.compare_curves(expected_frame(CASUAL.retention, AGES)).set_index("model")["held_out_error"]
    assert errors["BG/BB"] < 0.01 < 0.1 < errors["power law"]


def test_aic_is_the_misfit_and_two_for_each_parameter(casual) -> None:
    fits = retention.compare_curves(casual)
    assert (fits["aic"] - fits["misfit"]).tolist() == pytest.approx([6, 4, 4])


def test_a_curve_is_refused_ages_it_would_only_connect(casual) -> None:
    """Three ages: BG/BB has three parameters."""
    fits = retention.compare_curves(casual[casual["age"] <= 3]).set_index("model")
    assert fits.loc["BG/BB", "why"] == "needs 4 ages that install days have reached, there are 3"
    assert fits["is_chosen"].idxmax() == "shifted beta-geometric"
    assert pd.isna(fits.loc["BG/BB", "misfit"])


@pytest.mark.parametrize(
    ("cut", "rule"),
    [
        (lambda frame: frame[frame["age"] <= 2], "needs 3 ages that install days have reached, there are 2"),
        (lambda frame: frame.assign(retention=np.nan, returned=pd.NA), "there are 0"),
        (lambda frame: frame.assign(retention=0.0, returned=0), "needs players who came back"),
        (lambda frame: frame.assign(retention=1.0, returned=frame["installs"]), "and players who did not"),
    ],
    ids=["two ages", "no day has come", "nobody came back", "everybody came back"],
)
def test_what_cannot_be_fitted_names_the_rule(casual, cut, rule) -> None:
    frame = cut(casual).astype({"returned": "Int64"})
    assert rule in retention.verdict(retention.compare_curves(frame))
    assert retention.project_retention(frame, ages=[30])["retention"].isna().all()
    assert retention.ltv(frame, 0.1)["ltv"].isna().all()


def test_one_cohort_is_enough_for_a_curve(casual) -> None:
    """Its band rests on its players alone."""
    first = casual[casual["timestamp"] == casual["timestamp"].min()]
    line = retention.project_retention(first, ages=[30]).iloc[0]
    assert line["low"] < line["retention"] < line["high"]


def test_a_verdict_on_several_groups_says_how_often_which(two_games) -> None:
    verdict = retention.verdict(retention.compare_curves(two_games, "game"))
    assert "3 groups" in verdict
    assert "the BG/BB curve for 2" in verdict
    assert "the shifted beta-geometric curve for 1" in verdict


def test_d30_and_d90_are_those_of_the_closed_form() -> None:
    lines = retention.project_retention(expected_frame(CASUAL.retention, AGES), ages=[30, 90])
    assert lines["retention"].tolist() == pytest.approx([CASUAL.retention(30), CASUAL.retention(90)], rel=0.02)


def test_a_band_holds_its_curve_and_gets_wider_with_the_years(casual) -> None:
    lines = retention.project_retention(casual, ages=[14, 30, 90, 365])
    width = np.log(lines["high"] / lines["low"]).tolist()
    assert width == sorted(width)
    assert (lines["low"] <= lines["retention"]).all()
    assert (lines["retention"] <= lines["high"]).all()


def test_less_confidence_is_a_narrower_band(casual) -> None:
    wide, narrow = (retention.project_retention(casual, ages=[30], confidence=share).iloc[0] for share in (0.95, 0.5))
    assert wide["low"] < narrow["low"] < narrow["high"] < wide["high"]


def test_what_has_not_come_is_said_to_be_projected() -> None:
    """On the fifth day, age 4 has come for one install day, and age 7 for none."""
    returned = np.outer([100] * 5, [0.4, 0.25, 0.2, 0.15, 0.1])
    frame = frame_of([100] * 5, returned, [1, 2, 3, 4, 7], until=5)
    lines = retention.project_retention(frame, ages=[3, 4, 5, 7])
    assert lines["is_projected"].tolist() == [False, False, True, True]


def test_the_seed_decides_the_band(casual) -> None:
    one, same, other = (retention.project_retention(casual, ages=[30], seed=seed)["high"].item() for seed in (1, 1, 2))
    assert one == same != other


def test_every_curve_can_be_seen(casual) -> None:
    lines = retention.project_retention(casual, ages=[30], model="all")
    assert lines["model"].tolist() == ["BG/BB", "shifted beta-geometric", "power law"]
    assert lines["is_chosen"].tolist() == [True, False, False]
    alone = retention.project_retention(casual, ages=[30], model="power law")
    assert alone["retention"].item() == lines["retention"].iloc[2]


@pytest.mark.parametrize(
    ("asked", "field"),
    [
        ({"model": "powerlaw"}, "model"),
        ({"confidence": 95}, "confidence"),
        ({"ages": [0, 1]}, "ages"),
        ({"draws": 0}, "draws"),
    ],
)
def test_arguments_that_mean_nothing_are_refused(casual, asked, field) -> None:
    with pytest.raises(BadQuery) as bad:
        retention.project_retention(casual, **asked)
    assert bad.value.field == field


def test_ltv_counts_the_install_day_once(casual) -> None:
    """Age 0 is one day played, age 1 adds D1."""
    values = retention.ltv(casual, 0.1, to=1)
    day_1 = retention.project_retention(casual, ages=[1])["retention"].item()
    assert values["days_played"].tolist() == pytest.approx([1.0, 1 + day_1])
    assert values["ltv"].tolist() == pytest.approx([0.1, 0.1 + 0.1 * day_1])


def test_ltv_is_the_populations_days_times_arpdau() -> None:
    values = retention.ltv(expected_frame(CASUAL.retention, AGES), 0.1, to=90)
    assert values["ltv"].iloc[-1] == pytest.approx(0.1 * CASUAL.active_days(91), rel=0.01)


def test_ltv_uses_the_arpdau_of_each_game(casual, tidy) -> None:
    """Tile: 20 dollars of 200 player-days; a day without players does not count."""
    money = tidy(
        ["revenue", "ilrd_revenue", "user_unique"],
        timestamp=["2026-11-01", "2026-11-02", "2026-11-03", "2026-11-01"],
        game=["Tile", "Tile", "Tile", "Farm"],
        revenue_sum=[10.0, 2.0, None, 500.0],
        ilrd_revenue_sum=[5.0, 3.0, None, 0.0],
        user_unique=[150, 50, 0, 10],
    )
    daily = revenue.arpdau(money, by=["timestamp", "game"])
    values = retention.ltv(casual, daily, by="game", to=7)
    assert values["ltv"].iloc[0] == pytest.approx(20 / 200)
    assert values.attrs["gamelens"]["asked"]["metric"] == ["retention", "revenue", "ilrd_revenue", "user_unique"]


def test_days_that_earn_differently_widen_the_band(casual, tidy) -> None:
    def worth(sums):
        players = dict.fromkeys(["user_unique"], [100] * 4)
        days = [f"2026-11-0{day}" for day in range(1, 5)]
        money = tidy("revenue", timestamp=days, revenue_sum=sums, ilrd_revenue_sum=[0.0] * 4, **players)
        money.attrs = {}
        return revenue.arpdau(money, by="timestamp")

    steady, shaky = (retention.ltv(casual, worth(sums)).iloc[-1] for sums in ([10.0] * 4, [1.0, 1.0, 1.0, 37.0]))
    assert steady["ltv"] == pytest.approx(shaky["ltv"])
    assert shaky["high"] - shaky["low"] > 2 * (steady["high"] - steady["low"])


def test_a_game_nobody_paid_for_has_no_ltv(casual, tidy) -> None:
    daily = tidy(timestamp=["2026-11-01"], game=["Other"], player_days=[5], arpdau=[0.1])
    assert retention.ltv(casual, daily, by="game")["ltv"].isna().all()


@pytest.mark.parametrize("worth", ["0.1", pd.DataFrame({"revenue": [1.0]})])
def test_worth_is_a_number_or_a_frame_of_arpdau(casual, worth) -> None:
    with pytest.raises(BadQuery, match=r"revenue\.arpdau"):
        retention.ltv(casual, worth)


ANSWERS = {
    "compared": retention.compare_curves,
    "projected": lambda frame, by: retention.project_retention(frame, by, ages=[30]),
    "ltv": lambda frame, by: retention.ltv(frame, 0.1, by, to=7),
}


@pytest.mark.parametrize("answer", ANSWERS.values(), ids=list(ANSWERS))
class TestEveryAnswer:
    """Frame in, frame out."""

    def test_of_nothing_come_the_same_columns(self, two_games, answer) -> None:
        assert answer(two_games[:0], "game").dtypes.equals(answer(two_games, "game").dtypes)

    def test_groups_are_as_they_were(self, two_games, answer) -> None:
        made = answer(two_games, "game")
        assert made["game"].dtype == two_games["game"].dtype
        assert set(made["game"].dropna()) == {"Tile", "Farm"}
        assert made["game"].isna().any()

    def test_a_group_alone_is_as_it_is_among_others(self, two_games, casual, answer) -> None:
        among = answer(two_games, "game").query("game == 'Tile'").drop(columns="game").reset_index(drop=True)
        pd.testing.assert_frame_equal(among, answer(casual, None), check_like=True)

    def test_a_frame_that_is_none_of_retention_is_refused(self, casual, answer) -> None:
        with pytest.raises(BadQuery, match="not a frame of retention"):
            answer(casual.drop(columns="installs"), None)

    def test_the_receipt_is_handed_on(self, casual, answer) -> None:
        assert answer(casual, None).attrs == casual.attrs

    def test_the_frame_given_stays_as_it_was(self, casual, answer) -> None:
        before = casual.copy()
        answer(casual, "game")
        pd.testing.assert_frame_equal(casual, before)
