"""Two answers to one question: what differs, by how much, and why.

Nothing is written and nothing is asked but the two answers. Open `reconcile` first.
"""
