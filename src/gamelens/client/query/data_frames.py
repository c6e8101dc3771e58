"""Tables to one tidy DataFrame: `timestamp` in UTC, dimensions as categories, counts Int64, numbers float64.

The only module of this room that knows pandas, and the only one that knows polars.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from gamelens.client.connection.metrics_api import GameListing
from gamelens.client.query.query_spec import FrameKind
from gamelens.client.tables.table_operations import add_lookup_column
from gamelens.client.tables.table_schema import TIMESTAMP, TIMESTAMP_TYPE
from gamelens.wire.receipts import RECEIPT, Receipt, RestatementRecord
from gamelens.wire.results import Studio

TITLES: Final = {"game_id": "game", "studio_id": "studio"}


def to_frame(table: pa.Table, dimensions: Sequence[str], receipt: Receipt, to: FrameKind = "pandas") -> Any:
    """*table* as a tidy frame of the kind *to*, in its order: `timestamp`, the dimensions and titles, the numbers.

    pandas: timestamp datetime64[us, UTC], *dimensions* and titles category with null kept, counts Int64, numbers
    float64, others what they come as; the receipt in `attrs`. arrow: the same columns, dictionaries for categories, the
    receipt as JSON in the schema's metadata. polars: the same columns.
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
    """A frame that `to_frame` made as a table again, dimensions as text."""
    columns: dict[str, Any] = {}
    for name in frame.columns:
        column = frame[name]
        if isinstance(column.dtype, pd.CategoricalDtype):
            columns[name] = pa.array(column.astype("object"), pa.string(), from_pandas=True)
        elif name == TIMESTAMP:
            columns[name] = pa.array(column).cast(TIMESTAMP_TYPE)
        else:
            made = pa.array(column, from_pandas=True)
            columns[name] = made.cast(pa.string()) if pa.types.is_large_string(made.type) else made
    return pa.table(columns)


def add_titles(table: pa.Table, titles: Mapping[str, Mapping[str, str]]) -> pa.Table:
    """*table* with the title beside each id in the columns that *titles* names; the id where it has none."""
    for name, known in titles.items():
        shown = {value: known.get(value, value) for value in pc.unique(table[name]).to_pylist() if value is not None}
        table = add_lookup_column(table, TITLES[name], name, shown, table.schema.get_field_index(name) + 1)
    return table


def studios_frame(studios: Iterable[Studio]) -> pd.DataFrame:
    """Columns: studio_id, studio (both str)."""
    return _texts(("studio_id", "studio"), [(studio.id, studio.name) for studio in studios])


def games_frame(games: Iterable[GameListing]) -> pd.DataFrame:
    """Columns: game_id, game, studio_id, studio (all str); *game* is the title as it is."""
    return _texts(
        ("game_id", "game", "studio_id", "studio"),
        [(game.id, game.title, game.studio_id, game.studio) for game in games],
    )


def restatements_frame(entries: Sequence[RestatementRecord]) -> pd.DataFrame:
    """What moved, a row for each bucket and field.

    Columns: metric, by, field (str), timestamp (of the bucket), before_as_of, as_of (datetime64[us, UTC]), before,
    after, moved (float64; NA where rows cannot be added up), rows (Int64, how many changed).
    """
    frame = pd.DataFrame({"metric": pd.Series([it.metric for it in entries], dtype="str")})
    frame["timestamp"] = _moments([it.timestamp for it in entries])
    frame["by"] = pd.Series([", ".join(it.by) for it in entries], dtype="str")
    frame["field"] = pd.Series([it.field for it in entries], dtype="str")
    for name in ("before", "after"):
        frame[name] = pd.Series([getattr(it, name) for it in entries], dtype="float64")
    frame["moved"] = frame["after"] - frame["before"]
    frame["rows"] = pd.Series([it.rows for it in entries], dtype="Int64")
    for name in ("before_as_of", "as_of"):
        frame[name] = _moments([getattr(it, name) for it in entries])
    return frame


def unique_game_titles(games: Sequence[GameListing]) -> dict[str, str]:
    """Title of each game id, no two the same: a repeated one gets its studio, then its id, appended."""
    plain = Counter(game.title for game in games)
    named = {game.id: f"{game.title} ({game.studio or game.studio_id})" for game in games if plain[game.title] > 1}
    still = Counter(named.values())
    return {
        game.id: game.title
        if game.id not in named
        else named[game.id]
        if still[named[game.id]] == 1
        else f"{named[game.id][:-1]}, {game.id})"
        for game in games
    }


def unique_studio_names(studios: Sequence[Studio]) -> dict[str, str]:
    """Name of each studio id, no two the same: a repeated one gets its id appended."""
    plain = Counter(studio.name for studio in studios)
    return {it.id: it.name if plain[it.name] == 1 else f"{it.name} ({it.id})" for it in studios}


def _pandas(table: pa.Table, dimensions: Sequence[str], receipt: Receipt) -> pd.DataFrame:
    made = {}
    for name in table.column_names:
        column = table[name].combine_chunks()
        if name in dimensions or name in TITLES.values():
            made[name] = _categories(column)
        else:
            made[name] = _typed(column)
    frame = pd.DataFrame(made)
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
    """Values as a dictionary in code point order; null stays null, and "NA" stays Namibia."""
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
        {name: pd.Series([row[place] for row in rows], dtype="str") for place, name in enumerate(names)}
    )
