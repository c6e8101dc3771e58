"""The project's words, read from `vocabulary.toml`, and the words inside a name.

`PYTHONPATH=tests .venv/bin/python -m house.vocabulary` prints them as a Markdown table, for the README.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

Words = tuple[str, ...]

_CONTENT: dict[str, Any] = tomllib.loads(Path(__file__).with_name("vocabulary.toml").read_text(encoding="utf-8"))
TERMS: list[dict[str, Any]] = _CONTENT["term"]


def words(name: str) -> Words:
    """Return the words of a name in snake or camel case, lower-case and in the singular."""
    found = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)
    return tuple(word if word.endswith("ss") else word.removesuffix("s") for word in map(str.lower, found))


def _banned(term: dict[str, Any]) -> list[Words]:
    """Return the words that are banned for a term, without the notes in brackets."""
    return [words(it.partition(" (")[0]) for it in term["banned"]]


BANNED = {word: [str(it["term"]) for it in TERMS if word in _banned(it)] for term in TERMS for word in _banned(term)}
"""Terms to use instead of each banned name."""
BANNED |= {words(name): ["what it holds"] for name in _CONTENT["checked"]["vague"] if words(name) not in BANNED}
ALLOWED = {name for term in TERMS for name in term.get("allowed", ())}
"""Names of modules and classes that look banned and are not."""
CHECKED_IN_NAMES = {word for name in _CONTENT["checked"]["names"] for word in words(name)}
CHECKED_IN_CLASSES = CHECKED_IN_NAMES | {word for name in _CONTENT["checked"]["classes"] for word in words(name)}
EXCEPTIONS = set(_CONTENT["checked"]["except"])
"""Names that may have a checked word, with their class or for themselves."""


def advice(word: Words) -> str:
    """Return what to say instead of a banned word."""
    return f"say {' or '.join(BANNED[word])}" if word in BANNED else "no term of vocabulary.toml"


def table() -> str:
    """Return the terms as a Markdown table."""
    rows = [(it["term"], it["means"], ", ".join(f"`{home}`" for home in it["home"])) for it in TERMS]
    lines = [("term", "means", "defined in"), ("---", "---", "---"), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


if __name__ == "__main__":
    print(table(), end="")
