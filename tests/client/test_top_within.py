"""The largest values of one dimension within the others, and `(other)` of numbers that do not add up."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from gamelens.catalog import METRICS
from gamelens.client.sync_client import Client
from gamelens.errors import BadQuery, NotAdditive, PartialResult
from gamelens.receipts import Receipt
from gamelens.wire.intervals import Granularity, Interval
from support.brute_force import Row
from support.watched_service import (
    Sent,
    World,
    assert_equal,
    is_close,
    quick,
    rank,
    rows_of,
    sorts_by,
    with_service_names,
)

pytestmark = pytest.mark.slow

OVER = "2026-09-30/2026-11-20"
WHOLE = Interval.parse("2026-09-30T00:00Z/2026-11-20T00:00Z")
IDS = {"game": "game_id", "studio": "studio_id"}


def columns(by: Sequence[str]) -> list[str]:
    """Return the columns of the dimensions *by*."""
    return [IDS.get(name, name) for name in by]


def largest(rows: Sequence[Row], metric: str, names: Sequence[str], top: int, within: Sequence[str]) -> list[Row]:
    """Return the *top* largest of *rows* in each bucket and value of *within*."""
    groups: dict[Any, list[Row]] = {}
    for row in sorted(rows, key=lambda row: rank(row, sorts_by(metric), names)):
        groups.setdefault((row["timestamp"], *(row[name] for name in within)), []).append(row)
    return [row for group in groups.values() for row in group[:top]]


def as_set(rows: Sequence[Row], names: Sequence[str]) -> dict[Any, Row]:
    """Return *rows* by bucket and dimension values, of which none is twice."""
    by_key = {tuple(row[name] for name in ("timestamp", *names)): row for row in rows}
    assert len(by_key) == len(rows)
    return by_key


def assert_rows(frame: pd.DataFrame, expected: Sequence[Row], names: Sequence[str]) -> None:
    """Assert that *frame* has exactly the rows *expected*, in any order."""
    actual, wanted = as_set(rows_of(frame), names), as_set(expected, names)
    assert actual.keys() == wanted.keys()
    for key, row in wanted.items():
        assert all(is_close(value, row[name]) for name, value in actual[key].items()), (key, actual[key], row)


WITHIN: list[tuple[str, list[str], str]] = [
    ("revenue", ["game", "country_code"], "country_code"),
    ("revenue", ["country_code", "game"], "game"),
    ("user_unique", ["game_id", "country_code"], "country_code"),
    ("user_unique", ["studio", "country_code"], "country_code"),
    ("event_count", ["studio", "game", "country_code"], "country_code"),
    ("event_count", ["platform", "build", "country_code"], "build"),
    ("arpu", ["platform", "build"], "build"),
    ("conversion", ["game", "country_code"], "country_code"),
]


@pytest.mark.parametrize("every", ["day", "month", "all"])
@pytest.mark.parametrize(("metric", "by", "dimension"), WITHIN, ids=str)
def test_the_largest_values_are_those_within_each_other_value(
    world: World, metric: str, by: list[str], dimension: str, every: Granularity
) -> None:
    """`top={"country_code": 2}` keeps two countries of each game, in each bucket."""
    frame = quick(world.watch()).query(metric, by=by, over=OVER, every=every, top={dimension: 2})
    names = columns(by)
    within = [name for name in names if name != columns([dimension])[0]]
    rows = world.truth.table(metric, names, over=WHOLE, every=every)
    expected = largest(rows, metric, names, 2, within)
    assert_rows(frame, expected, names)
    assert Receipt.of(frame.attrs).truncated is (len(expected) < len(rows))
    moments = frame["timestamp"].tolist()
    assert moments == sorted(moments)


def test_of_one_dimension_it_is_the_plain_top(world: World) -> None:
    """`top={"country_code": 2}` by country alone is `top=2`, and costs the same."""
    watch = world.watch()
    lens = quick(watch)
    frame = lens.query("revenue", by="country_code", over=OVER, top={"country_code": 2})
    sent = [*watch.queries]
    watch.clear()
    assert_equal(frame, lens.query("revenue", by="country_code", over=OVER, top=2))
    assert watch.queries == sent


ADDITIVE: list[tuple[str, list[str], str]] = [
    ("revenue", ["game", "country_code"], "country_code"),
    ("event_count", ["studio", "country_code"], "country_code"),
    ("event_count", ["studio", "game", "country_code"], "country_code"),
    ("revenue", ["platform", "build", "country_code"], "country_code"),
    ("user_unique", ["country_code", "game"], "game"),
]


@pytest.mark.parametrize("every", ["day", "all"])
@pytest.mark.parametrize(("metric", "by", "dimension"), ADDITIVE, ids=str)
def test_the_others_complete_each_group(
    world: World, metric: str, by: list[str], dimension: str, every: Granularity
) -> None:
    """With `other`, the rows of each game add up to the answer by game."""
    lens = quick(world.watch())
    frame = lens.query(metric, by=by, over=OVER, every=every, top={dimension: 1}, other=True, fields="all")
    within = [name for name in columns(by) if name != columns([dimension])[0]]
    fields = [field.name for field in METRICS[metric].fields if field.combines == "sum"]
    total = world.truth.table(metric, within, over=WHOLE, every=every)
    sums = (
        with_service_names(frame)
        .groupby(["timestamp", *within], observed=True, dropna=False)[fields]
        .sum()
        .reset_index()
    )
    assert_rows(sums, [{name: row[name] for name in ("timestamp", *within, *fields)} for row in total], within)
    others = frame[frame[columns([dimension])[0]].astype(str) == "(other)"]
    assert len(others) > 0 or len(by) > 2
    assert not others.duplicated(["timestamp", *within]).any()


RESTS: list[tuple[str, list[str], int]] = [
    *((metric, ["country_code"], top) for metric in ("user_unique", "paying_users", "arpu") for top in (1, 2, 3)),
    *((metric, ["build"], 1) for metric in ("session_unique", "session_length", "arppu", "ilrd_id_unique")),
    ("user_unique", ["ab_id"], 1),
    ("user_unique", ["game_id", "country_code"], 1),
    ("user_unique", ["studio_id", "country_code"], 2),
    ("arpu", ["studio_id", "game_id", "build"], 1),
    ("conversion", ["platform", "game_id"], 1),
    ("installs_ratio", ["game_id", "build"], 1),
    ("conversion", ["platform"], 1),
    ("installs_ratio", ["studio_id", "build"], 1),
]


def rest_rows(world: World, metric: str, names: list[str], dimension: str, shown: Sequence[Row]) -> list[Row]:
    """Return the expected `(other)` rows: the metric over the events with none of the values *shown*."""
    table, expected = world.truth.table, []
    within = [name for name in names if name != dimension]
    values = [row[dimension] for row in table("event_count", [dimension], over=WHOLE, every="all")]
    everything = table("event_count", names, over=WHOLE, every="all")
    for group in sorted({tuple(row[name] for name in within) for row in everything}):
        named = [row[dimension] for row in shown if tuple(row[name] for name in within) == group]
        beyond = [value for value in values if value not in named]
        where: Any = {dimension: beyond} if None in named else {"not": {dimension: named}} if named else None
        ids = dict(zip(within, group, strict=True))
        narrow: dict[str, Any] = {f"{name.removesuffix('_id')}s": [value] for name, value in ids.items()}
        by = [name for name in within if METRICS[metric].kinds != "plain" and name == "game_id"]
        rows = table(metric, by, over=WHOLE, every="all", where=where, **narrow) if beyond else []
        counts = [field.name for field in METRICS[metric].fields if field.kind == "count"]
        expected += [{**ids, **row, dimension: "(other)"} for row in rows if any(row[name] for name in counts)]
    return expected


@pytest.mark.parametrize(("metric", "by", "top"), RESTS, ids=str)
def test_the_others_of_players_are_counted_by_one_more_request(
    world: World, metric: str, by: list[str], top: int
) -> None:
    """A player in two countries counts in both, so `(other)` is a count of its own."""
    dimension = next(name for name in by if name not in ("game_id", "studio_id"))
    frame = quick(world.watch()).query(metric, by=by, over=OVER, every="all", top={dimension: top}, other=True)
    within = [name for name in by if name != dimension]
    shown = largest(world.truth.table(metric, by, over=WHOLE, every="all"), metric, by, top, within)
    assert_rows(frame, [*shown, *rest_rows(world, metric, by, dimension, shown)], by)


def test_the_others_of_players_are_not_the_total_less_the_rows(world: World) -> None:
    """The population has players in several builds, so a difference would be wrong."""
    lens = quick(world.watch())
    frame = lens.query("user_unique", by="build", over=OVER, every="all", top=1, other=True)
    total = int(lens.query("user_unique", over=OVER, every="all")["user_unique"].iloc[0])
    shown, other = frame["user_unique"].tolist()
    assert (frame["build"].astype(str).tolist()[1], other > total - shown) == ("(other)", True)


COSTS: list[tuple[str, list[str], Any, int]] = [
    ("user_unique", ["country_code"], 2, 1),
    ("user_unique", ["game", "country_code"], {"country_code": 1}, 3),
    ("user_unique", ["studio", "country_code"], {"country_code": 1}, 2),
    ("conversion", ["game", "platform"], {"platform": 1}, 3),
]


@pytest.mark.parametrize("is_kept", [True, False], ids=["cache", "no cache"])
@pytest.mark.parametrize(("metric", "by", "top", "rests"), COSTS, ids=str)
def test_the_plan_counts_the_requests_for_the_others(
    world: World, tmp_path: Path, metric: str, by: list[str], top: Any, rests: int, is_kept: bool
) -> None:
    """One request for the rest, or one for each game or studio, none where it is cached."""
    watch = world.watch()
    lens = quick(watch, cache=tmp_path / "kept" if is_kept else None)
    arguments: dict[str, Any] = {"by": by, "over": OVER, "every": "all", "top": top, "other": True}
    lens.query("event_count", by=[*by, "build"], over=OVER)  # remembers the lists
    lens.dimension_values(by[-1], over=OVER)
    watch.clear()
    plan = lens.plan(metric, **arguments)
    assert watch.sent == []
    frame = lens.query(metric, **arguments)
    assert sum("(other)" in (piece.scope or {}).values() for piece in plan.pieces) == rests
    if not plan.guessed:
        assert plan.requests == len(watch.sent) == Receipt.of(frame.attrs).requests
    again = lens.plan(metric, **arguments)
    assert (again.guessed, again.requests) == ((), 0 if is_kept else len(watch.queries))
    assert_equal(lens.query(metric, **arguments), frame)


REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("user_unique", {"by": "country_code", "top": 2, "every": "day"}, 'every="all"'),
    ("user_unique", {"by": ["game", "country_code"], "top": 2, "every": "all"}, 'top={"country_code": 2}'),
    ("user_unique", {"by": ["platform", "country_code"], "top": {"platform": 1}, "every": "all"}, "without other=True"),
    ("conversion", {"by": ["game", "platform"], "top": 1, "every": "all"}, 'top={"platform": 1}'),
    (
        "retention_retro",
        {"by": ["game", "platform"], "top": {"platform": 1}, "since_days_ago": 1},
        "without other=True",
    ),
]


@pytest.mark.parametrize(("metric", "arguments", "use"), REFUSED, ids=str)
def test_others_that_one_request_cannot_answer_are_refused_before_a_query(
    world: World, metric: str, arguments: dict[str, Any], use: str
) -> None:
    """The largest values differ by bucket, so more than one bucket would take a request each."""
    watch = world.watch()
    lens = quick(watch)
    for ask in (lens.plan, lens.query):
        with pytest.raises(NotAdditive, match=re.escape(use)):
            ask(metric, over=OVER, other=True, **arguments)
    assert watch.queries == []


def test_one_bucket_of_any_size_has_others(world: World) -> None:
    """A month alone is one bucket as well."""
    lens = quick(world.watch())
    frame = lens.query("user_unique", by="build", over="2026-10-01/P1M", every="month", top=1, other=True)
    assert frame["build"].astype(str).tolist()[-1] == "(other)"


def in_rest(sent: Sent) -> bool:
    """Return whether *sent* is a request for the rest of players."""
    return sent.body is not None and sent.body.get("query", {}).get("type") == "timeseries"


def in_rows(sent: Sent) -> bool:
    """Return whether *sent* is a request for the rows."""
    return sent.body is not None and not in_rest(sent)


BY_STUDIO: dict[str, Any] = {"by": ["studio", "country_code"], "top": {"country_code": 1}, "other": True}


@pytest.mark.parametrize("part", ["rest", "rows"])
def test_a_failed_part_is_requested_again(world: World, tmp_path: Path, part: str) -> None:
    """Without the rows of a studio its rest is not known either: both are gaps, which the same query fills."""
    watch = world.watch()
    lens = quick(watch, cache=tmp_path / "kept")
    whole = quick(world.watch()).query("user_unique", **BY_STUDIO, over=OVER, every="all")
    fails = in_rest if part == "rest" else in_rows
    watch.fails = lambda sent: fails(sent) and sent.body is not None and sent.body["studios"] == ["s1"]
    with pytest.raises(PartialResult) as partial:
        lens.query("user_unique", **BY_STUDIO, over=OVER, every="all")
    watch.fails = lambda _: False
    scopes = [gap["scope"] for gap in partial.value.gaps]
    rest = {"studio_id": "s1", "country_code": "(other)"}
    assert scopes == ([rest] if part == "rest" else [{"studio_id": "s1"}, rest])
    assert_equal(
        partial.value.frame[partial.value.frame["studio_id"] == "s2"].reset_index(drop=True)[["user_unique"]],
        whole[whole["studio_id"] == "s2"].reset_index(drop=True)[["user_unique"]],
    )
    watch.clear()
    assert_equal(lens.query("user_unique", **BY_STUDIO, over=OVER, every="all"), whole)
    assert len(watch.queries) == len(scopes)


def test_a_frame_with_others_is_refreshed(world: World) -> None:
    """`refresh` repeats the query of the receipt, dimension of `top` included."""
    lens = quick(world.watch())
    frame = lens.query("user_unique", **BY_STUDIO, over=OVER, every="all")
    assert frame.attrs["gamelens"]["asked"]["top"] == {"country_code": 1}
    again = lens.refresh(frame)
    assert_equal(again, frame)
    assert again.attrs["gamelens"]["restated"] == []


@pytest.mark.parametrize(
    ("top", "words"),
    [
        ({"countrycode": 5}, "Did you mean `country_code`?"),
        ({}, "must be a number, or a dimension in by with a number"),
        ({"game": 2, "country_code": 5}, "must be a number, or a dimension in by with a number"),
        ({"platform": 2}, "must name a dimension of by"),
        ({"country_code": 0}, "must be a whole number from 1 to 30000"),
        ({"country_code": None}, "must be a number, or a dimension in by with a number"),
        ({"country_code": True}, "must be a whole number"),
    ],
)
def test_an_impossible_top_is_refused_before_anything_is_sent(world: World, top: Any, words: str) -> None:
    """`top` names one dimension of *by*, and a number."""
    watch = world.watch()
    with pytest.raises(BadQuery, match=re.escape(words)):
        quick(watch).query("revenue", by=["game", "country_code"], over=OVER, top=top)
    assert watch.sent == []


def test_several_metrics_have_their_own_largest_values(world: World) -> None:
    """Each metric ranks by its own field; a row lacks the fields of a metric that left it out."""
    lens: Client = quick(world.watch())
    arguments: dict[str, Any] = {"by": ["game", "country_code"], "over": OVER, "every": "all"}
    both = lens.query(["revenue", "event_count"], top={"country_code": 1}, **arguments)
    for metric in ("revenue", "event_count"):
        alone = lens.query(metric, top={"country_code": 1}, **arguments)
        own = both[both[metric].notna()]
        assert {*zip(own["game_id"], own["country_code"], strict=True)} == {
            *zip(alone["game_id"], alone["country_code"], strict=True)
        }


ALIASES: list[tuple[str, list[str], Any]] = [
    ("dau", ["build"], 1),
    ("mau", ["game", "build"], {"build": 1}),
    ("arpdau", ["build"], 1),
    ("stickiness", ["country_code"], 1),
    ("ad_revenue", ["game", "country_code"], {"country_code": 1}),
]


@pytest.mark.parametrize(("alias", "by", "top"), ALIASES, ids=str)
def test_an_alias_has_the_others_of_its_parts(world: World, alias: str, by: list[str], top: Any) -> None:
    """`(other)` of an alias is the alias over the events with none of the values shown."""
    lens = quick(world.watch())
    over: dict[str, Any] = {"over": "2026-11-10" if alias == "dau" else "2026-10-01/P1M"}
    over |= {} if alias in ("dau", "mau") else {"every": "month"}
    frame = lens.query(alias, by=by, top=top, other=True, **over)
    name = by[-1]
    others = frame[frame[name].astype(str) == "(other)"]
    assert len(others) > 0 or alias == "dau"
    for row in rows_of(others):
        shown = frame if "game" not in by else frame[frame["game_id"] == row["game_id"]]
        named = [value for value in shown[name] if value != "(other)"]
        games = [row["game_id"]] if "game" in by else None
        alone = rows_of(lens.query(alias, where={"not": {name: named}}, games=games, **over))
        assert len(alone) == 1
        assert all(is_close(row[field], value) for field, value in alone[0].items())
