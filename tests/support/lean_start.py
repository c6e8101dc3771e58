"""A plugin that pytest loads before all others, by `-p tests.support.lean_start`: nbmake's takes 2 s less with it."""

from gamelens.notebook.figures.iri_grammar import defer_iri_grammar

defer_iri_grammar()
