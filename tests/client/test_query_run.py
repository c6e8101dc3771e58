"""A query from its arguments to its frame and receipt, over a real ASGI app."""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest
from starlette.responses import JSONResponse, PlainTextResponse, Response

from gamelens.client.sync_client import Client
from gamelens.errors import AuthError, BadQuery, NotAdditive, NotYetAvailable, ServiceError, Truncated, Unreachable
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


def test_a_timeseries_is_a_row_for_each_bucket(lens: Client, script: Script) -> None:
    """A timeseries gives one row per bucket (Wire 2.9, Answer shapes)."""
    script.answers["event_count"] = series(event_count=7)
    assert lens.query("event_count", over=WEEK)["event_count"].tolist() == [7]


def test_a_group_is_a_row_for_each_value(lens: Client, script: Script) -> None:
    """A group gives one row per value, null included (Wire 2.9, Answer shapes)."""
    script.answers["event_count"] = group({"platform": "ios", "event_count": 7}, {"platform": None, "event_count": 2})
    frame = lens.query("event_count", by="platform", over=WEEK)
    assert frame["event_count"].tolist() == [7, 2]


def test_a_split_is_a_row_for_each_pair(lens: Client, script: Script) -> None:
    """A split gives one row per pair of values (Wire 2.9, Answer shapes)."""
    event = {"platform": "ios", "country_code": "NA", "event_count": 7}
    script.answers["event_count"] = lambda _: [{"event": event, "timestamp": DAY, "version": "v1"}]
    frame = lens.query("event_count", by=["platform", "country_code"], over=WEEK)
    assert frame.columns.tolist() == ["timestamp", "platform", "country_code", "event_count"]


def by_game(*rows: tuple[str, int, int], **more: Any) -> Callable[[dict[str, Any]], list[Any]]:
    """Return a by-game answer of one bucket: game, payers and players of each row."""
    fields = [
        {"platform": "ios", "game_id": game, "conversion": paid / all_, "paying_users": paid, "user_unique": all_}
        | more
        for game, paid, all_ in rows
    ]
    return lambda body: [{"result": row, "timestamp": first_day(body)} for row in fields]


def test_a_by_game_answer_carries_the_game(lens: Client, script: Script) -> None:
    """A by-game answer has the game in each row (Wire 2.9, Answer shapes)."""
    script.answers["conversion"] = by_game(("1001", 1, 2))
    frame = lens.query("conversion", by=["platform", "game_id"], over=WEEK)
    assert frame[["platform", "game_id"]].iloc[0].tolist() == ["ios", "1001"]


def test_games_are_pooled_by_their_parts(lens: Client, script: Script) -> None:
    """A share of all games is made of the sums of its parts (Wire 4.14, Adding up)."""
    script.answers["conversion"] = by_game(("1001", 1, 2), ("1002", 1, 8))
    frame = lens.query("conversion", by="platform", over="2026-11-01")
    assert frame.drop(columns="timestamp").astype(object).to_numpy().tolist() == [["ios", 0.2, 2, 10]]


def test_without_dimensions_each_bucket_has_a_number(lens: Client, script: Script) -> None:
    """A share of all games has a row for each bucket, as a timeseries has (Wire 2.9, Answer shapes)."""
    script.answers["conversion"] = by_game(("1001", 1, 2), ("1002", 1, 8))
    frame = lens.query("conversion", over="2026-11-01/P2D")
    assert frame["user_unique"].tolist() == [10, 0]
    assert frame["conversion"].tolist() == [0.2, pytest.approx(float("nan"), nan_ok=True)]


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


def test_a_chain_of_conditions_is_sent_as_one_list(lens: Client, script: Script) -> None:
    """`a & b & c` is one `and` of three comparisons, and so is what the receipt records (Wire 2.7, Filters)."""
    script.answers["event_count"] = series(event_count=1)
    where = (dim.platform == "ios") & (dim.country_code == "NA") & (dim.game_id == "1001")
    frame = lens.query("event_count", over=WEEK, where=where)
    flat = {"and": [{"platform": "ios"}, {"country_code": "NA"}, {"game_id": "1001"}]}
    assert (script.bodies[0]["filter"], receipt(frame)["asked"]["where"]) == (flat, flat)


def test_a_list_of_values_is_sent_as_alternatives(lens: Client, script: Script) -> None:
    """`isin` alone is an `or` of comparisons (Wire 2.7, Filters)."""
    script.answers["event_count"] = series(event_count=1)
    lens.query("event_count", over=WEEK, where=dim.country_code.isin(["US", "NA"]))
    assert script.bodies[0]["filter"] == {"or": [{"country_code": "US"}, {"country_code": "NA"}]}


