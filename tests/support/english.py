"""How often the source is hard to read: `python tests/support/english.py [FOLDER]` prints the counts by room.

A variable that is called by a pronoun says nothing about its value. A phrase such as "of which" hides the subject of a
sentence: most are two sentences.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "src" / "gamelens"
PRONOUNS = frozenset(("each", "it", "own", "of"))
PHRASES = re.compile(r"\b(?:of which|those of|that of)\b")


def pronouns(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield line and name of each variable, argument and field that is called by one of `PRONOUNS`."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()) | ast.arg(arg=name):
                if name in PRONOUNS:
                    yield node.lineno, name


def phrases(source: str) -> list[str]:
    """Return the phrases of a module, also where a line ends within one."""
    return [" ".join(phrase.split()) for phrase in PHRASES.findall(re.sub(r"\s+(?:# )?", " ", source))]


def main() -> None:
    """Print a line for each room, and the sums."""
    package = Path(sys.argv[1]) if len(sys.argv) > 1 else PACKAGE
    counts: dict[str, Counter[str]] = {}
    for path in sorted(package.rglob("*.py")):
        source, room = path.read_text(encoding="utf-8"), path.relative_to(package).parts[0]
        counts.setdefault(room, Counter()).update(phrases(source))
        counts[room].update(f"`{name}`" for _, name in pronouns(ast.parse(source)))
    counts["all"] = sum(counts.values(), Counter())
    names = sorted(counts["all"])
    print(f"{'':16}", *(f"{name:>9}" for name in names))
    for room, found in counts.items():
        if found:
            print(f"{room:16}", *(f"{found[name]:9}" for name in names))


if __name__ == "__main__":
    main()
