"""Claims about ad revenue that count, and about its change."""

from __future__ import annotations

import math

import pandas as pd
import pytest
from pandas import DataFrame

from gamelens.analysis import ads, claims, decomposition
from gamelens.errors import BadQuery
from gamelens.receipts import Receipt
from gamelens.wire.intervals import Interval
from support.said import said
from support.tidy_frames import tidy_frame


def earned(**countries: float) -> DataFrame:
    """Return `earnings` by country of one day."""
    frame = tidy_frame(
        "ilrd_revenue",
        timestamp=["2026-11-01"] * len(countries),
        country_code=[*countries],
        ilrd_revenue_event_count=[1000] * len(countries),
        ilrd_revenue=[*countries.values()],
    )
    return ads.earnings(frame, by="country_code")


def revenue_of(money: float, count: int, day: str) -> DataFrame:
    """Return ad revenue of one network on one day."""
    return tidy_frame(
        "ilrd_revenue", timestamp=[day], ilrd_network_name=["A"], ilrd_revenue_event_count=[count], ilrd_revenue=[money]
    )


def test_ad_revenue_is_a_sum_over_days() -> None:
    """Four dollars on each of two days are eight, without an interval."""
    frame = tidy_frame(
        "ilrd_revenue",
        timestamp=["2026-11-01", "2026-11-02"],
        ilrd_revenue_event_count=[10, 10],
        ilrd_revenue=[4.0, 4.0],
    )
    (claim,) = said(ads.earnings(frame))
    assert (claim.size, claim.text) == (8.0, "Ads earned $8.00.")
    assert math.isnan(claim.low)
    nothing = [said(ads.earnings(it))[0].text for it in (frame[:0], frame.assign(ilrd_revenue=0.0))]
    assert nothing == ["Nothing was earned."] * 2


@pytest.mark.parametrize(("every", "step", "left"), [("day", "1D", 7), ("week", "7D", 14)])
def test_a_part_of_a_frame_earned_in_its_own_days(every: str, step: str, left: int) -> None:
    """Of 28 days the last seven, or the last two weeks, are left: the sentence and the receipt have their number."""
    starts = pd.date_range("2026-11-02", "2026-11-29", freq=step)
    frame = tidy_frame(
        "ilrd_revenue",
        timestamp=[str(start.date()) for start in starts],
        ilrd_revenue_event_count=[10] * len(starts),
        ilrd_revenue=[1.0] * len(starts),
    )
    frame.attrs["gamelens"]["asked"] |= {"every": every, "interval": "2026-11-02/P28D"}
    kept = frame[frame["timestamp"] >= pd.Timestamp("2026-11-30", tz="UTC") - pd.Timedelta(days=left)]
    assert said(ads.earnings(frame))[0].text.endswith("in 28 days.")
    result = ads.earnings(kept)
    assert said(result)[0].text.endswith(f"in {left} days.")
    assert Receipt.of(result.attrs).interval == Interval.parse(f"P{left}D/2026-11-30")
    assert result.attrs["gamelens"]["requests"] == 1


def test_sparse_days_are_not_counted_as_the_period() -> None:
    """Ads brought money on three of 28 days: they did not earn it "in 11 days", which is from the first to the last."""
    frame = tidy_frame(
        "ilrd_revenue",
        timestamp=["2026-11-05", "2026-11-09", "2026-11-15"],
        ilrd_revenue_event_count=[10] * 3,
        ilrd_revenue=[1.0] * 3,
    )
    frame.attrs["gamelens"]["asked"] |= {"every": "day", "interval": "2026-11-02/P28D"}
    result = ads.earnings(frame)
    assert said(result)[0].text == "Ads earned $3.00."
    assert Receipt.of(result.attrs).interval is None


def test_without_revenue_each_kind_says_so() -> None:
    """A game without ads has no leader and no unknown networks, and a page that asks for these is written."""
    none = tidy_frame("ilrd_revenue", ilrd_network_name=["A"], ilrd_revenue_event_count=[0], ilrd_revenue=[0.0])
    for by, kind in (("network", "ad revenue by"), ("network_unknown", "unknown networks")):
        for frame in (none, none[:0]):
            assert claims.of(ads.earnings(frame, by=by), [kind])["text"].tolist() == ["Nothing was earned."]


