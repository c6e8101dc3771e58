"""The sandbox's files: the inbox of accepted events and the lake of processed ones.

Never interprets a metric. Open `inbox` first.
"""
