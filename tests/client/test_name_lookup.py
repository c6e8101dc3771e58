"""Games and studios by title, and comparisons with null: found in the lists of the service."""

from __future__ import annotations

from typing import Any

import pytest

from gamelens.client.query.listings import has_titles, ids_of
from gamelens.client.sync_client import Client
from gamelens.errors import BadQuery
from gamelens.notebook import accessor as accessor  # df.lens
from gamelens.wire.filters import Filter, dim
from support.scripted_service import Script
from support.watched_service import World, assert_equal, quick, rows_of

OVER = "2026-10-20/2026-11-20"
TITLES = {"1": ("Tile Harbor", "Tile Harbor (North)"), "2": ("Tile Harbor", "Tile Harbor (South)"), "3": ("1", "1")}


@pytest.mark.parametrize(
    ("names", "ids"),
    [
        (["Tile Harbor (South)"], ("2",)),
        (["1"], ("1",)),  # the id wins over the title of game 3
        (["2", "Tile Harbor (South)"], ("2",)),
        (["3", "Tile Harbor (North)"], ("3", "1")),
        (["77"], ("77",)),  # digits are an id, listed or not
        (["Tile"], None),
        ([], ()),
    ],
)
def test_a_name_is_an_id_or_a_title(names: list[str], ids: tuple[str, ...] | None) -> None:
    """Titles are compared exactly, also as frames show them where two games have the same."""
    assert ids_of("games", names, TITLES) == ids


def test_an_ambiguous_title_is_refused_with_its_ids() -> None:
    """Two games have the title: the error names both ids."""
    with pytest.raises(BadQuery, match="is the title of 2 games: pass the id of one") as refused:
        ids_of("games", ["Tile Harbor"], TITLES)
    assert (refused.value.field, refused.value.allowed) == ("games", ("1", "2"))


def test_digits_alone_need_no_list() -> None:
    """Only a name with another character than digits may be a title."""
    assert (has_titles(None), has_titles(["1001", "2"]), has_titles(["1001", "Ember"])) == (False, False, True)


def test_an_unknown_title_is_refused_with_the_nearest(lens: Client) -> None:
    """A title that no game has is refused before anything is asked for it."""
    with pytest.raises(BadQuery, match="Did you mean `Tile Saga`") as refused:
        lens.query("event_count", over="yesterday", games=["Tile Sagas"])
    assert "is neither the id nor the title of a game" in str(refused.value)


def test_ids_of_digits_cost_no_request(lens: Client, script: Script) -> None:
    """The lists are requested for titles only."""
    script.answers["event_count"] = lambda body: []
    lens.query("event_count", over="yesterday", games=["1001"])
    assert [path.rpartition("/")[2] for path in script.paths] == ["interval", "event_count"]


def test_a_title_of_two_games_is_refused_before_the_query(lens: Client, script: Script) -> None:
    """`query` and `plan` name the ids, unless the studio makes it one game."""
    script.studios = [{"id": "s1", "name": "North"}, {"id": "s2", "name": "South"}]
    script.games["s2"] = [{"id": "2001", "title": "Tile Saga"}]
    script.answers["event_count"] = lambda body: []
    with pytest.raises(BadQuery, match="pass the id of one"):
        lens.query("event_count", over="yesterday", games=["Tile Saga"])
    with pytest.raises(BadQuery, match="pass the id of one"):
        lens.plan("event_count", over="yesterday", games=["Tile Saga"])
    lens.query("event_count", over="yesterday", games=["Tile Saga"], studios="South")
    lens.query("event_count", over="yesterday", games=["Tile Saga (North)"])
    assert [(body.get("games"), body.get("studios")) for body in script.bodies] == [
        (["2001"], ["s2"]),
        (["1001"], None),
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    "names", [{"games": "Tile Saga"}, {"studios": "South"}, {"games": ["Ember", "1001"], "studios": ["s1", "South"]}]
)
def test_titles_and_ids_give_the_same_frame(world: World, names: dict[str, Any]) -> None:
    """The receipt keeps the names as they were given, and `refresh` understands them."""
    ids = {"Tile Saga": "1001", "Ember": "2001", "South": "s2"}
    lens = quick(world.watch())
    frame = lens.query("arpdau", by=["game", "platform"], over=OVER, **names)
    by_ids: dict[str, Any] = {
        name: [ids.get(value, value) for value in ([given] if isinstance(given, str) else given)]
        for name, given in names.items()
    }
    assert_equal(frame, lens.query("arpdau", by=["game", "platform"], over=OVER, **by_ids))
    given = [names[name] for name in ("games", "studios") if name in names]
    assert [frame.attrs["gamelens"]["asked"][name] for name in ("games", "studios") if name in names] == [
        [one] if isinstance(one, str) else one for one in given
    ]
    assert_equal(frame, lens.refresh(frame))


