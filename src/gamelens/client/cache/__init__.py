"""Answered buckets on disk, so that only what may have changed is requested again.

Never holds a key, and never asks a service. Open `answer_cache` first.
"""
