"""Definitions of retention, each against plain Python over the events, and the gap between any two."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from itertools import combinations
from pathlib import Path
from typing import Any, Final
from zoneinfo import ZoneInfo

import pandas as pd
import pyarrow.parquet as pq
import pytest

from gamelens.errors import BadQuery, NotYetAvailable
from gamelens.raw_events.lake_client import LakeClient, open_lake
from gamelens.raw_events.reconciliation.retention_definitions import (
    DEFINITIONS,
    retention_definitions,
    retention_gap,
)
from gamelens.receipts import Receipt
from gamelens.sandbox.server import open_bulk_load
from gamelens.sandbox.state.clock import Clock
from gamelens.simulator import Ledger, load_scenario, play_columns
from gamelens.wire.intervals import Interval

ENDS_ON: Final = date(2026, 11, 5)
AGES: Final = (1, 3, 7)
OVER: Final = "2026-10-18/2026-10-30"
ZONE: Final = "Europe/Berlin"  # whose clocks change on 2026-10-25
DAY: Final = timedelta(days=1)
Moments = dict[tuple[str, str], list[datetime]]


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[LakeClient, Moments]]:
    """Yield a lake of simulated players and the ledger of what they did."""
    state, ledger = tmp_path_factory.mktemp("retention") / "state", Ledger()
    scenario = load_scenario("small", players=900, days=25)
    clock = Clock()
    clock.freeze(datetime(2026, 11, 5, 12, tzinfo=UTC))
    with open_bulk_load(state, clock=clock, titles=scenario.titles) as load:
        load.take(play_columns(scenario, load.folder, ends_on=ENDS_ON, game_ids=load.game_ids, ledger=ledger))
    with open_lake(state, progress=False) as lake:
        yield lake, moments(ledger, state / "truth.parquet")


def moments(ledger: Ledger, path: Path) -> Moments:
    """Return the times of the events of each player, in order."""
    found: defaultdict[tuple[str, str], list[datetime]] = defaultdict(list)
    ledger.write(path)
    table = pq.read_table(path, columns=["game_id", "user_id", "client_ts"])
    for game, user, time_s in zip(*(column.to_pylist() for column in table.columns), strict=True):
        found[game, user].append(datetime.fromtimestamp(time_s, UTC))
    return {player: sorted(times) for player, times in found.items()}


def brute_force(played: Moments, definition: str, age: int, zone: str, ends: datetime) -> tuple[int, int]:
    """Return players who came back, and those of the cohort, by a definition."""
    interval = Interval.parse(OVER)
    returned = installs = 0
    for times in played.values():
        is_in, is_back = judged(definition, age, ZoneInfo(zone), times, interval, ends)
        installs += is_in
        returned += is_in and is_back
    return returned, installs


def judged(
    definition: str, age: int, zone: ZoneInfo, times: list[datetime], interval: Interval, ends: datetime
) -> tuple[bool, bool]:
    """Return whether a player with events at *times* is in the cohort, and came back."""
    first = times[0]
    if definition == "rolling 24 h":
        low = first + age * DAY
        return first in interval and low + DAY <= ends, any(low <= time < low + DAY for time in times)
    own = zone if definition == "calendar day in the zone" else UTC
    days = [time.astimezone(own).date() for time in times]
    returns_on = days[0] + age * DAY
    is_over = datetime.combine(returns_on + DAY, datetime.min.time(), own) <= ends
    wanted = interval.start.date(), interval.end.date()
    if definition == "return day UTC":
        return wanted[0] <= returns_on < wanted[1], returns_on in days
    is_back = max(days) >= returns_on if definition == "that day or later" else returns_on in days
    return wanted[0] <= days[0] < wanted[1] and is_over, is_back


@pytest.mark.shown_by(1)
@pytest.mark.parametrize("zone", [ZONE, "America/Los_Angeles", "Asia/Kolkata"])
def test_each_definition_is_exact(played: tuple[LakeClient, Moments], zone: str) -> None:
    """The counts are those of plain Python over the ledger, also where the clocks change."""
    lake, truth = played
    shown = retention_definitions(lake, AGES, over=OVER, zone=zone)
    assert len(shown) == len(DEFINITIONS) * len(AGES)
    assert shown["returned"].min() > 20
    for row in shown.to_dict("records"):
        expected = brute_force(truth, row["definition"], row["age"], zone, lake.available().end)
        assert (row["returned"], row["installs"]) == expected, row
        assert row["retention"] == expected[0] / expected[1]


def test_the_first_definition_is_that_of_the_service(played: tuple[LakeClient, Moments]) -> None:
    """Days of UTC by install day are what `retention` shows."""
    lake, _ = played
    shown = retention_definitions(lake, AGES, over=OVER).set_index(["definition", "age"])
    service = lake.retention(AGES, over=OVER)
    for age in (1, 3):
        rows = service[service["age"] == age]
        returned = (rows["retention"] * rows["installs"]).sum()
        assert shown["returned"]["calendar day UTC", age] == pytest.approx(returned)


def test_a_later_return_counts_at_least_as_much(played: tuple[LakeClient, Moments]) -> None:
    """Whoever came back on the day came back then or later."""
    shown = retention_definitions(played[0], AGES, over=OVER).set_index(["definition", "age"])["returned"]
    for age in AGES:
        assert shown["that day or later", age] > shown["calendar day UTC", age]


@pytest.fixture(scope="module")
def retention(played: tuple[LakeClient, Moments]) -> pd.Series[float]:
    """Return the retention by definition and age."""
    shown = retention_definitions(played[0], AGES, over=OVER, zone=ZONE)
    return shown.set_index(["definition", "age"])["retention"]


PAIRS = [pair if place % 2 else pair[::-1] for place, pair in enumerate(combinations(DEFINITIONS, 2))]
"""Every pair of definitions, half of them backwards."""


@pytest.mark.shown_by(4)
@pytest.mark.parametrize(("first", "second"), [*PAIRS, PAIRS[0][::-1]])
def test_terms_sum_to_the_gap(
    played: tuple[LakeClient, Moments], retention: pd.Series[float], first: str, second: str
) -> None:
    """Exactly, for every pair and age, and backwards with the other sign."""
    terms = retention_gap(played[0], first, second, AGES, over=OVER, zone=ZONE)
    sums = terms.groupby("age")["amount"].sum()
    assert len(terms) == 4 * len(AGES)
    for age in AGES:
        assert sums[age] == pytest.approx(retention[second, age] - retention[first, age], abs=1e-12)


def test_terms_name_the_players_that_differ(played: tuple[LakeClient, Moments]) -> None:
    """Of calendar days and a day later or after, only those who came back later differ."""
    lake, truth = played
    terms = retention_gap(lake, "calendar day UTC", "that day or later", [1], over=OVER).set_index("term")
    strict = brute_force(truth, "calendar day UTC", 1, ZONE, lake.available().end)
    loose = brute_force(truth, "that day or later", 1, ZONE, lake.available().end)
    assert terms["players"]["came back by the second only"] == loose[0] - strict[0]
    assert terms["players"].sum() == loose[0] - strict[0]
    assert terms["amount"]["came back by the second only"] == pytest.approx((loose[0] - strict[0]) / strict[1])


def test_cohorts_without_a_common_player_are_one_term(played: tuple[LakeClient, Moments]) -> None:
    """The cohort of one return day is another than that of the install day."""
    terms = retention_gap(played[0], "calendar day UTC", "return day UTC", [7], over="2026-10-20").set_index("term")
    assert terms["amount"]["players of the first cohort only"] != 0
    assert (terms["amount"].drop("players of the first cohort only") == 0).all()


def test_a_day_that_has_not_come_is_not_counted(played: tuple[LakeClient, Moments]) -> None:
    """Nobody is in the cohort then, and retention is unknown."""
    lake, _ = played
    over = f"{lake.available().end - 2 * DAY:%Y-%m-%d}"
    shown = retention_definitions(lake, [7], over=over).set_index("definition")
    assert shown["installs"]["calendar day UTC"] == 0
    assert pd.isna(shown["retention"]["calendar day UTC"])
    assert shown["installs"]["return day UTC"] > 0
    gap = retention_gap(lake, "calendar day UTC", "return day UTC", [7], over=over)
    assert gap["amount"].isna().all()
    receipt = Receipt.of(shown.attrs)
    assert (receipt.provenance.kind, receipt.asked.days) == ("lake", (7,))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"ages": []}, "whole numbers of days"),
        ({"ages": [0]}, "whole numbers of days"),
        ({"ages": [1.5]}, "whole numbers of days"),
        ({"zone": "Mars/Olympus"}, "not a time zone"),
        ({"zone": "../etc/passwd"}, "not a time zone"),
        ({"over": "2026-10-20T06:00Z/2026-10-21T06:00Z"}, "whole UTC days"),
        ({"second": "rolling"}, "not a definition"),
    ],
)
def test_bad_arguments_are_refused(played: tuple[LakeClient, Moments], arguments: dict[str, Any], message: str) -> None:
    """The error names the argument and what is allowed."""
    given: dict[str, Any] = {"first": DEFINITIONS[0], "second": DEFINITIONS[1], "over": OVER} | arguments
    with pytest.raises(BadQuery, match=message):
        retention_gap(played[0], **given)


def test_days_beyond_the_lake_are_refused(played: tuple[LakeClient, Moments], tmp_path: Path) -> None:
    """As every query of them is."""
    with pytest.raises(NotYetAvailable):
        retention_definitions(played[0], [1], over="2027-01-01/2027-01-03")
