"""Tables read from files and written to files.

Never knows a metric. Open `table_reader` first.
"""
