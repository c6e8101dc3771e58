"""Everything between a client and a server: settings, rate limit, transport and recordings.

Never reads a metric: what an answer means is decided in `client.query`. Open `transport` first.
"""
