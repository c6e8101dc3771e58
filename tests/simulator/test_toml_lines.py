"""Line numbers of the keys of a TOML file, which `tomllib` does not report."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator
from importlib import resources

import pytest

from gamelens.simulator.scenarios.toml_lines import lines_of

KeyPath = tuple[str | int, ...]
"""Keys and positions from the top of a document to one value."""
AWKWARD = '''# a comment with = and [brackets]
top = 1
"quoted key" = """many
lines with " and
x = 3"""
dotted.deep."er" = 'literal # no comment'  # [a comment]
when = 2026-11-21 10:00:00
[table]
list = [
  1, # one ]
  2,
  { in = "line", two = [3,
   4] },
]
[table.sub]
x = { }
[[row]]
a = 1
  [row.part]
  b = 2
  [[row.item]]
  c = 3
[[row]]
  [[row.item]]
  c = 4
  [[row.item]]
  c = 5 # the last
'''


def paths(value: object, at: KeyPath = ()) -> Iterator[KeyPath]:
    """Yield every path that `tomllib` found."""
    members: Iterable[tuple[str | int, object]] = ()
    if isinstance(value, dict | list):
        members = value.items() if isinstance(value, dict) else enumerate(value)
    for key, child in members:
        yield (*at, key)
        yield from paths(child, (*at, key))


@pytest.mark.parametrize(
    ("path", "line"),
    [
        (("top",), 2),
        (("quoted key",), 3),
        (("dotted", "deep", "er"), 6),
        (("when",), 7),
        (("table",), 8),
        (("table", "list", 0), 10),
        (("table", "list", 1), 11),
        (("table", "list", 2, "two"), 12),
        (("table", "list", 2, "two", 1), 13),
        (("table", "sub", "x"), 16),
        (("row", 0, "a"), 18),
        (("row", 0, "part", "b"), 20),
        (("row", 0, "item", 0, "c"), 22),
        (("row", 1, "item", 0, "c"), 25),
        (("row", 1, "item", 1, "c"), 27),
    ],
)
def test_keys_and_elements_stand_on_their_lines(path: KeyPath, line: int) -> None:
    """Quoted, dotted and inline keys, tables and array elements get the line they start on."""
    assert lines_of(AWKWARD)[path] == line


def test_windows_line_ends_count_once() -> None:
    """A file with CRLF line ends has the same line numbers."""
    assert lines_of(AWKWARD.replace("\n", "\r\n")) == lines_of(AWKWARD)


SHIPPED = [
    entry
    for entry in (resources.files("gamelens.simulator.scenarios") / "shipped").iterdir()
    if entry.name[-5:] == ".toml"
]


@pytest.mark.parametrize("text", [AWKWARD, *(entry.read_text() for entry in SHIPPED)])
def test_every_path_that_tomllib_finds_has_a_line_with_its_key(text: str) -> None:
    """Every path of every shipped scenario has a line, and the line holds its key."""
    lines, written = lines_of(text), text.splitlines()
    found = list(paths(tomllib.loads(text)))
    assert set(found) <= lines.keys()
    for path in found:
        if isinstance(path[-1], str):
            assert path[-1] in written[lines[path] - 1]