def test_a_filter_may_be_the_services_own_object(lens: Client, script: Script) -> None:
    """A JSON filter is sent unchanged (Wire 2.7, Filters)."""
    script.answers["event_count"] = series(event_count=1)
    lens.query("event_count", over=WEEK, where={"or": [{"platform": "ios"}, {"platform": "android"}]})
    assert script.bodies[0]["filter"] == {"or": [{"platform": "ios"}, {"platform": "android"}]}


def test_an_empty_answer_keeps_columns_and_dtypes(lens: Client, script: Script) -> None:
    """An empty answer is a frame with the usual columns and dtypes."""
    script.answers["event_count"] = lambda _: []
    frame = lens.query("event_count", by="platform", over=WEEK)
    assert [str(kind) for kind in frame.dtypes] == ["datetime64[us, UTC]", "category", "Int64"]


def test_the_game_comes_with_its_title(lens: Client, script: Script) -> None:
    """A query by game has a title column beside game_id."""
    script.answers["event_count"] = group({"game_id": "1001", "event_count": 7})
    frame = lens.query("event_count", by="game", over=WEEK)
    assert frame[["game_id", "game"]].iloc[0].tolist() == ["1001", "Tile Saga"]


def test_a_title_of_two_studios_gets_the_studio(lens: Client, script: Script) -> None:
    """A title that two studios use is shown with its studio."""
    script.studios.append({"id": "s2", "name": "South"})
    script.games["s2"] = [{"id": "2001", "title": "Tile Saga"}]
    script.answers["event_count"] = group({"game_id": "2001", "event_count": 7})
    assert lens.query("event_count", by="game", over=WEEK)["game"].tolist() == ["Tile Saga (South)"]


def test_two_metrics_stand_side_by_side(lens: Client, script: Script) -> None:
    """Two metrics have their fields in one row per bucket."""
    script.answers["event_count"] = series(event_count=7)
    script.answers["user_unique"] = series(user_unique=3)
    frame = lens.query(["event_count", "user_unique"], over=WEEK)
    assert frame[["event_count", "user_unique"]].iloc[0].tolist() == [7, 3]


def test_a_column_is_named_after_its_metric(lens: Client, script: Script) -> None:
    """Each metric is one column; what else the service sent comes behind its name, and only if it is asked for."""
    money = {"event_count": 1, "mean": 1.0, "sum": 1.0, "sum_cents": 100.0}
    script.answers["revenue"] = series(**money)
    script.answers["event_count"] = series(event_count=9)
    frame = lens.query(["revenue", "event_count"], over=WEEK)
    assert frame.drop(columns="timestamp").iloc[0].to_dict() == {"revenue": 1.0, "event_count": 9}
    whole = lens.query(["revenue", "event_count"], over=WEEK, fields="all")
    assert whole.drop(columns="timestamp").iloc[0].to_dict() == {
        **{"revenue": 1.0, "revenue_event_count": 1, "revenue_mean": 1.0, "revenue_sum_cents": 100.0},
        "event_count": 9,
    }
    with pytest.raises(BadQuery, match="fields"):
        lens.query("revenue", over=WEEK, fields="every")  # type: ignore[arg-type]


def test_sort_orders_all_rows_by_one_column_largest_first(lens: Client, script: Script) -> None:
    """Over all buckets, equal rows as they were and null last; the receipt has it, and a new answer is sorted too."""
    script.answers["event_count"] = group(
        {"platform": "ios", "event_count": 7}, {"platform": "android", "event_count": 2}
    )
    script.answers["arpu"] = group({"platform": "android", "arpu": 0.5, "user_unique": 4, "total_revenue": 200})
    frame = lens.query(["event_count", "arpu"], by="platform", over=WEEK, every="all", sort="arpu")
    assert frame.platform.tolist() == ["android", "ios"]
    assert receipt(frame)["asked"]["sort"] == "arpu"
    assert lens.refresh(frame).platform.tolist() == ["android", "ios"]
    script.answers["user_unique"] = lambda _: [
        {"result": {"user_unique": 3}, "timestamp": f"2026-11-0{day}T00:00:00.000Z"} for day in (1, 2)
    ]
    days = lens.query("user_unique", over=WEEK, sort="timestamp").timestamp
    assert days.is_monotonic_decreasing
    assert lens.query("user_unique", over=WEEK, sort="user_unique").timestamp.is_monotonic_increasing


