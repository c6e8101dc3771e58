"""Keyed runs: keys of texts, and rows with the key of another one."""

from __future__ import annotations

from pathlib import Path
from random import Random
from uuid import UUID

import numpy as np
import pyarrow as pa
import pytest

from gamelens.sandbox.storage import keyed_runs
from gamelens.sandbox.storage.keyed_runs import repeated_rows, text_keys, write_run


@pytest.mark.parametrize("seed", range(20))
def test_all_but_the_first_row_of_a_key_are_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """Rows are found whatever the runs and the ranges, also where two keys share their higher half."""
    random = Random(seed)
    monkeypatch.setattr(keyed_runs, "_SAMPLE_EVERY", random.randrange(1, 4))
    monkeypatch.setattr(keyed_runs, "_SAMPLES", random.randrange(1, 9))
    keys = [(random.choice((random.getrandbits(64), random.randrange(9))), random.randrange(3)) for _ in range(200)]
    numbers = random.sample(range(-200, 200), len(keys))
    runs = []
    for start in range(0, len(keys), step := random.randrange(20, 201)):
        own = sorted(zip(keys[start : start + step], numbers[start : start + step], strict=True))
        run, file = tmp_path / f"{start}.arrow", tmp_path / f"{start}.npy"
        halves = np.array([key for key, _ in own], dtype=np.uint64)
        write_run(run, "names", halves[:, 0].copy(), halves[:, 1].copy(), {})
        np.save(file, np.array([number for _, number in own]))
        runs.append((run, file))
    first = {key: min(number for other, number in zip(keys, numbers, strict=True) if other == key) for key in keys}
    found = [int(number) for rows in repeated_rows(runs) for number in rows]
    assert sorted(found) == sorted(number for key, number in zip(keys, numbers, strict=True) if number != first[key])


def test_no_run_has_no_repeated_row() -> None:
    """Without runs nothing is repeated."""
    assert list(repeated_rows([])) == []


def test_a_uuid_is_its_own_key_and_other_texts_have_others() -> None:
    """Only a lower-case UUID with hyphens in their places is taken for a number.

    The same text has another key in another game.
    """
    plain = str(UUID(int=0xABCDEF << 90))
    texts = [plain, plain.upper(), plain.replace("-", ""), plain[:-1] + "g", plain[1:] + "-", "é" * 18, ""]
    keys = text_keys(pa.array(["1"] * len(texts)), pa.array(texts))
    assert len(set(zip(keys.high.tolist(), keys.low.tolist(), strict=True))) == len(texts)
    zero = text_keys(pa.array(["1"]), pa.array([str(UUID(int=0))]))
    number = int(keys.high[0] ^ zero.high[0]) << 64 | int(keys.low[0] ^ zero.low[0])
    assert number == 0xABCDEF << 90
    other = text_keys(pa.array(["2"]), pa.array([plain]))
    assert other.high[0] != keys.high[0]
