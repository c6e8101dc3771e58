"""The morning message: what is unusual, sent to each target once for each day.

Never computes a number, never sends a day that is not complete, and never shows the secret of a target.
Open `morning_message` first.
"""