def test_a_kind_without_occasion_has_no_claims() -> None:
    """Two countries have no first ten; a kind that does not exist is refused, with those that there are."""
    assert claims.of(earned(US=6.0, BR=3.0), ["first ones"]).empty
    with pytest.raises(BadQuery, match=r"'ad revenu' is not a kind of claim.*Did you mean `ad revenue`"):
        claims.of(earned(US=6.0), ["ad revenu"])


def test_the_first_countries_have_a_share() -> None:
    """The ten largest of eleven countries bring 100 of 101 dollars."""
    *_, claim = said(earned(**{f"C{place}": 10.0 for place in range(10)}, ZZ=1.0))
    assert claim.size == pytest.approx(100 / 101)
    assert claim.text == "The top 10 countries bring 99.0% of it."
    assert [it.kind for it in said(earned(US=6.0, BR=3.0))] == ["ad revenue", "ad revenue by"]


def test_a_country_alone_brings_all() -> None:
    """Of one country no share is said to be the largest."""
    _, claim = said(earned(US=6.0))
    assert claim.text.startswith("US accounts for all of the ad revenue, at")


def test_what_was_credited_makes_no_share_larger() -> None:
    """Of .6 + .5 - .1 the shares are those of 1.1 earned; the HHI leaves the credit out and names it."""
    frame = tidy_frame(
        "ilrd_revenue",
        ilrd_network_name=["A", "B", "C"],
        ilrd_revenue_event_count=[1000] * 3,
        ilrd_revenue=[0.6, 0.5, -0.1],
    )
    by_network = ads.earnings(frame, by="network")
    assert by_network["revenue_share"].tolist() == pytest.approx([6 / 11, 5 / 11, -1 / 11])
    total, largest = said(by_network)
    assert total.credited == pytest.approx(0.1)
    assert total.text == "Ads earned $1.00, after credits of $0.10, which the shares leave out."
    assert largest.size == pytest.approx(6 / 11)
    held = ads.concentration(frame, by="network")
    assert held["hhi"].iloc[0] == pytest.approx((6 / 11) ** 2 + (5 / 11) ** 2)
    (claim,) = said(held)
    assert claim.credited == pytest.approx(0.1)
    assert claim.text.endswith("Credits of $0.10 are left out.")


def test_credits_below_half_a_cent_are_not_named() -> None:
    """Neither of the sum nor of the concentration."""
    frame = tidy_frame(
        "ilrd_revenue", ilrd_network_name=["A", "B"], ilrd_revenue_event_count=[1000] * 2, ilrd_revenue=[2.0, -0.004]
    )
    texts = [*claims.of(ads.earnings(frame)).text, *claims.of(ads.concentration(frame, by="network")).text]
    assert "redit" not in " ".join(texts)


def test_more_credited_than_earned_is_said_with_and_without_a_split() -> None:
    """Of .5 - .9 the sum is the same in one row and in two."""
    frame = tidy_frame(
        "ilrd_revenue",
        ilrd_network_name=["A", "B"],
        ilrd_revenue_event_count=[1000] * 2,
        ilrd_revenue=[0.5, -0.9],
    )
    text = "Credits exceeded what ads earned: -$0.40 in total."
    assert said(ads.earnings(frame))[0].text == text
    assert said(ads.earnings(frame, by="network"))[0].text == text


def test_a_change_names_its_largest_effect_with_its_sign() -> None:
    """Twice the impressions at three quarters of the price: +10 by volume and -5 by price."""
    parts = decomposition.decompose(
        revenue_of(10.0, 1000, "2026-11-01"), revenue_of(15.0, 2000, "2026-11-02"), by="ilrd_network_name"
    )
    (claim,) = claims.of(parts).itertuples()
    assert (claim.direction, claim.size, claim.unit) == ("higher", 0.5, "ratio")
    assert claim.text == (
        "Ad revenue rose by 50.0%, from $10.00 to $15.00: more impressions brought $10.00; lower prices cost $5.00."
    )
    assert (claim.before, claim.after, claim.volume, claim.price) == (10.0, 15.0, 10.0, -5.0)


def test_a_change_from_nothing_has_no_percentage() -> None:
    """Revenue that began is higher, by an infinite ratio that the words leave out."""
    parts = decomposition.decompose(
        revenue_of(0.0, 0, "2026-11-01"), revenue_of(5.0, 100, "2026-11-02"), by="ilrd_network_name"
    )
    (claim,) = claims.of(parts).itertuples()
    assert (claim.direction, claim.size) == ("higher", math.inf)
    assert claim.text == "Ad revenue began with $5.00."
