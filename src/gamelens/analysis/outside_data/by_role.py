"""Several rows of one key become one, each column by its role. Nothing else adds up an outside table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import pandas as pd
from msgspec import UNSET
from numpy.typing import NDArray
from pandas import DataFrame, Series

from gamelens._text import counted
from gamelens.analysis.outside_data.outside_table import OutsideColumn, OutsideTable, may_be_money, money_roles
from gamelens.analysis.outside_data.rate_formulas import ColumnQuotient, Weight
from gamelens.analysis.outside_data.roles import concepts_in
from gamelens.analysis.outside_data.snapshots import Things, last_rows, names_apps, things_of
from gamelens.analysis.outside_data.words.header_words import folded_header
from gamelens.analysis.outside_data.words.topics import topic_pattern
from gamelens.errors import BadQuery

Groups = NDArray[np.int64]

_NUMBERS: Final = frozenset({"sum", "mean", "last"})
_HOWS: Final[dict[str, frozenset[str]]] = {
    "rank": frozenset({"best", "mean", "last"}),
    "rate": frozenset({"mean", "last"}),
    "distinct": frozenset({"mean", "last"}),
    **dict.fromkeys(("amount", "count", "number"), _NUMBERS),
    **dict.fromkeys(("price", "stock", "cumulative", "exchange_rate"), frozenset({"mean", "last"})),
    **dict.fromkeys(
        ("text", "network", "campaign", "app", "platform", "format", "country"), frozenset({"join", "last"})
    ),
}
_OF_A_DAY: Final = frozenset({"stock", "cumulative"})
"""Roles that are added up within a day, whatever is done over days."""
_ONE_A_DAY: Final = frozenset({"rank", "rate", "price", "distinct"})
"""Roles that have one value a day."""
_FEWEST_PARTS: Final = 4  # rows of a day that are its parts if none is below the one before
_MOST_NAMED: Final = 20  # texts in a step
_EQUAL: Final = frozenset({"distinct", "number", "cumulative", "stock"})
"""Roles whose equal values do not pass: two campaigns may each reach 100 players."""


class Combined(NamedTuple):
    """A column with one value for each key, the currency of each, and what a report says of it."""

    values: Series[Any]
    currencies: Series[Any] | None = None
    note: str = ""


def by_role(
    table: OutsideTable, names: Sequence[str], groups: Groups, count: int
) -> tuple[dict[str, Combined], dict[str, BadQuery]]:
    """Return the columns *names* with one row for each key, and why others cannot be put together.

    Args:
        table: the outside table.
        names: its columns.
        groups: the place of each row's key, -1 for a row that is left out.
        count: the number of keys.
    """
    combined: dict[str, Combined] = {}
    problems: dict[str, BadQuery] = {}
    rows = np.flatnonzero(groups >= 0)
    groups = groups[rows]
    is_single = len(np.unique(groups)) == len(groups)
    for name in names:
        column = table.column(name)
        how = table.how.get(name)
        try:
            if column.problem is not None:
                raise column.problem
            if is_single:
                place = Series(rows, index=groups).reindex(range(count))
                currencies = None if column.currencies is None else column.currencies.iloc[place].reset_index(drop=True)
                combined[name] = Combined(column.values.iloc[place].reset_index(drop=True), currencies)
            else:
                combined[name] = _combined(table, column, how, rows, groups)
        except BadQuery as error:
            problems[name] = error
    return combined, problems


def _combined(table: OutsideTable, column: OutsideColumn, how: str | None, rows: Groups, groups: Groups) -> Combined:
    """Return *column* with one value for each of *groups*.

    Raises:
        BadQuery: its role does not say how, or *how* is not possible.
    """
    values = column.values.iloc[rows].reset_index(drop=True)
    if column.role != "count":
        _check_one_kind(table, column, rows, groups)
    if column.role == "rank":
        _check_one_app(table, column, values, rows, groups)
    if how is not None:
        if how not in _HOWS.get(column.role, frozenset()):
            rule = f"is not possible for {column.name}, a {column.role}"
            rule += f': roles={{"{column.name}": "rank"}} says that it is a rank' if how == "best" else ""
            raise BadQuery("how", how, rule, sorted(_HOWS.get(column.role, ())))
        if column.role == "stock" and how == "last" and table.period is not None:
            return _levels(table, column, rows, groups)
        if column.role in _OF_A_DAY:
            values, rows, groups = _of_days(column, values, table, rows, groups)
        elif how == "last" and column.role in _ONE_A_DAY:
            _check_one_last(table, column, values, rows, groups)
        return Combined(_chosen(values, how, table, rows, groups), _one_currency(column, rows, groups))
    _check_one_kind(table, column, rows, groups)
    return _of_role(table, column, values, rows, groups)


def _of_role(table: OutsideTable, column: OutsideColumn, values: Series[Any], rows: Groups, groups: Groups) -> Combined:
    """Return *column* with one value for each of *groups*, as its role says.

    Raises:
        BadQuery: its role does not say how.
    """
    if column.role in ("amount", "count"):
        return Combined(_sums(values, groups), _one_currency(column, rows, groups))
    if column.role not in _EQUAL and (_same_in(values, groups)):
        return Combined(_firsts(values, groups), _one_currency(column, rows, groups))
    if column.role in ("rate", "price") and column.weight is not None:
        return Combined(_weighted(table, column, column.weight, rows, groups), _one_currency(column, rows, groups))
    if column.role == "stock" and table.period is not None:
        return _levels(table, column, rows, groups)
    if column.role == "cumulative" and table.period is not None:
        at = table.starts.iloc[rows].reset_index(drop=True)
        is_last = (at == at.groupby(groups).transform("max")).to_numpy()
        _check_no_parts_of_days(table, column, values[is_last], rows[is_last], groups[is_last])
        _one_currency(column, rows, groups)
        return Combined(_sums(values.where(is_last), groups), None)
    if column.role == "stock" and table.vendor is not None and table.periods.problem is None:
        return Combined(_sums(values, groups), None)  # a format without days is of one day
    raise _refusal(table, column, values, rows, groups)


def _levels(table: OutsideTable, column: OutsideColumn, rows: Groups, groups: Groups) -> Combined:
    """Return a stock with the last value of each thing in each key, added up over the things of a key."""
    _one_currency(column, rows, groups)
    known = column.values.iloc[rows].notna().to_numpy()
    rows, groups_known = rows[known], groups[known]
    at, things = table.starts.iloc[rows].reset_index(drop=True), things_of(table)
    is_last = last_rows(at, groups_known, things.codes[rows])
    if things.has_charts:  # an app stands in several, and has its level once
        twice = DataFrame({"group": groups_known, "thing": things.codes[rows], "is_last": is_last}).duplicated()
        is_last &= ~twice.to_numpy()
    values = column.values.iloc[rows].reset_index(drop=True).where(is_last)
    sums = values.groupby(groups_known).sum(min_count=1).reindex(range(int(groups.max(initial=-1)) + 1))
    note = ""
    if len(groups_known) > len(np.unique(groups_known)):
        note = _about_level(table, column, things, rows[is_last], groups_known[is_last])
    return Combined(sums.reset_index(drop=True), None, note)


def _about_level(table: OutsideTable, column: OutsideColumn, things: Things, rows: Groups, groups: Groups) -> str:
    """Return that a stock has the last of several rows, what it is added up over, and which things have an older last.

    *rows* are the last of each thing in each of *groups*.
    """
    over = [name for name in things.names if differs(table.column(name), rows, groups)]
    added = f", added up over {', '.join(over)}" if over else ""
    snapshots = Series(things.snapshots[rows])
    is_older = (snapshots < snapshots.groupby(groups).transform("max")).to_numpy()
    older = ""
    if is_older.any() and over:
        group = groups[is_older][0]
        in_group = rows[is_older & (groups == group)]
        names = DataFrame({name: table.column(name).values.iloc[in_group] for name in over})
        thing, others = repr(", ".join(map(str, names.iloc[0]))), len(names.drop_duplicates()) - 1
        more = f" and {counted(others, 'other')} have" if others else " has"
        last, before = table.starts.iloc[rows[groups == group]].max(), table.starts.iloc[in_group].max()
        when = f"on {last:%Y-%m-%d}" if before.date() < last.date() else f"at {last:%Y-%m-%d %H:%M}"
        older = f"; {thing}{more} none {when}, and the last before counts"
    rule = f"{column.name} is a level, whose rows do not add up: each key has the last{' of each' if over else ''}"
    return f'{rule}{added}{older}; roles={{"{column.name}": "count"}} adds up all rows'


def differs(column: OutsideColumn, rows: Groups, groups: Groups) -> bool:
    """Return whether *rows* of one of *groups* have several values of *column*."""
    return not _same_in(column.values.iloc[rows].reset_index(drop=True), groups)


def _check_one_app(
    table: OutsideTable, column: OutsideColumn, values: Series[Any], rows: Groups, groups: Groups
) -> None:
    """Raise `BadQuery` if the rows of a key are ranks of several apps, and the reader has chosen none."""
    for apps in [other for other in table.columns if names_apps(other) and other.name not in table.counted]:
        names = apps.values.astype("object").iloc[rows].reset_index(drop=True)
        ranked = (values.notna() & names.notna()).to_numpy()
        codes = Series(pd.factorize(names[ranked])[0])
        unlike = (codes != codes.groupby(groups[ranked]).transform("first")).to_numpy()
        if not unlike.any():
            continue
        other = int(unlike.argmax())
        first = int((groups[ranked] == groups[ranked][other]).argmax())
        pair = [names[ranked].iloc[place] for place in (first, other)]
        where = " and ".join(str(table.rows[rows[ranked][place]]) for place in (first, other))
        rule = f"is a rank, and one key has {pair[0]!r} and {pair[1]!r} of {apps.name} (rows {where}): choose one, "
        others = [name for name in apps.values.dropna().unique() if name != pair[0]]
        if len(others) <= _MOST_NAMED:
            rule += f"leave_out={ {apps.name: others}!r} leaves the rows of {pair[0]!r} alone"
        else:
            rule += f'pass a frame of it, table[table["{apps.name}"] == {pair[0]!r}]'
        rule += f', and over days how={{"{column.name}": "best"}}, "mean" or "last"; '
        raise BadQuery(column.name, UNSET, f"{rule}leave_out={ {apps.name: []}!r} takes all as one")


def _of_days(
    column: OutsideColumn, values: Series[Any], table: OutsideTable, rows: Groups, groups: Groups
) -> tuple[Series[Any], Groups, Groups]:
    """Return a stock with one value for each key and day, added up over what the rows of a day differ in.

    Of several times of a day each thing has its last.
    """
    _one_currency(column, rows, groups)
    at = table.starts.iloc[rows].reset_index(drop=True)
    if at.isna().all():
        return values, rows, groups
    if column.role == "stock":
        days = at.dt.floor("D")
        of_days = np.asarray(DataFrame({"group": groups, "at": days}).groupby(["group", "at"], dropna=False).ngroup())
        is_last = last_rows(at, of_days, things_of(table).codes[rows]) | at.isna().to_numpy()
        values, at = values[is_last].reset_index(drop=True), days[is_last].reset_index(drop=True)
        rows, groups = rows[is_last], groups[is_last]
    day = DataFrame({"group": groups, "at": at}).groupby(["group", "at"], sort=False, dropna=False).ngroup()
    first = ~day.duplicated().to_numpy()
    return _sums(values, np.asarray(day, dtype="int64")), rows[first], groups[first]


def _check_one_last(
    table: OutsideTable, column: OutsideColumn, values: Series[Any], rows: Groups, groups: Groups
) -> None:
    """Raise `BadQuery` if the last day of a key has several rows with different values."""
    at = table.starts.iloc[rows].reset_index(drop=True)
    is_last = (at == at.groupby(groups).transform("max")).to_numpy()
    if not is_last.any() or _same_in(values[is_last].reset_index(drop=True), groups[is_last]):
        return
    where = _two_rows(table, values[is_last].reset_index(drop=True), rows[is_last], groups[is_last])
    rule = f"has several rows on the last day of one key ({where}), none of them the last: "
    raise BadQuery(
        "how", "last", f"{column.name} {rule}leave_out= leaves others out, or make what they differ in part of on="
    )


def _check_no_parts_of_days(
    table: OutsideTable, column: OutsideColumn, values: Series[Any], rows: Groups, groups: Groups
) -> None:
    """Raise `BadQuery` if a running total has several rows a day that go on adding up, such as its hours."""
    steps = values.astype("float64").groupby(groups).diff().dropna()
    sizes = Series(groups).value_counts()
    if not len(steps) or sizes.max() < _FEWEST_PARTS or not (steps >= 0).all() or not (steps > 0).any():
        return
    place = int((groups == sizes.idxmax()).argmax())
    several = table.rows[rows[groups == groups[place]]]
    rule = (
        f"is a running total that goes on within a day, from row {several[0]} to row {several[-1]}, so its rows do not "
    )
    raise BadQuery(column.name, UNSET, f"{rule}add up: leave it out with columns=[...]")


def _sums(values: Series[Any], groups: Groups) -> Series[Any]:
    return values.groupby(groups).sum(min_count=1).reset_index(drop=True)


def _check_one_kind(
    table: OutsideTable, column: OutsideColumn, rows: Groups, groups: Groups, rate: str | None = None
) -> None:
    """Raise `BadQuery` if the rows of a key count different things, such as installs and clicks on links.

    *rate* is a rate that the counts are part of.
    """
    if column.kinds is None:
        return
    kinds = table.column(column.kinds).values.astype("object")
    is_used = column.values.iloc[rows].fillna(0).to_numpy() != 0
    used, groups = rows[is_used], groups[is_used]
    codes = Series(pd.factorize(kinds.iloc[used])[0])
    unlike = (codes != codes.groupby(groups).transform("first")).to_numpy()
    if not unlike.any():
        return
    other = int(unlike.argmax())
    first = int((groups == groups[other]).argmax())
    pair = [kinds.iloc[used[place]] for place in (first, other)]
    said = " and ".join("no value" if pd.isna(kind) else repr(kind) for kind in pair)
    where = f"rows {table.rows[used[first]]} and {table.rows[used[other]]}"
    verb = "counts" if column.role == "count" else "is of"
    rule = f"{verb} different things by {column.kinds}, {said} within one key ({where}): "
    stay = next(kind for kind in pair if not pd.isna(kind))
    others = [kind for kind in kinds.dropna().unique() if kind != stay]
    if kinds.iloc[used].notna().all() and len(others) <= _MOST_NAMED:
        rule += f"leave_out={{{column.kinds!r}: {others!r}}} leaves the rows of {stay!r} alone, "
    else:
        rule += f'pass a frame without the others, table[table["{column.kinds}"] == {stay!r}], '
    if rate is not None:
        raise BadQuery(rate, UNSET, f"is a rate of {column.name}, which {rule.removesuffix(', ')}")
    if column.role != "count":
        raise BadQuery(column.name, UNSET, f"{rule}leave_out={ {column.kinds: []}!r} takes them as one")
    raise BadQuery(column.name, UNSET, f'{rule}how={{"{column.name}": "sum"}} adds up all')


def _firsts(values: Series[Any], groups: Groups) -> Series[Any]:
    """Return the first value of each group that is known."""
    if isinstance(values.dtype, pd.CategoricalDtype):
        codes = values.cat.codes.where(values.notna())
        first = codes.groupby(groups).first().fillna(-1).astype("int64")
        return Series(pd.Categorical.from_codes(first.to_numpy(), dtype=values.dtype))
    return values.groupby(groups).first().reset_index(drop=True).astype(values.dtype)


def _same_in(values: Series[Any], groups: Groups) -> bool:
    """Return whether all values of a group are equal, missing ones too."""
    codes = Series(pd.factorize(values)[0])
    return bool((codes == codes.groupby(groups).transform("first")).all())


def _one_currency(column: OutsideColumn, rows: Groups, groups: Groups) -> Series[Any] | None:
    """Return the currency of each group.

    Raises:
        BadQuery: a group has amounts in several.
    """
    if column.currencies is None:
        return None
    if column.money_problem is not None:  # it is in several, and nothing says which row is in which
        raise column.money_problem
    known = column.currencies.iloc[rows].reset_index(drop=True).where(column.values.iloc[rows].notna().to_numpy())
    counts = known.groupby(groups).nunique()
    if (counts > 1).any():
        codes = sorted(known[groups == counts.idxmax()].dropna().unique())
        if not column.is_money:
            rule = f"may be money in {' and '.join(codes)} within one key, which do not add up: "
            none = f'roles={{"{column.name}": "rate"}} if it is no money and does not add up, '
            raise BadQuery(column.name, UNSET, f"{rule}{money_roles(column)}{none}or make the currency part of on=")
        rule = f'is in {" and ".join(codes)} within one key, which do not add up: pass rate={{"{codes[0]}": ...}}'
        raise BadQuery(column.name, UNSET, f"{rule} or a file of rates, or make the currency part of on=")
    return known.groupby(groups).first().reset_index(drop=True)


def _weighted(
    table: OutsideTable, column: OutsideColumn, weight: ColumnQuotient | Weight, rows: Groups, groups: Groups
) -> Series[Any]:
    """Return the quotient of sums, or the average by the weight, NA where the weights are 0."""
    if isinstance(weight, ColumnQuotient):
        parts = [table.column(name) for name in (weight.numerator, weight.denominator)]
        for part in parts:
            _check_one_kind(table, part, rows, groups, rate=column.name)
            _one_currency(part, rows, groups)
        above, below = (part.values.iloc[rows].astype("float64").reset_index(drop=True) for part in parts)
        if parts[1].role == "count":  # an empty cell beside a cost is no install
            below = below.mask(below.isna() & above.notna(), 0.0)
        if parts[0].role == "count":
            above = above.mask(above.isna() & below.notna(), 0.0)
        is_known = above.notna() & below.notna()
        sums = [part.where(is_known).groupby(groups).sum(min_count=1) for part in (above, below)]
        return (weight.factor * sums[0] / sums[1].where(sums[1] != 0)).reset_index(drop=True)
    by = table.column(weight.column)
    _check_one_kind(table, by, rows, groups, rate=column.name)
    if by.is_money:
        _one_currency(by, rows, groups)
    values, weights = (part.values.iloc[rows].astype("float64").reset_index(drop=True) for part in (column, by))
    weights = weights.where(values.notna())
    values = values.mask((values < 0) & (weights < 0), -values)  # of returns, whose number has the sign already
    totals = (values * weights).groupby(groups).sum(min_count=1), weights.groupby(groups).sum(min_count=1)
    return (totals[0] / totals[1].where(totals[1] != 0)).reset_index(drop=True)


def _chosen(values: Series[Any], how: str, table: OutsideTable, rows: Groups, groups: Groups) -> Series[Any]:
    if how == "sum":
        return _sums(values, groups)
    if how == "mean":
        return values.astype("float64").groupby(groups).mean().reset_index(drop=True)
    if how == "best":
        return values.groupby(groups).min().reset_index(drop=True)
    if how == "last":
        at = table.starts.iloc[rows].reset_index(drop=True)
        order = np.lexsort((np.arange(len(groups)), at.fillna(pd.Timestamp.min.tz_localize("UTC")).to_numpy(), groups))
        last = np.append(np.flatnonzero(np.diff(groups[order])), len(order) - 1) if len(order) else order
        return values.iloc[order[last]].reset_index(drop=True)
    texts = values.astype("object")
    joined = Series(
        [", ".join(dict.fromkeys(map(str, part.dropna()))) or None for _, part in texts.groupby(groups)], dtype="object"
    )
    return joined.astype("str").astype("category")


def _refusal(table: OutsideTable, column: OutsideColumn, values: Series[Any], rows: Groups, groups: Groups) -> BadQuery:
    """Return the exception for a column whose rows of one key have no value together."""
    name = column.name
    where = _two_rows(table, values, rows, groups)
    leave = "leave it out with columns=[...], or make it part of on="
    no_money = f'roles={{"{name}": "rank"}} if it is a rank, '
    no_money += "" if is_of_ranks(table) else f'roles={{"{name}": "count"}} if it adds up, '
    steps: Mapping[str, str] = {
        "rank": f'is a rank, which does not add up ({where}): how={{"{name}": "best"}}, "mean" or "last"',
        "rate": (
            f"is a rate, and the file does not say of what ({where}): "
            f'roles={{"{name}": {{"of": ["...", "..."]}}}} names its numerator and denominator, or {leave}'
        ),
        "price": (
            f"is a price, and the file has no units that weight it ({where}): "
            f'roles={{"{name}": {{"role": "price", "weight": "..."}}}}'
        ),
        "distinct": f"counts people once, so that rows do not add up ({where}): {leave}",
        "exchange_rate": f"is an exchange rate, which does not add up ({where}): pass the table as rate=",
        "number": (
            f"is a number, and nothing says of what ({where}): "
            f"{money_roles(column, table.columns) if may_be_money(table, column) else no_money}or {leave}"
        ),
    }
    rule = steps.get(
        column.role, f'differs within one key ({where}): how={{"{name}": "join"}} joins the texts, or {leave}'
    )
    if column.role in ("identifier", "flag", "currency", "day", "start", "end", "hour"):
        rule = f"differs within one key ({where}): {leave}"
    return BadQuery(name, UNSET, rule)


def is_of_ranks(table: OutsideTable) -> bool:
    """Return whether the name of a file, or a line beside the table, says that its numbers are ranks."""
    said = [folded_header(text) for text in (table.source.rpartition(".")[0], *table.grid.above)]
    charts = topic_pattern("chart_name")
    return any(charts.search(text) or any(known.name == "rank" for known, _, _ in concepts_in(text)) for text in said)


def _two_rows(table: OutsideTable, values: Series[Any], rows: Groups, groups: Groups) -> str:
    """Return the numbers of two rows of one key, different ones if there are."""
    codes = Series(pd.factorize(values)[0])
    unlike = (codes != codes.groupby(groups).transform("first")).to_numpy()
    other = int(unlike.argmax()) if unlike.any() else int(Series(groups).duplicated().to_numpy().argmax())
    first = int((groups == groups[other]).argmax())
    return f"rows {table.rows[rows[first]]} and {table.rows[rows[other]]}"
