"""One answer as pandas, Arrow and polars, live, recorded and replayed (design/analyst-api, promises 1, 11, 15)."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

from gamelens.client.sync_client import Client
from gamelens.errors import BadQuery, NotRecorded, NotYetAvailable
from support.watched_service import World, assert_equal, quick, rows_of

pytestmark = pytest.mark.slow

Make = Callable[..., Client]
OVER = "2026-10-20/2026-11-20"
QUESTIONS: list[dict[str, Any]] = [
    {"metric": "event_count", "by": None},
    {"metric": "revenue", "by": ["game", "country_code"], "every": "week"},
    {"metric": ["revenue", "ilrd_revenue", "conversion"], "by": "platform"},
    {"metric": "user_unique", "by": ["studio", "platform", "build"], "every": "month"},
    {"metric": "session_length", "by": "ad_type"},
    {"metric": "event_count", "by": "platform", "top": 1, "other": True},
]
TYPES = {"datetime64[us, UTC]": pa.timestamp("us", tz="UTC"), "Int64": pa.int64(), "float64": pa.float64()}


def arrow_rows(table: pa.Table) -> list[dict[str, Any]]:
    return [
        {name: row[name] for name in table.column_names if name not in ("game", "studio")} for row in table.to_pylist()
    ]


def same_receipt(one: dict[str, Any], other: dict[str, Any]) -> bool:
    return {**one, "asked_at": "", "requests": 0} == {**other, "asked_at": "", "requests": 0}


@pytest.mark.parametrize("asked", QUESTIONS, ids=str)
def test_arrow_has_the_columns_rows_and_receipt_of_pandas(world: World, asked: dict[str, Any]) -> None:
    """Counts int64, numbers float64, dimensions dictionaries; the receipt under the metadata key gamelens."""
    lens = quick(world.watch())
    frame, table = lens.query(**asked, over=OVER), lens.query(**asked, over=OVER, to="arrow")
    assert isinstance(table, pa.Table)
    assert table.column_names == frame.columns.tolist()
    assert arrow_rows(table) == rows_of(frame)
    for field in table.schema:
        kind = str(frame[field.name].dtype)
        if kind == "category":
            assert pa.types.is_dictionary(field.type), field
            assert field.type.value_type == pa.string(), field
            values = table[field.name].combine_chunks().dictionary.to_pylist()
            assert values == frame[field.name].cat.categories.tolist()
        else:
            assert field.type == TYPES[kind], field
    assert list(table.schema.metadata) == [b"gamelens"]
    assert same_receipt(json.loads(table.schema.metadata[b"gamelens"]), frame.attrs["gamelens"])


@pytest.mark.parametrize("asked", QUESTIONS, ids=str)
def test_polars_has_the_columns_and_rows_of_pandas(world: World, asked: dict[str, Any]) -> None:
    polars = pytest.importorskip("polars")
    lens = quick(world.watch())
    frame, other = lens.query(**asked, over=OVER), lens.query(**asked, over=OVER, to="polars")
    assert isinstance(other, polars.DataFrame)
    assert other.columns == frame.columns.tolist()
    assert arrow_rows(other.to_arrow()) == rows_of(frame)
    assert other.schema["timestamp"] == polars.Datetime("us", "UTC")


def test_retention_comes_in_all_three(world: World) -> None:
    lens = quick(world.watch())
    asked: dict[str, Any] = {"days": [1, 7], "over": OVER, "by": ["game", "platform"]}
    frame, table = lens.retention(**asked), lens.retention(**asked, to="arrow")
    assert arrow_rows(table) == rows_of(frame)
    assert json.loads(table.schema.metadata[b"gamelens"])["asked"]["days"] == [1, 7]
    pytest.importorskip("polars")
    assert arrow_rows(lens.retention(**asked, to="polars").to_arrow()) == rows_of(frame)


@pytest.mark.parametrize("asked", QUESTIONS[1:4], ids=str)
def test_an_empty_answer_is_of_the_same_kind(world: World, asked: dict[str, Any]) -> None:
    """Promise 1: the same columns and dtypes."""
    lens = quick(world.watch())
    nothing: dict[str, Any] = {**asked, "over": "2026-10-08/2026-10-10"}
    frame, table = lens.query(**nothing), lens.query(**nothing, to="arrow")
    full = lens.query(**asked, over=OVER)
    assert (len(frame), len(table)) == (0, 0)
    assert frame.dtypes.astype(str).tolist() == full.dtypes.astype(str).tolist()
    types = [it if not pa.types.is_dictionary(it) else it.value_type for it in table.schema.types]
    assert types == [TYPES.get(str(it), pa.string()) for it in full.dtypes]
    polars = pytest.importorskip("polars")
    other = lens.query(**nothing, to="polars")
    assert other.columns == full.columns.tolist()
    assert other.schema == lens.query(**asked, over=OVER, to="polars").schema
    assert isinstance(other, polars.DataFrame)


def test_a_receipt_in_arrow_survives_parquet(world: World, tmp_path: Path) -> None:
    """Promise 11."""
    import pyarrow.parquet as pq

    table = quick(world.watch()).query("revenue", by="platform", over=OVER, to="arrow")
    pq.write_table(table, tmp_path / "table.parquet")
    assert pq.read_table(tmp_path / "table.parquet").schema.metadata[b"gamelens"] == table.schema.metadata[b"gamelens"]


@pytest.mark.parametrize("to", ["csv", "Pandas", "", None])
def test_a_kind_that_there_is_not_is_refused(world: World, to: Any) -> None:
    watch = world.watch()
    with pytest.raises(BadQuery, match="to = "):
        quick(watch).query("revenue", over=OVER, to=to)
    assert watch.sent == []


def test_null_is_not_namibia(world: World) -> None:
    """Promise 1: null is kept, and is no text."""
    table = quick(world.watch()).query("event_count", by="country_code", over=OVER, every="all", to="arrow")
    values = table["country_code"].to_pylist()
    assert None in values
    assert not {"None", "nan", "NaN", "", "null"} & set(values)


def ask_all(lens: Client) -> list[pd.DataFrame]:
    """A report: lists, metrics, a fan-out, retention."""
    frames = [lens.query(**asked, over=OVER) for asked in QUESTIONS]
    frames.append(lens.retention([1, 7], over=OVER, by="platform"))
    frames.append(lens.games(over=OVER))
    return frames


@pytest.fixture(scope="module")
def recorded(world: World, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A folder with the answers to a report, and the report."""
    import httpx

    folder = tmp_path_factory.mktemp("recorded")
    pool = httpx.ASGITransport(world.watch())
    with Client(api_key="key-of-acme", metrics_url="http://127.0.0.1:7", transport=pool, record=folder) as lens:
        return folder, ask_all(lens)


