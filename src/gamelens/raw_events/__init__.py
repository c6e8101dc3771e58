"""A lake of one's own: the numbers of the metrics service, and SQL over its events.

Open `lake_client` first.
"""
