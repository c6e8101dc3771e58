"""Frames as tables for people: readable numbers with units, notes and the source.

One set of texts is laid out three times: as HTML for notebooks and reports, as HTML for mail, and as text.
Open `frame_table` first.
"""