def test_a_report_replays_without_key_address_or_network(recorded: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Promise 15."""
    monkeypatch.delenv("GAMELENS_API_KEY", raising=False)
    folder, frames = recorded
    with Client(replay=folder) as lens:
        for frame, again in zip(frames, ask_all(lens), strict=True):
            assert_equal(again, frame)
            if "gamelens" in frame.attrs:
                assert again.attrs["gamelens"]["requests"] == 0
                assert same_receipt(again.attrs["gamelens"], frame.attrs["gamelens"])
        assert lens.cache is None


def test_what_was_not_recorded_names_the_nearest_that_was(recorded: Any) -> None:
    folder, _ = recorded
    with Client(replay=folder) as lens, pytest.raises(NotRecorded) as missing:
        lens.query("event_count", over=OVER, by="platform", where={"build": "1.0"})
    assert "/metrics/v1/metrics/event_count" in missing.value.asked
    assert "/metrics/v1/metrics/event_count" in str(missing.value.nearest)
    assert "platform" in str(missing.value.nearest)


def test_a_replay_plans_as_the_service_would_be_asked(recorded: Any) -> None:
    folder, _ = recorded
    with Client(replay=folder) as lens:
        assert len(lens.plan("event_count", over=OVER).pieces) == 1


def test_a_replay_waits_for_nothing(recorded: Any) -> None:
    """What was not available then never will be."""
    folder, _ = recorded
    began = time.monotonic()
    with Client(replay=folder, refresh_s=5) as lens, pytest.raises(NotYetAvailable):
        lens.query("event_count", over="2026-11-10/2026-11-25", when_unavailable="wait")
    assert time.monotonic() - began < 2
