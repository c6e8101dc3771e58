"""The faults that `make mutants` plants can still be planted: a text that moved would end that run before it begins."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from support.mutants import FAULTS, Mutant, mutants

TESTS = Path(__file__).parents[1]
ROOMS = sorted(tomllib.loads(FAULTS.read_text(encoding="utf-8")))


@pytest.mark.parametrize("room", ROOMS)
def test_every_fault_can_be_planted_and_has_tests(room: str) -> None:
    """Its text is in its file once, and the modules that must notice it are there."""
    planted: list[Mutant] = mutants([room])
    assert len(planted) >= 10
    modules = {name.partition("::")[0] for fault in planted for name in fault.tests.split()}
    assert [name for name in modules if not (TESTS / name).is_file()] == []
