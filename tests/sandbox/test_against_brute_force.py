"""The planner against plain Python: random worlds, random questions, the same rows in order (design/metrics)."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest

from conftest import Stage
from support.brute_force import Arrived, Truth
from support.random_worlds import GAMES, POOLS, ask, play

pytestmark = pytest.mark.slow

QUESTIONS = 100  # of each of 20 worlds: issue, Must show: at least 2,000


@pytest.mark.parametrize("seed", range(20))
def test_every_answer_is_the_one_plain_python_gives(make_stage: Callable[..., Stage], seed: int) -> None:
    """design/metrics, all of it but the refusals; the second half after more batches, most of them late."""
    differ(make_stage(), seed, questions=QUESTIONS)


def differ(stage: Stage, seed: int, *, questions: int) -> None:
    random = Random(seed)
    arrived: dict[str, list[Arrived]] = {}
    for _ in range(2):
        for name, more in play(stage, random, batches=9).items():
            arrived.setdefault(name, []).extend(more)
        truths = {name: Truth(all_of_it) for name, all_of_it in arrived.items()}
        for _ in range(questions // 2):
            organisation = random.choices(("acme", "rival"), (9, 1))[0]
            asked = ask(random, organisation)
            answer = stage.ask(asked.metric, api_key=f"key-of-{organisation}", **asked.body)
            assert answer.status_code == 200, (asked, answer.text)
            assert answer.json()["result"] == truths[organisation].answer(asked), asked


@pytest.mark.parametrize("seed", [3])
def test_every_list_of_values_is_the_one_plain_python_gives(make_stage: Callable[..., Stage], seed: int) -> None:
    """design/metrics, GET lists."""
    random, stage = Random(seed), make_stage()
    truth = Truth(play(stage, random)["acme"])
    for dimension in POOLS:
        asked = ask(random, "acme")
        limit = random.choice((1, 2, 100))
        answer = stage.get(f"dimensions/{dimension}", interval=asked.body["interval"], limit=limit)
        expected = truth.values(dimension, asked.start, asked.end, set(GAMES["acme"]), limit)
        assert answer.json() == {"dimension": dimension, "values": expected}, asked
