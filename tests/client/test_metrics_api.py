"""The lists of the service: metrics, dimensions, values, studios and games."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from gamelens.client.sync_client import Client
from gamelens.errors import BadQuery, ServiceError, Truncated
from support.scripted_service import Script

Make = Callable[..., Client]
WEEK = "2026-11-01/P1W"


def test_metrics_are_a_list_of_names(lens: Client, script: Script) -> None:
    """`metrics()` returns the service's list of names (Wire 2.11, Lists)."""
    assert lens.metrics() == script.metrics


def test_dimensions_are_a_list_of_names(lens: Client, script: Script) -> None:
    """`dimensions()` returns the service's list of names (Wire 2.11, Lists)."""
    assert lens.dimensions() == script.dimensions


def test_studios_are_a_frame(lens: Client) -> None:
    """`studios()` returns a row for each studio (Wire 2.11, Lists)."""
    assert lens.studios(over=WEEK).to_dict("records") == [{"studio_id": "s1", "studio": "North"}]


def test_games_are_a_frame_with_their_studio(lens: Client) -> None:
    """`games()` returns a row for each game with its studio (Wire 2.11, Lists)."""
    assert lens.games(over=WEEK).to_dict("records") == [
        {"game_id": "1001", "game": "Tile Saga", "studio_id": "s1", "studio": "North"}
    ]


def test_games_may_be_those_of_one_studio(lens: Client, script: Script) -> None:
    """`games(studios=...)` lists the games of those studios (Wire 2.11, Lists)."""
    script.studios.append({"id": "s2", "name": "South"})
    script.games["s2"] = [{"id": "2001", "title": "Ember"}]
    assert lens.games(over=WEEK, studios="s2")["game"].tolist() == ["Ember"]


def test_no_games_are_a_frame_with_the_same_columns(lens: Client, script: Script) -> None:
    """A list without games is a frame with the same columns."""
    script.games["s1"] = []
    assert lens.games(over=WEEK).columns.tolist() == ["game_id", "game", "studio_id", "studio"]


NAMELESS = [{}, {"title": None, "name": None}, {"title": "", "name": " "}]


@pytest.mark.parametrize("absent", NAMELESS)
def test_a_game_without_a_title_is_called_by_its_id(lens: Client, script: Script, absent: dict[str, Any]) -> None:
    """A game that is listed without a title, or with an empty one, is still a game (Wire 2.11, Lists)."""
    script.games["s1"] = [{"id": "1001", **absent}, {"id": "1002", "title": "Ember"}]
    assert lens.games(over=WEEK)["game"].tolist() == ["1001", "Ember"]


@pytest.mark.parametrize("absent", NAMELESS)
def test_a_studio_without_a_name_is_called_by_its_id(lens: Client, script: Script, absent: dict[str, Any]) -> None:
    """A studio that is listed without a name, or with an empty one, is still a studio (Wire 2.11, Lists)."""
    script.studios = [{"id": "s1", **absent}]
    assert lens.studios(over=WEEK)["studio"].tolist() == ["s1"]
    assert lens.games(over=WEEK)["studio"].tolist() == ["s1"]


def test_unknown_keys_of_a_list_pass(lens: Client, script: Script) -> None:
    """What a service lists besides ids and titles is ignored (Wire 2.11, Lists)."""
    script.studios = [{"id": "s1", "name": "North", "created": None, "tags": [{"a": 1}]}]
    script.games["s1"] = [{"id": "1001", "title": "Tile Saga", "icon": {"url": "x"}, "archived": False}]
    assert lens.games(over=WEEK)[["game", "studio"]].to_numpy().tolist() == [["Tile Saga", "North"]]


def test_rows_of_a_game_without_a_title_show_its_id(lens: Client, script: Script) -> None:
    """A frame by game has the id where there is no title, and titles elsewhere."""
    script.games["s1"] = [{"id": "1001"}, {"id": "1002", "title": "Ember"}]
    rows = [{"game_id": "1001", "event_count": 2}, {"game_id": "1002", "event_count": 1}]
    script.answers["event_count"] = lambda _: [{"result": rows, "timestamp": "2026-11-01T00:00:00.000Z"}]
    assert lens.query("event_count", by="game", over="2026-11-01")["game"].tolist() == ["1001", "Ember"]


