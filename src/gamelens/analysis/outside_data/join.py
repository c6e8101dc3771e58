"""Join of a frame with an external table: ad spend, holidays, exchange rates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from copy import deepcopy
from typing import Any, Final, Literal, NamedTuple

import msgspec
import numpy as np
import pandas as pd
from msgspec import UNSET
from numpy.typing import NDArray
from pandas import DataFrame, Series
from pandas.api.types import is_bool_dtype, is_datetime64_any_dtype, is_integer_dtype

from gamelens.analysis.ads.canonical_names import canonical_name
from gamelens.analysis.outside_data.by_role import Combined, by_role, differs
from gamelens.analysis.outside_data.calendars import of_each_day
from gamelens.analysis.outside_data.join_keys import NOBODY, On, left_key, merged_names, pairs_of, right_key
from gamelens.analysis.outside_data.match_report import (
    Joined,
    MatchReport,
    cut_short,
    double_counting,
    key_text,
    lookalikes,
    matched_share,
    of_one_platform,
    uncovered,
    without_days,
)
from gamelens.analysis.outside_data.outside_table import OutsideColumn, OutsideTable, check_wholes, money_roles
from gamelens.analysis.outside_data.read_table import read_table
from gamelens.analysis.outside_data.roles import KEYS, MEASURES, TIMES
from gamelens.analysis.outside_data.row_periods import periods_of_column
from gamelens.analysis.outside_data.snapshots import names_apps
from gamelens.analysis.outside_data.time_buckets import buckets_of
from gamelens.analysis.tidy_frames import warn_of_mixture
from gamelens.errors import BadQuery
from gamelens.receipts import RECEIPT, JoinedColumn, JoinRecord, Provenance, Receipt, merge_provenance

How = Literal["left", "inner", "right", "outer"]
CURRENCY: Final = "_currency"
"""End of the name of the column that has the currency of an amount."""
_ALLOWED: Final[dict[str, Sequence[str | None]]] = {
    "how": ("left", "inner", "right", "outer"),
    "validate": ("one_to_one per key", "one_to_one"),
    "aggregate": ("sum", None),
}
_MOST_NAMELESS: Final = 3
_MOST_COUNTRIES: Final = 5  # that a note names
_NO_MATCH: Final = -1


class _Right(NamedTuple):
    """The external table, ready to be joined.

    *keys* and *values* have one row for each key; *rows* are all rows that were read, by their numbers, and *group* is
    the place of each of them in *keys*, -1 if it was left out. *unknown* has names that the frame does not have.
    """

    keys: DataFrame
    values: DataFrame
    rows: DataFrame
    group: Series[Any]
    columns: dict[str, JoinedColumn]
    unknown: dict[str, tuple[str, ...]]
    notes: tuple[str, ...]
    is_finer: bool


def join(
    df: DataFrame,
    other: Any,
    *,
    on: On | None = None,
    how: How | Mapping[str, str] = "left",
    validate: Literal["one_to_one per key", "one_to_one"] = "one_to_one per key",
    aggregate: Literal["sum"] | None = "sum",
    columns: Sequence[str] | None = None,
    fold: bool | Sequence[str] = True,
    **reading: Any,
) -> Joined:
    """Return the frame *df* with the columns of *other* added, and a report of what matched.

    The table is read by `gl.read_table`, which shows what it means. Several rows of one key become one by the roles of
    their columns: amounts of one currency and counts are added up, rates weighted, levels such as followers have the
    last of each thing, added up and reported, and what has no value together, such as a rank, is refused if *columns*
    names it or nothing else is there, else left out and reported.

    Names of countries, networks, publishers, formats, platforms, games and campaigns match in any spelling, all other
    keys exactly and as text: "NA" is Namibia, "007" is not "7", the number 1001 is the game "1001". An empty cell of
    the table is a key too: it matches the frame's null group, and that group matches nothing else; but the group
    without an install_publisher matches only the name "Organic". Days, weeks (2026-W45) and months (2026-11) stand for
    their start, in UTC; rows that stand for more days than a bucket of the frame are refused. A table without numbers,
    such as holidays and events, holds on each day from its start to its end, and where it says "All" in each country.

    Columns: all of *df* with their dtypes, in its order, then all of *other*: counts Int64, amounts, rates and prices
    float64 ("12%" is 0.12), text category, flags boolean, times datetime64[us, UTC]. A name *df* has already
    gets the name of the file appended. Rows that only *other* has are last. Amounts have a column beside them,
    `Cost_currency` (category, ISO 4217, null where nothing says it), which `outside_data.in_dollars` reads.

    Args:
        df: a frame of `Client.query`.
        other: the path of a CSV, TSV, text or JSON (also .gz, .zip), Parquet or Excel file, a pandas or polars frame,
            an Arrow table, or a table of `gl.read_table`.
        on: names of columns with the same meaning, such as `{"country_code": "geo"}`, or names that both tables have.
            By default what the roles of the table say; days are compared in any case.
        how: which rows without a match stay, as in pandas; or how several rows of one key become one, by column:
            `{"rank": "best"}`, "mean", "last", "sum", or "join" for texts.
        validate: whether a key may be several times in *df*. By default it may, and the report warns that the external
            value is then in each of these rows. "one_to_one" refuses it.
        aggregate: None refuses a key that is several times in *other*.
        columns: the columns to add, by default all.
        fold: whether names match in any spelling.
        reading: how the table is read: all other arguments of `gl.read_table`, such as `rate`, `currency` and `names`.

    Raises:
        BadQuery: a name is missing, or something that is used has no meaning or several.
    """
    _check_arguments(how="left" if isinstance(how, Mapping) else how, validate=validate, aggregate=aggregate)
    if not isinstance(df, DataFrame):
        raise BadQuery("df", f"a {type(df).__name__}", 'is not a pandas frame: query with to="pandas"')
    if isinstance(how, Mapping):
        reading, how = {**reading, "how": {**reading.get("how", {}), **how}}, "left"
    table = read_table(other, **reading)
    pairs = pairs_of(on, df, table)
    table = of_each_day(table, df, pairs, columns or (), is_of_all=on is not None)
    left_keys = DataFrame({name: left_key(df[name]) for name in pairs}).reset_index(drop=True)
    right = _right(df, left_keys, table, pairs, columns, fold=bool(fold), is_refused=aggregate is None)
    matches = _matching_rows(left_keys, right.keys)
    repeats = np.asarray(left_keys.duplicated(keep=False)) & (matches != _NO_MATCH)
    if repeats.any() and validate == "one_to_one":
        key = key_text(left_keys[repeats].iloc[0])
        raise BadQuery("validate", validate, f"does not allow a key in several rows of the frame, as {key} is")
    frame, renamed = _joined_frame(df, left_keys, right.keys, right.values, matches, how, table.suffix)
    is_matched = matches != _NO_MATCH
    origins = [receipt.provenance for receipt in (Receipt.of(df.attrs), table.grid.receipt) if receipt]
    share, share_of = matched_share(df, Series(is_matched, index=df.index))
    report = MatchReport(
        source=table.source,
        on=pairs,
        how=how,
        rows=len(df),
        only_left=df[~is_matched],
        only_right=right.rows[~right.group.isin(matches[is_matched]).to_numpy()],
        matched_share=share,
        share_of=share_of,
        renamed=renamed,
        unknown=right.unknown,
        warnings=(
            *warn_of_mixture(origins),
            *table.notes,
            *right.notes,
            *_about_unknown(right.unknown, pairs, table),
            *lookalikes(left_keys, right.keys, pairs, table),
            *of_one_platform(df, pairs, table),
            *double_counting(right.values, matches, repeats, table),
            *(() if right.is_finer else cut_short(df, left_keys[is_matched], table)),
            *uncovered(df, left_keys[is_matched], pairs, table),
            *without_days(df, table),
        ),
    )
    described = {renamed.get(name, name): column for name, column in right.columns.items()}
    _copy_receipt(frame, df, report, origins, described)
    return Joined(frame, report)


def _right(
    df: DataFrame,
    left_keys: DataFrame,
    table: OutsideTable,
    pairs: dict[str, str],
    columns: Sequence[str] | None,
    *,
    fold: bool,
    is_refused: bool,
) -> _Right:
    """Return the external table with one row for each key.

    Raises:
        BadQuery: a key has several rows and *is_refused*, or these have no value together.
    """
    for name in columns or ():
        if table.column(name).role == "number" and "rate" in table.arguments.get("given", {}):
            step = money_roles(table.column(name), table.columns).removesuffix(", ")
            rule = f"is a number of {table.source}, which rate= does not convert: {step}"
            raise BadQuery(name, UNSET, rule)
    check_wholes(table, [*pairs.values()])
    keys: dict[str, Series[Any]] = {}
    shown: dict[str, Series[Any]] = {}
    unknown: dict[str, tuple[str, ...]] = {}
    notes: list[str] = []
    is_left_out, is_finer = Series(False, index=range(len(table.rows))), False
    for name, column in pairs.items():
        if is_datetime64_any_dtype(df[name]):
            periods = table.periods if column == table.periods.column else periods_of_column(column, table)
            buckets = buckets_of(df, left_keys[name], table, periods, column)
            keys[name], shown[column or "days"] = buckets.starts, periods.starts
            is_left_out |= buckets.is_left_out
            is_finer |= buckets.is_finer
            notes += buckets.notes
            if periods.note and periods.note not in table.notes:
                notes.append(periods.note)
        else:
            matched = right_key(table, column, left_keys[name], name, fold=fold)
            keys[name] = matched.keys
            shown[column] = matched.keys.replace({NOBODY: None}) if matched.keys.dtype == "str" else matched.keys
            unknown |= {name: matched.unknown} if matched.unknown else {}
            notes += _about_nameless(matched.nameless, column, name)
    of_rows = DataFrame(keys)[[*pairs]]
    kept = of_rows[~is_left_out]
    group = kept.groupby([*pairs], dropna=False, sort=False).ngroup()
    is_first = ~group.duplicated()
    if is_refused and not is_first.all():
        raise _repeated_key_error(kept, group, table)
    group = group.reindex(of_rows.index, fill_value=_NO_MATCH)
    notes += merged_names(table, pairs, keys, group)
    usual = [name for name in table.grid.columns if name not in pairs.values()]  # no publisher that a vendor implies
    brought = usual if columns is None else [*columns]
    combined, problems = by_role(table, brought, np.asarray(group, dtype="int64"), int(is_first.sum()))
    notes += [found.note for found in combined.values() if found.note]
    notes += _added_up_over(table, combined, np.asarray(group, dtype="int64"), brought)
    notes += _left_out(table, combined, problems, group, columns)
    notes += _of_one_country(df, pairs, [name for name in brought if name in combined])
    values: dict[str, Series[Any]] = {}
    described: dict[str, JoinedColumn] = {}
    for name in [name for name in brought if name in combined]:
        values[name] = combined[name].values
        if isinstance(values[name].dtype, pd.CategoricalDtype):
            values[name] = values[name].cat.remove_unused_categories()
        currencies, of_table = combined[name].currencies, table.column(name)
        if of_table.role == "amount" and name + CURRENCY not in {column.name for column in table.columns}:
            empty = Series([None] * int(is_first.sum()), dtype="str")
            values[name + CURRENCY] = (empty if currencies is None else currencies).astype("category")
        known = [] if currencies is None else currencies.dropna().unique().tolist()
        unit = known[0] if len(known) == 1 else "several" if known else "unknown"
        kind = _kind(of_table.role, is_money=of_table.is_money)
        described[name] = JoinedColumn(kind=kind, unit=unit if of_table.is_money else "")
        is_converted = "rate" in table.arguments.get("given", {})
        others = {*pairs.values(), *(combined.keys() - {name}), *table.how}
        notes += _about_column(of_table, others, is_converted=is_converted)
    count = range(int(is_first.sum()))
    return _Right(
        keys=kept[is_first].reset_index(drop=True),
        values=DataFrame(values, index=count),
        rows=DataFrame({column.name: column.values for column in table.columns} | shown)[
            [*shown, *(column.name for column in table.columns if column.name not in shown)]
        ].set_index(pd.Index(table.rows, name="row")),
        group=group,
        columns=described,
        unknown=unknown,
        notes=tuple(notes),
        is_finer=is_finer,
    )


def _about_nameless(texts: Sequence[str], column: str, field: str) -> list[str]:
    """Return a note on texts of a *column* that are no names, so that nothing of the frame is compared with them."""
    shown = ", ".join(map(repr, texts[:_MOST_NAMELESS])) + (", ..." if len(texts) > _MOST_NAMELESS else "")
    are = "is no name" if len(texts) == 1 else "are no names"
    return [f"{shown} of {column} {are}: {field} of these rows is not known"] if texts else []


def _of_one_country(df: DataFrame, pairs: Mapping[str, str], names: Sequence[str]) -> list[str]:
    """Return a note on columns that are called by a country, and stand in the rows of all countries of the frame."""
    if "country_code" not in df or "country_code" in pairs:
        return []
    countries = [name for name in names if canonical_name(name.strip(), "country") is not None]
    if not countries:
        return []
    are = "is of one country by its name, and stands" if len(countries) == 1 else "are of one country, and stand"
    return [f"{', '.join(countries[:_MOST_COUNTRIES])} {are} in the rows of all: query without country_code"]


def _about_column(column: OutsideColumn, known: Set[str], *, is_converted: bool) -> list[str]:
    """Return notes on a column that is added: what its numbers are in doubt of. The frame has the columns *known*.

    Where a rate converts the table, it stays as it is if nothing says its currency.
    """
    notes = []
    if column.kinds is not None and not known & {column.kinds, column.name}:
        notes.append(f"{column.name} counts different things by {column.kinds}, which is not in the frame")
    if column.role == "cumulative":
        step = f'cumulative="{column.name}" takes the amounts of its days'
        notes.append(f"{column.name} is a running total, which has all days before: {step}")
    is_said = column.currencies is not None or is_converted  # what is said contradicts itself, or is not enough
    if column.money_problem is not None and is_said:
        notes.append(f"{column.name} {column.money_problem.rule}")
    return notes


def _added_up_over(
    table: OutsideTable, combined: Mapping[str, Combined], group: NDArray[np.int64], brought: Sequence[str]
) -> list[str]:
    """Return a note on counts that are added up over the names of apps, where no other note says it."""
    counts = [name for name in combined if table.column(name).role == "count"]
    said = {name for name in brought if table.column(name).role == "app"}
    rows = np.flatnonzero(group >= 0)
    over = [
        column.name
        for column in table.columns
        if counts and names_apps(column) and column.name not in said and differs(column, rows, group[rows])
    ]
    is_one = len(counts) == 1
    return [f"{', '.join(counts)} {'is' if is_one else 'are'} added up over {', '.join(over)}"] if over else []


def _left_out(
    table: OutsideTable,
    combined: Mapping[str, Any],
    problems: Mapping[str, BadQuery],
    group: Series[Any],
    columns: Sequence[str] | None,
) -> list[str]:
    """Return notes on the columns that cannot be put together, and on those that rows of one key are added up over.

    Raises:
        BadQuery: one of them was asked for, or nothing else is there.
    """
    if not problems:
        return []
    roles = {name: table.column(name).role for name in (*combined, *problems)}
    if columns is not None:
        raise next(iter(problems.values()))
    is_left = any(roles[name] in MEASURES for name in combined)
    measures = [name for name in problems if roles[name] in MEASURES]
    if not is_left and measures:
        raise problems[measures[0]]
    texts = [name for name in problems if roles[name] == "text"]
    if not is_left and texts:
        joined = ", ".join(f'"{name}": "join"' for name in texts)
        several = group[group.duplicated(keep=False) & (group >= 0)]
        rows = ", ".join(dict.fromkeys(str(table.rows[place]) for place in several.index[:4]))
        rule = f"has several rows for one key (rows {rows}), and {', '.join(texts)} differ in them"
        raise BadQuery("other", table.source, f"{rule}: how={{{joined}}} joins the texts of a key")
    over = [name for name in problems if roles[name] in KEYS | TIMES]
    notes = [f"rows of one key are added up over {', '.join(over)}"] if over else []
    unlike = [name for name in problems if roles[name] in ("identifier", "flag", "text", "currency")]
    differ = "it differs" if len(unlike) == 1 else "they differ"
    notes += [f"{', '.join(unlike)} left out: {differ} within one key"] if unlike else []
    others = [name for name in problems if name not in over and name not in unlike]
    rules = {name: problems[name].rule for name in others}
    subjects = {name: "its cell" if rule.startswith("in row ") else "it" for name, rule in rules.items()}
    return [*notes, *(f"{name} left out: {subjects[name]} {rules[name]}" for name in others)]


def _kind(role: str, *, is_money: bool) -> str:
    """Return the kind of number that a column of *role* is, in the words of the tables."""
    kinds = {
        "rate": "money" if is_money else "share",
        "amount": "money",
        "price": "money",
        "count": "count",
        "distinct": "count",
    }
    return kinds.get(role, "number" if role in MEASURES else "text")


def _about_unknown(unknown: Mapping[str, Sequence[str]], pairs: Mapping[str, str], table: OutsideTable) -> list[str]:
    """Return warnings about names that the frame does not have."""
    return [
        f"{pairs[name]} of {table.source} has {', '.join(map(repr, texts[:3]))}{', ...' if len(texts) > 3 else ''}, "
        f'which {name} does not have: names={{"{texts[0]}": ...}} says what it means'
        for name, texts in unknown.items()
    ]


def _repeated_key_error(keys: DataFrame, group: Series[Any], table: OutsideTable) -> BadQuery:
    """Return the exception for keys in several rows of *table*."""
    repeated = group[group.duplicated(keep=False)]
    several = [
        f"{key_text(keys.loc[places[0]])} in rows {', '.join(str(table.rows[place]) for place in places[:5])}"
        for places in (list(members.index) for _, members in repeated.groupby(repeated, sort=False))
    ]
    more = f" and {len(several) - 5} more" if len(several) > 5 else ""
    rule = f'has a key more than once: {"; ".join(several[:5])}{more}. aggregate="sum" adds them up by their roles'
    return BadQuery("other", table.source, rule)


def _check_arguments(**arguments: str | None) -> None:
    """Raise `BadQuery` if an argument has a value that it cannot have."""
    for field, value in arguments.items():
        if value not in _ALLOWED[field]:
            raise BadQuery(field, value, "is not possible", [str(name) for name in _ALLOWED[field]])


def _matching_rows(left_keys: DataFrame, right_keys: DataFrame) -> NDArray[np.int64]:
    """Return for each row of the frame the position of the right row with its key, or -1."""
    numbered = right_keys.assign(**{"": np.arange(len(right_keys))})
    merged = left_keys.merge(numbered, on=[*left_keys.columns], how="left", validate="many_to_one")
    return merged[""].fillna(_NO_MATCH).to_numpy(dtype="int64")


def _joined_frame(
    df: DataFrame,
    left_keys: DataFrame,
    right_keys: DataFrame,
    values: DataFrame,
    matches: NDArray[np.int64],
    how: How,
    suffix: str,
) -> tuple[DataFrame, dict[str, str]]:
    """Return the joined frame, and the new names of columns whose name *df* has already."""
    left_rows = np.arange(len(df))
    if how in ("inner", "right"):
        left_rows = left_rows[matches != _NO_MATCH]
    unmatched = (
        np.setdiff1d(np.arange(len(right_keys)), matches) if how in ("right", "outer") else np.array([], dtype="int64")
    )
    left_positions = np.concatenate([left_rows, np.full(len(unmatched), _NO_MATCH)])
    right_positions = np.concatenate([matches[left_rows], unmatched])
    frame = _take_rows(df.reset_index(drop=True), left_positions)
    for name in map(str, left_keys.columns):
        frame[name] = _fill_keys(frame[name], right_keys[name], right_positions, left_positions == _NO_MATCH)
    renamed: dict[str, str] = {}
    new_values = _take_rows(values, right_positions)
    for name in map(str, new_values.columns):
        free = _free_name(name, frame, suffix)
        renamed |= {name: free} if free != name else {}
        frame[free] = new_values[name]
    return frame, renamed


def _take_rows(frame: DataFrame, positions: NDArray[np.int64]) -> DataFrame:
    """Return the rows of *frame* at *positions*, -1 for a row of nulls, with their dtypes."""
    if (positions == _NO_MATCH).any():
        whole = {name: "Int64" for name in frame if is_integer_dtype(frame[name])}
        frame = frame.astype(whole | {name: "boolean" for name in frame if is_bool_dtype(frame[name])})
    return frame.reindex(positions).reset_index(drop=True)


def _fill_keys(
    column: Series[Any], keys: Series[Any], positions: NDArray[np.int64], is_new: NDArray[np.bool_]
) -> Series[Any]:
    """Return *column* of the frame with the keys of the new rows filled in."""
    if not is_new.any():
        return column
    new = keys.iloc[positions[is_new]]
    new = new.where(new != NOBODY, None) if new.dtype == "str" else new
    if isinstance(column.dtype, pd.CategoricalDtype):
        categories = column.cat.categories
        column = column.cat.add_categories([key for key in dict.fromkeys(new.dropna()) if key not in categories])
    if is_bool_dtype(column):
        new = new.str.lower().map({"true": True, "false": False}).astype("boolean")
    column = column.copy()
    column[is_new] = new.to_numpy() if not is_datetime64_any_dtype(column) else new.array
    return column


def _free_name(name: str, frame: DataFrame, suffix: str) -> str:
    """Return *name*, with a suffix if *frame* has a column of that name."""
    candidates = [name, name + suffix, *(f"{name}{suffix}_{number}" for number in range(2, len(frame.columns) + 3))]
    return next(candidate for candidate in candidates if candidate not in frame)


def _copy_receipt(
    frame: DataFrame,
    df: DataFrame,
    report: MatchReport,
    origins: Sequence[Provenance],
    columns: dict[str, JoinedColumn],
) -> None:
    """Copy the receipt of *df*, if any, to *frame*, and add the join and *origins* to it."""
    frame.attrs = deepcopy(df.attrs)
    receipt = Receipt.of(df.attrs)
    if receipt:
        joined = JoinRecord(
            source=report.source,
            on=dict(report.on),
            how=report.how,
            matched_share=report.matched_share,
            share_of=report.share_of,
            columns=columns,
        )
        frame.attrs[RECEIPT] = msgspec.structs.replace(
            receipt, joined=(*receipt.joined, joined), provenance=merge_provenance(origins)
        ).to_json()
