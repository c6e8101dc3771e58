"""Retention under several definitions, and the gap between any two in terms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pandas import DataFrame

from gamelens.client.tables.time_ranges import TimeRange
from gamelens.errors import BadQuery
from gamelens.raw_events.reconciliation.retention_players import (
    DEFINITIONS,
    RetentionRequest,
    counted_players,
    retention_request,
)
from gamelens.receipts import RECEIPT

if TYPE_CHECKING:
    from gamelens.raw_events.lake_client import LakeClient

_AGES = (1, 7, 30)


def retention_definitions(
    lake: LakeClient, ages: Sequence[int] = _AGES, *, over: TimeRange, zone: str = "America/Los_Angeles"
) -> DataFrame:
    """Return the retention of a lake at each of *ages* under each definition.

        gl.retention_definitions(lake, [1, 7], over="last 28 complete days", zone="Europe/Berlin")

    Players whose age was not over at the end of the lake are left out, under each definition by its own days.

    Args:
        lake: the lake.
        ages: days since install.
        over: the install days, and of `return day UTC` the days of return.
        zone: the zone of `calendar day in the zone`.

    Columns: definition (str), age (Int64), retention (float64, 0 to 1, NA without players), returned, installs (Int64).
    The receipt is in `df.attrs`.

    Raises:
        BadQuery: an age, or the zone, is not allowed, or *over* has hours.
        NotYetAvailable: part of *over* is not in the lake.
    """
    request = retention_request(lake, ages, over, zone)
    rows: list[dict[str, Any]] = []
    for age in request.ages:
        players = counted_players(lake, request, age)
        for number, name in enumerate(DEFINITIONS):
            installs = _count(players, players[f"in_{number}"])
            returned = _count(players, players[f"in_{number}"] & players[f"back_{number}"])
            retention = returned / installs if installs else None
            rows.append(
                {"definition": name, "age": age, "retention": retention, "returned": returned, "installs": installs}
            )
    kinds = {"definition": "str", "age": "Int64", "retention": "float64", "returned": "Int64", "installs": "Int64"}
    return _with_receipt(DataFrame(rows).astype(kinds), request)


def retention_gap(
    lake: LakeClient,
    first: str,
    second: str,
    ages: Sequence[int] = _AGES,
    *,
    over: TimeRange,
    zone: str = "America/Los_Angeles",
) -> DataFrame:
    """Return why retention differs between two definitions, in four terms that sum to the gap.

        gl.retention_gap(lake, "calendar day UTC", "rolling 24 h", [1], over="last 28 complete days")

    The terms go from the *first* definition to the *second*: players that only the cohort of the first has leave it; of
    the players in both, those who came back only by the second definition come back, and those who did only by the
    first do not; players that only the cohort of the second has join it. Without players in both the first term is the
    whole gap.

    Args:
        lake: the lake.
        first: a definition of `retention_definitions`.
        second: another one.
        ages: days since install.
        over: as in `retention_definitions`.
        zone: as in `retention_definitions`.

    Columns: age (Int64), term (str), amount (float64, a difference of shares; those of an age sum to retention by the
    second less retention by the first), players (Int64, the players that the term is about). The receipt is in
    `df.attrs`.

    Raises:
        BadQuery: there is no such definition, or as in `retention_definitions`.
        NotYetAvailable: part of *over* is not in the lake.
    """
    for field, name in (("first", first), ("second", second)):
        if name not in DEFINITIONS:
            raise BadQuery(field, name, "is not a definition of retention", DEFINITIONS)
    request = retention_request(lake, ages, over, zone)
    places = (DEFINITIONS.index(first), DEFINITIONS.index(second))
    rows = [row for age in request.ages for row in _gap_parts(counted_players(lake, request, age), places, age)]
    kinds = {"age": "Int64", "term": "str", "amount": "float64", "players": "Int64"}
    return _with_receipt(DataFrame(rows).astype(kinds), request)


def _gap_parts(players: DataFrame, places: tuple[int, int], age: int) -> list[dict[str, Any]]:
    """Return the four terms of one age."""
    cohorts = [players[f"in_{place}"] for place in places]
    backs = [players[f"back_{place}"] for place in places]
    both = cohorts[0] & cohorts[1]
    shares = [_share(players, cohort, back) for cohort, back in zip(cohorts, backs, strict=True)]
    of_both = [_share(players, both, back) for back in backs]
    size = _count(players, both)
    only = [_count(players, both & backs[place] & ~backs[1 - place]) for place in (0, 1)]
    if size:
        amounts = [of_both[0] - shares[0], only[1] / size, -only[0] / size, shares[1] - of_both[1]]
    else:
        amounts = [shares[1] - shares[0], 0.0, 0.0, 0.0]
    counts = [_count(players, cohorts[0] & ~both), only[1], only[0], _count(players, cohorts[1] & ~both)]
    names = (
        "players of the first cohort only",
        "came back by the second only",
        "came back by the first only",
        "players of the second cohort only",
    )
    return [
        {"age": age, "term": term, "amount": amount, "players": count}
        for term, amount, count in zip(names, amounts, counts, strict=True)
    ]


def _share(players: DataFrame, cohort: Any, back: Any) -> float:
    size = _count(players, cohort)
    return _count(players, cohort & back) / size if size else float("nan")


def _count(players: DataFrame, rows: Any) -> int:
    return int(players.loc[rows, "players"].sum())


def _with_receipt(frame: DataFrame, request: RetentionRequest) -> DataFrame:
    frame.attrs[RECEIPT] = request.receipt.to_json()
    return frame
