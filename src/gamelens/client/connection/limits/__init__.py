"""Limits of a client: requests a second and in flight, and the time of a query."""
