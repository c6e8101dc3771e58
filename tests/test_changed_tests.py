"""Which tests the fast loop runs: what is near a change first, the rest of the room as far as a minute goes."""

from __future__ import annotations

from support.changed_tests import BUDGET_S, selected, within_budget


def test_tests_of_the_module_and_of_those_that_import_it_come_first() -> None:
    """In whatever room; the others of the room that changed follow."""
    near, others = selected({"src/gamelens/client/query/build.py"})
    assert {"tests/client/test_metric_join.py", "tests/client/test_query_run.py"} <= {*near}
    assert "tests/client/test_settings.py" in others
    assert {path.split("/")[1] for path in others} == {"client"}
    assert set(near).isdisjoint(others)


def test_a_test_that_changed_runs() -> None:
    """Also where its room did not change."""
    assert selected({"tests/wire/test_signing.py"}) == (["tests/wire/test_signing.py"], [])


def test_the_rest_is_taken_as_far_as_the_budget_goes() -> None:
    """The cheapest first; what is near a change always runs."""
    seconds = {"near": BUDGET_S - 10, "a": 6.0, "b": 5.0, "c": 3.0}
    assert within_budget(["near"], ["a", "b", "c"], seconds) == ["c", "b"]
    assert within_budget(["near"], ["a"], {"near": BUDGET_S + 1, "a": 0.0}) == []
