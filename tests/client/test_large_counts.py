"""Counts beyond what a float holds exactly, beyond what a column holds, and as text."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

import gamelens.notebook.accessor  # noqa: F401
from gamelens.client.sync_client import Client
from gamelens.errors import BadQuery, GamelensError, PartialResult, ServiceError
from support.scripted_service import Script

OVER = ("2026-11-02", "2026-11-03")
STAMPS = ["2026-11-02T00:00:00Z", "2026-11-03T00:00:00Z"]
EXACT = [2**53 + 1, 2**60 + 7, 2**63 - 1]
TOO_LARGE = [2**63, 2**64 + 1, 2**70, -(2**63) - 1]

QUERIES: dict[str, dict[str, Any]] = {
    "series": {},
    "group": {"by": "platform"},
    "largest": {"by": "platform", "top": 1},
    "by game": {"by": "game"},
    "sorted": {"by": "platform", "sort": "event_count"},
    "a fan-out": {"by": ["platform", "country_code", "game_id"]},
    "arrow": {"to": "arrow"},
    "beside": {"metric": ["event_count", "new_users"]},
    "dau": {"metric": "dau"},
}


def answering(script: Script, make: Callable[[str], dict[str, Any]]) -> None:
    """Let *script* answer any query with the fields that *make* returns for a metric, one value each dimension."""

    def answer(metric: str) -> Callable[[dict[str, Any]], list[dict[str, Any]]]:
        def entries(body: dict[str, Any]) -> list[dict[str, Any]]:
            names, fields = body["query"].get("dimensions", [body["query"].get("dimension")]), make(metric)
            row = {name: "1001" if name == "game_id" else "ios" for name in names if name} | fields
            match body["query"]["type"]:
                case "group":
                    return [{"timestamp": stamp, "result": [row]} for stamp in STAMPS]
                case "split":
                    return [{"timestamp": stamp, "event": row, "version": "v1"} for stamp in STAMPS]
            return [{"timestamp": stamp, "result": row} for stamp in STAMPS]

        return entries

    script.values = {"dimension": "country_code", "values": ["US"]}
    script.answers = {metric: answer(metric) for metric in ("event_count", "new_users", "user_unique", "revenue")}


def counts(frame: Any) -> set[int]:
    """Return the numbers of the first metric, in Python's own whole numbers."""
    name = next(name for name in ("event_count", "dau") if name in list(getattr(frame, "column_names", frame.columns)))
    return {*(frame[name].to_pylist() if hasattr(frame, "column_names") else map(int, frame[name]))}


@pytest.mark.shown_by(4)
@pytest.mark.parametrize("number", EXACT)
@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES)
@pytest.mark.filterwarnings("ignore:dimension = country_code")  # of the list of another one
def test_a_count_keeps_all_its_digits(lens: Client, script: Script, query: dict[str, Any], number: int) -> None:
    """Up to the largest that a column holds, also from the cache and in a refresh."""
    answering(script, lambda metric: {metric: number})
    for _ in range(2):
        frame = lens.query(**{"metric": "event_count", **query}, over=OVER)
        assert counts(frame) == {number}
    if hasattr(frame, "attrs"):
        assert counts(lens.refresh(frame)) == {number}


@pytest.mark.shown_by(6)
@pytest.mark.parametrize("number", TOO_LARGE)
@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES)
def test_a_count_that_is_too_large_is_refused(lens: Client, script: Script, query: dict[str, Any], number: int) -> None:
    """With its value and the largest there can be."""
    answering(script, lambda metric: {metric: number})
    with pytest.raises((ServiceError, PartialResult), match=rf"{number} is beyond 9,223,372,036,854,775,807"):
        lens.query(**{"metric": "event_count", **query}, over=OVER)


