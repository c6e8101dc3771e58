"""The page on other engines: its table has every analysis and engine, and its statements are those that are run."""

from __future__ import annotations

import json

from docs.engine_tables import ENGINES, OUTCOMES, engines_block
from gamelens.sandbox.engines.plain_sql import DIALECTS
from support.every_analysis import ANALYSES


def test_every_analysis_was_compared_on_every_engine() -> None:
    """All equal a lake; only the service's warehouse, which lacks columns, refuses some."""
    written = json.loads(OUTCOMES.read_text(encoding="utf-8"))
    assert {engine: written[engine].keys() for engine in ENGINES} == dict.fromkeys(ENGINES, ANALYSES.keys())
    assert {outcome for engine in ENGINES if engine != "Warehouse" for outcome in written[engine].values()} == {"equal"}
    assert set(written["Warehouse"].values()) == {"equal", "refused"}


def test_the_table_has_a_line_for_each_analysis() -> None:
    """With a cell for each engine; an engine that was not asked says so."""
    head, _, *lines = engines_block("outcomes").splitlines()
    assert head.count("|") == len(ENGINES) + 2
    assert [line.split(" | ")[0].strip("| ") for line in lines] == sorted(ANALYSES)


def test_the_statement_is_shown_in_every_dialect() -> None:
    """Each in its own words."""
    shown = engines_block("sql")
    assert shown.count("```sql") == len(DIALECTS)
    for words in ("AS TIMESTAMP)", "AS TIMESTAMP_NTZ)", "COUNTIF("):
        assert words in shown
