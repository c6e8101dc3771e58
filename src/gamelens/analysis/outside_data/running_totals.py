"""Running totals: amounts that include all days before. Where the header does not say so, the cells may."""

from __future__ import annotations

from typing import Final

from msgspec import UNSET
from pandas import DataFrame

from gamelens.analysis.outside_data.outside_table import OutsideColumn, OutsideTable
from gamelens.analysis.outside_data.roles import KEYS
from gamelens.errors import BadQuery

_FEWEST_DAYS: Final = 7
_MANY_DAYS: Final = 14
_GROWTH: Final = 3.0
_SHARE_OF_STEPS: Final = 0.7


def running_total(column: OutsideColumn) -> BadQuery:
    """Return the exception for a running total where the amounts of days are needed."""
    rule = "is a running total, which has all days before in each row: take its differences by day"
    return BadQuery(
        column.name, UNSET, f'{rule}, or pass roles={{"{column.name}": "cost"}} if rows are of one day each'
    )


def growth_problem(table: OutsideTable, column: OutsideColumn) -> BadQuery | None:
    """Return the question about an amount by day that only grows, in all keys with at least a week of days."""
    if table.period not in ("day", "time") or column.role != "amount" or column.evidence[0].where != "header":
        return None
    keys = {str(place): key.values for place, key in enumerate(table.columns) if key.role in KEYS}
    rows = DataFrame({**keys, "day": table.starts.dt.floor("D"), "value": column.values.astype("float64")}).dropna(
        subset=["day", "value"]
    )
    if rows["day"].nunique() < _FEWEST_DAYS:
        return None
    by_day = rows.groupby([*keys, "day"], observed=True, dropna=False)["value"].sum().reset_index()
    groups = (
        by_day.groupby([*keys], observed=True, dropna=False)["value"] if keys else by_day.groupby(lambda _: 0)["value"]
    )
    steps, days = groups.diff(), groups.transform("size")
    judged = days >= _FEWEST_DAYS
    taken = steps[judged].dropna()
    if taken.empty or (taken < 0).any() or (taken > 0).mean() < _SHARE_OF_STEPS:
        return None
    is_steep = groups.transform("last") >= _GROWTH * groups.transform("first")
    if not (is_steep | (days >= _MANY_DAYS))[judged].all():
        return None
    name = column.name
    rule = "grows with every day, as a running total does"
    step = f'pass roles={{"{name}": "{column.money_word}"}} if each row is of its day alone'
    return BadQuery(name, UNSET, f'{rule}: {step}, or roles={{"{name}": "cumulative"}} if it has the days before')
