"""Warnings of a query point at the line of the analyst's code, whichever method of whichever client it calls."""

from __future__ import annotations

import asyncio
import inspect
import warnings
from collections.abc import Callable

import httpx
import pytest
from pandas import DataFrame

from gamelens.client.async_client import AsyncClient
from gamelens.client.base_client import quiet_copy
from gamelens.client.sync_client import Client
from support.scripted_service import KEY, Script

ADDRESS = "http://127.0.0.8:1"


def series(**fields: object) -> Callable[[object], list[dict[str, object]]]:
    """Return an answer with one bucket and *fields*."""
    return lambda _: [{"result": fields, "timestamp": "2026-11-01T00:00:00Z"}]


@pytest.fixture(autouse=True)
def _surprise(script: Script) -> None:
    """Let the answers have a field that this version does not know: each frame has a warning."""
    script.answers["event_count"] = series(event_count=7, surprise="yes")


def marked_line(function: Callable[..., object]) -> int:
    """Return the line of *function* that ends with the comment `# here`."""
    lines, first = inspect.getsourcelines(function)
    return next(first + place for place, line in enumerate(lines) if line.endswith("# here\n"))


def places(caught: list[warnings.WarningMessage]) -> list[tuple[str, int]]:
    """Return file and line of each warning."""
    return [(it.filename, it.lineno) for it in caught]


def query(client: Client) -> DataFrame:
    """Query with a warning."""
    return client.query("event_count", over="2026-11-01")  # here


def refresh(client: Client) -> DataFrame:
    """Refresh with a warning, by a method that `accepts` does not decorate."""
    quiet = quiet_copy(client, Client).query("event_count", over="2026-11-01")
    return client.refresh(quiet)  # here


@pytest.mark.parametrize("call", [query, refresh])
def test_a_warning_points_at_the_line_that_called_the_client(lens: Client, call: Callable[..., DataFrame]) -> None:
    """The line is the first one outside the package, however many frames of it lie between."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call(lens)
    assert places(caught) == [(__file__, marked_line(call))]


async def query_async(client: AsyncClient) -> DataFrame:
    """Query with a warning."""
    return await client.query("event_count", over="2026-11-01")  # here


def test_a_warning_points_at_the_line_that_awaits_the_client(script: Script) -> None:
    """The same for a client whose methods are awaited."""

    async def main() -> None:
        async with AsyncClient(api_key=KEY, metrics_url=ADDRESS, transport=httpx.ASGITransport(script.app())) as client:
            await query_async(client)

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        asyncio.run(main())
    assert places(caught) == [(__file__, marked_line(query_async))]


def test_a_quiet_client_does_not_warn(lens: Client) -> None:
    """Its texts are in the receipt alone; a warning would be an error in this test."""
    frame = quiet_copy(lens, Client).query("event_count", over="2026-11-01")
    assert len(frame.attrs["gamelens"]["warnings"]) == 1


@pytest.mark.parametrize(("length", "is_long"), [(570.0, False), (86_400.0, False), (442_000_000.0, True)])
def test_a_mean_session_above_a_day_is_remarked_on(
    make_lens: Callable[..., Client], script: Script, length: float, is_long: bool
) -> None:
    """A mean that a `session_end` counted from 1970 makes is a warning in the receipt, with its size."""
    script.answers["session_length"] = series(session_length=length, session_unique=2, total_session_length=1)
    with warnings.catch_warnings(record=True):
        warnings.simplefilter("always")
        frame = make_lens().query("session_length", over="2026-11-01")
    warned = [text for text in frame.attrs["gamelens"]["warnings"] if "is above a day in 1 row" in text]
    assert len(warned) == is_long
    assert not is_long or "442,000,000 s (5,115.7 days)" in warned[0]
    assert list(frame.columns[-3:]) == ["session_length", "session_length_count", "session_length_sum"]
