"""Work on a whole lake: it is filled from files, verified, exported.

Verification never changes anything.
"""
