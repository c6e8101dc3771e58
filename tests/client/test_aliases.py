"""Aliases: exact by any dimension and bucket, with gaps, caches, totals and other metrics."""

from __future__ import annotations

import pandas as pd
import pytest

from gamelens.errors import BadQuery, NotAdditive
from gamelens.notebook import accessor as accessor  # df.lens
from gamelens.wire.intervals import Granularity
from support.alias_truth import FIELDS
from support.watched_service import World, is_close, quick, rows_of

pytestmark = pytest.mark.slow

OVER = "2026-10-08/2026-11-20"


def test_metrics_that_need_the_same_rows_share_the_requests(world: World) -> None:
    """Four names that need three metrics of the service by day cost the requests of three."""
    watch = world.watch()
    names = ["user_unique", "dau", "arpdau", "ecpm"]
    frame = quick(watch).query(names, by="platform", over="2026-10-20/2026-11-20")
    assert sorted(request.name for request in watch.queries) == ["ilrd_revenue", "revenue", "user_unique"]
    assert list(frame.columns[2:]) == [
        *("user_unique", "dau", "arpdau", "iap_revenue", "ad_revenue", "player_days"),
        *("ecpm", "impressions"),
    ]


@pytest.mark.parametrize(
    ("name", "by", "every"),
    [
        ("arpdau", [], "day"),
        ("arpdau", ["game"], "week"),
        ("ecpm", ["country_code"], "day"),
        ("stickiness", ["game"], "month"),
    ],
)
def test_total_recombines_the_parts(world: World, name: str, by: list[str], every: Granularity) -> None:
    """A total is the ratio of the summed parts: that of the query without dimensions in one bucket."""
    lens, over = quick(world.watch()), "2026-11-01/2026-11-20"
    frame = lens.query(name, by=by, over=over, every=every)
    (total,) = rows_of(frame.lens.total().assign(timestamp=pd.Timestamp("2026-11-01", tz="UTC")))
    alone = lens.query(name, over=over) if name == "stickiness" else lens.query(name, over=over, every="all")
    (one,) = rows_of(alone)
    assert all(is_close(total[field], one[field]) for field in FIELDS[name]), (total, one)


@pytest.mark.parametrize(
    ("name", "by", "use"),
    [("dau", [], 'lens.query("user_unique"'), ("arpdau", ["country_code"], 'lens.query("arpdau"'), ("mau", [], "user")],
)
def test_what_does_not_add_up_is_refused(world: World, name: str, by: list[str], use: str) -> None:
    """Players of several days, or of several countries, are refused with the query to use instead."""
    frame = quick(world.watch()).query(name, by=by, over=OVER)
    with pytest.raises(NotAdditive) as refused:
        frame.lens.total()
    assert use in refused.value.use


def test_aliases_of_different_buckets_are_refused(world: World) -> None:
    """One frame has one bucket: wau and mau are two queries. Beside mau, dau is the mean of the days of the month."""
    with pytest.raises(BadQuery, match="wau by week, mau by month"):
        quick(world.watch()).query(["wau", "mau"], over=OVER)
    both = quick(world.watch()).query(["dau", "stickiness"], over=OVER)
    assert (both["dau"] == both["mean_dau"]).all()
    assert (str(both["dau"].dtype), str(both["mau"].dtype)) == ("float64", "Int64")


def test_other_metrics_take_the_bucket_of_the_alias(world: World) -> None:
    """Revenue beside mau is by month, as the receipt says."""
    frame = quick(world.watch()).query(["mau", "revenue"], over=OVER)
    assert frame.attrs["gamelens"]["asked"]["every"] == "month"
    assert [str(moment)[:10] for moment in frame["timestamp"]] == ["2026-10-01", "2026-11-01"]


def test_restatements_of_an_alias_are_those_of_its_parts(world: World) -> None:
    """`restatements("arpdau")` is accepted, and empty where nothing was restated."""
    assert quick(world.watch()).restatements("arpdau").empty
