"""Retention under several definitions, and the gap between any two in terms."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import msgspec
from pandas import DataFrame

from gamelens.analysis.claims.findings import Clause, Finding, direction_of, reads
from gamelens.analysis.tidy_frames import with_receipt
from gamelens.analysis.tidy_frames.columns import Column
from gamelens.analysis.tidy_frames.frame_requirements import requires
from gamelens.analysis.tidy_frames.returned_columns import named, returns
from gamelens.client.query.arguments import is_integer
from gamelens.client.tables.time_ranges import TimeRange
from gamelens.errors import BadQuery
from gamelens.receipts import QueryRecord, Receipt

if TYPE_CHECKING:
    from gamelens.raw_events.lake_client import LakeClient

DEFINITIONS: Final = (
    "calendar day UTC",
    "calendar day in the zone",
    "rolling 24 h",
    "return day UTC",
    "that day or later",
)
"""Definitions of retention at age N.

- `calendar day UTC`: installed on a UTC day of the interval, and an event N UTC days later.
- `calendar day in the zone`: the same with the days of a zone.
- `rolling 24 h`: installed on a UTC day of the interval, and an event from N times 24 hours after the install until a
  day later.
- `return day UTC`: an event on a UTC day of the interval, N days after the UTC day of the install. The cohorts
  installed N days before.
- `that day or later`: installed on a UTC day of the interval, and an event N UTC days later or after that.
"""

_AGES: Final = (1, 7, 30)
_MOST_AGE: Final = 3650
_RESIDUE: Final = 1e-9  # a share of one player of a billion: less is the noise of floats


@requires()
@returns(
    Column("definition", "text"),
    named("age"),
    named("retention", na="without players"),
    Column("returned", "count"),
    named("installs"),
    has_own_receipt=True,
)
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

    Claims: "retention by definition", one an age.

    Raises:
        BadQuery: an age, or the zone, is not allowed, or *over* has hours.
        NotYetAvailable: part of *over* is not in the lake.
    """
    players_by_age, receipt = _players_by_age(lake, ages, over, zone)
    rows: list[dict[str, Any]] = []
    for age, players in players_by_age.items():
        for number, name in enumerate(DEFINITIONS):
            installs = _count(players, players[f"in_{number}"])
            returned = _count(players, players[f"in_{number}"] & players[f"back_{number}"])
            retention = returned / installs if installs else None
            rows.append(
                {"definition": name, "age": age, "retention": retention, "returned": returned, "installs": installs}
            )
    return with_receipt(DataFrame(rows), receipt)


@reads("raw_events.retention_definitions", row_by_row=True)
def _read_definitions(shown: DataFrame) -> Iterator[Finding]:
    """Say how far apart the definitions are at each age."""
    for age, rows in shown.groupby("age", sort=True):
        ordered = rows[rows["retention"].notna()].sort_values("retention")
        numbers = {"age": age}
        if ordered.empty:
            yield Finding(kind="retention by definition", case="not_reached", unit="share", numbers=numbers)
            continue
        least, most = ordered.iloc[0], ordered.iloc[-1]
        yield Finding(
            kind="retention by definition",
            case="apart",
            size=float(most["retention"] - least["retention"]),
            unit="share",
            judged="counted",
            numbers={
                **numbers,
                "least": least["retention"],
                "most": most["retention"],
                "least_definition": least["definition"],
                "most_definition": most["definition"],
            },
        )


