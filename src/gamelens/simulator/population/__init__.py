"""The players and their behaviour, as arrays.

The part never writes an event. Open `behaviour` first.
"""
