"""Decomposition of a revenue change into volume, mix and price, by hand and by property."""

from __future__ import annotations

import re

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pandas import DataFrame

from gamelens.analysis import claims
from gamelens.analysis.decomposition import PARTS, decompose, dominant_effect, split_in_halves, total_change
from gamelens.receipts import Receipt
from support.hypothesis_profiles import examples
from support.tidy_frames import tidy_frame

Period = dict[str | None, tuple[int, float]]

NETWORK = "ilrd_network_name"


def period(rows: Period) -> DataFrame:
    """Return impressions and money of each network as a frame."""
    frame = DataFrame(
        {
            NETWORK: pd.Categorical(list(rows)),
            "ilrd_revenue_event_count": pd.array([count for count, _ in rows.values()], dtype="Int64"),
            "ilrd_revenue": [float(money) for _, money in rows.values()],
        }
    )
    frame.attrs["gamelens"] = {"asked": {"metric": "ilrd_revenue"}, "requests": 1}
    return frame


def by_network(parts: DataFrame) -> dict[str, list[float]]:
    """Return the parts of each named network."""
    return {name: parts.loc[parts[NETWORK] == name, list(PARTS)].iloc[0].tolist() for name in parts[NETWORK].dropna()}


def test_volume_mix_and_price_of_two_networks() -> None:
    """Volume is the growth of the total, mix that of shares, price that of eCPM.

    All grow by half (200 to 300). The price of A goes from 0.01 to 0.02, B grows faster than the total
    at its price of 0.005.
    """
    parts = decompose(period({"A": (100, 1.0), "B": (100, 0.5)}), period({"A": (100, 2.0), "B": (200, 1.0)}), NETWORK)
    assert by_network(parts)["A"] == pytest.approx([0.5, -0.5, 1.0])
    assert by_network(parts)["B"] == pytest.approx([0.25, 0.25, 0.0])
    assert total_change(parts).iloc[0][["change", *PARTS]].tolist() == pytest.approx([1.5, 0.75, -0.25, 1.0])
    assert dominant_effect(parts) == "price"


def test_periods_of_two_sources_warn() -> None:
    """A change between a sandbox and the real service means nothing: the result says that it is mixed."""
    before, after = period({"A": (100, 1.0)}), period({"A": (100, 2.0)})
    before.attrs["gamelens"]["provenance"] = {"kind": "sandbox", "scenario": "demo"}
    after.attrs["gamelens"]["provenance"] = {"kind": "real", "url": "https://metrics.example.com"}
    with pytest.warns(UserWarning, match="partly demo data.*scenario demo and metrics.example.com") as warned:
        parts = decompose(before, after, NETWORK)
    assert [warning.filename for warning in warned] == [__file__]
    assert Receipt.of(parts.attrs).provenance.kind == "mixed"
    assert not total_change(parts).empty  # warns no second time


def test_more_of_the_same_is_volume_alone() -> None:
    """Growth at constant shares and prices is volume alone."""
    parts = decompose(period({"A": (10, 1.0), "B": (30, 6.0)}), period({"A": (20, 2.0), "B": (60, 12.0)}), NETWORK)
    assert total_change(parts).iloc[0][list(PARTS)].tolist() == pytest.approx([7.0, 0.0, 0.0])


def test_a_new_segment_is_mix_and_a_vanished_one_takes_all_it_had() -> None:
    """The whole revenue of a new or a vanished network is mix."""
    parts = decompose(
        period({"A": (100, 1.0), "gone": (100, 2.0)}), period({"A": (100, 1.0), "new": (100, 3.0)}), NETWORK
    )
    assert parts.set_index(NETWORK)["kind"].to_dict() == {"new": "new", "gone": "vanished", "A": "kept"}
    assert by_network(parts)["new"] == pytest.approx([0.0, 3.0, 0.0])
    assert by_network(parts)["gone"] == pytest.approx([0.0, -2.0, 0.0])


def test_a_null_network_is_a_segment_like_any_other() -> None:
    """The null network is compared with itself, and has a row of its own."""
    parts = decompose(period({"A": (1, 1.0), None: (10, 1.0)}), period({"A": (1, 1.0), None: (10, 4.0)}), NETWORK)
    unknown = parts[parts[NETWORK].isna()]
    assert unknown["kind"].tolist() == ["kept"]
    assert unknown["price"].tolist() == pytest.approx([3.0])


