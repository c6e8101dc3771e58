"""Which tests the fast loop runs: what is nearest to a change first, as far as a minute goes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from pathlib import Path

import pytest

from support.changed_tests import (
    BUDGET_S,
    MODULE_S,
    Tree,
    estimated,
    left_out,
    nearest_first,
    read_tree,
    seconds_of,
    within_budget,
)

TREE = Tree(
    tests={
        "tests/client/test_planner.py": {"gamelens.client.planner.plan"},
        "tests/client/test_settings.py": {"gamelens.client.settings"},
        "tests/client/test_two_costs.py": {"gamelens.client.planner.plan", "pytest"},
        "tests/house/test_snapshots.py": {"house.source.ROOT"},
        "tests/notebook/test_tables.py": {"gamelens.notebook.tables.written"},
        "tests/notebook/test_plan_page.py": {"gamelens.client.planner", "support.served.Served"},
        "tests/sandbox/test_server.py": {"gamelens.sandbox.server.App", "support.served.Served"},
        "tests/test_text.py": {"gamelens._text.one_line"},
        "tests/cli/test_query.py": {"gamelens.client.planner.plan"},
    },
    importers={
        "gamelens.client.planner": {"gamelens.client.sync_client", "gamelens.notebook.tables"},
        "gamelens._text": {"gamelens.notebook.tables"},
        "support.served": {"support.served_lake"},
    },
)
PLANNER = "src/gamelens/client/planner.py"


def near(*changed: str, seconds: Collection[tuple[str, float]] = ()) -> list[str]:
    """Return what is near *changed* in the made-up tree."""
    return nearest_first(changed, TREE, defaultdict[str, float](lambda: 1.0, seconds))


def test_the_nearest_come_first() -> None:
    """Tests of the module, what imports it and the rules of the house, what is one import away, then its room."""
    assert near(PLANNER) == [
        "tests/client/test_planner.py",
        "tests/client/test_two_costs.py",
        "tests/house/test_snapshots.py",
        "tests/cli/test_query.py",
        "tests/notebook/test_plan_page.py",
        "tests/notebook/test_tables.py",
        "tests/client/test_settings.py",
    ]


def test_of_those_equally_near_the_cheapest_comes_first() -> None:
    """In the room that changed, with the rules of the house, before other rooms."""
    found = near(PLANNER, seconds={"tests/cli/test_query.py": 9.0, "tests/client/test_two_costs.py": 99.0}.items())
    assert found[1:3] == ["tests/house/test_snapshots.py", "tests/client/test_two_costs.py"]
    assert found[3:5] == ["tests/notebook/test_plan_page.py", "tests/cli/test_query.py"]


@pytest.mark.parametrize(
    ("changed", "first"),
    [
        ("tests/notebook/test_tables.py", "tests/notebook/test_tables.py"),
        ("src/gamelens/_text.py", "tests/test_text.py"),
        ("tests/support/served.py", "tests/notebook/test_plan_page.py"),
        ("src/gamelens/client/README.md", "tests/house/test_snapshots.py"),
        ("src/gamelens/sandbox/defaults.toml", "tests/house/test_snapshots.py"),
    ],
)
def test_whatever_changed_has_its_tests(changed: str, first: str) -> None:
    """A test, a module in no room, code of tests, prose, and a file of values, behind whose rules its room comes."""
    assert first in near(changed)[:2]


def test_a_file_of_values_is_of_its_room() -> None:
    """Prose is not: only the rules of the house are run for it."""
    assert near("src/gamelens/sandbox/defaults.toml")[-1] == "tests/sandbox/test_server.py"
    assert near("src/gamelens/sandbox/README.md") == ["tests/house/test_snapshots.py"]


def test_what_concerns_all_tests_is_near_them_all() -> None:
    """And nothing is near no change."""
    assert {*near("pyproject.toml")} == {*TREE.tests}
    assert near() == []


def test_a_budget_is_kept_whatever_changed() -> None:
    """Twenty files or one: what does not fit is passed over, however near it is, and something cheaper runs."""
    seconds = {"a/b/far": 3.0, "a/b/near": BUDGET_S - 10, "a/b/next": BUDGET_S, "a/b/third": 5.0, "a/b/fourth": 8.0}
    taken = within_budget(["a/b/near", "a/b/next", "a/b/third", "a/b/fourth", "a/b/far"], (), seconds)
    assert taken == ["a/b/near", "a/b/third", "a/b/far"]
    assert sum(seconds[path] for path in taken) <= BUDGET_S


def test_tests_that_start_processes_run_when_they_changed() -> None:
    """`tests/cli` and `tests/journey` are dear, and left to a longer run."""
    path = "tests/cli/test_query.py"
    assert within_budget([path], (), {path: 1.0}) == []
    assert within_budget([path], [path], {path: 1.0}) == [path]


def test_a_module_that_was_never_timed_takes_what_is_usual() -> None:
    """In its room, or else in all rooms; each has a share of collecting."""
    recorded = {"tests/client/test_a.py": 2.0, "tests/client/test_b.py": 4.0, "tests/wire/test_c.py": 0.5}
    seconds = estimated(["tests/client/test_new.py", "tests/errors/test_new.py", "tests/wire/test_c.py"], recorded)
    assert seconds == pytest.approx(
        {
            "tests/client/test_new.py": 3.0 + MODULE_S,
            "tests/errors/test_new.py": 2.0 + MODULE_S,
            "tests/wire/test_c.py": 0.5 + MODULE_S,
        }
    )


def test_seconds_of_modules_are_those_of_their_own_fast_tests(tmp_path: Path) -> None:
    """Tests in a class count. Notebooks do not, nor does the end of other modules' sandboxes after the last test."""

    def case(where: str, cpu: str, more: str = "") -> str:
        used = f'<property name="cpu" value="{cpu}"/>{more}'
        return f'<testcase classname="{where}" name="test_x"><properties>{used}</properties></testcase>'

    end, slow = '<property name="cpu_of_the_end" value="5.5"/>', '<property name="slow" value="yes"/>'
    cases = [
        case("tests.wire.test_queries", "0.5"),
        case("tests.wire.test_queries", "6.0", end),
        case("tests.analysis.test_projection", "1.0"),
        case("tests.analysis.test_projection.TestEveryResult", "2.0"),
        case("tests.test_text", "0.25"),
        case("tests.cli.test_demo", "9.0", slow),
        case("notebooks.00_monday", "3.0"),
    ]
    (tmp_path / "tests.xml").write_text(f"<testsuites>{''.join(cases)}</testsuites>")
    assert seconds_of(tmp_path / "tests.xml") == {
        "tests/wire/test_queries.py": 1.0,
        "tests/analysis/test_projection.py": 3.0,
        "tests/test_text.py": 0.25,
        "tests/cli/test_demo.py": 0.0,
    }


def test_what_is_left_out_is_said_in_one_line() -> None:
    """With the number, the rooms, the time and the commands that run it."""
    seconds = {"tests/client/test_a.py": 100.0, "tests/wire/test_c.py": 30.0}
    line = left_out(seconds, 40, seconds)
    assert "\n" not in line
    for said in ("2 of 40 test modules", "client, wire", "make check ALL=yes", "in 3 min", "make test"):
        assert said in line


@pytest.mark.wide
def test_the_tree_of_this_checkout() -> None:
    """The tests of a module, and of those that import it, in whatever room, with those that use code of tests."""
    tree = read_tree()
    seconds = dict.fromkeys(tree.tests, 1.0)
    found = nearest_first(["src/gamelens/client/query/build.py"], tree, seconds)
    assert found.index("tests/client/test_query_run.py") < found.index("tests/client/test_settings.py")
    assert "tests/client/test_metric_join.py" in found
    assert nearest_first(["tests/wire/test_signing.py"], tree, seconds)[0] == "tests/wire/test_signing.py"
    assert "support.changed_tests" in tree.importers["support.durations"]
    assert not any(path.startswith(("tests/bench/", "tests/browser/")) for path in tree.tests)
