"""Changes of prices, like for like: their size, their intervals, and the claims made of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from pandas import DataFrame

from gamelens.analysis import claims
from gamelens.analysis.decomposition import decompose, price_changes, split_in_halves
from gamelens.analysis.over_days import FEWEST_DAYS
from support.said import as_made_by, said
from support.tidy_frames import tidy_frame

NETWORK = "ilrd_network_name"
DAYS = 28
SIGMA = 0.6  # spread of the price between impressions


def played(
    prices: dict[str | None, float],
    impressions: dict[str, float],
    *,
    rng: np.random.Generator,
    first: str = "2026-10-01",
    days: int = DAYS,
) -> DataFrame:
    """Return days of impressions by game and network, each game with prices of its own.

    The price of a network in the n-th game is n times that of *prices*.
    """
    rows: list[tuple[object, ...]] = []
    for day in pd.date_range(first, periods=days):
        for number, (game, mean) in enumerate(impressions.items(), start=1):
            for network, price in prices.items():
                count = int(rng.poisson(mean))
                money = number * price * rng.lognormal(-(SIGMA**2) / 2, SIGMA, count).sum()
                rows.append((str(day), game, network, count, float(money)))
    stamps, games, networks, counts, sums = zip(*rows, strict=True)
    return tidy_frame(
        "ilrd_revenue",
        timestamp=stamps,
        game=games,
        **{NETWORK: networks},
        ilrd_revenue_event_count=counts,
        ilrd_revenue=sums,
    )


def wandering(segments: int, memory: float, rng: np.random.Generator) -> DataFrame:
    """Return eight weeks of networks whose prices wander by a fifth around one level, autocorrelated by *memory*."""
    walk = rng.normal(size=(segments, 2 * DAYS))
    for day in range(1, 2 * DAYS):
        walk[:, day] = memory * walk[:, day - 1] + (1 - memory**2) ** 0.5 * walk[:, day]
    stamps = [str(day) for day in pd.date_range("2026-10-01", periods=2 * DAYS)]
    return tidy_frame(
        "ilrd_revenue",
        timestamp=stamps * segments,
        game=["Tile"] * walk.size,
        **{NETWORK: [f"network {number}" for number in range(segments) for _ in stamps]},
        ilrd_revenue_event_count=[100] * walk.size,
        ilrd_revenue=(0.01 * np.exp(0.2 * walk)).ravel().tolist(),
    )


def clear(changes: DataFrame) -> list[Any]:
    """Return the claims that carry a direction, as tuples."""
    said = claims.of(changes)
    return [*said[said["direction"].isin(["higher", "lower"])].itertuples()]


def test_a_price_that_fell_is_the_one_claim() -> None:
    """The network whose price fell by 40 % is named with its ratio, the steady ones and null are not."""
    rng = np.random.default_rng(1)
    before = played({"A": 0.01, "B": 0.02, None: 0.01}, {"Tile": 80.0, "Farm": 40.0}, rng=rng)
    after = played({"A": 0.006, "B": 0.02, None: 0.01}, {"Tile": 80.0, "Farm": 40.0}, rng=rng, first="2026-10-29")
    changes = price_changes(before, after, NETWORK)
    (claim,) = clear(changes)
    assert claim.subject == "A"
    assert claim.direction == "lower"
    assert claim.low < 0.6 < claim.high
    assert claim.text.startswith("A pays 39.0% less for the same impressions (")
    assert changes[NETWORK].isna().sum() == 1


def test_a_shift_between_games_is_no_change_of_price() -> None:
    """The later period has most impressions in the dearer game, at the same prices."""
    rng = np.random.default_rng(6)
    before = played({"A": 0.01}, {"Tile": 90.0, "Farm": 10.0}, rng=rng)
    after = played({"A": 0.01}, {"Tile": 10.0, "Farm": 90.0}, rng=rng, first="2026-10-29")
    row = price_changes(before, after, NETWORK).iloc[0]
    assert row["low"] < 1 < row["high"]
    assert row["ratio"] == pytest.approx(1, abs=0.1)


def test_the_effect_is_the_later_revenue_beside_the_earlier_price() -> None:
    """Ten impressions a day at 2 instead of 1 dollar are ten dollars a day more."""
    columns: dict[str, list[object]] = {"game": ["Tile"] * 6, NETWORK: ["A"] * 6, "ilrd_revenue_event_count": [10] * 6}
    days = [str(day) for day in pd.date_range("2026-10-01", periods=12)]
    before = tidy_frame("ilrd_revenue", timestamp=days[:6], **columns, ilrd_revenue=[9.0, 11.0] * 3)
    after = tidy_frame("ilrd_revenue", timestamp=days[6:], **columns, ilrd_revenue=[20.0, 20.0] * 3)
    row = price_changes(before, after, NETWORK).iloc[0]
    assert (row["ratio"], row["effect"], row["impressions"]) == (2.0, 60.0, 60)


def test_few_days_give_no_interval_and_no_direction() -> None:
    """With fewer days than needed the ratio stands alone, and the claim is unknown."""
    rng = np.random.default_rng(3)
    before = played({"A": 0.01}, {"Tile": 50.0}, rng=rng, days=FEWEST_DAYS - 1)
    after = played({"A": 0.02}, {"Tile": 50.0}, rng=rng, days=FEWEST_DAYS - 1, first="2026-10-29")
    changes = price_changes(before, after, NETWORK)
    assert changes["ratio"].notna().all()
    assert changes[["low", "high", "p_value", "p_adjusted"]].isna().all(axis=None)
    assert set(claims.of(changes)["direction"]) == {"unknown"}


def test_periods_without_rows_have_no_changes() -> None:
    """Empty frames give an empty frame with the same columns."""
    some = played({"A": 0.01}, {"Tile": 50.0}, rng=np.random.default_rng(4))
    changes = price_changes(some[:0], some, NETWORK)
    assert changes.empty
    assert list(changes.columns) == list(price_changes(some, some, NETWORK).columns)
    assert set(claims.of(changes)["direction"]) == {"unknown"}


@pytest.mark.parametrize("known", [(False, False), (True, False), (False, True)])
def test_a_dimension_without_values_is_one_segment(known: tuple[bool, bool]) -> None:
    """Of events without a country all prices are of one country, in one of the two periods or in both."""
    networks: dict[str | None, float] = {"A": 0.01, None: 0.02}
    before, after = (
        played(networks, {"Tile": 50.0}, rng=np.random.default_rng(5), first=first).assign(
            country_code=pd.Categorical(["US" if is_known else None] * 2 * DAYS)
        )
        for first, is_known in zip(("2026-09-03", "2026-10-01"), known, strict=True)
    )
    changes = price_changes(before, after, [NETWORK, "country_code"])
    assert len(changes) == (2 if known == (False, False) else 0)
    assert set(changes[NETWORK].astype("object").fillna("(unknown)")) <= {"A", "(unknown)"}
    assert changes["country_code"].isna().all()
    assert len(price_changes(before, after, "country_code", within=NETWORK)) == len(changes) // 2


@pytest.mark.shown_by(1)
@pytest.mark.parametrize("memory", [0.8, 0.9])
def test_prices_that_wander_are_no_changes(memory: float) -> None:
    """Of 300 segments whose prices wander, successive days alike, 92 % hold a ratio of 1, and at most 3 are claimed."""
    changes = price_changes(*split_in_halves(wandering(300, memory, np.random.default_rng(7))), NETWORK)
    assert ((changes["low"] < 1) & (changes["high"] > 1)).mean() >= 0.92
    assert len(clear(changes)) <= 3


@pytest.mark.wide
@pytest.mark.parametrize("memory", [0.0, 0.5, 0.8])
def test_small_p_values_are_as_rare_as_they_say(memory: float) -> None:
    """Of 800 segments whose prices wander 2 or so have p below 1 in 400, as Holm's correction of 20 takes it."""
    changes = price_changes(*split_in_halves(wandering(800, memory, np.random.default_rng(11))), NETWORK)
    assert (changes["p_value"] < 1 / 400).sum() <= 5


