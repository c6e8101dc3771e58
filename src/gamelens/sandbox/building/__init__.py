"""Building: the rows that new events add to each table of an organisation.

The part decides what is written, never when, with the same statements on every engine.
Open `batch_builder` first, then `batch`.
"""
