"""The way from raw events to the tables of the lake.

Never answers a query. Open `pipeline` first.
"""
