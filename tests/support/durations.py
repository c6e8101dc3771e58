"""Where the minutes of the test suite go: a table of the last run, from the JUnit files in `.cache`.

Run as `make durations`. Processor seconds count the processes that a test started and that ended within it, so the
first and the last of the tests that share a fixture pay for it.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

SLOWEST = 25


class Cost(NamedTuple):
    """What one test took, in seconds by the clock and by the processor.

    Attributes:
        of_the_end: the processor seconds of what the last test of a worker ended, which other modules have used.
    """

    folder: str
    name: str
    seconds: float
    processor: float
    of_the_end: float
    is_slow: bool


def costs(report: Path) -> Iterator[Cost]:
    """Yield what each test of a JUnit file took."""
    for case in ElementTree.parse(report).iter("testcase"):
        parts = case.get("classname", "").split(".")
        folder = parts[1] if parts[0] == "tests" and len(parts) > 2 else parts[0] or "notebooks"
        values = {found.get("name"): found.get("value", "") for found in case.iterfind("properties/property")}
        yield Cost(
            folder,
            f"{'/'.join(parts[1:])}::{case.get('name')}",
            float(case.get("time", 0)),
            float(values.get("cpu", 0)),
            float(values.get("cpu_of_the_end", 0)),
            "slow" in values,
        )


def table(measured: list[Cost]) -> Iterator[str]:
    """Yield the lines of a table by folder, then those of the tests that took most."""
    folders: defaultdict[str, list[Cost]] = defaultdict(list)
    for cost in measured:
        folders[cost.folder].append(cost)
    folders["all"] = measured
    yield f"{'folder':<14}{'tests':>7}{'seconds':>10}{'processor':>11}"
    for folder, own in sorted(folders.items(), key=lambda pair: sum(cost.processor for cost in pair[1])):
        yield (
            f"{folder:<14}{len(own):>7}{sum(cost.seconds for cost in own):>10.1f}"
            f"{sum(cost.processor for cost in own):>11.1f}"
        )
    for cost in sorted(measured, key=lambda cost: -max(cost.processor, cost.seconds))[:SLOWEST]:
        yield f"{cost.seconds:>8.1f} s{cost.processor:>8.1f} processor s  {cost.name}"


if __name__ == "__main__":
    print("\n".join(table([cost for report in sys.argv[1:] for cost in costs(Path(report))])))
