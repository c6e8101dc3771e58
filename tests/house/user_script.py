"""Script that uses every public name as a user does, for the type checker only."""

from __future__ import annotations

import asyncio
from datetime import date
from pathlib import Path

import pandas as pd

import gamelens as gl
from gamelens import dim, local, raw_events


def connected() -> gl.Client:
    """Return a client of `connect`, and construct one by hand."""
    lens: gl.Client = gl.connect()
    lens = gl.demo("small", cache=False)
    with gl.Client(
        api_key="…",
        metrics_url="https://metrics.example.com",
        cache=Path("cache"),
        pace="adaptive",
        max_days=31,
        max_wait_s=60,
        refresh_s=3600,
        max_answer_bytes=1 << 29,
        allow_http=False,
        progress=None,
        record="recorded",
        replay=None,
    ) as other:
        other.close()
    return lens


def lists(lens: gl.Client) -> list[str]:
    """Return the names that every list method gives."""
    available: gl.Interval = lens.available()
    frames: list[pd.DataFrame] = [lens.studios(over=available), lens.games(over=available, studios=["s1"])]
    values: list[str] = lens.dimension_values("platform", over="last 7 complete days", studios="s1", games=["1001"])
    return [*lens.metrics(), *lens.dimensions(), *values, *(name for frame in frames for name in frame.columns)]


def queried(lens: gl.Client) -> pd.DataFrame:
    """Return a query with every argument, after planning, resuming and refreshing it."""
    where = (dim.platform == "ios") & dim.country_code.isin(["US", "NA"]) | ~(dim.build == "1.0")
    frame: pd.DataFrame = lens.query(
        ["revenue", "returning_users"],
        by=["game", "country_code"],
        over=(date(2026, 11, 1), "2026-11-07"),
        every="week",
        where=where,
        top=20,
        games=["1001"],
        studios="s1",
        when_unavailable="clip",
        deadline_s=30,
        on_error="gaps",
        other=True,
        check=False,
        whole_buckets=False,
        to="pandas",
        progress=False,
        since_days_ago=7,
    )
    plan = lens.plan(
        "revenue",
        by="game",
        over="last 90 complete days",
        every="day",
        where={"platform": "ios"},
        top=None,
        games=None,
        studios=None,
        when_unavailable="wait",
        deadline_s=None,
        on_error="raise",
        other=False,
        check=True,
        whole_buckets=True,
        to="arrow",
        progress=None,
        since_days_ago=None,
    )
    cost: tuple[int, float, float, int] = plan.requests, plan.seconds, plan.cached_share, len(plan.pieces)
    print(cost, plan)
    resumed = lens.resume(frame, deadline_s=30, on_error="gaps", progress=True)
    refreshed = lens.refresh(resumed, deadline_s=30, on_error="raise", progress=True)
    print(lens.restatements(), lens.restatements("revenue"), lens.describe("arpu").definition)
    if lens.cache is not None:
        print(lens.cache.info())
        lens.cache.clear()
    return refreshed


def cohorts(lens: gl.Client) -> pd.DataFrame:
    """Return retention, with every argument."""
    return lens.retention(
        [1, 3, 7],
        over="last 60 complete days",
        by="platform",
        games="1001",
        studios=["s1"],
        where=dim.is_paying == "true",
        when_unavailable="raise",
        deadline_s=60,
        on_error="gaps",
        to="polars",
        progress=None,
    )


def own_lake() -> pd.DataFrame:
    """Return rows of SQL over a lake of one's own."""
    with gl.open_lake("lake", organisation="acme", engine="duckdb", progress=False) as lake:
        opened: gl.LakeClient = lake
        opened.relation("events").limit(3)
        print(opened.query("revenue", over="yesterday"), opened.views())
        print(
            raw_events.count_events(opened, "yesterday", every="hour", zone="Asia/Tokyo", by=["device"], where="true")
        )
        print(raw_events.funnel(opened, ["Start", "Complete"], "yesterday", games="1001", confidence=0.9))
        print(raw_events.active_players(opened, "yesterday", away=7))
        print(raw_events.session_paths(opened, "yesterday", of="event_id_01", steps=3, top=5))
        print(raw_events.player_money(opened, "yesterday", days=1))
        return opened.sql("SELECT $n AS n", {"n": 1}, seconds=1, memory="1GB", rows=10)


def reconciled(lens: gl.Client) -> pd.DataFrame:
    """Return the causes of a difference, and of one between definitions of retention."""
    with gl.open_lake(local.sample_lake("lake", scenario="small")) as lake:
        found: gl.Reconciliation = gl.reconcile(lens, lake, "revenue", by="country_code", over="yesterday", every="day")
        print(found, found.frame, found.claim.text, found.explained_share)
        print(gl.reconcile(lens.query("revenue", over="yesterday"), lake, "revenue").causes)
        print(gl.retention_definitions(lake, [1, 7], over="last week", zone="Europe/Berlin"))
        return gl.retention_gap(lake, "calendar day UTC", "rolling 24 h", over="last week", zone="Europe/Berlin")


