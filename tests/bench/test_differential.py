"""Twenty thousand random questions against plain Python, in two hundred random worlds. Run by `make bench`."""

from __future__ import annotations

import pytest

from conftest import Stage
from support.differential_test import assert_equal_answers

WORLDS = 200
QUESTIONS = 100


def test_twenty_thousand_answers(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Issue, Must show: 20,000 in make bench; every row equal."""
    for seed in range(1000, 1000 + WORLDS):
        stage = Stage(tmp_path_factory.mktemp("world") / "state")
        try:
            assert_equal_answers(stage, seed, queries=QUESTIONS)
        finally:
            stage.sandbox.close()
    print(f"\n{WORLDS * QUESTIONS:,} answers in {WORLDS} worlds, every row equal")
