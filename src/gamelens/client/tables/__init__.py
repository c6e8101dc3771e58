"""Time cut into buckets, and the rows of answers as Arrow tables.

Never sends a request and never builds a DataFrame. Open `time_ranges` first.
"""
