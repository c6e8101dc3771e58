"""The players and what they do, as arrays.

Never writes an event. Open `behaviour` first.
"""
