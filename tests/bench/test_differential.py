"""Twenty thousand random questions against plain Python, in two hundred random worlds. Run by `make bench`."""

from __future__ import annotations

import pytest

from conftest import Stage
from sandbox.test_against_brute_force import differ

WORLDS = 200
QUESTIONS = 100


def test_twenty_thousand_answers(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Issue, Must show: 20,000 in make bench; every row equal."""
    for seed in range(1000, 1000 + WORLDS):
        stage = Stage(tmp_path_factory.mktemp("world") / "state")
        try:
            differ(stage, seed, questions=QUESTIONS)
        finally:
            stage.sandbox.close()
    print(f"\n{WORLDS * QUESTIONS:,} answers in {WORLDS} worlds, every row equal")
