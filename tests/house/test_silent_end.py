"""The check of executed notebooks: the last code cell shows something."""

from __future__ import annotations

from support.notebook_files import code_cell, new_output, notebook_of, silent_at_the_end

PRINTED = new_output("stream", name="stdout", text="a sentence")


def test_a_notebook_whose_last_cell_shows_nothing_is_found() -> None:
    """As when `lake.close()` follows the sentences; other cells do not count."""
    quiet = notebook_of(code_cell("say(1)", outputs=[PRINTED]), code_cell("say(2)\nlake.close()"))
    assert silent_at_the_end(quiet) == ("say(2)\nlake.close()", 1)
    blank = notebook_of(code_cell("print()", outputs=[new_output("stream", name="stdout", text="\n")]))
    assert silent_at_the_end(blank) == ("print()", 0)


def test_a_sentence_at_the_end_is_enough() -> None:
    """Printed or displayed."""
    shown = new_output("display_data", data={"text/html": "a sentence"})
    assert silent_at_the_end(notebook_of(code_cell("say(1)", outputs=[shown]))) is None
    assert silent_at_the_end(notebook_of(code_cell("print(1)", outputs=[PRINTED]))) is None
