"""Time cut into buckets, and the rows of answers as Arrow tables.

Never asks a service and never makes a DataFrame. Open `time_ranges` first.
"""
