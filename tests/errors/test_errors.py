"""The errors: what they say, and that they arrive from a worker process as they were raised."""

from __future__ import annotations

import copy
import importlib
import linecache
import pickle
import pkgutil
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from datetime import UTC, datetime
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import msgspec
import pandas as pd
import pyarrow as pa
import pytest
from pandas import DataFrame

import gamelens
import gamelens as gl
import gamelens.notebook.accessor
from gamelens import analysis, errors, notebook
from gamelens.client.query.description import describe
from gamelens.client.tables.time_ranges import clip_to_available
from gamelens.errors import (
    AuthError,
    BadQuery,
    GamelensError,
    NotAdditive,
    NotRecorded,
    NotYetAvailable,
    PartialResult,
    RateLimited,
    ServiceError,
    Truncated,
    Unreachable,
)
from gamelens.wire.intervals import Interval, MalformedInterval
from support.failing_work import raise_error

AVAILABLE = Interval.parse("2026-08-22/2026-11-20")
WEEK = Interval.parse("2026-11-18/2026-11-25")
GAP = {"metric": "revenue", "interval": str(WEEK), "scope": {"game": "1001"}, "error": "no answer."}


def frame() -> pd.DataFrame:
    """Return a frame with a receipt, as a query returns it."""
    rows = pd.DataFrame(
        {
            "timestamp": pd.Series([datetime(2026, 11, 18, tzinfo=UTC)], dtype="datetime64[us, UTC]"),
            "platform": pd.Series(["ios"], dtype="category"),
            "revenue_sum": pd.Series([1.5], dtype="float64"),
        }
    )
    rows.attrs["gamelens"] = {"asked": {"metric": ["revenue"]}, "gaps": [GAP]}
    return rows


EXAMPLES: dict[str, GamelensError] = {
    "AuthError": AuthError("401"),
    "BadQuery": BadQuery("by", "platfrom", "is not a dimension", ["platform", "build"]),
    "BadQuery of an interval": BadQuery("over", WEEK, "is too long"),
    "BadQuery without a value": BadQuery("metrics_url", msgspec.UNSET, "is missing"),
    "GamelensError": GamelensError("wrong"),
    "MalformedInterval": MalformedInterval("yesterday"),
    "NotAdditive": NotAdditive("user_unique", "lens.query(...)"),
    "NotRecorded": NotRecorded("GET /x", None),
    "NotYetAvailable": NotYetAvailable(WEEK, AVAILABLE, tried="wait"),
    "NotYetAvailable of whole buckets": NotYetAvailable(WEEK, AVAILABLE, tried="clip", whole="month"),
    "PartialResult": PartialResult(frame(), [GAP, GAP]),
    "RateLimited": RateLimited(3.5, "too fast"),
    "Refused": errors.Refused("no"),
    "Retryable": errors.Retryable("later"),
    "ServiceError": ServiceError(500, "oops"),
    "Truncated": Truncated(30_000),
    "Unreachable": Unreachable("gone"),
}


def attempt(work: Callable[[], object]) -> GamelensError:
    """Return the error that *work* raises."""
    with pytest.raises(GamelensError) as failed:
        work()
    return failed.value


def assert_same(one: GamelensError, other: GamelensError) -> None:
    """Check that type, text and attributes are equal."""
    assert type(one) is type(other)
    assert (str(one), one.args) == (str(other), other.args)
    left, right = dict(vars(one)), dict(vars(other))
    for attributes in (left, right):
        if "frame" in attributes:
            attributes["receipt"] = attributes["frame"].attrs
    if "frame" in left:
        pd.testing.assert_frame_equal(left.pop("frame"), right.pop("frame"))
    assert left == right


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("name", EXAMPLES)
def test_an_error_pickles_with_all_it_holds(name: str, protocol: int) -> None:
    """Type, text and attributes survive, the frame of a partial result and its receipt among them."""
    assert_same(pickle.loads(pickle.dumps(EXAMPLES[name], protocol)), EXAMPLES[name])


@pytest.mark.parametrize("make", [copy.copy, copy.deepcopy])
@pytest.mark.parametrize("name", EXAMPLES)
def test_an_error_can_be_copied(name: str, make: Callable[[GamelensError], GamelensError]) -> None:
    """A copy is made in the same way."""
    assert_same(make(EXAMPLES[name]), EXAMPLES[name])


def test_every_public_error_has_an_example() -> None:
    """An error that is added here is pickled by these tests too."""
    assert {*errors.__all__} - {"full_traceback"} <= EXAMPLES.keys()


def subclasses(kind: type[GamelensError]) -> Iterator[type[GamelensError]]:
    """Yield all subclasses, in any depth."""
    for below in kind.__subclasses__():
        yield below
        yield from subclasses(below)


