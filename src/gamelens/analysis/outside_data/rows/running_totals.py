"""Running totals: amounts that include all days before. Where the header does not say so, the cells may.

`gl.read_table(path, cumulative="Spend to date")` takes them apart into the amounts of the days.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

import numpy as np
import pandas as pd
from msgspec import UNSET
from numpy.typing import NDArray
from pandas import DataFrame, Series

from gamelens.analysis.outside_data.outside_table import OutsideColumn, OutsideTable
from gamelens.analysis.outside_data.roles import (
    KEYS,
    SUMMANDS,
    Evidence,
    Meaning,
    Role,
    Vendor,
    concepts_in,
    header_meanings,
    lexicon,
)
from gamelens.analysis.outside_data.words.header_words import folded_header
from gamelens.errors import BadQuery

Floats = NDArray[np.float64]

_FEWEST_DAYS: Final = 7
_MANY_DAYS: Final = 14
_GROWTH: Final = 3.0  # of fewer days than many, from the first to the last
_SHARE_OF_STEPS: Final = 0.7
_CORRECTED: Final = 0.1  # of the steps, those down in a running total that was corrected
_DOWN: Final = 0.25  # the most of a number that a correction takes away
_RAMP: Final = 0.05  # a day: costs that grow less than their days differ also fall
_STEADY: Final = 0.9  # the growth rate of the second half by the rate of the first, at least
_DOUBLED: Final = 1.7  # what a running total of a day is on the next, nearly
_FEW_KEYS: Final = 2  # of several, one falls some day
_SCALED: Final = 1.5  # from the first third of days to the last
_LIKE_COUNTS: Final = 0.8  # of the logarithm of the growth
_MUCH: Final = 3.0  # times the largest difference: a first total that is more has days before
_UNITS: Final = {"week": "W", "month": "M", "quarter": "Q", "year": "Y"}
_UNIT_OF_CONCEPT: Final = {
    "week_to_date": "week",
    "month_to_date": "month",
    "quarter_to_date": "quarter",
    "year_to_date": "year",
}
FACTS: Final = (*_UNITS, "restarts", "corrected", "first", "before", "gaps")
"""What can be said of a running total: see `cumulative` of `gl.read_table`."""
OF_NAMES: Final = ("first", "before")
"""What can be said of the rows of some names alone."""
_EITHER: Final = ({*_UNITS}, {"restarts", "corrected"}, {"first", "before"})
_MOMENT: Final = pd.Timedelta(microseconds=1)
_MOST_NAMES: Final = 20  # in a step
_FIRST_ROWS: Final = 1_000
_FIRST_KEYS: Final = 20
_MOST_KEYS: Final = 500
_ADDED_UP: Final = ("amount", "count", "number")
_FEWEST_STEPS: Final = 6  # from a total to the next, that an amount of their rows explains
_FEWEST_PROVEN: Final = 5  # rows behind the first of a running total that adds up another column in each of them
_PROVEN: Final = "its cells"
_EXPLAINED: Final = 0.95  # of the steps; others are corrections
_ROUNDED: Final = 0.015  # of a difference of amounts in hundredths
_OF_STEP: Final = 0.01  # at most, whatever the digits of its total
_MUCH_OF_STEP: Final = 10 * _ROUNDED


class OfNames(NamedTuple):
    """A fact of a running total that holds for the rows of some names."""

    fact: str
    names: tuple[str, ...]


Fact = str | OfNames


def running_total(column: OutsideColumn) -> BadQuery:
    """Return the exception for a running total where the amounts of days are needed."""
    name = column.name
    rule = f'is a running total, which has all days before in each row: cumulative="{name}" takes its differences'
    return BadQuery(name, UNSET, f'{rule} by day, roles={{"{name}": "cost"}} takes rows as of one day each')


def growth_problem(table: OutsideTable, column: OutsideColumn) -> BadQuery | None:
    """Return the question about an amount by day that only grows, in all keys with at least a week of days.

    A running total may begin anew with each month. Costs that are raised day by day are taken if they grow at a steady
    rate, or as much as a count beside them that falls some day: a running total grows at a falling rate, by about one
    day's part of all days so far, and whatever the clicks of the day are. Of simulated running totals of steady costs
    at most 3% are taken (of costs that grow by 2% a day 6%), and of costs that are raised by 8% a day and never fall
    15% are asked about (`tests/bench/test_running_totals.py`).
    """
    if table.period not in ("day", "time") or column.role != "amount" or column.evidence[0].where != "header":
        return None
    number = _key_numbers(table)
    series: list[Floats] = []
    for most in (_FIRST_KEYS, _MOST_KEYS):  # of nearly all files one of the first keys falls some day
        keys = pd.unique(number if most == _MOST_KEYS else number[:_FIRST_ROWS])[:most]
        rows = np.flatnonzero(np.isin(number, keys))
        series = [amounts for amounts in _by_key(table, column, number, rows) if len(amounts) >= _FEWEST_DAYS]
        if not series or not all(map(_only_grows, series)):
            return None
    if (len(series) <= _FEW_KEYS and all(map(_is_ramp, series))) or _grows_with_a_count(table, column):
        return None
    name = column.name
    has_fallen = any((np.diff(amounts) < 0).any() for amounts in series)
    rule = f"grows with {'nearly ' if has_fallen else ''}every day, as a running total does"
    step = f'pass roles={{"{name}": "{column.money_word}"}} if each row is of its day alone'
    return BadQuery(name, UNSET, f'{rule}: {step}, or cumulative="{name}" if it has the days before')


def with_running_totals(table: OutsideTable, roles: Mapping[str, Any]) -> OutsideTable:
    """Return a table whose amounts and counts are running totals where the cells say so, whatever the headers do.

    The differences of one, row after row of the same names, are another column of these rows. It may begin anew with a
    week, a month, a quarter or a year. What *roles* say of a column stays; a unit that it
    states says nothing of the days before.
    """
    table = _with_proven_totals(table, roles)
    columns = [column for column in table.of_role(*_ADDED_UP) if column.problem is None]
    possible = [column for column in columns if column.evidence[0].where != "the argument"]
    if len(columns) < 2 or not possible or table.period in (None, "period"):
        return table
    pairs = [(total, day) for total in possible for day in columns if total is not day and day.role != "number"]
    fitting = _fitting(pairs, table, _key_numbers(table))
    if fitting is None:
        fitting = _fitting(pairs, table, _key_numbers(table, "currency", "identifier", "text", "flag"))
    if not fitting:
        return table
    found = {total.name: day for total, day in fitting}
    return replace(
        table,
        columns=tuple(
            replace(
                column,
                role="cumulative",
                evidence=(Evidence("cumulative", "its cells", f"adds up {found[column.name].name}"), *column.evidence),
                currencies=None,
                money_problem=None,
            )
            if column.name in found
            else column
            for column in table.columns
        ),
    )


def _with_proven_totals(table: OutsideTable, roles: Mapping[str, Any]) -> OutsideTable:
    """Return a table whose columns are running totals where each is the sum of another one so far, in every row.

    Rows are added up as the file has them, from its top or from its end, in all or for each of their names.
    """
    of_numbers = [column for column in table.of_role(*_ADDED_UP, "cumulative") if column.problem is None]
    decided = {name for name, stated in roles.items() if isinstance(stated, str) or {*stated} == {"role"}}
    taken_apart = {column.name for column in of_numbers if column.evidence[0].says == "amounts of days"}
    possible = [column for column in of_numbers if column.name not in decided | taken_apart]
    numbers = [np.zeros(len(table.rows), dtype="int32")]
    numbers += [_key_numbers(table)] if any(column.role in KEYS for column in table.columns) else []
    proven: dict[str, str] = {}
    for total in possible:
        for day in of_numbers:
            if day is total or day.name in proven or day.role == "cumulative":
                continue
            totals, amounts = (column.values.to_numpy(dtype="float64", na_value=np.nan) for column in (total, day))
            if any(_is_sum_so_far(totals, amounts, number) for number in numbers):
                proven[total.name] = day.name
                break
    columns = []
    for column in table.columns:
        if column.name in proven:
            says = Evidence("cumulative", _PROVEN, f"adds up {proven[column.name]}")
            evidence = (says, *column.evidence)
            column = replace(column, role="cumulative", evidence=evidence, currencies=None, money_problem=None)
        columns.append(column)
    return replace(table, columns=tuple(columns)) if proven else table


def _is_sum_so_far(totals: Floats, amounts: Floats, number: NDArray[np.int32]) -> bool:
    """Return whether *totals* are the sums of *amounts* so far in every row of the same *number*, in either order."""
    known = ~np.isnan(totals)
    if np.isnan(amounts[known]).any() or known.sum() < _FEWEST_PROVEN:
        return False
    for step in (1, -1):
        rows = np.flatnonzero(known)[::step]
        first = rows[:_FIRST_ROWS]
        if abs(amounts[rows[0]] - totals[rows[0]]) > _ROUNDED + 1e-9 * abs(totals[rows[0]]):
            continue
        for some in (first, rows):  # of nearly all columns the first rows differ
            so_far = Series(amounts[some]).groupby(number[some]).cumsum().to_numpy()
            is_alike = np.abs(so_far - totals[some]) <= _ROUNDED + 1e-9 * np.abs(totals[some])
            if not is_alike.all():
                break
        else:
            is_told = np.abs(so_far - amounts[rows]) > _MUCH_OF_STEP
            is_told &= np.abs(amounts[rows]) > _MUCH_OF_STEP
            if is_told.sum() >= _FEWEST_PROVEN:
                return True
    return False


def _fitting(
    pairs: Sequence[tuple[OutsideColumn, OutsideColumn]], table: OutsideTable, number: NDArray[np.int32]
) -> Sequence[tuple[OutsideColumn, OutsideColumn]] | None:
    """Return the *pairs* of a running total and its amounts by day, None where names have two rows of a day."""
    for most in (_FIRST_KEYS, _MOST_KEYS):  # of nearly all files no pair fits the first keys
        keys = pd.unique(number if most == _MOST_KEYS else number[:_FIRST_ROWS])[:most]
        rows = np.flatnonzero(np.isin(number, keys))
        at = table.starts.iloc[rows].to_numpy(dtype="datetime64[us]")
        rows, at = rows[~np.isnat(at)], at[~np.isnat(at)]
        order = np.lexsort((at, number[rows]))
        rows, at = rows[order], at[order]
        is_next = number[rows[1:]] == number[rows[:-1]]
        if (is_next & (at[1:] == at[:-1])).any():
            return None
        begins = np.any([of_unit[1:] != of_unit[:-1] for of_unit in _units_of(at)], axis=0)
        pairs = [(total, day) for total, day in pairs if _adds_up(total, day, rows, is_next, begins)]
        if not pairs:
            break
    return pairs


def _units_of(days: NDArray[np.datetime64]) -> list[NDArray[Any]]:
    """Return the week, the month, the quarter and the year of each of *days* as numbers."""
    months = days.astype("datetime64[M]").astype("int64")
    return [
        (days.astype("datetime64[D]").astype("int64") + 3) // 7,
        months,
        months // 3,
        months // 12,
    ]  # day 0 was a Thursday


def _adds_up(
    total: OutsideColumn, day: OutsideColumn, rows: NDArray[np.int64], is_next: NDArray[np.bool_], begins: Any
) -> bool:
    """Return whether the steps of *total* from row to row of the same names are *day*, or it begins anew with it."""
    totals, amounts = (column.values.iloc[rows].to_numpy(dtype="float64", na_value=np.nan) for column in (total, day))
    amounts, before, after = amounts[1:], totals[:-1], totals[1:]
    rounded = _ROUNDED + np.minimum(1e-9 * np.abs(after), _OF_STEP * np.abs(amounts))  # not of an identifier's digits
    is_known = is_next & ~np.isnan(before) & ~np.isnan(after) & ~np.isnan(amounts)
    is_step = is_known & (np.abs(after - before - amounts) <= rounded)
    is_told = (np.abs(amounts) > _MUCH_OF_STEP) & (np.abs(before) > _MUCH_OF_STEP)
    is_anew = is_known & ~is_step & begins & (np.abs(after - amounts) <= rounded)
    steps = int((is_step & is_told).sum())
    others = int((is_known & is_told & ~is_step & ~is_anew).sum())
    return steps >= _FEWEST_STEPS and steps >= _EXPLAINED * (steps + others) and steps >= int((is_anew & is_told).sum())


def stated_totals(
    argument: str | Sequence[str] | Mapping[str, Any], columns: Sequence[str], source: str
) -> dict[str, tuple[Fact, ...]]:
    """Return the columns that are running totals by the argument `cumulative`, and what it says of each.

    Raises:
        BadQuery: a column is not there, or what is said of it is not possible.
    """
    names = [argument] if isinstance(argument, str) else argument
    stated: dict[str, tuple[Fact, ...]] = {}
    for name in names:
        if name not in columns:
            raise BadQuery("cumulative", name, f"is not a column of {source}", columns)
        facts = argument[name] if isinstance(argument, Mapping) else ()
        if isinstance(facts, Mapping):
            stated[name] = tuple(OfNames(fact, tuple(of_names)) for fact, of_names in facts.items())
        else:
            stated[name] = (facts,) if isinstance(facts, str) else tuple(facts)
        for fact in stated[name]:
            if isinstance(fact, OfNames):
                if fact.fact not in OF_NAMES:
                    raise BadQuery("cumulative", fact.fact, "is not said of some names alone", OF_NAMES)
            elif fact not in FACTS:
                raise BadQuery("cumulative", fact, f"is not said of a running total such as {name}", FACTS)
        for either in _EITHER:
            if len(both := [fact for fact in stated[name] if isinstance(fact, str) and fact in either]) > 1:
                raise BadQuery("cumulative", both, f"contradict each other: say one of them of {name}")
    return stated


def meaning_of_differences(name: str, stated: Meaning | None, vendor: Vendor | None) -> Meaning:
    """Return what the differences of a running total are: an amount, or a count if its header or an argument says so.

    Raises:
        BadQuery: it is something else, such as a rate.
    """
    evidence = Evidence("amounts of days", "the argument", "cumulative")
    from_vendor = vendor.meaning_of(name) if vendor else None
    known = stated or from_vendor or next(header_meanings(name), None)
    if known is None or known.role not in {*SUMMANDS, "cumulative", "number", "rate", "rank", "distinct", "stock"}:
        return Meaning("amount", evidence)
    if known.role == "cumulative":
        concepts = {concept.name: concept.role for concept in lexicon().values()}
        is_count = concepts.get(known.concept) == "count"
        concept = known.concept if concepts.get(known.concept) in SUMMANDS else ""
        return replace(known, role="count" if is_count else "amount", evidence=evidence, concept=concept)
    if known.role not in SUMMANDS:
        rule = f'is a {known.role}, which has no differences by day: roles={{"{name}": "cost"}} if it is one'
        raise BadQuery("cumulative", name, rule)
    return replace(known, evidence=evidence)


def with_amounts_of_days(table: OutsideTable, stated: Mapping[str, Sequence[Fact]]) -> OutsideTable:
    """Return a table with the *stated* running totals as the amounts of its days.

    They are the differences of the rows that have the same names, in the order of days; the first is as it is. What the
    facts of `stated_totals` leave open is a problem of the column.
    """
    columns, notes = [], [*table.notes]
    for column in table.columns:
        parts = () if column.weight is None else vars(column.weight).values()
        if any(name in parts for name in stated):
            column = replace(column, weight=None)  # a rate of all days before, not of its day
        if column.name in stated and column.problem is None:
            try:
                values, of_column = _differences(table, column, stated[column.name])
            except BadQuery as problem:
                column = replace(column, problem=problem)
            else:
                is_count = column.values.dtype == "Int64"
                column = replace(column, values=values.astype("Int64") if is_count else values)
                notes += of_column
        columns.append(column)
    return replace(table, columns=tuple(columns), notes=tuple(notes))


@dataclass(frozen=True, eq=False)
class _Totals:
    """The known totals of a column in the order of names and days, and what their rows say."""

    table: OutsideTable
    name: str
    facts: Sequence[str]
    rows: DataFrame

    def problem(self, mask: Series[Any], rule: str, steps: Mapping[str, str], more: str = "") -> BadQuery:
        """Return the question about the rows of *mask*, with what each fact of *steps* would mean."""
        rows, name = self.rows, self.name
        first = rows[mask].sort_values("row").iloc[0]
        others = f", and {int(mask.sum()) - 1} more" if mask.sum() > 1 else ""
        values = {str(key): f"{value:,.10g}" for key, value in first.items() if isinstance(value, float)}
        day = f"{first['at']:%Y-%m-%d}"
        said = rule.format(row=self.table.rows[int(first["row"])], day=day, **values)
        choices = []
        for fact, meant in steps.items():
            listed = ", ".join(f'"{known}"' for known in (*self.facts, fact))
            listed = f"[{listed}]" if self.facts else listed
            choices.append(f'cumulative={{"{name}": {listed}}} {meant.format(day=day, **values)}')
        return BadQuery(name, UNSET, f"{said}{others}: {', '.join([*choices, *([more] if more else [])])}")


def _differences(table: OutsideTable, column: OutsideColumn, stated: Sequence[Fact]) -> tuple[Series[Any], list[str]]:
    """Return the amount of each row of a running total, NA where none is known.

    Raises:
        BadQuery: the table has no days, or the totals can be taken apart in several ways.
    """
    name, notes = column.name, list[str]()
    facts = [fact for fact in stated if isinstance(fact, str)]
    of_names = {fact.fact: _rows_named(table, fact.names) for fact in stated if isinstance(fact, OfNames)}
    _check_days(table, name)
    rows = DataFrame({"row": np.arange(len(table.rows)), "total": column.values.astype("float64"), "at": table.starts})
    if table.period == "time":
        rows["day"] = rows["at"].dt.floor("D")
        rows["end"] = rows["day"] + pd.Timedelta(days=1)
    else:
        rows["day"], rows["end"] = rows["at"], table.ends
    rows["names"] = _names_of_totals(table, name, rows)
    is_empty = rows["total"].isna() & rows["at"].notna()
    empty_days = rows.loc[is_empty, ["names", "day"]]
    rows = rows[rows["total"].notna() & rows["at"].notna()].sort_values(["names", "at"], kind="stable")
    values = Series(np.nan, index=range(len(table.rows)))
    if rows.empty:
        return values, notes
    rows["before"] = rows.groupby("names")["total"].shift()
    rows["change"] = rows["total"] - rows["before"]
    rows["is_first"] = rows["before"].isna()
    totals = _Totals(table, name, facts, rows)
    unit, begins_anew = _restarts(totals, _unit_of(name, facts), notes)
    _check_gaps(totals, begins_anew, unit, empty_days, notes)
    amounts = rows["change"].where(~(rows["is_first"] | begins_anew), rows["total"])
    later = amounts.where(~rows["is_first"]).groupby(rows["names"]).transform("max").fillna(0.0)
    is_opening = rows["is_first"] & (rows["day"] == rows["day"].min())
    is_doubtful = rows["is_first"] & (rows["total"] > _MUCH * later) & (rows["total"] != 0)
    if unit is not None:  # since the first day of a month, whatever else is there
        is_doubtful = is_opening & (rows["day"] != _first_of(rows["day"], unit)) & (rows["total"] != 0)
    if "before" in facts:
        amounts = amounts.mask(is_opening)
        notes.append(f"{name}: the totals of the first day, {rows['day'].min():%Y-%m-%d}, have days before; left out")
        is_doubtful &= ~is_opening
    if (named := of_names.get("before")) is not None:
        is_before = is_opening & named[rows["row"]]
        amounts = amounts.mask(is_before)
        is_doubtful &= ~is_before
        notes.append(f"{name}: {int(is_before.sum())} totals of the first day have days before; left out")
    if (named := of_names.get("first")) is not None:
        is_doubtful &= ~named[rows["row"]]
    if is_doubtful.any() and "first" not in facts:
        rule = "is a running total that may have days before its first row: row {row} ({day}) has {total}"
        steps = {"first": "takes this as the amount of its day"}
        if is_opening[is_doubtful].any() and "before" not in facts:
            steps["before"] = "leaves the first day of the table out"
        more = "" if is_opening[is_doubtful].all() else "or, if names were changed, write the names of the days before"
        if is_doubtful[is_opening].any() and not is_doubtful[is_opening].all():
            names = _names_of(table, rows["row"][is_opening & is_doubtful], rows["row"][is_opening & ~is_doubtful])
            of_some = f'cumulative={{"{name}": {{"before": {names!r}}}}} leaves out the first day of these names alone'
            more = of_some if names else more
        raise totals.problem(is_doubtful, rule, steps, more)
    values = Series(amounts.round(9).to_numpy(), index=rows["row"].to_numpy()).reindex(values.index)
    start = rows["day"].min()
    notes.append(
        f"{name}: the running totals are taken apart into amounts by {(table.period or 'day').partition(' ')[0]}"
    )
    if "before" not in facts:
        notes[-1] += f", the totals of {start:%Y-%m-%d} as they are"
    return values, notes


def _rows_named(table: OutsideTable, names: Sequence[str]) -> NDArray[np.bool_]:
    """Return the rows with one of *names* in a column of names.

    Raises:
        BadQuery: no row has one of them.
    """
    found = np.zeros(len(table.rows), dtype=bool)
    of_names = [column for column in table.columns if column.role in {*KEYS, "text", "identifier"}]
    columns = [column.values.astype("object") for column in of_names]
    for name in names:
        rows = np.any([(column == name).fillna(False).to_numpy(dtype=bool) for column in columns], axis=0)
        if not np.any(rows):
            raise BadQuery("cumulative", name, f"is in no column of names of {table.source}")
        found |= rows
    return found


def _names_of(table: OutsideTable, rows: Series[Any], others: Series[Any]) -> list[str]:
    """Return the texts of *rows* in the first column of names that tells them from *others*, [] for none."""
    for column in [column for column in table.columns if column.role in KEYS]:
        texts = [*dict.fromkeys(str(text) for text in column.values.iloc[rows].dropna())]
        if texts and not {*texts} & {str(text) for text in column.values.iloc[others].dropna()}:
            return texts[:_MOST_NAMES]
    return []


def _check_days(table: OutsideTable, name: str) -> None:
    """Raise `BadQuery` if rows are not of consecutive days, weeks or months for sure."""
    if table.periods.problem is not None:
        raise table.periods.problem
    if table.period is None:
        rule = f'is a running total, and {table.source} has no days: name their column with roles={{"...": "day"}}'
        raise BadQuery(name, UNSET, rule)
    days = table.periods.column
    if table.period == "period" or not days:
        columns = [column.name for column in table.columns if column.role in ("start", "end")]
        rule = "is a running total, and its rows are of periods: say which column is the day of each total"
        if len(columns) > 1:
            rule += f', roles={{"{columns[0]}": "text", "{columns[1]}": "day"}}'
        raise BadQuery(name, UNSET, rule)
    if table.period not in ("day", "time"):
        said = table.column(days)
        if said.concept not in ("week", "month") and said.evidence[0].where != "the argument":
            unit = table.period.partition(" ")[0]
            rule = f"is a running total, and {days} has one day a {unit}: "
            rule += f'roles={{"{days}": "{unit}"}} if it names the {unit} that the total ends with, '
            rule += f'roles={{"{days}": "day"}} if it is the day that the total ends with'
            raise BadQuery(name, UNSET, rule)


def _names_of_totals(table: OutsideTable, name: str, rows: DataFrame) -> NDArray[np.int64]:
    """Return a number for the names of each row, that have one total a day.

    Names are keys and currencies, and as many other texts as tell two totals of a day apart.

    Raises:
        BadQuery: two totals of a day have the same names.
    """
    keys = [column.name for column in table.columns if column.role in {*KEYS, "currency"}]
    others = [column.name for column in (*table.of_role("identifier"), *table.of_role("text", "flag"))]
    known = rows["total"].notna() & rows["at"].notna()
    codes = {key: pd.factorize(table.column(key).values)[0] for key in (*keys, *others)}
    for names in (keys, *([*keys, other] for other in others), [*keys, *others]):
        frame = DataFrame({"": 0} | {key: codes[key] for key in names}, index=rows.index)
        group = frame.groupby([*frame.columns], sort=False).ngroup()
        twice = DataFrame({"group": group, "at": rows["at"]})[known].duplicated(keep=False)
        if not twice.any():
            return np.asarray(group, dtype="int64")
    first = twice[twice].index[0]
    same = (group == group[first]) & (rows["at"] == rows.loc[first, "at"]) & known
    rule = f"is a running total, and {table.grid.rows_text(same.to_numpy())} have the same day and the same names"
    raise BadQuery(name, UNSET, f"{rule}: add the column that tells them apart, or leave one out of the file")


def _unit_of(name: str, facts: Sequence[str]) -> str | None:
    """Return after which a running total begins anew, as far as somebody says it: "month"."""
    said = [fact for fact in facts if fact in _UNITS]
    said += [_UNIT_OF_CONCEPT.get(concept.name, "") for concept, _, _ in concepts_in(folded_header(name))]
    return next(filter(None, said), None)


def _first_of(days: Series[Any], unit: str) -> Series[Any]:
    """Return the first day of the week, month, quarter or year of each of *days*."""
    first: Series[Any] = days.dt.tz_localize(None).dt.to_period(_UNITS[unit]).dt.start_time.dt.tz_localize("UTC")
    return first


def _restarts(totals: _Totals, unit: str | None, notes: list[str]) -> tuple[str | None, Series[Any]]:
    """Return the unit after which totals begin anew, and which rows do so.

    Raises:
        BadQuery: a total falls, and nothing says what that means.
    """
    rows, facts, name = totals.rows, totals.facts, totals.name
    falls = (rows["change"] < -1e-9) & ~rows["is_first"]
    changes = {span: _changes(rows, span) for span in _UNITS}
    if unit is not None:
        falls &= ~changes[unit]
    elif falls.any() and not {"restarts", "corrected"} & {*facts}:
        fitting = [span for span, begins in changes.items() if not (falls & ~begins).any()]
        is_same = {span: (falls | (rows["before"] == 0) | ~changes[span]).all() for span in fitting}
        unit = next((span for span in ("month", "week", "quarter", "year") if is_same.get(span)), None)
        if unit is not None:
            notes.append(f"{name} begins anew with each {unit}")
            falls &= False
        elif fitting:
            rule = (
                "is a running total that falls in row {row} ({day}), from {before} to {total}, with a new " + fitting[0]
            )
            steps = {
                fitting[0]: f"if it begins anew with each {fitting[0]}",
                "corrected": "counts {change} on that day",
            }
            raise totals.problem(falls, rule, steps)
    begins_anew = changes[unit] if unit is not None else Series(False, index=rows.index)
    if falls.any() and not {"restarts", "corrected"} & {*facts}:
        rule = "is a running total that falls in row {row} ({day}), from {before} to {total}"
        steps = {
            "corrected": "counts {change} on that day, as what was taken back",
            "restarts": "takes {total} as the amount of that day, if it begins anew there",
        }
        raise totals.problem(falls, rule, steps)
    if falls.any():
        count = f"{int(falls.sum())} time{'s' if falls.sum() > 1 else ''}"
        notes.append(f"{name} falls {count}: " + ("begun anew" if "restarts" in facts else "counted below 0"))
    return unit, begins_anew | (falls if "restarts" in facts else False)


def _changes(rows: DataFrame, unit: str) -> Series[Any]:
    """Return which rows are the first of their names in a week, month, quarter or year that is not the first."""
    begins = _first_of(rows["day"], unit)
    return ~rows["is_first"] & (begins != begins.groupby(rows["names"]).shift())


def _check_gaps(
    totals: _Totals, begins_anew: Series[Any], unit: str | None, empty_days: DataFrame, notes: list[str]
) -> None:
    """Raise `BadQuery` if a difference is of several days: the table has none between, or an empty cell.

    Names without a row on a day that others have spent nothing on it, unless they never have two days in a row.
    """
    rows = totals.rows
    if unit is not None and (is_cut := _first_of(rows["day"], unit) != _first_of(rows["end"] - _MOMENT, unit)).any():
        rule = f"begins anew with each {unit}, which row {totals.table.rows[rows['row'][is_cut].iloc[0]]} goes beyond: "
        raise BadQuery(totals.name, UNSET, rule + "pass totals by day")
    if "gaps" in totals.facts:
        return
    days = rows.drop_duplicates("day").sort_values("day")
    holes = (days["day"] != days["end"].shift()).cumsum().set_axis(days["day"])
    at, before = rows["day"], rows.groupby("names")["day"].shift()
    hole = at.map(holes)
    is_gap = before.notna() & (hole != before.map(holes))
    if unit is not None:  # of a total that begins anew, from its first day on
        first = _first_of(at, unit)
        is_whole = (first == at) | first.isin(days["day"]) & (first.map(holes) == hole)
        is_gap = is_gap & ~(begins_anew & is_whole)
    if len(empty_days):
        empty = empty_days.merge(rows[["names", "day", "row"]].assign(last=before), on="names", suffixes=("_empty", ""))
        after = empty[(empty["day_empty"] < empty["day"]) & ~(empty["last"] >= empty["day_empty"])]
        is_gap |= rows["row"].isin(after["row"])
    place = at.map(Series(range(len(days)), index=days["day"]))
    is_after_rest = before.notna() & ~begins_anew & (place - place.groupby(rows["names"]).shift() > 1)
    is_sparse = is_after_rest.groupby(rows["names"]).transform("sum") == before.notna().groupby(
        rows["names"]
    ).transform("sum")
    if count := int((is_after_rest & ~is_sparse).sum()):
        words = "row follows" if count == 1 else "rows follow"
        notes.append(
            f"{totals.name}: {count} {words} days that only other names have, taken as days without any amount"
        )
    is_gap |= is_after_rest & is_sparse
    if is_gap.any():
        rule = (
            "is a running total, and row {row} ({day}) has the amounts of several days, as those before have no total"
        )
        raise totals.problem(is_gap, rule, {"gaps": "counts them on that day"}, "or add the rows")


def _key_numbers(table: OutsideTable, *others: Role) -> NDArray[np.int32]:
    """Return a number of each row, which rows of the same key share, and of the same texts in columns of *others*."""
    number, most = np.zeros(len(table.rows), dtype="int32"), 1
    for key in [column for column in table.columns if column.role in {*KEYS, *others}]:
        codes = key.values.astype("category").cat.codes.to_numpy()
        most *= int(codes.max(initial=0)) + 2
        if most > np.iinfo("int32").max:
            number = pd.factorize(number)[0].astype("int32")
            most = (int(number.max()) + 1) * (int(codes.max()) + 2)
        number *= int(codes.max(initial=0)) + 2
        number += codes
        number += 1
    return number


def _by_key(
    table: OutsideTable, column: OutsideColumn, number: NDArray[np.int32], rows: NDArray[np.int64]
) -> Iterator[Floats]:
    """Yield the sums by day of each key of *rows*, in order; of each month, if they only fall with it."""
    is_known = (column.values.iloc[rows].notna() & table.starts.iloc[rows].notna()).to_numpy()
    rows = rows[is_known]
    day = table.starts.iloc[rows].to_numpy(dtype="datetime64[D]").astype("int64")
    amounts, group = column.values.iloc[rows].to_numpy(dtype="float64"), pd.factorize(number[rows])[0]
    if not len(day) or day.max() - day.min() < _FEWEST_DAYS - 1:
        return
    first, span = day.min(), day.max() - day.min() + 1
    place = group * span + day - first
    sums = np.bincount(place, amounts, minlength=span * (group.max() + 1)).reshape(-1, span)
    is_there = np.bincount(place, minlength=sums.size).reshape(-1, span) > 0
    days = np.arange(first, first + span).astype("datetime64[D]")
    begins = days.astype("datetime64[M]") == days
    for of_key, known in zip(sums, is_there, strict=True):
        months = np.cumsum(begins)[known]
        changes = np.flatnonzero(np.diff(months)) + 1
        falls = np.flatnonzero(np.diff(of_key[known]) < 0) + 1
        is_by_month = len(falls) > 0 and {*falls.tolist()} <= {*changes.tolist()}
        yield from np.split(of_key[known], changes) if is_by_month else [of_key[known]]


def _only_grows(amounts: Floats) -> bool:
    """Return whether amounts grow with every day, but for a few corrections if they grow much."""
    steps = np.diff(amounts)
    falls = steps < 0
    is_grown = (len(amounts) >= _MANY_DAYS and not falls.any()) or amounts[-1] >= _GROWTH * amounts[0]
    are_few = falls.sum() <= _CORRECTED * len(steps)
    is_small = bool((-steps[falls] <= _DOWN * amounts[:-1][falls]).all())
    return bool(are_few and is_small and (steps > 0).mean() >= _SHARE_OF_STEPS and is_grown)


def _is_ramp(amounts: Floats) -> bool:
    """Return whether amounts that only grow do so at a steady rate, from the first day on."""
    if amounts[0] <= 0:
        return False
    rates: Any = amounts[1:] / amounts[:-1] - 1
    half = len(rates) // 2
    is_steady = rates[-half:].mean() >= _STEADY * rates[:half].mean()
    return bool(is_steady and rates[0] + 1 < _DOUBLED and (amounts[-1] / amounts[0]) ** (1 / len(rates)) - 1 >= _RAMP)


def _grows_with_a_count(table: OutsideTable, column: OutsideColumn) -> bool:
    """Return whether a count that falls some day grows about as much from first to last as the amounts."""
    counts = {str(place): count.values for place, count in enumerate(table.of_role("count"))}
    by_day = DataFrame({**counts, "": column.values}).groupby(table.starts.dt.floor("D")).sum().astype("float64")
    third = len(by_day) // 3
    first, last = by_day.iloc[:third].sum(), by_day.iloc[-third:].sum()
    growth = np.log((last / first.where(first > 0)).where(last > 0))
    falls = (by_day.diff() < 0).any()
    are_like = (falls & (growth >= _LIKE_COUNTS * growth[""])).drop("")
    return bool(growth[""] >= np.log(_SCALED) and are_like.any())
