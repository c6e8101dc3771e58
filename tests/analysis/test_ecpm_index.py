"""ECPM compared like for like, its intervals, and what may be said of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from pandas import DataFrame

from gamelens.analysis import ads
from gamelens.analysis.ads.ecpm_index import WITHIN
from gamelens.errors import BadQuery
from support.ad_prices import priced_impressions
from support.said import as_made_by, said
from support.tidy_frames import tidy_frame

DAYS = [f"2026-11-{day:02}" for day in range(1, 15)]


def cell(game: str, network: str | None, count: int, price: float) -> DataFrame:
    """Return 14 days of one network in one game, at a price that moves by up to 2 % from day to day."""
    moves = 1 + 0.02 * np.random.default_rng(list(f"{game}{network}".encode())).permutation(np.linspace(-1, 1, 14))
    return tidy_frame(
        "ilrd_revenue",
        timestamp=DAYS,
        game=[game] * 14,
        country_code=["US"] * 14,
        ilrd_adunit_format=["REWARDED"] * 14,
        ilrd_network_name=[network] * 14,
        ilrd_revenue_event_count=[count] * 14,
        ilrd_revenue=(count * price * moves).tolist(),
    )


def rows(*parts: DataFrame) -> DataFrame:
    """Return the rows of all *parts* with the receipt of the first."""
    whole = DataFrame({name: [it for part in parts for it in part[name].tolist()] for name in parts[0]})
    whole = whole.astype({"timestamp": "datetime64[us, UTC]", "ilrd_revenue_event_count": "Int64"})
    texts = ("game", "country_code", "ilrd_adunit_format", "ilrd_network_name")
    whole = whole.astype(dict.fromkeys(texts, "category"))
    whole.attrs = parts[0].attrs
    return whole


def test_a_network_that_leads_because_of_its_game_is_not_advised() -> None:
    """Rich has the highest eCPM and pays less than the other network of its game."""
    frame = rows(
        cell("dear", "Rich", 900, 0.010),
        cell("dear", "Modest", 100, 0.011),
        cell("cheap", "Modest", 900, 0.0022),
        cell("cheap", "Poor", 900, 0.0020),
    )
    assert ads.earnings(frame, by="network").sort_values("ecpm")["network"].iloc[-1] == "Rich"
    index = ads.ecpm_index(frame).set_index("network")["index"]
    assert index.to_dict() == pytest.approx({"Modest": 1.1, "Rich": 1 / 1.1, "Poor": 1 / 1.1})
    *_, advice = said(ads.ecpm_index(frame))
    assert (advice.subject, advice.direction) == ("Modest", "higher")
    assert "10.0% more" in advice.text


def test_the_index_of_a_hand_computed_case() -> None:
    """Mantel and Haenszel: weights 100 * 300 / 400 = 75 and 200 * 200 / 400 = 100."""
    frame = rows(cell("A", "X", 100, 2.0), cell("A", "Y", 300, 1.0), cell("B", "X", 200, 3.0), cell("B", "Y", 200, 4.0))
    index = ads.ecpm_index(frame).set_index("network")
    assert index.loc["X", "index"] == pytest.approx((75 * 2 + 100 * 3) / (75 * 1 + 100 * 4))
    assert index["index"].prod() == pytest.approx(1)
    assert index["comparable_share"].tolist() == [1.0, 1.0]


def test_a_network_alone_in_its_cells_is_not_compared() -> None:
    """The share that is comparable is shown, and nothing is advised."""
    index = ads.ecpm_index(rows(cell("A", "X", 100, 2.0), cell("B", "Y", 100, 1.0)))
    assert index["comparable_share"].tolist() == [0.0, 0.0]
    assert index[["index", "low", "high"]].isna().all(axis=None)
    *found, advice = said(index)
    assert {claim.direction for claim in found} == {"unknown"}
    assert advice.text == "No networks can be compared like for like."


def test_impressions_of_unknown_networks_are_no_competitor() -> None:
    """They may be those of the network itself."""
    frame = rows(cell("A", "X", 100, 2.0), cell("A", "Y", 100, 1.0), cell("A", None, 500, 9.0))
    index = ads.ecpm_index(frame)
    assert index.set_index("network")["index"].to_dict() == pytest.approx({"X": 2.0, "Y": 0.5})


def test_a_few_days_have_no_interval() -> None:
    """Six days are too few to tell how days differ."""
    frame = rows(cell("A", "X", 100, 2.0), cell("A", "Y", 100, 1.0))
    few = ads.ecpm_index(frame[frame["timestamp"] < "2026-11-07"])
    assert few["index"].notna().all()
    assert few[["low", "high"]].isna().all(axis=None)
    assert said(few)[0].direction == "unknown"


@pytest.mark.wide
def test_equal_prices_carry_no_advice() -> None:
    """Of seven seeds with three equal networks at most one gives advice; the bench has the 5 %."""
    given = [
        said(ads.ecpm_index(priced_impressions(dict.fromkeys("ABC", 1.0), seed=seed, impressions=3)))[-1].direction
        for seed in range(7)
    ]
    assert given.count("higher") <= 1


def test_the_dearer_network_is_found() -> None:
    """A network that pays 10 % more is advised, though another is only in the dearest game."""
    frame = priced_impressions({"A": 1.1, "B": 1.0, "C": 1.0}, seed=1, impressions=10, only_in={"C": 2})
    assert ads.earnings(frame, by="network").sort_values("ecpm")["network"].iloc[-1] == "C"
    assert said(ads.ecpm_index(frame))[-1].subject == "A"


@pytest.mark.wide
def test_intervals_hold_the_true_ratio() -> None:
    """Of ten intervals at least eight hold the true index of 1.1; the bench has the 95 %."""
    held = []
    for seed in range(5):
        for memory in (0.0, 0.5):
            frame = priced_impressions({"A": 1.1, "B": 1.0}, seed=seed, impressions=3, memory=memory)
            row = ads.ecpm_index(frame, confidence=0.9).set_index("network").loc["A"]  # two rows: 95 % each
            held.append(row["low"] <= 1.1 <= row["high"])
    assert np.sum(held) >= 8


def test_a_missing_column_is_named_with_the_query() -> None:
    """The message names the query to make."""
    with pytest.raises(BadQuery, match="query ecpm by day, game, country_code, format and network"):
        ads.ecpm_index(cell("A", "X", 1, 1.0).drop(columns="country_code"))


def test_an_empty_frame_has_an_empty_index() -> None:
    """The columns are there, and the advice says that nothing can be compared."""
    empty = ads.ecpm_index(cell("A", "X", 1, 1.0)[:0])
    assert list(empty) == [
        *("network", "impressions", "impression_share", "ad_revenue", "ecpm"),
        *("comparable_share", "index", "low", "high", "days"),
    ]
    assert [(claim.case, claim.direction) for claim in said(empty)] == [("not_comparable", "unknown")]


def index_of(**columns: list[Any]) -> DataFrame:
    """Return an index of networks that was written by hand."""
    count = len(columns["network"])
    frame = tidy_frame(**columns, days=[28] * count, impression_share=[1 / count] * count)
    return as_made_by("ads.ecpm_index", frame, by="network", within=[*WITHIN])


def test_words_say_what_the_interval_carries() -> None:
    """An interval that holds both signs is said with both bounds, and never as no difference."""
    index = index_of(
        network=["A", "B"], comparable_share=[1.0, 1.0], index=[1.02, 0.9], low=[0.97, 0.85], high=[1.07, 0.95]
    )
    first, second, advice = said(index)
    assert "-3% to +7%" in first.text
    assert first.direction == "no clear difference"
    assert second.text.startswith(
        "B pays 10% less (5% to 15%) than the other networks in the same game, country, format"
    )
    assert second.direction == "lower"
    assert (advice.direction, advice.subject) == ("no clear difference", "")


def test_a_network_hardly_comparable_is_not_advised() -> None:
    """Half of its impressions must be where others have some."""
    for share, case in ((0.4, "not_comparable"), (0.6, "test")):
        index = index_of(network=["A"], comparable_share=[share], index=[1.5], low=[1.4], high=[1.6])
        assert said(index)[-1].case == case


def test_concentration_says_what_the_unknown_revenue_may_change() -> None:
    """The HHI is 1,792; 1,648 if the unknown 12 % are many networks, 2,512 if all are one."""
    money = [30.0, 18.0, 14.0, 10.0, 8.0, 8.0, 12.0]
    frame = tidy_frame(
        "ilrd_revenue", ilrd_network_name=[*"ABCDEF", None], ilrd_revenue_event_count=[1] * 7, ilrd_revenue=money
    )
    (claim,) = said(ads.concentration(frame, by="network"))
    assert claim.direction == "no clear difference"
    assert (claim.size, claim.low, claim.high) == pytest.approx((0.1792, 0.1648, 0.2512))
    assert claim.text.endswith(
        "Depending on who earned the unknown 12.0%, it is moderately concentrated or concentrated."
    )


def test_unknown_revenue_is_said_with_its_reasons() -> None:
    """Networks that forbid their name are told from SDKs that name none."""
    frame = tidy_frame(
        "ilrd_revenue",
        ilrd_network_name=["AdMob", "undisclosed", None],
        ilrd_revenue_event_count=[1] * 3,
        ilrd_revenue=[70.0, 20.0, 10.0],
    )
    for by in ("network_unknown", ["network", "network_unknown"]):
        _, claim = said(ads.earnings(frame, by=by))
        assert claim.text == (
            "The network of 30.0% of the ad revenue is unknown: 20.0% not disclosed by the network and 10.0% reported "
            "by an SDK without a name."
        )
        assert claim.size == pytest.approx(0.3)


def test_one_reason_has_the_share_of_all_unknown_revenue() -> None:
    """Of 100 dollars 40 name no network: the share is written once, and stays a number of the claim."""
    frame = tidy_frame(
        "ilrd_revenue", ilrd_network_name=["AdMob", None], ilrd_revenue_event_count=[1] * 2, ilrd_revenue=[60.0, 40.0]
    )
    _, claim = said(ads.earnings(frame, by="network_unknown"))
    assert claim.text == "The network of 40.0% of the ad revenue is unknown: reported by an SDK without a name."
    assert (claim.size, claim.not_reported_share) == (0.4, 0.4)
