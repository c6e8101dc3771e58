"""Numbers from elsewhere beside those of the service: ad spend, holidays, exchange rates."""

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

from gamelens.analysis.files.table_reader import ExternalTable, read_table
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
from gamelens.analysis.outside_data.value_columns import ValueColumns
from gamelens.errors import BadQuery
from gamelens.wire.receipts import RECEIPT, JoinRecord, Receipt

How = Literal["left", "inner", "right", "outer"]
_HOWS: Final = ("left", "inner", "right", "outer")
_VALIDATES: Final = ("one_to_one per key", "one_to_one")
_NOWHERE: Final = -1


def join(
    df: DataFrame,
    other: Any,
    *,
    on: On,
    how: How = "left",
    validate: Literal["one_to_one per key", "one_to_one"] = "one_to_one per key",
    aggregate: Literal["sum"] | None = None,
    columns: Sequence[str] | None = None,
    text: Sequence[str] = (),
    missing: Sequence[str] = (),
    day_first: bool | None = None,
    decimal: Literal[".", ","] | None = None,
    sheet: str | None = None,
    encoding: str | None = None,
) -> Joined:
    """The frame *df* with the columns of *other* beside its own, and a report of what matched.

    *other* is the path of a CSV, TSV (also .gz), Parquet or Excel file, a pandas or polars frame or an Arrow table;
    *on* names the columns that mean the same, `{"timestamp": "day", "country_code": "geo"}`, or those both call so.

    Keys are compared exactly and as text: "NA" is Namibia, "007" is not "7", the number 1001 is the game "1001". An
    empty cell outside is a key too: it meets the frame's group without a value, and that group meets nothing else.
    Days, weeks (2026-W45) and months (2026-11) are where they start, in UTC; they must be buckets of the frame, and
    days inside its weeks or months are refused unless *aggregate* is "sum".

    A key that is there twice outside is refused; with `aggregate="sum"` numbers are added and anything else must agree.
    A key that is there twice in *df* is allowed, and the report warns that the outside value then stands in every such
    row; `validate="one_to_one"` refuses it.

    *columns* are those to bring (all); *text* those not to be read as numbers; *missing* texts that mean an empty cell;
    *day_first* and *decimal* settle what a column leaves open; *sheet* and *encoding* are those of the file.

    Columns: those of *df* with their dtypes, in its order, then those of *other*: numbers Int64 or float64 ("12%" is
    0.12), text category, flags boolean, ISO days datetime64[us, UTC]. A name *df* has already gets the name of the file
    appended. Rows that only *other* has come last.

    Raises:
        BadQuery: a name that is not there, a key that is there twice, a cell that can be read in two ways.
    """
    _check("how", how, _HOWS)
    _check("validate", validate, _VALIDATES)
    _check("aggregate", aggregate, (None, "sum"))
    _check("decimal", decimal, (None, ".", ","))
    if not isinstance(df, DataFrame):
        raise BadQuery("df", f"a {type(df).__name__}", 'is not a pandas frame: query with to="pandas"')
    table = read_table(other, sheet=sheet, encoding=encoding, missing=missing)
    pairs = pairs_of(on, df, table)
    ours = DataFrame({name: left_key(df[name]) for name in pairs}).reset_index(drop=True)
    measures = ValueColumns(table, decimal=decimal, text=text)
    values = measures.frame(_brought(table, pairs, columns))
    theirs = prepare_right(
        df, ours, table, pairs, values, measures if aggregate == "sum" else None, day_first=day_first
    )
    places = _places(ours, theirs.keys)
    repeats = _repeats(ours, places)
    if repeats.any() and validate == "one_to_one":
        key = key_text(ours[repeats].iloc[0])
        raise BadQuery("validate", validate, f"forbids that a key stands in several rows of the frame, as {key} does")
    frame, renamed = _together(df, ours, theirs, places, how, table.suffix)
    is_found = places != _NOWHERE
    share, share_of = matched_share(df, Series(is_found, index=df.index))
    report = MatchReport(
        source=table.source,
        on=pairs,
        how=how,
        rows=len(df),
        only_left=df[~is_found],
        only_right=theirs.rows[~theirs.group.isin(places[is_found]).to_numpy()],
        matched_share=share,
        share_of=share_of,
        renamed=renamed,
        warnings=(
            *theirs.notes,
            *measures.notes,
            *lookalikes(ours, theirs.keys, pairs, table),
            *double_counting(theirs.values, places, repeats, table),
            *(() if theirs.is_finer else cut_short(df, ours[is_found])),
        ),
    )
    _note(frame, df, report)
    return Joined(frame, report)


