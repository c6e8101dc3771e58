"""Event Data: the SQL that makes event rows of its Parquet tables.

Wire 5.7, Event Data. A table has the events of one category, which its columns tell. What the tables lack is null in
the lake.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from gamelens.sandbox.engines.duckdb_engine import literal
from gamelens.sandbox.imports.remarks import NO_REVENUE
from gamelens.sandbox.imports.source_files import DamagedFileError
from gamelens.sandbox.storage.dating import StatedTime, device_time, service_time_fault
from gamelens.sandbox.storage.lake_schema import EVENT_COLUMNS
from gamelens.wire.dimensions import DIMENSIONS

_NANOS_PER_CENT: Final = 10**7
_MOST_CENTS: Final = 4 * 10**11
_PER_S: Final = 10**6  # times are in microseconds

_COMMON: Final = {
    *("event_dt", "event_client_ts", "event_arrival_ts", "game_id", "user_id", "player_id", "session_id"),
    *("custom_01", "custom_02", "custom_03", "custom_fields", "value"),
}
_TABLES: Final[dict[str, tuple[str, ...]]] = {  # by category; an event has one of the first two columns
    "ads": ("ad_action", "ad_type", "ad_sdk_name", "ad_placement", "ad_fail_show_reason", "ad_duration"),
    "impression": (
        *("publisher_revenue_usd_cents", "adunit_name", "ad_network_name", "adgroup_name", "adgroup_type"),
        "adunit_format",
    ),
    "design": ("event_id_01", "event_id_02", "event_id_03", "event_id_04", "event_id_05"),
    "progression": (
        *("progression_status", "progression_1", "progression_2", "progression_3", "score", "attempt_num"),
    ),
    "resource": ("flow_type", "item_type", "item_id", "currency", "amount"),
    "error": ("severity", "message"),
}
_IDS: Final = {
    "design": _TABLES["design"],
    "progression": ("progression_status", "progression_1", "progression_2", "progression_3"),
    "resource": ("flow_type", "currency", "item_type", "item_id"),
}
"""Columns of the parts of an `event_id`, by category."""
_DOCUMENTED: Final = _COMMON.union(*_TABLES.values())
_NEEDED: Final = ("event_arrival_ts", "game_id", "user_id")


def unknown_columns(columns: Mapping[str, str]) -> list[str]:
    """Return the names of *columns* that are not documented."""
    return [name for name in columns if name not in _DOCUMENTED]


def missing_columns(columns: Mapping[str, str]) -> list[str]:
    """Return the documented columns of the categories of the table that *columns* lacks, sorted."""
    expected = _COMMON.union(*(_TABLES[name] for name in _categories(columns)))
    return sorted(expected - set(columns) - ({"value"} if "design" not in _categories(columns) else set()))


def _categories(columns: Mapping[str, str]) -> list[str]:
    """Return the categories of events that *columns* tell."""
    return [name for name, columns_of in _TABLES.items() if columns_of[0] in columns or columns_of[1] in columns]


def table_rows_sql(path: str, columns: Mapping[str, str], *, first_seq: int, game_sql: str, oldest_days: int) -> str:
    """Return the SQL of the rows of the Parquet file at *path*, whose *columns* have Arrow types by name.

    The rows have the columns of the events table, `installed`, `first_build`, `install_fault` and `valued_in`, which
    are null, `arrived`, the day of arrival, and reasons, or null: `dated_by`, why an event is dated by its arrival,
    `remark`, what is unlikely about it, and `fault`, why a row is not an event. *first_seq* is the number of the first
    row, *game_sql* the SQL of the game's id in the lake, of `exported_game`; `staging.stage` describes *oldest_days*.

    Raises:
        DamagedFileError: the columns do not belong to Event Data.
    """
    categories = _categories(columns)
    lacking = [name for name in _NEEDED if name not in columns]
    if lacking or not categories:
        raise DamagedFileError(f"it has no column {' and '.join(lacking) or 'that shows an event category'}")
    sent = '"event_client_ts"' if "event_client_ts" in columns else "NULL"
    time = device_time(
        "event_client_ts",
        sent=sent,
        number="client_us",
        arrival="arrival_us",
        oldest_days=oldest_days,
        per_second=_PER_S,
    )
    values = _values(columns, time) | {"game_id": game_sql}
    listed = ", ".join(
        f'{values.get(name, f"CAST(NULL AS {kind})")} AS "{name}"'
        for name, kind in EVENT_COLUMNS.items()
        if name not in ("seq", "day", "arrived_at")
    )
    fault = """CASE
        WHEN arrival_fault IS NOT NULL THEN arrival_fault
        WHEN exported_game IS NULL THEN 'no game_id'
        WHEN category IS NULL THEN 'no known category'
        WHEN user_id IS NULL THEN 'no user_id' END"""
    client_us, arrived_us = (
        _time_us_sql(name, columns.get(name, "")) for name in ("event_client_ts", "event_arrival_ts")
    )
    arrival_fault = service_time_fault(
        "event_arrival_ts", "arrived_us", otherwise="no usable event_arrival_ts", per_second=_PER_S
    )
    read = ", ".join(f'"{name}"' for name in columns if name in _DOCUMENTED)
    added = {"day": "CAST(ts AS DATE) AS day", "arrived_at": "arrival AS arrived_at"}
    ordered = ", ".join(added.get(name, name) for name in EVENT_COLUMNS)
    return f"""
        WITH read AS (
            SELECT {read}, {first_seq} + file_row_number AS seq, CAST(game_id AS VARCHAR) AS exported_game,
                {_category_sql(categories, columns)} AS category, {client_us} AS client_us, {arrived_us} AS arrived_us
            FROM read_parquet({literal(path)}, file_row_number = true)
        ), judged AS (SELECT *, {arrival_fault} AS arrival_fault FROM read
        ), arrived AS (
            SELECT *, CASE WHEN arrival_fault IS NULL THEN CAST(arrived_us AS BIGINT) END AS arrival_us FROM judged
        ), placed AS (
            SELECT seq, make_timestamp(arrival_us) AS arrival, {listed}, {time.reason} AS dated_by, {fault} AS fault,
                CASE WHEN category = 'impression' AND NOT {_has_revenue_sql(columns)} THEN '{NO_REVENUE}' END AS remark
            FROM arrived
        )
        SELECT {ordered}, CAST(NULL AS BIGINT) AS installed, CAST(NULL AS VARCHAR) AS first_build,
            CAST(CASE WHEN fault IS NULL THEN arrival END AS DATE) AS arrived,
            dated_by, CAST(NULL AS VARCHAR) AS install_fault, CAST(NULL AS VARCHAR) AS valued_in, remark, fault
        FROM placed"""  # noqa: S608


def _values(columns: Mapping[str, str], time: StatedTime) -> dict[str, str]:
    """Return the SQL of each column of an event that Event Data knows, but for the game."""

    def text(name: str) -> str:
        return f'CAST("{name}" AS VARCHAR)' if name in columns else "CAST(NULL AS VARCHAR)"

    cents = _cents_sql(columns)
    is_impression = "category = 'impression'"
    sent = (
        (dimension.name, dimension.only, dimension.event_data)
        for dimension in DIMENSIONS.values()
        if dimension.event_data
    )
    return {
        "ts": f"make_timestamp(CASE WHEN {time.is_used} THEN CAST(client_us AS BIGINT) ELSE arrival_us END)",
        "category": "category",
        "user_id": text("user_id"),
        "session_id": text("session_id"),
        **{
            name: f"CASE WHEN category = '{only}' THEN {text(column)} END" if only else text(column)
            for name, only, column in sent
        },
        "ilrd_id": f"CASE WHEN {is_impression} THEN 's' || seq END",
        "money": f"CASE WHEN {is_impression} THEN CAST(CASE WHEN {_has_revenue_sql(columns)} "
        f"THEN round({cents} * {_NANOS_PER_CENT}) ELSE 0 END AS BIGINT) END",
        "currency": f"CASE WHEN {is_impression} THEN 'USD' END",
        **{name: text(name) for name in ("custom_01", "custom_02", "custom_03")},
        "event_id": f"CASE category {' '.join(_event_id_sql(name, parts, text) for name, parts in _IDS.items())} END",
    }


def _cents_sql(columns: Mapping[str, str]) -> str:
    """Return the SQL of the revenue of an impression."""
    return 'TRY_CAST("publisher_revenue_usd_cents" AS DOUBLE)' if "publisher_revenue_usd_cents" in columns else "NULL"


def _has_revenue_sql(columns: Mapping[str, str]) -> str:
    """Return the SQL of whether the revenue of an impression is usable."""
    return f"coalesce({_cents_sql(columns)} BETWEEN 0 AND {_MOST_CENTS}, false)"


def _event_id_sql(category: str, parts: Sequence[str], text: Callable[[str], str]) -> str:
    """Return the SQL of the `event_id` of an event of *category*, made of its *parts*."""
    joined = f"concat_ws(':', {', '.join(map(text, parts))})"
    return f"WHEN '{category}' THEN nullif({joined}, '')"


def _time_us_sql(name: str, kind: str) -> str:
    """Return the SQL of a column of times in epoch microseconds.

    Numbers, also as text, are epoch seconds. It is null if the Arrow type is empty.
    """
    if not kind:
        return "CAST(NULL AS BIGINT)"
    if kind.startswith("timestamp"):
        return f'epoch_us("{name}")'
    number = f'TRY_CAST("{name}" AS HUGEINT) * {_PER_S}'
    if kind.startswith(("int", "uint", "float", "double", "decimal")):
        return number
    text = f'CAST("{name}" AS VARCHAR)'
    # A cast to a time without a zone would ignore an offset, and one with a zone adds the machine's where none is.
    has_offset = rf"regexp_matches({text}, ':\d\d(\.\d+)?\s*[+-]\d\d(:?\d\d)?$')"
    times = (f"epoch_us(TRY_CAST({text} AS {kind}))" for kind in ("TIMESTAMPTZ", "TIMESTAMP"))
    return "coalesce({}, CASE WHEN {} THEN {} ELSE {} END)".format(number, has_offset, *times)


def _category_sql(categories: list[str], columns: Mapping[str, str]) -> str:
    """Return the SQL of the category of a row.

    The table has one or, if it has several, the columns that are not null tell it.
    """
    if len(categories) == 1:
        return f"'{categories[0]}'"
    whens = []
    for category in categories:
        has_one = " OR ".join(f'"{name}" IS NOT NULL' for name in _TABLES[category][:2] if name in columns)
        whens.append(f"WHEN {has_one} THEN '{category}'")
    return f"CASE {' '.join(whens)} END"


def table_columns(path: Path) -> dict[str, str]:
    """Return the Arrow types of the columns of a Parquet file, by name.

    Raises:
        DamagedFileError: its end cannot be read.
    """
    try:
        return {column.name: str(column.type) for column in pq.read_schema(path)}
    except (OSError, pa.ArrowException) as error:
        raise DamagedFileError(f"its Parquet is damaged: {error}") from error


def check_readable(path: Path) -> None:
    """Read the whole Parquet file at *path*.

    Raises:
        DamagedFileError: it cannot be read.
    """
    try:
        with pq.ParquetFile(path) as file:
            for _ in file.iter_batches():
                pass
    except (OSError, pa.ArrowException) as error:
        raise DamagedFileError(f"its Parquet is damaged: {error}") from error
