"""Join of a frame with an external table: ad spend, holidays, exchange rates."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import Any, Final, Literal

import msgspec
import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas import DataFrame, Series
from pandas.api.types import is_bool_dtype, is_datetime64_any_dtype, is_integer_dtype

from gamelens.analysis.files.table_reader import ExternalTable, read_table, without_totals
from gamelens.analysis.outside_data.join_keys import On, left_key, pairs_of
from gamelens.analysis.outside_data.match_report import (
    Joined,
    MatchReport,
    cut_short,
    double_counting,
    key_text,
    lookalikes,
    matched_share,
)
from gamelens.analysis.outside_data.right_side import RightTable, prepare_right
from gamelens.analysis.outside_data.value_columns import read_values
from gamelens.analysis.tidy_frames import warn_of_mixture
from gamelens.errors import BadQuery
from gamelens.receipts import RECEIPT, JoinRecord, Provenance, Receipt, merge_provenance

How = Literal["left", "inner", "right", "outer"]
_ALLOWED: Final[dict[str, Sequence[str | None]]] = {
    "how": ("left", "inner", "right", "outer"),
    "validate": ("one_to_one per key", "one_to_one"),
    "aggregate": (None, "sum"),
    "decimal": (None, ".", ","),
    "totals": ("skip", "keep"),
}
_NO_MATCH: Final = -1


def join(
    df: DataFrame,
    other: Any,
    *,
    on: On,
    how: How = "left",
    validate: Literal["one_to_one per key", "one_to_one"] = "one_to_one per key",
    aggregate: Literal["sum"] | None = None,
    columns: Sequence[str] | None = None,
    fold: Sequence[str] = (),
    text: Sequence[str] = (),
    missing: Sequence[str] = (),
    day_first: bool | None = None,
    decimal: Literal[".", ","] | None = None,
    sheet: str | None = None,
    encoding: str | None = None,
    header_row: int | None = None,
    totals: Literal["skip", "keep"] = "skip",
) -> Joined:
    """Return the frame *df* with the columns of *other* added, and a report of what matched.

    Keys are compared exactly and as text: "NA" is Namibia, "007" is not "7", the number 1001 is the game "1001". An
    empty cell of the table is a key too: it matches the frame's null group, and that group matches nothing else. Days,
    weeks (2026-W45) and months (2026-11) stand for their start, in UTC; they must be buckets of the frame, and days
    inside its weeks or months are refused unless *aggregate* is "sum".

    Columns: those of *df* with their dtypes, in its order, then those of *other*: numbers Int64 or float64 ("12%" is
    0.12), text category, flags boolean, ISO days datetime64[us, UTC]. A name *df* has already gets the name of the file
    appended. Rows that only *other* has are last. Amounts with a currency ("€12.50", or a column "Cost (EUR)") get a
    column beside them, `Cost (EUR)_currency` (category), which `outside_data.in_dollars` reads.

    Args:
        df: a frame of `Client.query`.
        other: the path of a CSV, TSV (also .gz), Parquet or Excel file, a pandas or polars frame or an Arrow table.
        on: names of columns with the same meaning, such as `{"timestamp": "day", "country_code": "geo"}`, or names that
            both tables have.
        how: which rows without a match stay, as in pandas.
        validate: whether a key may be several times in *df*. By default it may, and the report warns that the external
            value is then in each of these rows. "one_to_one" refuses it.
        aggregate: "sum" adds up the numbers of rows with the same key, whose other values must agree; by default a key
            that is several times in *other* is refused.
        columns: the columns to add, by default all.
        fold: keys of *df* whose texts are matched without regard to case and blanks: "New Ads" is "newads ".
        text: columns that are not read as numbers.
        missing: texts that mean an empty cell.
        day_first: whether 01.11.2026 is the first of November, if the column leaves it open.
        decimal: the decimal mark, if the column leaves it open.
        sheet: the sheet of an Excel file.
        encoding: the encoding of a text file, by default UTF-8 or that of its byte order mark.
        header_row: the row of the file that names the columns (1 is the first). By default titles and date ranges above
            it are recognised, left out and reported.
        totals: what happens to rows that add up others ("Total", "Summe", or all keys empty and the sum of the rows
            above). They are left out and reported, or kept.

    Raises:
        BadQuery: a name is missing, a key is there twice, or a cell can be read in two ways.
    """
    _check_arguments(how=how, validate=validate, aggregate=aggregate, decimal=decimal, totals=totals)
    if not isinstance(df, DataFrame):
        raise BadQuery("df", f"a {type(df).__name__}", 'is not a pandas frame: query with to="pandas"')
    if header_row is not None and (not isinstance(header_row, int) or header_row < 1):
        raise BadQuery("header_row", header_row, "is not a row: 1 is the first")
    table = read_table(other, sheet=sheet, encoding=encoding, missing=missing, header_row=header_row)
    pairs = pairs_of(on, df, table)
    table = without_totals(table, [*pairs.values()]) if totals == "skip" else table
    left_keys = DataFrame({name: left_key(df[name]) for name in pairs}).reset_index(drop=True)
    is_summed = aggregate == "sum"
    values = read_values(
        table, _columns_to_bring(table, pairs, columns), decimal=decimal, text=text, is_summed=is_summed
    )
    right = prepare_right(
        df,
        left_keys,
        table,
        pairs,
        values,
        is_summed=is_summed,
        day_first=day_first,
        fold=fold,
    )
    matches = _matching_rows(left_keys, right.keys)
    repeats = _repeated_keys(left_keys, matches)
    if repeats.any() and validate == "one_to_one":
        key = key_text(left_keys[repeats].iloc[0])
        raise BadQuery("validate", validate, f"does not allow a key in several rows of the frame, as {key} is")
    frame, renamed = _joined_frame(df, left_keys, right, matches, how, table.suffix)
    is_matched = matches != _NO_MATCH
    origins = [receipt.provenance for receipt in (Receipt.of(df.attrs), table.receipt) if receipt]
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
        warnings=(
            *warn_of_mixture(origins),
            *table.notes,
            *right.notes,
            *values.notes,
            *lookalikes(left_keys, right.keys, pairs, table),
            *double_counting(right.values, matches, repeats, table),
            *(() if right.is_finer else cut_short(df, left_keys[is_matched])),
        ),
    )
    _copy_receipt(frame, df, report, origins)
    return Joined(frame, report)


def _check_arguments(**arguments: str | None) -> None:
    """Raise `BadQuery` if an argument has a value that it cannot have."""
    for field, value in arguments.items():
        if value not in _ALLOWED[field]:
            raise BadQuery(field, value, "is not possible", [str(name) for name in _ALLOWED[field]])


def _columns_to_bring(table: ExternalTable, pairs: dict[str, str], columns: Sequence[str] | None) -> list[str]:
    """Return the names of the external columns to add.

    Raises:
        BadQuery: one of *columns* is missing.
    """
    for name in columns or ():
        if name not in table.columns:
            raise BadQuery("columns", name, f"is not a column of {table.source}", table.columns)
    wanted = table.columns if columns is None else columns
    return [name for name in wanted if name not in pairs.values()]


def _matching_rows(left_keys: DataFrame, right_keys: DataFrame) -> NDArray[np.int64]:
    """Return for each row of the frame the position of the right row with its key, or -1."""
    numbered = right_keys.assign(**{"": np.arange(len(right_keys))})
    merged = left_keys.merge(numbered, on=[*left_keys.columns], how="left", validate="many_to_one")
    return merged[""].fillna(_NO_MATCH).to_numpy(dtype="int64")


def _repeated_keys(left_keys: DataFrame, matches: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return a mask of rows whose key is in several rows of the frame and has a match."""
    repeats: NDArray[np.bool_] = np.asarray(left_keys.duplicated(keep=False)) & (matches != _NO_MATCH)
    return repeats


