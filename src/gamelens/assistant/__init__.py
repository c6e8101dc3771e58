"""Answers for an assistant that asks on an analyst's behalf: `gamelens mcp`.

Every number comes from the client with its receipt. This room computes none, and writes nothing. Open `tools` first.
"""
