"""A scenario played out: requests, Parquet days, sessions and outside files.

The part never opens a connection. Open `play` first.
"""
