"""One answer as pandas, Arrow and polars, from the service and from a replay."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pandas as pd
import pyarrow as pa
import pytest

from gamelens.client.sync_client import Client
from gamelens.errors import BadQuery, NotRecorded, NotYetAvailable
from support.watched_service import World, assert_equal, quick, rows_of

pytestmark = pytest.mark.slow

Make = Callable[..., Client]
OVER = "2026-10-20/2026-11-20"
QUERIES: list[dict[str, Any]] = [
    {"metric": "event_count", "by": None},
    {"metric": "revenue", "by": ["game", "country_code"], "every": "week"},
    {"metric": ["revenue", "ilrd_revenue", "conversion"], "by": "platform"},
    {"metric": "user_unique", "by": ["studio", "platform", "build"], "every": "month"},
    {"metric": "session_length", "by": "ad_type"},
    {"metric": "event_count", "by": "platform", "top": 1, "other": True},
]
TYPES = {"datetime64[us, UTC]": pa.timestamp("us", tz="UTC"), "Int64": pa.int64(), "float64": pa.float64()}


def arrow_rows(table: pa.Table) -> list[dict[str, Any]]:
    """Return the rows of *table* without titles."""
    return [
        {name: row[name] for name in table.column_names if name not in ("game", "studio")} for row in table.to_pylist()
    ]


def same_receipt(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Return whether two receipts are equal but for time and number of requests."""
    return {**one, "asked_at": "", "requests": 0} == {**other, "asked_at": "", "requests": 0}


@pytest.mark.shown_by(2)
@pytest.mark.parametrize("arguments", QUERIES, ids=str)
def test_arrow_has_the_columns_rows_and_receipt_of_pandas(world: World, arguments: dict[str, Any]) -> None:
    """Counts are int64, numbers float64, dimensions dictionaries, the receipt metadata."""
    lens = quick(world.watch())
    frame, table = lens.query(**arguments, over=OVER), lens.query(**arguments, over=OVER, to="arrow")
    assert isinstance(table, pa.Table)
    assert table.column_names == frame.columns.tolist()
    assert arrow_rows(table) == rows_of(pd.DataFrame(frame))
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


@pytest.mark.parametrize("arguments", QUERIES, ids=str)
def test_polars_has_the_columns_and_rows_of_pandas(world: World, arguments: dict[str, Any]) -> None:
    """A polars frame has the columns and rows of the pandas frame."""
    polars = pytest.importorskip("polars")
    lens = quick(world.watch())
    frame, other = lens.query(**arguments, over=OVER), lens.query(**arguments, over=OVER, to="polars")
    assert isinstance(other, polars.DataFrame)
    assert other.columns == frame.columns.tolist()
    assert arrow_rows(other.to_arrow()) == rows_of(pd.DataFrame(frame))
    assert other.schema["timestamp"] == polars.Datetime("us", "UTC")


def test_retention_has_all_three_kinds(world: World) -> None:
    """Retention has the same rows as pandas, Arrow and polars."""
    lens = quick(world.watch())
    arguments: dict[str, Any] = {"days": [1, 7], "over": OVER, "by": ["game", "platform"]}
    frame, table = lens.retention(**arguments), lens.retention(**arguments, to="arrow")
    assert arrow_rows(table) == rows_of(frame)
    assert json.loads(table.schema.metadata[b"gamelens"])["asked"]["days"] == [1, 7]
    pytest.importorskip("polars")
    other: Any = lens.retention(**arguments, to="polars")
    assert arrow_rows(other.to_arrow()) == rows_of(frame)


@pytest.mark.parametrize("arguments", QUERIES[1:4], ids=str)
def test_an_empty_answer_has_the_same_types(world: World, arguments: dict[str, Any]) -> None:
    """An empty answer has the columns and types of a full one, in all three kinds."""
    lens = quick(world.watch())
    empty: dict[str, Any] = {**arguments, "over": "2026-10-08/2026-10-10"}
    frame, table = lens.query(**empty), lens.query(**empty, to="arrow")
    full = lens.query(**arguments, over=OVER)
    assert (len(frame), len(table)) == (0, 0)
    assert frame.dtypes.astype(str).tolist() == full.dtypes.astype(str).tolist()
    types = [kind if not pa.types.is_dictionary(kind) else kind.value_type for kind in table.schema.types]
    assert types == [TYPES.get(str(kind), pa.string()) for kind in full.dtypes]
    polars = pytest.importorskip("polars")
    other = lens.query(**empty, to="polars")
    assert other.columns == full.columns.tolist()
    assert other.schema == lens.query(**arguments, over=OVER, to="polars").schema
    assert isinstance(other, polars.DataFrame)


