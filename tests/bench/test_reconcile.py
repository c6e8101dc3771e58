"""Differences between two answers, by cause: every cause that can be planted, alone and in pairs.

The players are simulated, and the causes planted in their events; the other answer is counted in plain Python.

Run by `make bench`.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Final, NamedTuple, cast

import pytest

from gamelens.client.sync_client import Client
from gamelens.raw_events.lake_client import LakeClient
from gamelens.raw_events.reconciliation.reconcile import Reconciliation, reconcile
from support.two_answers import (
    CAUSES,
    LEAST,
    NAMES,
    OVER,
    Happened,
    OtherService,
    lake_of,
    largest_error,
    planted_shares,
    shares,
    simulated_events,
)

QUERIES: Final = (
    ("event_count", None),
    ("event_count", "country_code"),
    ("event_count", "ilrd_network_name"),
    ("revenue", None),
    ("user_unique", None),
    ("user_unique", "country_code"),
    ("session_unique", "country_code"),
)
SEEDS: Final = (1, 2)
PLAYERS: Final = 1500


class World(NamedTuple):
    """Events and the lake that has them."""

    events: list[Happened]
    lake: LakeClient


@pytest.fixture(scope="module", params=SEEDS)
def world(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Yield simulated players with every cause planted."""
    folder = tmp_path_factory.mktemp("world")
    events = simulated_events(request.param, folder / "export", players=PLAYERS)
    with lake_of(events, folder) as lake:
        yield World(events, lake)


def differs(causes: tuple[str, ...], metric: str, by: str | None) -> bool:
    """Return whether each of *causes* can change an answer."""
    of_split = {"first", "last"}
    return (
        (("networks" in causes) == (by == "ilrd_network_name"))
        and (by == "country_code" or not of_split & {*causes})
        and (metric in ("user_unique", "session_unique") or "approximate" not in causes)
    )


def found(world: World, causes: tuple[str, ...], metric: str, by: str | None) -> Reconciliation:
    """Return the reconciliation with a service that counts by the rules of *causes*."""
    return reconcile(cast(Client, OtherService(world.events, causes)), world.lake, metric, by=by, over=OVER)


def test_one_cause_gets_its_difference(world: World) -> None:
    """At least 95 % of each difference goes to the cause that was planted."""
    tried, least = 0, 1.0
    for cause in CAUSES:
        for metric, by in QUERIES:
            if not differs((cause,), metric, by):
                continue
            result = found(world, (cause,), metric, by)
            if (result.frame["difference"] == 0).all():
                continue
            share = shares(result).get(NAMES[cause], 0.0)
            assert share >= LEAST, (cause, metric, by, shares(result))
            tried, least = tried + 1, min(least, share)
    print(f"\n{len(world.events):,} events, {tried} answers: {least:.1%} to the right cause at least")
    assert tried > 40


def test_two_causes_get_theirs(world: World) -> None:
    """At least 95 % of each difference goes to the two; in 95 % of the answers each gets its share but for 5 points.

    A service that dates by arrival has no late events and no wrong clocks, so arrival is not planted beside those.
    """
    tried, least = 0, 1.0
    errors: list[float] = []
    for pair in combinations(CAUSES, 2):
        if NAMES[pair[0]] == NAMES[pair[1]] or ("arrival" in pair and {*pair} & {"skew", "as of", "closed"}):
            continue
        for metric, by in QUERIES:
            if not differs(pair, metric, by):
                continue
            result = found(world, pair, metric, by)
            if (result.frame["difference"] == 0).all():
                continue
            right = sum(shares(result).get(NAMES[cause], 0.0) for cause in pair)
            assert right >= LEAST, (pair, metric, by, shares(result))
            if "approximate" not in pair:
                errors.append(largest_error(result, planted_shares(world.events, pair, metric, by)))
            tried, least = tried + 1, min(least, right)
    close = sum(error <= 1 - LEAST for error in errors)
    print(
        f"\n{len(world.events):,} events, {tried} answers: {least:.1%} to the right two at least; each its share "
        f"within 5 points in {close} of {len(errors)}, at most {100 * max(errors):.1f} points off"
    )
    assert tried > 120
    assert close >= LEAST * len(errors)