def test_a_column_that_the_answer_does_not_have_is_no_order(lens: Client, script: Script) -> None:
    """It is refused before a request, unless only the answer can tell."""
    with pytest.raises(BadQuery, match="Did you mean `revenue`"):
        lens.query("revenue", over=WEEK, sort="revenu")
    assert script.paths == []
    script.answers["brand_new"] = series(one=6, two=7)
    with pytest.raises(BadQuery, match="sort = 'brand_new'"):
        lens.query("brand_new", over=WEEK, sort="brand_new")


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


def test_pieces_follow_each_other(lens: Client, script: Script) -> None:
    """Ninety days are three requests, joined in time (Wire 2.8, Intervals and buckets)."""
    script.answers["event_count"] = lambda body: [
        {"result": {"event_count": 1}, "timestamp": body["interval"][:10] + "T00:00:00.000Z"}
    ]
    frame = lens.query("event_count", over="2026-08-22/P90D")
    assert frame["timestamp"].dt.strftime("%m-%d").tolist() == ["08-22", "09-22", "10-23"]


def test_all_over_pieces_is_one_row_stamped_with_the_start(make_lens: Make, script: Script) -> None:
    """`every="all"` in pieces is one row, with the start of the range as timestamp."""
    script.answers["event_count"] = series(event_count=5)
    frame = make_lens(max_days=31).query("event_count", over="2026-08-22/P90D", every="all")
    assert frame.astype(str).to_numpy().tolist() == [["2026-08-22 00:00:00+00:00", "15"]]


def test_the_top_of_pieces_is_taken_after_adding(make_lens: Make, script: Script) -> None:
    """`top` of a bucket in pieces is applied to the sums."""
    script.answers["event_count"] = group({"platform": "ios", "event_count": 5}, {"platform": "tvos", "event_count": 1})
    frame = make_lens(max_days=31).query("event_count", by="platform", over="2026-08-22/P90D", every="all", top=1)
    assert (frame["platform"].tolist(), receipt(frame)["truncated"]) == (["ios"], True)


def test_unique_players_over_pieces_are_refused_before_a_request(make_lens: Make, script: Script) -> None:
    """Unique players in pieces are `NotAdditive`, and no metric is requested."""
    with pytest.raises(NotAdditive):
        make_lens(max_days=31).query("user_unique", over="2026-08-22/P90D", every="all")
    assert script.bodies == []


def test_an_answer_as_long_as_the_services_limit_is_truncated(lens: Client, script: Script) -> None:
    """An answer of 30,000 rows may be cut and raises `Truncated` (Wire 2.6, Query kinds)."""
    script.answers["event_count"] = group(*({"platform": str(n), "event_count": 1} for n in range(30_000)))
    with pytest.raises(Truncated):
        lens.query("event_count", by="platform", over=WEEK)


def test_top_sets_truncated_in_the_receipt(lens: Client, script: Script) -> None:
    """With `top` the receipt has `truncated`."""
    script.answers["event_count"] = group({"platform": "ios", "event_count": 5})
    assert receipt(lens.query("event_count", by="platform", over=WEEK, top=1))["truncated"] is True


def test_outside_the_available_interval_nothing_is_requested(lens: Client, script: Script) -> None:
    """A range beyond the interval is `NotYetAvailable` (Wire 2.4, Available interval)."""
    with pytest.raises(NotYetAvailable, match="2026-08-22T00:00Z/2026-11-20T11:00Z"):
        lens.query("event_count", over=("2026-11-19", "2026-11-20"))
    assert script.bodies == []


def test_clip_requests_the_available_part(lens: Client, script: Script) -> None:
    """With "clip" the available part is requested, and the receipt has it as `clipped`."""
    script.answers["event_count"] = series(event_count=7)
    frame = lens.query("event_count", over=("2026-11-19", "2026-11-20"), when_unavailable="clip")
    assert receipt(frame)["clipped"] == "2026-11-19T00:00Z/2026-11-20T11:00Z"
    assert script.bodies[0]["interval"] == "2026-11-19T00:00:00Z/P1DT11H"


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
    lens = make_lens(refresh_s=2)
    lens.available()
    time.sleep(1.2)
    began = time.monotonic()
    lens.query("event_count", over="2026-11-20", when_unavailable="wait")
    assert time.monotonic() - began < 1.6


def test_wait_does_not_wait_for_the_past(make_lens: Make) -> None:
    """A range before the available interval is refused at once."""
    with pytest.raises(NotYetAvailable):
        make_lens(refresh_s=3600).query("event_count", over="2026-08-01", when_unavailable="wait")


