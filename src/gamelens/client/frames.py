"""Rows to one tidy DataFrame: `timestamp` in UTC, dimensions as categories, counts Int64, numbers float64.

The only module of this room that knows pandas.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import chain
from typing import Any, Final, Literal

import numpy as np
import pandas as pd

from gamelens.client.receipts import KEY, Receipt
from gamelens.client.service import PlacedGame
from gamelens.errors import ServiceError
from gamelens.wire.results import Rows, Studio

ColumnKind = Literal["dimension", "count", "number", "as it comes"]

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)


def to_frame(
    buckets: Sequence[Rows],
    columns: Mapping[str, ColumnKind],
    *,
    titles: Mapping[str, str] | None = None,
    receipt: Receipt | None = None,
) -> pd.DataFrame:
    """The tidy frame of *buckets*, in their order: `timestamp` (datetime64[us, UTC]), then *columns*.

    Dimensions become categories with null kept, counts Int64, numbers float64, others what they come as. With *titles*
    a column `game` (category) follows `game_id`.

    Raises:
        ServiceError: a column holds what its kind cannot.
    """
    rows = list(chain.from_iterable(bucket.rows for bucket in buckets))
    made: dict[str, Any] = {"timestamp": _timestamps(buckets)}
    for name, kind in columns.items():
        values = [row.get(name) for row in rows]
        made[name] = _typed(name, values, kind)
        if name == "game_id" and titles is not None:
            made["game"] = _categories([titles.get(value or "", value) for value in values])
    frame = pd.DataFrame(made)
    if receipt is not None:
        frame.attrs[KEY] = receipt
    return frame


def studios_frame(studios: Iterable[Studio]) -> pd.DataFrame:
    """Columns: studio_id, studio (both str)."""
    return _texts(("studio_id", "studio"), [(studio.id, studio.name) for studio in studios])


def games_frame(games: Iterable[PlacedGame]) -> pd.DataFrame:
    """Columns: game_id, game, studio_id, studio (all str); *game* is the title as it is."""
    return _texts(
        ("game_id", "game", "studio_id", "studio"),
        [(game.id, game.title, game.studio_id, game.studio) for game in games],
    )


def titles(games: Sequence[PlacedGame]) -> dict[str, str]:
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


def _timestamps(buckets: Sequence[Rows]) -> pd.Series:
    stamps = [(_utc(bucket.timestamp) - _EPOCH) // _MICROSECOND for bucket in buckets]
    repeated = np.repeat(np.array(stamps, dtype="int64"), [len(bucket.rows) for bucket in buckets])
    return pd.Series(repeated.view("datetime64[us]")).dt.tz_localize("UTC")


def _categories(values: Sequence[Any]) -> pd.Categorical:
    """Values as categories in alphabetical order; None stays null, and "NA" stays Namibia."""
    found = sorted({value for value in values if value is not None}, key=str)
    codes = {value: code for code, value in enumerate(found)}
    is_text = all(isinstance(value, str) for value in found)
    return pd.Categorical.from_codes(
        np.fromiter((codes.get(value, -1) for value in values), dtype="int32", count=len(values)),
        categories=pd.Index(found, dtype="str" if is_text else None),
    )


def _typed(name: str, values: Sequence[Any], kind: ColumnKind) -> Any:
    if kind == "as it comes":
        return _as_it_comes(values)
    try:
        if kind == "dimension":
            return _categories(values)
        if kind == "count":
            return pd.array(values, dtype="Int64")
        return np.array([np.nan if value is None else float(value) for value in values], dtype="float64")
    except (TypeError, ValueError, OverflowError):
        raise ServiceError(200, f"the field {name} holds what is no {kind}") from None


def _as_it_comes(values: Sequence[Any]) -> Any:
    kinds = {type(value) for value in values if value is not None}
    if kinds == {int}:
        return pd.array(values, dtype="Int64")
    if kinds and kinds <= {int, float}:
        return np.array([np.nan if value is None else float(value) for value in values], dtype="float64")
    return pd.Series(list(values), dtype="str" if kinds <= {str} else "object")


def _texts(names: Sequence[str], rows: Sequence[tuple[str | None, ...]]) -> pd.DataFrame:
    return pd.DataFrame(
        {name: pd.Series([row[place] for row in rows], dtype="str") for place, name in enumerate(names)}
    )


def _utc(moment: datetime) -> datetime:
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
