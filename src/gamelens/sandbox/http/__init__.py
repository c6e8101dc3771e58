"""Bytes in and bytes out, within bounds: bodies, responses, connections, certificates and rate limits.

Never knows an event or a metric. Open `request_body` first.
"""
