"""Frames as the client returns them, with their receipts."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest
from pandas import DataFrame

import gamelens.notebook.accessor  # noqa: F401  (registers df.lens)

DAYS = pd.to_datetime(["2026-11-16", "2026-11-17"], utc=True).astype("datetime64[us, UTC]")
HOSTILE = "<img src=x onerror=alert(1)>"


def receipt(metric: str | list[str], by: list[str], every: str = "day", **more: Any) -> dict[str, Any]:
    """Return a receipt with the keys that the client promises."""
    query = {"metric": metric, "by": by, "over": "last 2 complete days", "every": every, "where": None, "top": None}
    query |= {"games": None, "studios": None, "interval": "2026-11-16T00:00Z/2026-11-18T00:00Z"}
    return {
        "asked": query,
        "asked_at": "2026-11-18T09:05:00+00:00",
        "as_of": "2026-11-18T09:00:00+00:00",
        "available": "2026-08-22T00:00Z/2026-11-18T09:00Z",
        "requests": 2,
        "retries": 0,
        "cached_share": 0.0,
        "gaps": [],
        "clipped": None,
        "truncated": False,
        "warnings": [],
        "version": "0.1.0",
        **more,
    }


@pytest.fixture
def networks() -> DataFrame:
    """Ad revenue of two days by network: one network is null, one has a hostile name."""
    frame = DataFrame(
        {
            "timestamp": DAYS.repeat(3),
            "ilrd_network_name": pd.Categorical(["AdMob", HOSTILE, None, "AdMob", HOSTILE, None]),
            "ilrd_revenue_event_count": pd.array([100, 10, 50, 100, 10, 50], dtype="Int64"),
            "ilrd_revenue_mean": [0.01] * 6,
            "ilrd_revenue": [1.0, 0.1, 0.5, 1.0, 0.1, 0.5],
            "ilrd_revenue_sum_cents": [100.0, 10.0, 50.0, 100.0, 10.0, 50.0],
        }
    )
    frame.attrs["gamelens"] = receipt("ilrd_revenue", ["ilrd_network_name"])
    return frame


@pytest.fixture
def players() -> DataFrame:
    """Active players of two days, without dimensions."""
    frame = DataFrame({"timestamp": DAYS, "user_unique": pd.array([10, 12], dtype="Int64")})
    frame.attrs["gamelens"] = receipt("user_unique", [])
    return frame


@pytest.fixture
def cohorts() -> DataFrame:
    """Two install days on two platforms, of which the second has not reached age 2."""
    frame = DataFrame(
        {
            "timestamp": DAYS.repeat(4),
            "age": pd.array([1, 1, 2, 2] * 2, dtype="Int64"),
            "platform": pd.Categorical(["ios", "android"] * 4),
            "retention": [0.5, 0.25, 0.2, 0.0, 0.4, 1.0, float("nan"), float("nan")],
            "installs": pd.array([10, 4, 10, 4, 20, 1, 20, 1], dtype="Int64"),
            "returned": pd.array([5, 1, 2, 0, 8, 1, None, None], dtype="Int64"),
        }
    )
    frame.attrs["gamelens"] = receipt("retention", ["platform"])
    return frame