def joined(frame: pd.DataFrame) -> gl.Joined:
    """Return a frame joined with an external table, and export it."""
    both: gl.Joined = gl.join(frame, "spend.csv", on={"timestamp": "day", "country_code": "geo"}, how="left")
    print(both.report.matched_share, both.report.only_left, both.report.only_right)
    gl.export_csv(both.frame, "both.csv")
    gl.export_excel({"both": both.frame}, "both.xlsx")
    return both


async def awaited() -> pd.DataFrame:
    """Return a frame of the asynchronous client, after calling each of its methods."""
    async with gl.AsyncClient(
        api_key="…",
        metrics_url="https://metrics.example.com",
        cache=False,
        pace="guaranteed",
        max_days=None,
        max_wait_s=60,
        refresh_s=3600,
        max_answer_bytes=1 << 29,
        allow_http=False,
        progress=False,
        record=None,
        replay=Path("recorded"),
    ) as lens:
        available: gl.Interval = await lens.available()
        names: list[str] = await lens.metrics() + await lens.dimensions()
        names += await lens.dimension_values("platform", over=available, studios=None, games=None)
        print(names, lens.cache, await lens.studios(over=available), await lens.games(over=available, studios=None))
        frame = await lens.query(
            "revenue",
            by=None,
            over=available,
            every="all",
            where=None,
            top=None,
            games=None,
            studios=None,
            when_unavailable="raise",
            deadline_s=None,
            on_error="raise",
            other=False,
            check=False,
            whole_buckets=False,
            to="pandas",
            progress=None,
            since_days_ago=None,
        )
        plan = await lens.plan(
            "revenue",
            by=None,
            over="2026-11-01/P1W",
            every="month",
            where=None,
            top=None,
            games=None,
            studios=None,
            when_unavailable="raise",
            deadline_s=None,
            on_error="raise",
            other=False,
            check=False,
            whole_buckets=False,
            to="pandas",
            progress=None,
            since_days_ago=None,
        )
        print(plan.requests)
        back = await lens.retention(
            1,
            over=date(2026, 11, 1),
            by=["game"],
            games=None,
            studios=None,
            where=None,
            when_unavailable="raise",
            deadline_s=None,
            on_error="raise",
            to="pandas",
            progress=None,
        )
        frame = await lens.resume(frame, deadline_s=None, on_error="raise", progress=None)
        frame = await lens.refresh(frame, deadline_s=None, on_error="raise", progress=None)
        print(back, await lens.restatements(metric="revenue"), lens.describe("dau").fields)
        await lens.aclose()
    return frame


async def submitted(events: bytes) -> int:
    """Return how many events of a JSON array a collector rejected."""
    async with gl.CollectorClient(
        game_key="a" * 32, secret_key="b" * 40, collector_url="http://127.0.0.1:1"
    ) as collector:
        return len((await collector.submit(events)).rejected)


def server_and_session() -> tuple[type[gl.GameServer], type[gl.PlayerSession]]:
    """Return the classes that record and deliver events."""
    return gl.GameServer, gl.PlayerSession


def receipt_of(frame: pd.DataFrame) -> str | None:
    """Return when the numbers of a frame were asked for."""
    receipt: gl.Receipt = frame.lens.receipt
    return receipt.asked_at


def planned(lens: gl.Client) -> int:
    """Return the number of requests of a plan."""
    plan: gl.Plan = lens.plan("revenue", over="yesterday")
    return plan.requests


def error_details(error: gl.GamelensError) -> object:
    """Return the fields of each error class."""
    match error:
        case gl.BadQuery():
            return error.field, error.value, error.allowed, error.did_you_mean
        case gl.NotAdditive():
            return error.metric, error.use
        case gl.NotYetAvailable():
            return error.asked, error.available
        case gl.Truncated():
            return error.limit
        case gl.NotRecorded():
            return error.asked, error.nearest
        case gl.PartialResult():
            return error.frame, error.gaps
        case gl.RateLimited():
            return error.retry_after
        case gl.ServiceError():
            return error.status, error.message
        case gl.AuthError() | gl.Unreachable() | gl.Refused() | gl.Retryable():
            return str(error)
    return None


if __name__ == "__main__":
    lens = connected()
    print(own_lake(), reconciled(lens), lists(lens), joined(queried(lens)), cohorts(lens), asyncio.run(awaited()))