@pytest.mark.parametrize("ask", ["query", "plan"])
def test_retention_as_a_metric_is_refused_with_the_method(lens: Client, ask: str) -> None:
    """The metric name "retention" is refused with `lens.retention()` as the suggestion."""
    with pytest.raises(BadQuery) as bad:
        getattr(lens, ask)("retention", over=WEEK)
    assert bad.value.did_you_mean == "lens.retention()"


@pytest.mark.parametrize("ask", ["query", "plan"])
def test_a_misspelt_retention_metric_is_still_that_metric(lens: Client, ask: str) -> None:
    """A misspelt `retention_retro` is refused with that metric as the suggestion."""
    with pytest.raises(BadQuery) as bad:
        getattr(lens, ask)("retention_retr", over=WEEK, since_days_ago=1)
    assert bad.value.did_you_mean == "retention_retro"


def test_an_unknown_metric_is_refused_with_the_nearest(lens: Client, script: Script) -> None:
    """An unknown metric is a `BadQuery` with the nearest name, and nothing is requested."""
    with pytest.raises(BadQuery) as bad:
        lens.query("revenu", over=WEEK)
    assert (bad.value.did_you_mean, script.bodies) == ("revenue", [])


@pytest.mark.parametrize(
    ("wrong", "right"), [("platfrom", "platform"), ("gmae", "game"), ("game_di", "game_id"), ("stduio", "studio")]
)
def test_an_unknown_dimension_is_refused_with_the_nearest(lens: Client, script: Script, wrong: str, right: str) -> None:
    """An unknown dimension is a `BadQuery` with field and nearest name, titles of games and studios among them."""
    with pytest.raises(BadQuery) as bad:
        lens.query("revenue", by=wrong, over=WEEK)
    assert (bad.value.field, bad.value.did_you_mean, script.bodies) == ("by", right, [])
    assert bad.value.amended(f'lens.query("revenue", by="{wrong}")') == f'lens.query("revenue", by="{right}")'


def test_restatements_of_an_unknown_metric_are_refused_with_the_nearest(lens: Client) -> None:
    """`restatements` of an unknown metric is a `BadQuery` with the nearest name."""
    with pytest.raises(BadQuery) as bad:
        lens.restatements("revenu")
    assert bad.value.did_you_mean == "revenue"


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


def test_the_warning_points_at_the_analysts_line(lens: Client, script: Script) -> None:
    """Warnings are attributed to the line that calls the client."""
    script.answers["event_count"] = series(event_count=7, surprise="yes")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        lens.query("event_count", over=WEEK)
    assert caught[0].filename == __file__


@pytest.mark.parametrize("body", ["", "null", "[]", "<p>", '{"result": [{"timestamp": "2026-11-', '{"result": 7}'])
def test_a_body_of_another_shape_is_a_service_error(lens: Client, script: Script, body: str) -> None:
    """A body that is not the documented JSON is a `ServiceError`."""
    script.answers["event_count"] = lambda _: PlainTextResponse(body)
    with pytest.raises(ServiceError, match="not the expected JSON"):
        lens.query("event_count", over=WEEK)


def test_a_failed_piece_fails_the_query_with_its_own_error(lens: Client, script: Script) -> None:
    """A 401 for one piece raises `AuthError`."""

    def answer(body: dict[str, Any]) -> Response | list[Any]:
        return Response(status_code=401) if body["interval"].startswith("2026-09") else []

    script.answers["event_count"] = answer
    with pytest.raises(AuthError):
        lens.query("event_count", over="2026-08-22/P90D")


def test_a_deadline_ends_a_query_that_takes_too_long(lens: Client, script: Script) -> None:
    """After `deadline_s` a query raises `Unreachable` with the deadline in its message."""
    script.answers["event_count"] = lambda _: Response(status_code=503, headers={"Retry-After": "30"})
    with pytest.raises(Unreachable, match=r"deadline_s=0\.3"):
        lens.query("event_count", over=WEEK, deadline_s=0.3)


@pytest.mark.parametrize("when", ["ask", ""])
def test_when_unavailable_is_one_of_three_words(lens: Client, make_lens: Make, when: str) -> None:
    """Any other value of `when_unavailable` is a `BadQuery`, of a query as of a client."""
    with pytest.raises(BadQuery, match="when_unavailable"):
        lens.query("event_count", over=WEEK, when_unavailable=when)  # type: ignore[arg-type]
    with pytest.raises(BadQuery, match="when_unavailable"):
        make_lens(when_unavailable=when)


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
