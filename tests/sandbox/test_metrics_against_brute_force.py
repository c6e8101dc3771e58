"""The metrics service against a reference implementation, on random events and queries."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest

from support.brute_force import ReferenceMetrics
from support.differential_test import assert_equal_answers
from support.hypothesis_profiles import tries
from support.random_worlds import GAMES, POOLS, play, random_query
from support.sandbox_stage import Stage

pytestmark = pytest.mark.slow

QUERIES = tries(in_test=15, in_bench=100)  # in each world


@pytest.mark.parametrize("seed", range(tries(in_test=1, in_bench=50)))
def test_every_answer_is_the_one_plain_python_gives(make_stage: Callable[..., Stage], seed: int) -> None:
    """Random queries of random worlds get the rows of the reference implementation, in its order.

    Wire 2.10, Row order.
    """
    assert_equal_answers(make_stage(), seed, queries=QUERIES)


@pytest.mark.wide
@pytest.mark.parametrize("seed", range(100, 100 + tries(in_test=1, in_bench=20)))
def test_every_answer_over_parts_that_add_up(make_reference_stage: Callable[..., Stage], seed: int) -> None:
    """The same for lakes whose parts are batches in random order, cut at random.

    Rows without new memberships, negative returns and replaced first events are among them.
    """
    assert_equal_answers(make_reference_stage(seed=seed), seed, queries=QUERIES)


@pytest.mark.parametrize("seed", [3])
def test_every_list_of_values_is_the_one_plain_python_gives(make_stage: Callable[..., Stage], seed: int) -> None:
    """The values of every dimension are those of the reference implementation.

    Wire 2.11, Lists.
    """
    random, stage = Random(seed), make_stage()
    reference = ReferenceMetrics(play(stage, random, batches=6)["acme"])
    for dimension in POOLS:
        query = random_query(random, "acme")
        limit = random.choice((1, 2, 100))
        response = stage.get(f"dimensions/{dimension}", interval=query.body["interval"], limit=limit)
        expected = reference.values(dimension, query.start, query.end, set(GAMES["acme"]), limit)
        assert response.json() == {"dimension": dimension, "values": expected}, query
