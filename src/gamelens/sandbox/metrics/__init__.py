"""The metrics service: answers queries from the lake.

Never changes what is stored. Open `metrics_app` first.
"""
