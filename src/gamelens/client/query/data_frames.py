"""Tidy frames made of Arrow tables: UTC timestamps, dimensions as categories, numbers.

The only module of this room that imports pandas and polars.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from gamelens.catalog import TITLES
from gamelens.client.connection.metrics_api import GameListing
from gamelens.client.query.signatures import FrameKind
from gamelens.client.tables.table_operations import TIMESTAMP, TIMESTAMP_TYPE, add_lookup_column
from gamelens.receipts import RECEIPT, Receipt, RestatementRecord
from gamelens.wire.results import Studio


def to_frame(table: pa.Table, dimensions: Sequence[str], receipt: Receipt, to: FrameKind = "pandas") -> Any:
    """Return *table* as a tidy frame of the kind *to*, with the receipt.

    Columns and rows are in the order of *table*: `timestamp`, dimensions and titles, numbers. pandas: timestamp
    datetime64[us, UTC], *dimensions* and titles category with null kept, counts Int64, numbers float64, other types
    unchanged; the receipt in `attrs`. arrow: the same columns, dictionaries for categories, the receipt as JSON in the
    schema's metadata. polars: the same columns.
    """
    if to == "pandas":
        return _pandas(table, dimensions, receipt)
    texts = [name for name in table.column_names if name in dimensions or name in TITLES.values()]
    for name in texts:
        table = table.set_column(table.schema.get_field_index(name), name, _dictionary(table[name]))
    if to == "arrow":
        return table.replace_schema_metadata({RECEIPT: json.dumps(receipt.to_json())})
    import polars

    return polars.from_arrow(table)


def to_table(frame: pd.DataFrame) -> pa.Table:
    """Return a frame that `to_frame` made as a table again, with dimensions as text."""
    columns: dict[str, Any] = {}
    for name in frame.columns:
        column = frame[name]
        if isinstance(column.dtype, pd.CategoricalDtype):
            columns[name] = pa.array(column.astype("object"), pa.string(), from_pandas=True)
        elif name == TIMESTAMP:
            columns[name] = pa.array(column).cast(TIMESTAMP_TYPE)
        else:
            values = pa.array(column, from_pandas=True)
            columns[name] = values.cast(pa.string()) if pa.types.is_large_string(values.type) else values
    return pa.table(columns)


def add_titles(table: pa.Table, titles: Mapping[str, Mapping[str, str]]) -> pa.Table:
    """Return *table* with a column of titles beside each column of ids in *titles*.

    An id without a title is shown itself.
    """
    for name, title_of in titles.items():
        shown = {value: title_of.get(value, value) for value in pc.unique(table[name]).to_pylist() if value is not None}
        table = add_lookup_column(table, TITLES[name], name, shown, table.schema.get_field_index(name) + 1)
    return table


def studios_frame(studios: Iterable[Studio]) -> pd.DataFrame:
    """Return a frame of *studios*. Columns: studio_id, studio (both str)."""
    return _texts(("studio_id", "studio"), [(studio.id, studio.name) for studio in studios])


def games_frame(games: Iterable[GameListing]) -> pd.DataFrame:
    """Return a frame of *games*.

    Columns: game_id, game, studio_id, studio (all str); `game` is the title, also where two games have the same.
    """
    return _texts(
        ("game_id", "game", "studio_id", "studio"),
        [(game.id, game.title, game.studio_id, game.studio) for game in games],
    )


def restatements_frame(entries: Sequence[RestatementRecord]) -> pd.DataFrame:
    """Return a frame of restatements, one row for each bucket and field.

    Columns: metric, by, field (str), timestamp (of the bucket), before_as_of, as_of (datetime64[us, UTC]), before,
    after, moved (float64; NA where rows cannot be added up), rows (Int64, how many changed).
    """
    frame = pd.DataFrame({"metric": pd.Series([entry.metric for entry in entries], dtype="str")})
    frame["timestamp"] = _moments([entry.timestamp for entry in entries])
    frame["by"] = pd.Series([", ".join(entry.by) for entry in entries], dtype="str")
    frame["field"] = pd.Series([entry.field for entry in entries], dtype="str")
    for name in ("before", "after"):
        frame[name] = pd.Series([getattr(entry, name) for entry in entries], dtype="float64")
    frame["moved"] = frame["after"] - frame["before"]
    frame["rows"] = pd.Series([entry.rows for entry in entries], dtype="Int64")
    for name in ("before_as_of", "as_of"):
        frame[name] = _moments([getattr(entry, name) for entry in entries])
    return frame


def unique_game_titles(games: Sequence[GameListing]) -> dict[str, str]:
    """Return the title of each game id, made unique.

    A title that occurs twice gets its studio appended, then its id.
    """
    counts = Counter(game.title for game in games)
    with_studio = {
        game.id: f"{game.title} ({game.studio or game.studio_id})" for game in games if counts[game.title] > 1
    }
    studio_counts = Counter(with_studio.values())

    def unique(game: GameListing) -> str:
        title = with_studio.get(game.id)
        if title is None:
            return game.title
        return f"{title[:-1]}, {game.id})" if studio_counts[title] > 1 else title

    return {game.id: unique(game) for game in games}


def unique_studio_names(studios: Sequence[Studio]) -> dict[str, str]:
    """Return the name of each studio id, with the id appended to a name that occurs twice."""
    counts = Counter(studio.name for studio in studios)
    return {
        studio.id: studio.name if counts[studio.name] == 1 else f"{studio.name} ({studio.id})" for studio in studios
    }


def _pandas(table: pa.Table, dimensions: Sequence[str], receipt: Receipt) -> pd.DataFrame:
    columns = {}
    for name in table.column_names:
        column = table[name].combine_chunks()
        if name in dimensions or name in TITLES.values():
            columns[name] = _categories(column)
        else:
            columns[name] = _typed(column)
    frame = pd.DataFrame(columns)
    frame.attrs[RECEIPT] = receipt.to_json()
    return frame


def _moments(texts: Sequence[str]) -> pd.Series:
    return pd.to_datetime(pd.Series(texts, dtype="str"), utc=True, format="ISO8601").dt.as_unit("us")


def _typed(column: pa.Array) -> Any:
    if pa.types.is_timestamp(column.type):
        return pd.Series(np.asarray(column.cast(pa.int64())).view("datetime64[us]")).dt.tz_localize("UTC")
    if pa.types.is_integer(column.type):
        return pd.arrays.IntegerArray(
            np.asarray(pc.fill_null(column, 0).cast(pa.int64())), np.asarray(column.is_null())
        )
    if pa.types.is_floating(column.type):
        return np.asarray(pc.fill_null(column, np.nan), dtype="float64")
    if pa.types.is_string(column.type):
        return pd.Series(column.to_pylist(), dtype="str")
    return pd.Series(column.to_pylist(), dtype="object")


def _dictionary(column: pa.ChunkedArray | pa.Array) -> pa.DictionaryArray:
    """Return *column* as a dictionary in code point order.

    Null stays null, and the text "NA" stays a value.
    """
    values = pc.unique(column).drop_null()
    values = values.take(pc.sort_indices(values))
    indices = pc.index_in(column, value_set=values)
    indices = indices.combine_chunks() if isinstance(indices, pa.ChunkedArray) else indices
    return pa.DictionaryArray.from_arrays(indices, values)


def _categories(column: pa.Array) -> pd.Categorical:
    encoded = _dictionary(column)
    codes = np.asarray(pc.fill_null(encoded.indices, -1))
    return pd.Categorical.from_codes(codes, categories=pd.Index(encoded.dictionary.to_pylist(), dtype="str"))


def _texts(names: Sequence[str], rows: Sequence[tuple[str | None, ...]]) -> pd.DataFrame:
    return pd.DataFrame(
        {name: pd.Series([row[position] for row in rows], dtype="str") for position, name in enumerate(names)}
    )