@pytest.mark.wide
def test_intervals_hold_the_true_ratio_in_95_of_100() -> None:
    """Of 300 segments whose price changed by a fifth, the intervals of 93 % or more hold it."""
    rng = np.random.default_rng(5)
    names = [f"network {number}" for number in range(300)]
    before = played(dict.fromkeys(names, 0.01), {"Tile": 6.0}, rng=rng)
    after = played(dict.fromkeys(names, 0.012), {"Tile": 8.0}, rng=rng, first="2026-10-29")
    changes = price_changes(before, after, NETWORK)
    assert ((changes["low"] < 1.2) & (changes["high"] > 1.2)).mean() >= 0.93


def test_a_fall_on_weekends_only_is_named() -> None:
    """Prices of weekends fall by a fifth: all days together rarely show it, the weekends do."""
    rng = np.random.default_rng(9)
    before = played({"A": 0.01, "B": 0.01}, {"Tile": 400.0}, rng=rng)
    after = played({"A": 0.01, "B": 0.01}, {"Tile": 400.0}, rng=rng, first="2026-10-29")
    is_fallen = (after["timestamp"].dt.day_of_week >= 5) & (after[NETWORK] == "A")
    after["ilrd_revenue"] = after["ilrd_revenue"].where(~is_fallen, after["ilrd_revenue"] * 0.8)
    (claim,) = clear(price_changes(before, after, NETWORK))
    assert claim.subject == "A"
    assert claim.low < 0.8 < claim.high
    assert "on weekends" in claim.text


