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
ARGUMENT: Edits = {
    "src/gamelens/client/sync_client.py": [
        (
            "        whole_buckets: bool = False,\n        to",
            "        whole_buckets: bool = False,\n        note: str | None = None,\n        to",
        ),
        (
            '            to: "pandas"; ',
            '            note: words that the plan of the query keeps.\n            to: "pandas"; ',
        ),
    ],
    "src/gamelens/client/query/arguments.py": [
        (
            "        whole_buckets=whole_buckets,\n",
            '        whole_buckets=whole_buckets,\n        note=given.get("note"),\n',
        ),
        (
            "    whole_buckets: Granularity | None = None\n",
            "    whole_buckets: Granularity | None = None\n    note: str | None = None\n",
        ),
    ],
    "tests/house/test_surface.py": [
        ('("when_unavailable", ', '("note", "when_unavailable", '),
        ('fromkeys(("deadline_s",', 'fromkeys(("note", "deadline_s",'),
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
TESTS = (
    "tests/house/test_snapshots.py",
    "tests/catalog/test_catalog.py",
    "tests/house/test_surface.py::test_every_argument_of_a_query_is_in_every_place",
    "tests/house/test_surface.py::test_a_query_takes_the_same_arguments_everywhere",
    "tests/cli/test_completion.py::test_metrics_come_first",
    "tests/documentation/test_pages.py::test_every_metric_dimension_and_error_is_in_the_reference",
    "tests/documentation/test_pages.py::test_every_public_name_has_an_example",
    "tests/raw_events/test_reconcile.py::test_every_column_of_events_that_is_a_dimension_splits",
    "tests/simulator/test_ledger.py::test_every_metric_has_the_fields_of_the_catalog",
    "tests/simulator/test_ledger.py::test_an_empty_ledger_answers_every_metric",
    "tests/simulator/test_parquet_days.py::test_columns_are_those_of_a_lake",
    "tests/sandbox/test_metrics_against_brute_force.py::test_every_answer_is_the_one_plain_python_gives[0]",
    "tests/sandbox/test_metrics_against_brute_force.py::test_every_list_of_values_is_the_one_plain_python_gives[3]",
)
"""What a recipe tells to run, but for the tests that play a scenario."""


def followed(folder: Path) -> None:
    """Copy the source to *folder* and follow all four recipes there, but for the snapshots."""
    for name in ("src", "tests", "docs", "notebooks"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__", "recorded"))
    for name in ("pyproject.toml", "README.md", "CONTRIBUTING.md"):
        shutil.copy(ROOT / name, folder)
    for edits in (METRIC, DIMENSION, ARGUMENT, CHART):
        for name, changes in edits.items():
            text = (folder / name).read_text(encoding="utf-8")
            for before, after in changes:
                assert before in text, f"{name} has no {before!r}: the recipe leads elsewhere"
                text = text.replace(before, after)
            (folder / name).write_text(text, encoding="utf-8")


def bytecode(folder: Path) -> Path:
    """Return a place for bytecode in *folder* that has what is compiled of Python, of libraries and of our modules."""
    place = folder / "bytecode"
    if sys.pycache_prefix is not None:
        for home in {Path(sysconfig.get_path(name)) for name in ("stdlib", "purelib", "platlib")}:
            link, compiled = (Path(f"{prefix}{home}") for prefix in (place, sys.pycache_prefix))
            if compiled.is_dir() and not link.exists():
                link.parent.mkdir(parents=True, exist_ok=True)
                link.symlink_to(compiled)
        for name in ("src", "tests", "docs"):
            if (ours := Path(f"{sys.pycache_prefix}{ROOT / name}")).is_dir():
                shutil.copytree(ours, f"{place}{folder / name}")
    return place


def test_what_the_recipes_list_is_enough(tmp_path: Path) -> None:
    """With snapshots and tables written anew, all that they tell to run passes, and the snapshots have what is new."""
    followed(tmp_path)
    own = {"PYTHONPATH": str(tmp_path / "src"), "PYTHONPYCACHEPREFIX": str(bytecode(tmp_path)), "SNAPSHOTS": "write"}
    command = [sys.executable, "-m", "pytest", "-p", "no:nbmake", "-p", "no:xdist", "-p", "no:cacheprovider"]
    command += ["--hypothesis-profile", "quick", *TESTS]
    result = subprocess.run(command, cwd=tmp_path, env=os.environ | own, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    added = ""
    for before in (ROOT / "tests" / "house" / "snapshots").iterdir():
        after = tmp_path / before.relative_to(ROOT)
        added += "\n".join({*after.read_text().splitlines()} - {*before.read_text().splitlines()})
    for new in ("draw_steps", "purchases_made", "note: str | None = None", "os_version"):
        assert new in added


def test_the_recipes_are_those_of_contributing() -> None:
    """Each file that is edited above is named there, and the sections are the four recipes."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    sections = {part.partition("\n")[0]: part for part in text.split("\n## ")}
    for heading, edits in {
        "To add a metric": METRIC,
        "To add a dimension": DIMENSION,
        "To add an argument of a query": ARGUMENT,
        "To add a chart": CHART,
    }.items():
        for name in edits:
            assert name.removeprefix("src/gamelens/") in sections[heading], f"{heading} does not name {name}"
