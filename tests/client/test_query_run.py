"""A query from its arguments to its frame and receipt, over a real ASGI app."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest
from starlette.responses import JSONResponse

from gamelens.client.sync_client import Client
from gamelens.errors import BadQuery, NotAdditive, NotYetAvailable, Truncated
from gamelens.wire.filters import dim
from support.scripted_service import KEY, Script

Make = Callable[..., Client]
DAY = "2026-11-01T00:00:00.000Z"
WEEK = "2026-11-01/P1W"


def first_day(body: dict[str, Any]) -> str:
    """Return the timestamp of the first day of a request."""
    return f"{body['interval'][:10]}T00:00:00.000Z"


def series(**fields: Any) -> Callable[[dict[str, Any]], list[Any]]:
    """Return a timeseries answer of one bucket (Wire 2.9, Answer shapes)."""
    return lambda body: [{"result": fields, "timestamp": first_day(body)}]


def group(*rows: dict[str, Any]) -> Callable[[dict[str, Any]], list[Any]]:
    """Return a group answer of one bucket (Wire 2.9, Answer shapes)."""
    return lambda body: [{"result": list(rows), "timestamp": first_day(body)}]


def receipt(frame: pd.DataFrame) -> dict[str, Any]:
    """Return the receipt of *frame*."""
    return frame.attrs["gamelens"]  # type: ignore[no-any-return]


def test_the_available_interval_is_read(lens: Client) -> None:
    """The available interval is one JSON string (Wire 2.4, Available interval)."""
    assert str(lens.available()) == "2026-08-22T00:00Z/2026-11-20T11:00Z"


def test_the_available_interval_is_remembered(lens: Client, script: Script) -> None:
    """A second call sends no request (Wire 2.4, Available interval)."""
    lens.available()
    lens.available()
    assert script.paths == ["/metrics/v1/interval"]


def test_the_available_interval_is_requested_again_after_refresh_s(make_lens: Make, script: Script) -> None:
    """The interval is read again after `refresh_s` (Wire 2.4, Available interval)."""
    lens = make_lens(refresh_s=0)
    lens.available()
    lens.available()
    assert len(script.paths) == 2


def by_game(*rows: tuple[str, int, int], **more: Any) -> Callable[[dict[str, Any]], list[Any]]:
    """Return a by-game answer of one bucket: game, payers and players of each row."""
    fields = [
        {"platform": "ios", "game_id": game, "conversion": paid / all_, "paying_users": paid, "user_unique": all_}
        | more
        for game, paid, all_ in rows
    ]
    return lambda body: [{"result": row, "timestamp": first_day(body)} for row in fields]


@pytest.mark.parametrize("absent", [{"user_unique": None}, {"paying_users": None}])
def test_games_without_parts_are_not_pooled(lens: Client, script: Script, absent: dict[str, Any]) -> None:
    """A service that sends shares without their parts can be queried by game only."""
    script.answers["conversion"] = by_game(("1001", 1, 2), ("1002", 1, 8), **absent)
    with pytest.raises(NotAdditive, match=rf"by=\['platform', 'game'\].* without {next(iter(absent))}"):
        lens.query("conversion", by="platform", over="2026-11-01")
    assert len(lens.query("conversion", by=["platform", "game"], over="2026-11-01")) == 2


def test_the_body_has_the_documented_fields(lens: Client, script: Script) -> None:
    """The body has interval, granularity, query, filter and games (Wire 2.5, Query body)."""
    script.answers["event_count"] = group()
    lens.query("event_count", by="platform", over=WEEK, where=dim.country_code == "NA", top=3, games="1001")
    assert script.bodies == [
        {
            "interval": "2026-11-01/P7D",
            "granularity": "day",
            "query": {"type": "group", "dimension": "platform", "limit": 3},
            "filter": {"country_code": "NA"},
            "games": ["1001"],
        }
    ]


IOS, GAME = dim.platform == "ios", dim.game_id == "1001"
SENT: list[tuple[Any, dict[str, Any]]] = [
    (IOS & GAME & (dim.build == "1"), {"and": [{"platform": "ios"}, {"game_id": "1001"}, {"build": "1"}]}),
    (dim.country_code.isin(["US", "DE"]), {"or": [{"country_code": "US"}, {"country_code": "DE"}]}),
    (~IOS, {"not": {"platform": "ios"}}),
    ('platform == "ios"', {"platform": "ios"}),
    ({"or": [{"platform": "ios"}, {"platform": "tvos"}]}, {"or": [{"platform": "ios"}, {"platform": "tvos"}]}),
]


@pytest.mark.parametrize(("where", "sent"), SENT, ids=str)
def test_a_filter_is_sent_flat(lens: Client, script: Script, where: Any, sent: dict[str, Any]) -> None:
    """A chain is one list, values are alternatives, and the service's own form stays (Wire 2.7, Filters)."""
    script.answers["event_count"] = series(event_count=1)
    lens.query("event_count", over=WEEK, where=where)
    assert script.bodies[0]["filter"] == sent


