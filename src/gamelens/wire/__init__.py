"""What travels between a game, the collector, the metrics service and an analyst.

Shapes and rules of both specifications as frozen values; no I/O, no clock, no engine. Open `queries` first for the
metrics service and `events` first for the collector.
"""
