"""The accessor `df.lens`: explain, wide, matrix, total and plot."""

from __future__ import annotations

import subprocess
import sys

import pandas as pd
import pytest
from pandas import DataFrame

from gamelens.errors import BadQuery, NotAdditive
from support.tidy_frames import tidy_frame


def test_the_accessor_brings_no_plotly() -> None:
    """Importing the accessor imports neither plotly nor IPython."""
    code = "import gamelens.notebook.accessor, sys; sys.exit('plotly' in sys.modules or 'IPython' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_explain_says_what_was_asked_and_how_it_came_about(networks: DataFrame) -> None:
    """The explanation has the query, its time, requests, version, `as_of` and availability."""
    assert networks.lens.explain() == (
        "Asked for ilrd_revenue by ilrd_network_name over last 2 complete days "
        "(2026-11-16T00:00Z/2026-11-18T00:00Z), one bucket per day, on 18 Nov 2026 09:05 UTC.\n"
        "2 requests, gamelens 0.1.0. Data as of 18 Nov 2026 09:00 UTC. "
        "The service had 2026-08-22T00:00Z/2026-11-18T09:00Z."
    )


def test_explain_names_gaps_and_cuts(networks: DataFrame) -> None:
    """The explanation names the interval it was clipped to and each gap with its error."""
    gap = {"metric": "ilrd_revenue", "interval": "2026-11-16/P1D", "scope": {"platform": "ios"}, "error": "429"}
    networks.attrs["gamelens"] |= {"gaps": [gap], "clipped": "2026-11-16T00:00Z/2026-11-17T00:00Z"}
    text = networks.lens.explain()
    assert "Cut to what is available: 2026-11-16T00:00Z/2026-11-17T00:00Z." in text
    assert "Missing: ilrd_revenue in 2026-11-16/P1D for platform = ios: 429." in text


def test_explain_without_a_receipt_says_so(networks: DataFrame) -> None:
    """Without a receipt `explain` raises `BadQuery`."""
    networks.attrs = {}
    with pytest.raises(BadQuery, match="has no receipt"):
        networks.lens.explain()


def test_wide_has_a_column_for_each_value(networks: DataFrame) -> None:
    """`wide` has one column per value, the null group as (unknown), the largest first."""
    wide = networks.lens.wide("ilrd_revenue")
    assert wide.columns.tolist() == ["timestamp", "AdMob", "(unknown)", "<img src=x onerror=alert(1)>"]
    assert wide["(unknown)"].tolist() == [0.5, 0.5]


def test_wide_keeps_dtypes_and_receipt(networks: DataFrame) -> None:
    """`wide` keeps the dtype of its number, the timestamps and the receipt."""
    wide = networks.lens.wide("ilrd_revenue_event_count")
    assert wide["AdMob"].dtype == "Int64"
    assert wide["timestamp"].dtype == "datetime64[us, UTC]"
    assert wide.attrs["gamelens"] == networks.attrs["gamelens"]


def test_wide_spreads_the_metric(networks: DataFrame) -> None:
    """The column of the only metric needs no name; of several metrics one must be named, and the message lists them."""
    assert networks.lens.wide().equals(networks.lens.wide("ilrd_revenue"))
    networks.attrs["gamelens"]["asked"]["metric"] = ["ilrd_revenue", "revenue"]
    with pytest.raises(BadQuery, match=r"must say which number.*ilrd_revenue_event_count, .*ilrd_revenue_sum_cents"):
        networks.lens.wide()


def test_wide_offers_the_nearest_number(networks: DataFrame) -> None:
    """An unknown number raises `BadQuery` with the nearest name."""
    with pytest.raises(BadQuery, match="Did you mean `ilrd_revenue_sum_cents`"):
        networks.lens.wide("ilrd_revenue_sum_cent")


def test_wide_without_dimensions_is_the_series(players: DataFrame) -> None:
    """Without dimensions `wide` has the timestamp and the number."""
    assert players.lens.wide().columns.tolist() == ["timestamp", "user_unique"]


def test_wide_leaves_na_where_a_group_has_no_row(networks: DataFrame) -> None:
    """A bucket in which a group has no row is NA, not 0."""
    assert pd.isna(networks[1:].lens.wide("ilrd_revenue").loc[0, "AdMob"])


def test_wide_joins_two_dimensions_with_a_dot(networks: DataFrame) -> None:
    """Columns of two dimensions are called by both values with a dot between them."""
    split = networks.assign(platform=pd.Categorical(["ios"] * 6))
    assert "AdMob · ios" in split.lens.wide("ilrd_revenue").columns