def test_from_nothing_and_to_nothing_everything_is_volume() -> None:
    """Against an empty period the whole change is volume."""
    nothing, something = period({}), period({"A": (10, 1.0), None: (30, 6.0)})
    for parts, change in (
        (decompose(nothing, something, NETWORK), 7.0),
        (decompose(something, nothing, NETWORK), -7.0),
    ):
        assert total_change(parts).iloc[0][["change", *PARTS]].tolist() == pytest.approx([change, change, 0.0, 0.0])
    assert dominant_effect(decompose(nothing, nothing, NETWORK)) == "none"


@settings(deadline=None, max_examples=examples(30))
@given(
    *[
        st.dictionaries(
            st.sampled_from(["A", "B", "C", None]),
            st.tuples(st.integers(0, 10**7), st.integers(0, 10**9).map(lambda nano: nano / 10**4)),
        )
        for _ in range(2)
    ]
)
def test_the_parts_add_up_to_the_cent_in_every_row_and_in_all(before: Period, after: Period) -> None:
    """Parts add up to the change within half a cent, in each row and in total.

    Revenue without impressions is not lost.
    """
    parts = decompose(period(before), period(after), NETWORK)
    assert set(parts[NETWORK].astype("object").where(parts[NETWORK].notna(), None)) == {*before, *after}
    assert (parts[list(PARTS)].sum(axis=1) - parts["change"]).abs().max() < 0.005 or not len(parts)
    change = sum(money for _, money in after.values()) - sum(money for _, money in before.values())
    assert total_change(parts).iloc[0][list(PARTS)].sum() == pytest.approx(change, abs=0.005)


@settings(deadline=None, max_examples=examples(30))
@given(
    networks=st.integers(1, 3),
    counts=st.tuples(st.integers(1, 10**5), st.integers(1, 10**5)),
    cents=st.tuples(*[st.floats(0.1, 1e6)] * 2),
)
def test_a_part_that_is_nothing_is_not_named(
    networks: int, counts: tuple[int, int], cents: tuple[float, float]
) -> None:
    """Networks that grow alike have no mix: its float residue, a part below half a cent and one that is shown as 0."""
    before, after = (
        period({name: (count * (1 + place), money * (1 + place) / 100) for place, name in enumerate("ABC"[:networks])})
        for count, money in zip(counts, cents, strict=True)
    )
    text = claims.of(decompose(before, after, NETWORK)).text[0]
    assert "a shift to" not in text
    assert re.search(r"(brought|cost) \$[0.,]+\b(?![.,]?\d)", text) is None, text


def test_a_change_that_is_nothing_is_none() -> None:
    """Revenue that differs by a float residue stayed; from a residue it began, without a percentage."""
    texts = [
        claims.of(decompose(period({"A": (10, before)}), period({"A": (10, after)}), NETWORK)).text[0]
        for before, after in ((0.3, 0.1 + 0.2), (0.0021, 0.0014), (5e-17, 3.0), (0.004, 3.0), (5e-17, 0.0))
    ]
    began = "Ad revenue began with $3.00."
    same = ["Ad revenue stayed at $0.30.", "Ad revenue stayed at $0.0014."]
    assert texts == [*same, began, began, "Nothing was earned."]


def test_games_keep_their_id_beside_their_title() -> None:
    """A split by game keeps `game_id` before `game`."""
    before = tidy_frame(
        "ilrd_revenue",
        game_id=["1", "2"],
        game=["Tile", "Farm"],
        ilrd_revenue_event_count=[1, 1],
        ilrd_revenue=[1.0, 1.0],
    )
    parts = decompose(before, before, "game")
    assert [*parts.columns[:2]] == ["game_id", "game"]
    assert parts["change"].tolist() == [0.0, 0.0]


@pytest.mark.parametrize(("days", "each"), [(35, 14), (28, 14), (14, 7), (13, 6), (3, 1), (1, 0)])
def test_halves_are_equally_long_and_whole_weeks_where_there_are_any(days: int, each: int) -> None:
    """The two halves are equally long, adjacent and latest, in whole weeks if possible."""
    stamps = [str(day) for day in pd.date_range("2026-10-01", periods=days)]
    frame = tidy_frame("ilrd_revenue", timestamp=stamps, ilrd_revenue_event_count=[1] * days, ilrd_revenue=[1.0] * days)
    earlier, later = split_in_halves(frame)
    assert [len(earlier), len(later)] == [each, each]
    assert [*earlier["timestamp"], *later["timestamp"]] == [*frame["timestamp"]][days - 2 * each :]


def test_halves_of_nothing_are_nothing() -> None:
    """An empty frame has two empty halves."""
    frame = tidy_frame("ilrd_revenue", timestamp=["2026-11-01"], ilrd_revenue_event_count=[1], ilrd_revenue=[1.0])[:0]
    assert [len(half) for half in split_in_halves(frame)] == [0, 0]
