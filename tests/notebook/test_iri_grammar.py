"""The grammar of addresses that jsonschema would load for seconds."""

from __future__ import annotations

import subprocess
import sys

import pytest

DEFERRED = """
import sys
from gamelens.notebook.figures.iri_grammar import defer_iri_grammar
defer_iri_grammar()
import jsonschema
print("lark" in sys.modules)
"""
CHECKED = """
checks = jsonschema.FormatChecker(["iri"])
print(checks.conforms("http://example.org/é", "iri"), checks.conforms("no address", "iri"), "lark" in sys.modules)
"""
IMPORTED = """
import sys
import gamelens.notebook.figures.figure_frame, gamelens.notebook.reports.report, nbformat
print("lark" in sys.modules)
"""


@pytest.mark.shown_by(1)
@pytest.mark.parametrize(
    ("code", "printed"),
    [(DEFERRED + CHECKED, "False\nTrue False True"), (IMPORTED, "False")],
    ids=["used", "figure and report"],
)
def test_the_grammar_is_loaded_when_it_is_used(code: str, printed: str) -> None:
    """It costs seconds, so figures and reports do without it. jsonschema checks addresses as before."""
    pytest.importorskip("rfc3987_syntax")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == printed
