"""Laws that the result of every analysis keeps, and what each looks like: table, sentences, spreadsheet, units.

The files in `results` hold the looks. A change that is meant writes them anew, and shows in the diff:

    SNAPSHOTS=write .venv/bin/pytest tests/analysis/test_declared_results.py
"""

from __future__ import annotations

import copy
import inspect
import os
import re
from collections.abc import Callable, Iterator
from difflib import unified_diff
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import openpyxl
import pytest
from pandas import DataFrame
from pandas.api.types import is_numeric_dtype

import gamelens as gl
from gamelens import analysis, raw_events
from gamelens.analysis import claims
from gamelens.analysis.claims.findings import analyses
from gamelens.analysis.tidy_frames.columns import COLUMNS, Column
from gamelens.analysis.tidy_frames.frame_requirements import declared_requirements
from gamelens.analysis.tidy_frames.results import CELLS, KINDS, RESULT, ResultRecord, public_name
from gamelens.analysis.tidy_frames.returned_columns import KEYS, declared_columns
from gamelens.analysis.tidy_frames.written_columns import written_columns
from gamelens.assistant.answers import answer
from gamelens.catalog import ALIASES, METRICS
from gamelens.errors import BadQuery
from gamelens.notebook.tables.frame_table import FrameTable
from gamelens.receipts import Receipt
from gamelens.wire.dimensions import DIMENSIONS
from support.every_result import every_result, simulated_lake
from support.fresh_python import run_python

LOOKS: Final = Path(__file__).with_name("results")
COMMAND: Final = "SNAPSHOTS=write .venv/bin/pytest tests/analysis/test_declared_results.py"
OTHERS: Final = {
    *("ads.unlisted_names", "decomposition.dominant_effect", "decomposition.split_in_halves", "health.as_json"),
    *("health.unmatched_notes", "outside_data.roas", "outside_data.in_dollars", "retention.cohort_matrix"),
    *("totals.column_totals", "totals.in_periods", "totals.total", "experiments.newest_arms"),
}
"""Analyses that return no frame, or one whose columns are those of the frame they were given."""
Call = tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]
Made = tuple[dict[str, Call], dict[str, Any]]


def public() -> dict[str, Callable[..., Any]]:
    """Return the analyses that declare what they return, by public name."""
    rooms = [*(import_module(f"gamelens.analysis.{topic}") for topic in analysis.__all__), raw_events]
    functions = [value for room in rooms for value in vars(room).values() if inspect.isfunction(value)]
    declaring = {public_name(function): function for function in functions if declared_columns(function).columns}
    return dict(sorted(declaring.items()))


@pytest.fixture(scope="module")
def made() -> Made:
    """The last call of each analysis that `every_result` makes, nested ones left out, and what it returned."""
    calls: dict[str, Call] = {}
    returned: dict[str, Any] = {}
    with pytest.MonkeyPatch.context() as patch:
        for name, function in public().items():
            topic, _, own = name.partition(".")
            if topic == "raw_events":
                continue

            def recorded(*args: Any, _name: str = name, _function: Callable[..., Any] = function, **named: Any) -> Any:
                result = _function(*args, **named)
                calls[_name], returned[_name] = (_function, args, named), result
                return result

            patch.setattr(import_module(f"gamelens.analysis.{topic}"), own, recorded)
        every_result()
    return calls, returned


@pytest.fixture(scope="module")
def calls(made: Made) -> dict[str, Call]:
    """The calls of `made`."""
    return made[0]


@pytest.fixture(scope="module")
def results(made: Made, tmp_path_factory: pytest.TempPathFactory) -> dict[str, DataFrame]:
    """The result of each analysis, by its public name."""
    found = dict(made[1])
    over = ("2026-10-25", "2026-11-03")
    with simulated_lake(tmp_path_factory.mktemp("lake") / "state") as lake:
        found |= {
            "raw_events.count_events": raw_events.count_events(lake, over, every="day"),
            "raw_events.active_players": raw_events.active_players(lake, over),
            "raw_events.session_paths": raw_events.session_paths(lake, over),
            "raw_events.funnel": raw_events.funnel(lake, ["user", "session_end"], over),
            "raw_events.player_money": raw_events.player_money(lake, over, days=2),
        }
    return found


