"""Frames made of Arrow tables: columns, dtypes, nulls and titles."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import msgspec
import pandas as pd
import polars
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gamelens.client.connection.metrics_api import GameListing
from gamelens.client.query.arguments import KINDS, check_kind
from gamelens.client.query.data_frames import (
    add_titles,
    games_frame,
    restatements_frame,
    studios_frame,
    to_frame,
    to_table,
    unique_game_titles,
    unique_studio_names,
)
from gamelens.client.tables.table_operations import TIMESTAMP_TYPE, from_rows, order_columns, schema
from gamelens.receipts import QueryRecord, Receipt, RestatementRecord
from gamelens.wire.results import Studio

DAY = datetime(2026, 11, 1, tzinfo=UTC)
NEXT = datetime(2026, 11, 2, tzinfo=UTC)
BY = ("country_code",)
DTYPES = {
    "timestamp": "datetime64[us, UTC]",
    "country_code": "category",
    "event_count": "Int64",
    "mean": "float64",
    "sum": "float64",
    "sum_cents": "float64",
}


Kind = Literal["pandas", "arrow", "polars"]


def row(country: str | None = "US", count: int | None = 1, mean: float | None = 0.5, **more: Any) -> dict[str, Any]:
    """Return one row of revenue by country."""
    return {"timestamp": DAY, "country_code": country, "event_count": count, "mean": mean, **more}


def table(*rows: dict[str, Any]) -> pa.Table:
    """Return the Arrow table of *rows*."""
    return from_rows(rows, schema("revenue", BY))


def frame(*rows: dict[str, Any]) -> pd.DataFrame:
    """Return the pandas frame of *rows*."""
    return to_frame(table(*rows), BY, Receipt())  # type: ignore[no-any-return]


def with_field(values: Sequence[object], type_: pa.DataType | None = None) -> pa.Table:
    """Return rows that have a field the catalog does not know."""
    return table(*(row() for _ in values)).append_column("surprise", pa.array(values, type_))


def dtypes(result: pd.DataFrame) -> dict[str, str]:
    """Return the dtype of each column as text."""
    return {str(name): str(kind) for name, kind in result.dtypes.items()}


# pandas


def test_every_column_has_its_dtype() -> None:
    """Timestamps are UTC, dimensions categories, counts Int64 and numbers float64."""
    assert dtypes(frame(row())) == DTYPES


def test_an_empty_answer_has_the_same_columns_and_dtypes() -> None:
    """A frame without rows has the columns and dtypes of one with rows."""
    assert dtypes(frame()) == DTYPES


def test_categories_of_an_empty_answer_are_text_too() -> None:
    """Categories of an empty column have dtype str."""
    assert frame()["country_code"].cat.categories.dtype == "str"


def test_no_column_is_the_index() -> None:
    """The index of a frame is a plain range."""
    assert isinstance(frame(row(), row("DE")).index, pd.RangeIndex)


def test_a_frame_is_a_plain_dataframe() -> None:
    """A frame is a `DataFrame` and no subclass."""
    assert type(frame(row())) is pd.DataFrame


@pytest.mark.parametrize("name", ["NA", "nan", "None", "null", "", "<NA>"])
def test_texts_that_look_like_null_stay_texts(name: str) -> None:
    """ "NA", "nan", "None" and the empty text are values, not null."""
    assert frame(row(name))["country_code"].tolist() == [name]


def test_a_null_value_stays_null_and_is_no_category() -> None:
    """A null dimension value stays null and is not a category (Wire 4.10, Dimensions)."""
    column = frame(row(None), row("NA"))["country_code"]
    assert (column.isna().tolist(), column.cat.categories.tolist()) == ([True, False], ["NA"])


def test_a_column_of_nulls_is_a_category_too() -> None:
    """A dimension column of nulls alone is a category of text."""
    column = frame(row(None))["country_code"]
    assert str(column.dtype) == "category"
    assert column.cat.categories.dtype == "str"
    assert column.isna().all()


def test_categories_are_in_code_point_order_whatever_the_rows_are() -> None:
    """Categories are in code point order and do not depend on the order of rows."""
    categories = frame(row("ü"), row("b"), row("A"), row("b"))["country_code"].cat.categories
    assert categories.tolist() == ["A", "b", "ü"]


def test_a_null_number_is_na() -> None:
    """A null number is NaN."""
    assert frame(row(mean=None))["mean"].isna().all()


def test_a_null_count_is_na() -> None:
    """A null count is `pd.NA`."""
    assert frame(row(count=None))["event_count"].tolist() == [pd.NA]


@pytest.mark.parametrize("count", [2**53 + 1, 2**63 - 1, -(2**63)])
def test_counts_keep_every_digit(count: int) -> None:
    """Counts up to 64 bits keep every digit, beside nulls too."""
    result = frame(row(count=count), row(count=None))
    assert result["event_count"].tolist() == [count, pd.NA]


def test_timestamps_are_utc_and_repeat_with_their_rows() -> None:
    """Each row has the UTC start of its bucket (Wire 2.8, Intervals and buckets)."""
    result = frame(row(), row("DE"), row(timestamp=NEXT))
    assert result["timestamp"].tolist() == [pd.Timestamp(DAY), pd.Timestamp(DAY), pd.Timestamp(NEXT)]


@pytest.mark.parametrize(
    ("values", "dtype"),
    [
        ([1, None], "Int64"),
        ([1.0, 2.5], "float64"),
        (["a", None], "str"),
        ([True, None], "object"),
        ([None, None], "object"),
    ],
)
def test_an_unknown_field_is_typed_by_its_values(values: list[object], dtype: str) -> None:
    """A field the catalog does not know gets the dtype of its values."""
    result = to_frame(with_field(values), BY, Receipt())
    assert (str(result["surprise"].dtype), result["surprise"].isna().tolist()) == (
        dtype,
        [value is None for value in values],
    )


def test_a_chunked_table_is_one_frame() -> None:
    """A table of several chunks becomes one frame."""
    pieces = pa.concat_tables([table(row("US")), table(row(None)), table()])
    assert to_frame(pieces, BY, Receipt())["country_code"].isna().tolist() == [False, True]


# arrow and polars


@pytest.mark.parametrize("to", KINDS)
@pytest.mark.parametrize("rows", [(), (row("NA"), row(None, count=None, mean=None))])
def test_every_kind_of_frame_has_the_same_columns(to: Kind, rows: tuple[dict[str, Any], ...]) -> None:
    """pandas, Arrow and polars frames have the same columns and number of rows."""
    result = to_frame(table(*rows), BY, Receipt(), to)
    columns = result.column_names if to == "arrow" else list(result.columns)
    assert (columns, len(result)) == (list(DTYPES), len(rows))


@pytest.mark.parametrize("rows", [(), (row("NA"), row(None))])
def test_arrow_has_dictionaries_and_the_receipt_as_json(rows: tuple[dict[str, Any], ...]) -> None:
    """An Arrow frame has dictionary columns and the receipt as JSON metadata."""
    result = to_frame(table(*rows), BY, Receipt(requests=1), "arrow")
    assert result.schema.types == [
        TIMESTAMP_TYPE,
        pa.dictionary(pa.int32(), pa.string()),
        pa.int64(),
        *[pa.float64()] * 3,
    ]
    assert json.loads(result.schema.metadata[b"gamelens"]) == Receipt(requests=1).to_json()


def test_arrow_has_the_same_values() -> None:
    """An Arrow frame keeps nulls, "NA" and every digit."""
    result = to_frame(table(row("NA", 2**53 + 1), row(None, None, None)), BY, Receipt(), "arrow")
    assert result.select(["country_code", "event_count", "mean"]).to_pylist() == [
        {"country_code": "NA", "event_count": 2**53 + 1, "mean": 0.5},
        {"country_code": None, "event_count": None, "mean": None},
    ]


@pytest.mark.parametrize("rows", [(), (row("NA"), row(None))])
def test_polars_has_the_same_types(rows: tuple[dict[str, Any], ...]) -> None:
    """A polars frame has UTC times, categoricals, Int64 and Float64."""
    result = to_frame(table(*rows), BY, Receipt(), "polars")
    assert type(result) is polars.DataFrame
    assert result.dtypes == [
        polars.Datetime("us", "UTC"),
        polars.Categorical,
        polars.Int64,
        *[polars.Float64] * 3,
    ]


def test_polars_has_the_same_values() -> None:
    """A polars frame keeps nulls, "NA" and every digit."""
    result = to_frame(table(row("NA", 2**53 + 1), row(None, None, None)), BY, Receipt(), "polars")
    assert result.select("timestamp", "country_code", "event_count", "mean").rows() == [
        (DAY, "NA", 2**53 + 1, 0.5),
        (DAY, None, None, None),
    ]


@pytest.mark.parametrize("to", KINDS)
def test_the_kinds_of_frames_are_allowed(to: str) -> None:
    """ "pandas", "arrow" and "polars" are allowed."""
    assert check_kind(to) == to


# Frames converted back


fields = st.fixed_dictionaries(
    {
        "timestamp": st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30), timezones=st.just(UTC)),
        "country_code": st.none() | st.text(max_size=3) | st.sampled_from(["NA", "nan", ""]),
        "event_count": st.none() | st.integers(-(2**63), 2**63 - 1),
        "mean": st.none() | st.floats(allow_nan=False),
    }
)


@given(st.lists(fields, max_size=8))
@settings(deadline=None)
def test_a_table_survives_the_way_to_a_frame_and_back(rows: list[dict[str, Any]]) -> None:
    """Any table converted to a frame and back is unchanged."""
    before = table(*rows)
    assert to_table(to_frame(before, BY, Receipt())).equals(before)


@pytest.mark.parametrize(
    "values",
    [
        [1, None],
        [1.5, None],
        ["NA", None],
        pytest.param([None, None], id="nothing"),
        [True, None],
        [],
    ],
)
def test_an_unknown_field_survives_the_way_to_a_frame_and_back(values: list[object]) -> None:
    """A column the catalog does not know is unchanged after the way to a frame and back."""
    before = with_field(values)
    assert to_table(to_frame(before, BY, Receipt())).equals(before)


def test_receipt_dtypes_and_values_survive_parquet(tmp_path: Path) -> None:
    """A frame written to Parquet and read again has the same values, dtypes and receipt."""
    receipt = Receipt(asked=QueryRecord(by=("country_code",)), requests=1)
    result = to_frame(table(row("NA"), row(None)), BY, receipt)
    result.to_parquet(tmp_path / "frame.parquet")
    again = pd.read_parquet(tmp_path / "frame.parquet")
    pd.testing.assert_frame_equal(result, again)
    assert again.attrs == result.attrs == {"gamelens": receipt.to_json()}


# Titles


GAMES = from_rows(
    [{"timestamp": DAY, "game_id": game, "event_count": 1} for game in ("1", "2", None)],
    schema("event_count", ("game_id",)),
)


def test_the_title_stands_beside_the_game_id() -> None:
    """A game without a title shows its id, and a null id stays null."""
    result = add_titles(GAMES, {"game_id": {"1": "Saga"}})
    assert result.column_names == ["timestamp", "game_id", "game", "event_count"]
    assert result["game"].to_pylist() == ["Saga", "2", None]


def test_titles_of_games_and_studios_stand_beside_their_ids() -> None:
    """Each id column is followed by its own title column."""
    both = order_columns(GAMES.append_column("studio_id", pa.array(["s1", None, "s2"])), ("studio_id", "game_id"))
    result = add_titles(both, {"game_id": {"1": "Saga", "2": "Ember"}, "studio_id": {"s1": "North"}})
    assert result.column_names == ["timestamp", "studio_id", "studio", "game_id", "game", "event_count"]
    assert result["studio"].to_pylist() == ["North", None, "s2"]


@pytest.mark.parametrize("to", ["pandas", "arrow"])
def test_titles_are_categories_too(to: Kind) -> None:
    """Title columns are categories, or dictionaries in Arrow."""
    result = to_frame(add_titles(GAMES, {"game_id": {"1": "Saga", "2": "NA"}}), ("game_id",), Receipt(), to)
    assert result["game"].to_pylist() if to == "arrow" else result["game"].dropna().tolist() == ["Saga", "NA"]
    assert "category" in str(result["game"].dtype) if to == "pandas" else pa.types.is_dictionary(result["game"].type)


def test_an_empty_answer_has_titles_too() -> None:
    """An empty answer has its title column, a category."""
    result = add_titles(schema("event_count", ("game_id",)).empty_table(), {"game_id": {"1": "Saga"}})
    assert dtypes(to_frame(result, ("game_id",), Receipt()))["game"] == "category"


def test_a_repeated_title_gets_its_studio() -> None:
    """Games with the same title are told apart by their studio."""
    games = [
        GameListing("1", "Saga", "s1", "North"),
        GameListing("2", "Saga", "s2", "South"),
        GameListing("3", "Ember", "s2", "South"),
    ]
    assert unique_game_titles(games) == {"1": "Saga (North)", "2": "Saga (South)", "3": "Ember"}


def test_a_title_repeated_in_its_studio_gets_its_id() -> None:
    """Games with the same title in one studio are told apart by their id."""
    games = [GameListing("1", "Saga", "s1", "North"), GameListing("2", "Saga", "s1", "North")]
    assert unique_game_titles(games) == {"1": "Saga (North, 1)", "2": "Saga (North, 2)"}


def test_a_repeated_studio_gets_its_id() -> None:
    """Studios with the same name are told apart by their id."""
    studios = [Studio("s1", "North"), Studio("s2", "North"), Studio("s3", "South")]
    assert unique_studio_names(studios) == {"s1": "North (s1)", "s2": "North (s2)", "s3": "South"}


# Lists and restatements


def test_lists_are_frames_of_text() -> None:
    """Lists of games and studios have text columns, in which "NA" is a title."""
    games = games_frame([GameListing("1", "NA", "s1", None)])
    studios = studios_frame([Studio("s1", "North")])
    assert games.isna().to_numpy().tolist() == [[False, False, False, True]]
    assert {*dtypes(games).values(), *dtypes(studios).values()} == {"str"}


@pytest.mark.parametrize("rows", [0, 1])
def test_empty_lists_have_their_columns(rows: int) -> None:
    """Lists have the same columns and dtypes with and without rows."""
    games = games_frame([GameListing("1", "Saga", "s1", "North")] * rows)
    studios = studios_frame([Studio("s1", "North")] * rows)
    assert dtypes(games) == dict.fromkeys(["game_id", "game", "studio_id", "studio"], "str")
    assert dtypes(studios) == dict.fromkeys(["studio_id", "studio"], "str")


MOVED = RestatementRecord(
    metric="revenue",
    timestamp="2026-11-01T00:00:00+00:00",
    by=("country_code", "platform"),
    field="sum",
    before=10,
    after=12.5,
    rows=3,
    before_as_of="2026-11-20T10:00:00+00:00",
    as_of="2026-11-20T11:30:00.25+00:00",
)


def test_a_restatement_has_the_difference_of_its_totals() -> None:
    """A restatement row has both totals, their difference and the number of changed rows."""
    (result,) = restatements_frame([MOVED]).to_dict("records")
    assert result == {
        "metric": "revenue",
        "timestamp": pd.Timestamp(DAY),
        "by": "country_code, platform",
        "field": "sum",
        "before": 10.0,
        "after": 12.5,
        "moved": 2.5,
        "rows": 3,
        "before_as_of": pd.Timestamp("2026-11-20T10:00Z"),
        "as_of": pd.Timestamp("2026-11-20T11:30:00.25Z"),
    }


def test_a_restatement_without_totals_has_no_difference() -> None:
    """A field that does not add up has NA for both totals and the difference."""
    result = restatements_frame([msgspec.structs.replace(MOVED, before=None, after=None, by=())])
    assert result[["before", "after", "moved"]].isna().all(axis=None)
    assert result["by"].tolist() == [""]


def test_moments_with_and_without_a_fraction_stand_in_one_column() -> None:
    """Times with and without fractional seconds are parsed in one column."""
    result = restatements_frame([MOVED, msgspec.structs.replace(MOVED, as_of="2026-11-20T12:00:00+00:00")])
    assert result["as_of"].tolist() == [pd.Timestamp("2026-11-20T11:30:00.25Z"), pd.Timestamp("2026-11-20T12:00Z")]


@pytest.mark.parametrize("entries", [[], [MOVED], [msgspec.structs.replace(MOVED, before=None, after=None), MOVED]])
def test_restatements_have_their_dtypes(entries: list[RestatementRecord]) -> None:
    """The restatement frame has the same dtypes with and without rows and totals."""
    assert dtypes(restatements_frame(entries)) == {
        "metric": "str",
        "timestamp": "datetime64[us, UTC]",
        "by": "str",
        "field": "str",
        "before": "float64",
        "after": "float64",
        "moved": "float64",
        "rows": "Int64",
        "before_as_of": "datetime64[us, UTC]",
        "as_of": "datetime64[us, UTC]",
    }
