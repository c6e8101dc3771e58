"""Random queries against plain Python: 20,000 answers in 200 random worlds.

Run by `make bench`.
"""

from __future__ import annotations

import pytest

from support.differential_test import assert_equal_answers
from support.sandbox_stage import Stage

WORLDS = 200
QUERIES = 100


def test_twenty_thousand_answers(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Every row of every answer is the one that plain Python computes from the events."""
    for seed in range(1000, 1000 + WORLDS):
        stage = Stage(tmp_path_factory.mktemp("world") / "state")
        try:
            assert_equal_answers(stage, seed, queries=QUERIES)
        finally:
            stage.sandbox.close()
    print(f"\n{WORLDS * QUERIES:,} answers in {WORLDS} worlds, every row equal")
