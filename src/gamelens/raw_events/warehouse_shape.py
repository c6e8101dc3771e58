"""The event tables of the service's own warehouse, as one SELECT of the columns that analyses know.

The warehouse has a table for each kind of event, with a row for each event that was received: `design_event`,
`progression_event` and others. Public pages describe their columns; they call the partition column both `event_dt` and
`event_date`, so it is looked up. No public page shows sessions, countries, platforms or purchases among these tables.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from gamelens.errors import Refused
from gamelens.sandbox.engines.bigquery_tables import DescribedTable

Types = Mapping[str, str]

_PARTS: Final = {
    "design": ("event_id_01", "event_id_02", "event_id_03", "event_id_04", "event_id_05"),
    "progression": ("progression_status", "progression_1", "progression_2", "progression_3"),
    "resource": ("flow_type", "resource_currency", "item_type", "item_id"),
    "ads": ("ad_sdk_name", "ad_type", "ad_action"),
}
"""The columns that tell an event of a category, in the order of the parts of its id; ads have no id."""
_CATEGORIES: Final = {
    "design_event": "design",
    "progression_event": "progression",
    "resource_event": "resource",
    "adactivty_event": "ads",  # as the public page spells it
    "adactivity_event": "ads",
}
_TEXTS: Final = ("custom_01", "custom_02", "custom_03", *_PARTS["ads"])
_PARTITIONS: Final = ("event_dt", "event_date")
_NEEDED: Final = ("game_id", "user_id", "event_client_ts")


class WarehouseEvents(NamedTuple):
    """The events of a warehouse.

    Attributes:
        select: plain SQL over the tables, with the names of our contract.
        columns: the types of its columns, in BigQuery's words.
        read: the names of the tables.
        unread: the names of tables of the dataset that are not read.
    """

    select: str
    columns: dict[str, str]
    read: tuple[str, ...]
    unread: tuple[str, ...]


def category_of(name: str) -> str | None:
    """Return the category of the events of a table, None for a table whose columns no public page describes."""
    return _CATEGORIES.get(name.rpartition(".")[2])


def warehouse_events(tables: Sequence[DescribedTable], others: Sequence[str]) -> WarehouseEvents:
    """Return the events of *tables*, and of *others* nothing but the names.

    Raises:
        Refused: no table has the columns that the public pages describe.
    """
    known = [table for table in tables if not _missing(table.columns, category_of(table.name) or "")]
    unread = (*others, *(table.name for table in tables if table not in known))
    if not known:
        missing = "; ".join(
            f"{table.name} lacks {', '.join(_missing(table.columns, category_of(table.name) or ''))}"
            for table in tables
        )
        raise Refused(
            f"the dataset has no table of events that the public pages describe, such as design_event"
            f"{f': {missing}' if missing else ''}. Name one table without shape=, and its columns by columns="
        )
    first = known[0].columns
    columns = {
        "game_id": first["game_id"],
        "user_id": first["user_id"],
        "category": "STRING",
        "ts": first["event_client_ts"],
        "event_id": "STRING",
        **{name: "STRING" for name in _TEXTS if any(name in table.columns for table in known)},
    }
    if all("session_id" in table.columns for table in known):
        columns["session_id"] = "STRING"
    if all("event_arrival_ts" in table.columns for table in known):
        columns["arrived_at"] = first["event_arrival_ts"]
    if all(_partition(table) for table in known):
        columns["day"] = "DATE"
    select = " UNION ALL ".join(_select(table, columns) for table in known)
    return WarehouseEvents(select, columns, tuple(table.name for table in known), unread)


def _missing(columns: Types, category: str) -> list[str]:
    return [name for name in (*_NEEDED, *_PARTS[category][:1]) if name not in columns]


def _partition(table: DescribedTable) -> str | None:
    """Return the column of dates by which a table is partitioned."""
    named = (table.partition, *_PARTITIONS)
    return next((name for name in named if name and table.columns.get(name) == "DATE"), None)


def _select(table: DescribedTable, columns: Types) -> str:
    """Return the events of one table, as SQL."""
    category = category_of(table.name) or ""
    parts = [name for name in _PARTS[category] if name in table.columns]
    event_id = parts[0] + "".join(f" || coalesce(':' || {name}, '')" for name in parts[1:])
    values = {
        "category": f"'{category}'",
        "ts": "event_client_ts",
        "arrived_at": "event_arrival_ts",
        "event_id": "CAST(NULL AS VARCHAR)" if category == "ads" else event_id,
        "day": _partition(table) or "",
    }
    for name in columns:
        if name not in values:
            values[name] = name if name in table.columns else "CAST(NULL AS VARCHAR)"
    listed = ", ".join(f"{values[name]} AS {name}" for name in columns)
    return f'SELECT {listed} FROM "{table.name}"'  # noqa: S608