def listed(name: str) -> list[Column]:
    """Return the columns that an analysis lists."""
    return [each for each in declared_columns(public()[name]).columns if each is not KEYS]


@pytest.mark.wide
def test_no_step_of_pandas_copies_what_an_analysis_noted(results: dict[str, DataFrame]) -> None:
    """pandas makes a deep copy of `attrs` with each step, and an analysis takes hundreds."""
    noted = [frame.attrs[key] for frame in results.values() for key in (RESULT, KINDS, CELLS) if key in frame.attrs]
    assert len(noted) > 50
    assert [record for record in noted if copy.deepcopy(record) is not record] == []


def test_every_analysis_that_returns_a_frame_lists_its_columns(results: dict[str, DataFrame]) -> None:
    """So that nothing has to guess what they are."""
    topics = [import_module(f"gamelens.analysis.{topic}") for topic in analysis.__all__]
    judged = {
        public_name(each)
        for topic in topics
        for each in vars(topic).values()
        if inspect.isfunction(each) and declared_requirements(each)
    }
    returned = {name for name, frame in results.items() if isinstance(frame, DataFrame)}
    assert returned == {*public()}
    assert {name for name in judged if name not in returned} == OTHERS


def test_each_result_has_its_columns_in_their_order(results: dict[str, DataFrame]) -> None:
    """Names are unique, bounds follow their number, and what is not listed stands at the place of the keys."""
    for name, frame in results.items():
        assert frame.columns.is_unique, name
        order = []
        for each in declared_columns(public()[name]).columns:
            order += [each.name, *(bound for pair in each.bounds for bound in (pair.low, pair.high))]
        places = [order.index(column if column in order else KEYS.name) for column in map(str, frame.columns)]
        assert places == sorted(places), name


def test_each_column_has_the_dtype_of_its_kind(results: dict[str, DataFrame]) -> None:
    """Counts are Int64, categories categories, shares and money floats; times have microseconds and a zone."""
    for name, frame in results.items():
        for each in listed(name):
            if each.name not in frame:
                continue
            dtype = str(frame[each.name].dtype)
            expected = each.dtype or {"day": "datetime64[us, ", "span": "timedelta64[us]", "texts": "object"}[each.kind]
            assert dtype.startswith(expected), (name, each.name, dtype)


def test_nothing_is_missing_that_is_said_to_be_there(results: dict[str, DataFrame]) -> None:
    """A column without *na* has no missing value in any result."""
    for name, frame in results.items():
        for each in listed(name):
            if each.name in frame and not each.na and each.kind != "category":
                assert frame[each.name].notna().all(), (name, each.name)


def test_an_interval_holds_its_number(results: dict[str, DataFrame]) -> None:
    """Where all three are known."""
    for name, frame in results.items():
        for each in listed(name):
            for low, high in ((bound.low, bound.high) for bound in each.bounds if bound.low in frame):
                rows = frame[[low, each.name, high]].astype("float64").dropna()
                least, number, most = (rows[column] for column in rows)
                assert ((least <= number + 1e-9) & (number <= most + 1e-9)).all(), (name, each.name)


def test_what_is_not_listed_is_a_key(calls: dict[str, Call], results: dict[str, DataFrame]) -> None:
    """It comes from a frame that was given, or is named by an argument."""
    for name, (_, args, named) in calls.items():
        given = {"ab_id", "ab_variant_id", "measure", "network", "format"}
        for value in (*args, *named.values()):
            for one in value if isinstance(value, (list, tuple)) else [value]:
                given |= {*map(str, one.columns)} if isinstance(one, DataFrame) else {str(one)}
        names = {bound for each in listed(name) for pair in each.bounds for bound in (pair.low, pair.high)}
        names |= {each.name for each in listed(name)}
        assert {*map(str, results[name].columns)} - names <= given, name