def test_wide_of_nothing_is_empty(networks: DataFrame) -> None:
    """`wide` of an empty frame has the timestamp column alone."""
    assert networks[:0].lens.wide("ilrd_revenue").columns.tolist() == ["timestamp"]


def test_a_network_really_called_unknown_is_not_mixed_with_null(networks: DataFrame) -> None:
    """The null group is called (null) if a value is called (unknown)."""
    networks["ilrd_network_name"] = networks["ilrd_network_name"].cat.rename_categories({"AdMob": "(unknown)"})
    assert {"(unknown)", "(null)"} <= {*networks.lens.wide("ilrd_revenue").columns}


def test_wide_sends_retention_to_matrix(cohorts: DataFrame) -> None:
    """A retention frame is refused by `wide`, and the message names `matrix()`."""
    with pytest.raises(BadQuery, match=r"use matrix\(\)"):
        cohorts.lens.wide("retention")


def test_matrix_pools_a_split(cohorts: DataFrame) -> None:
    """Without `by` the matrix pools the counts of all groups."""
    matrix = cohorts.lens.matrix()
    assert matrix.columns.tolist() == [1, 2]
    assert matrix[1].tolist() == [6 / 14, 9 / 21]


def test_matrix_by_a_split_keeps_it_apart(cohorts: DataFrame) -> None:
    """With `by` the matrix has rows for each value."""
    assert cohorts.lens.matrix(by="platform").loc["android"][1].tolist() == [0.25, 1.0]


def test_matrix_of_another_frame_is_refused(networks: DataFrame) -> None:
    """A frame that is not of retention raises `BadQuery`."""
    with pytest.raises(BadQuery, match="not a retention frame"):
        networks.lens.matrix()


def test_matrix_by_an_unknown_split_is_refused(cohorts: DataFrame) -> None:
    """An unknown `by` raises `BadQuery` with the nearest name."""
    with pytest.raises(BadQuery, match="Did you mean `platform`"):
        cohorts.lens.matrix(by="platfrom")


def test_total_is_one_row(networks: DataFrame) -> None:
    """The total is one row, its mean computed again (Wire 4.14, Adding up)."""
    total = networks.lens.total()
    assert total.to_dict("records") == [
        {"ilrd_revenue_event_count": 320, "ilrd_revenue_mean": 3.2 / 320, "ilrd_revenue": pytest.approx(3.2)}
        | {"ilrd_revenue_sum_cents": pytest.approx(320)}
    ]


def test_total_of_players_over_days_is_refused(players: DataFrame) -> None:
    """Unique players over days raise `NotAdditive` (Wire 4.14, Adding up)."""
    with pytest.raises(NotAdditive):
        players.lens.total()


@pytest.mark.parametrize("name", ["networks", "players", "cohorts"])
def test_looking_changes_nothing(name: str, request: pytest.FixtureRequest) -> None:
    """Neither `plot` nor `explain` changes the frame or its receipt."""
    frame = request.getfixturevalue(name)
    before = frame.copy()
    frame.lens.plot()
    frame.lens.explain()
    pd.testing.assert_frame_equal(frame, before)
    assert frame.attrs == before.attrs


@pytest.mark.parametrize("shape", ["wide", "plot"])
def test_a_frame_without_a_timestamp_is_refused(shape: str) -> None:
    """A frame without a timestamp column raises `BadQuery`."""
    with pytest.raises(BadQuery, match="has no timestamp"):
        getattr(pd.DataFrame({"a": [1]}).lens, shape)()


BACKEND = "gamelens.notebook.accessor"  # what the entry point `gamelens` names


def test_pandas_draws_with_the_backend_that_is_asked_for() -> None:
    """`df.plot(backend=)` is `df.lens.plot()`, a bar chart if it is asked for, and refuses what it cannot draw."""
    days = ["2026-11-18", "2026-11-19", "2026-11-20"]
    frame = tidy_frame("dau", timestamp=days, dau=[5, 6, 7], new_users=[1, 2, 3])
    lines = frame.plot(y="new_users", backend=BACKEND)
    assert [*lines.data[0].y] == [1, 2, 3]
    bars = frame.iloc[-1:].plot(kind="bar", y="dau", backend=BACKEND)
    assert bars.data[0].type == "bar"
    with pytest.raises(BadQuery, match=r"kind = 'pie' is not drawn"):
        frame.plot(kind="pie", y="dau", backend=BACKEND)
    with pytest.raises(BadQuery, match=r"Series.* is not a frame"):
        frame["dau"].plot(backend=BACKEND)


def test_an_accessor_says_what_it_does() -> None:
    """By its name in all texts, with its methods; a lens is a client."""
    assert repr(pd.DataFrame({"x": [1]}).lens).startswith("<the accessor of 1 row: explain(), ")
