"""What `top` leaves out, what `check` finds, and money per player that adds up."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gamelens.analysis.totals import total
from gamelens.catalog import METRICS
from gamelens.wire.intervals import Granularity
from support.watched_service import Sent, World, assert_equal, quick

pytestmark = pytest.mark.slow

OVER = "2026-09-30/2026-11-20"


@pytest.mark.shown_by(2)
@pytest.mark.parametrize("every", ["week", "all"])
@pytest.mark.parametrize(("metric", "players"), [("arpu", "user_unique"), ("arppu", "paying_users")])
def test_revenue_per_player_is_the_same_whichever_way_it_is_asked(
    world: World, metric: str, players: str, every: Granularity
) -> None:
    """The service divides money that it has not rounded, and so do sums of its rows (Wire 4.13, Numbers)."""
    lens = quick(world.watch())
    whole = lens.query(metric, over=OVER, every=every).set_index("timestamp")
    exact = lens.query("revenue", over=OVER, every=every).set_index("timestamp")["revenue"]
    names = [metric, players, "total_revenue_cents"]
    for arguments in ({"by": "game"}, {"by": "game", "top": 1, "other": True}, {"by": "studio"}):
        frame = lens.query(metric, over=OVER, every=every, **arguments)
        for stamp, rows in frame.groupby("timestamp"):
            rows.attrs = frame.attrs
            (added,) = total(rows)[names].to_dict("records")
            assert added == pytest.approx(whole.loc[stamp, names].to_dict(), rel=1e-12, abs=0)
            assert added[metric] * added[players] == pytest.approx(exact[stamp], rel=1e-12)
    for studio_id, rows in lens.query(metric, over=OVER, every=every, by="studio").groupby("studio_id", observed=True):
        own = lens.query(metric, over=OVER, every=every, studios=str(studio_id))
        for name in names:
            assert rows[name].to_list() == pytest.approx(own.loc[own[players] > 0, name].to_list(), rel=1e-12, abs=0)


@pytest.mark.parametrize(
    ("field", "change"), [("event_count", -1), ("event_count", 1), ("sum", 10.0)], ids=["less", "more", "money alone"]
)
def test_a_check_names_the_field_that_differs(world: World, field: str, change: float) -> None:
    """One wrong count or sum in one row is a warning with metric, day and field."""

    def spoil(sent: Sent, answer: Any) -> Any:
        answer = json.loads(json.dumps(answer))
        if sent.body is not None and sent.body["query"]["type"] == "group":
            bucket = next(bucket for bucket in answer["result"] if bucket["result"])
            row = bucket["result"][0]
            row[field] += change  # in a row that agrees with itself
            row["mean"] = row["sum"] / row["event_count"] if row["event_count"] else None
            row["sum_cents"] = 100 * row["sum"]
        return answer

    watch = world.watch()
    watch.changes = spoil
    lens = quick(watch)
    with pytest.warns(UserWarning, match=r"revenue by platform differs from its total on 2026-\d\d-\d\d"):
        frame = lens.query("revenue", by="platform", over="2026-10-20/2026-11-20", check=True)
    (message,) = frame.attrs["gamelens"]["warnings"]
    assert METRICS["revenue"].columns[field] in message


def test_a_check_finds_a_missing_row(world: World) -> None:
    """A row missing from a split is a warning."""

    def spoil(sent: Sent, answer: Any) -> Any:
        if sent.body is not None and sent.body["query"]["type"] == "split":
            answer["result"].pop()
        return answer

    watch = world.watch()
    watch.changes = spoil
    with pytest.warns(UserWarning, match="differs from its total"):
        quick(watch).query("event_count", by=["platform", "build"], over="2026-10-20/2026-11-20", check=True)


def test_the_others_of_players_are_not_the_total_less_the_rows(world: World) -> None:
    """The population has players in several builds, so a difference would be wrong."""
    lens = quick(world.watch())
    frame = lens.query("user_unique", by="build", over=OVER, every="all", top=1, other=True)
    total = int(lens.query("user_unique", over=OVER, every="all")["user_unique"].iloc[0])
    shown, other = frame["user_unique"].tolist()
    assert (frame["build"].astype(str).tolist()[1], other > total - shown) == ("(other)", True)


def test_of_one_dimension_it_is_the_plain_top(world: World) -> None:
    """`top={"country_code": 2}` by country alone is `top=2`, and costs the same."""
    watch = world.watch()
    lens = quick(watch)
    frame = lens.query("revenue", by="country_code", over=OVER, top={"country_code": 2})
    sent = [*watch.queries]
    watch.clear()
    assert_equal(frame, lens.query("revenue", by="country_code", over=OVER, top=2))
    assert watch.queries == sent
