"""The metrics service: reads queries, compiles them to SQL and answers them from the lake.

The part never changes stored data and never imports a query engine. Open `metrics_app` first.
"""
