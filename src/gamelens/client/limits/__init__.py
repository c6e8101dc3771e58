"""Limits of a client: requests per second and in flight, and the time of a query.

Never sends a request. Open `rate_limit` first.
"""
