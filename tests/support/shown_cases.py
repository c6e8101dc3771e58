"""The marker `shown_by`: which cases of a parametrised test `make test` runs. The others get the marker `wide`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pytest


def leave_to_wide(cases: Sequence[pytest.Function]) -> None:
    """Give the marker `wide` to all *cases* of a test but those that its `shown_by` counts or names.

    `shown_by(2)` keeps the first two, `shown_by("csv", "xlsx")` the cases of these ids.

    Raises:
        pytest.Collector.CollectError: no case has such an id.
    """
    marker = cases[0].get_closest_marker("shown_by")
    if marker is None:
        return
    ids = [case.callspec.id for case in cases if hasattr(case, "callspec")]
    shown = ids[: marker.args[0]] if isinstance(marker.args[0], int) else list(marker.args)
    if unknown := [name for name in shown if name not in ids] or (not ids and ["a case"]):
        name = cases[0].originalname
        raise pytest.Collector.CollectError(f"{name} has no case {', '.join(unknown)}, which shown_by names: {ids}")
    for case, name in zip(cases, ids, strict=True):
        if name not in shown:
            case.add_marker(pytest.mark.wide)


def marks_of_module(path: Path) -> set[str]:
    """Return the markers of a whole module of tests, which its `pytestmark` names on one line."""
    line = re.search(r"^pytestmark = .*$", path.read_text(encoding="utf-8"), re.MULTILINE)
    return set(re.findall(r"pytest\.mark\.(\w+)", line[0])) if line else set()