def test_a_title_of_two_studios_gets_the_studio(lens: Client, script: Script) -> None:
    """A title that two studios use is shown with its studio."""
    script.studios.append({"id": "s2", "name": "South"})
    script.games["s2"] = [{"id": "2001", "title": "Tile Saga"}]
    script.answers["event_count"] = group({"game_id": "2001", "event_count": 7})
    assert lens.query("event_count", by="game", over=WEEK)["game"].tolist() == ["Tile Saga (South)"]


def test_fields_that_the_catalog_does_not_know_keep_their_names(lens: Client, script: Script) -> None:
    """Behind the name of the metric where another column is called so; one of an unknown metric is called as it."""
    script.answers["session_unique"] = series(session_unique=2, new_users=3, surprise=4)
    script.answers["new_users"] = series(new_users=5)
    script.answers["brand_new"] = series(value=6)
    with pytest.warns(UserWarning, match="does not know"):
        frame = lens.query(["session_unique", "new_users", "brand_new"], over=WEEK)
    assert frame.drop(columns="timestamp").iloc[0].to_dict() == {
        **{"session_unique": 2, "session_unique_new_users": 3, "surprise": 4},
        **{"new_users": 5, "brand_new": 6},
    }


def test_an_answer_as_long_as_the_services_limit_is_truncated(lens: Client, script: Script) -> None:
    """An answer of 30,000 rows may be cut and raises `Truncated` (Wire 2.6, Query kinds)."""
    script.answers["event_count"] = group(*({"platform": str(n), "event_count": 1} for n in range(30_000)))
    with pytest.raises(Truncated):
        lens.query("event_count", by="platform", over=WEEK)


def test_top_sets_truncated_in_the_receipt(lens: Client, script: Script) -> None:
    """With `top` the receipt has `truncated`."""
    script.answers["event_count"] = group({"platform": "ios", "event_count": 5})
    assert receipt(lens.query("event_count", by="platform", over=WEEK, top=1))["truncated"] is True


def test_a_client_that_clips_clips_every_query(make_lens: Make, script: Script) -> None:
    """The receipt states the cut as it does when the query asks for it; a query may still refuse."""
    script.answers["event_count"] = series(event_count=7)
    lens = make_lens(when_unavailable="clip")
    beyond = ("2026-11-19", "2026-11-20")
    frame = lens.query("event_count", over=beyond)
    asked = make_lens().query("event_count", over=beyond, when_unavailable="clip")
    assert receipt(frame)["clipped"] == receipt(asked)["clipped"] == "2026-11-19T00:00Z/2026-11-20T11:00Z"
    assert str(lens.plan("event_count", over=beyond).clipped) == receipt(frame)["clipped"]
    with pytest.raises(NotYetAvailable):
        lens.query("event_count", over=beyond, when_unavailable="raise")
    assert len(lens.refresh(frame)) == len(frame)


def test_wait_reads_the_interval_until_it_is_available(make_lens: Make, script: Script) -> None:
    """With "wait" the client waits until data is processed (Wire 2.4, Available interval)."""
    script.answers["event_count"] = series(event_count=7)
    script.moves_to = ["2026-08-22T00:00:00Z/2026-11-20T12:00:00Z", "2026-08-22T00:00:00Z/2026-11-21T00:00:00Z"]
    lens = make_lens(refresh_s=0.05)
    frame = lens.query("event_count", over="2026-11-20", when_unavailable="wait", deadline_s=10)
    assert frame["event_count"].tolist() == [7]


def test_wait_ends_at_the_deadline(make_lens: Make) -> None:
    """With "wait" `NotYetAvailable` is raised at the deadline."""
    with pytest.raises(NotYetAvailable):
        make_lens(refresh_s=0.05).query("event_count", over="2026-11-20", when_unavailable="wait", deadline_s=0.5)


@pytest.mark.parametrize(
    "ends",
    [
        ["11-20T11", "11-21T00"],
        ["11-20T12", "11-20T12", "11-21T00"],
        ["11-20T12", "11-20T14", "11-20T14", "11-20T20", "11-20T20", "11-21T00"],
    ],
)
def test_wait_without_a_deadline_goes_on_while_the_interval_grows(
    make_lens: Make, script: Script, ends: list[str]
) -> None:
    """One refresh without growth ends nothing."""
    script.answers["event_count"] = series(event_count=7)
    script.moves_to = [f"2026-08-22T00:00:00Z/2026-{end}:00:00Z" for end in ends]
    frame = make_lens(refresh_s=0.2).query("event_count", over="2026-11-20", when_unavailable="wait")
    assert frame["event_count"].tolist() == [7]


