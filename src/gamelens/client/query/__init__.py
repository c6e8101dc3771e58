"""One query from its arguments to its frame.

Never opens a connection and never reads the disk itself: `connection` and `cache` do. Open `query_run` first.
"""
