"""What a service says beside its rows, and rows that contradict themselves: never dropped in silence."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Callable
from typing import Any

import pytest
from starlette.responses import JSONResponse, Response

from gamelens.client.sync_client import Client
from gamelens.errors import PartialResult, ServiceError
from gamelens.receipts import Receipt
from support.scripted_service import Script

Make = Callable[..., Client]
WEEK = "2026-11-02/2026-11-09"
STAMP = "2026-11-02T00:00:00Z"


def answering(entries: list[dict[str, Any]], **members: Any) -> Callable[[Any], Response]:
    """Return an answer with *members* beside its result."""
    return lambda _: JSONResponse({"result": entries} | members)


def said(frame: Any) -> list[str]:
    """Return the warnings of a frame's receipt."""
    return list(Receipt.of(frame.attrs).warnings)


SERIES = [{"timestamp": STAMP, "result": {"event_count": 7}}]
GROUP = [{"timestamp": STAMP, "result": [{"platform": "ios", "event_count": 7}]}]
SPLIT = [{"timestamp": STAMP, "event": {"platform": "ios", "country_code": "US", "event_count": 7}, "version": "v1"}]
SHAPES: dict[str, tuple[list[str], list[dict[str, Any]]]] = {
    "timeseries": ([], SERIES),
    "group": (["platform"], GROUP),
    "split": (["platform", "country_code"], SPLIT),
}


