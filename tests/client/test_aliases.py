"""Aliases: exact by any dimension and bucket, with gaps, caches, totals and other metrics."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from gamelens.catalog import ALIASES
from gamelens.errors import BadQuery, NotAdditive
from gamelens.notebook import accessor as accessor  # df.lens
from gamelens.wire.filters import dim, wire_filter
from gamelens.wire.intervals import Granularity, Interval
from support.alias_truth import EVERY, FIELDS, alias_rows
from support.watched_service import ManualClock, World, assert_equal, assert_same, is_close, quick, rank, rows_of

pytestmark = pytest.mark.slow

OVER = "2026-10-08/2026-11-20"
ANY_BUCKET = [name for name in FIELDS if name not in EVERY]
"""Aliases of any bucket."""
BY: list[list[str]] = [[], ["platform"], ["game_id"], ["country_code", "platform"], ["studio_id", "build", "platform"]]


def expected(
    world: World, name: str, by: Sequence[str], every: Granularity, over: str = OVER, **narrowed: Any
) -> list[dict[str, Any]]:
    """Return the rows of an alias by the reference implementation."""
    interval = Interval.parse(over)
    return alias_rows(
        name,
        by,
        every,
        interval,
        lambda metric, bucket: world.truth.table(metric, by, over=interval, every=bucket, **narrowed),
    )


@pytest.mark.parametrize("by", BY, ids="-".join)
@pytest.mark.parametrize("name", FIELDS)
def test_an_alias_equals_the_reference(world: World, name: str, by: list[str]) -> None:
    """Rows by no, one, two and three dimensions equal the brute force, in the bucket of the alias."""
    frame = quick(world.watch()).query(name, by=by, over=OVER)
    assert_same(frame, expected(world, name, by, EVERY.get(name, "day")), name, by)


@pytest.mark.parametrize("every", ["day", "week", "month", "all"])
@pytest.mark.parametrize("name", ANY_BUCKET)
def test_a_ratio_is_exact_in_every_bucket(world: World, name: str, every: Granularity) -> None:
    """The denominator of arpdau is the sum of the daily players, whatever the bucket is."""
    frame = quick(world.watch()).query(name, by="platform", over=OVER, every=every)
    assert_same(frame, expected(world, name, ["platform"], every), name, ["platform"])


@pytest.mark.parametrize("name", FIELDS)
def test_an_alias_takes_filters_and_games(world: World, name: str) -> None:
    """Filter and games narrow all parts alike (Wire 2.7, Filters)."""
    where = ~(dim.platform == "ios")
    frame = quick(world.watch()).query(name, by="game_id", over=OVER, where=where, games=["1001", "2001"])
    rows = expected(world, name, ["game_id"], EVERY.get(name, "day"), where=wire_filter(where), games=["1001", "2001"])
    assert_same(frame, rows, name, ["game_id"])


@pytest.mark.parametrize("name", FIELDS)
def test_the_columns_are_the_documented_ones(world: World, name: str) -> None:
    """The alias comes first, then its parts: counts Int64, money and ratios float64, also without rows."""
    lens = quick(world.watch())
    nothing = (dim.platform == "ios") & (dim.platform == "android")
    for frame in (lens.query(name, over=OVER), lens.query(name, by="ad_type", over=OVER, where=nothing)):
        fields = [column for column in frame.columns if column not in ("timestamp", "ad_type")]
        assert fields == [field for field in FIELDS[name] if field in ALIASES[name].shown]
        kinds = {
            field.name: "Int64" if field.kind == "count" else "float64"
            for field in ALIASES[name].fields
            if field.name in fields
        }
        assert {column: str(frame[column].dtype) for column in fields} == kinds


@pytest.mark.parametrize("name", FIELDS)
def test_rows_come_largest_first(world: World, name: str) -> None:
    """The rows of a bucket are in the order of the service (Wire 2.10, Row order)."""
    rows = rows_of(quick(world.watch()).query(name, by="country_code", over=OVER))
    for one, other in pairwise(rows):
        if one["timestamp"] == other["timestamp"]:
            assert rank(one, name, ["country_code"]) <= rank(other, name, ["country_code"])


@pytest.mark.parametrize("name", FIELDS)
def test_top_keeps_the_largest_of_the_alias(world: World, name: str) -> None:
    """The largest are chosen by the ratio itself, not by one of its parts."""
    lens = quick(world.watch())
    everything, top = (lens.query(name, by="country_code", over=OVER, top=number) for number in (None, 1))
    assert rows_of(top) == rows_of(everything.groupby("timestamp", sort=False).head(1))
    assert top.attrs["gamelens"]["truncated"] is (len(top) < len(everything))


@pytest.mark.parametrize(("name", "by"), [("ecpm", "country_code"), ("ad_revenue", "platform"), ("arpdau", "game_id")])
def test_other_makes_up_the_total(world: World, name: str, by: str) -> None:
    """The parts of the rows shown and of `(other)` are those of the total."""
    lens = quick(world.watch())
    frame = lens.query(name, by=by, over=OVER, every="week", top=1, other=True, fields="all")
    total = {row["timestamp"]: row for row in rows_of(lens.query(name, over=OVER, every="week", fields="all"))}
    sums = frame.groupby("timestamp")[list(ALIASES[name].parts)].sum()
    assert len(sums)
    for moment, row in sums.iterrows():
        assert all(is_close(float(row[part]), float(total[moment][part])) for part in ALIASES[name].parts)


def test_rows_that_add_up_pass_the_check(world: World) -> None:
    """`check` compares an alias with its own total: no warning where the service is right."""
    frame = quick(world.watch()).query("arpdau", by="game_id", over=OVER, check=True)
    assert frame.attrs["gamelens"]["warnings"] == []


def test_other_of_what_does_not_add_up_is_refused(world: World) -> None:
    """Players of a day by country do not add up, so there is no `(other)` of arpdau by country."""
    with pytest.raises(NotAdditive, match="arpdau"):
        quick(world.watch()).query("arpdau", by="country_code", over=OVER, top=1, other=True)


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


def test_aliases_side_by_side_are_as_each_alone(world: World) -> None:
    """Columns of the same name mean the same in all aliases, so there is one of each."""
    lens = quick(world.watch())
    both = lens.query(["arpdau", "ecpm", "revenue"], by="country_code", over=OVER)
    for name, fields in (("arpdau", FIELDS["arpdau"]), ("ecpm", ["ecpm", "impressions"]), ("revenue", ["revenue"])):
        alone = lens.query(name, by="country_code", over=OVER)
        joined = alone.merge(both, on=["timestamp", "country_code"], suffixes=("", "_both"))
        assert len(joined) == len(alone)
        for field in fields:
            column = f"{field}_both" if f"{field}_both" in joined else field
            pd.testing.assert_series_equal(joined[column], joined[field], check_names=False)


def test_a_plan_counts_the_requests_of_the_parts(world: World) -> None:
    """`plan` has a piece for each request of `query`, under the name of the metric that is sent."""
    watch = world.watch()
    lens = quick(watch)
    plan = lens.plan(["arpdau", "dau"], by="platform", over=OVER)
    lens.query(["arpdau", "dau"], by="platform", over=OVER)
    assert plan.requests == len(watch.queries)
    assert sorted(piece.metric for piece in plan.pieces) == sorted(request.name for request in watch.queries)


def test_the_cache_holds_the_parts(world: World, tmp_path: Path) -> None:
    """After the metrics of the service were queried, the alias costs no request."""
    watch = world.watch()
    lens = quick(watch, cache=tmp_path)
    lens.query(["revenue", "ilrd_revenue", "user_unique"], by="platform", over="2026-10-20/2026-11-10")
    watch.clear()
    frame = lens.query("arpdau", by="platform", over="2026-10-20/2026-11-10")
    assert (watch.queries, frame.attrs["gamelens"]["cached_share"]) == ([], 1.0)
    assert_same(frame, expected(world, "arpdau", ["platform"], "day", "2026-10-20/2026-11-10"), "arpdau", ["platform"])


def test_a_part_in_a_gap_is_na_and_never_zero(world: World) -> None:
    """Where the request for purchases failed, purchases and arpdau are NA; players and ad revenue are known."""
    watch = world.watch()
    watch.fails = lambda sent: sent.name == "revenue" and (sent.body or {})["interval"].startswith("2026-10-08")
    frame = quick(watch).query("arpdau", by="platform", over=OVER, on_error="gaps")
    (gap,) = frame.attrs["gamelens"]["gaps"]
    is_cut = frame["timestamp"] < pd.Timestamp(Interval.parse(gap["interval"]).end)
    assert gap["metric"] == "revenue"
    assert is_cut.any()
    assert not is_cut.all()
    assert frame.loc[is_cut, ["arpdau", "iap_revenue"]].isna().all(axis=None)
    assert frame["player_days"].notna().all()
    assert frame.loc[~is_cut, "iap_revenue"].notna().all()
    with pytest.raises(NotAdditive, match="the same query again"):
        frame.lens.total()


def test_a_missing_day_hides_its_whole_week(world: World) -> None:
    """Player-days of a week with a missing day are not known, so neither is its arpdau."""
    watch = world.watch()
    watch.fails = lambda sent: sent.name == "user_unique" and (sent.body or {})["interval"].startswith("2026-10-08")
    frame = quick(watch).query("arpdau", by="platform", over=OVER, every="week", on_error="gaps")
    end = pd.Timestamp(Interval.parse(frame.attrs["gamelens"]["gaps"][0]["interval"]).end)
    is_cut = frame["timestamp"] < end
    assert frame.loc[is_cut, ["arpdau", "player_days"]].isna().all(axis=None)
    assert frame.loc[is_cut, "iap_revenue"].notna().all()
    whole = [row for row in expected(world, "arpdau", ["platform"], "week") if row["timestamp"] >= end]
    assert_same(frame[~is_cut], whole, "arpdau", ["platform"])


def test_the_same_query_fills_the_parts_that_failed(world: World, tmp_path: Path) -> None:
    """It takes the parts that came from the cache, requests the others and gives the whole frame."""
    watch = world.watch()
    lens = quick(watch, cache=tmp_path, clock=ManualClock())
    watch.fails = lambda sent: sent.name == "user_unique"
    partial = lens.query("arpdau", by="platform", over="2026-10-20/2026-11-10", on_error="gaps")
    assert partial["arpdau"].isna().all()
    watch.fails = lambda sent: False
    watch.clear()
    whole = lens.query("arpdau", by="platform", over="2026-10-20/2026-11-10")
    assert {request.name for request in watch.queries} == {"user_unique"}
    assert whole.attrs["gamelens"]["gaps"] == []
    assert_equal(whole, quick(world.watch()).query("arpdau", by="platform", over="2026-10-20/2026-11-10"))


def test_refresh_finds_no_difference_in_the_same_data(world: World) -> None:
    """`refresh` of an unchanged frame of aliases restates nothing."""
    lens = quick(world.watch())
    frame = lens.query(["arpdau", "ecpm"], by="platform", over=OVER)
    again = lens.refresh(frame)
    assert again.attrs["gamelens"]["restated"] == []
    assert_equal(frame, again)


@pytest.mark.parametrize("name", ANY_BUCKET)
def test_buckets_that_are_cut_into_requests_are_exact(world: World, name: str) -> None:
    """With `max_days` a month takes several requests, and its ratio is made of the sums."""
    frame = quick(world.watch(), max_days=10).query(name, over=OVER, every="month")
    assert_same(frame, expected(world, name, [], "month"), name, [])


def test_unique_players_of_a_cut_bucket_are_refused(world: World) -> None:
    """Monthly players of a month that takes several requests cannot be added up."""
    with pytest.raises(NotAdditive, match="user_unique"):
        quick(world.watch(), max_days=10).query("mau", over=OVER)


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


@pytest.mark.parametrize(("name", "every"), [("mau", "day"), ("stickiness", "all"), ("wau", "month")])
def test_another_bucket_than_its_own_is_refused(world: World, name: str, every: Granularity) -> None:
    """mau by day would be daily players: the error names the bucket."""
    with pytest.raises(BadQuery, match=f"does not apply to {name}, which is counted by {EVERY[name]}"):
        quick(world.watch()).query(name, over=OVER, every=every)


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


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("arpdua", "arpdau"),
        ("stickyness", "stickiness"),
        ("revenu", "revenue"),
        ("iap_revenue", "revenue"),  # not ad_revenue
        ("installs", "new_users"),  # not installs_ratio
    ],
)
def test_an_unknown_name_suggests_metrics_and_aliases(world: World, typed: str, meant: str) -> None:
    """`query` and `plan` suggest the nearest name, be it of a metric or an alias."""
    lens = quick(world.watch())
    for method in (lens.query, lens.plan):
        with pytest.raises(BadQuery) as unknown:
            method(typed, over=OVER)
        assert unknown.value.did_you_mean == meant


def test_restatements_of_an_alias_are_those_of_its_parts(world: World) -> None:
    """`restatements("arpdau")` is accepted, and empty where nothing was restated."""
    assert quick(world.watch()).restatements("arpdau").empty
