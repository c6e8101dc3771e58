"""Parts that every figure shares: frame, theme, colours, captions, texts and files.

Never decides what is drawn, which is the work of `charts`. Open `figure_frame` first.
"""

from gamelens.notebook.figures.iri_grammar import defer_iri_grammar

defer_iri_grammar()
