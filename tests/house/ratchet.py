"""Counts of what still breaks a rule, which may only fall.

`ratchet.toml` holds them by room and rule; without that file every rule holds everywhere. A count that differs from
the file fails in both directions, so that the file always states what is left:

    RATCHET=write .venv/bin/pytest -m 'not slow' tests/house
"""

from __future__ import annotations

import os
import tomllib
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import pytest

FILE = Path(__file__).with_name("ratchet.toml")
COMMAND = "RATCHET=write .venv/bin/pytest -m 'not slow' tests/house"
HEADER = f"""\
# What still breaks the rules of tests/house, by room; "gamelens" is the top level. Counts only fall, and this file goes
# with the last of them. Written by
#     {COMMAND}
"""

Counts = dict[str, dict[str, int]]


class Violation(NamedTuple):
    """One place that breaks a rule."""

    room: str
    text: str
    size: int = 1


def hold(rule: str, violations: Iterable[Violation], *, file: Path = FILE) -> None:
    """Fail where *rule* is broken more or less often than *file* has it, or write today's counts there.

    Raises:
        Failed: a count rose (with a list of all places in that room), or fell.
    """
    found = list(violations)
    today = Counter[str]()
    for it in found:
        today[it.room] += it.size
    counts = read(file)
    if os.environ.get("RATCHET") == "write":
        write(file, {room: counts.get(room, {}) | {rule: today[room]} for room in {*counts, *today}})
        return
    before = {room: rules[rule] for room, rules in counts.items() if rule in rules}
    rose = sorted(room for room in today if today[room] > before.get(room, 0))
    fell = sorted(room for room in before if today[room] < before[room])
    lines = [f"{rule}, {room}: {before.get(room, 0)} -> {today[room]}" for room in [*rose, *fell]]
    lines += [f"  {it.text}" for it in found if it.room in rose]
    if fell:
        lines.append(f"A count fell, so the file must follow: {COMMAND}")
    if lines:
        pytest.fail("\n".join(lines), pytrace=False)


def read(file: Path) -> Counts:
    """Return the counts of *file* by room and rule: none when there is no file."""
    return tomllib.loads(file.read_text(encoding="utf-8")) if file.exists() else {}


def write(file: Path, counts: Counts) -> None:
    """Write *counts* without zeros, and remove *file* when nothing is left."""
    tables = []
    for room, rules in sorted(counts.items()):
        rows = [f"{rule} = {count}" for rule, count in sorted(rules.items()) if count]
        if rows:
            tables.append("\n".join([f"\n[{room}]", *rows, ""]))
    if tables:
        file.write_text(HEADER + "".join(tables), encoding="utf-8")
    else:
        file.unlink(missing_ok=True)