def test_countries_have_their_names_beside_them(lens: Client, script: Script) -> None:
    """`by="country"` is `country_code` with names; a code without one is shown itself, null stays, NA is Namibia."""
    codes = ["BR", "NA", "XK", None]
    rows = [{"country_code": code, "event_count": 4 - place} for place, code in enumerate(codes)]
    script.answers["event_count"] = lambda _: [{"result": rows, "timestamp": "2026-11-01T00:00:00.000Z"}]
    frame = lens.query("event_count", by="country", over="2026-11-01")
    assert frame["country_code"].astype("object").tolist()[:3] == ["BR", "NA", "XK"]
    assert frame["country"].astype("object").tolist()[:3] == ["Brazil", "Namibia", "XK"]
    assert frame[["country_code", "country"]].isna().sum().tolist() == [1, 1]


def test_an_id_that_is_listed_twice_is_asked_once(lens: Client, script: Script) -> None:
    """A repeated id costs no second request, whose rows would be counted twice."""
    script.studios *= 2
    script.answers["event_count"] = lambda _: [{"result": {"event_count": 7}, "timestamp": "2026-11-01T00:00:00.000Z"}]
    assert lens.query("event_count", by="studio", over="2026-11-01")["event_count"].tolist() == [7]


def values_app(seen: list[str], values: list[object]) -> Starlette:
    """Return an app that lists *values* for any dimension and appends queries to *seen*."""

    def answer(request: Request) -> JSONResponse:
        seen.append(request.url.query)
        return JSONResponse({"dimension": request.path_params["dimension"], "values": values})

    return Starlette(
        routes=[
            Route("/metrics/v1/dimensions/{dimension}", answer),
            Route("/metrics/v1/interval", lambda _: JSONResponse("2026-08-22T00:00:00Z/2026-11-20T11:00:00Z")),
        ]
    )


def test_dimension_values_are_a_list(make_lens: Make) -> None:
    """`dimension_values()` returns the service's list of texts (Wire 2.11, Lists)."""
    assert make_lens(values_app([], ["NA", "US"])).dimension_values("country_code", over=WEEK) == ["NA", "US"]


def test_several_ids_repeat_their_name_in_the_query_string(make_lens: Make) -> None:
    """Each id is a query parameter of its own (Wire 2.11, Lists)."""
    seen: list[str] = []
    lens = make_lens(values_app(seen, []))
    lens.dimension_values("platform", over=WEEK, games=["1", "2"], studios="7")
    assert seen[0].endswith("&limit=30000&studios=7&games=1&games=2")


def test_a_list_as_long_as_the_limit_is_truncated(make_lens: Make) -> None:
    """A list of 30,000 values may be cut, so it is refused (Wire 2.11, Lists)."""
    with pytest.raises(Truncated):
        make_lens(values_app([], ["x"] * 30_000)).dimension_values("build", over=WEEK)


def test_a_value_list_of_the_wrong_shape_is_a_service_error(make_lens: Make) -> None:
    """A value that is not text is a `ServiceError`."""
    with pytest.raises(ServiceError):
        make_lens(values_app([], [1])).dimension_values("build", over=WEEK)


def test_an_unknown_dimension_is_refused_with_the_nearest_name(lens: Client) -> None:
    """Values of an unknown dimension are a `BadQuery` with the nearest name."""
    with pytest.raises(BadQuery) as bad:
        lens.dimension_values("contry_code", over=WEEK)
    assert bad.value.did_you_mean == "country_code"


def test_an_invalid_available_interval_is_a_service_error(lens: Client, script: Script) -> None:
    """A text that is not an interval is a `ServiceError` (Wire 2.4, Available interval)."""
    script.available = "yesterday"
    with pytest.raises(ServiceError, match="not the expected interval"):
        lens.available()
