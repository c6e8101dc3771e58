"""The recipes of CONTRIBUTING, followed in a copy of the source: what they list is enough, and gates notice it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from house.source import ROOT

pytestmark = pytest.mark.slow

Edits = dict[str, list[tuple[str, str]]]
"""File and, for each edit, a text that is there and what stands in its place."""

METRIC: Edits = {
    "src/gamelens/catalog.py": [
        (
            '    Metric(\n        "retention_retro"',
            '    Metric("purchases_made", "number of purchases", "sum", ("purchases",), "buys"),\n'
            '    Metric(\n        "retention_retro"',
        )
    ],
    "tests/catalog/test_catalog.py": [
        (
            '    "retention_retro": "retention",\n    "returning',
            '    "purchases_made": "purchases_made",\n    "retention_retro": "retention",\n    "returning',
        )
    ],
    "tests/support/brute_force.py": [
        (
            '            "paying_users": lambda',
            '            "purchases_made": lambda: [fact for fact in facts if fact.category == "business"],\n'
            '            "paying_users": lambda',
        )
    ],
}
DIMENSION: Edits = {
    "src/gamelens/wire/dimensions.py": [
        (
            '        Dimension("severity"',
            '        Dimension("os_version", Sent(), _MEMBER, 40, "system of the device"),\n'
            '        Dimension("severity"',
        )
    ],
    "src/gamelens/sandbox/storage/lake_schema.py": [("FORMAT: Final = 8", "FORMAT: Final = 9")],
    "tests/support/random_worlds.py": [
        (
            '    "severity": ("info", "critical"),',
            '    "os_version": ("ios 17.1",),\n    "severity": ("info", "critical"),',
        )
    ],
    "tests/catalog/test_catalog.py": [('"ab_id ab_variant_id severity"', '"ab_id ab_variant_id os_version severity"')],
}
ALIAS: Edits = {
    "src/gamelens/catalog.py": [
        (
            '        _counted("wau",',
            '        Alias(\n            name="payers_per_session",\n            meaning="paying users / sessions",\n'
            "            fields=(\n"
            '                _number("payers_per_session", "share", Quotient("payers_of_it", "sessions_of_it")),\n'
            '                _count("payers_of_it", "players"),\n'
            '                _count("sessions_of_it", "sessions"),\n'
            '            ),\n            adds="over games",\n            ingredients={\n'
            '                "payers_of_it": Ingredient("paying_users", "paying_users"),\n'
            '                "sessions_of_it": Ingredient("session_unique", "session_unique"),\n'
            '            },\n        ),\n        _counted("wau",',
        )
    ],
}
ARGUMENT: Edits = {
    "src/gamelens/client/sync_client.py": [
        (
            "        whole_buckets: bool = False,\n        to",
            "        whole_buckets: bool = False,\n        note: str | None = None,\n        to",
        ),
        (
            '            to: "pandas"; ',
            '            note: words that the receipt keeps.\n            to: "pandas"; ',
        ),
    ],
    "src/gamelens/client/query/arguments.py": [
        ('"fields", "sort")\n"""The arguments', '"fields", "sort", "note")\n"""The arguments'),
        (
            '("since_days_ago", "other", "check", "fields", "sort")}',
            '("since_days_ago", "other", "check", "fields", "sort", "note")}',
        ),
        (
            "    sort: str | None = None\n    ages:",
            "    sort: str | None = None\n    note: str | None = None\n    ages:",
        ),
        (
            '            one_of("fields", self.fields, get_args(Fields))\n',
            '            one_of("fields", self.fields, get_args(Fields))\n'
            '        if self.note == "":\n            raise BadQuery("note", self.note, "must not be empty")\n',
        ),
    ],
    "src/gamelens/receipts.py": [
        (
            "    sort: str | None = None\n    days:",
            "    sort: str | None = None\n    note: str | None = None\n    days:",
        )
    ],
    "tests/house/test_surface.py": [
        ('"whole_buckets"), LATER', '"whole_buckets", "note"), LATER'),
        ('"whole_buckets", "since_days_ago"), "fewer', '"whole_buckets", "since_days_ago", "note"), "fewer'),
    ],
}
ANALYSIS: Edits = {
    "src/gamelens/analysis/revenue.py": [
        (
            "from gamelens.analysis.tidy_frames.frame_requirements import",
            "from gamelens.analysis.tidy_frames.columns import Column\n"
            "from gamelens.analysis.tidy_frames.frame_requirements import",
        ),
        (
            '@requires(frame=FrameRequirements(metrics=("user_unique", "paying_users")',
            '@requires(frame=FrameRequirements(metrics=("revenue", "ilrd_revenue", "session_unique"), '
            "counts_players=True))\n"
            '@returns(KEYS, "sessions total_revenue", '
            'Column("worth_of_session", "money", unit="USD per session", na="without sessions"))\n'
            "def worth_of_session(frame: DataFrame, by: str | Sequence[str] | None = None) -> DataFrame:\n"
            '    """Return what a session brings for each value of *by*, purchases and ads together.\n\n'
            '        metrics = ["revenue", "ilrd_revenue", "session_unique"]\n'
            '        revenue.worth_of_session(lens.query(metrics, by="game", over="last week"), by="game")\n\n'
            "    A session that runs past midnight counts on both days.\n"
            '    """\n'
            '    result = metric_sums(frame, by, sessions=("session_unique", "session_unique"))\n'
            '    result["total_revenue"] = revenue_by_source(frame, by)["total_revenue"]\n'
            '    return result.assign(worth_of_session=ratio(result["total_revenue"], result["sessions"]))\n\n\n'
            '@requires(frame=FrameRequirements(metrics=("user_unique", "paying_users")',
        ),
    ],
    "tests/support/every_result.py": [
        (
            '        "revenue.payer_share":',
            '        "revenue.worth_of_session": revenue.worth_of_session(players, by="game"),\n'
            '        "revenue.payer_share":',
        )
    ],
    "tests/analysis/test_revenue.py": [
        (
            "def test_money_without_players_is_no_arpdau",
            "def test_the_worth_of_a_session_is_money_of_both_kinds() -> None:\n"
            '    """$3 of two sessions; the country that is not known keeps its money."""\n'
            "    frame = tidy_frame(\n"
            '        ["revenue", "ilrd_revenue", "session_unique"],\n'
            '        timestamp=["2026-11-01"] * 2,\n'
            '        country_code=["US", None],\n'
            "        revenue=[2.0, 4.0],\n"
            "        ilrd_revenue=[1.0, None],\n"
            "        session_unique=[2, 8],\n"
            "    )\n"
            '    result = revenue.worth_of_session(frame, by="country_code")\n'
            '    assert result["worth_of_session"].tolist() == [1.5, 0.5]\n'
            '    assert result["country_code"].isna().tolist() == [False, True]\n\n\n'
            "def test_money_without_players_is_no_arpdau",
        )
    ],
}
CHART: Edits = {
    "src/gamelens/notebook/charts/funnel_charts.py": [
        (
            "def draw_funnel(",
            "def draw_steps(steps: DataFrame) -> Figure:\n"
            '    """Draw the steps without a title of their own."""\n'
            '    return draw_funnel(steps, title="Steps")\n\n\ndef draw_funnel(',
        )
    ],
    "src/gamelens/notebook/charts/__init__.py": [
        ("funnel_charts import draw_funnel", "funnel_charts import draw_funnel, draw_steps"),
        ("       draw_funnel\n", "       draw_funnel, draw_steps\n"),
        ('    "main_value",', '    "draw_steps",\n    "main_value",'),
    ],
    "docs/pages/how-to/own-analysis.md": [
        ("\n```python\n", "\n```python\nfrom gamelens.notebook import charts\n\ncharts.draw_steps\n")
    ],
}
RECIPES = {
    "To add a metric": METRIC,
    "To add an alias": ALIAS,
    "To add a dimension": DIMENSION,
    "To add an argument of a query": ARGUMENT,
    "To add an analysis": ANALYSIS,
    "To add a chart": CHART,
}
LEFT_OUT = ("tests/house/test_recipes.py", "tests/house/test_public_types.py", "tests/house/test_static_gates.py")
"""Tests that make copies themselves."""
WRITTEN = ("tests/house/test_snapshots.py", "tests/analysis/test_declared_results.py")
"""Tests whose snapshots the recipes have written anew."""
TESTS = (
    "tests/house",
    "tests/catalog",
    "tests/receipts",
    "tests/analysis/test_declared_results.py",
    "tests/analysis/test_revenue.py",
    "tests/cli/test_completion.py::test_metrics_come_first",
    "tests/client/test_query_run.py",
    "tests/documentation/test_pages.py::test_every_metric_dimension_and_error_is_in_the_reference",
    "tests/documentation/test_pages.py::test_every_public_name_has_an_example",
    "tests/documentation/test_examples.py",
    "tests/raw_events/test_reconcile.py::test_every_column_of_events_that_is_a_dimension_splits",
    "tests/simulator/test_ledger.py::test_every_metric_has_the_fields_of_the_catalog",
    "tests/simulator/test_ledger.py::test_an_empty_ledger_answers_every_metric",
    "tests/simulator/test_parquet_days.py::test_columns_are_those_of_a_lake",
    "tests/sandbox/test_nothing_is_deleted.py::test_a_lake_of_another_layout_is_refused_and_not_changed",
    "tests/sandbox/test_nothing_is_deleted.py::test_a_state_of_the_last_release_is_opened_with_the_same_answers",
    "tests/sandbox/test_nothing_is_deleted.py::test_a_list_of_the_last_release_is_read_until_a_run_commits",
    "tests/sandbox/test_sql_planner.py::test_a_metric_of_one_category_skips_the_rows_of_others",
    "tests/sandbox/test_metrics_against_brute_force.py::test_every_answer_is_the_one_plain_python_gives[0]",
    "tests/sandbox/test_metrics_against_brute_force.py::test_every_list_of_values_is_the_one_plain_python_gives[3]",
)
"""The tests that a recipe once broke, and those of what it changes. `test_nothing_else_breaks` runs all others."""