@pytest.mark.shown_by(6)
@pytest.mark.parametrize("by", SHAPES)
@pytest.mark.parametrize(
    ("member", "note"),
    [
        ({"warnings": ["sampled", "late data"]}, "sampled; late data"),
        ({"warning": "numbers are preliminary"}, "numbers are preliminary"),
        ({"message": "see the changelog"}, "see the changelog"),
        ({"truncated": True}, "truncated = true.*missing"),
        ({"is_partial": True}, "is_partial = true.*missing"),
        ({"next": "/metrics/v1/page/2"}, "next = .*missing"),
        ({"has_more": True}, "has_more = true.*missing"),
        ({"next_cursor": "abc"}, "next_cursor.*missing"),
        ({"complete": False}, "complete = false.*incomplete"),
        ({"total": 1234}, "total stands beside the rows of event_count"),
        ({"totals": {"event_count": 9}}, "totals stands beside"),
        ({"version": "v2"}, "version v2"),
        ({"version": 2}, "version 2"),
        ({"currency": "EUR"}, "currency = EUR"),
        ({"sampled": True}, "sampled = true"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_member_beside_the_result_is_a_note(
    lens: Client, script: Script, by: str, member: dict[str, Any], note: str
) -> None:
    """At the top or in an entry; the rows are returned."""
    dimensions, entries = SHAPES[by]
    inside = [entry | member for entry in entries]
    for answer in (answering(entries, **member), answering(inside)):
        script.answers["event_count"] = answer
        frame = lens.query("event_count", by=dimensions, over=WEEK)
        assert frame["event_count"].tolist() == [7]
        (text,) = said(frame)
        assert re.search(note, text), text
        assert lens.cache is not None
        lens.cache.clear()


EMPTY: dict[str, Any] = {
    "error": None,
    "errors": [],
    "warnings": [],
    "truncated": False,
    "next": None,
    "has_more": False,
    "message": "",
}


@pytest.mark.parametrize("by", SHAPES)
def test_an_empty_member_is_no_note(lens: Client, script: Script, by: str) -> None:
    """Nothing was said; nor do the time and the id of a request say anything about rows."""
    dimensions, entries = SHAPES[by]
    made = {"took_ms": 3, "request_id": "f00", "complete": True, "version": "v1", "error": False}
    script.answers["event_count"] = answering(entries, **EMPTY | made)
    assert not said(lens.query("event_count", by=dimensions, over=WEEK))


@pytest.mark.parametrize("by", SHAPES)
@pytest.mark.parametrize(
    "member",
    [
        {"error": "shard 3 timed out"},
        {"error": {"code": 17, "message": "shard 3 timed out"}},
        {"errors": ["shard 3 timed out"]},
        {"Error": "shard 3 timed out"},
        {"success": False, "reason": "shard 3 timed out"},
    ],
    ids=str,
)
def test_an_error_beside_the_result_is_refused(lens: Client, script: Script, by: str, member: dict[str, Any]) -> None:
    """Its rows may be anything; the error is quoted, also where there is no result, or only an entry has it."""
    dimensions, entries = SHAPES[by]
    bare = JSONResponse(member)
    for answer in (answering(entries, **member), answering([entry | member for entry in entries]), lambda _: bare):
        script.answers["event_count"] = answer
        words = "success = false" if "success" in member else "shard 3 timed out"
        with pytest.raises(ServiceError, match=words):
            lens.query("event_count", by=dimensions, over=WEEK)


def test_a_note_survives_the_cache(make_lens: Make, script: Script, tmp_path: Any) -> None:
    """The same query of another client, which sends nothing, says the same."""
    script.answers["event_count"] = answering(SERIES, warnings=["sampled"])
    texts = []
    for _ in range(2):
        lens = make_lens(cache=tmp_path, metrics_url="http://127.0.0.1:9")
        with pytest.warns(UserWarning, match="sampled"):
            frame = lens.query("event_count", over="2026-11-02")
        texts.append(said(frame))
    assert texts[0] == texts[1]
    assert len(script.bodies) == 1
    again = answering(SERIES)
    script.answers["event_count"] = again
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not said(make_lens(cache=tmp_path, metrics_url="http://127.0.0.1:9").refresh(frame))
    assert not len(lens.restatements()), "no row changed"


def test_a_member_beside_values_is_a_note(lens: Client, script: Script) -> None:
    """In a list that is asked for, and in one that a query needs, each time from the remembered answer."""
    script.values = {"dimension": "platform", "values": ["ios"], "truncated": True}
    script.answers["event_count"] = lambda _: []
    with pytest.warns(UserWarning, match=r"values of platform: truncated = true.*missing"):
        assert lens.dimension_values("platform", over=WEEK) == ["ios"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        frame = lens.query("event_count", by=["platform", "country_code", "build"], over=WEEK)
    assert any("values of platform: truncated = true" in text for text in said(frame))


def test_values_of_another_dimension_are_said(lens: Client, script: Script) -> None:
    """And an error beside them is refused."""
    script.values = {"dimension": "platform", "values": ["ios"]}
    with pytest.warns(UserWarning, match="dimension = platform stands beside the values of country_code"):
        lens.dimension_values("country_code", over=WEEK)
    script.values |= {"error": "shard 3 timed out"}
    with pytest.raises(ServiceError, match="shard 3 timed out"):
        lens.dimension_values("build", over=WEEK)


CONTRADICTIONS: dict[str, tuple[str, dict[str, Any], str]] = {
    "cents": ("revenue", {"event_count": 2, "mean": 3.5, "sum": 7.0, "sum_cents": 500}, "sum_cents is 500.*700"),
    "a cent": ("revenue", {"event_count": 2, "mean": 3.5, "sum": 7.0, "sum_cents": 701}, "sum_cents is 701.*700"),
    "mean": ("revenue", {"event_count": 2, "mean": 7.0, "sum": 7.0, "sum_cents": 700}, "mean is 7, .*is 3.5"),
    "ads": ("ilrd_revenue", {"event_count": 2, "mean": 3.5, "sum": 7.0, "sum_cents": 7}, "sum_cents is 7,"),
    "arppu": ("arppu", {"arppu": 5.0, "paying_users": 3, "total_revenue": 2193}, "arppu is 5, .*7.31"),
    "arppu in cents": ("arppu", {"arppu": 731.0, "paying_users": 3, "total_revenue": 2193}, "arppu is 731,"),
    "arppu of nobody": ("arppu", {"arppu": 5.0, "paying_users": 0, "total_revenue": 0}, "arppu is 5, .*is 0"),
    "arpu": ("arpu", {"arpu": 1.0, "user_unique": 10, "total_revenue": 2000}, "arpu is 1, .*is 2"),
    "money of nobody": ("arpu", {"arpu": 1.0, "user_unique": 0, "total_revenue": 2000}, "arpu is 1,"),
    "a share": (
        "ad_impressions_per_session",
        {"ad_impressions_per_session": 0.5, "ad_impressions_count": 10, "session_unique": 40},
        "is 0.5, .*is 0.25",
    ),
}


@pytest.mark.parametrize(("metric", "row", "says"), CONTRADICTIONS.values(), ids=CONTRADICTIONS)
def test_a_row_that_contradicts_itself_is_said(
    lens: Client, script: Script, metric: str, row: dict[str, Any], says: str
) -> None:
    """The rows are returned as they are, and the note names one of them."""
    good = dict.fromkeys(row, 0)
    entries = [{"timestamp": "2026-11-03T00:00:00Z", "result": good}, {"timestamp": STAMP, "result": row}]
    script.answers[metric] = lambda _: entries
    with pytest.warns(UserWarning, match=f"1 of 2 rows of {metric} .*2026-11-02.*{says}"):
        frame = lens.query(metric, over=WEEK, fields="all")
    assert len(frame) == 2


@pytest.mark.parametrize(
    ("metric", "row"),
    [
        ("revenue", {"event_count": 3, "mean": 2.33, "sum": 7.0, "sum_cents": 700}),
        ("revenue", {"event_count": 3, "mean": 2.3333333333333335, "sum": 7.0, "sum_cents": 700.0}),
        ("ilrd_revenue", {"event_count": 3, "mean": 0.0049, "sum": 0.0149, "sum_cents": 1}),
        ("ilrd_revenue", {"event_count": 3, "mean": 0.005, "sum": 0.0149, "sum_cents": 1.49}),
        ("ilrd_revenue", {"event_count": 0, "mean": None, "sum": 0.0, "sum_cents": 0}),
        ("revenue", {"event_count": 3, "mean": None, "sum": 1e15 + 0.3, "sum_cents": 100_000_000_000_000_030}),
        ("arppu", {"arppu": 7.31, "paying_users": 3, "total_revenue": 2193}),
        ("arppu", {"arppu": 7.3, "paying_users": 3, "total_revenue": 2191}),
        ("arppu", {"arppu": 0, "paying_users": 0, "total_revenue": 0}),
        ("arppu", {"arppu": None, "paying_users": 0, "total_revenue": 0}),
        ("arppu", {"arppu": 5.0}),
        ("arpu", {"arpu": 0.0012346, "user_unique": 8101, "total_revenue": 1000}),
    ],
)
def test_rounding_is_no_contradiction(lens: Client, script: Script, metric: str, row: dict[str, Any]) -> None:
    """Ratios to the cent, cents without fractions, nulls, and rows with one field alone."""
    script.answers[metric] = lambda _: [{"timestamp": STAMP, "result": row}]
    assert not said(lens.query(metric, over=WEEK))


def test_a_failed_query_keeps_its_rows(make_lens: Make, script: Script) -> None:
    """An error beside the rows of one piece costs that piece alone."""

    def answer(body: dict[str, Any]) -> Any:
        if body["interval"].startswith("2026-11-02"):
            return JSONResponse({"result": [], "error": json.dumps("broken")})
        return [{"timestamp": "2026-11-03T00:00:00Z", "result": {"event_count": 7}}]

    script.answers["event_count"] = answer
    with pytest.raises(PartialResult, match="broken") as partial:
        make_lens(max_days=1).query("event_count", over=("2026-11-02", "2026-11-03"))
    assert partial.value.frame["event_count"].tolist() == [7]