def test_a_receipt_in_arrow_survives_parquet(world: World, tmp_path: Path) -> None:
    """The receipt of an Arrow table survives Parquet."""
    import pyarrow.parquet as pq

    table = quick(world.watch()).query("revenue", by="platform", over=OVER, to="arrow")
    pq.write_table(table, tmp_path / "table.parquet")
    assert pq.read_table(tmp_path / "table.parquet").schema.metadata[b"gamelens"] == table.schema.metadata[b"gamelens"]


@pytest.mark.parametrize("to", ["csv", "Pandas", "", None])
def test_an_unknown_kind_is_refused_before_anything_is_sent(world: World, to: str | None) -> None:
    """Any other value of `to` is a `BadQuery`, and no request is sent."""
    watch = world.watch()
    with pytest.raises(BadQuery, match="to = "):
        quick(watch).query("revenue", over=OVER, to=to)  # type: ignore[arg-type]
    assert watch.sent == []


def test_null_is_not_turned_into_text(world: World) -> None:
    """A null dimension value stays null and becomes no text (Wire 4.10, Dimensions)."""
    table = quick(world.watch()).query("event_count", by="country_code", over=OVER, every="all", to="arrow")
    values = table["country_code"].to_pylist()
    assert None in values
    assert not {"None", "nan", "NaN", "", "null"} & set(values)


Report = tuple[Path, list[pd.DataFrame]]
"""A folder with recorded answers, and the frames made of them."""


def report_frames(lens: Client) -> list[pd.DataFrame]:
    """Return the frames of a report: metrics, a fan-out, retention and a list."""
    frames = [lens.query(**arguments, over=OVER) for arguments in QUERIES]
    frames.append(lens.retention([1, 7], over=OVER, by="platform"))
    frames.append(lens.games(over=OVER))
    return frames


@pytest.fixture(scope="module")
def recorded(world: World, tmp_path_factory: pytest.TempPathFactory) -> Report:
    """Return a folder with the recorded answers of a report, and its frames."""
    folder = tmp_path_factory.mktemp("recorded")
    pool = httpx.ASGITransport(world.watch())
    with Client(api_key="key-of-acme", metrics_url="http://127.0.0.1:7", transport=pool, record=folder) as lens:
        return folder, report_frames(lens)


def test_a_report_replays_without_key_address_or_network(recorded: Report, monkeypatch: pytest.MonkeyPatch) -> None:
    """A replay needs neither key nor address; frames are equal but for requests and origin."""
    monkeypatch.delenv("GAMELENS_API_KEY", raising=False)
    folder, frames = recorded
    with Client(replay=folder) as lens:
        for frame, again in zip(frames, report_frames(lens), strict=True):
            assert_equal(again, frame)
            if "gamelens" in frame.attrs:
                receipt = again.attrs["gamelens"]
                assert (receipt["requests"], receipt["provenance"]["kind"]) == (0, "replay")
                origin = {"provenance": frame.attrs["gamelens"]["provenance"]}
                assert same_receipt(receipt | origin, frame.attrs["gamelens"])
        assert lens.cache is None


def test_a_query_not_recorded_names_the_nearest_recorded_one(recorded: Report) -> None:
    """A query that was not recorded raises `NotRecorded` with the nearest that was."""
    folder, _ = recorded
    with Client(replay=folder) as lens, pytest.raises(NotRecorded) as missing:
        lens.query("event_count", over=OVER, by="platform", where={"build": "1.0"})
    assert "/metrics/v1/metrics/event_count" in missing.value.asked
    assert "/metrics/v1/metrics/event_count" in str(missing.value.nearest)
    assert "platform" in str(missing.value.nearest)


def test_a_replay_plans_like_a_service(recorded: Report) -> None:
    """`plan` works on a replay and lists the requests of the service."""
    folder, _ = recorded
    with Client(replay=folder) as lens:
        assert len(lens.plan("event_count", over=OVER).pieces) == 1


def test_a_replay_does_not_wait_for_data(recorded: Report) -> None:
    """Data that was not available when recorded is refused at once."""
    folder, _ = recorded
    began = time.monotonic()
    with Client(replay=folder, refresh_s=60) as lens, pytest.raises(NotYetAvailable):
        lens.query("event_count", over="2026-11-10/2026-11-25", when_unavailable="wait")
    assert time.monotonic() - began < 20
