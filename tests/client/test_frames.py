"""The frame an analyst gets: columns, dtypes, nulls (promise 1)."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from gamelens.client.frames import ColumnKind, titles, to_frame
from gamelens.client.service import PlacedGame
from gamelens.errors import ServiceError
from gamelens.wire.results import Rows

DAY = datetime(2026, 11, 1, tzinfo=UTC)
NEXT = datetime(2026, 11, 2, tzinfo=UTC)
COLUMNS: dict[str, ColumnKind] = {"country_code": "dimension", "event_count": "count", "mean": "number"}
DTYPES = {
    "timestamp": "datetime64[us, UTC]",
    "country_code": "category",
    "event_count": "Int64",
    "mean": "float64",
}


def row(country: str | None = "US", count: Any = 1, mean: Any = 0.5) -> dict[str, Any]:
    return {"country_code": country, "event_count": count, "mean": mean}


def frame(*rows: dict[str, Any], columns: dict[str, ColumnKind] = COLUMNS, **options: Any) -> pd.DataFrame:
    return to_frame([Rows(DAY, list(rows))], columns, **options)


def test_every_column_has_its_dtype() -> None:
    assert {name: str(kind) for name, kind in frame(row()).dtypes.items()} == DTYPES


def test_an_empty_answer_has_the_same_columns_and_dtypes() -> None:
    assert {name: str(kind) for name, kind in to_frame([], COLUMNS).dtypes.items()} == DTYPES


def test_categories_of_an_empty_answer_are_text_too() -> None:
    assert to_frame([], COLUMNS)["country_code"].cat.categories.dtype == "str"


def test_columns_are_no_index() -> None:
    assert isinstance(frame(row(), row("DE")).index, pd.RangeIndex)


def test_it_is_a_plain_dataframe() -> None:
    assert type(frame(row())) is pd.DataFrame


def test_namibia_is_a_country() -> None:
    assert frame(row("NA"))["country_code"].tolist() == ["NA"]


def test_a_null_value_stays_null_and_is_no_category() -> None:
    """Metrics, Dimension: a dimension value may be null."""
    column = frame(row(None), row("NA"))["country_code"]
    assert (column.isna().tolist(), column.cat.categories.tolist()) == ([True, False], ["NA"])


def test_nothing_but_nulls_is_a_category_all_the_same() -> None:
    assert str(frame(row(None))["country_code"].dtype) == "category"


def test_a_null_number_is_na() -> None:
    assert frame(row(mean=None))["mean"].isna().all()


def test_a_whole_number_in_a_number_field_is_a_float() -> None:
    assert frame(row(mean=3))["mean"].tolist() == [3.0]


def test_counts_keep_every_digit() -> None:
    assert frame(row(count=2**53 + 1))["event_count"].tolist() == [2**53 + 1]


def test_timestamps_are_utc_and_repeat_with_their_rows() -> None:
    """Metrics, Result shapes 4."""
    made = to_frame([Rows(DAY, [row(), row("DE")]), Rows(NEXT, [row()])], COLUMNS)
    assert made["timestamp"].tolist() == [pd.Timestamp(DAY), pd.Timestamp(DAY), pd.Timestamp(NEXT)]


def test_a_bucket_without_rows_leaves_no_row() -> None:
    assert len(to_frame([Rows(DAY, []), Rows(NEXT, [row()])], COLUMNS)) == 1


def test_a_timestamp_without_a_zone_is_utc() -> None:
    made = to_frame([Rows(DAY.replace(tzinfo=None), [row()])], COLUMNS)
    assert made["timestamp"].tolist() == [pd.Timestamp(DAY)]


@pytest.mark.parametrize("value", [1.5, "many", [1], True and "x"])
def test_a_count_that_is_none_is_a_service_error(value: Any) -> None:
    with pytest.raises(ServiceError, match="event_count"):
        frame(row(count=value))


@pytest.mark.parametrize(
    ("values", "dtype"), [([1, None], "Int64"), ([1, 2.5], "float64"), (["a", None], "str"), ([[1], {}], "object")]
)
def test_an_unknown_field_is_typed_as_it_comes(values: list[Any], dtype: str) -> None:
    made = frame(*({"new": value} for value in values), columns={"new": "as it comes"})
    assert str(made["new"].dtype) == dtype


def test_the_title_stands_beside_the_game_id() -> None:
    made = frame({"game_id": "1"}, {"game_id": "2"}, columns={"game_id": "dimension"}, titles={"1": "Saga"})
    assert made["game"].tolist() == ["Saga", "2"]


def test_a_repeated_title_gets_its_studio() -> None:
    games = [
        PlacedGame("1", "Saga", "s1", "North"),
        PlacedGame("2", "Saga", "s2", "South"),
        PlacedGame("3", "Ember", "s2", "South"),
    ]
    assert titles(games) == {"1": "Saga (North)", "2": "Saga (South)", "3": "Ember"}


def test_a_title_repeated_in_its_studio_gets_its_id() -> None:
    games = [PlacedGame("1", "Saga", "s1", "North"), PlacedGame("2", "Saga", "s1", "North")]
    assert titles(games) == {"1": "Saga (North, 1)", "2": "Saga (North, 2)"}


def test_receipt_dtypes_and_values_survive_parquet(tmp_path: Path) -> None:
    made = frame(row("NA"), row(None), receipt={"asked": {"by": ["country_code"], "top": None}, "requests": 1})
    made.to_parquet(tmp_path / "frame.parquet")
    again = pd.read_parquet(tmp_path / "frame.parquet")
    pd.testing.assert_frame_equal(made, again)
    assert again.attrs == made.attrs
