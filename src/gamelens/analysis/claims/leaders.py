"""The finding about a leader: the largest of several estimates, compared with the next one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pandas import DataFrame

from gamelens.analysis.claims.findings import Finding, direction_of
from gamelens.analysis.significance import difference_of
from gamelens.analysis.tidy_frames import display_values


def leader(rows: DataFrame, by: str | None, value: str, *, kind: str, unit: str, numbers: Mapping[str, Any]) -> Finding:
    """Return what *rows*, one for each value of *by* with low and high, say about the largest *value*.

    Cases: "higher" and "no_clear_difference" by the interval of its difference from the next one, whose groups are
    independent of each other, "unknown" without that interval, "alone" for one value, "of_all" without *by*, and
    "not_known" without rows. Numbers: those given, name, value, value_low, value_high, next, next_value.
    """
    if not len(rows):
        return Finding(kind=kind, case="not_known", unit=unit, numbers=numbers)
    ordered = rows.sort_values(value, ascending=False, kind="stable")
    names = display_values(ordered[by]).tolist() if by else [""]
    best, *others = ordered[[value, "low", "high"]].astype("float64").to_numpy().tolist()
    numbers = {**numbers, "name": names[0], "value": best[0], "value_low": best[1], "value_high": best[2]}
    subject = {by: names[0]} if by else {}
    if not others:
        return Finding(
            kind=kind, case="alone" if by else "of_all", subject=subject, unit=unit, judged="model", numbers=numbers
        )
    size, low, high = difference_of(tuple(best), tuple(others[0]))
    direction = direction_of(low, high)
    return Finding(
        kind=kind,
        case=direction.replace(" ", "_"),
        subject=subject,
        direction=direction,
        size=size,
        low=low,
        high=high,
        unit=unit,
        judged="model",
        numbers={**numbers, "next": names[1], "next_value": others[0][0]},
    )
