"""What READMEs say of files: a path in backticks is there, and a table of rooms has all rooms."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from textwrap import indent

import pytest

from house.source import PACKAGE, ROOT

READMES = [
    *(ROOT / "README.md", ROOT / "CONTRIBUTING.md"),
    *(ROOT / "src").rglob("README.md"),
    *(ROOT / "src").rglob("HOW_TO.md"),
    ROOT / "tests" / "README.md",
    ROOT / "data" / "README.md",
]
PATH = re.compile(r"(?<!`)`([\w.-]+(?:/[\w.-]+)*(?:/|\.(?:py|md|toml|txt|ipynb|css|js)))(?::[^`]*)?`(?!`)")
MADE = {
    "config.toml": "in the user's configuration folder",
    "log.txt": "in a state directory",
    "lake/": "in a state directory",
    "lake-N/": "in quarantine",
    "quarantine/": "in a state directory",
    "scratch/": "in a state directory",
    "users/": "in a state directory",
    "site/": "made by make docs",
    "NAME_command.py": "stands for any name",
}
"""Files and folders that are made later, or stand for others."""


def missing_paths(text: str, folder: Path) -> Iterator[str]:
    """Yield the paths in backticks that are neither in *folder* nor below the root, the package or the tests."""
    known = folder, ROOT, PACKAGE, ROOT / "tests"
    for path in PATH.findall(re.sub(r"```.*?```", "", text, flags=re.DOTALL)):
        if path not in MADE and not any((base / path).exists() for base in known):
            alone = "/" not in path.removesuffix("/")
            if not alone or not any([*base.rglob(path.removesuffix("/"))] for base in (PACKAGE, ROOT / "tests")):
                yield path


def unlike_the_source(text: str) -> Iterator[str]:
    """Yield the first line of each block with a path that does not stand in that file, and of each without one."""
    for info, code in re.findall(r"^```([^\n]*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        language, _, path = info.partition(" ")
        if language == "console":
            continue
        source = (ROOT / path).read_text(encoding="utf-8") if path else ""
        first = code.partition("\n")[0]
        indents = {line[: -len(line.lstrip())] for line in source.splitlines() if line.strip() == first}
        if not any(indent(code, by) in source for by in indents):
            yield first


def rooms_in(text: str) -> set[str]:
    """Return the rooms that the first column of a table names, as a link or in backticks."""
    rooms = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    return rooms.intersection(re.findall(r"^\| [\[`](\w+)[\]`]", text, re.MULTILINE))


@pytest.mark.parametrize("readme", READMES, ids=lambda it: str(it.relative_to(ROOT)))
def test_every_path_is_there(readme: Path) -> None:
    """As it is written, from the README's folder, the package, the tests or the root; a bare name anywhere in them."""
    assert [*missing_paths(readme.read_text(encoding="utf-8"), readme.parent)] == []


def test_code_of_the_source_is_what_stands_there() -> None:
    """CONTRIBUTING shows no code that is gone; a changed line, and a block without a path, are found."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert text.count("```python src/") >= 2
    assert [*unlike_the_source(text)] == []
    assert [*unlike_the_source(text.replace("notes[MAY_CHANGE]", "notes[LATER]"))]
    assert [*unlike_the_source("```text\na = 1\n```\n")] == ["a = 1"]


@pytest.mark.parametrize("readme", ["README.md", "src/gamelens/README.md"])
def test_the_map_has_every_room(readme: str) -> None:
    """A room that is added is on both maps."""
    assert rooms_in((ROOT / readme).read_text(encoding="utf-8")) == {
        it.parent.name for it in PACKAGE.glob("*/__init__.py")
    }


def test_a_path_that_is_not_there_is_found() -> None:
    """And one that is there is not; code blocks and expressions are left aside."""
    text = "`wire/filters.py: Dimension`, `verification/x.py`, `x.py`, `a.b`, `lake/`\n```\n`y.py`\n```"
    assert [*missing_paths(text, PACKAGE)] == ["verification/x.py", "x.py"]


def test_a_room_that_a_map_lacks_is_found() -> None:
    """A table without the room does not count a room that its text mentions."""
    assert rooms_in("| [client](x) | asks `wire` |\n| `cli` | prints |\n`wire`") == {"client", "cli"}