def test_a_result_of_no_rows_is_like_any_other(calls: dict[str, Call], results: dict[str, DataFrame]) -> None:
    """The same columns and dtypes, or a refusal."""
    same = 0
    for name, (function, args, named) in calls.items():
        try:
            empty = function(*map(without_rows, args), **{key: without_rows(value) for key, value in named.items()})
        except BadQuery:
            continue
        full = results[name]
        assert [*empty.columns] == [*full.columns], name
        assert kinds_of(empty) == kinds_of(full), name
        same += 1
    assert same > len(calls) / 2


def without_rows(value: Any) -> Any:
    """Return a frame without its rows, and anything else as it is."""
    if isinstance(value, (list, tuple)):
        return type(value)(map(without_rows, value))
    return value.head(0) if isinstance(value, DataFrame) else value


def kinds_of(frame: DataFrame) -> dict[str, str]:
    """Return the dtypes of a frame, without the values of categories."""
    return {str(name): str(dtype) for name, dtype in frame.dtypes.items()}


@pytest.mark.wide
def test_a_cell_of_a_spreadsheet_has_the_unit_and_the_decimals_of_the_table(
    results: dict[str, DataFrame], tmp_path: Path
) -> None:
    """A share of 12.5% is not 13% in one of them, a count has none, a bound has the unit of its number."""
    numbers = bounds = counts = 0
    for place, (name, frame) in enumerate(results.items()):
        path = gl.export_excel({"result": frame}, tmp_path / f"{place}.xlsx")
        cells_of = [*openpyxl.load_workbook(path)["result"].iter_cols()]
        for column in written_columns(frame):
            if not (column.is_known and is_numeric_dtype(frame.dtypes.iloc[column.place])):
                continue
            for row, cell in enumerate(cells_of[column.place][1:]):
                about, scale = (name, column.name, cell.number_format), column.scale(row)
                if cell.value is None:
                    continue
                if column.column.kind == "count" and not column.is_bound:
                    assert cell.number_format == "#,##0", about
                    counts += 1
                if cell.number_format in ("General", "0.000"):
                    assert scale.kind in ("number", "rate"), about
                    continue
                assert ("$" in cell.number_format) == (scale.kind == "money"), about
                assert ("%" in cell.number_format) == (scale.kind in ("share", "change", "points")), about
                decimals = len(cell.number_format.partition(".")[2].rstrip("%"))
                assert decimals == (scale.near(cell.value) if column.is_bound else scale).places, about
                bounds, numbers = bounds + column.is_bound, numbers + (not column.is_bound)
    assert min(numbers, bounds, counts) > 200


def test_a_name_that_is_a_metric_means_the_same_in_a_result() -> None:
    """The catalog and the table of columns have one unit for it."""
    for metric in (*METRICS.values(), *ALIASES.values()):
        for field in metric.fields:
            if (known := COLUMNS.get(metric.columns[field.name])) is not None and known.unit:
                assert known.unit == field.unit, known.name


