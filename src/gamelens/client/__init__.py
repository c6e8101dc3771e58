"""Clients of the metrics service and the collector, over HTTP and within their limits.

Never computes a metric, never imports a sandbox, and lets neither a key nor an httpx type out.

Open `sync_client` first. For events, open `events.player_session`.
"""