def _joined_frame(
    df: DataFrame, left_keys: DataFrame, right: RightTable, matches: NDArray[np.int64], how: How, suffix: str
) -> tuple[DataFrame, dict[str, str]]:
    """Return the joined frame, and the new names of columns whose name *df* has already."""
    left_rows = np.arange(len(df))
    if how in ("inner", "right"):
        left_rows = left_rows[matches != _NO_MATCH]
    unmatched = (
        np.setdiff1d(np.arange(len(right.keys)), matches) if how in ("right", "outer") else np.array([], dtype="int64")
    )
    left_positions = np.concatenate([left_rows, np.full(len(unmatched), _NO_MATCH)])
    right_positions = np.concatenate([matches[left_rows], unmatched])
    frame = _take_rows(df.reset_index(drop=True), left_positions)
    for name in map(str, left_keys.columns):
        frame[name] = _fill_keys(frame[name], right.keys[name], right_positions, left_positions == _NO_MATCH)
    renamed: dict[str, str] = {}
    new_values = _take_rows(right.values, right_positions)
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


def _copy_receipt(frame: DataFrame, df: DataFrame, report: MatchReport, origins: Sequence[Provenance]) -> None:
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
        )
        frame.attrs[RECEIPT] = msgspec.structs.replace(
            receipt, joined=(*receipt.joined, joined), provenance=merge_provenance(origins)
        ).to_json()
