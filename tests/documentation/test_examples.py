"""The examples of docstrings: every analysis has one, and each runs as it is typed, on a few simulated players.

A reader has a client `lens`, a lake `lake`, `gamelens` as `gl`, the topics of `gamelens.analysis`, and sample files in
the working directory.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator, Sized
from contextlib import chdir
from importlib import import_module
from typing import Any, Final

import pytest
from pandas import DataFrame

import gamelens as gl
from docs.name_uses import Use
from docs.public_names import GROUPS, docstring_examples, names_page, public_names
from gamelens import analysis, raw_events
from gamelens.analysis.tidy_frames.results import ResultRecord, public_name
from gamelens.analysis.tidy_frames.returned_columns import KEYS, declared_columns
from gamelens.local.sample_data import write_files
from gamelens.sandbox.state.state_directory import read_checked
from gamelens.simulator import load_scenario
from gamelens.simulator.output.external_files import outside_files
from support.game_events import NOW
from support.sandbox_stage import Stage
from support.simulated_lakes import make_lake
from support.watched_service import Watch, quick

EXAMPLES: Final = {name: code for group in GROUPS for name, code in docstring_examples(group)}
ROOMS: Final = ("gamelens.analysis.", "gamelens.raw_events.")
OF_GL: Final = ("gamelens.in_periods", "gamelens.reconcile", "gamelens.retention_definitions", "gamelens.retention_gap")
ANALYSES: Final = {
    name: value
    for group in GROUPS
    for name, value in public_names(group)
    if inspect.isfunction(value) and (name.startswith(ROOMS) or name in OF_GL)
}
SHOWN: Final = (
    "gamelens.EventTable.run",
    "gamelens.export_excel",
    "gamelens.reconcile",
    "gamelens.notebook.conclusions",
    "gamelens.analysis.ads.waterfall",
    "gamelens.analysis.decomposition.decompose",
    "gamelens.analysis.revenue.arpdau",
    "gamelens.analysis.retention.average_curve",
    "gamelens.analysis.experiments.compare",
    "gamelens.analysis.over_days.over_days",
    "gamelens.analysis.significance.holm",
    "gamelens.analysis.health.board",
    "gamelens.analysis.outside_data.cost_per_install",
    "gamelens.analysis.tidy_frames.ratio",
    "gamelens.analysis.totals.total",
    "gamelens.analysis.changes.change",
    "gamelens.analysis.claims.of",
    "gamelens.raw_events.count_events",
)
"""One of each topic, which `make test` runs; the others are part of `make test-wide`."""
MOST_LINES: Final = 4
FINDS_NOTHING: Final = {"gamelens.analysis.ads.unlisted_names", "gamelens.analysis.tidy_frames.warn_of_mixture"}
"""What lists trouble, of which these players have none."""
OF_OTHER_MEASURES: Final = {"gamelens.analysis.experiments.per_new_player": {"successes"}}
"""Columns that a result has for other arguments."""
NOTES: Final = """
[[annotation]]
kind = "campaign"
name = "Launch in Japan"
from = 2026-11-01
to = 2026-11-03
game = "A game of another studio"
"""


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """Yield what a reader has, in a folder of sample files and a lake."""
    folder, scenario = tmp_path_factory.mktemp("examples"), load_scenario("small")
    make_lake(folder / "lake", scenario, now=NOW)
    write_files(outside_files(scenario, ends_on=NOW.date()) | {"health.toml": NOTES}, folder)
    stage = Stage(folder / "lake", tenants=None)
    (key,) = read_checked(folder / "lake" / "keys.json", dict[str, str]).values()
    topics = {topic: import_module(f"gamelens.analysis.{topic}") for topic in analysis.__all__}
    lens = quick(Watch(stage.metrics_app, {}), key=key, now=NOW.timestamp)
    with chdir(folder), gl.open_lake("lake", progress=False) as lake:
        yield {**topics, "raw_events": raw_events, "gl": gl, "lens": lens, "lake": lake}
    stage.sandbox.close()


def test_every_analysis_has_an_example() -> None:
    """Of at most four lines, which call it."""
    assert [name for name in ANALYSES if name not in EXAMPLES] == []
    for name in ANALYSES:
        *_, room, own = name.split(".")
        assert f"{room if room != 'gamelens' else 'gl'}.{own}(" in EXAMPLES[name], name
        assert EXAMPLES[name].count("\n") < MOST_LINES, name


@pytest.mark.shown_by(*SHOWN)
@pytest.mark.slow
@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_runs(name: str, names: dict[str, Any]) -> None:
    """Its last line shows the result of the analysis: rows, with the columns that it declares."""
    result = shown(name, dict(names))
    if name not in ANALYSES:
        return
    assert result is not None
    assert name in FINDS_NOTHING or not is_empty(result)
    columns = declared_columns(ANALYSES[name]).columns
    if columns:
        assert isinstance(result, DataFrame)
        assert getattr(ResultRecord.of(result.attrs), "name", "") == public_name(ANALYSES[name])
        listed = {each.name for each in columns if each is not KEYS}
        assert listed - {*result.columns} == OF_OTHER_MEASURES.get(name, set())


def shown(name: str, names: dict[str, Any]) -> Any:
    """Run the example of *name* and return the value of its last line, None if that is no expression."""
    *statements, last = ast.parse(EXAMPLES[name]).body
    exec(compile(ast.Module(statements, []), name, "exec"), names)
    if isinstance(last, ast.Expr):
        return eval(compile(ast.Expression(last.value), name, "eval"), names)
    exec(compile(ast.Module([last], []), name, "exec"), names)
    return None


def is_empty(result: Any) -> bool:
    """Return whether a frame, an array, a list or a text has nothing in it."""
    return bool(result.size == 0) if hasattr(result, "size") else isinstance(result, Sized) and len(result) == 0


def test_a_line_of_a_page_is_shown_where_the_docstring_has_none() -> None:
    """Not beside another example, in the reference."""
    use = Use("a_line_of_a_page()", "page.md", "Page", is_named=True)
    page = names_page("local", dict.fromkeys(("gamelens.local.sandbox_for", "gamelens.local.sample_files"), use))
    sections = {part.partition("\n")[0]: part for part in page.split("\n## ")}
    assert f"```python\n{EXAMPLES['gamelens.local.sandbox_for']}\n```" in sections["local.sandbox_for"]
    assert use.code not in sections["local.sandbox_for"]
    assert use.code in sections["local.sample_files"]
