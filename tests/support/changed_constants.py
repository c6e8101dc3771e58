"""Constants of the analyses, changed by a fifth in a copy of the source, and what becomes of the methods' figures.

`make methods` writes `docs/methods/constants.json` with it. A bench refuses a constant that no figure depends on.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from docs.constants import Constant, constants
from support.method_figures import ROOT, Figure

SENSITIVITY: Final = ROOT / "docs" / "methods" / "constants.json"
RUNS: Final = 60
FACTORS: Final = (0.8, 1.2)
FELT: Final = {"coverage": 0.005, "false": 0.002, "found": 0.01, "width": 0.01, "error": 0.01, "count": 0.01}
"""By how much a figure must move for a constant to matter: shares by so much, other figures relatively."""

METHODS_OF: Final = {
    "over_days": ("days",),
    "health": ("health", "levels", "segments", "boards"),
    "retention": ("retention", "projection", "families", "value"),
    "experiments": ("experiments",),
    "ads": ("ads",),
    "changes": ("ads",),
    "decomposition": ("ads",),
    "significance": ("claims",),
}
"""The methods whose figures are counted for the constants of a topic, one after the other until one of them moves.

Constants of other topics are rules of wording and of formats.
"""


FIRST_OF: Final = {
    "levels": "MOST_OF_NONE MOST_WEEKS FEWEST_WEEKS LEAST_LEVEL_CHANGE FEWEST_EVENTS_OF_WEEK RESTATED "
    "FEWEST_OF_SEGMENT FEW_COUNTED _WEEK",
    "segments": "FEWEST_OF_SHARE MOVED_P MOST_OF_CHANGE AHEAD AGAINST LEAST_ALIKE",
    "boards": "LEVEL_DAYS LEVEL_P LEVEL_Z CRITICAL_FALL CRITICAL_RISE",
    "projection": "TEST_DIVISOR TEMPER BG_BB WEIBULL",
    "families": "CLEAR_DIFFERENCE CLEAR_MISFIT SHIFTED_BG POWER_LAW",
    "value": "WEEK DECAY",
}
"""The methods that are looked at first for some constants, which the first method of their topic does not use."""


def changed(constant: Constant, factor: float) -> str:
    """Return the expression of a constant *factor* times as large: the first value of a dict, all of a tuple."""
    value = constant.value
    if value.startswith("RetentionCurve("):
        head, spread = value.rsplit("spread=", 1)
        return f"{head}spread=tuple({factor} * each for each in {spread[:-1]}))"
    if value.startswith("{"):
        first = f"(lambda given: {{**given, next(iter(given)): {factor} * next(iter(given.values()))}})"
        return f"{first}({value})"
    if value.startswith("("):
        whole = "." not in value
        each = f"max(1, round({factor} * each))" if whole else f"{factor} * each"
        return f"tuple({each} for each in {value})"
    if value.lstrip("-").replace("_", "").isdigit():
        number = int(value.replace("_", ""))
        moved = round(factor * number)
        return str(moved if moved != number else number + (1 if factor > 1 else -1))
    return f"({value}) * {factor}"


def figures_with(copy: Path, method: str, runs: int = RUNS) -> dict[str, Figure]:
    """Return the figures of *method* on the source in *copy*, by name and setting.

    Raises:
        RuntimeError: it does not run.
    """
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, (copy, ROOT / "tests", ROOT)))}
    command = [sys.executable, "-m", "support.method_figures", str(runs), method]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr.strip().splitlines()[-1])
    found = json.loads(done.stdout.strip().splitlines()[-1])
    return {f"{row['name']}|{row['setting']}": Figure(**row) for row in found}


def moved(before: Figure, after: Figure) -> float:
    """Return by how much a figure moved, as a multiple of what is felt."""
    apart = abs(after.value - before.value)
    if before.kind in ("width", "error", "count"):
        apart /= max(abs(before.value), 1e-9) if before.value else max(abs(after.value), 1e-9)
    return apart / FELT[before.kind] if apart == apart else 1e9


def sensitivities(wanted: list[str]) -> Iterator[dict[str, Any]]:
    """Yield for each constant the figures that it moves most, and how many it moves.

    *wanted* are names of constants, or module.py:NAME, all of them by default. The numerical ones of a topic, which
    must move nothing, are changed together first: where all of them move nothing, none of them does.
    """
    with TemporaryDirectory() as folder:
        copy = Path(folder)
        shutil.copytree(ROOT / "src" / "gamelens", copy / "gamelens", ignore=shutil.ignore_patterns("__pycache__"))
        usual: dict[str, dict[str, Figure]] = {}
        chosen = [
            constant
            for constant in constants()
            if constant.topic in METHODS_OF
            and (not wanted or constant.name in wanted or f"{constant.path}:{constant.name}" in wanted)
        ]
        for topic in dict.fromkeys(constant.topic for constant in chosen):
            of_topic = [constant for constant in chosen if constant.topic == topic]
            numerical = [constant for constant in of_topic if constant.kind == "Numerical"]
            together = _sensitivity(copy, numerical, usual) if len(numerical) > 1 else {}
            for constant in of_topic:
                is_still = constant in numerical and together and not together["moves"] and not together["errors"]
                head = {"path": constant.path, "name": constant.name, "value": constant.value}
                yield head | (together if is_still else _sensitivity(copy, [constant], usual))


def _sensitivity(copy: Path, changing: list[Constant], usual: dict[str, dict[str, Figure]]) -> dict[str, Any]:
    """Return what constants of one topic move in the first method in which they move a figure.

    *usual* takes up usual figures.
    """
    paths = {constant.path: copy / "gamelens" / "analysis" / constant.path for constant in changing}
    texts, found = {path: file.read_text(encoding="utf-8") for path, file in paths.items()}, dict[str, Any]()
    methods = METHODS_OF[changing[0].topic]
    names = {constant.name for constant in changing}
    first = [method for method in methods if names & {*FIRST_OF.get(method, "").split()}]
    for method in [*first, *(method for method in methods if method not in first)]:
        if method not in usual:
            usual[method] = figures_with(copy, method)
        runs, errors = {}, {}
        for factor in FACTORS:
            for path, file in paths.items():
                text = texts[path]
                for constant in sorted(changing, key=lambda constant: -constant.line[0]):  # lines above stay in place
                    if constant.path == path:
                        text = _with_value(text, constant, changed(constant, factor))
                file.write_text(text, encoding="utf-8")
            try:
                runs[factor] = figures_with(copy, method)
            except RuntimeError as error:
                errors[str(factor)] = str(error)
        for path, file in paths.items():
            file.write_text(texts[path], encoding="utf-8")
        found = {"method": method, **_summary(usual[method], runs), "errors": errors}
        if found["moves"] or errors:
            break
    return found


def _summary(usual: dict[str, Figure], runs: dict[float, dict[str, Figure]]) -> dict[str, Any]:
    sizes = {
        key: max((moved(figure, found[key]) for found in runs.values()), default=0.0) for key, figure in usual.items()
    }
    order = sorted((key for key in sizes if sizes[key] >= 1), key=lambda key: -sizes[key])
    shown = [
        {
            "name": usual[key].name,
            "setting": usual[key].setting,
            "kind": usual[key].kind,
            "values": {"1": usual[key].value} | {str(factor): found[key].value for factor, found in runs.items()},
        }
        for key in order[:6]
    ]
    return {"moves": len(order), "of": len(usual), "figures": shown}


def _with_value(text: str, constant: Constant, value: str) -> str:
    lines = text.splitlines(keepends=True)
    first, last = constant.line
    head, tail = lines[first - 1][: constant.column[0]], lines[last - 1][constant.column[1] :]
    return "".join([*lines[: first - 1], head + value + tail, *lines[last:]])


def main() -> None:
    """Write how the figures depend on each constant, or on those that the arguments name, beside what is there."""
    wanted = sys.argv[1:]
    there = {}
    if SENSITIVITY.exists():
        there = {
            (row["path"], row["name"]): row for row in json.loads(SENSITIVITY.read_text(encoding="utf-8"))["constants"]
        }
    for row in sensitivities(wanted):
        there[row["path"], row["name"]] = row
        print(f"{row['path']:32} {row['name']:24} {row['moves']:3} of {row['of']}", flush=True)
        kept = [there[key] for constant in constants() if (key := (constant.path, constant.name)) in there]
        SENSITIVITY.write_text(json.dumps({"runs": RUNS, "constants": kept}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
