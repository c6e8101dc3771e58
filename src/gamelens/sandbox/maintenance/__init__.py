"""Work on a whole lake: it is filled from files, verified, exported.

Verification never changes anything and never uses the engine. Open `table_verification` first.
"""
