"""A plan as text: a small table of requests, and the reasons why it has none."""

from __future__ import annotations

from typing import Any

from gamelens.client.query.plan_estimate import Plan, PlannedPiece
from gamelens.wire.intervals import Interval

WEEK = Interval.parse("2026-11-01/P1W")


def piece(metric: str = "revenue", **scope: str | None) -> PlannedPiece:
    """Return a planned request for a week of *metric*."""
    return PlannedPiece(metric=metric, interval=WEEK, buckets=7, scope=scope or None)


def printed(*pieces: PlannedPiece, **more: Any) -> list[str]:
    """Return the lines of a plan of *pieces*."""
    about: dict[str, Any] = {"requests": len(pieces), "seconds": 0.0, "cached_share": 0.0} | more
    return str(Plan(pieces=pieces, **about)).splitlines()


def test_one_request_is_printed_in_the_singular() -> None:
    """A plan of one request prints a summary line and the request."""
    assert printed(piece()) == [
        "1 request, about 0.0 s; 0% of the buckets are in the cache",
        "  revenue  2026-11-01T00:00Z/2026-11-08T00:00Z    7 buckets",
    ]


def test_lists_are_requests_and_no_pieces() -> None:
    """Requests for lists are counted in the summary and not printed as pieces."""
    assert printed(piece(), requests=12, seconds=1.4, cached_share=0.25)[0] == (
        "12 requests, about 1.4 s; 25% of the buckets are in the cache"
    )


def test_the_scope_of_a_request_is_printed_behind_it() -> None:
    """The values a request is narrowed to are printed at the end of its line."""
    last = printed(piece(platform="ios", build=None), piece("user_unique"))
    assert [line.split("buckets")[1].strip() for line in last[1:]] == ["platform = ios, build = None", ""]


def test_metrics_stand_below_each_other() -> None:
    """Intervals start in one column, whatever the length of the metric's name."""
    starts = [line.index("2026") for line in printed(piece("arpu"), piece("session_unique"))[1:]]
    assert len(set(starts)) == 1


def test_guessed_dimensions_are_named() -> None:
    """Dimensions whose number of values is guessed are named, and the count reads "at least"."""
    first, second, *_ = printed(piece(), guessed=("country_code", "game_id"))
    assert first.startswith("at least 1 request, at least")
    assert second == (
        "how many more depends on the number of values of country_code, game_id, which is not known before the query"
    )


def test_a_clipped_range_is_printed_without_requests_too() -> None:
    """The available part of a clipped range is printed even if all of it is cached."""
    assert printed(clipped=WEEK, cached_share=1.0) == [
        "No request is needed: everything is in the cache.",
        "cut to what is available: 2026-11-01T00:00Z/2026-11-08T00:00Z",
    ]


def test_a_plan_of_nothing_is_not_called_cached() -> None:
    """A query that no studio, game or value matches is not described as cached."""
    assert printed() == ["No request is needed: no studio, game or value matches the query."]


def test_twenty_pieces_are_shown_and_the_others_counted() -> None:
    """At most 20 pieces are printed, and a last line counts the others."""
    assert len(printed(*[piece()] * 20)) == 21
    assert printed(*[piece()] * 23)[-1] == "  … and 3 more"