def test_the_largest_come_first_by_their_last_digit(lens: Client, script: Script) -> None:
    """Two counts that are the same float are told apart."""
    rows = [{"platform": "a", "event_count": 2**60}, {"platform": "b", "event_count": 2**60 + 1}]
    script.answers["event_count"] = lambda _: [{"timestamp": STAMPS[0], "result": rows}]
    assert lens.query("event_count", by="platform", over=OVER[0])["platform"].tolist() == ["b", "a"]


def test_a_sum_is_exact_or_refused(make_lens: Callable[..., Client], script: Script) -> None:
    """Of requests that are added up, of a frame, and of what changed: it never wraps around."""
    query: dict[str, Any] = {"metric": "event_count", "by": "platform", "over": OVER}

    def of_a_day(number: int) -> Callable[[dict[str, Any]], list[dict[str, Any]]]:
        row = {"platform": "ios", "event_count": number}
        return lambda body: [{"timestamp": f"{body['interval'][:10]}T00:00:00Z", "result": [row]}]

    script.answers["event_count"] = of_a_day(2**60 + 1)
    whole = make_lens(max_days=1).query(**query, every="all")
    assert counts(whole) == {2**61 + 2}
    script.answers["event_count"] = of_a_day(2**62 + 1)
    with pytest.raises(ServiceError, match=r"more than 9,223,372,036,854,775,807"):
        make_lens(max_days=1, cache=False).query(**query, every="all")
    answering(script, lambda metric: {metric: 2**60 + 1})
    frame = make_lens(cache=False).query(**query)
    assert int(frame.lens.total()["event_count"].iloc[0]) == 2**61 + 2
    answering(script, lambda metric: {metric: 2**62 + 1})
    with pytest.raises(BadQuery, match="more than a column of counts holds"):
        make_lens(cache=False).query(**query).lens.total()


def test_a_restatement_of_large_counts(make_lens: Callable[..., Client], script: Script) -> None:
    """What was before and after, beyond what a column of counts holds in sum."""
    lens = make_lens()
    rows = [{"platform": name, "event_count": 2**62 + 1} for name in ("a", "b")]
    script.answers["event_count"] = lambda _: [{"timestamp": STAMPS[0], "result": rows}]
    frame = lens.query("event_count", by="platform", over=OVER[0])
    rows[0] = {"platform": "a", "event_count": 2**62 + 5}
    lens.refresh(frame)
    (restated,) = lens.restatements().to_dict("records")
    assert restated["before"] == restated["after"] == float(2**63)


@pytest.mark.shown_by(3)
@pytest.mark.parametrize(
    "text", ["123", "1,234", "x", "", "0x10", "12.5", "NaN", "007", "١٢", str(2**63), "[1]", "null"]
)
def test_a_count_as_text_is_refused(lens: Client, script: Script, text: str) -> None:
    """With the text, never as another number or as NA."""
    answering(script, lambda metric: {metric: text})
    with pytest.raises(ServiceError, match=f"event_count is not a count: {re.escape(repr(text))} is text"):
        lens.query("event_count", over=OVER)


@pytest.mark.filterwarnings("ignore:this version does not know brand_new")
def test_a_count_of_a_metric_that_is_not_known(lens: Client, script: Script) -> None:
    """It is passed on with all its digits, whatever its size."""
    for number in (*EXACT, *TOO_LARGE):
        answering(script, lambda metric, number=number: {metric: number})  # type: ignore[misc]
        script.answers["brand_new"] = lambda body, number=number: [  # type: ignore[misc]
            {"timestamp": STAMPS[0], "result": {"brand_new": number}}
        ]
        frame = lens.query("brand_new", over=OVER[0])
        assert [str(value) for value in frame["brand_new"]] == [str(number)]
        assert lens.cache is not None
        lens.cache.clear()


def test_every_failure_is_one_of_ours(lens: Client, script: Script) -> None:
    """Whatever stands in place of a count."""
    for value in (True, [], {}, "x", 1.5, 1e300, [2**63], {"a": 1}):
        answering(script, lambda metric, value=value: {metric: value})  # type: ignore[misc]
        with pytest.raises(GamelensError):
            lens.query("event_count", by="platform", over=OVER)