@requires()
@returns(
    named("age"),
    Column("term", "text"),
    Column(
        "amount",
        "points",
        "Difference",
        about="the amounts of an age sum to retention by the second less retention by the first",
        na="without players in a cohort",
    ),
    Column("players", "count", unit="players", about="that the term is about"),
    has_own_receipt=True,
)
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

    Claims: "retention gap", one an age.

    Raises:
        BadQuery: there is no such definition, or as in `retention_definitions`.
        NotYetAvailable: part of *over* is not in the lake.
    """
    for field, name in (("first", first), ("second", second)):
        if name not in DEFINITIONS:
            raise BadQuery(field, name, "is not a definition of retention", DEFINITIONS)
    players_by_age, receipt = _players_by_age(lake, ages, over, zone)
    places = (DEFINITIONS.index(first), DEFINITIONS.index(second))
    terms = (
        "players of the first cohort only",
        "came back by the second only",
        "came back by the first only",
        "players of the second cohort only",
    )
    rows: list[tuple[int, str, float, int]] = []
    for age, players in players_by_age.items():
        cohorts = [players[f"in_{place}"] for place in places]
        backs = [players[f"back_{place}"] for place in places]
        both = cohorts[0] & cohorts[1]
        of_first, of_second = (_share(players, cohort, back) for cohort, back in zip(cohorts, backs, strict=True))
        both_by_first, both_by_second = (_share(players, both, back) for back in backs)
        by_first, by_second = _count(players, both & backs[0] & ~backs[1]), _count(players, both & backs[1] & ~backs[0])
        amounts = [of_second - of_first, *[0.0 * (of_second - of_first)] * 3]  # NaN without players in a cohort
        if size := _count(players, both):
            amounts = [both_by_first - of_first, by_second / size, -by_first / size, of_second - both_by_second]
        counts = [_count(players, cohorts[0] & ~both), by_second, by_first, _count(players, cohorts[1] & ~both)]
        rows += zip([age] * len(terms), terms, amounts, counts, strict=True)
    return with_receipt(DataFrame(rows, columns=["age", "term", "amount", "players"]), receipt)


@reads("raw_events.retention_gap", row_by_row=True)
def _read_gap(gap: DataFrame, first: str, second: str) -> Iterator[Finding]:
    """Say which terms make the difference of two definitions at each age."""
    for age, rows in gap.groupby("age", sort=True):
        known = rows[rows["amount"].notna()]
        terms = known[known["amount"].abs() > _RESIDUE]
        size = float(terms["amount"].sum())
        names = ["amount", "players", "term"]
        parts = [
            Clause("term", dict(zip(names, row, strict=True)), part="amount")
            for row in terms[names].to_numpy().tolist()
        ]
        yield Finding(
            kind="retention gap",
            case="terms" if parts else "same" if len(known) else "not_reached",
            direction="unknown" if not parts else direction_of(size - _RESIDUE, size + _RESIDUE),
            size=size if len(known) else float("nan"),
            unit="share",
            judged="counted" if len(known) else None,
            numbers={"age": age, "first": first, "second": second, "terms": parts},
        )


def _share(players: DataFrame, cohort: Any, back: Any) -> float:
    size = _count(players, cohort)
    return _count(players, cohort & back) / size if size else float("nan")


def _count(players: DataFrame, rows: Any) -> int:
    return int(players.loc[rows, "players"].sum())


def _players_by_age(
    lake: LakeClient, ages: Sequence[int], over: TimeRange, zone: str
) -> tuple[dict[int, DataFrame], Receipt]:
    """Return the number of players for each combination of cohorts and returns, by age, and the receipt.

    Columns: `in_0`, `back_0` and so on for each definition (bool), players (int64).

    Raises:
        BadQuery: an age, or the zone, is not allowed, or *over* has hours.
        NotYetAvailable: part of *over* is not in the lake.
    """
    ages = tuple(ages)
    if not ages or not all(is_integer(age) and 1 <= age <= _MOST_AGE for age in ages):
        raise BadQuery("ages", ages, f"must be whole numbers of days, 1 to {_MOST_AGE:,}")
    try:
        ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise BadQuery("zone", zone, "is not a time zone: write it as Europe/Berlin") from None
    receipt = Receipt.of(lake.query("new_users", over=over).attrs)
    interval = receipt.interval
    if not interval or any(moment.hour or moment.minute for moment in (interval.start, interval.end)):
        raise BadQuery("over", str(interval), "must be whole UTC days")
    asked = QueryRecord(metric="retention", days=ages, over=receipt.asked.over, interval=str(interval))
    known, players = lake.available().end, {}
    for age in ages:
        moments = {
            "start": interval.start,
            "ends": interval.end,
            "known": known,  # no age is counted that was not over by then
            "wide_start": interval.start - timedelta(days=age + 2),
            "wide_ends": interval.end + timedelta(days=2),
        }
        plain = {name: moment.replace(tzinfo=None) for name, moment in moments.items()}
        players[age] = lake.sql(_PLAYERS_SQL, {"zone": zone, "age": age, **plain}, seconds=600.0)
    return players, msgspec.structs.replace(receipt, asked=asked)


def _local(moment: str) -> str:
    return f"CAST(timezone($zone, timezone('UTC', {moment})) AS DATE)"


_FLAGS: Final = [f"{flag}_{number}" for number in range(len(DEFINITIONS)) for flag in ("in", "back")]
_DAY: Final = "INTERVAL 1 DAY"
_PLAYERS_SQL: Final = f"""
    WITH installed AS (
        SELECT game_id, user_id, installed_at AS born, CAST(installed_at AS DATE) AS day,
            {_local("installed_at")} AS own_day
        FROM players WHERE installed_at >= $wide_start AND installed_at < $wide_ends
    ), seen AS (
        SELECT game_id, user_id,
            bool_or(events.day = installed.day + CAST($age AS INT)) AS on_day,
            bool_or({_local("ts")} = own_day + CAST($age AS INT)) AS on_own_day,
            bool_or(ts >= born + $age * {_DAY} AND ts < born + ($age + 1) * {_DAY}) AS in_time,
            bool_or(events.day >= installed.day + CAST($age AS INT)) AS later
        FROM installed JOIN events USING (game_id, user_id)
        WHERE ts < $known GROUP BY ALL
    ), judged AS (
        SELECT born >= $start AND born < $ends AND day + CAST($age + 1 AS INT) <= $known AS in_0,
            on_day AS back_0,
            timezone('UTC', timezone($zone, CAST(own_day + CAST($age + 1 AS INT) AS TIMESTAMP))) <= $known
                AND own_day >= CAST($start AS DATE) AND own_day < CAST($ends AS DATE) AS in_1,
            on_own_day AS back_1,
            born >= $start AND born < $ends AND born + ($age + 1) * {_DAY} <= $known AS in_2,
            in_time AS back_2,
            day + CAST($age AS INT) >= $start AND day + CAST($age AS INT) < $ends AS in_3,
            on_day AS back_3,
            in_0 AS in_4,
            later AS back_4
        FROM installed LEFT JOIN seen USING (game_id, user_id)
    )
    SELECT {", ".join(f"coalesce({flag}, FALSE) AS {flag}" for flag in _FLAGS)}, count(*) AS players
    FROM judged GROUP BY ALL"""  # noqa: S608
