"""The connection of a client to a server: settings, rate limit, transport, recordings.

Never decodes rows: the meaning of an answer is decided in `client.query`. Open `transport` first.
"""