@pytest.mark.slow
def test_an_error_of_any_room_pickles() -> None:
    """Every subclass in the package is rebuilt without its `__init__`, whatever that takes."""
    for module in pkgutil.walk_packages(gamelens.__path__, "gamelens."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    own = [kind for kind in subclasses(GamelensError) if kind.__module__.startswith("gamelens.")]
    assert len(own) > len(errors.__all__)
    for kind in own:
        error = kind.__new__(kind, "the text")
        vars(error).update(field="x", value=1, extra=(1, 2))
        copied = pickle.loads(pickle.dumps(error))
        assert (type(copied), copied.args, vars(copied)) == (kind, ("the text",), vars(error))


def test_a_value_that_cannot_be_pickled_becomes_its_text() -> None:
    """The error of a lambda or an open file pickles with the text of the value."""
    error = BadQuery("where", lambda: None, "must be an expression")
    copied = pickle.loads(pickle.dumps(error))
    assert (str(copied), copied.value) == (str(error), repr(error.value))


def test_a_note_survives() -> None:
    """Notes that were added to an error are pickled with it."""
    error = ServiceError(500, "oops")
    error.add_note("of game 1001")
    assert pickle.loads(pickle.dumps(error)).__notes__ == ["of game 1001"]


@pytest.mark.parametrize("kind", ["arrow", "polars"])
def test_a_partial_result_of_another_frame_pickles(kind: str) -> None:
    """An Arrow table with the receipt in its schema, and a polars frame, survive too."""
    table = pa.table({"revenue_sum": [1.5]}).replace_schema_metadata({"gamelens": "{}"})
    rows = table if kind == "arrow" else pytest.importorskip("polars").from_arrow(table)
    copied = pickle.loads(pickle.dumps(PartialResult(rows, [GAP])))
    assert copied.frame.equals(rows)
    assert kind == "polars" or copied.frame.schema.metadata == {b"gamelens": b"{}"}


def test_errors_arrive_from_a_thread_pool() -> None:
    """`ThreadPoolExecutor` raises the error unchanged."""
    with ThreadPoolExecutor(1) as pool:
        for error in EXAMPLES.values():
            assert attempt(pool.submit(raise_error, error).result) is error


@pytest.mark.wide
@pytest.mark.slow
def test_errors_arrive_from_a_process_pool() -> None:
    """`ProcessPoolExecutor` raises each error with all it holds."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        for error in EXAMPLES.values():
            assert_same(attempt(pool.submit(raise_error, error).result), error)


@pytest.mark.wide
@pytest.mark.slow
def test_errors_arrive_from_multiprocessing() -> None:
    """`multiprocessing.Pool` raises each error with all it holds, and does not hang."""
    with get_context("spawn").Pool(1) as pool:
        for error in EXAMPLES.values():
            result = pool.apply_async(raise_error, (error,))
            assert_same(attempt(partial(result.get, timeout=60)), error)


@pytest.mark.slow
def test_errors_arrive_from_joblib() -> None:
    """`joblib.Parallel` raises errors with all they hold."""
    joblib: Any = pytest.importorskip("joblib")
    for name in ("PartialResult", "BadQuery", "MalformedInterval", "ServiceError"):
        error = EXAMPLES[name]
        work = joblib.delayed(raise_error)(error)
        assert_same(attempt(partial(joblib.Parallel(n_jobs=2), [work, work])), error)


# -- texts ------------------------------------------------------------------------------------------------------------


def test_a_missing_value_is_not_shown_as_none() -> None:
    """UNSET stands for no value: the message does not claim one, and the attribute is None."""
    error = BadQuery("metrics_url", msgspec.UNSET, "is missing")
    assert (str(error), error.value) == ("metrics_url is missing.", None)


def test_a_none_that_was_given_is_shown() -> None:
    """None as an argument is a value like others."""
    assert str(BadQuery("days", None, "must be numbers")) == "days = None must be numbers."


INTERVALS = {
    "past": "2026-01-01/2026-02-01",
    "up to the first day": "2026-08-01/2026-08-22",
    "partly past": "2026-08-01/2026-09-01",
    "partly future": "2026-11-01/2026-12-01",
    "future": "2026-12-01/2027-01-01",
    "both": "2026-01-01/2027-01-01",
}
ADVICE = {
    ("past", "raise"): "Ask for a later interval",
    ("past", "wait"): "Ask for a later interval",
    ("past", "clip"): "Ask for a later interval",
    ("up to the first day", "raise"): "Ask for a later interval",
    ("partly past", "raise"): 'Ask for less, or pass when_unavailable="clip"',
    ("partly past", "wait"): 'Ask for less, or pass when_unavailable="clip"',
    ("both", "wait"): 'Ask for less, or pass when_unavailable="clip"',
    ("partly future", "raise"): 'Ask for less, or pass when_unavailable="clip" or "wait"',
    ("partly future", "wait"): 'Ask for less, wait longer with deadline_s=, or pass when_unavailable="clip"',
    ("future", "raise"): 'Ask for another interval, or pass when_unavailable="wait"',
    ("future", "wait"): "Ask for another interval, or wait longer with deadline_s=",
    ("future", "clip"): "Ask for another interval",
}


@pytest.mark.parametrize(("interval", "tried"), ADVICE)
def test_the_advice_fits_the_interval(interval: str, tried: str) -> None:
    """Waiting is advised for the future alone, clipping where a part is available."""
    requested = Interval.parse(INTERVALS[interval])
    extent = "not all available" if interval in ("partly past", "both", "partly future") else "not available at all"
    limit = "" if "future" in interval else " and nothing earlier"
    message = f"{requested} is {extent}: the service has {AVAILABLE}{limit}. {ADVICE[interval, tried]}"
    assert str(NotYetAvailable(requested, AVAILABLE, tried=tried)) == message


def test_a_service_without_data_is_not_asked_for_another_interval() -> None:
    """Before the first events no interval is available, whichever is asked for."""
    nothing = Interval(AVAILABLE.end, AVAILABLE.end)
    assert "no data yet. Ask again when its first events are processed" in str(NotYetAvailable(WEEK, nothing))


def shown(code: str, **names: object) -> list[str]:
    """Return the lines that IPython shows for the error of *code*, a cell."""
    file = f"/tmp/ipykernel_1/{abs(hash(code))}.py"
    linecache.cache[file] = (len(code), None, [f"{line}\n" for line in code.split("\n")], file)
    try:
        exec(compile(code, file, "exec"), names)
    except GamelensError as error:
        return error._render_traceback_()
    raise AssertionError("no error")


def test_a_notebook_shows_sentence_valid_call_and_line() -> None:
    """An error is three lines; the second is a call that can be copied, also for a call over several lines."""
    lines = shown("x = 1\ny = 'ä', describe(\n    'revenu')", describe=describe)
    assert lines == [
        "BadQuery: name = 'revenu' is not a metric, alias or dimension. Did you mean `revenue`?",
        "Try: describe(",
        "    'revenue')",
        "(line 2 of this cell; gl.errors.full_traceback() shows all)",
    ]


def test_the_valid_call_is_left_out_where_it_is_not_known() -> None:
    """Without a near name, and where the call does not spell the wrong one."""
    assert len(shown("describe('zzz')", describe=describe)) == 2
    assert len(shown("describe(name)", describe=describe, name="revenu")) == 2


@pytest.mark.parametrize(
    ("code", "valid"),
    [
        ("lens.qury('dau', over='yesterday')", "lens.query"),
        ("gl.conect()", "gl.connect"),
        ("gl.qury('dau', over='yesterday')", "gl.connect().query"),
        ("gl.retention([1], over='last week')", "gl.connect().retention"),
        ("gl.errors.BadQery", "gl.errors.BadQuery"),
        ("week.lenght.days", "week.length"),
        ("notebook.charts.draw_line(frame)", "notebook.charts.draw_lines"),
        ("analysis.retenton", "analysis.retention"),
        ("analysis.ads.earning(frame)", "analysis.ads.earnings"),
        ("frame.lens.tabel()", "frame.lens.table"),
        ("gl.export_excel(frame, 'week.xlsx')", "gl.export_excel({'data': frame}, 'week.xlsx')"),
        ("gl.export_excel(frames=frame, path='x.xlsx')", "gl.export_excel(frames={'data': frame}, path='x.xlsx')"),
    ],
)
def test_a_typo_in_a_name_gets_what_one_in_an_argument_gets(code: str, valid: str, tmp_path: Path) -> None:
    """The nearest name, and the call to copy: of a client, a frame, a module, and a frame that has no sheet."""
    (tmp_path / "x.json").write_text("{}")
    lens = gl.Client(replay=tmp_path)
    lines = shown(
        code, gl=gl, lens=lens, notebook=notebook, analysis=analysis, week=WEEK, frame=DataFrame({"dau": [1]})
    )
    assert lines[1].startswith(f"Try: {valid}"), lines


@pytest.mark.parametrize("owner", [gl, notebook, analysis, analysis.ads, DataFrame({"dau": [1]}).lens], ids=repr)
def test_a_name_that_is_not_there_is_still_an_attribute_error(owner: object) -> None:
    """`hasattr`, `getattr` with a default and what other programs look for work as ever; errors can be pickled."""
    assert not hasattr(owner, "zzz")
    assert getattr(owner, "zzz", 3) == 3
    with pytest.raises(AttributeError, match="has no attribute '_repr_zzz_'"):
        owner._repr_zzz_  # type: ignore[attr-defined]  # noqa: B018
    with pytest.raises(AttributeError) as raised:
        owner.zzz  # type: ignore[attr-defined]  # noqa: B018
    assert str(pickle.loads(pickle.dumps(raised.value))) == str(raised.value)


def test_what_is_not_available_is_clipped_in_the_valid_call() -> None:
    """The keyword is added correctly also where the call has a trailing comma."""
    clip = partial(clip_to_available, WEEK, AVAILABLE)
    assert shown("clip('raise',)", clip=clip)[1] == "Try: clip('raise', when_unavailable=\"clip\")"


def test_the_full_traceback_is_there_for_who_asks(capsys: pytest.CaptureFixture[str]) -> None:
    """It has the frames inside gamelens, which the notebook leaves out."""
    try:
        Interval.parse("no interval")
    except MalformedInterval as error:
        sys.last_value = error
    errors.full_traceback()
    assert "intervals.py" in capsys.readouterr().err
