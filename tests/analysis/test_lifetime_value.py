"""Lifetime value, with money of install days written by hand, by a formula and by the simulator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import ArrayLike, NDArray
from pandas import DataFrame

from gamelens.analysis import retention
from gamelens.errors import BadQuery
from gamelens.simulator import Ledger, fit_retention
from gamelens.simulator.events.event_columns import ledger_rows_of
from gamelens.simulator.output.play import block_tasks, play_task
from support.cohort_ledgers import BEGINS, CohortLedger, cohort_ledgers, lived_on
from support.said import as_made_by, said
from support.tidy_frames import tidy_frame

Worth = Callable[[NDArray[np.float64]], NDArray[np.float64]]

AGES = [1, 2, 3, 4, 5, 6, 7, 10, 14, 21]
CASUAL = fit_retention(0.37, 0.125, 0.04)
DAYS = 28


def ledger_of(worth: Worth, *, iap: Worth | None = None, days: int = DAYS, installs: int = 100_000) -> CohortLedger:
    """Return install days that return as `CASUAL` expects and bring *worth* (from ads) of each player at an age."""
    age = np.arange(days)[None, :] - np.arange(days)[:, None]
    shares = np.array([1.0, *(CASUAL.retention(each) for each in range(1, days))])
    players = np.where(age >= 0, np.round(installs * shares[np.maximum(age, 0)]), 0)
    bought = np.zeros_like(players) if iap is None else players * iap(np.maximum(age, 0).astype("float64"))
    return CohortLedger(players, bought, players * worth(np.maximum(age, 0).astype("float64")))


def constant(dollars: float) -> Worth:
    """Return the same *dollars* at every age."""
    return lambda ages: np.full(ages.shape, dollars)


def values_of(ledger: CohortLedger, first: int = 0, until: int = DAYS, **options: Any) -> DataFrame:
    """Return the lifetime value of the install days *first* to *until*, by age."""
    return retention.ltv(
        ledger.retention_frame(AGES, first, until), ledger.money_frame(0, until), draws=50, **options
    ).set_index("age")


def by_hand(money: ArrayLike, installs: Sequence[int]) -> CohortLedger:
    """Return install days of *installs* players whose *money* (purchases) by day is written by hand."""
    players = np.diag(np.array(installs, dtype="float64")) + np.triu(np.ones((len(installs),) * 2), 1)
    return CohortLedger(players, np.array(money, dtype="float64"), np.zeros_like(players))


THREE_DAYS = by_hand([[30, 10, 5], [0, 60, 20], [0, 0, 90]], [10, 20, 30])


def test_the_measured_part_is_money_by_installs() -> None:
    """All three install days have reached age 0: 180 dollars of 60 players."""
    values = values_of(THREE_DAYS, until=3, to=1)
    assert values["ltv"][0] == pytest.approx(180 / 60)
    assert (values["installs"][0], values["is_projected"][0]) == (60, False)


def test_an_age_counts_the_install_days_that_have_reached_it() -> None:
    """Of eight install days, seven have reached age 1 and are measured, six age 2, which is projected."""
    ledger = by_hand(np.eye(8) * 10 + np.eye(8, k=1) * 2, [10] * 8)
    values = values_of(ledger, until=8, to=3)
    assert values["is_projected"].tolist() == [False, False, True, True]
    assert values["installs"].tolist() == [80, 70, 0, 0]
    assert values["ltv"][:2].tolist() == pytest.approx([1.0, 1.2])


def test_money_of_the_first_days_is_counted_there() -> None:
    """Players who pay on their install day alone have brought everything by age 0."""
    ledger = ledger_of(constant(0.0), iap=lambda ages: np.where(ages == 0, 2.0, 0.0))
    assert values_of(ledger)["ltv"].tolist() == pytest.approx([2.0] * 91)


def test_a_steady_worth_gives_the_populations_days() -> None:
    """If each day played brings 0.1 dollars, D90 is that times the active days of the closed form, within 1 %."""
    value = values_of(ledger_of(constant(0.1)))["ltv"][90]
    assert value == pytest.approx(0.1 * CASUAL.active_days(91), rel=0.01)


def test_the_money_of_a_returning_player_decays_as_it_did() -> None:
    """Money that falls with age as 1 / (1 + age) is projected to D90 within 1 % of its sum."""
    values = values_of(ledger_of(constant(0.0), iap=lambda ages: 1 / (1 + ages)))
    truth = 1 + sum(CASUAL.retention(age) / (1 + age) for age in range(1, 91))
    assert values["ltv"][90] == pytest.approx(truth, rel=0.01)


def test_purchases_and_ads_decay_apart() -> None:
    """Purchases that end after a week do not take the ads with them, and leave little behind.

    One decay for both would make the tail a third of what it is.
    """
    values = values_of(ledger_of(constant(0.1), iap=lambda ages: np.where(ages < 7, 0.5, 0.0)))["ltv"]
    tail = sum(0.1 * CASUAL.retention(age) for age in range(22, 91))
    assert 0.95 * tail < values[90] - values[21] < 1.4 * tail


def test_older_install_days_lend_their_tail() -> None:
    """Install days before those of the frame show that players of 30 days and more bring nothing."""
    ledger = ledger_of(lambda ages: np.where(ages < 30, 0.1, 0.0), days=90)
    frame, money = ledger.retention_frame(AGES, 62, 90), ledger.money_frame(62, 90)
    is_own = pd.to_datetime(money["installed_on"].astype("object"), utc=True) >= frame["timestamp"].min()
    alone, lent = (retention.ltv(frame, rows, draws=50)["ltv"].iloc[-1] for rows in (money[is_own], money))
    truth = 0.1 * CASUAL.active_days(30)
    assert alone > 1.2 * truth
    assert abs(lent - truth) < 0.5 * abs(alone - truth)


def test_the_band_is_that_of_the_install_days() -> None:
    """Install days that bring about 1 dollar, or half of them 2 and half nothing: the band tells them apart."""
    steady, shaky = (
        values_of(by_hand(np.diag(money), [10] * 8), until=8, to=1).loc[0]
        for money in ([9.0, 11.0, 10.0, 9.5, 10.5, 11.0, 9.0, 10.0], [20.0, 0.0, 20.0, 0.0, 20.0, 0.0, 20.0, 0.0])
    )
    assert steady["ltv"] == shaky["ltv"] == 1.0
    assert (steady["low"], steady["high"]) == pytest.approx((1.0, 1.0), rel=0.5)
    assert shaky["low"] < 0.5 < 1.5 < shaky["high"]


def test_the_band_reaches_further_up_than_down() -> None:
    """One large payer in eight days: another one may come."""
    value = values_of(by_hand(np.diag([1.0] * 7 + [50.0]), [10] * 8), until=8, to=1).loc[0]
    assert value["high"] - value["ltv"] > 1.5 * (value["ltv"] - value["low"])


def test_one_day_that_brings_most_of_the_money_is_named() -> None:
    """Of 27 days with 10 dollars and one with 1,000, that one brings 1,000 - 1,270 / 28 more than its part."""
    amounts = np.full(DAYS, 10.0)
    amounts[5] = 1000.0
    ledger = by_hand(np.diag(amounts), [100] * DAYS)
    rough = retention.ltv(ledger.retention_frame(AGES, 0, DAYS), ledger.money_frame(0, DAYS), draws=50)
    assert rough["largest_day"].iloc[0] == pytest.approx(1000 / 1270 - 1 / DAYS, abs=1e-3)
    (claim,) = said(rough)
    assert "the interval is rough, since one install day brought an extra 7" in claim.text
    assert values_of(ledger_of(constant(0.1)))["largest_day"].isna().all()


def test_less_confidence_is_a_narrower_band() -> None:
    """A band of 50 % lies inside that of 95 %, measured and projected."""
    ledger = ledger_of(constant(0.1), installs=200)
    days_differ = np.random.default_rng(1).uniform(0.5, 1.5, (DAYS, 1))
    ledger = ledger._replace(ad_usd=ledger.ad_usd * days_differ)
    wide, narrow = (values_of(ledger, confidence=share) for share in (0.95, 0.5))
    assert (wide["low"] <= narrow["low"]).all()
    assert (narrow["high"] <= wide["high"]).all()


def test_one_install_day_has_a_value_and_no_band() -> None:
    """The spread between install days is unknown with one of them."""
    values = values_of(by_hand([[30.0]], [10]), until=1, to=1)
    assert values["ltv"][0] == 3.0
    assert values[["low", "high"]].isna().all(axis=None)


def test_without_a_curve_the_measured_part_stays() -> None:
    """Three install days are too few for a curve: age 0 is measured, later ages are NA."""
    values = values_of(THREE_DAYS, until=3, to=7)
    assert values["ltv"].notna().tolist() == [True] + [False] * 7
    assert values["days_played"][1:].isna().all()


def test_no_money_is_a_value_of_nothing() -> None:
    """Players who brought nothing have a lifetime value of 0, and a band that cannot be known."""
    values = values_of(ledger_of(constant(0.0)))
    assert (values["ltv"] == 0).all()
    assert values[["low", "high"]].isna().all(axis=None)


def test_days_played_are_those_of_the_curve() -> None:
    """Days played are one for the install day plus the projected retention of each later age."""
    ledger = ledger_of(constant(0.1))
    line = retention.project_retention(ledger.retention_frame(AGES, 0, DAYS), ages=range(1, 91), draws=50)
    assert values_of(ledger)["days_played"].tolist() == pytest.approx([1, *(1 + line["retention"].cumsum())])


def test_install_days_without_their_first_money_are_not_measured() -> None:
    """Install days before the first day of money are left out, instead of counting as worth nothing."""
    ledger = ledger_of(constant(0.1))
    values = retention.ltv(ledger.retention_frame(AGES, 0, DAYS), ledger.money_frame(14, DAYS), draws=50)
    assert values["ltv"][0] == pytest.approx(0.1)
    assert values["installs"][0] == 14 * 100_000


@pytest.fixture(scope="module")
def games() -> tuple[DataFrame, DataFrame]:
    """Retention and money of two games, one that brings ten times as much, and one whose title is null."""
    frames, money = [], []
    for title, dollars in (("Tile", 0.1), ("Farm", 1.0), (None, 0.5)):
        ledger = ledger_of(constant(dollars))
        frames.append(ledger.retention_frame(AGES, 0, DAYS).assign(game=title))
        money.append(ledger.money_frame(0, DAYS).assign(game=title))
    both = [pd.concat(parts, ignore_index=True).astype({"game": "category"}) for parts in (frames, money)]
    both[0].attrs = {"gamelens": {"asked": {"metric": "retention"}, "requests": 3}}
    both[1].attrs = {"gamelens": {"asked": {"metric": ["revenue", "ilrd_revenue", "user_unique"]}, "requests": 3}}
    return both[0], both[1]


def at_d0(values: DataFrame) -> dict[Any, float]:
    """Return the value on the install day of each game."""
    rows = values[values["age"] == 0]
    return dict(zip(rows["game"].astype("object").fillna("null"), rows["ltv"], strict=True))


def test_each_game_has_its_own_money(games: tuple[DataFrame, DataFrame]) -> None:
    """The money of a game is divided by its own installs, null titles included."""
    values = retention.ltv(*games, by="game", draws=50)
    assert at_d0(values) == pytest.approx({"Tile": 0.1, "Farm": 1.0, "null": 0.5})
    assert values["game"].dtype == games[0]["game"].dtype


def test_without_groups_all_games_are_one(games: tuple[DataFrame, DataFrame]) -> None:
    """Pooled, an install day is worth the mean of the three games."""
    assert retention.ltv(*games, draws=50)["ltv"].iloc[0] == pytest.approx(1.6 / 3)


def test_a_game_alone_is_as_it_is_among_others(games: tuple[DataFrame, DataFrame]) -> None:
    """A game has the same result alone and among others."""
    among = retention.ltv(*games, by="game", draws=50).query("game == 'Farm'").drop(columns="game")
    frame, money = (each[each["game"] == "Farm"].drop(columns="game") for each in games)
    alone = retention.ltv(frame, money, draws=50)
    pd.testing.assert_frame_equal(among.reset_index(drop=True), alone)


def test_a_game_without_money_rows_is_worth_nothing(games: tuple[DataFrame, DataFrame]) -> None:
    """A game without rows brought nothing on the days that the frame covers."""
    frame, money = games
    values = retention.ltv(frame, money[money["game"] != "Farm"], by="game", draws=50)
    assert at_d0(values)["Farm"] == 0


def test_ids_keep_games_of_one_title_apart(games: tuple[DataFrame, DataFrame]) -> None:
    """Two games of the same title have a value each, by their ids."""
    frame, money = (
        each.dropna(subset="game").assign(game_id=each["game"].astype("object"), game="Same") for each in games
    )
    values = retention.ltv(frame, money, by="game", draws=50)
    assert values[values["age"] == 0]["ltv"].tolist() == pytest.approx([1.0, 0.1])


def test_an_empty_frame_gives_the_same_columns(games: tuple[DataFrame, DataFrame]) -> None:
    """A frame without rows gives a result without rows, of the same columns and dtypes."""
    frame, money = games
    empty = retention.ltv(frame[:0], money[:0], by="game")
    assert empty.dtypes.equals(retention.ltv(frame, money, by="game", draws=50).dtypes)


def test_the_receipts_of_both_frames_are_merged(games: tuple[DataFrame, DataFrame]) -> None:
    """The result names the metrics of both frames, and neither frame is changed."""
    before = [frame.copy() for frame in games]
    values = retention.ltv(*games, by="game", draws=50)
    assert values.attrs["gamelens"]["asked"]["metric"] == ["retention", "revenue", "ilrd_revenue", "user_unique"]
    for frame, copy in zip(games, before, strict=True):
        pd.testing.assert_frame_equal(frame, copy)


WEEKLY = tidy_frame(
    timestamp=["2026-11-02", "2026-11-09"],
    game=["Tile", "Tile"],
    installed_on=["2026-11-02", "2026-11-02"],
    revenue=[1.0, 2.0],
    user_unique=[5, 3],
)


@pytest.mark.shown_by(2)
@pytest.mark.parametrize(
    ("change", "rule"),
    [
        (lambda money: money.drop(columns="game"), r'has no game: use lens.query\(.*"game"'),
        (lambda money: money.drop(columns="installed_on"), r'has no installed_on: use lens.query\(.*"installed_on"'),
        (lambda money: money.drop(columns="user_unique"), "has no user_unique"),
        (lambda money: money.drop(columns=["revenue", "ilrd_revenue"]), "neither revenue nor ilrd_revenue"),
        (lambda money: WEEKLY, 'needs one row a day, .* every="day"'),
        (lambda money: 0.1, "is not a frame: query revenue, ilrd_revenue and user_unique by installed_on"),
    ],
    ids=["no game", "no install day", "no players", "no money", "weeks", "a number"],
)
def test_other_frames_are_refused(
    games: tuple[DataFrame, DataFrame], change: Callable[[DataFrame], Any], rule: str
) -> None:
    """Money that cannot be given to install days and games raises `BadQuery` with the query to use."""
    frame, money = games
    with pytest.raises(BadQuery, match=rule):
        retention.ltv(frame, change(money), by="game")


@pytest.mark.parametrize(("options", "field"), [({"to": 0}, "to"), ({"model": "all"}, "model")])
def test_arguments_that_mean_nothing_are_refused(
    games: tuple[DataFrame, DataFrame], options: dict[str, Any], field: str
) -> None:
    """A last age below 1, or several curves, raise `BadQuery` that names the argument."""
    with pytest.raises(BadQuery) as bad:
        retention.ltv(*games, **options)
    assert bad.value.field == field


def test_another_frame_than_of_retention_is_refused(games: tuple[DataFrame, DataFrame]) -> None:
    """A frame without the columns of a retention frame raises `BadQuery`."""
    with pytest.raises(BadQuery, match=r"has no installs: use lens.retention\("):
        retention.ltv(games[0].drop(columns="installs"), games[1])


@pytest.fixture(scope="module")
def midcore() -> CohortLedger:
    """The ledger of a game whose players live on after its 60 days."""
    return cohort_ledgers("midcore", seed=1, players=4000)["Iron Oath"]


@pytest.mark.wide
def test_what_install_days_brought_is_what_the_ledger_says(midcore: CohortLedger) -> None:
    """From 28 days D0 is exact, D7 within 5 % and D90 within 15 % of what these players went on to bring."""
    frame, money = midcore.retention_frame([*AGES, 28], 32, 60), midcore.money_frame(32, 60)
    values = retention.ltv(frame, money, draws=50).set_index("age")
    truth = midcore.value_by_age(32, 60, 90)
    assert values["ltv"][0] == pytest.approx(truth[0])
    assert values["ltv"][7] == pytest.approx(truth[7], rel=0.05)
    assert values["ltv"][90] == pytest.approx(truth[90], rel=0.15)
    assert values["low"][90] < truth[90] < values["high"][90]


def test_sums_by_install_day_are_those_of_the_ledger() -> None:
    """Players and dollars by install day and day equal the ledger's metrics of the same events."""
    scenario = lived_on("small", seed=3, lives_on=5, players=200)
    ledger = Ledger()
    for task in block_tasks(scenario):
        block, ids = play_task(scenario, BEGINS, task)
        game = scenario.games[task.game]
        ledger.record(ledger_rows_of(block, ids, game=game, game_id=game.title, scenario=scenario))
    for title, sums in cohort_ledgers("small", seed=3, lives_on=5, players=200).items():
        for metric, field, cells in (
            ("user_unique", "user_unique", sums.players),
            ("revenue", "sum", sums.iap_usd),
            ("ilrd_revenue", "sum", sums.ad_usd),
        ):
            rows = ledger.metric(metric, interval=f"{BEGINS}/P{scenario.days}D", by=["installed_on"], games=[title])
            expected = np.zeros_like(cells)
            for row in rows:
                installed = pd.Timestamp(row["installed_on"]).toordinal() - BEGINS.toordinal()
                expected[installed, row["timestamp"].toordinal() - BEGINS.toordinal()] = row[field]
            np.testing.assert_allclose(cells, expected, atol=1e-6)