@pytest.mark.slow
def test_every_method_takes_titles(world: World) -> None:
    """Retention, lists of values and lists of games too."""
    lens = quick(world.watch())
    by_title, by_id = (lens.retention([1], over=OVER, games=game) for game in ("Tile Saga", "1001"))
    assert_equal(by_title, by_id)
    assert lens.dimension_values("platform", over=OVER, games="Ember") == lens.dimension_values(
        "platform", over=OVER, games="2001"
    )
    assert lens.games(over=OVER, studios="South")["game"].tolist() == ["Ember"]


@pytest.mark.slow
def test_a_plan_of_titles_counts_the_lists(world: World) -> None:
    """The plan has the requests of the query, of whose lists only the size is estimated."""
    watch = world.watch()
    lens = quick(watch)
    arguments: dict[str, Any] = {"over": OVER, "studios": "South"}
    plan = lens.plan("event_count", **arguments)
    assert [request.name for request in watch.sent] == ["interval"]
    assert lens.query("event_count", **arguments).attrs["gamelens"]["requests"] == plan.requests == 2
    assert lens.plan("event_count", **arguments).requests == 1


@pytest.mark.shown_by(3)
@pytest.mark.slow
@pytest.mark.parametrize("dimension", ["country_code", "ilrd_network_name", "severity", "first_build"])
@pytest.mark.parametrize("metric", ["user_unique", "new_users", "arpdau"])
def test_a_comparison_with_null_selects_the_null_group(world: World, metric: str, dimension: str) -> None:
    """The events without a value are those that the service counts in the null group, also of players."""
    lens = quick(world.watch())
    frame = lens.query(metric, over=OVER, every="all", by="platform", where=dim[dimension].is_null())
    split = lens.query(metric, over=OVER, every="all", by=["platform", dimension])
    null = split[split[dimension].isna()].drop(columns=dimension)
    key = "platform"
    assert sorted(rows_of(frame), key=lambda row: str(row[key])) == sorted(rows_of(null), key=lambda row: str(row[key]))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("where", "same"),
    [
        (~dim.country_code.is_null(), dim.country_code.isin(["US", "DE", "FR"])),
        (dim.country_code.is_null() & (dim.platform == "ios"), {"and": [{"country_code": None}, {"platform": "ios"}]}),
        (~(dim.platform.is_null() | dim.build.is_null()), ~dim.platform.is_null() & ~dim.build.is_null()),
    ],
)
def test_null_takes_part_in_expressions(world: World, where: Filter, same: Filter | dict[str, Any]) -> None:
    """Comparisons with null are combined like any other, and may be written as the object `{"dim": None}`."""
    lens = quick(world.watch())
    frame = lens.query("event_count", over=OVER, where=where)
    assert_equal(frame, lens.query("event_count", over=OVER, where=same))
    assert_equal(frame, lens.refresh(frame))


@pytest.mark.slow
def test_a_dimension_without_values_is_null_everywhere(world: World) -> None:
    """Where no event has a value, null selects all events and its negation none."""
    lens = quick(world.watch())
    where = dim.severity.is_null()
    over: dict[str, Any] = {"over": "2026-10-01/2026-10-02", "every": "all"}
    assert lens.dimension_values("severity", over=over["over"]) == []
    everything = lens.query("event_count", **over)
    assert_equal(everything, lens.query("event_count", where=where, **over))
    assert lens.query("event_count", where=~where, **over)["event_count"].tolist() == [0]


@pytest.mark.slow
def test_retention_of_cohorts_without_a_value(world: World) -> None:
    """In `retention` the filter selects install events (Wire 2.7, Filters)."""
    lens = quick(world.watch())
    frame = lens.retention([1], over=OVER, where=dim.install_publisher.is_null())
    split = lens.retention([1], over=OVER, by="install_publisher")
    null = split[split["install_publisher"].isna()].drop(columns="install_publisher").reset_index(drop=True)
    assert rows_of(frame) == rows_of(null)
    assert len(frame)


@pytest.mark.slow
def test_a_plan_of_null_guesses_the_values(world: World) -> None:
    """The list of values counts as a request until it is remembered."""
    watch = world.watch()
    lens = quick(watch)
    where = dim.country_code.is_null()
    plan = lens.plan("event_count", over=OVER, where=where)
    assert plan.guessed == ("country_code",)
    assert lens.query("event_count", over=OVER, where=where).attrs["gamelens"]["requests"] == plan.requests == 2
    assert lens.plan("event_count", over=OVER, where=where).guessed == ()
