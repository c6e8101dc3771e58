"""Reports: a notebook, executed and written as one HTML page.

Never queries a service itself: the cells of the notebook do. A page loads nothing and runs no script but the two that
draw interactive figures. Open `report` first.
"""

from gamelens.notebook.figures.iri_grammar import defer_iri_grammar

defer_iri_grammar()  # before nbformat is imported