def value_rows(**worth: tuple[float, float, float]) -> DataFrame:
    """Return value, low and high of games at ages 0 (measured, half of it) and 90."""
    rows = [
        {"game": game, "age": age, "is_projected": age > 0}
        | {name: each * (1 if age else 0.5) for name, each in zip(("ltv", "low", "high"), band, strict=True)}
        for game, band in worth.items()
        for age in (0, 90)
    ]
    frame = DataFrame(rows, columns=["game", "age", "is_projected", "ltv", "low", "high"]).assign(largest_day=np.nan)
    return as_made_by("retention.ltv", frame, by="game")


def test_a_clearly_dearer_game_is_claimed_to_be_so() -> None:
    """The bands overlap, and the difference of 1 still has an interval above 0: root of .5² + .6² each way."""
    (claim,) = said(value_rows(Farm=(2.0, 1.5, 2.5), Tile=(3.0, 2.4, 3.6)))
    assert (claim.subject, claim.direction, claim.size) == ("Tile", "higher", 1.0)
    assert (claim.low, claim.high) == pytest.approx((1 - 0.61**0.5, 1 + 0.61**0.5))
    assert claim.text == (
        "A new player of Tile brings in $3.00 ($2.40 to $3.60) by day 90; 50.0% of it is measured, up to day 0. "
        "That is more than a new player of Farm, $2.00."
    )


def test_a_game_that_may_not_be_dearer_is_not_claimed_to_be() -> None:
    """The interval of the difference holds 0: the words say that it is not clear."""
    (claim,) = said(value_rows(Farm=(2.0, 1.0, 3.0), Tile=(2.5, 2.0, 3.0)))
    assert claim.direction == "no clear difference"
    assert "not clearly more than a new player of Farm" in claim.text


@pytest.mark.parametrize("worth", [{}, {"Tile": (3.0, 2.4, 3.6)}, {"Tile": (1.0, np.nan, np.nan), "Farm": (0.5, 0, 1)}])
def test_a_comparison_that_cannot_be_made_is_unknown(worth: dict[str, tuple[float, float, float]]) -> None:
    """Without another game, or without bands, the direction is unknown."""
    (claim,) = said(value_rows(**worth))
    assert claim.direction == "unknown"
    assert "more than" not in claim.text or "not clearly" in claim.text
