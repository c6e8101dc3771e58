"""Tables and figures of the pages on methods, from the source and from `docs/methods`, which `make methods` writes.

A block of figures has a line for each table: the name of a method, a colon, and names of figures separated by `|`. A
block of constants has paths of modules. In the text `{{ figure("days", "name", "setting") }}` is one figure.
"""

from __future__ import annotations

import ast
import html
import json
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

from docs.constants import constants

FOLDER: Final = Path(__file__).parent / "methods"
_INLINE: Final = re.compile(r"\$`([^`]+)`\$")


def with_formulas(text: str) -> str:
    """Return *text* with its formulas (LaTeX between $` and `$) as MathML, which browsers show without a network."""
    return _INLINE.sub(lambda found: f'<span class="formula">{mathml(found[1])}</span>', text)


def mathml(formula: str, *, is_block: bool = False) -> str:
    """Return a formula in LaTeX as MathML; its number, as in `(3)`, is a part of the formula."""
    from latex2mathml.converter import convert

    return convert(" ".join(formula.split()), display="block" if is_block else "inline")


@cache
def _written(name: str) -> Any:
    return json.loads((FOLDER / name).read_text(encoding="utf-8"))


def rows_of(method: str) -> list[Mapping[str, Any]]:
    """Return the figures of *method*.

    Raises:
        KeyError: there is no such method.
    """
    found: list[Mapping[str, Any]] = _written("figures.json")["figures"][method]
    return found


def figure(method: str, name: str, setting: str) -> str:
    """Return one figure as text.

    Raises:
        KeyError: there is no such figure.
    """
    for row in rows_of(method):
        if (row["name"], row["setting"]) == (name, setting):
            return _text(row)
    raise KeyError(f"{method} has no figure {name!r}, {setting!r}")


def figure_of(expression: str) -> str:
    """Return the figure that an expression of a text names, such as `figure("days", "name", "setting")`."""
    return figure(*ast.literal_eval(expression.removeprefix("figure")))


def figures_table(lines: str) -> str:
    """Return a table for each of *lines*, with a row for each setting and a column for each figure."""
    tables, days = [], set[str]()
    for line in lines.strip().splitlines():
        method, _, listed = line.partition(": ")
        days.add(_written("figures.json")["made"][method])
        names = [name.strip() for name in listed.split("|")]
        rows = [row for row in rows_of(method) if row["name"] in names]
        if missing := [name for name in names if name not in {row["name"] for row in rows}]:
            raise KeyError(f"{method} has no figures {missing}")
        cells = {(row["setting"], row["name"]): _text(row) for row in rows}
        runs = {row["setting"]: f"{row['runs']:,}" for row in rows}
        head = ["setting", *names, "series"]
        body = [[setting, *(cells.get((setting, name), "") for name in names), runs[setting]] for setting in runs]
        tables.append(_table(head, body))
    on = " and ".join(sorted(days))
    made = f"*Made by `make methods` on {on}, with the seeds in `tests/support/method_figures.py`.*"
    return "\n\n".join([*tables, made]) + "\n"


def constants_table(paths: str) -> str:
    """Return the constants of modules, or of all modules of rooms: value, meaning, source, and what they move."""
    moved = {(row["path"], row["name"]): row for row in _written("constants.json")["constants"]}
    body = []
    for constant in constants():
        if constant.path.startswith(tuple(paths.split())):
            row = moved.get((constant.path, constant.name), {})
            shown = f"`{constant.name}`", f"`{_short(constant.value)}`", constant.about
            body.append([*shown, f"{constant.kind}: {constant.source}", _moves(row)])
    return _table(["constant", "value", "what it is", "source", "a fifth less, now, a fifth more"], body) + "\n"


def _moves(row: Mapping[str, Any]) -> str:
    """Return the figure that a constant moves most, with a fifth less, as it is, and with a fifth more."""
    if not row or not row["figures"]:
        return "moves no figure" if row else ""
    shown = row["figures"][0]
    values = [shown["values"].get(factor) for factor in ("0.8", "1", "1.2")]
    texts = ["" if value is None else _text({**shown, "value": value}) for value in values]
    return f"{shown['name']}, {shown['setting']}: {', '.join(texts)}"


def _short(value: str) -> str:
    return re.sub(r"RetentionCurve\(.*?(centre=.*)\)", r"\1", value)


def _text(row: Mapping[str, Any]) -> str:
    value = row["value"]
    if value != value:
        return ""
    if row["kind"] in ("coverage", "false", "found"):
        return f"{value:.1%}"
    return f"{value:,.0f}" if value == round(value) and value > 1 else f"{value:.3g}"


def _table(head: list[str], body: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *body]
    cells = [[html.escape(cell, quote=False).replace("|", "\\|") for cell in line] for line in lines]
    return "\n".join(f"| {' | '.join(line)} |" for line in cells)
