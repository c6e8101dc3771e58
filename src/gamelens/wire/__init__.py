"""Everything that travels between a game, the collector, the metrics service and an analyst, as frozen values.

The room never does I/O, never reads a clock and never imports an engine. Open `queries` first. What both services do is
described in numbered sections in this folder's README.md, which docstrings and tests cite.
"""