def followed(folder: Path) -> None:
    """Copy the checkout to *folder* and follow all recipes there, but for the snapshots."""
    made = {
        ".git",
        ".venv",
        ".cache",
        ".hypothesis",
        ".mypy_cache",
        ".pytest_cache",
        ".ruff_cache",
        "reports",
        "site",
        "dist",
    }

    def ignored(place: str, names: list[str]) -> set[str]:
        return {"__pycache__"} | (made if Path(place) == ROOT else set())

    shutil.copytree(ROOT, folder, ignore=ignored, dirs_exist_ok=True)
    for edits in RECIPES.values():
        for name, changes in edits.items():
            text = (folder / name).read_text(encoding="utf-8")
            for before, after in changes:
                assert before in text, f"{name} has no {before!r}: the recipe leads elsewhere"
                text = text.replace(before, after)
            (folder / name).write_text(text, encoding="utf-8")


def fill_bytecode(place: Path, folder: Path) -> None:
    """Give *place* what is compiled of Python, of libraries and of our modules, of which *folder* has a copy."""
    if sys.pycache_prefix is None:
        return
    for home in {Path(sysconfig.get_path(name)) for name in ("stdlib", "purelib", "platlib")}:
        link, compiled = (Path(f"{prefix}{home}") for prefix in (place, sys.pycache_prefix))
        if compiled.is_dir() and not link.exists():
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(compiled)
    for name in ("src", "tests", "docs"):
        if (ours := Path(f"{sys.pycache_prefix}{ROOT / name}")).is_dir():
            shutil.copytree(ours, f"{place}{folder / name}")


