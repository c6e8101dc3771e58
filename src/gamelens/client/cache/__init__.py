"""Answered buckets on disk, so that a client requests only buckets that may have changed.

Never stores a key and never sends a request. Open `answer_cache` first.
"""
