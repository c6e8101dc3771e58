"""How a plan reads (analyst-api, Names: prints as a small table, and says so when nothing has to be asked)."""

from __future__ import annotations

from typing import Any

from gamelens.client.query.plan_estimate import Plan, PlannedPiece
from gamelens.wire.intervals import Interval

WEEK = Interval.parse("2026-11-01/P1W")


def piece(metric: str = "revenue", **scope: str | None) -> PlannedPiece:
    return PlannedPiece(metric=metric, interval=WEEK, buckets=7, scope=scope or None)


def lines(*pieces: PlannedPiece, **more: Any) -> list[str]:
    about = {"requests": len(pieces), "seconds": 0.0, "cached_share": 0.0} | more
    return str(Plan(pieces=pieces, **about)).splitlines()


def test_one_request_is_one() -> None:
    assert lines(piece()) == [
        "1 request, about 0.0 s; 0% of the buckets are in the cache",
        "  revenue  2026-11-01T00:00Z/2026-11-08T00:00Z    7 buckets",
    ]


def test_lists_are_requests_and_no_pieces() -> None:
    assert lines(piece(), requests=12, seconds=1.4, cached_share=0.25)[0] == (
        "12 requests, about 1.4 s; 25% of the buckets are in the cache"
    )


def test_what_a_request_is_narrowed_to_stands_behind_it() -> None:
    last = lines(piece(platform="ios", build=None), piece("user_unique"))
    assert [line.split("buckets")[1].strip() for line in last[1:]] == ["platform = ios, build = None", ""]


def test_metrics_stand_below_each_other() -> None:
    starts = [line.index("2026") for line in lines(piece("arpu"), piece("session_unique"))[1:]]
    assert len(set(starts)) == 1


def test_what_is_guessed_is_named() -> None:
    first, second, *_ = lines(piece(), guessed=("country_code", "game_id"))
    assert first.startswith("about 1 request, about")
    assert second == "estimated: how many values country_code, game_id has is only known once it is asked"


def test_what_is_clipped_is_said_also_where_nothing_is_asked() -> None:
    assert lines(clipped=WEEK, cached_share=1.0) == [
        "Nothing has to be asked: everything is in the cache.",
        "cut to what is available: 2026-11-01T00:00Z/2026-11-08T00:00Z",
    ]


def test_nothing_to_ask_about_is_not_called_cached() -> None:
    assert lines() == ["Nothing has to be asked: no studio, game or value fits the question."]


def test_twenty_pieces_are_shown_and_the_others_counted() -> None:
    assert len(lines(*[piece()] * 20)) == 21
    assert lines(*[piece()] * 23)[-1] == "  … and 3 more"
