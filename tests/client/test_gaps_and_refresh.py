"""Frames with gaps completed by the same query, old frames updated by `refresh`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from gamelens.client.sync_client import Client
from gamelens.errors import BadQuery, PartialResult, ServiceError
from support.query_walk import Fails, after, both, of_metric
from support.watched_service import Watch, World, assert_equal, quick

pytestmark = pytest.mark.slow

OVER = "2026-09-30/2026-11-20"  # two pieces of days, the second from 31 October on
late = after("2026-11-12T00:00Z")


def broken(watch: Watch, lens: Client, fails: Fails, **arguments: Any) -> pd.DataFrame:
    """Return the frame of a query while the requests that match *fails* fail."""
    watch.fails = fails
    frame = lens.query(**arguments, on_error="gaps")
    watch.fails = lambda _: False
    watch.clear()
    return frame


# A row of several metrics may lack the fields of one, and `top` of a fan-out is taken of the rows there are.


def test_by_default_a_failure_is_raised_with_a_partial_frame(world: World, tmp_path: Path) -> None:
    """`PartialResult` has the cause and the gaps; the same query then gives the whole frame."""
    watch = world.watch()
    whole = quick(watch).query("revenue", by="platform", over=OVER)
    lens = quick(watch, cache=tmp_path / "kept")
    lens.query("revenue", by="platform", over="2026-09-30/2026-10-31")
    watch.fails = late
    with pytest.raises(PartialResult) as partial:
        lens.query("revenue", by="platform", over=OVER)
    watch.fails = lambda _: False
    assert isinstance(partial.value.__cause__, ServiceError)
    assert len(partial.value.gaps) == 1
    assert_equal(lens.query("revenue", by="platform", over=OVER), whole)


def test_a_request_that_fails_again_stays_a_gap(world: World, tmp_path: Path) -> None:
    """The same query raises again, or returns the same gaps with `on_error="gaps"`."""
    watch = world.watch()
    lens = quick(watch, cache=tmp_path / "kept")
    frame = broken(watch, lens, late, metric="revenue", by="platform", over=OVER)
    watch.fails = late
    with pytest.raises(PartialResult):
        lens.query("revenue", by="platform", over=OVER)
    again = lens.query("revenue", by="platform", over=OVER, on_error="gaps")
    assert again.attrs["gamelens"]["gaps"] == frame.attrs["gamelens"]["gaps"]
    assert_equal(again, frame)


Spoil = Callable[[pd.DataFrame], pd.DataFrame | None]


@pytest.mark.parametrize(
    "spoil",
    [
        lambda frame: pd.DataFrame(frame.to_dict("list")),
        lambda frame: frame.drop(columns="platform"),
        lambda frame: frame.drop(columns="revenue"),
        lambda frame: frame.drop(columns="timestamp"),
        lambda frame: frame.rename(columns={"revenue": "money"}),
        lambda frame: frame.set_index("timestamp"),
        lambda frame: None,
    ],
    ids=["no receipt", "no dimension", "no field", "no timestamp", "renamed", "index", "nothing"],
)
def test_a_changed_frame_is_refused_with_advice(world: World, spoil: Spoil) -> None:
    """A frame without receipt or columns is refused before anything is sent."""
    watch = world.watch()
    lens = quick(watch)
    frame = broken(watch, lens, late, metric="revenue", by="platform", over=OVER)
    with pytest.raises(BadQuery, match=r"pass .* as query\(\) or retention\(\) returned it"):
        lens.refresh(spoil(frame))  # type: ignore[arg-type]
    assert watch.sent == []


@pytest.mark.parametrize("dropped", ["platform", "user_unique"])
def test_a_frame_without_one_of_its_columns_is_refused(world: World, dropped: str) -> None:
    """Each dimension and each field of each metric are needed."""
    watch = world.watch()
    lens = quick(watch)
    frame = broken(watch, lens, late, metric=["conversion", "revenue"], by="platform", over=OVER)
    with pytest.raises(BadQuery, match="no longer has"):
        lens.refresh(frame.drop(columns=dropped))


def test_a_frame_is_refreshed_after_it_was_written_to_parquet(world: World, tmp_path: Path) -> None:
    """The receipt survives Parquet, and with it the query."""
    watch = world.watch()
    lens = quick(watch)
    whole = lens.query("revenue", by=["game", "platform"], over=OVER)
    broken(watch, lens, late, metric="revenue", by=["game", "platform"], over=OVER).to_parquet(tmp_path / "df.parquet")
    assert_equal(lens.refresh(pd.read_parquet(tmp_path / "df.parquet")), whole)


@pytest.mark.shown_by(1)
@pytest.mark.parametrize(("one", "other"), [(5, None), (None, 5), (5, 9)])
def test_what_came_serves_a_client_with_another_max_days(
    world: World, tmp_path: Path, one: int | None, other: int | None
) -> None:
    """Where it cuts the time range elsewhere, the frame is the same."""
    watch = world.watch()
    arguments: dict[str, Any] = {"metric": ["revenue", "event_count"], "by": "platform", "over": OVER, "every": "month"}
    whole = quick(watch).query(**arguments)
    lens = quick(watch, max_days=one, cache=tmp_path / "kept")
    frame = broken(watch, lens, both(of_metric("revenue"), late), **arguments, when_unavailable="clip")
    assert frame.attrs["gamelens"]["gaps"]
    assert_equal(quick(watch, max_days=other, cache=tmp_path / "kept").query(**arguments), whole)
