"""Lines, tables and completed words: everything that fits a terminal.

It never decides what is printed: commands do. Open `terminal_text` first.
"""