def run(folder: Path, *arguments: str, **environment: str) -> None:
    """Run tests of the copy in *folder*."""
    ours = {"PYTHONPATH": str(folder / "src"), "PYTHONPYCACHEPREFIX": str(folder / "bytecode")}
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "no:nbmake",
        "-p",
        "no:cacheprovider",
        "--hypothesis-profile",
        "quick",
    ]
    command += [*arguments, *(part for path in LEFT_OUT for part in ("--ignore", path))]
    result = subprocess.run(
        command, cwd=folder, env=os.environ | ours | environment, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy in which all recipes are followed, with snapshots and tables written anew."""
    folder = tmp_path_factory.mktemp("recipes")
    followed(folder)
    fill_bytecode(folder / "bytecode", folder)
    run(folder, "-p", "no:xdist", *WRITTEN, SNAPSHOTS="write")
    return folder


def test_what_the_recipes_list_is_enough(copy: Path) -> None:
    """All that they tell to run passes, and the snapshots have what is new."""
    run(copy, "-p", "no:xdist", *TESTS)
    added = ""
    for folder in ("tests/house/snapshots", "tests/analysis/results"):
        for before in (ROOT / folder).iterdir():
            after = copy / before.relative_to(ROOT)
            added += "\n".join({*after.read_text().splitlines()} - {*before.read_text().splitlines()})
    for new in ("draw_steps", "purchases_made", "note: str | None = None", "os_version", "revenue.worth_of_session"):
        assert new in added


@pytest.mark.wide
def test_nothing_else_breaks(copy: Path) -> None:
    """Every fast test passes as well: five minutes."""
    everything = (f"tests/{path.name}" for path in (ROOT / "tests").iterdir() if path.name not in ("bench", "browser"))
    tests = [path for path in everything if any((ROOT / path).rglob("test_*.py")) or "/test_" in path]
    run(copy, "-n", "2", "--dist", "loadfile", "-m", "not slow and not wide", *tests)


def test_the_recipes_are_those_of_contributing() -> None:
    """Each file that is edited above is named there, and each recipe is a section."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    sections = {part.partition("\n")[0]: part for part in text.split("\n## ")}
    for heading, edits in RECIPES.items():
        for name in edits:
            assert name.removeprefix("src/gamelens/") in sections[heading], f"{heading} does not name {name}"


def test_an_analysis_takes_three_files() -> None:
    """Declaration and body with the example, its call, and its test."""
    assert len(ANALYSIS) == 3
