"""Queries as values, the requests they take, and tables put together from the answers.

Sends nothing. Open `planner` first.
"""