@pytest.mark.wide
def test_thin_data_have_sentences_without_holes(calls: dict[str, Call]) -> None:
    """One day, no counts, no rows: an analysis refuses them, or says what it can without a number or name it lacks."""

    def thinned(value: Any, thin: Callable[[DataFrame], DataFrame]) -> Any:
        if isinstance(value, (list, tuple)) and all(isinstance(one, DataFrame) for one in value):
            return type(value)(thinned(one, thin) for one in value)
        if not isinstance(value, DataFrame) or ResultRecord.of(value.attrs) is not None:
            return value
        thinner = thin(value).reset_index(drop=True)
        thinner.attrs = value.attrs
        return thinner

    def last_day(frame: DataFrame) -> DataFrame:
        return frame[frame["timestamp"] == frame["timestamp"].max()] if "timestamp" in frame else frame

    def zero(frame: DataFrame) -> DataFrame:
        numbers = [str(name) for name in frame.select_dtypes("number") if name not in ("age", "part", "whole")]
        return frame.assign(**{name: frame[name] * 0 for name in numbers})

    said: set[str] = set()
    for thin in (last_day, zero, lambda frame: frame.head(0)):
        for function, args, named in calls.values():
            try:
                result = function(
                    *(thinned(value, thin) for value in args),
                    **{name: thinned(value, thin) for name, value in named.items()},
                )
            except BadQuery:
                continue
            record = ResultRecord.of(getattr(result, "attrs", {}))
            if record is not None and record.name in analyses():
                said |= {*claims.of(result)["text"]}
    assert len(said) > 50
    assert {text for text in said if re.search(r"\bn/a|\bnan\b|<NA>|\{", text)} == set()


@pytest.mark.wide
def test_a_result_of_a_room_above_is_read_without_importing_it() -> None:
    """Its columns are those of the table by name: reading a frame starts neither a client nor an engine."""
    code = """
import sys
from pandas import DataFrame
from gamelens.analysis.tidy_frames.results import as_result
from gamelens.analysis.tidy_frames.written_columns import written_columns
frame = as_result(DataFrame({"step": ["a"], "players": [3]}), "raw_events.funnel", {})
print([column.column.kind for column in written_columns(frame)], *(name for name in sys.modules if "gamelens" in name))
"""
    kinds, _, modules = run_python("-c", code).partition("] ")
    assert "count" in kinds
    assert not {"gamelens.raw_events", "gamelens.client", "gamelens.sandbox"}.intersection(modules.split())


def test_no_row_of_the_table_is_unused() -> None:
    """Each column is one of a result, a dimension, a metric, or a name that tables show."""
    used = {each.name for function in public().values() for each in declared_columns(function).columns}
    shown = {"api", "says", "unit", "retention", "conversion", "geo", "requests"}
    shown |= {"d1_retention_week_before", "d7_retention_week_before"}  # of the notebook on Monday
    fields = {name for metric in (*METRICS.values(), *ALIASES.values()) for name in metric.columns.values()}
    assert {*COLUMNS} - used - shown - fields - {*DIMENSIONS} == set()


@pytest.mark.parametrize("topic", [*analysis.__all__, "raw_events"])
def test_each_result_looks_as_it_did(topic: str, results: dict[str, DataFrame], tmp_path: Path) -> None:
    """Its table, its sentences, the first cells of its spreadsheet, and the units that the assistant names."""
    lines = [
        line
        for name, frame in results.items()
        if name.partition(".")[0] == topic
        for line in look(name, frame, tmp_path)
    ]
    path = LOOKS / f"{topic}.txt"
    if os.environ.get("SNAPSHOTS") == "write" and lines:
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    before = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    if changes := [*unified_diff(before, lines, "before", "now", lineterm="", n=0)]:
        pytest.fail("\n".join([*changes, f"If this is meant: {COMMAND}"]), pytrace=False)


def look(name: str, frame: DataFrame, folder: Path) -> Iterator[str]:
    """Yield the lines that say what a result looks like."""
    yield f"==== {name}"
    yield from (line.rstrip() for line in str(FrameTable(frame, rows=4)).splitlines())
    if name in analyses():
        yield from claims.of(frame)["text"].head(8)
    path = gl.export_excel({"result": frame.head(2)}, folder / "look.xlsx")
    for title, *cells in openpyxl.load_workbook(path)["result"].iter_cols():
        yield f"{title.value}: {', '.join(cell.number_format for cell in cells)}"
    units = answer(frame, Receipt.of(frame.attrs), receipt_id="r")["units"]
    yield from (f"{column} in {unit}" for column, unit in units.items())
    yield ""
