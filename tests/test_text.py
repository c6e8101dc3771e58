"""Names from outside are made safe."""

from __future__ import annotations

import pytest

from gamelens._text import (
    escape_markdown,
    escape_unprintable,
    markdown_table,
    one_line,
    printable,
    terminal_line,
)
from support.hostile_names import NAMES


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a\n\n# b\x00c", "a # b c"),
        ("photo\u202egnp.exe", "photognp.exe"),
        ("half \ud83d", "half \ufffd"),
        (7, "7"),
    ],
)
def test_one_line(text: object, line: str) -> None:
    assert one_line(text) == line


def test_a_terminal_line_has_no_control_characters() -> None:
    assert terminal_line("the service says:\r\n\x1b[31mfine\x07") == "the service says: \ufffd[31mfine\ufffd"


def test_printable_text_stays_and_keeps_its_spaces() -> None:
    assert printable("a  b é 👩‍👧") == "a  b é 👩‍👧"


def test_unprintable_characters_are_written_out() -> None:
    assert escape_unprintable("a\n\x1bé") == "a\\n\\x1bé"


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_markdown_of_a_name_is_text_on_one_line(name: str) -> None:
    assert not set("<>[]|*_`$\n\x1b\u202e") & set(escape_markdown(name))


def test_a_list_item_begins_no_other_list() -> None:
    assert escape_markdown("- x").startswith("&#45;")
    assert escape_markdown("1. x").startswith("1&#46;")


def test_a_table_has_one_line_for_each_row() -> None:
    table = markdown_table(["game"], [[name] for name in NAMES.values()])
    assert len(table.split("\n")) == 2 + len(NAMES)
    assert all(line.count("|") == 2 for line in table.split("\n"))