def test_a_dimension_that_is_null_everywhere_changes_nothing() -> None:
    """Canonical names add a column of reasons, which is empty where each network is known."""
    frame = wandering(3, 0.0, np.random.default_rng(8))
    plain, empty = (
        price_changes(*split_in_halves(each), NETWORK)
        for each in (frame, frame.assign(network_unknown=pd.Categorical([None] * len(frame))))
    )
    pd.testing.assert_frame_equal(plain, empty)


def test_an_interval_that_excludes_no_change_is_not_called_unclear_itself() -> None:
    """Among forty segments some intervals exclude 1: their sentence says that the correction for all leaves them."""
    changes = price_changes(*split_in_halves(wandering(40, 0.0, np.random.default_rng(4))), NETWORK)
    said = claims.of(changes)
    excludes = ~((said["low"] <= 1) & (said["high"] >= 1))
    assert excludes.any()
    assert not said["direction"].isin(["higher", "lower"]).any()
    is_corrected = said["text"].str.contains("not clear after correction for all segments")
    assert (is_corrected == excludes).all()


def test_a_shift_between_countries_is_no_change_of_price() -> None:
    """Each price rises by a tenth while players move from the dear to the cheap country: the price rose."""
    rng = np.random.default_rng(2)
    parts = [
        played({"A": price, "B": price}, {"Tile": mean}, rng=rng, first=first).assign(country_code=country)
        for first, rise, sizes in (("2026-10-01", 1.0, (300.0, 60.0)), ("2026-10-29", 1.1, (60.0, 300.0)))
        for country, price, mean in (("US", 0.02 * rise, sizes[0]), ("IN", 0.002 * rise, sizes[1]))
    ]
    before, after = (
        pd.concat(pair, ignore_index=True).astype({NETWORK: "category", "game": "category", "country_code": "category"})
        for pair in (parts[:2], parts[2:])
    )
    before.attrs, after.attrs = parts[0].attrs, parts[2].attrs
    assert price_changes(before, after, NETWORK)["ratio"].between(1.05, 1.15).all()
    whole = decompose(before, after, NETWORK)
    assert (whole["price"] > 0).all()
    assert (whole["mix"] < 0).all()
    assert whole[["volume", "mix", "price"]].sum(axis=1).to_numpy() == pytest.approx(whole["change"].to_numpy())
    pooled = decompose(before.drop(columns="country_code"), after.drop(columns="country_code"), NETWORK)
    assert (pooled["price"] < 0).all()


def test_a_claim_about_a_null_group_names_it() -> None:
    """Its subject is (unknown): an empty one is the whole."""
    columns = {"ratio": [0.5, 0.9], "low": [0.4, 0.6], "high": [0.6, 1.4], "p_adjusted": [0.001, 0.5]}
    rows = DataFrame({"network": [None, "A"], **columns, "effect": [-3.0, 0.0], "days_of_week": ["all days"] * 2})
    first, second = said(as_made_by("decomposition.price_changes", rows, by="network"))
    assert (first.subject, first.direction, second.subject) == ("(unknown)", "lower", "A")
