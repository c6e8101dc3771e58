"""Work on a whole lake: it is verified and exported.

Verification never changes anything.
"""
