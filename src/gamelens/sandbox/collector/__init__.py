"""The collector service: takes in signed events and stores every good one.

Never answers a query and never stores an IP address. Open `collector_app` first.
"""
