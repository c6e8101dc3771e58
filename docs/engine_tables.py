"""What the page on other engines shows: which analyses are equal where, and one statement in the words of each.

A block of engines says `outcomes`, for the table that `make engines` writes to `docs/engines.json` from the tests that
compare every analysis, or `sql`, for a statement that is written when the page is made.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

from gamelens import raw_events
from gamelens.receipts import Provenance
from gamelens.wire.intervals import Interval

OUTCOMES: Final = Path(__file__).parent / "engines.json"
ENGINES: Final = {
    "Arrow": "Arrow",
    "Parquet": "Parquet",
    "DuckDB relation": "DuckDB",
    "Spark": "Spark",
    "Spark Connect": "Spark Connect",
    "BigQuery": "GoogleSQL",
    "Warehouse": "the service's warehouse",
}
"""Engines with the heads of their columns."""


def engines_block(text: str) -> str:
    """Return what a block of engines shows, as Markdown."""
    return {"outcomes": outcomes_table, "sql": statements}[text.strip()]()


def outcomes_table() -> str:
    """Return a table of analyses and engines: equal, refused, or not run."""
    found: Mapping[str, Mapping[str, str]] = json.loads(OUTCOMES.read_text(encoding="utf-8"))
    analyses = dict.fromkeys(name for outcomes in found.values() for name in outcomes)
    lines = [f"| analysis | {' | '.join(ENGINES.values())} |", "| --- |" + " --- |" * len(ENGINES)]
    for name in sorted(analyses):
        cells = [found.get(engine, {}).get(name, "not run") for engine in ENGINES]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def statements() -> str:
    """Return the statement of `active_players` in each dialect, as blocks."""
    from sqlglot import transpile

    from gamelens.sandbox.engines.plain_sql import DIALECTS, written_for

    statement, parameters = _statement()
    blocks = []
    for dialect in DIALECTS:
        sql = written_for(dialect, statement, parameters, {})
        (pretty,) = transpile(sql, read=dialect, write=dialect, pretty=True)
        blocks.append(f"**{dialect}**\n\n```sql\n{pretty}\n```\n")
    return "\n".join(blocks)


class _AskedError(Exception):
    """Ends an analysis at its statement."""


def _statement() -> tuple[str, Mapping[str, Any]]:
    """Return the statement of `active_players` and its parameters."""
    asked: list[tuple[str, Mapping[str, Any]]] = []

    def run(statement: str, parameters: Mapping[str, Any], _: Interval | None = None) -> None:
        asked.append((statement, parameters))
        raise _AskedError

    source: Any = SimpleNamespace(
        when_unavailable="raise",
        event_order=("arrival",),
        event_warnings=(),
        bytes_billed=0,
        provenance=Provenance(),
        dated_by_arrival={},
        available=lambda: Interval.parse("2026-10-01/2026-11-20"),
        event_games=lambda: ["1001"],
        event_columns=dict,
        run=run,
    )
    with contextlib.suppress(_AskedError):
        raw_events.active_players(source, "last 7 complete days")
    return asked[0]
