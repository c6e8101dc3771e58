"""Every text that a user can meet, for an editor to read from top to bottom: `make words` prints `file:line text`.

Texts are found by their structure: in Python every string of several words (messages, help, captions, sentences), every
label of a widget or figure, the first line of the docstring of each name that an `__all__` lists and the whole of a
command's; in TOML and JavaScript every quoted text of several words; what an HTML page shows; the prose of Markdown and
of notebooks, without its code.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
FOLDERS = ("src", "docs/pages", "notebooks")
LABELS = {"description", "help", "label", "placeholder", "short_help", "title", "tooltip"}
"""Arguments whose text is shown, also if it is one word."""
SQL = re.compile(
    r"\b(SELECT|FROM|AS|WHEN|WHERE|AND|OR|NOT|NULL|BEGIN|COMMIT|DECIMAL|TABLE|INDEX|INTO|BY|PRAGMA|COPY)\b"
)
PROSE = re.compile(r"\w\S* +\S*\w")
QUOTED = re.compile(r'"((?:[^"\\\n]|\\.)*)"|`([^`]*)`')


class Text(NamedTuple):
    """A text with the line of its file, or the cell of its notebook, in which it begins."""

    line: int
    text: str


def in_python(source: str) -> Iterator[Text]:
    """Yield the strings and docstrings of a module that are shown, by line."""
    tree = ast.parse(source)
    docstrings = [*_docstrings(tree)]
    labels = {
        id(it.value)
        for call in ast.walk(tree)
        if isinstance(call, ast.Call)
        for it in call.keywords
        if it.arg in LABELS
    }
    return iter(sorted({*docstrings, *_strings(tree, labels)}))


def _strings(node: ast.AST, labels: set[int]) -> Iterator[Text]:
    """Yield strings of several words and *labels*; a blank of an f-string shows its source."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return  # a docstring
    if isinstance(node, (ast.Constant, ast.JoinedStr)):
        written = ast.unparse(node)
        text = node.value if isinstance(node, ast.Constant) else written.removeprefix("f")[1:-1]
        is_prose = isinstance(text, str) and PROSE.search(text) and not SQL.search(text)
        if is_prose or (isinstance(text, str) and text and id(node) in labels):
            yield Text(node.lineno, str(text))
        return
    for child in ast.iter_child_nodes(node):
        yield from _strings(child, labels)


def _docstrings(tree: ast.Module) -> Iterator[Text]:
    """Yield the first line of each docstring of a public name, and the whole of a command's."""
    for node in ast.walk(tree):
        if not isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        is_command = any(re.search("command|group", ast.unparse(it)) for it in node.decorator_list)
        own = [node, *(it for it in node.body if isinstance(it, (ast.FunctionDef, ast.AsyncFunctionDef)))]
        for it in own if node.name in public_names() else [node] if is_command else []:
            if (text := ast.get_docstring(it)) and not it.name.startswith("_"):
                yield Text(it.body[0].lineno, text if is_command else text.partition("\n")[0])


@cache
def public_names() -> frozenset[str]:
    """Return the names that an `__all__` lists."""
    sources = (path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py"))
    found = (re.search(r"(?s)^__all__ = \[(.*?)\]", source, re.MULTILINE) for source in sources)
    return frozenset(name for it in found if it for name in re.findall(r'"(\w+)"', it[1]))


def in_quotes(source: str) -> Iterator[Text]:
    """Yield the quoted texts of several words of a TOML or JavaScript file."""
    for found in QUOTED.finditer(source):
        if PROSE.search(text := found[1] or found[2] or ""):
            yield Text(source.count("\n", 0, found.start()) + 1, text)


class _Shown(HTMLParser):
    """Collects what a page shows, with the texts of attributes that a reader meets."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[Text] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.texts += [
            Text(self.getpos()[0], value) for name, value in attrs if value and name in ("aria-label", "title")
        ]

    def handle_data(self, data: str) -> None:
        self.texts += [Text(self.getpos()[0], data)] if data.strip() else []


def in_html(source: str) -> list[Text]:
    """Return the texts of an HTML page."""
    page = _Shown()
    page.feed(source)
    return page.texts


def in_markdown(source: str) -> Iterator[Text]:
    """Yield the lines of prose, without blocks of code."""
    is_code = False
    for number, line in enumerate(source.splitlines(), 1):
        is_fence = line.lstrip().startswith("```")
        is_code ^= is_fence
        if re.search(r"\w", line) and not (is_code or is_fence):
            yield Text(number, line)


def in_notebook(source: str) -> Iterator[Text]:
    """Yield the prose of a notebook, each line with the number of its cell, and the texts in its code."""
    for number, cell in enumerate(json.loads(source)["cells"], 1):
        code = "".join(cell["source"])
        if cell["cell_type"] == "code":
            code = re.sub(r"(?m)^[%!].*$", "", code)
        texts = in_markdown(code) if cell["cell_type"] == "markdown" else in_python(code)
        yield from (Text(number, text) for _, text in texts)


READERS = {
    ".py": in_python,
    ".toml": in_quotes,
    ".js": in_quotes,
    ".html": in_html,
    ".md": in_markdown,
    ".ipynb": in_notebook,
}


def files() -> Iterator[Path]:
    """Yield the files with texts that a user can meet, by path."""
    yield from sorted(path for path in ROOT.glob("*.md") if path.name != "CHANGELOG.md")
    for folder in FOLDERS:
        found = (ROOT / folder).rglob("*")
        yield from sorted(path for path in found if path.suffix in READERS and ".ipynb_checkpoints" not in path.parts)


def listed() -> Iterator[str]:
    """Yield `file:line text` for each of them."""
    for path in files():
        for line, text in READERS[path.suffix](path.read_text(encoding="utf-8")):
            yield f"{path.relative_to(ROOT)}:{line} {' '.join(text.split())}"


if __name__ == "__main__":
    for entry in listed():
        print(entry)
