"""Keyed runs: keys of texts, and rows with the key of another one."""

from __future__ import annotations

import os
from pathlib import Path
from random import Random
from uuid import UUID

import numpy as np
import pyarrow as pa
import pytest

from gamelens.sandbox.building import event_facts
from gamelens.sandbox.building.event_facts import NamedEvents, is_first
from gamelens.sandbox.storage.keyed_runs import (
    APART,
    AT_EVENT,
    BY_EVENT,
    PAYLOADS,
    KeyedRuns,
    Keys,
    merge_columns,
    read_ahead,
    text_keys,
    write_run,
)


@pytest.mark.parametrize("seed", range(20))
def test_the_first_event_of_each_name_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """It is, whatever the chunks and the ranges, also where two keys share their higher half.

    No key is in two ranges.
    """
    random = Random(seed)
    monkeypatch.setattr(event_facts, "_SAMPLE_EVERY", random.randrange(1, 4))
    keys = [(random.choice((random.getrandbits(64), random.randrange(9))), random.randrange(3)) for _ in range(200)]
    numbers = random.sample(range(-200, 200), len(keys))
    named = NamedEvents(tmp_path)
    for start in range(0, len(keys), step := random.randrange(20, 201)):
        own = sorted(zip(keys[start : start + step], numbers[start : start + step], strict=True))
        halves = np.array([key for key, _ in own], dtype=np.uint64)
        named.add(Keys(halves[:, 0].copy(), halves[:, 1].copy()), np.array([number for _, number in own]))
    first: set[int] = set()
    highs: list[set[int]] = []
    for part, seq in named.take_ranges(random.randrange(10, 300)):
        highs.append(set(part.high.tolist()))
        first |= set(seq[is_first(part, seq)].tolist())
    wanted = {key: min(number for other, number in zip(keys, numbers, strict=True) if other == key) for key in keys}
    assert first == set(wanted.values())
    assert sum(map(len, highs)) == len(set().union(*highs)) == len({high for high, _ in keys})
    assert list(tmp_path.iterdir()) == []


def test_no_names_have_no_ranges(tmp_path: Path) -> None:
    """Without events there is no range."""
    assert list(NamedEvents(tmp_path).take_ranges()) == []


def test_runs_of_other_ranges_have_no_row(tmp_path: Path) -> None:
    """Keys below, in and above the range of a run are looked up at once."""
    own = np.array([10, 20, 20, 30], dtype=np.uint64)
    write_run(tmp_path / "1.arrow", "impressions", own, own, {"day": np.arange(4)})
    sought = np.array([40, 5, 30, 20, 10], dtype=np.uint64)
    hits = KeyedRuns("impressions", [tmp_path / "1.arrow"]).find(Keys(sought, sought))
    found = sorted(zip(hits.places.tolist(), hits.columns["day"].tolist(), strict=True))
    assert found == [(2, 3), (3, 1), (3, 2), (4, 0)]


def test_a_run_of_the_last_release_says_which_installs_are_stated(tmp_path: Path) -> None:
    """Version 0.1.0 added a number to the seq of one before all events; old and new runs are merged."""
    path, own = tmp_path / "1.arrow", np.array([1, 2], dtype=np.uint64)
    zeros = dict.fromkeys(PAYLOADS["players"], np.zeros(2, dtype=np.int64))
    rows = zeros | {"install_seq": np.array([-(1 << 61) + 7 + (3 << 61), -(1 << 62)]), "player": np.array([1, 2])}
    batch = pa.record_batch({"high": own, "low": own} | {name: rows[name] for name in rows if name != "stated"})
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, batch.schema) as writer:
        writer.write_batch(batch)
    write_run(tmp_path / "2.arrow", "players", own, own, zeros | {"stated": np.array([AT_EVENT, BY_EVENT])})
    merged = merge_columns([tmp_path / "2.arrow", path])
    assert merged["stated"].tolist() == [AT_EVENT, BY_EVENT, APART, BY_EVENT]
    assert merged["install_seq"].tolist() == [0, 0, -(1 << 61) + 7, -(1 << 62)]


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


@pytest.mark.skipif(not hasattr(os, "posix_fadvise"), reason="this system takes no advice")
def test_many_keys_have_their_column_read_ahead_and_few_the_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that is gone is left to the search."""
    high = np.arange(200_000, dtype=np.uint64)
    write_run(path := tmp_path / "names.arrow", "names", high, high, {})
    advised: list[tuple[int, int]] = []
    monkeypatch.setattr(os, "posix_fadvise", lambda _, start, length, __: advised.append((start, start + length)))
    read_ahead({"names": [tmp_path / "gone.arrow", path]}, 1)
    (end,) = advised
    assert end[1] >= path.stat().st_size > end[0] > high.nbytes
    advised.clear()
    read_ahead({"names": [tmp_path / "gone.arrow", path]}, 200_000)
    first, *_, last = sorted(advised[:-1])
    assert (first[0], advised[-1]) == (0, end)
    assert last[1] >= high.nbytes