def test_wait_without_a_deadline_ends_after_two_refreshes_without_growth(make_lens: Make, script: Script) -> None:
    """The error names the deadline as what to pass."""
    script.moves_to = ["2026-08-22T00:00:00Z/2026-11-20T12:00:00Z"]
    with pytest.raises(NotYetAvailable, match="deadline_s="):
        make_lens(refresh_s=0.2).query("event_count", over="2026-11-20", when_unavailable="wait")
    assert script.paths == ["/metrics/v1/interval"] * 4


def test_wait_asks_when_the_last_answer_is_too_old(make_lens: Make, script: Script) -> None:
    """Not a whole refresh later, if the interval was asked a while ago."""
    script.answers["event_count"] = series(event_count=7)
    script.moves_to = ["2026-08-22T00:00:00Z/2026-11-21T00:00:00Z"]
    lens = make_lens(refresh_s=4)
    lens.available()
    time.sleep(2.5)
    began = time.monotonic()
    lens.query("event_count", over="2026-11-20", when_unavailable="wait")
    assert time.monotonic() - began < 3.5


def test_a_title_instead_of_an_id_is_refused_with_where_ids_are(lens: Client, script: Script) -> None:
    """An id the service refuses is a `BadQuery` that names `lens.games`."""
    refusal = {"field": "games", "value": "Tile Saga", "message": "not one of the organisation's"}
    script.answers["revenue"] = lambda _: JSONResponse(refusal, 422)
    with pytest.raises(BadQuery, match=r"Tile Saga.*lens\.games\(over=\.\.\.\)"):
        lens.query("revenue", games="Tile Saga", over=WEEK)


def test_a_metric_only_the_service_knows_passes_through_with_one_warning(lens: Client, script: Script) -> None:
    """A metric only the service knows is queried, with one warning per client."""
    script.answers["brand_new"] = series(brand_new=7, share=0.5)
    with pytest.warns(UserWarning, match="brand_new"):
        lens.query("brand_new", over=WEEK)
    frame = lens.query("brand_new", over=WEEK)  # a second warning would be an error here
    assert [str(kind) for kind in frame.dtypes[1:]] == ["Int64", "float64"]


def test_a_dimension_only_the_service_knows_passes_through(lens: Client, script: Script) -> None:
    """A dimension only the service knows is queried, with a warning."""
    script.answers["event_count"] = group({"brand_new_dimension": "x", "event_count": 1})
    with pytest.warns(UserWarning, match="brand_new_dimension"):
        frame = lens.query("event_count", by="brand_new_dimension", over=WEEK)
    assert str(frame["brand_new_dimension"].dtype) == "category"


def test_an_unknown_field_passes_through_with_a_warning(lens: Client, script: Script) -> None:
    """A field the catalog does not know becomes a column, with a warning."""
    script.answers["event_count"] = series(event_count=7, surprise="yes")
    with pytest.warns(UserWarning, match="surprise"):
        frame = lens.query("event_count", over=WEEK)
    assert frame["surprise"].tolist() == ["yes"]


def test_the_receipt_has_the_query(lens: Client, script: Script) -> None:
    """The receipt repeats all arguments and the interval that was queried."""
    script.answers["event_count"] = group()
    frame = lens.query("event_count", by="platform", over=WEEK, where=~(dim.platform == "ios"), top=3, studios=["s1"])
    assert receipt(frame)["asked"] == {
        "metric": "event_count",
        "by": ["platform"],
        "over": WEEK,
        "every": "day",
        "where": {"not": {"platform": "ios"}},
        "top": 3,
        "games": None,
        "studios": ["s1"],
        "since_days_ago": None,
        "interval": "2026-11-01T00:00Z/2026-11-08T00:00Z",
    }


def test_the_receipt_has_the_documented_keys(lens: Client, script: Script) -> None:
    """A receipt has exactly the thirteen documented keys."""
    script.answers["event_count"] = series(event_count=1)
    assert set(receipt(lens.query("event_count", over=WEEK))) == {
        "asked",
        "asked_at",
        "as_of",
        "available",
        "requests",
        "retries",
        "cached_share",
        "gaps",
        "clipped",
        "truncated",
        "warnings",
        "version",
        "provenance",
    }


def test_the_receipt_counts_the_requests(lens: Client, script: Script) -> None:
    """`requests` counts the requests of the query."""
    script.answers["event_count"] = lambda _: []
    assert receipt(lens.query("event_count", over="2026-08-22/P90D"))["requests"] == 3


def test_the_receipt_is_plain_json_without_the_key(lens: Client, script: Script) -> None:
    """A receipt is JSON without NaN and without the API key."""
    script.answers["event_count"] = series(event_count=1)
    text = json.dumps(receipt(lens.query("event_count", over=WEEK)), allow_nan=False)
    assert KEY not in text
