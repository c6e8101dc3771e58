"""A scenario played out: requests, Parquet days, sessions and outside files.

Never opens a connection. Open `play` first.
"""