def _check(field: str, value: object, allowed: Sequence[str | None]) -> None:
    if value not in allowed:
        raise BadQuery(field, value, "is not possible", [str(name) for name in allowed])


def _brought(table: ExternalTable, pairs: dict[str, str], columns: Sequence[str] | None) -> list[str]:
    for name in columns or ():
        if name not in table.columns:
            raise BadQuery("columns", name, f"is not a column of {table.source}", table.columns)
    wanted = table.columns if columns is None else columns
    return [name for name in wanted if name not in pairs.values()]


def _places(ours: DataFrame, theirs: DataFrame) -> NDArray[np.int64]:
    """For each row of the frame the outside row with its key, or -1."""
    numbered = theirs.assign(**{"": np.arange(len(theirs))})
    found = ours.merge(numbered, on=[*ours.columns], how="left", validate="many_to_one")
    return found[""].fillna(_NOWHERE).to_numpy(dtype="int64")


def _repeats(ours: DataFrame, places: NDArray[np.int64]) -> NDArray[np.bool_]:
    repeats: NDArray[np.bool_] = np.asarray(ours.duplicated(keep=False)) & (places != _NOWHERE)
    return repeats


def _together(
    df: DataFrame, ours: DataFrame, theirs: RightTable, places: NDArray[np.int64], how: How, suffix: str
) -> tuple[DataFrame, dict[str, str]]:
    left = np.arange(len(df))
    if how in ("inner", "right"):
        left = left[places != _NOWHERE]
    alone = (
        np.setdiff1d(np.arange(len(theirs.keys)), places) if how in ("right", "outer") else np.array([], dtype="int64")
    )
    left_places = np.concatenate([left, np.full(len(alone), _NOWHERE)])
    right_places = np.concatenate([places[left], alone])
    frame = _taken(df.reset_index(drop=True), left_places)
    for name in map(str, ours.columns):
        frame[name] = _filled(frame[name], theirs.keys[name], right_places, left_places == _NOWHERE)
    renamed: dict[str, str] = {}
    brought = _taken(theirs.values, right_places)
    for name in map(str, brought.columns):
        free = _free_name(name, frame, suffix)
        renamed |= {name: free} if free != name else {}
        frame[free] = brought[name]
    return frame, renamed


def _taken(frame: DataFrame, places: NDArray[np.int64]) -> DataFrame:
    """Rows of *frame*, -1 for a row of nulls; whole numbers and flags stay what they are."""
    if (places == _NOWHERE).any():
        whole = {name: "Int64" for name in frame if is_integer_dtype(frame[name])}
        frame = frame.astype(whole | {name: "boolean" for name in frame if is_bool_dtype(frame[name])})
    return frame.reindex(places).reset_index(drop=True)


def _filled(
    column: Series[Any], keys: Series[Any], places: NDArray[np.int64], is_new: NDArray[np.bool_]
) -> Series[Any]:
    """*column* of the frame with the keys of the rows that only the outside has."""
    if not is_new.any():
        return column
    new = keys.iloc[places[is_new]]
    if isinstance(column.dtype, pd.CategoricalDtype):
        known = column.cat.categories
        column = column.cat.add_categories([key for key in dict.fromkeys(new.dropna()) if key not in known])
    if is_bool_dtype(column):
        new = new.str.lower().map({"true": True, "false": False}).astype("boolean")
    column = column.copy()
    column[is_new] = new.to_numpy() if not is_datetime64_any_dtype(column) else new.array
    return column


def _free_name(name: str, frame: DataFrame, suffix: str) -> str:
    tries = [name, name + suffix, *(f"{name}{suffix}_{number}" for number in range(2, len(frame.columns) + 3))]
    return next(free for free in tries if free not in frame)


def _note(frame: DataFrame, df: DataFrame, report: MatchReport) -> None:
    """Hand the receipt on, the join noted in it; a frame without one stays without."""
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
        frame.attrs[RECEIPT] = msgspec.structs.replace(receipt, joined=(*receipt.joined, joined)).to_json()
