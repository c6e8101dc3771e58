"""How docstrings are written: one plain sentence first, which opens with a verb or a noun and fits a line."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from functools import cache
from typing import NamedTuple

import pytest

from house.source import Module, definitions, modules, place
from house.violations import Violation, hold

FIRST_LINE = 88
OPENERS = re.compile(r"(What|Who|Whose|Where|When|How|Which|Those|As|That)\b")
BANNED = re.compile(r"\b([Nn]obody|[Ss]omebody|[Ww]hoever|for who|of use|[Ii]s none)\b")


class Docstring(NamedTuple):
    """The docstring of a module, class or function, or the text below a constant or field."""

    module: Module
    line: int
    text: str

    @property
    def first(self) -> str:
        """The first line."""
        return self.text.partition("\n")[0]


@cache
def docstrings() -> tuple[Docstring, ...]:
    """Return every docstring of the package."""
    return tuple(_docstrings())


def _docstrings() -> Iterator[Docstring]:
    for owner, node in [*((it, it.tree) for it in modules()), *((it.module, it.node) for it in definitions())]:
        text = ast.get_docstring(node)
        if text:
            yield Docstring(owner, node.body[0].lineno, text)
        for before, after in zip(node.body, node.body[1:], strict=False):
            if isinstance(before, (ast.Assign, ast.AnnAssign)) and (below := _text(after)):
                yield Docstring(owner, after.lineno, below)


def _text(node: ast.stmt) -> str | None:
    """Return the text of a statement that is nothing else."""
    is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    return ast.literal_eval(node.value).strip() if is_text and isinstance(node, ast.Expr) else None


RULES: dict[str, Callable[[Docstring], str | None]] = {
    "docstring_opener": lambda it: f"opens with {found[0]}" if (found := OPENERS.match(it.text)) else None,
    "docstring_length": lambda it: f"first line of {len(it.first)}" if len(it.first) > FIRST_LINE else None,
    "docstring_semicolon": lambda it: "semicolon in the first line" if ";" in it.first else None,
    "docstring_full_stop": lambda it: "first line without a full stop" if not it.first.endswith(".") else None,
    "docstring_words": lambda it: f"has {found[0]!r}" if (found := BANNED.search(it.text)) else None,
}
"""What a docstring breaks, by rule: none of these openers; 88 characters, no semicolon and a full stop in the first
line; none of these words anywhere."""


@pytest.mark.parametrize("rule", RULES)
def test_docstrings_are_plain(rule: str) -> None:
    """Each rule holds for every docstring of the package."""
    broken = ((it, RULES[rule](it)) for it in docstrings())
    hold(rule, (Violation(it.module.room, f"{place(it.module, it.line)}: {why}") for it, why in broken if why))


@pytest.mark.parametrize(
    ("text", "rules"),
    [
        ("Return the rows of *table*.\n\nWhat follows may be longer; it may have semicolons.", []),
        ("Where rows come from; is None at first.", ["docstring_opener", "docstring_semicolon"]),
        ("Asset of the page, which nobody needs", ["docstring_full_stop", "docstring_words"]),
        ("A" * 88 + ".", ["docstring_length"]),
    ],
)
def test_the_rules_find_what_they_are_for(text: str, rules: list[str]) -> None:
    """A rule that finds nothing would pass every test above."""
    docstring = Docstring(modules()[0], 1, text)
    assert [rule for rule, broken in RULES.items() if broken(docstring)] == rules
