"""The finding about a leader: the largest of several estimates, compared with the next one."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from pandas import DataFrame

from gamelens.analysis.claims.findings import Finding, JudgedBy, direction_of
from gamelens.analysis.significance import difference_of
from gamelens.analysis.tidy_frames import display_values
from gamelens.analysis.wilson_intervals import wilson

LEAD = ("lead", "lead_low", "lead_high")
"""Columns of a result with the largest value as a multiple of the next one, and its interval."""


def leader(
    rows: DataFrame,
    by: str | None,
    value: str,
    *,
    kind: str,
    unit: str,
    numbers: Mapping[str, Any],
    judged: JudgedBy = "model",
) -> Finding:
    """Return what *rows*, one for each value of *by* with low and high, say about the largest *value*.

    It is compared with the next one by the columns `LEAD`, if they are there, else by the difference of both, whose
    groups are independent of each other.

    Cases: "higher" and "no_clear_difference" by the interval of the comparison, "unknown" without one, "alone" for one
    value, "of_all" without *by*, and "not_known" without rows. Numbers: those given, measured_in (*unit*), name, value,
    value_low, value_high, next, next_value.
    """
    if not len(rows):
        return Finding(kind=kind, case="not_known", unit=unit, numbers=numbers)
    ordered = rows.sort_values(value, ascending=False, kind="stable")
    names = display_values(ordered[by]).tolist() if by else [""]
    best, *others = ordered[[value, "low", "high"]].astype("float64").to_numpy().tolist()
    numbers = {
        "measured_in": unit,
        **numbers,
        "name": names[0],
        "value": best[0],
        "value_low": best[1],
        "value_high": best[2],
    }
    subject = {by: names[0]} if by else {}
    if not others:
        return Finding(
            kind=kind, case="alone" if by else "of_all", subject=subject, unit=unit, judged=judged, numbers=numbers
        )
    if is_multiple := LEAD[0] in ordered:
        size, low, high = ordered[[*LEAD]].astype("float64").iloc[0]
    else:
        size, low, high = difference_of(tuple(best), tuple(others[0]))
    direction = direction_of(low, high, neutral=1.0 if is_multiple else 0.0)
    return Finding(
        kind=kind,
        case=direction.replace(" ", "_"),
        subject=subject,
        direction=direction,
        size=size,
        low=low,
        high=high,
        unit="ratio" if is_multiple else unit,
        judged="counted" if is_multiple and math.isnan(low) else judged,
        numbers={**numbers, "next": names[1], "next_value": others[0][0]},
    )


def largest_loss(steps: DataFrame) -> Finding:
    """Return the finding about the step of a funnel that the largest share of the players before it does not reach.

    *steps* has name and players, as `gamelens.raw_events.funnel` returns it.
    """
    players = steps["players"].astype("float64")
    lost = steps.assign(before=players.shift(), lost=players.shift() - players)
    lost = lost[lost["before"] > 0]
    lost["low"], lost["high"] = wilson(lost["lost"], lost["before"])
    lost["share"] = lost["lost"] / lost["before"]
    return leader(lost, "name", "share", kind="players lost", unit="share", numbers={}, judged="players")
