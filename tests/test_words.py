"""The list of all texts that a user can meet, from `make words`."""

from __future__ import annotations

import json

import pytest

from support.words import in_html, in_markdown, in_notebook, in_python, in_quotes, listed


def test_messages_help_and_labels_of_python_are_listed_with_their_line() -> None:
    """A message, an f-string with its blank, a label of one word and a command's whole docstring; no code, no SQL."""
    source = '''
from click import command

@command(short_help="Check")
def check():
    """Check the settings.

    Nothing is sent.
    """
    """Not listed."""
    raise ValueError(f"{name} is not a metric")
    warn("the file is " "empty")
    run("SELECT a FROM b", "utf-8", key="one")
'''
    assert list(in_python(source)) == [
        (4, "Check"),
        (6, "Check the settings.\n\nNothing is sent."),
        (11, "{name} is not a metric"),
        (12, "the file is empty"),
    ]


def test_prose_is_listed_without_its_code() -> None:
    assert list(in_markdown("# Title\n\n```python\nx = 1\n```\n| a | b |\n|---|---|\n")) == [
        (1, "# Title"),
        (6, "| a | b |"),
    ]
    cells = [
        {"cell_type": "markdown", "source": ["# A\n", "b c"]},
        {"cell_type": "code", "source": ["%m a\n", "print('d e')"]},
    ]
    notebook = json.dumps({"cells": cells})
    assert list(in_notebook(notebook)) == [(1, "# A"), (1, "b c"), (2, "d e")]


def test_texts_of_templates_and_pages_are_listed() -> None:
    assert list(in_quotes('[kind]\none = "word"\nrow = "Ads earned {size}."\n')) == [(3, "Ads earned {size}.")]
    assert in_html('<p title="Full name">Two <b>words</b></p>') == [(1, "Full name"), (1, "Two "), (1, "words")]


@pytest.mark.wide
def test_every_kind_of_text_of_the_repository_is_listed() -> None:
    """A message, a command's help, a public docstring, a template, a page's text, prose and a notebook's."""
    texts = {entry.partition(" ")[2] for entry in listed()}
    assert texts >= {
        "cannot be read as TOML: {error}",
        "Run both services on this machine.",
        "A field has a value that is not allowed.",
        "No ads were shown in this period.",
        "Live events · gamelens sandbox",
        "This page cannot insert cells: copy the code instead.",
        "# A tour of gamelens",
    }
