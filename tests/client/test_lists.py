"""The lists: metrics, dimensions, values, studios, games (Metrics, Endpoints; public-facts 3.6)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from gamelens.client.sync_client import Client
from gamelens.errors import BadQuery, NotYetAvailable, ServiceError, Truncated
from support.scripted_service import Script

Make = Callable[..., Client]
WEEK = "2026-11-01/P1W"


def test_metrics_are_a_list_of_names(lens: Client, script: Script) -> None:
    """Metrics, Endpoints."""
    assert lens.metrics() == script.metrics


def test_dimensions_are_a_list_of_names(lens: Client, script: Script) -> None:
    """Metrics, Endpoints."""
    assert lens.dimensions() == script.dimensions


def test_studios_are_a_frame(lens: Client) -> None:
    """Metrics, Studio."""
    assert lens.studios(over=WEEK).to_dict("records") == [{"studio_id": "s1", "studio": "North"}]


def test_games_are_a_frame_with_their_studio(lens: Client) -> None:
    """Metrics, Game."""
    assert lens.games(over=WEEK).to_dict("records") == [
        {"game_id": "1001", "game": "Tile Saga", "studio_id": "s1", "studio": "North"}
    ]


def test_games_may_be_those_of_one_studio(lens: Client, script: Script) -> None:
    """public-facts 3.6."""
    script.studios.append({"id": "s2", "name": "South"})
    script.games["s2"] = [{"id": "2001", "title": "Ember"}]
    assert lens.games(over=WEEK, studios="s2")["game"].tolist() == ["Ember"]


def test_no_games_are_a_frame_with_the_same_columns(lens: Client, script: Script) -> None:
    script.games["s1"] = []
    assert lens.games(over=WEEK).columns.tolist() == ["game_id", "game", "studio_id", "studio"]


def values_app(seen: list[str], values: list[Any]) -> Starlette:
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
    """Metrics, Endpoints."""
    assert make_lens(values_app([], ["NA", "US"])).dimension_values("country_code", over=WEEK) == ["NA", "US"]


def test_several_ids_repeat_their_name_in_the_query_string(make_lens: Make) -> None:
    """public-facts 3.6."""
    seen: list[str] = []
    lens = make_lens(values_app(seen, []))
    lens.dimension_values("platform", over=WEEK, games=["1", "2"], studios="s1")
    assert seen[0].endswith("&limit=30000&studios=s1&games=1&games=2")


def test_more_values_than_the_service_gives_are_truncated(make_lens: Make) -> None:
    """public-facts 3.3."""
    with pytest.raises(Truncated):
        make_lens(values_app([], ["x"] * 30_000)).dimension_values("build", over=WEEK)


def test_a_value_list_of_the_wrong_shape_is_a_service_error(make_lens: Make) -> None:
    with pytest.raises(ServiceError):
        make_lens(values_app([], [1])).dimension_values("build", over=WEEK)


def test_an_unknown_dimension_has_no_values(lens: Client) -> None:
    with pytest.raises(BadQuery) as bad:
        lens.dimension_values("contry_code", over=WEEK)
    assert bad.value.did_you_mean == "country_code"


def test_lists_of_what_is_not_available_are_refused(lens: Client) -> None:
    with pytest.raises(NotYetAvailable):
        lens.studios(over="2027-01-01")


def test_an_interval_that_is_none_is_a_service_error(lens: Client, script: Script) -> None:
    script.available = "yesterday"
    with pytest.raises(ServiceError, match="not the promised interval"):
        lens.available()
