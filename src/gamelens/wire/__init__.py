"""The data that both services exchange with games and analysts, as frozen values.

The room never does I/O, never reads a clock and never imports an engine or a DataFrame library. Open `queries` first.
Numbered sections in this folder's README.md describe both services; docstrings and tests cite them.
"""
