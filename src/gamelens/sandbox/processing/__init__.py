"""Processing: turns the raw events of the inbox into tables of the lake.

The part never answers a query and never changes the inbox. Open `pipeline` first.
"""
