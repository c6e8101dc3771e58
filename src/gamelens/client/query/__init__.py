"""One query from its arguments to its frame.

Never opens a connection and never reads a file: `client.connection` and `client.answer_cache` do.
Open `executor` first: its `query` has the three steps.
"""
