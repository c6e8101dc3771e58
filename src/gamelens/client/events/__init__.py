"""Recording and submitting game events, as the service's own SDKs do.

Never reads a metric back. Open `player_session` first.
"""
