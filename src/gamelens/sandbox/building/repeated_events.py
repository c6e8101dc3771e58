"""Repeated events: a client sends a batch again whose answer it did not get, and the first copy of an event counts.

A copy has the `event_uuid` of an earlier event, in the same batch or in the lake (Wire 4.8, Repeated events).
"""

from __future__ import annotations

from typing import Final

import msgspec

from gamelens.sandbox.building.event_facts import RunFacts, TableFacts
from gamelens.sandbox.engines.engine import BuildEngine
from gamelens.sandbox.storage.lake_schema import EVENT_COLUMNS

MOST_EVENTS: Final = 2_000_000
"""Events that are taken at once. More are split, except for an empty lake, whose fresh events are not copied."""


class FreshEvents(msgspec.Struct, frozen=True):
    """The staged events that count, as the table `fresh` of the engine, with the columns of the table of events.

    *events* of them count, *repeats* do not. *purchases* and *impressions* are how many events of these categories
    there are, repeats included: where there are none, their tables need not be looked at. *anti_join_sql* is the end of
    a FROM clause: it takes the repeats away from a relation that has a `seq`.
    """

    events: int
    repeats: int
    purchases: int
    impressions: int
    anti_join_sql: str


def make_fresh(sql: BuildEngine, facts: RunFacts | TableFacts, *, counts_repeats: bool) -> FreshEvents:
    """Make the table `fresh` from the table `staged`. With *counts_repeats* every staged event counts."""
    sql.create("repeated", facts.repeated("staged"))  # also where repeats count: it writes the runs of the names
    ((staged, purchases, impressions, repeats),) = sql.run("""
        SELECT * FROM (
            SELECT count(*) AS events, count(CASE WHEN category = 'business' THEN 1 END) AS purchases,
                count(CASE WHEN category = 'impression' THEN 1 END) AS impressions FROM staged
        ), (SELECT count(*) AS repeats FROM repeated)""")
    if counts_repeats:
        repeats = 0
    anti_join_sql = "ANTI JOIN repeated USING (seq)" if repeats else ""
    create = sql.create if staged <= MOST_EVENTS else sql.create_view
    create("fresh", f"SELECT {', '.join(EVENT_COLUMNS)} FROM staged {anti_join_sql}")
    return FreshEvents(staged - repeats, repeats, purchases, impressions, anti_join_sql)
