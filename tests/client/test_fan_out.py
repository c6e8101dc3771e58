"""Queries of one to four dimensions, compared with the raw events."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import pytest

from gamelens import dim
from gamelens.catalog import DIMENSIONS, METRICS
from gamelens.wire.intervals import Granularity, Interval
from support.game_events import event
from support.hypothesis_profiles import tries
from support.random_worlds import GAMES
from support.sandbox_stage import Stage
from support.watched_service import Body, World, assert_same, is_close, quick, rows_of

pytestmark = pytest.mark.slow

WORDS = {"game": "game_id", "studio": "studio_id"}
MONTH = "2026-10-20/2026-11-20"
NOON = "2026-10-25T12:00Z/2026-11-19T18:30Z"
QUARTER = "2026-09-30/2026-11-20"
FEW = (
    "platform",
    "build",
    "country_code",
    "is_paying",
    "is_converting",
    "ab_id",
    "install_publisher",
    "game",
    "studio",
)
MANY = tuple(name for name in DIMENSIONS if name != "game_id")
EVERY = ("day", "week", "month", "all")


def check(
    world: World, metric: str, by: list[str], *, over: str, wide_where: Body | None = None, **arguments: Any
) -> int:
    """Query, compare with the events and with the plan, and return the number of requests.

    Retention is queried with its game.
    """
    by += ["game"] if metric == "retention_retro" and "game" not in by else []
    watch = world.watch()
    lens = quick(watch)
    where: dict[str, Any] = {"where": wide_where} if wide_where is not None else {}
    guess = lens.plan(metric, by=by, over=over, **where, **arguments)
    assert [request.name for request in watch.sent] == ["interval"]
    frame = lens.query(metric, by=by, over=over, fields="all", **where, **arguments)
    names = [WORDS.get(name, name) for name in by]
    expected = world.truth.table(metric, names, over=Interval.parse(over), where=wide_where, **arguments)
    is_per_game = METRICS[metric].kinds != "plain"
    if is_per_game and "game_id" in names and len([name for name in names if name != "studio_id"]) == 2:
        # Ordered as in one request: by the split value, then the game.
        names = sorted(names, key=lambda name: name == "game_id")
    if "game_id" in names:  # the studio follows from the game
        names = [name for name in names if name != "studio_id"]
    assert_same(frame, expected, metric, names)
    assert {*METRICS[metric].columns.values()} <= {*frame.columns}
    requests: int = frame.attrs["gamelens"]["requests"]
    assert requests == len(watch.sent) - 1
    if not guess.guessed:
        assert guess.requests == requests
    later_plan = lens.plan(metric, by=by, over=over, **where, **arguments)
    watch.clear()
    again = lens.query(metric, by=by, over=over, **where, **arguments)
    assert (later_plan.guessed, later_plan.requests) == ((), again.attrs["gamelens"]["requests"])
    assert len(watch.sent) == later_plan.requests
    return requests


def allowed_granularity(metric: str, every: str) -> str:
    """Return *every*, or "day" for the metric that has no other granularity."""
    return "day" if metric == "retention_retro" else every


def required_arguments(metric: str) -> dict[str, Any]:
    """Return the arguments that *metric* cannot be queried without."""
    return {"since_days_ago": 7} if metric == "retention_retro" else {}


@pytest.mark.filterwarnings("ignore:retention_retro has no row where nobody came back")
@pytest.mark.parametrize("metric", METRICS)
def test_by_three_dimensions_every_row_is_that_of_the_events(world: World, metric: str) -> None:
    """More than two dimensions are fanned out over values, null among them."""
    random = Random(metric)
    pool = [name for name in FEW if name != "studio"]
    by = random.sample(pool, 3)
    check(
        world,
        metric,
        by,
        over=MONTH,
        every=allowed_granularity(metric, random.choice(EVERY)),
        **required_arguments(metric),
    )


@pytest.mark.filterwarnings("ignore:retention_retro has no row where nobody came back")
@pytest.mark.parametrize("metric", ["revenue", "user_unique", "conversion", "returning_users", "retention_retro"])
def test_by_four_dimensions_every_row_is_that_of_the_events(world: World, metric: str) -> None:
    """Four dimensions give every row of the events, whatever is fanned out."""
    by = ["game", "ab_id", "is_paying", "platform"]
    check(world, metric, by, over=NOON, every=allowed_granularity(metric, "all"), **required_arguments(metric))


@pytest.mark.hypothesis  # for `make bench`
@pytest.mark.parametrize("seed", range(tries(in_test=8, in_bench=200)))
def test_any_query_matches_the_events(world: World, seed: int) -> None:
    """Any metric by one to three dimensions, with any filter, scope and range, is right."""
    random = Random(seed)
    metric = random.choice(list(METRICS))
    pool = [*FEW, *MANY] if metric != "retention_retro" else [*FEW, "first_build", "installed_on"]
    by = random.sample(list(dict.fromkeys(pool)), random.choice((1, 2, 2)))
    by += [name for name in random.sample(FEW, 1) if name not in by and "studio" not in by][: random.choice((0, 1))]
    arguments: dict[str, Any] = {
        "every": allowed_granularity(metric, random.choice(EVERY)),
        **required_arguments(metric),
    }
    if random.random() < 0.5:
        arguments["wide_where"] = random.choice(
            (
                {"platform": ["ios", "android"]},
                {"not": {"build": "1.0"}},
                {"and": [{"country_code": ["US", "DE"]}, {"not": {"is_paying": "true"}}]},
            )
        )
    if random.random() < 0.4:
        arguments["games"] = random.sample(("1001", "1002", "2001"), random.choice((1, 2)))
    if random.random() < 0.3:
        arguments["studios"] = [random.choice(("s1", "s2"))]
    check(world, metric, by, over=random.choice((MONTH, NOON, QUARTER)), **arguments)


@pytest.mark.parametrize("by", [["studio"], ["studio", "game"], ["studio", "platform"], ["platform", "studio", "game"]])
@pytest.mark.parametrize("metric", ["event_count", "paying_users", "installs_ratio"])
def test_the_studio_is_a_dimension(world: World, metric: str, by: list[str]) -> None:
    """Frames have a studio column although the service has no such dimension."""
    check(world, metric, by, over=QUARTER, every="week")


@pytest.mark.parametrize("by", [["studio"], ["studio", "platform"], ["game", "platform", "build"]])
@pytest.mark.parametrize(
    "narrowed", [{"games": ["1001", "2001"]}, {"studios": ["s1"]}, {"games": ["1002"], "studios": ["s1"]}]
)
def test_each_request_keeps_the_scope_of_the_query(world: World, by: list[str], narrowed: dict[str, Any]) -> None:
    """Each request of a fan-out keeps the games and studios of the query."""
    check(world, "session_unique", by, over=QUARTER, every="month", **narrowed)


def test_a_filter_on_a_fanned_out_dimension_holds(world: World) -> None:
    """A filter on a fanned-out dimension selects the same rows as in one request."""
    where = {"and": [{"platform": "ios"}, {"or": [{"build": ["1.0", "2.0"]}, {"country_code": "US"}]}]}
    check(world, "user_unique", ["platform", "build", "ab_id"], over=MONTH, every="week", wide_where=where)


def test_a_dimension_that_is_always_null_has_a_null_row(world: World) -> None:
    """Events whose dimension is always null are in its null row (Wire 4.10, Dimensions)."""
    where = {"category": ["error"]}
    check(world, "event_count", ["ad_type", "severity", "platform"], over=QUARTER, every="month", wide_where=where)


@pytest.mark.filterwarnings("ignore:retention_retro has no row where nobody came back")
def test_retention_lists_the_values_of_the_whole_install_day(stage: Stage) -> None:
    """Installs count for their whole day, wherever the interval begins (Wire 4.12, Retention)."""

    def seen(user: str, moment: str, **fields: str) -> Body:
        return event(user_id=user, client_ts=int(datetime.fromisoformat(moment).timestamp()), **fields)

    events = [
        seen("early", "2026-11-10T01:00+00:00", build="rare"),
        seen("early", "2026-11-11T15:00+00:00", build="1.0"),
        *(
            seen(f"{country}{place}", "2026-11-10T14:00+00:00", country_code=country)
            for place, country in enumerate(("US", "DE", "FR"))
        ),
        *(seen("US0", "2026-11-10T14:01+00:00", platform=platform) for platform in ("android", "linux", "windows")),
    ]
    assert stage.submit(events).status_code == 200
    stage.process()
    frame = quick(stage.metrics_app).query(
        "retention_retro", by=["platform", "build", "game"], over="2026-11-11T12:00Z/PT10H", since_days_ago=1
    )
    assert rows_of(frame)[0]["build"] == "rare"


@pytest.mark.parametrize(
    "by", [[], ["platform"], ["game"], ["studio"], ["studio", "build"], ["platform", "build", "country_code"]]
)
@pytest.mark.parametrize("games", [None, ["1001", "2001"]])
def test_cohorts_are_those_of_the_events(world: World, by: list[str], games: list[str] | None) -> None:
    """Retention is pooled over games by installs, and NA for days that have not come."""
    ages, begins, ends = (1, 7), datetime(2026, 9, 30, tzinfo=UTC), datetime(2026, 11, 20, tzinfo=UTC)
    frame = quick(world.watch()).retention(ages, over="2026-09-30/2026-11-20", by=by, games=games)
    truth, names = world.truth, [WORDS.get(name, name) for name in by]
    active = {(fact.player, fact.day) for fact in truth.facts}
    cohorts: dict[Any, list[Any]] = {}
    for player, install in truth.installs.items():
        if install.game_id in (games or GAMES["acme"]) and begins <= install.ts < ends:
            key = (install.day, *(truth.value(install, name) for name in names))
            cohorts.setdefault(key, []).append(player)
    expected = {}
    for key, players in cohorts.items():
        for age in ages:
            day = key[0] + timedelta(days=age)
            back = sum((player, day) in active for player in players) if day < ends.date() else None
            expected[key[0], age, *key[1:]] = (len(players), back, None if back is None else back / len(players))
    actual = {
        (row["timestamp"].date(), row["age"], *(row[name] for name in names)): (
            row["installs"],
            row["returned"],
            row["retention"],
        )
        for row in rows_of(frame)
    }
    assert actual == expected


ADDITIVE = ("revenue", "event_count", "ad_impressions_count", "new_users")
SPLITS = (["platform"], ["game", "platform", "build"], ["studio", "country_code"], ["studio", "game"])
PAIRS: list[tuple[str, list[str], Granularity]] = [
    (metric, by, ("week", "month", "all")[(row + column) % 3])
    for row, metric in enumerate(ADDITIVE)
    for column, by in enumerate(SPLITS)
]
"""Each metric by each split, and each of both in every bucket."""


@pytest.mark.parametrize(("metric", "by", "every"), PAIRS)
def test_buckets_that_max_days_cuts_are_put_together_again(
    world: World, metric: str, by: list[str], every: Granularity
) -> None:
    """Buckets that `max_days` splits into pieces equal those of one request."""
    lens = quick(world.watch(), max_days=9)
    frame = lens.query(metric, by=by, over=NOON, every=every)
    names = [WORDS.get(name, name) for name in by]
    expected = world.truth.table(metric, names, over=Interval.parse(NOON), every=every)
    assert_same(frame, expected, metric, [name for name in names if name != "studio_id" or "game_id" not in names])


@pytest.mark.parametrize("by", [[], ["platform"], ["platform", "build", "ab_id"]])
def test_several_metrics_stand_side_by_side(world: World, by: list[str]) -> None:
    """Metrics share rows, also with a metric per game, and the parts that two have are one column. No row is 0."""
    metrics = ["revenue", "conversion", "ilrd_revenue", "user_unique"]
    frame = quick(world.watch()).query(metrics, by=by, over=MONTH, every="week", fields="all")
    keys = ["timestamp", *by]
    for metric in metrics:
        expected = {
            tuple(row[key] for key in keys): row
            for row in world.truth.table(metric, by, over=Interval.parse(MONTH), every="week")
        }
        for row in rows_of(frame):
            right = expected.pop(tuple(row[key] for key in keys), {})
            for field in METRICS[metric].fields:
                absent = 0 if field.combines == "sum" else None
                shown = row[METRICS[metric].columns[field.name]]
                assert is_close(shown, right.get(field.name, absent)), (metric, row, right)
        assert expected == {}


def test_values_of_part_of_the_interval_are_in_that_part(world: World) -> None:
    """A value that occurs in part of the range has rows in that part only."""
    frame = quick(world.watch()).query(
        "event_count", by=["installed_on", "platform", "game"], over=QUARTER, every="day"
    )
    days = frame.groupby("installed_on", observed=True)["timestamp"].agg(["min", "max"])
    assert (days["min"].dt.strftime("%Y-%m-%d") >= days.index).all()
    assert len(days) > 3


def test_titles_stand_beside_the_ids(world: World) -> None:
    """Each id column is followed by its title column."""
    frame = quick(world.watch()).query("event_count", by=["studio", "platform", "game"], over=MONTH, every="all")
    assert frame.columns.tolist()[:6] == ["timestamp", "studio_id", "studio", "platform", "game_id", "game"]
    titles = (
        frame[["game_id", "game", "studio"]].astype(str).drop_duplicates().sort_values("game_id").to_numpy().tolist()
    )
    assert titles == [["1001", "Tile Saga", "North"], ["1002", "Tile Empire", "North"], ["2001", "Ember", "South"]]


def test_the_dimension_with_the_fewest_values_is_fanned_out(world: World) -> None:
    """Of three games, five builds and four platforms the games are fanned out: three requests."""
    watch = world.watch()
    frame = quick(watch).query("revenue", by=["build", "platform", "game"], over=MONTH, every="week")
    assert len(watch.queries) == 3
    assert sorted(request.body["games"] for request in watch.queries if request.body) == [["1001"], ["1002"], ["2001"]]
    assert frame.attrs["gamelens"]["requests"] == len(watch.queries) + len(watch.lists)


def test_expressions_and_the_services_own_filters_are_the_same(world: World) -> None:
    """A `dim` expression and the JSON filter give equal frames (Wire 2.7, Filters)."""
    lens = quick(world.watch())
    by = ["platform", "build", "game"]
    one = lens.query("revenue", by=by, over=MONTH, where=(dim.platform == "ios") & dim.country_code.isin(["US", "DE"]))
    other = lens.query(
        "revenue", by=by, over=MONTH, where={"and": [{"platform": "ios"}, {"country_code": ["US", "DE"]}]}
    )
    assert one.equals(other)


def test_a_fan_out_over_nothing_is_an_empty_frame_with_all_columns(world: World) -> None:
    """A fan-out over no values is an empty frame with the same columns and dtypes."""
    lens = quick(world.watch())
    full = lens.query("revenue", by=["game", "platform", "build"], over=MONTH)
    empty = lens.query("revenue", by=["game", "platform", "build"], over="2026-10-08/2026-10-10")
    assert len(empty) == 0
    assert empty.dtypes.astype(str).tolist() == full.dtypes.astype(str).tolist()
