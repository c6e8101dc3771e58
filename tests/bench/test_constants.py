"""Every constant of the analyses matters in a figure of a method, and none of the numerical ones does.

Run by `make bench`, from `docs/methods/constants.json`, which `make methods` writes: each constant a fifth smaller and
larger in a copy of the source, and the figures that moved.
"""

from __future__ import annotations

import json
from typing import Any, Final

import pytest

from docs.constants import Constant, constants
from support.changed_constants import METHODS_OF, SENSITIVITY, sensitivities

CHECKED = [constant for constant in constants() if constant.topic in METHODS_OF]

MOVE_NOTHING: Final = frozenset({("over_days.py", "_CLEARER")})
"""A multiple of a p-value, which differs by orders of magnitude between changes: a fifth of it decides none of them."""


@pytest.fixture(scope="module")
def rows() -> dict[tuple[str, str], dict[str, Any]]:
    """What was written of each constant."""
    written = json.loads(SENSITIVITY.read_text(encoding="utf-8"))["constants"]
    return {(row["path"], row["name"]): row for row in written}


@pytest.mark.parametrize("constant", CHECKED, ids=lambda it: it.name)
def test_a_constant_matters(constant: Constant, rows: dict[tuple[str, str], dict[str, Any]]) -> None:
    """In a figure at least, or, of a numerical one, in none; and the file has its present value."""
    row = rows.get((constant.path, constant.name))
    if row is None:
        pytest.skip(f"nobody changed it yet: make methods CONSTANT={constant.name}")
    assert row["value"] == constant.value, "make methods has not been run since it changed"
    moves_nothing = constant.kind == "Numerical" or (constant.path, constant.name) in MOVE_NOTHING
    assert (row["moves"] == 0) == moves_nothing, f"it moves {row['moves']} of {row['of']} figures"


def test_the_file_has_what_the_source_does() -> None:
    """One constant is changed again, with the same figures as in the file."""
    (again,) = sensitivities(["TYPICAL_LIFT"])
    written = json.loads(SENSITIVITY.read_text(encoding="utf-8"))["constants"]
    assert again == next(row for row in written if row["name"] == "TYPICAL_LIFT")
