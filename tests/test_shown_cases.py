"""The marker `shown_by`, on the tests of this module."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.shown_cases import leave_to_wide, marks_of_module


@pytest.mark.shown_by(2)
@pytest.mark.parametrize("number", [1, 2])
@pytest.mark.parametrize("letter", ["a", "b"])
def test_the_first_cases_are_shown(number: int, letter: str, request: pytest.FixtureRequest) -> None:
    """In the order of all parameters together."""
    assert _wide(request, "test_the_first_cases_are_shown") == ["b-1", "b-2"]
    assert (letter, number) in {("a", 1), ("a", 2)} or _is_wide(request.node)


@pytest.mark.shown_by("last")
@pytest.mark.parametrize("name", ["first", "last"])
def test_the_cases_that_are_named_are_shown(name: str, request: pytest.FixtureRequest) -> None:
    """The others are wide."""
    assert _wide(request, "test_the_cases_that_are_named_are_shown") == ["first"]
    assert _is_wide(request.node) == (name == "first")


def test_a_name_without_a_case_is_refused(request: pytest.FixtureRequest) -> None:
    """Else a case that is renamed would be shown by nothing."""
    case = _cases(request, "test_the_cases_that_are_named_are_shown")[0]
    with pytest.raises(pytest.Collector.CollectError, match="has no case last, which shown_by names: \\['first'\\]"):
        leave_to_wide([case])


def test_a_test_without_cases_is_refused(request: pytest.FixtureRequest) -> None:
    """A test without cases has nothing to show."""
    request.node.add_marker(pytest.mark.shown_by(1))
    with pytest.raises(pytest.Collector.CollectError, match="has no case"):
        leave_to_wide([request.node])


@pytest.mark.parametrize(
    ("line", "marks"),
    [
        ("pytestmark = pytest.mark.slow", {"slow"}),
        ("pytestmark = [pytest.mark.slow, pytest.mark.wide]", {"slow", "wide"}),
        ("@pytest.mark.wide", set()),
    ],
)
def test_the_marks_of_a_module_are_read_without_importing_it(tmp_path: Path, line: str, marks: set[str]) -> None:
    """A marker of one of its tests is no marker of the module."""
    (tmp_path / "test_it.py").write_text(f"import pytest\n\n{line}\n")
    assert marks_of_module(tmp_path / "test_it.py") == marks


def _cases(request: pytest.FixtureRequest, name: str) -> list[pytest.Function]:
    """Return all cases of a test of this module, collected again."""
    module = request.node.getparent(pytest.Module)
    return [it for it in module.collect() if isinstance(it, pytest.Function) and it.originalname == name]


def _wide(request: pytest.FixtureRequest, name: str) -> list[str]:
    return [it.callspec.id for it in _cases(request, name) if _is_wide(it)]


def _is_wide(item: pytest.Item) -> bool:
    return item.get_closest_marker("wide") is not None
