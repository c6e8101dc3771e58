"""The numeric constants of the analyses, each with its source, read from the source code for a page and a test.

A constant stands in the module of its topic with a docstring below it. The last paragraph of the docstring begins with
the kind of its source: `Derived`, `Paper`, `Experiment`, `Choice` or `Numerical`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).parents[1]
ANALYSIS: Final = ROOT / "src" / "gamelens" / "analysis"
OTHER_ROOMS: Final = ("files", "outside_data", "tidy_frames")
"""Rooms that read and write tables: their numbers are limits of formats."""

KINDS: Final = ("Derived", "Paper", "Experiment", "Choice", "Numerical")
_SOURCE: Final = re.compile(rf"({'|'.join(KINDS)}): (.+)", re.DOTALL)
_NAME: Final = re.compile(r"_?[A-Z][A-Z0-9_]*")


class Constant(NamedTuple):
    """One constant.

    Attributes:
        path: its module, from the folder of the analyses.
        name: its name.
        value: its value as the source has it.
        about: what it is.
        kind: the kind of its source, "" without one.
        source: the source itself.
        line: first and last line of its value.
        column: first and last column of its value.
    """

    path: str
    name: str
    value: str
    about: str
    kind: str
    source: str
    line: tuple[int, int]
    column: tuple[int, int]

    @property
    def topic(self) -> str:
        """The room or module that it belongs to."""
        return self.path.partition("/")[0].removesuffix(".py")


def constants(folder: Path = ANALYSIS) -> list[Constant]:
    """Return the numeric constants of all analyses below *folder*, module by module."""
    paths = sorted(path for path in folder.rglob("*.py") if path.relative_to(folder).parts[0] not in OTHER_ROOMS)
    return [constant for path in paths for constant in _of_module(path, path.relative_to(folder).as_posix())]


def _of_module(path: Path, name: str) -> Iterator[Constant]:
    text = path.read_text(encoding="utf-8")
    body = ast.parse(text).body
    for statement, following in zip(body, [*body[1:], None], strict=True):
        target = _target(statement)
        value = statement.value if isinstance(statement, (ast.Assign, ast.AnnAssign)) else None
        if target is None or value is None or not _is_numeric(value):
            continue
        about, kind, source = _documented(following)
        shown = " ".join((ast.get_source_segment(text, value) or "").split())
        lines, columns = (value.lineno, value.end_lineno or 0), (value.col_offset, value.end_col_offset or 0)
        yield Constant(name, target, shown, about, kind, source, lines, columns)


def _target(statement: ast.stmt) -> str | None:
    targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
    name = targets[0].id if len(targets) == 1 and isinstance(targets[0], ast.Name) else ""
    return name if _NAME.fullmatch(name) else None


def _is_numeric(value: ast.expr) -> bool:
    """Return whether an expression is made of numbers, with arrays and formulas of numpy and priors of curves."""
    match value:
        case ast.Constant():
            return isinstance(value.value, (int, float)) and not isinstance(value.value, bool)
        case ast.UnaryOp():
            return _is_numeric(value.operand)
        case ast.BinOp():
            return _is_numeric(value.left) and _is_numeric(value.right)
        case ast.Tuple() | ast.List():
            return bool(value.elts) and all(map(_is_numeric, value.elts))
        case ast.Dict():
            return bool(value.values) and any(map(_is_numeric, value.values))
        case ast.Attribute():
            return ast.unparse(value) in ("np.pi", "np.nan", "math.nan", "math.inf", "np.inf")
        case ast.Call():
            called = ast.unparse(value.func)
            given = [*value.args, *(keyword.value for keyword in value.keywords)]
            return called in ("np.array", "RetentionCurve") and any(map(_is_numeric, given))
    return False


def _documented(statement: ast.stmt | None) -> tuple[str, str, str]:
    """Return what a docstring says of the constant above it, the kind of its source and the source."""
    if not isinstance(statement, ast.Expr) or not isinstance(statement.value, ast.Constant):
        return "", "", ""
    paragraphs = [" ".join(part.split()) for part in str(statement.value.value).strip().split("\n\n")]
    found = _SOURCE.fullmatch(paragraphs[-1])
    if not found:
        return " ".join(paragraphs), "", ""
    return " ".join(paragraphs[:-1]), found[1], found[2]
