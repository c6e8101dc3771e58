"""The collector service: takes in signed events and stores every good one.

Never answers a query. Open `collector_app` first.
"""
